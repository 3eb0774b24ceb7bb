/* NVIDIA's management library (NVML), if present: it counts and identifies devices without initialising the
 * driver, so that listing devices is cheap and the process can still fork. Our own declarations.
 *
 * Thread-safety: the library's functions are safe; a table is constant once bound. */
#ifndef CUDA_NVML_H
#define CUDA_NVML_H

#include "nvml_list.h"
#include "tenon/module/module.h"

enum {
#define NVML_NUMBER_(name, value) name = value,
    NVML_NUMBER_LIST(NVML_NUMBER_)
#undef NVML_NUMBER_
};

/* For callers, the library's enums are unsigned ints. */
typedef unsigned nvml_result;
typedef unsigned nvml_clock;
typedef unsigned nvml_link_kind;
typedef unsigned nvml_link_status;
typedef void *nvml_device;

typedef struct nvml_pci {
    char bus_legacy[16]; /* "0000:3B:00.0" */
    unsigned domain, bus, device, ids, subsystem;
    char bus_id[32];
} nvml_pci;

typedef struct nvml_memory {
    unsigned long long total, available, used;
} nvml_memory;

typedef struct cuda_nvml {
#define NVML_CALL_(field, name, parameters) nvml_result(*field) parameters;
    NVML_CALL_LIST(NVML_CALL_) NVML_LATER_CALL_LIST(NVML_CALL_)
#undef NVML_CALL_
} cuda_nvml;

#define CUDA_NVML_FILES "libnvidia-ml.so.1"

/* What is known about a device. Numbers are 0 when unknown. */
typedef struct cuda_found {
    char name[128];
    char uuid[48];
    char bus[32];
    int32_t major, minor;
    uint64_t memory_bytes;
    int64_t multi_processors;
    int64_t clock_khz;
    int64_t bandwidth;
    int32_t physical; /* NVML's index; -1 if unknown */
    int32_t is_split; /* into MIG instances, which NVML counts differently from the driver */
    void *nvml;       /* NVML's handle, or NULL */
} cuda_found;

/* Opens the library; does not initialise it. */
tn_status cuda_nvml_bind(const tn_host *host, cuda_nvml *out, tn_error *err);

/* Opens and initialises the library. Fails with TN_UNAVAILABLE and its result if it is absent or does
 * not work (Jetson); *out_code is its result, 0 if there is no library. */
tn_status cuda_nvml_open(const tn_host *host, cuda_nvml *out, nvml_result *out_code, tn_error *err);

/* Writes the maximum clock and the memory bandwidth of a device; 0 if unknown. Takes milliseconds. */
void cuda_nvml_rates(const cuda_nvml *nvml, void *device, int64_t *out_khz, int64_t *out_bandwidth);

/* Lists every device that NVML sees, at most `most`. */
tn_status cuda_nvml_list(const cuda_nvml *nvml, cuda_found *out, int32_t most, int32_t *out_count,
                         tn_error *err);

#endif
