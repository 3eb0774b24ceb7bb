/* The two libraries that devices are found and driven by, as `tenon libraries` lists them. What the platform does with them
 * it binds itself. */
#include "cuda.h"

typedef struct driver_version {
    cu_result (*get)(int *out);
} driver_version;

typedef struct nvml_version {
    nvml_result (*get)(char *out, unsigned size);
} nvml_version;

TN_STATIC_ASSERT(sizeof(driver_version) == sizeof(nvml_version), "one size serves both tables");

/* A table of one function. */
static tn_status bind_one(const tn_host *host, const char *files, const tn_symbol *symbol,
                          void **out_self, tn_error *err)
{
    void *table = host->alloc(host->self, sizeof(driver_version), _Alignof(driver_version));
    if (!table)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, symbol->name, "no memory for its table");
    tn_status status = host->library_bind(host->self, files, symbol, 1, table, err);
    if (status)
        host->release(host->self, table);
    else
        *out_self = table;
    return status;
}

static tn_status open_driver(const tn_host *host, void **out_self, tn_error *err)
{
    const tn_symbol one = {"cuDriverGetVersion", offsetof(driver_version, get)};
    return bind_one(host, CUDA_DRIVER_FILES, &one, out_self, err);
}

/* The latest CUDA that it serves: 13000 is 13.0. */
static tn_status version_of_driver(void *any, int64_t *out_number, char *out_text, size_t size,
                                   tn_error *err)
{
    const driver_version *self = any;
    int number = 0;
    const cu_result code = self->get(&number);
    if (code != CUDA_SUCCESS)
        return tn_fail(err, TN_UNAVAILABLE, (int32_t)code, "cuDriverGetVersion",
                       "it says no version");
    *out_number = number;
    snprintf(out_text, size, "%d.%d", number / 1000, number % 1000 / 10);
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
    const tn_symbol one = {"nvmlSystemGetNVMLVersion", offsetof(nvml_version, get)};
    return bind_one(host, CUDA_NVML_FILES, &one, out_self, err);
}

/* Which it says before it is started, too. */
static tn_status version_of_nvml(void *any, int64_t *out_number, char *out_text, size_t size,
                                 tn_error *err)
{
    const nvml_version *self = any;
    const nvml_result code = self->get(out_text, (unsigned)size);
    *out_number = -1;
    return code == NVML_SUCCESS ? TN_OK
                                : tn_fail(err, TN_UNAVAILABLE, (int32_t)code,
                                          "nvmlSystemGetNVMLVersion", "it says no version");
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
