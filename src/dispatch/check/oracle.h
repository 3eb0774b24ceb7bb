/* The reference, asked for outputs of problems whose operands lie in host memory. */
#ifndef TNI_DISPATCH_ORACLE_H
#define TNI_DISPATCH_ORACLE_H

#include "dispatch/dispatch.h"

/* Belongs to one thread. Zeroed can be ended. Too large for a stack. */
typedef struct tni_oracle {
    const tni_kernel *kernel;
    tn_device *device;
    tni_plan *plan; /* of what was asked last; or NULL */
    size_t key_count;
    uint64_t key[TNI_KEY_MOST];
    tni_problem problem; /* that is asked now */
} tni_oracle;

/* For ops of a kind, TN_OP_.... */
tn_status tni_oracle_begin(tni_oracle *oracle, int32_t op, tn_error *err);
void tni_oracle_end(tni_oracle *oracle);

/* Computes all outputs of the op, dense, each into `out` at its operand's index, and changes nothing of
 * `data`, which holds outputs as they were before: some ops read them or leave a part of them. Settings do not count. TN_UNSUPPORTED when the reference does not take the op. */
tn_status tni_oracle_ask(tni_oracle *oracle, const tn_op *op, void *const *data, void *const *out,
                         tn_error *err);

#endif
