#include "attention_backward_pass.h"

#include "../shared/sizes.h"
#include "attention_backward_tiles.h"
#include "attention_layout.h"
#include "attention_share.h"

enum { ROWS = TNI_AT_BACK_ROWS, KEYS = TNI_AT_BACK_KEYS };

/* Blocks of rows that a block of keys is combined with in a round: more than one, so that keys stay
 * in the cache, if there are enough rows for several rounds. */
enum { TOGETHER_MOST = 4, ROUNDS = 8 };

/* How the work is divided. The memory of the threads follows that of all units. */
typedef struct scheme {
    tni_at_back_layout layout;
    int64_t row_blocks;
    int64_t together, bundles; /* row blocks of a bundle, and bundles */
    int64_t wave, slots, bytes;
} scheme;

typedef struct crew {
    tni_at_back_pass pass;
    const scheme *plan;
    char *units, *desks;
    int64_t first; /* unit of the wave */
    int64_t round;
} crew;

/* Returns false if the number of bytes overflows. */
static bool plan_make(const tni_at_back_set *set, const tni_at_problem *p, int32_t threads,
                      scheme *out)
{
    const tni_at_back_layout *l = &out->layout;
    *out = (scheme){0};
    if (!tni_at_sizes_fit(p->at))
        return false;
    out->row_blocks = parts(p->at->queries * p->sharers, ROWS);
    out->together = most(1, least(TOGETHER_MOST, out->row_blocks / ROUNDS));
    out->bundles = parts(out->row_blocks, out->together);
    if (!tni_at_back_layout_make(set, p, out->row_blocks * ROWS, out->row_blocks, &out->layout))
        return false;
    out->slots = most(1, threads);
    out->wave = tni_at_back_wave(l, p->units, most(1, l->key_blocks), threads);
    out->bytes = out->wave * l->unit + out->slots * l->desk;
    return true;
}

static char *unit_at(const crew *c, int64_t index)
{
    return c->units + index * c->plan->layout.unit;
}

static char *desk_at(const crew *c, int64_t slot)
{
    return c->desks + slot * c->plan->layout.desk;
}

static tni_at_back_tile tile_of(const crew *c, const tni_at_unit *unit, int64_t block)
{
    return (tni_at_back_tile){.problem = c->pass.problem,
                              .unit = unit,
                              .row = block * ROWS,
                              .rows = least(ROWS, unit->rows - block * ROWS),
                              .index = block,
                              .slot = block * ROWS};
}

static void begin_item(void *user, int64_t item, int64_t slot)
{
    const crew *c = user;
    const int64_t blocks = c->plan->row_blocks + c->plan->layout.key_blocks, block = item % blocks;
    char *memory = unit_at(c, item / blocks);
    tni_at_unit unit;
    tni_at_unit_read(c->pass.problem, c->first + item / blocks, &unit);
    if (block < c->plan->row_blocks) {
        const tni_at_back_tile tile = tile_of(c, &unit, block);
        tni_at_back_begin_tile(&c->pass, &tile, memory, desk_at(c, slot));
    } else {
        tni_at_back_begin_keys(&c->pass, &unit, block - c->plan->row_blocks, memory,
                               desk_at(c, slot));
    }
}

/* Combines a block of keys with a block of rows. */
static void meet_blocks(const crew *c, const tni_at_unit *unit, int64_t key_block,
                        int64_t row_block, char *memory, char *desk)
{
    const tni_at_back_tile tile = tile_of(c, unit, row_block);
    int64_t from, to;
    tni_at_reach(tile.problem, unit, tile.row, tile.rows, &from, &to);
    from = most(from, key_block * KEYS);
    to = least(to, (key_block + 1) * KEYS);
    if (from < to)
        tni_at_back_meet(&c->pass, &tile, from, to, memory, desk);
}

static void round_item(void *user, int64_t item, int64_t slot)
{
    const crew *c = user;
    const scheme *plan = c->plan;
    const int64_t key_blocks = plan->layout.key_blocks;
    const int64_t key_block = item % key_blocks, index = item / key_blocks;
    const int64_t bundle = (key_block + c->round) % most(key_blocks, plan->bundles);
    const int64_t first = bundle * plan->together;
    const int64_t end = least(first + plan->together, plan->row_blocks);
    tni_at_unit unit;
    tni_at_unit_read(c->pass.problem, c->first + index, &unit);
    for (int64_t row_block = first; row_block < end; row_block++)
        meet_blocks(c, &unit, key_block, row_block, unit_at(c, index), desk_at(c, slot));
}

static void write_item(void *user, int64_t item, int64_t slot)
{
    const crew *c = user;
    const int64_t blocks = c->plan->row_blocks + c->plan->layout.key_blocks, block = item % blocks;
    const char *memory = unit_at(c, item / blocks);
    tni_at_unit unit;
    (void)slot;
    tni_at_unit_read(c->pass.problem, c->first + item / blocks, &unit);
    if (block < c->plan->row_blocks) {
        const tni_at_back_tile tile = tile_of(c, &unit, block);
        tni_at_back_write_tile(&c->pass, &tile, memory);
    } else {
        tni_at_back_write_keys(&c->pass, &unit, block - c->plan->row_blocks, memory);
    }
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
    crew c = {.pass = {.set = set, .problem = &problem, .layout = &plan.layout},
              .plan = &plan,
              .units = run->workspace,
              .desks = (char *)run->workspace + plan.wave * plan.layout.unit};
    const int64_t key_blocks = plan.layout.key_blocks, rounds = most(plan.bundles, key_blocks);
    for (; c.first < problem.units; c.first += plan.wave) {
        const int64_t units = least(plan.wave, problem.units - c.first);
        const int64_t blocks = units * (plan.row_blocks + key_blocks);
        tni_at_share(run, plan.slots, blocks, begin_item, &c);
        for (c.round = 0; c.round < rounds; c.round++)
            tni_at_share(run, plan.slots, units * key_blocks, round_item, &c);
        tni_at_share(run, plan.slots, blocks, write_item, &c);
    }
}
