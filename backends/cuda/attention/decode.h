/* Attention with few rows on tensor cores of capability 8.0 and later: which variant of the kernel computes a problem, into
 * how many parts its keys are split, and what it costs. */
#ifndef CUDA_DECODE_H
#define CUDA_DECODE_H

#include "../kernels/layout.h"
#include "decode_schedule.h"
#include "tenon/module/op/attention.h"

/* What a kernel is compiled for: see attention_decode.cu. */
typedef struct decode_variant {
    int size, values, tiles, slots;
} decode_variant;

typedef struct decode_shape {
    int64_t lots;   /* groups of all sequences */
    int64_t rows;   /* per lot: queries of all heads that share its keys */
    int64_t blocks; /* blocks of rows per lot */
    int64_t parts;  /* number of parts of the keys; several are joined afterwards */
    int64_t part;   /* keys per part */
} decode_shape;

void cuda_decode_variant_of(const tn_op *op, decode_variant *out);

/* The kernel of a problem; `options` must have CUDA_DECODE_OPTIONS bytes and live as long as `out`. */
enum { CUDA_DECODE_OPTIONS = 256 };
void cuda_decode_case(const tn_op *op, char *options, cuda_case *out);

/* Rows of a block, and its bytes of shared memory. */
int cuda_decode_rows(const decode_variant *variant);
unsigned cuda_decode_shared(const decode_variant *variant);

/* For a device with that many multiprocessors; at most 0: an H200. */
void cuda_decode_shape_of(const tn_op *op, int64_t processors, decode_shape *out);

/* Returns the bytes of partial results; 0 with one part. */
uint64_t cuda_decode_partial(const tn_op *op, const decode_shape *shape);

tn_status cuda_decode_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why);
uint64_t cuda_decode_workspace(const tn_kernel_row *row, const tn_query *query);
double cuda_decode_cost(const tn_kernel_row *row, const tn_query *query);

#endif
