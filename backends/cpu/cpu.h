/* The module `cpu` from inside: the processor as a platform of one device, whose memory is the
 * host's. */
#ifndef TENON_BACKENDS_CPU_H
#define TENON_BACKENDS_CPU_H

#include "tenon/module/platform.h"

/* hwloc 2, whose structs are the same in all of its releases; as for tn_host.library_bind. */
#if defined(_WIN32)
#define TNI_CPU_HWLOC_FILES "libhwloc-15.dll"
#elif defined(__APPLE__)
#define TNI_CPU_HWLOC_FILES "libhwloc.15.dylib"
#else
#define TNI_CPU_HWLOC_FILES "libhwloc.so.15"
#endif

extern const tn_platform_row tni_cpu_module_platform;

struct tn_library_row;
extern const struct tn_library_row tni_cpu_module_hwloc;
extern const struct tn_library_row tni_cpu_module_mkl;
extern const struct tn_library_row tni_cpu_module_mkldnn;
extern const struct tn_library_row tni_cpu_module_openblas;

/* Tells the sink how hwloc sees the machine; opens hwloc for it. TN_UNAVAILABLE, with the reason,
 * when hwloc is not to be had. */
tn_status tni_cpu_module_topology(const tn_host *host, const tn_topology_sink *sink, tn_error *err);

#endif
