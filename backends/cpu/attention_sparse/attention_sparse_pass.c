#include "attention_sparse_pass.h"

#include "../attention/attention_share.h"
#include "../attention/attention_stack.h"
#include "../matmul/matmul_blocking.h"
#include "../shared/sizes.h"

#include <math.h>

/* Maximum pieces of keys that one step visits. */
enum { PIECES_MOST = 64 };

/* The work of a run. A unit is a batch element's group of heads that share keys. Rows and keys are
 * slots; the problems' numbers of queries and keys are those of slots. */
typedef struct plan {
    const tni_at_set *set;
    const tn_run *run;
    const tn_attention_sparse_op *sparse;
    tn_attention_op at;  /* of slots */
    tni_at_problem keys; /* for packing */
    tni_at_problem rows; /* for steps: each head is a unit of its own */
    tni_at_layout layout;
    int64_t tiles; /* of a block of queries */
    int64_t items; /* tiles of a unit */
    char *tasks;   /* memory of each slot */
    char *packed;  /* panels of the first unit of the wave */
    int64_t first; /* that unit */
} plan;

/* Sets everything but the addresses. Returns false if the number of bytes overflows. */
static bool make_plan(const tni_at_set *set, const tn_op *op, const tn_run *run, int32_t threads,
                      plan *out)
{
    *out = (plan){.set = set, .run = run, .sparse = TN_PARAMS(op, attention_sparse)};
    const tn_attention_op *at = &out->at;
    tni_at_layout *l = &out->layout;
    out->at = out->sparse->at;
    tni_at_read(op, run, &out->keys);
    if (out->keys.ordered)
        out->at.queries = out->at.keys = tn_attention_sparse_slots(op);
    if (!tni_at_sizes_fit(at))
        return false;
    out->keys.at = at;
    out->rows = out->keys;
    out->rows.sharers = 1;
    tni_at_layout_panels(set, &out->keys, l);
    const int64_t block = least(out->sparse->block_queries, most(1, at->queries));
    out->tiles = parts(block, (int64_t)set->rows * set->panels);
    l->task_rows = round_up(parts(block, out->tiles), set->whole);
    out->tiles = parts(block, l->task_rows);
    out->items = at->heads / most(1, at->groups) * out->sparse->query_blocks * out->tiles;
    tni_at_layout_desk(set, &out->rows, l);
    l->slots = least(most(1, threads), most(1, out->keys.units * most(out->items, l->pieces)));
    l->slot = l->desk;
    l->wave = most(1, least(out->keys.units, TNI_AT_WAVE_BYTES / most(1, l->packed)));
    l->bytes = l->slots * l->slot + l->wave * l->packed;
    if (out->keys.ordered)
        l->bytes = most(l->bytes, (int64_t)tn_attention_sparse_marks(op));
    return true;
}

static tni_at_unit unit_of(const plan *p, int64_t b, int64_t group)
{
    const tn_attention_op *at = &p->at;
    tni_at_unit unit = {.in = {b, 0, 0, at->queries, at->keys},
                        .b = b,
                        .group = group,
                        .rows = at->queries,
                        .to = at->keys};
    if (p->keys.ordered) {
        unit.order = tn_sparse_address_(p->run, TN_ATTENTION_SPARSE_ORDER, 4, b, 0, 0);
        unit.order_step = p->run->op->operand[TN_ATTENTION_SPARSE_ORDER].stride[1] * 4;
    }
    return unit;
}

static tni_at_panels panels_of(const plan *p, int64_t unit)
{
    const tni_at_layout *l = &p->layout;
    return tni_at_panels_at(l, p->packed + (unit - p->first) * l->packed, NULL);
}

/* Packs some panels of a unit. */
static void pack_item(void *user, int64_t item, int64_t slot)
{
    const plan *p = user;
    const tni_at_layout *l = &p->layout;
    const int64_t unit = p->first + item / l->pieces, first = item % l->pieces * l->piece;
    const tni_at_unit of = unit_of(p, unit / p->at.groups, unit % p->at.groups);
    const tni_at_panels to = panels_of(p, unit);
    tni_at_pack_panels(p->set, &p->keys, l, &of, first,
                       least(first + l->piece, parts(of.to, p->set->keys)), &to,
                       tni_at_desk_at(l, p->tasks + slot * l->slot).room);
}

/* Keys from `from` to `to`. */
typedef struct piece {
    int64_t from, to;
} piece;

/* A tile of queries while it visits its keys, and the pieces that the next step will visit. */
typedef struct tile {
    const plan *plan;
    tni_at_stack stack; /* of a unit that is a head */
    int64_t first, end; /* keys that any row sees by position */
    piece pieces[PIECES_MOST];
    int64_t count;
} tile;

static void put_bias(const tni_at_set *set, char *to, int64_t first, int64_t end, double value)
{
    for (int64_t j = first; j < end; j++) {
        if (set->real == sizeof(double))
            ((double *)(void *)to)[j] = value;
        else
            ((float *)(void *)to)[j] = (float)value;
    }
}

/* Writes the bias of a row: -infinity for keys outside the pieces and the row's window. */
static void write_bias(const tile *t, const tni_at_step *s, int64_t row, char *to)
{
    const tn_attention_op *at = &t->plan->at;
    int64_t first;
    const int64_t seen = tn_attention_seen(at, row, at->queries, at->keys, &first);
    const int64_t end = first + seen;
    put_bias(t->plan->set, to, 0, s->keys, -(double)INFINITY);
    for (int64_t n = 0; n < t->count; n++)
        put_bias(t->plan->set, to, most(first, t->pieces[n].from) - s->key,
                 least(end, t->pieces[n].to) - s->key, 0);
}

/* Sets the step's bias, if one is needed. Rows whose positions do not matter share one. */
static void set_bias(const tile *t, tni_at_step *s)
{
    const tn_attention_op *at = &t->plan->at;
    const bool window = at->left >= 0 || at->right >= 0;
    const bool whole =
        t->count == 1 && t->pieces[0].from == s->key && t->pieces[0].to == s->key + s->keys;
    if (whole &&
        (!window || tni_at_all_seen(s->problem, s->unit, s->row, s->rows, s->key, s->keys)))
        return;
    s->bias = t->stack.desk.bias;
    s->bias_row = window ? t->plan->layout.block : 0;
    for (int64_t r = 0; r < (window ? s->rows : 1); r++)
        write_bias(t, s, s->row + r, t->stack.desk.bias + r * s->bias_row * t->plan->set->real);
}

/* Visits the collected pieces, and forgets them. */
static void visit_pieces(tile *t)
{
    for (int64_t n = 0; t->count > 0 && n < t->stack.panels; n++) {
        tni_at_step s = tni_at_stack_step(&t->stack, n);
        tni_at_stack_keys(&t->stack, t->pieces[0].from, t->pieces[t->count - 1].to, &s);
        set_bias(t, &s);
        t->plan->set->step(&s);
    }
    t->count = 0;
}

/* Collects keys, in whole steps: at most layout.block keys, in panels that follow each other. */
static void add_keys(tile *t, int64_t from, int64_t to)
{
    const int64_t panel = t->plan->set->keys, block = t->plan->layout.block;
    from = most(from, t->first);
    to = least(to, t->end);
    while (from < to) {
        if (t->count > 0) {
            const int64_t last = t->pieces[t->count - 1].to,
                          key = t->pieces[0].from / panel * panel;
            if (from / panel > (last - 1) / panel + 1 || from >= key + block ||
                (t->count == PIECES_MOST && from != last))
                visit_pieces(t);
        }
        const int64_t begin = t->count > 0 ? t->pieces[0].from : from;
        const int64_t end = least(to, begin / panel * panel + block);
        if (t->count > 0 && t->pieces[t->count - 1].to == from)
            t->pieces[t->count - 1].to = end;
        else
            t->pieces[t->count++] = (piece){from, end};
        from = end;
    }
}

/* Visits the listed blocks of block n of the queries of a head. */
static void visit_blocks(tile *t, int64_t n)
{
    const plan *p = t->plan;
    const int64_t b = t->stack.unit->b;
    tn_sparse_row row;
    tn_attention_sparse_row(p->run, b, t->stack.unit->group, n, &row);
    for (int64_t block; (block = tn_attention_sparse_next(&row)) >= 0;) {
        const int64_t from = block * p->sparse->block_keys;
        add_keys(t, from, from + tn_attention_sparse_size(p->run, b, block));
    }
    visit_pieces(t);
}

/* The end of the slots of block n of the queries that are in use. */
static int64_t end_of_queries(const plan *p, int64_t b, int64_t n)
{
    const int64_t begin = n * p->sparse->block_queries;
    return p->keys.ordered ? begin + tn_attention_sparse_size(p->run, b, n)
                           : least(begin + p->sparse->block_queries, p->at.queries);
}

/* Computes a tile of a unit: the last ones first, because with a causal mask they see most. */
static void tile_item(void *user, int64_t item, int64_t slot)
{
    const plan *p = user;
    const tni_at_layout *l = &p->layout;
    const tn_attention_op *at = &p->at;
    const int64_t unit = p->first + item / p->items, heads = at->heads / at->groups;
    int64_t rest = p->items - 1 - item % p->items;
    const int64_t part = rest % p->tiles;
    rest /= p->tiles;
    const int64_t n = rest % p->sparse->query_blocks, head = rest / p->sparse->query_blocks;
    const int64_t begin = n * p->sparse->block_queries + part * l->task_rows;
    const int64_t end = least(end_of_queries(p, unit / at->groups, n), begin + l->task_rows);
    const tni_at_unit of = unit_of(p, unit / at->groups, unit % at->groups * heads + head);
    tile t = {.plan = p,
              .stack = {.set = p->set,
                        .problem = &p->rows,
                        .layout = l,
                        .unit = &of,
                        .row = begin,
                        .rows = end - begin,
                        .at = panels_of(p, unit),
                        .desk = tni_at_desk_at(l, p->tasks + slot * l->slot)}};
    if (begin >= end)
        return;
    tni_at_stack_begin(&t.stack);
    tni_at_reach(&p->rows, &of, begin, end - begin, &t.first, &t.end);
    visit_blocks(&t, n);
    tni_at_stack_end(&t.stack);
}

uint64_t tni_sparse_workspace(const tni_at_set *set, const tn_op *op, int32_t threads)
{
    plan p;
    return make_plan(set, op, NULL, threads, &p) ? (uint64_t)p.layout.bytes : UINT64_MAX;
}

tn_status tni_sparse_forward(const tni_at_set *set, const tn_run *run, tn_error *err)
{
    plan p;
    tn_status status = tn_attention_sparse_check(run, err);
    if (!status)
        status = tn_attention_sparse_check_order(run, run->workspace, err);
    if (status)
        return status;
    for (int32_t threads = run->threads > 1 ? run->threads : 1; threads > 0; threads--) {
        if (make_plan(set, run->op, run, threads, &p) &&
            (uint64_t)p.layout.bytes <= run->workspace_bytes)
            break;
    }
    p.layout.block = tni_at_block(set, &p.rows, tni_mm_cache(run->host));
    p.tasks = run->workspace;
    p.packed = p.tasks + p.layout.slots * p.layout.slot;
    for (; p.first < p.keys.units; p.first += p.layout.wave) {
        const int64_t units = least(p.layout.wave, p.keys.units - p.first);
        tni_at_share(run, p.layout.slots, units * p.layout.pieces, pack_item, &p);
        tni_at_share(run, p.layout.slots, units * p.items, tile_item, &p);
    }
    return TN_OK;
}
