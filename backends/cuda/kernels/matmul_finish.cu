/* What follows a product whose sums are of f32: out = FUNCTION(sum + bias), rounded once. A block has `lanes` threads
 * along the rows of out, each with EACH elements, and so many rows at once as it has threads left; rows are columns
 * where out lies by those. */
enum { BLOCK = 256, EACH = 4 };

DEVICE void finish_row(const cuda_matmul_args &args, const starts &at, i64 row, i64 first)
{
    const f32 *sums = (const f32 *)args.data[0] + at.of[0] + row * args.down[0];
    OUT *out = (OUT *)args.data[2] + at.of[2] + row * args.down[2];
    const OUT *bias = (const OUT *)args.data[3] + at.of[3] + row * args.down[3];
    f32 x[EACH] = {};
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const i64 column = first + i * args.lanes;
        if (column < args.n)
            x[i] = sums[column * args.across[0]];
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const i64 column = first + i * args.lanes;
        if (column >= args.n)
            continue;
        if (args.data[3])
            x[i] += (f32)widened<OUT>(bias[column * args.across[3]]);
        out[column * args.across[2]] = narrowed<OUT>(FUNCTION(x[i]));
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK) matmul_finish(const cuda_matmul_args args)
{
    const int lane = (int)threadIdx.x % args.lanes, line = (int)threadIdx.x / args.lanes;
    for (u32 tile = blockIdx.x; tile < args.tiles; tile += gridDim.x) {
        const u32 down = tile / args.tiles_across, matrix = down / args.tiles_down;
        const i64 row = (i64)(down - matrix * args.tiles_down) * (BLOCK / args.lanes) + line;
        const i64 first = (i64)(tile - down * args.tiles_across) * args.lanes * EACH + lane;
        if (row < args.m)
            finish_row(args, starts_of(args, matrix), row, first);
    }
}
