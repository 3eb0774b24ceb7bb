/* Why there is no device to be used, in words that tell what helps. */
#ifndef CUDA_VERDICT_H
#define CUDA_VERDICT_H

#include "driver.h"
#include "nvml.h"

/* What a machine is, as far as it decides what helps. */
typedef struct cuda_surroundings {
    int32_t is_wsl;    /* Windows' own kernel for Linux           */
    int32_t is_jetson; /* the GPU is on the processor's chip      */
    int32_t has_nodes; /* /dev/nvidiactl, or what stands for it   */
} cuda_surroundings;

/* `root` stands before every path; "" for the machine itself. */
void cuda_look_around(const char *root, cuda_surroundings *out);

/* A failure of cuInit, or its success without a device (CUDA_ERROR_NO_DEVICE). `visible` is the value of
 * CUDA_VISIBLE_DEVICES, or NULL. */
tn_status cuda_verdict_driver(const cuda_driver *driver, cu_result code,
                              const cuda_surroundings *around, const char *visible, tn_error *err);

/* A failure of the management library that the driver would only repeat. TN_OK for others: then the driver
 * is to be asked. */
tn_status cuda_verdict_nvml(nvml_result code, const cuda_surroundings *around, tn_error *err);

#endif
