/* The module's own declarations of cuFFT against NVIDIA's header, where it is installed. */
#include "test.h"

#include "../../backends/cuda/lib/cufft/cufft.h"
#include "cufft_headers.h"

#if !defined(HAS_CUFFT_HEADER)
const header_number fft_vendor_numbers[] = {{NULL, 0}};
#endif

static const header_number numbers[] = {
#define FFT_NUMBER_(ours, theirs, number) {#theirs, ours},
    FFT_NUMBER_LIST(FFT_NUMBER_)
#undef FFT_NUMBER_
        {NULL, 0}};

static void numbers_are_as_in_nvidias_header(void **state)
{
    (void)state;
    if (!fft_vendor_numbers[0].name)
        skip_because("cufftXt.h is not here: cmake -DTENON_CUDA_INCLUDE=FOLDER");
    for (int i = 0; numbers[i].name; i++) {
        assert_string_equal(numbers[i].name, fft_vendor_numbers[i].name);
        if (numbers[i].value != fft_vendor_numbers[i].value)
            fail_msg("%s: ours is %lld, NVIDIA's %lld", numbers[i].name, numbers[i].value,
                     fft_vendor_numbers[i].value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_are_as_in_nvidias_header)};
    return run_suite("cuda.cufft_headers", tests);
}
