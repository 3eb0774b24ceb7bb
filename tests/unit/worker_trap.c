#include "worker_trap.h"

#include <unistd.h>

_Atomic bool trap_armed;

static tn_status touch(void)
{
    if (trap_armed)
        _exit(TRAP_TOUCHED);
    return TN_OK;
}

#define TRAP(function, parameters, ...)     \
    static tn_status function parameters    \
    {                                       \
        (void)self, (void)err, __VA_ARGS__; \
        return touch();                     \
    }
#define TRAP_VOID(function, parameters, ...) \
    static void function parameters          \
    {                                        \
        (void)self, __VA_ARGS__;             \
        (void)touch();                       \
    }

TRAP(memory_alloc, (void *self, int32_t device, uint64_t bytes, void **out, tn_error *err),
     (void)device, (void)bytes, (void)out)
TRAP_VOID(memory_free, (void *self, int32_t device, void *memory), (void)device, (void)memory)
TRAP(copy, (void *self, const tn_copy_job *job, tn_error *err), (void)job)
TRAP(device_memory, (void *self, int32_t device, tn_device_memory *out, tn_error *err),
     (void)device, (void)out)
TRAP(device_link, (void *self, int32_t from, int32_t to, int32_t *out, tn_error *err), (void)from,
     (void)to, (void)out)
TRAP(describe, (void *self, const tn_description *description, int32_t *out, tn_error *err),
     (void)description, (void)out)
TRAP(stream_create,
     (void *self, int32_t device, const tn_stream_spec *spec, void **out, tn_error *err),
     (void)device, (void)spec, (void)out)
TRAP_VOID(stream_destroy, (void *self, int32_t device, void *stream), (void)device, (void)stream)
TRAP(stream_query, (void *self, int32_t device, void *stream, int32_t *out, tn_error *err),
     (void)device, (void)stream, (void)out)
TRAP(stream_synchronize, (void *self, int32_t device, void *stream, tn_error *err), (void)device,
     (void)stream)
TRAP(stream_wait, (void *self, int32_t device, void *stream, void *event, tn_error *err),
     (void)device, (void)stream, (void)event)
TRAP(device_synchronize, (void *self, int32_t device, tn_error *err), (void)device)
TRAP(event_create,
     (void *self, int32_t device, const tn_event_spec *spec, void **out, tn_error *err),
     (void)device, (void)spec, (void)out)
TRAP_VOID(event_destroy, (void *self, int32_t device, void *event), (void)device, (void)event)
TRAP(event_record, (void *self, int32_t device, void *event, void *stream, tn_error *err),
     (void)device, (void)event, (void)stream)
TRAP(event_query, (void *self, int32_t device, void *event, int32_t *out, tn_error *err),
     (void)device, (void)event, (void)out)
TRAP(event_synchronize, (void *self, int32_t device, void *event, tn_error *err), (void)device,
     (void)event)
TRAP(event_elapsed,
     (void *self, int32_t device, void *start, void *stop, double *out, tn_error *err),
     (void)device, (void)start, (void)stop, (void)out)
TRAP(event_export, (void *self, int32_t device, void *event, tn_event_handle *out, tn_error *err),
     (void)device, (void)event, (void)out)
TRAP(event_import,
     (void *self, int32_t device, const tn_event_handle *handle, void **out, tn_error *err),
     (void)device, (void)handle, (void)out)
TRAP(fill, (void *self, const tn_fill_job *job, tn_error *err), (void)job)
TRAP(host_alloc, (void *self, int32_t device, uint64_t bytes, void **out, tn_error *err),
     (void)device, (void)bytes, (void)out)
TRAP_VOID(host_free, (void *self, int32_t device, void *memory), (void)device, (void)memory)
TRAP(device_activate, (void *self, int32_t device, tn_error *err), (void)device)
TRAP(device_reset, (void *self, int32_t device, tn_error *err), (void)device)

static int32_t device_is_initialized(void *self, int32_t device)
{
    (void)self, (void)device;
    (void)touch();
    return 1;
}

static tn_status probe(const tn_host *host, void **out_self, int32_t *out, tn_error *err)
{
    (void)host, (void)out_self, (void)err;
    *out = 2;
    return touch();
}

/* Everything there is, at its ends, and what a careless module says beside it. */
static tn_status device_properties(void *self, int32_t device, tn_device_properties *out,
                                   tn_error *err)
{
    (void)self, (void)err;
    out->known = device == 0 ? ~UINT64_C(0) : 0;
    snprintf(out->name, sizeof out->name, "Trap \"%d\" # caf\xc3\xa9", (int)device);
    memset(out->architecture, 'a', sizeof out->architecture - 1);
    out->capability = device == 0 ? (tn_capability){3, INT32_MAX} : (tn_capability){9, 9};
    out->memory_bytes = INT64_MAX;
    out->numa_node = INT64_MIN; /* which cannot be, as the dtype below */
    out->warp_size = 32;
    out->dtypes[0] = TN_BF16;
    out->dtypes[1] = 0xFEDCBA98; /* of another time */
    out->dtypes[2] = TN_F8_E5M2FNUZ;
    return touch();
}

static const tn_platform_row trap_row = {
    .struct_size = sizeof trap_row,
    .name = "trap",
    .kind = TN_PLATFORM_OOT,
    .probe = probe,
    .memory_alloc = memory_alloc,
    .memory_free = memory_free,
    .copy = copy,
    .device_properties = device_properties,
    .device_memory = device_memory,
    .device_link = device_link,
    .describe = describe,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_query = stream_query,
    .stream_synchronize = stream_synchronize,
    .stream_wait = stream_wait,
    .device_synchronize = device_synchronize,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_query = event_query,
    .event_synchronize = event_synchronize,
    .event_elapsed = event_elapsed,
    .event_export = event_export,
    .event_import = event_import,
    .fill = fill,
    .host_alloc = host_alloc,
    .host_free = host_free,
    .device_activate = device_activate,
    .device_is_initialized = device_is_initialized,
    .device_reset = device_reset,
};

static const tn_module trap_module = {
    .struct_size = sizeof trap_module,
    TN_MODULE_ABI,
    .name = "trap",
    .version = "1",
    .platforms = (const tn_platform_row *const[]){&trap_row, NULL},
};

static tn_status trap_entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host, (void)err;
    *out = &trap_module;
    return TN_OK;
}

tni_builtin trap_builtin(void)
{
    return (tni_builtin){"trap", trap_entry};
}
