/* Joins the parts of attention: a block computes a row, each warp every eighth part, each lane every 32nd value. */
enum { WARPS = BLOCK / WARP };

extern "C" __global__ void __launch_bounds__(BLOCK) attention_join(const cuda_attention_args args)
{
    __shared__ A room[WARPS][WARP];
    const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
    const u32 lot = blockIdx.x / (u32)args.blocks, b = lot / (u32)args.groups;
    const int group = (int)(lot - b * args.groups), row = (int)(blockIdx.x - lot * args.blocks);
    const sequence s = sequence_of(args, (int)b);
    if (row >= s.queries * args.ratio)
        return;
    const i64 first = part_of(args, s.b, group, row, 0);
    const A *weights = weights_of_parts(args) + 2 * first, *sums = (const A *)args.partial + first * args.value_size;
    A greatest = nothing(), sum = 0;
    for (int part = 0; part < args.parts; part++)
        greatest = weights[2 * part] > greatest ? weights[2 * part] : greatest;
    const A level = level_of(greatest);
    for (int part = 0; part < args.parts; part++)
        sum += weights[2 * part + 1] * of_exp(weights[2 * part] - level);
    const view v = view_of(args, s, group, row);
    const verdict is = verdict_of(args, v.head, greatest, sum);
    if (args.lse && threadIdx.x == 0)
        ((A *)args.lse)[query_at(s, v, args.lse_stride)] = is.lse;
    for (int base = 0; base < args.value_size; base += WARP) {
        A mine = 0;
        if (base + lane < args.value_size) {
#pragma unroll 4
            for (int part = warp; part < args.parts; part += WARPS) {
                const A weight = of_exp(weights[2 * part] - level);
                mine = fused(weight, sums[(i64)part * args.value_size + base + lane], mine);
            }
        }
        room[warp][lane] = mine;
        __syncthreads();
        if (warp == 0 && base + lane < args.value_size) {
            A all = 0;
            for (int w = 0; w < WARPS; w++)
                all += room[w][lane];
            ((OUT *)args.out)[query_at(s, v, args.out_stride) + (base + lane) * args.out_stride[3]] =
                narrowed<OUT>(value_of(all, is.factor));
        }
        __syncthreads();
    }
}
