/* How a problem of attention is split into blocks, what the kernels support, and what they cost. */
#include "attention_cuda.h"

#include "tenon/module/attention.h"

#include <float.h>
#include <math.h>

/* As in the kernels' sources: rows per block of attention_many, also for f64, and of attention_few. */
enum { MANY = 64, MANY_F64 = 32, FEW = 4 };

/* attention_few is faster up to ROWS_FEW rows per group, or up to BLOCKS_FEW blocks of attention_many in total, and
 * BLOCKS_MOST of its blocks keep a device busy. Chosen for the 132 multiprocessors of an H200; not measured against
 * each other. */
enum { ROWS_FEW = 24, BLOCKS_FEW = 44, BLOCKS_MOST = 528 };

/* Minimum number of keys per part. */
enum { PART_LEAST = 128 };

int64_t cuda_attention_tile(const tn_op *op)
{
    return op->operand[TN_ATTENTION_Q].dtype == TN_F64 ? MANY_F64 : MANY;
}

/* Returns the keys per part, which must not depend on other sequences. Packed sequences are not split, because
 * `queries` is the length of the longest one. */
static int64_t fixed_part(const tn_op *op)
{
    enum { PART = 2048, QUERIES = 16 };
    const tn_attention_op *at = TN_PARAMS(op, attention);
    return at->queries <= QUERIES && !(op->uses & TN_ATTENTION_USES_PACKED) ? PART : at->keys;
}

void cuda_attention_shape_of(const tn_kernel_row *row, const tn_op *op, cuda_attention_shape *out)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    const int64_t many = cuda_attention_tile(op);
    const int64_t ratio = at->groups > 0 ? at->heads / at->groups : 0;
    *out = (cuda_attention_shape){
        .lots = at->batch * at->groups, .rows = at->queries * ratio, .parts = 1, .each = many};
    out->blocks = cuda_tiles_along(out->rows, many);
    out->part = at->keys;
    out->few = cuda_attention_is_invariant(row) || out->rows <= ROWS_FEW ||
               out->lots * out->blocks <= BLOCKS_FEW;
    if (!out->few)
        return;
    out->each = FEW;
    out->blocks = cuda_tiles_along(out->rows, FEW);
    const int64_t least = cuda_tiles_along(at->keys, PART_LEAST), all = out->lots * out->blocks;
    const int64_t most = all > 0 && all < BLOCKS_MOST ? BLOCKS_MOST / all : 1;
    out->part = cuda_attention_is_invariant(row) ? fixed_part(op)
                                                 : cuda_tiles_along(least, most) * PART_LEAST;
    out->parts = at->keys > out->part ? cuda_tiles_along(at->keys, out->part) : 1;
}

/* Positions and block numbers have 32 bits. */
enum { PLACES_MOST = 1 << 30 };

tn_status cuda_attention_admit_sizes(const tn_op *op, int64_t most, tn_refusal *why)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    const int64_t greater = at->size > at->value_size ? at->size : at->value_size;
    return greater <= most
               ? TN_OK
               : cuda_refuse(why, TN_REFUSE_SHAPE, "head size", most, greater,
                             "a head's sums are kept in registers: split values, and add up scores "
                             "of parts of keys by hand");
}

tn_status cuda_attention_admit_ampere(const tn_query *query, tn_refusal *why)
{
    enum { AMPERE = 80 };
    const tn_device_properties *device = query->device;
    const bool known = device && device->known & TN_DEVICE_KNOWS(capability);
    const int64_t found = known ? device->capability.major * 10 + device->capability.minor : AMPERE;
    return found >= AMPERE ? TN_OK
                           : cuda_refuse(why, TN_REFUSE_DEVICE, "capability", AMPERE, found,
                                         "capability times ten: it copies to shared memory ahead");
}

tn_status cuda_attention_admit_chunks(const tn_op *op, int64_t most, tn_refusal *why)
{
    enum { CHUNK = CUDA_ATTENTION_CHUNK };
    const tn_attention_op *at = TN_PARAMS(op, attention);
    const tn_status status = cuda_attention_admit_sizes(op, most, why);
    const int64_t less = at->size < at->value_size ? at->size : at->value_size;
    const int64_t odd = at->size % CHUNK ? at->size : at->value_size;
    if (status)
        return status;
    if (odd % CHUNK || less < CHUNK)
        return cuda_refuse(why, TN_REFUSE_SHAPE, "head size", CHUNK, odd % CHUNK ? odd : less,
                           "head sizes must be multiples of 8: 16 bytes are copied at a time");
    return TN_OK;
}

tn_status cuda_attention_admit_shared(const tn_query *query, int64_t needed, tn_refusal *why)
{
    const int64_t most = query->device ? query->device->shared_memory_per_block : 0;
    return most <= 0 || needed <= most ? TN_OK
                                       : cuda_refuse(why, TN_REFUSE_DEVICE, "shared memory", needed,
                                                     most, "smaller heads need less");
}

tn_status cuda_attention_admit_rows(const tn_op *op, int32_t operand, const char *name,
                                    tn_refusal *why)
{
    enum { CHUNK = CUDA_ATTENTION_CHUNK };
    const tn_layout *layout = &op->operand[operand];
    if (layout->alignment < CUDA_VECTOR)
        return tn_refuse(why, TN_REFUSE_ALIGNMENT, name, CUDA_VECTOR, layout->alignment);
    for (int32_t d = 0; d < 4; d++) {
        const int64_t stride = layout->stride[d];
        if (layout->shape[d] == 1)
            continue;
        if (d == 3 ? stride != 1 : stride % CHUNK)
            return cuda_refuse(why, TN_REFUSE_STRIDE, name, d == 3 ? 1 : CHUNK, stride,
                               "rows must be contiguous, and strides multiples of 8 elements");
    }
    return TN_OK;
}

tn_status cuda_attention_admit_counts(const tn_op *op, tn_refusal *why)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    const bool paged =
        op->kind == TN_OP_ATTENTION && op->operand[TN_ATTENTION_PAGES].dtype != TN_DTYPE_NONE;
    const cuda_count counts[] = {{"batch", at->batch},
                                 {"heads", at->heads},
                                 {"queries", at->queries},
                                 {"keys", at->keys},
                                 {"pages", paged ? op->operand[TN_ATTENTION_K].shape[0] : 0}};
    tn_status status =
        cuda_admit_counts(counts, sizeof counts / sizeof counts[0], PLACES_MOST, "split it", why);
    if (status)
        return status;
    const double rows = (double)at->heads * (double)at->queries;
    const double all = rows * (double)at->batch, all_most = (double)PLACES_MOST * 64;
    if (rows > PLACES_MOST)
        return cuda_refuse(why, TN_REFUSE_SHAPE, "rows", PLACES_MOST, (int64_t)rows,
                           "split queries or heads");
    return all <= all_most ? TN_OK
                           : cuda_refuse(why, TN_REFUSE_SHAPE, "rows of all", (int64_t)all_most,
                                         (int64_t)all, "split the batch");
}

tn_status cuda_attention_admit_numbers(const tn_op *op, tn_refusal *why)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    const bool capped = at->softcap != 0;
    if (op->operand[TN_ATTENTION_Q].dtype == TN_F64)
        return TN_OK;
    if (fabs(at->scale) > FLT_MAX)
        return cuda_refuse(why, TN_REFUSE_FEATURE, "exponent of scale", FLT_MAX_EXP - 1,
                           ilogb(at->scale), "scores are of f32: a scale is below 2^128");
    return !capped || (at->softcap >= FLT_MIN && at->softcap <= FLT_MAX)
               ? TN_OK
               : cuda_refuse(why, TN_REFUSE_FEATURE, "exponent of softcap", FLT_MAX_EXP - 1,
                             ilogb(at->softcap),
                             "scores are of f32: a softcap is 0, or from 2^-126 to below 2^128");
}

static tn_status admit_blocks(const tn_kernel_row *row, const tn_op *op, tn_refusal *why)
{
    tn_status status = cuda_attention_admit_counts(op, why);
    if (status)
        return status;
    cuda_attention_shape shape;
    cuda_attention_shape_of(row, op, &shape);
    const double blocks = (double)shape.lots *
                          (double)(shape.parts > 1 ? shape.rows : shape.blocks) *
                          (double)shape.parts;
    return blocks <= PLACES_MOST ? TN_OK
                                 : cuda_refuse(why, TN_REFUSE_SHAPE, "blocks", PLACES_MOST,
                                               (int64_t)blocks, "split queries or the batch");
}

tn_status cuda_attention_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    enum { SIZE = 512, SIZE_F64 = 256 };
    const bool wide = query->op->operand[TN_ATTENTION_Q].dtype == TN_F64;
    tn_status status = cuda_attention_admit_sizes(query->op, wide ? SIZE_F64 : SIZE, why);
    if (!status)
        status = cuda_attention_admit_numbers(query->op, why);
    if (!status)
        status = admit_blocks(row, query->op, why);
    return status ? status : cuda_admit_alignment(query, why);
}

double cuda_attention_keys_seen(const tn_attention_op *at)
{
    enum { LOOKS = 16 };
    double seen = 0;
    int64_t first;
    if (at->left < 0 && at->right < 0)
        return (double)at->keys;
    for (int64_t i = 0; i < LOOKS; i++)
        seen += (double)tn_attention_seen(at, at->queries * (2 * i + 1) / (2 * LOOKS), at->queries,
                                          at->keys, &first);
    return seen / LOOKS;
}

/* Operations per multiprocessor of an H200, the share of a device's bandwidth, and microseconds before a block computes and
 * for joining parts, close to what `tenon bench` measured there. */
static const double many_flops_per_us = 1.6e5, few_flops_per_us = 1e5, share = 0.625;
static const double start_us = 2.2, join_us = 6;

/* Blocks are distributed evenly over multiprocessors, in whole blocks; few rows are limited by memory bandwidth,
 * which all blocks share. */
static double time_of(const tn_kernel_row *row, const tn_query *query)
{
    enum { PROCESSORS = 132 };
    const tn_attention_op *at = TN_PARAMS(query->op, attention);
    const int64_t found = query->device ? query->device->multi_processor_count : 0;
    const double processors = (double)(found > 0 ? found : PROCESSORS);
    const double elements = (double)(at->size + at->value_size),
                 keys = cuda_attention_keys_seen(at);
    const double bytes = (double)cuda_bytes_of(query->op->operand[TN_ATTENTION_Q].dtype);
    cuda_attention_shape shape;
    cuda_attention_shape_of(row, query->op, &shape);
    const double turns = ceil((double)(shape.lots * shape.blocks * shape.parts) / processors);
    const double flops = 2 * elements * keys / (double)shape.parts * (double)shape.each;
    const double compute = turns * flops / (shape.few ? few_flops_per_us : many_flops_per_us);
    const double bandwidth = query->device ? (double)query->device->memory_bandwidth / 1e6 : 0;
    const double rate = bandwidth > 0 ? bandwidth * share : row->bytes_per_us;
    const double move = (double)shape.lots * keys * elements * bytes / rate;
    return row->overhead_us + start_us + (shape.parts > 1 ? join_us : 0) +
           (compute > move ? compute : move);
}

double cuda_attention_cost(const tn_kernel_row *row, const tn_kernel_row *base,
                           const tn_query *query)
{
    if (admit_blocks(row, query->op, NULL))
        return 0;
    const double own = time_of(row, query), other = time_of(base, query);
    return row == base || own > other ? own : other * 1.01;
}
