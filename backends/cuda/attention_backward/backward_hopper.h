/* Gradients of attention on Hopper's tensor cores: which variants of the kernels compute a problem, how it is split, and what it
 * costs. */
#ifndef CUDA_BACKWARD_HOPPER_H
#define CUDA_BACKWARD_HOPPER_H

#include "../attention/hopper.h"

/* On the device these texts follow one another in this order. */
#include "attention_backward_args.h"

#include "backward_hopper_schedule.h"

#include "backward_hopper_args.h"

/* The kernels of a problem in their order: states of rows; dK, dV and slopes; dQ from slopes. The last two run once for each
 * section. */
typedef enum backward_hopper_part {
    BACKWARD_HOPPER_STATES,
    BACKWARD_HOPPER_KEYS,
    BACKWARD_HOPPER_QUERIES,
    BACKWARD_HOPPER_PARTS
} backward_hopper_part;

/* The kernel of a problem; `options` must have CUDA_BACKWARD_HOPPER_OPTIONS bytes and live as long as `out`. */
enum { CUDA_BACKWARD_HOPPER_OPTIONS = 256 };
void cuda_backward_hopper_case(const tn_op *op, backward_hopper_part part, char *options,
                               cuda_case *out);

/* Threads of a block, and its bytes of shared memory. */
unsigned cuda_backward_hopper_threads(backward_hopper_part part);
unsigned cuda_backward_hopper_shared(const tn_op *op, backward_hopper_part part);

/* How a problem is split. A section has `blocks` blocks of keys of `lots` groups, or fewer; its slopes are in the workspace. */
typedef struct backward_hopper_shape {
    int64_t all_lots;   /* groups of all sequences */
    int64_t all_blocks; /* of keys, per group */
    int64_t lots, blocks;
    int64_t tiles;      /* of queries, per head */
    int64_t row_blocks; /* of queries, per head */
    uint64_t states_bytes, slopes_bytes,
        partial_bytes; /* workspace: of lse, and also of delta; slopes; sums of dQ */
} backward_hopper_shape;

void cuda_backward_hopper_shape_of(const tn_op *op, backward_hopper_shape *out);

/* Part of a problem: the blocks of keys from `block` on of the groups from `lot` on. */
typedef struct backward_hopper_section {
    int64_t lot, lots, block, blocks;
} backward_hopper_section;

/* Sections are numbered by groups first, then by blocks of keys. */
int64_t cuda_backward_hopper_sections(const backward_hopper_shape *shape);
backward_hopper_section cuda_backward_hopper_section(const backward_hopper_shape *shape,
                                                     int64_t number);

tn_status cuda_backward_hopper_admit(const tn_kernel_row *row, const tn_query *query,
                                     tn_refusal *why);
double cuda_backward_hopper_cost(const tn_kernel_row *row, const tn_query *query);
uint64_t cuda_backward_hopper_workspace(const tn_kernel_row *row, const tn_query *query);

#endif
