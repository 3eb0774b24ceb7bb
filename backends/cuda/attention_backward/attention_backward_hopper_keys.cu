/* Gradients of keys and values on Hopper's tensor cores, and the slopes (derivatives of scores), which the kernel for dQ reads. A
 * block computes dK and dV of 128 keys of a group: each of two warpgroups those of 64, which are the rows of its products. It
 * loops over the tiles of 64 queries of all heads that share the keys:
 *
 *     scores = K Q',  along = V dOut',  weights = exp(scores - lse),  slopes = weights (along - delta)
 *     dV += weights dOut,  dK += slopes Q
 *
 * Weights and slopes are accumulators whose registers, rounded to 16 bits, are the left operands of the last two products.
 * While exponentials are computed, the tensor cores compute `along`; with slopes, the sums of dV; and the other group's products
 * at any time. */
enum {
    STAGES = 4,
    OWN_BYTES = X_BYTES + Y_BYTES, /* of a group: its keys, then its values */
    STAGES_AT = GROUPS * OWN_BYTES,
    STAGE = X_BYTES + Y_BYTES, /* a tile of Q, then one of dOut */
    STATE = SLOPE_TILE * 4,    /* lse of the tile's queries; their delta */
    STATES_AT = STAGES_AT + STAGES * STAGE,
    BARRIERS_AT = STATES_AT + STAGES * 2 * STATE
};
static_assert(GROUPS == SLOPE_BLOCK_TILES && BARRIERS_AT + 8 * (1 + 2 * STAGES) == KEYS_SHARED, "the host launches with this");

/* Numbers of barriers in shared memory. */
enum { OWN_FULL = 0, FULL = 1, EMPTY = FULL + STAGES };
DEVICE u32 barrier_at(u32 shared, int number) { return shared + BARRIERS_AT + 8 * number; }
DEVICE u32 stage_at(u32 shared, int stage) { return shared + STAGES_AT + stage * STAGE; }

/* The block: its group of keys, and its first key. */
struct place {
    int lot, batch, group, key;
    slope_range tiles; /* of queries */
};

DEVICE place place_of(const backward_hopper_args &args)
{
    const int local = (int)(blockIdx.x / (u32)args.blocks);
    place p;
    p.lot = args.lot + local;
    p.batch = p.lot / args.at.of.groups;
    p.group = p.lot - p.batch * args.at.of.groups;
    p.key = (args.first_block + (int)blockIdx.x - local * args.blocks) * SLOPE_BLOCK_TILES * SLOPE_TILE;
    p.tiles = slope_query_tiles(&args.counts, p.key, SLOPE_BLOCK_TILES * SLOPE_TILE);
    return p;
}

DEVICE void load_all(const backward_hopper_args &args, const place &p, u32 shared)
{
    const int ratio = args.at.of.ratio;
    pipeline to = {0, 0};
    barrier_expect(barrier_at(shared, OWN_FULL), GROUPS * OWN_BYTES);
#pragma unroll 1
    for (int g = 0; g < GROUPS; g++) {
        const u32 own = shared + g * OWN_BYTES;
        load_rows<X_BYTES>(args.k, own, barrier_at(shared, OWN_FULL), p.key + g * SLOPE_TILE, p.group, p.batch);
        load_rows<Y_BYTES>(args.v, own + X_BYTES, barrier_at(shared, OWN_FULL), p.key + g * SLOPE_TILE, p.group, p.batch);
    }
#pragma unroll 1
    for (int h = 0; h < ratio; h++) {
        const int head = p.group * ratio + h;
        const i64 states = ((i64)p.lot * ratio + h) * args.padded;
#pragma unroll 1
        for (int tile = p.tiles.begin; tile < p.tiles.end; tile++) {
            const u32 full = barrier_at(shared, FULL + to.stage), stage = stage_at(shared, to.stage);
            const u32 state = shared + STATES_AT + to.stage * 2 * STATE;
            barrier_wait(barrier_at(shared, EMPTY + to.stage), to.parity ^ 1);
            barrier_expect(full, STAGE + 2 * STATE);
            load_rows<X_BYTES>(args.q, stage, full, tile * SLOPE_TILE, head, p.batch);
            load_bytes(state, args.lse + states + tile * SLOPE_TILE, full, STATE);
            load_rows<Y_BYTES>(args.dout, stage + X_BYTES, full, tile * SLOPE_TILE, head, p.batch);
            load_bytes(state + STATE, args.delta + states + tile * SLOPE_TILE, full, STATE);
            advance<STAGES>(to);
        }
    }
}

/* A computing group. */
struct consumer {
    u32 shared;
    int group, key; /* its first key */
    u64 x, y;       /* its operands */
    pipeline at;
    slope_range queries[2]; /* that see the thread's keys, 8 apart */
};

/* Frees the current stage, when no product is under way. */
DEVICE void release_stage(consumer &w)
{
    release(barrier_at(w.shared, EMPTY + w.at.stage));
    advance<STAGES>(w.at);
}

template <int BYTES> DEVICE void multiply(f32 (&sums)[SLOPE_TILE / 2], u64 own, u64 other)
{
#pragma unroll
    for (int d = 0; d < BYTES / CHUNK_BYTES * 4; d++) {
        const int at = (d / 4 * CHUNK_BYTES + d % 4 * 32) / 16;
        product_of_tiles(sums, own + at, other + at, d > 0);
    }
    wgmma_commit();
}

/* Reads the numbers of a thread's two queries of columns 8 g to 8 g + 7. */
DEVICE void read_pair(u32 state, int g, f32 (&to)[2]) { read_floats(to, state + (8 * g + threadIdx.x % 4 * 2) * 4); }

/* Converts scores to weights; if GUARDED, those of pairs that do not count to UNCOUNTED. The lse of a query that saw no key or
 * does not exist is -infinity. */
template <bool GUARDED>
DEVICE void weigh(const backward_hopper_args &args, const consumer &w, u32 lse, int tile, f32 (&score)[SLOPE_TILE / 2])
{
    const f32 scale = args.at.log2_scale;
#pragma unroll
    for (int g = 0; g < SLOPE_TILE / 8; g++) {
        f32 level[2];
        read_pair(lse, g, level);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            f32 &one = score[4 * g + i];
            const int query = tile * SLOPE_TILE + 8 * g + threadIdx.x % 4 * 2 + i % 2;
            const slope_range seen = w.queries[i / 2];
            one = exp2_of(fmaf(one, scale, -level[i % 2]));
            if (GUARDED)
                one = query >= seen.begin && query < seen.end && level[i % 2] != -INFINITE ? one : UNCOUNTED;
        }
    }
}

/* Converts `along` to slopes. */
template <bool GUARDED>
DEVICE void find_slopes(u32 deltas, const f32 (&weights)[SLOPE_TILE / 2], f32 (&along)[SLOPE_TILE / 2])
{
#pragma unroll
    for (int g = 0; g < SLOPE_TILE / 8; g++) {
        f32 delta[2];
        read_pair(deltas, g, delta);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            f32 &one = along[4 * g + i];
            one = weights[4 * g + i] * (one - delta[i % 2]);
            if (GUARDED)
                one = counts(weights[4 * g + i]) ? one + 0.0f : UNCOUNTED; /* adding 0 converts -0 */
        }
    }
}

/* Rounds numbers to 16 bits, which makes them left operands. If GUARDED, a number that counts and rounds to -0 becomes 0. */
template <bool GUARDED> DEVICE void pack_pairs(const f32 (&from)[SLOPE_TILE / 2], u32 (&to)[SLOPE_TILE / 4])
{
#pragma unroll
    for (int i = 0; i < SLOPE_TILE / 4; i++) {
        const u32 both = narrow_pair(from[2 * i], from[2 * i + 1]);
        to[i] = !GUARDED ? both
                         : (counts(from[2 * i]) && (both & 0xFFFF) == UNCOUNTED_BITS ? 0 : both & 0xFFFF) |
                               (counts(from[2 * i + 1]) && both >> 16 == UNCOUNTED_BITS ? 0 : both & 0xFFFF0000u);
    }
}

/* Returns whether one of the group's products is NaN or infinite: if a row of the tile is not finite, its products with all keys
 * or values are. */
DEVICE bool has_nonfinite(const consumer &w, const f32 (&products)[SLOPE_TILE / 2])
{
    bool found = false;
#pragma unroll
    for (int i = 0; i < SLOPE_TILE / 2; i++)
        found = found || !(fabsf(products[i]) < INFINITE);
    return group_any(GROUP_BARRIER + w.group, 128, found);
}

/* As add_tile, row by row without those whose weight is UNCOUNTED, for tiles with rows that are not finite. */
template <int N> DEVICE void add_counted(f32 (&sums)[N], const u32 (&weights)[SLOPE_TILE / 4], u32 rows)
{
    u32 mine[SLOPE_TILE / 4];
    for (int i = 0; i < SLOPE_TILE / 4; i++)
        mine[i] = weights[i];
#pragma unroll 1
    for (int row = 0; row < SLOPE_TILE; row++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const u32 pair = __shfl_sync(0xFFFFFFFFu, mine[row / 8 * 2 + h], row % 8 / 2, 4);
            add_row(sums, h, row % 2 ? pair >> 16 : pair & 0xFFFF, rows, row);
        }
    }
    __syncwarp(); /* all lanes have read the tile before one frees it */
}

template <int N>
DEVICE void add_guarded(f32 (&sums)[N], const u32 (&weights)[SLOPE_TILE / 4], u32 rows, bool is_nonfinite)
{
    if (is_nonfinite) {
        add_counted(sums, weights, rows);
    } else {
        wgmma_begin();
        add_tile(sums, weights, rows);
        wgmma_commit();
        wgmma_wait<0>();
        wgmma_fence_sums(sums);
    }
}

/* Writes a thread's slopes to the workspace: of two keys 64 queries each, of which it has 16, as slope_query_at says. */
DEVICE void write_slopes(u8 *line, const u32 (&slopes)[SLOPE_TILE / 4])
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int h = 0; h < 2; h++) {
#pragma unroll
        for (int part = 0; part < 2; part++) {
            const int at = slope_offset(lane / 4, 32 * part + 8 * (lane % 4)) + h * 8 * 128;
            const u32 *from = slopes + 8 * part + h;
            *(uint4 *)(line + at) = make_uint4(from[0], from[2], from[4], from[6]);
        }
    }
}

/* Whether a query of the tile saw no key or does not exist; the same for all warps. */
DEVICE bool has_blind(u32 lse)
{
    f32 two[2];
    read_floats(two, lse + threadIdx.x % 32 * 8);
    return __any_sync(0xFFFFFFFFu, two[0] == -INFINITE || two[1] == -INFINITE);
}

/* Waits for a tile of queries. Returns whether all its pairs with the group's keys count; `whole` are those whose pairs do by
 * position. */
DEVICE bool await_tile(const consumer &w, int tile, const slope_range &whole)
{
    barrier_wait(barrier_at(w.shared, FULL + w.at.stage), w.at.parity);
    return tile >= whole.begin && tile < whole.end && !has_blind(w.shared + STATES_AT + w.at.stage * 2 * STATE);
}

DEVICE void start_scores(const consumer &w, u32 x, f32 (&score)[SLOPE_TILE / 2], f32 (&along)[SLOPE_TILE / 2])
{
    wgmma_fence_sums(score);
    wgmma_fence_sums(along);
    wgmma_begin();
    multiply<X_BYTES>(score, w.x, tile_of(x, 0));
    multiply<Y_BYTES>(along, w.y, tile_of(x + X_BYTES, 0));
}

/* Adds the contributions of a tile of queries whose pairs all count; `slopes` is where the warp's slopes go. */
DEVICE void add_whole_tile(const backward_hopper_args &args, consumer &w, u8 *slopes, f32 (&dk)[HEAD / 2], f32 (&dv)[VALUES / 2])
{
    const u32 x = stage_at(w.shared, w.at.stage), lse = w.shared + STATES_AT + w.at.stage * 2 * STATE;
    f32 score[SLOPE_TILE / 2], along[SLOPE_TILE / 2];
    u32 left[SLOPE_TILE / 4], right[SLOPE_TILE / 4];
    start_scores(w, x, score, along);
    wgmma_wait<1>();
    wgmma_fence_sums(score);
    weigh<false>(args, w, lse, 0, score);
    pack_pairs<false>(score, left);
    wgmma_begin();
    add_tile(dv, left, x + X_BYTES);
    wgmma_commit();
    wgmma_wait<1>();
    wgmma_fence_sums(along);
    find_slopes<false>(lse + STATE, score, along);
    pack_pairs<false>(along, right);
    write_slopes(slopes, right);
    wgmma_begin();
    add_tile(dk, right, x);
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_fence_sums(dk);
    wgmma_fence_sums(dv);
    release_stage(w);
}

/* As add_whole_tile, for tiles with pairs that do not count. */
DEVICE void add_guarded_tile(const backward_hopper_args &args, consumer &w, int tile, u8 *slopes, f32 (&dk)[HEAD / 2],
                             f32 (&dv)[VALUES / 2])
{
    const u32 x = stage_at(w.shared, w.at.stage), lse = w.shared + STATES_AT + w.at.stage * 2 * STATE;
    f32 score[SLOPE_TILE / 2], along[SLOPE_TILE / 2];
    u32 left[SLOPE_TILE / 4], right[SLOPE_TILE / 4];
    start_scores(w, x, score, along);
    wgmma_wait<0>();
    wgmma_fence_sums(score);
    wgmma_fence_sums(along);
    const bool x_nonfinite = has_nonfinite(w, score), y_nonfinite = has_nonfinite(w, along);
    weigh<true>(args, w, lse, tile, score);
    pack_pairs<true>(score, left);
    find_slopes<true>(lse + STATE, score, along);
    pack_pairs<true>(along, right);
    write_slopes(slopes, right);
    add_guarded(dv, left, x + X_BYTES, y_nonfinite);
    add_guarded(dk, right, x, x_nonfinite);
    release_stage(w);
}

/* The block's tiles of queries: those of the first head, then of the second, ... */
struct walk {
    int head, tile;
};
DEVICE void next_tile(walk &at, const slope_range &tiles)
{
    if (++at.tile == tiles.end) {
        at.tile = tiles.begin;
        at.head++;
    }
}

/* Sums over all tiles of queries. */
DEVICE void add_tiles(const backward_hopper_args &args, const place &p, consumer &w, f32 (&dk)[HEAD / 2], f32 (&dv)[VALUES / 2])
{
    const int ratio = args.at.of.ratio, warp = threadIdx.x / 32 % 4;
    const slope_range mine = slope_query_tiles(&args.counts, w.key, SLOPE_TILE);
    const slope_range whole = slope_whole_tiles(&args.counts, w.key);
    const i64 step = (i64)args.blocks * SLOPE_BLOCK_TILES * args.tiles; /* tiles of a head */
    const i64 number = slope_tile_number((p.lot - args.lot) * ratio, args.blocks * SLOPE_BLOCK_TILES, args.tiles,
                                         w.key / SLOPE_TILE - args.first_block * SLOPE_BLOCK_TILES, 0);
    u8 *slopes = (u8 *)args.slopes + number * SLOPE_TILE_BYTES + warp * 16 * 128;
    walk at = {p.tiles.begin < p.tiles.end ? 0 : ratio, p.tiles.begin};
#pragma unroll 1
    for (; at.head < ratio; next_tile(at, p.tiles)) {
        u8 *to = slopes + (at.head * step + at.tile) * SLOPE_TILE_BYTES;
        if (await_tile(w, at.tile, whole))
            add_whole_tile(args, w, to, dk, dv);
        else if (at.tile >= mine.begin && at.tile < mine.end)
            add_guarded_tile(args, w, at.tile, to, dk, dv);
        else
            release_stage(w);
    }
}

DEVICE void write_sums(const backward_hopper_args &args, const place &p, int key, const f32 (&dk)[HEAD / 2],
                       const f32 (&dv)[VALUES / 2])
{
    const cuda_gradient_args &at = args.at;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int row = key + 8 * h;
        const bool is = row < args.counts.keys;
        IN *to_k = (IN *)at.dk + p.batch * at.dk_stride[0] + p.group * at.dk_stride[1] + row * at.dk_stride[2];
        IN *to_v = (IN *)at.dv + p.batch * at.dv_stride[0] + p.group * at.dv_stride[1] + row * at.dv_stride[2];
        write_row(dk, h, (f32)at.of.scale, is ? to_k : NULL, at.dk_stride[3], at.whole_dk);
        write_row(dv, h, 1.0f, is ? to_v : NULL, at.dv_stride[3], at.whole_dv);
    }
}

DEVICE void compute_all(const backward_hopper_args &args, const place &p, u32 shared, int group)
{
    const u32 own = shared + group * OWN_BYTES;
    consumer w = {shared, group, p.key + group * SLOPE_TILE, tile_of(own, 0), tile_of(own + X_BYTES, 0)};
    const int key = w.key + threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4;
    f32 dk[HEAD / 2] = {}, dv[VALUES / 2] = {};
    for (int h = 0; h < 2; h++)
        w.queries[h] = slope_queries(&args.counts, key + 8 * h);
    barrier_wait(barrier_at(shared, OWN_FULL), 0);
    add_tiles(args, p, w, dk, dv);
    write_sums(args, p, key, dk, dv);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    backward_hopper_keys(const __grid_constant__ backward_hopper_args args)
{
    SHARED_TILES(memory);
    const u32 shared = shared_address(memory);
    const int group = __shfl_sync(0xFFFFFFFFu, (int)threadIdx.x / 128, 0);
    const place p = place_of(args);
    if (threadIdx.x == 0) {
        barrier_init(barrier_at(shared, OWN_FULL), 1);
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
