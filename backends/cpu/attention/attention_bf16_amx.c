/* Multiplies squares in AMX tile registers: two of each factor, four of sums. The registers are per
 * thread, which must call configure_tiles and release_tiles. */
#include "../shared/amx.h"
#include "attention_low_items.h"

enum { LINE_BYTES = SIDE * 4, HALF_BYTES = 64, LOWER_BYTES = SIDE / 2 * LINE_BYTES };

static void configure_tiles(void)
{
    amx_configure(AMX_ROWS);
}

static void release_tiles(void)
{
    _tile_release();
}

/* `a` has rows of 64 bytes, `b` has lines of 32 pairs. */
INLINE void multiply_square(const char *a, const char *b)
{
    order_memory(b);
    _tile_loadd(B_0, b, LINE_BYTES);
    _tile_loadd(A_0, a, 64);
    _tile_dpbf16ps(SUM_00, A_0, B_0);
    _tile_loadd(B_1, b + HALF_BYTES, LINE_BYTES);
    _tile_dpbf16ps(SUM_01, A_0, B_1);
    _tile_loadd(A_1, a + SQUARE_BYTES / 2, 64);
    _tile_dpbf16ps(SUM_10, A_1, B_0);
    _tile_dpbf16ps(SUM_11, A_1, B_1);
}

INLINE void load_sums(const char *from)
{
    order_memory(from);
    _tile_loadd(SUM_00, from, LINE_BYTES);
    _tile_loadd(SUM_01, from + HALF_BYTES, LINE_BYTES);
    _tile_loadd(SUM_10, from + LOWER_BYTES, LINE_BYTES);
    _tile_loadd(SUM_11, from + LOWER_BYTES + HALF_BYTES, LINE_BYTES);
}

INLINE void store_sums(char *to)
{
    _tile_stored(SUM_00, to, LINE_BYTES);
    _tile_stored(SUM_01, to + HALF_BYTES, LINE_BYTES);
    _tile_stored(SUM_10, to + LOWER_BYTES, LINE_BYTES);
    _tile_stored(SUM_11, to + LOWER_BYTES + HALF_BYTES, LINE_BYTES);
    order_memory(to);
}

INLINE void multiply_scores(work *w)
{
    const item *it = w->next;
    char *to = (char *)(it->scores + w->part * SIDE * SIDE);
    if (w->step == 0) {
        _tile_zero(SUM_00);
        _tile_zero(SUM_01);
        _tile_zero(SUM_10);
        _tile_zero(SUM_11);
    }
    multiply_square(it->k + (w->part * w->steps + w->step) * SQUARE_BYTES,
                    it->q + w->step * SQUARE_BYTES);
    if (go_on(w, it->keys / SIDE, w->steps, &w->next))
        store_sums(to);
}

INLINE void multiply_values(work *w)
{
    const item *it = w->last;
    char *to = (char *)(it->values + w->part * SIDE * SIDE);
    if (w->step == 0)
        load_sums(to);
    multiply_square(it->v + w->part * w->v_panel + w->step * SQUARE_BYTES,
                    it->weights + w->step * SQUARE_BYTES);
    if (go_on(w, w->parts, it->keys / SIDE, &w->last))
        store_sums(to);
}

#define BEGIN configure_tiles
#define END   release_tiles
#define SET   tni_at_bf16_amx
#include "attention_low_set.h"
