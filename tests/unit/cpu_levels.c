/* Levels of vector instructions: how features make them up, what a limit leaves, and that the
 * running processor can be brought down to every level it has and no other. */
#include "os/cpu.h"

#include "device/description_values.h"
#include "os/cpu_level.h"
#include "tenon/cpu.h"
#include "tenon/machine.h"
#include "test.h"

#if defined(__linux__) && defined(__x86_64__)
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

#define F(feature) TN_CPU_BIT(feature)

#define SSE   (F(SSE2) | F(SSE41))
#define HASW  (SSE | F(AVX) | F(F16C) | F(FMA) | F(AVX2))
#define SKX   (HASW | F(AVX512F) | F(AVX512BW) | F(AVX512DQ) | F(AVX512VL))
#define ICX   (SKX | F(AVX512_VNNI) | F(SHA))
#define ZEN4  (ICX | F(AVX512_BF16))
#define SPR   (ZEN4 | F(AVX512_FP16) | F(AVX_VNNI))
#define TILES (F(AMX_TILE) | F(AMX_INT8) | F(AMX_BF16))
#define N1    (F(NEON) | F(ARM_SHA2) | F(ARM_FP16) | F(ARM_DOTPROD))
#define V1    (N1 | F(ARM_BF16) | F(ARM_I8MM) | F(SVE))
#define V2    (V1 | F(SVE2))
#define A64FX (F(NEON) | F(ARM_SHA2) | F(ARM_FP16) | F(SVE))

enum { X86 = TN_CPU_ARCH_X86, ARM = TN_CPU_ARCH_ARM };

struct processor {
    int32_t architecture;
    uint64_t features;
    int32_t sve_bits;
    const char *level, *capability;
};

static const struct processor processors[] = {
    {X86, 0, 0, "baseline", "DEFAULT"},
    {X86, F(SSE2), 0, "baseline", "DEFAULT"},
    {X86, SSE | F(AVX) | F(F16C), 0, "baseline", "DEFAULT"}, /* Ivy Bridge */
    {X86, HASW & ~F(AVX2), 0, "baseline", "DEFAULT"},        /* Piledriver */
    {X86, HASW & ~F(FMA), 0, "baseline", "DEFAULT"},
    {X86, HASW, 0, "avx2", "AVX2"},
    {X86, HASW | F(AVX_VNNI) | F(SHA), 0, "avx2", "AVX2"}, /* Alder Lake */
    {X86, HASW | F(AVX512F), 0, "avx2", "AVX2"},           /* Knights Landing */
    {X86, SKX & ~F(AVX512VL), 0, "avx2", "AVX2"},
    {X86, SKX & ~F(AVX512BW), 0, "avx2", "AVX2"},
    {X86, SKX & ~F(AVX512DQ), 0, "avx2", "AVX2"},
    {X86, SKX & ~F(FMA), 0, "baseline", "DEFAULT"},
    {X86, SKX, 0, "avx512", "AVX512"},
    {X86, SKX | F(AVX512_BF16), 0, "avx512", "AVX512"},
    {X86, ICX, 0, "avx512-vnni", "AVX512"},
    {X86, ZEN4, 0, "avx512-bf16", "AVX512"},
    {X86, SPR, 0, "avx512-fp16", "AVX512"},
    {X86, SPR | TILES, 0, "amx", "AVX512"},
    {X86, SPR | F(AMX_TILE), 0, "avx512-fp16", "AVX512"},
    {ARM, 0, 0, "baseline", "DEFAULT"},
    {ARM, F(NEON), 0, "neon", "DEFAULT"},
    {ARM, N1, 0, "neon-dotprod", "DEFAULT"},
    {ARM, N1 | F(ARM_BF16), 0, "neon-bf16", "DEFAULT"},
    {ARM, A64FX, 512, "neon", "DEFAULT"},
    {ARM, V1, 256, "sve", "SVE256"},
    {ARM, V1, 128, "sve", "SVE128"},
    {ARM, V1, 512, "sve", "DEFAULT"},
    {ARM, V1, 0, "sve", "DEFAULT"},
    {ARM, V1 & ~F(ARM_BF16), 256, "neon-dotprod", "DEFAULT"},
    {ARM, V2, 128, "sve2", "SVE128"},
    {TN_CPU_ARCH_POWERPC, UINT64_MAX, 0, "baseline", "DEFAULT"},
    {TN_CPU_ARCH_S390X, 0, 0, "baseline", "DEFAULT"},
    {TN_CPU_ARCH_UNSPECIFIED, 0, 0, "baseline", "DEFAULT"},
};

static void features_make_levels(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof processors / sizeof processors[0]; i++) {
        const struct processor *it = &processors[i];
        if (strcmp(tni_cpu_level_of(it->architecture, it->features), it->level) != 0)
            fail_msg("processor %zu is of level %s", i,
                     tni_cpu_level_of(it->architecture, it->features));
        assert_string_equal(tni_cpu_capability_of(it->architecture, it->features, it->sve_bits),
                            it->capability);
    }
}

static const char *nothing_stands_against_it(int feature)
{
    (void)feature;
    return NULL;
}

static const char *no_zmm(int feature)
{
    return feature == TN_CPU_INDEX_AVX512F ? "the system does not save zmm registers" : NULL;
}

static tni_cpu_asked asked(int32_t architecture, uint64_t features, int32_t sve_bits)
{
    return (tni_cpu_asked){architecture, sve_bits, features, nothing_stands_against_it};
}

/* What remains of a processor under a limit. */
static uint64_t limited(int32_t architecture, uint64_t features, int32_t sve_bits,
                        const char *level)
{
    tni_cpu_asked cpu = asked(architecture, features, sve_bits);
    uint64_t allow = 0;
    tn_error err;
    if (tni_cpu_limit_mask(&cpu, level, &allow, &err))
        fail_msg("%s: %s", level, err.message);
    return features & allow;
}

static void limits_hide_what_is_above(void **state)
{
    (void)state;
    assert_int_equal(limited(X86, SPR | TILES, 0, "baseline"), F(SSE2));
    assert_int_equal(limited(X86, SPR | TILES, 0, "DEFAULT"), F(SSE2));
    assert_int_equal(limited(X86, SPR | TILES, 0, "avx2"), HASW | F(SHA) | F(AVX_VNNI));
    assert_int_equal(limited(X86, SPR | TILES, 0, "AVX512"), SKX | F(SHA) | F(AVX_VNNI));
    assert_int_equal(limited(X86, SPR | TILES, 0, "avx512-vnni"), ICX | F(AVX_VNNI));
    assert_int_equal(limited(X86, SPR | TILES, 0, "AVX512-bf16"), ZEN4 | F(AVX_VNNI));
    assert_int_equal(limited(X86, SPR | TILES, 0, "avx512-fp16"), SPR);
    assert_int_equal(limited(X86, SPR | TILES, 0, "Amx"), SPR | TILES);
    assert_int_equal(limited(ARM, V2, 128, "baseline"), 0);
    assert_int_equal(limited(ARM, V2, 128, "neon"), F(NEON) | F(ARM_SHA2));
    assert_int_equal(limited(ARM, V2, 128, "neon-dotprod"), N1);
    assert_int_equal(limited(ARM, V2, 128, "neon-bf16"), V1 & ~F(SVE));
    assert_int_equal(limited(ARM, V2, 128, "default"), V1 & ~F(SVE));
    assert_int_equal(limited(ARM, V2, 128, "sve128"), V1);
    assert_int_equal(limited(ARM, V1, 256, "SVE256"), V1);
    assert_int_equal(limited(ARM, V2, 128, "sve2"), V2);
    assert_int_equal(limited(ARM, F(NEON), 0, "DEFAULT"), F(NEON));
    assert_int_equal(limited(TN_CPU_ARCH_RISCV, 0, 0, "DEFAULT"), 0);
}

/* Under the limit of a level, a processor is of that level. */
static void limits_are_reached(void **state)
{
    static const char *const x86[] = {"baseline",    "avx2",        "avx512", "avx512-vnni",
                                      "avx512-bf16", "avx512-fp16", "amx"};
    static const char *const arm[] = {"baseline",  "neon", "neon-dotprod",
                                      "neon-bf16", "sve",  "sve2"};
    (void)state;
    for (size_t i = 0; i < sizeof x86 / sizeof x86[0]; i++)
        assert_string_equal(tni_cpu_level_of(X86, limited(X86, SPR | TILES, 0, x86[i])), x86[i]);
    for (size_t i = 0; i < sizeof arm / sizeof arm[0]; i++)
        assert_string_equal(tni_cpu_level_of(ARM, limited(ARM, V2, 128, arm[i])), arm[i]);
}

static void refused(tni_cpu_asked cpu, const char *level, tn_status status, const char *words)
{
    uint64_t allow = 77;
    tn_error err = {0};
    assert_int_equal(tni_cpu_limit_mask(&cpu, level, &allow, &err), status);
    assert_contains(err.message, words);
    assert_int_equal(allow, 77);
    assert_int_equal(tni_cpu_limit_mask(&cpu, level, &allow, NULL), status);
}

static void levels_that_are_not_there_are_refused(void **state)
{
    tni_cpu_asked hampered = asked(X86, HASW, 0);
    (void)state;
    hampered.why_not = no_zmm;
    refused(asked(X86, HASW, 0), "avx512", TN_UNSUPPORTED,
            "level \"avx512\" is not usable on this processor, whose highest level is \"avx2\"");
    refused(asked(X86, SPR, 0), "amx", TN_UNSUPPORTED, "whose highest level is \"avx512-fp16\"");
    refused(hampered, "AVX512", TN_UNSUPPORTED,
            "whose highest level is \"avx2\": the system does not save zmm registers");
    refused(asked(X86, SPR, 0), "neon", TN_UNSUPPORTED, "level \"neon\" is not usable");
    refused(asked(X86, SPR, 0), "SVE256", TN_UNSUPPORTED, "level \"SVE256\" is not usable");
    refused(asked(ARM, V1, 256), "SVE128", TN_UNSUPPORTED, "whose highest level is \"sve\"");
    refused(asked(ARM, V2, 128), "sve256", TN_UNSUPPORTED, "level \"SVE256\" is not usable");
    refused(asked(ARM, V1, 256), "sve2", TN_UNSUPPORTED, "whose highest level is \"sve\"");
    refused(asked(ARM, A64FX, 512), "sve", TN_UNSUPPORTED, "whose highest level is \"neon\"");
    refused(asked(ARM, V1, 256), "avx2", TN_UNSUPPORTED, "level \"avx2\" is not usable");
    refused(asked(TN_CPU_ARCH_OTHER, 0, 0), "avx2", TN_UNSUPPORTED,
            "highest level is \"baseline\"");
}

static void words_that_are_none_are_refused(void **state)
{
    tni_cpu_asked cpu = asked(X86, SPR, 0);
    (void)state;
    refused(cpu, "avx521", TN_INVALID_ARGUMENT,
            "unknown level \"avx521\": expected baseline, avx2,");
    refused(cpu, "avx521", TN_INVALID_ARGUMENT, "did you mean avx512?");
    refused(cpu, "neon_bf16", TN_INVALID_ARGUMENT, "did you mean neon-bf16?");
    refused(cpu, "defualt", TN_INVALID_ARGUMENT, "did you mean DEFAULT?");
    refused(cpu, "", TN_INVALID_ARGUMENT, "unknown level \"\"");
    refused(cpu, "avx2 ", TN_INVALID_ARGUMENT, "unknown level \"avx2 \"");
    refused(cpu, "sve512", TN_INVALID_ARGUMENT, "unknown level \"sve512\"");
    refused(cpu, "fma", TN_INVALID_ARGUMENT, "or DEFAULT, SVE128, SVE256");
}

static void features_are_written(void **state)
{
    char text[16] = "x";
    (void)state;
    assert_int_equal(tni_cpu_features_write(0, text, sizeof text), 0);
    assert_string_equal(text, "");
    assert_int_equal(tni_cpu_features_write(F(AVX2) | F(FMA), text, sizeof text), 8);
    assert_string_equal(text, "fma,avx2");
    assert_int_equal(tni_cpu_features_write(F(SSE2) | F(SSE41) | F(FMA), text, 8), 15);
    assert_string_equal(text, "sse2,ss");
    assert_int_equal(tni_cpu_features_write(F(SSE2) | F(SSE41) | F(FMA), text, 1), 15);
    assert_string_equal(text, "");
    assert_int_equal(tni_cpu_features_write(F(SSE2), NULL, 0), 4);
}

/* All of them fit in what a module is lent. */
static void every_feature_fits(void **state)
{
    tn_machine_facts facts;
    uint64_t all = (UINT64_C(1) << TN_CPU_FEATURE_COUNT) - 1, bits;
    tni_need need;
    (void)state;
    assert_true(tni_cpu_features_write(all, facts.features, sizeof facts.features) <
                sizeof facts.features);
    assert_true(tni_value_features(facts.features, &bits, &need));
    assert_int_equal(bits, all);
}

static void names_architectures(void **state)
{
    static const char *const names[] = {"unspecified", "x86",   "arm",  "powerpc",
                                        "s390x",       "riscv", "other"};
    (void)state;
    for (int32_t i = 0; i < 7; i++)
        assert_string_equal(tn_cpu_architecture_name(i), names[i]);
    assert_string_equal(tn_cpu_architecture_name(TN_CPU_ARCH_UNSPECIFIED), "unspecified");
    assert_string_equal(tn_cpu_architecture_name(-1), "unspecified");
    assert_string_equal(tn_cpu_architecture_name(7), "unspecified");
    assert_string_equal(tn_cpu_architecture_name(INT32_MIN), "unspecified");
#if defined(__x86_64__)
    assert_int_equal(tn_cpu_architecture(), TN_CPU_ARCH_X86);
#elif defined(__aarch64__)
    assert_int_equal(tn_cpu_architecture(), TN_CPU_ARCH_ARM);
#endif
}

/* This processor. */

static void tells_what_is_detected(void **state)
{
    char text[512];
    uint64_t bits;
    tni_need need;
    (void)state;
    assert_true(tn_cpu_features(text, sizeof text) < sizeof text);
    assert_true(tni_value_features(text, &bits, &need));
    assert_int_equal(bits, tni_cpu_possible());
    assert_string_equal(tn_cpu_level(), tni_cpu_level_of(tn_cpu_architecture(), bits));
    assert_string_equal(tn_cpu_capability(),
                        tni_cpu_capability_of(tn_cpu_architecture(), bits, tni_cpu_sve_bits()));
    assert_int_equal(tni_cpu_sve_bits() > 0, (bits & F(SVE)) != 0);
    assert_int_equal(tni_cpu_sve_bits() % 128, 0);
    print_message("%s, %s: %s\n", tn_cpu_capability(), tn_cpu_level(), text);
}

/* Every level at or below its own can be had, no other, and none of it lasts. */
static void can_be_limited(void **state)
{
    static const char *const levels[] = {"baseline",     "avx2",        "avx512", "avx512-vnni",
                                         "avx512-bf16",  "avx512-fp16", "amx",    "neon",
                                         "neon-dotprod", "neon-bf16",   "sve",    "sve2"};
    const char *own = tn_cpu_level();
    uint64_t possible = tni_cpu_possible();
    int had = 0;
    (void)state;
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        tn_error err = {0};
        const char *before = tn_cpu_level();
        tn_status status = tn_cpu_limit(levels[i], &err);
        if (status) {
            assert_int_equal(status, TN_UNSUPPORTED);
            assert_string_equal(tn_cpu_level(), before);
            continue;
        }
        had++;
        assert_string_equal(tn_cpu_level(), levels[i]);
        assert_int_equal(tni_cpu_features() & ~possible, 0);
    }
    assert_true(had >= 1);
    assert_string_equal(tn_cpu_level(), own);
    assert_int_equal(tn_cpu_limit("baseline", NULL), TN_OK);
    assert_string_equal(tn_cpu_level(), "baseline");
    assert_string_equal(tn_cpu_capability(), "DEFAULT");
    assert_int_equal(tn_cpu_limit("no such level", NULL), TN_INVALID_ARGUMENT);
    assert_string_equal(tn_cpu_level(), "baseline");
    assert_int_equal(tn_cpu_limit(NULL, NULL), TN_OK);
    assert_int_equal(tni_cpu_features(), tni_cpu_detected());
    assert_int_equal(tni_cpu_reported(), possible);
}

#if defined(__linux__) && defined(__x86_64__)

/* 0 when the system refuses what the level needs, the reason is told, and reports go by it from there on. */
static int limit_with_small_signal_stack(void)
{
    static char memory[8192];
    const char *reason = NULL;
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    tn_error err = {0};
    if (sigaltstack(&stack, NULL) != 0)
        return 1;
    if (strcmp(tn_cpu_level(), "amx") != 0 || tn_cpu_limit("amx", &err) != TN_UNSUPPORTED)
        return 2;
    if (!strstr(err.message, "whose highest level is \"avx512-fp16\": a signal stack"))
        return 3;
    if (strcmp(tn_cpu_level(), "avx512-fp16") != 0 || tni_cpu_reported() != tni_cpu_features())
        return 4;
    return strstr(tn_cpu_withheld(&reason), "amx-") && strstr(reason, "signal stack") ? 0 : 5;
}

static void is_refused_with_the_systems_reason(void)
{
    int outcome = -1;
    pid_t child = fork();
    if (child == 0)
        _exit(limit_with_small_signal_stack());
    assert_int_equal(waitpid(child, &outcome, 0), child);
    assert_int_equal(outcome, 0);
}

#else

static void is_refused_with_the_systems_reason(void) {}

#endif

/* Queries tell of the tiles, and lower levels hide them, without asking for them; naming the level
 * does ask, so that it is taken whatever ran before. */
static void asks_for_tiles_where_they_are_named(void **state)
{
    const char *why = tni_cpu_why_not(TN_CPU_INDEX_AMX_TILE);
    char features[512];
    tn_error err;
    (void)state;
    if (!why || !strstr(why, "has not requested") || !(tni_cpu_possible() & F(AMX_TILE)))
        skip_because("amx: %s", why ? why : "not in this processor");
    assert_string_equal(tn_cpu_level(), "amx");
    assert_string_equal(tn_cpu_withheld(NULL), "");
    (void)tn_cpu_features(features, sizeof features);
    assert_contains(features, "amx-tile,amx-int8,amx-bf16");
    assert_int_equal(tni_cpu_features() & TILES, 0);
    assert_false(tni_cpu_is_masked());
    uint64_t before = tni_cpu_stamp();
    assert_int_equal(tn_cpu_limit("avx512-fp16", &err), TN_OK);
    assert_string_equal(tn_cpu_level(), "avx512-fp16");
    assert_true(tni_cpu_is_masked());
    assert_true(tni_cpu_stamp() != before);
    assert_int_equal(tn_cpu_limit(NULL, &err), TN_OK);
    assert_true(tni_cpu_stamp() == before);
    assert_ptr_equal(tni_cpu_why_not(TN_CPU_INDEX_AMX_TILE), why);
    is_refused_with_the_systems_reason();
    if (tn_cpu_limit("amx", &err)) {
        assert_contains(err.message, tni_cpu_why_not(TN_CPU_INDEX_AMX_TILE));
        assert_null(strstr(err.message, "has not requested"));
        skip_because("%s", err.message);
    }
    assert_null(tni_cpu_why_not(TN_CPU_INDEX_AMX_TILE));
    assert_string_equal(tn_cpu_level(), "amx");
    assert_int_equal(tni_cpu_features() & TILES, TILES);
    assert_false(tni_cpu_is_masked());
    assert_int_equal(tn_cpu_limit(NULL, &err), TN_OK);
    assert_string_equal(tn_cpu_level(), "amx");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(features_make_levels),
        cmocka_unit_test(limits_hide_what_is_above),
        cmocka_unit_test(limits_are_reached),
        cmocka_unit_test(levels_that_are_not_there_are_refused),
        cmocka_unit_test(words_that_are_none_are_refused),
        cmocka_unit_test(features_are_written),
        cmocka_unit_test(every_feature_fits),
        cmocka_unit_test(names_architectures),
        cmocka_unit_test(tells_what_is_detected),
        cmocka_unit_test(asks_for_tiles_where_they_are_named), /* before others do */
        cmocka_unit_test(can_be_limited),
    };
    return run_suite("unit.cpu_levels", tests);
}
