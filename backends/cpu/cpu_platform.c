#include "cpu_module.h"

/* A cache line, and a whole vector, of any supported processor. */
enum { ALIGNMENT = 64 };

/* `self` is the host's table, which is only read: there is no other state. */
static const tn_host *host_of(const void *self)
{
    return self;
}

static tn_status probe(const tn_host *host, void **out_self, int32_t *out_devices, tn_error *err)
{
    (void)err;
    *out_self = (void *)(uintptr_t)host;
    *out_devices = 1;
    return TN_OK;
}

static tn_status read_machine(const tn_host *host, tn_machine_facts *out, tn_error *err)
{
    memset(out, 0, sizeof *out);
    out->struct_size = sizeof *out;
    return host->machine(host->self, out, err);
}

static void put_number(tn_device_properties *to, uint64_t bit, int64_t *field, int64_t value)
{
    to->known |= bit;
    *field = value;
}

static void put_fact(tn_device_properties *to, uint64_t bit, int64_t *field, const tn_fact *fact)
{
    if (fact->known)
        put_number(to, bit, field, fact->value);
}

#define PUT(to, field, value)     put_number(to, TN_DEVICE_KNOWS(field), &(to)->field, value)
#define PUT_FACT(to, field, fact) put_fact(to, TN_DEVICE_KNOWS(field), &(to)->field, fact)

/* Plain C computes with all of these; the default comes first. */
static const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_BF16, TN_F16, TN_I8,  TN_I16,  TN_I32, TN_I64,
                                  TN_U8,  TN_U16, TN_U32,  TN_U64, TN_C64, TN_C128, TN_BOOL};
TN_STATIC_ASSERT(sizeof dtypes / sizeof dtypes[0] < TN_DEVICE_DTYPES_MAX, "0 ends the list");

/* Memory is the part of the host's that this process may use. Nothing is pinned for a device that
 * computes in host memory itself. The NUMA node is reported only if there is exactly one, which the
 * system calls 0. Triton compiles for processors too. */
static tn_status device_properties(void *self, int32_t device, tn_device_properties *out,
                                   tn_error *err)
{
    tn_machine_facts facts;
    tn_status status = read_machine(host_of(self), &facts, err);
    if (status)
        return status;
    const char *name = facts.model[0] ? facts.model : facts.architecture;
    tn_text_fit(out->name, sizeof out->name, name);
    tn_text_fit(out->uuid, sizeof out->uuid, facts.uuid);
    tn_text_fit(out->architecture, sizeof out->architecture, facts.architecture);
    memcpy(out->dtypes, dtypes, sizeof dtypes);
    PUT(out, physical_index, device);
    PUT(out, is_integrated, 1);
    PUT(out, pinned_memory, 0);
    PUT(out, triton_capable, 1);
    PUT_FACT(out, memory_bytes, &facts.memory_total);
    PUT_FACT(out, multi_processor_count, &facts.cores);
    PUT_FACT(out, l2_cache_bytes, &facts.l2_cache);
    PUT_FACT(out, clock_khz, &facts.max_khz);
    if (facts.nodes.known && facts.nodes.value == 1)
        PUT(out, numa_node, 0);
    return TN_OK;
}

static tn_status device_memory(void *self, int32_t device, tn_device_memory *out, tn_error *err)
{
    tn_machine_facts facts;
    (void)device;
    tn_status status = read_machine(host_of(self), &facts, err);
    if (status)
        return status;
    out->total = facts.memory_total;
    out->available = facts.memory_available;
    out->in_use = facts.memory_in_use;
    return TN_OK;
}

static tn_status check_device(const char *where, int32_t device, tn_error *err)
{
    return device == 0 ? TN_OK
                       : tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                                 "no device cpu:%d; there is cpu:0", (int)device);
}

/* Also reports the available memory, if it is known. */
static tn_status no_memory(const tn_host *host, uint64_t bytes, tn_error *err)
{
    char left[64] = "";
    tn_machine_facts facts;
    if (read_machine(host, &facts, NULL) == TN_OK && facts.memory_available.known)
        snprintf(left, sizeof left, "; %lld are available",
                 (long long)facts.memory_available.value);
    return tn_fail(err, TN_OUT_OF_MEMORY, 0, "cpu: memory_alloc",
                   "cpu:0 has no memory for %llu bytes%s", (unsigned long long)bytes, left);
}

static tn_status memory_alloc(void *self, int32_t device, uint64_t bytes, void **out, tn_error *err)
{
    const tn_host *host = host_of(self);
    tn_status status = check_device("cpu: memory_alloc", device, err);
    if (status)
        return status;
    void *memory =
        bytes > SIZE_MAX ? NULL : host->alloc(host->self, bytes ? (size_t)bytes : 1, ALIGNMENT);
    if (!memory)
        return no_memory(host, bytes, err);
    *out = memory;
    return TN_OK;
}

static void memory_free(void *self, int32_t device, void *memory)
{
    const tn_host *host = host_of(self);
    (void)device;
    host->release(host->self, memory);
}

/* Bytes from the start of the first row to the end of the last; 0 on overflow or if a row exceeds
 * the pitch. */
static uint64_t span(const tn_copy_job *job, uint64_t pitch)
{
    uint64_t more = job->rows - 1;
    if (more > 0 && (pitch < job->bytes || pitch > (SIZE_MAX - job->bytes) / more))
        return 0;
    return more * pitch + job->bytes;
}

static tn_status check_job(const char *where, const tn_copy_job *job, tn_error *err)
{
    const char *fault = !job->to                          ? "to NULL"
                        : !job->from                      ? "from NULL"
                        : job->bytes > SIZE_MAX           ? "are more than there are addresses"
                        : span(job, job->to_pitch) == 0   ? "a row do not fit its to_pitch"
                        : span(job, job->from_pitch) == 0 ? "a row do not fit its from_pitch"
                                                          : NULL;
    return fault ? tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%llu bytes %s",
                           (unsigned long long)job->bytes, fault)
                 : TN_OK;
}

/* Both sides are host memory. */
static tn_status copy(void *self, const tn_copy_job *job, tn_error *err)
{
    static const char where[] = "cpu: copy";
    (void)self;
    if (job->to_device > 0 || job->from_device > 0)
        return check_device(where, job->to_device > 0 ? job->to_device : job->from_device, err);
    if (job->stream)
        return tn_fail(
            err, TN_UNSUPPORTED, 0, where,
            "cpu:0 has no streams of its own; NULL is accepted and runs on the caller's thread");
    if (job->bytes == 0 || job->rows == 0)
        return TN_OK;
    tn_status status = check_job(where, job, err);
    for (uint64_t row = 0; !status && row < job->rows; row++)
        memmove((char *)job->to + row * job->to_pitch,
                (const char *)job->from + row * job->from_pitch, (size_t)job->bytes);
    return status;
}

static tn_status topology(void *self, const tn_topology_sink *sink, tn_error *err)
{
    return tni_cpu_module_topology(host_of(self), sink, err);
}

const tn_platform_row tni_cpu_module_platform = {
    .struct_size = sizeof tni_cpu_module_platform,
    .name = "cpu",
    .kind = TN_PLATFORM_CPU,
    .flags = TN_PLATFORM_FORK_SAFE,
    .probe = probe,
    .memory_alloc = memory_alloc,
    .memory_free = memory_free,
    .copy = copy,
    .device_name = "CPU",
    .visible_variable = "",
    .async_output_reason = "work runs in order on the caller's thread, so that a result is there "
                           "before later work begins",
    .device_properties = device_properties,
    .device_memory = device_memory,
    .topology = topology,
};
