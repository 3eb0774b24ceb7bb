/* The helper ops as a problem's text. */
#include "each.h"
#include "elementwise.h"
#include "fields.h"
#include "norm.h"
#include "tenon/dtype.h"

/* By operand, in's and out's first; those of the others by op. */
static const char *stride_key(const tn_op *op, int32_t index)
{
    static const char *const norm[] = {"sweight", "sbias"}, *const rotary[] = {"scos", "ssin"};
    if (index <= TN_EACH_OUT)
        return index == TN_EACH_IN ? "si" : "so";
    if (op->kind == TN_OP_BINARY)
        return "s2";
    return op->kind == TN_OP_NORM ? norm[index - TN_NORM_WEIGHT] : rotary[index - TN_ROTARY_COS];
}

/* The layout that an operand usually has in an op of a shape. */
static void usual(const tn_op *op, int32_t index, const int64_t *shape, int32_t rank,
                  tn_layout *out)
{
    int64_t own[TN_OP_RANK_MAX];
    int32_t shared = 0, axes = op->as.each.axes;
    memcpy(own, shape, (size_t)rank * sizeof own[0]);
    if (op->kind == TN_OP_REDUCE && index == TN_EACH_OUT) {
        for (int32_t i = axes < rank ? rank - axes : 0; i < rank; i++)
            own[i] = 1;
    } else if (op->kind == TN_OP_NORM && index >= TN_NORM_WEIGHT)
        shared = rank - 1;
    else if (op->kind == TN_OP_ROTARY && index >= TN_ROTARY_COS) {
        own[rank - 1] = op->as.each.size / 2;
        shared = rank - 2;
    }
    tni_layout_make(out, op->operand[index].dtype, own, rank);
    for (int32_t i = 0; i < shared; i++)
        out->stride[i] = 0;
}

static tn_status parse_numbers(tni_fields *fields, const int64_t *shape, int32_t rank, tn_op *op,
                               tn_error *err)
{
    tn_each_op *each = &op->as.each;
    int64_t number = 0;
    tn_status status = TN_OK;
    if (op->kind == TN_OP_FILL) {
        status = tni_fields_real(fields, "value", &each->value, err);
        if (!status)
            status = tni_fields_real(fields, "imaginary", &each->imaginary, err);
    } else if (op->kind == TN_OP_REDUCE) {
        number = rank;
        status = tni_fields_integer(fields, "axes", 0, &number, err);
        each->axes = number < INT32_MAX ? (int32_t)number : INT32_MAX;
    } else if (op->kind == TN_OP_SOFTMAX) {
        status = tni_fields_switch(fields, "log", &number, err);
        op->uses |= number ? TN_EACH_USES_LOG : 0;
    } else if (op->kind == TN_OP_NORM) {
        each->value = TNI_NORM_EPSILON;
        status = tni_fields_real(fields, "eps", &each->value, err);
    } else if (op->kind == TN_OP_ROTARY) {
        status = tni_fields_integer(fields, "size", 0, &each->size, err);
        each->size = each->size ? each->size : shape[rank - 1];
    }
    return status;
}

/* An operand of a row's numbers: 0 for none, 1 for one of in's dtype, or its dtype. */
static tn_status parse_table(tni_fields *fields, const char *key, tn_dtype dtype, tn_dtype *out,
                             tn_error *err)
{
    const char *value = tni_fields_take(fields, key);
    if (!value)
        return TN_OK;
    if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
        return tni_fields_dtype(fields, key, out, err);
    *out = value[0] == '1' ? dtype : (tn_dtype)TN_DTYPE_NONE;
    return TN_OK;
}

static tn_status parse_dtypes(tni_fields *fields, tn_dtype dtype, tn_op *op, tn_error *err)
{
    tn_layout *operand = op->operand;
    operand[TN_EACH_IN].dtype = op->kind == TN_OP_FILL ? (tn_dtype)TN_DTYPE_NONE : dtype;
    operand[TN_EACH_OUT].dtype = op->kind == TN_OP_CAST ? (tn_dtype)TN_DTYPE_NONE : dtype;
    if (op->kind == TN_OP_PERMUTE || op->kind == TN_OP_FILL)
        return TN_OK;
    const char *key = op->kind == TN_OP_CAST ? "to" : "out";
    tn_status status = tni_fields_dtype(fields, key, &operand[TN_EACH_OUT].dtype, err);
    if (!status && !operand[TN_EACH_OUT].dtype)
        status = tni_fields_missing(fields, key, err);
    if (op->kind == TN_OP_BINARY)
        operand[TN_EACH_OTHER].dtype = dtype;
    if (op->kind == TN_OP_ROTARY)
        operand[TN_ROTARY_COS].dtype = operand[TN_ROTARY_SIN].dtype = dtype;
    bool tables = op->kind == TN_OP_NORM || op->kind == TN_OP_ROTARY;
    const char *const *names = tni_op_class_of(op->kind)->operands;
    for (int32_t i = TN_EACH_OUT + 1; i < op->count && tables && !status; i++)
        status = parse_table(fields, names[i], dtype, &operand[i].dtype, err);
    return status;
}

/* The order in which out has in's dimensions, if the text has one: then its shape is in's. */
static tn_status parse_order(tni_fields *fields, tn_op *op, tn_error *err)
{
    tn_layout *in = &op->operand[TN_EACH_IN], *out = &op->operand[TN_EACH_OUT];
    int64_t numbers[TN_OP_RANK_MAX];
    int32_t order[TN_OP_RANK_MAX], count = -1;
    tn_error why;
    tn_status status =
        tni_fields_list(fields, "order", ';', 0, numbers, TN_OP_RANK_MAX, &count, err);
    if (status || count < 0)
        return status;
    for (int32_t i = 0; i < count; i++)
        order[i] = numbers[i] < INT32_MAX ? (int32_t)numbers[i] : INT32_MAX;
    if (tni_permute_order(in, order, count, &why))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "problem", "%.120s: %s", fields->problem,
                       why.message);
    tni_layout_make(out, out->dtype, in->shape, in->rank);
    return TN_OK;
}

static tn_status parse_layouts(tni_fields *fields, const int64_t *shape, int32_t rank, tn_op *op,
                               tn_error *err)
{
    tn_status status = TN_OK;
    for (int32_t i = 0; i < op->count && !status; i++) {
        if (!op->operand[i].dtype)
            continue;
        usual(op, i, shape, rank, &op->operand[i]);
        if (i == TN_EACH_OUT && op->kind == TN_OP_PERMUTE)
            status = parse_order(fields, op, err);
        if (!status)
            status = tni_fields_strides(fields, stride_key(op, i), &op->operand[i], err);
    }
    return status;
}

tn_status tni_each_parse(tni_fields *fields, tn_dtype dtype, tn_op *op, tn_error *err)
{
    const char *const *kinds = tni_each_kinds(op->kind);
    int64_t shape[TN_OP_RANK_MAX];
    int32_t rank = 0;
    bool rows = op->kind == TN_OP_SOFTMAX || op->kind == TN_OP_NORM || op->kind == TN_OP_ROTARY;
    op->as.each = (tn_each_op){.kind = kinds ? -1 : 0};
    tn_status status = TN_OK;
    if (kinds)
        status = tni_fields_word(fields, "kind", kinds, &op->as.each.kind, err);
    if (!status && op->as.each.kind < 0)
        status = tni_fields_missing(fields, "kind", err);
    if (!status)
        status = tni_fields_list(fields, "shape", 'x', 0, shape, TN_OP_RANK_MAX, &rank, err);
    if (!status && rank == 0 && rows)
        status = tni_fields_missing(fields, "shape", err);
    if (!status)
        status = parse_numbers(fields, shape, rank, op, err);
    if (!status)
        status = parse_dtypes(fields, dtype, op, err);
    return status ? status : parse_layouts(fields, shape, rank, op, err);
}

static void write_tables(const tn_op *op, tni_buffer *out)
{
    tn_dtype in = op->operand[TN_EACH_IN].dtype;
    const char *const *names = tni_op_class_of(op->kind)->operands;
    for (int32_t i = TN_EACH_OUT + 1; i < op->count; i++) {
        tn_dtype its = op->operand[i].dtype;
        if (its && its != in)
            tni_write_word(out, names[i], tn_dtype_name(its));
        else if (its && op->kind == TN_OP_NORM)
            tni_write_integer(out, names[i], 1);
    }
}

static void write_numbers(const tn_op *op, tni_buffer *out)
{
    const tn_each_op *each = &op->as.each;
    if (op->kind == TN_OP_FILL)
        tni_write_real(out, "value", each->value);
    if (op->kind == TN_OP_FILL &&
        tni_each_family(op->operand[TN_EACH_OUT].dtype) == TNI_DTYPE_COMPLEX)
        tni_write_real(out, "imaginary", each->imaginary);
    if (op->kind == TN_OP_REDUCE)
        tni_write_integer(out, "axes", each->axes);
    if (op->kind == TN_OP_SOFTMAX && op->uses & TN_EACH_USES_LOG)
        tni_write_integer(out, "log", 1);
    if (op->kind == TN_OP_NORM && each->value != TNI_NORM_EPSILON)
        tni_write_real(out, "eps", each->value);
    if (op->uses & TN_EACH_USES_PARTIAL)
        tni_write_integer(out, "size", each->size);
}

void tni_each_write(const tn_op *op, tni_buffer *out)
{
    const tn_layout *in = &op->operand[TN_EACH_IN], *to = &op->operand[TN_EACH_OUT];
    const tn_layout *first = in->dtype ? in : to;
    const char *const *kinds = tni_each_kinds(op->kind);
    tn_layout layout;
    if (kinds)
        tni_write_word(out, "kind", kinds[op->as.each.kind]);
    if (first->rank > 0)
        tni_write_list(out, "shape", 'x', first->shape, first->rank);
    if (op->kind == TN_OP_CAST)
        tni_write_word(out, "to", tn_dtype_name(to->dtype));
    else if (op->uses & TN_EACH_USES_OUT_DTYPE)
        tni_write_word(out, "out", tn_dtype_name(to->dtype));
    write_numbers(op, out);
    if (op->kind == TN_OP_NORM || op->kind == TN_OP_ROTARY)
        write_tables(op, out);
    for (int32_t i = 0; i < op->count; i++) {
        if (!op->operand[i].dtype)
            continue;
        usual(op, i, first->shape, first->rank, &layout);
        tni_write_strides(out, stride_key(op, i), &op->operand[i], &layout);
    }
}
