/* Memory under test: poisoned with fresh random bytes, with guard bytes on both sides, and a mirror on
 * the host of what all of it ought to hold, so that a byte too many or too few shows wherever it is.
 * Thread-safety: as the trial it belongs to. */
#ifndef TENON_CLI_CONFORMANCE_BLOCK_H
#define TENON_CLI_CONFORMANCE_BLOCK_H

#include "trial.h"

enum { BLOCK_GUARD = 192 };

typedef struct block {
    tn_device *device;     /* NULL: the host's memory         */
    unsigned char *at;     /* the guards lie before and after  */
    unsigned char *mirror; /* of `at`, the guards likewise    */
    size_t bytes;
} block;

/* Made by the trial, and given back with it. */
bool block_make(trial *t, tn_device *device, size_t bytes, block *out);

/* Everything, guards included, is as the mirror has it; `what` names the block when it is not. A device's
 * block is read after its device has come to rest, the host's as it is. */
bool block_check(trial *t, const block *b, const char *what);

/* Copies, and does the same to the mirror of `to`. */
bool block_copy(trial *t, const block *from, size_t from_at, const block *to, size_t to_at,
                size_t bytes, tn_stream *stream);

/* Fills `bytes` bytes at `at`, and the mirror. */
bool block_fill(trial *t, const block *b, size_t at, size_t bytes, uint64_t pattern,
                uint32_t pattern_bytes, tn_stream *stream);

/* Fills all of it `times` times, each time with another pattern: work that keeps a stream busy. */
bool block_fill_often(trial *t, const block *b, int times, tn_stream *stream);

/* The same pattern into memory of the host. */
void pattern_put(void *to, size_t bytes, uint64_t pattern, uint32_t pattern_bytes);

/* `found` has the bytes of `expected`; else where it first differs, and in how many. */
bool bytes_match(trial *t, const void *found, const void *expected, size_t bytes, const char *what);

#endif
