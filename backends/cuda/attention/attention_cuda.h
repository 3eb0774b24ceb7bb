/* Attention by our own kernels: how a problem is split, what they support, what a run costs. */
#ifndef CUDA_ATTENTION_CUDA_H
#define CUDA_ATTENTION_CUDA_H

#include "../kernels/layout.h"
#include "attention_args.h"

#include "tenon/module/op/attention.h"

#include <float.h>
#include <math.h>

/* attention_args.h, attention.cuh, attention_tile.cuh and attention_rows.cuh. */
extern const cuda_text cuda_text_of_attention_args, cuda_text_of_attention,
    cuda_text_of_attention_tile, cuda_text_of_attention_rows;

/* The parts that units start with. */
#define CUDA_ATTENTION_PARTS                                                \
    &cuda_text_of_args, &cuda_text_of_attention_args, &cuda_text_of_common, \
        &cuda_text_of_functions, &cuda_text_of_philox, &cuda_text_of_block, \
        &cuda_text_of_attention

/* The parts that units for tensor cores of capability 8.0 start with: these, mma.cuh, decode_schedule.h and
 * attention_mma.cuh. */
extern const cuda_text cuda_text_of_mma, cuda_text_of_decode_schedule, cuda_text_of_attention_mma;
#define CUDA_ATTENTION_MMA_PARTS                                            \
    CUDA_ATTENTION_PARTS, &cuda_text_of_mma, &cuda_text_of_decode_schedule, \
        &cuda_text_of_attention_mma

/* What Tenon's own kernels honour, and the dimensions that one plan serves. */
enum {
    CUDA_ATTENTION_USES =
        TN_ATTENTION_USES_WINDOW | TN_ATTENTION_USES_MASK | TN_ATTENTION_USES_ADDITIVE |
        TN_ATTENTION_USES_GROUPS | TN_ATTENTION_USES_SOFTCAP | TN_ATTENTION_USES_SINKS |
        TN_ATTENTION_USES_LSE | TN_ATTENTION_USES_DROPOUT | TN_ATTENTION_USES_PACKED |
        TN_ATTENTION_USES_LENGTHS | TN_ATTENTION_USES_PAGES | TN_ATTENTION_USES_VALUE_SIZE |
        TN_ATTENTION_USES_STRIDES | TN_ATTENTION_USES_OUT_DTYPE | TN_ATTENTION_USES_OFFSET,
    CUDA_ATTENTION_DIMS = TN_ATTENTION_DIM_BATCH | TN_ATTENTION_DIM_HEADS |
                          TN_ATTENTION_DIM_QUERIES | TN_ATTENTION_DIM_KEYS
};

typedef struct cuda_attention_shape {
    bool few;       /* computed by attention_few, else by attention_many */
    int64_t lots;   /* groups of all sequences */
    int64_t rows;   /* per lot: queries of all heads that share its keys */
    int64_t blocks; /* blocks of rows per lot */
    int64_t each;   /* rows per block */
    int64_t parts;  /* number of parts of the keys; several are joined afterwards */
    int64_t part;   /* keys per part */
} cuda_attention_shape;

/* Whether a row is always computed by the same kernel, with its keys split in the same way. */
static inline bool cuda_attention_is_invariant(const tn_kernel_row *row)
{
    return row->numerics & TN_NUM_BATCH_INVARIANT;
}

/* Depends only on the row and the problem. */
void cuda_attention_shape_of(const tn_kernel_row *row, const tn_op *op, cuda_attention_shape *out);

/* cuda_attention_put fills in Q, K, V, OUT, LSE, the mask and the op's numbers; cuda_attention_put_tables
 * fills in sinks and tables, which the backward pass does not have. */
void cuda_attention_put(const tn_run *run, cuda_attention_args *to);
void cuda_attention_put_tables(const tn_run *run, cuda_attention_args *to);
void cuda_attention_put_strides(const tn_layout *layout, long long to[4]);

/* Returns the numbers that the kernels use for the dtype of a mask or sinks: 0 none, 1 bool, 2 f32, 3 the operands'. */
int cuda_attention_kind(const tn_layout *layout);

/* Returns whether each row of an operand can be read 16 bytes at once: all rows are aligned to 16 bytes. */
int cuda_attention_is_whole(const tn_layout *layout);

/* Writes the options of a unit for the op's head size; `out` must have CUDA_ATTENTION_OPTIONS bytes. */
enum { CUDA_ATTENTION_OPTIONS = 192 };
void cuda_attention_options(const tn_op *op, char *out);

/* The kernel that writes only OUT and LSE of sequences without keys, from the same arguments. `options` has the
 * same size as above, and must live as long as `out`. */
void cuda_attention_empty_case(const tn_op *op, char *options, cuda_case *out);

/* Likewise the kernel that joins parts of the keys: a block for each row of each group. It reads what args->partial has. */
void cuda_attention_join_case(const tn_op *op, char *options, cuda_case *out);

/* Returns the rows per block of attention_many, which is also the number of keys per tile. */
int64_t cuda_attention_tile(const tn_op *op);

/* Check that head sizes are at most `most`, and that the kernels can index all counts. */
tn_status cuda_attention_admit_sizes(const tn_op *op, int64_t most, tn_refusal *why);
tn_status cuda_attention_admit_counts(const tn_op *op, tn_refusal *why);

/* Head sizes must be multiples of these elements of 16 bits, which kernels for tensor cores copy at once. */
enum { CUDA_ATTENTION_CHUNK = 8 };

/* Check the limits that kernels for tensor cores share: capability 8.0, at most `most` elements of a head in whole
 * chunks, `needed` bytes of shared memory, and an operand whose rows start at multiples of 16 bytes. */
tn_status cuda_attention_admit_ampere(const tn_query *query, tn_refusal *why);
tn_status cuda_attention_admit_chunks(const tn_op *op, int64_t most, tn_refusal *why);
tn_status cuda_attention_admit_shared(const tn_query *query, int64_t needed, tn_refusal *why);
tn_status cuda_attention_admit_rows(const tn_op *op, int32_t operand, const char *name,
                                    tn_refusal *why);

/* Converts to f32; out-of-range values saturate. */
static inline float cuda_saturated_f32(double x)
{
    return (float)fmin(fmax(x, -(double)FLT_MAX), (double)FLT_MAX);
}

/* Checks that scale and softcap are valid in f32, in which scores are computed for all dtypes except f64. */
tn_status cuda_attention_admit_numbers(const tn_op *op, tn_refusal *why);

tn_status cuda_attention_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why);

/* Returns the mean number of keys that a query sees by position, estimated from a few queries. */
double cuda_attention_keys_seen(const tn_attention_op *at);

/* The predicted time of a row in microseconds; 0 if it does not support the problem. A row that promises more than
 * `base` is never predicted to be faster than that one. */
double cuda_attention_cost(const tn_kernel_row *row, const tn_kernel_row *base,
                           const tn_query *query);

#endif
