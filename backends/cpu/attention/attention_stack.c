#include "attention_stack.h"

#include "../shared/sizes.h"

tni_at_panels tni_at_panels_at(const tni_at_layout *l, char *packed, char *v)
{
    return (tni_at_panels){packed, l->v_bytes > 0 ? packed + l->k_bytes : v,
                           (uint8_t *)packed + l->k_bytes + l->v_bytes};
}

tni_at_desk tni_at_desk_at(const tni_at_layout *l, char *memory)
{
    tni_at_desk d = {.q = memory};
    d.room = d.q + l->q_bytes;
    d.bias = d.room + l->room_bytes;
    d.state.most = d.bias + l->bias_bytes;
    d.state.sums = (char *)d.state.most + l->most_bytes;
    d.state.values = (char *)d.state.sums + l->sums_bytes;
    d.state.value_row = l->value_row;
    return d;
}

void tni_at_pack_panels(const tni_at_set *set, const tni_at_problem *p, const tni_at_layout *layout,
                        const tni_at_unit *unit, int64_t first, int64_t end,
                        const tni_at_panels *to, char *room)
{
    const char *k[TNI_AT_KEYS_MOST], *v[TNI_AT_KEYS_MOST];
    tni_at_pack job = {.k = k,
                       .v = v,
                       .k_step = p->k.element,
                       .v_step = p->v.element,
                       .size = p->at->size,
                       .value_size = p->at->value_size,
                       .v_panel = layout->v_panel,
                       .room = room};
    for (int64_t panel = first; panel < end; panel++) {
        const int64_t key = panel * set->keys;
        int64_t from = key < unit->from ? unit->from : key;
        int64_t to_key = least(key + set->keys, unit->to);
        tni_at_keys(p, unit, &p->k, from, to_key - from, k + (from - key));
        tni_at_keys(p, unit, &p->v, from, to_key - from, v + (from - key));
        for (int64_t n = 0; n < from - key; n++) { /* not visible: any key will do */
            k[n] = k[from - key];
            v[n] = v[from - key];
        }
        job.keys = to_key - key;
        job.k_to = to->k + panel * layout->k_panel;
        job.v_to = layout->v_bytes > 0 ? to->v + key * layout->v_line : NULL;
        to->nonfinite[panel] = !set->pack(&job);
    }
}

/* First row of panel n. */
static int64_t panel_row(const tni_at_stack *k, int64_t n)
{
    const int64_t whole = k->set->whole;
    return least(parts(k->rows, whole) * n / k->panels * whole, k->rows);
}

static void pack_query_rows(const tni_at_stack *k, int64_t n)
{
    const tni_at_problem *p = k->problem;
    const int64_t first = panel_row(k, n), rows = panel_row(k, n + 1) - first;
    const char *from[TNI_AT_ROWS_MOST];
    for (int64_t r = 0; r < rows; r++)
        from[r] = tni_at_row(p, k->unit, &p->q, k->row + first + r);
    k->set->pack_rows(from, p->q.element, p->at->size, rows, k->desk.q + first * k->layout->q_row);
}

void tni_at_stack_begin(tni_at_stack *k)
{
    const bool copied = k->layout->q_bytes > 0;
    k->panels = parts(k->rows, k->set->rows);
    k->q = copied ? k->desk.q : tni_at_row(k->problem, k->unit, &k->problem->q, k->row);
    if (k->set->begin)
        k->set->begin();
    tni_at_state_clear(k->set, k->rows, &k->desk.state);
    for (int64_t n = 0; copied && n < k->panels; n++)
        pack_query_rows(k, n);
}

tni_at_step tni_at_stack_step(const tni_at_stack *k, int64_t n)
{
    const tni_at_layout *l = k->layout;
    const tni_at_state *state = &k->desk.state;
    const int64_t at = panel_row(k, n), real = k->set->real;
    return (tni_at_step){.problem = k->problem,
                         .unit = k->unit,
                         .row = k->row + at,
                         .rows = panel_row(k, n + 1) - at,
                         .q = k->q + at * l->q_row,
                         .q_row = l->q_row,
                         .v_panel = l->v_panel,
                         .v_line = l->v_line,
                         .room = k->desk.room,
                         .state = {.most = (char *)state->most + at * real,
                                   .sums = (char *)state->sums + at * k->set->lanes * real,
                                   .values = (char *)state->values + at * l->value_row * real,
                                   .value_row = l->value_row}};
}

void tni_at_stack_keys(const tni_at_stack *k, int64_t from, int64_t to, tni_at_step *s)
{
    const int64_t first = from / k->set->keys, end = parts(to, k->set->keys);
    s->key = first * k->set->keys;
    s->keys = end * k->set->keys - s->key;
    s->k = k->at.k + first * k->layout->k_panel;
    s->v = k->at.v + s->key * k->layout->v_line;
    s->nonfinite = false;
    for (int64_t n = first; n < end; n++)
        s->nonfinite = s->nonfinite || k->at.nonfinite[n];
}

void tni_at_stack_end(const tni_at_stack *k)
{
    for (int64_t n = 0; n < k->panels; n++) {
        const tni_at_step s = tni_at_stack_step(k, n);
        k->set->finish(&s);
    }
    if (k->set->end)
        k->set->end();
}
