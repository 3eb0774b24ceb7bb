/* Backward pass of attention on tensor cores of capability 8.0 and later. One kernel computes dQ, another one dK and dV (OF_KEYS);
 * if heads have more than 128 elements, dK and dV have a kernel each. A block computes the gradients of SIDE rows, which are
 * called its own: queries for dQ, else keys. It loops over the rows of the other side in tiles of WIDTH rows, and copies each tile
 * to shared memory while it computes the one before. Each warp computes the gradients of 16 own rows, so one thread sums each
 * gradient in a fixed order. The price is that each kernel computes the scores again.
 *
 * x stands for Q and K, y for dOut and V. For each tile:
 *
 *     scores = own x . other x',  along = own y . other y'
 *     weights = exp(scores - lse),  slopes = weights (along - delta)
 *     sums of x += slopes . other x (ADD_X),  sums of y += weights . other y (ADD_Y, for keys)
 *
 * Weights and slopes stay in registers, and are rounded to 16 bits to be the left operands of the last products.
 *
 * The kernel for dQ must run first: it writes the state of each row of queries to the workspace, where the kernels for keys read
 * it.
 *
 * HEAD and VALUES are the head sizes, rounded up to 16; HELD is 1 if the own operands stay in registers; DROPOUT says whether
 * weights are dropped. */
enum {
    THREADS = WARPS * WARP,
    WARP_ROWS = 16,
    SIDE = WARP_ROWS * WARPS,
    X_PITCH = (HEAD / DECODE_CHUNK + 1) * 16,
    Y_PITCH = (VALUES / DECODE_CHUNK + 1) * 16,
    OWN_Y_AT = SIDE * X_PITCH,
    STAGES_AT = OWN_Y_AT + SIDE * Y_PITCH,
    STAGE_Y_AT = WIDTH * X_PITCH,
    STAGE_STATES_AT = STAGE_Y_AT + WIDTH * Y_PITCH,
    STAGE = STAGE_STATES_AT + WIDTH * BACKWARD_STATE,
    OWN_STATES_AT = STAGES_AT + BACKWARD_STAGES * STAGE,
    PER_ROW = THREADS / SIDE /* threads that share a row's dot product */
};
static_assert(STAGE % 16 == 0 && STAGES_AT % 16 == 0, "copies are of 16 bytes");
static_assert(PER_ROW == 2, "a row's threads add their sums by one exchange");

static_assert(sizeof(state) == BACKWARD_STATE, "the host reserves this for each row");

/* A warp: its first own row, and the addresses of that row's x and y in shared memory. */
struct worker {
    sequence s;
    int group, lane, first;
    u32 x, y;
    bool none; /* for dQ: one of the 16 rows saw no key */
    state of[2]; /* for dQ: of rows lane / 4 and lane / 4 + 8 */
};

/* The warp's own rows as left operands in registers, if HELD; else unused. */
struct own_rows {
    u32 x[HELD ? HEAD / 16 : 1][4], y[HELD ? VALUES / 16 : 1][4];
};

/* Starts copies to shared memory of COUNT rows, from row `first` on: rows of K and Q, or of V and dOut if Y. offset_of(row) is the
 * row's offset from `from`. Rows from `end` on and elements from `size` on become 0. */
template <bool Y, int COUNT, typename OFFSET>
DEVICE void copy_rows(const IN *from, int size, int first, int end, u32 to, OFFSET offset_of)
{
    enum { CHUNKS = (Y ? VALUES : HEAD) / DECODE_CHUNK, PITCH = Y ? Y_PITCH : X_PITCH };
#pragma unroll
    for (int n = (int)threadIdx.x; n < COUNT * CHUNKS; n += THREADS) {
        const int row = n / CHUNKS, chunk = n % CHUNKS;
        const bool is = first + row < end && chunk * DECODE_CHUNK < size;
        copy_ahead(to + row * PITCH + chunk * 16, from + (is ? offset_of(first + row) + chunk * DECODE_CHUNK : 0), is ? 16 : 0);
    }
}

/* Starts copies of rows of K, or of V if Y. */
template <bool Y, int COUNT> DEVICE void copy_keys(const cuda_gradient_args &args, const worker &w, int first, u32 to)
{
    const cuda_attention_args &of = args.of;
    const long long *stride = Y ? of.v_stride : of.k_stride;
    const IN *from = (const IN *)(Y ? of.v : of.k) + key_at(of, w.s, w.group, 0, stride);
    copy_rows<Y, COUNT>(from, Y ? of.value_size : of.size, first, w.s.keys, to, [=](int row) { return row * stride[2]; });
}

/* Starts copies of rows of Q, or of dOut if Y: the rows of all heads that share keys, numbered as in cuda_attention_args. */
template <bool Y, int COUNT> DEVICE void copy_queries(const cuda_gradient_args &args, const worker &w, int first, u32 to)
{
    const cuda_attention_args &of = args.of;
    const long long *stride = Y ? args.dout_stride : of.q_stride;
    const IN *from = (const IN *)(Y ? args.dout : of.q);
    const int size = Y ? of.value_size : of.size, end = w.s.queries * of.ratio;
    if (of.ratio == 1) { /* offsets need no division */
        const view start = {0, w.group, 0, 0};
        copy_rows<Y, COUNT>(from + query_at(w.s, start, stride), size, first, end, to,
                            [=](int row) { return row * stride[2]; });
    } else {
        copy_rows<Y, COUNT>(from, size, first, end, to,
                            [&](int row) { return query_at(w.s, view_of(of, w.s, w.group, row), stride); });
    }
}

/* Starts copies of the states of WIDTH rows, which are contiguous. */
DEVICE void copy_states(const cuda_gradient_args &args, const worker &w, int first, u32 to)
{
    const i64 lot = (i64)w.s.b * args.of.groups + w.group;
    const state *from = (const state *)args.delta + lot * args.padded_rows + first;
    if (threadIdx.x < WIDTH * sizeof(state) / 16)
        copy_ahead(to + threadIdx.x * 16, (const u8 *)from + threadIdx.x * 16, 16);
}

/* Starts copies of the block's own rows. They belong to the group that the next copy_tile ends. */
DEVICE void copy_own(const cuda_gradient_args &args, const worker &w, int first, u32 shared)
{
    if (OF_KEYS) {
        copy_keys<false, SIDE>(args, w, first, shared);
        copy_keys<true, SIDE>(args, w, first, shared + OWN_Y_AT);
    } else {
        copy_queries<false, SIDE>(args, w, first, shared);
        copy_queries<true, SIDE>(args, w, first, shared + OWN_Y_AT);
    }
}

/* Starts copies of the tile of the other side that begins with row `first`, if that is before `end`, and ends a group of copies. */
DEVICE void copy_tile(const cuda_gradient_args &args, const worker &w, int first, int end, u32 stage)
{
    if (first < end && OF_KEYS) {
        copy_queries<false, WIDTH>(args, w, first, stage);
        copy_queries<true, WIDTH>(args, w, first, stage + STAGE_Y_AT);
        copy_states(args, w, first, stage + STAGE_STATES_AT);
    } else if (first < end) {
        copy_keys<false, WIDTH>(args, w, first, stage);
        copy_keys<true, WIDTH>(args, w, first, stage + STAGE_Y_AT);
    }
    copy_commit();
}

/* Computes the states of the block's own rows of queries and writes them to the workspace and to `to`. A row that does not exist
 * has the lse -infinity in the workspace, so its weights are UNCOUNTED in the kernels for keys. In `to`, its lse is 0: its
 * gradient is not written, and with -infinity the warp would check each pair of a query and a key. */
DEVICE void make_states(const cuda_gradient_args &args, const worker &w, int first, state *to)
{
    const cuda_attention_args &of = args.of;
    const int row = (int)threadIdx.x / PER_ROW;
    const view v = view_of(of, w.s, w.group, first + row);
    const bool is = v.query < w.s.queries;
    state mine = {nothing(), 0}, absent = {0, 0};
    if (is)
        mine = state_of<PER_ROW>(args, w.s, v, (int)threadIdx.x % PER_ROW);
    mine.delta += __shfl_xor_sync(0xFFFFFFFFu, mine.delta, 1);
    if (threadIdx.x % PER_ROW != 0)
        return;
    const i64 lot = (i64)w.s.b * of.groups + w.group;
    ((state *)args.delta)[lot * args.padded_rows + first + row] = mine;
    to[row] = is ? mine : absent;
}

/* Reads the states of the warp's own rows of queries to registers. */
DEVICE void read_states(worker &w, const state *from)
{
    bool none = false;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        w.of[i] = from[i * 8 + w.lane / 4];
        none = none || w.of[i].lse == nothing();
    }
    w.none = __any_sync(0xFFFFFFFFu, none);
}

/* Reads the warp's own rows of x or y to registers, as left operands. */
template <int PITCH, int N> DEVICE void hold(const worker &w, u32 from, u32 (&to)[N][4])
{
#pragma unroll
    for (int i = 0; i < N; i++)
        read_matrices(to[i], from + decode_values_at(PITCH, w.lane, i));
}

/* sums += own rows . WIDTH rows of the other side. */
template <int SIZE, int PITCH, int N>
DEVICE void multiply(const worker &w, u32 own, const u32 (&kept)[N][4], u32 other, f32 (&sums)[WIDTH / 8][4])
{
#pragma unroll
    for (int d = 0; d < SIZE / 16; d++) {
        u32 left[4];
        if (HELD)
            memcpy(left, kept[HELD ? d : 0], sizeof left);
        else
            read_matrices(left, own + decode_values_at(PITCH, w.lane, d));
#pragma unroll
        for (int j = 0; j < WIDTH / 16; j++) {
            u32 right[4];
            read_matrices(right, other + j * 16 * PITCH + decode_keys_at(PITCH, w.lane, d));
            add_product(sums[2 * j], left, right[0], right[1]);
            add_product(sums[2 * j + 1], left, right[2], right[3]);
        }
    }
}

/* The rows of the other side that the i-th own row of a lane sees by its position, or that see it. */
DEVICE backward_range range_of_row(const cuda_attention_args &of, const worker &w, int i)
{
    const int own = w.first + i * 8 + w.lane / 4;
    if (OF_KEYS) {
        const backward_bounds bounds = {of.left, of.right, of.shift, w.s.queries, w.s.keys, of.bottom};
        const backward_range queries = backward_queries(&bounds, own, 1);
        return {queries.begin * of.ratio, queries.end * of.ratio};
    }
    const view v = view_of(of, w.s, w.group, own);
    return {v.from, v.end};
}

/* Converts scores to weights. If BOUNDED, those of pairs that do not count by their position, or because the row saw nothing, are
 * UNCOUNTED. `at` is the first row of the other side. */
template <bool BOUNDED>
DEVICE void weigh(const cuda_gradient_args &args, const worker &w, int at, const state *states, f32 (&score)[WIDTH / 8][4])
{
    const f32 scale = args.log2_scale;
    backward_range seen[2];
#pragma unroll
    for (int i = 0; i < (BOUNDED ? 2 : 0); i++)
        seen[i] = range_of_row(args.of, w, i);
#pragma unroll
    for (int j = 0; j < WIDTH / 8; j++) {
        const int column = 8 * j + w.lane % 4 * 2;
        pack<f32, 4> both = {};
        if (OF_KEYS)
            both = *(const pack<f32, 4> *)(states + column);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const f32 lse = OF_KEYS ? both.of[i % 2 * 2] : w.of[i / 2].lse;
            const int other = at + column + i % 2;
            f32 &one = score[j][i];
            one = exp2_of(fmaf(one, scale, -lse));
            if (BOUNDED)
                one = other >= seen[i / 2].begin && other < seen[i / 2].end && lse != nothing() ? one : UNCOUNTED;
        }
    }
}

/* Converts `along` to slopes; those of weights that do not count are UNCOUNTED if BOUNDED. */
template <bool BOUNDED>
DEVICE void find_slopes(const worker &w, const state *states, const f32 (&weights)[WIDTH / 8][4], f32 (&along)[WIDTH / 8][4])
{
#pragma unroll
    for (int j = 0; j < WIDTH / 8; j++) {
        pack<f32, 4> both = {};
        if (OF_KEYS)
            both = *(const pack<f32, 4> *)(states + 8 * j + w.lane % 4 * 2);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const f32 delta = OF_KEYS ? both.of[i % 2 * 2 + 1] : w.of[i / 2].delta;
            const f32 weight = weights[j][i];
            f32 &one = along[j][i];
            one = weight * (one - delta);
            if (BOUNDED)
                one = counts(weight) ? one + 0.0f : UNCOUNTED; /* adding 0 converts -0 */
        }
    }
}

#if DROPOUT
#define DICE , dice &d
#define THROW , d
#else
#define DICE
#define THROW
#endif

/* Computes the weight and the slope of one pair of a query and a key, with masks, softcap and dropout. On entry, `score` is the
 * product of q and k and `along` that of dOut and v; on return, `score` is the weight, as dV uses it, and `along` the slope. If the
 * key is excluded or the row saw no key, both are UNCOUNTED. If dropout drops the weight, only the weight is UNCOUNTED: the slope
 * also depends on delta. */
DEVICE void weigh_pair(const cuda_attention_args &of, const worker &w, const view &v, int key, const state &row, f32 &score,
                       f32 &along DICE)
{
    const f32 product = score;
    f32 share = along, slope = 1;
    bool seen;
    score = score_of(of, w.s, v, key, product, seen);
    const f32 weight = exp2_of(fmaf(score, LOG2_E, -row.lse));
    seen = seen && row.lse != nothing();
    if (of.softcap != 0) {
        const f32 turned = of_tanh(product * (f32)of.scale / (f32)of.softcap);
        slope = 1 - turned * turned;
    }
    score = weight;
#if DROPOUT
    const f32 gain = seen && keeps(of, w.s, v, key, d) ? 1 / (f32)of.kept : 0.0f;
    score = gain == 0 ? UNCOUNTED : weight * gain;
    share = gain == 0 ? 0.0f : along * gain;
#endif
    score = seen ? score : UNCOUNTED;
    along = seen ? weight * (share - row.delta) * slope + 0.0f : UNCOUNTED; /* adding 0 converts -0 */
}

/* Calls weigh_pair for each pair of an own row and a row of the tile that the lane has. */
DEVICE void weigh_guarded(const cuda_gradient_args &args, const worker &w, int at, const state *states,
                          f32 (&score)[WIDTH / 8][4], f32 (&along)[WIDTH / 8][4])
{
#pragma unroll
    for (int n = 0; n < (OF_KEYS ? WIDTH / 4 : 2); n++) {
        const int own = OF_KEYS ? 0 : w.first + n * 8 + w.lane / 4;
        const int other = n / 2 * 8 + w.lane % 4 * 2 + n % 2;
        const view v = view_of(args.of, w.s, w.group, OF_KEYS ? at + other : own);
        const state row = OF_KEYS ? states[other] : w.of[n % 2];
#if DROPOUT
        dice d = {};
#endif
#pragma unroll
        for (int i = 0; i < (OF_KEYS ? 2 : WIDTH / 4); i++) {
            const int key = OF_KEYS ? w.first + i * 8 + w.lane / 4 : at + i / 2 * 8 + w.lane % 4 * 2 + i % 2;
            const int j = OF_KEYS ? n / 2 : i / 2, e = OF_KEYS ? i * 2 + n % 2 : n * 2 + i % 2;
            weigh_pair(args.of, w, v, key, row, score[j][e], along[j][e] THROW);
        }
    }
}

/* Rounds two numbers to 16 bits. If GUARDED, a number that counts and rounds to -0 becomes 0, as -0 is UNCOUNTED. */
template <bool GUARDED> DEVICE u32 pack_pair(f32 first, f32 second)
{
    const u32 both = narrow_pair(first, second);
    if (!GUARDED)
        return both;
    return (counts(first) && (both & 0xFFFF) == 0x8000 ? 0 : both & 0xFFFF) |
           (counts(second) && both >> 16 == 0x8000 ? 0 : both & 0xFFFF0000u);
}

/* Converts a tile of numbers to left operands of 16 columns each. */
template <bool GUARDED>
DEVICE void pack_columns(const f32 (&from)[WIDTH / 8][4], u32 (&to)[WIDTH / 16][4])
{
#pragma unroll
    for (int i = 0; i < WIDTH / 4; i++) {
        const f32(&one)[4] = from[i / 2];
        to[i / 4][i % 4] = pack_pair<GUARDED>(one[i % 2 * 2], one[i % 2 * 2 + 1]);
    }
}

/* Returns whether one of the warp's products is NaN or infinite. That is certain if a row of the other side has a NaN or an
 * infinity: its products with all own rows are NaN or infinite, as 0 times either is NaN. */
DEVICE bool has_nonfinite(const f32 (&products)[WIDTH / 8][4])
{
    bool found = false;
#pragma unroll
    for (int i = 0; i < WIDTH / 2; i++)
        found = found || !(fabsf(products[i / 4][i % 4]) < -nothing());
    return __any_sync(0xFFFFFFFFu, found);
}

/* sums += weights . rows of the tile, which is at `memory`, in shared memory at `other`. `from` has the weights. If `by_row`, rows
 * whose weight is UNCOUNTED are left out, because they may have NaN or infinity. */
template <int SIZE, int PITCH>
DEVICE void add_columns(const worker &w, const u8 *memory, u32 other, bool by_row, const f32 (&from)[WIDTH / 8][4],
                        f32 (&sums)[SIZE / 8][4])
{
    u32 weights[WIDTH / 16][4];
    if (by_row) {
        pack_columns<true>(from, weights);
#pragma unroll
        for (int j = 0; j < WIDTH / 16; j++)
            add_counted_rows<SIZE, 1>(memory + j * 16 * PITCH, PITCH, w.lane, &weights[j], &sums);
        return;
    }
    pack_columns<false>(from, weights);
#pragma unroll
    for (int j = 0; j < WIDTH / 16; j++)
        add_rows<SIZE, 1>(other + j * 16 * PITCH, PITCH, w.lane, &weights[j], &sums);
}

/* The warp's sums for the gradients of its own rows of x and y. */
struct sums_of {
    f32 x[ADD_X ? HEAD / 8 : 1][4], y[ADD_Y ? VALUES / 8 : 1][4];
};

/* Which pairs of the warp's own rows and a tile's rows count: `none` of them; `all` of them, so no pair must be checked. If
 * neither, pairs must be checked. */
struct sight {
    bool none, all;
};

DEVICE sight sight_of(const cuda_gradient_args &args, const worker &w, const state *states, int at)
{
    const cuda_attention_args &of = args.of;
    const int row = OF_KEYS ? at : w.first, key = OF_KEYS ? w.first : at;
    const int rows = w.s.queries * of.ratio, last = row + (OF_KEYS ? WIDTH : WARP_ROWS) - 1;
    const int end = key + (OF_KEYS ? WARP_ROWS : WIDTH);
    if (row >= rows || key >= w.s.keys)
        return {true, false};
    const view low = view_of(of, w.s, w.group, row), high = view_of(of, w.s, w.group, last < rows ? last : rows - 1);
    const int needed = OF_KEYS && end > w.s.keys ? w.s.keys : end; /* own keys that do not exist need not be seen */
    bool none = w.none;
    if (OF_KEYS) {
        for (int i = w.lane; i < WIDTH; i += WARP)
            none = none || states[i].lse == nothing();
        none = __any_sync(0xFFFFFFFFu, none);
    }
    return {high.end <= key || low.from >= end,
            !DROPOUT && !none && of.mask_kind == 0 && of.softcap == 0 && high.from <= key && low.end >= needed};
}

/* Adds the contributions of a tile to the sums. The tile begins with row `at` of the other side; its rows are at `x` and `y` in
 * shared memory. Without GUARDED, all pairs must count. Then no votes or branches separate the products, so the compiler may
 * overlap the exponentials with the products of y, and the slopes with the sums of y. */
template <bool GUARDED>
DEVICE void add_pairs(const cuda_gradient_args &args, const worker &w, const own_rows &own, const u8 *x, const u8 *y,
                      const state *states, int at, sums_of &sums)
{
    const bool simple = !GUARDED || (!DROPOUT && args.of.mask_kind == 0 && args.of.softcap == 0);
    const u32 x_at = shared_address(x), y_at = shared_address(y);
    f32 score[WIDTH / 8][4] = {}, along[WIDTH / 8][4] = {};
    bool x_by_row = false, y_by_row = false;
    multiply<HEAD, X_PITCH>(w, w.x, own.x, x_at, score);
    if (GUARDED)
        x_by_row = has_nonfinite(score);
    if (simple)
        weigh<GUARDED>(args, w, at, states, score);
    if (ADD_X)
        multiply<VALUES, Y_PITCH>(w, w.y, own.y, y_at, along);
    if (GUARDED && ADD_Y)
        y_by_row = ADD_X ? has_nonfinite(along) : find_nonfinite<VALUES, WIDTH>(y, Y_PITCH, w.lane);
    if (!simple)
        weigh_guarded(args, w, at, states, score, along);
#if ADD_Y
    add_columns<VALUES, Y_PITCH>(w, y, y_at, y_by_row, score, sums.y);
#endif
#if ADD_X
    if (simple)
        find_slopes<GUARDED>(w, states, score, along);
    add_columns<HEAD, X_PITCH>(w, x, x_at, x_by_row, along, sums.x);
#endif
}

/* Adds the contributions of the tile in a stage of shared memory, which begins with row `at`; skips it if no pair counts. */
DEVICE void compute_tile(const cuda_gradient_args &args, const worker &w, const own_rows &own, const u8 *stage, int at,
                         sums_of &sums)
{
    const state *states = (const state *)(stage + STAGE_STATES_AT);
    const u8 *x = stage, *y = stage + STAGE_Y_AT;
    const sight sees = sight_of(args, w, states, at);
    if (sees.none)
        return;
    if (sees.all)
        add_pairs<false>(args, w, own, x, y, states, at, sums);
    else
        add_pairs<true>(args, w, own, x, y, states, at, sums);
}

/* Writes one row of sums times a factor: half `h` of the warp's rows. */
template <int N>
DEVICE void write_row(const worker &w, const f32 (&sums)[N][4], int h, f32 factor, IN *to, int size, i64 along, int whole)
{
#pragma unroll
    for (int g = 0; g < N; g++) {
        const int column = 8 * g + w.lane % 4 * 2;
        const u32 both = narrow_pair(sums[g][2 * h] * factor, sums[g][2 * h + 1] * factor);
        if (column >= size)
            continue;
        if (whole) {
            *(u32 *)(to + column) = both;
        } else {
            to[column * along].bits = (u16)both;
            to[(column + 1) * along].bits = (u16)(both >> 16);
        }
    }
}

DEVICE void write_sums(const cuda_gradient_args &args, const worker &w, const sums_of &sums)
{
    const cuda_attention_args &of = args.of;
    const f32 scale = (f32)of.scale;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int row = w.first + i * 8 + w.lane / 4;
#if OF_KEYS
        if (row >= w.s.keys)
            continue;
        if (ADD_X)
            write_row(w, sums.x, i, scale, (IN *)args.dk + key_at(of, w.s, w.group, row, args.dk_stride), of.size,
                      args.dk_stride[3], args.whole_dk);
        if (ADD_Y)
            write_row(w, sums.y, i, 1.0f, (IN *)args.dv + key_at(of, w.s, w.group, row, args.dv_stride),
                      of.value_size, args.dv_stride[3], args.whole_dv);
#else
        const view v = view_of(of, w.s, w.group, row);
        if (v.query < w.s.queries)
            write_row(w, sums.x, i, scale, (IN *)args.dq + query_at(w.s, v, args.dq_stride), of.size,
                      args.dq_stride[3], args.whole_dq);
#endif
    }
}

/* The rows of the other side that the block's own rows from `first` on can see, or that can see them; begins with a whole
 * tile. */
DEVICE backward_range range_of(const cuda_attention_args &of, const sequence &s, int group, int first)
{
    backward_range range;
    if (OF_KEYS) {
        const backward_bounds bounds = {of.left, of.right, of.shift, s.queries, s.keys, of.bottom};
        range = backward_queries(&bounds, first, SIDE);
        range = {range.begin * of.ratio, range.end * of.ratio};
    } else {
        const reach seen = reach_of(of, s, group, first, SIDE);
        range = {seen.from, seen.end};
    }
    range.begin = range.begin / WIDTH * WIDTH;
    return range;
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) attention_backward_mma(const cuda_gradient_args args)
{
    SHARED_MEMORY(memory);
    const cuda_attention_args &of = args.of;
    const u32 blocks = (u32)(OF_KEYS ? args.key_blocks : of.blocks), lot = blockIdx.x / blocks, b = lot / (u32)of.groups;
    const u32 place = blockIdx.x - lot * blocks, shared = shared_address(memory);
    const int group = (int)(lot - b * of.groups), warp = (int)threadIdx.x / WARP;
    const int first = (int)(OF_KEYS ? place : blocks - 1 - place) * SIDE; /* the longest first, if causal */
    worker w = {sequence_of(of, (int)b), group, (int)threadIdx.x % WARP, first + warp * WARP_ROWS};
    w.x = shared + warp * WARP_ROWS * X_PITCH;
    w.y = shared + OWN_Y_AT + warp * WARP_ROWS * Y_PITCH;
    const backward_range range = range_of(of, w.s, group, first);
    own_rows own;
    sums_of sums = {};
    int stage = STAGES_AT, next = STAGES_AT + STAGE; /* where the tile at work is, and the one after it */
    copy_own(args, w, first, shared);
    copy_tile(args, w, range.begin, range.end, shared + stage);
    copy_tile(args, w, range.begin + WIDTH, range.end, shared + next);
    if (!OF_KEYS)
        make_states(args, w, first, (state *)(memory + OWN_STATES_AT));
    copy_wait<1>();
    __syncthreads();
    if (!OF_KEYS)
        read_states(w, (const state *)(memory + OWN_STATES_AT) + warp * WARP_ROWS);
    if (HELD) {
        hold<X_PITCH>(w, w.x, own.x);
        hold<Y_PITCH>(w, w.y, own.y);
    }
    for (int at = range.begin; at < range.end; at += WIDTH) {
        compute_tile(args, w, own, memory + stage, at, sums);
        __syncthreads();
        copy_tile(args, w, at + 2 * WIDTH, range.end, shared + stage);
        copy_wait<1>();
        __syncthreads();
        const int read = stage;
        stage = next;
        next = read;
    }
    copy_wait<0>();
    write_sums(args, w, sums);
}
