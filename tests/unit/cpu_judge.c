/* Judging processors that this machine is not, by what they say of themselves. */
#include "os/cpu_detect.h"

#include "test.h"

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

#define INDEX(feature) TN_CPU_INDEX_##feature
#define BIT(feature)   TN_CPU_BIT(feature)

/* x86. */

enum { XCR0_AVX512 = 0xE7, XCR0_ALL = 0x602E7 };

/* An Emerald Rapids under KVM, as recorded: all that the list has for x86. */
static tni_cpu_x86 emerald_rapids(void)
{
    tni_cpu_x86 raw = {
        .leaf = {{0x00000020, 0x756E6547, 0x6C65746E, 0x49656E69},
                 {0x000C06F2, 0x01020800, 0xFFFA3203, 0x1F8BFBFF},
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

static const uint64_t amx = BIT(AMX_TILE) | BIT(AMX_INT8) | BIT(AMX_BF16);
static const uint64_t avx512 = BIT(AVX512F) | BIT(AVX512BW) | BIT(AVX512DQ) | BIT(AVX512VL) |
                               BIT(AVX512_VNNI) | BIT(AVX512_BF16) | BIT(AVX512_FP16);
static const uint64_t avx = BIT(AVX) | BIT(F16C) | BIT(FMA) | BIT(AVX2) | BIT(AVX_VNNI);
static const uint64_t sse = BIT(SSE2) | BIT(SSE41) | BIT(SHA);

/* Every feature of `set`, and no other, is unusable for a reason that contains `why`. */
static void assert_why_not(const tni_cpu_facts *facts, uint64_t set, const char *why)
{
    for (int i = 0; i < TN_CPU_FEATURE_COUNT; i++) {
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
    assert_why_not(&facts, 0, "");
}

/* The bit of each feature as the manuals give it: without that one alone the processor lacks it. */
static void knows_each_bit(void **state)
{
    static const struct {
        int feature, leaf, reg, bit;
    } bits[] = {
        {INDEX(SSE2), TNI_LEAF_1, TNI_EDX, 26},
        {INDEX(SSE41), TNI_LEAF_1, TNI_ECX, 19},
        {INDEX(AVX), TNI_LEAF_1, TNI_ECX, 28},
        {INDEX(F16C), TNI_LEAF_1, TNI_ECX, 29},
        {INDEX(FMA), TNI_LEAF_1, TNI_ECX, 12},
        {INDEX(AVX2), TNI_LEAF_7, TNI_EBX, 5},
        {INDEX(SHA), TNI_LEAF_7, TNI_EBX, 29},
        {INDEX(AVX_VNNI), TNI_LEAF_7_1, TNI_EAX, 4},
        {INDEX(AVX512F), TNI_LEAF_7, TNI_EBX, 16},
        {INDEX(AVX512BW), TNI_LEAF_7, TNI_EBX, 30},
        {INDEX(AVX512DQ), TNI_LEAF_7, TNI_EBX, 17},
        {INDEX(AVX512VL), TNI_LEAF_7, TNI_EBX, 31},
        {INDEX(AVX512_VNNI), TNI_LEAF_7, TNI_ECX, 11},
        {INDEX(AVX512_BF16), TNI_LEAF_7_1, TNI_EAX, 5},
        {INDEX(AVX512_FP16), TNI_LEAF_7, TNI_EDX, 23},
        {INDEX(AMX_TILE), TNI_LEAF_7, TNI_EDX, 24},
        {INDEX(AMX_INT8), TNI_LEAF_7, TNI_EDX, 25},
        {INDEX(AMX_BF16), TNI_LEAF_7, TNI_EDX, 22},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bits / sizeof bits[0]; i++) {
        tni_cpu_x86 raw = emerald_rapids();
        raw.leaf[bits[i].leaf][bits[i].reg] &= ~(UINT32_C(1) << bits[i].bit);
        tni_cpu_facts facts = judged(&raw);
        if (facts.usable >> bits[i].feature & 1 || facts.why_not[bits[i].feature])
            fail_msg("%s does not depend on its bit", tni_cpu_feature_name(bits[i].feature));
    }
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
    assert_contains(facts.why_not[INDEX(AVX2)], "ymm");
    assert_contains(facts.why_not[INDEX(AMX_TILE)], "tile");
}

static void explains_amx_permission(void **state)
{
    static const struct {
        uint32_t answer;
        const char *why;
    } cases[] = {
        {TNI_AMX_UNASKED, "has not requested"},
        {TNI_AMX_SMALL_STACK, "signal stack"},
        {TNI_AMX_REFUSED, "does not permit"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tni_cpu_x86 raw = emerald_rapids();
        raw.amx = cases[i].answer;
        tni_cpu_facts facts = judged(&raw);
        assert_int_equal(facts.usable, sse | avx | avx512);
        assert_int_equal(facts.possible, facts.usable | (raw.amx == TNI_AMX_UNASKED ? amx : 0));
        assert_why_not(&facts, amx, cases[i].why);
    }
}

/* An old processor answers leaves beyond its last with other registers. */
static void ignores_leaves_that_are_not_there(void **state)
{
    tni_cpu_x86 raw = emerald_rapids();
    tni_cpu_facts facts;
    uint64_t leaf_7_1 = BIT(AVX_VNNI) | BIT(AVX512_BF16);
    (void)state;
    raw.leaf[TNI_LEAF_7][TNI_EAX] = 0;
    facts = judged(&raw);
    assert_int_equal(facts.usable, (sse | avx | avx512 | amx) & ~leaf_7_1);
    assert_why_not(&facts, 0, "");

    raw = emerald_rapids();
    raw.leaf[TNI_LEAF_0][TNI_EAX] = 6;
    facts = judged(&raw);
    assert_int_equal(facts.usable, BIT(SSE2) | BIT(SSE41) | BIT(AVX) | BIT(FMA) | BIT(F16C));
    assert_why_not(&facts, 0, "");

    raw.leaf[TNI_LEAF_0][TNI_EAX] = 0;
    facts = judged(&raw);
    assert_int_equal(facts.usable, 0);
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
    assert_null(facts.why_not[INDEX(AVX512F)]);
    assert_contains(facts.why_not[INDEX(AVX512BW)], "builds on avx512f");
    assert_contains(facts.why_not[INDEX(AVX512_FP16)], "builds on avx512bw");

    raw = emerald_rapids();
    raw.leaf[TNI_LEAF_1][TNI_ECX] &= ~(UINT32_C(1) << 12);
    facts = judged(&raw);
    assert_int_equal(facts.usable, (sse | avx | amx) & ~BIT(FMA));
    assert_contains(facts.why_not[INDEX(AVX512F)], "builds on fma");

    raw = emerald_rapids();
    raw.leaf[TNI_LEAF_1][TNI_ECX] &= ~(UINT32_C(1) << 9); /* ssse3, which -msse4.1 implies */
    facts = judged(&raw);
    assert_int_equal(facts.usable, BIT(SSE2) | amx);
    assert_contains(facts.why_not[INDEX(SHA)], "builds on sse4.1");
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

static uint64_t mostly_ones(void)
{
    uint64_t word = 0;
    for (int i = 0; i < 3; i++)
        word |= random_word();
    return word;
}

/* Whatever the registers say: no feature is both usable and not, none is usable without what it
 * builds on, and nothing of another architecture appears. */
static void stays_consistent_for_any_registers(void **state)
{
    const struct {
        uint64_t feature, needs;
    } implied[] = {
        {BIT(SSE41), BIT(SSE2)},
        {BIT(SHA), BIT(SSE41)},
        {BIT(AVX), BIT(SSE41)},
        {BIT(AVX2) | BIT(FMA) | BIT(F16C), BIT(AVX)},
        {BIT(AVX_VNNI), BIT(AVX2)},
        {BIT(AVX512F), BIT(AVX2) | BIT(FMA) | BIT(F16C)},
        {avx512, BIT(AVX512F)},
        {BIT(AVX512_BF16), BIT(AVX512BW)},
        {BIT(AVX512_FP16), BIT(AVX512VL) | BIT(AVX512DQ)},
        {BIT(AMX_INT8) | BIT(AMX_BF16), BIT(AMX_TILE)},
    };
    (void)state;
    for (int round = 0; round < 20000; round++) {
        tni_cpu_x86 raw = emerald_rapids();
        uint32_t *words = &raw.leaf[0][0];
        for (size_t i = 0; i < sizeof raw.leaf / sizeof words[0]; i++)
            words[i] &= (uint32_t)mostly_ones();
        raw.xcr0 &= mostly_ones();
        raw.amx = (uint32_t)(random_word() % 5);
        tni_cpu_facts facts = judged(&raw);
        for (int i = 0; i < TN_CPU_FEATURE_COUNT; i++)
            assert_false(facts.usable >> i & 1 && facts.why_not[i]);
        for (size_t i = 0; i < sizeof implied / sizeof implied[0]; i++) {
            if (facts.usable & implied[i].feature)
                assert_int_equal(facts.usable & implied[i].needs, implied[i].needs);
        }
        assert_int_equal(facts.usable & ~(sse | avx | avx512 | amx), 0);
        assert_int_equal(facts.usable & ~facts.possible, 0);
        assert_int_equal(facts.possible & ~facts.usable & ~amx, 0);
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
        {HWCAP_SHA2, 0, BIT(ARM_SHA2)},
        {fp16, 0, BIT(ARM_FP16)},
        {HWCAP_ASIMDHP, 0, 0},
        {HWCAP_FPHP, 0, 0},
        {HWCAP_ASIMDDP, 0, BIT(ARM_DOTPROD)},
        {0, HWCAP2_BF16, BIT(ARM_BF16)},
        {0, HWCAP2_I8MM, BIT(ARM_I8MM)},
        {fp16 | HWCAP_SVE, 0, BIT(ARM_FP16) | BIT(SVE)},
        {fp16 | HWCAP_SVE, HWCAP2_SVE2, BIT(ARM_FP16) | BIT(SVE) | BIT(SVE2)},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tni_cpu_facts facts = judged_arm(neon | cases[i].hwcap, cases[i].hwcap2);
        assert_int_equal(facts.usable, BIT(NEON) | cases[i].features);
        assert_why_not(&facts, 0, "");
    }
    assert_int_equal(judged_arm(0, 0).usable, 0);
    assert_int_equal(judged_arm(HWCAP_ASIMD, 0).usable, 0);
    assert_int_equal(judged_arm(UINT64_MAX, UINT64_MAX).usable,
                     (UINT64_C(1) << TN_CPU_FEATURE_COUNT) - BIT(NEON));
}

static void wants_what_an_arm_feature_builds_on(void **state)
{
    tni_cpu_facts facts = judged_arm(UINT64_MAX & ~(uint64_t)HWCAP_FPHP, UINT64_MAX);
    (void)state;
    assert_int_equal(facts.usable & (BIT(SVE) | BIT(SVE2)), 0);
    assert_contains(facts.why_not[INDEX(SVE)], "builds on arm-fp16");
    assert_contains(facts.why_not[INDEX(SVE2)], "builds on sve,");
    facts = judged_arm(UINT64_MAX & ~(uint64_t)HWCAP_ASIMD, UINT64_MAX);
    assert_int_equal(facts.usable, 0);
    assert_contains(facts.why_not[INDEX(ARM_SHA2)], "builds on neon");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(claims_all_that_is_saved),
        cmocka_unit_test(knows_each_bit),
        cmocka_unit_test(claims_nothing_unsaved),
        cmocka_unit_test(claims_nothing_without_osxsave),
        cmocka_unit_test(explains_amx_permission),
        cmocka_unit_test(ignores_leaves_that_are_not_there),
        cmocka_unit_test(wants_what_a_feature_builds_on),
        cmocka_unit_test(stays_consistent_for_any_registers),
        cmocka_unit_test(reads_hwcap),
        cmocka_unit_test(wants_what_an_arm_feature_builds_on),
    };
    return run_suite("unit.cpu_judge", tests);
}
