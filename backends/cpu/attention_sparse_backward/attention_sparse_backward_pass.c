#include "attention_sparse_backward_pass.h"

#include "../attention/attention_backward_tiles.h"
#include "../attention/attention_layout.h"
#include "../attention/attention_share.h"
#include "../shared/sizes.h"

#include <math.h>

enum { KEYS = TNI_AT_BACK_KEYS };

/* Maximum bands of keys, and blocks of queries in a tile. */
enum { BANDS_MOST = 32, GATHERED_MOST = 32 };

/* The work of a run. A unit is a batch element's group of heads that share keys. */
typedef struct plan {
    const tni_at_back_set *set;
    const tn_run *run;
    const tn_attention_sparse_op *sparse;
    tni_at_problem keys; /* of units */
    tni_at_problem rows; /* each head is a unit of its own */
    tni_at_back_layout layout;
    tni_at_back_pass pass;
    int64_t heads;          /* of a unit */
    int64_t gathered;       /* blocks of queries in a tile; 1 if a tile is (part of) a block */
    int64_t parts_of_block; /* tiles of a block of queries */
    int64_t tile_rows;      /* rows of a tile */
    int64_t tile_slots;     /* the same in whole panels */
    int64_t tiles_of_head, tiles; /* the latter of a unit */
    int64_t key_band, tile_band;  /* keys and tiles of a band */
    int64_t key_bands, tile_bands;
    int64_t wave, slots, bytes;
    char *units, *desks;
    int64_t first; /* unit of the wave */
    int64_t round;
} plan;

/* Divides the queries of a head into tiles. Blocks that are smaller than a panel are gathered: one
 * panel serves several of them. */
static void cut_tiles(plan *p)
{
    const int64_t columns = p->set->columns, queries = p->sparse->at.queries;
    const int64_t block = least(p->sparse->block_queries, most(1, queries));
    p->gathered = most(1, least(GATHERED_MOST, columns / block));
    p->parts_of_block = parts(block, TNI_AT_BACK_ROWS);
    p->tile_rows = p->gathered * block;
    if (p->gathered == 1 && p->parts_of_block > 1) {
        p->tile_rows = round_up(parts(block, p->parts_of_block), columns);
        p->parts_of_block = parts(block, p->tile_rows);
    }
    p->tile_slots = round_up(p->tile_rows, columns);
    p->tiles_of_head = parts(p->sparse->query_blocks, p->gathered) * p->parts_of_block;
    p->tiles = p->heads * p->tiles_of_head;
}

/* Divides keys and tiles into bands: as many of each, if there are enough. A band of keys has whole
 * blocks unless these are much larger. */
static void cut_bands(plan *p)
{
    const int64_t keys = p->sparse->at.keys, block = p->sparse->block_keys;
    const int64_t bands = most(1, least(BANDS_MOST, parts(keys, KEYS)));
    p->key_band = most(1, parts(keys, bands));
    if (block < 2 * p->key_band)
        p->key_band = round_up(p->key_band, block);
    p->key_bands = parts(keys, p->key_band);
    p->tile_band = most(1, parts(p->tiles, most(1, p->key_bands)));
    p->tile_bands = parts(p->tiles, p->tile_band);
}

/* Sets everything but the addresses. Returns false if the number of bytes overflows. */
static bool make_plan(const tni_at_back_set *set, const tn_op *op, const tn_run *run,
                      int32_t threads, plan *out)
{
    *out = (plan){.set = set, .run = run, .sparse = TN_PARAMS(op, attention_sparse)};
    const tn_attention_op *at = &out->sparse->at;
    tni_at_back_layout *l = &out->layout;
    if (!tni_at_sizes_fit(at))
        return false;
    tni_at_read(op, run, &out->keys);
    out->rows = out->keys;
    out->rows.sharers = 1;
    out->heads = out->keys.sharers;
    cut_tiles(out);
    cut_bands(out);
    if (!tni_at_back_layout_make(set, &out->keys, out->tiles * out->tile_slots, out->tiles, l))
        return false;
    out->slots = most(1, threads);
    out->wave = tni_at_back_wave(l, out->keys.units, most(1, out->key_bands), threads);
    out->bytes = out->wave * l->unit + out->slots * l->desk;
    return true;
}

static tni_at_unit unit_of(const plan *p, int64_t b, int64_t group)
{
    const tn_attention_op *at = &p->sparse->at;
    return (tni_at_unit){.in = {b, 0, 0, at->queries, at->keys},
                         .b = b,
                         .group = group,
                         .rows = at->queries,
                         .to = at->keys};
}

static tni_at_unit keys_unit(const plan *p, int64_t unit)
{
    return unit_of(p, unit / p->sparse->at.groups, unit % p->sparse->at.groups);
}

static char *unit_at(const plan *p, int64_t unit)
{
    return p->units + (unit - p->first) * p->layout.unit;
}

static char *desk_at(const plan *p, int64_t slot)
{
    return p->desks + slot * p->layout.desk;
}

/* Listed keys of a block of queries, one run of valid keys after the other, within [from, to). */
typedef struct list {
    const plan *plan;
    tn_sparse_row row;
    int64_t b, from, to;
    int64_t first, end; /* the current run; `first` is `to` after the last one */
} list;

/* Moves to the next run. */
static void next_run(list *l)
{
    const int64_t size = l->plan->sparse->block_keys;
    for (int64_t block; (block = tn_attention_sparse_next(&l->row)) >= 0;) {
        const int64_t first = block * size;
        if (first >= l->to)
            break;
        l->first = most(l->from, first);
        l->end = least(l->to, first + tn_attention_sparse_size(l->plan->run, l->b, block));
        if (l->first < l->end)
            return;
    }
    l->first = l->end = l->to;
}

/* Skips the listed blocks before a block. */
static void skip_blocks(tn_sparse_row *row, int64_t block)
{
    int64_t low = row->at, high = row->end;
    if (!row->listed) {
        row->at = most(row->at, block);
        return;
    }
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (tn_sparse_number_(row->first + middle * row->step) < block)
            low = middle + 1;
        else
            high = middle;
    }
    row->at = low;
}

/* Finds the first run of block n of the queries of head `unit->group`. */
static list list_of(const plan *p, const tni_at_unit *unit, int64_t n, int64_t from, int64_t to)
{
    list l = {.plan = p, .b = unit->b, .from = from, .to = to};
    tn_attention_sparse_row(p->run, unit->b, unit->group, n, &l.row);
    if (!l.row.listed)
        l.row.end = least(l.row.end, (to - 1) / p->sparse->block_keys + 1);
    skip_blocks(&l.row, from / p->sparse->block_keys);
    next_run(&l);
    return l;
}

/* What tiles refer to. */
typedef struct place {
    const plan *plan;
    tni_at_unit unit; /* the head */
    tni_at_back_tile tile;
    int64_t block, blocks; /* of queries */
} place;

static void exclude_keys(const plan *p, int64_t from, int64_t to, tni_at_back_bias *io)
{
    for (int64_t j = from; j < to; j++)
        tni_at_back_put(p->set, io, j, -(double)INFINITY);
}

/* Excludes the keys that the row's own block does not list. */
static void exclude_unlisted(const void *user, int64_t row, int64_t key, int64_t keys,
                             tni_at_back_bias *io)
{
    const place *at = user;
    const int64_t n = row / at->plan->sparse->block_queries;
    int64_t done = 0;
    for (list l = list_of(at->plan, &at->unit, n, key, key + keys); l.first < l.to; next_run(&l)) {
        exclude_keys(at->plan, done, l.first - key, io);
        done = l.end - key;
    }
    exclude_keys(at->plan, done, keys, io);
}

/* Finds tile `index` of a unit. `out` must keep its address. Returns false if it has no rows. */
static bool find_tile(const plan *p, int64_t unit, int64_t index, place *out)
{
    const int64_t head = index / p->tiles_of_head, rest = index % p->tiles_of_head;
    const int64_t block = rest / p->parts_of_block * p->gathered, size = p->sparse->block_queries;
    const int64_t row = block * size + rest % p->parts_of_block * p->tile_rows;
    const int64_t left = p->sparse->at.queries - row;
    const int64_t of_block = p->gathered > 1 ? left : block * size + least(size, left + row) - row;
    const tni_at_unit keys = keys_unit(p, unit);
    *out = (place){.plan = p,
                   .unit = unit_of(p, keys.b, keys.group * p->heads + head),
                   .block = block,
                   .blocks = least(p->gathered, p->sparse->query_blocks - block)};
    out->tile = (tni_at_back_tile){.problem = &p->rows,
                                   .unit = &out->unit,
                                   .row = row,
                                   .rows = least(p->tile_rows, least(left, of_block)),
                                   .index = index,
                                   .slot = index * p->tile_slots,
                                   .exclude = out->blocks > 1 ? exclude_unlisted : NULL,
                                   .user = out};
    return out->tile.rows > 0;
}

/* Takes keys from the lists that have the key `key`, up to `limit`, and moves these lists past them.
 * Returns the end of the run that they make together. */
static int64_t take_run(list *lists, int64_t count, int64_t key, int64_t limit)
{
    int64_t end = key;
    for (bool more = true; more;) {
        more = false;
        for (int64_t n = 0; n < count; n++) {
            list *l = &lists[n];
            if (l->first > end || l->first >= limit)
                continue;
            end = most(end, least(l->end, limit));
            l->first = least(l->end, limit);
            if (l->first == l->end)
                next_run(l);
            more = true;
        }
    }
    return end;
}

/* Combines a tile with the listed keys in [from, to): runs of keys that any of its rows sees. */
static void visit_keys(const place *at, int64_t from, int64_t to, char *memory, char *desk)
{
    const plan *p = at->plan;
    list lists[GATHERED_MOST];
    int64_t first, end;
    tni_at_reach(&p->rows, &at->unit, at->tile.row, at->tile.rows, &first, &end);
    from = most(from, first);
    to = least(to, end);
    if (from >= to)
        return;
    for (int64_t n = 0; n < at->blocks; n++)
        lists[n] = list_of(p, &at->unit, at->block + n, from, to);
    for (;;) {
        int64_t key = to;
        for (int64_t n = 0; n < at->blocks; n++)
            key = least(key, lists[n].first);
        if (key == to)
            return;
        tni_at_back_meet(&p->pass, &at->tile, key,
                         take_run(lists, at->blocks, key, least(to, key + KEYS)), memory, desk);
    }
}

static void begin_item(void *user, int64_t item, int64_t slot)
{
    const plan *p = user;
    const int64_t each = p->tiles + p->layout.key_blocks, index = item % each;
    const int64_t unit = p->first + item / each;
    place at;
    if (index >= p->tiles) {
        const tni_at_unit keys = keys_unit(p, unit);
        tni_at_back_begin_keys(&p->pass, &keys, index - p->tiles, unit_at(p, unit),
                               desk_at(p, slot));
    } else if (find_tile(p, unit, index, &at)) {
        tni_at_back_begin_tile(&p->pass, &at.tile, unit_at(p, unit), desk_at(p, slot));
    }
}

static void round_item(void *user, int64_t item, int64_t slot)
{
    const plan *p = user;
    const int64_t unit = p->first + item / p->key_bands, band = item % p->key_bands;
    const int64_t from = band * p->key_band, to = least(from + p->key_band, p->sparse->at.keys);
    const int64_t tiles = (band + p->round) % most(p->key_bands, p->tile_bands) * p->tile_band;
    for (int64_t n = tiles; n < least(tiles + p->tile_band, p->tiles); n++) {
        place at;
        if (find_tile(p, unit, n, &at))
            visit_keys(&at, from, to, unit_at(p, unit), desk_at(p, slot));
    }
}

static void write_item(void *user, int64_t item, int64_t slot)
{
    const plan *p = user;
    const int64_t each = p->tiles + p->layout.key_blocks, index = item % each;
    const int64_t unit = p->first + item / each;
    place at;
    (void)slot;
    if (index >= p->tiles) {
        const tni_at_unit keys = keys_unit(p, unit);
        tni_at_back_write_keys(&p->pass, &keys, index - p->tiles, unit_at(p, unit));
    } else if (find_tile(p, unit, index, &at)) {
        tni_at_back_write_tile(&p->pass, &at.tile, unit_at(p, unit));
    }
}

uint64_t tni_sparse_back_workspace(const tni_at_back_set *set, const tn_op *op, int32_t threads)
{
    plan p;
    uint64_t bytes = 0; /* also enough for fewer threads */
    for (int32_t n = threads > 1 ? threads : 1; n > 0; n--) {
        if (!make_plan(set, op, NULL, n, &p))
            return UINT64_MAX;
        bytes = (uint64_t)p.bytes > bytes ? (uint64_t)p.bytes : bytes;
    }
    return bytes;
}

tn_status tni_sparse_backward(const tni_at_back_set *set, const tn_run *run, tn_error *err)
{
    plan p;
    const tn_status status = tn_attention_sparse_check(run, err);
    if (status)
        return status;
    for (int32_t n = run->threads > 1 ? run->threads : 1; n > 0; n--) {
        if (make_plan(set, run->op, run, n, &p) && (uint64_t)p.bytes <= run->workspace_bytes)
            break;
    }
    p.pass = (tni_at_back_pass){.set = set, .problem = &p.keys, .layout = &p.layout};
    p.units = run->workspace;
    p.desks = p.units + p.wave * p.layout.unit;
    for (; p.first < p.keys.units; p.first += p.wave) {
        const int64_t units = least(p.wave, p.keys.units - p.first);
        const int64_t items = units * (p.tiles + p.layout.key_blocks);
        tni_at_share(run, p.slots, items, begin_item, &p);
        for (p.round = 0; p.round < most(p.key_bands, p.tile_bands); p.round++)
            tni_at_share(run, p.slots, units * p.key_bands, round_item, &p);
        tni_at_share(run, p.slots, items, write_item, &p);
    }
    return TN_OK;
}
