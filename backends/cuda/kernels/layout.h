/* What the rows of all kernels share: types of elements, the way from an op's layouts to a kernel's
 * arguments, plans and how they are launched. */
#ifndef CUDA_KERNELS_LAYOUT_H
#define CUDA_KERNELS_LAYOUT_H

#include "../compile/code.h"
#include "../compile/texts.h"
#include "args.h"
#include "tenon/module/kernel.h"
#include "tenon/module/walk.h"

/* The type's name in the kernels' texts; NULL for a dtype that they do not have. */
const char *cuda_type_of(tn_dtype dtype);
int64_t cuda_bytes_of(tn_dtype dtype);
bool cuda_is_float(tn_dtype dtype); /* f16, bf16, f32, f64 */
bool cuda_is_whole(tn_dtype dtype); /* integers and bool   */

/* The type that a kernel numbers so many things in, and the steps of a grid beyond them. */
const char *cuda_index_of(int64_t count);

/* What one run is launched with; the rest of `args` is filled in by the run. */
typedef struct cuda_plan {
    cuda_kernel *kernel;
    cuda_kernel *second; /* of reductions in parts, of products in wide tiles, of dk and dv */
    unsigned blocks;
    unsigned second_blocks;
    union {
        cuda_each_args each;
        cuda_rows_args rows;
        cuda_reduce_args reduce;
    } args;
} cuda_plan;

enum { CUDA_THREADS = 256 };

/* An empty plan; cuda_plan_release gives it back. */
tn_status cuda_plan_create(const tn_run *run, cuda_plan **out, uint64_t *out_bytes, tn_error *err);
void cuda_plan_release(const tn_run *run, void *plan);

/* Multiprocessors of a device; 0 when that is unknown. */
int64_t cuda_processors(cuda *self, int32_t device);

/* Blocks for so many units of work, as many as keep the device busy. */
unsigned cuda_blocks_for(const tn_run *run, int64_t units);
unsigned cuda_blocks_on(cuda *self, int32_t device, int64_t units);

/* The kernel of a case, by the run's compiler. */
tn_status cuda_plan_kernel(const tn_run *run, int32_t unit, const char *function,
                           const char *options, cuda_kernel **out, tn_error *err);

/* Queues one of the plan's kernels on the run's stream. */
tn_status cuda_plan_launch(const tn_run *run, cuda_kernel *kernel, unsigned blocks, void *args,
                           tn_error *err);

/* A walk's dimensions as arrays, the fastest last; gives their number. `strides` are of its operand. */
int cuda_walk_sizes(const tn_walk *walk, long long *out);
void cuda_walk_strides(const tn_walk *walk, int32_t operand, long long *out);

/* Whether all operands are aligned to their elements; every kernel needs that. */
tn_status cuda_admit_alignment(const tn_query *query, tn_refusal *why);

/* tn_refuse with a text of what would help. */
tn_status cuda_refuse(tn_refusal *why, int32_t code, const char *what, int64_t needed,
                      int64_t found, const char *text);

/* Refuses the first of `counts` that is above `most`, by its name. */
typedef struct cuda_count {
    const char *name;
    int64_t found;
} cuda_count;
tn_status cuda_admit_counts(const cuda_count *counts, size_t number, int64_t most, const char *text,
                            tn_refusal *why);

/* The case of random numbers: OUT, KIND, INDEX. */
#define CUDA_RANDOM_OPTIONS "-DOUT=%s\n-DKIND=%d\n-DINDEX=%s\n-DCOMPUTED=1\n-default-device\n"
enum { CUDA_RANDOM_OPTIONS_ROOM = 112 };

/* The case of what dropout keeps, of at most 2^31 - 1 elements. */
#define CUDA_DROPOUT_FUNCTION "dropout_kept"
#define CUDA_DROPOUT_OPTIONS  "-default-device\n"

/* A number of 24 bits, k, is kept when k / 2^24 is at least the op's dropout: the least such. */
unsigned cuda_dropout_least(double dropout);
/* `one` is written for what is kept. */
cuda_dropout_args cuda_dropout_args_of(const tn_attention_op *at, void *out, int64_t elements,
                                       uint16_t one);

/* Bytes that a thread reads or writes at once, where they are aligned to that: the largest alignment that kernels
 * distinguish. No element is larger. */
enum { CUDA_VECTOR = 16 };

/* What a row says of itself but for its op. The number goes up with all of them. */
#define CUDA_ROW(word, NAME)                                                               \
    .struct_size = sizeof(tn_kernel_row), .name = "cuda." word ".own", .platform = "cuda", \
    .library = "nvrtc", .op = TN_OP_##NAME, .version = 2, .flops_per_us = 2e7,             \
    .bytes_per_us = 3e6, .overhead_us = 4, .alignment = CUDA_VECTOR,                       \
    .plan_release = cuda_plan_release

extern const tn_kernel_row cuda_permute_row, cuda_cast_row, cuda_fill_row, cuda_unary_row,
    cuda_binary_row, cuda_reduce_row, cuda_softmax_row, cuda_norm_row, cuda_rotary_row,
    cuda_attention_row, cuda_attention_invariant_row, cuda_attention_backward_row;

/* Those of the numbers, 0-ended. */
extern const tn_dtype cuda_number_dtypes[];
extern const tn_dtype cuda_float_dtypes[];

#endif
