/* Things to do, one by one, by as many tasks as there are slots: each takes the next thing when it is done with
 * one, and has its slot to itself. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_SHARE_H
#define TENON_BACKENDS_CPU_ATTENTION_SHARE_H

#include "tenon/module/kernel.h"

typedef void tni_at_item(void *user, int64_t item, int64_t slot);

/* Does all items from 0 to count, in any order, and returns when they are done. */
void tni_at_share(const tn_run *run, int64_t slots, int64_t count, tni_at_item *item, void *user);

#endif
