/* A small block of memory that processes of one user share by an unguessable name. Thread-safety:
 * Safe; access to the memory is up to its users. */
#ifndef TNI_OS_SHARED_H
#define TNI_OS_SHARED_H

#include "tenon/base.h"

enum { TNI_SHARED_NAME = 16 };

typedef struct tni_shared tni_shared;

/* Removes blocks left by killed processes, if the system allows detecting them. The first
 * tni_shared_create does so too. */
void tni_shared_collect(void);

/* Creates zeroed memory under a new random name. Fails with TN_UNSUPPORTED and the reason if the
 * system or its settings do not provide it, with TN_OUT_OF_MEMORY, or with TN_BUSY if the process
 * has no free file descriptor. */
tn_status tni_shared_create(size_t size, tni_shared **out, tn_error *err);

/* Opens memory that this or another process created with the same size. Fails with TN_NOT_FOUND if
 * the name does not exist or no longer exists, TN_NOT_PERMITTED if it belongs to another user or is
 * accessible to others, TN_CORRUPT if its size differs. */
tn_status tni_shared_open(const unsigned char name[TNI_SHARED_NAME], size_t size, tni_shared **out,
                          tn_error *err);

/* Releasing memory that this process created removes the name; in a forked child it does not. The
 * memory stays valid for other holders. Accepts NULL. */
void tni_shared_release(tni_shared *shared);

void *tni_shared_memory(const tni_shared *shared);
const unsigned char *tni_shared_name(const tni_shared *shared); /* TNI_SHARED_NAME bytes */

#endif
