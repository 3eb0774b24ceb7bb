#include "base/alloc.h"
#include "base/checked.h"
#include "base/log.h"
#include "cache_folder.h"
#include "cache_store.h"
#include "os/sys.h"
#include "os/thread.h"

#include <errno.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

/* Needs no lock: every entry is one file that never changes after it is renamed to its final name.
 * `estimate` is the number of bytes at the last count plus the bytes put through this store since;
 * entries of other processes are included from the next count on. */
typedef struct folder {
    tni_cache_store base;
    int root;
    uint64_t limit;
    _Atomic uint64_t estimate;
    char path[];
} folder;

static const uint64_t unknown = UINT64_MAX / 2;

/* Header of an entry's file: "TENON-C1", the data's size (64 bits, little-endian), 8 zero bytes,
 * the key's SHA-256, the data's SHA-256. The data follows it. */
static void make_header(unsigned char header[TNI_CACHE_HEADER], const tni_cache_id *id,
                        const void *data, size_t size)
{
    memset(header, 0, TNI_CACHE_HEADER);
    memcpy(header, "TENON-C1", 8);
    for (int i = 0; i < 8; i++)
        header[8 + i] = (unsigned char)((uint64_t)size >> (8 * i));
    memcpy(header + 24, id->digest, TNI_SHA256_SIZE);
    tni_sha256_of(data, size, header + 24 + TNI_SHA256_SIZE);
}

/* Returns the number of bytes read, fewer than `size` only at the end of the file; -1 with
 * errno. */
static ssize_t read_all(int file, void *to, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t count = tni_sys_read(file, (char *)to + done, size - done);
        if (count < 0)
            return -1;
        if (count == 0)
            break;
        done += (size_t)count;
    }
    return (ssize_t)done;
}

enum { TEMPORARY_NAME = 80 };

/* Creates a file for writing under a name that no other writer uses; -1 with errno. Skips names
 * left by a crashed process that had the same process id. */
static int create_temporary(int shelf, char name[TEMPORARY_NAME])
{
    static _Atomic unsigned counter;
    int file = -1;
    for (int tries = 0; file < 0 && tries < 16; tries++) {
        snprintf(name, TEMPORARY_NAME, TNI_CACHE_TEMPORARY "%lld-%llu-%u", (long long)getpid(),
                 (unsigned long long)tni_thread_id(), atomic_fetch_add(&counter, 1));
        file = tni_sys_openat(shelf, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
        if (file < 0 && errno != EEXIST)
            break;
    }
    return file;
}

/* Writes to a temporary file and renames it, so that a reader sees the whole entry or nothing.
 * Returns 0, or -1 with errno and no file left behind. */
static int write_entry(int shelf, const tni_cache_id *id, const void *data, size_t size)
{
    unsigned char header[TNI_CACHE_HEADER];
    char name[TEMPORARY_NAME];
    int file = create_temporary(shelf, name);
    if (file < 0)
        return -1;
    make_header(header, id, data, size);
    int result = tni_sys_write_all(file, header, sizeof header);
    if (result == 0)
        result = tni_sys_write_all(file, data, size);
    if (result != 0)
        tni_cache_close(file);
    else
        result = tni_sys_close(file);
    if (result == 0)
        result = tni_sys_renameat(shelf, name, shelf, id->hex + 2);
    if (result != 0) {
        int saved = errno;
        (void)tni_sys_unlinkat(shelf, name, 0);
        errno = saved;
    }
    return result;
}

/* Counts the entries only if the estimate exceeds the limit, and prunes if there is no room. */
static tn_status make_room(folder *f, uint64_t needed, tn_error *err)
{
    if (atomic_fetch_add(&f->estimate, needed) + needed <= f->limit)
        return TN_OK;
    tni_cache_files files = {0};
    tn_status status = tni_cache_files_list(f->root, f->path, &files, err);
    if (!status && files.bytes > f->limit - needed)
        status = tni_cache_files_prune(f->root, f->path, &files, tni_cache_target(f->limit, needed),
                                       err);
    atomic_store(&f->estimate, status ? unknown : files.bytes + needed);
    tni_release(files.files);
    return status;
}

static tn_status put(tni_cache_store *store, const tni_cache_id *id, const void *data, size_t size,
                     tn_error *err)
{
    folder *f = (folder *)store;
    tn_status status = make_room(f, (uint64_t)size + TNI_CACHE_HEADER, err);
    if (status)
        return status;
    int shelf = tni_cache_shelf_open(f->root, id->kind, id->hex, true);
    if (shelf < 0)
        return tni_cache_io(err, "cache put", f->path);
    int result = write_entry(shelf, id, data, size);
    tni_cache_close(shelf);
    return result == 0 ? TN_OK : tni_cache_entry_io(err, "cache put", f->path, id->kind, id->hex);
}

/* Reads header and data and returns the data; fails with TN_CORRUPT if they are not what was
 * put. */
static tn_status read_entry(const folder *f, int file, const tni_cache_id *id, size_t size,
                            void **out, tn_error *err)
{
    unsigned char found[TNI_CACHE_HEADER] = {0}, expected[TNI_CACHE_HEADER];
    void *data = tni_alloc(size);
    if (!data)
        return tni_no_memory(err, "cache get", "an entry");
    tn_status status = TN_CORRUPT;
    ssize_t count = read_all(file, found, sizeof found);
    if (count >= 0)
        count = read_all(file, data, size);
    if (count < 0)
        status = tni_cache_io(err, "cache get", f->path);
    else if ((size_t)count == size) {
        make_header(expected, id, data, size);
        status = memcmp(found, expected, sizeof found) == 0 ? TN_OK : TN_CORRUPT;
    }
    if (status)
        tni_release(data);
    else
        *out = data;
    return status;
}

/* The file's modification time records the last use, to the minute, so that a frequently used entry
 * is not written to at every use. */
static void refresh(int file, const struct stat *facts)
{
    int64_t age = (int64_t)time(NULL) - (int64_t)facts->st_mtim.tv_sec;
    if (age < 0 || age > 60)
        (void)tni_sys_futimens(file);
}

static tn_status load(const folder *f, int file, const tni_cache_id *id, void **out,
                      size_t *out_size, tn_error *err)
{
    struct stat facts;
    if (tni_sys_fstat(file, &facts) != 0)
        return tni_cache_io(err, "cache get", f->path);
    if (!S_ISREG(facts.st_mode) || facts.st_size < TNI_CACHE_HEADER ||
        (uint64_t)facts.st_size > PTRDIFF_MAX)
        return TN_CORRUPT;
    size_t size = (size_t)facts.st_size - TNI_CACHE_HEADER;
    if ((uint64_t)size > f->limit) /* larger than any put allows */
        return TN_CORRUPT;
    tn_status status = read_entry(f, file, id, size, out, err);
    if (!status) {
        *out_size = size;
        refresh(file, &facts);
    }
    return status;
}

/* Fails with TN_CORRUPT if anything other than a valid entry has its name. */
static tn_status get_from(const folder *f, int shelf, const tni_cache_id *id, void **out,
                          size_t *out_size, tn_error *err)
{
    int file = tni_sys_openat(shelf, id->hex + 2, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (file < 0 && errno == ENOENT)
        return tni_cache_not_found(id, err);
    if (file < 0 && errno == ELOOP)
        return TN_CORRUPT;
    if (file < 0)
        return tni_cache_io(err, "cache get", f->path);
    tn_status status = load(f, file, id, out, out_size, err);
    tni_cache_close(file);
    return status;
}

/* Removes an invalid entry. Logs the removal, or why it failed. */
static void drop_damaged(const folder *f, int shelf, const tni_cache_id *id)
{
    tn_error why;
    if (tni_sys_unlinkat(shelf, id->hex + 2, 0) == 0 || errno == ENOENT) {
        tni_log(TN_LOG_WARNING, "cache: removed a damaged %s, %.16s..., from \"%s\"", id->kind,
                id->hex, f->path);
        return;
    }
    errno = tni_cache_is_folder(shelf, id->hex + 2) ? EISDIR : errno;
    (void)tni_cache_entry_io(&why, "cache get", f->path, id->kind, id->hex);
    tni_log(TN_LOG_WARNING, "cache: a damaged %s stays: %s", id->kind, why.message);
}

static tn_status get(tni_cache_store *store, const tni_cache_id *id, void **out, size_t *out_size,
                     tn_error *err)
{
    const folder *f = (const folder *)store;
    int shelf = tni_cache_shelf_open(f->root, id->kind, id->hex, false);
    if (shelf < 0 && errno == ENOENT)
        return tni_cache_not_found(id, err);
    if (shelf < 0)
        return tni_cache_io(err, "cache get", f->path);
    tn_status status = get_from(f, shelf, id, out, out_size, err);
    if (status == TN_CORRUPT) {
        drop_damaged(f, shelf, id);
        status = tni_cache_not_found(id, err);
    }
    tni_cache_close(shelf);
    return status;
}

static tn_status remove_one(tni_cache_store *store, const tni_cache_id *id, tn_error *err)
{
    const folder *f = (const folder *)store;
    if (tni_cache_unlink(f->root, id->kind, id->hex))
        return TN_OK;
    return tni_cache_entry_io(err, "cache remove", f->path, id->kind, id->hex);
}

static tn_status prune(tni_cache_store *store, uint64_t limit, tn_error *err)
{
    folder *f = (folder *)store;
    tni_cache_files files = {0};
    tn_status status = tni_cache_files_list(f->root, f->path, &files, err);
    if (!status)
        status = tni_cache_files_prune(f->root, f->path, &files, limit, err);
    if (!status)
        atomic_store(&f->estimate, files.bytes);
    tni_release(files.files);
    return status;
}

static tn_status visit_all(tni_cache_store *store, tni_cache_visit *visit, void *to, tn_error *err)
{
    const folder *f = (const folder *)store;
    tni_cache_files files = {0};
    tn_status status = tni_cache_files_list(f->root, f->path, &files, err);
    for (size_t i = 0; !status && i < files.count; i++)
        visit(to, files.files[i].kind, files.files[i].size);
    tni_release(files.files);
    return status;
}

static void release(tni_cache_store *store)
{
    tni_cache_close(((folder *)store)->root);
    tni_release(store);
}

tni_cache_store *tni_cache_folder_open(const char *path, uint64_t limit, tni_buffer *out_reason)
{
    static const tni_cache_calls calls = {release, put, get, remove_one, prune, visit_all};
    size_t length = strlen(path), size;
    folder *f = tni_add_size(sizeof *f + 1, length, &size) ? tni_alloc(size) : NULL;
    if (!f)
        return NULL;
    memcpy(f->path, path, length + 1);
    while (length > 1 && f->path[length - 1] == '/') /* O_NOFOLLOW follows "link/" */
        f->path[--length] = '\0';
    f->root = tni_cache_root_open(f->path, out_reason);
    if (f->root < 0) {
        tni_release(f);
        return NULL;
    }
    f->base.calls = &calls;
    f->limit = limit;
    atomic_init(&f->estimate, unknown);
    return &f->base;
}
