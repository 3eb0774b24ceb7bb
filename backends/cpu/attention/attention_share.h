/* Distributes items to as many tasks as there are slots: a task takes the next item when it has
 * finished one, and uses its slot exclusively. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_SHARE_H
#define TENON_BACKENDS_CPU_ATTENTION_SHARE_H

#include "tenon/module/kernel.h"

typedef void tni_at_item(void *user, int64_t item, int64_t slot);

/* Processes items 0 to count - 1, in any order; returns when all are done. */
void tni_at_share(const tn_run *run, int64_t slots, int64_t count, tni_at_item *item, void *user);

#endif
