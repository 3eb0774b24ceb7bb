#include "dl.h"

#include "base/alloc.h"
#include "env.h"
#include "file.h"
#include "fork.h"
#include "sys.h"
#include "tenon/module/module.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>

static bool read_file_at(void *self, uint64_t offset, void *to, size_t size)
{
    return tni_file_read_at(self, offset, to, size);
}

/* Reads the headers, and with `out` all facts. */
static tn_status inspect(const char *path, tni_elf_facts *out, tn_error *err)
{
    tni_file *file = NULL;
    tni_elf_source source = {.read_at = read_file_at};
    tn_status status = tni_file_open(path, &file, &source.size, err);
    if (status)
        return status;
    source.self = file;
    tni_elf_facts facts;
    status = out ? tni_elf_inspect(&source, &facts, err) : tni_elf_check_headers(&source, err);
    if (status == TN_CORRUPT && tni_file_check(file, path, NULL) != TN_OK)
        status = tni_file_check(file, path, err); /* the read failed: not a format error */
    if (!status && out)
        *out = facts;
    tni_file_close(file);
    return status;
}

tn_status tni_dl_inspect(const char *path, tni_elf_facts *out, tn_error *err)
{
#if defined(__ELF__)
    return inspect(path, out, err);
#else
    (void)path, (void)err, (void)inspect;
    *out = (tni_elf_facts){.has_entry = true, .sanitizers = TN_MODULE_BUILT_WITH};
    return TN_OK;
#endif
}

tn_status tni_dl_check_headers(const char *path, tn_error *err)
{
#if defined(__ELF__)
    return inspect(path, NULL, err);
#else
    (void)path, (void)err;
    return TN_OK;
#endif
}

/* The loader has a single error code; only its message says whether a file was missing. */
static tn_status classify_error(int code, const char *words)
{
    if (code == ENOMEM)
        return TN_OUT_OF_MEMORY;
    if (code == EMFILE || code == ENFILE)
        return TN_BUSY;
    bool absent = !words || strstr(words, "cannot open shared object file");
    return absent ? TN_UNAVAILABLE : TN_INCOMPATIBLE;
}

tn_status tni_dl_open(const char *path_or_name, void **out_handle, tn_error *err)
{
    tni_fork_loading_begin();
    errno = 0;
    void *handle = tni_sys_dlopen(path_or_name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    int code = errno;
    tni_fork_loading_end();
    if (!handle) {
        const char *words = dlerror();
        return tn_fail(err, classify_error(code, words), code, "dlopen", "%s",
                       words ? words : "the loader gave no reason");
    }
    *out_handle = handle;
    return TN_OK;
}

void *tni_dl_symbol(void *handle, const char *name, const char *version)
{
#if defined(__GLIBC__)
    if (version)
        return dlvsym(handle, name, version);
#endif
    return version ? NULL : dlsym(handle, name);
}

char *tni_dl_file(void *handle)
{
#if defined(__linux__)
    struct link_map *map = NULL;
    if (dlinfo(handle, RTLD_DI_LINKMAP, (void *)&map) == 0 && map && map->l_name[0])
        return tni_text_copy(map->l_name);
#else
    (void)handle;
#endif
    return NULL;
}

/* Its address is in the shared object that this file is linked into. */
static const char here;

tn_status tni_dl_own_folder(char **out, tn_error *err)
{
    Dl_info info;
    char *path = NULL;
    if (dladdr(&here, &info) == 0 || !info.dli_fname)
        return tn_fail(err, TN_UNAVAILABLE, 0, "dladdr",
                       "the loader does not report the path of this file");
    tn_status status = tni_path_real(info.dli_fname, &path, err);
    if (status)
        return status;
    char *folder = tni_path_folder(path);
    tni_release(path);
    if (!folder)
        return tni_no_memory(err, "dladdr", "the folder's path");
    *out = folder;
    return TN_OK;
}

/* Length in bytes of the first folders of a list "a:b:c" that fit into `most`, including the ':'
 * after each of them if others follow. */
static size_t fit_folders(const char *list, size_t most)
{
    size_t fits = 0, end = 0;
    while (list[end] && end <= most) {
        end += strcspn(list + end, ":");
        end += list[end] == ':';
        fits = end <= most ? end : fits;
    }
    return fits;
}

void tni_dl_places(char *out, size_t size)
{
    static const char before[] = "LD_LIBRARY_PATH (", dots[] = "...", after[] = "), ",
                      system[] = "the system's library cache and folders";
    const char *path = tni_env_get("LD_LIBRARY_PATH");
    size_t words = sizeof before + sizeof dots + sizeof after + sizeof system;
    char text[512];
    size_t most = size < sizeof text ? size : sizeof text;
    int length = path && most > words ? (int)fit_folders(path, most - words) : 0;
    if (path && path[0])
        snprintf(text, sizeof text, "%s%.*s%s%s%s", before, length, path, path[length] ? dots : "",
                 after, system);
    else
        snprintf(text, sizeof text, "%s", system);
    tn_text_fit(out, size, text);
}
