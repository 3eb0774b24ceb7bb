#include "cpu_detect.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* Bits of XCR0: the registers that the system saves. */
enum {
    STATE_XMM = 1 << 1,
    STATE_YMM = 1 << 2,
    STATE_OPMASK = 1 << 5,
    STATE_ZMM_LOW = 1 << 6, /* upper halves of zmm0 to zmm15 */
    STATE_ZMM_HIGH = 1 << 7,
    STATE_TILE_CONFIG = 1 << 17,
    STATE_TILE_DATA = 1 << 18,
    STATE_AVX = STATE_XMM | STATE_YMM,
    STATE_AVX512 = STATE_AVX | STATE_OPMASK | STATE_ZMM_LOW | STATE_ZMM_HIGH,
    STATE_AMX = STATE_TILE_CONFIG | STATE_TILE_DATA,
};

/* `bits` must all be set in a processor that has the feature. They include features without a name
 * here that a compiler's flag for the feature implies: SSE3 and SSSE3 for SSE4.1, SSE4.2 and POPCNT
 * for AVX. */
typedef struct x86_row {
    int feature, leaf, reg;
    uint32_t bits;
    uint32_t state;
    uint64_t needs;
} x86_row;

#define BIT(n)   (UINT32_C(1) << (n))
#define ROW(f)   TN_CPU_INDEX_##f
#define NEEDS(f) TN_CPU_BIT(f)

/* A row must follow the rows of the features that it needs. */
// clang-format off
static const x86_row rows[] = {
    {ROW(SSE2),        TNI_LEAF_1,   TNI_EDX, BIT(26), 0, 0},
    {ROW(SSE41),       TNI_LEAF_1,   TNI_ECX, BIT(19) | BIT(9) | BIT(0), 0, NEEDS(SSE2)},
    {ROW(AVX),         TNI_LEAF_1,   TNI_ECX, BIT(28) | BIT(23) | BIT(20), STATE_AVX, NEEDS(SSE41)},
    {ROW(F16C),        TNI_LEAF_1,   TNI_ECX, BIT(29), STATE_AVX, NEEDS(AVX)},
    {ROW(FMA),         TNI_LEAF_1,   TNI_ECX, BIT(12), STATE_AVX, NEEDS(AVX)},
    {ROW(AVX2),        TNI_LEAF_7,   TNI_EBX, BIT(5), STATE_AVX, NEEDS(AVX)},
    {ROW(SHA),         TNI_LEAF_7,   TNI_EBX, BIT(29), 0, NEEDS(SSE41)},
    {ROW(AVX_VNNI),    TNI_LEAF_7_1, TNI_EAX, BIT(4), STATE_AVX, NEEDS(AVX2)},
    {ROW(AVX512F),     TNI_LEAF_7,   TNI_EBX, BIT(16), STATE_AVX512,
                       NEEDS(AVX2) | NEEDS(FMA) | NEEDS(F16C)},
    {ROW(AVX512BW),    TNI_LEAF_7,   TNI_EBX, BIT(30), STATE_AVX512, NEEDS(AVX512F)},
    {ROW(AVX512DQ),    TNI_LEAF_7,   TNI_EBX, BIT(17), STATE_AVX512, NEEDS(AVX512F)},
    {ROW(AVX512VL),    TNI_LEAF_7,   TNI_EBX, BIT(31), STATE_AVX512, NEEDS(AVX512F)},
    {ROW(AVX512_VNNI), TNI_LEAF_7,   TNI_ECX, BIT(11), STATE_AVX512, NEEDS(AVX512F)},
    {ROW(AVX512_BF16), TNI_LEAF_7_1, TNI_EAX, BIT(5), STATE_AVX512, NEEDS(AVX512BW)},
    {ROW(AVX512_FP16), TNI_LEAF_7,   TNI_EDX, BIT(23), STATE_AVX512,
                       NEEDS(AVX512BW) | NEEDS(AVX512DQ) | NEEDS(AVX512VL)},
    {ROW(AMX_TILE),    TNI_LEAF_7,   TNI_EDX, BIT(24), STATE_AMX, 0},
    {ROW(AMX_INT8),    TNI_LEAF_7,   TNI_EDX, BIT(25), STATE_AMX, NEEDS(AMX_TILE)},
    {ROW(AMX_BF16),    TNI_LEAF_7,   TNI_EDX, BIT(22), STATE_AMX, NEEDS(AMX_TILE)},
};
// clang-format on

static uint32_t read_leaf(const tni_cpu_x86 *raw, int leaf, int reg)
{
    static const uint32_t number[TNI_LEAF_COUNT] = {0, 1, 7, 7};
    bool there = raw->leaf[TNI_LEAF_0][TNI_EAX] >= number[leaf] &&
                 (leaf != TNI_LEAF_7_1 || raw->leaf[TNI_LEAF_7][TNI_EAX] >= 1);
    return there ? raw->leaf[leaf][reg] : 0;
}

static const char *find_unsaved(uint32_t state, uint64_t saved)
{
    uint64_t missing = state & ~saved;
    if (missing & STATE_AVX)
        return "the system does not save ymm registers";
    if (missing & STATE_AVX512)
        return "the system does not save zmm registers";
    return missing ? "the system does not save tile registers" : NULL;
}

static const char *not_permitted(uint32_t amx)
{
    switch (amx) {
    case TNI_AMX_GIVEN: return NULL;
    case TNI_AMX_UNASKED: return "the process has not requested the tile registers";
    case TNI_AMX_SMALL_STACK:
        return "a signal stack of this process is too small for the tile registers";
    default: return "the system does not permit the tile registers";
    }
}

static bool has_osxsave(const tni_cpu_x86 *raw)
{
    return read_leaf(raw, TNI_LEAF_1, TNI_ECX) & BIT(27);
}

/* Judges as if the kernel's AMX state were `amx`. */
static void judge_rows(const tni_cpu_x86 *raw, uint32_t amx, tni_cpu_facts *out)
{
    uint64_t saved = has_osxsave(raw) ? raw->xcr0 : 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const x86_row *row = &rows[i];
        if ((read_leaf(raw, row->leaf, row->reg) & row->bits) != row->bits)
            continue;
        const char *obstacle = find_unsaved(row->state, saved);
        if (!obstacle && row->state & STATE_TILE_DATA)
            obstacle = not_permitted(amx);
        tni_cpu_facts_note(out, row->feature, row->needs, obstacle);
    }
}

void tni_cpu_x86_judge(const tni_cpu_x86 *raw, tni_cpu_facts *out)
{
    tni_cpu_facts asked = {0};
    judge_rows(raw, raw->amx == TNI_AMX_UNASKED ? TNI_AMX_GIVEN : raw->amx, &asked);
    judge_rows(raw, raw->amx, out);
    out->possible = asked.usable;
}

#if defined(__x86_64__)

bool tni_cpu_x86_read(tni_cpu_x86 *out)
{
    static const struct {
        uint32_t leaf, subleaf;
    } asked[TNI_LEAF_COUNT] = {{0, 0}, {1, 0}, {7, 0}, {7, 1}};
    *out = (tni_cpu_x86){.amx = TNI_AMX_UNASKED};
    for (int i = 0; i < TNI_LEAF_COUNT; i++) {
        uint32_t *to = out->leaf[i];
        __cpuid_count(asked[i].leaf, asked[i].subleaf, to[TNI_EAX], to[TNI_EBX], to[TNI_ECX],
                      to[TNI_EDX]);
    }
    if (has_osxsave(out)) {
        uint32_t low, high;
        __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        out->xcr0 = (uint64_t)high << 32 | low;
    }
    return true;
}

#else

bool tni_cpu_x86_read(tni_cpu_x86 *out)
{
    (void)out;
    return false;
}

#endif

#if defined(__x86_64__) && defined(__linux__)

uint32_t tni_cpu_x86_request_amx(void)
{
    const long request_permission = 0x1023, tile_data = 18;
    if (syscall(SYS_arch_prctl, request_permission, tile_data) == 0)
        return TNI_AMX_GIVEN;
    return errno == ENOSPC ? TNI_AMX_SMALL_STACK : TNI_AMX_REFUSED;
}

bool tni_cpu_x86_offers_amx(void)
{
    const long get_supported = 0x1021;
    uint64_t supported = 0;
    return syscall(SYS_arch_prctl, get_supported, &supported) == 0 && supported & STATE_TILE_DATA;
}

#else

uint32_t tni_cpu_x86_request_amx(void)
{
    return TNI_AMX_REFUSED;
}

bool tni_cpu_x86_offers_amx(void)
{
    return false;
}

#endif
