/* Multiplies squares by dot products of pairs: eight rows of one factor by two vectors of the other
 * at a time, in registers. A piece of work is everything that goes into the same sums. */
#include "attention_low_items.h"

enum { HEIGHT = 8 };

/* HEIGHT rows of sums, from the products of consecutive squares. */
INLINE void multiply_rows(const char *a, const char *b, int64_t squares_left, float *to)
{
    vf sum[HEIGHT][2];
    UNROLLED for (int i = 0; i < HEIGHT; i++) HALVES sum[i][h] =
        load_f32(to + i * SIDE + h * LANES);
    for (; squares_left > 0; squares_left--, a += SQUARE_BYTES - 64)
        for (int line = 0; line < SIDE / 2; line++, a += 4, b += SIDE * 4) {
            vi y[2];
            HALVES y[h] = load_i32(b + h * 64);
            UNROLLED for (int i = 0; i < HEIGHT; i++)
            {
                int32_t unit;
                memcpy(&unit, a + i * 64, sizeof unit);
                const __m512bh x = (__m512bh)_mm512_set1_epi32(unit);
                HALVES sum[i][h] = (vf)_mm512_dpbf16_ps((__m512)sum[i][h], x, (__m512bh)y[h]);
            }
        }
    UNROLLED for (int i = 0; i < HEIGHT; i++)
        HALVES store_f32(to + i * SIDE + h * LANES, sum[i][h]);
}

static void multiply_squares(const char *a, const char *b, int64_t count, float *to)
{
    for (int64_t row = 0; row < SIDE; row += HEIGHT)
        multiply_rows(a + row * 64, b, count, to + row * SIDE);
}

static void multiply_scores(work *w)
{
    const item *it = w->next;
    float *to = it->scores + w->part * SIDE * SIDE;
    memset(to, 0, SIDE * SIDE * sizeof *to);
    multiply_squares(it->k + w->part * w->steps * SQUARE_BYTES, it->q, w->steps, to);
    (void)go_on(w, it->keys / SIDE, 0, &w->next);
}

static void multiply_values(work *w)
{
    const item *it = w->last;
    multiply_squares(it->v + w->part * w->v_panel, it->weights, it->keys / SIDE,
                     it->values + w->part * SIDE * SIDE);
    (void)go_on(w, w->parts, 0, &w->last);
}

#define BEGIN NULL
#define END   NULL
#define SET   tni_at_bf16_avx512_bf16
#include "attention_low_set.h"
