/* Reductions: JOIN(a, b) of elements in the type A, from IDENTITY on; with MEAN divided by how many they are.
 * What goes into one output is cut into parts of a size that depends on nothing else, and every sum is made
 * in one order: the same bits each time and in any batch. */
enum { THREADS = 256, LANES = 32 };

DEVICE A joined(A a, A b)
{
    return JOIN(a, b);
}

DEVICE OUT finished(A value, i64 size)
{
#if MEAN
    value = value / (A)size;
#endif
#if WRAPS
    return (OUT)value;
#else
    return narrowed<OUT>(value);
#endif
}

/* One value of the block. Thread 0 gets it. */
DEVICE A of_block(A value)
{
    __shared__ A part[THREADS / LANES];
    for (int far = LANES / 2; far > 0; far /= 2)
        value = joined(value, __shfl_down_sync(0xFFFFFFFFu, value, far));
    if (threadIdx.x % LANES == 0)
        part[threadIdx.x / LANES] = value;
    __syncthreads();
    value = part[0];
    for (int i = 1; i < THREADS / LANES; i++)
        value = joined(value, part[i]);
    __syncthreads();
    return value;
}

DEVICE i64 offset(int rank, const long long *size, const long long *stride, u64 number)
{
    i64 at = 0;
    for (int d = rank - 1; d >= 0; d--) {
        u64 next = number / (u64)size[d];
        at += (i64)(number - next * (u64)size[d]) * stride[d];
        number = next;
    }
    return at;
}

DEVICE A read(const IN *at)
{
    return (A)widened<IN>(*at);
}

/* Where the i-th element that goes into an output is. */
DEVICE i64 taken(const cuda_reduce_args &args, i64 i)
{
    return args.taken_rank == 1 ? i * args.taken_in[0]
                                : offset(args.taken_rank, args.taken, args.taken_in, (u64)i);
}

DEVICE void keep(const cuda_reduce_args &args, u64 output, u64 part, A value)
{
    if (args.parts > 1)
        ((A *)args.partial)[output * (u64)args.parts + part] = value;
    else
        ((OUT *)args.out)[offset(args.kept_rank, args.kept, args.kept_out, output)] =
            finished(value, args.size);
}

/* A block for each part of an output: what goes into it lies together, or anyhow. */
extern "C" __global__ void __launch_bounds__(THREADS) rows(const cuda_reduce_args args)
{
    const u64 all = (u64)args.outputs * (u64)args.parts;
    for (u64 job = blockIdx.x; job < all; job += gridDim.x) {
        const u64 output = job / (u64)args.parts, part = job - output * (u64)args.parts;
        const IN *in = (const IN *)args.in +
                       offset(args.kept_rank, args.kept, args.kept_in, output);
        const i64 begin = (i64)part * args.part;
        const i64 end = begin + args.part < args.size ? begin + args.part : args.size;
        A value[4] = {IDENTITY, IDENTITY, IDENTITY, IDENTITY};
#if DENSE
        typedef pack<IN, VECTOR> some;
        const some *packs = (const some *)(in + begin);
        const i64 count = (end - begin) / VECTOR;
        for (i64 i = threadIdx.x; i < count; i += THREADS) {
            some x = packs[i];
            for (int v = 0; v < VECTOR; v++)
                value[v % 4] = joined(value[v % 4], (A)widened<IN>(x.of[v]));
        }
        for (i64 i = begin + count * VECTOR + threadIdx.x; i < end; i += THREADS)
            value[0] = joined(value[0], read(in + i));
#else
        for (i64 i = begin + threadIdx.x; i < end; i += THREADS)
            value[0] = joined(value[0], read(in + taken(args, i)));
#endif
        A of = of_block(joined(joined(value[0], value[1]), joined(value[2], value[3])));
        if (threadIdx.x == 0)
            keep(args, output, part, of);
    }
}

/* What a thread of a column takes: every eighth element of a part, in AHEAD sums side by side. */
DEVICE A column(const IN *in, const cuda_reduce_args &args, i64 begin, i64 end)
{
    enum { AHEAD = 8, STEP = THREADS / LANES };
    A value[AHEAD];
    i64 i = begin;
    for (int k = 0; k < AHEAD; k++)
        value[k] = IDENTITY;
    for (; i + (AHEAD - 1) * STEP < end; i += AHEAD * STEP) {
        IN some[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            some[k] = in[taken(args, i + k * STEP)];
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            value[k] = joined(value[k], (A)widened<IN>(some[k]));
    }
    for (; i < end; i += STEP)
        value[0] = joined(value[0], read(in + taken(args, i)));
    for (int k = 1; k < AHEAD; k++)
        value[0] = joined(value[0], value[k]);
    return value[0];
}

/* A thread for each of 32 neighbouring outputs, eight of them to a column: outputs lie together. */
extern "C" __global__ void __launch_bounds__(THREADS) columns(const cuda_reduce_args args)
{
    __shared__ A part_of[THREADS / LANES][LANES];
    const int x = threadIdx.x % LANES, y = threadIdx.x / LANES;
    const u64 across = ((u64)args.outputs + LANES - 1) / LANES, all = across * (u64)args.parts;
    for (u64 job = blockIdx.x; job < all; job += gridDim.x) {
        const u64 part = job / across, output = (job - part * across) * LANES + x;
        const bool is_one = output < (u64)args.outputs;
        const i64 begin = (i64)part * args.part;
        const i64 end = begin + args.part < args.size ? begin + args.part : args.size;
        A value = IDENTITY;
        if (is_one)
            value = column((const IN *)args.in +
                               offset(args.kept_rank, args.kept, args.kept_in, output),
                           args, begin + y, end);
        part_of[y][x] = value;
        __syncthreads();
        if (y == 0 && is_one) {
            for (int i = 1; i < THREADS / LANES; i++)
                value = joined(value, part_of[i][x]);
            keep(args, output, part, value);
        }
        __syncthreads();
    }
}

/* A warp for each output, of its parts. */
extern "C" __global__ void __launch_bounds__(THREADS) finish(const cuda_reduce_args args)
{
    const u64 first = (u64)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
    const u64 step = (u64)gridDim.x * (THREADS / LANES);
    const int x = threadIdx.x % LANES;
    for (u64 output = first; output < (u64)args.outputs; output += step) {
        const A *partial = (const A *)args.partial + output * (u64)args.parts;
        A value = IDENTITY;
        for (i64 i = x; i < args.parts; i += LANES)
            value = joined(value, partial[i]);
        for (int far = LANES / 2; far > 0; far /= 2)
            value = joined(value, __shfl_down_sync(0xFFFFFFFFu, value, far));
        if (x == 0)
            ((OUT *)args.out)[offset(args.kept_rank, args.kept, args.kept_out, output)] =
                finished(value, args.size);
    }
}
