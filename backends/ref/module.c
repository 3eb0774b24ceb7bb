/* The module `ref`: plain C, built in, always available. It has the reference kernel of every op,
 * against which all other kernels are checked, and which is the fallback of the cpu platform. */
#include "ref.h"

static const tn_kernel_row *const kernels[] = {&tni_ref_matmul,
                                               &tni_ref_permute,
                                               &tni_ref_cast,
                                               &tni_ref_fill,
                                               &tni_ref_unary,
                                               &tni_ref_binary,
                                               &tni_ref_reduce,
                                               &tni_ref_softmax,
                                               &tni_ref_norm,
                                               &tni_ref_rotary,
                                               &tni_ref_attention,
                                               &tni_ref_attention_backward,
                                               &tni_ref_attention_merge,
                                               NULL};

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
