/* Processor features: names, masks, choice, and whether what is claimed of this machine is what its
 * kernel says. Other machines are judged in cpu_judge.c. */
#include "os/cpu.h"

#include "device/description_values.h"
#include "os/cpu_detect.h"
#include "test.h"

#if defined(__linux__) && defined(__x86_64__)
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

#define INDEX(feature) TN_CPU_INDEX_##feature
#define BIT(feature)   TN_CPU_BIT(feature)

/* Names, masks, choice. */

static void names_every_bit_once(void **state)
{
    (void)state;
    for (int i = 0; i < TN_CPU_FEATURE_COUNT; i++) {
        assert_non_null(tni_cpu_feature_name(i));
        for (int j = 0; j < i; j++)
            assert_string_not_equal(tni_cpu_feature_name(i), tni_cpu_feature_name(j));
    }
    assert_string_equal(tni_cpu_feature_name(INDEX(SSE41)), "sse4.1");
    assert_null(tni_cpu_feature_name(-1));
    assert_null(tni_cpu_feature_name(TN_CPU_FEATURE_COUNT));
    assert_null(tni_cpu_why_not(-1));
    assert_null(tni_cpu_why_not(TN_CPU_FEATURE_COUNT));
}

static void parses_what_it_names(void **state)
{
    char all[1024] = "";
    uint64_t bits;
    tni_need need;
    (void)state;
    for (int i = 0; i < TN_CPU_FEATURE_COUNT; i++) {
        assert_true(tni_value_features(tni_cpu_feature_name(i), &bits, &need));
        assert_int_equal(bits, UINT64_C(1) << i);
        strcat(all, i ? "," : "");
        strcat(all, tni_cpu_feature_name(i));
    }
    assert_true(tni_value_features(all, &bits, &need));
    assert_int_equal(bits, (UINT64_C(1) << TN_CPU_FEATURE_COUNT) - 1);
    assert_true(tni_value_features("fma,avx2, fma", &bits, &need));
    assert_int_equal(bits, BIT(FMA) | BIT(AVX2));
}

static void refuses_unknown_words(void **state)
{
    static const char *const wrong[] = {
        "avx3000turbo", "",          "avx2,",
        ",avx2",        "avx2,,fma", ",",
        "avx2 fma",     "virtual",   "a-word-that-is-much-longer-than-any-name-of-a-feature-is"};
    uint64_t bits = 12345;
    tni_need need;
    (void)state;
    assert_false(tni_value_features("avx2,avx521f,fma", &bits, &need));
    assert_contains(need.text, "did you mean avx512f?");
    assert_false(tni_value_features("AVX2", &bits, &need));
    assert_contains(need.text, "did you mean avx2?");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        need.text[0] = '\0';
        assert_false(tni_value_features(wrong[i], &bits, &need));
        assert_contains(need.text, "features of a processor separated by commas");
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
    for (int i = 0; i < TN_CPU_FEATURE_COUNT; i++) {
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
        {"avx512", BIT(AVX512F) | BIT(AVX512BW), NULL},
        {"avx2", BIT(AVX2) | BIT(FMA), NULL},
        {"portable", 0, NULL},
    };
    uint64_t avx2 = BIT(AVX2) | BIT(FMA);
    (void)state;
    assert_string_equal(tni_isa_choose(rows, 3, UINT64_MAX)->name, "avx512");
    assert_string_equal(tni_isa_choose(rows, 3, avx2 | BIT(AVX512F))->name, "avx2");
    assert_string_equal(tni_isa_choose(rows, 3, BIT(AVX2))->name, "portable");
    assert_string_equal(tni_isa_choose(rows, 3, 0)->name, "portable");
    assert_string_equal(tni_isa_choose(rows + 2, 1, UINT64_MAX)->name, "portable");
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
    assert_true(tni_cpu_detected() & BIT(SSE2));
#elif defined(__aarch64__)
    assert_false(tni_cpu_x86_read(&x86));
    assert_true(tni_cpu_arm_read(&arm));
    assert_true(tni_cpu_detected() & BIT(NEON));
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
    const char *flag;
    int feature, young;
} kernel_words[] = {
    {"sse2", INDEX(SSE2), 0},
    {"sse4_1", INDEX(SSE41), 0},
    {"avx", INDEX(AVX), 0},
    {"f16c", INDEX(F16C), 0},
    {"fma", INDEX(FMA), 0},
    {"avx2", INDEX(AVX2), 0},
    {"sha_ni", INDEX(SHA), 0},
    {"avx_vnni", INDEX(AVX_VNNI), 1},
    {"avx512f", INDEX(AVX512F), 0},
    {"avx512bw", INDEX(AVX512BW), 0},
    {"avx512dq", INDEX(AVX512DQ), 0},
    {"avx512vl", INDEX(AVX512VL), 0},
    {"avx512_vnni", INDEX(AVX512_VNNI), 0},
    {"avx512_bf16", INDEX(AVX512_BF16), 0},
    {"avx512_fp16", INDEX(AVX512_FP16), 1},
    {"amx_tile", INDEX(AMX_TILE), 0},
    {"amx_int8", INDEX(AMX_INT8), 0},
    {"amx_bf16", INDEX(AMX_BF16), 0},
    {"asimd", INDEX(NEON), 0},
    {"sha2", INDEX(ARM_SHA2), 0},
    {"asimdhp", INDEX(ARM_FP16), 0},
    {"asimddp", INDEX(ARM_DOTPROD), 0},
    {"bf16", INDEX(ARM_BF16), 0},
    {"i8mm", INDEX(ARM_I8MM), 0},
    {"sve", INDEX(SVE), 0},
    {"sve2", INDEX(SVE2), 0},
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
}

#endif

#if defined(__linux__) && defined(__x86_64__)

static const uint64_t amx = BIT(AMX_TILE) | BIT(AMX_INT8) | BIT(AMX_BF16);

static int tiles_are_permitted(void)
{
    const long get_permissions = 0x1022;
    uint64_t permitted = 0;
    return syscall(SYS_arch_prctl, get_permissions, &permitted) == 0 && permitted >> 18 & 1;
}

/* 0 when the request fails and the stack is named as the reason. */
static int request_with_small_signal_stack(void)
{
    static char memory[8192];
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    if (sigaltstack(&stack, NULL) != 0)
        return 1;
    if (tni_cpu_amx_request() || tiles_are_permitted())
        return 2;
    const char *why = tni_cpu_why_not(INDEX(AMX_TILE));
    return why && strstr(why, "signal stack") ? 0 : 3;
}

static void asks_for_amx_only_on_request(void **state)
{
    const char *why = tni_cpu_why_not(INDEX(AMX_TILE));
    int outcome = -1;
    (void)state;
    assert_int_equal(tni_cpu_detected() & amx, 0);
    assert_false(tiles_are_permitted());
    if (!why || !strstr(why, "has not requested")) {
        assert_false(tni_cpu_amx_request());
        skip_because("amx: %s", why ? why : "not in this processor");
    }
    pid_t child = fork();
    if (child == 0)
        _exit(request_with_small_signal_stack());
    assert_int_equal(waitpid(child, &outcome, 0), child);

    uint64_t before = tni_cpu_detected();
    bool given = tni_cpu_amx_request();
    if (given)
        assert_int_equal(outcome, 0);
    assert_int_equal(given, tiles_are_permitted());
    assert_int_equal(tni_cpu_amx_request(), given);
    assert_int_equal(tni_cpu_detected() & ~amx, before);
    assert_int_equal((tni_cpu_detected() & BIT(AMX_TILE)) != 0, given);
    assert_true(given == !tni_cpu_why_not(INDEX(AMX_TILE)));
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
