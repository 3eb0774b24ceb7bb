/* Quantizes and packs rows of Q, K and V. Include after PER and its functions. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_QUANTIZED_PACK_H
#define TENON_BACKENDS_CPU_ATTENTION_QUANTIZED_PACK_H

#include "../shared/block.h"
#include "attention_quantized_pass.h"

/* Reads a row as f32, with zeros up to a whole vector. */
static void read_row(const tni_aq_rows *from, int64_t row, float *to)
{
    const strand s = {.data = (char *)(uintptr_t)from->first + row * from->row,
                      .dtype = from->dtype,
                      .size = (int32_t)(from->dtype >> 8 & 255) / 8,
                      .stride = from->stride};
    for (int64_t at = 0; at < from->count; at += BLOCK) {
        const int64_t n = from->count - at < BLOCK ? from->count - at : BLOCK;
        const float *x = read_block_f32(&s, at, n, to + at);
        if (x != to + at)
            memcpy(to + at, x, (size_t)whole(n) * sizeof *x);
    }
}

INLINE vf greater_of(vf a, vf b)
{
    return greater_f32(size_of_f32(a), b);
}

/* NaN if a lane is NaN, else 0. */
static float flaw_of(vf v)
{
    float flaw = 0;
    for (int i = 0; i < LANES; i++)
        flaw += v[i];
    return flaw;
}

/* Adds |row| to the greatest numbers of columns; returns a vector with NaN where it is not finite. */
INLINE vf raise_columns(const float *row, int64_t count, float *greatest, vf flaw)
{
    for (int64_t c = 0; c < count; c += LANES) {
        const vf v = load_f32(row + c);
        store_f32(greatest + c, greater_of(v, load_f32(greatest + c)));
        flaw = fma_f32(v, (vf){0}, flaw);
    }
    return flaw;
}

static void sum(const tni_aq_sizes *sizes, const tni_aq_rows *k, const tni_aq_rows *v, int64_t key,
                int64_t keys, float *sums, float *greatest, float *flaw, float *room)
{
    vf flaws = {0};
    memset(sums, 0, (size_t)sizes->line * sizeof *sums);
    memset(greatest, 0, (size_t)sizes->columns * sizeof *greatest);
    for (int64_t j = key; j < key + keys; j++) {
        read_row(k, j, room);
        for (int64_t d = 0; d < sizes->line; d += LANES) {
            const vf x = load_f32(room + d);
            store_f32(sums + d, load_f32(sums + d) + x);
            flaws = fma_f32(x, (vf){0}, flaws);
        }
        read_row(v, j, room);
        flaws = raise_columns(room, v->count, greatest, flaws);
    }
    *flaw = flaw_of(flaws);
}

/* Rounds to the nearest integer, halves away from zero. NaN becomes 0, and large numbers 127. */
INLINE vi to_integers(vf x)
{
    const vu sign = (vu)x & 0x80000000;
    return clamp_to_int(x + (vf)((vu)splat_f32(0.5f) | sign), -127, 127);
}

/* Quantizes a row to units, padded with zeros up to `units`; FLIP is added to each integer. Returns
 * the sum of the integers. */
static int32_t quantize_row(const float *row, int64_t line, float by, int32_t flip, char *to,
                            int64_t bytes)
{
    vi total = {0};
    memset(to, 0, (size_t)bytes);
    for (int64_t d = 0; d < line; d += LANES) {
        const vi x = to_integers(load_f32(row + d) * splat_f32(by));
        total += x;
        char part[LANES * 2];
        const int64_t size = 4 / PER, left = bytes - d * size;
        if (PER == 4)
            store_u8(part, narrow_u8(x + flip));
        else
            store_u16(part, narrow_u16((vu)x));
        memcpy(to + d * size, part, (size_t)(left < LANES * size ? left : LANES * size));
    }
    int32_t all = 0;
    for (int i = 0; i < LANES; i++)
        all += total[i];
    return all;
}

/* Largest |x| of a row. */
static float greatest_of_row(const float *row, int64_t line)
{
    vf greatest = {0};
    for (int64_t d = 0; d < line; d += LANES)
        greatest = greater_of(load_f32(row + d), greatest);
    return most_f32(greatest);
}

static float scale_of(float greatest, float limit)
{
    return greatest / limit + 1e-7F;
}

/* Reads the keys of a step without their mean, and finds the greatest numbers of their groups. */
static void read_keys(const tni_aq_sizes *sizes, const tni_aq_rows *k, int64_t key, int64_t keys,
                      const float *mean, float *room, float *greatest)
{
    const int32_t scales = sizes->op->scales;
    const int64_t first = tn_quantized_k_group(scales, key);
    for (int64_t j = 0; j < keys; j++) {
        float *row = room + j * sizes->line;
        float *of = &greatest[tn_quantized_k_group(scales, key + j) - first];
        read_row(k, key + j, row);
        for (int64_t d = 0; d < sizes->line; d += LANES)
            store_f32(row + d, load_f32(row + d) - load_f32(mean + d));
        const float most = greatest_of_row(row, sizes->line);
        *of = most > *of ? most : *of;
    }
}

/* So that scores are finite; 0 where K is not finite. */
static double clamp_factor(double factor)
{
    const double bounded = factor > 1e30 ? 1e30 : factor < -1e30 ? -1e30 : factor;
    return bounded == bounded ? bounded : 0;
}

static void pack_keys(const tni_aq_sizes *sizes, const tni_aq_rows *k, int64_t key,
                      const tni_aq_unit *unit, float *room)
{
    const int64_t left = sizes->at->keys - key, step = key / TN_QUANTIZED_STEP;
    const int64_t keys = left < TN_QUANTIZED_STEP ? left : TN_QUANTIZED_STEP;
    const int64_t units = sizes->q_row / 4, first = tn_quantized_k_group(sizes->op->scales, key);
    const double by = sizes->at->scale * 1.44269504088896340736;
    float *factors = unit->factors + step * TN_QUANTIZED_STEP;
    float greatest[TN_QUANTIZED_STEP] = {0};
    uint32_t *to = (uint32_t *)(void *)(unit->k + step * sizes->k_step);
    char *numbers = (char *)(room + TN_QUANTIZED_STEP * sizes->line);
    read_keys(sizes, k, key, keys, unit->mean, room, greatest);
    memset(to, 0, (size_t)sizes->k_step);
    memset(factors, 0, TN_QUANTIZED_STEP * sizeof *factors);
    for (int64_t j = 0; j < keys; j++) {
        const float scale =
            scale_of(greatest[tn_quantized_k_group(sizes->op->scales, key + j) - first], 127);
        const double factor = by * (double)scale;
        uint32_t *panel = to + j / PANEL * PANEL * units + j % PANEL;
        factors[j] = (float)clamp_factor(factor);
        (void)quantize_row(room + j * sizes->line, sizes->line, 1 / scale, FLIP, numbers,
                           sizes->q_row);
        for (int64_t u = 0; u < units; u++)
            memcpy(&panel[u * PANEL], numbers + u * 4, 4);
    }
}

/* Rounds a column's numbers as the weights need it. */
INLINE vf round_value(tn_dtype weights, vf x, vf by)
{
    if (weights == TN_F8_E4M3FN)
        return round_e4m3(x * by);
    return weights == TN_F16 ? widen_f16(narrow_f16(x)) : x;
}

/* Writes the reciprocals of the columns' scales. */
static void invert_scales(const tni_aq_sizes *sizes, const tni_aq_unit *unit, float *out)
{
    for (int64_t c = 0; c < sizes->columns; c += LANES)
        store_f32(out + c, 1.0f / load_f32(unit->v_scales + c));
}

/* Packs integers of V: PER keys of a column are a unit. */
static void pack_integers(const tni_aq_sizes *sizes, const tni_aq_rows *v, int64_t key,
                          int64_t keys, const float *by, char *to, float *room)
{
    for (int64_t j = 0; j < TN_QUANTIZED_STEP; j += PER) {
        for (int64_t i = 0; i < PER; i++) {
            if (j + i < keys)
                read_row(v, key + j + i, room + i * sizes->columns);
            else
                memset(room + i * sizes->columns, 0, (size_t)sizes->columns * sizeof *room);
        }
        for (int64_t c = 0; c < sizes->columns; c += LANES) {
            const vf scale = load_f32(by + c);
            vu unit = {0};
            UNROLLED for (int i = 0; i < PER; i++) unit |=
                ((vu)to_integers(load_f32(room + i * sizes->columns + c) * scale) & NUMBER_MASK)
                << (i * (32 / PER));
            const int64_t at =
                c / PANEL * PANEL * (TN_QUANTIZED_STEP / PER) + j / PER * PANEL + c % PANEL;
            store_u32(to + at * 4, unit);
        }
    }
}

static void pack_floats(const tni_aq_sizes *sizes, const tni_aq_rows *v, int64_t key, int64_t keys,
                        const float *by, float *to, float *room)
{
    const tn_dtype weights = sizes->op->weights;
    for (int64_t j = 0; j < TN_QUANTIZED_STEP; j++) {
        if (j < keys)
            read_row(v, key + j, room);
        else
            memset(room, 0, (size_t)sizes->columns * sizeof *room);
        for (int64_t c = 0; c < sizes->columns; c += LANES)
            store_f32(to + c / PANEL * PANEL * TN_QUANTIZED_STEP + j * PANEL + c % PANEL,
                      round_value(weights, load_f32(room + c), load_f32(by + c)));
    }
}

/* `room` has space for PER + 1 rows of columns. */
static void pack_values(const tni_aq_sizes *sizes, const tni_aq_rows *v, int64_t key,
                        const tni_aq_unit *unit, float *room)
{
    const int64_t left = sizes->at->keys - key;
    const int64_t keys = left < TN_QUANTIZED_STEP ? left : TN_QUANTIZED_STEP;
    const bool integers = sizes->op->weights == TN_U8 || sizes->op->weights == TN_I8;
    char *to = unit->v + key / TN_QUANTIZED_STEP * sizes->v_step;
    float *by = room, *rows = room + sizes->columns;
    memset(rows, 0, (size_t)(PER * sizes->columns) * sizeof *rows);
    invert_scales(sizes, unit, by);
    if (integers)
        pack_integers(sizes, v, key, keys, by, to, rows);
    else
        pack_floats(sizes, v, key, keys, by, (float *)(void *)to, rows);
}

/* Finds the scales of a tile's rows from the greatest numbers of its rows. */
static void find_scales(const tni_aq_sizes *sizes, int64_t query, int64_t rows,
                        const tni_aq_tile *tile)
{
    const int64_t first = tn_quantized_q_group(sizes->op->scales, query);
    float greatest[TN_QUANTIZED_Q_ROWS] = {0}, flaws[TN_QUANTIZED_Q_ROWS] = {0};
    for (int64_t r = 0; r < rows; r++) {
        const int64_t group = tn_quantized_q_group(sizes->op->scales, query + r) - first;
        greatest[group] = tile->scales[r] > greatest[group] ? tile->scales[r] : greatest[group];
        flaws[group] += tile->flaws[r];
    }
    for (int64_t r = 0; r < rows; r++) {
        const int64_t group = tn_quantized_q_group(sizes->op->scales, query + r) - first;
        tile->flaws[r] = flaws[group];
        tile->scales[r] = scale_of(flaws[group] == 0 ? greatest[group] : 0, 127);
    }
}

static void pack_tile(const tni_aq_sizes *sizes, const tni_aq_rows *q, int64_t query, int64_t rows,
                      const float *mean, const tni_aq_tile *tile)
{
    for (int64_t r = 0; r < rows; r++) {
        float *row = tile->room + r * sizes->line;
        vf offset = {0}, flaw = {0};
        read_row(q, query + r, row);
        for (int64_t d = 0; d < sizes->line; d += LANES) {
            offset = fma_f32(load_f32(row + d), load_f32(mean + d), offset);
            flaw = fma_f32(load_f32(row + d), (vf){0}, flaw);
        }
        tile->offsets[r] = (float)total_f64(wide_f32(offset));
        tile->scales[r] = greatest_of_row(row, sizes->line);
        tile->flaws[r] = flaw_of(flaw);
    }
    find_scales(sizes, query, rows, tile);
    for (int64_t r = 0; r < rows; r++)
        tile->begin[r] =
            -FLIP * quantize_row(tile->room + r * sizes->line, sizes->line, 1 / tile->scales[r], 0,
                                 tile->q + r * sizes->q_row, sizes->q_row);
}

/* Writes a row of out: values times `by` and the scales of the columns. */
static void write_row(const tni_aq_sizes *sizes, const float *values, const float *v_scales,
                      float by, float flaw, const tni_aq_rows *out, int64_t row)
{
    const strand s = {.data = (char *)(uintptr_t)out->first + row * out->row,
                      .dtype = out->dtype,
                      .size = (int32_t)(out->dtype >> 8 & 255) / 8,
                      .stride = out->stride};
    float room[BLOCK];
    for (int64_t at = 0; at < sizes->at->value_size; at += BLOCK) {
        const int64_t left = sizes->at->value_size - at, n = left < BLOCK ? left : BLOCK;
        for (int64_t c = 0; c < n; c += LANES)
            store_f32(room + c,
                      load_f32(values + at + c) * splat_f32(by) * load_f32(v_scales + at + c) +
                          splat_f32(flaw));
        write_block_f32(&s, at, n, room);
    }
}

#endif
