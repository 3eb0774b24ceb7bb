/* The driver library: opening it, binding its functions, and translating its results. */
#include "driver.h"

static const tn_symbol symbols[] = {
#define CUDA_CALL_(field, name, parameters) {#name, offsetof(cuda_driver, field)},
    CUDA_CALL_LIST(CUDA_CALL_)
#undef CUDA_CALL_
#define CUDA_CALL_(field, name, parameters) {"?" #name, offsetof(cuda_driver, field)},
        CUDA_LATER_CALL_LIST(CUDA_CALL_)
#undef CUDA_CALL_
};
enum { SYMBOLS = sizeof symbols / sizeof symbols[0] };

static const char library[] = CUDA_DRIVER_FILES;

/* Binds this function alone: an old driver lacks others, and its version explains more than their names. */
tn_status cuda_driver_version(const tn_host *host, int *out, tn_error *err)
{
    struct {
        cu_result (*version)(int *out);
    } table = {NULL};
    const tn_symbol one = {"cuDriverGetVersion", 0};
    tn_status status = host->library_bind(host->self, library, &one, 1, &table, err);
    if (!status && table.version(out) != CUDA_SUCCESS)
        *out = 0;
    return status;
}

tn_status cuda_driver_bind(const tn_host *host, cuda_driver *out, int32_t *out_version,
                           tn_error *err)
{
    int version = 0;
    tn_status status = cuda_driver_version(host, &version, err);
    if (status)
        return status;
    if (version < CUDA_DRIVER_LEAST)
        return tn_fail(err, TN_INCOMPATIBLE, 0, "cuDriverGetVersion",
                       "NVIDIA's driver serves CUDA %d.%d, and Tenon needs %d.%d", version / 1000,
                       version % 1000 / 10, CUDA_DRIVER_LEAST / 1000,
                       CUDA_DRIVER_LEAST % 1000 / 10);
    status = host->library_bind(host->self, library, symbols, SYMBOLS, out, err);
    if (!status)
        *out_version = version;
    return status;
}

/* Results of newer drivers that older headers do not define. */
enum {
    CONTAINED = 226,
    TENSOR_MEMORY_LEAK = 721,
    MPS_CLIENT_TERMINATED = 810,
    CAPTURE_FIRST = 900, /* to CAPTURE_LAST: errors that invalidate a capture */
    CAPTURE_LAST = 908,
    EXTERNAL_DEVICE = 911
};

int cuda_is_sticky(cu_result code)
{
    switch ((unsigned)code) {
    case CONTAINED:
    case TENSOR_MEMORY_LEAK:
    case MPS_CLIENT_TERMINATED:
    case EXTERNAL_DEVICE:
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_UNKNOWN: return 1;
    default: return 0;
    }
}

tn_status cuda_driver_status(cu_result code)
{
    if (cuda_is_sticky(code))
        return TN_DEVICE_LOST;
    if (code >= CAPTURE_FIRST && code <= CAPTURE_LAST)
        return TN_UNSUPPORTED;
    switch (code) {
    case CUDA_SUCCESS: return TN_OK;
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_INVALID_HANDLE: return TN_INVALID_ARGUMENT;
    case CUDA_ERROR_OUT_OF_MEMORY: return TN_OUT_OF_MEMORY;
    case CUDA_ERROR_DEVICE_UNAVAILABLE: return TN_BUSY;
    case CUDA_ERROR_NOT_INITIALIZED:
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_DEVICE:
    case CUDA_ERROR_SYSTEM_NOT_READY: return TN_UNAVAILABLE;
    case CUDA_ERROR_STUB_LIBRARY:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE: return TN_INCOMPATIBLE;
    case CUDA_ERROR_NOT_READY: return TN_NOT_READY;
    case CUDA_ERROR_NOT_PERMITTED: return TN_NOT_PERMITTED;
    case CUDA_ERROR_NOT_SUPPORTED: return TN_UNSUPPORTED;
    default: return TN_IO;
    }
}

tn_status cuda_driver_fail(const cuda_driver *driver, cu_result code, const char *call,
                           tn_error *err)
{
    const char *name = NULL, *text = NULL;
    if (driver->error_name(code, &name) != CUDA_SUCCESS || !name)
        name = "an unknown result";
    if (driver->error_text(code, &text) != CUDA_SUCCESS || !text)
        text = "the driver has no words for it";
    return tn_fail(err, cuda_driver_status(code), (int32_t)code, call, "%s (%u): %s", name, code,
                   text);
}
