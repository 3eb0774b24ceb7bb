#include "../../cpu_module.h"
#include "../../cpu_process.h"
#include "../../room.h"
#include "../cblas/cblas_tiles.h"
#include "openblas.h"

/* Every OpenBLAS computes products of at most this many multiplications on one thread by itself:
 * below the threshold of its gemv, which newer versions use for a single row or column. */
enum { ALWAYS_ALONE = 8192 };

#define SLOT(name, field)                   \
    {                                       \
        name, offsetof(tni_openblas, field) \
    }
static const tn_symbol symbols[] = {
    TNI_CBLAS_SYMBOLS(tni_openblas),
    SLOT("openblas_get_config", get_config),
    SLOT("?openblas_get_corename", get_corename),
    SLOT("openblas_get_parallel", get_parallel),
    SLOT("openblas_get_num_threads", get_num_threads),
    SLOT("openblas_set_num_threads", set_num_threads),
    SLOT("?omp_get_max_threads", omp_get_max_threads),
    SLOT("?omp_set_num_threads", omp_set_num_threads),
    SLOT("?gotoblas_dynamic_init", choose),
    SLOT("?gotoblas_dynamic_quit", forget),
    SLOT("?gotoblas_SKYLAKEX", has_skylakex),
    SLOT("?gotoblas_HASWELL", has_haswell),
    SLOT("?gotoblas_SANDYBRIDGE", has_sandybridge),
    SLOT("?blas_cpu_number", number),
    SLOT("?blas_thread_shutdown_", stop),
};

static const char *config_of(const tni_openblas *self)
{
    const char *config = self->get_config();
    return config ? config : "";
}

/* Returns why this build of OpenBLAS cannot be used, or NULL. */
static const char *unfit(const tni_openblas *self)
{
    const char *config = config_of(self);
    if (strstr(config, "USE64BITINT"))
        return "its numbers have 64 bits (USE64BITINT); install the build whose "
               "have 32";
    if (self->parallel == TNI_OPENBLAS_SERIAL && !strstr(config, "USE_LOCKING"))
        return "it is built without threads and without USE_LOCKING, so that two "
               "threads may not "
               "use it at once; install the build for pthreads";
    if (self->parallel == TNI_OPENBLAS_OPENMP &&
        (!self->omp_get_max_threads || !self->omp_set_num_threads))
        return "its OpenMP cannot be told how many threads to use; install the "
               "build for pthreads";
    return NULL;
}

static int get_pool(const void *library)
{
    return ((const tni_openblas *)library)->get_num_threads();
}

static void set_pool(const void *library, int threads)
{
    ((const tni_openblas *)library)->set_num_threads(threads);
}

/* Sets the number of threads without starting any. openblas_set_num_threads would start them
 * first. */
static void set_number(const void *library, int threads)
{
    __atomic_store_n(((const tni_openblas *)library)->number, threads, __ATOMIC_RELAXED);
}

static int get_openmp(const void *library)
{
    return ((const tni_openblas *)library)->omp_get_max_threads();
}

static void set_openmp(const void *library, int threads)
{
    ((const tni_openblas *)library)->omp_set_num_threads(threads);
}

/* Its own pool has one number of threads for the process, OpenMP has one for each thread. */
static void init_threads(tni_openblas *self)
{
    tni_vendor_threads *threads = &self->blas.threads;
    if (self->parallel == TNI_OPENBLAS_POOL)
        *threads = (tni_vendor_threads){
            .get = get_pool, .set = self->number ? set_number : set_pool, .shared = true};
    else if (self->parallel == TNI_OPENBLAS_OPENMP)
        *threads = (tni_vendor_threads){.get = get_openmp, .set = set_openmp};
    tni_vendor_threads_init(threads);
    self->blas.alone = ALWAYS_ALONE;
}

/* OpenBLAS ends the process if it cannot create a thread for each processor, and retries forever if
 * it cannot get a buffer: one for each of its threads, and one for each calling thread. So both
 * limits are checked first. */
static tn_status afford(bool in_use, tn_error *err)
{
    enum { BUFFER_MIB = 128, THREADS_MAX = 128 };
    int32_t told = tni_cpu_variable_level("OPENBLAS_NUM_THREADS");
    int32_t processors = tni_cpu_processors(), threads = told > 0 ? told : processors;
    threads = threads < THREADS_MAX ? threads : THREADS_MAX;
    int32_t possible = in_use ? threads - 1 : tni_cpu_threads_possible(threads - 1);
    if (possible < threads - 1)
        return tn_fail(
            err, TN_UNAVAILABLE, 0, "cpu: openblas",
            "OpenBLAS ends the process unless it can make %d threads, and %d can be made "
            "here; raise the limit (ulimit -u, pids.max), or set OPENBLAS_NUM_THREADS=1",
            threads - 1, possible);
    int64_t left = tni_cpu_addresses_left() >> 20;
    int64_t needed = (int64_t)BUFFER_MIB * (threads + processors);
    if (left < needed)
        return tn_fail(
            err, TN_UNAVAILABLE, 0, "cpu: openblas",
            "OpenBLAS waits for ever for buffers that it cannot have, %lld MiB of addresses, "
            "and %lld MiB are left; raise the limit (ulimit -v)",
            (long long)needed, (long long)left);
    return TN_OK;
}

/* OpenBLAS starts its threads when it is opened. Tenon does not need them, and they would keep a
 * process alive whose own threads have ended. A program that uses OpenBLAS later gets its usual
 * number of threads. */
static void stop_threads(const tni_openblas *self)
{
    if (self->parallel == TNI_OPENBLAS_POOL && self->number && self->stop)
        (void)self->stop();
}

static tn_status open_openblas(const tn_host *host, void **out_self, tn_error *err)
{
    bool in_use = tni_cpu_process_has(tni_cpu_module_openblas.files);
    void *table = NULL;
    tn_status status = afford(in_use, err);
    if (status)
        return status;
    status =
        tni_cpu_module_bind(host, &tni_cpu_module_openblas, symbols,
                            sizeof symbols / sizeof symbols[0], sizeof(tni_openblas), &table, err);
    if (status)
        return status;
    tni_openblas *self = table;
    self->parallel = self->get_parallel();
    const char *fault = unfit(self);
    if (fault) {
        host->release(host->self, self);
        return tn_fail(err, TN_INCOMPATIBLE, 0, "cpu: openblas", "OpenBLAS is here, but %s", fault);
    }
    if (!in_use) {
        tni_openblas_improve(host, self);
        stop_threads(self);
    }
    init_threads(self);
    self->blas.tiles_target = tni_tiles_target(host);
    *out_self = self;
    return TN_OK;
}

/* "OpenBLAS 0.3.21 DYNAMIC_ARCH NO_AFFINITY SkylakeX MAX_THREADS=64", with the processor that its
 * kernels are for; versions before 0.3 omit "OpenBLAS". */
static tn_status version(void *self, int64_t *out_number, char *out_text, size_t size,
                         tn_error *err)
{
    static const char name[] = "OpenBLAS ";
    const char *config = config_of(self);
    (void)err;
    if (strncmp(config, name, sizeof name - 1) == 0)
        config += sizeof name - 1;
    *out_number = tni_cpu_module_version_parse(config);
    snprintf(out_text, size, "%s", config);
    for (size_t end = strlen(out_text); end > 0 && out_text[end - 1] == ' ';)
        out_text[--end] = '\0';
    return TN_OK;
}

const tn_library_row tni_cpu_module_openblas = {
    .struct_size = sizeof tni_cpu_module_openblas,
    .name = "openblas",
    .platform = "cpu",
    .files = TNI_CPU_FILES("libopenblas.dll", "libopenblas.0.dylib",
                           "libopenblas.so.0|libopenblasp.so.0"),
    .remedy = "install libopenblas0 (Debian) or openblas (Fedora, Arch, Homebrew)",
    .open = open_openblas,
    .version = version,
};

/* Sums are made in a fixed order for each op, for any number of threads, but rows at the end of a
 * tile may be summed in another order than rows within it. */
const tn_kernel_row tni_cpu_module_matmul_openblas = {
    .name = "cpu.matmul.openblas",
    .library = "openblas",
    .version = 2,
    .dtypes = tni_cblas_dtypes,
    .numerics = TN_NUM_RUN_TO_RUN,
    .flops_per_us = 6e4,
    .bytes_per_us = 8e3,
    .overhead_us = 0.3,
    TNI_CBLAS_ROW,
};
