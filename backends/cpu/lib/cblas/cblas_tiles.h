/* Splits a matmul for a library into tiles of out. The tiles depend only on the op and the machine,
 * so that sums do not depend on the number of threads. */
#ifndef TENON_BACKENDS_CPU_CBLAS_TILES_H
#define TENON_BACKENDS_CPU_CBLAS_TILES_H

#include "../../matmul/matmul_product.h"

typedef struct tni_tiles {
    int64_t m, n, matrices;
    int64_t rows, columns; /* of one tile */
    int64_t across;        /* tiles side by side */
    int64_t count;         /* of one matrix */
    int64_t group;         /* whole matrices of one task, if matrices are not split */
} tni_tiles;

/* One tile of a matrix of the batch. */
typedef struct tni_tile {
    int64_t matrix;
    int64_t row, column;
    int64_t rows, columns;
} tni_tile;

/* Number of tiles that a large product should have on this machine: two for each of its processors,
 * and not more, because operands are packed again for every tile. */
int64_t tni_tiles_target(const tn_host *host);

/* Splits both dimensions. Small products are not split. */
void tni_tiles_cut(const tni_mm_product *product, int64_t target, tni_tiles *out);

/* Splits into whole rows; no tile has a single row unless out has only one. */
void tni_tiles_cut_rows(const tni_mm_product *product, int64_t target, tni_tiles *out);

/* Calls task(user, i) for every task, on the thread pool if that helps. */
void tni_tiles_loop(const tni_tiles *tiles, const tn_run *run, tn_task *task, void *user);

/* Calls see(user, tile) for every tile of a task. */
typedef void tni_tile_fn(void *user, const tni_tile *tile);
void tni_tiles_of_task(const tni_tiles *tiles, int64_t task, tni_tile_fn *see, void *user);

#endif
