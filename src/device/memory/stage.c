/* Host staging buffers, for copies that no platform can do directly. */
#include "base/alloc.h"
#include "memory.h"

/* A reset released all memory pinned before it. */
static bool is_gone(const tni_memory *memory, const tni_stage *stage)
{
    return stage->pinned && stage->epoch != atomic_load(&memory->epoch);
}

static void destroy_stage(const tni_memory *memory, tni_stage *stage, const tni_call *call)
{
    if (!stage->pinned)
        tni_release(stage->bytes);
    else if (call && !is_gone(memory, stage))
        call->row->host_free(call->self, call->device, stage->bytes);
    tni_release(stage);
}

/* Pinned memory, or NULL if the platform has none now. */
static char *alloc_pinned(const tni_call *call, const char *where)
{
    void *bytes = NULL;
    tn_error said = {0};
    if (!call->row->host_alloc)
        return NULL;
    tn_status status =
        call->row->host_alloc(call->self, call->device, TNI_STAGE_BYTES, &bytes, &said);
    return tni_device_result_check(call, where, status, &said, NULL) ? NULL : bytes;
}

static tni_stage *create_stage(const tni_memory *memory, const tni_call *call, const char *where)
{
    tni_stage *stage = tni_alloc(sizeof *stage);
    if (!stage)
        return NULL;
    stage->epoch = atomic_load(&memory->epoch);
    stage->bytes = alloc_pinned(call, where);
    stage->pinned = stage->bytes != NULL;
    if (is_gone(memory, stage))
        stage->pinned = false;
    if (!stage->pinned)
        stage->bytes = tni_alloc_aligned(TNI_STAGE_BYTES, TNI_ALIGNMENT);
    if (!stage->bytes) {
        tni_release(stage);
        return NULL;
    }
    return stage;
}

tni_stage *tni_stage_acquire(tn_device *device, const tni_call *call, const char *where)
{
    tni_memory *memory = tni_memory_of(device);
    if (!memory)
        return NULL;
    tni_stage *stage = atomic_exchange(&memory->stage, NULL);
    if (stage && !is_gone(memory, stage))
        return stage;
    if (stage)
        destroy_stage(memory, stage, NULL);
    return create_stage(memory, call, where);
}

void tni_stage_release(tn_device *device, tni_stage *stage)
{
    tni_call call;
    tni_stage *none = NULL;
    tni_memory *memory = tni_memory_so_far(device);
    bool usable = tni_device_open_to_return(device, &call);
    if (!atomic_compare_exchange_strong(&memory->stage, &none, stage))
        destroy_stage(memory, stage, usable ? &call : NULL);
    if (tni_offer_is_withdrawn(device->offer))
        tni_stage_trim(memory, usable ? &call : NULL);
}

void tni_stage_leave(tn_device *device, tni_stage *stage)
{
    tni_memory *memory = tni_memory_so_far(device);
    stage->next = atomic_load(&memory->left);
    while (!atomic_compare_exchange_weak(&memory->left, &stage->next, stage))
        ;
}

void tni_stage_trim(tni_memory *memory, const tni_call *call)
{
    tni_stage *stage = atomic_exchange(&memory->stage, NULL);
    if (stage)
        destroy_stage(memory, stage, call);
}

void tni_stage_end(tni_memory *memory, const tni_call *call)
{
    tni_stage_trim(memory, call);
    for (tni_stage *stage = atomic_exchange(&memory->left, NULL), *next; stage; stage = next) {
        next = stage->next;
        destroy_stage(memory, stage, call);
    }
}
