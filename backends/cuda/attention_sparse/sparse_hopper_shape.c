/* Which variant of Hopper's kernel computes a problem of attention-sparse, what it supports, and what it costs. */
#include "sparse_hopper.h"

enum { CHUNK = 64, STEP = 16, SIZE_MOST = 256, GROUP_ROWS = 64 };

static int64_t at_most(int64_t x, int64_t most)
{
    return x < most ? x : most;
}

unsigned cuda_sparse_hopper_shared(const hopper_variant *variant)
{
    return cuda_hopper_shared(variant) + SPARSE_HOPPER_LIST_BYTES;
}

int cuda_sparse_hopper_resident(const hopper_variant *variant)
{
    return variant->groups > 1 ? 1 : sparse_hopper_resident((int)cuda_hopper_shared(variant));
}

static int64_t tile_rows_of(const hopper_variant *variant, int64_t block)
{
    return cuda_round_up(block, cuda_hopper_rows(variant));
}

/* One group for each tile reads all keys for 64 rows, which takes almost twice as long; so it is for blocks of queries that would leave
 * most of two groups' rows empty. Three groups have registers for small heads alone. */
static int groups_of(const hopper_variant *variant, int64_t block)
{
    static const double cost[] = {1.7, 1, 0.95}; /* of a row */
    const int most = variant->size <= CHUNK && variant->values <= CHUNK ? 3 : 2;
    hopper_variant tried = *variant;
    double least = 0;
    int best = 0;
    for (tried.groups = 1; tried.groups <= most; tried.groups++) {
        const double took = cost[tried.groups - 1] * (double)tile_rows_of(&tried, block);
        if (best == 0 || took < least) {
            least = took;
            best = tried.groups;
        }
    }
    return best;
}

/* Returns the keys of a tile that have room twice in `bytes` of shared memory, besides the queries. */
static int64_t keys_in(const hopper_variant *variant, int64_t bytes)
{
    hopper_variant none = *variant, one = *variant;
    none.width = 0;
    none.stages = one.stages = 2;
    one.width = 1;
    const int64_t fixed = cuda_sparse_hopper_shared(&none);
    const int64_t each = cuda_sparse_hopper_shared(&one) - fixed;
    return bytes < fixed ? 0 : (bytes - fixed) / each / STEP * STEP;
}

/* Returns the greatest number of keys per tile that fits shared memory, of a half of the multiprocessor for one group if 64 keys fit
 * that; and, with scores, weights and sums, a thread's registers. */
static int64_t width_most(const hopper_variant *variant)
{
    enum { HALF = SPARSE_HOPPER_PROCESSOR_BYTES / 2 - SPARSE_HOPPER_RESERVED_BYTES, MOST = 192 };
    static const int registers[] = {176, 208, 130};
    const int64_t in_half = variant->groups == 1 ? keys_in(variant, HALF) : 0;
    const int64_t room = in_half >= CHUNK ? in_half : keys_in(variant, SPARSE_HOPPER_BLOCK_BYTES);
    const int64_t held = (registers[variant->groups - 1] - variant->values / 2) * 4 / 3;
    const int64_t most = at_most(MOST, at_most(room, held)) / STEP * STEP;
    return most < CHUNK ? CHUNK : most;
}

/* The tiles of a block are of the same size. Each takes some time besides that of its keys, so few tiles are best, unless they have
 * more unused rows. */
static int width_of(const hopper_variant *variant, int64_t block)
{
    enum { MORE = 3, KEYS_OF_TILE = 12 };
    const int64_t fewest = cuda_tiles_along(block < 1 ? 1 : block, width_most(variant));
    int64_t best = CHUNK, least = INT64_MAX;
    for (int64_t tiles = fewest; tiles <= fewest + MORE; tiles++) {
        const int64_t part = cuda_round_up(cuda_tiles_along(block, tiles), STEP);
        const int64_t width = part < CHUNK ? CHUNK : part, cost = tiles * (width + KEYS_OF_TILE);
        if (cost < least) {
            best = width;
            least = cost;
        }
    }
    return (int)best;
}

/* As many buffers as fit, without fewer blocks of a multiprocessor. */
static int stages_of(const hopper_variant *variant)
{
    hopper_variant tried = *variant;
    tried.stages = 2;
    const int resident = cuda_sparse_hopper_resident(&tried);
    tried.stages = SPARSE_HOPPER_STAGES_MOST;
    return cuda_sparse_hopper_shared(&tried) <= SPARSE_HOPPER_BLOCK_BYTES &&
                   cuda_sparse_hopper_resident(&tried) == resident
               ? tried.stages
               : 2;
}

void cuda_sparse_hopper_variant_of(const tn_op *op, hopper_variant *out)
{
    const tn_attention_sparse_op *sparse = TN_PARAMS(op, attention_sparse);
    const tn_attention_op *at = &sparse->at;
    const int size = (int)cuda_round_up(at->size, STEP);
    const int values = (int)cuda_round_up(at->value_size, STEP);
    *out = (hopper_variant){.size = size < CHUNK ? CHUNK : size,
                            .values = values < CHUNK ? CHUNK : values,
                            .tables = 1,
                            .scores = !(at->scale >= FLT_MIN)};
    out->groups = groups_of(out, at_most(sparse->block_queries, at->queries));
    out->width = width_of(out, at_most(sparse->block_keys, at->keys));
    out->stages = stages_of(out);
}

tn_status cuda_sparse_hopper_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const tn_status status = cuda_hopper_admit(row, query, why);
    hopper_variant variant;
    if (status)
        return status;
    cuda_sparse_hopper_variant_of(query->op, &variant);
    return cuda_sparse_admit(query, cuda_hopper_rows(&variant), why);
}

/* Operations per microsecond of a multiprocessor of an H200, by the tensor cores; those of dense attention. */
static double rate_of(const hopper_variant *variant)
{
    const int greater = variant->size > variant->values ? variant->size : variant->values;
    const double rate = greater <= 64    ? 4.1e6
                        : greater <= 96  ? 4.4e6
                        : greater <= 128 ? 4.7e6
                        : greater <= 192 ? 5.3e6
                                         : 5.7e6;
    return variant->scores ? rate * 0.6 : rate;
}

/* Microseconds of a multiprocessor for a tile of keys: its products, or reading it from the second-level cache. */
static double tile_us(const hopper_variant *variant)
{
    static const double cache_bytes_per_us = 5.9e4;
    const double sizes = variant->size + variant->values;
    const double flops = 2.0 * cuda_hopper_rows(variant) * variant->width * sizes;
    const double bytes = (double)variant->width * sizes * sizeof(uint16_t);
    const double products = flops / rate_of(variant), reads = bytes / cache_bytes_per_us;
    return products > reads ? products : reads;
}

double cuda_sparse_hopper_cost(const tn_kernel_row *row, const tn_query *query)
{
    enum { PROCESSORS = 132 };
    static const double block_us = 2;
    const tn_attention_sparse_op *sparse = TN_PARAMS(query->op, attention_sparse);
    const int64_t found = query->device ? query->device->multi_processor_count : 0;
    const double processors = (double)(found > 0 ? found : PROCESSORS);
    hopper_variant variant;
    if (cuda_attention_admit_chunks(query->op, SIZE_MOST, NULL))
        return 0; /* costs are asked for before `admit`; other sizes have no tiles */
    cuda_sparse_hopper_variant_of(query->op, &variant);
    const int64_t block = at_most(sparse->block_keys, sparse->at.keys);
    const double keys = block > 0 ? cuda_sparse_keys_seen(query->op) / (double)block : 0;
    const double tiles = ceil(keys * (double)cuda_tiles_along(block, variant.width));
    const double resident = cuda_sparse_hopper_resident(&variant);
    const double blocks = cuda_sparse_blocks(query->op, cuda_hopper_rows(&variant));
    /* Blocks that share a multiprocessor take as long as one after the other. */
    const double turns = ceil(blocks / (processors * resident)) * resident;
    return row->overhead_us +
           (blocks <= processors ? 1 : turns) * (block_us / resident + tiles * tile_us(&variant));
}
