/* What the process may still take before the system refuses it: for libraries that end the process, or wait
 * for ever, when they are refused. */
#ifndef TENON_BACKENDS_CPU_ROOM_H
#define TENON_BACKENDS_CPU_ROOM_H

#include <stdint.h>

/* Threads that one who takes a thread for each processor would have here. */
int32_t tni_cpu_processors(void);

/* How many of so many threads can be made at once, besides those there are: it makes them, and ends them. All of
 * them where the system has no limit that a process could ask for. */
int32_t tni_cpu_threads_possible(int32_t wanted);

/* Bytes of addresses that are left below the process's limit (ulimit -v); INT64_MAX without one. */
int64_t tni_cpu_addresses_left(void);

#endif
