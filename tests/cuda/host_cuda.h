/* For the kernels' texts as the host's C++ compiler reads them: as much of CUDA C as they use. A block's
 * threads are run in turn, each up to its next barrier; a shuffle is two of them. So every thread of a block
 * comes to a barrier in the same turn, which holds as long as all of them, or all of a warp, pass the same
 * ones: as the texts' do, and as CUDA asks. Blocks run one after the other. */
#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define __device__
#define __global__
#define __shared__      static
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

/* Its result has the type of the argument of a kernel. */
template <class T> T host_args_of(void (*kernel)(T));

struct host_index {
    unsigned x, y, z;
};
static host_index threadIdx, blockIdx, blockDim, gridDim;

/* A thread has a stack of its own by makecontext. Turns change by _longjmp, as swapcontext would ask the system to
 * set the same signals every time: that took half of the time of a kernel. */
enum { HOST_STACK = 64 << 10, HOST_THREADS = 256 };
static jmp_buf host_turns, host_threads[HOST_THREADS];
static bool host_begun[HOST_THREADS], host_ended[HOST_THREADS];
static char *host_stacks;
static void (*host_body)();

static void host_yield()
{
    host_index me = threadIdx;
    if (_setjmp(host_threads[me.x]) == 0)
        _longjmp(host_turns, 1);
    threadIdx = me;
}

static void host_thread()
{
    unsigned me = threadIdx.x;
    host_body();
    host_ended[me] = true;
    _longjmp(host_turns, 1);
}

static void host_begin(unsigned thread)
{
    static ucontext_t context; /* only read by setcontext */
    getcontext(&context);
    context.uc_stack.ss_sp = host_stacks + (size_t)thread * HOST_STACK;
    context.uc_stack.ss_size = HOST_STACK;
    context.uc_link = NULL;
    makecontext(&context, host_thread, 0);
    setcontext(&context);
}

static void host_turn(unsigned thread)
{
    threadIdx = {thread, 0, 0};
    if (_setjmp(host_turns) != 0)
        return; /* the thread came to a barrier, or ended */
    if (host_begun[thread])
        _longjmp(host_threads[thread], 1);
    host_begun[thread] = true;
    host_begin(thread);
}

static void host_run(void (*body)(), unsigned blocks, unsigned threads)
{
    host_body = body;
    gridDim = {blocks, 1, 1};
    blockDim = {threads, 1, 1};
    host_stacks = (char *)malloc((size_t)threads * HOST_STACK);
    for (unsigned b = 0; b < blocks; b++) {
        unsigned left = threads;
        blockIdx = {b, 0, 0};
        memset(host_begun, 0, sizeof host_begun);
        memset(host_ended, 0, sizeof host_ended);
        while (left > 0) {
            for (unsigned t = 0; t < threads; t++) {
                if (host_ended[t])
                    continue;
                host_turn(t);
                left -= host_ended[t];
            }
        }
    }
    free(host_stacks);
}

static void __syncthreads()
{
    host_yield();
}

static uint64_t host_lanes[HOST_THREADS];
template <typename T> static T host_shuffle(T value, unsigned lane)
{
    unsigned first = threadIdx.x / 32 * 32;
    T result = value;
    memcpy(&host_lanes[threadIdx.x], &value, sizeof value);
    host_yield();
    if (lane < 32)
        memcpy(&result, &host_lanes[first + lane], sizeof result);
    host_yield();
    return result;
}
template <typename T> static T __shfl_xor_sync(unsigned, T value, int far)
{
    return host_shuffle(value, threadIdx.x % 32 ^ (unsigned)far);
}
template <typename T> static T __shfl_down_sync(unsigned, T value, int far)
{
    return host_shuffle(value, threadIdx.x % 32 + (unsigned)far);
}

/* Whether any thread of the block says so. */
static int __syncthreads_or(int says)
{
    uint64_t any = 0;
    host_lanes[threadIdx.x] = says != 0;
    host_yield();
    for (unsigned t = 0; t < blockDim.x; t++)
        any |= host_lanes[t];
    host_yield();
    return any != 0;
}

template <typename T, typename F> static T host_bits(F from)
{
    T to;
    memcpy(&to, &from, sizeof to);
    return to;
}
#define __uint_as_float(x)      host_bits<float>((uint32_t)(x))
#define __int_as_float(x)       host_bits<float>((int32_t)(x))
#define __float_as_uint(x)      host_bits<uint32_t>((float)(x))
#define __longlong_as_double(x) host_bits<double>((long long)(x))
#define __double_as_longlong(x) host_bits<long long>((double)(x))

/* Rounded to nearest by the compiler, then back towards zero where that went beyond. */
static float __double2float_rz(double x)
{
    float y = (float)x;
    return x == x && fabs((double)y) > fabs(x) ? nextafterf(y, 0) : y;
}
static double __ll2double_rz(long long x)
{
    double y = (double)x;
    __int128 of_y = (__int128)y, of_x = x;
    return (of_y < 0 ? -of_y : of_y) > (of_x < 0 ? -of_x : of_x) ? nextafter(y, 0) : y;
}
static double __ull2double_rz(unsigned long long x)
{
    double y = (double)x;
    return (__int128)y > (__int128)x ? nextafter(y, 0) : y;
}
#define __double2float_rn(x) ((float)(x))
#define __ll2float_rn(x)     ((float)(long long)(x))
#define __ull2float_rn(x)    ((float)(unsigned long long)(x))
#define __ll2double_rn(x)    ((double)(long long)(x))
#define __ull2double_rn(x)   ((double)(unsigned long long)(x))
#define __fsqrt_rn(x)        sqrtf(x)
#define __dsqrt_rn(x)        sqrt(x)
#define __fdiv_rn(a, b)      ((a) / (b))
#define __fdividef(a, b)     ((a) / (b))
#define __expf(x)            expf(x)

/* The two instructions that the texts write by hand. */
static float host_f32_of_f16(uint16_t bits)
{
    return (float)host_bits<_Float16>(bits);
}
static uint16_t host_f16_of_f32(float x)
{
    return host_bits<uint16_t>((_Float16)x);
}
