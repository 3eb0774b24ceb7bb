/* What gradients of attention on tensor cores need of each row of queries, besides its operands. */
#define LOG2_E 1.44269504088896341f

/* The state of a row: its lse times log2(e), and the dot product of out and dOut. lse is -infinity if the row saw no key; in the
 * workspace, also if the row does not exist. */
struct state {
    f32 lse, delta;
};

/* Returns the state of a row that exists, with the share of the dot product that is due to one of PARTS threads. */
template <int PARTS> DEVICE state state_of(const cuda_gradient_args &args, const sequence &s, const view &v, int part)
{
    const cuda_attention_args &of = args.of;
    const IN *out = (const IN *)of.out + query_at(s, v, of.out_stride);
    const IN *dout = (const IN *)args.dout + query_at(s, v, args.dout_stride);
    state mine = {((const f32 *)of.lse)[query_at(s, v, of.lse_stride)] * LOG2_E, 0};
    for (int d = part * EACH; d < of.value_size; d += PARTS * EACH) {
        const piece x = piece_of(out + d * of.out_stride[3], 0, of.value_size - d, of.out_stride[3], of.whole_out);
        const piece y = piece_of(dout + d, 0, of.value_size - d, 1, args.whole_dout);
        for (int e = 0; e < EACH; e++)
            mine.delta = fused(widened<IN>(x.of[e]), widened<IN>(y.of[e]), mine.delta);
    }
    return mine;
}
