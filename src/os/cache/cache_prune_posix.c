#include "base/alloc.h"
#include "cache_folder.h"
#include "os/sys.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

enum { STALE_SECONDS = 3600 };

/* Depth of a folder: entries are in folders of depth SHELF. */
enum { ROOT, KIND, SHELF };

/* `kind` and `hex` are the names of the current folders of the walk. */
typedef struct walk {
    const char *path;
    tni_cache_files *list;
    int64_t now;
    char kind[TNI_NAME_MAX + 1];
    char hex[TNI_SHA256_HEX];
    tn_error *err;
} walk;

static bool is_hex(const char *name, size_t length)
{
    return strlen(name) == length && strspn(name, "0123456789abcdef") == length;
}

/* Accepted names fit into walk.kind and walk.hex. */
static bool is_ours(const char *name, int depth)
{
    if (depth == ROOT)
        return tni_name_is_legal(name, "", TNI_NAME_MAX);
    return is_hex(name, depth == KIND ? 2 : TNI_SHA256_HEX - 1 - 2);
}

static void drop_stale(const walk *w, int folder, const char *name)
{
    struct stat facts;
    if (tni_sys_fstatat(folder, name, &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
        w->now - (int64_t)facts.st_mtim.tv_sec > STALE_SECONDS)
        (void)tni_sys_unlinkat(folder, name, 0);
}

static tn_status add_file(walk *w, int folder, const char *name)
{
    tni_cache_files *list = w->list;
    struct stat facts;
    if (tni_sys_fstatat(folder, name, &facts, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? TN_OK : tni_cache_io(w->err, "cache count", w->path);
    if (!tni_array_reserve((void **)&list->files, &list->capacity, list->count, list->count + 1,
                           sizeof *list->files))
        return tni_no_memory(w->err, "cache count", "a list of entries");
    tni_cache_file *file = &list->files[list->count++];
    memcpy(file->kind, w->kind, sizeof file->kind);
    memcpy(file->hex, w->hex, 2);
    memcpy(file->hex + 2, name, sizeof file->hex - 2);
    file->used_ns = (int64_t)facts.st_mtim.tv_sec * 1000000000 + facts.st_mtim.tv_nsec;
    file->size = (uint64_t)facts.st_size;
    list->bytes += file->size;
    return TN_OK;
}

static tn_status walk_folder(walk *w, int folder, int depth);

static tn_status visit(walk *w, int folder, const char *name, int depth)
{
    if (strncmp(name, TNI_CACHE_TEMPORARY, strlen(TNI_CACHE_TEMPORARY)) == 0)
        drop_stale(w, folder, name);
    if (!is_ours(name, depth))
        return TN_OK;
    if (depth == SHELF)
        return add_file(w, folder, name);
    memcpy(depth == ROOT ? w->kind : w->hex, name, strlen(name) + 1);
    int inner = tni_sys_openat(folder, name, TNI_CACHE_FOLDER_FLAGS, 0);
    if (inner >= 0)
        return walk_folder(w, inner, depth + 1);
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)
        return TN_OK;
    return tni_cache_io(w->err, "cache count", w->path);
}

/* Closes `folder`. */
static tn_status walk_folder(walk *w, int folder, int depth)
{
    tn_status status = TN_OK;
    const struct dirent *entry = NULL;
    DIR *listing = tni_sys_fdopendir(folder);
    if (!listing) {
        tni_cache_close(folder);
        return tni_cache_io(w->err, "cache count", w->path);
    }
    do {
        entry = tni_sys_readdir(listing);
        if (entry)
            status = visit(w, folder, entry->d_name, depth);
        else if (errno != 0)
            status = tni_cache_io(w->err, "cache count", w->path);
    } while (entry && !status);
    closedir(listing);
    return status;
}

tn_status tni_cache_files_list(int root, const char *path, tni_cache_files *out, tn_error *err)
{
    walk w = {.path = path, .list = out, .now = (int64_t)time(NULL), .err = err};
    int folder = tni_sys_openat(root, ".", TNI_CACHE_FOLDER_FLAGS, 0);
    return folder < 0 ? tni_cache_io(err, "cache count", path) : walk_folder(&w, folder, ROOT);
}

/* Oldest first; entries of equal age are ordered by hex, independent of the order of the directory
 * listing. */
static int compare(const void *a, const void *b)
{
    const tni_cache_file *x = a, *y = b;
    if (x->used_ns != y->used_ns)
        return x->used_ns < y->used_ns ? -1 : 1;
    return strcmp(x->hex, y->hex);
}

tn_status tni_cache_files_prune(int root, const char *path, tni_cache_files *files, uint64_t limit,
                                tn_error *err)
{
    const tni_cache_file *stays = NULL;
    int code = 0;
    if (files->bytes > limit)
        qsort(files->files, files->count, sizeof *files->files, compare);
    for (size_t i = 0; i < files->count && files->bytes > limit; i++) {
        const tni_cache_file *file = &files->files[i];
        if (tni_cache_unlink(root, file->kind, file->hex)) {
            files->bytes -= file->size;
        } else {
            code = errno;
            stays = file;
        }
    }
    if (files->bytes <= limit || !stays)
        return TN_OK;
    errno = code;
    return tni_cache_entry_io(err, "cache prune", path, stays->kind, stays->hex);
}
