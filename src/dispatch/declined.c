#include "declined.h"

#include "judge.h"
#include "os/fork.h"
#include "os/thread.h"

/* A problem, identified by two hashes of its plan key. */
typedef struct declined {
    const tni_kernel *kernel;
    const tn_device *device;
    uint64_t hash, other;
    char text[sizeof((tn_refusal *)0)->text];
} declined;

enum { KEPT = 64 };
static const char declined_what[] = "plan";

static struct {
    tni_fork_lock lock;
    _Atomic size_t count; /* number of entries ever added; the latest KEPT are stored */
    declined kept[KEPT];
} list = {.lock = {TNI_FORK_LOCK_INIT}};

/* Must be called with the lock held. Returns NULL if none exists. */
static declined *find_declined(const tni_state *state)
{
    const uint64_t other = tni_hash_words(state->key, state->key_count);
    const size_t count = atomic_load_explicit(&list.count, memory_order_relaxed);
    for (size_t i = 0; i < count && i < KEPT; i++) {
        declined *it = &list.kept[i];
        if (it->kernel == state->kernel && it->device == state->device && it->hash == state->hash &&
            it->other == other)
            return it;
    }
    return NULL;
}

void tni_declined_note(const tni_state *state, const char *text)
{
    tni_fork_lock_acquire(&list.lock);
    declined *to = find_declined(state);
    if (!to) {
        to = &list.kept[atomic_load_explicit(&list.count, memory_order_relaxed) % KEPT];
        atomic_fetch_add_explicit(&list.count, 1, memory_order_release);
    }
    to->kernel = state->kernel;
    to->device = state->device;
    to->hash = state->hash;
    to->other = tni_hash_words(state->key, state->key_count);
    tn_text_fit(to->text, sizeof to->text, text);
    tni_fork_lock_release(&list.lock);
}

bool tni_declined_any(void)
{
    return atomic_load_explicit(&list.count, memory_order_acquire) > 0;
}

bool tni_declined_find(const tni_state *state, tn_refusal *why)
{
    tni_fork_lock_acquire(&list.lock);
    const declined *found = find_declined(state);
    if (found)
        (void)tni_refuse(why, TN_REFUSE_OTHER, declined_what, 1, 0, "%s", found->text);
    tni_fork_lock_release(&list.lock);
    return found != NULL;
}

bool tni_is_declined(const tn_refusal *why)
{
    return why->code == TN_REFUSE_OTHER && strcmp(why->what, declined_what) == 0;
}
