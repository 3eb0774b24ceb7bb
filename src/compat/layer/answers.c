#include "answers.h"

#include "device/stream/epoch.h"
#include "dispatch/judge.h"
#include "os/cpu.h"
#include "os/fork.h"
#include "os/thread.h"

enum { PLACES = 64 };

static struct {
    tni_fork_lock lock;
    struct {
        tni_answer_key key;
        tn_attention_choice choice; /* struct_size 0: empty */
    } places[PLACES];
} kept = {.lock = {TNI_FORK_LOCK_INIT}};

static uint64_t pack_pair(int32_t a, int32_t b)
{
    return (uint64_t)(uint32_t)a << 32 | (uint32_t)b;
}

/* Returns a bit for each supported backend; all bits if the layer has no list. */
static uint64_t supported_by(const tn_attention_backend_args *args)
{
    uint64_t bits = 0;
    if (!args->supported)
        return UINT64_MAX;
    for (size_t i = 0; i < args->supported_count; i++)
        bits |= UINT64_C(1) << args->supported[i];
    return bits;
}

void tni_answer_key_make(const tn_context *context, const tn_device *device,
                         const tn_attention_backend_args *args, tni_answer_key *out)
{
    uint64_t dropout;
    memcpy(&dropout, &args->dropout, sizeof dropout);
    *out = (tni_answer_key){{
        pack_pair(device->ordinal, (int32_t)tni_device_epoch(device)),
        tni_context_hash(context, &tni_attention_class),
        tni_dispatch_generation(),
        tni_cpu_stamp(),
        supported_by(args),
        (uint64_t)args->head_size,
        (uint64_t)args->value_size,
        (uint64_t)args->heads,
        (uint64_t)args->groups,
        (uint64_t)args->batch,
        (uint64_t)args->queries,
        (uint64_t)args->keys,
        (uint64_t)args->window_left,
        (uint64_t)args->window_right,
        dropout,
        (uint64_t)args->dtype << 32 | args->mask_dtype,
        pack_pair(args->mask, args->training),
        pack_pair(args->backend, args->strength),
        (uint64_t)args->layer_default,
    }};
}

static size_t place_of(const tni_answer_key *key)
{
    return (size_t)(tni_hash_words(key->words, TNI_ANSWER_WORDS) % PLACES);
}

bool tni_answer_find(const tni_answer_key *key, tn_attention_choice *out)
{
    size_t i = place_of(key), size = out->struct_size;
    tni_fork_lock_acquire(&kept.lock);
    bool found =
        kept.places[i].choice.struct_size > 0 && memcmp(&kept.places[i].key, key, sizeof *key) == 0;
    if (found)
        *out = kept.places[i].choice;
    tni_fork_lock_release(&kept.lock);
    out->struct_size = size;
    return found;
}

void tni_answer_keep(const tni_answer_key *key, const tn_attention_choice *choice)
{
    size_t i = place_of(key);
    tni_fork_lock_acquire(&kept.lock);
    kept.places[i].key = *key;
    kept.places[i].choice = *choice;
    tni_fork_lock_release(&kept.lock);
}
