/* Vendors' libraries for the processor: opened when they are needed, asked for their version, told to
 * talk. Declarations are this file's own; each names what of the vendor's header it stands for. */
#include "cpu.h"
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

/* MKL: mkl_service.h, mkl_types.h. */
typedef struct mkl_version_parts { /* MKLVersion */
    int major, minor, update;
    char *product_status, *build, *processor, *platform;
} mkl_version_parts;

typedef struct mkl_functions {
    void (*get_version)(mkl_version_parts *out);
    int (*verbose)(int enable); /* the mode before; -1 when it refuses */
} mkl_functions;

/* Its run-time library ends the process at the first call for which it finds no OpenMP run-time: unless
 * the user chose other threads, Intel's must be there. */
static tn_status mkl_check_threads(const tn_host *host, tn_error *err)
{
    static const char files[] = TNI_CPU_FILES("libiomp5md.dll", "libiomp5.dylib", "libiomp5.so");
    const char *layer = getenv("MKL_THREADING_LAYER");
    tn_error why = {0};
    if (layer && layer[0] && strcmp(layer, "INTEL") != 0 && strcmp(layer, "intel") != 0)
        return TN_OK;
    tn_status status = host->library_bind(host->self, files, NULL, 0, NULL, &why);
    if (!status)
        return TN_OK;
    return tn_fail(err, status, why.native_code, "cpu: mkl",
                   "MKL would end the process, as it lacks %s: %.230s; MKL_THREADING_LAYER=GNU or "
                   "SEQUENTIAL does without",
                   files, why.message);
}

static tn_status mkl_open(const tn_host *host, void **out_self, tn_error *err)
{
    static const tn_symbol symbols[] = {{"MKL_Get_Version", offsetof(mkl_functions, get_version)},
                                        {"MKL_Verbose", offsetof(mkl_functions, verbose)}};
    void *self = NULL;
    tn_status status = tni_cpu_module_bind(host, &tni_cpu_module_mkl, symbols, COUNT(symbols),
                                           sizeof(mkl_functions), &self, err);
    if (status)
        return status;
    status = mkl_check_threads(host, err);
    if (status)
        host->release(host->self, self);
    else
        *out_self = self;
    return status;
}

/* Numbered as INTEL_MKL_VERSION. */
static tn_status mkl_version(void *self, int64_t *out_number, char *out_text, size_t size,
                             tn_error *err)
{
    const mkl_functions *mkl = self;
    mkl_version_parts parts = {0};
    (void)err;
    mkl->get_version(&parts);
    *out_number = tni_cpu_module_version_number(parts.major, parts.minor, parts.update);
    snprintf(out_text, size, "%d.%d.%d", parts.major, parts.minor, parts.update);
    return TN_OK;
}

static tn_status mkl_verbose(void *self, int32_t level, tn_error *err)
{
    const mkl_functions *mkl = self;
    return mkl->verbose(level > 0) >= 0
               ? TN_OK
               : tn_fail(err, TN_UNSUPPORTED, 0, "MKL_Verbose", "MKL refuses level %d", (int)level);
}

const tn_library_row tni_cpu_module_mkl = {
    .struct_size = sizeof tni_cpu_module_mkl,
    .name = "mkl",
    .platform = "cpu",
    .files =
        TNI_CPU_FILES("mkl_rt.2.dll|mkl_rt.1.dll|mkl_rt.dll", "libmkl_rt.2.dylib|libmkl_rt.dylib",
                      "libmkl_rt.so.2|libmkl_rt.so.1|libmkl_rt.so"),
    .remedy = "install Intel's oneMKL (Debian: intel-mkl)",
    .verbose_setting = "mkl.verbose",
    .open = mkl_open,
    .version = mkl_version,
    .verbose = mkl_verbose,
};

/* oneDNN 2 and 3: dnnl.h, dnnl_common_types.h. */
typedef struct dnnl_version_parts { /* the beginning of dnnl_version_t */
    int major, minor, patch;
} dnnl_version_parts;

typedef struct dnnl_functions {
    const dnnl_version_parts *(*version)(void);
    int (*set_verbose)(int level); /* dnnl_status_t: 0 for success */
} dnnl_functions;

static tn_status dnnl_open(const tn_host *host, void **out_self, tn_error *err)
{
    static const tn_symbol symbols[] = {
        {"dnnl_version", offsetof(dnnl_functions, version)},
        {"dnnl_set_verbose", offsetof(dnnl_functions, set_verbose)}};
    return tni_cpu_module_bind(host, &tni_cpu_module_mkldnn, symbols, COUNT(symbols),
                               sizeof(dnnl_functions), out_self, err);
}

static tn_status dnnl_version(void *self, int64_t *out_number, char *out_text, size_t size,
                              tn_error *err)
{
    const dnnl_functions *dnnl = self;
    const dnnl_version_parts *parts = dnnl->version();
    if (!parts)
        return tn_fail(err, TN_CORRUPT, 0, "dnnl_version", "it gave no version");
    *out_number = tni_cpu_module_version_number(parts->major, parts->minor, parts->patch);
    snprintf(out_text, size, "%d.%d.%d", parts->major, parts->minor, parts->patch);
    return TN_OK;
}

static tn_status dnnl_verbose(void *self, int32_t level, tn_error *err)
{
    const dnnl_functions *dnnl = self;
    int code = dnnl->set_verbose(level);
    return code == 0 ? TN_OK
                     : tn_fail(err, TN_UNSUPPORTED, code, "dnnl_set_verbose",
                               "oneDNN refuses level %d (status %d)", (int)level, code);
}

const tn_library_row tni_cpu_module_mkldnn = {
    .struct_size = sizeof tni_cpu_module_mkldnn,
    .name = "mkldnn",
    .platform = "cpu",
    .files =
        TNI_CPU_FILES("dnnl.dll", "libdnnl.3.dylib|libdnnl.2.dylib", "libdnnl.so.3|libdnnl.so.2"),
    .remedy = "install libdnnl3 or libdnnl2 (Debian), onednn (Fedora, Arch, Homebrew)",
    .other = "onednn",
    .verbose_setting = "mkldnn.verbose",
    .open = dnnl_open,
    .version = dnnl_version,
    .verbose = dnnl_verbose,
};

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
