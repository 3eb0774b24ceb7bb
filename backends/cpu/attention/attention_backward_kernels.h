/* The kernels of an instruction set for attention-backward of one dtype. The parts that depend on
 * neither are in attention_backward_pass.c. With `keep` = 1 / (1 - dropout), or 0 for dropped
 * weights, and keys as rows:
 *
 *     weight = exp(score - lse)
 *     slope  = weight (keep v . dout - delta), times that of the softcap      delta = dout . out
 *     dv += keep weight dout        dk += slope q        dq += slope k
 *
 * dk and dq are multiplied by the scale at the end. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_BACKWARD_KERNELS_H
#define TENON_BACKENDS_CPU_ATTENTION_BACKWARD_KERNELS_H

#include "attention_kernels.h"

/* Maximum rows and keys that are combined at a time. */
enum { TNI_AT_BACK_ROWS = 128, TNI_AT_BACK_KEYS = 256 };

/* Elements from a key's slopes to the next key's, chosen so that rows do not share sets of the
 * cache. */
enum { TNI_AT_SLOPE_ROW = TNI_AT_BACK_ROWS + 16 };

/* Some keys with some rows. All data but K and V are of rows `row` and on of the unit. A bias of
 * -infinity excludes a pair from all gradients; rows that saw nothing have it for all keys. */
typedef struct tni_at_back {
    const tni_at_problem *problem;
    int64_t rows;                               /* of the unit, at most TNI_AT_BACK_ROWS */
    int64_t keys;                               /* at most set->rows */
    const char *k, *v;                          /* rows, as written by `pack_rows` */
    const char *q_transposed, *dout_transposed; /* transposed panels of columns */
    const char *q_lines, *dout_lines;           /* the first panel of columns */
    int64_t rows_panel;                         /* bytes from one panel to the next */
    const void *less, *delta;                   /* of each row, in whole panels: -lse, and delta */
    const void *bias, *keep;                    /* per key, TNI_AT_SLOPE_ROW apart; or NULL */
    bool nonfinite;                             /* some of q or dout is not finite */
    void *slopes;                               /* output, per key, TNI_AT_SLOPE_ROW apart */
    void *dk, *dv;                              /* rows of keys: added to */
    int64_t dk_row, dv_row;                     /* elements from row to row */
    char *room;                                 /* set->room bytes */
} tni_at_back;

/* Computes dq of some rows, from slopes and keys. */
typedef struct tni_at_back_rows {
    int64_t rows, keys, size;
    const void *slopes; /* at the first key and row */
    const char *k_lines;
    int64_t k_panel;
    void *dq;
    int64_t dq_row;
} tni_at_back_rows;

/* A row of out and of dout, and its lse. Steps are in bytes. */
typedef struct tni_at_back_begin {
    const char *out, *dout, *lse;
    int64_t out_step, dout_step, size;
} tni_at_back_begin;

typedef struct tni_at_back_set {
    int32_t rows;    /* maximum, of A's panels */
    int32_t columns; /* of B's panels */
    int32_t real;    /* bytes of the real type */
    int64_t room;
    int64_t room_more;            /* per element of packed rows, plus 32 */
    int64_t (*row)(int64_t size); /* bytes of a row as written by `pack_rows` */
    void (*pack_rows)(const char *const *from, int64_t step, int64_t size, int64_t rows, char *to);
    /* Write the two forms of tni_at_pack; `lines` returns whether all elements are finite. */
    void (*transpose)(const tni_at_pack *job);
    bool (*lines)(const tni_at_pack *job);
    /* Computes `less` (-lse) and `delta` of a row, from its out, dout and lse. */
    void (*begin_row)(const tni_at_back_begin *job, void *out_less, void *out_delta);
    void (*keys_step)(const tni_at_back *step);
    void (*rows_step)(const tni_at_back_rows *step);
    /* Writes a row of sums times `by` to its destination. */
    void (*write)(const void *sums, double by, int64_t size, char *to, int64_t step);
} tni_at_back_set;

#endif
