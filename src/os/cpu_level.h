/* Levels of vector instructions that matter to kernels, and the limit on them. Thread-safety:
 * Safe. */
#ifndef TNI_OS_CPU_LEVEL_H
#define TNI_OS_CPU_LEVEL_H

#include "tenon/cpu.h"

/* The level, in Tenon's and in PyTorch's terms, that `features` reach on an architecture
 * (TN_CPU_ARCH_...). */
const char *tni_cpu_level_of(int32_t architecture, uint64_t features);
const char *tni_cpu_capability_of(int32_t architecture, uint64_t features, int32_t sve_bits);

/* As the functions of the same names in tenon/cpu.h, but without reading settings first. */
const char *tni_cpu_level(void);
const char *tni_cpu_capability(void);

/* The processor whose level is queried. */
typedef struct tni_cpu_asked {
    int32_t architecture;
    int32_t sve_bits;
    uint64_t detected;
    const char *(*why_not)(int feature_index); /* as tni_cpu_why_not */
} tni_cpu_asked;

/* Computes the features that remain if `level` is the limit; fails as tn_cpu_limit does. */
tn_status tni_cpu_limit_mask(const tni_cpu_asked *cpu, const char *level, uint64_t *out_allow,
                             tn_error *err);

/* The features that reports show: the possible ones without those that the mask hides. */
uint64_t tni_cpu_reported(void);

/* tni_cpu_limit sets the process's limit as tn_cpu_limit does; tni_cpu_limit_check only checks
 * whether that would succeed. Both request AMX from the system if the level needs it. */
tn_status tni_cpu_limit(const char *level, tn_error *err);
tn_status tni_cpu_limit_check(const char *level, tn_error *err);

/* Returns the name of the level, as tn_cpu_level names it, that a word means on this processor's
 * architecture; NULL if the word means none. */
const char *tni_cpu_limit_word(const char *level);

#endif
