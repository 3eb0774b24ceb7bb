/* What an instruction set has for attention-backward of one dtype. What does not depend on either is in
 * backward.c. With `keep` 1 / (1 - dropout), or 0 for what was dropped, and keys as rows:
 *
 *     weight = exp(score - lse)
 *     slope  = weight (keep v . dout - delta), times that of the softcap      delta = dout . out
 *     dv += keep weight dout        dk += slope q        dq += slope k
 *
 * where dk and dq lack the scale, which they get at the end. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_BACKWARD_KERNELS_H
#define TENON_BACKENDS_CPU_ATTENTION_BACKWARD_KERNELS_H

#include "kernels.h"

/* Most rows and keys that meet at a time. */
enum { TNI_AT_BACK_ROWS = 128, TNI_AT_BACK_KEYS = 256 };

/* Elements from a key's slopes to the next one's: rows do not share sets of the cache. */
enum { TNI_AT_SLOPE_ROW = TNI_AT_BACK_ROWS + 16 };

/* Some keys with some rows. All numbers but K and V have been read from rows `row` and on of the unit. */
typedef struct tni_at_back {
    const tni_at_problem *problem;
    int64_t rows;                       /* of the unit, at most TNI_AT_BACK_ROWS        */
    int64_t keys;                       /* at most set->rows                            */
    const char *k, *v;                  /* rows, as `take` leaves them                  */
    const char *q_turned, *dout_turned; /* panels of columns                            */
    const char *q_lines, *dout_lines;   /* the first panel of columns                   */
    int64_t rows_panel;                 /* bytes from one of those to the next          */
    const void *less, *delta;           /* of each row, in whole panels: -lse, and delta */
    const void *bias, *keep;            /* of keys, TNI_AT_SLOPE_ROW apart; or NULL. A bias of
                                           -infinity, which rows that saw nothing have for all keys:
                                           the pair has part in no gradient             */
    bool nonfinite;                     /* some of q or dout is not finite              */
    void *slopes;                       /* of keys, TNI_AT_SLOPE_ROW apart: written     */
    void *dk, *dv;                      /* rows of keys: added to                       */
    int64_t dk_row, dv_row;             /* elements from row to row                     */
    char *room;                         /* set->room bytes                              */
} tni_at_back;

/* Some rows, from slopes and keys: dq. */
typedef struct tni_at_back_rows {
    int64_t rows, keys, size;
    const void *slopes; /* of the first key and row               */
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
    int32_t rows;    /* of A's panels, at most    */
    int32_t columns; /* of B's                    */
    int32_t real;    /* bytes of a number         */
    int64_t room;
    int64_t room_more;            /* for each element of rows that are packed, and 32 */
    int64_t (*row)(int64_t size); /* bytes of a row as `take` leaves it               */
    void (*take)(const char *const *from, int64_t step, int64_t size, int64_t rows, char *to);
    /* Both of tni_at_pack's forms, each by itself; the second says whether all is finite. */
    void (*turn)(const tni_at_pack *job);
    bool (*lines)(const tni_at_pack *job);
    /* `less` and `delta` of a row, from those of out and dout, of `size` elements so many bytes apart, and lse. */
    void (*begin_row)(const tni_at_back_begin *job, void *out_less, void *out_delta);
    void (*keys_step)(const tni_at_back *step);
    void (*rows_step)(const tni_at_back_rows *step);
    /* A row of sums times `by` to where it belongs. */
    void (*write)(const void *sums, double by, int64_t size, char *to, int64_t step);
} tni_at_back_set;

#endif
