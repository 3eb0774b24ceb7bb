/* Refusals: their codes, their words, and how far a candidate got before it. */
#include "base/words.h"
#include "judge.h"
#include "tenon/dtype.h"
#include "tenon/explain.h"

#include <inttypes.h>
#include <stdarg.h>

const char *tn_verdict_name(int32_t verdict)
{
    switch (verdict) {
#define NAME(NAME_, number, word) \
    case number: return word;
        TN_VERDICT_LIST(NAME)
#undef NAME
    default: return "unknown";
    }
}

const char *tn_refusal_name(int32_t code)
{
    switch (code) {
#define NAME(NAME_, number, word) \
    case number: return word;
        TN_REFUSAL_LIST(NAME)
#undef NAME
    default: return "unknown";
    }
}

bool tni_refuse_words(tn_refusal *why, int32_t code, const char *what, const char *const *words)
{
    size_t used = 0, length;
    why->code = code;
    why->needed = 1;
    why->found = 0;
    tn_text_fit(why->what, sizeof why->what, what);
    for (; *words; words++, used += length) {
        length = strlen(*words);
        length = length < sizeof why->text - 1 - used ? length : sizeof why->text - 1 - used;
        memcpy(why->text + used, *words, length);
    }
    why->text[used] = '\0';
    return false;
}

bool tni_refuse(tn_refusal *why, int32_t code, const char *what, int64_t needed, int64_t found,
                const char *format, ...)
{
    va_list arguments;
    (void)tn_refuse(why, code, what, needed, found);
    va_start(arguments, format);
    tni_text_format_list(why->text, sizeof why->text, format, arguments);
    va_end(arguments);
    return false;
}

/* The meaning of a refusal's numbers: 1 and 0 with a text are a condition, not amounts. */
enum { AMOUNTS, DTYPES, NO_NUMBERS, TEXT_ALONE };

static int32_t numbers_of(const tn_refusal *why)
{
    static const uint8_t kinds[TN_REFUSE_COUNT] = {
        [TN_REFUSE_DTYPE] = DTYPES,           [TN_REFUSE_FEATURE] = NO_NUMBERS,
        [TN_REFUSE_DETERMINISM] = NO_NUMBERS, [TN_REFUSE_RULE] = TEXT_ALONE,
        [TN_REFUSE_LIBRARY] = NO_NUMBERS,     [TN_REFUSE_KNOWN_BAD] = NO_NUMBERS,
        [TN_REFUSE_QUARANTINE] = TEXT_ALONE,  [TN_REFUSE_LOCK] = TEXT_ALONE,
    };
    int32_t kind = kinds[why->code];
    if (kind == TEXT_ALONE && why->text[0])
        return TEXT_ALONE;
    if ((why->needed == 1 && why->found == 0 && why->text[0]) || kind == TEXT_ALONE)
        return NO_NUMBERS;
    bool named = tn_dtype_name((tn_dtype)why->needed) && tn_dtype_name((tn_dtype)why->found);
    return kind == DTYPES && !named ? AMOUNTS : kind;
}

/* Writes the subject of the refusal; nothing if the text or the code already names it. */
static void write_subject(const tn_refusal *why, char *out, size_t size)
{
    bool told = strstr(why->text, why->what) || strcmp(why->what, tn_refusal_name(why->code)) == 0;
    switch (numbers_of(why)) {
    case AMOUNTS:
        snprintf(out, size, "%s: expected %" PRId64 ", got %" PRId64, why->what, why->needed,
                 why->found);
        break;
    case DTYPES:
        snprintf(out, size, "%s: expected %s, got %s", why->what,
                 tn_dtype_name((tn_dtype)why->needed), tn_dtype_name((tn_dtype)why->found));
        break;
    case NO_NUMBERS:
        if (!why->text[0])
            snprintf(out, size, "%s is needed but missing", why->what);
        else
            tn_text_fit(out, size, told ? "" : why->what);
        break;
    default: out[0] = '\0'; break;
    }
}

void tni_refusal_complete(tn_refusal *why)
{
    char subject[96];
    write_subject(why, subject, sizeof subject);
    size_t length = strlen(subject), behind = strlen(why->text), gap = behind > 0 ? 2 : 0;
    if (length == 0)
        return;
    size_t room = sizeof why->text - 1 - length - gap;
    behind = behind < room ? behind : room;
    memmove(why->text + length + gap, why->text, behind);
    memcpy(why->text + length, "; ", gap);
    memcpy(why->text, subject, length);
    why->text[length + gap + behind] = '\0';
}

int32_t tni_refusal_progress(int32_t code)
{
    enum { OF_ITS_OWN = 7 };
    static const uint8_t late[TN_REFUSE_COUNT] = {
        [TN_REFUSE_DTYPE] = 1,       [TN_REFUSE_FEATURE] = 2, [TN_REFUSE_PRECISION] = 3,
        [TN_REFUSE_DETERMINISM] = 3, [TN_REFUSE_RULE] = 4,    [TN_REFUSE_DEVICE] = 5,
        [TN_REFUSE_LIBRARY] = 6,     [TN_REFUSE_LOCK] = 8,    [TN_REFUSE_KNOWN_BAD] = 9,
        [TN_REFUSE_QUARANTINE] = 10};
    return late[code] ? late[code] : OF_ITS_OWN;
}
