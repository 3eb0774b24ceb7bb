/* How fast memory is read: what kernels that read most of it once are held against. */
#ifndef TENON_BENCH_READING_H
#define TENON_BENCH_READING_H

#include <stdint.h>

/* Reads memory by one thread, with the widest vectors that the processor has: eight runs of it side by side, which
 * is faster than one after the other, each `ahead` bytes before it is asked for. Less than 512 bytes at the end
 * may not be read. */
void bench_read(const void *from, int64_t bytes, int64_t ahead);

#endif
