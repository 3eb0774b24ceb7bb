/* What an instruction set has for matmuls of one dtype, f32 or f64. All of it sums in one order: chunks of
 * TNI_MM_DEPTH products, each product added to the chunk's sum before it, each chunk to the chunks before
 * it. So which of these functions computes an element does not change a bit of it. */
#ifndef TENON_BACKENDS_CPU_MATMUL_KERNELS_H
#define TENON_BACKENDS_CPU_MATMUL_KERNELS_H

#include "packed.h"

/* Products of a chunk: A's panel stays in the first cache. */
enum { TNI_MM_DEPTH = 256 };

/* Matrices of a batch that are one tile each. */
typedef struct tni_mm_queue {
    int64_t count;          /* 1 and more                  */
    int64_t a_next, b_next; /* bytes from each to the next */
    int64_t to_next;
} tni_mm_queue;

/* A tile of out, from where the operands are. Strides are in elements. */
typedef struct tni_mm_tile {
    const void *a, *b;
    int64_t a_row, a_step; /* of A: from row to row, along k                    */
    int64_t b_step;        /* of B along k; its columns are together            */
    int64_t ahead; /* rows of B that are asked for so long before; 0: none, as they are near */
    int64_t depth; /* along k                                           */
    int64_t last;  /* columns of the last vector                        */
    void *to;      /* columns are together                              */
    int64_t to_row;
    const void *from; /* sums that these are added to; NULL: none                */
    int64_t from_row;
    const tni_mm_queue *queue; /* NULL: this tile alone                         */
} tni_mm_tile;

/* Writes the tile's sums. There is one for each number of rows and vectors of columns. */
typedef void tni_mm_tile_fn(const tni_mm_tile *tile);

enum { TNI_MM_TILE_VECTORS = 4, TNI_MM_TILE_ROWS = 16 };

/* Sums of few rows of A with a part of B, chunk by chunk: at most TNI_MM_THIN where B's elements are together along
 * k, at most TNI_MM_THIN_WIDE where its columns are. Strides are in elements. */
enum { TNI_MM_THIN = 8, TNI_MM_THIN_WIDE = 24 };
typedef struct tni_mm_thin {
    const void *x; /* A: together along k                     */
    int64_t x_row;
    const void *b;
    int64_t b_row, b_column; /* along k, and from column to column      */
    int64_t rows, columns;
    int64_t depth; /* along k                                   */
    void *to;      /* the first chunk's sums                    */
    int64_t to_row, to_chunk;
} tni_mm_thin;

/* Kernels of one instruction set. Functions are called from several threads at once. */
typedef struct tni_mm_kernels {
    tni_mm_set packed;
    int32_t width_log2;                     /* of the columns of a vector                   */
    int32_t tile_vectors;                   /* most                                         */
    int32_t tile_rows[TNI_MM_TILE_VECTORS]; /* most, by vectors - 1; 0 where there are none */
    tni_mm_tile_fn *tile[TNI_MM_TILE_VECTORS][TNI_MM_TILE_ROWS]; /* by vectors - 1, rows - 1 */
    /* The tile's sums, of at most columns_most columns, a multiple of a vector's lanes of rows and a depth of 4 or
     * more, where A is together along k and nothing was summed before: worth it for columns_rows or more. NULL: it has
     * none. */
    void (*columns)(const tni_mm_tile *tile, int64_t rows);
    int32_t columns_most, columns_rows;
    /* From sums to out, of a tile of rows by columns; `sums` has whole vectors in each row. */
    void (*finish)(const tni_mm_finish *finish, const void *sums, int64_t sums_row, int64_t rows,
                   int64_t columns, char *out, const char *bias);
    /* One chunk, of a B whose columns are together. */
    void (*thin_wide)(const tni_mm_thin *job);
    /* Any number of chunks, of such a B of at most one vector of columns. */
    void (*thin_narrow)(const tni_mm_thin *job);
    /* One chunk, of a B that is together along k. */
    void (*thin_turned)(const tni_mm_thin *job);
    /* Adds `count` chunks of n sums, which are `chunk` elements apart. */
    void (*thin_total)(const void *chunks, int64_t chunk, int64_t count, int64_t n, void *to);
} tni_mm_kernels;

/* Bytes of a tile's sums at most, in whole vectors. */
enum { TNI_MM_TILE_BYTES = 2048 };

#define TNI_MM_DECLARE_(isa)                      \
    extern const tni_mm_kernels tni_mm_f32_##isa; \
    extern const tni_mm_kernels tni_mm_f64_##isa;
TNI_MM_DECLARE_(plain)
TNI_MM_DECLARE_(avx2)
TNI_MM_DECLARE_(avx512)
#undef TNI_MM_DECLARE_

#endif
