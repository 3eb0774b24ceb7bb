/* Memory and copies: host memory, counted and limited, with the failures that the description asks
 * for. */
#include "described.h"

enum { ALIGN = 256 };

typedef unsigned long long ull;

/* Counts an operation; *out_number is its number among its kind. Fails if the device was lost
 * before or is lost by this operation. */
static tn_status count_operation(described_device *device, const char *what, uint64_t bytes,
                                 int64_t *counter, int64_t *out_number, tn_error *err)
{
    described_lock(&device->guard);
    int64_t after = device->behaviour.lose_after;
    int64_t operation = ++device->operations;
    int64_t number = ++*counter;
    if (after && operation >= after && !device->lost[0])
        snprintf(device->lost, sizeof device->lost, "operation %lld, %s of %llu bytes",
                 (long long)operation, what, (ull)bytes);
    bool lost = device->lost[0] != '\0';
    described_unlock(&device->guard);
    if (lost)
        return described_lost(device, err);
    *out_number = number;
    return TN_OK;
}

/* Reserves `bytes` of the device's memory, if they are available. */
static tn_status reserve(described_device *device, uint64_t bytes, tn_error *err)
{
    bool bounded = device->properties.known & TN_DEVICE_KNOWS(memory_bytes);
    uint64_t total = bounded ? (uint64_t)device->properties.memory_bytes : INT64_MAX;
    described_lock(&device->guard);
    uint64_t left = total - device->in_use;
    bool fits = bytes <= left;
    if (fits)
        device->in_use += bytes;
    described_unlock(&device->guard);
    if (fits)
        return TN_OK;
    return tn_fail(err, TN_OUT_OF_MEMORY, 0, "described: memory",
                   "described:%d cannot allocate %llu bytes: %llu of %llu are free",
                   (int)device->index, (ull)bytes, (ull)left, (ull)total);
}

static void release_bytes(described_device *device, uint64_t bytes)
{
    described_lock(&device->guard);
    device->in_use -= bytes;
    described_unlock(&device->guard);
}

/* Allocates the block and its memory separately, so that a memory checker sees where the memory
 * ends. */
static described_block *create_block(const tn_host *host, uint64_t bytes)
{
    size_t size = (size_t)bytes;
    described_block *block = host->alloc(host->self, sizeof *block, _Alignof(described_block));
    if (!block)
        return NULL;
    block->bytes = bytes;
    block->memory = size == bytes ? host->alloc(host->self, size, ALIGN) : NULL;
    if (!block->memory) {
        host->release(host->self, block);
        return NULL;
    }
    return block;
}

tn_status described_alloc(void *opaque, int32_t index, uint64_t bytes, void **out, tn_error *err)
{
    described *self = opaque;
    described_device *device = NULL;
    int64_t number = 0;
    tn_status status = described_find(self, index, &device, err);
    if (!status)
        status =
            count_operation(device, "an allocation", bytes, &device->allocations, &number, err);
    if (status)
        return status;
    if (number == device->behaviour.fail_alloc)
        return tn_fail(
            err, TN_OUT_OF_MEMORY, 0, "described: memory",
            "described:%d cannot allocate %llu bytes: allocation %lld is described to fail",
            (int)index, (ull)bytes, (long long)number);
    status = reserve(device, bytes, err);
    if (status)
        return status;
    described_block *block = create_block(self->host, bytes);
    if (!block) {
        release_bytes(device, bytes);
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "described: memory",
                       "the host cannot allocate %llu bytes for described:%d", (ull)bytes,
                       (int)index);
    }
    described_lock(&device->guard);
    block->next = device->blocks;
    device->blocks = block;
    described_unlock(&device->guard);
    *out = block->memory;
    return TN_OK;
}

/* Removes the block that begins at `memory` from the device; returns NULL if none exists. */
static described_block *remove_block(described_device *device, const void *memory)
{
    described_lock(&device->guard);
    described_block **at = &device->blocks, *block;
    while (*at && (*at)->memory != memory)
        at = &(*at)->next;
    block = *at;
    if (block) {
        *at = block->next;
        device->in_use -= block->bytes;
    }
    described_unlock(&device->guard);
    return block;
}

void described_free(void *opaque, int32_t index, void *memory)
{
    described *self = opaque;
    const tn_host *host = self->host;
    described_device *device = NULL;
    if (!memory)
        return;
    bool known = described_find(self, index, &device, NULL) == TN_OK;
    described_block *block = known ? remove_block(device, memory) : NULL;
    if (!block) {
        char text[96];
        snprintf(text, sizeof text, "described:%d: cannot free memory of another device",
                 (int)index);
        host->log(host->self, TN_LOG_ERROR, text);
        return;
    }
    host->release(host->self, block->memory);
    host->release(host->self, block);
}

/* Whether the whole range is in one block of the device. An address before a block gives a huge
 * offset, because the subtraction is unsigned. */
static bool owns(described_device *device, const void *memory, uint64_t bytes)
{
    bool inside = false;
    described_lock(&device->guard);
    for (const described_block *block = device->blocks; block && !inside; block = block->next) {
        uintptr_t offset = (uintptr_t)memory - (uintptr_t)block->memory;
        inside = offset <= block->bytes && bytes <= block->bytes - offset;
    }
    described_unlock(&device->guard);
    return inside;
}

/* One end of a copy. `device` is NULL for host memory. */
typedef struct end {
    described_device *device;
    int64_t number; /* number of this copy on the device */
} end;

static tn_status find_end(described *self, int32_t index, const void *memory, uint64_t bytes,
                          end *out, tn_error *err)
{
    if (index < 0)
        return TN_OK;
    tn_status status = described_find(self, index, &out->device, err);
    if (!status && !owns(out->device, memory, bytes))
        status = tn_fail(err, TN_INVALID_ARGUMENT, 0, "described: copy",
                         "%llu bytes of a copy are outside of any allocation of described:%d",
                         (ull)bytes, (int)index);
    return status;
}

static tn_status begin_copy(end *at, uint64_t bytes, tn_error *err)
{
    described_device *device = at->device;
    if (!device)
        return TN_OK;
    tn_status status = count_operation(device, "a copy", bytes, &device->copies, &at->number, err);
    if (!status && at->number == device->behaviour.fail_copy)
        status = tn_fail(err, TN_IO, 0, "described: copy",
                         "a copy of %llu bytes failed: copy %lld of described:%d is described to",
                         (ull)bytes, (long long)at->number, (int)device->index);
    return status;
}

static int64_t stall(const end *at)
{
    return at->device ? at->device->behaviour.stall_copy : 0;
}

static bool is_falsified(const end *at)
{
    return at->device && at->number == at->device->behaviour.lie_copy;
}

/* Bytes from the start of the first row to the end of the last: they must be within one allocation.
 * Returns false if the job is invalid or overflows. */
static bool span(const tn_copy_job *job, uint64_t pitch, uint64_t *out)
{
    uint64_t more = job->rows - 1;
    if (job->bytes > SIZE_MAX ||
        (more > 0 && (pitch < job->bytes || pitch > (SIZE_MAX - job->bytes) / more)))
        return false;
    *out = more * pitch + job->bytes;
    return true;
}

/* Finds both ends. If both are on the same device, only `to` keeps it, so that the copy counts
 * once. */
static tn_status find_ends(described *self, const tn_copy_job *job, end *to, end *from,
                           tn_error *err)
{
    uint64_t to_span = 0, from_span = 0;
    if (!span(job, job->to_pitch, &to_span) || !span(job, job->from_pitch, &from_span))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "described: copy",
                       "%llu rows of %llu bytes, %llu and %llu apart, cannot be", (ull)job->rows,
                       (ull)job->bytes, (ull)job->to_pitch, (ull)job->from_pitch);
    tn_status status = find_end(self, job->to_device, job->to, to_span, to, err);
    if (!status)
        status = find_end(self, job->from_device, job->from, from_span, from, err);
    if (from->device == to->device)
        from->device = NULL;
    return status;
}

static void copy_rows(const tn_copy_job *job)
{
    for (uint64_t row = 0; row < job->rows; row++)
        memmove((char *)job->to + row * job->to_pitch,
                (const char *)job->from + row * job->from_pitch, (size_t)job->bytes);
}

/* Applies the behaviour of the device at each end. */
tn_status described_copy(void *opaque, const tn_copy_job *job, tn_error *err)
{
    end to = {0}, from = {0};
    if (job->rows == 0)
        return TN_OK;
    tn_status status = find_ends(opaque, job, &to, &from, err);
    if (!status)
        status = begin_copy(&to, job->rows * job->bytes, err);
    if (!status)
        status = begin_copy(&from, job->rows * job->bytes, err);
    if (status)
        return status;
    described_pause(stall(&to) > stall(&from) ? stall(&to) : stall(&from));
    if (job->bytes == 0)
        return TN_OK;
    copy_rows(job);
    if (is_falsified(&to) || is_falsified(&from))
        ((unsigned char *)job->to)[job->rows / 2 * job->to_pitch + job->bytes / 2] ^= 0xff;
    return TN_OK;
}
