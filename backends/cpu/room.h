/* Resources that the process may still use before the system refuses more: for libraries that end
 * the process, or hang, if they are refused. */
#ifndef TENON_BACKENDS_CPU_ROOM_H
#define TENON_BACKENDS_CPU_ROOM_H

#include <stdint.h>

/* Number of threads of a library that starts one for each usable processor. */
int32_t tni_cpu_processors(void);

/* Returns how many of `wanted` threads can be created at the same time, besides the existing ones:
 * creates them and ends them. Returns `wanted` if the system has no limit that a process can
 * query. */
int32_t tni_cpu_threads_possible(int32_t wanted);

/* Bytes of address space left below the process's limit (ulimit -v); INT64_MAX if there is no
 * limit. */
int64_t tni_cpu_addresses_left(void);

#endif
