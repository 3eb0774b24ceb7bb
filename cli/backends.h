/* The attention backends, by the names that models ask for: which kernel computes each on this machine, or why none
 * does. */
#ifndef TENON_CLI_BACKENDS_H
#define TENON_CLI_BACKENDS_H

#include <tenon/tenon.h>

typedef struct found_backend {
    const char *name; /* static */
    char kernel[104]; /* "" if none computes it */
    char what
        [320]; /* the function that computes it, or the reason; "" if the kernel is all there is to say */
} found_backend;

typedef struct found_backends {
    char problem[64]; /* "bf16, heads of 128, on cpu:0" */
    found_backend rows[TN_BACKEND_COUNT];
    size_t count;
} found_backends;

/* Asks for layers of bf16 with heads of 128 elements on the best device. */
tn_status backends_gather(found_backends *out, tn_error *err);

#endif
