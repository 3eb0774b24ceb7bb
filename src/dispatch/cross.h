/* Calls whose operands are on several devices: if may_cross_devices permits it, the inputs are
 * copied to the device of the output. */
#ifndef TNI_DISPATCH_CROSS_H
#define TNI_DISPATCH_CROSS_H

#include "dispatch.h"

/* The copies made for one call. */
typedef struct tni_crossing {
    tn_device *device; /* of the output */
    tn_stream *stream; /* the stream that the copies and the call are queued on */
    size_t count;
    tn_tensor tensors[TN_OP_OPERANDS_MAX]; /* replacements for the operands on other devices */
    void *copies[TN_OP_OPERANDS_MAX];      /* memory on the device, or NULL */
    uint64_t args[32];
} tni_crossing;

/* If the operands of asked->args are on several devices and crossing is permitted, replaces
 * asked->args by those of a call on one device. Without `copies` (to explain or prepare) nothing is
 * copied and the data must not be accessed. Invalid arguments are left unchanged for the later
 * checks. The crossing must be ended in any case. */
tn_status tni_cross_begin(tni_asked *asked, bool copies, tni_crossing *out, tn_error *err);

/* If anything was copied, waits for the call and frees the copies. */
void tni_cross_end(tni_crossing *crossing);

#endif
