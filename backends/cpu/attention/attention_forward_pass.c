#include "attention_forward_pass.h"

#include "../matmul/matmul_blocking.h"
#include "../shared/sizes.h"
#include "attention_layout.h"
#include "attention_share.h"
#include "attention_split.h"

/* Units that are packed together, and the data shared by the tasks of their rows. */
typedef struct crew {
    const tni_at_set *set;
    const tni_at_problem *problem;
    const tni_at_layout *layout;
    char *packed; /* of the first unit of the wave */
    char *tasks;  /* memory of each slot */
    int64_t first;
} crew;

static tni_at_panels panels_at(const crew *c, const tni_at_unit *unit, char *packed)
{
    const tni_at_layout *l = c->layout;
    char *v =
        l->v_bytes > 0 ? packed + l->k_bytes : tni_at_key(c->problem, unit, &c->problem->v, 0);
    return (tni_at_panels){packed, v, (uint8_t *)packed + l->k_bytes + l->v_bytes};
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

static bool any_set(const uint8_t *flags, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (flags[i])
            return true;
    }
    return false;
}

/* Processes the step's rows with the keys of a block that any of them sees. */
static void block_step(const crew *c, tni_at_step *s, int64_t from, int64_t to,
                       const tni_at_panels *at, const tni_at_desk *d)
{
    const tni_at_problem *p = c->problem;
    const int64_t panel = c->set->keys;
    s->key = from / panel * panel;
    s->keys = (to - s->key + panel - 1) / panel * panel;
    s->k = at->k + s->key / panel * c->layout->k_panel;
    s->v = at->v + s->key * c->layout->v_line;
    s->nonfinite = any_set(at->nonfinite + s->key / panel, s->keys / panel);
    s->bias = NULL;
    if (p->mask.dtype ||
        (!c->set->looks && !tni_at_all_seen(p, s->unit, s->row, s->rows, s->key, s->keys))) {
        s->bias = d->bias;
        s->bias_row = c->layout->block;
        for (int64_t r = 0; r < s->rows; r++)
            tni_at_bias(c->set, p, s->unit, s->row + r, s->key, s->keys,
                        d->bias + r * s->bias_row * c->set->real);
    }
    c->set->step(s);
}

static void pack_query_rows(const crew *c, const tni_at_unit *unit, int64_t row, int64_t rows,
                            char *to)
{
    const char *from[TNI_AT_ROWS_MOST];
    for (int64_t r = 0; r < rows; r++)
        from[r] = tni_at_row(c->problem, unit, &c->problem->q, row + r);
    c->set->pack_rows(from, c->problem->q.element, c->problem->at->size, rows, to);
}

/* Some rows of a unit whose keys are packed, split into panels of about equal height. */
typedef struct stack {
    const crew *crew;
    const tni_at_unit *unit;
    int64_t row, rows;
    int64_t count; /* of panels */
    const tni_at_panels *at;
    const tni_at_desk *desk;
    const char *q;
} stack;

/* First row of panel n of a stack. */
static int64_t panel_row(const stack *k, int64_t n)
{
    const int64_t whole = k->crew->set->whole;
    return least((k->rows + whole - 1) / whole * n / k->count * whole, k->rows);
}

/* The step of panel n. */
static tni_at_step panel_step(const stack *k, int64_t n)
{
    const tni_at_layout *l = k->crew->layout;
    const tni_at_state *state = &k->desk->state;
    const int64_t at = panel_row(k, n), real = k->crew->set->real;
    return (tni_at_step){.problem = k->crew->problem,
                         .unit = k->unit,
                         .row = k->row + at,
                         .rows = panel_row(k, n + 1) - at,
                         .q = k->q + at * l->q_row,
                         .q_row = l->q_row,
                         .v_panel = l->v_panel,
                         .v_line = l->v_line,
                         .room = k->desk->room,
                         .state = {.most = (char *)state->most + at * real,
                                   .sums = (char *)state->sums + at * k->crew->set->lanes * real,
                                   .values = (char *)state->values + at * l->value_row * real,
                                   .value_row = l->value_row}};
}

/* Processes all panels with a block of keys. */
static void through_block(const stack *k, int64_t key)
{
    for (int64_t n = 0; n < k->count; n++) {
        tni_at_step s = panel_step(k, n);
        int64_t from, to;
        tni_at_reach(k->crew->problem, k->unit, s.row, s.rows, &from, &to);
        from = from > key ? from : key;
        to = least(to, key + k->crew->layout->block);
        if (from < to)
            block_step(k->crew, &s, from, to, k->at, k->desk);
    }
}

static void compute_rows(const crew *c, const tni_at_unit *unit, int64_t row, int64_t rows,
                         const tni_at_panels *at, const tni_at_desk *d)
{
    const tni_at_set *set = c->set;
    const bool copied = c->layout->q_bytes > 0;
    const stack k = {c,
                     unit,
                     row,
                     rows,
                     (rows + set->rows - 1) / set->rows,
                     at,
                     d,
                     copied ? d->q : tni_at_row(c->problem, unit, &c->problem->q, row)};
    const int64_t block = c->layout->block;
    int64_t first, end;
    if (set->begin)
        set->begin();
    tni_at_state_clear(set, rows, &d->state);
    for (int64_t n = 0; copied && n < k.count; n++) {
        const int64_t from = panel_row(&k, n);
        pack_query_rows(c, unit, row + from, panel_row(&k, n + 1) - from,
                        d->q + from * c->layout->q_row);
    }
    tni_at_reach(c->problem, unit, row, rows, &first, &end);
    for (int64_t key = first / block * block; key < end; key += block)
        through_block(&k, key);
    for (int64_t n = 0; n < k.count; n++) {
        const tni_at_step s = panel_step(&k, n);
        set->finish(&s);
    }
    if (set->end)
        set->end();
}

/* Packs a piece of a unit's keys. */
static void pack_item(void *user, int64_t item, int64_t slot)
{
    const crew *c = user;
    const tni_at_layout *l = c->layout;
    const int64_t index = item / l->pieces, first = item % l->pieces * l->piece;
    tni_at_unit unit;
    tni_at_unit_read(c->problem, c->first + index, &unit);
    if (!tni_at_is_packed(c->set, c->problem, unit.rows) || unit.from == unit.to)
        return;
    const int64_t begin = unit.from / c->set->keys, end = parts(unit.to, c->set->keys);
    const tni_at_panels to = panels_at(c, &unit, c->packed + index * l->packed);
    tni_at_pack_panels(c->set, c->problem, l, &unit, first > begin ? first : begin,
                       least(first + l->piece, end), &to,
                       tni_at_desk_at(l, c->tasks + slot * l->slot).room);
}

/* Computes some rows of a unit: the last ones first, because they see the most keys. */
static void rows_item(void *user, int64_t item, int64_t slot)
{
    const crew *c = user;
    const tni_at_layout *l = c->layout;
    const int64_t index = item / l->row_tasks;
    const int64_t row = (l->row_tasks - 1 - item % l->row_tasks) * l->task_rows;
    tni_at_unit unit;
    tni_at_unit_read(c->problem, c->first + index, &unit);
    if (!tni_at_is_packed(c->set, c->problem, unit.rows) || row >= unit.rows)
        return;
    const tni_at_panels at = panels_at(c, &unit, c->packed + index * l->packed);
    const tni_at_desk d = tni_at_desk_at(l, c->tasks + slot * l->slot);
    compute_rows(c, &unit, row, least(l->task_rows, unit.rows - row), &at, &d);
}

/* Computes a whole unit, whose panels are after the desk. */
static void unit_item(void *user, int64_t item, int64_t slot)
{
    const crew *c = user;
    const tni_at_layout *l = c->layout;
    tni_at_unit unit;
    tni_at_unit_read(c->problem, item, &unit);
    if (!tni_at_is_packed(c->set, c->problem, unit.rows))
        return;
    const tni_at_panels at = panels_at(c, &unit, c->tasks + slot * l->slot + l->desk);
    const tni_at_desk d = tni_at_desk_at(l, c->tasks + slot * l->slot);
    if (unit.from < unit.to)
        tni_at_pack_panels(c->set, c->problem, l, &unit, unit.from / c->set->keys,
                           parts(unit.to, c->set->keys), &at, d.room);
    for (int64_t row = 0; row < unit.rows; row += l->task_rows)
        compute_rows(c, &unit, row, least(l->task_rows, unit.rows - row), &at, &d);
}

static void compute_packed(const tni_at_set *set, const tni_at_problem *problem,
                           const tni_at_layout *layout)
{
    const tn_run *run = problem->run;
    crew c = {.set = set,
              .problem = problem,
              .layout = layout,
              .tasks = run->workspace,
              .packed = (char *)run->workspace + layout->slots * layout->slot};
    if (layout->alone) {
        tni_at_share(run, layout->slots, problem->units, unit_item, &c);
        return;
    }
    for (; c.first < problem->units; c.first += layout->wave) {
        const int64_t units = least(layout->wave, problem->units - c.first);
        tni_at_share(run, layout->slots, units * layout->pieces, pack_item, &c);
        tni_at_share(run, layout->slots, units * layout->row_tasks, rows_item, &c);
    }
}

uint64_t tni_at_forward_workspace(const tni_at_set *set, const tn_op *op, int32_t threads)
{
    tni_at_problem problem;
    tni_at_layout layout;
    tni_at_read(op, NULL, &problem);
    uint64_t packed = 0; /* also enough for fewer threads */
    for (int32_t n = threads > 1 ? threads : 1; n > 0; n--) {
        if (!tni_at_layout_make(set, &problem, n, &layout))
            return UINT64_MAX;
        packed = (uint64_t)layout.bytes > packed ? (uint64_t)layout.bytes : packed;
    }
    const uint64_t split = tni_at_split_workspace(set->thin ? set->thin : set, &problem);
    return packed > split ? packed : split;
}

tn_status tni_at_forward(const tni_at_set *set, const tn_run *run, tn_error *err)
{
    tni_at_problem problem;
    tni_at_layout layout;
    tn_status status = tn_attention_check(run, err);
    if (status)
        return status;
    tni_at_read(run->op, run, &problem);
    const int64_t block = tni_at_block(set, &problem, tni_mm_cache(run->host));
    tni_at_split(set->thin ? set->thin : set, &problem, block);
    for (int32_t threads = run->threads > 1 ? run->threads : 1; threads > 0; threads--) {
        if (tni_at_layout_make(set, &problem, threads, &layout) &&
            (uint64_t)layout.bytes <= run->workspace_bytes)
            break;
    }
    layout.block = block;
    if (layout.bytes > 0)
        compute_packed(set, &problem, &layout);
    return TN_OK;
}
