/* A module that does in its probe all that a host lets it do, and gives all of it back. NAME is its
 * name; STARVED makes it one whose device never has memory. */
#include "tenon/module/platform.h"

typedef struct vendor {
    double (*cosine)(double);
} vendor;

static void do_nothing(void *user, int64_t index)
{
    (void)user, (void)index;
}

static tn_status use(const tn_host *host, vendor *table, tn_error *err)
{
    static const tn_symbol symbols[] = {{"cos", offsetof(vendor, cosine)}};
    tn_status status = host->library_bind(host->self, "libm.so.6", symbols, 1, table, err);
    if (status)
        return status;
    host->parallel_for(host->self, 10, do_nothing, NULL);
    host->log(host->self, TN_LOG_DEBUG, "probed");
    return TN_OK;
}

static tn_status probe(const tn_host *host, void **out_self, int32_t *out_devices, tn_error *err)
{
    (void)out_self;
#if defined(STARVED)
    return tn_fail(err, TN_OUT_OF_MEMORY, 0, NAME ": probe", "the device's memory is full");
#endif
    vendor *table = host->alloc(host->self, sizeof *table, 64);
    if (!table)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, NAME ": probe", "no memory for its table");
    tn_status status = use(host, table, err);
    host->release(host->self, table);
    if (!status)
        *out_devices = 1;
    return status;
}

static tn_status memory_alloc(void *self, int32_t device, uint64_t bytes, void **out, tn_error *err)
{
    (void)self, (void)device, (void)bytes, (void)out;
    return tn_fail(err, TN_UNSUPPORTED, 0, NAME ": memory", "it has none");
}

static void memory_free(void *self, int32_t device, void *memory)
{
    (void)self, (void)device, (void)memory;
}

static tn_status copy(void *self, const tn_copy_job *job, tn_error *err)
{
    (void)self, (void)job;
    return tn_fail(err, TN_UNSUPPORTED, 0, NAME ": copy", "it has no memory");
}

static const tn_platform_row platform = {.struct_size = sizeof platform,
                                         .name = NAME,
                                         .kind = TN_PLATFORM_OOT,
                                         .probe = probe,
                                         .memory_alloc = memory_alloc,
                                         .memory_free = memory_free,
                                         .copy = copy};
static const tn_platform_row *const platforms[] = {&platform, NULL};
static const tn_module module = {.struct_size = sizeof module,
                                 TN_MODULE_ABI,
                                 .name = NAME,
                                 .version = "1",
                                 .platforms = platforms};

tn_status tn_module_entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}
