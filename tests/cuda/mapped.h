/* What a process has in its memory, for tests that ask which of NVIDIA's libraries was opened. */
#ifndef TESTS_CUDA_MAPPED_H
#define TESTS_CUDA_MAPPED_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Where the system does not tell, none: a test that expects it fails then. */
static inline bool has_opened_the_management_library(void)
{
    char line[1024];
    bool found = false;
    FILE *file = fopen("/proc/self/maps", "r");
    while (file && fgets(line, sizeof line, file))
        found = found || strstr(line, "libnvidia-ml");
    if (file)
        fclose(file);
    return found;
}

#endif
