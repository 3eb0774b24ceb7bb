/* Sums and maxima over the threads of a warp or of a whole block. */
enum { BLOCK = 256, WARP = 32 };

struct summed {
    template <typename A> DEVICE A of(A a, A b) { return a + b; }
};
struct greatest {
    template <typename A> DEVICE A of(A a, A b) { return a > b ? a : b; }
};

/* Combines the values of all THREADS, a warp or the block, in a fixed order. Every thread gets the result. */
template <typename JOIN, int THREADS, typename A> DEVICE A combined(A value)
{
    for (int far = WARP / 2; far > 0; far /= 2)
        value = JOIN::of(value, __shfl_xor_sync(0xFFFFFFFFu, value, far));
    if constexpr (THREADS > WARP) {
        __shared__ A part[THREADS / WARP];
        if (threadIdx.x % WARP == 0)
            part[threadIdx.x / WARP] = value;
        __syncthreads();
        value = part[0];
        for (int i = 1; i < THREADS / WARP; i++)
            value = JOIN::of(value, part[i]);
        __syncthreads();
    }
    return value;
}
