/* The processor: which instructions Tenon's kernels may use here.
 * Thread-safety: Safe. */
#ifndef TENON_CPU_H
#define TENON_CPU_H

#include "base.h"

TN_BEGIN_DECLS

/* TN_CPU_ARCH_X86, ...: what the library was built for, which is what it runs on. */
enum {
    TN_CPU_ARCH_UNSPECIFIED = 0,
    TN_CPU_ARCH_X86,
    TN_CPU_ARCH_ARM,
    TN_CPU_ARCH_POWERPC,
    TN_CPU_ARCH_S390X,
    TN_CPU_ARCH_RISCV,
    TN_CPU_ARCH_OTHER
};
TN_API int32_t tn_cpu_architecture(void);
TN_API const char *tn_cpu_architecture_name(int32_t architecture); /* "x86"; "unspecified" */

/* The level of vector instructions in PyTorch's words and by its rules: "DEFAULT", "AVX2",
 * "AVX512", "SVE128", "SVE256". "AVX512" needs VL, BW, DQ and FMA; SVE needs bf16 and a vector of
 * 128 or 256 bits; vectors of Power and Z are "DEFAULT". Static text. */
TN_API const char *tn_cpu_capability(void);

/* The same with every step that makes a difference to a kernel, the highest that is usable:
 * "baseline", "avx2", "avx512", "avx512-vnni", "avx512-bf16", "avx512-fp16", "amx"; "neon",
 * "neon-dotprod", "neon-bf16", "sve", "sve2". "baseline" is everywhere; each of the others
 * needs all before it in its line. "amx" needs the kernel's permission for the process, and is said
 * where the kernel has that to give: a query does not ask for it, the first choice of a kernel with
 * such instructions does. Should it be refused then, for a signal stack that is too small, the level
 * is the one below from there on. Static text. */
TN_API const char *tn_cpu_level(void);

/* A feature that the processor has and that is not usable, the highest of them: "amx-bf16"; "" when
 * there is none. *out_reason, unless it is NULL, gets why: the kernel refused its permission, the system
 * does not save its registers. Static text. */
TN_API const char *tn_cpu_withheld(const char **out_reason);

/* Every usable feature, those of AMX as for the level, separated by commas: "sse2,sse4.1,avx,...". A
 * program with tile instructions of its own asks the kernel for them itself. Returns the length it needs
 * without its end; text too long for `size` is cut. */
TN_API size_t tn_cpu_features(char *out, size_t size);

/* Lowers what is usable to a level in either list's words, in any case: what lies above it is hidden
 * from kernels chosen from now on, for the whole process. It is the process's value of the setting
 * cpu.isa_mask. Libraries choose their instructions themselves, so below the processor's own level their
 * kernels are refused. To name "amx" asks for the kernel's permission. Never above what there is: TN_UNSUPPORTED for a level that this processor does not have,
 * TN_INVALID_ARGUMENT for a word that is none, with the nearest; TN_REFUSED when the settings are frozen.
 * NULL takes the limit back, to that of the environment or the file if they have one. */
TN_API tn_status tn_cpu_limit(const char *level, tn_error *err);

TN_END_DECLS

#endif
