/* Attention with few rows of 16 bits on tensor cores of capability 8.0 and later: one step of decoding. A block computes ROWS
 * rows over one part of the keys. Each warp computes 16 keys at a time for all rows of the block: it copies keys and values
 * ahead, in turn, to SLOTS places of its own, so warps wait for each other only at the end, when their sums are joined. With
 * several parts, attention_join joins those.
 *
 * HEAD and VALUES are the head sizes, rounded up to 16; TILES is the number of tiles of 16 rows; PAGED is 1 if keys and
 * values are on pages. */
enum {
    THREADS = DECODE_WARPS * WARP,
    ROWS = DECODE_ROWS * TILES,
    PITCH = ((HEAD > VALUES ? HEAD : VALUES) / DECODE_CHUNK + 1) * 16,
    SLOT = DECODE_KEYS * PITCH,
    QUERIES_AT = DECODE_WARPS * SLOTS * SLOT, /* in shared memory */
    ALONG = VALUES + DECODE_BESIDE /* from a row of sums to the next one, as warps exchange them */
};

/* The rows of a lane in a tile: row lane / 4 and the row 8 after it. Each lane of a row sums the weights of its own keys. */
struct rows {
    view of[2];
    f32 greatest[2], sum[2];
};

/* A warp at work. All existing rows of the block see the keys from `open` to before `shut`. */
struct worker {
    sequence s;
    int group, lane;
    int begin, end, warp, turns; /* keys of the part; the warp's turns */
    int open, shut;
    const IN *from[2]; /* keys and values: of the group, unless they are on pages */
    u8 *memory;        /* the warp's slots */
    u32 address;
    int fill, read; /* next slots to copy to and to read */
};

DEVICE int next_slot(int slot) { return slot + 1 == SLOTS ? 0 : slot + 1; }

/* Starts copies of 16 keys (0) or values (1); those of keys from `end` on, of absent pages and of elements beyond the head
 * become 0. */
template <int WHICH, int WIDTH> DEVICE void copy_rows(const cuda_attention_args &args, const worker &w, int key, u32 to)
{
    const int size = WHICH ? args.value_size : args.size, one = key + w.lane % DECODE_KEYS;
    const long long *stride = WHICH ? args.v_stride : args.k_stride;
    const i64 mine = PAGED && one < w.end ? key_at(args, w.s, w.group, one, stride) : ABSENT;
#pragma unroll
    for (int n = 0; n < WIDTH / 16; n++) {
        const int row = decode_copied_key(WIDTH, w.lane, n), chunk = decode_copied_chunk(WIDTH, w.lane, n);
        const i64 at = PAGED ? __shfl_sync(0xFFFFFFFFu, mine, row) : (i64)(key + row) * stride[2];
        const bool is = PAGED ? at != ABSENT : key + row < w.end;
        copy_ahead(to + row * PITCH + chunk * 16, w.from[WHICH] + (is || !PAGED ? at : 0) + chunk * DECODE_CHUNK,
                   is && chunk * DECODE_CHUNK < size ? 16 : 0);
    }
}

/* Starts the copies of keys (0) or values (1) of a turn, if there is one. */
template <int WHICH> DEVICE void copy_turn(const cuda_attention_args &args, worker &w, int turn)
{
    if (turn < w.turns)
        copy_rows<WHICH, WHICH ? VALUES : HEAD>(args, w, decode_key(w.begin, w.warp, turn), w.address + w.fill * SLOT);
    copy_commit();
    w.fill = next_slot(w.fill);
}

/* Waits for the keys (0) or values (1) of a turn, and starts the copies that come SLOTS - 1 later, to the place that was read
 * before. Returns the place. */
template <int WHICH> DEVICE int await_turn(const cuda_attention_args &args, worker &w, int turn)
{
    const int slot = w.read;
    copy_wait<SLOTS - 2>();
    __syncwarp();
    copy_turn<(WHICH + SLOTS - 1) % 2>(args, w, turn + (WHICH + SLOTS - 1) / 2);
    w.read = next_slot(slot);
    return slot * SLOT;
}

/* Two elements of a query. */
DEVICE u32 read_pair(const cuda_attention_args &args, const IN *row, int column)
{
    if (column >= args.size)
        return 0;
    if (args.whole_q)
        return *(const u32 *)(row + column);
    const i64 along = args.q_stride[3];
    return row[column * along].bits | (u32)row[(column + 1) * along].bits << 16;
}

/* Copies the block's queries to shared memory; rows that do not exist and elements from the head size on become 0. */
DEVICE void read_queries(const cuda_attention_args &args, const worker &w, int row, u8 *to)
{
    for (int i = (int)threadIdx.x; i < ROWS * HEAD / 2; i += THREADS) {
        const int one = i / (HEAD / 2), column = i % (HEAD / 2) * 2;
        const view v = view_of(args, w.s, w.group, row + one);
        *(u32 *)(to + one * PITCH + column * 2) =
            v.query < w.s.queries ? read_pair(args, (const IN *)args.q + query_at(w.s, v, args.q_stride), column) : 0;
    }
}

/* The block's queries as left operands: in registers if there is room, else read from shared memory every time. */
enum { HELD = TILES * HEAD <= 128 };
struct queries {
    u32 address;
    u32 of[TILES][HELD ? HEAD / 16 : 1][4];
};

DEVICE void read_query_tile(const worker &w, const queries &q, int tile, int step, u32 (&out)[4])
{
    read_matrices(out, q.address + tile * DECODE_ROWS * PITCH + decode_values_at(PITCH, w.lane, step));
}

DEVICE void hold_queries(const worker &w, queries &q)
{
#pragma unroll
    for (int t = 0; t < TILES; t++) {
#pragma unroll
        for (int d = 0; d < (HELD ? HEAD / 16 : 0); d++)
            read_query_tile(w, q, t, d, q.of[t][d]);
    }
}

/* Converts the scores of a tile of rows with 16 keys to weights. Those of excluded keys are UNCOUNTED unless all rows see all
 * keys (PLAIN). `less` receives the factors for the sums so far. */
template <bool PLAIN>
DEVICE void weigh(const cuda_attention_args &args, const worker &w, rows &r, int key, f32 (&score)[2][4], u32 (&weights)[4],
                  f32 (&less)[2])
{
    const f32 scale = (f32)args.scale;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        f32 high = r.greatest[h], sum = 0, kept[4];
        bool seen[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int at = key + i / 2 * 8 + w.lane % 4 * 2 + i % 2;
            f32 &one = score[i / 2][2 * h + i % 2];
            seen[i] = true;
            if (PLAIN)
                one *= scale;
            else
                one = at < w.end ? score_of(args, w.s, r.of[h], at, one, seen[i]) : nothing();
            seen[i] = seen[i] && (PLAIN || at < w.end);
            high = one > high ? one : high;
        }
#pragma unroll
        for (int far = 1; far <= 2; far *= 2) {
            const f32 other = __shfl_xor_sync(0xFFFFFFFFu, high, far);
            high = other > high ? other : high;
        }
        const f32 level = level_of(high);
        less[h] = of_exp(r.greatest[h] - level);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const f32 weight = of_exp(score[i / 2][2 * h + i % 2] - level);
            sum += weight;
            kept[i] = seen[i] ? weight : UNCOUNTED;
        }
        r.greatest[h] = high;
        r.sum[h] = r.sum[h] * less[h] + sum;
        weights[h] = narrow_pair(kept[0], kept[1]);
        weights[h + 2] = narrow_pair(kept[2], kept[3]);
    }
}

/* One turn of a warp. */
DEVICE void compute_turn(const cuda_attention_args &args, worker &w, int turn, const queries &q, rows (&r)[TILES],
                         f32 (&sums)[TILES][VALUES / 8][4])
{
    const int key = decode_key(w.begin, w.warp, turn), last = key + DECODE_KEYS;
    const bool guarded = args.mask_kind || key < w.open || last > w.shut;
    f32 score[TILES][2][4] = {}, less[TILES][2];
    u32 weights[TILES][4];
    int slot = await_turn<0>(args, w, turn);
#pragma unroll
    for (int d = 0; d < HEAD / 16; d++) {
        u32 k[4];
        read_matrices(k, w.address + slot + decode_keys_at(PITCH, w.lane, d));
#pragma unroll
        for (int t = 0; t < TILES; t++) {
            u32 left[4];
            if (HELD)
                memcpy(left, q.of[t][HELD ? d : 0], sizeof left);
            else
                read_query_tile(w, q, t, d, left);
            add_product(score[t][0], left, k[0], k[1]);
            add_product(score[t][1], left, k[2], k[3]);
        }
    }
    bool changed = false;
#pragma unroll
    for (int t = 0; t < TILES; t++) {
        if (guarded || args.softcap != 0)
            weigh<false>(args, w, r[t], key, score[t], weights[t], less[t]);
        else
            weigh<true>(args, w, r[t], key, score[t], weights[t], less[t]);
        changed = changed || less[t][0] != 1 || less[t][1] != 1;
    }
    if (__any_sync(0xFFFFFFFFu, changed)) {
#pragma unroll
        for (int t = 0; t < TILES; t++) {
#pragma unroll
            for (int i = 0; i < VALUES / 2; i++)
                sums[t][i / 4][i % 4] *= less[t][i % 4 / 2];
        }
    }
    slot = await_turn<1>(args, w, turn);
    if (guarded && find_nonfinite<VALUES, DECODE_KEYS>(w.memory + slot, PITCH, w.lane))
        add_counted_rows<VALUES, TILES>(w.memory + slot, PITCH, w.lane, weights, sums);
    else
        add_rows<VALUES, TILES>(w.address + slot, PITCH, w.lane, weights, sums);
}

/* Puts a warp's sums and states where the block joins them: sums of all rows, then greatest score and sum of weights. */
DEVICE void hand_over(const worker &w, const rows (&r)[TILES], const f32 (&sums)[TILES][VALUES / 8][4], f32 *room, f32 *states)
{
#pragma unroll
    for (int t = 0; t < TILES; t++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int row = w.warp * ROWS + t * DECODE_ROWS + h * 8 + w.lane / 4;
            f32 sum = r[t].sum[h];
            sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
            sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 2);
            if (w.lane % 4 == 0) {
                states[2 * row] = r[t].greatest[h];
                states[2 * row + 1] = sum;
            }
#pragma unroll
            for (int g = 0; g < VALUES / 8; g++)
                *(pack<f32, 2> *)(room + row * ALONG + 8 * g + w.lane % 4 * 2) = {{sums[t][g][2 * h], sums[t][g][2 * h + 1]}};
        }
    }
}

/* How a row ends: the factors of the warps' sums and of what they add up to (value_of), and where its values go in OUT or
 * among the parts; ABSENT if the row does not exist. */
struct ending {
    f32 factors[DECODE_WARPS], factor;
    i64 at;
};
static_assert(sizeof(ending) == DECODE_ENDING, "the host reserves this for each row");

/* Joins the warps' states of a row in their order, and writes its lse or the state of its part. */
DEVICE void end_row(const cuda_attention_args &args, const worker &w, const view &v, i64 part, const f32 *states, ending &to)
{
    f32 greatest = nothing(), sum = 0;
#pragma unroll
    for (int i = 0; i < DECODE_WARPS; i++) {
        const f32 one = states[2 * i * ROWS];
        greatest = one > greatest ? one : greatest;
    }
    const f32 level = level_of(greatest);
#pragma unroll
    for (int i = 0; i < DECODE_WARPS; i++) {
        to.factors[i] = of_exp(states[2 * i * ROWS] - level);
        sum += states[2 * i * ROWS + 1] * to.factors[i];
    }
    if (args.parts > 1) {
        weights_of_parts(args)[2 * part] = greatest;
        weights_of_parts(args)[2 * part + 1] = sum;
        to.at = part * args.value_size;
        return;
    }
    const verdict is = verdict_of(args, v.head, greatest, sum);
    to.factor = is.factor;
    to.at = query_at(w.s, v, args.out_stride);
    if (args.lse)
        ((f32 *)args.lse)[query_at(w.s, v, args.lse_stride)] = is.lse;
}

/* Adds the warps' sums in their order and writes them: a thread computes the same element of some rows at a time. */
DEVICE void write_values(const cuda_attention_args &args, const f32 *room, const ending *ends)
{
#pragma unroll 4
    for (int n = (int)threadIdx.x; n < ROWS * VALUES; n += THREADS) {
        const int row = n / VALUES, d = n % VALUES;
        const ending &end = ends[row];
        f32 all = 0;
        if (end.at == ABSENT || d >= args.value_size)
            continue;
#pragma unroll
        for (int i = 0; i < DECODE_WARPS; i++)
            all = fused(end.factors[i], room[(i * ROWS + row) * ALONG + d], all);
        if (args.parts > 1)
            ((f32 *)args.partial)[end.at + d] = all;
        else
            ((OUT *)args.out)[end.at + d * args.out_stride[3]] = narrowed<OUT>(value_of(all, end.factor));
    }
}

/* The warp's work on a part of the keys, for a block of rows that starts at `row`. */
DEVICE worker worker_of(const cuda_attention_args &args, const sequence &s, int group, int row, int part, u8 *memory)
{
    const reach seen = reach_of(args, s, group, row, ROWS);
    const int rows = s.queries * args.ratio, last = row + ROWS < rows ? row + ROWS - 1 : rows - 1;
    const int begin = part * args.part > seen.from ? part * args.part : seen.from;
    const int end = (part + 1) * args.part < seen.end ? (part + 1) * args.part : seen.end;
    worker w = {s, group, (int)threadIdx.x % WARP, begin, end, (int)threadIdx.x / WARP};
    const int shut = view_of(args, s, group, row).end;
    w.from[0] = (const IN *)args.k + (PAGED ? 0 : key_at(args, s, group, 0, args.k_stride));
    w.from[1] = (const IN *)args.v + (PAGED ? 0 : key_at(args, s, group, 0, args.v_stride));
    w.turns = decode_turns(begin, end, w.warp);
    w.open = view_of(args, s, group, last).from;
    w.shut = shut < end ? shut : end;
    w.memory = memory + w.warp * SLOTS * SLOT;
    w.address = shared_address(memory) + w.warp * SLOTS * SLOT;
    return w;
}

/* Launched to overlap with the stream's previous kernel: its blocks may start when all of that one's have ended, or
 * permit it. All threads wait first, also those of blocks without rows. Before that, memory is neither read nor written, but
 * for the arguments, which belong to the launch: so results, and what the workspace had, are as without overlap. As the
 * wait comes in every block, this kernel ends only after the one before it, and so does all that waits for this one. */
extern "C" __global__ void __launch_bounds__(THREADS, 2) attention_decode(const cuda_attention_args args)
{
    SHARED_MEMORY(memory);
    await_previous();
    const u32 lot = blockIdx.x / (u32)args.blocks, lots = lot / (u32)args.parts, b = lots / (u32)args.groups;
    const int part = (int)(lot - lots * args.parts), group = (int)(lots - b * args.groups);
    const int row = (int)(blockIdx.x - lot * args.blocks) * ROWS;
    const sequence s = sequence_of(args, (int)b);
    if (row >= s.queries * args.ratio)
        return;
    if (args.parts > 1)
        release_next();
    worker w = worker_of(args, s, group, row, part, memory);
    queries q = {shared_address(memory) + QUERIES_AT};
    f32 sums[TILES][VALUES / 8][4] = {};
    rows r[TILES];
#pragma unroll
    for (int n = 0; n < SLOTS - 1; n++) {
        if (n % 2)
            copy_turn<1>(args, w, n / 2);
        else
            copy_turn<0>(args, w, n / 2);
    }
#pragma unroll
    for (int t = 0; t < TILES; t++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            r[t].of[h] = view_of(args, s, group, row + t * DECODE_ROWS + h * 8 + w.lane / 4);
            r[t].greatest[h] = nothing();
            r[t].sum[h] = 0;
        }
    }
    read_queries(args, w, row, memory + QUERIES_AT);
    __syncthreads();
    hold_queries(w, q);
    for (int turn = 0; turn < w.turns; turn++)
        compute_turn(args, w, turn, q, r, sums);
    copy_wait<0>();
    __syncthreads(); /* the slots are free */
    f32 *room = (f32 *)memory, *states = room + DECODE_WARPS * ROWS * ALONG;
    ending *ends = (ending *)(states + DECODE_WARPS * ROWS * 2);
    hand_over(w, r, sums, room, states);
    __syncthreads();
    if (threadIdx.x < ROWS) {
        const int one = (int)threadIdx.x;
        const view v = view_of(args, s, group, row + one);
        ends[one].at = ABSENT;
        if (v.query < s.queries)
            end_row(args, w, v, part_of(args, s.b, group, row + one, part), states + 2 * one, ends[one]);
    }
    __syncthreads();
    write_values(args, room, ends);
}
