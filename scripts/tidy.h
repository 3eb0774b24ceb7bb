/* Read before every file that clang-tidy reads, and by nothing else. The analyzer does not look
 * into functions with variable arguments, so it is told what a failing call returns. */
#include "tenon/module/abi.h"
#define tn_fail(err, status, ...) ((void)tn_fail(err, status, __VA_ARGS__), (status))
