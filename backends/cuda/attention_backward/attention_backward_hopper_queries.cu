/* Gradients of queries on Hopper's tensor cores, from the slopes (derivatives of scores) that the kernel for keys wrote: dQ =
 * slopes K. A block computes dQ of 256 queries of a head: each of two warpgroups that of 128, in two slices of 64, which are the
 * rows of its products. It loops over the tiles of 64 keys of its section, each of which comes with the slopes of the block's four
 * tiles of queries. Slopes of a tile without pairs that count were not written, and are not used.
 *
 * If the section does not have all keys, the sums go to the workspace, from where the next section's block continues. */
enum {
    STAGES = 4,
    SLICES = SLOPE_ROW_TILES / GROUPS,
    SLOPES = SLOPE_ROW_TILES * SLOPE_TILE_BYTES,
    STAGE = SLOPES + X_BYTES, /* slopes, then a tile of K */
    BARRIERS_AT = STAGES * STAGE
};
static_assert(BARRIERS_AT + 8 * 2 * STAGES == QUERIES_SHARED, "the host launches with this");

/* Numbers of barriers in shared memory. */
enum { FULL = 0, EMPTY = STAGES };
DEVICE u32 barrier_at(u32 shared, int number) { return shared + BARRIERS_AT + 8 * number; }

/* The block: its head, also counted over all sequences and in the section, its first tile of queries, and the tiles of keys that
 * these see in the section. */
struct place {
    int batch, head, group, number, local, tile;
    int begin, end;
};

DEVICE place place_of(const backward_hopper_args &args)
{
    const int heads = args.at.of.heads, first = args.first_block * SLOPE_BLOCK_TILES;
    place p;
    p.local = (int)(blockIdx.x / (u32)args.row_blocks);
    p.tile = (args.row_blocks - 1 - ((int)blockIdx.x - p.local * args.row_blocks)) * SLOPE_ROW_TILES; /* the longest first */
    p.number = args.lot * args.at.of.ratio + p.local;
    p.batch = p.number / heads;
    p.head = p.number - p.batch * heads;
    p.group = p.head / args.at.of.ratio;
    const hopper_keys seen =
        hopper_keys_of(&args.counts, p.tile * SLOPE_TILE, SLOPE_ROW_TILES * SLOPE_TILE, SLOPE_TILE);
    p.begin = seen.first > first ? seen.first : first;
    p.end = hopper_clamp(seen.end, 0, first + args.blocks * SLOPE_BLOCK_TILES);
    return p;
}

DEVICE void load_all(const backward_hopper_args &args, const place &p, u32 shared)
{
    const int key_tiles = args.blocks * SLOPE_BLOCK_TILES, first = args.first_block * SLOPE_BLOCK_TILES;
    const u32 bytes = SLOPE_TILE_BYTES * (u32)hopper_clamp(args.tiles - p.tile, 0, SLOPE_ROW_TILES);
    pipeline to = {0, 0};
#pragma unroll 1
    for (int tile = p.begin; tile < p.end; tile++) {
        const u32 full = barrier_at(shared, FULL + to.stage), stage = shared + to.stage * STAGE;
        const i64 number = slope_tile_number(p.local, key_tiles, args.tiles, tile - first, p.tile);
        barrier_wait(barrier_at(shared, EMPTY + to.stage), to.parity ^ 1);
        barrier_expect(full, bytes + X_BYTES);
        load_bytes(stage, (const u8 *)args.slopes + number * SLOPE_TILE_BYTES, full, bytes);
        load_rows<X_BYTES>(args.k, stage + SLOPES, full, tile * SLOPE_TILE, p.group, p.batch);
        advance<STAGES>(to);
    }
}

/* Whether one of the 64 queries of a tile saw no key; the same for all threads of the group. Its lse is -infinity. */
DEVICE bool has_blind(const backward_hopper_args &args, const place &p, int group, int tile)
{
    const int query = tile * SLOPE_TILE + threadIdx.x % SLOPE_TILE;
    const bool is = query < args.counts.queries && args.lse[p.number * args.padded + query] == -INFINITE;
    return group_any(GROUP_BARRIER + group, 128, is);
}

/* As add_tile, key by key without those whose slope is UNCOUNTED, for keys that are not finite. */
DEVICE void add_counted(f32 (&sums)[HEAD / 2], u32 slopes, u32 keys)
{
    const int row = threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4;
#pragma unroll 1
    for (int key = 0; key < SLOPE_TILE; key++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const u32 bits = read_bits(slopes + slope_offset(key, row + 8 * h));
            add_row(sums, h, bits, keys, key);
        }
    }
    __syncwarp(); /* all lanes have read the tile before one frees it */
}

/* Adds a tile of keys with which some pairs do not count. No product is under way before and after. */
DEVICE void add_guarded_tile(const backward_hopper_args &args, const place &p, int group, int tile, u32 stage,
                             const bool (&blind)[SLICES], f32 (&sums)[SLICES][HEAD / 2])
{
    const u32 keys = stage + SLOPES;
    const bool is_nonfinite = group_any(GROUP_BARRIER + group, 128, find_nonfinite_part<X_BYTES>(keys));
#pragma unroll
    for (int s = 0; s < SLICES; s++) {
        const int slice = group * SLICES + s;
        const slope_sight sight = slope_sight_of(&args.counts, p.tile + slice, tile);
        if (sight == SLOPES_NONE)
            continue;
        if (is_nonfinite && (sight == SLOPES_SOME || blind[s])) {
            add_counted(sums[s], stage + slice * SLOPE_TILE_BYTES, keys);
        } else {
            wgmma_begin();
            add_tile(sums[s], stage + slice * SLOPE_TILE_BYTES, keys);
            wgmma_commit();
            wgmma_wait<0>();
            wgmma_fence_sums(sums[s]);
        }
    }
}

/* Adds a tile of keys with which all pairs count. */
DEVICE void add_whole_tile(int group, u32 stage, f32 (&sums)[SLICES][HEAD / 2])
{
    wgmma_begin();
#pragma unroll
    for (int s = 0; s < SLICES; s++)
        add_tile(sums[s], stage + (group * SLICES + s) * SLOPE_TILE_BYTES, stage + SLOPES);
    wgmma_commit();
    wgmma_wait<0>();
#pragma unroll
    for (int s = 0; s < SLICES; s++)
        wgmma_fence_sums(sums[s]);
}

/* Where the group's sums are between sections: each thread's, four at a time beside those of its neighbours. */
DEVICE f32 *partial_of(const backward_hopper_args &args, const place &p, int group)
{
    const i64 block = (i64)p.local * args.row_blocks + p.tile / SLOPE_ROW_TILES;
    return args.partial + (block * GROUPS + group) * 128 * (SLICES * HEAD / 2) + threadIdx.x % 128 * 4;
}

DEVICE void read_sums(const f32 *from, f32 (&sums)[SLICES][HEAD / 2])
{
#pragma unroll
    for (int i = 0; i < SLICES * HEAD / 8; i++) {
        const float4 four = *(const float4 *)(from + i * 128 * 4);
        f32 *to = &sums[i / (HEAD / 8)][i % (HEAD / 8) * 4];
        to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
    }
}

DEVICE void keep_sums(f32 *to, const f32 (&sums)[SLICES][HEAD / 2])
{
#pragma unroll
    for (int i = 0; i < SLICES * HEAD / 8; i++) {
        const f32 *from = &sums[i / (HEAD / 8)][i % (HEAD / 8) * 4];
        *(float4 *)(to + i * 128 * 4) = make_float4(from[0], from[1], from[2], from[3]);
    }
}

DEVICE void write_sums(const backward_hopper_args &args, const place &p, int group, const f32 (&sums)[SLICES][HEAD / 2])
{
    const cuda_gradient_args &at = args.at;
#pragma unroll
    for (int i = 0; i < 2 * SLICES; i++) {
        const int row = threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4 + i % 2 * 8;
        const int query = (p.tile + group * SLICES + i / 2) * SLOPE_TILE + slope_query_at(row);
        IN *to = (IN *)at.dq + p.batch * at.dq_stride[0] + p.head * at.dq_stride[1] + query * at.dq_stride[2];
        write_row(sums[i / 2], i % 2, (f32)at.of.scale, query < args.counts.queries ? to : NULL, at.dq_stride[3], at.whole_dq);
    }
}

DEVICE void compute_all(const backward_hopper_args &args, const place &p, u32 shared, int group)
{
    const hopper_keys seen = hopper_keys_of(&args.counts, (p.tile + group * SLICES) * SLOPE_TILE, SLICES * SLOPE_TILE, SLOPE_TILE);
    f32 *const partial = partial_of(args, p, group);
    f32 sums[SLICES][HEAD / 2] = {};
    pipeline at = {0, 0};
    bool blind[SLICES], is_blind = false;
    for (int s = 0; s < SLICES; s++) {
        blind[s] = has_blind(args, p, group, p.tile + group * SLICES + s);
        is_blind = is_blind || blind[s];
    }
    if (args.resumes)
        read_sums(partial, sums);
#pragma unroll 1
    for (int tile = p.begin; tile < p.end; tile++) {
        barrier_wait(barrier_at(shared, FULL + at.stage), at.parity);
        if (tile >= seen.full_from && tile < seen.full_end && !is_blind)
            add_whole_tile(group, shared + at.stage * STAGE, sums);
        else if (tile >= seen.first && tile < seen.end)
            add_guarded_tile(args, p, group, tile, shared + at.stage * STAGE, blind, sums);
        release(barrier_at(shared, EMPTY + at.stage));
        advance<STAGES>(at);
    }
    if (args.continues)
        keep_sums(partial, sums);
    else
        write_sums(args, p, group, sums);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    backward_hopper_queries(const __grid_constant__ backward_hopper_args args)
{
    SHARED_TILES(memory);
    const u32 shared = shared_address(memory);
    const int group = __shfl_sync(0xFFFFFFFFu, (int)threadIdx.x / 128, 0);
    const place p = place_of(args);
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            barrier_init(barrier_at(shared, FULL + s), 1);
            barrier_init(barrier_at(shared, EMPTY + s), 4 * GROUPS);
        }
        barrier_init_fence();
    }
    __syncthreads();
    if (group == 0) {
        give_registers<24>();
        if (threadIdx.x == 0)
            load_all(args, p, shared);
    } else {
        take_registers<240>();
        compute_all(args, p, shared, group - 1);
    }
}
