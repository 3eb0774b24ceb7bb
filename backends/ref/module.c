/* The module `ref`: plain C, built in, always available. It has the reference kernel of every
 * operator, against which all other kernels are checked, and which is the fallback of the cpu
 * platform. */
#include "tenon/module/kernel.h"

#include "tni_ref_rows.h" /* written by CMake: the rows of all files NAME_ref.c */

#define DECLARE(row) extern const tn_kernel_row row;
TNI_REF_ROWS(DECLARE)
#undef DECLARE

#define ADDRESS(row) &row,
static const tn_kernel_row *const kernels[] = {TNI_REF_ROWS(ADDRESS) NULL};
#undef ADDRESS

static const tn_module module = {.struct_size = sizeof module,
                                 TN_MODULE_ABI,
                                 .name = "ref",
                                 .version = "0.1.0",
                                 .kernels = kernels};

/* Not tn_module_entry: a built-in is linked into the library and must not share its name. */
tn_module_entry_fn tni_ref_module_entry;

tn_status tni_ref_module_entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}
