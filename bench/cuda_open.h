/* What the benches of NVIDIA's GPUs share: the device by Tenon, and the driver by its own functions, for
 * what Tenon is measured beside. No header of NVIDIA's is needed.
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
    cu_stream raw; /* the same */
} bench_cuda;

extern bench_cuda gpu;

/* What modules are given here: enough to bind libraries and to compile. */
extern const tn_host bench_cuda_host;

/* Has Tenon look for the module beside this program's build. */
tn_status bench_cuda_add_module(tn_error *err);

/* Opens cuda:0 and makes its context the thread's. Where there is none, says so and why, and gives false. */
bool bench_cuda_open(void);

/* Ends the program when something fails that cannot. */
void bench_cuda_must(tn_status status, const tn_error *err);
void bench_cuda_must_cu(cu_result code, const char *call);

#endif
