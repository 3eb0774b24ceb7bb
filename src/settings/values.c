/* Values as text, and validation of changes. */
#include "base/number.h"
#include "base/words.h"
#include "context.h"
#include "table.h"

#include <inttypes.h>

enum { VALUE_MOST = 4096 }; /* maximum bytes of a value's text */

static const char *const truths[] = {"false", "true", "off", "on", "no", "yes", "0", "1"};
enum { TRUTHS = sizeof truths / sizeof truths[0], TRUTH_WORDS = TRUTHS - 2 };

int32_t tni_strength_parse(const char *word)
{
    for (int32_t i = TN_PERMIT; i <= TN_FORBID; i++) {
        if (tni_words_same(word, tn_strength_name(i)))
            return i;
    }
    return -1;
}

const char *tni_strength_nearest(const char *word)
{
    const char *words[TN_FORBID + 1];
    for (int32_t i = TN_PERMIT; i <= TN_FORBID; i++)
        words[i] = tn_strength_name(i);
    return tni_words_nearest(word, words, TN_FORBID + 1);
}

static tn_status reject_value(const tni_setting_row *row, const char *value, const char *nearest,
                              const char *where, tn_error *err)
{
    char hint[TNI_HINT];
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s cannot be \"%.60s\"; allowed: %s%s",
                   row->facts.key, value, row->facts.allowed, tni_words_hint(nearest, hint));
}

/* The word's number, or -1. */
static int64_t find_word(const tni_word_list *list, const char *word)
{
    for (size_t i = 0; i < list->settable; i++) {
        if (tni_words_same(word, list->words[i]))
            return (int64_t)i;
    }
    for (size_t i = 0; list->other && list->other[i]; i += 2) {
        if (tni_words_same(word, list->other[i]))
            return find_word(&(tni_word_list){list->words, list->settable, NULL},
                             list->other[i + 1]);
    }
    return -1;
}

static tn_status parse_bool(const tni_setting_row *row, const char *value, int64_t *out,
                            const char *where, tn_error *err)
{
    for (int64_t i = 0; i < TRUTHS; i++) {
        if (tni_words_same(value, truths[i])) {
            *out = i % 2;
            return TN_OK;
        }
    }
    return reject_value(row, value, tni_words_nearest(value, truths, TRUTH_WORDS), where, err);
}

static tn_status parse_word(const tni_setting_row *row, const char *value, int64_t *out,
                            const char *where, tn_error *err)
{
    int64_t found = find_word(row->words, value);
    if (found < 0)
        return reject_value(row, value,
                            tni_words_nearest(value, row->words->words, row->words->settable),
                            where, err);
    *out = found;
    return TN_OK;
}

static bool in_range(const tni_setting_row *row, int64_t value)
{
    return (value >= row->least && value <= row->most) || value == row->standard;
}

static tn_status parse_number(const tni_setting_row *row, const char *value, int64_t *out,
                              const char *where, tn_error *err)
{
    int64_t number;
    if (row->word && tni_words_same(value, row->word)) {
        *out = row->standard;
        return TN_OK;
    }
    if (!tni_number_parse(value, row->kind == TN_VALUE_BYTES, &number) || number < row->least ||
        number > row->most) {
        const char *near = row->word ? tni_words_nearest(value, &row->word, 1) : NULL;
        return reject_value(row, value, near, where, err);
    }
    *out = number;
    return TN_OK;
}

/* Moves to the next word of a list separated by commas or blanks. Returns its length, 0 at the
 * end. */
static size_t next_word(const char **at)
{
    *at += strspn(*at, ", \t");
    return strcspn(*at, ", \t");
}

tn_status tni_order_parse(const tni_setting_row *row, const char *text, int64_t *out,
                          const char *where, tn_error *err)
{
    int64_t order = 0;
    unsigned seen = 0;
    int place = 0;
    char word[64];
    for (size_t length; (length = next_word(&text)) != 0; text += length) {
        snprintf(word, sizeof word, "%.*s", (int)(length < 63 ? length : 63), text);
        int64_t found = find_word(row->words, word);
        if (found < 0)
            return reject_value(row, word,
                                tni_words_nearest(word, row->words->words, row->words->settable),
                                where, err);
        if (seen >> found & 1)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s: duplicate \"%s\"",
                           row->facts.key, word);
        seen |= 1u << found;
        order |= (found + 1) << (4 * place++);
    }
    if (!order)
        return reject_value(row, "", NULL, where, err);
    for (size_t i = 0; i < row->words->settable; i++) {
        if (!(seen >> i & 1))
            order |= (int64_t)(i + 1) << (4 * place++);
    }
    *out = order;
    return TN_OK;
}

/* Splits "require:cublaslt" into strength and the rest; a name without a strength is required. */
static tn_status parse_rule(const tni_setting_row *row, const char *value, tn_change *out,
                            const char *where, tn_error *err)
{
    char word[24];
    size_t length = strcspn(value, ":");
    out->strength = TN_REQUIRE;
    out->text = value;
    if (!value[length])
        return TN_OK;
    snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1),
             value);
    out->strength = tni_strength_parse(word);
    if (out->strength < 0)
        return reject_value(row, value, tni_strength_nearest(word), where, err);
    out->text = value + length + 1;
    return TN_OK;
}

bool tni_text_trim(const char *from, const char *end, char *out, size_t size)
{
    while (from < end && (*from == ' ' || *from == '\t'))
        from++;
    while (end > from && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    if ((size_t)(end - from) >= size)
        return false;
    memcpy(out, from, (size_t)(end - from));
    out[end - from] = '\0';
    return true;
}

tn_status tni_value_parse(tn_setting setting, const char *value, tn_change *out, const char *where,
                          tn_error *err)
{
    const tni_setting_row *row = tni_setting_row_of(setting);
    tn_change change = {.setting = setting};
    tn_status status = TN_OK;
    char word[64];
    if (strlen(value) > VALUE_MOST)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s: %zu bytes exceed the limit of %d",
                       row->facts.key, strlen(value), VALUE_MOST);
    if (row->kind < TN_VALUE_ORDER &&
        !tni_text_trim(value, value + strlen(value), word, sizeof word))
        return reject_value(row, value, NULL, where, err);
    switch (row->kind) {
    case TN_VALUE_BOOL: status = parse_bool(row, word, &change.value, where, err); break;
    case TN_VALUE_WORD: status = parse_word(row, word, &change.value, where, err); break;
    case TN_VALUE_INT:
    case TN_VALUE_BYTES: status = parse_number(row, word, &change.value, where, err); break;
    case TN_VALUE_ORDER: change.text = value; break;
    case TN_VALUE_RULE: status = parse_rule(row, value, &change, where, err); break;
    default:
        change.strength = -1; /* the text has a strength for each rule */
        change.text = value;
        break;
    }
    if (!status)
        status = tni_change_check(&change, where, err);
    if (!status)
        *out = change;
    return status;
}

static tn_status check_strength(const tni_setting_row *row, const tn_change *change,
                                const char *where, tn_error *err)
{
    bool listed = row->kind == TN_VALUE_RULES && change->strength == -1;
    if (!listed && (change->strength < TN_PERMIT || change->strength > TN_FORBID))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "%s: expected a strength of %d (permit) to %d (forbid), got %d",
                       row->facts.key, TN_PERMIT, TN_FORBID, (int)change->strength);
    if (change->text && strlen(change->text) > VALUE_MOST)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s: %zu bytes exceed the limit of %d",
                       row->facts.key, strlen(change->text), VALUE_MOST);
    return TN_OK;
}

static tn_status check_number(const tni_setting_row *row, const tn_change *change,
                              const char *where, tn_error *err)
{
    char text[24];
    bool good = row->kind == TN_VALUE_BOOL ? change->value == 0 || change->value == 1
                : row->kind == TN_VALUE_WORD
                    ? change->value >= 0 && (uint64_t)change->value < row->words->settable
                    : in_range(row, change->value);
    if (good)
        return TN_OK;
    snprintf(text, sizeof text, "%" PRId64, change->value);
    return reject_value(row, text, NULL, where, err);
}

tn_status tni_change_check(const tn_change *change, const char *where, tn_error *err)
{
    const tni_setting_row *row = tni_setting_row_of(change->setting);
    int64_t order;
    if (!row)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "unknown setting number %d: expected 0 to %d", (int)change->setting,
                       TN_SETTING_COUNT - 1);
    if (row->kind < TN_VALUE_ORDER)
        return check_number(row, change, where, err);
    if (!change->text)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s: the text is NULL", row->facts.key);
    if (row->kind == TN_VALUE_ORDER)
        return tni_order_parse(row, change->text, &order, where, err);
    return check_strength(row, change, where, err);
}
