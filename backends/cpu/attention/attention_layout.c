#include "attention_layout.h"

#include "../shared/sizes.h"

#include <math.h>

/* Maximum bytes of the panels of a unit that a task packs for itself. */
enum { ALONE_BYTES = 1 << 20 };
/* Tasks per thread; bytes that a task packs. */
enum { TASKS_OF_A_THREAD = 4, PIECE_BYTES = 128 << 10 };

int64_t tni_at_block(const tni_at_set *set, const tni_at_problem *p, int64_t cache)
{
    const int64_t panel = set->keys, key = set->real * (p->at->size + p->at->value_size + 1);
    int64_t fit = cache / 4 / key / panel * panel;
    return most(panel, least(fit, TNI_AT_BLOCK_MOST / 2));
}

int64_t tni_at_state_bytes(const tni_at_set *set, int64_t rows, int64_t value_size,
                           int64_t *out_most, int64_t *out_sums, int64_t *out_value_row)
{
    rows = parts(rows, set->whole) * set->whole;
    *out_value_row = parts(value_size, set->columns) * set->columns;
    *out_most = line(rows * set->real);
    *out_sums = line(rows * set->lanes * set->real);
    return *out_most + *out_sums + line(rows * *out_value_row * set->real);
}

void tni_at_state_clear(const tni_at_set *set, int64_t rows, const tni_at_state *state)
{
    rows = parts(rows, set->whole) * set->whole;
    for (int64_t r = 0; r < rows; r++) {
        if (set->real == sizeof(double))
            ((double *)state->most)[r] = -(double)INFINITY;
        else
            ((float *)state->most)[r] = -INFINITY;
    }
    memset(state->sums, 0, (size_t)(rows * set->lanes * set->real));
    memset(state->values, 0, (size_t)(rows * state->value_row * set->real));
}

/* Q is read in place if its rows are contiguous and follow each other, and row r of the unit is row
 * r of Q. */
static bool q_stays(const tni_at_set *set, const tni_at_problem *p)
{
    return set->in_place && p->sharers == 1 && !p->ordered && p->q.element == p->q.size &&
           p->q.row == p->at->size * p->q.size;
}

/* V is read in place too, in whole vectors, if all keys count for all rows: then its values need not
 * be finite. */
static bool v_stays(const tni_at_set *set, const tni_at_problem *p)
{
    const tn_attention_op *at = p->at;
    return set->in_place && p->v.element == p->v.size && p->v.row == at->value_size * p->v.size &&
           at->value_size % (set->columns / 2) == 0 && at->page == 0 && !p->excludes_keys;
}

void tni_at_layout_panels(const tni_at_set *set, const tni_at_problem *p, tni_at_layout *out)
{
    const tn_attention_op *at = p->at;
    const int64_t panels = parts(at->keys, set->keys);
    out->k_panel = set->k_panel(at->size);
    out->k_bytes = panels * out->k_panel;
    out->v_line = set->v_line;
    out->v_panel = panels * set->keys * set->v_line + 64; /* avoids sharing cache sets */
    out->v_bytes = parts(at->value_size, set->columns) * out->v_panel;
    if (v_stays(set, p)) {
        out->v_line = p->v.row;
        out->v_panel = set->v_line;
        out->v_bytes = 0;
    }
    out->packed = out->k_bytes + out->v_bytes + line(panels);
    out->piece = most(1, PIECE_BYTES / most(1, out->k_panel));
    out->pieces = parts(panels, out->piece);
}

void tni_at_layout_desk(const tni_at_set *set, const tni_at_problem *p, tni_at_layout *out)
{
    const tn_attention_op *at = p->at;
    const int64_t rows = out->task_rows;
    out->q_row = q_stays(set, p) ? p->q.row : set->q_row(at->size);
    out->q_bytes = q_stays(set, p) ? 0 : line(rows * out->q_row);
    out->room_bytes = tni_at_room(set, at);
    out->bias_bytes = line((int64_t)set->rows * TNI_AT_BLOCK_MOST * set->real);
    out->desk = out->q_bytes + out->room_bytes + out->bias_bytes +
                tni_at_state_bytes(set, rows, at->value_size, &out->most_bytes, &out->sums_bytes,
                                   &out->value_row);
}

/* Rows of a task: many, because keys and values come from farther away than rows; fewer if there
 * are not enough tasks for the threads. */
static void cut_rows(const tni_at_set *set, const tni_at_problem *p, int32_t threads,
                     tni_at_layout *out)
{
    const int64_t rows = most(1, p->at->queries * p->sharers), panels = parts(rows, set->rows);
    const int64_t wanted = threads > 1 ? (int64_t)threads * TASKS_OF_A_THREAD : 1;
    int64_t tasks = parts(panels, set->panels);
    if (!out->alone && p->units * tasks < wanted)
        tasks = least(panels, parts(wanted, most(1, p->units)));
    out->task_rows = parts(parts(rows, tasks), set->whole) * set->whole;
    out->row_tasks = parts(rows, out->task_rows);
}

bool tni_at_sizes_fit(const tn_attention_op *at)
{
    const double width = (double)at->size + (double)at->value_size + 64;
    const double rows = (double)at->queries * (double)at->heads;
    return (double)at->keys * width < 1e15 && rows * width < 1e15;
}

bool tni_at_layout_make(const tni_at_set *set, const tni_at_problem *p, int32_t threads,
                        tni_at_layout *out)
{
    *out = (tni_at_layout){0};
    if (!tni_at_sizes_fit(p->at))
        return false;
    if (p->units == 0 || !tni_at_is_packed(set, p, p->at->queries * p->sharers))
        return true;
    tni_at_layout_panels(set, p, out);
    out->alone = out->packed <= ALONE_BYTES &&
                 (threads <= 1 || p->units >= (int64_t)threads * TASKS_OF_A_THREAD);
    cut_rows(set, p, threads, out);
    tni_at_layout_desk(set, p, out);
    out->slots = least(most(1, threads), out->alone ? p->units : p->units * out->row_tasks);
    out->slot = out->desk + (out->alone ? out->packed : 0);
    out->wave =
        least(p->units, most(parts(threads, out->row_tasks), TNI_AT_WAVE_BYTES / out->packed));
    out->wave = most(1, out->wave);
    out->bytes = out->slots * out->slot + (out->alone ? 0 : out->wave * out->packed);
    return true;
}
