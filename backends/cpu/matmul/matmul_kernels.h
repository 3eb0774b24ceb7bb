/* The f32 and f64 matmul kernels of an instruction set. All of them sum in the same order: chunks
 * of TNI_MM_DEPTH products, each product added to the sum of its chunk, each chunk added to the sum
 * of the chunks before it. So the result is bitwise the same whichever function computes an
 * element. */
#ifndef TENON_BACKENDS_CPU_MATMUL_KERNELS_H
#define TENON_BACKENDS_CPU_MATMUL_KERNELS_H

#include "matmul_panels.h"

/* Products of a chunk, chosen so that a panel of A stays in the first-level cache. */
enum { TNI_MM_DEPTH = 256 };

/* Matrices of a batch that are one tile each. */
typedef struct tni_mm_queue {
    int64_t count;          /* at least 1 */
    int64_t a_next, b_next; /* bytes from one matrix to the next */
    int64_t to_next;
} tni_mm_queue;

/* A tile of out, with operands read in place. Strides are in elements. */
typedef struct tni_mm_tile {
    const void *a, *b;
    int64_t a_row, a_step; /* of A: from row to row, and along k */
    int64_t b_step;        /* of B along k; its rows are contiguous */
    int64_t ahead;         /* prefetch distance in rows of B; 0: no prefetch, B is in cache */
    int64_t depth;         /* along k */
    int64_t last;          /* columns of the last vector */
    void *to;              /* rows are contiguous */
    int64_t to_row;
    const void *from; /* sums to add to; NULL: none */
    int64_t from_row;
    const tni_mm_queue *queue; /* NULL: only this tile */
    const char *next;          /* packed tiles prefetch a line from here at each step of k, */
    int64_t next_step;         /* so many bytes after the one before: 64, or 0 for nothing */
} tni_mm_tile;

/* Writes the sums of the tile. There is one function for each number of rows and of vectors of
 * columns. */
typedef void tni_mm_tile_fn(const tni_mm_tile *tile);

enum { TNI_MM_TILE_VECTORS = 4, TNI_MM_TILE_ROWS = 16 };

/* Sums of few rows of A with a part of B, chunk by chunk: at most TNI_MM_THIN rows if B is
 * contiguous along k, at most TNI_MM_THIN_WIDE if its rows are. Strides are in elements. */
enum { TNI_MM_THIN = 8, TNI_MM_THIN_WIDE = 24 };
typedef struct tni_mm_thin {
    const void *x; /* A: contiguous along k */
    int64_t x_row;
    const void *b;
    int64_t b_row, b_column; /* along k, and from column to column */
    int64_t rows, columns;
    int64_t depth; /* along k */
    void *to;      /* sums of the first chunk */
    int64_t to_row, to_chunk;
} tni_mm_thin;

/* Kernels of one instruction set. The functions are thread-safe. */
typedef struct tni_mm_kernels {
    tni_mm_set packed;
    int32_t width_log2;                     /* log2 of the columns of a vector */
    int32_t tile_vectors;                   /* maximum */
    int32_t tile_rows[TNI_MM_TILE_VECTORS]; /* maximum, by vectors - 1; 0: none */
    tni_mm_tile_fn *tile[TNI_MM_TILE_VECTORS][TNI_MM_TILE_ROWS]; /* by vectors - 1, rows - 1 */
    /* Sums of a tile of at most columns_most columns, whose rows are a multiple of the lanes of a
     * vector and whose depth is 4 or more. A must be contiguous along k, and there must be no
     * earlier sums to add. Faster from columns_rows rows on. NULL: not available. */
    void (*columns)(const tni_mm_tile *tile, int64_t rows);
    int32_t columns_most, columns_rows;
    /* Epilogue of a tile of rows by columns. Each row of `sums` must have whole vectors. */
    void (*finish)(const tni_mm_finish *finish, const void *sums, int64_t sums_row, int64_t rows,
                   int64_t columns, char *out, const char *bias);
    /* One chunk of a B with contiguous rows. */
    void (*thin_wide)(const tni_mm_thin *job);
    /* Any number of chunks of such a B with at most one vector of columns. */
    void (*thin_narrow)(const tni_mm_thin *job);
    /* One chunk of a B that is contiguous along k. */
    void (*thin_transposed)(const tni_mm_thin *job);
    /* Adds up `count` chunks of n sums each, which are `chunk` elements apart. */
    void (*thin_total)(const void *chunks, int64_t chunk, int64_t count, int64_t n, void *to);
} tni_mm_kernels;

/* Maximum bytes of the sums of a tile, in whole vectors. */
enum { TNI_MM_TILE_BYTES = 2048 };

#define TNI_MM_DECLARE_(isa)                      \
    extern const tni_mm_kernels tni_mm_f32_##isa; \
    extern const tni_mm_kernels tni_mm_f64_##isa;
TNI_MM_DECLARE_(plain)
TNI_MM_DECLARE_(neon)
TNI_MM_DECLARE_(avx2)
TNI_MM_DECLARE_(avx512)
#undef TNI_MM_DECLARE_

#endif
