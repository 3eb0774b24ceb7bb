/* The processor: which instructions Tenon's kernels may use on this machine.
 * Thread-safety: Safe. */
#ifndef TENON_CPU_H
#define TENON_CPU_H

#include "base.h"

TN_BEGIN_DECLS

/* TN_CPU_ARCH_X86, ...: the architecture the library was built for, and so the one it runs on. */
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

/* The level of vector instructions, with PyTorch's names and rules: "DEFAULT", "AVX2", "AVX512",
 * "SVE128", "SVE256". "AVX512" needs VL, BW, DQ and FMA; SVE needs bf16 and vectors of 128 or 256
 * bits; the vector instructions of Power and Z count as "DEFAULT". Static text. */
TN_API const char *tn_cpu_capability(void);

/* The highest usable level, in finer steps that matter to kernels: "baseline", "avx2", "avx512",
 * "avx512-vnni", "avx512-bf16", "avx512-fp16", "amx"; "neon", "neon-dotprod", "neon-bf16", "sve",
 * "sve2". "baseline" is always available; each other level includes all levels before it in its
 * list. "amx" needs the operating system's permission for the process. This query does not request
 * the permission; it returns "amx" if the system can grant it. The first time a kernel with AMX
 * instructions is chosen, the permission is requested. If it is denied then (the signal stack is
 * too small), the level is one lower from then on. Static text. */
TN_API const char *tn_cpu_level(void);

/* The highest feature that the processor has but that cannot be used: "amx-bf16"; "" if none
 * exists. Unless out_reason is NULL, *out_reason is set to the reason: the operating system denied
 * permission, or it does not save the registers. Static text. */
TN_API const char *tn_cpu_withheld(const char **out_reason);

/* All usable features, separated by commas: "sse2,sse4.1,avx,...". AMX features are listed as in
 * tn_cpu_level; a program with its own tile instructions must request the permission itself.
 * Returns the length of the full text without the terminator; text longer than `size` is
 * truncated. */
TN_API size_t tn_cpu_features(char *out, size_t size);

/* Limits the usable instructions, for the whole process, to a level of either list above; case is
 * ignored. Kernels chosen from now on use nothing above it. This sets the process's value of the
 * setting cpu.isa_mask. Libraries choose their instructions themselves, so with a limit below the
 * processor's own level their kernels are refused. The level "amx" requests the operating system's
 * permission. Fails with TN_UNSUPPORTED if this processor does not have the level; with
 * TN_INVALID_ARGUMENT for an unknown name, with the closest match; with TN_REFUSED if the settings
 * are frozen. NULL removes the limit; one from the environment or the file then applies again. */
TN_API tn_status tn_cpu_limit(const char *level, tn_error *err);

TN_END_DECLS

#endif
