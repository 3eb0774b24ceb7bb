/* attention-quantized: K and V are quantized and packed once for all heads that share them, in steps
 * of 128 keys; then each tile of 128 queries is quantized and visits the steps that it sees.
 *
 * The result of a row is bitwise the same for any number of threads and any other batch contents:
 * sums of columns, steps and tiles depend only on the sizes. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_QUANTIZED_PASS_H
#define TENON_BACKENDS_CPU_ATTENTION_QUANTIZED_PASS_H

#include "tenon/module/attention.h"
#include "tenon/module/kernel.h"
#include "tenon/module/op/attention_quantized.h"

#include <stdbool.h>

/* Keys whose columns are summed at once. */
enum { TNI_AQ_PIECE = 512 };

/* Rows of an operand in memory. */
typedef struct tni_aq_rows {
    const char *first;
    int64_t row;    /* bytes from row to row */
    int64_t stride; /* elements from one to the next */
    int64_t count;  /* elements of a row */
    tn_dtype dtype;
} tni_aq_rows;

/* Sizes for an op and a set. Integers are stored as units of 32 bits: four of 8 bits or two of 16
 * bits. A panel is two vectors wide. */
typedef struct tni_aq_sizes {
    const tn_attention_quantized_op *op;
    const tn_attention_op *at;
    int64_t steps;   /* of all keys */
    int64_t line;    /* size, rounded up to whole vectors */
    int64_t columns; /* value size, rounded up to whole panels */
    int64_t q_row;   /* bytes of a row of integers of Q */
    int64_t k_step;  /* bytes of a step: [panels of keys][units][keys][unit] */
    int64_t v_step;  /* [panels of columns][keys][columns] */
} tni_aq_sizes;

/* A batch element's group, packed. */
typedef struct tni_aq_unit {
    float *sums;     /* [pieces][line + columns]: of the columns of K; greatest |v| */
    float *flaws;    /* [pieces]: NaN if K or V is not finite, else 0 */
    float *mean;     /* [line] */
    float *v_scales; /* [columns] */
    float *flaw;     /* [1]: NaN or 0 */
    float *factors;  /* [steps][keys]: factor from integers to scores, in units of log2 */
    char *k, *v;     /* [steps] */
} tni_aq_unit;

/* The state of a tile. */
typedef struct tni_aq_tile {
    float *room;    /* [rows][line], before the first step */
    char *q;        /* [rows]: integers */
    float *scales;  /* [rows] */
    int32_t *begin; /* [rows]: what sums of products start at */
    float *offsets; /* [rows]: q . mean */
    float *flaws;   /* [rows]: NaN or 0 */
    float *most;    /* [rows]: greatest score so far, in units of log2 */
    float *totals;  /* [rows][lanes]: of the rounded weights */
    float *exact;   /* [rows][lanes]: of the weights */
    float *values;  /* [rows][columns] */
    char *scores;   /* of some rows and a step */
} tni_aq_tile;

/* A step: `rows` rows of a tile, and the keys from `key` on. Each row sees the keys of the step from
 * first[r] up to, not including, end[r]. */
typedef struct tni_aq_step {
    const tni_aq_sizes *sizes;
    const tni_aq_tile *tile;
    const char *k, *v;
    const float *factors;
    const int32_t *first, *end;
    int64_t rows;
} tni_aq_step;

typedef struct tni_aq_set {
    int32_t lanes, rows; /* floats of a vector; rows of the micro-kernels */
    int32_t unit;        /* integers of a unit */
    int64_t room;        /* bytes of tni_aq_tile.scores */
    /* Sums the columns of K, finds the greatest |v| of those of V, and whether all are finite. */
    void (*sum)(const tni_aq_sizes *sizes, const tni_aq_rows *k, const tni_aq_rows *v, int64_t key,
                int64_t keys, float *sums, float *greatest, float *flaw, float *room);
    void (*pack_keys)(const tni_aq_sizes *sizes, const tni_aq_rows *k, int64_t key,
                      const tni_aq_unit *unit, float *room);
    void (*pack_values)(const tni_aq_sizes *sizes, const tni_aq_rows *v, int64_t key,
                        const tni_aq_unit *unit, float *room);
    void (*pack_tile)(const tni_aq_sizes *sizes, const tni_aq_rows *q, int64_t query, int64_t rows,
                      const float *mean, const tni_aq_tile *tile);
    void (*step)(const tni_aq_step *step);
    void (*write_row)(const tni_aq_sizes *sizes, const float *values, const float *v_scales,
                      float by, float flaw, const tni_aq_rows *out, int64_t row);
} tni_aq_set;

typedef struct tni_aq_row {
    tn_kernel_row row; /* must be first: the functions get a pointer to it */
    const tni_aq_set *set;
} tni_aq_row;

/* Bytes of workspace for this number of threads; UINT64_MAX: overflow. */
uint64_t tni_aq_workspace(const tni_aq_set *set, const tn_op *op, int32_t threads);

tn_status tni_aq_forward(const tni_aq_set *set, const tn_run *run, tn_error *err);

#endif
