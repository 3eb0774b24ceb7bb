/* Counts and identifies devices through NVML. */
#include "nvml.h"

static const tn_symbol symbols[] = {
#define NVML_CALL_(field, name, parameters) {#name, offsetof(cuda_nvml, field)},
    NVML_CALL_LIST(NVML_CALL_)
#undef NVML_CALL_
#define NVML_CALL_(field, name, parameters) {"?" #name, offsetof(cuda_nvml, field)},
        NVML_LATER_CALL_LIST(NVML_CALL_)
#undef NVML_CALL_
};

tn_status cuda_nvml_bind(const tn_host *host, cuda_nvml *out, tn_error *err)
{
    return host->library_bind(host->self, CUDA_NVML_FILES, symbols,
                              sizeof symbols / sizeof symbols[0], out, err);
}

tn_status cuda_nvml_open(const tn_host *host, cuda_nvml *out, nvml_result *out_code, tn_error *err)
{
    *out_code = NVML_SUCCESS;
    tn_status status = cuda_nvml_bind(host, out, err);
    if (status)
        return status;
    *out_code = out->init();
    if (*out_code != NVML_SUCCESS)
        return tn_fail(err, TN_UNAVAILABLE, (int32_t)*out_code, "nvmlInit_v2",
                       "NVIDIA's management library does not start: its result is %u", *out_code);
    return TN_OK;
}

/* Returns the cores per multiprocessor for that compute capability; 0 if unknown here. */
static int32_t count_cores(int32_t major, int32_t minor)
{
    switch (major * 10 + minor) {
    case 70:
    case 72:
    case 75:
    case 80: return 64;
    case 60: return 64;
    case 61:
    case 62:
    case 86:
    case 87:
    case 89:
    case 90:
    case 100:
    case 103:
    case 110:
    case 120:
    case 121: return 128;
    default: return 0;
    }
}

/* Writes "00000000:3B:00.0" in the common form "0000:3b:00.0". */
static void read_bus(const nvml_pci *pci, char out[32])
{
    snprintf(out, 32, "%04x:%02x:%02x.0", pci->domain, pci->bus, pci->device);
}

static int64_t read_number(nvml_result (*ask)(void *device, unsigned *out), void *device)
{
    unsigned number = 0;
    return ask && ask(device, &number) == NVML_SUCCESS ? (int64_t)number : 0;
}

static int64_t read_mhz(const cuda_nvml *nvml, void *device, unsigned which)
{
    unsigned mhz = 0;
    return nvml->clock && nvml->clock(device, which, &mhz) == NVML_SUCCESS ? (int64_t)mhz : 0;
}

static int64_t read_multi_processors(const cuda_nvml *nvml, const cuda_found *of)
{
    int32_t in_one = count_cores(of->major, of->minor);
    return in_one ? read_number(nvml->cores, of->nvml) / in_one : 0;
}

/* The reported memory clock counts cycles; there are two transfers per cycle. */
void cuda_nvml_rates(const cuda_nvml *nvml, void *device, int64_t *out_khz, int64_t *out_bandwidth)
{
    *out_khz = read_mhz(nvml, device, NVML_CLOCK_SM) * 1000;
    *out_bandwidth = 2 * read_mhz(nvml, device, NVML_CLOCK_MEM) * 1000000 *
                     read_number(nvml->bus_width, device) / 8;
}

static nvml_result read_one(const cuda_nvml *nvml, unsigned index, cuda_found *out)
{
    nvml_pci pci = {.domain = 0};
    nvml_memory memory = {.total = 0};
    unsigned split = 0, pending = 0;
    int major = 0, minor = 0;
    memset(out, 0, sizeof *out);
    nvml_result code = nvml->device(index, &out->nvml);
    if (!code)
        code = nvml->name(out->nvml, out->name, sizeof out->name);
    if (!code)
        code = nvml->uuid(out->nvml, out->uuid, sizeof out->uuid);
    if (!code)
        code = nvml->pci(out->nvml, &pci);
    if (!code)
        code = nvml->memory(out->nvml, &memory);
    if (!code)
        code = nvml->capability(out->nvml, &major, &minor);
    if (code)
        return code;
    read_bus(&pci, out->bus);
    out->memory_bytes = memory.total;
    out->major = major;
    out->minor = minor;
    out->physical = (int32_t)index;
    out->is_split = nvml->mig && nvml->mig(out->nvml, &split, &pending) == NVML_SUCCESS && split;
    out->multi_processors = read_multi_processors(nvml, out);
    return NVML_SUCCESS;
}

tn_status cuda_nvml_list(const cuda_nvml *nvml, cuda_found *out, int32_t most, int32_t *out_count,
                         tn_error *err)
{
    unsigned count = 0;
    nvml_result code = nvml->count(&count);
    if (count > (unsigned)most)
        count = (unsigned)most;
    for (unsigned i = 0; !code && i < count; i++)
        code = read_one(nvml, i, &out[i]);
    if (code)
        return tn_fail(err, TN_UNAVAILABLE, (int32_t)code, "NVML",
                       "NVIDIA's management library does not list devices: its result is %u", code);
    *out_count = (int32_t)count;
    return TN_OK;
}
