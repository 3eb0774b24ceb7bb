/* Shared code of the elementwise and row ops: checks, and what follows from their layouts. */
#include "elementwise.h"

#include "op_check.h"
#include "tenon/dtype.h"

#include <inttypes.h>

const char *const tni_elementwise_in_out[] = {"in", "out", NULL};

/* By bit of TN_ELEMENTWISE_USES_.... */
const char *const tni_elementwise_uses[] = {"strides", "broadcast", "out",     "in-place", "log",
                                            "weight",  "bias",      "partial", NULL};

const char *tni_elementwise_kind(const tn_op *op)
{
    return tni_op_class_of(op->kind)->elementwise->kinds[TN_PARAMS(op, elementwise)->kind];
}

tn_status tni_elementwise_args(const char *where, const void *args, size_t needed, tn_error *err)
{
    if (!args)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "args is NULL");
    if (*(const size_t *)args < needed)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "args->struct_size: expected at least %zu, got %zu; make args with "
                       "TN_ARGS(%s, ...)",
                       needed, *(const size_t *)args, where + strlen("tn_"));
    return TN_OK;
}

tn_status tni_elementwise_reserved(const char *where, const char *name, uint32_t bits,
                                   tn_error *err)
{
    if (bits)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "args->%s has bits that this version does not know", name);
    return TN_OK;
}

tn_status tni_elementwise_switch(const char *where, const char *name, int32_t value, tn_error *err)
{
    if (value & ~1)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s: expected 0 or 1, got %d", name,
                       (int)value);
    return TN_OK;
}

static const char *where_of(const tn_op *op)
{
    return tni_op_class_of(op->kind)->where;
}

tn_status tni_elementwise_check_kind(const tn_op *op, tn_error *err)
{
    const char *const *words = tni_op_class_of(op->kind)->elementwise->kinds;
    int32_t count = 0;
    while (words[count])
        count++;
    if (TN_PARAMS(op, elementwise)->kind < 0 || TN_PARAMS(op, elementwise)->kind >= count)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                       "kind: expected 0 (%s) to %d (%s), got %d", words[0], (int)count - 1,
                       words[count - 1], (int)TN_PARAMS(op, elementwise)->kind);
    return TN_OK;
}

uint32_t tni_elementwise_family(tn_dtype dtype)
{
    switch (dtype & 0xFF) {
    case TN_DTYPE_CODE_BOOL: return TNI_DTYPE_BOOL;
    case TN_DTYPE_CODE_INT:
    case TN_DTYPE_CODE_UINT: return TNI_DTYPE_INTEGER;
    case TN_DTYPE_CODE_COMPLEX: return TNI_DTYPE_COMPLEX;
    default: return TNI_DTYPE_FLOAT;
    }
}

/* "integers, floats or complex numbers" */
static void write_families(uint32_t families, char *out, size_t size)
{
    static const char *const words[] = {"bool", "integers", "floats", "complex numbers"};
    size_t length = 0;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (!(families >> i & 1))
            continue;
        const char *between = length == 0 ? "" : families >> (i + 1) ? ", " : " or ";
        length += (size_t)snprintf(out + length, size - length, "%s%s", between, words[i]);
    }
}

tn_status tni_elementwise_check_family(const tn_op *op, uint32_t families, tn_error *err)
{
    tn_dtype in = op->operand[TN_ELEMENTWISE_IN].dtype;
    char text[64];
    if (tni_elementwise_family(in) & families)
        return TN_OK;
    write_families(families, text, sizeof text);
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                   "%s: in: expected %s, got %s; cast it first", tni_elementwise_kind(op), text,
                   tn_dtype_name(in));
}

tn_status tni_elementwise_check_floats(const tn_op *op, tn_error *err)
{
    tn_dtype in = op->operand[TN_ELEMENTWISE_IN].dtype;
    if (in != TN_F64 && in != TN_F32 && in != TN_F16 && in != TN_BF16)
        return tn_fail(err, TN_UNSUPPORTED, 0, where_of(op),
                       "in: expected f64, f32, f16 or bf16, got %s", tn_dtype_name(in));
    return TN_OK;
}

tn_dtype tni_elementwise_wider(tn_dtype dtype)
{
    return dtype == TN_F16 || dtype == TN_BF16 ? TN_F32 : TN_DTYPE_NONE;
}

tn_status tni_elementwise_check_out(const tn_op *op, tn_error *err)
{
    tn_dtype in = op->operand[TN_ELEMENTWISE_IN].dtype, out = op->operand[TN_ELEMENTWISE_OUT].dtype;
    if (out == in || out == tni_elementwise_wider(in))
        return TN_OK;
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                   "out: expected the dtype of in, %s%s, got %s", tn_dtype_name(in),
                   tni_elementwise_wider(in) ? ", or f32" : "", tn_dtype_name(out));
}

tn_status tni_elementwise_check_rank(const tn_op *op, tn_error *err)
{
    if (op->operand[TN_ELEMENTWISE_IN].rank < 1)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                       "in: expected at least 1 dimension, got 0");
    return TN_OK;
}

tn_status tni_elementwise_check_shape(const tn_op *op, tn_error *err)
{
    const tn_layout *in = &op->operand[TN_ELEMENTWISE_IN], *out = &op->operand[TN_ELEMENTWISE_OUT];
    if (out->rank != in->rank)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                       "out: expected %d dimensions, as many as in, got %d", (int)in->rank,
                       (int)out->rank);
    for (int32_t i = 0; i < in->rank; i++) {
        if (out->shape[i] != in->shape[i])
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                           "out: dimension %d: expected %" PRId64 ", the size of in, got %" PRId64,
                           (int)i, in->shape[i], out->shape[i]);
    }
    return TN_OK;
}

tn_status tni_elementwise_check_table(const tn_op *op, int32_t index, tn_error *err)
{
    tn_dtype in = op->operand[TN_ELEMENTWISE_IN].dtype, its = op->operand[index].dtype;
    if (!its || its == in || its == TN_F32)
        return TN_OK;
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                   "%s: expected the dtype of in, %s%s, got %s",
                   tni_op_class_of(op->kind)->operands[index], tn_dtype_name(in),
                   in == TN_F32 ? "" : ", or f32", tn_dtype_name(its));
}

tn_status tni_elementwise_check_rows(const tn_op *op, tn_error *err)
{
    tn_status status = TN_OK;
    if (tni_op_class_of(op->kind)->elementwise->kinds)
        status = tni_elementwise_check_kind(op, err);
    if (!status)
        status = tni_elementwise_check_floats(op, err);
    if (!status)
        status = tni_elementwise_check_out(op, err);
    if (!status)
        status = tni_elementwise_check_rank(op, err);
    return status ? status : tni_elementwise_check_shape(op, err);
}

/* Returns the bits that an operand's strides require. Broadcast dimensions do not count as
 * STRIDES. */
static uint64_t uses_of_strides(const tn_op *op, int32_t index, int32_t rows_from)
{
    const tn_layout *layout = &op->operand[index];
    bool row = rows_from > 0 && index >= rows_from;
    int32_t first = row && layout->dtype ? layout->rank - 1 : 0;
    uint64_t uses = 0;
    int64_t step = 1;
    for (int32_t i = layout->rank; i-- > first;) {
        if (layout->shape[i] <= 1)
            continue;
        if (layout->stride[i] == 0 && !row) {
            uses |= TN_ELEMENTWISE_USES_BROADCAST;
            continue;
        }
        uses |= layout->stride[i] != step ? TN_ELEMENTWISE_USES_STRIDES : 0;
        step *= layout->shape[i];
    }
    return uses;
}

static uint64_t all_uses(const tn_op *op)
{
    const tni_elementwise *own = tni_op_class_of(op->kind)->elementwise;
    tn_dtype in = op->operand[TN_ELEMENTWISE_IN].dtype, out = op->operand[TN_ELEMENTWISE_OUT].dtype;
    uint64_t uses = op->uses & (TN_ELEMENTWISE_USES_IN_PLACE | TN_ELEMENTWISE_USES_LOG);
    for (int32_t i = 0; i < op->count; i++)
        uses |= uses_of_strides(op, i, own->rows_from);
    if (in && in != out && !own->needs_out)
        uses |= TN_ELEMENTWISE_USES_OUT_DTYPE;
    return uses | (own->uses ? own->uses(op) : 0);
}

tn_status tni_elementwise_finish(tn_op *op, tn_error *err)
{
    const tn_layout *in = &op->operand[TN_ELEMENTWISE_IN], *out = &op->operand[TN_ELEMENTWISE_OUT];
    bool same =
        in->dtype == out->dtype && in->alignment == out->alignment && tni_strides_same(in, out);
    if (op->uses & TN_ELEMENTWISE_USES_IN_PLACE && !same)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                       "in place, out needs the dtype, strides and alignment of in");
    TN_PARAMS_MUTABLE(op, elementwise)->elements = tni_layout_elements(out);
    op->uses = all_uses(op);
    return TN_OK;
}

tn_status tni_elementwise_finish_rows(tn_op *op, tn_error *err)
{
    const tn_layout *in = &op->operand[TN_ELEMENTWISE_IN];
    TN_PARAMS_MUTABLE(op, elementwise)->rows = 1;
    for (int32_t i = 0; i < in->rank - 1; i++)
        TN_PARAMS_MUTABLE(op, elementwise)->rows *= in->shape[i];
    return tni_elementwise_finish(op, err);
}

double tni_elementwise_bytes(const tn_op *op)
{
    double bytes = 0;
    for (int32_t i = 0; i < op->count; i++)
        bytes += tni_layout_bytes(&op->operand[i]);
    return bytes;
}

void tni_elementwise_cost_simple(const tn_op *op, double *out_flops, double *out_bytes)
{
    *out_flops = (double)TN_PARAMS(op, elementwise)->elements;
    *out_bytes = tni_elementwise_bytes(op);
}

double tni_elementwise_terms(const tn_op *op)
{
    return (double)TN_PARAMS(op, elementwise)->size;
}

size_t tni_elementwise_words(const tn_op *op, uint64_t *out)
{
    out[0] = (uint64_t)TN_PARAMS(op, elementwise)->kind;
    out[1] = (uint64_t)TN_PARAMS(op, elementwise)->axes;
    return 2;
}

void tni_elementwise_free(tn_op *op, uint64_t dims)
{
    if (!(dims & TN_ELEMENTWISE_DIM_ALL))
        return;
    for (int32_t i = 0; i < op->count; i++) {
        for (int32_t d = 0; d < op->operand[i].rank; d++)
            op->operand[i].shape[d] = 0;
    }
    TN_PARAMS_MUTABLE(op, elementwise)->elements = TN_PARAMS_MUTABLE(op, elementwise)->rows =
        TN_PARAMS_MUTABLE(op, elementwise)->size = 0;
}
