/* norm along the last dimension: layer norm (LAYER 1) or rms norm; times WEIGHT, plus BIAS. These are
 * dtypes, or absent (HAS_WEIGHT, HAS_BIAS 0), and are read at once if PACKED. Computes the mean first, then
 * the squared distances from it. */
typedef work<IN>::type A;

/* Scales N elements of the row from `first` on. */
template <int N> DEVICE void scale(A *x, A mean, A by, const cuda_rows_args &args, const starts &at,
                                   i64 first)
{
    for (int v = 0; v < N; v++)
        x[v] = (x[v] - mean) * by;
#if HAS_WEIGHT
    A weight[N];
    read_some<N, PACKED>((const WEIGHT *)args.data[2] + at.of[2], first, args.along[2], weight);
    for (int v = 0; v < N; v++)
        x[v] *= weight[v];
#endif
#if HAS_BIAS
    A bias[N];
    read_some<N, PACKED>((const BIAS *)args.data[3] + at.of[3], first, args.along[3], bias);
    for (int v = 0; v < N; v++)
        x[v] += bias[v];
#endif
}

#if PER > 0
DEVICE void one_row(const cuda_rows_args &args, const starts &at, int lane)
{
    A x[PER], squares = 0, mean = 0;
    read_row((const IN *)args.data[0] + at.of[0], args, 0, lane, (A)0, x);
#if LAYER
    A sum = 0;
    for (int k = 0; k < PER; k++)
        sum += x[k];
    mean = together<summed>(sum) / (A)args.size;
#endif
    for (int k = 0; k < PER; k++) {
        A d = has_place(args, lane, k) ? x[k] - mean : (A)0;
        squares += d * d;
    }
    const A by = of_rsqrt(together<summed>(squares) / (A)args.size + (A)args.epsilon);
    enum { SOME = PACKED ? VECTOR : 1 };
    for (int k = 0; k < PER; k += SOME) {
        if (has_place(args, lane, k))
            scale<SOME>(x + k, mean, by, args, at, place(lane, k));
    }
    write_row((OUT *)args.data[1] + at.of[1], args, 1, lane, x);
}
#else
DEVICE void one_row(const cuda_rows_args &args, const starts &at, int lane)
{
    const IN *in = (const IN *)args.data[0] + at.of[0];
    OUT *out = (OUT *)args.data[1] + at.of[1];
    A squares = 0, mean = 0;
#if LAYER
    A sum = 0;
    for (i64 i = lane; i < args.size; i += GROUP)
        sum += widened<IN>(in[i * args.along[0]]);
    mean = together<summed>(sum) / (A)args.size;
#endif
    for (i64 i = lane; i < args.size; i += GROUP) {
        A d = widened<IN>(in[i * args.along[0]]) - mean;
        squares += d * d;
    }
    const A by = of_rsqrt(together<summed>(squares) / (A)args.size + (A)args.epsilon);
    for (i64 i = lane; i < args.size; i += GROUP) {
        A x = widened<IN>(in[i * args.along[0]]);
        scale<1>(&x, mean, by, args, at, i);
        out[i * args.along[1]] = narrowed<OUT>(x);
    }
}
#endif

extern "C" __global__ void __launch_bounds__(BLOCK) norm_rows(const cuda_rows_args args)
{
    const int lane = threadIdx.x % GROUP;
    const INDEX first = (INDEX)blockIdx.x * GROUPS + threadIdx.x / GROUP;
    for (INDEX row = first; row < (INDEX)args.rows; row += (INDEX)gridDim.x * GROUPS)
        one_row(args, starts_of(args, row), lane);
}
