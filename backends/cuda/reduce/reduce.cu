/* Reductions: JOIN(a, b) of elements in the type A, starting with IDENTITY; with MEAN, divided by their
 * number. The elements of one output are split into parts of a fixed size, and every sum has a fixed order:
 * the same bits in every run and in any batch. GROUP threads process a part of a row: a block, or a warp if
 * there is little work. */
enum { THREADS = 256, LANES = 32, GROUPS = THREADS / GROUP };

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

DEVICE A of_warp(A value)
{
    for (int far = LANES / 2; far > 0; far /= 2)
        value = joined(value, __shfl_down_sync(0xFFFFFFFFu, value, far));
    return value;
}

/* Combines the values of a group; its first thread gets the result. */
DEVICE A of_group(A value)
{
    value = of_warp(value);
#if GROUP > 32
    __shared__ A part[THREADS / LANES];
    if (threadIdx.x % LANES == 0)
        part[threadIdx.x / LANES] = value;
    __syncthreads();
    value = part[0];
    for (int i = 1; i < THREADS / LANES; i++)
        value = joined(value, part[i]);
    __syncthreads();
#endif
    return value;
}

DEVICE i64 offset(int rank, const long long *size, const long long *stride, u64 number)
{
    i64 at = 0;
    for (int d = rank - 1; d > 0; d--) {
        u64 next = number / (u64)size[d];
        at += (i64)(number - next * (u64)size[d]) * stride[d];
        number = next;
    }
    return at + (i64)number * stride[0];
}

DEVICE A read(const IN *at)
{
    return (A)widened<IN>(*at);
}

/* Returns the offset of the i-th element of an output. */
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

#if DENSE
typedef pack<IN, VECTOR> some;

DEVICE void join_pack(some x, A value[4])
{
    for (int v = 0; v < VECTOR; v++)
        value[v % 4] = joined(value[v % 4], (A)widened<IN>(x.of[v]));
}

/* Reduces a thread's share of a part that consists of whole packs. A warp, whose threads have many packs, loads
 * AHEAD at once. */
DEVICE A dense_part(const IN *in, i64 size, int lane)
{
    const some *packs = (const some *)in;
    const i64 count = size / VECTOR;
    A value[4] = {IDENTITY, IDENTITY, IDENTITY, IDENTITY};
    i64 i = lane;
#if GROUP == 32
    enum { AHEAD = 8 };
    for (; i + (AHEAD - 1) * GROUP < count; i += AHEAD * GROUP) {
        some x[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            x[k] = packs[i + k * GROUP];
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            join_pack(x[k], value);
    }
#endif
    for (; i < count; i += GROUP) {
        const some x = packs[i];
        join_pack(x, value);
    }
    return joined(joined(value[0], value[1]), joined(value[2], value[3]));
}
#endif

/* One group for each part of an output; the elements may be contiguous or have any strides. */
extern "C" __global__ void __launch_bounds__(THREADS) rows(const cuda_reduce_args args)
{
    const u64 all = (u64)args.outputs * (u64)args.parts, step = (u64)gridDim.x * GROUPS;
    const int lane = threadIdx.x % GROUP;
    for (u64 job = (u64)blockIdx.x * GROUPS + threadIdx.x / GROUP; job < all; job += step) {
        const u64 output = args.parts > 1 ? job / (u64)args.parts : job;
        const u64 part = job - output * (u64)args.parts;
        const IN *in = (const IN *)args.in +
                       offset(args.kept_rank, args.kept, args.kept_in, output);
        const i64 begin = (i64)part * args.part;
        const i64 end = begin + args.part < args.size ? begin + args.part : args.size;
#if DENSE
        A value = dense_part(in + begin, end - begin, lane);
#else
        A value = IDENTITY;
        for (i64 i = begin + lane; i < end; i += GROUP)
            value = joined(value, read(in + taken(args, i)));
#endif
        value = of_group(value);
        if (lane == 0)
            keep(args, output, part, value);
    }
}

/* Reduces a thread's share of a column: every eighth element of a part, in AHEAD parallel sums. */
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

/* For contiguous outputs: 32 neighbouring outputs per block, with eight threads per column. */
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

/* Combines the parts of each output with one warp. */
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
        value = of_warp(value);
        if (x == 0)
            ((OUT *)args.out)[offset(args.kept_rank, args.kept, args.kept_out, output)] =
                finished(value, args.size);
    }
}
