/* `tenon new-module`: creates a module to start from. */
#include "new_module.h"

#include "json.h"
#include "options.h"
#include "system.h"

#include <errno.h>

enum { PATH_ROOM = 4096 };

/* The values of the words that a template may contain. */
typedef struct fillings {
    const char *name;
    char tenon[32];
} fillings;

static fillings make_fillings(const char *name)
{
    fillings with = {.name = name};
    snprintf(with.tenon, sizeof with.tenon, "%d.%d", TN_VERSION_MAJOR, TN_VERSION_MINOR);
    return with;
}

/* Returns the value of the word at the start of `text`, and its length there; NULL if none is
 * there. */
static const char *find_filling(const fillings *with, const char *text, size_t size,
                                size_t *out_length)
{
    const struct {
        const char *word, *value;
    } words[] = {{"@NAME@", with->name}, {"@TENON@", with->tenon}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        *out_length = strlen(words[i].word);
        if (*out_length <= size && strncmp(text, words[i].word, *out_length) == 0)
            return words[i].value;
    }
    return NULL;
}

/* Writes a template, with its words replaced, to a file. */
static void write_filled(FILE *file, const fillings *with, const char *text, size_t size)
{
    for (size_t at = 0, length; at < size; at += length) {
        const char *value = find_filling(with, text + at, size - at, &length);
        if (value) {
            fputs(value, file);
            continue;
        }
        length = 1;
        fputc(text[at], file);
    }
}

/* The same to a buffer. Returns false if it does not fit. */
static bool fill_path(const fillings *with, const char *path, char *out, size_t room)
{
    const size_t size = strlen(path);
    size_t used = 0;
    for (size_t at = 0, length; at < size; at += length) {
        const char *value = find_filling(with, path + at, size - at, &length);
        length = value ? length : 1;
        int written = snprintf(out + used, room - used, "%.*s", value ? PATH_ROOM : 1,
                               value ? value : path + at);
        if (written < 0 || (size_t)written >= room - used)
            return false;
        used += (size_t)written;
    }
    out[used] = '\0';
    return true;
}

static tn_status fail_at(const char *path, int code, tn_error *err)
{
    if (code == EEXIST)
        return tn_fail(err, TN_ALREADY_EXISTS, code, "new-module",
                       "%s exists, and nothing is overwritten; choose another name or --dir", path);
    return tn_fail(err, TN_IO, code, "new-module", "%s: %s", path, strerror(code));
}

static tn_status write_file(const char *path, const fillings *with, const new_module_file *from,
                            tn_error *err)
{
    errno = 0;
    FILE *file = fopen(path, "wbx");
    if (!file)
        return fail_at(path, errno, err);
    write_filled(file, with, (const char *)from->text, *from->size);
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
static tn_status join(const char *dir, const fillings *with, const char *rest, char out[PATH_ROOM],
                      tn_error *err)
{
    char last[256];
    int length = fill_path(with, rest, last, sizeof last)
                     ? snprintf(out, PATH_ROOM, "%s%stenon-%s%s%s", dir, dir[0] ? "/" : "",
                                with->name, last[0] ? "/" : "", last)
                     : PATH_ROOM;
    return length > 0 && length < PATH_ROOM
               ? TN_OK
               : tn_fail(err, TN_INVALID_ARGUMENT, 0, "new-module", "the path is too long");
}

static tn_status write_all(const char *dir, const fillings *with, const new_module_kind *kind,
                           tn_error *err)
{
    char path[PATH_ROOM];
    tn_status status = join(dir, with, "", path, err);
    if (!status)
        status = make_folder(path, err);
    for (const char *const *folder = kind->folders; !status && *folder; folder++) {
        status = join(dir, with, *folder, path, err);
        if (!status)
            status = make_folder(path, err);
    }
    for (const new_module_file *file = kind->files; !status && file->path; file++) {
        status = join(dir, with, file->path, path, err);
        if (!status)
            status = write_file(path, with, file, err);
    }
    return status;
}

static void report_files(const command *self, const char *dir, const fillings *with,
                         const new_module_kind *kind, bool as_json)
{
    char path[PATH_ROOM] = "";
    json to = {0};
    (void)join(dir, with, "", path, NULL);
    if (!as_json) {
        printf("wrote %s; next: cd %s && make check\n", path, path);
        return;
    }
    json_begin_document(&to, self->name);
    json_text(&to, "name", with->name);
    json_text(&to, "kind", kind->word);
    json_text(&to, "folder", path);
    json_begin_list(&to, "files");
    for (const new_module_file *file = kind->files; file->path; file++) {
        char name[256] = "";
        (void)fill_path(with, file->path, name, sizeof name);
        json_text(&to, NULL, name);
    }
    json_end_list(&to);
    json_end_document(&to);
}

/* Returns the kind that was requested; NULL, with a message, unless there is exactly one. `given` is
 * in the order of new_module_kinds. */
static const new_module_kind *find_kind(const command *self, const char *name, const bool *given)
{
    const new_module_kind *found = NULL;
    size_t count = 0;
    for (size_t i = 0; new_module_kinds[i].word; i++) {
        found = given[i] ? &new_module_kinds[i] : found;
        count += given[i];
    }
    if (count == 1)
        return found;
    fprintf(
        stderr,
        "tenon %s: expected one kind of module for \"%s\", got %zu; use --platform, --kernel or "
        "--library\n",
        self->name, name, count);
    return NULL;
}

int run_new_module(const command *self, int count, char **arguments)
{
    bool given[3] = {false}, as_json = false;
    option_values names = {0}, dirs = {0};
    tn_error err;
    const option_row rows[] = {
        {"NAME", NULL, "name of the module, and of its platform or library", NULL, &names, 1},
        {"--platform", NULL, "a platform: one device in host memory", &given[0], NULL, 0},
        {"--kernel", NULL, "a kernel of softmax for the cpu", &given[1], NULL, 0},
        {"--library", NULL, "a library opened at run time, and a kernel of matmul that calls it",
         &given[2], NULL, 0},
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
    const fillings with = make_fillings(names.texts[0]);
    const char *dir = dirs.count ? dirs.texts[0] : "";
    const new_module_kind *kind = find_kind(self, with.name, given);
    if (!kind)
        return EXIT_WRONG_USE;
    if ((code = new_module_check_name(self, kind, with.name)))
        return code;
    if (write_all(dir, &with, kind, &err)) {
        (void)report_error(&err);
        return EXIT_WRONG_USE;
    }
    report_files(self, dir, &with, kind, as_json);
    return EXIT_DONE;
}
