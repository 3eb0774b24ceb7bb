#include "openblas.h"

#include "../cpu.h"

#include <stdlib.h>

#define SLOT(name, field)                   \
    {                                       \
        name, offsetof(tni_openblas, field) \
    }
static const tn_symbol symbols[] = {
    SLOT("openblas_get_config", get_config),
    SLOT("openblas_get_parallel", get_parallel),
    SLOT("openblas_get_num_threads", get_num_threads),
    SLOT("openblas_set_num_threads", set_num_threads),
    SLOT("?omp_get_max_threads", omp_get_max_threads),
    SLOT("?omp_set_num_threads", omp_set_num_threads),
    SLOT("cblas_sgemm", sgemm),
    SLOT("cblas_dgemm", dgemm),
    SLOT("cblas_cgemm", cgemm),
    SLOT("cblas_zgemm", zgemm),
};

static const char *config_of(const tni_openblas *self)
{
    const char *config = self->get_config();
    return config ? config : "";
}

/* Why this build of OpenBLAS cannot be used; or NULL. */
static const char *unfit(const tni_openblas *self)
{
    const char *config = config_of(self);
    if (strstr(config, "USE64BITINT"))
        return "its numbers have 64 bits (USE64BITINT); install the build whose have 32";
    if (self->parallel == TNI_OPENBLAS_SERIAL && !strstr(config, "USE_LOCKING"))
        return "it is built without threads and without USE_LOCKING, so that two threads may not "
               "use it at once; install the build for pthreads";
    if (self->parallel == TNI_OPENBLAS_OPENMP &&
        (!self->omp_get_max_threads || !self->omp_set_num_threads))
        return "its OpenMP cannot be told how many threads to use; install the build for pthreads";
    return NULL;
}

static tn_status open_openblas(const tn_host *host, void **out_self, tn_error *err)
{
    void *table = NULL;
    tn_status status =
        tni_cpu_module_bind(host, &tni_cpu_module_openblas, symbols,
                            sizeof symbols / sizeof symbols[0], sizeof(tni_openblas), &table, err);
    if (status)
        return status;
    tni_openblas *self = table;
    atomic_flag_clear(&self->lock);
    self->parallel = self->get_parallel();
    const char *fault = unfit(self);
    if (fault) {
        host->release(host->self, self);
        return tn_fail(err, TN_INCOMPATIBLE, 0, "cpu: openblas", "OpenBLAS is here, but %s", fault);
    }
    *out_self = self;
    return TN_OK;
}

/* "0.3.21" as a number; -1 for what does not begin so. */
static int64_t parse_version(const char *text)
{
    int64_t parts[3] = {-1, -1, -1};
    for (size_t i = 0; i < 3 && *text >= '0' && *text <= '9'; i++) {
        char *end;
        parts[i] = strtoll(text, &end, 10);
        text = *end == '.' ? end + 1 : "";
    }
    return tni_cpu_module_version_number(parts[0], parts[1], parts[2]);
}

/* "OpenBLAS 0.3.21 DYNAMIC_ARCH NO_AFFINITY Haswell MAX_THREADS=64"; before 0.3 without its name. */
static tn_status version(void *self, int64_t *out_number, char *out_text, size_t size,
                         tn_error *err)
{
    static const char name[] = "OpenBLAS ";
    const char *config = config_of(self);
    (void)err;
    if (strncmp(config, name, sizeof name - 1) == 0)
        config += sizeof name - 1;
    *out_number = parse_version(config);
    snprintf(out_text, size, "%s", config);
    for (size_t end = strlen(out_text); end > 0 && out_text[end - 1] == ' ';)
        out_text[--end] = '\0';
    return TN_OK;
}

static void lock(tni_openblas *self)
{
    while (atomic_flag_test_and_set_explicit(&self->lock, memory_order_acquire))
        ;
}

static void unlock(tni_openblas *self)
{
    atomic_flag_clear_explicit(&self->lock, memory_order_release);
}

static void enter_pool(tni_openblas *self)
{
    lock(self);
    if (self->inside++ == 0) {
        self->before = self->get_num_threads();
        if (self->before != 1)
            self->set_num_threads(1);
    }
    unlock(self);
}

static void leave_pool(tni_openblas *self)
{
    lock(self);
    if (--self->inside == 0 && self->before != 1)
        self->set_num_threads(self->before);
    unlock(self);
}

int tni_openblas_enter(tni_openblas *self)
{
    int before = 0;
    if (self->parallel == TNI_OPENBLAS_POOL) {
        enter_pool(self);
    } else if (self->parallel == TNI_OPENBLAS_OPENMP) {
        before = self->omp_get_max_threads();
        self->omp_set_num_threads(1);
    }
    return before;
}

void tni_openblas_leave(tni_openblas *self, int before)
{
    if (self->parallel == TNI_OPENBLAS_POOL)
        leave_pool(self);
    else if (self->parallel == TNI_OPENBLAS_OPENMP)
        self->omp_set_num_threads(before);
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
