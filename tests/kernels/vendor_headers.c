/* The module's own declarations of vendors' interfaces against the vendors' headers, where those are
 * installed. */
#include "test.h"

#include "../../backends/cpu/lib/cblas/cblas.h"
#include "../../backends/cpu/lib/onednn/onednn.h"
#include "../../backends/fftw/fftw.h"

#if defined(__has_include)
#if __has_include(<oneapi/dnnl/dnnl.h>)
#include <oneapi/dnnl/dnnl.h>
#define HAS_ONEDNN
#endif
#if __has_include(<cblas.h>)
#include <cblas.h>
#define HAS_CBLAS
#endif
#if __has_include(<fftw3.h>)
#include <fftw3.h>
#define HAS_FFTW
#endif
#endif

static void onednn_is_declared_as_its_header_has_it(void **state)
{
    (void)state;
#if defined(HAS_ONEDNN)
    assert_int_equal(TNI_DNNL_OK, dnnl_success);
    assert_int_equal(TNI_DNNL_NO_MEMORY, dnnl_out_of_memory);
    assert_int_equal(TNI_DNNL_UNIMPLEMENTED, dnnl_unimplemented);
    assert_int_equal(TNI_DNNL_BF16, dnnl_bf16);
    assert_int_equal(TNI_DNNL_F32, dnnl_f32);
    assert_int_equal(TNI_DNNL_S32, dnnl_s32);
    assert_int_equal(TNI_DNNL_S8, dnnl_s8);
    assert_int_equal(TNI_DNNL_ARG_A, DNNL_ARG_SRC);
    assert_int_equal(TNI_DNNL_ARG_B, DNNL_ARG_WEIGHTS);
    assert_int_equal(TNI_DNNL_ARG_OUT, DNNL_ARG_DST);
    assert_int_equal(TNI_DNNL_ARG_BIAS, DNNL_ARG_BIAS);
    assert_int_equal(TNI_DNNL_ARG_SCRATCH, DNNL_ARG_SCRATCHPAD);
    assert_int_equal(TNI_DNNL_SEQUENTIAL, DNNL_RUNTIME_SEQ);
    assert_int_equal(TNI_DNNL_OPENMP, DNNL_RUNTIME_OMP);
    assert_int_equal(TNI_DNNL_TBB, DNNL_RUNTIME_TBB);
    assert_int_equal(TNI_DNNL_POOL, DNNL_RUNTIME_THREADPOOL);
    assert_int_equal(TNI_DNNL_SYCL, DNNL_RUNTIME_DPCPP);
    assert_int_equal(offsetof(tni_dnnl_version, threads), offsetof(dnnl_version_t, cpu_runtime));
    assert_int_equal(sizeof(tni_dnnl_argument), sizeof(dnnl_exec_arg_t));
    assert_int_equal(offsetof(tni_dnnl_argument, memory), offsetof(dnnl_exec_arg_t, memory));
    assert_int_equal(sizeof(tni_dnnl_dims), sizeof(dnnl_dims_t));
#if DNNL_VERSION_MAJOR == 2
    assert_true(sizeof(dnnl_memory_desc_t) <= sizeof((tni_dnnl_layout *)0)->room);
    assert_true(sizeof(dnnl_matmul_desc_t) <= 512 * sizeof(int64_t));
#endif
#else
    skip_because("oneDNN's header is not here: install libdnnl-dev (Debian)");
#endif
}

static void cblas_is_declared_as_its_header_has_it(void **state)
{
    (void)state;
#if defined(HAS_CBLAS)
    assert_int_equal(TNI_CBLAS_ROWS, CblasRowMajor);
    assert_int_equal(TNI_CBLAS_PLAIN, CblasNoTrans);
    assert_int_equal(TNI_CBLAS_TRANSPOSED, CblasTrans);
    assert_int_equal(sizeof(CBLAS_TRANSPOSE), sizeof(int));
#else
    skip_because("cblas.h is not here: install libopenblas-dev (Debian)");
#endif
}

static void fftw_is_declared_as_its_header_has_it(void **state)
{
    (void)state;
#if defined(HAS_FFTW)
    assert_int_equal(sizeof(fftw_dim), sizeof(fftw_iodim64));
    assert_int_equal(offsetof(fftw_dim, n), offsetof(fftw_iodim64, n));
    assert_int_equal(offsetof(fftw_dim, in), offsetof(fftw_iodim64, is));
    assert_int_equal(offsetof(fftw_dim, out), offsetof(fftw_iodim64, os));
    assert_int_equal(FFTW_TO_FREQUENCY, FFTW_FORWARD);
    assert_int_equal(FFTW_FROM_FREQUENCY, FFTW_BACKWARD);
    assert_int_equal(FFTW_IS_UNALIGNED, FFTW_UNALIGNED);
    assert_int_equal(FFTW_KEEPS_INPUT, FFTW_PRESERVE_INPUT);
    assert_int_equal(FFTW_ESTIMATES, FFTW_ESTIMATE);
#else
    skip_because("fftw3.h is not here: install libfftw3-dev (Debian)");
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(onednn_is_declared_as_its_header_has_it),
        cmocka_unit_test(cblas_is_declared_as_its_header_has_it),
        cmocka_unit_test(fftw_is_declared_as_its_header_has_it),
    };
    return run_suite("kernels.vendor_headers", tests);
}
