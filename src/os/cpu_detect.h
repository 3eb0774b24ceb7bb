/* How a processor is judged. Reading what it says of itself is apart from judging that, and every
 * judge is compiled everywhere, so that tests can judge processors that they do not run on. */
#ifndef TNI_OS_CPU_DETECT_H
#define TNI_OS_CPU_DETECT_H

#include "cpu.h"

/* The verdict. Zeroed knows of nothing. */
typedef struct tni_cpu_facts {
    uint64_t usable;
    uint64_t possible; /* those, and what lacks nothing but that the system is asked for it */
    uint64_t quirks;
    const char *why_not[TN_CPU_FEATURE_COUNT]; /* as tni_cpu_why_not */
} tni_cpu_facts;

/* Notes that the processor has `feature`: usable when `obstacle` is NULL and all of `needs` is
 * noted as usable, otherwise with the reason. */
void tni_cpu_facts_note(tni_cpu_facts *facts, int feature, uint64_t needs, const char *obstacle);

/* Which answers of cpuid are kept: leaf 7 has two subleaves of interest. */
enum { TNI_LEAF_0, TNI_LEAF_1, TNI_LEAF_7, TNI_LEAF_7_1, TNI_LEAF_COUNT };
enum { TNI_EAX, TNI_EBX, TNI_ECX, TNI_EDX, TNI_REGISTER_COUNT };

/* How the kernel stands to AMX. */
enum { TNI_AMX_UNASKED, TNI_AMX_GIVEN, TNI_AMX_SMALL_STACK, TNI_AMX_REFUSED };

/* What an x86-64 processor and its system say. Leaves beyond the limits that the processor itself
 * states may hold anything: Intel answers those with another leaf's registers. */
typedef struct tni_cpu_x86 {
    uint32_t leaf[TNI_LEAF_COUNT][TNI_REGISTER_COUNT];
    uint32_t amx; /* TNI_AMX_... */
    uint64_t xcr0;
} tni_cpu_x86;

/* What Linux says of an aarch64 processor: AT_HWCAP and AT_HWCAP2. */
typedef struct tni_cpu_arm {
    uint64_t hwcap;
    uint64_t hwcap2;
} tni_cpu_arm;

/* False, with *out untouched, in a program for another architecture. Nothing is asked of the
 * kernel: out->amx is TNI_AMX_UNASKED. */
bool tni_cpu_x86_read(tni_cpu_x86 *out);
bool tni_cpu_arm_read(tni_cpu_arm *out);

/* Asks the kernel for the tile registers; TNI_AMX_... */
uint32_t tni_cpu_x86_ask_amx(void);

/* Whether the kernel knows of that permission, which nobody is given by this. */
bool tni_cpu_x86_offers_amx(void);

/* Into zeroed facts. */
void tni_cpu_x86_judge(const tni_cpu_x86 *raw, tni_cpu_facts *out);
void tni_cpu_arm_judge(const tni_cpu_arm *raw, tni_cpu_facts *out);

#endif
