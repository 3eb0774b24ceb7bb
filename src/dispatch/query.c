/* The queries that kernels get, and the hash of the context settings that are part of plan keys. */
#include "judge.h"

#include "settings/context.h"
#include "settings/table.h"
#include "tenon/dtype.h"
#include "tenon/explain.h"

#include <inttypes.h>
#include <stdarg.h>

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
    char text[1024];
    va_list arguments;
    (void)tn_refuse(why, code, what, needed, found);
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    tn_text_fit(why->text, sizeof why->text, text);
    return false;
}

/* The meaning of a refusal's numbers. */
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
    if ((why->needed == 1 && why->found == 0) || kind == TEXT_ALONE)
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
        snprintf(out, size, "%s needs %" PRId64 ", found %" PRId64, why->what, why->needed,
                 why->found);
        break;
    case DTYPES:
        snprintf(out, size, "%s needs %s, found %s", why->what,
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

/* Only settings that are part of plan keys can be queried: a kernel chosen by any other setting
 * would stay in the cache after that setting changed. */
static tn_status read_setting(const tn_query *query, const char *key, int64_t *out)
{
    const tni_asking *asking = query->self;
    tn_setting number = key ? tni_setting_find(key) : -1;
    for (const tn_setting *s = asking->class->settings; number >= 0 && *s >= 0; s++) {
        if (*s == number) {
            *out = tn_setting_resolved(asking->question->context, number);
            return TN_OK;
        }
    }
    return TN_NOT_FOUND;
}

void tni_query_make(const tni_asking *asking, int64_t library_version, tn_query *out)
{
    *out = (tn_query){.struct_size = sizeof *out,
                      .op = asking->shown,
                      .device = tni_device_described(asking->question->device),
                      .library_version = library_version,
                      .cpu_features = asking->cpu_features,
                      .threads = asking->threads,
                      .self = (void *)(uintptr_t)asking,
                      .setting = read_setting};
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = tni_hash_mix(hash, (unsigned char)*text);
    return tni_hash_mix(hash, 256);
}

/* Mixes in the rules that can apply to an op of the group. The setting that wrote a rule matters,
 * because one may replace another's. */
static uint64_t mix_rules(uint64_t hash, const tn_context *context, int32_t group)
{
    size_t count = tni_rules_count(context->rules);
    for (size_t i = 0; i < count; i++) {
        const tni_rule *rule = tni_rules_at(context->rules, i);
        const tni_op_class *of = rule->selector.op[0] ? tni_op_class_find(rule->selector.op) : NULL;
        if (rule->selector.op[0] && (!of || of->group != group))
            continue;
        hash = mix_text(hash, rule->text);
        hash = tni_hash_mix(hash, (uint64_t)rule->strength << 32 | (uint32_t)rule->depth);
        hash = tni_hash_mix(hash, (uint64_t)rule->setting << 1 | rule->shadowed);
    }
    return hash;
}

uint64_t tni_context_hash(const tn_context *context, const tni_op_class *class)
{
    uint64_t hash = tni_context_note(context, class->group);
    if (hash)
        return hash;
    hash = (uint64_t) class->group + 1;
    for (const tn_setting *s = class->settings; *s >= 0; s++)
        hash = tni_hash_mix(hash, (uint64_t)tn_setting_resolved(context, *s));
    hash = mix_rules(hash, context, class->group);
    hash += !hash;
    tni_context_note_set(context, class->group, hash);
    return hash;
}
