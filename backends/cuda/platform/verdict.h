/* Why no device is usable, and the remedy. */
#ifndef CUDA_VERDICT_H
#define CUDA_VERDICT_H

#include "driver.h"
#include "nvml.h"

/* The facts about a machine that determine the remedy. */
typedef struct cuda_surroundings {
    int32_t is_wsl;    /* Windows Subsystem for Linux */
    int32_t is_jetson; /* the GPU is integrated into the processor */
    int32_t has_nodes; /* /dev/nvidiactl or its equivalent */
} cuda_surroundings;

/* `root` is the prefix of every path; "" for the machine itself. */
void cuda_look_around(const char *root, cuda_surroundings *out);

/* Remedies are static texts and not part of the message: reports show them separately. "" means that the remedy
 * of the platform's row is the best available. */

/* Returns the remedy for a failure of cuda_driver_bind, by its status. */
const char *cuda_verdict_library(tn_status status, const cuda_surroundings *around);

/* Reports a failure of cuInit, or its success without a device (CUDA_ERROR_NO_DEVICE). `visible` is the
 * value of CUDA_VISIBLE_DEVICES, or NULL. */
tn_status cuda_verdict_driver(const cuda_driver *driver, cu_result code,
                              const cuda_surroundings *around, const char *visible,
                              const char **out_remedy, tn_error *err);

/* Reports a failure of NVML that the driver would only repeat. Returns TN_OK for others: then the driver
 * must be queried. */
tn_status cuda_verdict_nvml(nvml_result code, const cuda_surroundings *around,
                            const char **out_remedy, tn_error *err);

#endif
