/* Why there is no device to be used, and what helps. */
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

/* What helps is static text, and not part of the message: a report has a place of its own for it. It is "" where
 * nothing better can be said than what the platform's row says. */

/* Of a failure of cuda_driver_bind, by its status. */
const char *cuda_verdict_library(tn_status status, const cuda_surroundings *around);

/* A failure of cuInit, or its success without a device (CUDA_ERROR_NO_DEVICE). `visible` is the value of
 * CUDA_VISIBLE_DEVICES, or NULL. */
tn_status cuda_verdict_driver(const cuda_driver *driver, cu_result code,
                              const cuda_surroundings *around, const char *visible,
                              const char **out_remedy, tn_error *err);

/* A failure of the management library that the driver would only repeat. TN_OK for others: then the driver
 * is to be asked. */
tn_status cuda_verdict_nvml(nvml_result code, const cuda_surroundings *around,
                            const char **out_remedy, tn_error *err);

#endif
