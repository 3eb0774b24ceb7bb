/* Which variant of the kernel on tensor cores computes a problem of attention-sparse, what it supports, and what it costs. */
#include "../attention/decode_schedule.h"
#include "attention_sparse_cuda.h"
#include "sparse_mma.h"

enum { STEP = 16, SIZE_MOST = 256, SIZE_TWO = 128, SIZE_SMALL = 64 };
enum { ROWS_LEAST = 64, ROWS_MOST = 128 };

static int greater_size(const sparse_variant *variant)
{
    return variant->size > variant->values ? variant->size : variant->values;
}

int cuda_sparse_rows(const sparse_variant *variant)
{
    return SPARSE_ROWS * variant->warps * variant->tiles;
}

unsigned cuda_sparse_threads(const sparse_variant *variant)
{
    return 32u * (unsigned)variant->warps;
}

unsigned cuda_sparse_shared(const sparse_variant *variant)
{
    return (unsigned)sparse_places_of(cuda_sparse_rows(variant), variant->width, variant->stages,
                                      decode_pitch(variant->size), decode_pitch(variant->values))
        .end;
}

/* Tiles of 128 rows read each key for more of them, unless blocks of queries do not fill these tiles. A warp that computes 32 rows reads
 * each key from shared memory half as often; the sums of large heads have no room in its registers twice. Tiles of 32 keys
 * leave registers for sums, and blocks of heads of up to 128 elements have room in 99 KiB, the limit of capability 8.6. */
void cuda_sparse_variant_of(const tn_op *op, sparse_variant *out)
{
    const tn_attention_sparse_op *sparse = TN_PARAMS(op, attention_sparse);
    const int64_t queries = sparse->at.queries;
    const int64_t block = sparse->block_queries < queries ? sparse->block_queries : queries;
    const bool many = block % ROWS_MOST > ROWS_LEAST || (block > 0 && block % ROWS_MOST == 0);
    *out = (sparse_variant){.size = (int)cuda_round_up(sparse->at.size, STEP),
                            .values = (int)cuda_round_up(sparse->at.value_size, STEP),
                            .positive = sparse->at.scale >= FLT_MIN};
    const int greater = greater_size(out);
    out->tiles = many && greater <= SIZE_TWO ? 2 : 1;
    out->warps = many && greater > SIZE_TWO ? 8 : 4;
    out->width = greater <= SIZE_SMALL || (greater <= SIZE_TWO && !many) ? 64 : 32;
    out->stages = out->tiles == 2 ? 3 : 2;
    out->resident = out->warps == 8 ? 1 : greater <= SIZE_SMALL && !many ? 3 : 2;
}

static tn_status admit_operands(const tn_op *op, tn_refusal *why)
{
    static const char *const names[] = {"q", "k", "v"};
    tn_status status = TN_OK;
    for (int32_t i = TN_ATTENTION_SPARSE_Q; !status && i <= TN_ATTENTION_SPARSE_V; i++)
        status = cuda_attention_admit_rows(op, i, names[i], why);
    return status;
}

tn_status cuda_sparse_mma_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    sparse_variant variant;
    (void)row;
    cuda_sparse_variant_of(query->op, &variant);
    tn_status status = cuda_attention_admit_ampere(query, why);
    if (!status)
        status = cuda_attention_admit_chunks(query->op, SIZE_MOST, why);
    if (!status)
        status = cuda_attention_admit_shared(query, cuda_sparse_shared(&variant), why);
    if (!status)
        status = admit_operands(query->op, why);
    return status ? status : cuda_sparse_admit(query, cuda_sparse_rows(&variant), why);
}

/* Microseconds that a multiprocessor takes for each pair of a row and a key: for products, and for the score. They give the times of
 * heads of 128 elements on an H200 (docs/kernels/sparse-attention.md); how they are divided was not measured. */
static double pair_us(const sparse_variant *variant)
{
    static const double flops_per_us = 2.0e6, flops_per_us_two = 2.2e6;
    static const double score_us = 9.4e-5, score_us_two = 5.6e-5;
    const double flops = 2.0 * (variant->size + variant->values);
    return variant->tiles == 1 ? flops / flops_per_us + score_us
                               : flops / flops_per_us_two + score_us_two;
}

double cuda_sparse_mma_cost(const tn_kernel_row *row, const tn_query *query)
{
    enum { PROCESSORS = 132 };
    static const double block_us = 3;
    const int64_t found = query->device ? query->device->multi_processor_count : 0;
    const double processors = (double)(found > 0 ? found : PROCESSORS);
    sparse_variant variant;
    if (cuda_attention_admit_chunks(query->op, SIZE_MOST, NULL))
        return 0; /* costs are asked for before `admit`; other sizes have no tiles */
    cuda_sparse_variant_of(query->op, &variant);
    const int rows = cuda_sparse_rows(&variant);
    const double tiles = ceil(cuda_sparse_keys_seen(query->op) / variant.width);
    const double tile_us = (double)rows * variant.width * pair_us(&variant);
    /* A block alone has half of a multiprocessor's speed if there is room for more. */
    const double blocks = cuda_sparse_blocks(query->op, rows), room = variant.resident;
    const double needed = ceil(blocks / processors) + 1, beside = needed < room ? needed : room;
    const double turns = blocks / (processors * room);
    return row->overhead_us + (turns < 1 ? 1 : turns) * (block_us + beside * tiles * tile_us);
}
