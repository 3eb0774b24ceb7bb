#include "attention_backward_tiles.h"

#include "../shared/sizes.h"

#include <math.h>

enum { ROWS = TNI_AT_BACK_ROWS, KEYS = TNI_AT_BACK_KEYS };

/* Bytes of the units that are packed at the same time: the target. */
enum { WAVE_BYTES = 64 << 20 };

/* Reserves `bytes` bytes, rounded up to whole cache lines; returns their offset. */
static int64_t reserve_bytes(int64_t *end, int64_t bytes)
{
    const int64_t begin = *end;
    *end += parts(bytes, 64) * 64;
    return begin;
}

static void layout_unit(const tni_at_back_set *set, const tn_attention_op *at, int64_t rows,
                        int64_t tiles, tni_at_back_layout *out)
{
    const int64_t columns = set->columns, real = set->real, keys = out->key_blocks * KEYS;
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
    out->blind_rows = reserve_bytes(&out->unit, tiles);
    out->nonfinite_rows = reserve_bytes(&out->unit, tiles);
    out->nonfinite_keys = reserve_bytes(&out->unit, out->key_blocks);
    out->dq = reserve_bytes(&out->unit, rows * out->sums_row * real);
    out->dk = reserve_bytes(&out->unit, keys * out->sums_row * real);
    out->dv = reserve_bytes(&out->unit, keys * out->value_sums_row * real);
}

bool tni_at_back_layout_make(const tni_at_back_set *set, const tni_at_problem *p, int64_t slots,
                             int64_t tiles, tni_at_back_layout *out)
{
    const tn_attention_op *at = p->at;
    const double lines = (double)at->keys + (double)slots + 1024;
    const int64_t panel = (int64_t)set->rows * TNI_AT_SLOPE_ROW * set->real;
    const int64_t longest = most(at->size, at->value_size);
    *out = (tni_at_back_layout){.key_blocks = parts(at->keys, KEYS)};
    if (!(lines * (double)(at->size + at->value_size + 64) < 1e15))
        return false;
    layout_unit(set, at, slots, tiles, out);
    out->slopes = reserve_bytes(&out->desk, (int64_t)KEYS * TNI_AT_SLOPE_ROW * set->real);
    out->bias = reserve_bytes(&out->desk, panel);
    out->keep = reserve_bytes(&out->desk, panel);
    out->room = reserve_bytes(&out->desk, most(set->room, set->room_more * (longest + 32)));
    return true;
}

int64_t tni_at_back_wave(const tni_at_back_layout *l, int64_t units, int64_t tasks, int32_t threads)
{
    const int64_t wanted = most(parts(threads, tasks), WAVE_BYTES / most(1, l->unit));
    return most(1, least(units, wanted));
}

/* Packs panels of rows of a tile, or of keys, in both forms or only as lines. Returns whether all
 * are finite. */
static bool pack_forms(const tni_at_back_pass *pass, const char *const *from, int64_t count,
                       const tni_at_side *side, int64_t size, char *transposed, char *lines,
                       int64_t panel, char *room)
{
    const tni_at_back_set *set = pass->set;
    bool finite = true;
    for (int64_t n = 0; n < count; n += set->columns) {
        const tni_at_pack job = {.k = from + n,
                                 .v = from + n,
                                 .keys = least(set->columns, count - n),
                                 .k_step = side->element,
                                 .v_step = side->element,
                                 .size = size,
                                 .value_size = size,
                                 .k_to = transposed ? transposed + n * size * set->real : NULL,
                                 .v_to = lines + n * set->columns * set->real,
                                 .v_panel = panel,
                                 .room = room};
        if (transposed)
            set->transpose(&job);
        finite = set->lines(&job) && finite;
    }
    return finite;
}

/* Whether a number of the set's real type is -infinity. */
static bool is_nothing(const tni_at_back_set *set, const void *from, int64_t index)
{
    return set->real == sizeof(double) ? ((const double *)from)[index] == -(double)INFINITY
                                       : ((const float *)from)[index] == -INFINITY;
}

/* Sets `less` and `delta` of a tile's rows; padding rows, up to a whole panel, are set as rows that
 * see nothing. Returns whether one of the rows is blind: its lse is -infinity, because it saw no key
 * or all its scores were -infinity. A blind row contributes to no gradient. */
static bool begin_sums(const tni_at_back_pass *pass, const tni_at_back_tile *tile, char *less,
                       char *delta)
{
    const tni_at_problem *p = tile->problem;
    const tni_at_back_set *set = pass->set;
    bool blind = false;
    for (int64_t r = 0; r < tile->rows; r++) {
        const int64_t row = tile->row + r;
        const tni_at_back_begin job = {.out = tni_at_row(p, tile->unit, &p->out, row),
                                       .dout = tni_at_row(p, tile->unit, &p->dout, row),
                                       .lse = tni_at_row(p, tile->unit, &p->lse, row),
                                       .out_step = p->out.element,
                                       .dout_step = p->dout.element,
                                       .size = p->at->value_size};
        set->begin_row(&job, less + r * set->real, delta + r * set->real);
        blind = blind || is_nothing(set, less, r);
    }
    for (int64_t r = tile->rows; r < round_up(tile->rows, set->columns); r++) {
        tni_at_back_put(set, less, r, -(double)INFINITY);
        tni_at_back_put(set, delta, r, 0);
    }
    return blind;
}

void tni_at_back_begin_tile(const tni_at_back_pass *pass, const tni_at_back_tile *tile,
                            char *memory, char *desk)
{
    const tni_at_problem *p = tile->problem;
    const tni_at_back_layout *l = pass->layout;
    const int64_t real = pass->set->real, line = tile->slot * pass->set->columns * real;
    const char *q[ROWS], *dout[ROWS];
    for (int64_t r = 0; r < tile->rows; r++) {
        q[r] = tni_at_row(p, tile->unit, &p->q, tile->row + r);
        dout[r] = tni_at_row(p, tile->unit, &p->dout, tile->row + r);
    }
    bool finite = pack_forms(pass, q, tile->rows, &p->q, p->at->size,
                             memory + l->q_transposed + tile->slot * p->at->size * real,
                             memory + l->q_lines + line, l->rows_panel, desk + l->room);
    finite = pack_forms(pass, dout, tile->rows, &p->dout, p->at->value_size,
                        memory + l->dout_transposed + tile->slot * p->at->value_size * real,
                        memory + l->dout_lines + line, l->rows_panel, desk + l->room) &&
             finite;
    memory[l->nonfinite_rows + tile->index] = !finite;
    memory[l->blind_rows + tile->index] = begin_sums(
        pass, tile, memory + l->less + tile->slot * real, memory + l->delta + tile->slot * real);
    memset(memory + l->dq + tile->slot * l->sums_row * real, 0,
           (size_t)(tile->rows * l->sums_row * real));
}

void tni_at_back_begin_keys(const tni_at_back_pass *pass, const tni_at_unit *unit, int64_t block,
                            char *memory, char *desk)
{
    const tni_at_problem *p = pass->problem;
    const tni_at_back_set *set = pass->set;
    const tni_at_back_layout *l = pass->layout;
    const int64_t key = block * KEYS, keys = least(KEYS, p->at->keys - key), real = set->real;
    const char *k[KEYS], *v[KEYS];
    tni_at_keys(p, unit, &p->k, key, keys, k);
    tni_at_keys(p, unit, &p->v, key, keys, v);
    set->pack_rows(k, p->k.element, p->at->size, keys, memory + l->k + key * l->size_row);
    set->pack_rows(v, p->v.element, p->at->value_size, keys, memory + l->v + key * l->value_row);
    memory[l->nonfinite_keys + block] =
        !pack_forms(pass, k, keys, &p->k, p->at->size, NULL,
                    memory + l->k_lines + key * set->columns * real, l->keys_panel, desk + l->room);
    memset(memory + l->dk + key * l->sums_row * real, 0, (size_t)(KEYS * l->sums_row * real));
    memset(memory + l->dv + key * l->value_sums_row * real, 0,
           (size_t)(KEYS * l->value_sums_row * real));
}

/* Some keys with all rows of a tile. */
typedef struct sheet {
    const tni_at_back_pass *pass;
    const tni_at_back_tile *tile;
    int64_t key, keys;
    const char *less; /* of the rows */
    bool blind;       /* some of the rows are blind */
} sheet;

/* Reads the bias of row r: -infinity for all keys if the row is blind. */
static void read_bias(const sheet *s, int64_t r, tni_at_back_bias *out)
{
    const tni_at_back_set *set = s->pass->set;
    const tni_at_back_tile *t = s->tile;
    const int64_t row = t->row + r;
    if (s->blind && is_nothing(set, s->less, r)) {
        for (int64_t j = 0; j < s->keys; j++)
            tni_at_back_put(set, out, j, -(double)INFINITY);
        return;
    }
    if (set->real == sizeof(double))
        tni_at_bias_f64(t->problem, t->unit, row, s->key, s->keys, out->f64);
    else
        tni_at_bias_f32(t->problem, t->unit, row, s->key, s->keys, out->f32);
    if (t->exclude)
        t->exclude(t->user, row, s->key, s->keys, out);
}

/* Writes the bias transposed. Padding rows get 0: they see nothing anyway. */
static void fill_bias(const sheet *s, char *to)
{
    const tni_at_back_set *set = s->pass->set;
    for (int64_t r = 0; r < s->tile->rows; r++) {
        tni_at_back_bias bias = {0};
        read_bias(s, r, &bias);
        for (int64_t j = 0; j < s->keys; j++)
            tni_at_back_put(set, to, j * TNI_AT_SLOPE_ROW + r,
                            set->real == sizeof(double) ? bias.f64[j] : (double)bias.f32[j]);
    }
    for (int64_t r = s->tile->rows; r < round_up(s->tile->rows, set->columns); r++)
        for (int64_t j = 0; j < s->keys; j++)
            tni_at_back_put(set, to, j * TNI_AT_SLOPE_ROW + r, 0);
}

static void fill_keep(const sheet *s, char *to)
{
    const tni_at_back_set *set = s->pass->set;
    const tni_at_back_tile *t = s->tile;
    const double kept = 1 / (1 - t->problem->at->dropout);
    uint8_t keeps[TNI_AT_ROWS_MOST];
    for (int64_t r = 0; r < round_up(t->rows, set->columns); r++) {
        if (r < t->rows)
            tni_at_keeps(t->problem, t->unit, t->row + r, s->key, s->keys, keeps);
        for (int64_t j = 0; j < s->keys; j++)
            tni_at_back_put(set, to, j * TNI_AT_SLOPE_ROW + r, r < t->rows && keeps[j] ? kept : 0);
    }
}

/* Whether something is added to scores, or some pairs are excluded. */
static bool has_bias(const sheet *s)
{
    const tni_at_back_tile *t = s->tile;
    return t->problem->mask.dtype || t->exclude || s->blind ||
           !tni_at_all_seen(t->problem, t->unit, t->row, t->rows, s->key, s->keys);
}

/* Combines a panel of keys with the rows of the step. `first` is the key of the first slopes. */
static void meet_panel(tni_at_back *step, const sheet *s, char *memory, char *desk, int64_t first)
{
    const tni_at_back_set *set = s->pass->set;
    const tni_at_back_layout *l = s->pass->layout;
    step->keys = s->keys;
    step->k = memory + l->k + s->key * l->size_row;
    step->v = memory + l->v + s->key * l->value_row;
    step->dk = memory + l->dk + s->key * l->sums_row * set->real;
    step->dv = memory + l->dv + s->key * l->value_sums_row * set->real;
    step->slopes = desk + l->slopes + (s->key - first) * TNI_AT_SLOPE_ROW * set->real;
    step->bias = NULL;
    if (has_bias(s)) {
        fill_bias(s, desk + l->bias);
        step->bias = desk + l->bias;
    }
    if (s->tile->problem->at->dropout != 0) {
        fill_keep(s, desk + l->keep);
        step->keep = desk + l->keep;
    }
    set->keys_step(step);
}

/* Adds to dq of the sheet's rows `at` to at + rows - 1, from its keys `from` to `to`. */
static void add_dq_run(const sheet *s, char *memory, const char *desk, int64_t at, int64_t rows,
                       int64_t from, int64_t to)
{
    const tni_at_back_set *set = s->pass->set;
    const tni_at_back_layout *l = s->pass->layout;
    const tni_at_back_rows step = {
        .rows = rows,
        .keys = to - from,
        .size = s->tile->problem->at->size,
        .slopes = desk + l->slopes + (from * TNI_AT_SLOPE_ROW + at) * set->real,
        .k_lines = memory + l->k_lines + (s->key + from) * set->columns * set->real,
        .k_panel = l->keys_panel,
        .dq = memory + l->dq + (s->tile->slot + at) * l->sums_row * set->real,
        .dq_row = l->sums_row};
    set->rows_step(&step);
}

/* Adds to dq of the sheet's rows, a panel at a time. */
static void add_dq(const sheet *s, char *memory, const char *desk)
{
    const int64_t rows = s->tile->rows, count = parts(rows, s->pass->set->rows);
    for (int64_t n = 0; n < count; n++) {
        const int64_t at = rows * n / count;
        add_dq_run(s, memory, desk, at, rows * (n + 1) / count - at, 0, s->keys);
    }
}

/* As add_dq, with the same bits, if some keys are not finite: each row separately, one run of
 * visible keys after the other. */
static void add_dq_seen(const sheet *s, char *memory, const char *desk)
{
    const tni_at_back_set *set = s->pass->set;
    for (int64_t r = 0; r < s->tile->rows; r++) {
        tni_at_back_bias bias = {0};
        read_bias(s, r, &bias);
        for (int64_t from = 0, to; from < s->keys; from = to) {
            const bool excluded = is_nothing(set, &bias, from);
            for (to = from + 1; to < s->keys && is_nothing(set, &bias, to) == excluded;)
                to++;
            if (!excluded)
                add_dq_run(s, memory, desk, r, 1, from, to);
        }
    }
}

/* Whether some of the keys `from` to `to` may not be finite. */
static bool is_nonfinite(const tni_at_back_layout *l, const char *memory, int64_t from, int64_t to)
{
    return memory[l->nonfinite_keys + from / KEYS] || memory[l->nonfinite_keys + (to - 1) / KEYS];
}

void tni_at_back_meet(const tni_at_back_pass *pass, const tni_at_back_tile *tile, int64_t from,
                      int64_t to, char *memory, char *desk)
{
    const tni_at_back_layout *l = pass->layout;
    const tn_attention_op *at = tile->problem->at;
    const int64_t real = pass->set->real, count = parts(to - from, pass->set->rows);
    const int64_t line = tile->slot * pass->set->columns * real;
    sheet s = {.pass = pass,
               .tile = tile,
               .less = memory + l->less + tile->slot * real,
               .blind = memory[l->blind_rows + tile->index]};
    tni_at_back step = {.problem = tile->problem,
                        .rows = tile->rows,
                        .q_transposed = memory + l->q_transposed + tile->slot * at->size * real,
                        .dout_transposed =
                            memory + l->dout_transposed + tile->slot * at->value_size * real,
                        .q_lines = memory + l->q_lines + line,
                        .dout_lines = memory + l->dout_lines + line,
                        .rows_panel = l->rows_panel,
                        .less = memory + l->less + tile->slot * real,
                        .delta = memory + l->delta + tile->slot * real,
                        .nonfinite = memory[l->nonfinite_rows + tile->index],
                        .dk_row = l->sums_row,
                        .dv_row = l->value_sums_row,
                        .room = desk + l->room};
    for (int64_t n = 0; n < count; n++) {
        s.key = from + (to - from) * n / count;
        s.keys = from + (to - from) * (n + 1) / count - s.key;
        meet_panel(&step, &s, memory, desk, from);
    }
    s.key = from;
    s.keys = to - from;
    if (is_nonfinite(l, memory, from, to) && has_bias(&s))
        add_dq_seen(&s, memory, desk);
    else
        add_dq(&s, memory, desk);
}

void tni_at_back_write_tile(const tni_at_back_pass *pass, const tni_at_back_tile *tile,
                            const char *memory)
{
    const tni_at_problem *p = tile->problem;
    const tni_at_back_layout *l = pass->layout;
    for (int64_t r = 0; r < tile->rows; r++)
        pass->set->write(memory + l->dq + (tile->slot + r) * l->sums_row * pass->set->real,
                         p->at->scale, p->at->size,
                         tni_at_row(p, tile->unit, &p->dq, tile->row + r), p->dq.element);
}

void tni_at_back_write_keys(const tni_at_back_pass *pass, const tni_at_unit *unit, int64_t block,
                            const char *memory)
{
    const tni_at_problem *p = pass->problem;
    const tni_at_back_layout *l = pass->layout;
    const int64_t real = pass->set->real;
    for (int64_t j = block * KEYS; j < least((block + 1) * KEYS, p->at->keys); j++) {
        pass->set->write(memory + l->dk + j * l->sums_row * real, p->at->scale, p->at->size,
                         tni_at_key(p, unit, &p->dk, j), p->dk.element);
        pass->set->write(memory + l->dv + j * l->value_sums_row * real, 1, p->at->value_size,
                         tni_at_key(p, unit, &p->dv, j), p->dv.element);
    }
}
