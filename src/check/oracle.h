/* Computes outputs with the reference kernels, for problems with operands in host memory. */
#ifndef TNI_CHECK_ORACLE_H
#define TNI_CHECK_ORACLE_H

#include "dispatch/dispatch.h"

/* Used by one thread at a time. A zeroed struct may be released. Too large for the stack. */
typedef struct tni_oracle {
    const tni_kernel *kernel;
    tn_device *device;
    tni_plan *plan; /* of the last op; or NULL */
    size_t key_count;
    uint64_t key[TNI_KEY_MOST];
    tni_problem problem; /* the current problem */
} tni_oracle;

/* Prepares for ops of one kind, TN_OP_.... */
tn_status tni_oracle_init(tni_oracle *oracle, int32_t op, tn_error *err);
void tni_oracle_release(tni_oracle *oracle);

/* Computes all outputs of the op, dense, each into `out` at its operand's index. Does not change
 * `data`. The outputs in `data` have their values from before the call: some ops read them or leave
 * a part of them unwritten. Settings are ignored. Fails with TN_UNSUPPORTED if the reference does not
 * support the op. */
tn_status tni_oracle_compute(tni_oracle *oracle, const tn_op *op, void *const *data,
                             void *const *out, tn_error *err);

#endif
