/* The problems that kernels are held to, by operator and aspect.
 *
 * A problem is written as a template of its fields:
 *
 *     $        the dtype's word
 *     &        bytes of an element
 *     ~        the same, but 4 for dtypes of one byte: what their products are written as
 *     ?x<N>    a random number from 2 to N, which `?x` stands for from there on; x is a letter
 *     +N *N    behind such a number: more, times; from left to right, and N may be `?y` too
 *
 * Thread-safety: constants, and functions of their arguments. */
#ifndef TENON_CLI_CONFORMANCE_KERNEL_PROBLEMS_H
#define TENON_CLI_CONFORMANCE_KERNEL_PROBLEMS_H

#include <tenon/tenon.h>

#include <stdbool.h>

/* One side of what a kernel does. Its word is that of a bit of the operator's `uses`, or
 * "shapes", "pitches", "alignment", "together". */
typedef struct problem_aspect {
    const char *word;
    const char *const *templates; /* NULL-ended */
} problem_aspect;

/* The aspects of an operator, TN_OP_...: ended by one without a word. */
enum { PROBLEM_ASPECTS = 20 };
const problem_aspect *problem_aspects(int32_t op);

/* "matmul". */
const char *problem_op_word(int32_t op);

/* Whether the template has random numbers, so that it is worth repeating. */
bool problem_is_random(const char *template);

/* A number below `below`, which is at least 1. */
typedef size_t problem_draw(void *user, size_t below);

/* Writes "matmul:f32:m=17,n=13,k=31@acme:0". False when it does not fit. */
enum { PROBLEM_TEXT = 384 };
bool problem_write(int32_t op, const char *template, tn_dtype dtype, const char *device,
                   problem_draw *draw, void *user, char out[PROBLEM_TEXT]);

#endif
