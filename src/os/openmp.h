/* Run-times of OpenMP, by the names of their files. Thread-safety: Safe. */
#ifndef TNI_OS_OPENMP_H
#define TNI_OS_OPENMP_H

#include <stdbool.h>

/* Whether a path or a name is that of GNU's, Intel's or LLVM's run-time, also as packagers rename them:
 * "libgomp-a34b3233.so.1". */
bool tni_openmp_is_runtime(const char *path);

#endif
