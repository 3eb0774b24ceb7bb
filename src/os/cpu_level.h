/* Levels of vector instructions: steps that make a difference to kernels, and a limit to them.
 * Thread-safety: Safe. */
#ifndef TNI_OS_CPU_LEVEL_H
#define TNI_OS_CPU_LEVEL_H

#include "tenon/cpu.h"

/* The levels of vector instructions that `features` make up on an architecture: TN_CPU_ARCH_... */
const char *tni_cpu_level_of(int32_t architecture, uint64_t features);
const char *tni_cpu_capability_of(int32_t architecture, uint64_t features, int32_t sve_bits);

/* As the functions of tenon/cpu.h of the same names, but that no setting is read first. */
const char *tni_cpu_level(void);
const char *tni_cpu_capability(void);

/* A processor of which a level is asked. */
typedef struct tni_cpu_asked {
    int32_t architecture;
    int32_t sve_bits;
    uint64_t detected;
    const char *(*why_not)(int feature_index); /* as tni_cpu_why_not */
} tni_cpu_asked;

/* The features that remain when `level` is the limit; fails as tn_cpu_limit does. */
tn_status tni_cpu_limit_mask(const tni_cpu_asked *cpu, const char *level, uint64_t *out_allow,
                             tn_error *err);

/* The features that reports tell: those that are possible, less what the mask hides. */
uint64_t tni_cpu_told(void);

/* As tn_cpu_limit, which is the process's setting; and whether it would succeed. Both ask the system
 * for AMX when the level needs it. */
tn_status tni_cpu_limit(const char *level, tn_error *err);
tn_status tni_cpu_limit_check(const char *level, tn_error *err);

/* The step of this processor's ladder that a word stands for, in the words of tn_cpu_level; NULL for
 * one that is not of it. */
const char *tni_cpu_limit_word(const char *level);

#endif
