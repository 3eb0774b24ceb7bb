/* Ops on rows. GROUP threads share a row: a warp, or the whole block of 256. With PER above 0 each thread
 * holds that many elements of the row in registers, so that it is read once, and FULL says that they are
 * exactly the row's; with 0 the row is longer and is read anew for each pass. A thread's elements are VECTOR
 * neighbours at a time, which are read and written at once where AT_ONCE; PER is a multiple of it. */
enum { BLOCK = 256, WARP = 32, GROUPS = BLOCK / GROUP, WARPS = GROUP / WARP };

struct summed {
    template <typename A> DEVICE A of(A a, A b) { return a + b; }
};
struct greatest {
    template <typename A> DEVICE A of(A a, A b) { return a > b ? a : b; }
};

/* Less than every number. */
DEVICE f32 lowest(f32) { return -__int_as_float(0x7F800000); }
DEVICE f64 lowest(f64) { return -__longlong_as_double(0x7FF0000000000000ll); }

/* One value of all threads of a group, put together in one order. Every thread gets it. */
template <typename JOIN, typename A> DEVICE A together(A value)
{
    for (int far = WARP / 2; far > 0; far /= 2)
        value = JOIN::of(value, __shfl_xor_sync(0xFFFFFFFFu, value, far));
#if GROUP > 32
    __shared__ A part[WARPS];
    if (threadIdx.x % WARP == 0)
        part[threadIdx.x / WARP] = value;
    __syncthreads();
    value = part[0];
    for (int i = 1; i < WARPS; i++)
        value = JOIN::of(value, part[i]);
    __syncthreads();
#endif
    return value;
}

/* N neighbours, at once where WHOLE. */
template <int N, bool WHOLE, typename A, typename T>
DEVICE void read_some(const T *from, i64 first, i64 along, A *out)
{
    if (WHOLE) {
        pack<T, N> some = *(const pack<T, N> *)(from + first);
        for (int v = 0; v < N; v++)
            out[v] = (A)widened<T>(some.of[v]);
    } else {
        for (int v = 0; v < N; v++)
            out[v] = (A)widened<T>(from[(first + v) * along]);
    }
}

template <int N, bool WHOLE, typename A, typename T>
DEVICE void write_some(T *to, i64 first, i64 along, const A *values)
{
    if (WHOLE) {
        pack<T, N> some;
        for (int v = 0; v < N; v++)
            some.of[v] = narrowed<T>(values[v]);
        put(to + first, some);
    } else {
        for (int v = 0; v < N; v++)
            to[(first + v) * along] = narrowed<T>(values[v]);
    }
}

#if PER > 0
/* The k-th element that a thread holds, as its number in the row, and whether the row has it. */
DEVICE int place(int lane, int k)
{
    return ((k / VECTOR) * GROUP + lane) * VECTOR + k % VECTOR;
}

DEVICE bool has_place(const cuda_rows_args &args, int lane, int k)
{
    return FULL || place(lane, k) < (int)args.size;
}

/* The thread's part of a row; what is beyond its end is `rest`. */
template <typename A, typename T>
DEVICE void read_row(const T *from, const cuda_rows_args &args, int operand, int lane, A rest, A *out)
{
    enum { SOME = AT_ONCE ? VECTOR : 1 };
    for (int k = 0; k < PER; k += SOME) {
        if (has_place(args, lane, k)) {
            read_some<SOME, AT_ONCE>(from, place(lane, k), args.along[operand], out + k);
        } else {
            for (int v = 0; v < SOME; v++)
                out[k + v] = rest;
        }
    }
}

template <typename A, typename T>
DEVICE void write_row(T *to, const cuda_rows_args &args, int operand, int lane, const A *values)
{
    enum { SOME = AT_ONCE ? VECTOR : 1 };
    for (int k = 0; k < PER; k += SOME) {
        if (has_place(args, lane, k))
            write_some<SOME, AT_ONCE>(to, place(lane, k), args.along[operand], values + k);
    }
}
#endif
