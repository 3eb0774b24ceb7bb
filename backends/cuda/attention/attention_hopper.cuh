/* Shared by the kernels for attention on Hopper's tensor cores: a tile of 64 GROUPS rows of queries, and tiles of WIDTH adjacent keys. A
 * block has a warpgroup that loads and GROUPS that compute 64 rows each. SIZE and VALUES are the head sizes, rounded up to 16; TMA pads
 * with zeros. While a group computes weights, its own product with the last values and the other groups' products run.
 *
 *     loader:  Q, then K and V of each tile of keys, into STAGES buffers each
 *     group:   S = Q K', issued together with sums += P V of the tile before; weights of S; P = S in 16 bits
 *
 * BOUNDS: 0 no bounds by position, 1 on the right, 2 on the left too. TABLES: tables say which keys exist. MASK: 0 none, 1 bool,
 * 2 f32, 3 IN. SCORES: 0 the scale is positive, 1 any scale, 2 softcap too. */
enum {
    CHUNK = 64, /* elements of 128 bytes */
    ROWS = 64 * GROUPS,
    THREADS = 128 * (GROUPS + 1),
    CHUNKS = (SIZE + CHUNK - 1) / CHUNK,
    VALUE_CHUNKS = (VALUES + CHUNK - 1) / CHUNK,
    Q_CHUNK = ROWS * 128,
    K_CHUNK = WIDTH * 128,
    Q_BYTES = CHUNKS * Q_CHUNK,
    K_BYTES = CHUNKS * K_CHUNK,
    V_BYTES = VALUE_CHUNKS * K_CHUNK,
    V_AT = Q_BYTES + STAGES * K_BYTES,
    BARRIERS_AT = V_AT + STAGES * V_BYTES
};

/* Whether excluded keys may have values other than the zeros that TMA pads with. */
#define GUARDED (BOUNDS || TABLES || MASK)

#define NOTHING (-__int_as_float(0x7F800000))
#define GREATEST __int_as_float(0x7F7FFFFF)

/* Numbers of barriers. */
enum {
    Q_FULL = 0,
    Q_EMPTY = 1,
    K_FULL = 2,
    K_EMPTY = K_FULL + STAGES,
    V_FULL = K_EMPTY + STAGES,
    V_EMPTY = V_FULL + STAGES
};
DEVICE u32 barrier_at(u32 shared, int number) { return shared + BARRIERS_AT + 8 * number; }

/* A stage of the pipeline, and the parity of its barrier's phase. */
struct pipeline {
    int stage;
    u32 parity;
};
DEVICE void advance(pipeline &at)
{
    if (++at.stage == STAGES) {
        at.stage = 0;
        at.parity ^= 1;
    }
}

/* A tile of rows: its sequence, head, first row, and the counts of its sequence. Packed sequences have batch 0. */
struct row_tile {
    int sequence, batch, head, row;
    int first_query, first_key;
    hopper_counts counts;
};

/* Initializes the barriers of a block. */
DEVICE void begin_barriers(u32 shared)
{
    if (threadIdx.x == 0) {
        barrier_init(barrier_at(shared, Q_FULL), 1);
        barrier_init(barrier_at(shared, Q_EMPTY), 4 * GROUPS);
        for (int s = 0; s < STAGES; s++) {
            barrier_init(barrier_at(shared, K_FULL + s), 1);
            barrier_init(barrier_at(shared, V_FULL + s), 1);
            barrier_init(barrier_at(shared, K_EMPTY + s), 4 * GROUPS);
            barrier_init(barrier_at(shared, V_EMPTY + s), 4 * GROUPS);
        }
        barrier_init_fence();
    }
    __syncthreads();
}

DEVICE void load_tile(const hopper_map &map, u32 to, u32 barrier, int chunks, int bytes, int row, int head, int batch)
{
    barrier_expect(barrier, chunks * bytes);
#pragma unroll 1
    for (int c = 0; c < chunks; c++)
        load_box(&map, to + c * bytes, barrier, c * CHUNK, row, head, batch);
}

/* A thread's two rows, 8 apart: the greatest score, the sum of the thread's own weights, the keys that they see. */
struct rows {
    f32 greatest[2], sum[2];
    int from[2], end[2];
    const u8 *mask[2];
};

/* Whether the mask lets the row see a key, and what it adds to the score, times log2(e). */
DEVICE bool read_mask(const hopper_args &args, const u8 *row, int key, f32 &bias)
{
    const u8 *one = row + key * args.at.mask_stride[3];
    bias = 0;
    if (MASK == 1)
        return *one != 0;
    const f32 found = MASK == 2 ? *(const f32 *)one : widen_bits(*(const u16 *)one);
    bias = fmaxf(found * 1.44269504088896341f, -GREATEST); /* only minus infinity excludes */
    bias = found != found ? found : bias;
    return found != NOTHING;
}

/* Applies scale and softcap, where softmax_tile does not. Of small scores, tanh is computed by its series, as its form
 * with an exponential cancels. */
DEVICE f32 scale_score(const hopper_args &args, f32 product)
{
    if (SCORES == 0)
        return product;
    const f32 score = product * args.scale;
    if (SCORES == 1)
        return score;
    const f32 square = score * score;
    if (square < 1.0f / 64)
        return product * args.plain * fmaf(square, fmaf(square, fmaf(square, -17.0f / 315, 2.0f / 15), -1.0f / 3), 1.0f);
    const f32 power = exp2_of(fminf(fabsf(score) * 2.88539008177792682f, 64));
    return score != score ? score : copysignf(args.cap * (1 - 2 / (1 + power)), score);
}

/* Online softmax of a tile: scores become weights in place. Returns in `correction` the factor of the sums so far. */
template <bool MASKED>
DEVICE void softmax_tile(const hopper_args &args, f32 (&score)[WIDTH / 2], rows &r, int key, f32 correction[2])
{
    const f32 scale = SCORES ? 1 : args.scale;
    const int column = key + threadIdx.x % 4 * 2;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int from = r.from[h] - column, end = r.end[h] - column;
        f32 maximum = r.greatest[h];
#pragma unroll
        for (int i = 0; i < WIDTH / 4; i++) {
            const int at = i / 2 * 8 + i % 2;
            f32 &one = score[i / 2 * 4 + 2 * h + i % 2];
            one = scale_score(args, one);
            bool seen = !MASKED || (at < end && (BOUNDS < 2 || at >= from));
            if (MASK && seen) {
                f32 bias;
                seen = read_mask(args, r.mask[h], column + at, bias);
                one += bias;
            }
            one = seen ? one : NOTHING;
            maximum = fmaxf(maximum, one);
        }
        maximum = fmaxf(maximum, __shfl_xor_sync(0xFFFFFFFFu, maximum, 1));
        maximum = fmaxf(maximum, __shfl_xor_sync(0xFFFFFFFFu, maximum, 2));
        const f32 reference = maximum == NOTHING ? 0 : maximum * scale;
        correction[h] = exp2_of(fmaf(r.greatest[h], scale, -reference));
        r.greatest[h] = maximum;
        f32 sum = 0;
#pragma unroll
        for (int i = 0; i < WIDTH / 4; i++) {
            f32 &one = score[i / 2 * 4 + 2 * h + i % 2];
            one = exp2_of(fmaf(one, scale, -reference));
            sum += one;
        }
        r.sum[h] = fmaf(r.sum[h], correction[h], sum);
    }
}

DEVICE void narrow_weights(const f32 (&score)[WIDTH / 2], u32 (&weights)[WIDTH / 4])
{
#pragma unroll
    for (int i = 0; i < WIDTH / 4; i++)
        weights[i] = narrow_pair(score[2 * i], score[2 * i + 1]);
}

DEVICE void multiply_keys(f32 (&score)[WIDTH / 2], u64 q, u64 k)
{
#pragma unroll
    for (int d = 0; d < SIZE / 16; d++) {
        const int chunk = d / 4, step = d % 4 * 32;
        product_of_tiles(score, q + (chunk * Q_CHUNK + step) / 16, k + (chunk * K_CHUNK + step) / 16, d > 0);
    }
    wgmma_commit();
}

DEVICE void add_values(f32 (&sums)[VALUES / 2], const u32 (&weights)[WIDTH / 4], u32 v, int add)
{
    const u64 tile = tile_of(v, K_CHUNK);
#pragma unroll
    for (int d = 0; d < WIDTH / 16; d++)
        product_of_weights(sums, weights + 4 * d, tile + d * 2048 / 16, d > 0 || add);
    wgmma_commit();
}

/* Returns whether a value of the tile is not finite, to all threads of the group. */
DEVICE bool find_nonfinite(u32 v, int group)
{
    return __any_sync(0xFFFFFFFFu, group_any(1 + GROUPS + group, 128, find_nonfinite_part<V_BYTES>(v)));
}

/* Returns the value of a key in a swizzled tile. */
DEVICE f32 value_at(u32 v, int key, int column) { return widen_bits(bits_at<K_CHUNK>(v, key, column)); }

/* As add_values, for a tile with values that are not finite: key by key, without excluded ones. */
DEVICE void add_values_by_key(const hopper_args &args, f32 (&sums)[VALUES / 2], const u32 (&weights)[WIDTH / 4], u32 v, int add,
                            const rows &r, int key)
{
    const int x = threadIdx.x % 4;
    u32 mine[WIDTH / 4];
    for (int i = 0; i < WIDTH / 4; i++)
        mine[i] = weights[i];
#pragma unroll
    for (int i = 0; i < VALUES / 2; i++)
        sums[i] = add ? sums[i] : 0;
#pragma unroll 1
    for (int at = 0; at < WIDTH; at++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const u32 pair = __shfl_sync(0xFFFFFFFFu, mine[at / 8 * 2 + h], at % 8 / 2, 4);
            const f32 weight = widen_bits(at % 2 ? pair >> 16 : pair);
            f32 bias;
            if (key + at >= r.end[h] || key + at < r.from[h] || (MASK && !read_mask(args, r.mask[h], key + at, bias)))
                continue;
#pragma unroll
            for (int g = 0; g < VALUES / 8; g++) {
                sums[4 * g + 2 * h] = fmaf(weight, value_at(v, at, 8 * g + 2 * x), sums[4 * g + 2 * h]);
                sums[4 * g + 2 * h + 1] = fmaf(weight, value_at(v, at, 8 * g + 2 * x + 1), sums[4 * g + 2 * h + 1]);
            }
        }
    }
    __syncwarp(); /* all lanes have read the tile before one frees it */
}

DEVICE void rescale(f32 (&sums)[VALUES / 2], const f32 correction[2])
{
#pragma unroll
    for (int i = 0; i < VALUES / 2; i++)
        sums[i] *= correction[i / 2 % 2];
}

/* Groups issue their products in turn. */
DEVICE void await_turn(int group)
{
    if (GROUPS > 1)
        group_sync(1 + group, 256);
}
DEVICE void pass_turn(int group)
{
    if (GROUPS > 1)
        group_arrive(1 + (group + 1 == GROUPS ? 0 : group + 1), 256);
}

/* A computing group: its stages of K and V, its last tile of keys and whether some keys of that are excluded. */
struct consumer {
    u32 shared;
    u64 q;
    int group;
    pipeline k, v;
    rows r;
    int key;
    bool guarded;
    int add;
};

DEVICE u32 values_of(const consumer &w) { return w.shared + V_AT + w.v.stage * V_BYTES; }
DEVICE void await_values(const consumer &w) { barrier_wait(barrier_at(w.shared, V_FULL + w.v.stage), w.v.parity); }
DEVICE void free_values(consumer &w)
{
    release(barrier_at(w.shared, V_EMPTY + w.v.stage));
    advance(w.v);
}
DEVICE u64 await_keys(const consumer &w)
{
    barrier_wait(barrier_at(w.shared, K_FULL + w.k.stage), w.k.parity);
    return tile_of(w.shared + Q_BYTES + w.k.stage * K_BYTES, 0);
}
DEVICE void free_keys(consumer &w)
{
    release(barrier_at(w.shared, K_EMPTY + w.k.stage));
    advance(w.k);
}

DEVICE void begin_group(consumer &w, u32 shared, int group)
{
    w.shared = shared;
    w.q = tile_of(shared + group * 64 * 128, 0);
    w.group = group;
    w.k = w.v = {0, 0};
    if (group == GROUPS - 1)
        pass_turn(group);
}

/* Returns whether the last tile of keys has excluded keys and non-finite values: then values must be added key by key. */
DEVICE bool has_nonfinite_values(consumer &w)
{
    if (!GUARDED || !w.guarded)
        return false;
    await_values(w);
    w.guarded = find_nonfinite(values_of(w), w.group);
    return w.guarded;
}

/* Computes the scores of a tile of keys and their weights, without adding values. */
template <bool MASKED>
DEVICE void compute_weights(const hopper_args &args, consumer &w, int key, f32 (&score)[WIDTH / 2], f32 correction[2])
{
    const u64 keys = await_keys(w);
    wgmma_begin();
    multiply_keys(score, w.q, keys);
    wgmma_wait<0>();
    wgmma_fence_sums(score);
    free_keys(w);
    softmax_tile<MASKED>(args, score, w.r, key, correction);
    w.key = key;
    w.guarded = MASKED;
}

/* Adds the values of the last tile, and waits. */
DEVICE void add_last_values(const hopper_args &args, consumer &w, f32 (&sums)[VALUES / 2], const u32 (&weights)[WIDTH / 4])
{
    if (has_nonfinite_values(w)) {
        add_values_by_key(args, sums, weights, values_of(w), w.add, w.r, w.key);
    } else {
        await_values(w);
        wgmma_begin();
        add_values(sums, weights, values_of(w), w.add);
        wgmma_wait<0>();
        wgmma_fence_sums(sums);
    }
    free_values(w);
    w.add = 1;
}

/* Computes the scores and weights of a tile of keys while the values of the tile before are added. */
template <bool MASKED>
DEVICE void step(const hopper_args &args, consumer &w, int key, f32 (&score)[WIDTH / 2], u32 (&weights)[WIDTH / 4],
                 f32 (&sums)[VALUES / 2])
{
    f32 correction[2];
    const u64 keys = await_keys(w);
    await_turn(w.group);
    wgmma_begin();
    multiply_keys(score, w.q, keys);
    await_values(w);
    add_values(sums, weights, values_of(w), w.add);
    pass_turn(w.group);
    wgmma_wait<1>();
    wgmma_fence_sums(score);
    free_keys(w);
    softmax_tile<MASKED>(args, score, w.r, key, correction);
    /* A branch, so that weights are computed before the wait. */
    if (__any_sync(0xFFFFFFFFu, correction[0] != 1 || correction[1] != 1)) {
        wgmma_wait<0>();
        wgmma_fence_sums(sums);
        rescale(sums, correction);
    } else {
        wgmma_wait<0>();
        wgmma_fence_sums(sums);
    }
    free_values(w);
    narrow_weights(score, weights);
    w.add = 1;
    w.key = key;
    w.guarded = MASKED;
}

/* As step, but not overlapped, because a value is not finite. All groups see the same values, so all take this path. */
DEVICE void step_serially(const hopper_args &args, consumer &w, int key, f32 (&score)[WIDTH / 2], u32 (&weights)[WIDTH / 4],
                           f32 (&sums)[VALUES / 2])
{
    f32 correction[2];
    add_last_values(args, w, sums, weights);
    compute_weights<true>(args, w, key, score, correction);
    rescale(sums, correction);
    narrow_weights(score, weights);
}

/* Writes four groups of eight columns of a row, from column `first` on; lane x those of group x. */
DEVICE void write_columns(const hopper_args &args, u16 *out, int first, u32 (&words)[4])
{
    const int x = threadIdx.x % 4;
    if (args.at.whole_out) {
        transpose_words(words);
        if (out && first + 8 * x < args.at.value_size)
            *(uint4 *)(out + first + 8 * x) = make_uint4(words[0], words[1], words[2], words[3]);
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const int column = first + i / 2 * 8 + 2 * x + i % 2;
        if (out && column < args.at.value_size)
            out[column] = (u16)(words[i / 2] >> i % 2 * 16);
    }
}

/* As verdict_of of attention.cuh, with scores times log2(e). */
DEVICE void write_rows(const hopper_args &args, const row_tile &at, int row, const rows &r, const f32 (&sums)[VALUES / 2])
{
    const f32 scale = SCORES ? 1 : args.scale;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int query = row + 8 * h;
        const bool is = query < at.counts.queries;
        f32 sum = r.sum[h], sink = NOTHING;
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 2);
        if (args.at.sinks_kind)
            sink = 1.44269504088896341f * (args.at.sinks_kind == 2 ? ((const f32 *)args.at.sinks)[at.head * args.at.sinks_stride]
                                                              : widen_bits(((const u16 *)args.at.sinks)[at.head * args.at.sinks_stride]));
        const f32 maximum = r.greatest[h] == NOTHING ? NOTHING : r.greatest[h] * scale;
        const f32 greatest = fmaxf(maximum, sink), reference = greatest == NOTHING ? 0 : greatest;
        const f32 share = exp2_of(maximum - reference), all = sum * share + exp2_of(sink - reference);
        const bool none = maximum == NOTHING && sum == 0;
        const f32 factor = share / all;
        const i64 place = at.first_query + query;
        if (args.at.lse && is && threadIdx.x % 4 == 0)
            ((f32 *)args.at.lse)[at.batch * args.at.lse_stride[0] + at.head * args.at.lse_stride[1] + place * args.at.lse_stride[2]] =
                all == 0                   ? NOTHING
                : fabsf(reference) == GREATEST ? reference /* a mask saturated it */
                                           : (reference + log2f(all)) * 0.693147180559945309f;
        u16 *out = !is ? NULL
                       : (u16 *)args.at.out + at.batch * args.at.out_stride[0] + at.head * args.at.out_stride[1] +
                             place * args.at.out_stride[2];
#pragma unroll
        for (int g = 0; g < VALUES / 8; g += 4) {
            u32 words[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int from = 4 * (g + i < VALUES / 8 ? g + i : 0) + 2 * h;
                words[i] = none ? 0 : narrow_pair(sums[from] * factor, sums[from + 1] * factor);
            }
            write_columns(args, out, 8 * g, words);
        }
    }
}
