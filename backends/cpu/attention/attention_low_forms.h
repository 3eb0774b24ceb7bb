/* Packed pairs of bf16, for products of 32 by 32 numbers over 32: the first factor has rows of 64
 * bytes, the second has lines of pairs, of 32 columns each. A square of either is 2 KiB.
 *
 *     Q      of 32 rows, for each 32 elements: a line for each two elements, a pair for each row
 *     K      of 32 keys, for each 32 elements: a row for each key
 *     V      of each panel of 32 columns, of 32 keys: a row for each column, transposed
 */
#ifndef TENON_BACKENDS_CPU_ATTENTION_LOW_FORMS_H
#define TENON_BACKENDS_CPU_ATTENTION_LOW_FORMS_H

#include "../shared/transpose.h"
#include "attention_kernels.h"

enum { SIDE = 32, SQUARE_BYTES = 2048, PANEL_KEYS = 64 };

static int64_t squares(int64_t size)
{
    return (size + SIDE - 1) / SIDE;
}

static int64_t q_row(int64_t size)
{
    return squares(size) * SIDE * 2;
}

static int64_t k_panel(int64_t size)
{
    return squares(size) * (PANEL_KEYS / SIDE) * SQUARE_BYTES;
}

/* Loads 32 elements of a row from `first` on, of which n exist; the rest are zeros. */
INLINE vu read_elements(const char *row, int64_t step, int64_t first, int64_t n)
{
    if (step == 2)
        return (vu)_mm512_maskz_loadu_epi16(n >= SIDE ? UINT32_MAX : (UINT32_C(1) << n) - 1,
                                            row + 2 * first);
    _Alignas(64) uint16_t room[SIDE] = {0};
    for (int64_t i = 0; i < SIDE && i < n; i++)
        memcpy(&room[i], row + (first + i) * step, sizeof room[i]);
    return (vu)load_i32(room);
}

/* Transposes the square. */
INLINE void transpose_square(vu *x)
{
    vf y[LANES];
    UNROLLED for (int i = 0; i < LANES; i++) y[i] = (vf)x[i];
    transpose_f32(y);
    UNROLLED for (int i = 0; i < LANES; i++) x[i] = (vu)y[i];
}

/* Packs the pairs of sixteen rows of Q, for 32 elements. */
INLINE void pack_square(const char *const *from, int64_t step, int64_t size, int64_t rows,
                        int64_t first, char *to)
{
    vu x[LANES];
    UNROLLED for (int i = 0; i < LANES; i++) x[i] =
        i < rows ? read_elements(from[i], step, first, size - first) : (vu){0};
    transpose_square(x);
    UNROLLED for (int i = 0; i < LANES; i++) store_i32(to + i * SIDE * 4, (vi)x[i]);
}

static void pack_rows(const char *const *from, int64_t step, int64_t size, int64_t rows, char *to)
{
    for (int64_t r = 0; r < rows; r += SIDE) {
        for (int64_t first = 0; first < size; first += SIDE, to += SQUARE_BYTES) {
            pack_square(from + r, step, size, rows - r, first, to);
            pack_square(from + r + LANES, step, size, rows - r - LANES, first, to + 4 * LANES);
        }
    }
}

static void pack_keys(const tni_at_pack *job)
{
    char *to = job->k_to;
    for (int64_t key = 0; key < PANEL_KEYS; key += SIDE)
        for (int64_t first = 0; first < job->size; first += SIDE, to += SQUARE_BYTES)
            for (int64_t i = 0; i < SIDE; i++)
                store_i32(to + i * 64, key + i < job->keys
                                           ? (vi)read_elements(job->k[key + i], job->k_step, first,
                                                               job->size - first)
                                           : (vi){0});
}

/* Loads sixteen columns of a key; zeros for missing ones. */
INLINE vu read_values(const tni_at_pack *job, int64_t key, int64_t column)
{
    const int64_t n = job->value_size - column;
    if (key >= job->keys || n <= 0)
        return (vu){0};
    if (n >= LANES && job->v_step == 2)
        return widen_u16(load_u16(job->v[key] + 2 * column));
    const vu x = read_elements(job->v[key], job->v_step, column, n < LANES ? n : LANES);
    return widen_u16((vh)_mm512_castsi512_si256((__m512i)x));
}

/* Packs sixteen columns of 32 keys, transposed; values that are not finite become 0. Returns a mask
 * of the halves of pairs that were not finite. */
INLINE __mmask32 pack_columns(const tni_at_pack *job, int64_t key, int64_t column, char *to)
{
    const __m512i exponent = _mm512_set1_epi16(0x7f80);
    __mmask32 nonfinite = 0;
    vu x[LANES];
    UNROLLED for (int i = 0; i < LANES; i++)
    {
        x[i] = read_values(job, key + 2 * i, column) | read_values(job, key + 2 * i + 1, column)
                                                           << 16;
        const __mmask32 is_not =
            _mm512_cmpeq_epi16_mask(_mm512_and_si512((__m512i)x[i], exponent), exponent);
        x[i] = (vu)_mm512_maskz_mov_epi16(~is_not, (__m512i)x[i]);
        nonfinite |= is_not;
    }
    transpose_square(x);
    UNROLLED for (int i = 0; i < LANES; i++) store_i32(to + i * 64, (vi)x[i]);
    return nonfinite;
}

static bool pack(const tni_at_pack *job)
{
    __mmask32 nonfinite = 0;
    pack_keys(job);
    for (int64_t column = 0; column < job->value_size; column += SIDE) {
        char *to = job->v_to + column / SIDE * job->v_panel;
        for (int64_t key = 0; key < PANEL_KEYS; key += SIDE, to += SQUARE_BYTES) {
            nonfinite |= pack_columns(job, key, column, to);
            nonfinite |= pack_columns(job, key, column + LANES, to + LANES * 64);
        }
    }
    return nonfinite == 0;
}

#endif
