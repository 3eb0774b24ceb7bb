/* The parts of NVRTC that the module uses, as lists: constants and functions. They name types and declare none, so
 * that a test can include them together with NVIDIA's own header and compare. */
#ifndef CUDA_NVRTC_LIST_H
#define CUDA_NVRTC_LIST_H

#define NVRTC_NUMBER_LIST(X)         \
    X(NVRTC_SUCCESS, 0)              \
    X(NVRTC_ERROR_INVALID_OPTION, 5) \
    X(NVRTC_ERROR_COMPILATION, 6)

/*  Field, symbol name, parameters. All return an nvrtc_result. */
#define NVRTC_CALL_LIST(X)                                                     \
    X(version, nvrtcVersion, (int *major, int *minor))                         \
    X(create, nvrtcCreateProgram,                                              \
      (nvrtc_program * out, const char *source, const char *name, int headers, \
       const char *const *texts, const char *const *names))                    \
    X(destroy, nvrtcDestroyProgram, (nvrtc_program * program))                 \
    X(compile, nvrtcCompileProgram,                                            \
      (nvrtc_program program, int count, const char *const *options))          \
    X(code_size, nvrtcGetCUBINSize, (nvrtc_program program, size_t * out))     \
    X(code, nvrtcGetCUBIN, (nvrtc_program program, char *out))                 \
    X(log_size, nvrtcGetProgramLogSize, (nvrtc_program program, size_t * out)) \
    X(log, nvrtcGetProgramLog, (nvrtc_program program, char *out))

#endif
