#include "cpu_level.h"

#include "base/words.h"
#include "cpu.h"

/* One level of an architecture. A level requires the `needs` of all levels up to it. As a limit, it
 * allows the `needs` and `leaves` of all levels up to it: `leaves` are features that it allows but
 * does not require. */
struct level {
    const char *word;
    const char *capability; /* PyTorch's name from this level on */
    uint64_t needs;
    uint64_t leaves;
};

#define F(name) TN_CPU_BIT(name)

/* AMX counts if the system can grant it, even before it is requested: a request changes the
 * process, and a query must not. Request it with tni_cpu_amx_request before choosing AMX kernels;
 * naming the level as a limit does so too. */
// clang-format off
static const struct level x86[] = {
    {"baseline",    "DEFAULT", 0, F(SSE2)},
    {"avx2",        "AVX2",    F(AVX2) | F(FMA),
     F(SSE41) | F(AVX) | F(F16C) | F(SHA) | F(AVX_VNNI)},
    {"avx512",      "AVX512",  F(AVX512F) | F(AVX512BW) | F(AVX512DQ) | F(AVX512VL), 0},
    {"avx512-vnni", "AVX512",  F(AVX512_VNNI), 0},
    {"avx512-bf16", "AVX512",  F(AVX512_BF16), 0},
    {"avx512-fp16", "AVX512",  F(AVX512_FP16), 0},
    {"amx",         "AVX512",  F(AMX_TILE) | F(AMX_INT8) | F(AMX_BF16), 0},
};

/* PyTorch's name for everything below SVE is DEFAULT. */
static const struct level arm[] = {
    {"baseline",     "DEFAULT", 0, 0},
    {"neon",         "DEFAULT", F(NEON), F(ARM_SHA2)},
    {"neon-dotprod", "DEFAULT", F(ARM_DOTPROD), F(ARM_FP16)},
    {"neon-bf16",    "DEFAULT", F(ARM_BF16), F(ARM_I8MM)},
    {"sve",          "SVE",     F(SVE), 0},
    {"sve2",         "SVE",     F(SVE2), 0},
};
// clang-format on

/* PyTorch also has names for the vector units of Power and IBM Z. Tenon has no kernels for them and
 * does not detect them, so it reports DEFAULT. */
static const struct level others[] = {{"baseline", "DEFAULT", 0, 0}};

struct ladder {
    const struct level *levels;
    size_t count;
};

static struct ladder ladder_of(int32_t architecture)
{
    switch (architecture) {
    case TN_CPU_ARCH_X86: return (struct ladder){x86, sizeof x86 / sizeof x86[0]};
    case TN_CPU_ARCH_ARM: return (struct ladder){arm, sizeof arm / sizeof arm[0]};
    default: return (struct ladder){others, 1};
    }
}

/* Number of levels that `features` reach; at least 1. */
static size_t count_reached(struct ladder ladder, uint64_t features)
{
    size_t count = 1;
    while (count < ladder.count && !(ladder.levels[count].needs & ~features))
        count++;
    return count;
}

const char *tni_cpu_level_of(int32_t architecture, uint64_t features)
{
    struct ladder ladder = ladder_of(architecture);
    return ladder.levels[count_reached(ladder, features) - 1].word;
}

const char *tni_cpu_capability_of(int32_t architecture, uint64_t features, int32_t sve_bits)
{
    struct ladder ladder = ladder_of(architecture);
    const char *word = ladder.levels[count_reached(ladder, features) - 1].capability;
    if (strcmp(word, "SVE") != 0)
        return word;
    return sve_bits == 128 ? "SVE128" : sve_bits == 256 ? "SVE256" : "DEFAULT";
}

static const tni_cpu_asked *this_processor(tni_cpu_asked *out)
{
    *out = (tni_cpu_asked){tn_cpu_architecture(), tni_cpu_sve_bits(), tni_cpu_detected(),
                           tni_cpu_why_not};
    return out;
}

uint64_t tni_cpu_reported(void)
{
    return tni_cpu_possible() & tni_cpu_mask();
}

const char *tni_cpu_capability(void)
{
    return tni_cpu_capability_of(tn_cpu_architecture(), tni_cpu_reported(), tni_cpu_sve_bits());
}

const char *tni_cpu_level(void)
{
    return tni_cpu_level_of(tn_cpu_architecture(), tni_cpu_reported());
}

const char *tn_cpu_withheld(const char **out_reason)
{
    for (int i = TN_CPU_FEATURE_COUNT - 1; i >= 0; i--) {
        const char *why = tni_cpu_why_not(i);
        if (!why || tni_cpu_possible() >> i & 1)
            continue;
        if (out_reason)
            *out_reason = why;
        return tni_cpu_feature_name(i);
    }
    if (out_reason)
        *out_reason = "";
    return "";
}

/* Every name of both lists, without duplicates that differ only in case. */
static const char *const words[] = {"baseline",    "avx2", "avx512",  "avx512-vnni",  "avx512-bf16",
                                    "avx512-fp16", "amx",  "neon",    "neon-dotprod", "neon-bf16",
                                    "sve",         "sve2", "DEFAULT", "SVE128",       "SVE256"};
enum { WORD_COUNT = sizeof words / sizeof words[0] };

static const char *known_word(const char *word)
{
    for (size_t i = 0; i < WORD_COUNT; i++) {
        if (tni_words_same(word, words[i]))
            return words[i];
    }
    return NULL;
}

static tn_status unknown_word(const char *word, tn_error *err)
{
    char hint[TNI_HINT];
    const char *near = tni_words_nearest(word, words, WORD_COUNT);
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_cpu_limit",
                   "unknown level \"%.48s\": expected baseline, avx2, avx512, avx512-vnni, "
                   "avx512-bf16, avx512-fp16, amx, neon, neon-dotprod, neon-bf16, sve, sve2, or "
                   "DEFAULT, SVE128, SVE256%s",
                   word, tni_words_hint(near, hint));
}

/* Number of levels up to the one that a known word names; 0 if it is not a level of this
 * architecture, or names another SVE vector length. "DEFAULT" is the highest level with that
 * PyTorch name. */
static size_t steps_of(struct ladder ladder, const char *word, int32_t sve_bits)
{
    size_t steps = 0;
    bool by_capability = strcmp(word, "DEFAULT") == 0;
    if ((sve_bits == 128 && strcmp(word, "SVE128") == 0) ||
        (sve_bits == 256 && strcmp(word, "SVE256") == 0))
        word = "sve";
    for (size_t i = 0; i < ladder.count; i++) {
        const struct level *level = &ladder.levels[i];
        if (strcmp(word, by_capability ? level->capability : level->word) == 0)
            steps = i + 1;
    }
    return steps;
}

/* Why a processor that has the features of a level does not reach it; NULL if it lacks them. */
static const char *find_obstacle(const tni_cpu_asked *cpu, struct ladder ladder, size_t steps)
{
    for (size_t step = 0; step < steps; step++) {
        uint64_t missing = ladder.levels[step].needs & ~cpu->detected;
        for (int i = 0; i < TN_CPU_FEATURE_COUNT; i++) {
            if (missing >> i & 1 && cpu->why_not(i))
                return cpu->why_not(i);
        }
    }
    return NULL;
}

tn_status tni_cpu_limit_mask(const tni_cpu_asked *cpu, const char *level, uint64_t *out_allow,
                             tn_error *err)
{
    const char *word = known_word(level);
    if (!word)
        return unknown_word(level, err);
    struct ladder ladder = ladder_of(cpu->architecture);
    size_t steps = steps_of(ladder, word, cpu->sve_bits),
           most = count_reached(ladder, cpu->detected);
    if (steps == 0 || (steps > most && strcmp(word, "DEFAULT") != 0)) {
        const char *why = find_obstacle(cpu, ladder, steps);
        return tn_fail(
            err, TN_UNSUPPORTED, 0, "tn_cpu_limit",
            "level \"%s\" is not usable on this processor, whose highest level is \"%s\"%s%s", word,
            ladder.levels[most - 1].word, why ? ": " : "", why ? why : "");
    }
    uint64_t allow = 0;
    for (size_t i = 0; i < steps; i++)
        allow |= ladder.levels[i].needs | ladder.levels[i].leaves;
    *out_allow = allow;
    return TN_OK;
}

/* Requests AMX from the system if the level needs it, so that the check of the level reflects the
 * system's answer, independent of earlier calls. */
static void request_level(const char *level)
{
    struct ladder ladder = ladder_of(tn_cpu_architecture());
    const char *word = known_word(level);
    size_t steps = word ? steps_of(ladder, word, tni_cpu_sve_bits()) : 0;
    uint64_t needs = 0;
    for (size_t i = 0; i < steps; i++)
        needs |= ladder.levels[i].needs;
    if (needs & tni_cpu_possible() & ~tni_cpu_detected())
        (void)tni_cpu_amx_request();
}

/* The features that remain on this processor; all if `level` is NULL. */
static tn_status mask_here(const char *level, uint64_t *out_allow, tn_error *err)
{
    tni_cpu_asked cpu;
    *out_allow = UINT64_MAX;
    if (!level)
        return TN_OK;
    request_level(level);
    return tni_cpu_limit_mask(this_processor(&cpu), level, out_allow, err);
}

tn_status tni_cpu_limit_check(const char *level, tn_error *err)
{
    uint64_t allow;
    return mask_here(level, &allow, err);
}

const char *tni_cpu_limit_word(const char *level)
{
    struct ladder ladder = ladder_of(tn_cpu_architecture());
    const char *word = known_word(level);
    size_t steps = word ? steps_of(ladder, word, tni_cpu_sve_bits()) : 0;
    return steps ? ladder.levels[steps - 1].word : NULL;
}

tn_status tni_cpu_limit(const char *level, tn_error *err)
{
    uint64_t allow;
    tn_status status = mask_here(level, &allow, err);
    if (!status)
        tni_cpu_mask_set(allow);
    return status;
}

int32_t tn_cpu_architecture(void)
{
#if defined(__x86_64__) || defined(__i386__)
    return TN_CPU_ARCH_X86;
#elif defined(__aarch64__) || defined(__arm__)
    return TN_CPU_ARCH_ARM;
#elif defined(__powerpc__)
    return TN_CPU_ARCH_POWERPC;
#elif defined(__s390x__)
    return TN_CPU_ARCH_S390X;
#elif defined(__riscv)
    return TN_CPU_ARCH_RISCV;
#else
    return TN_CPU_ARCH_OTHER;
#endif
}

const char *tn_cpu_architecture_name(int32_t architecture)
{
    static const char *const names[] = {"unspecified", "x86",   "arm",  "powerpc",
                                        "s390x",       "riscv", "other"};
    bool known = architecture >= 0 && (size_t)architecture < sizeof names / sizeof names[0];
    return names[known ? architecture : TN_CPU_ARCH_UNSPECIFIED];
}
