/* tenon-@NAME@: the platform "@NAME@", with one device.
 *
 * This example device is a part of the host's memory, so the module builds, loads and passes `tenon
 * conformance` on any machine. Adapt it one function at a time, and run `make check` after each.
 * Comments that begin with "vendor" mark where to call the vendor's library. The rules are in
 * <tenon/module/platform.h> and in Tenon's docs/platform-guide.md.
 *
 * Kernels are rows of a second list, `.kernels`, beside `.platforms`. <tenon/module/kernel.h> declares a
 * row; <tenon/module/op/NAME.h> declares what the kernel of an operator gets and must compute. */
#include <stdatomic.h>
#include <tenon/module/platform.h>

/* Size of the device's memory, and the alignment that Tenon requires. */
#define MEMORY    (INT64_C(1) << 30)
#define ALIGNMENT 64

/* The state of the platform. Use no statics: two copies of Tenon may share a process. */
typedef struct state {
    const tn_host *host;
    _Atomic int64_t in_use; /* allocated bytes of the device */
} state;

/* Precedes each block and stores its size for memory_free. */
typedef union header {
    uint64_t bytes;
    char room[ALIGNMENT];
} header;

/* vendor: open the driver's library with host->library_bind and count its devices. Without hardware
 * return tn_fail(err, TN_UNAVAILABLE, code, "@NAME@: probe", "why not"); never block. */
static tn_status probe(const tn_host *host, void **out_self, int32_t *out_devices, tn_error *err)
{
    state *self = host->alloc(host->self, sizeof *self, _Alignof(state));
    if (!self)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "@NAME@: probe", "no memory for the platform");
    self->host = host;
    atomic_init(&self->in_use, 0);
    *out_self = self;
    *out_devices = 1;
    return TN_OK;
}

/* Reserves `bytes` of the device's memory; returns 0 if there is not enough. */
static int reserve(state *self, int64_t bytes)
{
    int64_t in_use = atomic_load(&self->in_use);
    do {
        if (bytes > MEMORY - in_use)
            return 0;
    } while (!atomic_compare_exchange_weak(&self->in_use, &in_use, in_use + bytes));
    return 1;
}

/* vendor: call its allocator. The address must be aligned to 64 bytes and support pointer arithmetic:
 * copies may begin inside a block. If there is no memory, return TN_OUT_OF_MEMORY; Tenon adds the free
 * memory and the largest users to the message. */
static tn_status memory_alloc(void *any, int32_t device, uint64_t bytes, void **out, tn_error *err)
{
    state *self = any;
    header *block = NULL;
    if (bytes <= MEMORY && reserve(self, (int64_t)bytes)) {
        block = self->host->alloc(self->host->self, sizeof *block + (size_t)bytes, ALIGNMENT);
        if (!block)
            atomic_fetch_sub(&self->in_use, (int64_t)bytes);
    }
    if (!block)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "@NAME@: memory_alloc",
                       "@NAME@:%d cannot allocate %llu bytes", (int)device,
                       (unsigned long long)bytes);
    block->bytes = bytes;
    *out = block + 1;
    return TN_OK;
}

static void memory_free(void *any, int32_t device, void *memory)
{
    state *self = any;
    header *block = (header *)memory - 1;
    (void)device;
    atomic_fetch_sub(&self->in_use, (int64_t)block->bytes);
    self->host->release(self->host->self, block);
}

/* vendor: call its copy. A negative device means host memory; there is at least one row. */
static tn_status copy(void *any, const tn_copy_job *job, tn_error *err)
{
    (void)any, (void)err;
    for (uint64_t row = 0; row < job->rows; row++)
        memcpy((char *)job->to + row * job->to_pitch,
               (const char *)job->from + row * job->from_pitch, (size_t)job->bytes);
    return TN_OK;
}

/* The functions from here on are optional: missing information is reported as unknown.
 *
 * vendor: query the properties of the device. A number is valid only if its bit is set. */
static tn_status device_properties(void *any, int32_t device, tn_device_properties *out,
                                   tn_error *err)
{
    (void)any, (void)device, (void)err;
    tn_text_fit(out->name, sizeof out->name, "@NAME@");
    out->memory_bytes = MEMORY;
    out->multi_processor_count = 1;
    out->known = TN_DEVICE_KNOWS(memory_bytes) | TN_DEVICE_KNOWS(multi_processor_count);
    out->dtypes[0] = TN_F32; /* the first is the default; 0 ends the list */
    return TN_OK;
}

/* vendor: query the current memory usage. Each number states its origin. */
static tn_status device_memory(void *any, int32_t device, tn_device_memory *out, tn_error *err)
{
    state *self = any;
    int64_t in_use = atomic_load(&self->in_use);
    (void)device, (void)err;
    out->total = tn_fact_of(MEMORY, "a constant of this module");
    out->available = tn_fact_of(MEMORY - in_use, "total minus in_use");
    out->in_use = tn_fact_of(in_use, "counted by this module");
    return TN_OK;
}

/* Set either all functions of streams and events or none, as here: without them, work runs on the
 * calling thread, and an event is complete when it is recorded. */
static const tn_platform_row platform = {
    .struct_size = sizeof platform,
    .name = "@NAME@",
    .kind = TN_PLATFORM_OOT,
    .remedy = "install the driver of @NAME@",
    .probe = probe,
    .memory_alloc = memory_alloc,
    .memory_free = memory_free,
    .copy = copy,
    .device_properties = device_properties,
    .device_memory = device_memory,
};

static const tn_platform_row *const platforms[] = {&platform, NULL};

static const tn_module module = {
    .struct_size = sizeof module,
    TN_MODULE_ABI,
    .name = "@NAME@",
    .version = "0.1.0",
    .platforms = platforms,
};

/* The only exported symbol. Must not access hardware. */
tn_status tn_module_entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}
