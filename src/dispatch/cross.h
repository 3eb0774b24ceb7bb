/* Calls whose operands lie on several devices: where may_cross_devices permits it, those that are read are
 * copied to the device of the one that is written. */
#ifndef TNI_DISPATCH_CROSS_H
#define TNI_DISPATCH_CROSS_H

#include "dispatch.h"

/* What was copied for one call. */
typedef struct tni_crossing {
    tn_device *device; /* of the output */
    tn_stream *stream; /* that the copies and the call are queued on */
    size_t count;
    tn_tensor tensors[TN_OP_OPERANDS_MAX]; /* in place of those that lie elsewhere */
    void *copies[TN_OP_OPERANDS_MAX];      /* the device's memory, or NULL */
    uint64_t args[32];
} tni_crossing;

/* Makes asked->args those of a call on one device, if they are not and it is permitted. Without `copies`,
 * to explain and to prepare, nothing is copied, and the data must not be touched. Arguments that are wrong
 * are left as they are, to whoever checks them. The crossing is to be ended in any case. */
tn_status tni_cross_begin(tni_asked *asked, bool copies, tni_crossing *out, tn_error *err);

/* Waits for the call if anything was copied, and gives the copies back. */
void tni_cross_end(tni_crossing *crossing);

#endif
