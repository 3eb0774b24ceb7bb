/* Memory under test: filled with fresh random bytes, with guard bytes on both sides, and a mirror
 * on the host that holds the expected contents of all of it. A byte too many or too few is found
 * wherever it is.
 * Thread-safety: as the trial it belongs to. */
#ifndef TENON_CLI_CONFORMANCE_BLOCK_H
#define TENON_CLI_CONFORMANCE_BLOCK_H

#include "trial.h"

enum { BLOCK_GUARD = 192 };

typedef struct block {
    tn_device *device;     /* NULL: host memory */
    unsigned char *at;     /* guard bytes precede and follow it */
    unsigned char *mirror; /* expected contents of `at`, guards included */
    size_t bytes;
} block;

/* Allocates a block. The trial frees it when it ends. */
bool block_make(trial *t, tn_device *device, size_t bytes, block *out);

/* Compares the whole block, guards included, with the mirror; a failure message calls the block
 * `what`. Synchronizes the device before reading a device's block; reads a host block directly. */
bool block_check(trial *t, const block *b, const char *what);

/* Copies, and does the same to the mirror of `to`. */
bool block_copy(trial *t, const block *from, size_t from_at, const block *to, size_t to_at,
                size_t bytes, tn_stream *stream);

/* Fills `bytes` bytes at `at`, and the mirror. */
bool block_fill(trial *t, const block *b, size_t at, size_t bytes, uint64_t pattern,
                uint32_t pattern_bytes, tn_stream *stream);

/* Fills the whole block `times` times, each time with a different pattern: work that keeps a stream
 * busy. */
bool block_fill_often(trial *t, const block *b, int times, tn_stream *stream);

/* Writes the same repeated pattern into host memory. */
void pattern_put(void *to, size_t bytes, uint64_t pattern, uint32_t pattern_bytes);

/* Checks that `found` equals `expected`. If not, the case fails with the first difference and the
 * number of bytes that differ. */
bool bytes_match(trial *t, const void *found, const void *expected, size_t bytes, const char *what);

#endif
