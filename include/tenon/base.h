/* Common macros, included by every public header of the library.
 * Thread-safety: macros only. */
#ifndef TENON_BASE_H
#define TENON_BASE_H

#include "module/abi.h"

#if defined(_WIN32) && defined(TENON_BUILDING)
#define TN_API __declspec(dllexport)
#elif defined(__GNUC__) || defined(__clang__)
#define TN_API __attribute__((visibility("default")))
#else
#define TN_API
#endif

/* A struct of arguments with struct_size set: TN_ARGS(stream, .priority = TN_PRIORITY_HIGH) is a
 * pointer to a tn_stream_args. Omitted fields are zero, which is their default. C only. */
#define TN_ARGS(noun, ...) \
    (&(tn_##noun##_args){.struct_size = sizeof(tn_##noun##_args), __VA_ARGS__})

#endif
