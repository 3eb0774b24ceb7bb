/* NVIDIA's side of cufft_headers.c. Our list is read with NVIDIA's types under our names. */
#include <cufftXt.h>

#include "../../backends/cuda/lib/cufft/cufft_list.h"
#include "cufft_headers.h"

#include <stddef.h>

typedef cufftResult fft_status;
typedef libraryPropertyType fft_property;
typedef cufftHandle fft_handle;
typedef cudaDataType fft_type;
typedef cudaStream_t fft_stream;

const header_number fft_vendor_numbers[] = {
#define FFT_NUMBER_(ours, theirs, number) {#theirs, theirs},
    FFT_NUMBER_LIST(FFT_NUMBER_)
#undef FFT_NUMBER_
        {NULL, 0}};

/* A function that is declared otherwise does not compile. */
#define FFT_CALL_(field, name, result, parameters)                                        \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&name), result(*) parameters), \
                   #name " is declared otherwise");
FFT_CALL_LIST(FFT_CALL_)
#undef FFT_CALL_
