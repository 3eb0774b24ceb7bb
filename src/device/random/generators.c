#include "generators.h"

#include "base/alloc.h"
#include "os/fork.h"
#include "os/thread.h"

/* `previous` is NULL unless the core created the generator. */
struct tn_generator {
    tn_generator_state state;
    tn_generator *next, *previous;
};

/* One lock for all generators, as it is held for a few instructions and never together with
 * another: a fork waits for one lock only, and all are seeded at one moment. The default generator
 * is the head of the ring of those that tn_seed_everything reaches. */
static tni_fork_lock guard = {TNI_FORK_LOCK_INIT};
static tn_generator head = {
    .state = {sizeof(tn_generator_state), TN_SEED_DEFAULT, 0, 0}, .next = &head, .previous = &head};
static uint64_t last_seed = TN_SEED_DEFAULT;

static void seed_one(tn_generator *generator, uint64_t seed)
{
    generator->state.seed = seed;
    generator->state.offset = 0;
}

static tn_generator *create_generator(uint64_t seed, uint64_t subsequence)
{
    tn_generator *generator = tni_alloc_zeroed(1, sizeof *generator);
    if (generator)
        generator->state =
            (tn_generator_state){sizeof generator->state, seed, subsequence, .offset = 0};
    return generator;
}

tn_status tn_generator_create(uint64_t seed, tn_generator **out, tn_error *err)
{
    const char *where = "tn_generator_create";
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "out is NULL");
    tn_generator *generator = create_generator(seed, 0);
    if (!generator)
        return tni_no_memory(err, where, "a generator");
    *out = generator;
    return TN_OK;
}

tn_status tni_generators_add(uint64_t subsequence, tn_generator **out, tn_error *err)
{
    tn_generator *generator = create_generator(TN_SEED_DEFAULT, subsequence);
    if (!generator)
        return tni_no_memory(err, "generators", "a device's generator");
    tni_fork_lock_acquire(&guard);
    generator->state.seed = last_seed;
    generator->next = &head;
    generator->previous = head.previous;
    head.previous->next = generator;
    head.previous = generator;
    tni_fork_lock_release(&guard);
    *out = generator;
    return TN_OK;
}

void tn_generator_release(tn_generator *generator)
{
    if (!generator)
        return;
    tni_fork_lock_acquire(&guard);
    if (generator->previous) {
        generator->previous->next = generator->next;
        generator->next->previous = generator->previous;
    }
    tni_fork_lock_release(&guard);
    tni_release(generator);
}

void tn_generator_seed(tn_generator *generator, uint64_t seed)
{
    tni_fork_lock_acquire(&guard);
    seed_one(generator ? generator : &head, seed);
    tni_fork_lock_release(&guard);
}

tn_status tn_seed_everything(uint64_t seed, tn_error *err)
{
    (void)err; /* cannot fail so far */
    tni_fork_lock_acquire(&guard);
    last_seed = seed;
    seed_one(&head, seed);
    for (tn_generator *generator = head.next; generator != &head; generator = generator->next)
        seed_one(generator, seed);
    tni_fork_lock_release(&guard);
    return TN_OK;
}

static tn_status check_state(const tn_generator_state *state, const char *where, const char *name,
                             tn_error *err)
{
    if (!state)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s is NULL", name);
    if (!TN_HAS(state, tn_generator_state, offset))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "%s->struct_size: expected at least %zu, got %zu", name,
                       TN_UP_TO(tn_generator_state, offset), state->struct_size);
    return TN_OK;
}

tn_status tn_generator_state_get(const tn_generator *generator, tn_generator_state *out,
                                 tn_error *err)
{
    tn_status status = check_state(out, "tn_generator_state_get", "out", err);
    if (status)
        return status;
    tni_fork_lock_acquire(&guard);
    *out = (generator ? generator : &head)->state;
    tni_fork_lock_release(&guard);
    return TN_OK;
}

tn_status tn_generator_state_set(tn_generator *generator, const tn_generator_state *state,
                                 tn_error *err)
{
    tn_status status = check_state(state, "tn_generator_state_set", "state", err);
    if (status)
        return status;
    tni_fork_lock_acquire(&guard);
    tn_generator_state *own = &(generator ? generator : &head)->state;
    own->seed = state->seed;
    own->subsequence = state->subsequence;
    own->offset = state->offset;
    tni_fork_lock_release(&guard);
    return TN_OK;
}

tn_generator_state tni_generators_advance(tn_generator *generator, uint64_t blocks)
{
    tni_fork_lock_acquire(&guard);
    tn_generator_state *own = &(generator ? generator : &head)->state;
    tn_generator_state taken = *own;
    own->offset += blocks;
    tni_fork_lock_release(&guard);
    return taken;
}
