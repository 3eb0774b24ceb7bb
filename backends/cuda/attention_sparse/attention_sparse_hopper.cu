/* Attention of listed blocks on Hopper's tensor cores. The tiles are those of attention_hopper.cuh, with adjacent keys of one listed
 * block each. A block of keys is split into tiles of WIDTH; of the last one, only the first rows may be valid keys.
 *
 * The loader's first warp walks over the listed blocks. Before it loads a tile, it writes to a slot in shared memory what the next
 * tile is, so that groups know it when they have computed the tile:
 *
 *     loader:  finds tile t + 1; waits for a buffer; writes the unused rows of t + 1 to slot t; loads K and V of tile t
 *     group:   computes tile t; reads slot t
 *
 * The result of a row depends only on its own queries, and on the keys and values that are listed for its block. */
enum { LIST_AT = BARRIERS_AT + 8 * (2 + 4 * STAGES), FIRST_SLOT = SPARSE_HOPPER_SLOTS, NO_TILE = SPARSE_HOPPER_NO_TILE };
enum { RESIDENT = GROUPS == 1 ? sparse_hopper_resident(LIST_AT) : 1 };
enum {
    HELD = WIDTH / 2 + WIDTH / 4 + VALUES / 2, /* registers of scores, weights and sums */
    LOADER_REGISTERS = GROUPS == 3 ? 32 : GROUPS == 2 && HELD > SPARSE_HOPPER_HELD_MANY ? 24 : 40,
    GROUP_REGISTERS = GROUPS == 3 ? 160 : GROUPS == 1 ? 216 : HELD > SPARSE_HOPPER_HELD_MANY ? 240 : 232
};
static_assert(STAGES <= SPARSE_HOPPER_STAGES_MOST, "a slot is read before it is overwritten");

DEVICE void write_slot(u32 shared, int slot, int unused)
{
    asm volatile("st.shared.s32 [%0], %1;" ::"r"(shared + LIST_AT + 4 * slot), "r"(unused) : "memory");
}

/* Returns what a slot contains. For a whole warp, which has read it then. */
DEVICE int read_slot(u32 shared, int slot)
{
    int unused;
    asm volatile("ld.shared.s32 %0, [%1];" : "=r"(unused) : "r"(shared + LIST_AT + 4 * slot) : "memory");
    return __shfl_sync(0xFFFFFFFFu, unused, 0);
}

/* Finds the block's next tile of rows, from `turn` on; returns false after the last. */
DEVICE bool next_rows(const sparse_hopper_args &args, int &turn, tile_rows &at)
{
    const u32 count = (u32)args.of.counts.all_heads * (u32)args.of.counts.blocks;
    for (; (u32)turn * gridDim.x < count; turn++) {
        const u32 index = (u32)hopper_index(&args.of.counts, (int)blockIdx.x, (int)gridDim.x, turn);
        if (index >= count)
            continue;
        at = tile_rows_at<ROWS>(args.list, index);
        if (at.row >= at.end)
            continue;
        turn++;
        return true;
    }
    return false;
}

/* Finds the next tile of keys, and its first key. Returns its unused rows; NO_TILE after the last tile. For a warp. */
DEVICE int find_tile(const cuda_sparse_args &args, const listing &of, walk &w, int &key)
{
    if (w.key >= w.last && !find_next(args, of, w))
        return NO_TILE;
    key = w.key;
    w.key += WIDTH;
    return sparse_hopper_unused(w.last - key, WIDTH);
}

DEVICE void load_queries(const sparse_hopper_args &args, u32 shared, const tile_rows &at, u32 parity, int unused)
{
    barrier_wait(barrier_at(shared, Q_EMPTY), parity);
    write_slot(shared, FIRST_SLOT, unused);
    load_tile(args.of.q, shared, barrier_at(shared, Q_FULL), CHUNKS, Q_CHUNK, at.row, at.head, at.b);
}

DEVICE void load_keys(const sparse_hopper_args &args, u32 shared, const pipeline &to, const tile_rows &at, int key, int slot, int after)
{
    const int group = at.head / args.list.sharers;
    barrier_wait(barrier_at(shared, K_EMPTY + to.stage), to.parity ^ 1);
    write_slot(shared, slot, after);
    load_tile(args.of.k, shared + Q_BYTES + to.stage * K_BYTES, barrier_at(shared, K_FULL + to.stage), CHUNKS, K_CHUNK, key, group,
              at.b);
    barrier_wait(barrier_at(shared, V_EMPTY + to.stage), to.parity ^ 1);
    load_tile(args.of.v, shared + V_AT + to.stage * V_BYTES, barrier_at(shared, V_FULL + to.stage), VALUE_CHUNKS, K_CHUNK, key, group,
              at.b);
}

/* For a warp, whose first lane loads. */
DEVICE void load_all(const sparse_hopper_args &args, u32 shared)
{
    const bool is_first = threadIdx.x == 0;
    tile_rows at;
    pipeline to = {0, 0};
    u32 parity = 1;
    int slot = 0;
    for (int turn = 0; next_rows(args, turn, at); parity ^= 1) {
        const listing of = listing_of<ROWS>(args.list, at);
        walk w = walk_of(args.list, of);
        int key = 0, unused = find_tile(args.list, of, w, key);
        if (is_first)
            load_queries(args, shared, at, parity, unused);
        while (unused != NO_TILE) {
            int next = 0;
            __syncwarp();
            const int after = find_tile(args.list, of, w, next);
            if (is_first)
                load_keys(args, shared, to, at, key, slot, after);
            advance(to);
            slot = sparse_hopper_next_slot(slot);
            key = next;
            unused = after;
        }
        __syncwarp();
    }
}

/* Returns what the tile after the last one is. */
DEVICE int next_unused(const consumer &w, int &slot)
{
    const int unused = read_slot(w.shared, slot);
    slot = sparse_hopper_next_slot(slot);
    return unused;
}

/* The first tile of keys, then all others. To attention_hopper.cuh, the unused rows of a tile are its first key, and all rows see the
 * keys before WIDTH: so masked tiles exclude their last rows. */
DEVICE void compute_rows(const hopper_args &args, consumer &w, int unused, int &slot, f32 (&sums)[VALUES / 2])
{
    f32 score[WIDTH / 2], correction[2];
    u32 weights[WIDTH / 4];
    if (unused > 0)
        compute_weights<true>(args, w, unused, score, correction);
    else
        compute_weights<false>(args, w, 0, score, correction);
    narrow_weights(score, weights);
    w.add = 0;
    unused = next_unused(w, slot);
    while (unused != NO_TILE && !has_nonfinite_values(w)) {
        if (unused > 0)
            step<true>(args, w, unused, score, weights, sums);
        else
            step<false>(args, w, 0, score, weights, sums);
        unused = next_unused(w, slot);
    }
    for (; unused != NO_TILE; unused = next_unused(w, slot))
        step_serially(args, w, unused, score, weights, sums);
    release(barrier_at(w.shared, Q_EMPTY));
    add_last_values(args, w, sums, weights);
}

/* The tile as attention_hopper.cuh writes it: rows from its end on do not exist. */
DEVICE row_tile written_rows(const tile_rows &at)
{
    row_tile to = {at.b, at.b, at.head, at.row, 0, 0, {}};
    to.counts.queries = at.end;
    return to;
}

DEVICE void compute_all(const sparse_hopper_args &args, u32 shared, int group)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    consumer w;
    tile_rows at;
    u32 parity = 0;
    int slot = 0;
    begin_group(w, shared, group);
    for (int turn = 0; next_rows(args, turn, at); parity ^= 1) {
        f32 sums[VALUES / 2];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            w.r.greatest[h] = NOTHING;
            w.r.sum[h] = 0;
            w.r.from[h] = 0;
            w.r.end[h] = WIDTH;
            w.r.mask[h] = NULL;
        }
        barrier_wait(barrier_at(shared, Q_FULL), parity);
        const int unused = read_slot(shared, FIRST_SLOT);
        if (unused != NO_TILE)
            compute_rows(args.of, w, unused, slot, sums);
        else
            release(barrier_at(shared, Q_EMPTY));
        write_rows(args.of, written_rows(at), at.row + 64 * group + 16 * warp + lane / 4, w.r, sums);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) attention_sparse_hopper(const __grid_constant__ sparse_hopper_args args)
{
    extern __shared__ __align__(1024) u8 memory[];
    const u32 shared = shared_address(memory);
    const int group = __shfl_sync(0xFFFFFFFFu, (int)threadIdx.x / 128, 0);
    begin_barriers(shared);
    if (group == 0) {
        give_registers<LOADER_REGISTERS>();
        if (threadIdx.x < WARP)
            load_all(args, shared);
    } else {
        take_registers<GROUP_REGISTERS>();
        compute_all(args, shared, group - 1);
    }
}
