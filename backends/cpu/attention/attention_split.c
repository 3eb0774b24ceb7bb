#include "attention_split.h"

#include "../shared/sizes.h"
#include "attention_layout.h"
#include "attention_share.h"

/* Minimum keys of a part, and maximum parts of a unit; maximum bytes of the states that are kept at
 * the same time. */
enum { PART_KEYS = 1024, PARTS_MOST = 64, STATES_BYTES = 16 << 20 };

/* Data shared by threads: the states of a wave of units, part by part, and memory for each part's
 * thread. */
typedef struct crowd {
    const tni_at_set *set;
    const tni_at_problem *problem;
    int64_t block;
    int64_t rows;                                     /* maximum of a unit */
    int64_t parts;                                    /* maximum of a unit */
    int64_t most_bytes, sums_bytes, value_row, state; /* of the state of a part */
    int64_t q_row, room, desk;                        /* of a part's queries, room and bias */
    int64_t first, wave; /* first unit of the wave, and units of a wave */
} crowd;

/* Keys of a part: depends only on the number of keys, so that the number of threads does not change
 * the result. */
static int64_t part_keys(int64_t keys)
{
    int64_t even = parts(parts(keys, PARTS_MOST), 64) * 64;
    return even > PART_KEYS ? even : PART_KEYS;
}

static crowd crowd_of(const tni_at_set *set, const tni_at_problem *p)
{
    const tn_attention_op *at = p->at;
    crowd c = {.set = set, .problem = p, .rows = least(set->few, at->queries * p->sharers)};
    c.parts = least(PARTS_MOST, parts(at->keys, PART_KEYS));
    c.parts = c.parts > 0 ? c.parts : 1;
    c.state =
        tni_at_state_bytes(set, c.rows, at->value_size, &c.most_bytes, &c.sums_bytes, &c.value_row);
    c.q_row = set->q_row(at->size);
    c.room = tni_at_room(set, at);
    c.desk = line(c.rows * c.q_row) + c.room + line(c.rows * TNI_AT_BLOCK_MOST * set->real);
    c.wave = STATES_BYTES / (c.parts * (c.state + c.desk));
    c.wave = least(p->units, c.wave > 0 ? c.wave : 1);
    return c;
}

/* Whether there may be units of few rows. */
static bool has_few(const tni_at_set *set, const tni_at_problem *p)
{
    return !tni_at_is_packed(set, p, 1) &&
           (!tni_at_is_packed(set, p, p->at->queries * p->sharers) || p->packed);
}

uint64_t tni_at_split_workspace(const tni_at_set *set, const tni_at_problem *p)
{
    if (!has_few(set, p))
        return 0;
    const crowd c = crowd_of(set, p);
    return (uint64_t)(c.wave * c.parts * (c.state + c.desk));
}

static char *part_at(const crowd *c, int64_t index)
{
    return (char *)c->problem->run->workspace + index * (c->state + c->desk);
}

static tni_at_state state_at(const crowd *c, char *memory)
{
    return (tni_at_state){.most = memory,
                          .sums = memory + c->most_bytes,
                          .values = memory + c->most_bytes + c->sums_bytes,
                          .value_row = c->value_row};
}

/* Processes the step's rows with keys `from` to `to`, at most a block. */
static void keys_step(const crowd *c, tni_at_step *s, int64_t from, int64_t to, char *bias)
{
    const tni_at_problem *p = c->problem;
    const char *k[TNI_AT_BLOCK_MOST], *v[TNI_AT_BLOCK_MOST];
    s->key = from;
    s->keys = to - from;
    s->k_at = k;
    s->v_at = v;
    tni_at_keys(p, s->unit, &p->k, from, s->keys, k);
    tni_at_keys(p, s->unit, &p->v, from, s->keys, v);
    s->bias = NULL;
    if (p->natural || p->mask.dtype || !tni_at_all_seen(p, s->unit, 0, s->rows, from, s->keys)) {
        s->bias = bias;
        s->bias_row = TNI_AT_BLOCK_MOST;
        for (int64_t r = 0; r < s->rows; r++)
            tni_at_bias(c->set, p, s->unit, r, from, s->keys,
                        bias + r * s->bias_row * c->set->real);
    }
    c->set->few_step(s);
}

/* Processes one part of a unit's keys. */
static void part_item(void *user, int64_t item, int64_t slot)
{
    const crowd *c = user;
    const tni_at_set *set = c->set;
    const char *rows[TNI_AT_ROWS_MOST];
    tni_at_unit unit;
    (void)slot;
    tni_at_unit_read(c->problem, c->first + item / c->parts, &unit);
    if (tni_at_is_packed(set, c->problem, unit.rows))
        return;
    char *state = part_at(c, item), *q = state + c->state, *room = q + line(c->rows * c->q_row);
    const int64_t step = part_keys(unit.in.keys), first = item % c->parts * step;
    tni_at_step s = {.problem = c->problem,
                     .unit = &unit,
                     .rows = unit.rows,
                     .q = q,
                     .state = state_at(c, state),
                     .room = room};
    tni_at_state_clear(set, unit.rows, &s.state);
    for (int64_t r = 0; r < unit.rows; r++)
        rows[r] = tni_at_row(c->problem, &unit, &c->problem->q, r);
    set->pack_rows(rows, c->problem->q.element, c->problem->at->size, unit.rows, q);
    int64_t from = first > unit.from ? first : unit.from, end = least(first + step, unit.to);
    for (int64_t to; from < end; from = to) {
        to = least(end, (from / c->block + 1) * c->block);
        keys_step(c, &s, from, to, room + c->room);
    }
}

static void unit_item(void *user, int64_t item, int64_t slot)
{
    const crowd *c = user;
    tni_at_unit unit;
    (void)slot;
    tni_at_unit_read(c->problem, c->first + item, &unit);
    if (tni_at_is_packed(c->set, c->problem, unit.rows))
        return;
    const tni_at_state to = state_at(c, part_at(c, item * c->parts));
    for (int64_t part = 1; part < parts(unit.in.keys, part_keys(unit.in.keys)); part++) {
        const tni_at_state other = state_at(c, part_at(c, item * c->parts + part));
        c->set->merge(&to, &other, unit.rows, c->problem->at->value_size);
    }
    const tni_at_step s = {.problem = c->problem, .unit = &unit, .rows = unit.rows, .state = to};
    c->set->finish(&s);
}

void tni_at_split(const tni_at_set *set, const tni_at_problem *p, int64_t block)
{
    if (!has_few(set, p))
        return;
    crowd c = crowd_of(set, p);
    c.block = block;
    for (; c.first < p->units; c.first += c.wave) {
        const int64_t units = least(c.wave, p->units - c.first);
        tni_at_share(p->run, p->run->threads, units * c.parts, part_item, &c);
        tni_at_share(p->run, p->run->threads, units, unit_item, &c);
    }
}
