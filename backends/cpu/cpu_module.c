/* The module `cpu`: built in, always available. It provides the platform, vendors' libraries for it
 * and the fast kernels; `ref` has the kernels that make it complete. */
#include "cpu_module.h"
#include "fork_gate.h"
#include "tenon/module/library.h"

static const tn_platform_row *const platforms[] = {&tni_cpu_module_platform, NULL};

static const tn_library_row *const libraries[] = {&tni_cpu_module_blis,     &tni_cpu_module_hwloc,
                                                  &tni_cpu_module_mkl,      &tni_cpu_module_mkldnn,
                                                  &tni_cpu_module_openblas, NULL};

static const tn_module module = {.struct_size = sizeof module,
                                 TN_MODULE_ABI,
                                 .name = "cpu",
                                 .version = "0.1.0",
                                 .platforms = platforms,
                                 .libraries = libraries,
                                 .kernels = tni_cpu_module_kernels};

/* Not tn_module_entry: a built-in is linked into the library and must not share its name. */
tn_module_entry_fn tni_cpu_module_entry;

tn_status tni_cpu_module_entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host, (void)err;
    tni_fork_gate_watch();
    *out = &module;
    return TN_OK;
}
