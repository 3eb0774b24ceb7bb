#include "find.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { PATH_ROOM = 256, FIRST_PYTHON = 8, LAST_PYTHON = 20 };

/* The state of a search. */
typedef struct search {
    const tn_host *host;
    const cuda_sought *sought;
    const tn_symbol *symbols;
    size_t count;
    void *table;
    const char *files; /* the part of sought->files that fits what is loaded */
    bool looks;        /* only look: nothing is opened */
    bool found;
    char taken[PATH_ROOM];   /* "" if the system does not report the path */
    char passed[PATH_ROOM];  /* the first few rejected files, without duplicates */
    char broken[PATH_ROOM];  /* the error for the loader's file, if it did not open */
    char fitting[PATH_ROOM]; /* file names of the major version that is loaded in this process */
} search;

static bool exists(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file)
        (void)fclose(file);
    return file != NULL;
}

/* Copies the next item of "a|b|c" or, with ':', of a path variable; false if it is empty or too long. */
static bool next(const char **at, char separator, char out[PATH_ROOM])
{
    const char stop[] = {separator, '\0'};
    size_t length = strcspn(*at, stop);
    bool fits = length > 0 && length < PATH_ROOM;
    if (fits) {
        memcpy(out, *at, length);
        out[length] = '\0';
    }
    *at += length + ((*at)[length] == separator);
    return fits;
}

/* Finds the first of "a|b|c" that is loaded in this process and writes its path. A path that does not fit
 * counts as not found. */
static bool find_resident(const search *s, const char *names, char out[PATH_ROOM])
{
    const tn_host *host = s->host;
    int32_t is_here = 0;
    return names && TN_HAS(host, tn_host, library_look) &&
           !host->library_look(host->self, names, out, PATH_ROOM, &is_here, NULL) && is_here &&
           strlen(out) < PATH_ROOM - 1;
}

/* Tries one file: opens it or, if s->looks, only checks that it is valid. */
static tn_status try_file(const search *s, const char *files, tn_error *err)
{
    const tn_host *host = s->host;
    char path[PATH_ROOM];
    int32_t is_here;
    if (!s->looks)
        return host->library_bind(host->self, files, s->symbols, s->count, s->table, err);
    tn_status status = host->library_look(host->self, files, path, sizeof path, &is_here, err);
    return status == TN_NOT_FOUND ? TN_UNAVAILABLE : status;
}

/* Resolves symbolic links. */
static bool resolve_links(const char *path, char out[PATH_MAX])
{
#if defined(_WIN32)
    return _fullpath(out, path, PATH_MAX);
#else
    return realpath(path, out);
#endif
}

static bool is_taken(const search *s, const char *real)
{
    char taken[PATH_MAX];
    return s->taken[0] && resolve_links(s->taken, taken) && strcmp(real, taken) == 0;
}

/* Adds a file to the rejected ones, as long as there is room. */
static void pass_over(search *s, const char *real)
{
    size_t used = strlen(s->passed);
    if (!strstr(s->passed, real) && used + strlen(real) + 3 < sizeof s->passed)
        snprintf(s->passed + used, sizeof s->passed - used, "%s%s", used ? ", " : "", real);
}

static void look_at(search *s, const char *path)
{
    char real[PATH_MAX];
    if (strcmp(path, s->taken) == 0 || !exists(path) || !resolve_links(path, real) ||
        is_taken(s, real))
        return;
    if (!s->found && try_file(s, path, NULL) == TN_OK) {
        s->found = true;
        tn_text_fit(s->taken, sizeof s->taken, path);
        return;
    }
    pass_over(s, real);
}

static void look_in(search *s, const char *folder)
{
    char path[2 * PATH_ROOM + 2], name[PATH_ROOM];
    for (const char *at = s->files; *at;) {
        if (!next(&at, '|', name))
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, name);
        if (strlen(path) < PATH_ROOM)
            look_at(s, path);
    }
}

static void look_in_toolkit(search *s, const char *toolkit)
{
    char folder[PATH_ROOM + 8];
    if (!toolkit || !toolkit[0] || strlen(toolkit) >= PATH_ROOM)
        return;
    snprintf(folder, sizeof folder, "%s/lib64", toolkit);
    look_in(s, folder);
    snprintf(folder, sizeof folder, "%s/lib", toolkit);
    look_in(s, folder);
}

/* Searches all packages of one Python installation below `nvidia`. */
static void look_in_packages(search *s, const char *nvidia)
{
    char folder[3 * PATH_ROOM], package[PATH_ROOM];
    if (!exists(nvidia))
        return;
    for (const char *at = s->sought->packages; *at;) {
        if (!next(&at, '|', package))
            continue;
        snprintf(folder, sizeof folder, "%s/%s/lib", nvidia, package);
        look_in(s, folder);
    }
}

/* Searches the Python installations with this prefix. */
static void look_in_prefix(search *s, const char *prefix)
{
    char folder[PATH_ROOM + 64];
    if (!prefix || !prefix[0] || strlen(prefix) >= PATH_ROOM)
        return;
    for (int minor = LAST_PYTHON; minor >= FIRST_PYTHON; minor--) {
        snprintf(folder, sizeof folder, "%s/lib/python3.%d/site-packages/nvidia", prefix, minor);
        look_in_packages(s, folder);
        snprintf(folder, sizeof folder, "%s/lib/python3.%d/dist-packages/nvidia", prefix, minor);
        look_in_packages(s, folder);
    }
    snprintf(folder, sizeof folder, "%s/lib/python3/dist-packages/nvidia", prefix);
    look_in_packages(s, folder);
}

/* Searches the Python installations on PATH. */
static void look_in_path(search *s, const char *path)
{
    char folder[PATH_ROOM], python[PATH_ROOM + 16];
    while (path && *path) {
        if (!next(&path, ':', folder))
            continue;
        snprintf(python, sizeof python, "%s/python3", folder);
        size_t length = strlen(folder);
        if (length < 5 || strcmp(folder + length - 4, "/bin") != 0 || !exists(python))
            continue;
        folder[length - 4] = '\0';
        look_in_prefix(s, folder);
    }
}

static void look_at_home(search *s, const char *home)
{
    char prefix[PATH_ROOM + 8];
    if (!home || strlen(home) >= PATH_ROOM)
        return;
    snprintf(prefix, sizeof prefix, "%s/.local", home);
    look_in_prefix(s, prefix);
}

/* Searches next to a related library of the same version that is loaded. Writes its path to
 * out_kin, "" for none. */
static void look_beside(search *s, const char *names, char out_kin[PATH_ROOM])
{
    char kin[PATH_ROOM], folder[PATH_ROOM];
    out_kin[0] = '\0';
    if (!find_resident(s, names, kin) || !strchr(kin, '/'))
        return;
    tn_text_fit(folder, sizeof folder, kin);
    *strrchr(folder, '/') = '\0';
    look_in(s, folder);
    if (s->found)
        tn_text_fit(out_kin, PATH_ROOM, kin);
}

/* Records a file of the loader that does not open, and the error. */
static void pass_over_loaders(search *s, const char *names, const tn_error *said)
{
    const tn_host *host = s->host;
    char path[PATH_ROOM], real[PATH_MAX];
    int32_t is_here;
    if (!TN_HAS(host, tn_host, library_look) ||
        host->library_look(host->self, names, path, sizeof path, &is_here, NULL) ||
        !resolve_links(path, real))
        return;
    pass_over(s, real);
    tn_text_fit(s->broken, sizeof s->broken, said->message);
}

/* Searches with the loader, which prefers a library that is already loaded to any file. */
static tn_status look_by_loader(search *s, const char *names, tn_error *err)
{
    const tn_host *host = s->host;
    tn_error said = {0};
    int32_t is_here;
    tn_status status = try_file(s, names, &said);
    s->found = !status;
    if (!status && TN_HAS(host, tn_host, library_look))
        (void)host->library_look(host->self, names, s->taken, sizeof s->taken, &is_here, NULL);
    if (status && !s->looks)
        pass_over_loaders(s, names, &said);
    if (status && err)
        *err = said;
    return status;
}

static void look_elsewhere(search *s)
{
    look_in_toolkit(s, getenv("CUDA_PATH"));
    look_in_toolkit(s, getenv("CUDA_HOME"));
    look_in_toolkit(s, "/usr/local/cuda");
    look_in_prefix(s, getenv("VIRTUAL_ENV"));
    look_in_prefix(s, getenv("CONDA_PREFIX"));
    look_in_path(s, getenv("PATH"));
    look_at_home(s, getenv("HOME"));
}

/* Reports where the library was found, which files were passed over, and how to choose one of those instead. */
static void report_found(const search *s, const char *how, const char *where, bool by_loader,
                         tn_error *err)
{
    const char *over = s->passed[0] ? "; passed over: " : "";
    const char *instead =
        by_loader && s->passed[0] ? "; a folder in LD_LIBRARY_PATH comes before" : "";
    (void)tn_fail(err, TN_OK, 0, "", "%s%s%s%s%s%s%s", how, where, over, s->passed, instead,
                  s->broken[0] ? "; of the loader's: " : "", s->broken);
}

/* Returns the digits after ".so." and their count; NULL if there is no ".so.". */
static const char *major_of(const char *path, size_t *out_length)
{
    static const char before[] = ".so.";
    const char *at = strstr(path, before);
    at = at ? at + strlen(before) : NULL;
    *out_length = at ? strspn(at, "0123456789") : 0;
    return at;
}

/* Restricts the files to the major version of a related library that is loaded. Returns false if
 * none matches. */
static bool fit_to_kin(search *s, const char *kin)
{
    char name[PATH_ROOM];
    size_t length, other, used = 0;
    const char *major = major_of(kin, &length);
    s->fitting[0] = '\0';
    for (const char *at = s->files; major && *at;) {
        const char *found = next(&at, '|', name) ? major_of(name, &other) : NULL;
        if (found && other == length && memcmp(found, major, length) == 0)
            used += (size_t)snprintf(s->fitting + used, PATH_ROOM - used, "%s%s", used ? "|" : "",
                                     name);
    }
    if (used > 0)
        s->files = s->fitting;
    return !major || used > 0;
}

static tn_status fail_of_majors(const search *s, const char *kin, tn_error *err)
{
    return tn_fail(
        err, TN_INCOMPATIBLE, 0, "",
        "%s is in this process, and of %s there is none of the same major: two majors do "
        "not go together",
        kin, s->sought->files);
}

/* Searches all places in order; *s says what was taken. */
static tn_status seek(search *s, tn_error *err)
{
    char there[PATH_ROOM], kin[PATH_ROOM], with[PATH_ROOM];
    s->files = s->sought->files;
    const bool is_there = find_resident(s, s->files, there);
    const char *slash = is_there ? strrchr(there, '/') : NULL;
    const bool bound = !is_there && s->sought->by_major && find_resident(s, s->sought->kin, with);
    if (bound && !fit_to_kin(s, with))
        return fail_of_majors(s, with, err);
    const char *files = s->files;
    look_beside(s, is_there ? NULL : s->sought->kin, kin);
    tn_status status = kin[0] ? TN_OK : look_by_loader(s, slash ? slash + 1 : files, err);
    const bool by_loader = !status && !is_there && !kin[0];
    if (status && (is_there || status != TN_UNAVAILABLE))
        return status;
    look_elsewhere(s);
    if (!s->found)
        return bound ? fail_of_majors(s, with, err) : status;
    if (is_there)
        report_found(s, "already in this process", "", false, err);
    else if (kin[0])
        report_found(s, "beside one of its version that is already in this process: ", kin, false,
                     err);
    else if (by_loader)
        report_found(s, "found by the loader", "", true, err);
    else
        report_found(s, "found at ", s->taken, false, err);
    return TN_OK;
}

tn_status cuda_find_bind(const tn_host *host, const cuda_sought *sought, const tn_symbol *symbols,
                         size_t count, void *table, tn_error *err)
{
    search s = {.host = host, .sought = sought, .symbols = symbols, .count = count, .table = table};
    return seek(&s, err);
}

tn_status cuda_find_look(const tn_host *host, const cuda_sought *sought, char *out_path,
                         size_t size, tn_error *err)
{
    search s = {.host = host, .sought = sought, .looks = true};
    tn_status status = TN_HAS(host, tn_host, library_look)
                           ? seek(&s, err)
                           : tn_fail(err, TN_UNAVAILABLE, 0, "", "the host does not look");
    if (!status)
        tn_text_fit(out_path, size, s.taken);
    return status;
}

int cuda_find_version(int (*property)(int which, int *out), int64_t *out_number, char *out_text,
                      size_t size)
{
    int part[3] = {0, 0, 0}, code = 0;
    for (int i = 0; i < 3 && !code; i++)
        code = property(i, &part[i]);
    if (code)
        return code;
    *out_number = part[0] * 10000 + part[1] * 100 + part[2];
    snprintf(out_text, size, "%d.%d.%d", part[0], part[1], part[2]);
    return 0;
}
