/* For the kernels' texts as the host's C++ compiler reads them: as much of CUDA C as they use. A block's
 * threads are run in turn, each up to its next barrier; a shuffle is two of them. So all threads of a warp come to
 * its next barrier in the same turn, as CUDA asks; a barrier of the block ends when all of its threads came
 * there. Blocks run one after the other. */
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
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))

/* Its result has the type of the argument of a kernel. */
template <class T> T host_args_of(void (*kernel)(T));

struct host_index {
    unsigned x, y, z;
};
static host_index threadIdx, blockIdx, blockDim, gridDim;

/* A thread has a stack of its own by makecontext. Turns change by _longjmp, as swapcontext would ask the system to
 * set the same signals every time: that took half of the time of a kernel. */
enum { HOST_STACK = 64 << 10, HOST_THREADS = 384 };
static jmp_buf host_turns, host_threads[HOST_THREADS];
static bool host_begun[HOST_THREADS], host_ended[HOST_THREADS];
static char *host_stacks;
static void (*host_body)();
static unsigned host_live, host_waiting,
    host_barriers;                /* threads that did not end, threads at a barrier of the block */
static unsigned long host_rounds; /* turns of all threads */

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

/* Dynamic shared memory, and each thread's copies to it that are under way: they are made when they are awaited, so that what
 * is read too early is not there. What shared memory has at the start of a block is not a number. */
enum { HOST_SHARED = 227 << 10, HOST_COPIES = 1024 };
struct host_copy {
    unsigned to, bytes, group;
    const void *from;
};
static unsigned char host_shared[HOST_SHARED] __attribute__((aligned(1024)));
static bool host_shares;
static host_copy host_copies[HOST_THREADS][HOST_COPIES];
static unsigned host_copied[HOST_THREADS], host_groups[HOST_THREADS];

static void host_begin_block()
{
    if (!host_shares)
        return;
    memset(host_shared, 0xFF, sizeof host_shared);
    memset(host_copied, 0, sizeof host_copied);
    memset(host_groups, 0, sizeof host_groups);
}

static void host_run(void (*body)(), unsigned blocks, unsigned threads)
{
    host_body = body;
    gridDim = {blocks, 1, 1};
    blockDim = {threads, 1, 1};
    host_stacks = (char *)malloc((size_t)threads * HOST_STACK);
    for (unsigned b = 0; b < blocks; b++) {
        host_live = threads;
        host_waiting = 0;
        blockIdx = {b, 0, 0};
        memset(host_begun, 0, sizeof host_begun);
        memset(host_ended, 0, sizeof host_ended);
        host_begin_block();
        while (host_live > 0) {
            for (unsigned t = 0; t < threads; t++) {
                if (host_ended[t])
                    continue;
                host_turn(t);
                host_live -= host_ended[t];
            }
            host_rounds++;
            if (host_waiting > 0 && host_waiting == host_live) {
                host_waiting = 0;
                host_barriers++;
            }
        }
    }
    free(host_stacks);
}

static void __syncthreads()
{
    const unsigned barrier = host_barriers;
    host_waiting++;
    do
        host_yield();
    while (barrier == host_barriers);
}
static void __syncwarp()
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
template <typename T> static T __shfl_sync(unsigned, T value, int lane)
{
    return host_shuffle(value, (unsigned)lane % 32);
}
template <typename T> static T __shfl_sync(unsigned, T value, int lane, int width)
{
    return host_shuffle(value, threadIdx.x % 32 / (unsigned)width * (unsigned)width +
                                   (unsigned)lane % (unsigned)width);
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

/* Whether any thread of the warp says so. */
static int __any_sync(unsigned, int says)
{
    const unsigned first = threadIdx.x / 32 * 32;
    uint64_t any = 0;
    host_lanes[threadIdx.x] = says != 0;
    host_yield();
    for (unsigned t = first; t < first + 32; t++)
        any |= host_lanes[t];
    host_yield();
    return any != 0;
}

/* A bit for each lane of the warp. */
static unsigned __ballot_sync(unsigned, int says)
{
    const unsigned first = threadIdx.x / 32 * 32;
    unsigned bits = 0;
    host_lanes[threadIdx.x] = says != 0;
    host_yield();
    for (unsigned lane = 0; lane < 32; lane++)
        bits |= (unsigned)host_lanes[first + lane] << lane;
    host_yield();
    return bits;
}
#define __ffs(x) __builtin_ffs(x)

template <typename T, typename F> static T host_bits(F from)
{
    T to;
    memcpy(&to, &from, sizeof to);
    return to;
}
struct uint4 {
    uint32_t x, y, z, w;
};
static uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w)
{
    return {x, y, z, w};
}
struct float4 {
    float x, y, z, w;
};
static float4 make_float4(float x, float y, float z, float w)
{
    return {x, y, z, w};
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

/* mma.cuh on the host. */
#define SHARED_MEMORY(name) unsigned char *const name = host_shared_memory()
static unsigned char *host_shared_memory()
{
    if (!host_shares) {
        host_shares = true;
        host_begin_block();
    }
    return host_shared;
}
static unsigned shared_address(const void *p)
{
    return (unsigned)((const unsigned char *)p - host_shared);
}

static uint16_t host_narrowed(float x, bool is_bf16)
{
    const uint32_t bits = host_bits<uint32_t>(x);
    if (!is_bf16)
        return host_f16_of_f32(x);
    return (uint16_t)(x != x ? bits >> 16 | 0x40 : (bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}
#define narrow_pair(first, second)                         \
    (host_narrowed(first, sizeof DTYPE == sizeof "bf16") | \
     (uint32_t)host_narrowed(second, sizeof DTYPE == sizeof "bf16") << 16)
static float exp2_of(float x)
{
    return exp2f(x);
}
static float host_widened(uint16_t bits, bool is_bf16)
{
    return is_bf16 ? host_bits<float>((uint32_t)bits << 16) : host_f32_of_f16(bits);
}
static uint32_t host_left[HOST_THREADS][4], host_right[HOST_THREADS][2];

/* By the positions that mma.cuh states. */
static void host_add_product(float (&sums)[4], const uint32_t (&left)[4], uint32_t right0,
                             uint32_t right1, bool is_bf16)
{
    const unsigned me = threadIdx.x, first = me / 32 * 32, lane = me % 32;
    memcpy(host_left[me], left, sizeof left);
    host_right[me][0] = right0;
    host_right[me][1] = right1;
    host_yield();
    for (unsigned i = 0; i < 4; i++) {
        const unsigned row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
        for (unsigned k = 0; k < 16; k++) {
            const uint32_t a = host_left[first + row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2];
            const uint32_t b = host_right[first + column * 4 + k % 8 / 2][k / 8];
            sums[i] += host_widened((uint16_t)(a >> k % 2 * 16), is_bf16) *
                       host_widened((uint16_t)(b >> k % 2 * 16), is_bf16);
        }
    }
    host_yield();
}
#define add_product(sums, left, right0, right1) \
    host_add_product(sums, left, right0, right1, sizeof DTYPE == sizeof "bf16")

static void host_read_matrices(uint32_t (&out)[4], unsigned address, bool transposed)
{
    const unsigned me = threadIdx.x, first = me / 32 * 32, g = me % 32 / 4, x = me % 4;
    host_lanes[me] = address;
    host_yield();
    if (address % 16 != 0)
        abort();
    for (unsigned i = 0; i < 4; i++) {
        uint16_t both[2];
        for (unsigned e = 0; e < 2; e++) {
            const unsigned row = transposed ? 2 * x + e : g, column = transposed ? g : 2 * x + e;
            memcpy(&both[e], host_shared + host_lanes[first + 8 * i + row] + 2 * column,
                   sizeof both[e]);
        }
        out[i] = both[0] | (uint32_t)both[1] << 16;
    }
    host_yield();
}
static void read_matrices(uint32_t (&out)[4], unsigned address)
{
    host_read_matrices(out, address, false);
}
static void read_transposed(uint32_t (&out)[4], unsigned address)
{
    host_read_matrices(out, address, true);
}

static void copy_ahead(unsigned to, const void *from, int bytes)
{
    const unsigned me = threadIdx.x;
    if (host_copied[me] == HOST_COPIES || to % 16 != 0 || (uintptr_t)from % 16 != 0 ||
        to + 16 > HOST_SHARED)
        abort();
    memset(host_shared + to, 0xFF, 16); /* not to be read now */
    host_copies[me][host_copied[me]++] = {to, (unsigned)bytes, host_groups[me], from};
}
static void copy_commit()
{
    host_groups[threadIdx.x]++;
}
template <int LEFT> static void copy_wait()
{
    const unsigned me = threadIdx.x;
    unsigned kept = 0;
    for (unsigned i = 0; i < host_copied[me]; i++) {
        const host_copy one = host_copies[me][i];
        if (one.group + LEFT >= host_groups[me]) {
            host_copies[me][kept++] = one;
            continue;
        }
        memset(host_shared + one.to, 0, 16);
        memcpy(host_shared + one.to, one.from, one.bytes);
    }
    host_copied[me] = kept;
}

#include "host_hopper.h"
