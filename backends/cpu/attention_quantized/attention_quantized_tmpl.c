/* Kernels of attention-quantized, compiled for each instruction set: the build defines ISA.
 *
 * Processors that multiply bytes do so as u8 times i8. K becomes u8 by adding 128, which makes every
 * sum too large by 128 times the sum of a row of Q; so sums start at minus that. The weights are
 * never negative. Elsewhere, integers have 16 bits, and an instruction adds two products of those. */
#include "../attention/attention_weights.h"
#include "attention_quantized_pass.h"

#if defined(__AVX512VNNI__)
#define PER         4
#define FLIP        128
#define NUMBER_MASK 0xffu
#else
#define PER         2
#define FLIP        0
#define NUMBER_MASK 0xffffu
#endif
#define PANEL (2 * LANES)

#define HEIGHTS_6(X)  X(1) X(2) X(3) X(4) X(5) X(6)
#define HEIGHTS_12(X) HEIGHTS_6(X) X(7) X(8) X(9) X(10) X(11) X(12)
#if LANES == 16 || defined(__aarch64__)
#define TILE_ROWS   12
#define EACH_HEIGHT HEIGHTS_12
#else
#define TILE_ROWS   6
#define EACH_HEIGHT HEIGHTS_6
#endif

/* Adds products of the integers of units: x has unsigned ones, if they are bytes. */
INLINE vu dot(vu sum, vu x, vu y)
{
#if defined(__AVX512VNNI__)
    return (vu)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)x, (__m512i)y);
#elif defined(__AVX512BW__)
    return sum + (vu)_mm512_madd_epi16((__m512i)x, (__m512i)y);
#elif defined(__AVX2__)
    return sum + (vu)_mm256_madd_epi16((__m256i)x, (__m256i)y);
#elif defined(__SSE2__)
    return sum + (vu)_mm_madd_epi16((__m128i)x, (__m128i)y);
#elif defined(__aarch64__)
    const int32x4_t low = vmull_s16(vget_low_s16((int16x8_t)x), vget_low_s16((int16x8_t)y));
    const int32x4_t high = vmull_high_s16((int16x8_t)x, (int16x8_t)y);
    return sum + (vu)vpaddq_s32(low, high);
#else
    const vi low = ((vi)(x << 16) >> 16) * ((vi)(y << 16) >> 16);
    return sum + (vu)low + (vu)(((vi)x >> 16) * ((vi)y >> 16));
#endif
}

/* Rounds to 4 bits of exponent and 3 of mantissa, to nearest even. |x| <= 448. */
INLINE vf round_e4m3(vf x)
{
    const vu sign = (vu)x & 0x80000000, size = (vu)x ^ sign;
    const vu normal = (size + 0x7ffff + (size >> 20 & 1)) & 0xfff00000;
    const vf small = ((vf)size + 0x1.8p14f) - 0x1.8p14f; /* the sum rounds to steps of 2^-9 */
    return (vf)((vu)choose_below_f32((vf)size, splat_f32(0x1p-6f), small, (vf)normal) | sign);
}

#include "attention_quantized_pack.h"
#include "attention_quantized_tiles.h"

enum { SCORE_ROW = TN_QUANTIZED_STEP + LANES }; /* rows do not share cache sets */

/* Turns the sums of a row's products into scores, -infinity for keys that it does not see. Returns
 * the greatest of them, without the row's scale. */
static float dress_row(const tni_aq_step *s, int64_t r, float *row)
{
    vf most = splat_f32(-INFINITY);
    vi at;
    if (s->first[r] <= 0 && s->end[r] >= TN_QUANTIZED_STEP) {
        for (int64_t j = 0; j < TN_QUANTIZED_STEP; j += LANES) {
            const vf x = __builtin_convertvector(load_i32(row + j), vf) * load_f32(s->factors + j);
            store_f32(row + j, x);
            most = greater_f32(x, most);
        }
        return most_f32(most);
    }
    for (int i = 0; i < LANES; i++)
        at[i] = i;
    for (int64_t j = 0; j < TN_QUANTIZED_STEP; j += LANES, at += LANES) {
        const vf x = __builtin_convertvector(load_i32(row + j), vf) * load_f32(s->factors + j);
        const vi seen = (at >= s->first[r]) & (at < s->end[r]);
        const vf score = choose_f32(seen, x, splat_f32(-INFINITY));
        store_f32(row + j, score);
        most = greater_f32(score, most);
    }
    return most_f32(most);
}

/* Rounds weights to the format of the second product. */
INLINE vf round_weight(const tn_dtype weights, vf x)
{
    if (weights == TN_F8_E4M3FN)
        return round_e4m3(x * 448.0f);
    return weights == TN_F16 ? widen_f16(narrow_f16(x)) : x;
}

/* Turns a row's scores into weights: floats in place. `less` is the greatest score, and `by` the
 * row's scale. */
INLINE void weigh_floats(const tn_dtype weights, float *row, float less, float by, vf *exact,
                         vf *total)
{
    vf a = {0}, b = {0};
    for (int64_t j = 0; j < TN_QUANTIZED_STEP; j += LANES) {
        const vf w = weight_f32((load_f32(row + j) - splat_f32(less)) * splat_f32(by));
        const vf rounded = round_weight(weights, w);
        a += w;
        if (weights != TN_F32)
            b += rounded;
        store_f32(row + j, rounded);
    }
    *exact = a;
    *total = weights == TN_F32 ? a : b;
}

/* The same, with integers as units, which are written behind `to`. */
INLINE void weigh_integers(float limit, const float *row, float less, float by, char *to, vf *exact,
                           vf *total)
{
    vf a = {0};
    vi b = {0};
    for (int64_t j = 0; j < TN_QUANTIZED_STEP; j += LANES) {
        const vf w = weight_f32((load_f32(row + j) - splat_f32(less)) * splat_f32(by));
        const vi rounded =
            __builtin_convertvector(fma_f32(w, splat_f32(limit), splat_f32(0.5f)), vi);
        a += w;
        b += rounded;
        if (PER == 4)
            store_u8(to + j, narrow_u8(rounded));
        else
            store_u16(to + 2 * j, narrow_u16((vu)rounded));
    }
    *exact = a;
    *total = __builtin_convertvector(b, vf);
}

static void weigh_row(tn_dtype weights, float *row, float less, float by, char *to, vf *exact,
                      vf *total)
{
    switch (weights) {
    case TN_U8: weigh_integers(255, row, less, by, to, exact, total); break;
    case TN_I8: weigh_integers(127, row, less, by, to, exact, total); break;
    case TN_F16: weigh_floats(TN_F16, row, less, by, exact, total); break;
    case TN_F8_E4M3FN: weigh_floats(TN_F8_E4M3FN, row, less, by, exact, total); break;
    default: weigh_floats(TN_F32, row, less, by, exact, total); break;
    }
}

/* Rows of a tile that a micro-kernel computes together, in one step. */
typedef struct band {
    int64_t row, rows;
    float most[16];   /* greatest score of the step, without the scale */
    float shrink[16]; /* factor of earlier sums, and of those of this step */
    float grow[16];
} band;

/* Raises the greatest scores of the rows. */
static void raise_rows(const tni_aq_step *s, band *b)
{
    const tni_aq_tile *t = s->tile;
    for (int64_t r = 0; r < 16; r++) {
        const bool is = r < b->rows;
        const float found = is ? b->most[r] * t->scales[b->row + r] : 0;
        const float before = is ? t->most[b->row + r] : 0;
        const float now = found > before ? found : before;
        const float base = now == -INFINITY ? 0 : now;
        if (is)
            t->most[b->row + r] = now;
        b->shrink[r] = before - base;
        b->grow[r] = found - base;
    }
    for (int64_t r = 0; r < 16; r += LANES) {
        store_f32(b->shrink + r, weight_f32(load_f32(b->shrink + r)));
        store_f32(b->grow + r, weight_f32(load_f32(b->grow + r)));
    }
}

static void add_totals(const tni_aq_tile *t, const band *b, int64_t r, vf exact, vf total)
{
    float *to_exact = t->exact + (b->row + r) * LANES, *to = t->totals + (b->row + r) * LANES;
    const vf shrink = splat_f32(b->shrink[r]), grow = splat_f32(b->grow[r]);
    store_f32(to_exact, fma_f32(exact, grow, load_f32(to_exact) * shrink));
    store_f32(to, fma_f32(total, grow, load_f32(to) * shrink));
}

/* Weighs the rows of a band. */
static void weigh(const tni_aq_step *s, band *b, float *scores, char *weights)
{
    for (int64_t r = 0; r < b->rows; r++)
        b->most[r] = dress_row(s, b->row + r, scores + r * SCORE_ROW);
    raise_rows(s, b);
    for (int64_t r = 0; r < b->rows; r++) {
        vf exact, total;
        const float less = b->most[r] == -INFINITY ? 0 : b->most[r];
        weigh_row(s->sizes->op->weights, scores + r * SCORE_ROW, less, s->tile->scales[b->row + r],
                  weights + r * TN_QUANTIZED_STEP * (4 / PER), &exact, &total);
        add_totals(s->tile, b, r, exact, total);
    }
}

static void compute_band(const tni_aq_step *s, int64_t row, int64_t rows)
{
    const tni_aq_sizes *sizes = s->sizes;
    const bool integers = sizes->op->weights == TN_U8 || sizes->op->weights == TN_I8;
    float *scores = (float *)(void *)s->tile->scores;
    char *weights = s->tile->scores + TILE_ROWS * SCORE_ROW * sizeof(float);
    band b = {.row = row, .rows = rows};
    tile t = {.a = s->tile->q + row * sizes->q_row,
              .a_row = sizes->q_row,
              .depth = sizes->q_row / 4,
              .begin = s->tile->begin + row,
              .sums_row = SCORE_ROW,
              .values_row = sizes->columns,
              .shrink = b.shrink,
              .grow = b.grow};
    for (int64_t j = 0; j < TN_QUANTIZED_STEP; j += PANEL) {
        t.b = s->k + j * sizes->q_row;
        t.sums = (int32_t *)(void *)(scores + j);
        score_tiles[rows - 1](&t);
    }
    weigh(s, &b, scores, weights);
    t.a = integers ? weights : (const char *)scores;
    t.depth = integers ? TN_QUANTIZED_STEP / PER : TN_QUANTIZED_STEP;
    t.a_row = integers ? TN_QUANTIZED_STEP * (4 / PER) : SCORE_ROW * (int64_t)sizeof(float);
    for (int64_t c = 0; c < sizes->columns; c += PANEL) {
        t.b = s->v + c * t.depth * 4;
        t.values = s->tile->values + row * sizes->columns + c;
        (integers ? integer_tiles : float_tiles)[rows - 1](&t);
    }
}

static void step(const tni_aq_step *s)
{
    for (int64_t r = 0; r < s->rows; r += TILE_ROWS)
        compute_band(s, r, s->rows - r < TILE_ROWS ? s->rows - r : TILE_ROWS);
}

#define SET_(isa) tni_aq_##isa
#define SET(isa)  SET_(isa)

extern const tni_aq_set SET(ISA);
const tni_aq_set SET(ISA) = {
    .lanes = LANES,
    .rows = TILE_ROWS,
    .unit = PER,
    .room = TILE_ROWS * (SCORE_ROW * (int64_t)sizeof(float) + TN_QUANTIZED_STEP * (4 / PER)),
    .sum = sum,
    .pack_keys = pack_keys,
    .pack_values = pack_values,
    .pack_tile = pack_tile,
    .step = step,
    .write_row = write_row,
};
