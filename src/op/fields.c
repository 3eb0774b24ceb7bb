/* Parses and writes the fields of a problem's text. */
#include "fields.h"

#include "base/dtype.h"
#include "base/number.h"
#include "base/words.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

static const char where[] = "problem";

static void note(tni_fields *fields, const char *key)
{
    for (size_t i = 0; i < fields->known_count; i++) {
        if (strcmp(fields->known[i], key) == 0)
            return;
    }
    if (fields->known_count < TNI_FIELDS_KNOWN)
        fields->known[fields->known_count++] = key;
}

const char *tni_fields_take(tni_fields *fields, const char *key)
{
    note(fields, key);
    for (size_t i = 0; i < fields->count; i++) {
        if (strcmp(fields->field[i].key, key) == 0) {
            fields->field[i].taken = true;
            return fields->field[i].value;
        }
    }
    return NULL;
}

static tn_status reject_value(const tni_fields *fields, const char *key, const char *value,
                              const char *need, tn_error *err)
{
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%.120s: %s: expected %s, got \"%.40s\"",
                   fields->problem, key, need, value);
}

tn_status tni_fields_missing(const tni_fields *fields, const char *key, tn_error *err)
{
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                   "%.160s: %s is missing; `tenon explain --help` lists the fields",
                   fields->problem, key);
}

static bool parse_integer(const char *text, int64_t *out)
{
    bool negative = text[0] == '-';
    if (!tni_number_parse(text + negative, false, out))
        return false;
    *out = negative ? -*out : *out;
    return true;
}

tn_status tni_fields_integer(tni_fields *fields, const char *key, int64_t least, int64_t *out,
                             tn_error *err)
{
    const char *value = tni_fields_take(fields, key);
    int64_t number;
    char need[80];
    if (!value)
        return TN_OK;
    snprintf(need, sizeof need, "a whole number from %" PRId64 " to %" PRId64, least, INT64_MAX);
    if (!parse_integer(value, &number) || number < least)
        return reject_value(fields, key, value, need, err);
    *out = number;
    return TN_OK;
}

tn_status tni_fields_real(tni_fields *fields, const char *key, double *out, tn_error *err)
{
    const char *value = tni_fields_take(fields, key);
    char *end;
    if (!value)
        return TN_OK;
    errno = 0;
    double number = strtod(value, &end);
    if (end == value || *end)
        return reject_value(fields, key, value, "a number", err);
    if (errno == ERANGE && isinf(number)) /* infinity must be written as inf */
        return reject_value(fields, key, value, "a number up to 1.79e308, or inf", err);
    *out = number;
    return TN_OK;
}

tn_status tni_fields_list(tni_fields *fields, const char *key, char separator, int64_t least,
                          int64_t *out, int32_t most, int32_t *out_count, tn_error *err)
{
    const char *value = tni_fields_take(fields, key), *at = value;
    const char ends[] = {separator, '\0'};
    char part[32], need[128], from[64] = "";
    int32_t count = 0;
    if (!value)
        return TN_OK;
    if (least > INT64_MIN)
        snprintf(from, sizeof from, " from %" PRId64 " to %" PRId64, least, INT64_MAX);
    snprintf(need, sizeof need, "up to %d whole numbers%s, with '%c' between", (int)most, from,
             separator);
    for (;; at++) {
        size_t length = strcspn(at, ends);
        snprintf(part, sizeof part, "%.*s", (int)(length < sizeof part ? length : 0), at);
        if (count == most || !parse_integer(part, &out[count]) || out[count] < least)
            return reject_value(fields, key, value, need, err);
        count++;
        at += length;
        if (!*at)
            break;
    }
    *out_count = count;
    return TN_OK;
}

tn_status tni_fields_switch(tni_fields *fields, const char *key, int64_t *out, tn_error *err)
{
    int64_t value = *out;
    tn_status status = tni_fields_integer(fields, key, 0, &value, err);
    if (!status && value > 1)
        return reject_value(fields, key, tni_fields_take(fields, key), "0 or 1", err);
    if (!status)
        *out = value;
    return status;
}

tn_status tni_fields_strides(tni_fields *fields, const char *key, tn_layout *layout, tn_error *err)
{
    int32_t count = -1;
    tn_status status =
        tni_fields_list(fields, key, ';', INT64_MIN, layout->stride, TN_OP_RANK_MAX, &count, err);
    if (!status && count >= 0 && count != layout->rank)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "%.120s: %s: expected %d strides, one for each dimension, got %d",
                       fields->problem, key, (int)layout->rank, (int)count);
    return status;
}

tn_status tni_fields_dtype(tni_fields *fields, const char *key, tn_dtype *out, tn_error *err)
{
    const char *value = tni_fields_take(fields, key);
    char hint[TNI_OFFER];
    tn_dtype found = value ? tni_dtype_find(value) : TN_DTYPE_NONE;
    if (!value)
        return TN_OK;
    if (!found)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%.120s: %s: no dtype \"%.40s\"%s",
                       fields->problem, key, value, tni_dtype_offer(value, hint));
    *out = found;
    return TN_OK;
}

const char *tni_fields_listed(const char *const *words, size_t count, char room[TNI_FIELDS_LISTED])
{
    static const char more[] = " ...";
    size_t used = 0;
    room[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        bool fits = used + 1 + strlen(words[i]) + sizeof more < TNI_FIELDS_LISTED;
        used += (size_t)snprintf(room + used, TNI_FIELDS_LISTED - used, "%s%s",
                                 fits && i ? " " : "", fits ? words[i] : more);
        if (!fits)
            break;
    }
    return room;
}

tn_status tni_fields_word(tni_fields *fields, const char *key, const char *const *words,
                          int32_t *out, tn_error *err)
{
    const char *value = tni_fields_take(fields, key);
    char hint[TNI_HINT], all[TNI_FIELDS_LISTED];
    size_t count = 0;
    if (!value)
        return TN_OK;
    for (; words[count]; count++) {
        if (strcmp(words[count], value) == 0) {
            *out = (int32_t)count;
            return TN_OK;
        }
    }
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                   "%.80s: %s: expected one of %s, got \"%.40s\"%s", fields->problem, key,
                   tni_fields_listed(words, count, all), value,
                   tni_words_hint(tni_words_nearest(value, words, count), hint));
}

static void write_key(tni_buffer *out, const char *key)
{
    char last = out->length ? out->text[out->length - 1] : ':';
    tni_buffer_format(out, "%s%s=", last == ':' ? "" : ",", key);
}

void tni_write_integer(tni_buffer *out, const char *key, int64_t value)
{
    write_key(out, key);
    tni_buffer_format(out, "%" PRId64, value);
}

void tni_write_real(tni_buffer *out, const char *key, double value)
{
    char text[64];
    write_key(out, key);
    snprintf(text, sizeof text, "%.15g", value);
    if (strtod(text, NULL) != value)
        snprintf(text, sizeof text, "%a", value);
    tni_buffer_add(out, text);
}

void tni_write_list(tni_buffer *out, const char *key, char separator, const int64_t *values,
                    int32_t count)
{
    write_key(out, key);
    for (int32_t i = 0; i < count; i++) {
        if (i)
            tni_buffer_add_char(out, separator);
        tni_buffer_format(out, "%" PRId64, values[i]);
    }
}

void tni_write_word(tni_buffer *out, const char *key, const char *word)
{
    write_key(out, key);
    tni_buffer_add(out, word);
}

bool tni_strides_same(const tn_layout *a, const tn_layout *b)
{
    for (int32_t i = 0; i < a->rank; i++) {
        if (a->shape[i] > 1 && a->stride[i] != b->stride[i])
            return false;
    }
    return true;
}

void tni_write_strides(tni_buffer *out, const char *key, const tn_layout *layout,
                       const tn_layout *usual)
{
    if (!tni_strides_same(layout, usual))
        tni_write_list(out, key, ';', layout->stride, layout->rank);
}
