#include "attention_backward_pass.h"

#include "../shared/sizes.h"
#include "attention_share.h"

#include <math.h>

/* Maximum bytes of the units whose packed forms are kept at the same time. */
enum { WAVE_BYTES = 64 << 20 };

enum { ROWS = TNI_AT_BACK_ROWS, KEYS = TNI_AT_BACK_KEYS };

/* Blocks of rows that a block of keys is combined with in a round: more than one, so that keys stay
 * in the cache, if there are enough rows for several rounds. */
enum { TOGETHER_MOST = 4, ROUNDS = 8 };

/* Offsets in bytes within the memory of a unit. The memory of the threads follows that of all
 * units. */
typedef struct scheme {
    int64_t row_blocks, key_blocks;
    int64_t together, bundles;                 /* row blocks of a bundle, and bundles */
    int64_t size_row, value_row;               /* bytes of a row as written by `pack_rows` */
    int64_t sums_row, value_sums_row;          /* elements of a row of sums */
    int64_t size_transposed, value_transposed; /* bytes of a transposed panel */
    int64_t rows_panel, keys_panel;            /* bytes of a panel of lines */
    int64_t k, v, k_lines;
    int64_t q_transposed, q_lines, dout_transposed, dout_lines;
    int64_t less, delta;
    int64_t blind_rows; /* of each block of rows: whether one of them saw nothing */
    int64_t nonfinite_rows, nonfinite_keys; /* of each block: not finite in Q or dout; in K */
    int64_t dq, dk, dv;
    int64_t unit;                     /* bytes of a unit */
    int64_t slopes, bias, keep, room; /* of a thread */
    int64_t desk;
    int64_t wave, slots, bytes;
} scheme;

typedef struct crew {
    const tni_at_back_set *set;
    const tni_at_problem *problem;
    const scheme *plan;
    char *units, *desks;
    int64_t first; /* unit of the wave */
    int64_t round;
} crew;

/* Reserves `bytes` bytes, rounded up to whole cache lines; returns their offset. */
static int64_t reserve_bytes(int64_t *end, int64_t bytes)
{
    const int64_t begin = *end;
    *end += parts(bytes, 64) * 64;
    return begin;
}

static void plan_unit(const tni_at_back_set *set, const tni_at_problem *p, scheme *out)
{
    const tn_attention_op *at = p->at;
    const int64_t columns = set->columns, real = set->real;
    const int64_t rows = out->row_blocks * ROWS, keys = out->key_blocks * KEYS;
    const int64_t wide = parts(at->size, columns), value_wide = parts(at->value_size, columns);
    out->size_row = set->row(at->size);
    out->value_row = set->row(at->value_size);
    out->sums_row = wide * columns;
    out->value_sums_row = value_wide * columns;
    out->size_transposed = at->size * columns * real;
    out->value_transposed = at->value_size * columns * real;
    out->rows_panel = rows * columns * real + 64;
    out->keys_panel = keys * columns * real + 64;
    out->k = reserve_bytes(&out->unit, keys * out->size_row);
    out->v = reserve_bytes(&out->unit, keys * out->value_row);
    out->k_lines = reserve_bytes(&out->unit, wide * out->keys_panel);
    out->q_transposed = reserve_bytes(&out->unit, rows / columns * out->size_transposed);
    out->q_lines = reserve_bytes(&out->unit, wide * out->rows_panel);
    out->dout_transposed = reserve_bytes(&out->unit, rows / columns * out->value_transposed);
    out->dout_lines = reserve_bytes(&out->unit, value_wide * out->rows_panel);
    out->less = reserve_bytes(&out->unit, rows * real);
    out->delta = reserve_bytes(&out->unit, rows * real);
    out->blind_rows = reserve_bytes(&out->unit, out->row_blocks);
    out->nonfinite_rows = reserve_bytes(&out->unit, out->row_blocks);
    out->nonfinite_keys = reserve_bytes(&out->unit, out->key_blocks);
    out->dq = reserve_bytes(&out->unit, rows * out->sums_row * real);
    out->dk = reserve_bytes(&out->unit, keys * out->sums_row * real);
    out->dv = reserve_bytes(&out->unit, keys * out->value_sums_row * real);
}

/* Returns false if the number of bytes overflows. */
static bool plan_make(const tni_at_back_set *set, const tni_at_problem *p, int32_t threads,
                      scheme *out)
{
    const tn_attention_op *at = p->at;
    const double lines = (double)at->keys + (double)at->queries * (double)p->sharers + 1024;
    const int64_t panel = (int64_t)set->rows * TNI_AT_SLOPE_ROW * set->real;
    const int64_t longest = most(at->size, at->value_size);
    *out = (scheme){0};
    if (!(lines * (double)(at->size + at->value_size + 64) < 1e15))
        return false;
    out->row_blocks = parts(at->queries * p->sharers, ROWS);
    out->key_blocks = parts(at->keys, KEYS);
    out->together = most(1, least(TOGETHER_MOST, out->row_blocks / ROUNDS));
    out->bundles = parts(out->row_blocks, out->together);
    plan_unit(set, p, out);
    out->slopes = reserve_bytes(&out->desk, (int64_t)KEYS * TNI_AT_SLOPE_ROW * set->real);
    out->bias = reserve_bytes(&out->desk, panel);
    out->keep = reserve_bytes(&out->desk, panel);
    out->room = reserve_bytes(&out->desk, most(set->room, set->room_more * (longest + 32)));
    out->wave = most(1, least(p->units, most(parts(threads, most(1, out->key_blocks)),
                                             WAVE_BYTES / most(1, out->unit))));
    out->slots = most(1, threads);
    out->bytes = out->wave * out->unit + out->slots * out->desk;
    return true;
}

static char *unit_at(const crew *c, int64_t index)
{
    return c->units + index * c->plan->unit;
}

/* Packs panels of rows of the unit, or of keys, in both forms or only as lines. Returns whether all
 * are finite. */
static bool pack_forms(const crew *c, const char *const *from, int64_t count,
                       const tni_at_side *side, int64_t size, char *transposed, char *lines,
                       int64_t panel, char *room)
{
    const int64_t columns = c->set->columns;
    bool finite = true;
    for (int64_t n = 0; n < count; n += columns) {
        const tni_at_pack job = {.k = from + n,
                                 .v = from + n,
                                 .keys = least(columns, count - n),
                                 .k_step = side->element,
                                 .v_step = side->element,
                                 .size = size,
                                 .value_size = size,
                                 .k_to = transposed ? transposed + n * size * c->set->real : NULL,
                                 .v_to = lines + n * columns * c->set->real,
                                 .v_panel = panel,
                                 .room = room};
        if (transposed)
            c->set->transpose(&job);
        finite = c->set->lines(&job) && finite;
    }
    return finite;
}

static void set_real(const crew *c, char *to, int64_t index, double value)
{
    if (c->set->real == sizeof(double))
        ((double *)(void *)to)[index] = value;
    else
        ((float *)(void *)to)[index] = (float)value;
}

/* Whether a number of the set's real type is -infinity. */
static bool is_nothing(const crew *c, const char *from, int64_t index)
{
    return c->set->real == sizeof(double)
               ? ((const double *)(const void *)from)[index] == -(double)INFINITY
               : ((const float *)(const void *)from)[index] == -INFINITY;
}

/* Sets `less` and `delta` of some rows; padding rows, up to a whole panel, are set as rows that see
 * nothing. Returns whether one of the rows is blind: its lse is -infinity, because it saw no key or
 * all its scores were -infinity. A blind row contributes to no gradient. */
static bool begin_sums(const crew *c, const tni_at_unit *unit, int64_t row, int64_t rows,
                       char *less, char *delta)
{
    const tni_at_problem *p = c->problem;
    const int64_t real = c->set->real;
    bool blind = false;
    for (int64_t r = 0; r < rows; r++) {
        const tni_at_back_begin job = {.out = tni_at_row(p, unit, &p->out, row + r),
                                       .dout = tni_at_row(p, unit, &p->dout, row + r),
                                       .lse = tni_at_row(p, unit, &p->lse, row + r),
                                       .out_step = p->out.element,
                                       .dout_step = p->dout.element,
                                       .size = p->at->value_size};
        c->set->begin_row(&job, less + r * real, delta + r * real);
        blind = blind || is_nothing(c, less, r);
    }
    for (int64_t r = rows; r < round_up(rows, c->set->columns); r++) {
        set_real(c, less, r, -(double)INFINITY);
        set_real(c, delta, r, 0);
    }
    return blind;
}

static void begin_rows(const crew *c, const tni_at_unit *unit, int64_t block, char *to, char *room)
{
    const tni_at_problem *p = c->problem;
    const scheme *l = c->plan;
    const int64_t row = block * ROWS, rows = least(ROWS, unit->rows - row), real = c->set->real;
    const char *q[ROWS], *dout[ROWS];
    for (int64_t r = 0; r < rows; r++) {
        q[r] = tni_at_row(p, unit, &p->q, row + r);
        dout[r] = tni_at_row(p, unit, &p->dout, row + r);
    }
    const int64_t line = row * c->set->columns * real;
    bool finite =
        pack_forms(c, q, rows, &p->q, p->at->size, to + l->q_transposed + row * p->at->size * real,
                   to + l->q_lines + line, l->rows_panel, room);
    finite = pack_forms(c, dout, rows, &p->dout, p->at->value_size,
                        to + l->dout_transposed + row * p->at->value_size * real,
                        to + l->dout_lines + line, l->rows_panel, room) &&
             finite;
    to[l->nonfinite_rows + block] = !finite;
    to[l->blind_rows + block] =
        begin_sums(c, unit, row, rows, to + l->less + row * real, to + l->delta + row * real);
    memset(to + l->dq + row * l->sums_row * real, 0, (size_t)(ROWS * l->sums_row * real));
}

static void begin_keys(const crew *c, const tni_at_unit *unit, int64_t block, char *to, char *room)
{
    const tni_at_problem *p = c->problem;
    const scheme *l = c->plan;
    const int64_t key = block * KEYS, keys = least(KEYS, p->at->keys - key), real = c->set->real;
    const char *k[KEYS], *v[KEYS];
    tni_at_keys(p, unit, &p->k, key, keys, k);
    tni_at_keys(p, unit, &p->v, key, keys, v);
    c->set->pack_rows(k, p->k.element, p->at->size, keys, to + l->k + key * l->size_row);
    c->set->pack_rows(v, p->v.element, p->at->value_size, keys, to + l->v + key * l->value_row);
    to[l->nonfinite_keys + block] =
        !pack_forms(c, k, keys, &p->k, p->at->size, NULL,
                    to + l->k_lines + key * c->set->columns * real, l->keys_panel, room);
    memset(to + l->dk + key * l->sums_row * real, 0, (size_t)(KEYS * l->sums_row * real));
    memset(to + l->dv + key * l->value_sums_row * real, 0,
           (size_t)(KEYS * l->value_sums_row * real));
}

static void begin_item(void *user, int64_t item, int64_t slot)
{
    const crew *c = user;
    const int64_t blocks = c->plan->row_blocks + c->plan->key_blocks, block = item % blocks;
    char *room = c->desks + slot * c->plan->desk + c->plan->room;
    tni_at_unit unit;
    tni_at_unit_read(c->problem, c->first + item / blocks, &unit);
    if (block < c->plan->row_blocks)
        begin_rows(c, &unit, block, unit_at(c, item / blocks), room);
    else
        begin_keys(c, &unit, block - c->plan->row_blocks, unit_at(c, item / blocks), room);
}

/* Some keys with all rows of a step. */
typedef struct sheet {
    const crew *crew;
    const tni_at_unit *unit;
    int64_t row, rows, key, keys;
    const char *less; /* of the rows */
    bool blind;       /* some of the rows are blind */
} sheet;

/* The bias of a row, in the set's real type. */
typedef union row_bias {
    double f64[TNI_AT_BACK_KEYS];
    float f32[TNI_AT_BACK_KEYS];
} row_bias;

/* Reads the bias of row r: -infinity for all keys if the row is blind. */
static void read_bias(const sheet *s, int64_t r, row_bias *out)
{
    const crew *c = s->crew;
    if (s->blind && is_nothing(c, s->less, r)) {
        for (int64_t j = 0; j < s->keys; j++)
            set_real(c, (char *)out, j, -(double)INFINITY);
    } else if (c->set->real == sizeof(double)) {
        tni_at_bias_f64(c->problem, s->unit, s->row + r, s->key, s->keys, out->f64);
    } else {
        tni_at_bias_f32(c->problem, s->unit, s->row + r, s->key, s->keys, out->f32);
    }
}

/* Writes the bias transposed. Padding rows get 0: they see nothing anyway. */
static void fill_bias(const sheet *s, char *to)
{
    const crew *c = s->crew;
    for (int64_t r = 0; r < s->rows; r++) {
        row_bias bias;
        read_bias(s, r, &bias);
        for (int64_t j = 0; j < s->keys; j++)
            set_real(c, to, j * TNI_AT_SLOPE_ROW + r,
                     c->set->real == sizeof(double) ? bias.f64[j] : (double)bias.f32[j]);
    }
    for (int64_t r = s->rows; r < parts(s->rows, c->set->columns) * c->set->columns; r++)
        for (int64_t j = 0; j < s->keys; j++)
            set_real(c, to, j * TNI_AT_SLOPE_ROW + r, 0);
}

static void fill_keep(const sheet *s, char *to)
{
    const crew *c = s->crew;
    const double kept = 1 / (1 - c->problem->at->dropout);
    uint8_t keeps[TNI_AT_ROWS_MOST];
    for (int64_t r = 0; r < parts(s->rows, c->set->columns) * c->set->columns; r++) {
        if (r < s->rows)
            tni_at_keeps(c->problem, s->unit, s->row + r, s->key, s->keys, keeps);
        for (int64_t j = 0; j < s->keys; j++)
            set_real(c, to, j * TNI_AT_SLOPE_ROW + r, r < s->rows && keeps[j] ? kept : 0);
    }
}

/* Whether something is added to scores, or some pairs are excluded. */
static bool has_bias(const sheet *s)
{
    const tni_at_problem *p = s->crew->problem;
    return p->mask.dtype || s->blind ||
           !tni_at_all_seen(p, s->unit, s->row, s->rows, s->key, s->keys);
}

/* Combines a panel of keys of a block with the rows of the step. */
static void keys_panel(const crew *c, tni_at_back *step, const sheet *s, char *unit, char *desk,
                       int64_t first)
{
    const scheme *l = c->plan;
    const tni_at_problem *p = c->problem;
    step->keys = s->keys;
    step->k = unit + l->k + s->key * l->size_row;
    step->v = unit + l->v + s->key * l->value_row;
    step->dk = unit + l->dk + s->key * l->sums_row * c->set->real;
    step->dv = unit + l->dv + s->key * l->value_sums_row * c->set->real;
    step->slopes = desk + l->slopes + (s->key - first) * TNI_AT_SLOPE_ROW * c->set->real;
    step->bias = NULL;
    if (has_bias(s)) {
        fill_bias(s, desk + l->bias);
        step->bias = desk + l->bias;
    }
    if (p->at->dropout != 0) {
        fill_keep(s, desk + l->keep);
        step->keep = desk + l->keep;
    }
    c->set->keys_step(step);
}

/* Adds to dq of the sheet's rows `at` to at + rows - 1, from its keys `from` to `to`. */
static void add_dq_run(const crew *c, const sheet *s, char *unit, const char *desk, int64_t at,
                       int64_t rows, int64_t from, int64_t to)
{
    const scheme *l = c->plan;
    const int64_t real = c->set->real;
    const tni_at_back_rows step = {
        .rows = rows,
        .keys = to - from,
        .size = c->problem->at->size,
        .slopes = desk + l->slopes + (from * TNI_AT_SLOPE_ROW + at) * real,
        .k_lines = unit + l->k_lines + (s->key + from) * c->set->columns * real,
        .k_panel = l->keys_panel,
        .dq = unit + l->dq + (s->row + at) * l->sums_row * real,
        .dq_row = l->sums_row};
    c->set->rows_step(&step);
}

/* Adds to dq of the sheet's rows, a panel at a time. */
static void add_dq(const crew *c, const sheet *s, char *unit, const char *desk)
{
    const int64_t count = parts(s->rows, c->set->rows);
    for (int64_t n = 0; n < count; n++) {
        const int64_t at = s->rows * n / count;
        add_dq_run(c, s, unit, desk, at, s->rows * (n + 1) / count - at, 0, s->keys);
    }
}

/* As add_dq, with the same bits, if some keys are not finite: each row separately, one run of
 * visible keys after the other. */
static void add_dq_seen(const crew *c, const sheet *s, char *unit, const char *desk)
{
    for (int64_t r = 0; r < s->rows; r++) {
        row_bias bias;
        read_bias(s, r, &bias);
        for (int64_t from = 0, to; from < s->keys; from = to) {
            const bool excluded = is_nothing(c, (const char *)&bias, from);
            for (to = from + 1; to < s->keys && is_nothing(c, (const char *)&bias, to) == excluded;)
                to++;
            if (!excluded)
                add_dq_run(c, s, unit, desk, r, 1, from, to);
        }
    }
}

/* Combines a block of keys with a block of rows. */
static void meet(const crew *c, const tni_at_unit *unit, int64_t key_block, int64_t row_block,
                 char *memory, char *desk)
{
    const scheme *l = c->plan;
    const tni_at_problem *p = c->problem;
    const int64_t row = row_block * ROWS, rows = least(ROWS, unit->rows - row), real = c->set->real;
    int64_t from, to;
    tni_at_reach(p, unit, row, rows, &from, &to);
    from = most(from, key_block * KEYS);
    to = least(to, (key_block + 1) * KEYS);
    if (from >= to)
        return;
    const int64_t count = parts(to - from, c->set->rows), line = row * c->set->columns * real;
    sheet s = {.crew = c,
               .unit = unit,
               .row = row,
               .rows = rows,
               .less = memory + l->less + row * real,
               .blind = memory[l->blind_rows + row_block]};
    tni_at_back step = {.problem = p,
                        .rows = rows,
                        .q_transposed = memory + l->q_transposed + row * p->at->size * real,
                        .dout_transposed =
                            memory + l->dout_transposed + row * p->at->value_size * real,
                        .q_lines = memory + l->q_lines + line,
                        .dout_lines = memory + l->dout_lines + line,
                        .rows_panel = l->rows_panel,
                        .less = memory + l->less + row * real,
                        .delta = memory + l->delta + row * real,
                        .nonfinite = memory[l->nonfinite_rows + row_block],
                        .dk_row = l->sums_row,
                        .dv_row = l->value_sums_row,
                        .room = desk + l->room};
    for (int64_t n = 0; n < count; n++) {
        s.key = from + (to - from) * n / count;
        s.keys = from + (to - from) * (n + 1) / count - s.key;
        keys_panel(c, &step, &s, memory, desk, from);
    }
    s.key = from;
    s.keys = to - from;
    if (memory[l->nonfinite_keys + key_block] && has_bias(&s))
        add_dq_seen(c, &s, memory, desk);
    else
        add_dq(c, &s, memory, desk);
}

static void round_item(void *user, int64_t item, int64_t slot)
{
    const crew *c = user;
    const scheme *l = c->plan;
    const int64_t key_block = item % l->key_blocks, index = item / l->key_blocks;
    const int64_t bundle = (key_block + c->round) % most(l->key_blocks, l->bundles);
    const int64_t first = bundle * l->together, end = least(first + l->together, l->row_blocks);
    tni_at_unit unit;
    tni_at_unit_read(c->problem, c->first + index, &unit);
    for (int64_t row_block = first; row_block < end; row_block++)
        meet(c, &unit, key_block, row_block, unit_at(c, index), c->desks + slot * l->desk);
}

static void write_rows(const crew *c, const tni_at_unit *unit, int64_t row, const char *from)
{
    const tni_at_problem *p = c->problem;
    const scheme *l = c->plan;
    for (int64_t r = row; r < least(row + ROWS, unit->rows); r++)
        c->set->write(from + l->dq + r * l->sums_row * c->set->real, p->at->scale, p->at->size,
                      tni_at_row(p, unit, &p->dq, r), p->dq.element);
}

static void write_keys(const crew *c, const tni_at_unit *unit, int64_t key, const char *from)
{
    const tni_at_problem *p = c->problem;
    const scheme *l = c->plan;
    for (int64_t j = key; j < least(key + KEYS, p->at->keys); j++) {
        c->set->write(from + l->dk + j * l->sums_row * c->set->real, p->at->scale, p->at->size,
                      tni_at_key(p, unit, &p->dk, j), p->dk.element);
        c->set->write(from + l->dv + j * l->value_sums_row * c->set->real, 1, p->at->value_size,
                      tni_at_key(p, unit, &p->dv, j), p->dv.element);
    }
}

static void write_item(void *user, int64_t item, int64_t slot)
{
    const crew *c = user;
    const int64_t blocks = c->plan->row_blocks + c->plan->key_blocks, block = item % blocks;
    tni_at_unit unit;
    (void)slot;
    tni_at_unit_read(c->problem, c->first + item / blocks, &unit);
    if (block < c->plan->row_blocks)
        write_rows(c, &unit, block * ROWS, unit_at(c, item / blocks));
    else
        write_keys(c, &unit, (block - c->plan->row_blocks) * KEYS, unit_at(c, item / blocks));
}

uint64_t tni_at_backward_workspace(const tni_at_back_set *set, const tn_op *op, int32_t threads)
{
    tni_at_problem problem;
    scheme plan;
    uint64_t bytes = 0; /* also enough for fewer threads */
    tni_at_read(op, NULL, &problem);
    for (int32_t n = threads > 1 ? threads : 1; n > 0; n--) {
        if (!plan_make(set, &problem, n, &plan))
            return UINT64_MAX;
        bytes = (uint64_t)plan.bytes > bytes ? (uint64_t)plan.bytes : bytes;
    }
    return bytes;
}

void tni_at_backward(const tni_at_back_set *set, const tn_run *run)
{
    tni_at_problem problem;
    scheme plan;
    tni_at_read(run->op, run, &problem);
    for (int32_t n = run->threads > 1 ? run->threads : 1; n > 0; n--) {
        if (plan_make(set, &problem, n, &plan) && (uint64_t)plan.bytes <= run->workspace_bytes)
            break;
    }
    crew c = {.set = set,
              .problem = &problem,
              .plan = &plan,
              .units = run->workspace,
              .desks = (char *)run->workspace + plan.wave * plan.unit};
    const int64_t rounds = most(plan.bundles, plan.key_blocks);
    for (; c.first < problem.units; c.first += plan.wave) {
        const int64_t units = least(plan.wave, problem.units - c.first);
        const int64_t blocks = units * (plan.row_blocks + plan.key_blocks);
        tni_at_share(run, plan.slots, blocks, begin_item, &c);
        for (c.round = 0; c.round < rounds; c.round++)
            tni_at_share(run, plan.slots, units * plan.key_blocks, round_item, &c);
        tni_at_share(run, plan.slots, blocks, write_item, &c);
    }
}
