/* Sequences without keys, whose results a library may leave undefined: their rows of OUT become 0, and their LSE is
 * set accordingly. A block processes one head of one sequence after the other. */
extern "C" __global__ void __launch_bounds__(BLOCK) attention_empty(const cuda_attention_args args)
{
    const u32 all = (u32)args.batch * (u32)args.heads;
    for (u32 i = blockIdx.x; i < all; i += gridDim.x) {
        const int b = (int)(i / (u32)args.heads), head = (int)(i % (u32)args.heads);
        const sequence s = sequence_of(args, b);
        if (s.keys > 0)
            continue;
        const verdict is = verdict_of(args, head, nothing(), 0);
        const i64 elements = (i64)s.queries * args.value_size;
        for (i64 e = threadIdx.x; e < elements; e += BLOCK) {
            const view v = {(int)(e / args.value_size), head, 0, 0};
            const i64 column = e % args.value_size;
            ((OUT *)args.out)[query_at(s, v, args.out_stride) + column * args.out_stride[3]] = narrowed<OUT>((A)0);
            if (args.lse && column == 0)
                ((A *)args.lse)[query_at(s, v, args.lse_stride)] = is.lse;
        }
    }
}
