/* Parses the text of a problem into an op, and writes it. */
#include "fields.h"

#include "base/dtype.h"
#include "base/words.h"
#include "device/tensor/tensor.h"
#include "tenon/module/op/elementwise.h"

static const char where[] = "problem";

TN_PRINTF(3, 4)
static tn_status reject_problem(const char *problem, tn_error *err, const char *format, ...)
{
    char text[sizeof err->message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%.120s: %s", problem, text);
}

/* Whether the text has only characters of keys and values, or `extra` ones: ';' and ':' in lists and shapes. */
static bool is_legal(const char *text, const char *extra)
{
    for (; *text; text++) {
        bool known = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') ||
                     (*text >= '0' && *text <= '9') || strchr("_.>-+", *text) ||
                     strchr(extra, *text);
        if (!known)
            return false;
    }
    return true;
}

static tn_status add_field(tni_fields *fields, char *text, tn_error *err)
{
    char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return reject_problem(fields->problem, err, "expected the form key=value, got \"%.40s\"",
                              text);
    *equals = '\0';
    if (!is_legal(text, "") || !is_legal(equals + 1, ";:"))
        return reject_problem(fields->problem, err, "%.40s=%.40s has characters that no field has",
                              text, equals + 1);
    if (fields->count == TNI_FIELDS_MOST)
        return reject_problem(fields->problem, err, "expected at most %d fields", TNI_FIELDS_MOST);
    for (size_t i = 0; i < fields->count; i++) {
        if (strcmp(fields->field[i].key, text) == 0)
            return reject_problem(fields->problem, err, "%.40s occurs twice", text);
    }
    fields->field[fields->count].key = text;
    fields->field[fields->count].value = equals + 1;
    fields->field[fields->count].taken = false;
    fields->count++;
    return TN_OK;
}

static tn_status split(tni_fields *fields, char *text, tn_error *err)
{
    tn_status status = TN_OK;
    while (!status) {
        char *comma = strchr(text, ',');
        if (comma)
            *comma = '\0';
        status = add_field(fields, text, err);
        if (!comma)
            break;
        text = comma + 1;
    }
    return status;
}

static tn_status check_taken(const tni_fields *fields, const tni_op_class *class, tn_error *err)
{
    char hint[TNI_HINT], all[TNI_FIELDS_LISTED];
    for (size_t i = 0; i < fields->count; i++) {
        const char *key = fields->field[i].key;
        if (fields->field[i].taken)
            continue;
        const char *nearest = tni_words_nearest(key, fields->known, fields->known_count);
        return reject_problem(fields->problem, err, "%s has no field \"%.40s\"; there are %s%s",
                              class->word, key,
                              tni_fields_listed(fields->known, fields->known_count, all),
                              tni_words_hint(nearest, hint));
    }
    return TN_OK;
}

/* Parses the alignments of the present operands, in their order. */
static tn_status parse_alignments(tni_fields *fields, tn_op *op, tn_error *err)
{
    int64_t values[TN_OP_OPERANDS_MAX];
    int32_t count = -1, present = 0;
    tn_status status =
        tni_fields_list(fields, "align", ';', 1, values, TN_OP_OPERANDS_MAX, &count, err);
    if (status || count < 0)
        return status;
    for (int32_t i = 0; i < op->count; i++)
        present += op->operand[i].dtype != TN_DTYPE_NONE;
    if (count != present)
        return reject_problem(fields->problem, err,
                              "align: expected %d numbers, one for each operand, got %d",
                              (int)present, (int)count);
    for (int32_t i = 0, at = 0; i < op->count; i++) {
        if (!op->operand[i].dtype)
            continue;
        int64_t value = values[at++];
        if (value > TN_OP_ALIGNMENT_MAX || (value & (value - 1)))
            return reject_problem(fields->problem, err,
                                  "align: expected powers of two up to %d, got %lld",
                                  TN_OP_ALIGNMENT_MAX, (long long)value);
        op->operand[i].alignment = value;
    }
    return TN_OK;
}

/* Checks that tensors with these layouts can exist, and that no two elements of an output share an address. */
static tn_status check_layouts(const tni_fields *fields, const tn_op *op, const tni_op_class *class,
                               tn_error *err)
{
    for (int32_t i = 0; i < op->count; i++) {
        const tn_layout *layout = &op->operand[i];
        tni_layout measured;
        tn_error why;
        if (!layout->dtype)
            continue;
        if (tni_layout_of(layout->dtype, layout->shape, layout->stride, layout->rank, where,
                          class->operands[i], &measured, &why))
            return reject_problem(fields->problem, err, "%s", why.message);
        if (tni_op_writes(class, i) && measured.elements > 0 &&
            tni_strides_overlap(layout->shape, layout->stride, layout->rank))
            return reject_problem(fields->problem, err,
                                  "%s: its strides map several elements to the same address",
                                  class->operands[i]);
    }
    return TN_OK;
}

static tn_status parse_op(tni_fields *fields, const tni_op_class *class, tn_dtype dtype, tn_op *out,
                          tn_error *err)
{
    int64_t in_place = 0;
    tni_op_init(out, class);
    tn_status status = class->parse(fields, dtype, out, err);
    class = tni_op_class_of(out->kind); /* a field may have changed the kind */
    if (!status && class->may_be_in_place)
        status = tni_fields_switch(fields, "inplace", &in_place, err);
    if (!status)
        status = parse_alignments(fields, out, err);
    if (!status)
        status = check_taken(fields, class, err);
    if (!status)
        status = check_layouts(fields, out, class, err);
    if (status)
        return status;
    if (in_place)
        out->uses |= TN_ELEMENTWISE_USES_IN_PLACE;
    tn_error why;
    if (tni_op_validate(out, &why))
        return reject_problem(fields->problem, err, "%s", why.message);
    return TN_OK;
}

/* Cuts `text` at the first `at`, and returns what follows, or NULL. */
static char *cut(char *text, char at)
{
    char *found = strchr(text, at);
    if (!found)
        return NULL;
    *found = '\0';
    return found + 1;
}

static const char *list_ops(char room[TNI_FIELDS_LISTED])
{
    const char *words[TN_OP_KIND_MAX];
    size_t count = 0;
    for (int32_t i = TN_OP_NONE + 1; i < TN_OP_KIND_MAX; i++) {
        if (tni_op_class_of(i))
            words[count++] = tni_op_class_of(i)->word;
    }
    return tni_fields_listed(words, count, room);
}

static tn_status parse_head(tni_fields *fields, const tni_op_class **out_class, tn_dtype *out_dtype,
                            char **out_rest, tn_error *err)
{
    char *op = fields->text, *dtype = cut(op, ':'), hint[TNI_OFFER], all[TNI_FIELDS_LISTED];
    char *rest = dtype ? cut(dtype, ':') : NULL;
    const tni_op_class *class = tni_op_class_find(op);
    if (!class)
        return reject_problem(fields->problem, err, "no operator \"%.40s\"; there are %s%s", op,
                              list_ops(all), tni_words_hint(tni_op_class_nearest(op), hint));
    if (!dtype)
        return reject_problem(fields->problem, err, "expected the form %s:DTYPE:FIELD=VALUE,...",
                              op);
    *out_dtype = tni_dtype_find(dtype);
    if (!*out_dtype)
        return reject_problem(fields->problem, err, "no dtype \"%.40s\"%s", dtype,
                              tni_dtype_offer(dtype, hint));
    *out_class = class;
    *out_rest = rest;
    return TN_OK;
}

tn_status tni_problem_parse(const char *text, tn_op *out, char *out_device, size_t size,
                            tn_error *err)
{
    tni_fields fields = {.problem = text};
    const tni_op_class *class = NULL;
    tn_dtype dtype = TN_DTYPE_NONE;
    char *rest = NULL;
    if (!text)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "the problem is NULL");
    if (strlen(text) >= sizeof fields.text)
        return reject_problem(text, err, "expected at most %zu bytes, got %zu",
                              sizeof fields.text - 1, strlen(text));
    tn_text_fit(fields.text, sizeof fields.text, text);
    const char *device = cut(fields.text, '@');
    if (device && !device[0])
        return reject_problem(text, err, "@ must be followed by a device, as in @cpu:0");
    device = device ? device : "";
    if (strlen(device) >= size)
        return reject_problem(text, err, "the device's name: expected at most %zu bytes, got %zu",
                              size - 1, strlen(device));
    tn_status status = parse_head(&fields, &class, &dtype, &rest, err);
    if (!status && rest)
        status = split(&fields, rest, err);
    if (!status && class)
        status = parse_op(&fields, class, dtype, out, err);
    if (!status)
        tn_text_fit(out_device, size, device);
    return status;
}

static void write_alignments(const tn_op *op, tni_buffer *out)
{
    int64_t values[TN_OP_OPERANDS_MAX];
    int32_t count = 0;
    bool usual = true;
    for (int32_t i = 0; i < op->count; i++) {
        if (!op->operand[i].dtype)
            continue;
        values[count++] = op->operand[i].alignment;
        usual = usual && op->operand[i].alignment == TN_OP_ALIGNMENT_MAX;
    }
    if (!usual)
        tni_write_list(out, "align", ';', values, count);
}

void tni_problem_write(const tn_op *op, const char *device, tni_buffer *out)
{
    const tni_op_class *class = tni_op_class_of(op->kind);
    const tn_layout *first = &op->operand[0];
    if (!first->dtype)
        first = &op->operand[class->output];
    tni_buffer_format(out, "%s:%s:", class->word, tn_dtype_name(first->dtype));
    class->write(op, out);
    if (class->may_be_in_place && op->uses & TN_ELEMENTWISE_USES_IN_PLACE)
        tni_write_integer(out, "inplace", 1);
    write_alignments(op, out);
    if (out->length && out->text[out->length - 1] == ':') /* no fields: a copy of a single number */
        out->text[--out->length] = '\0';
    if (device && device[0])
        tni_buffer_format(out, "@%s", device);
}
