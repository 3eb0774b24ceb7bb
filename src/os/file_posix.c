#include "file.h"
#include "file_names.h"

#include "base/alloc.h"
#include "base/buffer.h"
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

static tn_status failed(tn_error *err, const char *call, const char *path)
{
    int code = errno;
    tn_status status = code == ENOENT || code == ENOTDIR                    ? TN_NOT_FOUND
                       : code == EACCES || code == EPERM                    ? TN_NOT_PERMITTED
                       : code == ENOMEM                                     ? TN_OUT_OF_MEMORY
                       : code == EMFILE || code == ENFILE || code == EAGAIN ? TN_BUSY
                                                                            : TN_IO;
    char text[128];
    return tn_fail(err, status, code, call, "%s: %s", path, strerror_r(code, text, sizeof text));
}

tn_status tni_file_identify(const char *path, tni_file_id *out, tn_error *err)
{
    struct stat facts;
    if (tni_sys_stat(path, &facts) != 0)
        return failed(err, "stat", path);
    *out = (tni_file_id){
        .device = (uint64_t)facts.st_dev,
        .inode = (uint64_t)facts.st_ino,
        .size = (uint64_t)facts.st_size,
        .changed_ns = (int64_t)facts.st_mtim.tv_sec * 1000000000 + facts.st_mtim.tv_nsec,
        .touched_ns = (int64_t)facts.st_ctim.tv_sec * 1000000000 + facts.st_ctim.tv_nsec,
        .is_folder = S_ISDIR(facts.st_mode),
        .is_regular = S_ISREG(facts.st_mode),
        .anyone_writes = (facts.st_mode & S_IWOTH) != 0,
    };
    return TN_OK;
}

/* Reads to the end of the file, because files of /proc and /sys do not report their size. */
static tn_status read_all(int file, const char *path, size_t limit, tni_buffer *to, tn_error *err)
{
    char piece[2048];
    for (;;) {
        ssize_t count = tni_sys_read(file, piece, sizeof piece);
        if (count < 0)
            return failed(err, "read", path);
        if (count == 0)
            return TN_OK;
        if ((size_t)count > limit - to->length)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, "read", "%s: longer than %zu bytes", path,
                           limit);
        tni_buffer_add_part(to, piece, (size_t)count);
        if (to->failed)
            return tni_no_memory(err, "read", path);
    }
}

/* Rejects pipes, sockets and devices: reading them may block forever. */
static tn_status check_kind(int file, const char *path, tn_error *err)
{
    struct stat facts;
    if (tni_sys_fstat(file, &facts) != 0)
        return failed(err, "fstat", path);
    return S_ISREG(facts.st_mode) ? TN_OK
                                  : tn_fail(err, TN_IO, 0, "open", "%s: not a regular file", path);
}

tn_status tni_file_read(const char *path, size_t limit, char **out, size_t *out_size, tn_error *err)
{
    tni_buffer text = {0};
    int file = tni_sys_open(path, O_RDONLY | O_NONBLOCK, 0);
    if (file < 0)
        return failed(err, "open", path);
    tn_status status = check_kind(file, path, err);
    if (!status)
        status = read_all(file, path, limit, &text, err);
    tni_sys_close(file);
    size_t size = text.length;
    char *taken = status ? NULL : tni_buffer_detach(&text);
    if (!status && !taken)
        status = tni_no_memory(err, "read", path);
    tni_buffer_release(&text);
    if (status)
        return status;
    *out = taken;
    *out_size = size;
    return TN_OK;
}

struct tni_file {
    int descriptor;
    int code; /* errno of a failed read, or 0 */
};

tn_status tni_file_open(const char *path, tni_file **out, uint64_t *out_size, tn_error *err)
{
    struct stat facts;
    tn_status status = TN_OK;
    tni_file *file = tni_alloc_zeroed(1, sizeof *file);
    if (!file)
        return tni_no_memory(err, "open", path);
    /* Without O_NONBLOCK, opening a pipe would block forever. */
    file->descriptor = tni_sys_open(path, O_RDONLY | O_NONBLOCK, 0);
    if (file->descriptor < 0)
        status = failed(err, "open", path);
    else if (tni_sys_fstat(file->descriptor, &facts) != 0)
        status = failed(err, "fstat", path);
    else if (!S_ISREG(facts.st_mode))
        status = tn_fail(err, TN_CORRUPT, 0, "open", "%s: not a regular file", path);
    if (status) {
        tni_file_close(file);
        return status;
    }
    *out = file;
    *out_size = (uint64_t)facts.st_size;
    return TN_OK;
}

bool tni_file_read_at(tni_file *file, uint64_t offset, void *to, size_t size)
{
    char *next = to;
    while (size > 0) {
        if (offset > INT64_MAX)
            return false;
        ssize_t count = tni_sys_pread(file->descriptor, next, size, (off_t)offset);
        if (count < 0)
            file->code = errno;
        if (count <= 0)
            return false;
        next += count;
        offset += (uint64_t)count;
        size -= (size_t)count;
    }
    return true;
}

tn_status tni_file_check(const tni_file *file, const char *path, tn_error *err)
{
    if (file->code == 0)
        return TN_OK;
    errno = file->code;
    return failed(err, "read", path);
}

void tni_file_close(tni_file *file)
{
    if (!file)
        return;
    if (file->descriptor >= 0)
        tni_sys_close(file->descriptor);
    tni_release(file);
}

/* Appends every matching name with its terminator to `to`. */
static tn_status collect(DIR *folder, const char *path, const char *prefix, const char *suffix,
                         tni_buffer *to, size_t *out_count, tn_error *err)
{
    size_t count = 0;
    for (;;) {
        struct dirent *entry = tni_sys_readdir(folder);
        if (!entry && errno)
            return failed(err, "readdir", path);
        if (!entry)
            break;
        if (!tni_names_fit(entry->d_name, prefix, suffix))
            continue;
        tni_buffer_add_part(to, entry->d_name, strlen(entry->d_name) + 1);
        count++;
    }
    if (to->failed)
        return tni_no_memory(err, "readdir", path);
    *out_count = count;
    return TN_OK;
}

tn_status tni_folder_list(const char *path, const char *prefix, const char *suffix, tni_names **out,
                          tn_error *err)
{
    tni_buffer texts = {0};
    size_t count = 0;
    DIR *folder = tni_sys_opendir(path);
    if (!folder)
        return failed(err, "opendir", path);
    tn_status status = collect(folder, path, prefix, suffix, &texts, &count, err);
    closedir(folder);
    tni_names *list = status ? NULL : tni_names_pack(&texts, count);
    if (!status && !list)
        status = tni_no_memory(err, "readdir", path);
    tni_buffer_release(&texts);
    if (!status)
        *out = list;
    return status;
}

tn_status tni_path_absolute(const char *path, char **out, tn_error *err)
{
    char current[PATH_MAX];
    char *full = NULL;
    if (tni_path_is_absolute(path))
        full = tni_text_copy(path);
    else if (!tni_sys_getcwd(current, sizeof current))
        return failed(err, "getcwd", path);
    else
        full = tni_path_join(current, path);
    if (!full)
        return tni_no_memory(err, "getcwd", path);
    *out = full;
    return TN_OK;
}

tn_status tni_path_real(const char *path, char **out, tn_error *err)
{
    char real[PATH_MAX];
    if (!tni_sys_realpath(path, real))
        return failed(err, "realpath", path);
    char *copy = tni_text_copy(real);
    if (!copy)
        return tni_no_memory(err, "realpath", path);
    *out = copy;
    return TN_OK;
}
