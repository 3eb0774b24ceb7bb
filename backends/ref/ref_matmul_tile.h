/* One tile of a product, computed in steps along k from operands that were packed for it. */
#ifndef TNI_REF_MATMUL_TILE_H
#define TNI_REF_MATMUL_TILE_H

#include "tenon/module/abi.h"

/* Rows and columns of a tile, and the maximum number of products that one call adds. All are
 * multiples of TNI_REF_BLOCK. A tile, 24 KiB, is on a thread's stack. */
enum { TNI_REF_TILE = 32, TNI_REF_DEPTH = 16, TNI_REF_DEPTH_WIDE = 8, TNI_REF_BLOCK = 4 };

/* If wide, the first halves of `a` and `b` are the high parts and the second halves the low
 * parts. */
typedef struct tni_ref_tile {
    double a[TNI_REF_DEPTH * TNI_REF_TILE];   /* a[p][row] */
    double b[TNI_REF_DEPTH * TNI_REF_TILE];   /* b[p][column] */
    double sum[TNI_REF_TILE * TNI_REF_TILE];  /* sum[row][column] */
    double rest[TNI_REF_TILE * TNI_REF_TILE]; /* rounding errors of the sums, if wide */
} tni_ref_tile;

TN_STATIC_ASSERT(2 * TNI_REF_DEPTH_WIDE <= TNI_REF_DEPTH, "both parts have room");

/* Adds `depth` products to each of the sums, in order. Also computes rows and columns up to the
 * next multiple of TNI_REF_BLOCK. */
void tni_ref_tile_add(tni_ref_tile *tile, int64_t rows, int64_t columns, int64_t depth);
void tni_ref_tile_add_wide(tni_ref_tile *tile, int64_t rows, int64_t columns, int64_t depth);

#endif
