#include "../../cpu_module.h"
#include "../../cpu_process.h"
#include "../cblas/cblas_tiles.h"
#include "blis.h"

#define SLOT(name, field)               \
    {                                   \
        name, offsetof(tni_blis, field) \
    }
static const tn_symbol symbols[] = {
    TNI_CBLAS_SYMBOLS(tni_blis),
    SLOT("bli_info_get_version_str", get_version),
    SLOT("bli_info_get_int_type_size", get_int_size),
    SLOT("bli_info_get_blas_int_type_size", get_blas_int_size),
    SLOT("bli_init", init),
    SLOT("bli_arch_query_id", query_arch),
    SLOT("bli_arch_string", name_of),
    SLOT("bli_thread_get_num_threads", get_threads),
    SLOT("bli_thread_set_num_threads", set_threads),
};

static const char *version_of(const tni_blis *self)
{
    const char *text = self->get_version();
    return text ? text : "";
}

static int get_threads(const void *library)
{
    int64_t threads = ((const tni_blis *)library)->get_threads();
    return threads < 1 ? 1 : (int)threads;
}

static void set_threads(const void *library, int threads)
{
    ((const tni_blis *)library)->set_threads(threads);
}

/* Before 1.0, the number of threads was shared by the process. */
static void init_threads(tni_blis *self)
{
    self->blas.threads =
        (tni_vendor_threads){.get = get_threads,
                             .set = set_threads,
                             .shared = tni_cpu_module_version_parse(version_of(self)) < 10000};
    tni_vendor_threads_init(&self->blas.threads);
}

static tn_status open_blis(const tn_host *host, void **out_self, tn_error *err)
{
    bool in_use = tni_cpu_process_has(tni_cpu_module_blis.files);
    void *table = NULL;
    tn_status status =
        tni_cpu_module_bind(host, &tni_cpu_module_blis, symbols, sizeof symbols / sizeof symbols[0],
                            sizeof(tni_blis), &table, err);
    if (status)
        return status;
    tni_blis *self = table;
    int64_t blas = self->get_blas_int_size(), own = self->get_int_size();
    if (blas != 32 || own != 64) {
        host->release(host->self, self);
        return tn_fail(err, TN_INCOMPATIBLE, 0, "cpu: blis",
                       "BLIS is here, but its numbers have %d bits for BLAS and %d of its own; "
                       "install the build whose have 32 and 64",
                       (int)blas, (int)own);
    }
    if (in_use)
        self->init();
    else
        tni_blis_start(host, self);
    init_threads(self);
    self->blas.tiles_target = tni_tiles_target(host);
    *out_self = self;
    return TN_OK;
}

static tn_status version(void *self, int64_t *out_number, char *out_text, size_t size,
                         tn_error *err)
{
    const tni_blis *blis = self;
    const char *kernels = blis->name_of(blis->query_arch());
    (void)err;
    *out_number = tni_cpu_module_version_parse(version_of(blis));
    snprintf(out_text, size, "%s with kernels for %s", version_of(blis),
             kernels ? kernels : "unknown");
    return TN_OK;
}

const tn_library_row tni_cpu_module_blis = {
    .struct_size = sizeof tni_cpu_module_blis,
    .name = "blis",
    .platform = "cpu",
    .files = TNI_CPU_FILES("libblis.4.dll", "libblis.4.dylib", "libblis.so.4|libblis.so.3"),
    .remedy = "install libblis4-pthread (Debian) or blis (Fedora, Homebrew)",
    .open = open_blis,
    .version = version,
};

/* Sums are made in a fixed order for each op. This does not hold for complex numbers, which are not
 * supported: the thread that started BLIS 0.9 computes them by another method than the other
 * threads. */
const tn_kernel_row tni_cpu_module_matmul_blis = {
    .name = "cpu.matmul.blis",
    .library = "blis",
    .version = 1,
    .dtypes = tni_cblas_reals,
    .numerics = TN_NUM_RUN_TO_RUN,
    .flops_per_us = 5.7e4,
    .bytes_per_us = 7e3,
    .overhead_us = 0.5,
    TNI_CBLAS_ROW,
};
