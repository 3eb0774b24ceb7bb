/* A program with two of the stub's devices that calls the driver beside the module, as programs do. */
#ifndef TESTS_CUDA_PROGRAM_H
#define TESTS_CUDA_PROGRAM_H

#include "scratch.h"
#include "tenon/tenon.h"

#include "../../backends/cuda/platform/driver.h"

#include <dlfcn.h>

enum { MIB = 1 << 20 };

static tn_device *first, *second;
static tn_error err;
static cuda_driver cu; /* the stub's */

static void bind(const char *name, void *to)
{
    void *library = dlopen(CUDA_STUB, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    void *found = dlsym(library, name);
    assert_non_null(found);
    memcpy(to, &found, sizeof found);
}

static void come_in(void)
{
    if (first)
        return;
    if (tn_module_file_add(CUDA_MODULE, TN_MODULE_TRUSTED, &err) ||
        tn_device_get("cuda:0", &first, &err) || tn_device_get("cuda:1", &second, &err))
        fail_msg("%s: %s", err.where, err.message);
#define BIND(field, name, parameters) bind(#name, &cu.field);
    CUDA_CALL_LIST(BIND)
    CUDA_LATER_CALL_LIST(BIND)
#undef BIND
}

#define DO(call)                                                   \
    do {                                                           \
        if (call)                                                  \
            fail_msg("%s: %s: %s", #call, err.where, err.message); \
    } while (0)

/* With a device's context current. */
#define IN(number, ...)                                                               \
    do {                                                                              \
        cu_context in_, out_;                                                         \
        assert_int_equal(cu.primary_retain(&in_, number) || cu.context_push(in_), 0); \
        __VA_ARGS__;                                                                  \
        assert_int_equal(cu.context_pop(&out_) || cu.primary_release(number), 0);     \
    } while (0)

#endif
