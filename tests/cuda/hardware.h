/* A GPU, for suites that need one and are skipped without. */
#ifndef TESTS_CUDA_HARDWARE_H
#define TESTS_CUDA_HARDWARE_H

#include "test.h"

#include "tenon/tenon.h"

#include <stdbool.h>

static tn_device *gpu, *cpu;
static tn_error err;

static inline void must(tn_status status)
{
    if (status)
        fail_msg("%s: %s", err.where, err.message);
}

static inline void begin_gpu(void)
{
    static bool sought;
    if (!sought) {
        sought = true;
        if (tn_module_file_add(CUDA_MODULE, TN_MODULE_TRUSTED, &err) ||
            tn_device_get("cuda:0", &gpu, &err))
            gpu = NULL;
        else
            print_message("%s\n", tn_device_name(gpu));
    }
    if (!gpu) {
        print_message("skipped: no NVIDIA GPU is here that the driver shows\n");
        skip();
    }
    must(tn_device_get("cpu:0", &cpu, &err));
}

static inline tn_tensor make(tn_device *device, tn_dtype dtype, int64_t rows, int64_t columns)
{
    const int64_t shape[] = {rows, columns};
    tn_tensor made;
    must(tn_tensor_create(device, dtype, shape, 2, &made, &err));
    return made;
}

#endif
