/* Blocks made of tiles whose sums stay in registers. The includer defines, before:
 *
 *     SUMS                        vu or vf
 *     TILE_ROWS, TILE_COLUMNS     of a tile; columns are whole vectors
 *     STEP_UNITS                  units along k that a tile takes at once
 *     UNIT, finish_sums           as in matmul_lowp_dot.h
 *
 * and sum_any_tile after. It must have included matmul_lowp_units.h. */
#ifndef TENON_BACKENDS_CPU_MATMUL_LOWP_TILE_H
#define TENON_BACKENDS_CPU_MATMUL_LOWP_TILE_H

typedef struct tile {
    const char *a, *b; /* panels */
    int64_t steps;     /* along k */
    const char *from;  /* sums to add; NULL: none */
    char *to;
    int64_t from_row, to_row; /* bytes */
    int rows, vectors;        /* of sums */
    mask_f32 last;            /* columns of the last vector */
} tile;

/* Sums the tile and stores its rows. */
static void sum_any_tile(const tile *t);

INLINE SUMS load_sums(const char *from)
{
    return (SUMS)load_i32(from);
}

INLINE SUMS load_some_sums(const char *from, mask_f32 some)
{
#if defined(__AVX512F__)
    return (SUMS)_mm512_maskz_loadu_epi32(some, from);
#elif defined(__AVX2__)
    return (SUMS)_mm256_maskload_epi32((const int *)(const void *)from, (__m256i)some);
#else
    vi v = {0};
    memcpy(&v, from, (size_t)some * 4);
    return (SUMS)v;
#endif
}

INLINE void store_some_sums(char *to, mask_f32 some, SUMS v)
{
#if defined(__AVX512F__)
    _mm512_mask_storeu_epi32(to, some, (__m512i)v);
#elif defined(__AVX2__)
    _mm256_maskstore_epi32((int *)(void *)to, (__m256i)some, (__m256i)v);
#else
    memcpy(to, &v, (size_t)some * 4);
#endif
}

/* Computes the tile of a block at this row and column. */
static void block_tile(const tni_mm_block *job, int64_t steps, int64_t row, int64_t column)
{
    const tni_mm_finish *f = job->finish;
    const int64_t rows = least(job->rows - row, TILE_ROWS);
    const int64_t columns = least(job->columns - column, TILE_COLUMNS);
    const int vectors = (int)parts(columns, LANES);
    const bool finished = job->last && !f->plain;
    static const char nothing[TILE_COLUMNS * 4];
    _Alignas(64) char room[TILE_ROWS * TILE_COLUMNS * 4];
    char *sums = job->sums + (row * job->sums_row + column) * 4;
    char *out = tni_mm_out_at(job, row, column);
    const tile t = {.a = job->a + row / TILE_ROWS * job->a_panel,
                    .b = steps > 0 ? job->b + column / TILE_COLUMNS * job->b_panel : nothing,
                    .steps = steps,
                    .from = job->first ? NULL : sums,
                    .from_row = job->sums_row * 4,
                    .to = finished    ? room
                          : job->last ? out
                                      : sums,
                    .to_row = 4 * (finished    ? TILE_COLUMNS
                                   : job->last ? f->out_row
                                               : job->sums_row),
                    .rows = (int)rows,
                    .vectors = vectors,
                    .last = mask_first_f32(columns - (vectors - 1) * LANES)};
    sum_any_tile(&t);
    if (finished)
        finish_sums(f, (void *)room, TILE_COLUMNS, rows, columns, out,
                    tni_mm_bias_at(job, row, column));
}

static void block(const tni_mm_block *job)
{
    const int64_t steps = parts(job->depth, STEP_UNITS * unit_elements(UNIT));
    for (int64_t row = 0; row < job->rows; row += TILE_ROWS)
        for (int64_t column = 0; column < job->columns; column += TILE_COLUMNS)
            block_tile(job, steps, row, column);
}

#endif
