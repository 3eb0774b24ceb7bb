/* bf16 with bfmmla, which multiplies two rows by two columns, four elements of each. Scores and
 * sums are f32; weights are added up, and then rounded to nearest bf16 for the product with the
 * values.
 *
 * Packed, four elements of two lines are a vector, and HEIGHT lines a group:
 *
 *     Q         of HEIGHT rows, for each four elements
 *     K         of HEIGHT keys, for each four elements
 *     V         of HEIGHT columns, for each four keys
 *     weights   of HEIGHT rows, for each four keys */
#include "../shared/sizes.h"
#include "../shared/steps.h"
#include "attention_low.h"
#include "attention_sets.h"

#include "../shared/family_f32_inc.h"

#define COLUMNS (2 * WIDTH)
#include "attention_scores.h"

enum { HEIGHT = 8, ROWS = 16, TWOS = HEIGHT / 2, GROUP_BYTES = HEIGHT * 8 };
enum { WEIGHTS_BYTES = HEIGHT * TNI_AT_BLOCK_MOST * 2 };

static int64_t q_row(int64_t size)
{
    return (size + 3) / 4 * 8;
}

static int64_t k_panel(int64_t size)
{
    return q_row(size) * HEIGHT;
}

/* Loads four elements of a row from `first` on, of which n exist; the rest are zeros. */
INLINE uint16x4_t read_four(const char *row, int64_t step, int64_t first, int64_t n)
{
    uint16_t room[4] = {0};
    if (step == 2 && n >= 4)
        return vld1_u16((const uint16_t *)(const void *)(row + 2 * first));
    for (int64_t i = 0; i < 4 && i < n; i++)
        memcpy(&room[i], row + (first + i) * step, sizeof room[i]);
    return vld1_u16(room);
}

/* Packs a group of lines, of which `lines` exist. */
static void pack_group(const char *const *from, int64_t step, int64_t size, int64_t lines, char *to)
{
    for (int64_t first = 0; first < size; first += 4, to += GROUP_BYTES) {
        for (int64_t i = 0; i < HEIGHT; i++) {
            uint16x4_t v = vdup_n_u16(0);
            if (i < lines)
                v = read_four(from[i], step, first, size - first);
            vst1_u16((uint16_t *)(void *)(to + 8 * i), v);
        }
    }
}

static void pack_rows(const char *const *from, int64_t step, int64_t size, int64_t rows, char *to)
{
    for (int64_t r = 0; r < rows; r += HEIGHT)
        pack_group(from + r, step, size, rows - r, to + r * q_row(size));
}

/* Loads HEIGHT columns of a key; zeros for missing ones. */
INLINE uint16x8_t read_values(const tni_at_pack *job, int64_t key, int64_t column)
{
    const int64_t n = job->value_size - column;
    if (key >= job->keys)
        return vdupq_n_u16(0);
    return vcombine_u16(read_four(job->v[key], job->v_step, column, n),
                        read_four(job->v[key], job->v_step, column + 4, n - 4));
}

/* Packs a group of columns of four keys. Values that are not finite become 0; `nonfinite` collects
 * where. */
INLINE uint16x8_t pack_values(const tni_at_pack *job, int64_t key, int64_t column, char *to,
                              uint16x8_t nonfinite)
{
    const uint16x8_t exponent = vdupq_n_u16(0x7f80);
    uint16x8_t x[4];
    UNROLLED for (int i = 0; i < 4; i++)
    {
        x[i] = read_values(job, key + i, column);
        const uint16x8_t is_not = vceqq_u16(vandq_u16(x[i], exponent), exponent);
        x[i] = vbicq_u16(x[i], is_not);
        nonfinite = vorrq_u16(nonfinite, is_not);
    }
    UNROLLED for (int half = 0; half < 2; half++)
    {
        const uint16x8_t a = half ? vzip2q_u16(x[0], x[2]) : vzip1q_u16(x[0], x[2]);
        const uint16x8_t b = half ? vzip2q_u16(x[1], x[3]) : vzip1q_u16(x[1], x[3]);
        uint16_t *at = (uint16_t *)(void *)(to + half * 32);
        vst1q_u16(at, vzip1q_u16(a, b));
        vst1q_u16(at + 8, vzip2q_u16(a, b));
    }
    return nonfinite;
}

static bool pack(const tni_at_pack *job)
{
    uint16x8_t nonfinite = vdupq_n_u16(0);
    pack_group(job->k, job->k_step, job->size, job->keys, job->k_to);
    for (int64_t column = 0; column < job->value_size; column += HEIGHT) {
        char *to = job->v_to + column / HEIGHT * job->v_panel;
        for (int64_t key = 0; key < HEIGHT; key += 4, to += GROUP_BYTES)
            nonfinite = pack_values(job, key, column, to, nonfinite);
    }
    return vmaxvq_u16(nonfinite) == 0;
}

typedef float32x4_t sums[TWOS][TWOS];

#define EACH_SUM UNROLLED for (int i = 0; i < TWOS; i++) UNROLLED for (int j = 0; j < TWOS; j++)

/* Adds the products of two groups of lines. */
INLINE void add_products(const char *a, const char *b, int64_t steps, sums sum)
{
    for (; steps > 0; steps--, a += GROUP_BYTES, b += GROUP_BYTES) {
        bfloat16x8_t x[TWOS];
        UNROLLED for (int i = 0; i < TWOS; i++) x[i] =
            vreinterpretq_bf16_u32((uint32x4_t)load_u32(a + 16 * i));
        UNROLLED for (int j = 0; j < TWOS; j++)
        {
            const bfloat16x8_t y = vreinterpretq_bf16_u32((uint32x4_t)load_u32(b + 16 * j));
            UNROLLED for (int i = 0; i < TWOS; i++) sum[i][j] = vbfmmlaq_f32(sum[i][j], x[i], y);
        }
        STEP_ENDS();
    }
}

/* Rows 2 i and 2 i + 1 of four columns from those of two times two; this is its own inverse. */
INLINE void exchange_halves(float32x4_t *a, float32x4_t *b)
{
    const uint64x2_t left = (uint64x2_t)*a, right = (uint64x2_t)*b;
    *a = (float32x4_t)vzip1q_u64(left, right);
    *b = (float32x4_t)vzip2q_u64(left, right);
}

INLINE void exchange_all(sums sum)
{
    UNROLLED for (int i = 0; i < TWOS; i++) UNROLLED for (int j = 0; j < TWOS; j += 2)
        exchange_halves(&sum[i][j], &sum[i][j + 1]);
}

/* The scores of a group of rows and one of keys. */
static void multiply_scores(const char *q, const char *k, int64_t size, float *to)
{
    sums sum;
    EACH_SUM sum[i][j] = vdupq_n_f32(0);
    add_products(q, k, (size + 3) / 4, sum);
    exchange_all(sum);
    EACH_SUM vst1q_f32(to + (2 * i + j % 2) * F(SCORE_ROW) + j / 2 * 4, sum[i][j]);
}

/* Adds the values of one group of columns to `rows` rows. */
static void multiply_values(const char *weights, const char *v, int64_t keys, const float *shrink,
                            int64_t rows, float *to, int64_t to_row)
{
    sums sum;
    EACH_SUM
    {
        const int row = 2 * i + j % 2;
        sum[i][j] = row < rows ? vmulq_n_f32(vld1q_f32(to + row * to_row + j / 2 * 4), shrink[row])
                               : vdupq_n_f32(0);
    }
    exchange_all(sum);
    add_products(weights, v, keys / 4, sum);
    exchange_all(sum);
    EACH_SUM
    {
        const int row = 2 * i + j % 2;
        if (row < rows)
            vst1q_f32(to + row * to_row + j / 2 * 4, sum[i][j]);
    }
}

/* Rounds the weights of a group of rows, of which `rows` exist. */
static void round_weights(const float *scores, int64_t rows, int64_t keys, char *to)
{
    for (int64_t key = 0; key < keys; key += 4)
        for (int64_t r = 0; r < HEIGHT; r++, to += 8) {
            bfloat16x4_t v = vcreate_bf16(0);
            if (r < rows)
                v = vcvt_bf16_f32(vld1q_f32(scores + r * F(SCORE_ROW) + key));
            vst1_bf16((bfloat16_t *)(void *)to, v);
        }
}

/* Adds the values that are not finite, which are 0 in their panels: they must not be multiplied by
 * the weights of keys that do not count. */
static void add_nonfinite(const tni_at_step *s, const float *scores)
{
    const int64_t to = least(s->key + s->keys, s->unit->to);
    int64_t key = most(s->key, s->unit->from), column = 0;
    double value;
    for (; tni_at_next_nonfinite(s->problem, s->unit, to, &key, &column, &value); column++) {
        for (int64_t r = 0; r < s->rows; r++) {
            if (tni_at_counts(s->problem, s->unit, s->row + r, key))
                ((float *)s->state.values)[r * s->state.value_row + column] +=
                    scores[r * F(SCORE_ROW) + key - s->key] * (float)value;
        }
    }
}

static void add_values(const tni_at_step *s, const float *scores, const float *shrink, char *room)
{
    for (int64_t r = 0; r < s->rows; r += HEIGHT) {
        const int64_t rows = s->rows - r < HEIGHT ? s->rows - r : HEIGHT;
        round_weights(scores + r * F(SCORE_ROW), rows, s->keys, room);
        for (int64_t c = 0; c < s->problem->at->value_size; c += HEIGHT)
            multiply_values(room, s->v + c / HEIGHT * s->v_panel, s->keys, shrink + r, rows,
                            (float *)s->state.values + r * s->state.value_row + c,
                            s->state.value_row);
    }
}

static void step(const tni_at_step *s)
{
    const tn_attention_op *at = s->problem->at;
    const F(numbers) is = F(numbers_of)(s->problem);
    _Alignas(64) float shrink[TNI_AT_ROWS_MOST];
    float *scores = (float *)(void *)s->room;
    for (int64_t j = 0; j < s->keys; j += HEIGHT)
        for (int64_t r = 0; r < s->rows; r += HEIGHT)
            multiply_scores(s->q + r * q_row(at->size), s->k + j / HEIGHT * k_panel(at->size),
                            at->size, scores + r * F(SCORE_ROW) + j);
    F(weigh)(s, &is, scores, shrink);
    if (at->dropout != 0)
        F(drop)(s, scores);
    add_values(s, scores, shrink, s->room + ROWS * F(SCORE_ROW) * (int64_t)sizeof(float));
    if (s->nonfinite)
        add_nonfinite(s, scores);
}

static void finish(const tni_at_step *s)
{
    tni_at_half_bf16_neon.finish(s);
}

const tni_at_set tni_at_bf16_neon_bf16 = {
    .rows = ROWS,
    .keys = HEIGHT,
    .columns = HEIGHT,
    .lanes = WIDTH,
    .real = sizeof(float),
    .few = HEIGHT,
    .whole = HEIGHT,
    .panels = 8,
    .q_row = q_row,
    .k_panel = k_panel,
    .v_line = 2 * HEIGHT,
    .room = ROWS * F(SCORE_ROW) * sizeof(float) + WEIGHTS_BYTES,
    .pack_rows = pack_rows,
    .pack = pack,
    .step = step,
    .finish = finish,
};
