/* What every header of the application's side begins with.
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

#endif
