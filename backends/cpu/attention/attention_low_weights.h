/* From scores to weights, 32 rows at a time: a line of scores has one key's score for each row, so
 * that the state of a row is a lane of a vector.
 *
 * Scores are in base-2 units: a weight is 2^(score - base), within 2^-18 relative to it, and 0
 * below 2^-126. A row's base is its greatest score at the last time when that exceeded the previous
 * base by more than SLACK: it seldom changes, and with few keys it is the greatest score, whose
 * weight is 1. Weights are rounded to nearest bf16; sums are of the weights before rounding. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_LOW_WEIGHTS_H
#define TENON_BACKENDS_CPU_ATTENTION_LOW_WEIGHTS_H

#include "../shared/vector_math.h"
#include "attention_low_forms.h"

#include <float.h>

#define SLACK    8.0f
#define FURTHEST 0x1p23f /* the rounding error of such a score exceeds the precision of weights */
#define LOG2_E   1.44269504088896340736
#define NOTHING  splat_f32(-INFINITY)
#define HALVES   UNROLLED for (int h = 0; h < 2; h++) /* the two halves of 32 rows */

/* Constants shared by all rows of a step. */
typedef struct numbers {
    float factor;    /* from scores to base-2 units */
    float scale;     /* of products, if scores are natural */
    float cap, caps; /* softcap, and 1 / softcap; 0: none */
    bool natural;
} numbers;

static numbers numbers_of(const tni_at_problem *p)
{
    const double scale = p->at->scale, cap = p->at->softcap;
    return (numbers){.factor = (float)(p->natural ? LOG2_E : scale * LOG2_E),
                     .scale = (float)scale,
                     .cap = (float)cap,
                     .caps = (float)(cap != 0 ? 1 / cap : 0),
                     .natural = p->natural};
}

/* The keys visible to 32 rows: from `from` up to `to`, relative to the first key; and the values
 * that a mask adds, or NULL. */
typedef struct view {
    vi from[2], to[2];
    const float *bias;
    int64_t bias_row, rows;
} view;

static int32_t within(int64_t x, int64_t most)
{
    return (int32_t)(x < 0 ? 0 : x > most ? most : x);
}

static void look(const tni_at_step *s, int64_t row, int64_t rows, int64_t key, int64_t keys,
                 view *out)
{
    const tni_at_problem *p = s->problem;
    const tn_sequence *in = &s->unit->in;
    _Alignas(64) int32_t from[SIDE] = {0}, to[SIDE] = {0};
    for (int64_t r = 0; r < rows; r++) {
        int64_t first;
        const int64_t i = tni_at_query_of(p, s->row + row + r);
        const int64_t count = tn_attention_seen(p->at, i, in->queries, in->keys, &first);
        const int64_t end = first + count < in->keys ? first + count : in->keys;
        from[r] = within(first - key, keys);
        to[r] = within(end - key, keys);
    }
    *out = (view){.bias_row = s->bias_row, .rows = rows};
    HALVES
    {
        out->from[h] = load_i32(from + h * LANES);
        out->to[h] = load_i32(to + h * LANES);
    }
    if (s->bias)
        out->bias = (const float *)s->bias + row * s->bias_row + (key - s->key);
}

/* Loads the bias of sixteen rows and sixteen keys: a vector for each key. */
INLINE void read_bias(const view *v, int64_t row, int64_t key, vf *out)
{
    UNROLLED for (int i = 0; i < LANES; i++) out[i] =
        v->bias && row + i < v->rows ? load_f32(v->bias + (row + i) * v->bias_row + key) : (vf){0};
    transpose_f32(out);
}

INLINE vf dress(const numbers *is, vf x)
{
    if (is->natural)
        x *= splat_f32(is->scale);
    if (is->cap != 0)
        x = tanh_f32(x * splat_f32(is->caps)) * splat_f32(is->cap);
    return x;
}

/* Turns products into scores; -infinity where a row does not see a key. */
static void dress_scores(const numbers *is, const view *v, int64_t keys, float *scores)
{
    for (int64_t key = 0; key < keys; key += LANES)
        for (int h = 0; h < 2; h++) {
            vf add[LANES];
            if (v->bias)
                read_bias(v, h * LANES, key, add);
            for (int i = 0; i < LANES; i++) {
                const int32_t at = (int32_t)key + i;
                float *to = scores + at * SIDE + h * LANES;
                vf x = dress(is, load_f32(to));
                vi hidden = (at < v->from[h]) | (at >= v->to[h]);
                if (v->bias) {
                    hidden |= add[i] == NOTHING;
                    x += add[i];
                }
                store_f32(to, choose_f32(hidden, NOTHING, x));
            }
        }
}

/* Finds the greatest scores of rows; NaNs are ignored. */
INLINE void find_greatest(const float *scores, int64_t keys, vf *out)
{
    vf most[2][2];
    HALVES most[0][h] = most[1][h] = NOTHING;
    for (int64_t key = 0; key < keys; key += 2)
        HALVES
        {
            const float *at = scores + key * SIDE + h * LANES;
            most[0][h] = greater_f32(load_f32(at), most[0][h]);
            most[1][h] = greater_f32(load_f32(at + SIDE), most[1][h]);
        }
    HALVES out[h] = greater_f32(most[0][h], most[1][h]);
}

/* 2^(score - base). scalef applies the integer part of the exponent. */
INLINE vf weight(vf score, vf factor, vf base)
{
    const __m512 x = _mm512_fmsub_ps((__m512)score, (__m512)factor, (__m512)base);
    const vf f = (vf)_mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF);
    vf p = fma_f32(f, splat_f32(0x1.bb7cd4p-7f), splat_f32(0x1.aa13fp-5f));
    p = fma_f32(p, f, splat_f32(0x1.ee798ap-3f));
    p = fma_f32(p, f, splat_f32(0x1.62d166p-1f));
    p = fma_f32(p, f, splat_f32(0x1.00002cp+0f));
    return (vf)_mm512_scalef_ps((__m512)p, x);
}

/* Converts scores to base-2 units, rounded; finite scores stay finite. */
INLINE vf measure(vf x, vf factor)
{
    const vf most = splat_f32(FLT_MAX), by = x * factor;
    const vf within = choose_f32(by > most, most, choose_f32(by < -most, -most, by));
    return choose_f32((x > most) | (x < -most), by, within);
}

/* Bases of the weights, and the factors that rescale sums made with the previous bases. */
typedef struct bases {
    vf base[2], shrink[2];
    vf factor[2]; /* multiplies scores in weigh_line: 1 for rows of measure_far */
    bool grown;   /* else no rescaling is needed */
    bool far;     /* some base is so large that its row's scores must be rounded as the base was */
} bases;

/* `most` is -infinity for rows that have seen nothing. */
INLINE void raise(float *most, const vf *found, float factor, bases *out)
{
    const __m512 slack = _mm512_set1_ps(SLACK);
    out->grown = out->far = false;
    HALVES
    {
        const __m512 before = (__m512)load_f32(most + h * LANES);
        const __m512 x = (__m512)measure(found[h], splat_f32(factor));
        const __mmask16 more = _mm512_cmp_ps_mask(x, _mm512_add_ps(before, slack), _CMP_GT_OQ);
        const __m512 now = _mm512_mask_mov_ps(before, more, x);
        const __mmask16 none = _mm512_cmp_ps_mask(now, (__m512)NOTHING, _CMP_EQ_OQ);
        const vf shrink = weight((vf)before, splat_f32(1), (vf)now);
        out->grown = out->grown || more;
        out->shrink[h] = (vf)_mm512_mask_mov_ps(_mm512_set1_ps(1), more, (__m512)shrink);
        out->base[h] = (vf)_mm512_mask_mov_ps(now, none, _mm512_setzero_ps());
        const __mmask16 far = _mm512_cmp_ps_mask(_mm512_abs_ps((__m512)out->base[h]),
                                                 _mm512_set1_ps(FURTHEST), _CMP_GE_OQ);
        out->factor[h] = (vf)_mm512_mask_mov_ps(_mm512_set1_ps(factor), far, _mm512_set1_ps(1));
        out->far = out->far || far;
        store_f32(most + h * LANES, (vf)now);
    }
}

/* Converts the scores of rows with a far base to base-2 units. Other rows are unchanged: the scores
 * of one row must not change the rounding of another. */
static void measure_far(float *scores, int64_t keys, float factor, const bases *b)
{
    const vf by = splat_f32(factor);
    for (int64_t key = 0; b->far && key < keys; key++)
        HALVES
        {
            float *at = scores + key * SIDE + h * LANES;
            const vf x = load_f32(at);
            store_f32(at, choose_f32(b->factor[h] == by, x, measure(x, by)));
        }
}

/* Packs pairs of bf16, a first. A NaN may be lost; the sums still have it. */
INLINE vi pair(vf a, vf b)
{
    const vu low = ((vu)a + 0x8000) >> 16, high = (vu)b + 0x8000;
    return (vi)(low | (high & 0xffff0000));
}

/* Turns the scores of two keys into a line of pairs of weights. */
INLINE void weigh_line(const float *scores, const bases *b, vf *sums, char *to)
{
    HALVES
    {
        const vf x = weight(load_f32(scores + h * LANES), b->factor[h], b->base[h]);
        const vf y = weight(load_f32(scores + SIDE + h * LANES), b->factor[h], b->base[h]);
        sums[h] += x;
        sums[h] += y;
        store_i32(to + h * 64, pair(x, y));
    }
}

/* Rescales 32 rows of values, a line for each column. */
static void shrink_values(const bases *b, int64_t columns, float *values)
{
    for (int64_t c = 0; c < columns; c++)
        HALVES
        {
            float *at = values + c * SIDE + h * LANES;
            store_f32(at, load_f32(at) * b->shrink[h]);
        }
}

#endif
