/* Shared by the benchmarks for NVIDIA GPUs: the device opened by Tenon, and the driver's own
 * functions to compare with. Needs no NVIDIA header.
 *
 * Thread-safety: one thread. */
#ifndef TENON_BENCH_CUDA_OPEN_H
#define TENON_BENCH_CUDA_OPEN_H

#include "../backends/cuda/compile/code.h"
#include "tenon/tenon.h"

typedef struct bench_cuda {
    cuda_driver driver;
    tn_device *device; /* cuda:0 */
    tn_stream *stream;
    cu_stream raw; /* native handle of `stream` */
} bench_cuda;

extern bench_cuda gpu;

/* Makes Tenon look for the module beside this program's build. */
tn_status bench_cuda_add_module(tn_error *err);

/* Opens cuda:0 and makes its context current on the thread. If none exists, prints why and
 * returns false. */
bool bench_cuda_open(void);

/* End the program on an unexpected failure. */
void bench_cuda_must(tn_status status, const tn_error *err);
void bench_cuda_must_cu(cu_result code, const char *call);

#endif
