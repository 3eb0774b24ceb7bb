/* Epilogue after a product whose sums are f32, or complex of out's type: out = FUNCTION(sum + bias), rounded once.
 * A block has `lanes` threads along the rows of out, each with EACH elements, and as many rows at once as its
 * threads allow; if out is column-major, rows are columns. With `whole`, a thread's elements are contiguous, and
 * read and written at once; otherwise neighbouring threads have neighbouring elements. */
template <typename T> struct __align__(2 * sizeof(T)) complex_of {
    T real, imaginary;
};
typedef complex_of<f32> c64;
typedef complex_of<f64> c128;

template <typename T> struct work<complex_of<T>> {
    typedef complex_of<T> type;
};
template <typename T> struct written<complex_of<T>, complex_of<T>> {
    DEVICE complex_of<T> of(complex_of<T> x)
    {
        return x;
    }
};
template <typename T> DEVICE complex_of<T> operator+(complex_of<T> a, complex_of<T> b)
{
    complex_of<T> sum = {a.real + b.real, a.imaginary + b.imaginary};
    return sum;
}

typedef work<OUT>::type SUM;
enum { BLOCK = 256, EACH = (int)(CUDA_FINISH_BYTES / sizeof(SUM)) };

struct row {
    const SUM *sums;
    OUT *out;
    const OUT *bias; /* 0: no bias */
};

DEVICE row row_of(const cuda_matmul_args &args, u32 matrix, i64 number)
{
    const starts at = starts_of(args, matrix);
    row is = {(const SUM *)args.data[0] + at.of[0] + number * args.down[0],
              (OUT *)args.data[2] + at.of[2] + number * args.down[2], 0};
    if (args.data[3])
        is.bias = (const OUT *)args.data[3] + at.of[3] + number * args.down[3];
    return is;
}

/* A bias has out's layout, or one number for a whole row. */
DEVICE void finish_whole(const cuda_matmul_args &args, const row &is, i64 first)
{
    if (first >= args.n)
        return;
    pack<SUM, EACH> x = *(const pack<SUM, EACH> *)(is.sums + first);
    pack<OUT, EACH> bias, out;
    if (is.bias) {
        if (args.across[3])
            bias = *(const pack<OUT, EACH> *)(is.bias + first);
#pragma unroll
        for (int i = 0; i < EACH; i++)
            x.of[i] = x.of[i] + widened<OUT>(args.across[3] ? bias.of[i] : *is.bias);
    }
#pragma unroll
    for (int i = 0; i < EACH; i++)
        out.of[i] = narrowed<OUT>(FUNCTION(x.of[i]));
    put(is.out + first, out);
}

DEVICE void finish_strided(const cuda_matmul_args &args, const row &is, i64 first)
{
    SUM x[EACH] = {};
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const i64 column = first + i * args.lanes;
        if (column < args.n)
            x[i] = is.sums[column * args.across[0]];
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const i64 column = first + i * args.lanes;
        if (column >= args.n)
            continue;
        if (is.bias)
            x[i] = x[i] + widened<OUT>(is.bias[column * args.across[3]]);
        is.out[column * args.across[2]] = narrowed<OUT>(FUNCTION(x[i]));
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK) matmul_finish(const cuda_matmul_args args)
{
    const int lane = (int)threadIdx.x % args.lanes, line = (int)threadIdx.x / args.lanes;
    for (u32 tile = blockIdx.x; tile < args.tiles; tile += gridDim.x) {
        const u32 down = tile / args.tiles_across, matrix = down / args.tiles_down;
        const i64 number = (i64)(down - matrix * args.tiles_down) * (BLOCK / args.lanes) + line;
        const i64 first = (i64)(tile - down * args.tiles_across) * args.lanes * EACH;
        if (number >= args.m)
            continue;
        const row is = row_of(args, matrix, number);
        if (args.whole)
            finish_whole(args, is, first + (i64)lane * EACH);
        else
            finish_strided(args, is, first + lane);
    }
}
