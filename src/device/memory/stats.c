/* Statistics of a device's memory, and its limit. */
#include "base/alloc.h"
#include "base/checked.h"
#include "memory.h"

bool tni_memory_reserve(tni_memory *memory, int64_t bytes, int64_t *out_sum)
{
    int64_t limit = atomic_load(&memory->limit), sum;
    int64_t held = atomic_load_explicit(&memory->current, memory_order_relaxed);
    do {
        if (!tni_add_i64(held, bytes, &sum) || (limit > 0 && bytes > 0 && sum > limit))
            return false;
    } while (!atomic_compare_exchange_weak(&memory->current, &held, sum));
    *out_sum = sum;
    return true;
}

void tni_memory_unreserve(tni_memory *memory, int64_t bytes)
{
    atomic_fetch_sub_explicit(&memory->current, bytes, memory_order_relaxed);
}

void tni_memory_peak(tni_memory *memory, int64_t sum)
{
    int64_t peak = atomic_load(&memory->peak);
    while (sum > peak && !atomic_compare_exchange_weak(&memory->peak, &peak, sum))
        continue;
}

/* Stores first and compares afterwards, in case a concurrent allocation saw the old peak. */
void tn_memory_peak_reset(tn_device *device)
{
    tni_memory *memory = device ? tni_memory_so_far(device) : NULL;
    if (!memory)
        return;
    atomic_store(&memory->peak, atomic_load(&memory->current));
    tni_memory_peak(memory, atomic_load(&memory->current));
}

static tn_memory_stats read_stats(const tni_memory *memory)
{
    tn_memory_stats read = {.current = atomic_load(&memory->current),
                            .peak = atomic_load(&memory->peak),
                            .kept = tni_keep_bytes(memory),
                            .host = atomic_load(&memory->host),
                            .limit = atomic_load(&memory->limit),
                            .failures = atomic_load(&memory->failures),
                            .wrong_frees = atomic_load(&memory->wrong_frees)};
    for (size_t i = 0; i < TNI_SHELVES; i++) {
        read.count += atomic_load(&memory->shelves[i].count);
        read.allocations += atomic_load(&memory->shelves[i].allocations);
    }
    if (read.peak < read.current) /* an allocation is about to update it */
        read.peak = read.current;
    return read;
}

tn_status tn_memory_stats_get(const tn_device *device, tn_memory_stats *out, tn_error *err)
{
    static const char where[] = "tn_memory_stats_get";
    if (!device || !out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s is NULL", device ? "out" : "device");
    if (!TN_HAS(out, tn_memory_stats, wrong_frees))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "out->struct_size: expected at least %zu, got %zu",
                       TN_UP_TO(tn_memory_stats, wrong_frees), out->struct_size);
    const tni_memory *memory = tni_memory_so_far(device);
    tn_memory_stats read = memory ? read_stats(memory) : (tn_memory_stats){0};
    read.struct_size = out->struct_size;
    *out = read;
    return TN_OK;
}

/* Kept blocks count against the limit too: they are released if they would exceed it. */
tn_status tn_memory_limit_set(tn_device *device, int64_t bytes, tn_error *err)
{
    static const char where[] = "tn_memory_limit_set";
    if (!device)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "the device is NULL");
    if (bytes < 0)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "a limit: expected 0 (none) or more bytes, got %lld", (long long)bytes);
    tni_memory *memory = tni_memory_of(device);
    if (!memory)
        return tni_no_memory(err, where, "the memory accounting of a device");
    atomic_store(&memory->limit, bytes);
    if (bytes > 0 && atomic_load(&memory->current) + tni_keep_bytes(memory) > bytes)
        tn_memory_trim(device);
    return TN_OK;
}

void tn_memory_trim(tn_device *device)
{
    tni_call call;
    tni_memory *memory = device ? tni_memory_so_far(device) : NULL;
    if (!memory)
        return;
    bool usable = tni_device_open_to_return(device, &call);
    tni_keep_trim(memory, usable ? &call : NULL);
    tni_stage_trim(memory, usable ? &call : NULL);
    if (usable && call.row->memory_trim)
        call.row->memory_trim(call.self, call.device);
}
