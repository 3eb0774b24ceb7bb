/* Joins the parts of attention: a block computes a row. Every warp finds the weights of all parts, each lane those of every
 * 32nd; then each warp adds the values of every eighth part, each lane COLUMNS of them at a time. May be launched to overlap
 * with the kernel that computes the parts. */
enum { WARPS = BLOCK / WARP, COLUMNS = 4 };

/* The same for all lanes. */
DEVICE A greatest_of(const A *weights, int parts)
{
    A greatest = nothing();
    for (int part = (int)threadIdx.x % WARP; part < parts; part += WARP)
        greatest = weights[2 * part] > greatest ? weights[2 * part] : greatest;
    for (int far = WARP / 2; far > 0; far /= 2) {
        const A other = __shfl_xor_sync(0xFFFFFFFFu, greatest, far);
        greatest = other > greatest ? other : greatest;
    }
    return greatest;
}
DEVICE A sum_of(const A *weights, int parts, A level)
{
    A sum = 0;
    for (int part = (int)threadIdx.x % WARP; part < parts; part += WARP)
        sum += weights[2 * part + 1] * of_exp(weights[2 * part] - level);
    for (int far = WARP / 2; far > 0; far /= 2)
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, far);
    return sum;
}

extern "C" __global__ void __launch_bounds__(BLOCK) attention_join(const cuda_attention_args args)
{
    __shared__ A room[WARPS][COLUMNS * WARP];
    await_previous();
    const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
    const u32 lot = blockIdx.x / (u32)args.blocks, b = lot / (u32)args.groups;
    const int group = (int)(lot - b * args.groups), row = (int)(blockIdx.x - lot * args.blocks);
    const sequence s = sequence_of(args, (int)b);
    if (row >= s.queries * args.ratio)
        return;
    const i64 first = part_of(args, s.b, group, row, 0);
    const A *weights = weights_of_parts(args) + 2 * first, *sums = (const A *)args.partial + first * args.value_size;
    const A greatest = greatest_of(weights, args.parts), level = level_of(greatest);
    const A sum = sum_of(weights, args.parts, level);
    const view v = view_of(args, s, group, row);
    const verdict is = verdict_of(args, v.head, greatest, sum);
    if (args.lse && threadIdx.x == 0)
        ((A *)args.lse)[query_at(s, v, args.lse_stride)] = is.lse;
    for (int base = 0; base < args.value_size; base += COLUMNS * WARP) {
        A mine[COLUMNS] = {};
#pragma unroll 4
        for (int part = warp; part < args.parts; part += WARPS) {
            const A weight = of_exp(weights[2 * part] - level);
            const A *from = sums + (i64)part * args.value_size + base + lane;
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                if (base + c * WARP + lane < args.value_size)
                    mine[c] = fused(weight, from[c * WARP], mine[c]);
            }
        }
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
            room[warp][c * WARP + lane] = mine[c];
        __syncthreads();
        const int d = base + (int)threadIdx.x;
        if (threadIdx.x < COLUMNS * WARP && d < args.value_size) {
            A all = 0;
            for (int w = 0; w < WARPS; w++)
                all += room[w][threadIdx.x];
            ((OUT *)args.out)[query_at(s, v, args.out_stride) + d * args.out_stride[3]] =
                narrowed<OUT>(value_of(all, is.factor));
        }
        __syncthreads();
    }
}
