/* Checks kernels against the reference, and times them.
 *
 * Thread-safety: Safe, but concurrent calls disturb each other's timings. */
#ifndef TENON_CHECK_H
#define TENON_CHECK_H

#include "explain.h"

TN_BEGIN_DECLS

/* tn_check_args.flags: some inputs are NaN or infinite. About every second output reads one. Applies
 * to real floats, and only where an operator's rules say what NaN and infinity do: A, B, bias and,
 * if beta is not 0, out of matmul (A and B only if alpha is not 0); IN of reduce, softmax, norm and
 * rotary; V of attention, and NaN in its Q and K. Cast, binary and most unary operators get such
 * inputs without the flag too. */
#define TN_CHECK_NONFINITE UINT64_C(1)

typedef struct tn_check_args {
    size_t struct_size;
    const char *problem;
    const char *kernel; /* which kernel; NULL: the one that a call would use */
    uint64_t seed;      /* seed of the inputs; 0: a new random seed, returned in the result */
    const char *dump;   /* file for the inputs and both outputs if they differ; NULL: none */
    uint64_t flags;     /* TN_CHECK_...; other bits must be 0 */
} tn_check_args;
TN_ENDS_WITH(tn_check_args, flags);

typedef struct tn_check_result {
    size_t struct_size;
    char kernel[104];
    int32_t ok;      /* 1: every checked output is within its bound, no other byte was written, and
                        the kernel keeps what its row declares */
    int32_t sampled; /* 1: the problem was too large to check every output */
    int64_t checked; /* number of outputs checked */
    double error;    /* the largest error, as a fraction of its bound: up to 1 passes */
    double bound;    /* the bound of that output, absolute */
    double found, expected;
    int64_t at; /* index of that output in row-major order; -1: none */
    uint64_t seed;
    char text[256]; /* what is wrong; "" when nothing is */
} tn_check_result;
TN_ENDS_WITH(tn_check_result, text);

/* Runs a kernel on random inputs for the problem and compares the result with the reference. Above
 * 2*10^9 operations, only 4096 random outputs and the edges are checked. Fails with TN_UNSUPPORTED
 * or TN_REFUSED, and the kernel's reason, if the kernel does not accept the problem. Set
 * out->struct_size first.
 *
 * A second run on the same inputs checks what the kernel's row declares. It is recorded into a graph
 * (unless the row has TN_ROW_NO_GRAPHS or the device has no further streams) and gets a workspace
 * of the stated size with other contents. Its outputs must have the same bits if the row has
 * TN_NUM_RUN_TO_RUN, and bytes behind the workspace must stay unchanged.
 *
 * The dump is in Tenon's text form: problem, kernel and seed, then a section for each operand as it
 * was before the run, a section `found` and, if every output was checked, a section `expected`,
 * with one number per line. */
TN_API tn_status tn_check(const tn_context *context, const tn_check_args *args,
                          tn_check_result *out, tn_error *err);

/* Problems that exercise one aspect of a kernel's behaviour. The word is the name of a bit of the
 * op's `uses`, or "shapes", "pitches", "alignment", "together", "nonfinite" (to be checked with
 * TN_CHECK_NONFINITE). A template is the fields of a problem's text with placeholders:
 *
 *     $        name of the dtype
 *     &        bytes of an element
 *     ~        the same, but 4 for dtypes of one byte: the size of their products
 *     ?x<N>    a random number from 2 to N; later `?x` is the same number; x is a letter
 *     +N *N    after such a number: add, multiply; from left to right; N may also be `?y`
 *
 * Fixed: it gets no more fields. */
typedef struct tn_check_aspect {
    const char *word;
    const char *const *templates; /* ends with NULL */
} tn_check_aspect;

/* Returns the aspects of an operator, TN_OP_..., at most 32. The list ends with an entry whose word
 * is NULL; it has no other entry for a number without an operator. */
TN_API const tn_check_aspect *tn_check_aspects(int32_t op);

/* Returns the name of an operator, TN_OP_..., as in problem texts; "" for a number without one. */
TN_API const char *tn_op_name(int32_t op);

/* Returns the number of the operator after `op`, by number: the first one for 0, and 0 after the
 * last one. */
TN_API int32_t tn_op_next(int32_t op);

/* Returns the fields that a problem text of an operator, TN_OP_..., may have, separated by spaces;
 * "" for a number without an operator. */
TN_API const char *tn_op_fields(int32_t op);

typedef struct tn_bench_args {
    size_t struct_size;
    const char *problem;
    const char *kernel;  /* as above */
    const char *against; /* a second kernel, timed alternately with the first; NULL: none */
    double seconds;      /* approximate duration; 0: 1 second */
} tn_bench_args;
TN_ENDS_WITH(tn_bench_args, seconds);

typedef struct tn_bench_result {
    size_t struct_size;
    char kernel[104];
    int32_t runs;      /* samples */
    int32_t calls;     /* calls per sample, enough for the clock's resolution */
    double us;         /* time of one call in microseconds, the median of the samples */
    double spread;     /* spread of the samples, (q3 - q1) / median */
    double gflops;     /* 10^9 operations per second; 0 for ops that have no operation count */
    double gbps;       /* 10^9 bytes per second, counting the minimum memory traffic */
    double against_us; /* time of the second kernel; 0 if none exists */
    double ratio;      /* median of second time / first time; above 1: the first is faster */
    double aa_spread;  /* the same for the first kernel against itself, |ratio - 1| */
} tn_bench_result;
TN_ENDS_WITH(tn_bench_result, aa_spread);

TN_API tn_status tn_bench(const tn_context *context, const tn_bench_args *args,
                          tn_bench_result *out, tn_error *err);

TN_END_DECLS

#endif
