/* Processor features: names and masks, judging processors that this machine is not, and whether
 * what is claimed of this machine is what its kernel says. */
#include "os/cpu.h"

#include "os/cpu_detect.h"
#include "test.h"

#if defined(__linux__) && defined(__x86_64__)
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

#if defined(__linux__) && defined(__aarch64__)
#include <sys/auxv.h>
#else
enum {
    HWCAP_FP = 1 << 0,
    HWCAP_ASIMD = 1 << 1,
    HWCAP_SHA2 = 1 << 6,
    HWCAP_FPHP = 1 << 9,
    HWCAP_ASIMDHP = 1 << 10,
    HWCAP_ASIMDDP = 1 << 20,
    HWCAP_SVE = 1 << 22,
    HWCAP2_SVE2 = 1 << 1,
    HWCAP2_I8MM = 1 << 13,
    HWCAP2_BF16 = 1 << 14,
};
#endif

/* Names, masks, choice. */

static void names_every_bit_once(void **state)
{
    (void)state;
    for (int i = 0; i < TNI_CPU_FEATURE_COUNT; i++) {
        assert_non_null(tni_cpu_feature_name(i));
        for (int j = 0; j < i; j++)
            assert_string_not_equal(tni_cpu_feature_name(i), tni_cpu_feature_name(j));
    }
    assert_string_equal(tni_cpu_feature_name(TNI_CPU_INDEX_SSE41), "sse4.1");
    assert_string_equal(tni_cpu_quirk_name(TNI_CPU_QUIRK_INDEX_VIRTUAL), "virtual");
    assert_null(tni_cpu_feature_name(-1));
    assert_null(tni_cpu_feature_name(TNI_CPU_FEATURE_COUNT));
    assert_null(tni_cpu_quirk_name(-1));
    assert_null(tni_cpu_quirk_name(TNI_CPU_QUIRK_COUNT));
    assert_null(tni_cpu_why_not(-1));
    assert_null(tni_cpu_why_not(TNI_CPU_FEATURE_COUNT));
}

static void parses_what_it_names(void **state)
{
    char all[1024] = "";
    uint64_t bits;
    tn_error err;
    (void)state;
    for (int i = 0; i < TNI_CPU_FEATURE_COUNT; i++) {
        assert_int_equal(tni_cpu_features_parse(tni_cpu_feature_name(i), &bits, &err), TN_OK);
        assert_int_equal(bits, UINT64_C(1) << i);
        strcat(all, i ? "," : "");
        strcat(all, tni_cpu_feature_name(i));
    }
    assert_int_equal(tni_cpu_features_parse(all, &bits, &err), TN_OK);
    assert_int_equal(bits, (UINT64_C(1) << TNI_CPU_FEATURE_COUNT) - 1);
    assert_int_equal(tni_cpu_features_parse("fma,avx2,fma", &bits, &err), TN_OK);
    assert_int_equal(bits, TNI_CPU_BIT(FMA) | TNI_CPU_BIT(AVX2));
    assert_int_equal(tni_cpu_features_parse("", &bits, &err), TN_OK);
    assert_int_equal(bits, 0);
}

static void refuses_unknown_words(void **state)
{
    static const char *const wrong[] = {"avx3000turbo",
                                        "avx2,",
                                        ",avx2",
                                        "avx2,,fma",
                                        ",",
                                        "avx2 fma",
                                        "virtual",
                                        "a-word-that-is-much-longer-than-any-name-of-a-feature-is"};
    uint64_t bits = 12345;
    tn_error err;
    (void)state;
    assert_int_equal(tni_cpu_features_parse("avx2,avx521f,fma", &bits, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "no processor feature \"avx521f\"");
    assert_contains(err.message, "did you mean avx512f?");
    assert_contains(err.message, "there are sse2, sse4.1, avx,");
    assert_contains(err.message, "sve, sve2");
    assert_int_equal(tni_cpu_features_parse("AVX2", &bits, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "did you mean avx2?");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        err.message[0] = '\0';
        assert_int_equal(tni_cpu_features_parse(wrong[i], &bits, &err), TN_INVALID_ARGUMENT);
        assert_contains(err.message, "no processor feature \"");
        assert_int_equal(tni_cpu_features_parse(wrong[i], &bits, NULL), TN_INVALID_ARGUMENT);
    }
    assert_int_equal(bits, 12345);
}

static void mask_only_hides(void **state)
{
    uint64_t detected = tni_cpu_detected();
    (void)state;
    assert_int_equal(tni_cpu_features(), detected);
    tni_cpu_mask_set(0);
    assert_int_equal(tni_cpu_features(), 0);
    for (int i = 0; i < TNI_CPU_FEATURE_COUNT; i++) {
        tni_cpu_mask_set(UINT64_C(1) << i);
        assert_int_equal(tni_cpu_features(), detected & UINT64_C(1) << i);
        assert_int_equal(tni_cpu_detected(), detected);
    }
    tni_cpu_mask_set(UINT64_MAX);
    assert_int_equal(tni_cpu_features(), detected);
}

static void chooses_the_first_that_can_run(void **state)
{
    static const tni_isa_row rows[] = {
        {"avx512", TNI_CPU_BIT(AVX512F) | TNI_CPU_BIT(AVX512BW), NULL},
        {"avx2", TNI_CPU_BIT(AVX2) | TNI_CPU_BIT(FMA), NULL},
        {"portable", 0, NULL},
    };
    uint64_t avx2 = TNI_CPU_BIT(AVX2) | TNI_CPU_BIT(FMA);
    (void)state;
    assert_string_equal(tni_isa_choose(rows, 3, UINT64_MAX)->name, "avx512");
    assert_string_equal(tni_isa_choose(rows, 3, avx2 | TNI_CPU_BIT(AVX512F))->name, "avx2");
    assert_string_equal(tni_isa_choose(rows, 3, TNI_CPU_BIT(AVX2))->name, "portable");
    assert_string_equal(tni_isa_choose(rows, 3, 0)->name, "portable");
    assert_string_equal(tni_isa_choose(rows + 2, 1, UINT64_MAX)->name, "portable");
}

/* x86. */

enum { XCR0_AVX512 = 0xE7, XCR0_ALL = 0x602E7 };
enum { EMERALD_RAPIDS = 0xC06F2 };

static void set_vendor(tni_cpu_x86 *raw, const char *vendor)
{
    memcpy(&raw->leaf[TNI_LEAF_0][TNI_EBX], vendor, 4);
    memcpy(&raw->leaf[TNI_LEAF_0][TNI_EDX], vendor + 4, 4);
    memcpy(&raw->leaf[TNI_LEAF_0][TNI_ECX], vendor + 8, 4);
}

/* An Emerald Rapids under KVM, as recorded: all that the list has for x86. */
static tni_cpu_x86 emerald_rapids(void)
{
    tni_cpu_x86 raw = {
        .leaf = {{0x00000020, 0x756E6547, 0x6C65746E, 0x49656E69},
                 {EMERALD_RAPIDS, 0x01020800, 0xFFFA3203, 0x1F8BFBFF},
                 {0x00000002, 0xF1BF27EB, 0x1B415FDE, 0xBFD14410},
                 {0x00001C30, 0x00000000, 0x00000000, 0x00000000}},
        .amx = TNI_AMX_GIVEN,
        .xcr0 = XCR0_ALL,
    };
    return raw;
}

static tni_cpu_facts judged(const tni_cpu_x86 *raw)
{
    tni_cpu_facts facts = {0};
    tni_cpu_x86_judge(raw, &facts);
    return facts;
}

static const uint64_t amx = TNI_CPU_BIT(AMX_TILE) | TNI_CPU_BIT(AMX_INT8) | TNI_CPU_BIT(AMX_BF16);
static const uint64_t avx512 =
    TNI_CPU_BIT(AVX512F) | TNI_CPU_BIT(AVX512BW) | TNI_CPU_BIT(AVX512DQ) | TNI_CPU_BIT(AVX512VL) |
    TNI_CPU_BIT(AVX512_VNNI) | TNI_CPU_BIT(AVX512_BF16) | TNI_CPU_BIT(AVX512_FP16);
static const uint64_t avx = TNI_CPU_BIT(AVX) | TNI_CPU_BIT(F16C) | TNI_CPU_BIT(FMA) |
                            TNI_CPU_BIT(AVX2) | TNI_CPU_BIT(AVX_VNNI);
static const uint64_t sse = TNI_CPU_BIT(SSE2) | TNI_CPU_BIT(SSE41) | TNI_CPU_BIT(SHA);

/* Every feature of `set`, and no other, is unusable for a reason that contains `why`. */
static void assert_why_not(const tni_cpu_facts *facts, uint64_t set, const char *why)
{
    for (int i = 0; i < TNI_CPU_FEATURE_COUNT; i++) {
        if (set >> i & 1)
            assert_contains(facts->why_not[i], why);
        else
            assert_null(facts->why_not[i]);
    }
}

static void claims_all_that_is_saved(void **state)
{
    tni_cpu_x86 raw = emerald_rapids();
    tni_cpu_facts facts = judged(&raw);
    (void)state;
    assert_int_equal(facts.usable, sse | avx | avx512 | amx);
    assert_int_equal(facts.quirks, TNI_CPU_QUIRK(VIRTUAL));
    assert_why_not(&facts, 0, "");
}

static void claims_nothing_unsaved(void **state)
{
    tni_cpu_x86 raw = emerald_rapids();
    tni_cpu_facts facts;
    (void)state;
    raw.xcr0 = XCR0_AVX512;
    facts = judged(&raw);
    assert_int_equal(facts.usable, sse | avx | avx512);
    assert_why_not(&facts, amx, "does not save tile registers");

    for (int bit = 5; bit <= 7; bit++) {
        raw.xcr0 = XCR0_ALL & ~(UINT64_C(1) << bit);
        facts = judged(&raw);
        assert_int_equal(facts.usable, sse | avx | amx);
        assert_why_not(&facts, avx512, "does not save zmm registers");
    }
    for (int bit = 1; bit <= 2; bit++) {
        raw.xcr0 = XCR0_ALL & ~(UINT64_C(1) << bit);
        facts = judged(&raw);
        assert_int_equal(facts.usable, sse | amx);
        assert_why_not(&facts, avx | avx512, "does not save ymm registers");
    }
    for (int bit = 17; bit <= 18; bit++) {
        raw.xcr0 = XCR0_ALL & ~(UINT64_C(1) << bit);
        facts = judged(&raw);
        assert_int_equal(facts.usable, sse | avx | avx512);
    }
}

/* Without OSXSAVE, XCR0 means nothing whatever it holds. */
static void claims_nothing_without_osxsave(void **state)
{
    tni_cpu_x86 raw = emerald_rapids();
    tni_cpu_facts facts;
    (void)state;
    raw.leaf[TNI_LEAF_1][TNI_ECX] &= ~(UINT32_C(1) << 27);
    facts = judged(&raw);
    assert_int_equal(facts.usable, sse);
    assert_contains(facts.why_not[TNI_CPU_INDEX_AVX2], "ymm");
    assert_contains(facts.why_not[TNI_CPU_INDEX_AMX_TILE], "tile");
}

static void explains_amx_permission(void **state)
{
    static const struct {
        uint32_t answer;
        const char *why;
    } cases[] = {
        {TNI_AMX_UNASKED, "has not been asked"},
        {TNI_AMX_SMALL_STACK, "signal stack"},
        {TNI_AMX_REFUSED, "kernel refuses"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tni_cpu_x86 raw = emerald_rapids();
        raw.amx = cases[i].answer;
        tni_cpu_facts facts = judged(&raw);
        assert_int_equal(facts.usable, sse | avx | avx512);
        assert_why_not(&facts, amx, cases[i].why);
    }
}

/* An old processor answers leaves beyond its last with other registers. */
static void ignores_leaves_that_are_not_there(void **state)
{
    tni_cpu_x86 raw = emerald_rapids();
    tni_cpu_facts facts;
    uint64_t leaf_7_1 = TNI_CPU_BIT(AVX_VNNI) | TNI_CPU_BIT(AVX512_BF16);
    (void)state;
    raw.leaf[TNI_LEAF_7][TNI_EAX] = 0;
    facts = judged(&raw);
    assert_int_equal(facts.usable, (sse | avx | avx512 | amx) & ~leaf_7_1);
    assert_why_not(&facts, 0, "");

    raw = emerald_rapids();
    raw.leaf[TNI_LEAF_0][TNI_EAX] = 6;
    facts = judged(&raw);
    assert_int_equal(facts.usable, TNI_CPU_BIT(SSE2) | TNI_CPU_BIT(SSE41) | TNI_CPU_BIT(AVX) |
                                       TNI_CPU_BIT(FMA) | TNI_CPU_BIT(F16C));
    assert_why_not(&facts, 0, "");

    raw.leaf[TNI_LEAF_0][TNI_EAX] = 0;
    facts = judged(&raw);
    assert_int_equal(facts.usable, 0);
    assert_int_equal(facts.quirks, 0);
}

/* Hypervisors hide bits one by one. */
static void wants_what_a_feature_builds_on(void **state)
{
    tni_cpu_x86 raw = emerald_rapids();
    tni_cpu_facts facts;
    (void)state;
    raw.leaf[TNI_LEAF_7][TNI_EBX] &= ~(UINT32_C(1) << 16);
    facts = judged(&raw);
    assert_int_equal(facts.usable, sse | avx | amx);
    assert_null(facts.why_not[TNI_CPU_INDEX_AVX512F]);
    assert_contains(facts.why_not[TNI_CPU_INDEX_AVX512BW], "builds on avx512f");
    assert_contains(facts.why_not[TNI_CPU_INDEX_AVX512_FP16], "builds on avx512bw");

    raw = emerald_rapids();
    raw.leaf[TNI_LEAF_1][TNI_ECX] &= ~(UINT32_C(1) << 12);
    facts = judged(&raw);
    assert_int_equal(facts.usable, (sse | avx | amx) & ~TNI_CPU_BIT(FMA));
    assert_contains(facts.why_not[TNI_CPU_INDEX_AVX512F], "builds on fma");

    raw = emerald_rapids();
    raw.leaf[TNI_LEAF_1][TNI_ECX] &= ~(UINT32_C(1) << 9); /* ssse3, which -msse4.1 implies */
    facts = judged(&raw);
    assert_int_equal(facts.usable, TNI_CPU_BIT(SSE2) | amx);
    assert_contains(facts.why_not[TNI_CPU_INDEX_SHA], "builds on sse4.1");
}

static uint64_t random_word(void)
{
    static uint64_t seed = 0x9E3779B97F4A7C15;
    uint64_t high;
    seed = seed * 6364136223846793005 + 1442695040888963407;
    high = seed >> 32;
    seed = seed * 6364136223846793005 + 1442695040888963407;
    return high << 32 | seed >> 32;
}

/* Whatever the registers say: no feature is both usable and not, none is usable without what it
 * builds on, and nothing of another architecture appears. */
static void stays_consistent_for_any_registers(void **state)
{
    static const struct {
        uint64_t feature, needs;
    } implied[] = {
        {TNI_CPU_BIT(SSE41), TNI_CPU_BIT(SSE2)},
        {TNI_CPU_BIT(SHA), TNI_CPU_BIT(SSE41)},
        {TNI_CPU_BIT(AVX), TNI_CPU_BIT(SSE41)},
        {TNI_CPU_BIT(AVX2) | TNI_CPU_BIT(FMA) | TNI_CPU_BIT(F16C), TNI_CPU_BIT(AVX)},
        {TNI_CPU_BIT(AVX_VNNI), TNI_CPU_BIT(AVX2)},
        {TNI_CPU_BIT(AVX512F), TNI_CPU_BIT(AVX2) | TNI_CPU_BIT(FMA) | TNI_CPU_BIT(F16C)},
        {avx512, TNI_CPU_BIT(AVX512F)},
        {TNI_CPU_BIT(AVX512_BF16), TNI_CPU_BIT(AVX512BW)},
        {TNI_CPU_BIT(AVX512_FP16), TNI_CPU_BIT(AVX512VL) | TNI_CPU_BIT(AVX512DQ)},
        {TNI_CPU_BIT(AMX_INT8) | TNI_CPU_BIT(AMX_BF16), TNI_CPU_BIT(AMX_TILE)},
    };
    (void)state;
    for (int round = 0; round < 20000; round++) {
        tni_cpu_x86 raw = emerald_rapids();
        uint32_t *words = &raw.leaf[0][0];
        for (size_t i = 0; i < sizeof raw.leaf / sizeof words[0]; i++)
            words[i] &= (uint32_t)(random_word() | random_word() | random_word());
        raw.xcr0 &= random_word() | random_word();
        raw.amx = (uint32_t)(random_word() % 5);
        tni_cpu_facts facts = judged(&raw);
        for (int i = 0; i < TNI_CPU_FEATURE_COUNT; i++)
            assert_false(facts.usable >> i & 1 && facts.why_not[i]);
        for (size_t i = 0; i < sizeof implied / sizeof implied[0]; i++) {
            if (facts.usable & implied[i].feature)
                assert_int_equal(facts.usable & implied[i].needs, implied[i].needs);
        }
        assert_int_equal(facts.usable & ~(sse | avx | avx512 | amx), 0);
    }
}

static void knows_models_with_quirks(void **state)
{
    const uint64_t slow = TNI_CPU_QUIRK(SLOW_GATHER), heavy = TNI_CPU_QUIRK(HEAVY_AVX512);
    const struct {
        const char *vendor;
        uint32_t signature;
        uint64_t quirks;
    } models[] = {
        {"GenuineIntel", 0x306C3, slow},     /* Haswell              */
        {"GenuineIntel", 0x306F2, slow},     /* Haswell, server      */
        {"GenuineIntel", 0x306D4, slow},     /* Broadwell            */
        {"GenuineIntel", 0x406F1, slow},     /* Broadwell, server    */
        {"GenuineIntel", 0x506E3, 0},        /* Skylake              */
        {"GenuineIntel", 0x50654, heavy},    /* Skylake-X            */
        {"GenuineIntel", 0x50657, heavy},    /* Cascade Lake         */
        {"GenuineIntel", 0x606A6, 0},        /* Ice Lake, server     */
        {"GenuineIntel", EMERALD_RAPIDS, 0}, /*                      */
        {"GenuineIntel", 0x00F55, 0},        /* family 15, not 6     */
        {"AuthenticAMD", 0x660F01, slow},    /* Excavator            */
        {"AuthenticAMD", 0x800F12, slow},    /* Zen 1                */
        {"AuthenticAMD", 0x830F10, slow},    /* Zen 2                */
        {"AuthenticAMD", 0xA00F11, slow},    /* Zen 3, server        */
        {"AuthenticAMD", 0xA20F10, slow},    /* Zen 3                */
        {"AuthenticAMD", 0xA50F00, slow},    /* Zen 3, mobile        */
        {"AuthenticAMD", 0xA10F11, 0},       /* Zen 4, server        */
        {"AuthenticAMD", 0xA60F12, 0},       /* Zen 4                */
        {"AuthenticAMD", 0xB00F21, 0},       /* Zen 5                */
        {"AuthenticAMD", 0x50654, slow},     /* no model of Intel's  */
        {"HygonGenuine", 0x900F02, slow},    /* Zen 1 by licence     */
        {"CentaurHauls", 0x306C3, 0},        /* nothing known        */
    };
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        tni_cpu_x86 raw = emerald_rapids();
        set_vendor(&raw, models[i].vendor);
        raw.leaf[TNI_LEAF_1][TNI_EAX] = models[i].signature;
        if (judged(&raw).quirks != (models[i].quirks | TNI_CPU_QUIRK(VIRTUAL)))
            fail_msg("%s %#x", models[i].vendor, models[i].signature);
        assert_int_equal(judged(&raw).usable, sse | avx | avx512 | amx);
        raw.leaf[TNI_LEAF_1][TNI_ECX] &= ~(UINT32_C(1) << 31);
        assert_int_equal(judged(&raw).quirks, models[i].quirks);
    }
}

/* Arm. */

static tni_cpu_facts judged_arm(uint64_t hwcap, uint64_t hwcap2)
{
    tni_cpu_arm raw = {hwcap, hwcap2};
    tni_cpu_facts facts = {0};
    tni_cpu_arm_judge(&raw, &facts);
    return facts;
}

static void reads_hwcap(void **state)
{
    const uint64_t neon = HWCAP_FP | HWCAP_ASIMD, fp16 = HWCAP_FPHP | HWCAP_ASIMDHP;
    const struct {
        uint64_t hwcap, hwcap2, features;
    } cases[] = {
        {HWCAP_SHA2, 0, TNI_CPU_BIT(ARM_SHA2)},
        {fp16, 0, TNI_CPU_BIT(ARM_FP16)},
        {HWCAP_ASIMDHP, 0, 0},
        {HWCAP_FPHP, 0, 0},
        {HWCAP_ASIMDDP, 0, TNI_CPU_BIT(ARM_DOTPROD)},
        {0, HWCAP2_BF16, TNI_CPU_BIT(ARM_BF16)},
        {0, HWCAP2_I8MM, TNI_CPU_BIT(ARM_I8MM)},
        {fp16 | HWCAP_SVE, 0, TNI_CPU_BIT(ARM_FP16) | TNI_CPU_BIT(SVE)},
        {fp16 | HWCAP_SVE, HWCAP2_SVE2,
         TNI_CPU_BIT(ARM_FP16) | TNI_CPU_BIT(SVE) | TNI_CPU_BIT(SVE2)},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tni_cpu_facts facts = judged_arm(neon | cases[i].hwcap, cases[i].hwcap2);
        assert_int_equal(facts.usable, TNI_CPU_BIT(NEON) | cases[i].features);
        assert_why_not(&facts, 0, "");
    }
    assert_int_equal(judged_arm(0, 0).usable, 0);
    assert_int_equal(judged_arm(HWCAP_ASIMD, 0).usable, 0);
    assert_int_equal(judged_arm(UINT64_MAX, UINT64_MAX).usable,
                     (UINT64_C(1) << TNI_CPU_FEATURE_COUNT) - TNI_CPU_BIT(NEON));
}

static void wants_what_an_arm_feature_builds_on(void **state)
{
    tni_cpu_facts facts = judged_arm(UINT64_MAX & ~(uint64_t)HWCAP_FPHP, UINT64_MAX);
    (void)state;
    assert_int_equal(facts.usable & (TNI_CPU_BIT(SVE) | TNI_CPU_BIT(SVE2)), 0);
    assert_contains(facts.why_not[TNI_CPU_INDEX_SVE], "builds on arm-fp16");
    assert_contains(facts.why_not[TNI_CPU_INDEX_SVE2], "builds on sve,");
    facts = judged_arm(UINT64_MAX & ~(uint64_t)HWCAP_ASIMD, UINT64_MAX);
    assert_int_equal(facts.usable, 0);
    assert_contains(facts.why_not[TNI_CPU_INDEX_ARM_SHA2], "builds on neon");
}

/* This machine. */

static void reads_one_architecture(void **state)
{
    tni_cpu_x86 x86;
    tni_cpu_arm arm;
    (void)state;
#if defined(__x86_64__)
    assert_true(tni_cpu_x86_read(&x86));
    assert_false(tni_cpu_arm_read(&arm));
    assert_true(tni_cpu_detected() & TNI_CPU_BIT(SSE2));
#elif defined(__aarch64__)
    assert_false(tni_cpu_x86_read(&x86));
    assert_true(tni_cpu_arm_read(&arm));
    assert_true(tni_cpu_detected() & TNI_CPU_BIT(NEON));
#else
    assert_false(tni_cpu_x86_read(&x86));
    assert_false(tni_cpu_arm_read(&arm));
    assert_int_equal(tni_cpu_detected(), 0);
#endif
}

#if defined(__linux__)

/* The kernel's words. A young one is not listed by kernels that run such processors all the same,
 * as they need not know of it. */
static const struct {
    int feature;
    const char *flag;
    int young;
} kernel_words[] = {
    {TNI_CPU_INDEX_SSE2, "sse2", 0},
    {TNI_CPU_INDEX_SSE41, "sse4_1", 0},
    {TNI_CPU_INDEX_AVX, "avx", 0},
    {TNI_CPU_INDEX_F16C, "f16c", 0},
    {TNI_CPU_INDEX_FMA, "fma", 0},
    {TNI_CPU_INDEX_AVX2, "avx2", 0},
    {TNI_CPU_INDEX_SHA, "sha_ni", 0},
    {TNI_CPU_INDEX_AVX_VNNI, "avx_vnni", 1},
    {TNI_CPU_INDEX_AVX512F, "avx512f", 0},
    {TNI_CPU_INDEX_AVX512BW, "avx512bw", 0},
    {TNI_CPU_INDEX_AVX512DQ, "avx512dq", 0},
    {TNI_CPU_INDEX_AVX512VL, "avx512vl", 0},
    {TNI_CPU_INDEX_AVX512_VNNI, "avx512_vnni", 0},
    {TNI_CPU_INDEX_AVX512_BF16, "avx512_bf16", 0},
    {TNI_CPU_INDEX_AVX512_FP16, "avx512_fp16", 1},
    {TNI_CPU_INDEX_AMX_TILE, "amx_tile", 0},
    {TNI_CPU_INDEX_AMX_INT8, "amx_int8", 0},
    {TNI_CPU_INDEX_AMX_BF16, "amx_bf16", 0},
    {TNI_CPU_INDEX_NEON, "asimd", 0},
    {TNI_CPU_INDEX_ARM_SHA2, "sha2", 0},
    {TNI_CPU_INDEX_ARM_FP16, "asimdhp", 0},
    {TNI_CPU_INDEX_ARM_DOTPROD, "asimddp", 0},
    {TNI_CPU_INDEX_ARM_BF16, "bf16", 0},
    {TNI_CPU_INDEX_ARM_I8MM, "i8mm", 0},
    {TNI_CPU_INDEX_SVE, "sve", 0},
    {TNI_CPU_INDEX_SVE2, "sve2", 0},
};

/* The first line of /proc/cpuinfo that begins with `key`, each word between spaces. */
static int read_cpuinfo(const char *key, char *line, size_t size)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    int found = 0;
    while (file && !found && fgets(line, (int)size - 1, file))
        found = strncmp(line, key, strlen(key)) == 0;
    if (file)
        fclose(file);
    if (found)
        line[strcspn(line, "\n")] = ' ';
    return found;
}

static void agrees_with_the_kernel(void **state)
{
#if defined(__aarch64__)
    const char *key = "Features\t:";
#else
    const char *key = "flags\t\t:";
#endif
    static char line[16384];
    (void)state;
    if (!read_cpuinfo(key, line, sizeof line))
        skip_because("/proc/cpuinfo does not list this processor's features");
    for (size_t i = 0; i < sizeof kernel_words / sizeof kernel_words[0]; i++) {
        int feature = kernel_words[i].feature;
        int claimed = (int)(tni_cpu_detected() >> feature & 1);
        char word[32];
        snprintf(word, sizeof word, " %s ", kernel_words[i].flag);
        if (strstr(line, word)) {
            if (!claimed && !tni_cpu_why_not(feature))
                fail_msg("the kernel lists %s", kernel_words[i].flag);
        } else if (claimed && !kernel_words[i].young) {
            fail_msg("the kernel does not list %s", kernel_words[i].flag);
        }
    }
    if (tni_cpu_quirks() & TNI_CPU_QUIRK(VIRTUAL))
        assert_contains(line, " hypervisor ");
}

#endif

#if defined(__linux__) && defined(__x86_64__)

static int tiles_are_permitted(void)
{
    const long get_permissions = 0x1022;
    uint64_t permitted = 0;
    return syscall(SYS_arch_prctl, get_permissions, &permitted) == 0 && permitted >> 18 & 1;
}

/* 0 when the request fails for the reason given. */
static int request_with_small_signal_stack(void)
{
    static char memory[8192];
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    if (sigaltstack(&stack, NULL) != 0)
        return 1;
    if (tni_cpu_amx_request() || tiles_are_permitted())
        return 2;
    const char *why = tni_cpu_why_not(TNI_CPU_INDEX_AMX_TILE);
    return why && strstr(why, "signal stack") ? 0 : 3;
}

static void asks_for_amx_only_on_request(void **state)
{
    const char *why = tni_cpu_why_not(TNI_CPU_INDEX_AMX_TILE);
    int outcome = -1;
    (void)state;
    assert_int_equal(tni_cpu_detected() & amx, 0);
    assert_false(tiles_are_permitted());
    if (!why || !strstr(why, "has not been asked")) {
        assert_false(tni_cpu_amx_request());
        skip_because("amx: %s", why ? why : "not in this processor");
    }
    pid_t child = fork();
    if (child == 0)
        _exit(request_with_small_signal_stack());
    assert_int_equal(waitpid(child, &outcome, 0), child);
    assert_int_equal(outcome, 0);

    uint64_t before = tni_cpu_detected();
    bool given = tni_cpu_amx_request();
    assert_int_equal(given, tiles_are_permitted());
    assert_int_equal(tni_cpu_amx_request(), given);
    assert_int_equal(tni_cpu_detected() & ~amx, before);
    assert_int_equal((tni_cpu_detected() & TNI_CPU_BIT(AMX_TILE)) != 0, given);
    assert_true(given == !tni_cpu_why_not(TNI_CPU_INDEX_AMX_TILE));
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_every_bit_once),
        cmocka_unit_test(parses_what_it_names),
        cmocka_unit_test(refuses_unknown_words),
        cmocka_unit_test(mask_only_hides),
        cmocka_unit_test(chooses_the_first_that_can_run),
        cmocka_unit_test(claims_all_that_is_saved),
        cmocka_unit_test(claims_nothing_unsaved),
        cmocka_unit_test(claims_nothing_without_osxsave),
        cmocka_unit_test(explains_amx_permission),
        cmocka_unit_test(ignores_leaves_that_are_not_there),
        cmocka_unit_test(wants_what_a_feature_builds_on),
        cmocka_unit_test(stays_consistent_for_any_registers),
        cmocka_unit_test(knows_models_with_quirks),
        cmocka_unit_test(reads_hwcap),
        cmocka_unit_test(wants_what_an_arm_feature_builds_on),
        cmocka_unit_test(reads_one_architecture),
#if defined(__linux__)
        cmocka_unit_test(agrees_with_the_kernel),
#if defined(__x86_64__)
        cmocka_unit_test(asks_for_amx_only_on_request),
        cmocka_unit_test(agrees_with_the_kernel), /* now with AMX, where it was given */
#endif
#endif
    };
    return run_suite("unit.cpu", tests);
}
