#include "attention_forward_pass.h"

#include "../matmul/matmul_blocking.h"
#include "../shared/sizes.h"
#include "attention_share.h"
#include "attention_split.h"
#include "attention_stack.h"

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
    const bool copied = c->layout->v_bytes > 0;
    return tni_at_panels_at(c->layout, packed,
                            copied ? NULL : tni_at_key(c->problem, unit, &c->problem->v, 0));
}

/* Processes the step's rows with the keys of a block that any of them sees. */
static void block_step(const tni_at_stack *k, int64_t from, int64_t to, tni_at_step *s)
{
    const tni_at_problem *p = k->problem;
    tni_at_stack_keys(k, from, to, s);
    if (p->mask.dtype ||
        (!k->set->looks && !tni_at_all_seen(p, s->unit, s->row, s->rows, s->key, s->keys))) {
        s->bias = k->desk.bias;
        s->bias_row = k->layout->block;
        for (int64_t r = 0; r < s->rows; r++)
            tni_at_bias(k->set, p, s->unit, s->row + r, s->key, s->keys,
                        k->desk.bias + r * s->bias_row * k->set->real);
    }
    k->set->step(s);
}

/* Processes all panels with a block of keys. */
static void through_block(const tni_at_stack *k, int64_t key)
{
    for (int64_t n = 0; n < k->panels; n++) {
        tni_at_step s = tni_at_stack_step(k, n);
        int64_t from, to;
        tni_at_reach(k->problem, k->unit, s.row, s.rows, &from, &to);
        from = most(from, key);
        to = least(to, key + k->layout->block);
        if (from < to)
            block_step(k, from, to, &s);
    }
}

static void compute_rows(const crew *c, const tni_at_unit *unit, int64_t row,
                         const tni_at_panels *at, const tni_at_desk *d)
{
    const int64_t block = c->layout->block;
    int64_t first, end;
    tni_at_stack k = {.set = c->set,
                      .problem = c->problem,
                      .layout = c->layout,
                      .unit = unit,
                      .row = row,
                      .rows = least(c->layout->task_rows, unit->rows - row),
                      .at = *at,
                      .desk = *d};
    tni_at_stack_begin(&k);
    tni_at_reach(c->problem, unit, row, k.rows, &first, &end);
    for (int64_t key = first / block * block; key < end; key += block)
        through_block(&k, key);
    tni_at_stack_end(&k);
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
    compute_rows(c, &unit, row, &at, &d);
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
        compute_rows(c, &unit, row, &at, &d);
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
