/* Which variant of Hopper's kernel computes a problem, what it supports, and what it costs. */
#include "attention_cuda.h"
#include "hopper.h"

#include "tenon/module/attention.h"

#include <float.h>
#include <math.h>

enum { CHUNK = 64, STEP = 16, SIZE_MOST = 256 };

static int64_t at_most(int64_t x, int64_t most)
{
    return x < most ? x : most;
}

static int line_bytes(int size)
{
    return (int)cuda_round_up(size, CHUNK) * (int)sizeof(uint16_t);
}

int cuda_hopper_rows(const hopper_variant *variant)
{
    return 64 * variant->groups;
}

unsigned cuda_hopper_threads(const hopper_variant *variant)
{
    return 128u * (unsigned)(variant->groups + 1);
}

unsigned cuda_hopper_shared(const hopper_variant *variant)
{
    const int q = cuda_hopper_rows(variant) * line_bytes(variant->size);
    const int keys = variant->width * (line_bytes(variant->size) + line_bytes(variant->values));
    const int barriers = (2 + 4 * variant->stages) * (int)sizeof(uint64_t);
    return (unsigned)(q + variant->stages * keys + barriers);
}

/* Returns the greatest number of keys per tile that fits shared memory and, with scores, weights and sums, a thread's
 * registers. */
static int width_of(const hopper_variant *variant)
{
    enum {
        SHARED = 227 << 10,
        BARRIERS = 256,
        REGISTERS = 200,
        REGISTERS_THREE = 130,
        MOST = 176,
        BOUNDED = 128
    };
    const int lines = line_bytes(variant->size) + line_bytes(variant->values);
    const int room = SHARED - BARRIERS - cuda_hopper_rows(variant) * line_bytes(variant->size);
    const int registers =
        (variant->groups == 3 ? REGISTERS_THREE : REGISTERS) - variant->values / 2;
    int width = room / (variant->stages * lines);
    width = (int)at_most(width, registers * 4 / 3);
    width =
        (int)at_most(width, variant->bounds || variant->tables || variant->mask ? BOUNDED : MOST);
    return width / STEP * STEP;
}

void cuda_hopper_variant_of(const tn_op *op, hopper_variant *out)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    const int size = (int)cuda_round_up(at->size, STEP);
    const int values = (int)cuda_round_up(at->value_size, STEP);
    const int mask = cuda_attention_kind(&op->operand[TN_ATTENTION_MASK]);
    *out = (hopper_variant){
        .size = size < CHUNK ? CHUNK : size,
        .values = values < CHUNK ? CHUNK : values,
        .stages = HOPPER_STAGES,
        .bounds = at->left >= 0 || mask ? 2 : at->right >= 0,
        .tables = (op->uses & (TN_ATTENTION_USES_PACKED | TN_ATTENTION_USES_LENGTHS)) != 0,
        .mask = mask,
        .scores = at->softcap != 0 ? 2 : !(at->scale >= FLT_MIN) || mask > 1};
    out->groups = out->size <= CHUNK && out->values <= CHUNK ? 3 : 2;
    out->width = width_of(out);
}

/* Returns how many heads have keys and values that fit a part of the second-level cache together. */
static int64_t section_of(const tn_attention_op *at)
{
    enum { CACHED = 32 << 20 };
    const double bytes = (double)at->keys * (double)(at->size + at->value_size) * sizeof(uint16_t) *
                         (double)at->groups / (double)at->heads;
    const double heads = bytes > 0 ? fmin(CACHED / bytes, INT32_MAX) : 1;
    return heads < 1 ? 1 : at_most((int64_t)heads, at->batch * at->heads);
}

void cuda_hopper_counts_of(const tn_op *op, const hopper_variant *variant, hopper_counts *out)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    *out = (hopper_counts){
        .all_heads = (int)(at->batch * at->heads),
        .blocks = (int)cuda_tiles_along(at->queries, cuda_hopper_rows(variant)),
        .section = (int)section_of(at),
        .sorted = at->left >= 0 || at->right >= 0,
        .queries = (int)at->queries,
        .keys = (int)at->keys,
        .left = at->left < 0 ? HOPPER_FAR : (int)at_most(at->left, HOPPER_FAR),
        .right = at->right < 0 ? HOPPER_FAR : (int)at_most(at->right, HOPPER_FAR),
        .shift = (int)at->shift,
        .bottom = at->corner == TN_CORNER_BOTTOM_RIGHT,
    };
}

tn_status cuda_hopper_admit_device(const tn_query *query, tn_refusal *why)
{
    enum { HOPPER = 90 };
    const tn_device_properties *device = query->device;
    const bool known = device && device->known & TN_DEVICE_KNOWS(capability);
    const int64_t found = known ? device->capability.major * 10 + device->capability.minor : HOPPER;
    return found == HOPPER ? TN_OK
                           : cuda_refuse(why, TN_REFUSE_DEVICE, "capability", HOPPER, found,
                                         "capability times ten: it uses instructions of 9.0 alone");
}

/* The kernel adds up to three positions, and numbers tiles, in 32 bits. */
static tn_status admit_counts(const tn_op *op, tn_refusal *why)
{
    enum { MOST = 1 << 27, TILES = 1 << 30 };
    const tn_attention_op *at = TN_PARAMS(op, attention);
    const cuda_count counts[] = {{"batch", at->batch},
                                 {"heads", at->heads},
                                 {"queries", at->queries},
                                 {"keys", at->keys},
                                 {"queries of all", op->operand[TN_ATTENTION_Q].shape[2]},
                                 {"keys of all", op->operand[TN_ATTENTION_K].shape[2]},
                                 {"shift", at->shift < 0 ? -at->shift : at->shift}};
    const double tiles =
        (double)at->batch * (double)at->heads * (double)cuda_tiles_along(at->queries, CHUNK);
    if (at->batch < 1 || at->heads < 1 || at->queries < 1 || at->keys < 1)
        return cuda_refuse(why, TN_REFUSE_SHAPE, "elements", 1, 0, "the problem is empty");
    tn_status status =
        cuda_admit_counts(counts, sizeof counts / sizeof counts[0], MOST, "split it", why);
    return status || tiles <= TILES ? status
                                    : cuda_refuse(why, TN_REFUSE_SHAPE, "blocks", TILES,
                                                  (int64_t)tiles, "split queries or the batch");
}

tn_status cuda_hopper_admit_operand(const tn_op *op, int32_t operand, const char *name,
                                    tn_refusal *why)
{
    enum { STRIDE_BITS = 39 };
    const tn_layout *layout = &op->operand[operand];
    if (layout->alignment < CUDA_VECTOR)
        return tn_refuse(why, TN_REFUSE_ALIGNMENT, name, CUDA_VECTOR, layout->alignment);
    for (int32_t d = 0; d < 4; d++) {
        const int64_t stride = layout->stride[d];
        if (layout->shape[d] == 1)
            continue;
        if (d == 3 && stride != 1)
            return cuda_refuse(why, TN_REFUSE_STRIDE, name, 1, stride,
                               "the elements of a row must be contiguous");
        if (d < 3 &&
            (stride < layout->shape[3] || stride % CUDA_ATTENTION_CHUNK || stride >> STRIDE_BITS))
            return cuda_refuse(why, TN_REFUSE_STRIDE, name, CUDA_ATTENTION_CHUNK, stride,
                               "strides must be multiples of 8 elements, and no rows may overlap");
    }
    return TN_OK;
}

static tn_status admit_layouts(const tn_op *op, tn_refusal *why)
{
    const tn_layout *out = &op->operand[TN_ATTENTION_OUT], *lse = &op->operand[TN_ATTENTION_LSE];
    tn_status status = cuda_hopper_admit_operand(op, TN_ATTENTION_Q, "q", why);
    if (!status)
        status = cuda_hopper_admit_operand(op, TN_ATTENTION_K, "k", why);
    if (!status)
        status = cuda_hopper_admit_operand(op, TN_ATTENTION_V, "v", why);
    if (!status && out->shape[3] > 1 && out->stride[3] != 1)
        status = cuda_refuse(why, TN_REFUSE_STRIDE, "out", 1, out->stride[3],
                             "the elements of a row must be contiguous");
    if (!status && lse->dtype && lse->dtype != TN_F32)
        status = tn_refuse(why, TN_REFUSE_DTYPE, "lse", TN_F32, lse->dtype);
    return status;
}

tn_status cuda_hopper_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    (void)row;
    tn_status status = cuda_hopper_admit_device(query, why);
    if (!status)
        status = cuda_attention_admit_chunks(query->op, SIZE_MOST, why);
    if (!status)
        status = admit_counts(query->op, why);
    if (!status)
        status = cuda_attention_admit_numbers(query->op, why);
    if (!status)
        status = admit_layouts(query->op, why);
    return status ? status : cuda_admit_alignment(query, why);
}

/* The mean number of tiles of keys of a block, estimated from a few blocks. */
static double tiles_of(const hopper_counts *counts, const hopper_variant *variant)
{
    enum { LOOKS = 16 };
    const int rows = cuda_hopper_rows(variant);
    double sum = 0;
    for (int i = 0; i < LOOKS; i++) {
        const int block = (int)((int64_t)counts->blocks * (2 * i + 1) / (2 * LOOKS));
        const hopper_keys seen = hopper_keys_of(counts, block * rows, rows, variant->width);
        sum += seen.end - seen.first;
    }
    return sum / LOOKS;
}

/* The time of a block of rows besides its tiles of keys, in microseconds (docs/kernels/hopper-attention.md). */
static const double block_us = 2;

/* Operations per microsecond of a multiprocessor of an H200 for the tiles of keys: with block_us, they give the
 * speeds of docs/kernels/hopper-attention.md within 4 %, and that with a bool mask. Head sizes of 192, other masks and
 * scores with a softcap or a scale that is not positive were not measured. */
static double rate_of(const hopper_variant *variant)
{
    const int greater = variant->size > variant->values ? variant->size : variant->values;
    const double rate = greater <= 64    ? 4.1e6
                        : greater <= 96  ? 4.4e6
                        : greater <= 128 ? 4.9e6
                        : greater <= 192 ? 5.3e6
                                         : 5.7e6;
    return variant->mask ? rate * 0.27 : variant->scores ? rate * 0.6 : rate;
}

/* How much faster tiles are when at least half of a block's rows do not exist, from docs/kernels/decode-attention.md. */
static double gain_of(const tn_attention_op *at, const hopper_variant *variant)
{
    static const double gain = 1.27;
    return at->queries <= cuda_hopper_rows(variant) / 2 ? gain : 1;
}

double cuda_hopper_cost(const tn_kernel_row *row, const tn_query *query)
{
    enum { PROCESSORS = 132 };
    const int64_t found = query->device ? query->device->multi_processor_count : 0;
    const double processors = (double)(found > 0 ? found : PROCESSORS);
    const tn_attention_op *at = TN_PARAMS(query->op, attention);
    hopper_variant variant;
    hopper_counts counts;
    if (cuda_attention_admit_chunks(query->op, SIZE_MOST, NULL) || admit_counts(query->op, NULL))
        return 0; /* costs are asked for before `admit`; other sizes have no tiles */
    cuda_hopper_variant_of(query->op, &variant);
    cuda_hopper_counts_of(query->op, &variant, &counts);
    const double blocks = (double)counts.all_heads * (double)counts.blocks;
    const double flops =
        2.0 * cuda_hopper_rows(&variant) * variant.width * (variant.size + variant.values);
    const double each = block_us + tiles_of(&counts, &variant) * flops /
                                       (rate_of(&variant) * gain_of(at, &variant));
    const double turns = counts.sorted ? blocks / processors : ceil(blocks / processors);
    const double compute = each * (turns < 1 ? 1 : turns);
    const double move = (double)at->batch * (double)at->groups * cuda_attention_keys_seen(at) *
                        (double)(at->size + at->value_size) * sizeof(uint16_t) / row->bytes_per_us;
    return row->overhead_us + (compute > move ? compute : move);
}
