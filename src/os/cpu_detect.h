/* Detection of processor features. Reading the processor's raw data is separate from judging it,
 * and every judge is compiled on every architecture, so that tests can judge processors that they
 * do not run on. */
#ifndef TNI_OS_CPU_DETECT_H
#define TNI_OS_CPU_DETECT_H

#include "cpu.h"

/* The result of detection. Zero-initialized: no features known. */
typedef struct tni_cpu_facts {
    uint64_t usable;
    uint64_t possible; /* usable features, and those that only need a request to the system */
    const char *why_not[TN_CPU_FEATURE_COUNT]; /* as tni_cpu_why_not */
} tni_cpu_facts;

/* Records that the processor has `feature`. It is usable if `obstacle` is NULL and all of `needs`
 * are recorded as usable; otherwise the reason is recorded. */
void tni_cpu_facts_note(tni_cpu_facts *facts, int feature, uint64_t needs, const char *obstacle);

/* The cpuid leaves that are kept; leaf 7 has two relevant subleaves. */
enum { TNI_LEAF_0, TNI_LEAF_1, TNI_LEAF_7, TNI_LEAF_7_1, TNI_LEAF_COUNT };
enum { TNI_EAX, TNI_EBX, TNI_ECX, TNI_EDX, TNI_REGISTER_COUNT };

/* State of the kernel's permission to use AMX. */
enum { TNI_AMX_UNASKED, TNI_AMX_GIVEN, TNI_AMX_SMALL_STACK, TNI_AMX_REFUSED };

/* Raw data of an x86-64 processor and its system. Leaves beyond the maximum that the processor
 * reports may hold anything: Intel returns another leaf's registers for them. */
typedef struct tni_cpu_x86 {
    uint32_t leaf[TNI_LEAF_COUNT][TNI_REGISTER_COUNT];
    uint32_t amx; /* TNI_AMX_... */
    uint64_t xcr0;
} tni_cpu_x86;

/* Raw data of an aarch64 processor from Linux: AT_HWCAP and AT_HWCAP2. */
typedef struct tni_cpu_arm {
    uint64_t hwcap;
    uint64_t hwcap2;
} tni_cpu_arm;

/* Returns false and leaves *out unchanged if compiled for another architecture. Requests nothing
 * from the kernel: out->amx is TNI_AMX_UNASKED. */
bool tni_cpu_x86_read(tni_cpu_x86 *out);
bool tni_cpu_arm_read(tni_cpu_arm *out);

/* Requests the tile registers from the kernel. Returns TNI_AMX_... */
uint32_t tni_cpu_x86_request_amx(void);

/* Whether the kernel supports that permission. Does not request it. */
bool tni_cpu_x86_offers_amx(void);

/* `out` must be zero-initialized. */
void tni_cpu_x86_judge(const tni_cpu_x86 *raw, tni_cpu_facts *out);
void tni_cpu_arm_judge(const tni_cpu_arm *raw, tni_cpu_facts *out);

#endif
