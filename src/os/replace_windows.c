#include "replace.h"

#include "base/alloc.h"

#include <stdbool.h>
#include <stdio.h>
#include <windows.h>

static tn_status failed(tn_error *err, const char *call, const char *path)
{
    DWORD code = GetLastError();
    return tn_fail(err, code == ERROR_ACCESS_DENIED ? TN_NOT_PERMITTED : TN_IO, (int32_t)code, call,
                   "%s: the system's error %lu", path, (unsigned long)code);
}

static void make_folders(char *path)
{
    for (char *at = path; *at; at++) {
        char separator = *at;
        if ((separator != '/' && separator != '\\') || at == path || at[-1] == ':')
            continue;
        *at = '\0';
        (void)CreateDirectoryA(path, NULL); /* a failure shows up again below */
        *at = separator;
    }
}

static tn_status write_beside(const char *path, const char *beside, const char *text, size_t size,
                              tn_error *err)
{
    FILE *file = fopen(beside, "wb");
    if (!file)
        return failed(err, "open", beside);
    bool whole = fwrite(text, 1, size, file) == size;
    whole = fclose(file) == 0 && whole;
    tn_status status = whole ? TN_OK : failed(err, "write", beside);
    if (!status && !MoveFileExA(beside, path, MOVEFILE_REPLACE_EXISTING))
        status = failed(err, "rename", path);
    if (status)
        (void)DeleteFileA(beside);
    return status;
}

static tn_status replace(const char *path, bool makes_folders, const char *text, size_t size,
                         tn_error *err)
{
    size_t room = strlen(path) + 32;
    char *beside = tni_alloc(room);
    if (!beside)
        return tni_no_memory(err, "replace", path);
    snprintf(beside, room, "%s", path);
    if (makes_folders)
        make_folders(beside);
    snprintf(beside, room, "%s.%lu", path, (unsigned long)GetCurrentProcessId());
    tn_status status = write_beside(path, beside, text, size, err);
    tni_release(beside);
    return status;
}

tn_status tni_file_replace(const char *path, const char *text, size_t size, tn_error *err)
{
    return replace(path, false, text, size, err);
}

tn_status tni_file_replace_private(const char *path, const char *text, size_t size, tn_error *err)
{
    return replace(path, true, text, size, err);
}

struct tni_file_lock {
    HANDLE file;
};

enum { LOCK_TRIES = 500, LOCK_PAUSE_MS = 10 };

/* Opens a file exclusively; it is deleted when closed. Returns INVALID_HANDLE_VALUE if it was not
 * acquired. */
static HANDLE open_alone(const char *path)
{
    HANDLE file = INVALID_HANDLE_VALUE;
    for (int i = 0; i < LOCK_TRIES && file == INVALID_HANDLE_VALUE; i++) {
        if (i > 0)
            Sleep(LOCK_PAUSE_MS);
        file =
            CreateFileA(path, GENERIC_WRITE, 0, NULL, OPEN_ALWAYS, FILE_FLAG_DELETE_ON_CLOSE, NULL);
        if (file == INVALID_HANDLE_VALUE && GetLastError() != ERROR_SHARING_VIOLATION)
            break;
    }
    return file;
}

tn_status tni_file_lock_acquire(const char *path, tni_file_lock **out, tn_error *err)
{
    size_t room = strlen(path) + sizeof ".lock";
    tn_status status = TN_OK;
    tni_file_lock *lock = tni_alloc(sizeof *lock);
    char *beside = tni_alloc(room);
    if (!lock || !beside) {
        status = tni_no_memory(err, "lock", path);
        goto done;
    }
    snprintf(beside, room, "%s.lock", path);
    make_folders(beside);
    lock->file = open_alone(beside);
    if (lock->file == INVALID_HANDLE_VALUE) {
        status =
            GetLastError() == ERROR_SHARING_VIOLATION
                ? tn_fail(err, TN_BUSY, 0, "lock", "%s: another process has held it for %d seconds",
                          beside, LOCK_TRIES * LOCK_PAUSE_MS / 1000)
                : failed(err, "lock", beside);
        goto done;
    }
    *out = lock;
    lock = NULL;
done:
    tni_release(beside);
    tni_release(lock);
    return status;
}

void tni_file_lock_release(tni_file_lock *lock)
{
    if (!lock)
        return;
    (void)CloseHandle(lock->file);
    tni_release(lock);
}
