#include "attention_share.h"

#include <stdatomic.h>

typedef struct shift {
    tni_at_item *item;
    void *user;
    int64_t count;
    _Atomic int64_t next;
} shift;

static void slot_task(void *user, int64_t slot)
{
    shift *s = user;
    for (;;) {
        const int64_t item = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed);
        if (item >= s->count)
            return;
        s->item(s->user, item, slot);
    }
}

void tni_at_share(const tn_run *run, int64_t slots, int64_t count, tni_at_item *item, void *user)
{
    shift s = {.item = item, .user = user, .count = count};
    slots = slots < count ? slots : count;
    if (run->threads > 1 && slots > 1)
        run->host->parallel_for(run->host->self, slots, slot_task, &s);
    else
        slot_task(&s, 0);
}
