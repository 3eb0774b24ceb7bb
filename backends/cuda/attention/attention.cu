/* Attention with many rows: a block computes TILE rows and processes the keys TILE at a time. */

/* Computes the last rows first: with bounds by position they see the most keys. */
extern "C" __global__ void __launch_bounds__(BLOCK, SIZE > 256 ? 1 : 2) attention_many(const cuda_attention_args args)
{
    __shared__ __align__(16) A room[ROOM];
    __shared__ __align__(16) A weights[TILE * PITCH];
    __shared__ i64 q_at[TILE], k_at[TILE], v_at[TILE];
    const u32 lot = blockIdx.x / (u32)args.blocks, b = lot / (u32)args.groups;
    const int group = (int)(lot - b * args.groups);
    const int row = (int)((lot + 1) * args.blocks - 1 - blockIdx.x) * TILE;
    const sequence s = sequence_of(args, (int)b);
    if (row >= s.queries * args.ratio)
        return;
    const reach seen = reach_of(args, s, group, row, TILE);
    rows r;
    A sums[WIDE][COLUMNS][WIDE] = {};
    begin_rows(args, s, group, row, r);
    place_queries(args, s, group, row, q_at);
    for (int first = seen.from / TILE * TILE; first < seen.end; first += TILE) {
        A score[WIDE][WIDE] = {};
        __syncthreads();
        if (threadIdx.x < TILE) {
            const int key = first + (int)threadIdx.x;
            const bool is = key >= seen.from && key < seen.end;
            k_at[threadIdx.x] = is ? key_at(args, s, group, key, args.k_stride) : ABSENT;
            v_at[threadIdx.x] = is ? key_at(args, s, group, key, args.v_stride) : ABSENT;
        }
        multiply_heads(args, q_at, k_at, room, score);
        weigh(args, s, [=](int i) { return first + i; }, r, score, sums, weights);
        add_tile(weights, (const IN *)args.v, v_at, seen.end - first, args.value_size, args.v_stride[3], args.whole_v, room,
                 sums);
    }
    write_rows(args, s, r, sums);
}
