/* What follows a product whose sums are of f32: out = FUNCTION(sum + bias), rounded once. A block has `lanes` threads
 * along the rows of out, each with EACH elements, and so many rows at once as it has threads left; rows are columns
 * where out lies by those. Where they are `whole`, a thread's elements are neighbours, read and written at once; else
 * those of neighbouring threads are. */
enum { BLOCK = 256, EACH = 8 };

struct row {
    const f32 *sums;
    OUT *out;
    const OUT *bias; /* 0: there is none */
};

DEVICE row row_of(const cuda_matmul_args &args, u32 matrix, i64 number)
{
    const starts at = starts_of(args, matrix);
    row is = {(const f32 *)args.data[0] + at.of[0] + number * args.down[0],
              (OUT *)args.data[2] + at.of[2] + number * args.down[2], 0};
    if (args.data[3])
        is.bias = (const OUT *)args.data[3] + at.of[3] + number * args.down[3];
    return is;
}

/* A bias lies as out does, or is one for all of a row. */
DEVICE void finish_whole(const cuda_matmul_args &args, const row &is, i64 first)
{
    if (first >= args.n)
        return;
    pack<f32, EACH> x = *(const pack<f32, EACH> *)(is.sums + first);
    pack<OUT, EACH> bias, out;
    if (is.bias) {
        if (args.across[3])
            bias = *(const pack<OUT, EACH> *)(is.bias + first);
#pragma unroll
        for (int i = 0; i < EACH; i++)
            x.of[i] += (f32)widened<OUT>(args.across[3] ? bias.of[i] : *is.bias);
    }
#pragma unroll
    for (int i = 0; i < EACH; i++)
        out.of[i] = narrowed<OUT>(FUNCTION(x.of[i]));
    put(is.out + first, out);
}

DEVICE void finish_strided(const cuda_matmul_args &args, const row &is, i64 first)
{
    f32 x[EACH] = {};
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
            x[i] += (f32)widened<OUT>(is.bias[column * args.across[3]]);
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
