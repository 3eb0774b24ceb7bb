/* The words for processor features, and the record of which are usable. */
#include "base/words.h"
#include "cpu_detect.h"

#define WORD(name, bit, word) [bit] = word,
static const char *const feature_words[] = {TN_CPU_FEATURE_LIST(WORD)};
#undef WORD

#define LISTED(name, bit, word) ", " word
static const char all_features[] = TN_CPU_FEATURE_LIST(LISTED);
#undef LISTED

#define LACKING(name, bit, word) [bit] = "it builds on " word ", which is not usable here",
static const char *const lacking[] = {TN_CPU_FEATURE_LIST(LACKING)};
#undef LACKING

void tni_cpu_facts_note(tni_cpu_facts *facts, int feature, uint64_t needs, const char *obstacle)
{
    uint64_t missing = needs & ~facts->usable;
    for (int i = 0; !obstacle && i < TN_CPU_FEATURE_COUNT; i++) {
        if (missing >> i & 1)
            obstacle = lacking[i];
    }
    facts->why_not[feature] = obstacle;
    if (!obstacle)
        facts->usable |= UINT64_C(1) << feature;
}

const char *tni_cpu_feature_name(int index)
{
    return index >= 0 && index < TN_CPU_FEATURE_COUNT ? feature_words[index] : NULL;
}

static int feature_of(const char *word, size_t length)
{
    for (int i = 0; i < TN_CPU_FEATURE_COUNT; i++) {
        if (strlen(feature_words[i]) == length && memcmp(feature_words[i], word, length) == 0)
            return i;
    }
    return -1;
}

static tn_status unknown_word(const char *text, size_t length, tn_error *err)
{
    char word[TNI_NAME_MAX + 1];
    snprintf(word, sizeof word, "%.*s", (int)(length < TNI_NAME_MAX ? length : TNI_NAME_MAX), text);
    char hint[TNI_HINT];
    const char *near = tni_words_nearest(word, feature_words, TN_CPU_FEATURE_COUNT);
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tni_cpu_features_parse",
                   "unknown processor feature \"%s\"; features:%s%s", word, all_features + 1,
                   tni_words_hint(near, hint));
}

tn_status tni_cpu_features_parse(const char *text, uint64_t *out, tn_error *err)
{
    uint64_t bits = 0;
    bool more = *text != '\0';
    for (const char *at = text; more; at++) {
        size_t length = strcspn(at, ",");
        int index = feature_of(at, length);
        if (index < 0)
            return unknown_word(at, length, err);
        bits |= UINT64_C(1) << index;
        at += length;
        more = *at == ',';
    }
    *out = bits;
    return TN_OK;
}

size_t tni_cpu_features_write(uint64_t features, char *out, size_t size)
{
    size_t length = 0;
    if (size)
        out[0] = '\0';
    for (int i = 0; i < TN_CPU_FEATURE_COUNT; i++) {
        size_t used = length < size ? length : size;
        if (features >> i & 1)
            length += (size_t)snprintf(size ? out + used : NULL, size - used, "%s%s",
                                       length ? "," : "", feature_words[i]);
    }
    return length;
}
