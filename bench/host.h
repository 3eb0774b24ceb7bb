/* The host that benchmarks give to modules: memory, the log, libraries, threads and the facts of
 * the machine. It has no cache. Thread-safety: Safe. */
#ifndef TENON_BENCH_HOST_H
#define TENON_BENCH_HOST_H

#include "tenon/module/module.h"

extern const tn_host bench_host;

#endif
