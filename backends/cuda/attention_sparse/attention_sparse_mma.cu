/* Attention of listed blocks on tensor cores of capability 8.0 and later. A block computes ROWS rows of one block of queries, and
 * visits the listed keys in tiles of WIDTH, which are copied row by row to one of STAGES places while earlier tiles are computed. Each
 * of WARPS warps computes TILES times 16 rows: scores, weights and sums stay in its registers.
 *
 * Turns of a block, for tile t:
 *
 *     all warps    start the copies of tile t + STAGES - 1, to the place of tile t - 1
 *     first warp   finds the keys of tile t + STAGES
 *     all warps    S = Q K', weights of S, sums += P V
 *     all warps    wait for the copies of tile t + 1, then for each other
 *
 * HEAD and VALUES are the head sizes, rounded up to 16; POSITIVE is 1 if the scale is positive. The result of a row depends only on
 * its own queries, on the keys and values that are listed for its block, and on its position. */
enum {
    THREADS = WARPS * WARP,
    WARP_ROWS = SPARSE_ROWS * TILES,
    ROWS = WARP_ROWS * WARPS,
    K_PITCH = (HEAD / DECODE_CHUNK + 1) * 16,
    V_PITCH = (VALUES / DECODE_CHUNK + 1) * 16,
    SLOTS = STAGES + 1, /* tiles whose keys are known */
    HELD = TILES * HEAD <= 128 /* whether queries stay in registers */
};
enum { /* in shared memory */
    STAGES_AT = sparse_places_of(ROWS, WIDTH, STAGES, K_PITCH, V_PITCH).stages,
    STAGE = sparse_places_of(ROWS, WIDTH, STAGES, K_PITCH, V_PITCH).stage,
    STAGE_V_AT = sparse_places_of(ROWS, WIDTH, STAGES, K_PITCH, V_PITCH).values,
    FINDER_AT = sparse_places_of(ROWS, WIDTH, STAGES, K_PITCH, V_PITCH).finder
};
static_assert(STAGES_AT % 16 == 0 && STAGE % 16 == 0 && STAGE_V_AT % 16 == 0, "copies are of 16 bytes");

#define LN_2 0.693147180559945309f

/* A lane's two rows of 16: row lane / 4 and the row 8 after it. `greatest` is of the products, which the scale multiplies unless it
 * is already in them; each lane sums the weights of its own keys. */
struct rows {
    f32 greatest[2], sum[2];
};

/* A warp. All of its existing rows see the keys from `open` to before `shut`; some see those of `seen`. */
struct worker {
    sequence s;
    int head, first, lane;
    u32 q; /* address of its first row */
    reach seen;
    int open, shut;
};

/* The warp's queries as left operands, if HELD; else unused. */
struct queries {
    u32 of[HELD ? HEAD / 16 : 1][TILES][4];
};

DEVICE int next_stage(int stage) { return stage + 1 == STAGES ? 0 : stage + 1; }
DEVICE int next_slot(int slot) { return slot + 1 == SLOTS ? 0 : slot + 1; }

/* Starts copies of COUNT rows of WIDE elements, of which `size` exist; offset_of(row) is the offset from `from`, or ABSENT. What
 * does not exist becomes 0. */
template <int WIDE, int COUNT, typename OFFSET> DEVICE void copy_rows(const IN *from, int size, u32 to, OFFSET offset_of)
{
    enum { CHUNKS = WIDE / DECODE_CHUNK, PITCH = (CHUNKS + 1) * 16 };
#pragma unroll 2 /* more need registers that are not there */
    for (int n = (int)threadIdx.x; n < COUNT * CHUNKS; n += THREADS) {
        const int row = n / CHUNKS, chunk = n % CHUNKS;
        const i64 at = offset_of(row);
        const bool is = at != ABSENT && chunk * DECODE_CHUNK < size;
        copy_ahead(to + row * PITCH + chunk * 16, from + (is ? at + chunk * DECODE_CHUNK : 0), is ? 16 : 0);
    }
}

DEVICE void copy_queries(const cuda_sparse_args &args, const tile_rows &at, u32 to)
{
    const IN *from = (const IN *)args.of.q + at.b * args.of.q_stride[0] + at.head * args.of.q_stride[1];
    copy_rows<HEAD, ROWS>(from, args.of.size, to, [&](int row) -> i64 {
        return at.row + row < at.end ? (at.row + row) * args.of.q_stride[2] : ABSENT;
    });
}

/* Starts copies of the keys and values of a tile, and ends a group of copies. */
DEVICE void copy_tile(const cuda_sparse_args &args, const tile_rows &at, const int *keys, u32 to)
{
    const cuda_attention_args &of = args.of;
    const int group = at.head / args.sharers;
    const IN *k = (const IN *)of.k + at.b * of.k_stride[0] + group * of.k_stride[1];
    const IN *v = (const IN *)of.v + at.b * of.v_stride[0] + group * of.v_stride[1];
    if (keys[0] != NO_KEY) {
        copy_rows<HEAD, WIDTH>(k, of.size, to, [&](int row) -> i64 {
            return keys[row] == NO_KEY ? ABSENT : keys[row] * of.k_stride[2];
        });
        copy_rows<VALUES, WIDTH>(v, of.value_size, to + STAGE_V_AT, [&](int row) -> i64 {
            return keys[row] == NO_KEY ? ABSENT : keys[row] * of.v_stride[2];
        });
    }
    copy_commit();
}

DEVICE void read_query_step(const worker &w, int step, u32 (&out)[TILES][4])
{
#pragma unroll
    for (int t = 0; t < TILES; t++)
        read_matrices(out[t], w.q + t * SPARSE_ROWS * K_PITCH + decode_values_at(K_PITCH, w.lane, step));
}

/* Computes the products of the warp's queries with the keys of a tile. */
DEVICE void multiply_keys(const worker &w, const queries &q, u32 k_at, f32 (&score)[TILES][WIDTH / 8][4])
{
#pragma unroll
    for (int d = 0; d < HEAD / 16; d++) {
        u32 left[TILES][4];
        if (HELD)
            memcpy(left, q.of[HELD ? d : 0], sizeof left);
        else
            read_query_step(w, d, left);
#pragma unroll
        for (int j = 0; j < WIDTH / 16; j++) {
            u32 k[4];
            read_matrices(k, k_at + j * 16 * K_PITCH + decode_keys_at(K_PITCH, w.lane, d));
#pragma unroll
            for (int t = 0; t < TILES; t++) {
                add_product(score[t][2 * j], left[t], k[0], k[1]);
                add_product(score[t][2 * j + 1], left[t], k[2], k[3]);
            }
        }
    }
}

/* Converts the products of 16 rows, from `row` on, with a tile's keys to weights. If GUARDED, those of keys that a row does not see,
 * and of slots without a key, are UNCOUNTED. `less` receives the factors for the sums so far. */
template <bool GUARDED>
DEVICE void weigh(const cuda_sparse_args &args, const worker &w, int row, const int *keys, rows &r, f32 (&score)[WIDTH / 8][4],
                  f32 (&less)[2])
{
    const f32 scale = POSITIVE ? args.log2_scale : 1.0f;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        f32 high = r.greatest[h], sum = 0;
        u32 hidden = 0;
        view v = {};
        if (GUARDED)
            v = view_of(args.of, w.s, w.head, row + h * 8 + w.lane / 4);
#pragma unroll
        for (int i = 0; i < WIDTH / 4; i++) {
            f32 &one = score[i / 2][2 * h + i % 2];
            if (!POSITIVE)
                one *= args.log2_scale;
            if (GUARDED) {
                const int key = keys[i / 2 * 8 + w.lane % 4 * 2 + i % 2];
                const bool is_hidden = key < v.from || key >= v.end;
                one = is_hidden ? nothing() : one;
                hidden |= (u32)is_hidden << i;
            }
            high = fmaxf(high, one);
        }
        high = fmaxf(high, __shfl_xor_sync(0xFFFFFFFFu, high, 1));
        high = fmaxf(high, __shfl_xor_sync(0xFFFFFFFFu, high, 2));
        const f32 level = level_of(high) * scale;
        less[h] = exp2_of(fmaf(r.greatest[h], scale, -level));
#pragma unroll
        for (int i = 0; i < WIDTH / 4; i++) {
            f32 &one = score[i / 2][2 * h + i % 2];
            one = exp2_of(fmaf(one, scale, -level));
            sum += one;
            if (GUARDED)
                one = hidden >> i & 1 ? UNCOUNTED : one;
        }
        r.greatest[h] = high;
        r.sum[h] = r.sum[h] * less[h] + sum;
    }
}

/* Multiplies the sums by the factors of their rows, if one of them is not 1. */
DEVICE void rescale(const f32 (&less)[TILES][2], f32 (&sums)[TILES][VALUES / 8][4])
{
    bool changed = false;
#pragma unroll
    for (int t = 0; t < TILES; t++)
        changed = changed || less[t][0] != 1 || less[t][1] != 1;
    if (!__any_sync(0xFFFFFFFFu, changed))
        return;
#pragma unroll
    for (int t = 0; t < TILES; t++) {
#pragma unroll
        for (int i = 0; i < VALUES / 2; i++)
            sums[t][i / 4][i % 4] *= less[t][i % 4 / 2];
    }
}

/* Adds a tile to the warp's rows. Without GUARDED, all of them see all of its keys, and no slot is without a key. A value that is
 * not finite must not be multiplied by the weight of a key that a row does not see: then values are added key by key. */
template <bool GUARDED>
DEVICE void add_keys(const cuda_sparse_args &args, const worker &w, const queries &q, const u8 *stage, const int *keys,
                     rows (&r)[TILES], f32 (&sums)[TILES][VALUES / 8][4])
{
    f32 score[TILES][WIDTH / 8][4] = {}, less[TILES][2];
    u32 weights[WIDTH / 16][TILES][4];
    const u8 *values = stage + STAGE_V_AT;
    multiply_keys(w, q, shared_address(stage), score);
#pragma unroll
    for (int t = 0; t < TILES; t++)
        weigh<GUARDED>(args, w, w.first + t * SPARSE_ROWS, keys, r[t], score[t], less[t]);
    rescale(less, sums);
#pragma unroll
    for (int i = 0; i < TILES * WIDTH / 4; i++) {
        const f32(&one)[4] = score[i / (WIDTH / 4)][i % (WIDTH / 4) / 2];
        weights[i % (WIDTH / 4) / 4][i / (WIDTH / 4)][i % 4] = narrow_pair(one[i % 2 * 2], one[i % 2 * 2 + 1]);
    }
    if (GUARDED && find_nonfinite<VALUES, WIDTH>(values, V_PITCH, w.lane)) {
#pragma unroll
        for (int j = 0; j < WIDTH / 16; j++)
            add_counted_rows<VALUES, TILES>(values + j * 16 * V_PITCH, V_PITCH, w.lane, weights[j], sums);
        return;
    }
#pragma unroll
    for (int j = 0; j < WIDTH / 16; j++)
        add_rows<VALUES, TILES>(shared_address(values) + j * 16 * V_PITCH, V_PITCH, w.lane, weights[j], sums);
}

/* As add_keys; skips a tile of which the warp's rows see nothing. */
DEVICE void add_tile(const cuda_sparse_args &args, const worker &w, const queries &q, const u8 *stage, const int *keys, int count,
                     rows (&r)[TILES], f32 (&sums)[TILES][VALUES / 8][4])
{
    const int low = keys[0], high = keys[count - 1];
    if (low >= w.seen.end || high < w.seen.from)
        return;
    if (count == WIDTH && low >= w.open && high < w.shut)
        add_keys<false>(args, w, q, stage, keys, r, sums);
    else
        add_keys<true>(args, w, q, stage, keys, r, sums);
}

/* Writes a row's sums times a factor, and its lse. */
DEVICE void write_row(const cuda_sparse_args &args, const worker &w, int query, f32 greatest, f32 sum, const f32 (&sums)[VALUES / 8][4],
                      int h)
{
    const cuda_attention_args &of = args.of;
    const view v = {query, w.head, 0, 0};
    const bool none = greatest == nothing() && sum == 0;
    const f32 factor = none ? -1.0f : 1 / sum, level = level_of(greatest) * (POSITIVE ? args.log2_scale : 1.0f);
    OUT *out = (OUT *)of.out + query_at(w.s, v, of.out_stride);
    if (of.lse && w.lane % 4 == 0)
        ((f32 *)of.lse)[query_at(w.s, v, of.lse_stride)] = none ? nothing() : (level + log2f(sum)) * LN_2;
#pragma unroll
    for (int g = 0; g < VALUES / 8; g++) {
        const int column = 8 * g + w.lane % 4 * 2;
        pack<OUT, 2> both;
#pragma unroll
        for (int e = 0; e < 2; e++)
            both.of[e] = narrowed<OUT>(value_of(sums[g][2 * h + e], factor));
        if (column >= of.value_size)
            continue;
        if (of.whole_out) {
            *(pack<OUT, 2> *)(out + column) = both;
        } else {
            out[column * of.out_stride[3]] = both.of[0];
            out[(column + 1) * of.out_stride[3]] = both.of[1];
        }
    }
}

DEVICE void write_rows(const cuda_sparse_args &args, const worker &w, const rows (&r)[TILES], const f32 (&sums)[TILES][VALUES / 8][4])
{
#pragma unroll
    for (int t = 0; t < TILES; t++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int query = w.first + t * SPARSE_ROWS + h * 8 + w.lane / 4;
            f32 sum = r[t].sum[h];
            sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
            sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 2);
            if (query < w.s.queries)
                write_row(args, w, query, r[t].greatest[h], sum, sums[t], h);
        }
    }
}

DEVICE worker worker_of(const cuda_sparse_args &args, const sequence &s, const tile_rows &at, u32 shared)
{
    const int warp = (int)threadIdx.x / WARP, first = at.row + warp * WARP_ROWS, last = first + WARP_ROWS - 1;
    worker w = {s, at.head, first, (int)threadIdx.x % WARP, shared + warp * WARP_ROWS * K_PITCH};
    if (first < s.queries) { /* else it sees nothing */
        w.seen = reach_of(args.of, s, at.head, first, WARP_ROWS);
        w.open = view_of(args.of, s, at.head, last < s.queries ? last : s.queries - 1).from;
        w.shut = view_of(args.of, s, at.head, first).end;
    }
    return w;
}

/* What the first warp needs to find keys, in shared memory: its registers are scarce. */
struct finder {
    listing of;
    walk walks[WARP];
    int keys[SLOTS][WIDTH], counts[SLOTS];
};
static_assert(sizeof(finder) == SPARSE_FINDER(STAGES, WIDTH), "the host reserves this");

/* Finds the keys of the next tile. For the first warp. */
DEVICE void find_keys(const cuda_sparse_args &args, finder &f, int slot)
{
    walk w = f.walks[threadIdx.x];
    const int count = next_keys<WIDTH>(args, f.of, w, f.keys[slot]);
    f.walks[threadIdx.x] = w;
    if (threadIdx.x == 0)
        f.counts[slot] = count;
}

/* Finds the keys of the first STAGES tiles. For the first warp. */
DEVICE void begin_finder(const cuda_sparse_args &args, const tile_rows &at, finder &f)
{
    const listing of = listing_of<ROWS>(args, at);
    if (threadIdx.x == 0)
        f.of = of;
    f.walks[threadIdx.x] = walk_of(args, of);
    __syncwarp();
    for (int slot = 0; slot < STAGES; slot++)
        find_keys(args, f, slot);
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) attention_sparse_mma(const cuda_sparse_args args)
{
    SHARED_MEMORY(memory);
    finder &f = *(finder *)(memory + FINDER_AT);
    const u32 shared = shared_address(memory);
    const tile_rows at = tile_rows_of<ROWS>(args);
    if (at.row >= at.end)
        return;
    const worker w = worker_of(args, sequence_of_tile(args, at), at, shared);
    const bool is_first = threadIdx.x < WARP;
    if (is_first)
        begin_finder(args, at, f);
    __syncthreads();
    copy_queries(args, at, shared);
    for (int i = 0; i < STAGES - 1; i++)
        copy_tile(args, at, f.keys[i], shared + STAGES_AT + i * STAGE);
    queries q;
    rows r[TILES];
    f32 sums[TILES][VALUES / 8][4] = {};
#pragma unroll
    for (int i = 0; i < 2 * TILES; i++) {
        r[i / 2].greatest[i % 2] = nothing();
        r[i / 2].sum[i % 2] = 0;
    }
    copy_wait<STAGES - 2>();
    __syncthreads();
#pragma unroll
    for (int d = 0; d < (HELD ? HEAD / 16 : 0); d++)
        read_query_step(w, d, q.of[d]);
    int slot = 0, ahead = STAGES - 1, found = STAGES, stage = 0, unused = STAGES - 1;
    while (f.counts[slot] > 0) {
        copy_tile(args, at, f.keys[ahead], shared + STAGES_AT + unused * STAGE);
        if (is_first)
            find_keys(args, f, found);
        add_tile(args, w, q, memory + STAGES_AT + stage * STAGE, f.keys[slot], f.counts[slot], r, sums);
        slot = next_slot(slot);
        ahead = next_slot(ahead);
        found = next_slot(found);
        unused = stage;
        stage = next_stage(stage);
        copy_wait<STAGES - 2>();
        __syncthreads();
    }
    copy_wait<0>();
    write_rows(args, w, r, sums);
}
