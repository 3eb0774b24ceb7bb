#include "file.h"
#include "file_names.h"

#include "base/alloc.h"
#include "base/buffer.h"

#include <windows.h>

static tn_status failed(tn_error *err, const char *call, const char *path)
{
    DWORD code = GetLastError();
    tn_status status = code == ERROR_FILE_NOT_FOUND || code == ERROR_PATH_NOT_FOUND ? TN_NOT_FOUND
                       : code == ERROR_ACCESS_DENIED ? TN_NOT_PERMITTED
                                                     : TN_IO;
    return tn_fail(err, status, (int32_t)code, call, "%s: system error %lu", path, code);
}

static HANDLE open_file(const char *path)
{
    return CreateFileA(path, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL, OPEN_EXISTING,
                       FILE_FLAG_BACKUP_SEMANTICS, NULL);
}

static uint64_t join(DWORD high, DWORD low)
{
    return (uint64_t)high << 32 | low;
}

tn_status tni_file_identify(const char *path, tni_file_id *out, tn_error *err)
{
    BY_HANDLE_FILE_INFORMATION facts;
    HANDLE file = open_file(path);
    if (file == INVALID_HANDLE_VALUE)
        return failed(err, "CreateFile", path);
    BOOL known = GetFileInformationByHandle(file, &facts);
    CloseHandle(file);
    if (!known)
        return failed(err, "GetFileInformationByHandle", path);
    *out = (tni_file_id){
        .device = facts.dwVolumeSerialNumber,
        .inode = join(facts.nFileIndexHigh, facts.nFileIndexLow),
        .size = join(facts.nFileSizeHigh, facts.nFileSizeLow),
        .changed_ns = (int64_t)join(facts.ftLastWriteTime.dwHighDateTime,
                                    facts.ftLastWriteTime.dwLowDateTime) *
                      100,
        .is_folder = (facts.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0,
        .is_regular = (facts.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) == 0,
    };
    return TN_OK;
}

struct tni_file {
    HANDLE handle;
    DWORD code; /* error code of a failed read, or 0 */
};

tn_status tni_file_open(const char *path, tni_file **out, uint64_t *out_size, tn_error *err)
{
    LARGE_INTEGER size;
    tni_file *file = tni_alloc_zeroed(1, sizeof *file);
    if (!file)
        return tni_no_memory(err, "CreateFile", path);
    file->handle = open_file(path);
    if (file->handle == INVALID_HANDLE_VALUE || !GetFileSizeEx(file->handle, &size)) {
        tn_status status = failed(err, "CreateFile", path);
        tni_file_close(file);
        return status;
    }
    *out = file;
    *out_size = (uint64_t)size.QuadPart;
    return TN_OK;
}

bool tni_file_read_at(tni_file *file, uint64_t offset, void *to, size_t size)
{
    char *next = to;
    while (size > 0) {
        DWORD count = 0, wanted = size < (1u << 30) ? (DWORD)size : 1u << 30;
        OVERLAPPED at = {.Offset = (DWORD)offset, .OffsetHigh = (DWORD)(offset >> 32)};
        if (!ReadFile(file->handle, next, wanted, &count, &at))
            file->code = GetLastError() == ERROR_HANDLE_EOF ? 0 : GetLastError();
        if (count == 0)
            return false;
        next += count;
        offset += count;
        size -= count;
    }
    return true;
}

tn_status tni_file_check(const tni_file *file, const char *path, tn_error *err)
{
    if (file->code == 0)
        return TN_OK;
    SetLastError(file->code);
    return failed(err, "ReadFile", path);
}

void tni_file_close(tni_file *file)
{
    if (!file)
        return;
    if (file->handle != INVALID_HANDLE_VALUE)
        CloseHandle(file->handle);
    tni_release(file);
}

tn_status tni_file_read(const char *path, size_t limit, char **out, size_t *out_size, tn_error *err)
{
    tni_file *file = NULL;
    uint64_t size;
    char *text = NULL;
    tn_status status = tni_file_open(path, &file, &size, err);
    if (status)
        return status;
    if (size > limit)
        status =
            tn_fail(err, TN_INVALID_ARGUMENT, 0, "read", "%s: longer than %zu bytes", path, limit);
    else if (!(text = tni_alloc((size_t)size + 1)))
        status = tni_no_memory(err, "read", path);
    else if (!tni_file_read_at(file, 0, text, (size_t)size))
        status = failed(err, "ReadFile", path);
    tni_file_close(file);
    if (status) {
        tni_release(text);
        return status;
    }
    text[size] = '\0';
    *out = text;
    *out_size = (size_t)size;
    return TN_OK;
}

tn_status tni_folder_list(const char *path, const char *prefix, const char *suffix, tni_names **out,
                          tn_error *err)
{
    WIN32_FIND_DATAA entry;
    tni_buffer texts = {0};
    size_t count = 0;
    char *pattern = tni_path_join(path, "*");
    if (!pattern)
        return tni_no_memory(err, "FindFirstFile", path);
    HANDLE search = FindFirstFileA(pattern, &entry);
    tni_release(pattern);
    if (search == INVALID_HANDLE_VALUE)
        return failed(err, "FindFirstFile", path);
    do {
        if (!tni_names_fit(entry.cFileName, prefix, suffix))
            continue;
        tni_buffer_add_part(&texts, entry.cFileName, strlen(entry.cFileName) + 1);
        count++;
    } while (FindNextFileA(search, &entry));
    FindClose(search);
    tni_names *list = texts.failed ? NULL : tni_names_pack(&texts, count);
    tni_buffer_release(&texts);
    if (!list)
        return tni_no_memory(err, "FindFirstFile", path);
    *out = list;
    return TN_OK;
}

tn_status tni_path_absolute(const char *path, char **out, tn_error *err)
{
    char full[MAX_PATH];
    DWORD length = GetFullPathNameA(path, sizeof full, full, NULL);
    if (length == 0 || length >= sizeof full)
        return failed(err, "GetFullPathName", path);
    char *copy = tni_text_copy(full);
    if (!copy)
        return tni_no_memory(err, "GetFullPathName", path);
    *out = copy;
    return TN_OK;
}

tn_status tni_path_real(const char *path, char **out, tn_error *err)
{
    char real[MAX_PATH];
    DWORD length = GetFullPathNameA(path, sizeof real, real, NULL);
    if (length == 0 || length >= sizeof real || GetFileAttributesA(real) == INVALID_FILE_ATTRIBUTES)
        return failed(err, "GetFullPathName", path);
    char *copy = tni_text_copy(real);
    if (!copy)
        return tni_no_memory(err, "GetFullPathName", path);
    *out = copy;
    return TN_OK;
}
