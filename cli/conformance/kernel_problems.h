/* The texts of the problems that kernels are checked with, from the library's templates.
 *
 * Thread-safety: constants, and functions of their arguments. */
#ifndef TENON_CLI_CONFORMANCE_KERNEL_PROBLEMS_H
#define TENON_CLI_CONFORMANCE_KERNEL_PROBLEMS_H

#include <tenon/tenon.h>

#include <stdbool.h>

/* Whether the template has random numbers, so that repeating it is useful. */
bool problem_is_random(const char *template);

/* Whether some inputs of the aspect's problems are NaN or infinite (TN_CHECK_NONFINITE). */
bool problem_is_nonfinite(const tn_check_aspect *aspect);

/* Returns a random number below `below`, which is at least 1. */
typedef size_t problem_draw(void *user, size_t below);

/* Writes text such as "matmul:f32:m=17,n=13,k=31@acme:0". Returns false if it does not fit. */
enum { PROBLEM_TEXT = 384 };
bool problem_write(int32_t op, const char *template, tn_dtype dtype, const char *device,
                   problem_draw *draw, void *user, char out[PROBLEM_TEXT]);

#endif
