#include "lt.h"

static const tn_symbol symbols[] = {
#define LT_CALL_(field, name, result, parameters) {#name, offsetof(cuda_lt, field)},
    LT_CALL_LIST(LT_CALL_)
#undef LT_CALL_
};
enum { SYMBOLS = sizeof symbols / sizeof symbols[0] };

static const char files[] = "libcublasLt.so.13|libcublasLt.so.12";
static const cuda_sought sought = {files, "cu13|cublas", "libcublas.so.13|libcublas.so.12", true};

static tn_status open_lt(const tn_host *host, void **out_self, tn_error *err)
{
    static const cuda_blas_form form = {"cublaslt", sizeof(cuda_lt), &sought, symbols, SYMBOLS};
    return cuda_blas_open(host, &form, out_self, err);
}

/* 130002 is 13.0.2; 120903, in the numbering of 12, is 12.9.3. */
static tn_status version_of(void *any, int64_t *out_number, char *out_text, size_t size,
                            tn_error *err)
{
    const cuda_lt *self = any;
    const unsigned long number = (unsigned long)self->version();
    (void)err;
    *out_number = (int64_t)number;
    snprintf(out_text, size, "%lu.%lu.%lu", number / 10000, number / 100 % 100, number % 100);
    return TN_OK;
}

static tn_status find_library(const tn_host *host, char *out_path, size_t size, tn_error *err)
{
    return cuda_find_look(host, &sought, out_path, size, err);
}

const tn_library_row cuda_lt_row = {
    .struct_size = sizeof cuda_lt_row,
    .name = "cublaslt",
    .platform = "cuda",
    .files = files,
    .remedy = "install NVIDIA's toolkit, or its cuBLAS part alone (pip install nvidia-cublas)",
    .open = open_lt,
    .version = version_of,
    .look = find_library,
};

tn_status cuda_lt_check(lt_status code, const char *call, tn_error *err)
{
    return cuda_blas_check("cuBLASLt", code, call, err);
}

static tn_status make_handle(void *any, const cuda_scope *scope, void **out, tn_error *err)
{
    const cuda_lt *self = any;
    const lt_status code = self->create(out);
    return cuda_blas_check_start(scope, "cuBLASLt", (int)self->version(), code, "cublasLtCreate",
                                 err);
}

tn_status cuda_lt_handle(cuda_lt *self, const cuda_scope *scope, lt_handle *out, tn_error *err)
{
    return cuda_handles_get(&self->handles, scope, self, make_handle, out, err);
}
