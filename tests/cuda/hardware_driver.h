/* The driver itself, for suites that call it beside Tenon. */
#ifndef TESTS_CUDA_HARDWARE_DRIVER_H
#define TESTS_CUDA_HARDWARE_DRIVER_H

#include "test.h"

#include "../../backends/cuda/platform/driver.h"

#include <dlfcn.h>
#include <string.h>

/* The driver's functions, as a program calls them beside Tenon. */
static cuda_driver driver;

static inline void bind_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
#define BIND(field, name, parameters)                       \
    {                                                       \
        void *found = dlsym(library, #name);                \
        assert_non_null(found);                             \
        memcpy(&driver.field, &found, sizeof driver.field); \
    }
    CUDA_CALL_LIST(BIND)
    CUDA_LATER_CALL_LIST(BIND)
#undef BIND
}

#endif
