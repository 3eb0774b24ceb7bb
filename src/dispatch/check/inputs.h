/* Operands that are made up for a problem: random numbers where it reads, a poison where it writes, and
 * guards around them. Each is a block in host memory, and the same block on a device. */
#ifndef TNI_DISPATCH_INPUTS_H
#define TNI_DISPATCH_INPUTS_H

#include "op/op.h"
#include "tenon/stream.h"

/* One operand with the bytes around it. */
typedef struct tni_operand {
    unsigned char *host; /* as it was made; NULL for an operand that is absent or has no elements */
    void *device;
    size_t bytes;
    size_t first; /* where its first element begins */
} tni_operand;

/* Zeroed can be released. */
typedef struct tni_operands {
    const tn_op *op;
    tn_device *device;
    int32_t output;
    bool in_place; /* the output's block is that of the first operand */
    tni_operand operand[TN_OP_OPERANDS_MAX];
} tni_operands;

/* Blocks for the operands of `op`, which is lent, each as aligned as it says and no better. The caller
 * releases them, after a failure too. */
tn_status tni_operands_create(const tn_op *op, tn_device *device, tni_operands *out, tn_error *err);
void tni_operands_release(tni_operands *operands);

/* Bytes of one set of operands on the device; SIZE_MAX when they cannot be counted. */
size_t tni_operands_bytes(const tn_op *op);

/* Fills the host's blocks from the seed. Numbers are modest: of ops whose results can be infinite or no
 * number, some inputs are too; of what is only copied and of integers that are cast, any bits. What is
 * no element is 0xC3, an output that is not read 0xFF: a NaN of every float that has one. */
typedef enum tni_inputs {
    TNI_INPUTS_USUAL,
    TNI_INPUTS_PLAIN, /* for timing: all modest, because other numbers are slow on some processors */
    TNI_INPUTS_NONFINITE /* as TN_CHECK_NONFINITE */
} tni_inputs;
tn_status tni_operands_fill(tni_operands *operands, uint64_t seed, tni_inputs inputs,
                            tn_error *err);

/* Copies all blocks to the device; and one of them back, into `to`, which has as many bytes. Waits. */
tn_status tni_operands_upload(const tni_operands *operands, tn_stream *stream, tn_error *err);
tn_status tni_operands_download(const tni_operands *operands, int32_t index, tn_stream *stream,
                                void *to, tn_error *err);

/* First elements, on the device and in host memory. */
void tni_operands_on_device(const tni_operands *operands, tni_problem *out);
void tni_operands_on_host(const tni_operands *operands, void *out[TN_OP_OPERANDS_MAX]);

/* The block that holds an operand. */
const tni_operand *tni_operands_at(const tni_operands *operands, int32_t index);

#endif
