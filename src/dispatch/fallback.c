/* Did anything fall back? Counted when a plan is made. */
#include "base/log.h"
#include "dispatch/attention/wish.h"
#include "os/fork.h"
#include "os/thread.h"
#include "plan.h"

static struct {
    tni_mutex lock;
    tn_fallbacks counts;
} fallen = {.lock = TNI_MUTEX_INIT};
static tni_once watched = TNI_ONCE_INIT;

static void lock(void)
{
    tni_mutex_lock(&fallen.lock);
}

static void unlock(void)
{
    tni_mutex_unlock(&fallen.lock);
}

static void watch(void)
{
    static const tni_fork_hook hook = {lock, unlock, unlock};
    tni_fork_watch(&hook);
}

/* Would have come before what was chosen, had it not been refused. */
static bool was_first(const tni_contender *refused, const tni_contender *chosen)
{
    return refused->why.code != TN_REFUSE_NONE && refused->predicted_us < chosen->predicted_us;
}

/* By what is preferred, were it not refused. */
static bool comes_before(const tni_contender *refused, const tni_contender *chosen)
{
    const tni_judgement *a = &refused->judged, *b = &chosen->judged;
    if (b->order != TNI_JUDGED_PREFERRED || a->wished != b->wished)
        return b->order != TNI_JUDGED_PREFERRED || a->wished;
    return a->rank < b->rank || (a->rank == b->rank && a->member_rank < b->member_rank);
}

static void look_at(const tni_contender *v, const tni_contender *chosen, tn_fallbacks *out)
{
    int32_t code = v->why.code;
    if (code == TN_REFUSE_NONE)
        return;
    bool preferred = v->judged.order == TNI_JUDGED_PREFERRED && comes_before(v, chosen);
    out->preferred |= preferred;
    if (!preferred && !was_first(v, chosen))
        return;
    out->unavailable |=
        code == TN_REFUSE_LIBRARY || code == TN_REFUSE_DEVICE || code == TN_REFUSE_BUSY;
    out->quarantined |= code == TN_REFUSE_QUARANTINE || code == TN_REFUSE_KNOWN_BAD;
}

/* What one choice fell back from, each 0 or 1. */
static void look(const tni_choice *choice, size_t chosen, tn_fallbacks *out)
{
    const tni_contender *taken = &choice->candidates[chosen];
    *out = (tn_fallbacks){.avoided = taken->judged.order == TNI_JUDGED_AVOIDED};
    for (size_t i = 0; i < choice->count; i++) {
        if (i != chosen)
            look_at(&choice->candidates[i], taken, out);
    }
    out->reference = taken->kernel->reference && choice->count > 1 && choice->admitted == 1;
}

/* A backend that attention.backend prefers may have no kernel here that could have been refused. */
static bool passes_wish(const tni_question *question, const tni_contender *taken)
{
    tni_backend_wish wish;
    if (!tn_op_attention(question->op))
        return false;
    tni_backend_wished(question->context, &wish);
    return wish.strength == TN_PREFER && taken->judged.order != TNI_JUDGED_PREFERRED;
}

void tni_fallback_count(const tni_question *question, const tni_choice *choice, size_t chosen)
{
    const tni_kernel *kernel = choice->candidates[chosen].kernel;
    tn_fallbacks found;
    tni_buffer text = {0};
    look(choice, chosen, &found);
    found.preferred |= passes_wish(question, &choice->candidates[chosen]);
    if (!(found.preferred | found.avoided | found.unavailable | found.quarantined |
          found.reference))
        return;
    tni_problem_write(question->op, question->device->id, &text);
    tni_once_run(&watched, watch);
    lock();
    fallen.counts.preferred += found.preferred;
    fallen.counts.avoided += found.avoided;
    fallen.counts.unavailable += found.unavailable;
    fallen.counts.quarantined += found.quarantined;
    fallen.counts.reference += found.reference;
    snprintf(fallen.counts.last, sizeof fallen.counts.last, "%s took %s", tni_buffer_text(&text),
             kernel->row->name);
    unlock();
    tni_log(TN_LOG_INFO, "fell back: %s took %s", tni_buffer_text(&text), kernel->row->name);
    tni_buffer_release(&text);
}

tn_status tn_fallbacks_get(tn_fallbacks *out, tn_error *err)
{
    if (!out || !TN_HAS(out, tn_fallbacks, last))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_fallbacks_get",
                       "out is NULL, or its struct_size too small");
    size_t size = out->struct_size;
    lock();
    *out = fallen.counts;
    unlock();
    out->struct_size = size;
    return TN_OK;
}

void tn_fallbacks_reset(void)
{
    lock();
    fallen.counts = (tn_fallbacks){0};
    unlock();
}
