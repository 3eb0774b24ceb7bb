/* The text form of elementwise and row-wise problems. */
#include "elementwise.h"
#include "tenon/dtype.h"

static const tni_elementwise *family_of(const tn_op *op)
{
    return tni_op_class_of(op->kind)->elementwise;
}

static const char *stride_key(const tn_op *op, int32_t index)
{
    if (index <= TN_ELEMENTWISE_OUT)
        return index == TN_ELEMENTWISE_IN ? "si" : "so";
    return family_of(op)->stride_keys[index - TN_ELEMENTWISE_OUT - 1];
}

/* Makes the default layout of an operand in an op of a shape. */
static void make_usual_layout(const tn_op *op, int32_t index, const int64_t *shape, int32_t rank,
                              tn_layout *out)
{
    if (family_of(op)->layout)
        family_of(op)->layout(op, index, shape, rank, out);
    else
        tni_layout_make(out, op->operand[index].dtype, shape, rank);
}

/* A table: 0 if absent, 1 for in's dtype, or its dtype. */
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
    const tni_elementwise *own = family_of(op);
    const char *const *names = tni_op_class_of(op->kind)->operands;
    tn_layout *operand = op->operand;
    tn_status status = TN_OK;
    operand[TN_ELEMENTWISE_IN].dtype = own->has_no_input ? (tn_dtype)TN_DTYPE_NONE : dtype;
    operand[TN_ELEMENTWISE_OUT].dtype = own->needs_out ? (tn_dtype)TN_DTYPE_NONE : dtype;
    if (own->out_key)
        status = tni_fields_dtype(fields, own->out_key, &operand[TN_ELEMENTWISE_OUT].dtype, err);
    if (!status && !operand[TN_ELEMENTWISE_OUT].dtype)
        status = tni_fields_missing(fields, own->out_key, err);
    for (int32_t i = TN_ELEMENTWISE_OUT + 1; i < op->count && !status; i++) {
        operand[i].dtype = own->tables == TNI_TABLES_OPTIONAL ? (tn_dtype)TN_DTYPE_NONE : dtype;
        if (own->tables != TNI_TABLES_NONE)
            status = parse_table(fields, names[i], dtype, &operand[i].dtype, err);
    }
    return status;
}

static tn_status parse_layouts(tni_fields *fields, const int64_t *shape, int32_t rank, tn_op *op,
                               tn_error *err)
{
    const tni_elementwise *own = family_of(op);
    tn_status status = TN_OK;
    for (int32_t i = 0; i < op->count; i++) {
        if (op->operand[i].dtype)
            make_usual_layout(op, i, shape, rank, &op->operand[i]);
    }
    for (int32_t i = 0; i < op->count && !status; i++) {
        if (i == TN_ELEMENTWISE_OUT && own->parse_layouts)
            status = own->parse_layouts(fields, op, err);
        if (op->operand[i].dtype && !status)
            status = tni_fields_strides(fields, stride_key(op, i), &op->operand[i], err);
    }
    return status;
}

tn_status tni_elementwise_parse(tni_fields *fields, tn_dtype dtype, tn_op *op, tn_error *err)
{
    const tni_elementwise *own = family_of(op);
    int64_t shape[TN_OP_RANK_MAX];
    int32_t rank = 0;
    *TN_PARAMS_MUTABLE(op, elementwise) = (tn_elementwise_op){.kind = own->kinds ? -1 : 0};
    tn_status status = TN_OK;
    if (own->kinds)
        status = tni_fields_word(fields, "kind", own->kinds,
                                 &TN_PARAMS_MUTABLE(op, elementwise)->kind, err);
    if (!status && TN_PARAMS(op, elementwise)->kind < 0)
        status = tni_fields_missing(fields, "kind", err);
    if (!status)
        status = tni_fields_list(fields, "shape", 'x', 0, shape, TN_OP_RANK_MAX, &rank, err);
    if (!status && rank == 0 && own->needs_rank)
        status = tni_fields_missing(fields, "shape", err);
    if (!status && own->parse)
        status = own->parse(fields, shape, rank, op, err);
    if (!status)
        status = parse_dtypes(fields, dtype, op, err);
    return status ? status : parse_layouts(fields, shape, rank, op, err);
}

static void write_tables(const tn_op *op, tni_buffer *out)
{
    bool optional = family_of(op)->tables == TNI_TABLES_OPTIONAL;
    tn_dtype in = op->operand[TN_ELEMENTWISE_IN].dtype;
    const char *const *names = tni_op_class_of(op->kind)->operands;
    for (int32_t i = TN_ELEMENTWISE_OUT + 1; i < op->count; i++) {
        tn_dtype its = op->operand[i].dtype;
        if (its && its != in)
            tni_write_word(out, names[i], tn_dtype_name(its));
        else if (its && optional)
            tni_write_integer(out, names[i], 1);
    }
}

void tni_elementwise_write(const tn_op *op, tni_buffer *out)
{
    const tni_elementwise *own = family_of(op);
    const tn_layout *in = &op->operand[TN_ELEMENTWISE_IN], *to = &op->operand[TN_ELEMENTWISE_OUT];
    const tn_layout *first = in->dtype ? in : to;
    tn_layout layout;
    if (own->kinds)
        tni_write_word(out, "kind", own->kinds[TN_PARAMS(op, elementwise)->kind]);
    if (first->rank > 0)
        tni_write_list(out, "shape", 'x', first->shape, first->rank);
    if (own->needs_out || op->uses & TN_ELEMENTWISE_USES_OUT_DTYPE)
        tni_write_word(out, own->out_key, tn_dtype_name(to->dtype));
    if (own->write)
        own->write(op, out);
    if (own->tables != TNI_TABLES_NONE)
        write_tables(op, out);
    for (int32_t i = 0; i < op->count; i++) {
        if (!op->operand[i].dtype)
            continue;
        make_usual_layout(op, i, first->shape, first->rank, &layout);
        tni_write_strides(out, stride_key(op, i), &op->operand[i], &layout);
    }
}
