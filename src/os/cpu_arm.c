#include "cpu_detect.h"

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#include <sys/prctl.h>
#endif

/* Bits of AT_HWCAP and AT_HWCAP2 in the kernel's ABI. The kernel sets a bit only if every core has
 * the feature and the kernel saves its registers. */
#define BIT(n)      (UINT64_C(1) << (n))
#define FP_AND_SIMD (BIT(0) | BIT(1))

typedef struct arm_row {
    int feature;
    uint64_t hwcap, hwcap2; /* bits that must all be set */
    uint64_t needs;
} arm_row;

#define ROW(f)   TN_CPU_INDEX_##f
#define NEEDS(f) TN_CPU_BIT(f)

/* A row must follow the rows of the features that it needs. */
// clang-format off
static const arm_row rows[] = {
    {ROW(NEON),        FP_AND_SIMD, 0,        0},
    {ROW(ARM_SHA2),    BIT(6), 0,             NEEDS(NEON)},
    {ROW(ARM_FP16),    BIT(9) | BIT(10), 0,   NEEDS(NEON)}, /* scalar and vector */
    {ROW(ARM_DOTPROD), BIT(20), 0,            NEEDS(NEON)},
    {ROW(ARM_BF16),    0, BIT(14),            NEEDS(NEON)},
    {ROW(ARM_I8MM),    0, BIT(13),            NEEDS(NEON)},
    {ROW(SVE),         BIT(22), 0,            NEEDS(NEON) | NEEDS(ARM_FP16)},
    {ROW(SVE2),        0, BIT(1),             NEEDS(SVE)},
};
// clang-format on

void tni_cpu_arm_judge(const tni_cpu_arm *raw, tni_cpu_facts *out)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const arm_row *row = &rows[i];
        if ((raw->hwcap & row->hwcap) == row->hwcap && (raw->hwcap2 & row->hwcap2) == row->hwcap2)
            tni_cpu_facts_note(out, row->feature, row->needs, NULL);
    }
    out->possible = out->usable;
}

#if defined(__aarch64__) && defined(__linux__)

bool tni_cpu_arm_read(tni_cpu_arm *out)
{
    *out = (tni_cpu_arm){.hwcap = getauxval(AT_HWCAP), .hwcap2 = getauxval(AT_HWCAP2)};
    return true;
}

int32_t tni_cpu_sve_bits(void)
{
    const int get_vector_length = 51, bytes = 0xFFFF; /* in the kernel's ABI: PR_SVE_... */
    int answer = prctl(get_vector_length, 0, 0, 0, 0);
    return answer < 0 ? 0 : (answer & bytes) * 8;
}

#elif defined(__aarch64__)

/* On other systems only the features that the ABI guarantees for every processor. */
bool tni_cpu_arm_read(tni_cpu_arm *out)
{
    *out = (tni_cpu_arm){.hwcap = FP_AND_SIMD};
    return true;
}

#else

bool tni_cpu_arm_read(tni_cpu_arm *out)
{
    (void)out;
    return false;
}

#endif

#if !defined(__aarch64__) || !defined(__linux__)

int32_t tni_cpu_sve_bits(void)
{
    return 0;
}

#endif
