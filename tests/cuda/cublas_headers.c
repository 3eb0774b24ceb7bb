/* The module's own declarations of cuBLAS and cuBLASLt against NVIDIA's headers, where they are installed. */
#include "test.h"

#include "../../backends/cuda/lib/cublas/blas.h"
#include "../../backends/cuda/lib/cublas/lt.h"
#include "cublas_headers.h"

#if !defined(HAS_CUBLAS_HEADER)
const header_number lt_vendor_numbers[] = {{NULL, 0}};
#endif

static const header_number numbers[] = {
#define LT_NUMBER_(ours, theirs, number) {#theirs, ours},
    LT_NUMBER_LIST(LT_NUMBER_)
#undef LT_NUMBER_
#define BLAS_NUMBER_(ours, theirs, number) {#theirs, ours},
        BLAS_NUMBER_LIST(BLAS_NUMBER_)
#undef BLAS_NUMBER_
            {"sizeof the algorithm", sizeof(lt_algo)},
    {"sizeof the result", sizeof(lt_found)},
    {"offset of the workspace", offsetof(lt_found, workspace)},
    {"offset of the state", offsetof(lt_found, state)},
    {NULL, 0}};

static void numbers_are_as_in_nvidias_header(void **state)
{
    (void)state;
    if (!lt_vendor_numbers[0].name)
        skip_because("cublasLt.h is not here: cmake -DTENON_CUDA_INCLUDE=FOLDER");
    for (int i = 0; numbers[i].name; i++) {
        assert_string_equal(numbers[i].name, lt_vendor_numbers[i].name);
        if (numbers[i].value != lt_vendor_numbers[i].value)
            fail_msg("%s: ours is %lld, NVIDIA's %lld", numbers[i].name, numbers[i].value,
                     lt_vendor_numbers[i].value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_are_as_in_nvidias_header)};
    return run_suite("cuda.cublas_headers", tests);
}
