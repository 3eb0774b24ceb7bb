/* Attention of listed blocks for all dtypes, sizes and strides: as attention_many, over tiles of the keys that are listed. */
extern "C" __global__ void __launch_bounds__(BLOCK, SIZE > 256 ? 1 : 2) attention_sparse(const cuda_sparse_args args)
{
    __shared__ __align__(16) A room[ROOM];
    __shared__ __align__(16) A weights[TILE * PITCH];
    __shared__ i64 q_at[TILE], k_at[TILE], v_at[TILE];
    __shared__ int keys[TILE], count;
    const cuda_attention_args &of = args.of;
    const tile_rows at = tile_rows_of<TILE>(args);
    if (at.row >= at.end)
        return;
    const sequence s = sequence_of_tile(args, at);
    const int group = at.head / args.sharers;
    const listing list = listing_of<TILE>(args, at);
    walk w = walk_of(args, list);
    rows r;
    A sums[WIDE][COLUMNS][WIDE] = {};
    begin_rows(of, s, at.head, at.row, r);
    place_queries(of, s, at.head, at.row, q_at);
    for (;;) {
        A score[WIDE][WIDE] = {};
        __syncthreads();
        if (threadIdx.x < WARP) {
            const int found = next_keys<TILE>(args, list, w, keys);
            if (threadIdx.x == 0)
                count = found;
        }
        __syncthreads();
        if (count == 0)
            break;
        if (threadIdx.x < TILE) {
            const int key = keys[threadIdx.x];
            k_at[threadIdx.x] = key == NO_KEY ? ABSENT : key_at(of, s, group, key, of.k_stride);
            v_at[threadIdx.x] = key == NO_KEY ? ABSENT : key_at(of, s, group, key, of.v_stride);
        }
        multiply_heads(of, q_at, k_at, room, score);
        weigh(of, s, [&](int i) { return keys[i]; }, r, score, sums, weights);
        add_tile(weights, (const IN *)of.v, v_at, count, of.value_size, of.v_stride[3], of.whole_v, room, sums);
    }
    write_rows(of, s, r, sums);
}
