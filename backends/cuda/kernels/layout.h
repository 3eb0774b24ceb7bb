/* Shared by the rows of all kernels: element types, the conversion of an op's layouts to a kernel's
 * arguments, plans and their launch. */
#ifndef CUDA_KERNELS_LAYOUT_H
#define CUDA_KERNELS_LAYOUT_H

#include "../compile/code.h"
#include "../compile/texts.h"
#include "args.h"
#include "tenon/module/kernel.h"
#include "tenon/module/walk.h"

/* Returns the type's name in the kernels' sources; NULL for a dtype that they do not support. */
const char *cuda_type_of(tn_dtype dtype);
int64_t cuda_bytes_of(tn_dtype dtype);
bool cuda_is_float(tn_dtype dtype); /* f16, bf16, f32, f64 */
bool cuda_is_whole(tn_dtype dtype); /* integers and bool   */

/* Returns the number of tiles of `side` that cover a size. */
static inline int64_t cuda_tiles_along(int64_t size, int64_t side)
{
    return size / side + (size % side != 0);
}

/* Returns the least multiple of `side` that is not less than a size. */
static inline int64_t cuda_round_up(int64_t size, int64_t side)
{
    return cuda_tiles_along(size, side) * side;
}

/* Returns the index type for that many items, including the steps of a grid beyond them. */
const char *cuda_index_of(int64_t count);

/* A plan of the elementwise and row-wise operators; the run fills in the rest of `args`. */
typedef struct cuda_plan {
    cuda_kernel *kernel;
    unsigned blocks;
    union {
        cuda_each_args each;
        cuda_rows_args rows;
    } args;
} cuda_plan;

enum { CUDA_THREADS = 256 };

/* Allocates a plan of `size` bytes, all 0; cuda_plan_release frees it. */
tn_status cuda_plan_alloc(const tn_run *run, size_t size, void **out, uint64_t *out_bytes,
                          tn_error *err);

/* Allocates a plan and fills it in. On failure, frees it and leaves *out unchanged. */
typedef tn_status cuda_plan_fill(const tn_run *run, void *plan, tn_error *err);
tn_status cuda_plan_make(const tn_run *run, size_t size, cuda_plan_fill *fill, void **out,
                         uint64_t *out_bytes, tn_error *err);
tn_status cuda_plan_create(const tn_run *run, cuda_plan **out, uint64_t *out_bytes, tn_error *err);
void cuda_plan_release(const tn_run *run, void *plan);

/* Returns the number of multiprocessors of a device; 0 if unknown. */
int64_t cuda_processors(cuda *self, int32_t device);

/* Returns the number of blocks for that many units of work: not more than keep the device busy. */
unsigned cuda_blocks_for(const tn_run *run, int64_t units);
unsigned cuda_blocks_on(cuda *self, int32_t device, int64_t units);

/* Gets the kernel of a variant, with the run's compiler. */
tn_status cuda_plan_kernel(const tn_run *run, const cuda_unit *unit, const char *function,
                           const char *options, cuda_kernel **out, tn_error *err);

/* Queues one of the plan's kernels on the run's stream. */
tn_status cuda_plan_launch(const tn_run *run, cuda_kernel *kernel, unsigned blocks, void *args,
                           tn_error *err);

/* Writes a walk's sizes, or the strides of an operand, with the fastest dimension last; cuda_walk_sizes
 * returns their number. */
int cuda_walk_sizes(const tn_walk *walk, long long *out);
void cuda_walk_strides(const tn_walk *walk, int32_t operand, long long *out);

/* Checks that all operands are aligned to their elements, as every kernel requires. */
tn_status cuda_admit_alignment(const tn_query *query, tn_refusal *why);

/* Same as tn_refuse, with a text that says what would help. */
tn_status cuda_refuse(tn_refusal *why, int32_t code, const char *what, int64_t needed,
                      int64_t found, const char *text);

/* Refuses the first of `counts` that is greater than `most`, with its name. */
typedef struct cuda_count {
    const char *name;
    int64_t found;
} cuda_count;
tn_status cuda_admit_counts(const cuda_count *counts, size_t number, int64_t most, const char *text,
                            tn_refusal *why);

/* Refuses workspace of more than `most` bytes; `bytes` is a double, which no size of an op overflows. */
tn_status cuda_admit_bytes(const char *what, double bytes, double most, const char *text,
                           tn_refusal *why);

/* The unit of random numbers, and its options: OUT, KIND, INDEX. */
extern const cuda_unit cuda_random_unit;
#define CUDA_RANDOM_OPTIONS "-DOUT=%s\n-DKIND=%d\n-DINDEX=%s\n-DCOMPUTED=1\n-default-device\n"
enum { CUDA_RANDOM_OPTIONS_ROOM = 112 };

/* Bytes that a thread reads or writes at once if they are aligned: the largest alignment that kernels
 * distinguish. No element is larger. */
enum { CUDA_VECTOR = 16 };

/* The fields that rows have in common. The version is increased for all of them together. */
#define CUDA_ROW                                                                                \
    .struct_size = sizeof(tn_kernel_row), .platform = "cuda", .library = "nvrtc", .version = 2, \
    .flops_per_us = 2e7, .bytes_per_us = 3e6, .overhead_us = 4, .alignment = CUDA_VECTOR,       \
    .plan_release = cuda_plan_release

/* The dtypes of numbers and of floats, terminated by 0. */
extern const tn_dtype cuda_number_dtypes[];
extern const tn_dtype cuda_float_dtypes[];

#endif
