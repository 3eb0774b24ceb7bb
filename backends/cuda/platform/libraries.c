/* The driver and NVML as rows of `tenon libraries`. */
#include "cuda.h"

static tn_status open_driver(const tn_host *host, void **out_self, tn_error *err)
{
    int *version = host->alloc(host->self, sizeof *version, _Alignof(int));
    if (!version)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "cuda", "no memory for its version");
    tn_status status = cuda_driver_version(host, version, err);
    if (status)
        host->release(host->self, version);
    else
        *out_self = version;
    return status;
}

static tn_status version_of_driver(void *any, int64_t *out_number, char *out_text, size_t size,
                                   tn_error *err)
{
    const int *version = any;
    if (*version == 0)
        return tn_fail(err, TN_UNAVAILABLE, 0, "cuDriverGetVersion", "it says no version");
    *out_number = *version;
    snprintf(out_text, size, "%d.%d", *version / 1000, *version % 1000 / 10);
    return TN_OK;
}

const tn_library_row cuda_driver_row = {
    .struct_size = sizeof cuda_driver_row,
    .name = "cuda",
    .platform = "cuda",
    .files = CUDA_DRIVER_FILES,
    .remedy = "install NVIDIA's driver",
    .open = open_driver,
    .version = version_of_driver,
};

static tn_status open_nvml(const tn_host *host, void **out_self, tn_error *err)
{
    cuda_nvml *self = host->alloc(host->self, sizeof *self, _Alignof(cuda_nvml));
    if (!self)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "nvml", "no memory for its table");
    tn_status status = cuda_nvml_bind(host, self, err);
    if (status)
        host->release(host->self, self);
    else
        *out_self = self;
    return status;
}

/* NVML reports its version even before it is initialised. */
static tn_status version_of_nvml(void *any, int64_t *out_number, char *out_text, size_t size,
                                 tn_error *err)
{
    const cuda_nvml *self = any;
    *out_number = -1;
    if (self->own_version && self->own_version(out_text, (unsigned)size) == NVML_SUCCESS)
        return TN_OK;
    return tn_fail(err, TN_UNAVAILABLE, 0, "nvmlSystemGetNVMLVersion", "it says no version");
}

const tn_library_row cuda_nvml_row = {
    .struct_size = sizeof cuda_nvml_row,
    .name = "nvml",
    .platform = "cuda",
    .files = CUDA_NVML_FILES,
    .remedy = "install NVIDIA's driver",
    .open = open_nvml,
    .version = version_of_nvml,
};
