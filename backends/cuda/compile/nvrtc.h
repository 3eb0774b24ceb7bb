/* NVIDIA's run-time compiler, libnvrtc: our own declarations, and one call that produces machine code.
 * Thread-safety: the library's functions are safe; a compiler is constant once opened. */
#ifndef CUDA_NVRTC_H
#define CUDA_NVRTC_H

#include "nvrtc_list.h"
#include "tenon/module/library.h"

enum {
#define NVRTC_NUMBER_(name, value) name = value,
    NVRTC_NUMBER_LIST(NVRTC_NUMBER_)
#undef NVRTC_NUMBER_
};

typedef unsigned nvrtc_result;
typedef void *nvrtc_program;

typedef struct cuda_nvrtc {
#define NVRTC_CALL_(field, name, parameters) nvrtc_result(*field) parameters;
    NVRTC_CALL_LIST(NVRTC_CALL_)
#undef NVRTC_CALL_
    const tn_host *host;
    int32_t major, minor;
} cuda_nvrtc;

/* The functions of the library row; `open` returns a cuda_nvrtc. */
tn_status cuda_nvrtc_open(const tn_host *host, void **out_self, tn_error *err);
tn_status cuda_nvrtc_version(void *any, int64_t *out_number, char *out_text, size_t size,
                             tn_error *err);
extern const tn_library_row cuda_nvrtc_row;

/* The options that every text is compiled with. */
#define CUDA_NVRTC_OPTIONS "--std=c++17", "--fmad=false"

/* The input of the compiler: one text, and the headers that it includes. */
typedef struct cuda_source {
    const char *name;    /* "norm.cu", for messages */
    const char *text;    /* terminated by '\0' */
    const char *options; /* one per line: "-DIN=f32\n-DOUT=f32\n" */
    const char *const *header_names;
    const char *const *header_texts;
    int32_t headers;
} cuda_source;

/* Compiles machine code for an architecture ("sm_90a"); the caller must host->release it. If the compiler
 * rejects the text, fails with TN_INVALID_ARGUMENT and the first error: file, line, message and the source
 * line, in which a ^ marks the position. The whole compiler output goes to the log. */
tn_status cuda_nvrtc_compile(const cuda_nvrtc *nvrtc, const cuda_source *source,
                             const char *architecture, void **out, size_t *out_size, tn_error *err);

/* Extracts that one-line message from a compiler's log. */
void cuda_nvrtc_first_error(const char *log, char *out, size_t size);

#endif
