#define _CRT_RAND_S /* for rand_s: random numbers of the system */
#include "shared.h"

#include "base/alloc.h"

#include <stdbool.h>
#include <stdlib.h>
#include <windows.h>

/* The name disappears with the last handle, so the creator and every opener keep theirs. */
struct tni_shared {
    HANDLE mapping;
    void *memory;
    unsigned char name[TNI_SHARED_NAME];
};

enum { PATH = sizeof "Local\\tenon-" + 2 * (size_t)TNI_SHARED_NAME };

/* "Local": in this user's session. */
static void path_of(const unsigned char *name, char out[PATH])
{
    size_t at = (size_t)snprintf(out, PATH, "Local\\tenon-");
    for (size_t i = 0; i < TNI_SHARED_NAME; i++)
        at += (size_t)snprintf(out + at, PATH - at, "%02x", name[i]);
}

/* Nothing can be left behind: see above. */
void tni_shared_collect(void) {}

static tn_status fail_shared(const char *where, tn_error *err)
{
    DWORD code = GetLastError();
    bool full = code == ERROR_NOT_ENOUGH_MEMORY || code == ERROR_COMMITMENT_LIMIT;
    return tn_fail(err, full ? TN_OUT_OF_MEMORY : TN_UNSUPPORTED, (int32_t)code, where,
                   "the system could not create shared memory (error %lu)", (unsigned long)code);
}

/* Takes ownership of the mapping, also on failure. */
static tn_status map(HANDLE mapping, size_t size, const unsigned char *name, tni_shared **out,
                     tn_error *err)
{
    tn_status status = TN_OK;
    MEMORY_BASIC_INFORMATION facts = {0};
    tni_shared *shared = tni_alloc_zeroed(1, sizeof *shared);
    void *memory = shared ? MapViewOfFile(mapping, FILE_MAP_ALL_ACCESS, 0, 0, 0) : NULL;
    if (!shared)
        status = tni_no_memory(err, "shared memory", "its handle");
    else if (!memory)
        status = fail_shared("MapViewOfFile", err);
    else if (VirtualQuery(memory, &facts, sizeof facts) == 0 || facts.RegionSize < size)
        status = tn_fail(err, TN_CORRUPT, 0, "shared memory",
                         "the shared memory has %llu bytes instead of %llu",
                         (unsigned long long)facts.RegionSize, (unsigned long long)size);
    if (status) {
        if (memory)
            UnmapViewOfFile(memory);
        CloseHandle(mapping);
        tni_release(shared);
        return status;
    }
    *shared = (tni_shared){.mapping = mapping, .memory = memory};
    memcpy(shared->name, name, TNI_SHARED_NAME);
    *out = shared;
    return TN_OK;
}

tn_status tni_shared_create(size_t size, tni_shared **out, tn_error *err)
{
    unsigned char name[TNI_SHARED_NAME];
    char path[PATH];
    for (size_t i = 0; i < sizeof name; i += sizeof(unsigned)) {
        unsigned word = 0;
        if (rand_s(&word) != 0)
            return fail_shared("rand_s", err);
        memcpy(name + i, &word, sizeof word);
    }
    path_of(name, path);
    HANDLE mapping =
        CreateFileMappingA(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE, 0, (DWORD)size, path);
    if (!mapping)
        return fail_shared("CreateFileMapping", err);
    if (GetLastError() == ERROR_ALREADY_EXISTS) {
        CloseHandle(mapping);
        return tn_fail(err, TN_NOT_PERMITTED, ERROR_ALREADY_EXISTS, "CreateFileMapping",
                       "another process already uses the name of the shared memory");
    }
    return map(mapping, size, name, out, err);
}

tn_status tni_shared_open(const unsigned char name[TNI_SHARED_NAME], size_t size, tni_shared **out,
                          tn_error *err)
{
    char path[PATH];
    path_of(name, path);
    HANDLE mapping = OpenFileMappingA(FILE_MAP_ALL_ACCESS, FALSE, path);
    DWORD code = mapping ? 0 : GetLastError();
    if (code == ERROR_FILE_NOT_FOUND)
        return tn_fail(err, TN_NOT_FOUND, (int32_t)code, "OpenFileMapping",
                       "no shared memory has that name: its creator released it");
    if (code == ERROR_ACCESS_DENIED)
        return tn_fail(err, TN_NOT_PERMITTED, (int32_t)code, "OpenFileMapping",
                       "the shared memory belongs to another user");
    if (!mapping)
        return fail_shared("OpenFileMapping", err);
    return map(mapping, size, name, out, err);
}

void tni_shared_release(tni_shared *shared)
{
    if (!shared)
        return;
    UnmapViewOfFile(shared->memory);
    CloseHandle(shared->mapping);
    tni_release(shared);
}

void *tni_shared_memory(const tni_shared *shared)
{
    return shared->memory;
}

const unsigned char *tni_shared_name(const tni_shared *shared)
{
    return shared->name;
}
