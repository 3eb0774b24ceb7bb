#include "attention_math.h"

#include "../shared/sizes.h"
#include "attention_layout.h"
#include "attention_share.h"
#include "tenon/module/op/matmul.h"

#include <math.h>

/* Rows of a block: at most ROWS_MOST, and at least ROWS_LEAST while there is more than one task. If
 * nothing else limits them, their scores take about SCORES_BYTES, so that they stay in a shared
 * cache. */
enum { ROWS_MOST = TNI_AT_ROWS_MOST, ROWS_LEAST = 32, SCORES_BYTES = 8 << 20 };

/* Columns of a product that are packed at once. */
enum { WIDE = 512 };

/* Elements that are widened or narrowed at once. */
enum { PIECE = TNI_AT_LOW_SIZE };

/* The kernels for an op of one dtype. */
typedef struct tools {
    tni_at_set set;
    tni_mm_set mm;
    const tni_at_half *half; /* NULL: the dtype is f32 or f64 */
    void (*pack_weights)(const tni_mm_pack *job);
    void (*pack_keys)(const tni_mm_pack *job); /* for keys and values */
    tn_dtype scores;                           /* dtype of the stored scores */
    bool narrow;
    bool raw; /* rows of Q are copied unchanged, and panels have 16-bit elements */
} tools;

static tools tools_of(const tni_at_math_row *row, const tn_op *op)
{
    const tn_dtype dtype = op->operand[TN_ATTENTION_Q].dtype;
    const bool wide = dtype == TN_F64, real = wide || dtype == TN_F32;
    const tni_mm_packs *packs = dtype == TN_BF16 ? row->packs_bf16 : row->packs_f16;
    tools t = {.set = wide ? *row->f64 : *row->f32,
               .mm = wide ? row->mm_f64->packed : row->mm_f32->packed,
               .scores = row->narrow || wide ? dtype : TN_F32,
               .narrow = row->narrow};
    t.pack_weights = t.mm.pack_a;
    t.pack_keys = t.mm.pack_b;
    if (real)
        return t;
    t.half = dtype == TN_BF16 ? row->half_bf16 : row->half_f16;
    t.set.pack_rows = t.half->pack_rows;
    t.set.finish = t.half->finish;
    t.pack_keys = packs->pack_b;
    if (t.narrow)
        t.pack_weights = packs->pack_a;
    if (row->own) {
        t.mm = *row->own;
        t.pack_weights = t.mm.pack_a;
        t.pack_keys = t.mm.pack_b;
        t.raw = true;
    }
    return t;
}

/* The memory of a task, in bytes. */
typedef struct scheme {
    int64_t rows, tasks;
    int64_t columns;   /* elements of a row of scores */
    int64_t score_row; /* bytes of such a row */
    int64_t q_row, q;
    int64_t most, sums, value_row, state;
    int64_t scores, line, bias;
    int64_t a_panel, b_panel, a, b, apart;
    int64_t task;
} scheme;

static void lay(const tools *t, const tni_at_problem *p, int64_t rows, scheme *out)
{
    const tn_attention_op *at = p->at;
    const tni_mm_set *mm = &t->mm;
    *out = (scheme){.rows = rows, .columns = round_up(most(1, at->keys), t->set.keys)};
    out->score_row = line(out->columns * dtype_bytes(t->scores));
    out->q_row = t->raw ? line(2 * at->size) : t->set.q_row(at->size);
    out->q = line(rows * out->q_row);
    out->state =
        tni_at_state_bytes(&t->set, rows, at->value_size, &out->most, &out->sums, &out->value_row);
    out->scores = rows * out->score_row;
    out->line = t->narrow ? line(out->columns * t->set.real) : 0;
    out->bias = line(out->columns * t->set.real);
    out->a_panel = tni_mm_panel(mm->rows, mm->depth, mm->group, mm->a_size, mm->a_more);
    out->b_panel = tni_mm_panel(mm->columns, mm->depth, mm->group, mm->b_size, mm->b_more);
    out->a = parts(rows, mm->rows) * out->a_panel;
    out->b = parts(WIDE, mm->columns) * out->b_panel;
    out->apart = t->narrow && at->size > mm->depth ? rows * WIDE * mm->acc_size : 0;
    out->task = out->q + out->state + out->scores + out->line + out->bias + out->a + out->b +
                line(out->apart);
}

/* Chooses the most rows, up to `rows`, whose task needs at most `bytes` bytes; at least 1. */
static void fit(const tools *t, const tni_at_problem *p, int64_t rows, uint64_t bytes, scheme *out)
{
    int64_t less = 1, more = rows + 1;
    while (more - less > 1) {
        const int64_t middle = less + (more - less) / 2;
        lay(t, p, middle, out);
        if ((uint64_t)out->task <= bytes)
            less = middle;
        else
            more = middle;
    }
    lay(t, p, less, out);
}

/* Returns false if the number of bytes overflows. */
static bool scheme_make(const tools *t, const tni_at_problem *p, int32_t threads, uint64_t limit,
                        scheme *out)
{
    const tn_attention_op *at = p->at;
    const double width = (double)at->size + (double)at->value_size + 64;
    const int64_t rows = most(1, at->queries * p->sharers);
    if (!((double)at->keys * width < 1e13 && (double)at->queries * (double)at->heads < 1e13))
        return false;
    lay(t, p, 1, out);
    const int64_t few = most(ROWS_LEAST, SCORES_BYTES / out->score_row);
    const int64_t wanted = least(rows, least(ROWS_MOST, few));
    int64_t tasks = most(1, least(threads, p->units * parts(rows, wanted)));
    for (;; tasks--) {
        fit(t, p, wanted, limit / (uint64_t)tasks, out);
        if (tasks == 1 ||
            (out->rows >= least(wanted, ROWS_LEAST) && (uint64_t)(tasks * out->task) <= limit))
            break;
    }
    out->tasks = tasks;
    return true;
}

void tni_at_math_measure(const tni_at_math_row *row, const tn_op *op, int32_t threads,
                         uint64_t limit, tni_at_math_size *out)
{
    const tools t = tools_of(row, op);
    tni_at_problem problem;
    scheme plan;
    tni_at_read(op, NULL, &problem);
    *out = (tni_at_math_size){.bytes = UINT64_MAX};
    if (scheme_make(&t, &problem, threads, limit, &plan))
        *out = (tni_at_math_size){plan.rows, plan.tasks, (uint64_t)(plan.tasks * plan.task)};
}

/* The memory of a task. */
typedef struct desk {
    char *q, *scores, *line, *bias, *a, *b, *apart;
    tni_at_state state;
} desk;

static desk desk_at(const scheme *l, char *memory)
{
    desk d = {.q = memory};
    d.state = (tni_at_state){.most = d.q + l->q, .value_row = l->value_row};
    d.state.sums = (char *)d.state.most + l->most;
    d.state.values = (char *)d.state.sums + l->sums;
    d.scores = (char *)d.state.most + l->state;
    d.line = d.scores + l->scores;
    d.bias = d.line + l->line;
    d.a = d.bias + l->bias;
    d.b = d.a + l->a;
    d.apart = d.b + l->b;
    return d;
}

typedef struct crew {
    const tools *tools;
    const tni_at_problem *problem;
    const scheme *plan;
    char *memory;
    int64_t blocks; /* of a unit */
} crew;

/* Some rows of a unit, with keys `from` to `to`; `from` is a multiple of a chunk. */
typedef struct block {
    const crew *crew;
    const tni_at_unit *unit;
    int64_t row, rows, from, to;
    desk desk;
} block;

/* One factor: strides in bytes from line to line, and along the summed dimension. */
typedef struct factor {
    const char *at;
    int64_t across, along;
    void (*pack)(const tni_mm_pack *job);
} factor;

typedef struct product {
    factor a, b;
    int64_t columns, depth;
    char *out;
    int64_t out_row; /* elements */
    tn_dtype out_dtype;
    double alpha;
    bool clean; /* non-finite elements of B count as 0 */
} product;

static void pack(const factor *f, int64_t line, int64_t lines, int64_t step, int64_t depth,
                 char *to, int64_t panel)
{
    const tni_mm_pack job = {.from = f->at + line * f->across + step * f->along,
                             .across = f->across,
                             .along = f->along,
                             .lines = lines,
                             .depth = depth,
                             .to = to,
                             .panel = panel};
    f->pack(&job);
}

static bool is_finite(const tools *t, const char *at)
{
    return isfinite(tni_at_number(t->set.real == sizeof(float) ? TN_F32 : TN_F64, at));
}

/* Replaces the non-finite numbers of a panel by 0. */
static void clean(const tools *t, char *at, int64_t count)
{
    const tn_dtype dtype = t->raw ? TN_BF16 : t->set.real == sizeof(float) ? TN_F32 : TN_F64;
    const int64_t size = t->mm.b_size;
    for (const char *end = at + count * size; at < end; at += size) {
        if (!isfinite(tni_at_number(dtype, at)))
            memset(at, 0, (size_t)size);
    }
}

/* Multiplies columns from `column` on, for one chunk of the sums. */
static void multiply_chunk(const block *b, const product *x, const tni_mm_finish *finish,
                           int64_t column, int64_t step)
{
    const scheme *l = b->crew->plan;
    const tools *t = b->crew->tools;
    const int64_t columns = least(WIDE, x->columns - column);
    const int64_t depth = least(t->mm.depth, x->depth - step);
    const int64_t lines = round_up(columns, t->mm.columns);
    tni_mm_block job = {.a = b->desk.a,
                        .b = b->desk.b,
                        .a_panel = l->a_panel,
                        .b_panel = l->b_panel,
                        .rows = b->rows,
                        .columns = columns,
                        .depth = depth,
                        .first = step == 0,
                        .last = step + depth == x->depth,
                        .sums = b->desk.apart,
                        .sums_row = WIDE,
                        .finish = finish,
                        .out = x->out + column * dtype_bytes(x->out_dtype)};
    if (x->out_dtype == t->mm.acc) {
        job.sums = job.out;
        job.sums_row = x->out_row;
    }
    pack(&x->b, column, columns, step, depth, b->desk.b, l->b_panel);
    for (int64_t i = 0; x->clean && i < lines; i += t->mm.columns)
        clean(t, b->desk.b + i / t->mm.columns * l->b_panel,
              t->mm.columns * round_up(depth, t->mm.group));
    pack(&x->a, 0, b->rows, step, depth, b->desk.a, l->a_panel);
    t->mm.block(&job);
}

static void multiply(const block *b, const product *x)
{
    const tni_mm_finish finish = {.out_dtype = x->out_dtype,
                                  .activation = TN_ACT_NONE,
                                  .plain = x->out_dtype == b->crew->tools->mm.acc && x->alpha == 1,
                                  .alpha = x->alpha,
                                  .out_row = x->out_row,
                                  .out_column = 1};
    for (int64_t column = 0; column < x->columns; column += WIDE)
        for (int64_t step = 0; step < x->depth; step += b->crew->tools->mm.depth)
            multiply_chunk(b, x, &finish, column, step);
}

/* Copies the rows of Q to consecutive memory. */
static void pack_query_rows(const block *b)
{
    const tni_at_problem *p = b->crew->problem;
    const tools *t = b->crew->tools;
    const char *rows[ROWS_MOST];
    for (int64_t r = 0; r < b->rows; r++) {
        rows[r] = tni_at_row(p, b->unit, &p->q, b->row + r);
        char *to = b->desk.q + r * b->crew->plan->q_row;
        for (int64_t e = 0; t->raw && e < p->at->size; e++)
            memcpy(to + 2 * e, rows[r] + e * p->q.element, 2);
    }
    if (!t->raw)
        t->set.pack_rows(rows, p->q.element, p->at->size, b->rows, b->desk.q);
}

/* Narrow scores are scaled before they are rounded. */
static void form_scores(const block *b)
{
    const tni_at_problem *p = b->crew->problem;
    const tools *t = b->crew->tools;
    const scheme *l = b->crew->plan;
    pack_query_rows(b);
    const product x = {
        .a = {b->desk.q, l->q_row, t->raw ? 2 : t->set.real, t->mm.pack_a},
        .b = {tni_at_key(p, b->unit, &p->k, b->from), p->k.row, p->k.element, t->pack_keys},
        .columns = b->to - b->from,
        .depth = p->at->size,
        .out = b->desk.scores,
        .out_row = l->score_row / dtype_bytes(t->scores),
        .out_dtype = t->scores,
        .alpha = t->narrow ? TN_PARAMS(p->run->op, attention)->scale : 1};
    multiply(b, &x);
}

/* Sets weights that dropout drops to 0. */
static void drop(const block *b, int64_t r, char *weights)
{
    const int64_t real = b->crew->tools->set.real, keys = b->to - b->from;
    uint8_t keeps[PIECE];
    for (int64_t j = 0; j < keys; j++) {
        if (j % PIECE == 0)
            tni_at_keeps(b->crew->problem, b->unit, b->row + r, b->from + j, least(PIECE, keys - j),
                         keeps);
        if (!keeps[j % PIECE])
            memset(weights + j * real, 0, (size_t)real);
    }
}

/* Turns a row's scores into weights, in place. */
static void weigh(const block *b, int64_t r)
{
    const tni_at_problem *p = b->crew->problem;
    const tools *t = b->crew->tools;
    const int64_t keys = b->to - b->from, columns = round_up(keys, t->set.keys);
    const int64_t real = t->set.real;
    char *scores = b->desk.scores + r * b->crew->plan->score_row;
    char *row = t->narrow ? b->desk.line : scores;
    const bool biased = p->mask.dtype || columns != keys ||
                        !tni_at_all_seen(p, b->unit, b->row + r, 1, b->from, keys);
    if (biased)
        tni_at_bias(&t->set, p, b->unit, b->row + r, b->from, columns, b->desk.bias);
    for (int64_t j = 0; t->narrow && j < keys; j += PIECE)
        t->half->widen(scores + 2 * j, 2, least(PIECE, keys - j), (float *)(void *)row + j);
    t->set.weigh(p, row, biased ? b->desk.bias : NULL, columns,
                 (char *)b->desk.state.most + r * real,
                 (char *)b->desk.state.sums + r * t->set.lanes * real);
    if (p->at->dropout != 0)
        drop(b, r, row);
    for (int64_t j = 0; t->narrow && j < keys; j += PIECE)
        t->half->narrow((const float *)(const void *)row + j, least(PIECE, keys - j),
                        scores + 2 * j, 2);
}

static bool values_are_finite(const block *b)
{
    const tools *t = b->crew->tools;
    for (int64_t r = 0; r < b->rows; r++) {
        const char *row =
            (const char *)b->desk.state.values + r * b->desk.state.value_row * t->set.real;
        for (int64_t c = 0; c < b->crew->problem->at->value_size; c++) {
            if (!is_finite(t, row + c * t->set.real))
                return false;
        }
    }
    return true;
}

/* Whether row r sees key j and dropout keeps its weight. */
static bool counts(const block *b, int64_t r, int64_t j)
{
    const tni_at_problem *p = b->crew->problem;
    double bias;
    uint8_t keeps = 1;
    tni_at_bias_f64(p, b->unit, b->row + r, j, 1, &bias);
    if (p->at->dropout != 0)
        tni_at_keeps(p, b->unit, b->row + r, j, 1, &keeps);
    return keeps && bias != -(double)INFINITY;
}

/* Adds a non-finite value of key j to a column, for the rows that the key counts for. */
static void add_value(const block *b, int64_t j, int64_t column, double value)
{
    const tools *t = b->crew->tools;
    const char *weights = b->desk.scores + (j - b->from) * dtype_bytes(t->scores);
    for (int64_t r = 0; r < b->rows; r++) {
        const int64_t to = r * b->desk.state.value_row + column;
        const double weight = tni_at_number(t->scores, weights + r * b->crew->plan->score_row);
        if (!counts(b, r, j))
            continue;
        if (t->set.real == sizeof(float))
            ((float *)b->desk.state.values)[to] += (float)(weight * value);
        else
            ((double *)b->desk.state.values)[to] += weight * value;
    }
}

/* Non-finite values must not be multiplied by the 0 weights of keys that do not count for a row.
 * They are rare: if a sum is not finite, the finite values are summed again without them. */
static void sum_values(const block *b)
{
    const tni_at_problem *p = b->crew->problem;
    const tools *t = b->crew->tools;
    product x = {
        .a = {b->desk.scores, b->crew->plan->score_row, dtype_bytes(t->scores), t->pack_weights},
        .b = {tni_at_key(p, b->unit, &p->v, b->from), p->v.element, p->v.row, t->pack_keys},
        .columns = p->at->value_size,
        .depth = b->to - b->from,
        .out = b->desk.state.values,
        .out_row = b->desk.state.value_row,
        .out_dtype = t->mm.acc,
        .alpha = 1};
    multiply(b, &x);
    if (values_are_finite(b))
        return;
    x.clean = true;
    multiply(b, &x);
    int64_t j = b->from, column = 0;
    double value;
    for (; tni_at_next_nonfinite(p, b->unit, b->to, &j, &column, &value); column++)
        add_value(b, j, column, value);
}

/* Computes the last rows first, because they see the most keys. */
static void block_item(void *user, int64_t item, int64_t slot)
{
    const crew *c = user;
    const int64_t depth = c->tools->mm.depth;
    tni_at_unit unit;
    tni_at_unit_read(c->problem, item / c->blocks, &unit);
    block b = {.crew = c,
               .unit = &unit,
               .row = (c->blocks - 1 - item % c->blocks) * c->plan->rows,
               .desk = desk_at(c->plan, c->memory + slot * c->plan->task)};
    if (b.row >= unit.rows)
        return;
    b.rows = least(c->plan->rows, unit.rows - b.row);
    tni_at_state_clear(&c->tools->set, b.rows, &b.desk.state);
    tni_at_reach(c->problem, &unit, b.row, b.rows, &b.from, &b.to);
    if (b.from < b.to) {
        b.from = b.from / depth * depth;
        form_scores(&b);
        for (int64_t r = 0; r < b.rows; r++)
            weigh(&b, r);
        sum_values(&b);
    }
    const tni_at_step s = {
        .problem = c->problem, .unit = &unit, .row = b.row, .rows = b.rows, .state = b.desk.state};
    c->tools->set.finish(&s);
}

tn_status tni_at_math(const tni_at_math_row *row, const tn_run *run, tn_error *err)
{
    const tools t = tools_of(row, run->op);
    tn_attention_op at = *TN_PARAMS(run->op, attention);
    tni_at_problem problem;
    scheme plan;
    const tn_status status = tn_attention_check(run, err);
    if (status)
        return status;
    tni_at_read(run->op, run, &problem);
    if (row->narrow) {
        at.scale = 1;
        problem.at = &at;
    }
    if (!scheme_make(&t, &problem, run->threads, run->workspace_bytes, &plan))
        return tn_fail(err, TN_UNSUPPORTED, 0, run->row->name, "the sizes cannot be counted");
    const crew c = {.tools = &t,
                    .problem = &problem,
                    .plan = &plan,
                    .memory = run->workspace,
                    .blocks = parts(at.queries * problem.sharers, plan.rows)};
    tni_at_share(run, plan.tasks, problem.units * c.blocks, block_item, (void *)(uintptr_t)&c);
    return TN_OK;
}
