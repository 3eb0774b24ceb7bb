/* rotary: pairs of elements of a row are rotated, the rest is copied. With HALVES, the partners are half
 * of the rotated size apart; else they are neighbours. COS and SIN are dtypes. A thread processes VECTOR
 * pairs, or as many elements of the rest; with AT_ONCE, each operand's elements are read and written as
 * whole vectors. */
typedef work<IN>::type A;

DEVICE void turn(const IN *in, OUT *out, const A *c, const A *s, const cuda_rows_args &args, i64 p)
{
    const i64 in_along = args.along[0], out_along = args.along[1];
#if HALVES
    const i64 second = p + args.size / 2;
    A x[VECTOR], y[VECTOR];
    read_some<VECTOR, AT_ONCE>(in, p, in_along, x);
    read_some<VECTOR, AT_ONCE>(in, second, in_along, y);
    for (int v = 0; v < VECTOR; v++) {
        const A turned = x[v] * c[v] - y[v] * s[v];
        y[v] = x[v] * s[v] + y[v] * c[v];
        x[v] = turned;
    }
    write_some<VECTOR, AT_ONCE>(out, p, out_along, x);
    write_some<VECTOR, AT_ONCE>(out, second, out_along, y);
#else
    A x[2 * VECTOR];
    read_some<2 * VECTOR, AT_ONCE>(in, 2 * p, in_along, x);
    for (int v = 0; v < 2 * VECTOR; v += 2) {
        const A turned = x[v] * c[v / 2] - x[v + 1] * s[v / 2];
        x[v + 1] = x[v] * s[v / 2] + x[v + 1] * c[v / 2];
        x[v] = turned;
    }
    write_some<2 * VECTOR, AT_ONCE>(out, 2 * p, out_along, x);
#endif
}

extern "C" __global__ void rotary_rows(const cuda_rows_args args)
{
    const INDEX turns = (INDEX)(args.size / 2 / VECTOR);
    const INDEX in_row = turns + (INDEX)((args.whole - args.size) / VECTOR);
    const INDEX all = (INDEX)args.rows * in_row, step = (INDEX)gridDim.x * blockDim.x;
    for (INDEX i = (INDEX)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const INDEX row = i / in_row, p = i - row * in_row;
        const starts at = starts_of(args, row);
        const IN *in = (const IN *)args.data[0] + at.of[0];
        OUT *out = (OUT *)args.data[1] + at.of[1];
        A c[VECTOR], s[VECTOR];
        if (p < turns) {
            const i64 first = (i64)p * VECTOR;
            read_some<VECTOR, AT_ONCE>((const COS *)args.data[2] + at.of[2], first, args.along[2], c);
            read_some<VECTOR, AT_ONCE>((const SIN *)args.data[3] + at.of[3], first, args.along[3], s);
            turn(in, out, c, s, args, first);
        } else {
            const i64 rest = args.size + (i64)(p - turns) * VECTOR;
            read_some<VECTOR, AT_ONCE>(in, rest, args.along[0], c);
            write_some<VECTOR, AT_ONCE>(out, rest, args.along[1], c);
        }
    }
}
