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

/* Those that the loaders of the usual distributions have built in. */
static const char *const own_folders[] = {
#if defined(MULTIARCH)
    "/lib/" MULTIARCH, "/usr/lib/" MULTIARCH,
#endif
    "/lib64",          "/usr/lib64",          "/lib", "/usr/lib",
};

enum { LONGEST_NAME = 255, LARGEST_CACHE = 16 << 20 };

/* What became of a place, as the loader goes on or not: past what is absent, may not be read or is
 * of another machine to the next, but not past what is no whole library. */
typedef enum outcome { NEXT, FOUND, SPOILT, FAILED } outcome;

typedef struct hunt {
    const char *root;
    const char *folders; /* those to begin with, or NULL */
    tni_span name;
    bool has_cache; /* it was read, be it in vain */
    char *bytes;
    tni_loader_cache cache;
    char path[TNI_LOOK_PATH]; /* of the last file, root included */
    char said[512];           /* of the first that was passed over, or of the failure */
} hunt;

bool tni_library_names_check(tni_span names)
{
    tni_span name;
    while (tni_span_take(&names, '|', &name)) {
        if (name.length == 0 || name.length > LONGEST_NAME)
            return false;
    }
    return true;
}

/* What is to be made of a file that is not what it should be. */
static outcome judge(hunt *h, const tn_error *err)
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

/* A device is never opened, whatever its name. */
static outcome try_file(hunt *h)
{
    tni_file_id file;
    tni_elf_facts facts;
    tn_error err;
    tn_status status = tni_file_identify(h->path, &file, &err);
    if (!status && !file.is_regular)
        status = tn_fail(&err, TN_CORRUPT, 0, "look", "not a regular file");
    if (!status)
        status = tni_dl_inspect(h->path, &facts, &err);
    return status ? judge(h, &err) : FOUND;
}

/* Below another root nothing is relative: there is no current folder. */
static outcome try_folder(hunt *h, const char *folder, size_t length)
{
    bool relative = length ? folder[0] != '/' : h->name.text[0] != '/';
    if ((relative && h->root[0]) ||
        !tni_look_path(h->path, "%s%.*s%s%.*s", h->root, (int)length, folder, length ? "/" : "",
                       (int)h->name.length, h->name.text))
        return NEXT;
    return try_file(h);
}

/* An empty one is the current folder, as it is for the loader. */
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

/* h->path is the cache's. */
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
        status = tn_fail(err, TN_CORRUPT, 0, "look", "cut short while it was read");
    tni_file_close(file);
    return status;
}

/* Without a cache, or with one that makes no sense, the loader goes on, and so does this. */
static outcome try_cache(hunt *h)
{
    tn_error err;
    if (!h->has_cache) {
        h->has_cache = true;
        if (tni_look_path(h->path, "%s/etc/ld.so.cache", h->root) && read_cache(h, &err) &&
            judge(h, &err) == FAILED)
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
        tni_look_say(out, -1, 0, "\"%.80s\" has an empty name, or one longer than %d bytes", files,
                     LONGEST_NAME);
        return;
    }
    while (result != FOUND && result != FAILED && tni_span_take(&names, '|', &h.name))
        result = try_name(&h);
    if (result == FOUND)
        tni_look_say(out, 1, 1, "%s", h.path + strlen(h.root));
    else if (result == FAILED)
        tni_look_say(out, -1, 0, "%s", h.said);
    else
        tni_look_say(out, 0, 0, "absent%s%s", h.said[0] ? "; passed over " : "", h.said);
    tni_release(h.bytes);
}
