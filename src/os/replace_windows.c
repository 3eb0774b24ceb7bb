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
        (void)CreateDirectoryA(path, NULL); /* what fails here fails again below */
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

tn_status tni_file_replace(const char *path, const char *text, size_t size, tn_error *err)
{
    size_t room = strlen(path) + 32;
    char *beside = tni_alloc(room);
    if (!beside)
        return tni_no_memory(err, "replace", path);
    snprintf(beside, room, "%s", path);
    make_folders(beside);
    snprintf(beside, room, "%s.%lu", path, (unsigned long)GetCurrentProcessId());
    tn_status status = write_beside(path, beside, text, size, err);
    tni_release(beside);
    return status;
}
