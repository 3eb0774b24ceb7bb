#include "select.h"

#include "base/number.h"
#include "base/words.h"

static const char where[] = "tn_device_get";

enum { PLATFORM, NAME, ARCHITECTURE, WORDS, CAPABILITY = WORDS, KEYS_BEFORE_NUMBERS };

/* All keys; the numbers are last, in the order of their bits. */
static const char *const keys[] = {"platform", "name", "architecture", "capability",
#define WORD(field, word, unit, meaning) word,
                                   TN_DEVICE_NUMBER_LIST(WORD)
#undef WORD
};
enum { KEYS = sizeof keys / sizeof keys[0] };
TN_STATIC_ASSERT((int)KEYS == (int)KEYS_BEFORE_NUMBERS + (int)TN_DEVICE_NUMBER_COUNT,
                 "a number has no key");

static const char *const ops[] = {"=", "!=", "<", "<=", ">", ">="};

bool tni_select_is(const char *name)
{
    return strcmp(name, "best") == 0 || strpbrk(name, "=<>") != NULL;
}

static tn_status no_key(const char *key, const char *text, tn_error *err)
{
    char hint[TNI_HINT];
    const char *nearest = tni_words_nearest(key, keys, KEYS);
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                   "in \"%.60s\": unknown condition \"%s\": expected platform, name, architecture, "
                   "capability, memory or another number of tn_device_properties%s",
                   text, key, tni_words_hint(nearest, hint));
}

/* Whether it is a valid number that is only too large. */
static bool is_large(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    return digits > 0 && (!text[digits] || (strchr("kmgtKMGT", text[digits]) && !text[digits + 1]));
}

static tn_status take_number(int32_t key, const char *value, const char *text, tni_select_term *out,
                             tn_error *err)
{
    out->kind = TNI_SELECT_NUMBER;
    out->key = key - KEYS_BEFORE_NUMBERS;
    if (tni_number_parse(value, true, &out->number))
        return TN_OK;
    if (is_large(value))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "in \"%.60s\": %s is too large; the largest number is %lld", text, value,
                       (long long)INT64_MAX);
    return tn_fail(
        err, TN_INVALID_ARGUMENT, 0, where,
        "in \"%.60s\": %s: expected a number such as 40, 40k, 40m, 40g or 40t; got \"%s\"", text,
        keys[key], value);
}

static tn_status take_capability(const char *value, const char *text, tni_select_term *out,
                                 tn_error *err)
{
    tn_error why;
    out->kind = TNI_SELECT_CAPABILITY;
    tn_status status = tn_capability_parse(value, &out->capability, &why);
    return status ? tn_fail(err, status, 0, where, "in \"%.60s\": %s", text, why.message) : TN_OK;
}

static tn_status take_value(int32_t key, const char *value, const char *text, tni_select_term *out,
                            tn_error *err)
{
    out->key = key;
    if (key < WORDS) {
        out->kind = TNI_SELECT_WORD;
        tn_text_fit(out->word, sizeof out->word, value);
        if (out->op == TNI_SELECT_EQ || out->op == TNI_SELECT_NE)
            return TN_OK;
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "in \"%.60s\": %s: expected = or !=, got %s", text, keys[key], ops[out->op]);
    }
    return key == CAPABILITY ? take_capability(value, text, out, err)
                             : take_number(key, value, text, out, err);
}

/* The comparison operator at `text`, or -1; *out_length is its length. */
static int32_t take_op(const char *text, size_t *out_length)
{
    int32_t found = -1;
    *out_length = 0;
    for (int32_t i = 0; i < (int32_t)(sizeof ops / sizeof ops[0]); i++) {
        size_t length = strlen(ops[i]);
        if (length > *out_length && strncmp(text, ops[i], length) == 0) {
            *out_length = length;
            found = i;
        }
    }
    return found;
}

static tn_status take_condition(char *part, const char *text, tni_select_term *out, tn_error *err)
{
    size_t length = strcspn(part, "!=<>"), op_length;
    int32_t key = 0;
    memset(out, 0, sizeof *out);
    tn_text_fit(out->text, sizeof out->text, part);
    out->op = take_op(part + length, &op_length);
    if (length == 0 || out->op < 0 || !part[length + op_length])
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "in \"%.60s\": expected a condition such as memory>=40g, got \"%s\"", text,
                       part);
    char *value = part + length + op_length;
    part[length] = '\0';
    while (key < KEYS && strcmp(keys[key], part) != 0)
        key++;
    return key == KEYS ? no_key(part, text, err) : take_value(key, value, text, out, err);
}

tn_status tni_select_parse(const char *text, tni_select_terms *out, tn_error *err)
{
    char part[TNI_SELECT_TEXT];
    tni_select_terms read = {0};
    const char *at = strcmp(text, "best") == 0 ? "" : text;
    while (*at) {
        size_t length = strcspn(at, ",");
        if (read.count == TNI_SELECT_CONDITIONS || length >= sizeof part)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "in \"%.60s\": %s", text,
                           length >= sizeof part ? "a condition has at most 63 bytes"
                                                 : "there are at most 16 conditions");
        memcpy(part, at, length);
        part[length] = '\0';
        tn_status status = take_condition(part, text, &read.items[read.count], err);
        if (status)
            return status;
        read.count++;
        at += length;
        if (*at == ',' && !*++at)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                           "in \"%.60s\": expected a condition after the last comma", text);
    }
    *out = read;
    return TN_OK;
}

static bool holds(int32_t order, int32_t op)
{
    switch (op) {
    case TNI_SELECT_EQ: return order == 0;
    case TNI_SELECT_NE: return order != 0;
    case TNI_SELECT_LT: return order < 0;
    case TNI_SELECT_LE: return order <= 0;
    case TNI_SELECT_GT: return order > 0;
    default: return order >= 0;
    }
}

static int64_t number_of(const tn_device_properties *p, int32_t bit)
{
    switch (bit) {
#define NUMBER(field, word, unit, meaning) \
    case TN_DEVICE_NUMBER_INDEX_##field: return p->field;
        TN_DEVICE_NUMBER_LIST(NUMBER)
#undef NUMBER
    default: return 0;
    }
}

const char *tni_select_platform(const tni_select_term *condition)
{
    return condition->kind == TNI_SELECT_WORD && condition->key == PLATFORM ? condition->word
                                                                            : NULL;
}

bool tni_select_meets_one(const tn_device *device, const tni_select_term *condition)
{
    const tn_device_properties *p = tni_device_known(device);
    const char *words[] = {device->platform->name, p->name, p->architecture};
    if (condition->kind == TNI_SELECT_WORD) {
        const char *word = words[condition->key];
        return word[0] && holds(strcmp(word, condition->word), condition->op);
    }
    if (condition->kind == TNI_SELECT_CAPABILITY)
        return p->known & TN_DEVICE_KNOWS(capability) &&
               holds(tn_capability_compare(p->capability, condition->capability), condition->op);
    int64_t number = number_of(p, condition->key);
    return p->known & UINT64_C(1) << condition->key &&
           holds((number > condition->number) - (number < condition->number), condition->op);
}

/* Whether the condition uses only properties that are known from the start. */
static bool names_device(const tni_select_term *condition)
{
    return condition->kind == TNI_SELECT_WORD && condition->key != ARCHITECTURE;
}

void tni_select_query(const tn_device *device, const tni_select_terms *conditions)
{
    for (size_t i = 0; i < conditions->count; i++) {
        const tni_select_term *one = &conditions->items[i];
        if (names_device(one) && !tni_select_meets_one(device, one))
            return;
    }
    for (size_t i = 0; i < conditions->count; i++) {
        const tni_select_term *one = &conditions->items[i];
        if (one->kind == TNI_SELECT_NUMBER &&
            !(tni_device_known(device)->known & UINT64_C(1) << one->key))
            (void)tn_device_properties_get(device);
        else if (one->kind != TNI_SELECT_NUMBER && !names_device(one))
            (void)tni_device_described(device);
    }
}

bool tni_select_meets(const tn_device *device, const tni_select_terms *conditions)
{
    for (size_t i = 0; i < conditions->count; i++) {
        if (!tni_select_meets_one(device, &conditions->items[i]))
            return false;
    }
    return true;
}
