/* Attention by kernels of our own: how a problem is cut, what they take, what a run costs. */
#ifndef CUDA_KERNELS_ATTENTION_H
#define CUDA_KERNELS_ATTENTION_H

#include "layout.h"

typedef struct cuda_attention_shape {
    bool few;       /* attention_few computes it, else attention_many      */
    int64_t lots;   /* groups of all sequences                             */
    int64_t rows;   /* of one: queries of all heads that share its keys    */
    int64_t blocks; /* of rows, in one                                     */
    int64_t each;   /* rows of a block                                     */
    int64_t parts;  /* that keys are cut into; put together where several  */
    int64_t part;   /* keys of one                                         */
} cuda_attention_shape;

/* A function of the row and the problem alone. */
void cuda_attention_shape_of(const tn_kernel_row *row, const tn_op *op, cuda_attention_shape *out);

/* What the kernels are given of Q, K, V, OUT, LSE, a mask and the op's numbers; and of sinks and tables, which
 * gradients have not. */
void cuda_attention_put(const tn_run *run, cuda_attention_args *to);
void cuda_attention_put_tables(const tn_run *run, cuda_attention_args *to);
void cuda_attention_put_strides(const tn_layout *layout, long long to[4]);

/* Whether each row of an operand is read 16 bytes at once: all rows begin at a multiple of them. */
int cuda_attention_is_whole(const tn_layout *layout);

/* The options of a unit, for heads of the op's size; room for CUDA_ATTENTION_OPTIONS bytes. */
enum { CUDA_ATTENTION_OPTIONS = 192 };
void cuda_attention_options(const tn_op *op, char *out);

/* The kernel that writes OUT and LSE of sequences without keys, and nothing else, from the same arguments; `options` has
 * room as above, and lives as long as `out`. */
void cuda_attention_empty_case(const tn_op *op, char *options, cuda_case *out);

/* Of a block of many rows, or of many keys. */
int64_t cuda_attention_tile(const tn_op *op);

/* Sizes of heads up to `most`, and counts that the kernels can number. */
tn_status cuda_attention_admit_sizes(const tn_op *op, int64_t most, tn_refusal *why);
tn_status cuda_attention_admit_counts(const tn_op *op, tn_refusal *why);

/* That scale and softcap are numbers of f32, where scores are: of all dtypes but f64. */
tn_status cuda_attention_admit_numbers(const tn_op *op, tn_refusal *why);

tn_status cuda_attention_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why);
double cuda_attention_cost(const tn_kernel_row *row, const tn_query *query);

#endif
