/* The passes of a problem of fft, one for each transformed dimension, and their memory: computed from
 * the op alone, by `workspace` and again by each run. */
#ifndef TENON_BACKENDS_CPU_FFT_SCHEME_H
#define TENON_BACKENDS_CPU_FFT_SCHEME_H

#include "fft_plan.h"

/* Where a pass reads and writes. ROOM is a dense copy of a half spectrum in the workspace. */
enum { TNI_FFT_AT_IN, TNI_FFT_AT_OUT, TNI_FFT_AT_ROOM };

/* One side of a pass; strides in elements of its dtype. */
typedef struct tni_fft_side {
    int32_t at;                     /* TNI_FFT_AT_... */
    bool is_real;                   /* of f32 or f64; else of c64 or c128 */
    int64_t step;                   /* between the elements of a line */
    int64_t stride[TN_OP_RANK_MAX]; /* between lines, along each dimension of lines */
} tni_fft_side;

typedef struct tni_fft_pass {
    int32_t dim; /* which transformed dimension: the index of its length in the plan */
    int32_t kind;
    bool inverse; /* of complex numbers: computed with real and imaginary parts exchanged */
    bool mirror;  /* real transforms in the other direction: the spectrum is conjugated */
    bool lanes;   /* the way of fft_plan.h */
    double scale;
    tni_fft_split split;
    tni_fft_side in, out;
    int64_t lines;
    int32_t rank; /* dimensions of lines, the one with the smallest strides last */
    int64_t shape[TN_OP_RANK_MAX];
    int64_t staged; /* lines that are copied at once; 0: lines are read and written in place */
} tni_fft_pass;

typedef struct tni_fft_scheme {
    int32_t lanes; /* of a vector */
    int32_t count;
    tni_fft_pass pass[TN_FFT_DIMS_MAX];
    int64_t cells; /* bytes of a slice: two buffers of a core, */
    int64_t table; /*   a line between columns and rows, */
    int64_t stage; /*   copies of lines */
    int64_t room;  /* bytes of ROOM, shared by all slices */
} tni_fft_scheme;

/* Numbers that the copy of a line has room for, in whole vectors: those of its transform or of its
 * convolution, and the two more of a half spectrum. */
static inline int64_t tni_fft_stage_numbers(const tni_fft_split *split)
{
    return ((split->m > split->n ? split->m : split->n) + 2 + 15) / 16 * 16;
}

/* Takes the splits from the plan, which may be NULL: finding them takes longer than a small
 * transform. */
void tni_fft_scheme_make(const tn_op *op, const tni_fft_machine *machine, const tni_fft_plan *plan,
                         tni_fft_scheme *out);

static inline int64_t tni_fft_slice_bytes(const tni_fft_scheme *scheme)
{
    return scheme->cells + scheme->table + scheme->stage;
}

/* What the code of an instruction set gets. */
typedef struct tni_fft_work {
    const tn_run *run;
    const tni_fft_scheme *scheme;
    const tni_fft_plan *plan;
    int64_t slices;
    char *room, *memory; /* of the slices */
} tni_fft_work;

#endif
