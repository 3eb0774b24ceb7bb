#include "../../compile/find.h"
#include "cufft.h"

static const tn_symbol symbols[] = {
#define FFT_CALL_(field, name, result, parameters) {#name, offsetof(cuda_cufft, field)},
    FFT_CALL_LIST(FFT_CALL_)
#undef FFT_CALL_
};
enum { SYMBOLS = sizeof symbols / sizeof symbols[0] };

static const char files[] = "libcufft.so.12|libcufft.so.11";
static const cuda_sought sought = {files, "cu13|cufft", NULL, false};

static tn_status open_cufft(const tn_host *host, void **out_self, tn_error *err)
{
    cuda_cufft *self = host->alloc(host->self, sizeof *self, _Alignof(cuda_cufft));
    if (!self)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "cufft", "no memory for its table");
    tn_status status = cuda_find_bind(host, &sought, symbols, SYMBOLS, self, err);
    if (status)
        host->release(host->self, self);
    else
        *out_self = self;
    return status;
}

/* 12.0.1 is 120001. */
static tn_status version_of(void *any, int64_t *out_number, char *out_text, size_t size,
                            tn_error *err)
{
    const cuda_cufft *self = any;
    return cuda_cufft_check(cuda_find_version(self->property, out_number, out_text, size),
                            "cufftGetProperty", err);
}

static tn_status find_library(const tn_host *host, char *out_path, size_t size, tn_error *err)
{
    return cuda_find_look(host, &sought, out_path, size, err);
}

const tn_library_row cuda_cufft_library_row = {
    .struct_size = sizeof cuda_cufft_library_row,
    .name = "cufft",
    .platform = "cuda",
    .files = files,
    .remedy = "install NVIDIA's toolkit, or its cuFFT part alone (pip install nvidia-cufft)",
    .open = open_cufft,
    .version = version_of,
    .look = find_library,
};

tn_status cuda_cufft_check(fft_status code, const char *call, tn_error *err)
{
    switch (code) {
    case FFT_SUCCESS: return TN_OK;
    case FFT_NO_MEMORY:
        return tn_fail(err, TN_OUT_OF_MEMORY, code, call, "cuFFT has no memory for it");
    case FFT_NOT_STARTED:
        return tn_fail(err, TN_UNAVAILABLE, code, call,
                       "cuFFT does not start on this device: check that it is made for the driver");
    case FFT_INVALID_TYPE:
    case FFT_INVALID_VALUE:
    case FFT_INVALID_SIZE:
    case FFT_NOT_IMPLEMENTED:
    case FFT_NOT_SUPPORTED:
        return tn_fail(err, TN_UNSUPPORTED, code, call, "cuFFT does not support this transform");
    default: return tn_fail(err, TN_INTERNAL, code, call, "cuFFT's result is %d", code);
    }
}
