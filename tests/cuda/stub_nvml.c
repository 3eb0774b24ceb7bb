/* A stub of NVIDIA's management library: libnvidia-ml.so.1, with the devices of the stub driver.
 *   STUB_NVML   what nvmlInit_v2 gives
 *   STUB_MIG    1: the devices are split into MIG instances */
#include "../../backends/cuda/platform/nvml.h"
#include "stub.h"

#define NVML_CALL_(field, name, parameters) nvml_result name parameters;
NVML_CALL_LIST(NVML_CALL_)
NVML_LATER_CALL_LIST(NVML_CALL_)
#undef NVML_CALL_

static stub_state here;

/* A device is its number and 1. */
static int index_of(const void *device)
{
    return (int)(uintptr_t)device - 1;
}

nvml_result nvmlInit_v2(void)
{
    stub_read_environment(&here);
    return (nvml_result)stub_number("STUB_NVML", NVML_SUCCESS);
}

nvml_result nvmlSystemGetNVMLVersion(char *out, unsigned size)
{
    snprintf(out, size, "13.580.1");
    return NVML_SUCCESS;
}

nvml_result nvmlDeviceGetCount_v2(unsigned *out)
{
    *out = (unsigned)here.physical;
    return NVML_SUCCESS;
}

nvml_result nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out)
{
    *out = (void *)(uintptr_t)(index + 1);
    return index < (unsigned)here.physical ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

nvml_result nvmlDeviceGetName(void *device, char *out, unsigned size)
{
    stub_name(&here, index_of(device), out, size);
    return NVML_SUCCESS;
}

nvml_result nvmlDeviceGetUUID(void *device, char *out, unsigned size)
{
    unsigned char b[16];
    stub_uuid(index_of(device), b);
    snprintf(out, size, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
             b[14], b[15]);
    return NVML_SUCCESS;
}

nvml_result nvmlDeviceGetPciInfo_v3(void *device, nvml_pci *out)
{
    memset(out, 0, sizeof *out);
    out->bus = 0x3B + (unsigned)index_of(device);
    return NVML_SUCCESS;
}

nvml_result nvmlDeviceGetMemoryInfo(void *device, nvml_memory *out)
{
    (void)device;
    *out = (nvml_memory){here.memory, here.memory, 0};
    return NVML_SUCCESS;
}

nvml_result nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor)
{
    (void)device;
    *major = 9;
    *minor = 0;
    return NVML_SUCCESS;
}

nvml_result nvmlDeviceGetMigMode(void *device, unsigned *now, unsigned *pending)
{
    (void)device;
    *now = *pending = here.split;
    return NVML_SUCCESS;
}

nvml_result nvmlDeviceGetNumGpuCores(void *device, unsigned *out)
{
    (void)device;
    *out = 4 * 128;
    return NVML_SUCCESS;
}

nvml_result nvmlDeviceGetMaxClockInfo(void *device, unsigned which, unsigned *out)
{
    (void)device, (void)which;
    *out = 1000;
    return NVML_SUCCESS;
}

nvml_result nvmlDeviceGetMemoryBusWidth(void *device, unsigned *out)
{
    (void)device;
    *out = 64;
    return NVML_SUCCESS;
}

nvml_result nvmlDeviceGetP2PStatus(void *from, void *to, unsigned which, unsigned *out)
{
    (void)from, (void)to, (void)which;
    *out = 1;
    return NVML_SUCCESS;
}
