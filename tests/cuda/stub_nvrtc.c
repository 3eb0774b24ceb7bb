/* A stub of NVIDIA's compiler at run time, for suites whose kernels the stub of the driver knows by their names: it
 * takes every text, and its code is a few bytes that nobody reads.
 *
 * Environment:
 *   STUB_NVRTC  not empty: its version is unknown */
#include "../../backends/cuda/compile/nvrtc.h"

#include <stdlib.h>

#define NVRTC_CALL_(field, name, parameters) nvrtc_result name parameters;
NVRTC_CALL_LIST(NVRTC_CALL_)
#undef NVRTC_CALL_

static const char image[] = "the stub's";

nvrtc_result nvrtcVersion(int *major, int *minor)
{
    *major = 13;
    *minor = 0;
    const char *fails = getenv("STUB_NVRTC");
    return fails && fails[0] ? NVRTC_ERROR_COMPILATION : NVRTC_SUCCESS;
}

nvrtc_result nvrtcCreateProgram(nvrtc_program *out, const char *source, const char *name,
                                int headers, const char *const *texts, const char *const *names)
{
    (void)name, (void)headers, (void)texts, (void)names;
    *out = source ? malloc(1) : NULL;
    return *out ? NVRTC_SUCCESS : NVRTC_ERROR_COMPILATION;
}

nvrtc_result nvrtcDestroyProgram(nvrtc_program *program)
{
    free(*program);
    *program = NULL;
    return NVRTC_SUCCESS;
}

nvrtc_result nvrtcCompileProgram(nvrtc_program program, int count, const char *const *options)
{
    (void)count, (void)options;
    return program ? NVRTC_SUCCESS : NVRTC_ERROR_COMPILATION;
}

nvrtc_result nvrtcGetCUBINSize(nvrtc_program program, size_t *out)
{
    (void)program;
    *out = sizeof image;
    return NVRTC_SUCCESS;
}

nvrtc_result nvrtcGetCUBIN(nvrtc_program program, char *out)
{
    (void)program;
    memcpy(out, image, sizeof image);
    return NVRTC_SUCCESS;
}

nvrtc_result nvrtcGetProgramLogSize(nvrtc_program program, size_t *out)
{
    (void)program;
    *out = 1;
    return NVRTC_SUCCESS;
}

nvrtc_result nvrtcGetProgramLog(nvrtc_program program, char *out)
{
    (void)program;
    out[0] = '\0';
    return NVRTC_SUCCESS;
}
