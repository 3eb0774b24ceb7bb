/* softmax along the last dimension; with LOG its logarithm; NARROW for 16-bit results. A NaN in a row
 * makes the whole row NaN. */
typedef work<IN>::type A;

/* exp(x) for x <= 0; for a narrow result with an error of at most 1e-5. */
DEVICE A power_of(A x)
{
#if NARROW
    return __expf(x);
#else
    return of_exp(x);
#endif
}

#if PER > 0
/* Exponentials are kept, so that they are computed only once. */
DEVICE void one_row(const IN *in, OUT *out, const cuda_rows_args &args, int lane)
{
    A x[PER], high = lowest((A)0), sum = 0;
    read_row(in, args, 0, lane, lowest((A)0), x);
    for (int k = 0; k < PER; k++)
        high = x[k] > high ? x[k] : high;
    high = together<greatest>(high);
    for (int k = 0; k < PER; k++) {
        A power = power_of(x[k] - high);
        sum += has_place(args, lane, k) ? power : (A)0;
        x[k] = LOG ? x[k] - high : power;
    }
    sum = together<summed>(sum);
    const A last = LOG ? of_log(sum) : (A)1 / sum;
    for (int k = 0; k < PER; k++)
        x[k] = LOG ? x[k] - last : x[k] * last;
    write_row(out, args, 1, lane, x);
}
#else
DEVICE void one_row(const IN *in, OUT *out, const cuda_rows_args &args, int lane)
{
    A high = lowest((A)0), sum = 0;
    for (i64 i = lane; i < args.size; i += GROUP) {
        A x = widened<IN>(in[i * args.along[0]]);
        high = x > high ? x : high;
    }
    high = together<greatest>(high);
    for (i64 i = lane; i < args.size; i += GROUP)
        sum += power_of(widened<IN>(in[i * args.along[0]]) - high);
    sum = together<summed>(sum);
    const A last = LOG ? of_log(sum) : (A)1 / sum;
    for (i64 i = lane; i < args.size; i += GROUP) {
        A x = widened<IN>(in[i * args.along[0]]) - high;
        out[i * args.along[1]] = narrowed<OUT>(LOG ? x - last : power_of(x) * last);
    }
}
#endif

extern "C" __global__ void __launch_bounds__(BLOCK) softmax_rows(const cuda_rows_args args)
{
    const int lane = threadIdx.x % GROUP;
    const INDEX first = (INDEX)blockIdx.x * GROUPS + threadIdx.x / GROUP;
    for (INDEX row = first; row < (INDEX)args.rows; row += (INDEX)gridDim.x * GROUPS) {
        const starts at = starts_of(args, row);
        one_row((const IN *)args.data[0] + at.of[0], (OUT *)args.data[1] + at.of[1], args, lane);
    }
}
