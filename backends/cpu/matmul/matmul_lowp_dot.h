/* Micro-kernels with instructions that multiply the units of two vectors and add each unit's
 * products to a sum. The includer defines, for one instruction set and one dtype:
 *
 *     SUMS          vu or vf
 *     TILE_ROWS     rows for which there are registers, beside two vectors of B and a unit of A
 *                   (4, 6 or 12)
 *     UNIT          the kind of unit: BYTES, WIDE_BYTES or PAIRS
 *     dot(s, x, y)  s plus the products of the units x, of A, and y, of B
 *     FLIP          bits of A's units to invert
 *     BEGINS        whether a panel of B has, after its units, the initial sums of its columns
 *     finish_sums   the epilogue, as finish_i32 of matmul_lowp_i32.h
 *
 * and must have included matmul_lowp_units.h. A sum takes units one after the other in any tile:
 * its bits do not depend on its position. */
#ifndef TENON_BACKENDS_CPU_MATMUL_LOWP_DOT_H
#define TENON_BACKENDS_CPU_MATMUL_LOWP_DOT_H

#define TILE_EACH_4(X)  X(1) X(2) X(3) X(4)
#define TILE_EACH_6(X)  TILE_EACH_4(X) X(5) X(6)
#define TILE_EACH_12(X) TILE_EACH_6(X) X(7) X(8) X(9) X(10) X(11) X(12)
#if TILE_ROWS == 12
#define TILE_EACH TILE_EACH_12
#elif TILE_ROWS == 6
#define TILE_EACH TILE_EACH_6
#else
#define TILE_EACH TILE_EACH_4
#endif

enum { TILE_COLUMNS = 2 * LANES };

typedef struct tile {
    const char *a, *b; /* panels */
    int64_t units;     /* along k */
    const char *from;  /* sums to add; NULL: none */
    char *to;
    int64_t from_row, to_row; /* bytes */
    mask_f32 last;            /* columns of the last vector */
} tile;

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

/* `rows` and `vectors` are constants. */
INLINE void sum_tile(const tile *t, const int rows, const int vectors)
{
    enum { VECTOR_BYTES = 4 * LANES };
    const char *a = t->a, *b = t->b;
    SUMS sum[TILE_ROWS][2];
    UNROLLED for (int i = 0; i < rows; i++) UNROLLED for (int j = 0; j < vectors; j++) sum[i][j] =
        BEGINS ? load_sums(b + t->units * 4 * TILE_COLUMNS + j * VECTOR_BYTES) : (SUMS){0};
    for (int64_t q = t->units; q > 0; q--, a += 4 * TILE_ROWS, b += 4 * TILE_COLUMNS) {
        vu y[2];
        UNROLLED for (int j = 0; j < vectors; j++) y[j] = (vu)load_i32(b + j * VECTOR_BYTES);
        UNROLLED for (int i = 0; i < rows; i++)
        {
            uint32_t unit;
            memcpy(&unit, a + 4 * i, sizeof unit);
            const vu x = unit - (vu){0};
            UNROLLED for (int j = 0; j < vectors; j++) sum[i][j] = dot(sum[i][j], x, y[j]);
        }
    }
    if (t->from) {
        UNROLLED for (int i = 0; i < rows; i++) UNROLLED for (int j = 0; j < vectors; j++)
        {
            const char *from = t->from + i * t->from_row + j * VECTOR_BYTES;
            sum[i][j] += j + 1 < vectors ? load_sums(from) : load_some_sums(from, t->last);
        }
    }
    UNROLLED for (int i = 0; i < rows; i++) UNROLLED for (int j = 0; j < vectors; j++)
    {
        char *to = t->to + i * t->to_row + j * VECTOR_BYTES;
        if (j + 1 < vectors)
            store_i32(to, (vi)sum[i][j]);
        else
            store_some_sums(to, t->last, sum[i][j]);
    }
}

typedef void tile_fn(const tile *t, bool wide);

#define TILE(rows)                                    \
    static void tile_##rows(const tile *t, bool wide) \
    {                                                 \
        if (wide)                                     \
            sum_tile(t, rows, 2);                     \
        else                                          \
            sum_tile(t, rows, 1);                     \
    }
TILE_EACH(TILE)
#undef TILE

#define TILE(rows) tile_##rows,
static tile_fn *const tiles[TILE_ROWS] = {TILE_EACH(TILE)};
#undef TILE

/* Computes the tile of a block at this row and column. */
static void block_tile(const tni_mm_block *job, int64_t units, int64_t row, int64_t column)
{
    const tni_mm_finish *f = job->finish;
    const int64_t rows = least(job->rows - row, TILE_ROWS);
    const int64_t columns = least(job->columns - column, TILE_COLUMNS);
    const bool wide = columns > LANES, finished = job->last && !f->plain;
    static const char nothing[TILE_COLUMNS * 4];
    _Alignas(64) char room[TILE_ROWS * TILE_COLUMNS * 4];
    char *sums = job->sums + (row * job->sums_row + column) * 4;
    char *out = tni_mm_out_at(job, row, column);
    const tile t = {.a = job->a + row / TILE_ROWS * job->a_panel,
                    .b = units > 0 ? job->b + column / TILE_COLUMNS * job->b_panel : nothing,
                    .units = units,
                    .from = job->first ? NULL : sums,
                    .from_row = job->sums_row * 4,
                    .to = finished    ? room
                          : job->last ? out
                                      : sums,
                    .to_row = 4 * (finished    ? TILE_COLUMNS
                                   : job->last ? f->out_row
                                               : job->sums_row),
                    .last = mask_first_f32(columns - wide * LANES)};
    tiles[rows - 1](&t, wide);
    if (finished)
        finish_sums(f, (void *)room, TILE_COLUMNS, rows, columns, out,
                    tni_mm_bias_at(job, row, column));
}

static void block(const tni_mm_block *job)
{
    const int64_t per = unit_elements(UNIT), units = parts(job->depth, per);
    for (int64_t row = 0; row < job->rows; row += TILE_ROWS)
        for (int64_t column = 0; column < job->columns; column += TILE_COLUMNS)
            block_tile(job, units, row, column);
}

static void pack_a(const tni_mm_pack *job)
{
    pack_units(
        (packing){.sort = UNIT, .order = BY_DEPTH, .width = TILE_ROWS, .units = 1, .flip = FLIP},
        job);
}

static void pack_b(const tni_mm_pack *job)
{
    pack_units(
        (packing){
            .sort = UNIT, .order = BY_DEPTH, .width = TILE_COLUMNS, .units = 1, .sums = BEGINS},
        job);
}

#define DOT_SET(sums_dtype, chunk, nanoseconds)                                      \
    {                                                                                \
        .rows = TILE_ROWS, .columns = TILE_COLUMNS, .depth = (chunk),                \
        .group = UNIT == BYTES ? 4 : 2, .a_size = UNIT == BYTES ? 1 : 2,             \
        .b_size = UNIT == BYTES ? 1 : 2, .b_more = BEGINS ? TILE_COLUMNS * 4 : 0,    \
        .acc = (sums_dtype), .acc_size = 4, .cost = (nanoseconds), .pack_a = pack_a, \
        .pack_b = pack_b, .block = block,                                            \
    }

#endif
