/* The problems that kernels are checked with, by operator and aspect.
 *
 * A problem is written as a template of its fields:
 *
 *     $        name of the dtype
 *     &        bytes of an element
 *     ~        the same, but 4 for dtypes of one byte: the size of their products
 *     ?x<N>    a random number from 2 to N; later `?x` is the same number; x is a letter
 *     +N *N    after such a number: add, multiply; from left to right; N may also be `?y`
 *
 * Thread-safety: constants, and functions of their arguments. */
#ifndef TENON_CLI_CONFORMANCE_KERNEL_PROBLEMS_H
#define TENON_CLI_CONFORMANCE_KERNEL_PROBLEMS_H

#include <tenon/tenon.h>

#include <stdbool.h>

/* One aspect of a kernel's behaviour. Its word is the name of a bit of the operator's `uses`, or
 * "shapes", "pitches", "alignment", "together", "nonfinite". */
typedef struct problem_aspect {
    const char *word;
    const char *const *templates; /* ends with NULL */
} problem_aspect;

/* The aspects of an operator (TN_OP_...), at most 32; the list ends with an entry without a word. */
const problem_aspect *problem_aspects(int32_t op);

/* Returns the operator's name, such as "matmul". */
const char *problem_op_word(int32_t op);

/* Whether the template has random numbers, so that repeating it is useful. */
bool problem_is_random(const char *template);

/* Whether some inputs of the aspect's problems are NaN or infinite (TN_CHECK_NONFINITE). */
bool problem_is_nonfinite(const problem_aspect *aspect);

/* Returns a random number below `below`, which is at least 1. */
typedef size_t problem_draw(void *user, size_t below);

/* Writes text such as "matmul:f32:m=17,n=13,k=31@acme:0". Returns false if it does not fit. */
enum { PROBLEM_TEXT = 384 };
bool problem_write(int32_t op, const char *template, tn_dtype dtype, const char *device,
                   problem_draw *draw, void *user, char out[PROBLEM_TEXT]);

#endif
