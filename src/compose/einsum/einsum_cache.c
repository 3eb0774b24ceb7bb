/* Equations and orders of repeated calls, by everything that they depend on. */
#include "einsum.h"

#include "base/epoch.h"
#include "device/tensor/tensor.h"
#include "dispatch/judge.h"
#include "op/element.h"
#include "os/fork.h"

#include <string.h>

enum { SLOTS = 64 };

/* A plan of a slot; another one with the same hash takes its place. */
static struct {
    tni_fork_lock lock;
    tni_einsum_plan *plans[SLOTS];
} cache = {.lock = {TNI_FORK_LOCK_INIT}};

/* `from` may be NULL if `size` is 0: a scalar may have no shape. */
static void add(tni_einsum_key *key, const void *from, size_t size)
{
    key->fits = key->fits && size <= sizeof key->bytes - key->size;
    if (!key->fits || size == 0)
        return;
    memcpy(key->bytes + key->size, from, size);
    key->size += size;
}

static void add_number(tni_einsum_key *key, int64_t number)
{
    add(key, &number, sizeof number);
}

static void add_layout(tni_einsum_key *key, const tn_tensor *tensor)
{
    const size_t bytes = (size_t)tensor->ndim * sizeof *tensor->shape;
    add_number(key, tensor->strides ? tensor->ndim : -1 - tensor->ndim);
    add(key, tensor->shape, bytes);
    if (tensor->strides)
        add(key, tensor->strides, bytes);
}

/* What the choice of kernels depends on, which decides which products are computed by parts. */
static void add_choice(tni_einsum_key *key, const tn_context *context)
{
    add_number(key, (int64_t)tni_context_hash(context, &tni_matmul_class));
    add_number(key, (int64_t)tni_context_hash(context, &tni_binary_class));
    add_number(key, (int64_t)tni_epoch_now());
}

void tni_einsum_key_make(const tn_context *context, const tn_einsum_args *args, int32_t strategy,
                         const tn_tensor *tensors, tni_einsum_key *out)
{
    out->size = 0;
    out->fits = !args->search_ns;
    add(out, args->equation, strlen(args->equation) + 1);
    add_number(out, args->count);
    add_number(out, strategy);
    if (tni_dtype_is_complex(tensors[0].dtype))
        add_choice(out, context);
    add_number(out, (int64_t)args->seed);
    add_number(out, (int64_t)args->memory_limit);
    add_number(out, args->path ? args->path_count : -1);
    if (args->path && args->path_count > 0)
        add(out, args->path, 2 * (size_t)args->path_count * sizeof *args->path);
    add_number(out, tensors[0].dtype);
    add_number(out, tensors[0].device_type);
    add_number(out, tensors[0].device_id);
    for (int32_t i = 0; i <= args->count && out->fits; i++)
        add_layout(out, &tensors[i]);
}

static size_t slot_of(const tni_einsum_key *key)
{
    uint64_t hash = 0, word;
    size_t at = 0;
    for (; at + sizeof word <= key->size; at += sizeof word) {
        memcpy(&word, key->bytes + at, sizeof word);
        hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 32;
    }
    for (; at < key->size; at++)
        hash = (hash ^ key->bytes[at]) * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(hash >> 40) % SLOTS;
}

tni_einsum_plan *tni_einsum_plan_find(const tni_einsum_key *key)
{
    if (!key->fits)
        return NULL;
    const size_t slot = slot_of(key);
    tni_fork_lock_acquire(&cache.lock);
    tni_einsum_plan *found = cache.plans[slot];
    if (found && (found->key_size != key->size || memcmp(found->key, key->bytes, key->size) != 0))
        found = NULL;
    if (found)
        found->users++;
    tni_fork_lock_release(&cache.lock);
    return found;
}

void tni_einsum_plan_release(tni_einsum_plan *plan)
{
    if (!plan)
        return;
    tni_fork_lock_acquire(&cache.lock);
    const bool last = --plan->users == 0;
    tni_fork_lock_release(&cache.lock);
    if (!last)
        return;
    tni_einsum_release(&plan->sum);
    tni_einsum_order_release(&plan->order);
    tni_release(plan->parts);
    tni_release(plan);
}

tni_einsum_plan *tni_einsum_plan_keep(const tni_einsum_key *key, const tni_einsum_plan *from)
{
    const size_t indices = (size_t)from->sum.indices;
    tni_einsum_plan *made = key->fits ? tni_alloc(sizeof *made + key->size) : NULL;
    int64_t *copy = made && from->parts ? tni_alloc((indices + 1) * sizeof *copy) : NULL;
    if (!made || (from->parts && !copy)) {
        tni_release(made);
        return NULL;
    }
    if (copy)
        memcpy(copy, from->parts, indices * sizeof *copy);
    const size_t slot = slot_of(key);
    *made = *from;
    made->parts = copy;
    made->users = 2;
    made->key_size = key->size;
    memcpy(made->key, key->bytes, key->size);
    tni_fork_lock_acquire(&cache.lock);
    tni_einsum_plan *before = cache.plans[slot];
    cache.plans[slot] = made;
    tni_fork_lock_release(&cache.lock);
    tni_einsum_plan_release(before);
    return made;
}
