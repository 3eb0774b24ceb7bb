/* Which of the instruction sets that kernels were built for this machine runs, and so the suites with it.
 * scripts/test shows these lines for `make hw-test`. */
#include "kernels/cpu_make.h"

/* "avx512_vnni" of "cpu.matmul.i8.avx512_vnni". */
static const char *set_of(const tn_kernel_row *row)
{
    return strrchr(row->name, '.') + 1;
}

/* The first row of its set, so that each set is told once. */
static int is_first(const tn_kernel_row *const *row)
{
    for (const tn_kernel_row *const *it = cpu_module()->kernels; it < row; it++) {
        if (!(*it)->library && strcmp(set_of(*it), set_of(*row)) == 0)
            return 0;
    }
    return 1;
}

static const char *why_not(uint64_t lacks)
{
    const char *reason = NULL;
    for (int i = 0; !reason && i < TN_CPU_FEATURE_COUNT; i++)
        reason = lacks >> i & 1 ? tni_cpu_why_not(i) : NULL;
    return reason ? reason : "the processor lacks it";
}

static void every_set_is_exercised_or_named(void **state)
{
    int exercised = 0;
    (void)state;
    (void)tni_cpu_amx_request();
    for (const tn_kernel_row *const *row = cpu_module()->kernels; *row; row++) {
        char words[192];
        const uint64_t lacks = (*row)->cpu_needs & ~tni_cpu_features();
        if ((*row)->library || !is_first(row))
            continue;
        (void)tni_cpu_features_write(lacks, words, sizeof words);
        if (lacks)
            print_message("not exercised: %s needs %s: %s\n", set_of(*row), words, why_not(lacks));
        else
            print_message("exercised: %s\n", set_of(*row));
        exercised += !lacks;
    }
    assert_true(exercised > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_set_is_exercised_or_named)};
    return run_suite("hw.exercised", tests);
}
