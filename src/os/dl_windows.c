#include "dl.h"

#include "base/alloc.h"
#include "file.h"
#include "tenon/module/module.h"

#include <windows.h>

tn_status tni_dl_inspect(const char *path, tni_elf_facts *out, tn_error *err)
{
    (void)path, (void)err;
    *out = (tni_elf_facts){.has_entry = true, .sanitizers = TN_MODULE_BUILT_WITH};
    return TN_OK;
}

tn_status tni_dl_check_headers(const char *path, tn_error *err)
{
    (void)path, (void)err;
    return TN_OK;
}

tn_status tni_dl_open(const char *path_or_name, void **out_handle, tn_error *err)
{
    HMODULE handle =
        LoadLibraryExA(path_or_name, NULL,
                       tni_path_is_absolute(path_or_name) ? LOAD_WITH_ALTERED_SEARCH_PATH
                                                          : LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
    if (!handle)
        return tn_fail(err, TN_UNAVAILABLE, (int32_t)GetLastError(), "LoadLibrary",
                       "%s: system error %lu", path_or_name, GetLastError());
    *out_handle = handle;
    return TN_OK;
}

void *tni_dl_symbol(void *handle, const char *name, const char *version)
{
    union {
        FARPROC function;
        void *address;
    } symbol = {.function = GetProcAddress(handle, name)};
    return version ? NULL : symbol.address;
}

static char *module_file(HMODULE module)
{
    char path[MAX_PATH];
    DWORD length = GetModuleFileNameA(module, path, sizeof path);
    return length > 0 && length < sizeof path ? tni_text_copy(path) : NULL;
}

char *tni_dl_file(void *handle)
{
    return module_file(handle);
}

static const char here;

tn_status tni_dl_own_folder(char **out, tn_error *err)
{
    HMODULE module = NULL;
    if (!GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS |
                                GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                            &here, &module))
        return tn_fail(err, TN_UNAVAILABLE, (int32_t)GetLastError(), "GetModuleHandleEx",
                       "the loader does not report the path of this file");
    char *path = module_file(module);
    char *folder = path ? tni_path_folder(path) : NULL;
    tni_release(path);
    if (!folder)
        return tni_no_memory(err, "GetModuleHandleEx", "the folder's path");
    *out = folder;
    return TN_OK;
}

void tni_dl_places(char *out, size_t size)
{
    tn_text_fit(out, size, "the program's folder and the system's folders");
}
