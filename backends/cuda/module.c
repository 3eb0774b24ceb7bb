/* The module's tables. */
#include "compile/nvrtc.h"
#include "kernels/rows.h"
#include "lib/cublas/blas.h"
#include "lib/cublas/cublas_attention.h"
#include "lib/cublas/cublas_matmul.h"
#include "lib/cublas/gemm.h"
#include "lib/cublas/lt.h"
#include "lib/cudnn/cudnn_attention.h"
#include "lib/cudnn/dnn.h"
#include "lib/cufft/cufft.h"
#include "platform/cuda.h"

static const tn_platform_row platform = {
    .struct_size = sizeof platform,
    .name = "cuda",
    .kind = TN_PLATFORM_CUDA,
    .flags = TN_PLATFORM_ASYNC_OUTPUT,
    .remedy = "install NVIDIA's driver: nvidia-smi should then list the device",
    .probe = cuda_probe,
    .memory_alloc = cuda_memory_alloc,
    .memory_free = cuda_memory_free,
    .copy = cuda_copy,
    .async_output_reason = "copies run beside kernels; each step on its own leaves the device idle "
                           "between them",
    .device_properties = cuda_device_properties,
    .device_memory = cuda_device_memory,
    .device_link = cuda_device_link,
    .stream_create = cuda_stream_create,
    .stream_destroy = cuda_stream_destroy,
    .stream_query = cuda_stream_query,
    .stream_synchronize = cuda_stream_synchronize,
    .stream_wait = cuda_stream_wait,
    .device_synchronize = cuda_device_synchronize,
    .event_create = cuda_event_create,
    .event_destroy = cuda_event_destroy,
    .event_record = cuda_event_record,
    .event_query = cuda_event_query,
    .event_synchronize = cuda_event_synchronize,
    .event_elapsed = cuda_event_elapsed,
    .event_export = cuda_event_export,
    .event_import = cuda_event_import,
    .fill = cuda_fill,
    .host_alloc = cuda_host_alloc,
    .host_free = cuda_host_free,
    .device_activate = cuda_device_activate,
    .device_enter = cuda_device_enter,
    .device_leave = cuda_device_leave,
    .device_is_initialized = cuda_device_is_initialized,
    .device_reset = cuda_device_reset,
    .graph_begin = cuda_graph_begin,
    .graph_end = cuda_graph_end,
    .graph_run = cuda_graph_run,
    .graph_destroy = cuda_graph_destroy,
    .random = cuda_random,
    .memory_trim = cuda_memory_trim,
    .device_numbers = cuda_device_numbers,
    .stream_is_captured = cuda_stream_is_captured,
    .capture_alloc = cuda_capture_alloc,
    .capture_free = cuda_capture_free,
    .memory_alloc_on = cuda_memory_alloc_on,
    .memory_free_on = cuda_memory_free_on,
};
static const tn_platform_row *const platforms[] = {&platform, NULL};

static const tn_library_row *const libraries[] = {
    &cuda_driver_row, &cuda_nvml_row, &cuda_nvrtc_row,         &cuda_lt_row,
    &cuda_blas_row,   &cuda_dnn_row,  &cuda_cufft_library_row, NULL};

/* Rows of the libraries, without those of cuBLASLt. */
#define LIBRARY_ROWS(ROW)                \
    ROW(cuda_dnn_attention_row)          \
    ROW(cuda_lt_attention_row)           \
    ROW(cuda_lt_attention16_row)         \
    ROW(cuda_cufft_row)                  \
    ROW(cuda_dnn_single_row)             \
    ROW(cuda_dnn_gradient_row)           \
    ROW(cuda_dnn_gradient_repeating_row) \
    ROW(cuda_blas_matmul_row)            \
    ROW(cuda_blas_tf32_row)              \
    ROW(cuda_blas_half_row)              \
    ROW(cuda_blas_half_reduced_row)      \
    ROW(cuda_blas_f16_sums_row)          \
    ROW(cuda_blas_int8_row)              \
    ROW(cuda_blas_grouped_row)           \
    ROW(cuda_blas_grouped_half_row)

#define ADDRESS(row)          &row,
#define ADDRESS_OF_LT(padded) &padded.row,
#define ADDRESSES(kind) \
    &cuda_lt_##kind##_rows[0].row, &cuda_lt_##kind##_rows[1].row, &cuda_lt_##kind##_rows[2].row,
static const tn_kernel_row *const kernels[] = {CUDA_ROWS(ADDRESS) LIBRARY_ROWS(
    ADDRESS) LT_ROWS_LIST(ADDRESSES) LT_PADDED_LIST(ADDRESS_OF_LT) NULL};
#undef ADDRESS
#undef ADDRESSES
#undef ADDRESS_OF_LT

static const tn_module module = {
    .struct_size = sizeof module,
    TN_MODULE_ABI,
    .name = "cuda",
    .version = "1.0",
    .platforms = platforms,
    .libraries = libraries,
    .kernels = kernels,
};

tn_status tn_module_entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}
