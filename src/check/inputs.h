/* Test operands of a problem: random numbers in inputs, a poison value in outputs, and guard bytes
 * around both. Each operand is a block in host memory and a block of the same size on a device. */
#ifndef TNI_CHECK_INPUTS_H
#define TNI_CHECK_INPUTS_H

#include "op/op.h"
#include "tenon/stream.h"

/* One operand with its guard bytes. */
typedef struct tni_operand {
    unsigned char *host; /* the initial contents; NULL for an operand that is absent or empty */
    void *device;
    size_t bytes;
    size_t first; /* offset of its first element */
} tni_operand;

/* A zeroed struct may be released. */
typedef struct tni_operands {
    const tn_op *op;
    tn_device *device;
    int32_t output;
    bool in_place; /* the output uses the block of the first operand */
    tni_operand operand[TN_OP_OPERANDS_MAX];
} tni_operands;

/* Allocates blocks for the operands of `op`, which must outlive them. Each operand has exactly the
 * alignment of its layout, no larger one. The caller releases them, also after a failure. */
tn_status tni_operands_create(const tn_op *op, tn_device *device, tni_operands *out, tn_error *err);
void tni_operands_release(tni_operands *operands);

/* Returns the bytes of one set of operands on the device; SIZE_MAX if the number overflows. */
size_t tni_operands_bytes(const tn_op *op);

/* Fills the host blocks from the seed. Numbers have moderate magnitudes. Some inputs are infinite or
 * NaN for ops whose results can be; inputs of ops that only copy, and integers that are cast, have
 * random bits. Bytes outside the elements are 0xC3. Outputs that are not read are 0xFF, which is a
 * NaN in every float type that has one. */
typedef enum tni_inputs {
    TNI_INPUTS_USUAL,
    TNI_INPUTS_PLAIN, /* for timing: moderate only, as other numbers are slow on some processors */
    TNI_INPUTS_NONFINITE /* as TN_CHECK_NONFINITE */
} tni_inputs;
tn_status tni_operands_fill(tni_operands *operands, uint64_t seed, tni_inputs inputs,
                            tn_error *err);

/* Copy all blocks to the device, or one block back into `to`, which must have the block's size.
 * Both wait for the copy. */
tn_status tni_operands_upload(const tni_operands *operands, tn_stream *stream, tn_error *err);
tn_status tni_operands_download(const tni_operands *operands, int32_t index, tn_stream *stream,
                                void *to, tn_error *err);

/* Return the addresses of the first elements, on the device and in host memory; NULL for operands
 * that are absent or empty. */
void tni_operands_on_device(const tni_operands *operands, tni_problem *out);
void tni_operands_on_host(const tni_operands *operands, void *out[TN_OP_OPERANDS_MAX]);

/* Returns the block that contains an operand. */
const tni_operand *tni_operands_at(const tni_operands *operands, int32_t index);

#endif
