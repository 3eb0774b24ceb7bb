/* The code shared by the rows of vendors' libraries, and the smallest row. Vendors' functions are
 * declared by the module itself, here and in the libraries' folders; each declaration names the
 * part of the vendor's header it replaces. */
#include "cpu_module.h"
#include "tenon/module/library.h"

#include <stdbool.h>
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

tn_status tni_cpu_module_bind(const tn_host *host, const tn_library_row *row,
                              const tn_symbol *symbols, size_t count, size_t size, void **out_self,
                              tn_error *err)
{
    void *table = host->alloc(host->self, size, sizeof(void *));
    if (!table)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "cpu: open", "no memory for %s's functions",
                       row->name);
    memset(table, 0, size);
    tn_status status = host->library_bind(host->self, row->files, symbols, count, table, err);
    if (status)
        host->release(host->self, table);
    else
        *out_self = table;
    return status;
}

int64_t tni_cpu_module_version_number(int64_t major, int64_t minor, int64_t patch)
{
    bool fits =
        major >= 0 && major < 100000 && minor >= 0 && minor < 100 && patch >= 0 && patch < 100;
    return fits ? major * 10000 + minor * 100 + patch : -1;
}

int64_t tni_cpu_module_version_parse(const char *text)
{
    int64_t parts[3] = {-1, -1, 0};
    for (size_t i = 0; i < 3 && *text >= '0' && *text <= '9'; i++) {
        char *end;
        parts[i] = strtoll(text, &end, 10);
        text = *end == '.' ? end + 1 : "";
    }
    return tni_cpu_module_version_number(parts[0], parts[1], parts[2]);
}

/* hwloc: hwloc.h. */
typedef struct hwloc_functions {
    unsigned (*get_api_version)(void); /* 0x00020900 for 2.9.0 */
} hwloc_functions;

static tn_status hwloc_open(const tn_host *host, void **out_self, tn_error *err)
{
    static const tn_symbol symbols[] = {
        {"hwloc_get_api_version", offsetof(hwloc_functions, get_api_version)}};
    return tni_cpu_module_bind(host, &tni_cpu_module_hwloc, symbols, COUNT(symbols),
                               sizeof(hwloc_functions), out_self, err);
}

static tn_status hwloc_version(void *self, int64_t *out_number, char *out_text, size_t size,
                               tn_error *err)
{
    const hwloc_functions *hwloc = self;
    unsigned version = hwloc->get_api_version();
    (void)err;
    *out_number = version;
    snprintf(out_text, size, "interface %u.%u.%u", version >> 16, version >> 8 & 255,
             version & 255);
    return TN_OK;
}

const tn_library_row tni_cpu_module_hwloc = {
    .struct_size = sizeof tni_cpu_module_hwloc,
    .name = "hwloc",
    .platform = "cpu",
    .files = TNI_CPU_HWLOC_FILES,
    .remedy = "install libhwloc15 (Debian), hwloc-libs (Fedora) or hwloc (Arch, Homebrew)",
    .open = hwloc_open,
    .version = hwloc_version,
};
