/* The module `described`: devices that exist as a description only, for planning and tests. Nothing
 * can be described yet, so there is no device, the probe says so, and no memory is given. */
#include "tenon/module/platform.h"

static tn_status probe(const tn_host *host, void **out_self, int32_t *out_devices, tn_error *err)
{
    (void)host, (void)out_self, (void)out_devices;
    return tn_fail(err, TN_UNAVAILABLE, 0, "described: probe", "no device is described");
}

static tn_status memory_alloc(void *self, int32_t device, uint64_t bytes, void **out, tn_error *err)
{
    (void)self, (void)device, (void)bytes, (void)out;
    return tn_fail(err, TN_UNAVAILABLE, 0, "described: memory", "no device is described");
}

static void memory_free(void *self, int32_t device, void *memory)
{
    (void)self, (void)device, (void)memory;
}

static tn_status copy(void *self, const tn_copy_job *job, tn_error *err)
{
    (void)self, (void)err;
    memcpy(job->to, job->from, (size_t)job->bytes);
    return TN_OK;
}

static const tn_platform_row platform = {
    .struct_size = sizeof platform,
    .name = "described",
    .kind = TN_PLATFORM_OOT,
    .remedy = "none is needed: described devices are for planning and tests",
    .probe = probe,
    .memory_alloc = memory_alloc,
    .memory_free = memory_free,
    .copy = copy,
};

static const tn_platform_row *const platforms[] = {&platform, NULL};

static const tn_module module = {.struct_size = sizeof module,
                                 TN_MODULE_ABI,
                                 .name = "described",
                                 .version = "0.1.0",
                                 .platforms = platforms};

tn_status tn_module_entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}
