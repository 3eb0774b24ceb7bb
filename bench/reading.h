/* Memory read speed: the reference for kernels that read most of their data once. */
#ifndef TENON_BENCH_READING_H
#define TENON_BENCH_READING_H

#include <stdint.h>

/* Reads memory on one thread, with the widest vectors of the processor: eight streams in parallel,
 * which is faster than one after the other, with a prefetch `ahead` bytes in advance. Up to 511
 * bytes at the end may not be read. */
void bench_read(const void *from, int64_t bytes, int64_t ahead);

#endif
