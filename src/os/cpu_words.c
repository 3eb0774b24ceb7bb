/* The words for processor features, and the record of which are usable. */
#include "cpu_detect.h"

#define WORD(name, bit, word) [bit] = word,
static const char *const feature_words[] = {TN_CPU_FEATURE_LIST(WORD)};
#undef WORD

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
