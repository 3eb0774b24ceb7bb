/* Fields that attention-sparse and attention-quantized share. */
#include "attention_fields.h"

#include "tenon/dtype.h"

static const char *const ways[] = {"bhld", "blhd", NULL};

tn_status tni_attention_parse_integers(tni_fields *fields, const tni_attention_number *numbers,
                                       size_t count, tn_error *err)
{
    tn_status status = TN_OK;
    for (size_t i = 0; i < count && !status; i++) {
        const tni_attention_number *n = &numbers[i];
        *n->to = -1;
        status = tni_fields_integer(fields, n->key, n->least, n->to, err);
        if (!status && *n->to < 0 && n->other)
            *n->to = *n->other;
        else if (!status && *n->to < 0)
            status = tni_fields_missing(fields, n->key, err);
    }
    return status;
}

static tn_status parse_sizes(tni_fields *fields, tn_attention_op *out, tn_error *err)
{
    static const int64_t one = 1;
    int64_t both = -1;
    const tn_status status = tni_fields_integer(fields, "l", 0, &both, err);
    const int64_t *length = both >= 0 ? &both : NULL;
    const tni_attention_number numbers[] = {{"b", &out->batch, 0, &one},
                                            {"h", &out->heads, 0, NULL},
                                            {"hk", &out->groups, 0, &out->heads},
                                            {"lq", &out->queries, 0, length},
                                            {"lk", &out->keys, 0, length},
                                            {"d", &out->size, 0, NULL},
                                            {"dv", &out->value_size, 0, &out->size}};
    return status ? status
                  : tni_attention_parse_integers(fields, numbers,
                                                 sizeof numbers / sizeof numbers[0], err);
}

static tn_status parse_place(tni_fields *fields, tn_attention_op *at, tn_error *err)
{
    const char *text = tni_fields_take(fields, "mask");
    (void)tni_attention_see(at, TN_MASK_NONE, 0, 0);
    if (text && (!tni_attention_read_place(&text, at) || *text))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "problem",
                       "%.160s: mask: expected none, causal, causal-br, window:L;R or "
                       "window-tl:L;R",
                       fields->problem);
    return TN_OK;
}

tn_status tni_attention_parse_form(tni_fields *fields, tn_dtype dtype, tni_attention_form *out,
                                   tn_attention_op *at, tn_error *err)
{
    *out = (tni_attention_form){.out = dtype};
    tn_status status = parse_sizes(fields, &out->at, err);
    if (!status)
        status = parse_place(fields, at, err);
    if (!status)
        status = tni_fields_word(fields, "layout", ways, &out->way, err);
    if (!status)
        status = tni_fields_dtype(fields, "out", &out->out, err);
    at->scale = tni_attention_scale(out->at.size);
    return status ? status : tni_fields_real(fields, "scale", &at->scale, err);
}

tn_status tni_attention_parse_strides(tni_fields *fields, const char *const *keys, tn_op *op,
                                      tn_error *err)
{
    tn_status status = TN_OK;
    for (int32_t i = 0; i < op->count && !status; i++) {
        if (op->operand[i].dtype)
            status = tni_fields_strides(fields, keys[i], &op->operand[i], err);
    }
    return status;
}

void tni_attention_make_form(const tni_attention_form *form, tn_dtype dtype, tn_layout *out)
{
    const tn_attention_op *at = &form->at;
    const int64_t q[] = {at->batch, at->heads, at->queries, at->size};
    const int64_t k[] = {at->batch, at->groups, at->keys, at->size};
    const int64_t v[] = {at->batch, at->groups, at->keys, at->value_size};
    const int64_t to[] = {at->batch, at->heads, at->queries, at->value_size};
    tni_attention_make_whole(&out[TN_ATTENTION_Q], dtype, q, form->way);
    tni_attention_make_whole(&out[TN_ATTENTION_K], dtype, k, form->way);
    tni_attention_make_whole(&out[TN_ATTENTION_V], dtype, v, form->way);
    tni_attention_make_whole(&out[TN_ATTENTION_OUT], form->out, to, form->way);
    out[TN_ATTENTION_LSE].dtype = TN_DTYPE_NONE;
    if (form->lse)
        tni_layout_make(&out[TN_ATTENTION_LSE], tni_attention_lse(dtype), q, 3);
}

void tni_attention_take_form(const tn_op *op, const tn_attention_op *at, tni_attention_form *out)
{
    *out = (tni_attention_form){.at = *at,
                                .lse = op->operand[TN_ATTENTION_LSE].dtype != TN_DTYPE_NONE,
                                .out = op->operand[TN_ATTENTION_OUT].dtype};
}

void tni_attention_make_nearest(tni_attention_form *form, const tn_op *op,
                                tni_attention_make_layouts *make, tn_layout *out)
{
    const tn_dtype dtype = op->operand[TN_ATTENTION_Q].dtype;
    for (form->way = TN_LAYOUT_BHLD; form->way < TN_LAYOUT_COUNT; form->way++) {
        bool same = true;
        make(form, op, dtype, out);
        for (int32_t i = 0; i < op->count; i++) {
            if (i <= TN_ATTENTION_OUT || i >= TN_ATTENTION_BACKWARD_DOUT)
                same = same && tni_strides_same(&op->operand[i], &out[i]);
        }
        if (same)
            return;
    }
    form->way = TN_LAYOUT_BHLD;
    make(form, op, dtype, out);
}

void tni_attention_write_sizes(const tni_attention_form *form, tni_buffer *out)
{
    const tn_attention_op *at = &form->at;
    tni_write_integer(out, "b", at->batch);
    tni_write_integer(out, "h", at->heads);
    if (at->groups != at->heads)
        tni_write_integer(out, "hk", at->groups);
    if (at->queries == at->keys) {
        tni_write_integer(out, "l", at->queries);
    } else {
        tni_write_integer(out, "lq", at->queries);
        tni_write_integer(out, "lk", at->keys);
    }
    tni_write_integer(out, "d", at->size);
    if (at->value_size != at->size)
        tni_write_integer(out, "dv", at->value_size);
}

void tni_attention_write_way(const tni_attention_form *form, tni_buffer *out)
{
    char place[96];
    if (form->way)
        tni_write_word(out, "layout", ways[form->way]);
    tni_attention_write_place(&form->at, place, sizeof place);
    if (place[0])
        tni_write_word(out, "mask", place);
}

void tni_attention_write_end(const tni_attention_form *form, const tn_op *op,
                             const char *const *keys, const tn_layout *nearest, tni_buffer *out)
{
    if (form->lse)
        tni_write_integer(out, "lse", 1);
    if (form->out != op->operand[TN_ATTENTION_Q].dtype)
        tni_write_word(out, "out", tn_dtype_name(form->out));
    if (form->at.scale != tni_attention_scale(form->at.size))
        tni_write_real(out, "scale", form->at.scale);
    for (int32_t i = 0; i < op->count; i++) {
        if (op->operand[i].dtype)
            tni_write_strides(out, keys[i], &op->operand[i], &nearest[i]);
    }
}
