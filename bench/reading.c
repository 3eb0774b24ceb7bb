#include "reading.h"

#include "os/cpu.h"
#include "tenon/module/cpu.h"

#include <string.h>

enum { RUNS = 8, LINE = 64 };

static volatile float kept;

/* Sums in vector lanes, so that the reads cannot be optimized away. */
#define READ(name, attribute)                                                \
    attribute static void name(const char *from, int64_t run, int64_t ahead) \
    {                                                                        \
        typedef float lanes __attribute__((vector_size(LINE)));              \
        lanes sum[RUNS] = {{0}};                                             \
        for (int64_t at = 0; at < run; at += LINE) {                         \
            for (int i = 0; i < RUNS; i++) {                                 \
                lanes v;                                                     \
                __builtin_prefetch(from + i * run + at + ahead);             \
                memcpy(&v, from + i * run + at, sizeof v);                   \
                sum[i] += v;                                                 \
            }                                                                \
        }                                                                    \
        for (int i = 1; i < RUNS; i++)                                       \
            sum[0] += sum[i];                                                \
        kept = sum[0][0];                                                    \
    }
READ(read_baseline, )
#if defined(__x86_64__)
READ(read_avx2, __attribute__((target("avx2"))))
READ(read_avx512, __attribute__((target("avx512f"))))
#endif

void bench_read(const void *from, int64_t bytes, int64_t ahead)
{
    const int64_t run = bytes / RUNS / LINE * LINE;
#if defined(__x86_64__)
    if (tni_cpu_features() & TN_CPU_BIT(AVX512F))
        read_avx512(from, run, ahead);
    else if (tni_cpu_features() & TN_CPU_BIT(AVX2))
        read_avx2(from, run, ahead);
    else
#endif
        read_baseline(from, run, ahead);
}
