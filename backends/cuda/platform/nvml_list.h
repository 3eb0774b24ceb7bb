/* The parts of NVML that the module uses, as lists: constants and functions. They name types and declare none, so
 * that a test can include them together with NVIDIA's own header and compare. */
#ifndef CUDA_NVML_LIST_H
#define CUDA_NVML_LIST_H

#define NVML_NUMBER_LIST(X)                   \
    X(NVML_SUCCESS, 0)                        \
    X(NVML_ERROR_NOT_SUPPORTED, 3)            \
    X(NVML_ERROR_NO_PERMISSION, 4)            \
    X(NVML_ERROR_DRIVER_NOT_LOADED, 9)        \
    X(NVML_ERROR_GPU_IS_LOST, 15)             \
    X(NVML_ERROR_LIB_RM_VERSION_MISMATCH, 18) \
    X(NVML_CLOCK_SM, 1)                       \
    X(NVML_CLOCK_MEM, 2)                      \
    X(NVML_P2P_CAPS_INDEX_NVLINK, 2)          \
    X(NVML_P2P_STATUS_OK, 0)

/*  Field, symbol name, parameters. All return an nvml_result. */
#define NVML_CALL_LIST(X)                                                        \
    X(init, nvmlInit_v2, (void))                                                 \
    X(count, nvmlDeviceGetCount_v2, (unsigned *out))                             \
    X(device, nvmlDeviceGetHandleByIndex_v2, (unsigned index, nvml_device *out)) \
    X(name, nvmlDeviceGetName, (nvml_device device, char *out, unsigned size))   \
    X(uuid, nvmlDeviceGetUUID, (nvml_device device, char *out, unsigned size))   \
    X(pci, nvmlDeviceGetPciInfo_v3, (nvml_device device, nvml_pci * out))        \
    X(memory, nvmlDeviceGetMemoryInfo, (nvml_device device, nvml_memory * out))  \
    X(capability, nvmlDeviceGetCudaComputeCapability, (nvml_device device, int *major, int *minor))

/* Functions that only newer versions have: the table's field is NULL otherwise. */
#define NVML_LATER_CALL_LIST(X)                                                                \
    X(own_version, nvmlSystemGetNVMLVersion, (char *out, unsigned size))                       \
    X(mig, nvmlDeviceGetMigMode, (nvml_device device, unsigned *now, unsigned *pending))       \
    X(cores, nvmlDeviceGetNumGpuCores, (nvml_device device, unsigned *out))                    \
    X(clock, nvmlDeviceGetMaxClockInfo, (nvml_device device, nvml_clock which, unsigned *out)) \
    X(bus_width, nvmlDeviceGetMemoryBusWidth, (nvml_device device, unsigned *out))             \
    X(link, nvmlDeviceGetP2PStatus,                                                            \
      (nvml_device from, nvml_device to, nvml_link_kind which, nvml_link_status * out))

#endif
