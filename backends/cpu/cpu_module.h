/* Internal declarations of the module `cpu`: the processor as a platform of one device, whose
 * memory is the host's. */
#ifndef TENON_BACKENDS_CPU_CPU_MODULE_H
#define TENON_BACKENDS_CPU_CPU_MODULE_H

#include "tenon/module/platform.h"

/* Selects one of three lists of files by operating system. */
#if defined(_WIN32)
#define TNI_CPU_FILES(windows, apple, elf) windows
#elif defined(__APPLE__)
#define TNI_CPU_FILES(windows, apple, elf) apple
#else
#define TNI_CPU_FILES(windows, apple, elf) elf
#endif

/* hwloc 2, whose structs are the same in all of its releases; the format is that of
 * tn_host.library_bind. */
#define TNI_CPU_HWLOC_FILES TNI_CPU_FILES("libhwloc-15.dll", "libhwloc.15.dylib", "libhwloc.so.15")

extern const tn_platform_row tni_cpu_module_platform;

struct tn_library_row;
extern const struct tn_library_row tni_cpu_module_blis;
extern const struct tn_library_row tni_cpu_module_hwloc;
extern const struct tn_library_row tni_cpu_module_mkl;
extern const struct tn_library_row tni_cpu_module_mkldnn;
extern const struct tn_library_row tni_cpu_module_openblas;

/* Allocates and fills a table of functions of `size` bytes, otherwise zeroed. The table is kept
 * until the process ends. */
tn_status tni_cpu_module_bind(const tn_host *host, const struct tn_library_row *row,
                              const tn_symbol *symbols, size_t count, size_t size, void **out_self,
                              tn_error *err);

/* The number that tn_library_row.version uses for a version with only these parts; -1 if it does
 * not fit. */
int64_t tni_cpu_module_version_number(int64_t major, int64_t minor, int64_t patch);

/* The same for a text that begins with them: "0.3.21", "1.1"; -1 for any other text. */
int64_t tni_cpu_module_version_parse(const char *text);

/* All kernels; ends with NULL. The build makes the list from the folders of the operators and of
 * the libraries (CMakeLists.txt). */
struct tn_kernel_row;
extern const struct tn_kernel_row *const tni_cpu_module_kernels[];

/* Passes the machine's topology, as seen by hwloc, to the sink; opens hwloc for it. Fails with
 * TN_UNAVAILABLE, and the reason, if hwloc is not available. */
tn_status tni_cpu_module_topology(const tn_host *host, const tn_topology_sink *sink, tn_error *err);

#endif
