#include "inputs.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/dtype.h"
#include "device/tensor/tensor.h"
#include "op/element.h"
#include "op/op_check.h"
#include "op/walk.h"
#include "tenon/machine.h"
#include "tenon/module/op/elementwise.h"
#include "tenon/random.h"

#include <math.h>

static const char where[] = "tn_check";

enum { GUARD = 256, GUARD_BYTE = 0xC3, POISON_BYTE = 0xFF };

static const tni_op_check *check_of(const tn_op *op)
{
    return tni_op_class_of(op->kind)->check;
}

bool tni_op_reads_output(const tn_op *op)
{
    return check_of(op)->reads_output && check_of(op)->reads_output(op);
}

static bool is_in_place(const tn_op *op)
{
    return tni_op_class_of(op->kind)->may_be_in_place && op->uses & TN_ELEMENTWISE_USES_IN_PLACE;
}

/* Computes the size of a block with guards on both sides, and the offset of the first element, whose
 * address has the layout's alignment and no larger one. Returns false on overflow. */
static bool measure_block(const tn_layout *layout, tni_operand *out)
{
    tni_layout extent;
    size_t odd = layout->alignment < TN_OP_ALIGNMENT_MAX ? (size_t)layout->alignment : 0;
    size_t first, bytes;
    if (tni_layout_of(layout->dtype, layout->shape, layout->stride, layout->rank, where, "operand",
                      &extent, NULL))
        return false;
    *out = (tni_operand){0};
    if (extent.elements == 0)
        return true;
    if (!tni_align_size((size_t)-extent.low, TN_OP_ALIGNMENT_MAX, &first) ||
        !tni_add_size(first, GUARD + odd, &first) ||
        !tni_add_size(first, (size_t)extent.high, &bytes) || !tni_add_size(bytes, GUARD, &bytes))
        return false;
    out->first = first;
    out->bytes = bytes;
    return true;
}

size_t tni_operands_bytes(const tn_op *op)
{
    size_t all = 0;
    for (int32_t i = 0; i < op->count; i++) {
        tni_operand block;
        if (op->operand[i].dtype &&
            (!measure_block(&op->operand[i], &block) || !tni_add_size(all, block.bytes, &all)))
            return SIZE_MAX;
    }
    return all;
}

static tn_status create_block(tni_operands *operands, int32_t index, tn_error *err)
{
    const char *name = tni_op_class_of(operands->op->kind)->operands[index];
    tni_operand *block = &operands->operand[index];
    if (!measure_block(&operands->op->operand[index], block))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s exceeds the address space", name);
    if (block->bytes == 0)
        return TN_OK;
    block->host = tni_alloc_aligned(block->bytes, TN_OP_ALIGNMENT_MAX);
    if (!block->host)
        return tni_no_memory(err, where, name);
    return tn_memory_alloc(operands->device, block->bytes, "check", &block->device, err);
}

/* Checks that the blocks and a copy of each fit into memory: a system that overcommits memory would
 * kill the process later. */
static tn_status check_memory(const tn_op *op, const tn_device *device, tn_error *err)
{
    enum { MODEST = 256 << 20 };
    size_t bytes = tni_operands_bytes(op), copies = tni_memory_is_host(device) ? 3 : 2;
    tn_machine *machine = NULL;
    if (bytes < MODEST || tn_machine_create(&machine, NULL))
        return TN_OK;
    const tn_fact available = tn_machine_facts_get(machine)->memory_available;
    tn_machine_release(machine);
    if (!available.known || (double)bytes * (double)copies <= (double)available.value)
        return TN_OK;
    return tn_fail(err, TN_OUT_OF_MEMORY, 0, where,
                   "the operands and their copies need %.1f GiB, but only %.1f GiB are "
                   "available",
                   (double)bytes * (double)copies * 0x1p-30, (double)available.value * 0x1p-30);
}

tn_status tni_operands_create(const tn_op *op, tn_device *device, tni_operands *out, tn_error *err)
{
    tn_status status = check_memory(op, device, err);
    *out = (tni_operands){.op = op,
                          .device = device,
                          .output = tni_op_class_of(op->kind)->output,
                          .in_place = is_in_place(op)};
    for (int32_t i = 0; i < op->count && !status; i++) {
        if (op->operand[i].dtype && !(out->in_place && i == out->output))
            status = create_block(out, i, err);
    }
    return status;
}

void tni_operands_release(tni_operands *operands)
{
    for (int32_t i = 0; i < TN_OP_OPERANDS_MAX; i++) {
        tni_release(operands->operand[i].host);
        if (operands->operand[i].device)
            tn_memory_free(operands->device, operands->operand[i].device);
        operands->operand[i] = (tni_operand){0};
    }
}

const tni_operand *tni_operands_at(const tni_operands *operands, int32_t index)
{
    return &operands->operand[operands->in_place && index == operands->output ? 0 : index];
}

/* A sequence of random numbers in [0, 1). */
typedef struct source {
    tn_generator *generator;
    double numbers[512];
    size_t left;
    tn_status status;
} source;

static double draw_number(source *from)
{
    const size_t all = sizeof from->numbers / sizeof from->numbers[0];
    if (from->left == 0 && !from->status) {
        from->status =
            tn_random_fill_uniform(from->generator, TN_F64, from->numbers, (int64_t)all, NULL);
        from->left = all;
    }
    return from->status ? 0 : from->numbers[--from->left];
}

static double draw_for_table(void *user)
{
    return draw_number(user);
}

/* Random contents of an operand. */
typedef struct spread {
    tni_spread range;
    bool bits;        /* random bits instead */
    double nonfinite; /* share of NaN and infinity */
    bool only_nan;    /* no infinity */
} spread;

static tni_spread float_range(const tn_op *op, int32_t operand, bool plain)
{
    if (plain)
        return (tni_spread){.low = 0.25, .high = 1};
    return check_of(op)->floats ? check_of(op)->floats(op, operand)
                                : (tni_spread){.low = -1, .high = 1};
}

static spread usual_spread_of(const tn_op *op, int32_t operand, bool plain)
{
    const tni_op_check *check = check_of(op);
    tn_dtype dtype = op->operand[operand].dtype;
    bool is_signed = (dtype & 0xFF) == TN_DTYPE_CODE_INT, integer = tni_dtype_is_integer(dtype);
    bool small = tni_dtype_bytes(dtype) == 1 && !integer;
    if (dtype == TN_BOOL)
        return (spread){.range = {.low = 0, .high = 2}};
    if ((small && !check->computes_f8) || (check->bits == TNI_BITS_ALWAYS && !plain))
        return (spread){.bits = true};
    if (!integer)
        return (spread){.range = float_range(op, operand, plain)};
    if (check->bits == TNI_BITS_OF_INTEGERS)
        return (spread){.bits = true};
    return (spread){.range = {.low = is_signed ? -100 : 0, .high = 100}};
}

static spread spread_of(const tn_op *op, int32_t operand, tni_inputs inputs)
{
    tn_dtype dtype = op->operand[operand].dtype;
    spread in = usual_spread_of(op, operand, inputs == TNI_INPUTS_PLAIN);
    tni_reads reads = check_of(op)->reads ? check_of(op)->reads(op, operand) : (tni_reads){0};
    if (inputs != TNI_INPUTS_NONFINITE || reads.elements == 0 || tni_dtype_is_integer(dtype) ||
        tni_dtype_is_complex(dtype))
        return in;
    in.nonfinite = 0.5 / reads.elements;
    in.only_nan = reads.only_nan;
    return in;
}

static double draw_nonfinite(source *from, bool only_nan)
{
    static const double numbers[] = {NAN, INFINITY, -INFINITY};
    return numbers[only_nan ? 0 : (size_t)(draw_number(from) * 3)];
}

/* Returns a number that often reveals errors: limits, ties of rounding, NaN. */
static double special_number(double pick)
{
    static const double numbers[] = {0,      -0.0,    1,        -1,          INFINITY, -INFINITY,
                                     NAN,    0.5,     1.5,      -2.5,        127.5,    255.5,
                                     65519,  65520,   0x1p-24,  0x1.8p-25,   0x1p31,   -0x1p31,
                                     0x1p63, -0x1p63, 0x1p-149, 3.4028235e38};
    const size_t count = sizeof numbers / sizeof numbers[0];
    return numbers[(size_t)(pick * (double)count)];
}

static void write_random(source *from, const spread *in, tn_dtype dtype, unsigned char *at)
{
    enum { SPECIAL_IN = 8 };
    double x = draw_number(from), y = draw_number(from);
    const double low = in->range.low, width = in->range.high - low;
    tni_number value = {low + width * x, low + width * y};
    if (in->bits) {
        for (int64_t i = 0; i < tni_dtype_bytes(dtype); i++)
            at[i] = (unsigned char)(draw_number(from) * 256);
        return;
    }
    if (tni_dtype_is_integer(dtype))
        value.re = floor(value.re);
    else if (in->range.special && !tni_dtype_is_complex(dtype) && y * SPECIAL_IN < 1)
        value.re = special_number(y * SPECIAL_IN);
    if (in->nonfinite > 0 && draw_number(from) < in->nonfinite)
        value.re = draw_nonfinite(from, in->only_nan);
    tni_element_write(dtype, value, at);
}

static tn_status fill_block(tni_operands *operands, int32_t index, tni_inputs inputs, source *from)
{
    const tn_layout *layout = &operands->op->operand[index];
    tni_operand *block = &operands->operand[index];
    bool poison = tni_op_writes(tni_op_class_of(operands->op->kind), index) &&
                  !tni_op_reads_output(operands->op);
    size_t size = (size_t)tni_dtype_bytes(layout->dtype);
    spread in = spread_of(operands->op, index, inputs);
    tni_place place = {{0}};
    memset(block->host, GUARD_BYTE, block->bytes);
    if (check_of(operands->op)->is_table && check_of(operands->op)->is_table(operands->op, index)) {
        check_of(operands->op)->fill_table(operands, index, draw_for_table, from);
        return from->status;
    }
    do {
        unsigned char *at =
            block->host + ((int64_t)block->first + tni_place_in(&place, layout) * (int64_t)size);
        if (poison)
            memset(at, POISON_BYTE, size);
        else
            write_random(from, &in, layout->dtype, at);
    } while (tni_place_next(&place, layout) && !from->status);
    return from->status;
}

tn_status tni_operands_fill(tni_operands *operands, uint64_t seed, tni_inputs inputs, tn_error *err)
{
    source from = {0};
    tn_status status = tn_generator_create(seed, &from.generator, err);
    for (int32_t i = 0; i < operands->op->count && !status; i++) {
        if (operands->operand[i].host)
            status = fill_block(operands, i, inputs, &from);
    }
    tn_generator_release(from.generator);
    return status;
}

tn_status tni_operands_upload(const tni_operands *operands, tn_stream *stream, tn_error *err)
{
    tn_status status = TN_OK;
    for (int32_t i = 0; i < operands->op->count && !status; i++) {
        const tni_operand *block = &operands->operand[i];
        if (block->host)
            status = tn_memory_copy(TN_ARGS(memory_copy, .to_device = operands->device,
                                            .to = block->device, .from = block->host,
                                            .bytes = block->bytes, .stream = stream),
                                    err);
    }
    return status ? status : tn_stream_synchronize(stream, err);
}

tn_status tni_operands_download(const tni_operands *operands, int32_t index, tn_stream *stream,
                                void *to, tn_error *err)
{
    const tni_operand *block = tni_operands_at(operands, index);
    tn_status status = tn_memory_copy(TN_ARGS(memory_copy, .to = to, .from = block->device,
                                              .from_device = operands->device,
                                              .bytes = block->bytes, .stream = stream),
                                      err);
    return status ? status : tn_stream_synchronize(stream, err);
}

void tni_operands_on_device(const tni_operands *operands, tni_problem *out)
{
    out->op = *operands->op;
    out->device = operands->device;
    for (int32_t i = 0; i < operands->op->count; i++) {
        const tni_operand *block = tni_operands_at(operands, i);
        out->data[i] = block->device ? (char *)block->device + block->first : NULL;
    }
}

void tni_operands_on_host(const tni_operands *operands, void *out[TN_OP_OPERANDS_MAX])
{
    for (int32_t i = 0; i < operands->op->count; i++) {
        const tni_operand *block = tni_operands_at(operands, i);
        out[i] = block->host ? block->host + block->first : NULL;
    }
}
