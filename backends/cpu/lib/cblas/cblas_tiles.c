#include "cblas_tiles.h"

#include "../../cpu_process.h"
#include "../../shared/sizes.h"

/* Minimum multiplications of a task. */
#define GRAIN 0x1p21

enum { TILE_LEAST = 64, TILE_MOST = 1 << 30 };

static int64_t tiles_of(int64_t whole, int64_t tile)
{
    return tile > 0 ? parts(whole, tile) : 0;
}

static int64_t half(int64_t tile)
{
    return parts(tile, 2 * TILE_LEAST) * TILE_LEAST;
}

int64_t tni_tiles_target(const tn_host *host)
{
    enum { LEAST = 4, MOST = 256, UNKNOWN = 16 };
    tn_machine_facts facts;
    if (!tni_cpu_machine_read(host, &facts) || facts.hardware_threads.value <= 0)
        return UNKNOWN;
    int64_t target = 2 * facts.hardware_threads.value;
    return target < LEAST ? LEAST : least(target, MOST);
}

static double depth_of(const tni_mm_product *product)
{
    return (double)(product->k > 0 ? product->k : 1);
}

/* Number of tiles per matrix, if there are several matrices. */
static int64_t share(int64_t target, const tni_mm_product *product)
{
    return tiles_of(target, product->matrices);
}

/* Starts with whole matrices; several of them form a task if one is too small. */
static void init_tiles(const tni_mm_product *p, tni_tiles *out)
{
    double work = (double)p->m * (double)p->n * (double)p->k;
    *out = (tni_tiles){.m = p->m,
                       .n = p->n,
                       .matrices = p->matrices,
                       .rows = p->m,
                       .columns = p->n,
                       .across = 1,
                       .count = 1,
                       .group = 1};
    if (p->matrices > 1 && work < GRAIN)
        out->group = (int64_t)(GRAIN / (work + 64));
}

static void finish_tiles(tni_tiles *tiles, int64_t rows, int64_t columns)
{
    tiles->rows = rows;
    tiles->columns = columns;
    tiles->across = tiles_of(tiles->n, columns);
    tiles->count = tiles_of(tiles->m, rows) * tiles->across;
    tiles->group = tiles->count > 1 ? 1 : tiles->group;
}

void tni_tiles_cut(const tni_mm_product *p, int64_t target, tni_tiles *out)
{
    const double k = depth_of(p);
    int64_t rows = p->m, columns = p->n;
    init_tiles(p, out);
    while (((double)rows * (double)columns * k > 2 * GRAIN &&
            tiles_of(p->m, rows) * tiles_of(p->n, columns) < share(target, p) &&
            (rows > TILE_LEAST || columns > TILE_LEAST)) ||
           rows > TILE_MOST || columns > TILE_MOST) {
        if (rows > columns)
            rows = half(rows);
        else
            columns = half(columns);
    }
    finish_tiles(out, rows, columns);
}

void tni_tiles_cut_rows(const tni_mm_product *p, int64_t target, tni_tiles *out)
{
    const double row = (double)p->n * depth_of(p);
    int64_t rows = p->m;
    init_tiles(p, out);
    while ((double)rows * row > 2 * GRAIN && tiles_of(p->m, rows) < share(target, p) &&
           rows > TILE_LEAST)
        rows = half(rows);
    while (rows > 1 && rows < p->m && p->m % rows == 1)
        rows += TILE_LEAST;
    finish_tiles(out, least(rows, p->m), p->n);
}

void tni_tiles_loop(const tni_tiles *tiles, const tn_run *run, tn_task *task, void *user)
{
    int64_t count =
        tiles->count > 1 ? tiles->matrices * tiles->count : tiles_of(tiles->matrices, tiles->group);
    if (count > 1 && run->threads > 1) {
        run->host->parallel_for(run->host->self, count, task, user);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        task(user, i);
}

void tni_tiles_of_task(const tni_tiles *tiles, int64_t task, tni_tile_fn *see, void *user)
{
    if (tiles->count > 1) {
        int64_t index = task % tiles->count;
        int64_t row = index / tiles->across * tiles->rows;
        int64_t column = index % tiles->across * tiles->columns;
        const tni_tile tile = {.matrix = task / tiles->count,
                               .row = row,
                               .column = column,
                               .rows = least(tiles->rows, tiles->m - row),
                               .columns = least(tiles->columns, tiles->n - column)};
        see(user, &tile);
        return;
    }
    int64_t end = least((task + 1) * tiles->group, tiles->matrices);
    for (int64_t i = task * tiles->group; i < end; i++) {
        const tni_tile tile = {.matrix = i, .rows = tiles->m, .columns = tiles->n};
        see(user, &tile);
    }
}
