/* Micro-kernels with AMX tile registers: 32 by 32 sums in four registers, computed from two of A
 * and two of B. A row of a register is 64 bytes: sixteen units of a line of A, or one unit of
 * sixteen columns of B. The includer defines, for one dtype:
 *
 *     UNIT           the kind of unit: BYTES or PAIRS
 *     MULTIPLY       the instruction
 *     DEPTH          products of a chunk: a panel of B has 32 KiB and stays in the first-level
 *                    cache, while A streams through
 *     finish_sums    the epilogue, as finish_i32 of matmul_lowp_i32.h
 *
 * The registers are per thread: each block configures and releases them. */
#ifndef TENON_BACKENDS_CPU_MATMUL_LOWP_AMX_H
#define TENON_BACKENDS_CPU_MATMUL_LOWP_AMX_H

#include "../shared/amx.h"
#include "matmul_lowp_units.h"

enum { SIDE = AMX_ROWS, TILE = 2 * SIDE, ROW_BYTES = AMX_ROW_BYTES };

/* Memory to prefetch into the second-level cache while a tile is summed: some lines at every
 * step. */
typedef struct stretch {
    uintptr_t at;
    int64_t lines; /* of 64 bytes */
} stretch;

/* One tile. Sums are loaded from and stored to rows of whole registers. */
typedef struct tile {
    const char *a, *b;
    int64_t a_row, a_step; /* bytes from row to row, and to the next sixteen units */
    int64_t far;           /* number of rows of A to prefetch, when A is read in place */
    const char *end;       /* tail of A, packed: one step after the others; NULL: none */
    stretch ahead[2];
    int64_t steps;    /* of sixteen units */
    const char *from; /* initial sums; NULL: 0 */
    char *to;
    int64_t from_row, to_row; /* bytes */
} tile;

INLINE void begin_tile(const tile *t, const bool tall, const bool wide)
{
    const char *from = t->from;
    _tile_zero(SUM_00);
    _tile_zero(SUM_01);
    _tile_zero(SUM_10);
    _tile_zero(SUM_11);
    if (!from)
        return;
    order_memory(from);
    _tile_loadd(SUM_00, from, t->from_row);
    if (wide)
        _tile_loadd(SUM_01, from + ROW_BYTES, t->from_row);
    if (tall)
        _tile_loadd(SUM_10, from + SIDE * t->from_row, t->from_row);
    if (tall && wide)
        _tile_loadd(SUM_11, from + SIDE * t->from_row + ROW_BYTES, t->from_row);
}

INLINE void end_tile(const tile *t, const bool tall, const bool wide)
{
    _tile_stored(SUM_00, t->to, t->to_row);
    if (wide)
        _tile_stored(SUM_01, t->to + ROW_BYTES, t->to_row);
    if (tall)
        _tile_stored(SUM_10, t->to + SIDE * t->to_row, t->to_row);
    if (tall && wide)
        _tile_stored(SUM_11, t->to + SIDE * t->to_row + ROW_BYTES, t->to_row);
    order_memory(t->to);
}

/* Prefetches rows of an unpacked A, some steps ahead. */
INLINE void fetch_rows(const tile *t, const char *a)
{
    enum { STEPS = 8 };
    uintptr_t at = (uintptr_t)a + STEPS * ROW_BYTES;
    for (int64_t i = 0; i < t->far; i++, at += (uintptr_t)t->a_row)
        _mm_prefetch((const char *)at, _MM_HINT_T0);
}

INLINE void fetch_some(stretch *ahead)
{
    for (int64_t i = 0; i < ahead->lines; i++, ahead->at += ROW_BYTES)
        _mm_prefetch((const char *)ahead->at, _MM_HINT_T1);
}

/* `tall` and `wide` are constants: more than sixteen rows, more than sixteen columns. */
INLINE void sum_step(const char *a, int64_t a_row, const char *b, const bool tall, const bool wide)
{
    _tile_stream_loadd(B_0, b, TILE * 4);
    _tile_loadd(A_0, a, a_row);
    MULTIPLY(SUM_00, A_0, B_0);
    if (wide) {
        _tile_stream_loadd(B_1, b + ROW_BYTES, TILE * 4);
        MULTIPLY(SUM_01, A_0, B_1);
    }
    if (tall) {
        _tile_loadd(A_1, a + SIDE * a_row, a_row);
        MULTIPLY(SUM_10, A_1, B_0);
        if (wide)
            MULTIPLY(SUM_11, A_1, B_1);
    }
}

INLINE void sum_tile(const tile *t, const bool tall, const bool wide)
{
    enum { B_STEP = SIDE * TILE * 4 };
    const char *a = t->a, *b = t->b;
    stretch first = t->ahead[0], second = t->ahead[1];
    begin_tile(t, tall, wide);
    for (int64_t s = t->steps; s > 0; s--, a += t->a_step, b += B_STEP) {
        fetch_rows(t, a);
        sum_step(a, t->a_row, b, tall, wide);
        fetch_some(&first);
        fetch_some(&second);
    }
    if (t->end)
        sum_step(t->end, ROW_BYTES, b, tall, wide);
    end_tile(t, tall, wide);
}

static void sum_any_tile(const tile *t, bool tall, bool wide)
{
    if (tall && wide)
        sum_tile(t, true, true);
    else if (tall)
        sum_tile(t, true, false);
    else if (wide)
        sum_tile(t, false, true);
    else
        sum_tile(t, false, false);
}

static void copy_rows(char *to, int64_t to_row, const char *from, int64_t from_row, int64_t rows,
                      int64_t columns)
{
    for (int64_t i = 0; i < rows; i++)
        memcpy(to + i * to_row, from + i * from_row, (size_t)(4 * columns));
}

/* The part of `bytes` that tile `index` of `count` prefetches during its `steps` steps. */
static stretch share_of(const char *from, int64_t bytes, int64_t index, int64_t count,
                        int64_t steps)
{
    const int64_t part = (bytes / count + ROW_BYTES - 1) / ROW_BYTES * ROW_BYTES;
    const int64_t lines = part / ROW_BYTES;
    if (!from || steps == 0)
        return (stretch){0, 0};
    return (stretch){(uintptr_t)from + (uintptr_t)(index * part), (lines + steps - 1) / steps};
}

/* The tiles of a row prefetch the next panel of A; all tiles together prefetch the next panels of
 * B. */
static void look_ahead(const tni_mm_block *job, int64_t steps, int64_t row, int64_t column, tile *t)
{
    const int64_t down = parts(job->rows, TILE), across = parts(job->columns, TILE);
    const int64_t i = row / TILE, j = column / TILE;
    if (job->a_row) {
        t->far = column == 0 ? job->rows : 0;
        return;
    }
    const char *next = i + 1 < down ? job->a + (i + 1) * job->a_panel : job->next_a;
    t->ahead[0] = share_of(next, job->a_panel, j, across, steps);
    t->ahead[1] =
        share_of(job->next_b, across * job->b_panel, i * across + j, down * across, steps);
}

static void exchange(int64_t *a, int64_t *b)
{
    const int64_t kept = *a;
    *a = *b;
    *b = kept;
}

/* For an out with contiguous columns: transposes the sums and finishes them as columns. */
static void finish_transposed(const tni_mm_finish *f, const char *sums, int64_t rows,
                              int64_t columns, char *out, const char *bias)
{
    _Alignas(64) char transposed[TILE * TILE * 4];
    tni_mm_finish it = *f;
    vu x[SIDE];
    exchange(&it.out_row, &it.out_column);
    exchange(&it.bias_row, &it.bias_column);
    for (int64_t i = 0; i < rows; i += SIDE) {
        for (int64_t j = 0; j < columns; j += SIDE) {
            UNROLLED for (int r = 0; r < SIDE; r++) x[r] =
                (vu)load_i32(sums + ((i + r) * TILE + j) * 4);
            turn_square(x);
            UNROLLED for (int r = 0; r < SIDE; r++)
                store_i32(transposed + ((j + r) * TILE + i) * 4, (vi)x[r]);
        }
    }
    finish_sums(&it, (void *)transposed, TILE, columns, rows, out, bias);
}

/* Computes the tile of a block at this row and column. Incomplete tiles, and tiles that need the
 * epilogue, are summed in a temporary buffer. */
static void block_tile(const tni_mm_block *job, int64_t steps, const char *end, int64_t row,
                       int64_t column)
{
    const tni_mm_finish *f = job->finish;
    const int64_t rows = least(job->rows - row, TILE);
    const int64_t columns = least(job->columns - column, TILE);
    const bool whole = rows == TILE && columns == TILE, finished = job->last && !f->plain;
    const int64_t sums_row = job->sums_row * 4, room_row = TILE * 4;
    _Alignas(64) char room[TILE * TILE * 4];
    char *sums = job->sums ? job->sums + row * sums_row + column * 4 : NULL; /* NULL: one chunk */
    char *out = tni_mm_out_at(job, row, column);
    char *to = job->last ? out : sums;
    const int64_t to_row = job->last ? f->out_row * 4 : sums_row;
    const int64_t a_row = job->a_row;
    tile t = {.a = job->a + (a_row ? row * a_row : row / TILE * job->a_panel),
              .a_row = a_row ? a_row : ROW_BYTES,
              .a_step = a_row ? ROW_BYTES : TILE * ROW_BYTES,
              .b = job->b + column / TILE * job->b_panel,
              .end = end,
              .steps = steps,
              .from = job->first ? NULL : sums,
              .from_row = sums_row,
              .to = to,
              .to_row = to_row};
    if (!whole && !job->first) {
        copy_rows(room, room_row, sums, sums_row, rows, columns);
        t.from = room;
        t.from_row = room_row;
    }
    if (!whole || finished) {
        t.to = room;
        t.to_row = room_row;
    }
    look_ahead(job, steps, row, column, &t);
    sum_any_tile(&t, rows > SIDE, columns > SIDE);
    if (finished && f->out_row == 1 && f->out_column != 1)
        finish_transposed(f, room, rows, columns, out, tni_mm_bias_at(job, row, column));
    else if (finished)
        finish_sums(f, (void *)room, TILE, rows, columns, out, tni_mm_bias_at(job, row, column));
    else if (!whole)
        copy_rows(to, to_row, room, room_row, rows, columns);
}

static void tiles(const tni_mm_block *job, int64_t steps, const char *end)
{
    amx_configure(job->rows);
    for (int64_t row = 0; row < job->rows; row += TILE)
        for (int64_t column = 0; column < job->columns; column += TILE)
            block_tile(job, steps, end, row, column);
    _tile_release();
}

/* Reads A in place. The tail of each row after whole registers is packed, so that nothing beyond
 * the row is read. */
static void block_in_place(const tni_mm_block *job)
{
    _Alignas(64) char end[TILE * ROW_BYTES];
    const int64_t bytes = job->depth * unit_element_size(UNIT), steps = bytes / ROW_BYTES;
    const int64_t rest = bytes % ROW_BYTES;
    const __mmask64 some = ((__mmask64)1 << rest) - 1;
    for (int64_t i = 0; rest > 0 && i < job->rows; i++)
        _mm512_store_si512(
            end + i * ROW_BYTES,
            _mm512_maskz_loadu_epi8(some, job->a + i * job->a_row + steps * ROW_BYTES));
    order_memory(end);
    tiles(job, steps, rest > 0 ? end : NULL);
}

static void block(const tni_mm_block *job)
{
    const int64_t per = SIDE * unit_elements(UNIT);
    if (job->a_row)
        block_in_place(job);
    else
        tiles(job, parts(job->depth, per), NULL);
}

static void pack_a(const tni_mm_pack *job)
{
    pack_units((packing){.sort = UNIT, .order = BY_LINE, .width = TILE, .units = SIDE}, job);
}

static void pack_b(const tni_mm_pack *job)
{
    pack_units((packing){.sort = UNIT, .order = BY_DEPTH, .width = TILE, .units = SIDE}, job);
}

#define AMX_SET(sums_dtype)                                                                     \
    {                                                                                           \
        .rows = TILE, .columns = TILE, .depth = DEPTH, .group = SIDE * (UNIT == BYTES ? 4 : 2), \
        .a_size = UNIT == BYTES ? 1 : 2, .b_size = UNIT == BYTES ? 1 : 2, .acc = (sums_dtype),  \
        .acc_size = 4, .cost = 1e-3, .pack_a = pack_a, .pack_b = pack_b, .block = block,        \
        .in_place = true,                                                                       \
    }

#endif
