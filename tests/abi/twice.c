/* A module that says which host it was given and keeps one block of that host's memory. */
#include "tenon/module/platform.h"

static tn_status probe(const tn_host *host, void **out_self, int32_t *out_devices, tn_error *err)
{
    char text[64];
    void *note = host->alloc(host->self, 100, 64);
    if (!note)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "twice: probe", "no memory for a note");
    snprintf(text, sizeof text, "host %p", (const void *)host);
    host->log(host->self, TN_LOG_INFO, text);
    *out_self = note;
    *out_devices = 1;
    return TN_OK;
}

static tn_status memory_alloc(void *self, int32_t device, uint64_t bytes, void **out, tn_error *err)
{
    (void)self, (void)device, (void)bytes, (void)out;
    return tn_fail(err, TN_UNSUPPORTED, 0, "twice: memory", "it has none");
}

static void memory_free(void *self, int32_t device, void *memory)
{
    (void)self, (void)device, (void)memory;
}

static tn_status copy(void *self, const tn_copy_job *job, tn_error *err)
{
    (void)self, (void)job;
    return tn_fail(err, TN_UNSUPPORTED, 0, "twice: copy", "it has no memory");
}

static const tn_platform_row platform = {.struct_size = sizeof platform,
                                         .name = "twice",
                                         .kind = TN_PLATFORM_OOT,
                                         .probe = probe,
                                         .memory_alloc = memory_alloc,
                                         .memory_free = memory_free,
                                         .copy = copy};
static const tn_platform_row *const platforms[] = {&platform, NULL};
static const tn_module module = {.struct_size = sizeof module,
                                 TN_MODULE_ABI,
                                 .name = "twice",
                                 .version = "1",
                                 .platforms = platforms};

tn_status tn_module_entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}
