/* Libraries that this process has already. */
#ifndef CUDA_RESIDENT_H
#define CUDA_RESIDENT_H

#include <stddef.h>

/* Where the one of that name lies, the first as it is for the loader. 0 when there is none, when its path does not
 * fit, or where the system does not tell. Thread-safety: Safe. */
int cuda_resident(const char *name, char *out, size_t size);

#endif
