/* Runs a kernel on random inputs and compares its outputs with the reference's. */
#ifndef TNI_CHECK_CHECK_H
#define TNI_CHECK_CHECK_H

#include "dispatch/dispatch.h"
#include "inputs.h"
#include "tenon/check.h"

typedef struct tni_trial {
    const tni_plan *plan;
    const tn_op *op; /* the op that the plan was made for */
    tn_device *device;
    tn_stream *stream; /* NULL: the device's current stream of the thread */
    uint64_t seed;
    const char *dump; /* as tn_check_args.dump */
    bool nonfinite;   /* as TN_CHECK_NONFINITE */
    bool declared;    /* also check what the row declares: declared.h */
} tni_trial;

/* Runs with the default settings and waits for the stream. Returns TN_OK even if the numbers are
 * wrong: out->ok is the result. Fails with the errors of the kernel, the device and the reference.
 * Does not change out->struct_size. */
tn_status tni_trial_run(const tni_trial *trial, tn_check_result *out, tn_error *err);

/* Finds the kernel with this name for a problem on a device. Fails with TN_NOT_FOUND, which suggests
 * the most similar name, and with TN_UNSUPPORTED for a kernel of another op or platform. */
tn_status tni_kernel_for(const char *name, const tn_op *op, const tn_device *device,
                         const tni_kernel **out, tn_error *err);

/* Returns a new seed at each call; never 0. */
uint64_t tni_seed_fresh(void);

/* Writes operands to a file, as text. `found` is the block of one output, copied from the device;
 * `expected` is dense, or NULL. */
typedef struct tni_dump {
    const char *path;
    const tni_operands *operands;
    const char *kernel;
    uint64_t seed;
    int32_t output;
    const void *found;
    const void *expected;
} tni_dump;
tn_status tni_dump_write(const tni_dump *dump, tn_error *err);

#endif
