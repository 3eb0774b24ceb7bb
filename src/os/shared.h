/* A small piece of memory that processes of one user share by a name no one can guess.
 * Thread-safety: Safe; what is in the memory is its users' business. */
#ifndef TNI_OS_SHARED_H
#define TNI_OS_SHARED_H

#include "tenon/base.h"

enum { TNI_SHARED_NAME = 16 };

typedef struct tni_shared tni_shared;

/* Takes away what processes left behind that were killed, where that can be told; creating does so
 * once. */
void tni_shared_collect(void);

/* Zeroed memory under a new random name. TN_UNSUPPORTED, with the reason, where the system or its
 * settings have no such thing; TN_OUT_OF_MEMORY; TN_BUSY when the process has no descriptor left. */
tn_status tni_shared_create(size_t size, tni_shared **out, tn_error *err);

/* What another process, or this one, created with the same size. TN_NOT_FOUND: nothing has the name,
 * or has it any more. TN_NOT_PERMITTED: it is another user's, or open to others. TN_CORRUPT: it is not
 * of that size. */
tn_status tni_shared_open(const unsigned char name[TNI_SHARED_NAME], size_t size, tni_shared **out,
                          tn_error *err);

/* Releasing what this process created takes the name away; a forked child does not. The memory stays
 * for those who have it. Accepts NULL. */
void tni_shared_release(tni_shared *shared);

void *tni_shared_memory(const tni_shared *shared);
const unsigned char *tni_shared_name(const tni_shared *shared); /* TNI_SHARED_NAME bytes */

#endif
