/* Intel's MKL through its single library mkl_rt, which opens the others as needed. */
#include "../../cpu_module.h"
#include "../../cpu_process.h"
#include "../cblas/cblas_tiles.h"
#include "mkl.h"
#include "tenon/module/library.h"

#include <stdlib.h>

/* From mkl_service.h. */
enum { INTERFACE_32 = 0, INTERFACE_64 = 1 }; /* MKL_INTERFACE_LP64, ILP64: the lowest bit */
enum { THREADS_NONE = 1 };                   /* MKL_THREADING_SEQUENTIAL */

#define SLOT(name, field)              \
    {                                  \
        name, offsetof(tni_mkl, field) \
    }
static const tn_symbol symbols[] = {
    TNI_CBLAS_SYMBOLS(tni_mkl),
    SLOT("MKL_Get_Version", get_version),
    SLOT("MKL_Verbose", verbose),
    SLOT("MKL_Set_Num_Threads_Local", set_threads_local),
    SLOT("MKL_Set_Interface_Layer", set_interface),
    SLOT("MKL_Set_Threading_Layer", set_threading),
    SLOT("?DftiCreateDescriptor_s_1d", dfti.create_1d_f32),
    SLOT("?DftiCreateDescriptor_d_1d", dfti.create_1d_f64),
    SLOT("?DftiCreateDescriptor_s_md", dfti.create_nd_f32),
    SLOT("?DftiCreateDescriptor_d_md", dfti.create_nd_f64),
    SLOT("?DftiSetValue", dfti.set),
    SLOT("?DftiCommitDescriptor", dfti.commit),
    SLOT("?DftiComputeForward", dfti.forward),
    SLOT("?DftiComputeBackward", dfti.backward),
    SLOT("?DftiFreeDescriptor", dfti.destroy),
    SLOT("?DftiErrorMessage", dfti.message),
};

static const char openmp[] = TNI_CPU_FILES("libiomp5md.dll", "libiomp5.dylib", "libiomp5.so");
static const char other_openmp[] =
    TNI_CPU_FILES("libomp.dll", "libomp.dylib", "libomp.so.5|libomp.so");

static bool says(const char *variable, const char *word, const char *same)
{
    const char *value = getenv(variable);
    return value && (strstr(value, word) || strstr(value, same));
}

static tn_status check_interface(const tni_mkl *self, tn_error *err)
{
    bool wide = says("MKL_INTERFACE_LAYER", "ILP64", "ilp64");
    if (!wide && !tni_cpu_variable_is_set("MKL_INTERFACE_LAYER"))
        wide = self->set_interface(INTERFACE_32) & INTERFACE_64;
    if (!wide)
        return TN_OK;
    return tn_fail(err, TN_INCOMPATIBLE, 0, "cpu: mkl",
                   "MKL's numbers have 64 bits in this process (ILP64), and cannot have 32 too");
}

/* mkl_rt ends the process at the first product if it finds no OpenMP runtime, and Intel's OpenMP
 * ends it if LLVM's is also loaded. */
static tn_status check_openmp(const tn_host *host, bool in_use, tn_error *err)
{
    tn_error why = {0};
    if (!in_use && tni_cpu_process_has(other_openmp))
        return tn_fail(err, TN_INCOMPATIBLE, 0, "cpu: mkl",
                       "Intel's OpenMP would end the process, as LLVM's is in it; without "
                       "MKL_THREADING_LAYER=INTEL MKL does without");
    tn_status status = host->library_bind(host->self, openmp, NULL, 0, NULL, &why);
    return status ? tn_fail(err, status, why.native_code, "cpu: mkl",
                            "MKL would end the process, as it lacks %s: %.200s; without "
                            "MKL_THREADING_LAYER=INTEL it does without",
                            openmp, why.message)
                  : TN_OK;
}

/* MKL's own threads are not needed: they are disabled if nobody else uses MKL yet, or if it would
 * not find its OpenMP. Fails only if the user asks for Intel's OpenMP by name and it is not
 * available. */
static tn_status choose_threading(const tn_host *host, const tni_mkl *self, bool in_use,
                                  tn_error *err)
{
    if (says("MKL_THREADING_LAYER", "INTEL", "intel"))
        return check_openmp(host, in_use, err);
    if (tni_cpu_variable_is_set("MKL_THREADING_LAYER"))
        return TN_OK;
    if (!in_use || host->library_bind(host->self, openmp, NULL, 0, NULL, NULL))
        (void)self->set_threading(THREADS_NONE);
    return TN_OK;
}

/* Both use one function of MKL, which returns the previous number when it sets a new one. */
static int get_threads(const void *library)
{
    return ((const tni_mkl *)library)->set_threads_local(1);
}

static void set_threads(const void *library, int threads)
{
    (void)((const tni_mkl *)library)->set_threads_local(threads);
}

static tn_status open_mkl(const tn_host *host, void **out_self, tn_error *err)
{
    bool in_use = tni_cpu_process_has(tni_cpu_module_mkl.files);
    void *table = NULL;
    tn_status status =
        tni_cpu_module_bind(host, &tni_cpu_module_mkl, symbols, sizeof symbols / sizeof symbols[0],
                            sizeof(tni_mkl), &table, err);
    if (status)
        return status;
    tni_mkl *self = table;
    status = check_interface(self, err);
    if (!status)
        status = choose_threading(host, self, in_use, err);
    if (status) {
        host->release(host->self, self);
        return status;
    }
    self->blas.threads = (tni_vendor_threads){.get = get_threads, .set = set_threads};
    tni_vendor_threads_init(&self->blas.threads);
    self->blas.tiles_target = tni_tiles_target(host);
    *out_self = self;
    return TN_OK;
}

/* Numbered as INTEL_MKL_VERSION. */
static tn_status version(void *self, int64_t *out_number, char *out_text, size_t size,
                         tn_error *err)
{
    tni_mkl_version parts = {0};
    (void)err;
    ((const tni_mkl *)self)->get_version(&parts);
    *out_number = tni_cpu_module_version_number(parts.major, parts.minor, parts.update);
    snprintf(out_text, size, "%d.%d.%d", parts.major, parts.minor, parts.update);
    return TN_OK;
}

/* Level 0 means the level from the environment. */
static tn_status verbose(void *self, int32_t level, tn_error *err)
{
    bool talks = level > 0 || tni_cpu_variable_level("MKL_VERBOSE") > 0;
    return ((const tni_mkl *)self)->verbose(talks) >= 0
               ? TN_OK
               : tn_fail(err, TN_UNSUPPORTED, 0, "MKL_Verbose", "MKL refuses level %d", (int)level);
}

#if defined(__x86_64__) || defined(_M_X64)
#define REMEDY "install oneMKL (Debian non-free: intel-mkl, pip: mkl)"
#else
#define REMEDY "use openblas instead: Intel's oneMKL exists for x86-64 only"
#endif

const tn_library_row tni_cpu_module_mkl = {
    .struct_size = sizeof tni_cpu_module_mkl,
    .name = "mkl",
    .platform = "cpu",
    .files = TNI_CPU_FILES("mkl_rt.3.dll|mkl_rt.2.dll|mkl_rt.1.dll|mkl_rt.dll",
                           "libmkl_rt.2.dylib|libmkl_rt.dylib",
                           "libmkl_rt.so.3|libmkl_rt.so.2|libmkl_rt.so.1|libmkl_rt.so"),
    .remedy = REMEDY,
    .verbose_setting = "mkl.verbose",
    .open = open_mkl,
    .version = version,
    .verbose = verbose,
};

/* MKL guarantees the same bits only for operands with the same alignment and layout, so no
 * guarantee is declared here. */
const tn_kernel_row tni_cpu_module_matmul_mkl = {
    .name = "cpu.matmul.mkl",
    .library = "mkl",
    .version = 1,
    .dtypes = tni_cblas_dtypes,
    .flops_per_us = 6e4,
    .bytes_per_us = 8e3,
    .overhead_us = 0.4,
    TNI_CBLAS_ROW,
};
