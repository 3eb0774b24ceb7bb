/* Attention of listed blocks on Hopper's tensor cores: which variant of the kernel computes a problem, what it supports, and what it
 * costs. */
#ifndef CUDA_SPARSE_HOPPER_H
#define CUDA_SPARSE_HOPPER_H

#include "../attention/hopper.h"
#include "attention_sparse_cuda.h"

#include "sparse_hopper_args.h"
#include "sparse_hopper_schedule.h"

/* Depends only on what the key of plans has, and not on the batch and the heads. `tables` is 1. */
void cuda_sparse_hopper_variant_of(const tn_op *op, hopper_variant *out);

/* Bytes of shared memory of a block, and how many blocks a multiprocessor has at a time. */
unsigned cuda_sparse_hopper_shared(const hopper_variant *variant);
int cuda_sparse_hopper_resident(const hopper_variant *variant);

/* The kernel of a problem; `options` must have CUDA_SPARSE_HOPPER_OPTIONS bytes and live as long as `out`. */
enum { CUDA_SPARSE_HOPPER_OPTIONS = CUDA_HOPPER_OPTIONS + 32 };
void cuda_sparse_hopper_case(const tn_op *op, char *options, cuda_case *out);

tn_status cuda_sparse_hopper_admit(const tn_kernel_row *row, const tn_query *query,
                                   tn_refusal *why);
double cuda_sparse_hopper_cost(const tn_kernel_row *row, const tn_query *query);

#endif
