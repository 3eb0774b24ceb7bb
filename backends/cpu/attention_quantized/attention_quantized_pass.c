#include "attention_quantized_pass.h"

#include "../attention/attention_share.h"
#include "../shared/sizes.h"

#include <inttypes.h>
#include <math.h>

/* Maximum bytes of the packed units of a wave; one unit may have more. */
enum { WAVE_BYTES = 32 << 20 };

/* The work of a run. */
typedef struct plan {
    const tni_aq_set *set;
    const tn_run *run;
    tni_aq_sizes sizes;
    int64_t pieces; /* of the keys, for sums */
    int64_t tiles;  /* of the queries of a head */
    int64_t units, wave;
    int64_t slots;
    int64_t slot_bytes, unit_bytes;
    char *tasks;   /* memory of each slot */
    char *packed;  /* the units of the wave */
    int64_t first; /* the first of them */
} plan;

/* Gives out addresses one after the other, aligned to cache lines. From 0 it only measures. */
typedef struct cursor {
    uintptr_t at;
    int64_t bytes;
} cursor;

static void *reserve(cursor *c, int64_t bytes)
{
    void *found = (void *)(c->at + (uintptr_t)c->bytes);
    c->bytes += line(bytes);
    return found;
}

static tni_aq_unit reserve_unit(const plan *p, cursor *c)
{
    enum { REAL = sizeof(float) };
    const tni_aq_sizes *s = &p->sizes;
    tni_aq_unit u;
    u.sums = reserve(c, p->pieces * (s->line + s->columns) * REAL);
    u.flaws = reserve(c, p->pieces * REAL);
    u.mean = reserve(c, s->line * REAL);
    u.v_scales = reserve(c, s->columns * REAL);
    u.flaw = reserve(c, REAL);
    u.factors = reserve(c, s->steps * TN_QUANTIZED_STEP * REAL);
    u.k = reserve(c, s->steps * s->k_step);
    u.v = reserve(c, s->steps * s->v_step);
    return u;
}

/* The room of a tile is also the room for packing keys and values. */
static tni_aq_tile reserve_tile(const plan *p, cursor *c)
{
    enum { REAL = sizeof(float), ROWS = TN_QUANTIZED_Q_ROWS };
    const tni_aq_sizes *s = &p->sizes;
    const int64_t sums = ROWS * p->set->lanes * REAL;
    tni_aq_tile t;
    t.room =
        reserve(c, ROWS * s->line * REAL + most(s->q_row, (p->set->unit + 1) * s->columns * REAL));
    t.q = reserve(c, ROWS * s->q_row);
    t.scales = reserve(c, ROWS * REAL);
    t.begin = reserve(c, ROWS * (int64_t)sizeof(int32_t));
    t.offsets = reserve(c, ROWS * REAL);
    t.flaws = reserve(c, ROWS * REAL);
    t.most = reserve(c, ROWS * REAL);
    t.totals = reserve(c, sums);
    t.exact = reserve(c, sums);
    t.values = reserve(c, ROWS * s->columns * REAL);
    t.scores = reserve(c, p->set->room);
    return t;
}

/* Sets everything but the addresses. Returns false if the number of bytes may overflow. */
static bool make_plan(const tni_aq_set *set, const tn_op *op, const tn_run *run, int32_t threads,
                      plan *out)
{
    enum { LENGTH_MOST = 1 << 30 };
    const tn_attention_quantized_op *params = TN_PARAMS(op, attention_quantized);
    const tn_attention_op *at = &params->at;
    if (at->keys > LENGTH_MOST || at->queries > LENGTH_MOST || at->value_size > LENGTH_MOST ||
        (double)at->keys * (double)(at->size + at->value_size + 64) > 0x1p50)
        return false;
    const int64_t units = parts(at->size, set->unit);
    *out = (plan){.set = set, .run = run, .units = at->batch * at->groups};
    out->sizes = (tni_aq_sizes){.op = params,
                                .at = at,
                                .steps = parts(at->keys, TN_QUANTIZED_STEP),
                                .line = round_up(at->size, set->lanes),
                                .columns = round_up(at->value_size, 2 * set->lanes),
                                .q_row = units * 4};
    out->sizes.k_step = TN_QUANTIZED_STEP * out->sizes.q_row;
    const bool integers = params->weights == TN_U8 || params->weights == TN_I8;
    out->sizes.v_step = TN_QUANTIZED_STEP * out->sizes.columns * (integers ? 4 / set->unit : 4);
    out->pieces = parts(at->keys, TNI_AQ_PIECE);
    out->tiles = parts(at->queries, TN_QUANTIZED_Q_ROWS);
    cursor c = {0};
    (void)reserve_unit(out, &c);
    out->unit_bytes = c.bytes;
    c.bytes = 0;
    (void)reserve_tile(out, &c);
    out->slot_bytes = c.bytes;
    out->wave = most(1, least(out->units, WAVE_BYTES / out->unit_bytes));
    const int64_t shared = at->heads / most(1, at->groups);
    const int64_t items = out->wave * most(shared * out->tiles, out->sizes.steps);
    out->slots = least(most(1, threads), most(1, items));
    return true;
}

static uint64_t bytes_of(const plan *p)
{
    return (uint64_t)(p->slots * p->slot_bytes + p->wave * p->unit_bytes);
}

uint64_t tni_aq_workspace(const tni_aq_set *set, const tn_op *op, int32_t threads)
{
    plan p;
    return make_plan(set, op, NULL, threads, &p) ? bytes_of(&p) : UINT64_MAX;
}

static tni_aq_rows rows_of(const tn_run *run, int32_t operand, int64_t b, int64_t h)
{
    const tn_layout *layout = &run->op->operand[operand];
    const int64_t bytes = dtype_bytes(layout->dtype);
    const char *first = tn_operand(run, operand);
    return (tni_aq_rows){.first = first + (b * layout->stride[0] + h * layout->stride[1]) * bytes,
                         .row = layout->stride[2] * bytes,
                         .stride = layout->stride[3],
                         .count = layout->shape[3],
                         .dtype = layout->dtype};
}

/* A unit of the wave with its rows of K and V. */
typedef struct keys {
    int64_t b, group;
    tni_aq_unit unit;
    tni_aq_rows k, v;
} keys;

static keys keys_at(const plan *p, int64_t n)
{
    cursor c = {.at = (uintptr_t)(p->packed + n * p->unit_bytes)};
    keys out = {.b = (p->first + n) / p->sizes.at->groups,
                .group = (p->first + n) % p->sizes.at->groups,
                .unit = reserve_unit(p, &c)};
    out.k = rows_of(p->run, TN_ATTENTION_QUANTIZED_K, out.b, out.group);
    out.v = rows_of(p->run, TN_ATTENTION_QUANTIZED_V, out.b, out.group);
    return out;
}

static tni_aq_tile tile_at(const plan *p, int64_t slot)
{
    cursor c = {.at = (uintptr_t)(p->tasks + slot * p->slot_bytes)};
    return reserve_tile(p, &c);
}

/* Sums a piece of a unit's keys. */
static void sum_item(void *user, int64_t item, int64_t slot)
{
    const plan *p = user;
    const tni_aq_sizes *s = &p->sizes;
    const keys k = keys_at(p, item / p->pieces);
    const int64_t piece = item % p->pieces, key = piece * TNI_AQ_PIECE;
    float *sums = k.unit.sums + piece * (s->line + s->columns);
    p->set->sum(s, &k.k, &k.v, key, least(TNI_AQ_PIECE, s->at->keys - key), sums, sums + s->line,
                &k.unit.flaws[piece], tile_at(p, slot).room);
}

/* Writes the means of the columns of K. A mean that overflows is a flaw. */
static void write_means(const plan *p, const tni_aq_unit *u)
{
    const tni_aq_sizes *s = &p->sizes;
    for (int64_t d = 0; d < s->line; d++) {
        double sum = 0;
        for (int64_t n = 0; n < p->pieces; n++)
            sum += (double)u->sums[n * (s->line + s->columns) + d];
        u->mean[d] = s->op->smoothing == TN_SMOOTHING_K ? (float)(sum / (double)s->at->keys) : 0;
        *u->flaw += u->mean[d] * 0;
    }
}

static void write_v_scales(const plan *p, const tni_aq_unit *u)
{
    const tni_aq_sizes *s = &p->sizes;
    const float limit = (float)tn_quantized_value_limit(s->op->weights);
    for (int64_t c = 0; c < s->columns; c++) {
        float greatest = 0;
        for (int64_t n = 0; n < p->pieces; n++) {
            const float found = u->sums[n * (s->line + s->columns) + s->line + c];
            greatest = found > greatest ? found : greatest;
        }
        u->v_scales[c] = limit > 1 ? greatest / limit + 1e-7F : 1;
        if (s->op->weights == TN_F16 && greatest >= 65520) /* rounds to infinity */
            *u->flaw = NAN;
    }
}

static void scale_item(void *user, int64_t item, int64_t slot)
{
    const plan *p = user;
    const keys k = keys_at(p, item);
    (void)slot;
    *k.unit.flaw = 0;
    for (int64_t n = 0; n < p->pieces; n++)
        *k.unit.flaw += k.unit.flaws[n];
    write_means(p, &k.unit);
    write_v_scales(p, &k.unit);
}

/* Packs a step of a unit. */
static void pack_item(void *user, int64_t item, int64_t slot)
{
    const plan *p = user;
    const keys k = keys_at(p, item / p->sizes.steps);
    const int64_t key = item % p->sizes.steps * TN_QUANTIZED_STEP;
    float *room = tile_at(p, slot).room;
    p->set->pack_keys(&p->sizes, &k.k, key, &k.unit, room);
    p->set->pack_values(&p->sizes, &k.v, key, &k.unit, room);
}

/* A tile of queries while it is computed. */
typedef struct task {
    const plan *plan;
    const keys *keys;
    tni_aq_tile tile;
    int64_t h, row, rows;
    int64_t first, end; /* keys that any row sees */
} task;

/* Finds the keys that the rows see. */
static void find_reach(task *t)
{
    const tn_attention_op *at = t->plan->sizes.at;
    t->first = at->keys;
    t->end = 0;
    for (int64_t r = 0; r < t->rows; r++) {
        int64_t first;
        const int64_t seen = tn_attention_seen(at, t->row + r, at->queries, at->keys, &first);
        t->first = seen ? least(t->first, first) : t->first;
        t->end = seen ? most(t->end, first + seen) : t->end;
    }
}

static void visit_steps(const task *t)
{
    const plan *p = t->plan;
    const tn_attention_op *at = p->sizes.at;
    int32_t first[TN_QUANTIZED_Q_ROWS], end[TN_QUANTIZED_Q_ROWS];
    for (int64_t n = t->first / TN_QUANTIZED_STEP; n * TN_QUANTIZED_STEP < t->end; n++) {
        const int64_t key = n * TN_QUANTIZED_STEP;
        for (int64_t r = 0; r < t->rows; r++) {
            int64_t from;
            const int64_t seen = tn_attention_seen(at, t->row + r, at->queries, at->keys, &from);
            first[r] = (int32_t)least(most(from - key, 0), TN_QUANTIZED_STEP);
            end[r] = (int32_t)least(most(from + seen - key, 0), TN_QUANTIZED_STEP);
        }
        p->set->step(&(tni_aq_step){.sizes = &p->sizes,
                                    .tile = &t->tile,
                                    .k = t->keys->unit.k + n * p->sizes.k_step,
                                    .v = t->keys->unit.v + n * p->sizes.v_step,
                                    .factors = t->keys->unit.factors + key,
                                    .first = first,
                                    .end = end,
                                    .rows = t->rows});
    }
}

static double total_of(const float *lanes, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)lanes[i];
    return sum;
}

static void write_lse(const task *t, int64_t r, double lse)
{
    const tn_layout *layout = &t->plan->run->op->operand[TN_ATTENTION_QUANTIZED_LSE];
    const float rounded = (float)lse;
    if (!layout->dtype)
        return;
    char *first = tn_operand(t->plan->run, TN_ATTENTION_QUANTIZED_LSE);
    memcpy(first + (t->keys->b * layout->stride[0] + t->h * layout->stride[1] +
                    (t->row + r) * layout->stride[2]) *
                       (int64_t)sizeof rounded,
           &rounded, sizeof rounded);
}

/* Writes out and lse of a row. */
static void finish_row(const task *t, int64_t r, const tni_aq_rows *out)
{
    const plan *p = t->plan;
    const tn_attention_op *at = p->sizes.at;
    const int64_t lanes = p->set->lanes;
    const float *values = t->tile.values + r * p->sizes.columns;
    const float *scales = t->keys->unit.v_scales;
    const float flaw = *t->keys->unit.flaw + t->tile.flaws[r];
    int64_t first;
    if (!tn_attention_seen(at, t->row + r, at->queries, at->keys, &first)) {
        p->set->write_row(&p->sizes, values, scales, 0, 0, out, t->row + r);
        write_lse(t, r, -(double)INFINITY);
        return;
    }
    const double total = total_of(t->tile.totals + r * lanes, lanes);
    const double exact = total_of(t->tile.exact + r * lanes, lanes);
    p->set->write_row(&p->sizes, values, scales, (float)(1 / total), flaw, out, t->row + r);
    write_lse(t, r,
              (double)t->tile.most[r] * 0.69314718055994530942 + log(exact) +
                  at->scale * (double)t->tile.offsets[r] + (double)flaw);
}

/* Prepares the state of the rows, after their queries are packed. */
static void clear_tile(const task *t)
{
    const tni_aq_sizes *s = &t->plan->sizes;
    const size_t sums = (size_t)(t->rows * t->plan->set->lanes) * sizeof(float);
    for (int64_t r = 0; r < t->rows; r++)
        t->tile.most[r] = -INFINITY;
    memset(t->tile.totals, 0, sums);
    memset(t->tile.exact, 0, sums);
    memset(t->tile.values, 0, (size_t)(t->rows * s->columns) * sizeof(float));
}

/* Computes a tile of queries: the last ones first, because with a causal mask they see most. */
static void tile_item(void *user, int64_t item, int64_t slot)
{
    const plan *p = user;
    const tn_attention_op *at = p->sizes.at;
    const int64_t shared = at->heads / at->groups, items = shared * p->tiles;
    const keys k = keys_at(p, item / items);
    const int64_t rest = items - 1 - item % items;
    task t = {.plan = p,
              .keys = &k,
              .tile = tile_at(p, slot),
              .h = k.group * shared + rest % shared,
              .row = rest / shared * TN_QUANTIZED_Q_ROWS};
    t.rows = least(TN_QUANTIZED_Q_ROWS, at->queries - t.row);
    const tni_aq_rows q = rows_of(p->run, TN_ATTENTION_QUANTIZED_Q, k.b, t.h);
    const tni_aq_rows out = rows_of(p->run, TN_ATTENTION_QUANTIZED_OUT, k.b, t.h);
    p->set->pack_tile(&p->sizes, &q, t.row, t.rows, k.unit.mean, &t.tile);
    clear_tile(&t);
    find_reach(&t);
    visit_steps(&t);
    for (int64_t r = 0; r < t.rows; r++)
        finish_row(&t, r, &out);
}

tn_status tni_aq_forward(const tni_aq_set *set, const tn_run *run, tn_error *err)
{
    plan p = {0};
    bool fits = false;
    for (int32_t threads = (int32_t)most(run->threads, 1); threads > 0 && !fits; threads--)
        fits = make_plan(set, run->op, run, threads, &p) && bytes_of(&p) <= run->workspace_bytes;
    if (!fits)
        return tn_fail(err, TN_INTERNAL, 0, run->row->name,
                       "expected the workspace of one thread, got %" PRIu64 " bytes",
                       run->workspace_bytes);
    const int64_t shared = p.sizes.at->heads / most(1, p.sizes.at->groups);
    p.tasks = run->workspace;
    p.packed = p.tasks + p.slots * p.slot_bytes;
    for (; p.first < p.units; p.first += p.wave) {
        const int64_t units = least(p.wave, p.units - p.first);
        tni_at_share(run, p.slots, units * p.pieces, sum_item, &p);
        tni_at_share(run, p.slots, units, scale_item, &p);
        tni_at_share(run, p.slots, units * p.sizes.steps, pack_item, &p);
        tni_at_share(run, p.slots, units * shared * p.tiles, tile_item, &p);
    }
    return TN_OK;
}
