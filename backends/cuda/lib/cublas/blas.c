#include "blas.h"

static const tn_symbol symbols[] = {
#define BLAS_CALL_(field, name, result, parameters) {#name, offsetof(cuda_blas, field)},
    BLAS_CALL_LIST(BLAS_CALL_)
#undef BLAS_CALL_
#define BLAS_CALL_(field, name, result, parameters) {"?" #name, offsetof(cuda_blas, field)},
        BLAS_LATER_LIST(BLAS_CALL_)
#undef BLAS_CALL_
};
enum { SYMBOLS = sizeof symbols / sizeof symbols[0] };

static const char files[] = "libcublas.so.13|libcublas.so.12";
static const cuda_sought sought = {files, "cu13|cublas", "libcublasLt.so.13|libcublasLt.so.12",
                                   true};

static tn_status open_blas(const tn_host *host, void **out_self, tn_error *err)
{
    static const cuda_blas_form form = {"cublas", sizeof(cuda_blas), &sought, symbols, SYMBOLS};
    void *made = NULL;
    tn_status status = cuda_blas_open(host, &form, &made, err);
    if (status)
        return status;
    cuda_blas *self = made;
    for (int32_t i = 0; i < CUDA_MOST && !status; i++) {
        if (mtx_init(&self->turn[i], mtx_plain) != thrd_success)
            status = tn_fail(err, TN_OUT_OF_MEMORY, 0, "cublas", "no memory for a lock");
    }
    if (status)
        host->release(host->self, self);
    else
        *out_self = self;
    return status;
}

/* The same numbering as cuBLASLt: 13.0.2 is 130002. */
static tn_status version_of(void *any, int64_t *out_number, char *out_text, size_t size,
                            tn_error *err)
{
    const cuda_blas *self = any;
    return cuda_blas_check("cuBLAS", cuda_find_version(self->property, out_number, out_text, size),
                           "cublasGetProperty", err);
}

static tn_status find_library(const tn_host *host, char *out_path, size_t size, tn_error *err)
{
    return cuda_find_look(host, &sought, out_path, size, err);
}

const tn_library_row cuda_blas_row = {
    .struct_size = sizeof cuda_blas_row,
    .name = "cublas",
    .platform = "cuda",
    .files = files,
    .remedy = "install NVIDIA's toolkit, or its cuBLAS part alone (pip install nvidia-cublas)",
    .open = open_blas,
    .version = version_of,
    .look = find_library,
};

/* Sets the constant options of a handle: alpha and beta are in host memory, and atomics are off, so that
 * sums have a fixed order. */
static tn_status make_handle(void *any, const cuda_scope *scope, void **out, tn_error *err)
{
    const cuda_blas *self = any;
    blas_handle made = NULL;
    int64_t number = 0;
    char text[32];
    lt_status code = self->create(&made);
    const char *call = "cublasCreate";
    if (code && !version_of(any, &number, text, sizeof text, NULL))
        return cuda_blas_check_start(scope, "cuBLAS", (int)number, code, call, err);
    if (!code) {
        call = "cublasSetPointerMode";
        code = self->set_pointers(made, BLAS_POINTERS_OF_HOST);
    }
    if (!code) {
        call = "cublasSetAtomicsMode";
        code = self->set_atomics(made, BLAS_NO_ATOMICS);
    }
    if (code && made)
        (void)self->destroy(made);
    else
        *out = made;
    return cuda_blas_check("cuBLAS", code, call, err);
}

tn_status cuda_blas_handle(cuda_blas *self, const cuda_scope *scope, blas_handle *out,
                           tn_error *err)
{
    return cuda_handles_get(&self->handles, scope, self, make_handle, out, err);
}
