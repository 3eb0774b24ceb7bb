/* An einsum by shapes, as the command takes it: `tenon einsum-path EQUATION SHAPES`, and the problem
 * `einsum:DTYPE:EQUATION:SHAPES[@DEVICE]` of `tenon check` and `tenon bench`. */
#ifndef TENON_CLI_EINSUM_PROBLEM_H
#define TENON_CLI_EINSUM_PROBLEM_H

#include "tenon/tenon.h"

#include <stdbool.h>

enum { EINSUM_OPERANDS_MOST = TN_EINSUM_OPERANDS_MAX };

/* Contiguous operands without data. */
typedef struct einsum_operands {
    tn_tensor tensors[EINSUM_OPERANDS_MOST];
    const tn_tensor *list[EINSUM_OPERANDS_MOST];
    int64_t shapes[EINSUM_OPERANDS_MOST][TN_TENSOR_NDIM_MAX];
    int32_t count;
} einsum_operands;

/* Parses "10x20,20x30"; "" is the shape of a number. The tensors are f32 on the CPU. `out` is zeroed. */
tn_status einsum_operands_parse(const char *text, einsum_operands *out, tn_error *err);

typedef struct einsum_problem {
    char *text;     /* with the device */
    char *equation; /* as it was given */
    tn_dtype dtype;
    tn_device *device;
    einsum_operands operands;
    tn_einsum_path *path;
    tn_einsum_path_info info;
} einsum_problem;

/* Whether a problem is an einsum. */
bool einsum_problem_is(const char *text);

/* Parses a problem and explains its path. The caller releases *out. */
tn_status einsum_problem_create(const char *text, einsum_problem **out, tn_error *err);
void einsum_problem_release(einsum_problem *of); /* accepts NULL */

/* Runs the einsum on random inputs, and compares the result with that of one loop over all labels in
 * long double. Above 2*10^9 products, only some random outputs are compared. Seed 0: a new one, which
 * is returned. Set out->struct_size first. */
tn_status einsum_problem_check(const einsum_problem *of, uint64_t seed, tn_check_result *out,
                               tn_error *err);

/* Times the einsum for about so many seconds, 0: one. The operands are the same in every call. Set
 * out->struct_size first. */
tn_status einsum_problem_time(const einsum_problem *of, double seconds, tn_bench_result *out,
                              tn_error *err);

#endif
