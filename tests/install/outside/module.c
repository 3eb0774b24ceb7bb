/* A module as a stranger writes it, with the installed headers alone: a platform with one device,
 * whose memory is the host's. */
#include <tenon/module/platform.h>

typedef struct state {
    const tn_host *host;
} state;

static tn_status probe(const tn_host *host, void **out_self, int32_t *out_devices, tn_error *err)
{
    state *self = host->alloc(host->self, sizeof *self, sizeof(void *));
    if (!self)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "outside: probe", "no memory for %zu bytes",
                       sizeof *self);
    self->host = host;
    *out_self = self;
    *out_devices = 1;
    return TN_OK;
}

static tn_status memory_alloc(void *any, int32_t device, uint64_t bytes, void **out, tn_error *err)
{
    state *self = any;
    if (device != 0)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "outside: memory_alloc",
                       "no device outside:%d; present: outside:0", (int)device);
    void *memory =
        bytes <= SIZE_MAX ? self->host->alloc(self->host->self, (size_t)bytes, 64) : NULL;
    if (!memory)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "outside: memory_alloc",
                       "no memory for %llu bytes", (unsigned long long)bytes);
    *out = memory;
    return TN_OK;
}

static void memory_free(void *any, int32_t device, void *memory)
{
    state *self = any;
    (void)device;
    self->host->release(self->host->self, memory);
}

static tn_status copy(void *self, const tn_copy_job *job, tn_error *err)
{
    (void)self;
    (void)err;
    memmove(job->to, job->from, (size_t)job->bytes);
    return TN_OK;
}

static const tn_platform_row platform = {
    .struct_size = sizeof platform,
    .name = "outside",
    .kind = TN_PLATFORM_OOT,
    .probe = probe,
    .memory_alloc = memory_alloc,
    .memory_free = memory_free,
    .copy = copy,
};
static const tn_platform_row *const platforms[] = {&platform, NULL};

static const tn_module module = {
    .struct_size = sizeof module,
    TN_MODULE_ABI,
    .name = "outside",
    .version = "1.0",
    .platforms = platforms,
};

tn_status tn_module_entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host;
    (void)err;
    *out = &module;
    return TN_OK;
}
