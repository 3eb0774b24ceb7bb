/* The module `fftw`: Fourier transforms on the processor by FFTW.
 *
 * It is apart from the module `cpu` because of FFTW's licence, the GNU General Public License: what
 * is distributed together with FFTW has to follow it. This module's own code has Tenon's licence. */
#include "fftw.h"

static const tn_library_row *const libraries[] = {&tni_fftw_library, NULL};
static const tn_kernel_row *const kernels[] = {&tni_fftw_estimated, &tni_fftw_measured, NULL};

static const tn_module module = {.struct_size = sizeof module,
                                 TN_MODULE_ABI,
                                 .name = "fftw",
                                 .version = "0.1.0",
                                 .libraries = libraries,
                                 .kernels = kernels};

tn_status tn_module_entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}
