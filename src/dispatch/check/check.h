/* One run of a kernel on random inputs, held against the reference. */
#ifndef TNI_DISPATCH_CHECK_H
#define TNI_DISPATCH_CHECK_H

#include "dispatch/dispatch.h"
#include "inputs.h"
#include "tenon/check.h"

typedef struct tni_trial {
    const tni_plan *plan;
    const tn_op *op; /* that the plan was made for */
    tn_device *device;
    tn_stream *stream; /* NULL: the thread's current one of the device */
    uint64_t seed;
    const char *dump; /* as tn_check_args.dump */
    bool nonfinite;   /* as TN_CHECK_NONFINITE */
} tni_trial;

/* Runs with the settings that hold by default. TN_OK whatever the numbers are: out->ok tells. Fails with what the kernel, the device and the reference
 * fail with. Waits for the stream. out->struct_size is left as it is. */
tn_status tni_trial_run(const tni_trial *trial, tn_check_result *out, tn_error *err);

/* The kernel of that name, for a problem on a device: TN_NOT_FOUND with the nearest, TN_UNSUPPORTED for one
 * of another op or platform. */
tn_status tni_kernel_for(const char *name, const tn_op *op, const tn_device *device,
                         const tni_kernel **out, tn_error *err);

/* A seed that was not given before; never 0. */
uint64_t tni_seed_fresh(void);

/* Writes operands to a file, in the text form. `found` is the block of one output as it came from the
 * device; `expected` is dense, or NULL. */
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
