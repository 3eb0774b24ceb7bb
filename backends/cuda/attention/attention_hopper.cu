/* Attention on Hopper's tensor cores: the order of tiles of rows, and the keys that each of them sees, by position and by tables:
 * sequences may be packed or have lengths. */
DEVICE int clamp_index(i64 x, i64 most) { return (int)(x < 0 ? 0 : x > most ? most : x); }

/* Out-of-range entries of tables are clamped. */
DEVICE void read_tables(const hopper_args &args, row_tile &at)
{
    const int b = at.sequence;
    if (args.at.starts_q.first) {
        at.batch = 0;
        at.first_query = clamp_index(args.at.starts_q.first[b * args.at.starts_q.stride], args.at.all_queries);
        at.counts.queries = clamp_index((i64)args.at.starts_q.first[(b + 1) * args.at.starts_q.stride] - at.first_query,
                                        args.at.all_queries - at.first_query);
        at.counts.queries = at.counts.queries < args.counts.queries ? at.counts.queries : args.counts.queries;
    }
    if (args.at.starts_k.first) {
        at.first_key = clamp_index(args.at.starts_k.first[b * args.at.starts_k.stride], args.at.all_keys);
        at.counts.keys = clamp_index((i64)args.at.starts_k.first[(b + 1) * args.at.starts_k.stride] - at.first_key,
                                     args.at.all_keys - at.first_key);
        at.counts.keys = at.counts.keys < args.counts.keys ? at.counts.keys : args.counts.keys;
    }
    if (args.at.lengths.first)
        at.counts.keys = clamp_index(args.at.lengths.first[b * args.at.lengths.stride], at.counts.keys);
}

/* Finds the block's next tile with rows, from `turn` on; returns false after the last. */
DEVICE bool next_tile(const hopper_args &args, int &turn, row_tile &at)
{
    for (;; turn++) {
        const int index = hopper_index(&args.counts, blockIdx.x, gridDim.x, turn);
        if (turn * gridDim.x >= args.counts.all_heads * args.counts.blocks)
            return false;
        if (index >= args.counts.all_heads * args.counts.blocks)
            continue;
        const hopper_tile tile = hopper_tile_at(&args.counts, index);
        at.sequence = at.batch = tile.head / args.at.heads;
        at.head = tile.head - at.batch * args.at.heads;
        at.row = tile.block * ROWS;
        at.first_query = at.first_key = 0;
        at.counts = args.counts;
        if (TABLES)
            read_tables(args, at);
        if (at.row < at.counts.queries)
            break;
    }
    turn++;
    return true;
}

DEVICE void load_all(const hopper_args &args, u32 shared)
{
    row_tile at;
    pipeline to = {0, 0};
    u32 parity = 1;
    for (int turn = 0; next_tile(args, turn, at); parity ^= 1) {
        const hopper_keys seen = hopper_keys_of(&at.counts, at.row, ROWS, WIDTH);
        const int group = at.head / args.at.ratio;
        barrier_wait(barrier_at(shared, Q_EMPTY), parity);
        load_tile(args.q, shared, barrier_at(shared, Q_FULL), CHUNKS, Q_CHUNK, at.first_query + at.row, at.head, at.batch);
#pragma unroll 1
        for (int tile = seen.end - 1; tile >= seen.first; tile--) {
            const int key = at.first_key + tile * WIDTH;
            barrier_wait(barrier_at(shared, K_EMPTY + to.stage), to.parity ^ 1);
            load_tile(args.k, shared + Q_BYTES + to.stage * K_BYTES, barrier_at(shared, K_FULL + to.stage), CHUNKS, K_CHUNK,
                      key, group, at.batch);
            barrier_wait(barrier_at(shared, V_EMPTY + to.stage), to.parity ^ 1);
            load_tile(args.v, shared + V_AT + to.stage * V_BYTES, barrier_at(shared, V_FULL + to.stage), VALUE_CHUNKS,
                      K_CHUNK, key, group, at.batch);
            advance(to);
        }
    }
}

/* The first tile of keys, then all others. */
DEVICE void compute_tile(const hopper_args &args, consumer &w, const hopper_keys &seen, f32 (&sums)[VALUES / 2])
{
    f32 score[WIDTH / 2], correction[2];
    u32 weights[WIDTH / 4];
    int tile = seen.end - 1;
    compute_weights<true>(args, w, tile * WIDTH, score, correction);
    narrow_weights(score, weights);
    w.add = 0;
    tile--;
    if (BOUNDS || MASK) {
        for (; tile >= (MASK ? seen.first : seen.full_end) && !has_nonfinite_values(w); tile--)
            step<true>(args, w, tile * WIDTH, score, weights, sums);
    }
    if (!MASK && !has_nonfinite_values(w)) {
        for (; tile >= seen.full_from; tile--)
            step<false>(args, w, tile * WIDTH, score, weights, sums);
    }
    if (BOUNDS > 1 && !MASK) {
        for (; tile >= seen.first && !has_nonfinite_values(w); tile--)
            step<true>(args, w, tile * WIDTH, score, weights, sums);
    }
    if (GUARDED) {
        for (; tile >= seen.first; tile--)
            step_serially(args, w, tile * WIDTH, score, weights, sums);
    }
    release(barrier_at(w.shared, Q_EMPTY));
    add_last_values(args, w, sums, weights);
}

DEVICE void compute_all(const hopper_args &args, u32 shared, int group)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    consumer w;
    row_tile at;
    u32 parity = 0;
    begin_group(w, shared, group);
    for (int turn = 0; next_tile(args, turn, at); parity ^= 1) {
        const hopper_keys seen = hopper_keys_of(&at.counts, at.row, ROWS, WIDTH);
        const int row = at.row + 64 * group + 16 * warp + lane / 4;
        f32 sums[VALUES / 2];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            w.r.greatest[h] = NOTHING;
            w.r.sum[h] = 0;
            w.r.from[h] = hopper_from(&at.counts, row + 8 * h);
            w.r.end[h] = row + 8 * h < at.counts.queries ? hopper_end(&at.counts, row + 8 * h) : 0;
            w.r.mask[h] = (const u8 *)args.at.mask + at.sequence * args.at.mask_stride[0] + at.head * args.at.mask_stride[1] +
                          (row + 8 * h) * args.at.mask_stride[2];
        }
        barrier_wait(barrier_at(shared, Q_FULL), parity);
        if (seen.first < seen.end)
            compute_tile(args, w, seen, sums);
        else
            release(barrier_at(shared, Q_EMPTY));
        write_rows(args, at, row, w.r, sums);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) attention_hopper(const __grid_constant__ hopper_args args)
{
    SHARED_TILES(memory);
    const u32 shared = shared_address(memory);
    const int group = __shfl_sync(0xFFFFFFFFu, (int)threadIdx.x / 128, 0);
    begin_barriers(shared);
    if (group == 0) {
        give_registers<GROUPS == 3 ? 32 : 24>();
        if (threadIdx.x == 0)
            load_all(args, shared);
    } else {
        take_registers<GROUPS == 3 ? 160 : 240>();
        compute_all(args, shared, group - 1);
    }
}
