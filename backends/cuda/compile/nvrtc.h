/* NVIDIA's compiler at run time, libnvrtc: our own declarations, and one call that makes machine code.
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

/* The row's functions; `open` gives a cuda_nvrtc. */
tn_status cuda_nvrtc_open(const tn_host *host, void **out_self, tn_error *err);
tn_status cuda_nvrtc_version(void *any, int64_t *out_number, char *out_text, size_t size,
                             tn_error *err);
extern const tn_library_row cuda_nvrtc_row;

/* What every text is compiled with. */
#define CUDA_NVRTC_OPTIONS "--std=c++17", "--fmad=false"

/* What is compiled: one text, with the others that it includes. */
typedef struct cuda_source {
    const char *name;    /* "norm.cu", for messages */
    const char *text;    /* ended */
    const char *options; /* one a line: "-DIN=f32\n-DOUT=f32\n" */
    const char *const *header_names;
    const char *const *header_texts;
    int32_t headers;
} cuda_source;

/* Machine code for an architecture ("sm_90a"): release it with host->release. What the compiler has against
 * the text is TN_INVALID_ARGUMENT, with the first error's file, line, words and the line itself, in which a
 * ^ stands before the place; all of it goes to the log. */
tn_status cuda_nvrtc_compile(const cuda_nvrtc *nvrtc, const cuda_source *source,
                             const char *architecture, void **out, size_t *out_size, tn_error *err);

/* Makes that one line of a compiler's log. */
void cuda_nvrtc_first_error(const char *log, char *out, size_t size);

#endif
