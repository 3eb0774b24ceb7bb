#include "look_read.h"

#include "base/alloc.h"
#include "os/dl.h"
#include "os/file.h"

#if defined(__x86_64__)
#define MULTIARCH "x86_64-linux-gnu"
#elif defined(__aarch64__)
#define MULTIARCH "aarch64-linux-gnu"
#elif defined(__riscv) && __riscv_xlen == 64
#define MULTIARCH "riscv64-linux-gnu"
#endif

/* Default folders built into the loaders of common distributions. */
static const char *const own_folders[] = {
#if defined(MULTIARCH)
    "/lib/" MULTIARCH, "/usr/lib/" MULTIARCH,
#endif
    "/lib64",          "/usr/lib64",          "/lib", "/usr/lib",
};

enum { LONGEST_NAME = 255, LARGEST_CACHE = 16 << 20 };

/* Result for one place, following the loader: it continues with the next place if a file is absent,
 * unreadable or for another machine, but stops at a file that is not a complete library. */
typedef enum outcome { NEXT, FOUND, SPOILT, FAILED } outcome;

typedef struct hunt {
    const char *root;
    const char *folders; /* folders to search first, or NULL */
    tni_span name;
    bool has_cache; /* a read was attempted */
    char *bytes;
    tni_loader_cache cache;
    char path[TNI_LOOK_PATH]; /* path of the last file, including the root */
    char said[512];           /* message about the first skipped file, or about the failure */
} hunt;

bool tni_library_names_check(tni_span names)
{
    tni_span name;
    while (tni_span_next(&names, '|', &name)) {
        if (name.length == 0 || name.length > LONGEST_NAME)
            return false;
    }
    return true;
}

/* Decides how to continue after a file that cannot be used. */
static outcome skip_or_stop(hunt *h, const tn_error *err)
{
    const char *why = err->message;
    size_t length = strlen(h->path);
    tn_status status = err->status;
    if (status == TN_NOT_FOUND)
        return NEXT;
    if (strncmp(why, h->path, length) == 0 && why[length] == ':')
        why += length + 2;
    bool failed = status == TN_OUT_OF_MEMORY || status == TN_BUSY || status == TN_IO;
    if (failed || !h->said[0])
        snprintf(h->said, sizeof h->said, "%s: %s", h->path + strlen(h->root), why);
    return failed ? FAILED : status == TN_CORRUPT ? SPOILT : NEXT;
}

/* Never opens a device. */
static outcome try_file(hunt *h)
{
    tni_file_id file;
    tn_error err;
    tn_status status = tni_file_identify(h->path, &file, &err);
    if (!status && !file.is_regular)
        status = tn_fail(&err, TN_CORRUPT, 0, "look", "not a regular file");
    if (!status)
        status = tni_dl_check_headers(h->path, &err);
    return status ? skip_or_stop(h, &err) : FOUND;
}

/* Under another root, relative paths are skipped: there is no current folder. */
static outcome try_folder(hunt *h, const char *folder, size_t length)
{
    bool relative = length ? folder[0] != '/' : h->name.text[0] != '/';
    if ((relative && h->root[0]) ||
        !tni_look_path(h->path, "%s%.*s%s%.*s", h->root, (int)length, folder, length ? "/" : "",
                       (int)h->name.length, h->name.text))
        return NEXT;
    return try_file(h);
}

/* An empty entry is the current folder, as for the loader. */
static outcome try_given_folders(hunt *h)
{
    outcome result = NEXT;
    const char *at = h->folders && h->folders[0] ? h->folders : NULL;
    while (at && result == NEXT) {
        size_t length = strcspn(at, ":;");
        result = try_folder(h, at, length);
        at = at[length] ? at + length + 1 : NULL;
    }
    return result;
}

static outcome try_own_folders(hunt *h)
{
    outcome result = NEXT;
    for (size_t i = 0; result == NEXT && i < sizeof own_folders / sizeof own_folders[0]; i++)
        result = try_folder(h, own_folders[i], strlen(own_folders[i]));
    return result;
}

/* h->path must be the cache's path. */
static tn_status read_cache(hunt *h, tn_error *err)
{
    tni_file *file = NULL;
    uint64_t size;
    tn_status status = tni_file_open(h->path, &file, &size, err);
    if (status)
        return status;
    if (size > LARGEST_CACHE)
        status =
            tn_fail(err, TN_INVALID_ARGUMENT, 0, "look", "longer than %d bytes", LARGEST_CACHE);
    else if (!(h->bytes = tni_alloc((size_t)size)))
        status = tni_no_memory(err, "look", "the loader's cache");
    else if (tni_file_read_at(file, 0, h->bytes, (size_t)size))
        status = tni_loader_cache_parse((tni_span){h->bytes, (size_t)size}, &h->cache, err);
    else if (!(status = tni_file_check(file, h->path, err)))
        status = tn_fail(err, TN_CORRUPT, 0, "look", "truncated while it was read");
    tni_file_close(file);
    return status;
}

/* If the cache is missing or invalid, the loader continues without it, and so does this. */
static outcome try_cache(hunt *h)
{
    tn_error err;
    if (!h->has_cache) {
        h->has_cache = true;
        if (tni_look_path(h->path, "%s/etc/ld.so.cache", h->root) && read_cache(h, &err) &&
            skip_or_stop(h, &err) == FAILED)
            return FAILED;
    }
    const char *path = tni_loader_cache_find(&h->cache, h->name);
    if (!path || !tni_look_path(h->path, "%s%s", h->root, path))
        return NEXT;
    return try_file(h);
}

static outcome try_name(hunt *h)
{
    if (memchr(h->name.text, '/', h->name.length))
        return try_folder(h, "", 0);
    outcome result = try_given_folders(h);
    if (result == NEXT)
        result = try_cache(h);
    if (result == NEXT)
        result = try_own_folders(h);
    return result;
}

void tni_look_library(const char *root, const char *files, const char *search, tni_look *out)
{
    hunt h = {.root = tni_look_root(root), .folders = search};
    tni_span names = tni_span_of(files);
    outcome result = NEXT;
    if (!tni_library_names_check(names)) {
        tni_look_report(out, -1, 0, "\"%.80s\" has an empty name, or one longer than %d bytes",
                        files, LONGEST_NAME);
        return;
    }
    while (result != FOUND && result != FAILED && tni_span_next(&names, '|', &h.name))
        result = try_name(&h);
    if (result == FOUND)
        tni_look_report(out, 1, 1, "%s", h.path + strlen(h.root));
    else if (result == FAILED)
        tni_look_report(out, -1, 0, "%s", h.said);
    else
        tni_look_report(out, 0, 0, "absent%s%s", h.said[0] ? "; skipped " : "", h.said);
    tni_release(h.bytes);
}
