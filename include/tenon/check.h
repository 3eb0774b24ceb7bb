/* Kernels held against the reference, and against the clock.
 *
 * Thread-safety: Safe; several at once disturb one another's times. */
#ifndef TENON_CHECK_H
#define TENON_CHECK_H

#include "explain.h"

TN_BEGIN_DECLS

typedef struct tn_check_args {
    size_t struct_size;
    const char *problem;
    const char *kernel; /* which one; NULL: what a call would take */
    uint64_t seed;      /* of the inputs; 0: a fresh one, told in the result */
    const char *dump;   /* a file for inputs and both outputs when they differ; NULL: none */
} tn_check_args;
TN_ENDS_WITH(tn_check_args, dump);

typedef struct tn_check_result {
    size_t struct_size;
    char kernel[104];
    int32_t ok; /* every output that was looked at is within its bound, no other byte was written */
    int32_t sampled; /* 1: the problem was too large to look at all */
    int64_t checked; /* outputs looked at */
    double error;    /* the greatest, as a part of its bound: up to 1 is within */
    double bound;    /* of that output, absolute */
    double found, expected;
    int64_t at; /* which one, counted as in a dense tensor; -1: none */
    uint64_t seed;
    char text[256]; /* what is wrong; "" when nothing is */
} tn_check_result;
TN_ENDS_WITH(tn_check_result, text);

/* Runs a kernel on random inputs of the problem and compares it with the reference. Above 2*10^9
 * operations 4096 random outputs and the edges are looked at. TN_UNSUPPORTED or TN_REFUSED when the
 * kernel does not take the problem, with its reason. Set out->struct_size first.
 *
 * The dump is in the form of Tenon's other files: problem, kernel and seed, then a section for each
 * operand as it was, `found` and, where all was looked at, `expected`, with one number a line. */
TN_API tn_status tn_check(const tn_context *context, const tn_check_args *args,
                          tn_check_result *out, tn_error *err);

typedef struct tn_bench_args {
    size_t struct_size;
    const char *problem;
    const char *kernel;  /* as above */
    const char *against; /* a second kernel, timed in turns with the first; NULL: none */
    double seconds;      /* about how long; 0: one */
} tn_bench_args;
TN_ENDS_WITH(tn_bench_args, seconds);

typedef struct tn_bench_result {
    size_t struct_size;
    char kernel[104];
    int32_t runs;      /* samples */
    int32_t calls;     /* of a sample: enough for the clock */
    double us;         /* one call, the median of samples */
    double spread;     /* of the samples, (q3 - q1) / median */
    double gflops;     /* 10^9 operations a second; 0 for ops without */
    double gbps;       /* 10^9 bytes a second that have to be moved */
    double against_us; /* of the second kernel; 0 without */
    double
        ratio; /* median over pairs of the second's time by the first's: above 1 the first is faster */
    double aa_spread; /* the same between two timings of the first, |ratio - 1| */
} tn_bench_result;
TN_ENDS_WITH(tn_bench_result, aa_spread);

TN_API tn_status tn_bench(const tn_context *context, const tn_bench_args *args,
                          tn_bench_result *out, tn_error *err);

TN_END_DECLS

#endif
