/* One tile of a product: depth by depth, from operands that were laid out for it. */
#ifndef TNI_REF_MATMUL_TILE_H
#define TNI_REF_MATMUL_TILE_H

#include "tenon/module/abi.h"

/* Rows and columns of a tile and how many products one call adds at most. Both are multiples of
 * TNI_REF_BLOCK. All of a tile, 24 KiB, lies on a thread's stack. */
enum { TNI_REF_TILE = 32, TNI_REF_DEPTH = 16, TNI_REF_DEPTH_WIDE = 8, TNI_REF_BLOCK = 4 };

/* Of `a` and `b`, when wide, the first half are the high parts and the second half the low ones. */
typedef struct tni_ref_tile {
    double a[TNI_REF_DEPTH * TNI_REF_TILE];   /* a[p][row] */
    double b[TNI_REF_DEPTH * TNI_REF_TILE];   /* b[p][column] */
    double sum[TNI_REF_TILE * TNI_REF_TILE];  /* sum[row][column] */
    double rest[TNI_REF_TILE * TNI_REF_TILE]; /* what the sums' rounding left, when wide */
} tni_ref_tile;

TN_STATIC_ASSERT(2 * TNI_REF_DEPTH_WIDE <= TNI_REF_DEPTH, "both parts have room");

/* Adds `depth` products to each of the sums, in order. Rows and columns up to the next multiple of
 * TNI_REF_BLOCK are computed too. */
void tni_ref_tile_add(tni_ref_tile *tile, int64_t rows, int64_t columns, int64_t depth);
void tni_ref_tile_add_wide(tni_ref_tile *tile, int64_t rows, int64_t columns, int64_t depth);

#endif
