/* `tenon new-module`: creates a module to start from. */
#include "new_module.h"

#include "json.h"
#include "options.h"
#include "system.h"

#include <errno.h>

enum { NAME_MOST = 48, PATH_ROOM = 4096 };

static bool is_small(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* The registry's rule: 1 to 48 of a-z 0-9 - _, beginning with a letter or digit. */
static bool is_legal(const char *name)
{
    size_t length = strlen(name);
    if (length == 0 || length > NAME_MOST || !is_small(name[0]))
        return false;
    for (size_t i = 0; i < length; i++) {
        if (!is_small(name[i]) && name[i] != '-' && name[i] != '_')
            return false;
    }
    return true;
}

/* The nearest legal name: lower case, '-' for invalid characters; "" if nothing is left. */
static void make_legal(const char *name, char out[NAME_MOST + 1])
{
    size_t length = 0;
    for (; *name && length < NAME_MOST; name++) {
        char c = *name >= 'A' && *name <= 'Z' ? (char)(*name - 'A' + 'a') : *name;
        bool is_sound = is_small(c) || c == '_' || c == '-';
        if (length == 0 && !is_small(c))
            continue;
        if (is_sound)
            out[length++] = c;
        else if (out[length - 1] != '-')
            out[length++] = '-';
    }
    while (length > 0 && out[length - 1] == '-')
        length--;
    out[length] = '\0';
}

/* Reserved names: platforms that Tenon knows, modules that ship with it, and words that may be used
 * in place of a platform's name. */
static bool is_reserved_name(const char *name)
{
    static const char *const own[] = {"ref", "described", "best", "unspecified", "unknown"};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        if (strcmp(own[i], name) == 0)
            return true;
    }
    for (int32_t kind = TN_PLATFORM_CPU; kind < TN_PLATFORM_KIND_COUNT; kind++) {
        if (strcmp(tn_platform_kind_name(kind), name) == 0)
            return true;
    }
    return false;
}

static int check_name(const command *self, const char *name)
{
    char legal[NAME_MOST + 1];
    if (!is_legal(name)) {
        make_legal(name, legal);
        fprintf(stderr,
                "tenon %s: a module name has 1 to %d characters of a-z 0-9 - _ and begins with a "
                "letter or "
                "digit%s%s%s\n",
                self->name, NAME_MOST, legal[0] ? "; did you mean " : "", legal,
                legal[0] ? "?" : "");
        return EXIT_WRONG_USE;
    }
    if (is_reserved_name(name)) {
        fprintf(stderr, "tenon %s: \"%s\" is reserved by Tenon; did you mean my-%s?\n", self->name,
                name, name);
        return EXIT_WRONG_USE;
    }
    return EXIT_DONE;
}

/* Replaces @NAME@ and @TENON@ in `text`. Returns false if it does not fit. */
static bool fill_in(const char *text, const char *name, char *out, size_t size)
{
    char version[32];
    size_t length = 0;
    snprintf(version, sizeof version, "%d.%d", TN_VERSION_MAJOR, TN_VERSION_MINOR);
    while (*text) {
        bool is_name = strncmp(text, "@NAME@", 6) == 0, is_tenon = strncmp(text, "@TENON@", 7) == 0;
        const char *part = is_name ? name : is_tenon ? version : text;
        size_t bytes = is_name || is_tenon ? strlen(part) : 1;
        if (length + bytes >= size)
            return false;
        memcpy(out + length, part, bytes);
        length += bytes;
        text += is_name ? 6 : is_tenon ? 7 : 1;
    }
    out[length] = '\0';
    return true;
}

static tn_status fail_at(const char *path, int code, tn_error *err)
{
    return tn_fail(err, code == EEXIST ? TN_ALREADY_EXISTS : TN_IO, code, "new-module", "%s: %s",
                   path, strerror(code));
}

static tn_status write_file(const char *path, const char *name, const char *const *lines,
                            tn_error *err)
{
    char line[512];
    errno = 0;
    FILE *file = fopen(path, "wbx");
    if (!file)
        return fail_at(path, errno, err);
    for (; *lines; lines++) {
        if (fill_in(*lines, name, line, sizeof line))
            fprintf(file, "%s\n", line);
    }
    int code = ferror(file) ? (errno ? errno : EIO) : 0;
    if (fclose(file) != 0 && !code)
        code = errno ? errno : EIO;
    return code ? fail_at(path, code, err) : TN_OK;
}

static tn_status make_folder(const char *path, tn_error *err)
{
    return system_make_folder(path) ? fail_at(path, errno, err) : TN_OK;
}

/* Builds DIR/tenon-NAME, or the path of `rest` in it. */
static tn_status join(const char *dir, const char *name, const char *rest, char out[PATH_ROOM],
                      tn_error *err)
{
    char last[256];
    int length = fill_in(rest, name, last, sizeof last)
                     ? snprintf(out, PATH_ROOM, "%s%stenon-%s%s%s", dir, dir[0] ? "/" : "", name,
                                last[0] ? "/" : "", last)
                     : PATH_ROOM;
    return length > 0 && length < PATH_ROOM
               ? TN_OK
               : tn_fail(err, TN_INVALID_ARGUMENT, 0, "new-module", "the path is too long");
}

static tn_status write_all(const char *dir, const char *name, const new_module_file *files,
                           tn_error *err)
{
    char path[PATH_ROOM];
    tn_status status = join(dir, name, "", path, err);
    if (!status)
        status = make_folder(path, err);
    if (!status)
        status = join(dir, name, "conformance", path, err);
    if (!status)
        status = make_folder(path, err);
    for (; !status && files->path; files++) {
        status = join(dir, name, files->path, path, err);
        if (!status)
            status = write_file(path, name, files->lines, err);
    }
    return status;
}

static void report_files(const command *self, const char *dir, const char *name,
                         const new_module_file *files, bool as_json)
{
    char path[PATH_ROOM] = "";
    json to = {0};
    (void)join(dir, name, "", path, NULL);
    if (!as_json) {
        printf("wrote %s; next: cd %s && make check\n", path, path);
        return;
    }
    json_begin_document(&to, self->name);
    json_text(&to, "name", name);
    json_text(&to, "kind", "platform");
    json_text(&to, "folder", path);
    json_begin_list(&to, "files");
    for (; files->path; files++) {
        char file[256] = "";
        (void)fill_in(files->path, name, file, sizeof file);
        json_text(&to, NULL, file);
    }
    json_end_list(&to);
    json_end_document(&to);
}

static int check_kind(const command *self, const char *name, bool platform, bool library,
                      bool kernel)
{
    if (library || kernel) {
        fprintf(stderr, "tenon %s: --%s is not supported yet; use --platform\n", self->name,
                library ? "library" : "kernel");
        return EXIT_WRONG_USE;
    }
    if (!platform) {
        fprintf(stderr, "tenon %s: expected the kind of module \"%s\": use --platform\n",
                self->name, name);
        return EXIT_WRONG_USE;
    }
    return EXIT_DONE;
}

int run_new_module(const command *self, int count, char **arguments)
{
    bool platform = false, library = false, kernel = false, as_json = false;
    option_values names = {0}, dirs = {0};
    tn_error err;
    const option_row rows[] = {
        {"NAME", NULL, "name of the module and its platform", NULL, &names, 1},
        {"--platform", NULL, "create a module that provides a platform", &platform, NULL, 0},
        {"--library", NULL, "not supported yet", &library, NULL, 0},
        {"--kernel", NULL, "not supported yet", &kernel, NULL, 0},
        {"--dir", "D", "folder in which to create tenon-NAME; default: the current one", NULL,
         &dirs, 1},
        {"--json", NULL, "print JSON", &as_json, NULL, 0},
    };
    int code = options_read(self, rows, sizeof rows / sizeof rows[0], count, arguments);
    if (code != OPTIONS_RUN)
        return code;
    if (names.count == 0) {
        fprintf(stderr, "tenon %s: expected a name: tenon %s %s\n", self->name, self->name,
                self->usage);
        return EXIT_WRONG_USE;
    }
    const char *name = names.texts[0], *dir = dirs.count ? dirs.texts[0] : "";
    if ((code = check_kind(self, name, platform, library, kernel)) ||
        (code = check_name(self, name)))
        return code;
    if (write_all(dir, name, new_module_platform, &err)) {
        (void)report_error(&err);
        return EXIT_WRONG_USE;
    }
    report_files(self, dir, name, new_module_platform, as_json);
    return EXIT_DONE;
}
