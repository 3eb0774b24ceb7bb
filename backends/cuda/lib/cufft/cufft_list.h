/* The parts of cuFFT that are used: constants and functions, as lists that a test also reads with the vendor's types. */
#ifndef CUDA_CUFFT_LIST_H
#define CUDA_CUFFT_LIST_H

/*  Our name, the vendor's name, its value; checked against the vendor's header where that is installed. */
#define FFT_NUMBER_LIST(X)                            \
    X(FFT_SUCCESS, CUFFT_SUCCESS, 0)                  \
    X(FFT_NO_MEMORY, CUFFT_ALLOC_FAILED, 2)           \
    X(FFT_INVALID_TYPE, CUFFT_INVALID_TYPE, 3)        \
    X(FFT_INVALID_VALUE, CUFFT_INVALID_VALUE, 4)      \
    X(FFT_NOT_STARTED, CUFFT_SETUP_FAILED, 7)         \
    X(FFT_INVALID_SIZE, CUFFT_INVALID_SIZE, 8)        \
    X(FFT_NOT_IMPLEMENTED, CUFFT_NOT_IMPLEMENTED, 14) \
    X(FFT_NOT_SUPPORTED, CUFFT_NOT_SUPPORTED, 16)     \
    X(FFT_FORWARD, CUFFT_FORWARD, -1)                 \
    X(FFT_INVERSE, CUFFT_INVERSE, 1)                  \
    X(FFT_R32, CUDA_R_32F, 0)                         \
    X(FFT_R64, CUDA_R_64F, 1)                         \
    X(FFT_C32, CUDA_C_32F, 4)                         \
    X(FFT_C64, CUDA_C_64F, 5)

/*  Field, symbol name, result, parameters. */
#define FFT_CALL_LIST(X)                                                                          \
    X(property, cufftGetProperty, fft_status, (fft_property which, int *out))                     \
    X(create, cufftCreate, fft_status, (fft_handle * out))                                        \
    X(destroy, cufftDestroy, fft_status, (fft_handle handle))                                     \
    X(set_auto, cufftSetAutoAllocation, fft_status, (fft_handle handle, int automatic))           \
    X(make_plan, cufftXtMakePlanMany, fft_status,                                                 \
      (fft_handle handle, int rank, long long *lengths, long long *in_embed, long long in_stride, \
       long long in_distance, fft_type in_type, long long *out_embed, long long out_stride,       \
       long long out_distance, fft_type out_type, long long batch, size_t *out_work,              \
       fft_type computed))                                                                        \
    X(set_work, cufftSetWorkArea, fft_status, (fft_handle handle, void *work))                    \
    X(set_stream, cufftSetStream, fft_status, (fft_handle handle, fft_stream stream))             \
    X(exec, cufftXtExec, fft_status, (fft_handle handle, void *in, void *out, int direction))

#endif
