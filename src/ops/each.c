/* What the helper ops share: checks, and what follows from their layouts. */
#include "each.h"

#include "fields.h"
#include "tenon/dtype.h"

#include <inttypes.h>

const char *const tni_each_in_out[] = {"in", "out", NULL};
const tn_setting tni_each_settings[] = {TNI_SETTINGS_OF_PLANS, -1};

#define WORD(NAME, number, word) word,
const char *const tni_each_uses[] = {TN_EACH_USES_LIST(WORD) NULL};
static const char *const unary_words[] = {TN_UNARY_LIST(WORD) NULL};
static const char *const binary_words[] = {TN_BINARY_LIST(WORD) NULL};
static const char *const reduce_words[] = {TN_REDUCE_LIST(WORD) NULL};
static const char *const norm_words[] = {TN_NORM_LIST(WORD) NULL};
static const char *const rotary_words[] = {TN_ROTARY_LIST(WORD) NULL};
#undef WORD

const char *const *tni_each_kinds(int32_t op)
{
    switch (op) {
    case TN_OP_UNARY: return unary_words;
    case TN_OP_BINARY: return binary_words;
    case TN_OP_REDUCE: return reduce_words;
    case TN_OP_NORM: return norm_words;
    case TN_OP_ROTARY: return rotary_words;
    default: return NULL;
    }
}

tn_status tni_each_args(const char *where, const void *args, size_t needed, tn_error *err)
{
    if (!args)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "args is NULL");
    if (*(const size_t *)args < needed)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "args->struct_size needs at least %zu, found %zu", needed,
                       *(const size_t *)args);
    return TN_OK;
}

tn_status tni_each_reserved(const char *where, const char *name, uint32_t bits, tn_error *err)
{
    if (bits)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "args->%s has bits that this version does not know", name);
    return TN_OK;
}

tn_status tni_each_switch(const char *where, const char *name, int32_t value, tn_error *err)
{
    if (value & ~1)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s needs 0 or 1, found %d", name,
                       (int)value);
    return TN_OK;
}

static const char *where_of(const tn_op *op)
{
    return tni_op_class_of(op->kind)->where;
}

tn_status tni_each_check_kind(const tn_op *op, tn_error *err)
{
    const char *const *words = tni_each_kinds(op->kind);
    int32_t count = 0;
    while (words[count])
        count++;
    if (op->as.each.kind < 0 || op->as.each.kind >= count)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                       "kind needs 0 (%s) to %d (%s), found %d", words[0], (int)count - 1,
                       words[count - 1], (int)op->as.each.kind);
    return TN_OK;
}

uint32_t tni_each_family(tn_dtype dtype)
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

tn_status tni_each_check_family(const tn_op *op, uint32_t families, tn_error *err)
{
    tn_dtype in = op->operand[TN_EACH_IN].dtype;
    char text[64];
    if (tni_each_family(in) & families)
        return TN_OK;
    write_families(families, text, sizeof text);
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                   "%s: in needs %s, found %s; cast it first",
                   tni_each_kinds(op->kind)[op->as.each.kind], text, tn_dtype_name(in));
}

tn_status tni_each_check_floats(const tn_op *op, tn_error *err)
{
    tn_dtype in = op->operand[TN_EACH_IN].dtype;
    if (in != TN_F64 && in != TN_F32 && in != TN_F16 && in != TN_BF16)
        return tn_fail(err, TN_UNSUPPORTED, 0, where_of(op),
                       "in is of %s; needs f64, f32, f16 or bf16", tn_dtype_name(in));
    return TN_OK;
}

tn_dtype tni_each_wider(tn_dtype dtype)
{
    return dtype == TN_F16 || dtype == TN_BF16 ? TN_F32 : TN_DTYPE_NONE;
}

tn_status tni_each_check_out(const tn_op *op, tn_error *err)
{
    tn_dtype in = op->operand[TN_EACH_IN].dtype, out = op->operand[TN_EACH_OUT].dtype;
    if (out == in || out == tni_each_wider(in))
        return TN_OK;
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                   "out needs the dtype of in, %s%s, found %s", tn_dtype_name(in),
                   tni_each_wider(in) ? ", or f32" : "", tn_dtype_name(out));
}

tn_status tni_each_check_rank(const tn_op *op, tn_error *err)
{
    if (op->operand[TN_EACH_IN].rank < 1)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                       "in needs at least 1 dimension, found 0");
    return TN_OK;
}

tn_status tni_each_check_shape(const tn_op *op, tn_error *err)
{
    const tn_layout *in = &op->operand[TN_EACH_IN], *out = &op->operand[TN_EACH_OUT];
    if (out->rank != in->rank)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                       "out needs %d dimensions, as in has, found %d", (int)in->rank,
                       (int)out->rank);
    for (int32_t i = 0; i < in->rank; i++) {
        if (out->shape[i] != in->shape[i])
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                           "out: dimension %d needs %" PRId64 ", as in has, found %" PRId64, (int)i,
                           in->shape[i], out->shape[i]);
    }
    return TN_OK;
}

tn_status tni_each_check_table(const tn_op *op, int32_t index, tn_error *err)
{
    tn_dtype in = op->operand[TN_EACH_IN].dtype, its = op->operand[index].dtype;
    if (!its || its == in || its == TN_F32)
        return TN_OK;
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                   "%s needs the dtype of in, %s%s, found %s",
                   tni_op_class_of(op->kind)->operands[index], tn_dtype_name(in),
                   in == TN_F32 ? "" : ", or f32", tn_dtype_name(its));
}

/* What an operand's strides ask of a kernel. What is broadcast is left out of the count. */
static uint64_t uses_of(const tn_op *op, int32_t index)
{
    const tn_layout *layout = &op->operand[index];
    bool row = op->kind == TN_OP_NORM && index >= TN_NORM_WEIGHT;
    int32_t first = row && layout->dtype ? layout->rank - 1 : 0;
    uint64_t uses = 0;
    int64_t step = 1;
    for (int32_t i = layout->rank; i-- > first;) {
        if (layout->shape[i] <= 1)
            continue;
        if (layout->stride[i] == 0 && !row) {
            uses |= TN_EACH_USES_BROADCAST;
            continue;
        }
        uses |= layout->stride[i] != step ? TN_EACH_USES_STRIDES : 0;
        step *= layout->shape[i];
    }
    return uses;
}

static uint64_t all_uses(const tn_op *op)
{
    tn_dtype in = op->operand[TN_EACH_IN].dtype, out = op->operand[TN_EACH_OUT].dtype;
    uint64_t uses = op->uses & (TN_EACH_USES_IN_PLACE | TN_EACH_USES_LOG);
    for (int32_t i = 0; i < op->count; i++)
        uses |= uses_of(op, i);
    if (in && in != out && op->kind != TN_OP_CAST)
        uses |= TN_EACH_USES_OUT_DTYPE;
    if (op->kind == TN_OP_NORM) {
        uses |= op->operand[TN_NORM_WEIGHT].dtype ? TN_EACH_USES_WEIGHT : 0;
        uses |= op->operand[TN_NORM_BIAS].dtype ? TN_EACH_USES_BIAS : 0;
    }
    if (op->kind == TN_OP_ROTARY &&
        op->as.each.size < op->operand[0].shape[op->operand[0].rank - 1])
        uses |= TN_EACH_USES_PARTIAL;
    return uses;
}

tn_status tni_each_finish(tn_op *op, tn_error *err)
{
    const tn_layout *in = &op->operand[TN_EACH_IN], *out = &op->operand[TN_EACH_OUT];
    bool same =
        in->dtype == out->dtype && in->alignment == out->alignment && tni_strides_same(in, out);
    if (op->uses & TN_EACH_USES_IN_PLACE && !same)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                       "in place, out needs the dtype, strides and alignment of in");
    op->as.each.elements = tni_layout_elements(out);
    op->uses = all_uses(op);
    return TN_OK;
}

tn_status tni_each_finish_rows(tn_op *op, tn_error *err)
{
    const tn_layout *in = &op->operand[TN_EACH_IN];
    op->as.each.rows = 1;
    for (int32_t i = 0; i < in->rank - 1; i++)
        op->as.each.rows *= in->shape[i];
    return tni_each_finish(op, err);
}

double tni_each_bytes(const tn_op *op)
{
    double bytes = 0;
    for (int32_t i = 0; i < op->count; i++)
        bytes += tni_layout_bytes(&op->operand[i]);
    return bytes;
}

size_t tni_each_words(const tn_op *op, uint64_t *out)
{
    out[0] = (uint64_t)op->as.each.kind;
    out[1] = (uint64_t)op->as.each.axes;
    return 2;
}

void tni_each_free(tn_op *op, uint64_t dims)
{
    if (!(dims & TN_EACH_DIM_ALL))
        return;
    for (int32_t i = 0; i < op->count; i++) {
        for (int32_t d = 0; d < op->operand[i].rank; d++)
            op->operand[i].shape[d] = 0;
    }
    op->as.each.elements = op->as.each.rows = op->as.each.size = 0;
}
