/* What a kernel of fft knows of a length: how it is split, and its tables, whatever the instruction
 * set. Lines of complex numbers are transformed in one of two ways:
 *
 *     lanes  as many lines at once as a vector has lanes, by one core
 *     line   one line as n1 rows of n2 columns: the columns by a core, as many at once as a vector
 *            has lanes; factors; then the rows, transposed, in the same way
 *
 * A core has passes of small radices over cells: a vector of real parts and one of imaginary parts.
 * Other lengths, with large primes, are convolved with a chirp (Bluestein) by a longer length. */
#ifndef TENON_BACKENDS_CPU_FFT_PLAN_H
#define TENON_BACKENDS_CPU_FFT_PLAN_H

#include "tenon/module/kernel.h"
#include "tenon/module/op/fft.h"

#include <stdbool.h>

enum {
    TNI_FFT_PASSES = 32,
    TNI_FFT_PRIME_MOST = 31,  /* radices above 8 are primes up to this */
    TNI_FFT_LANES_MOST = 4096 /* longest of whole lines: its cells stay in the second cache */
};

/* The numbers of a core or a length, real and imaginary part alternating, are float for f32 and
 * double for f64. */
typedef struct tni_fft_core {
    int64_t n; /* 0: no such core */
    int32_t count;
    int32_t radix[TNI_FFT_PASSES];
    const void *turns[TNI_FFT_PASSES]; /* of each pass: (rest) x (radix - 1) factors */
    const void *roots[TNI_FFT_PASSES]; /* the radix-th roots of 1, for odd radices */
} tni_fft_core;

/* How a length is computed: known without tables. */
typedef struct tni_fft_split {
    int64_t n;      /* of the complex transform */
    int64_t m;      /* n, or the length of the convolution with a chirp */
    int64_t n1, n2; /* n1 n2 = m; 0 if no line can be split */
    bool chirps;
    bool halved; /* n is half of a real transform's length */
} tni_fft_split;

typedef struct tni_fft_length {
    tni_fft_split split;
    tni_fft_core whole;         /* of m numbers, if at most TNI_FFT_LANES_MOST */
    tni_fft_core first, second; /* of n1 and n2 numbers */
    const void *lane_turns;     /* [n1][2][lanes]: w^(k1 lane), w = exp(-2 pi i / m) */
    const void *group_turns;    /* [n1][groups of n2]: w^(k1 group lanes) */
    const void *chirp;          /* [n]: exp(-pi i j^2 / n) */
    const void *spectrum;       /* [m]: transform of the conjugate chirp, divided by m */
    const void *halves;         /* [n / 2 + 1 + lanes]: exp(-pi i k / n), if halved */
} tni_fft_length;

typedef struct tni_fft_plan {
    tni_fft_length length[TN_FFT_DIMS_MAX];
    int32_t count;
    void **tables;
    uint64_t bytes;
    bool wide; /* f64 */
    const tn_host *host;
} tni_fft_plan;

struct tni_fft_work;
typedef void tni_fft_compute(const struct tni_fft_work *work);

/* Lanes of a vector, whether there are 32 registers, so that radix 8 is worth while, and the code for f64. */
typedef struct tni_fft_machine {
    int32_t vector_bytes;
    bool many_registers;
    tni_fft_compute *f64;
} tni_fft_machine;

static inline int32_t tni_fft_lanes(const tni_fft_machine *machine, bool wide)
{
    return machine->vector_bytes / (wide ? 8 : 4);
}

static inline bool tni_fft_is_wide(const tn_op *op)
{
    const tn_dtype in = op->operand[TN_FFT_IN].dtype;
    return in == TN_F64 || in == TN_C128;
}

/* Splits dimension d of the op. */
void tni_fft_split_make(const tn_op *op, int32_t d, int32_t lanes, tni_fft_split *out);

/* Makes the tables of all dimensions, from the host's memory. Fails with TN_OUT_OF_MEMORY. */
tn_status tni_fft_plan_make(const tn_run *run, const tni_fft_machine *machine, void **out,
                            uint64_t *out_bytes, tn_error *err);
void tni_fft_plan_release(const tn_run *run, void *made);

#endif
