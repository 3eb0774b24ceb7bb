/* Attention with few rows, or with little work: a block computes ROWS rows over one part of the keys, TILE at a
 * time. LANES threads share a key; each has EACH elements of its head, PIECES times. So keys and values are read
 * only once, in memory order, for all heads of a group in the block.
 *
 * With several parts, each writes its sums for attention_join. */
enum {
    ROWS = 4,
    TILE = 512,
    WARPS = BLOCK / WARP,
    LANES = SIZE / EACH < WARP ? SIZE / EACH : WARP, /* at least 8 */
    PIECES = SIZE / EACH / LANES,
    AT_ONCE = BLOCK / LANES,             /* keys processed at once */
    AHEAD = PIECES > 2 ? 1 : 4 / PIECES, /* keys per thread that are loaded together */
    ROOM = ROWS * TILE > WARPS * SIZE ? ROWS * TILE : WARPS * SIZE,
    TOGETHER = ROOM / (WARPS * SIZE) < ROWS ? ROOM / (WARPS * SIZE) : ROWS /* rows that are summed at once */
};

/* Returns the first of a lane's elements of a head in piece `number`. */
DEVICE int place_of(int number) { return (number * LANES + (int)threadIdx.x % LANES) * EACH; }

/* Sums ROWS numbers over the lanes of a key: in each step, partners exchange halves of their numbers, until one
 * number is left, which is then summed by butterfly. A lane ends with the sum of row lane / (LANES / ROWS). */
DEVICE A gather(A sums[ROWS])
{
#pragma unroll
    for (int far = LANES / 2, count = ROWS / 2; far > 0; far /= 2, count /= 2) {
        const bool upper = threadIdx.x & far;
#pragma unroll
        for (int r = 0; r < (count > 0 ? count : 1); r++) {
            const A other = count > 0 ? sums[r + count] : sums[r];
            const A away = upper ? sums[r] : other, mine = upper ? other : sums[r];
            sums[r] = mine + __shfl_xor_sync(0xFFFFFFFFu, away, far);
        }
    }
    return sums[0];
}

/* Rows of keys or values. They are PLAIN if none is on a page and all are read in whole pieces. */
struct source {
    const IN *from;
    const long long *stride;
    int size, whole;
};

/* Reads a lane's pieces of AHEAD keys, AT_ONCE apart, starting at `key`; zeros for keys that are not before
 * `end`. */
template <bool PLAIN>
DEVICE void read_keys(const cuda_attention_args &args, const sequence &s, int group, const source &of, int key,
                      int end, piece out[AHEAD][PIECES])
{
    const IN *row = of.from + s.batch * of.stride[0] + group * of.stride[1] + (s.first_key + key) * of.stride[2];
#pragma unroll
    for (int n = 0; n < AHEAD; n++, key += AT_ONCE, row += AT_ONCE * of.stride[2]) {
        const i64 at = PLAIN || key >= end ? 0 : key_at(args, s, group, key, of.stride);
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            out[n][p] = {};
            if (PLAIN && key < end && place_of(p) < of.size)
                out[n][p] = *(const piece *)(row + place_of(p));
            if (!PLAIN && key < end && at != ABSENT)
                out[n][p] = piece_of(of.from + at, place_of(p), of.size, of.stride[3], of.whole);
        }
    }
}

/* Writes the products of the rows with the keys from `first` to `end`, of a tile that starts at `base`, to
 * `scores`: ROWS numbers per key. */
template <bool PLAIN>
DEVICE void multiply(const cuda_attention_args &args, const sequence &s, int group, int base, int first, int end,
                     const A q[ROWS][PIECES * EACH], A *scores)
{
    const source of = {(const IN *)args.k, args.k_stride, args.size, args.whole_k};
    const int row = (int)threadIdx.x % LANES / (LANES / ROWS);
    const bool writes = threadIdx.x % (LANES / ROWS) == 0;
    for (int start = first; start < end; start += AT_ONCE * AHEAD) {
        piece k[AHEAD][PIECES];
        read_keys<PLAIN>(args, s, group, of, start + (int)threadIdx.x / LANES, end, k);
#pragma unroll
        for (int n = 0; n < AHEAD; n++) {
            const int key = start + n * AT_ONCE + (int)threadIdx.x / LANES;
            A sums[ROWS] = {};
#pragma unroll
            for (int p = 0; p < PIECES; p++) {
                A x[EACH];
                widen(k[n][p], x);
#pragma unroll
                for (int e = 0; e < EACH; e++) {
#pragma unroll
                    for (int r = 0; r < ROWS; r++)
                        sums[r] = fused(q[r][p * EACH + e], x[e], sums[r]);
                }
            }
            const A sum = gather(sums);
            if (key < end && writes)
                scores[(key - base) * ROWS + row] = sum;
        }
    }
}

/* A row's state, the same in all lanes of its warp. */
struct state {
    A greatest, sum;
};

/* Converts a row's scores to weights; a warp without a row has no keys either. Returns the factor for earlier sums
 * of values. */
DEVICE A weigh(const cuda_attention_args &args, const sequence &s, const view &mine, int base, int first, int end,
               A *scores, state &now)
{
    const int row = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
    A high = now.greatest, sum = 0;
    u32 hidden = 0; /* one bit for each of a lane's keys, at most TILE / WARP */
    for (int key = first + lane, n = 0; key < end; key += WARP, n++) {
        A *at = scores + (key - base) * ROWS + row;
        bool seen;
        *at = score_of(args, s, mine, key, *at, seen);
        high = *at > high ? *at : high;
        hidden |= (u32)!seen << n;
    }
    for (int far = WARP / 2; far > 0; far /= 2) {
        const A other = __shfl_xor_sync(0xFFFFFFFFu, high, far);
        high = other > high ? other : high;
    }
    const A level = level_of(high), less = of_exp(now.greatest - level);
#if DROPOUT
    dice d = {};
#endif
    for (int key = first + lane; key < end; key += WARP, hidden >>= 1) {
        A *at = scores + (key - base) * ROWS + row;
        const A weight = of_exp(*at - level);
        bool counted = !(hidden & 1);
        sum += weight;
#if DROPOUT
        counted = counted && keeps(args, s, mine, key, d);
#endif
        *at = counted ? weight : UNCOUNTED;
    }
    for (int far = WARP / 2; far > 0; far /= 2)
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, far);
    now.greatest = high;
    now.sum = now.sum * less + sum;
    return less;
}

/* Adds the values with the weights that count. */
template <bool PLAIN>
DEVICE void add_values(const cuda_attention_args &args, const sequence &s, int group, int base, int first, int end,
                       const A *weights, A sums[ROWS][PIECES * EACH])
{
    const source of = {(const IN *)args.v, args.v_stride, args.value_size, args.whole_v};
    for (int start = first + (int)threadIdx.x / LANES; start < end; start += AT_ONCE * AHEAD) {
        piece v[AHEAD][PIECES];
        read_keys<PLAIN>(args, s, group, of, start, end, v);
#pragma unroll
        for (int n = 0; n < AHEAD; n++) {
            const int key = start + n * AT_ONCE;
            if (key >= end)
                continue;
            const pack<A, ROWS> w = *(const pack<A, ROWS> *)(weights + (key - base) * ROWS);
#pragma unroll
            for (int p = 0; p < PIECES; p++) {
                A x[EACH];
                widen(v[n][p], x);
#pragma unroll
                for (int e = 0; e < EACH; e++) {
#pragma unroll
                    for (int r = 0; r < ROWS; r++) {
                        if (counts(w.of[r]))
                            sums[r][p * EACH + e] = fused(w.of[r], x[e], sums[r][p * EACH + e]);
                    }
                }
            }
        }
    }
}

/* Sums over the keys of a warp; the lanes of the first key have the result. */
DEVICE void gather_values(A sums[ROWS][PIECES * EACH])
{
#pragma unroll
    for (int far = LANES; far < WARP; far *= 2) {
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
#pragma unroll
            for (int p = 0; p < PIECES * EACH; p++)
                sums[r][p] += __shfl_xor_sync(0xFFFFFFFFu, sums[r][p], far);
        }
    }
}

/* Writes a value of a row: the final result, or the partial one. */
DEVICE void write_value(const cuda_attention_args &args, const sequence &s, const view &v, i64 part, A factor, int d,
                        A sum)
{
    if (args.parts > 1)
        ((A *)args.partial)[part * args.value_size + d] = sum;
    else
        ((OUT *)args.out)[query_at(s, v, args.out_stride) + d * args.out_stride[3]] =
            narrowed<OUT>(value_of(sum, factor));
}

/* Adds the warps' sums in their order, some rows at a time, and writes them. */
DEVICE void finish(const cuda_attention_args &args, const sequence &s, int group, int row, int part,
                   const A sums[ROWS][PIECES * EACH], const A *factors, A *room)
{
    const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
#pragma unroll
    for (int r = 0; r < ROWS; r += TOGETHER) {
        if (lane < LANES) {
#pragma unroll
            for (int t = 0; t < TOGETHER; t++) {
#pragma unroll
                for (int p = 0; p < PIECES * EACH; p++)
                    room[(warp * TOGETHER + t) * SIZE + place_of(p / EACH) + p % EACH] = sums[r + t][p];
            }
        }
        __syncthreads();
        for (int n = (int)threadIdx.x; n < TOGETHER * SIZE; n += BLOCK) {
            const int of = r + n / SIZE, d = n % SIZE;
            const view v = view_of(args, s, group, row + of);
            A sum = 0;
            for (int w = 0; w < WARPS; w++)
                sum += room[w * TOGETHER * SIZE + n];
            if (v.query < s.queries && d < args.value_size)
                write_value(args, s, v, part_of(args, s.b, group, row + of, part), factors[of], d, sum);
        }
        __syncthreads();
    }
}

/* Writes a row's weights: for the join, or as its lse and the factor for its values. */
DEVICE void finish_weights(const cuda_attention_args &args, const sequence &s, const view &mine, i64 part,
                           const state &now, A *factor)
{
    if (args.parts > 1) {
        A *to = weights_of_parts(args) + 2 * part;
        to[0] = now.greatest;
        to[1] = now.sum;
        *factor = 0;
        return;
    }
    const verdict is = verdict_of(args, mine.head, now.greatest, now.sum);
    *factor = is.factor;
    if (args.lse)
        ((A *)args.lse)[query_at(s, mine, args.lse_stride)] = is.lse;
}

DEVICE void read_rows(const cuda_attention_args &args, const sequence &s, int group, int row,
                      A q[ROWS][PIECES * EACH])
{
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const view v = view_of(args, s, group, row + r);
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            piece some = {};
            if (v.query < s.queries)
                some = piece_of((const IN *)args.q + query_at(s, v, args.q_stride), place_of(p), args.size,
                                args.q_stride[3], args.whole_q);
            widen(some, q[r] + p * EACH);
        }
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK, PIECES > 1 ? 1 : 2) attention_few(const cuda_attention_args args)
{
    __shared__ __align__(32) A room[ROOM];
    __shared__ A lessened[ROWS], factors[ROWS];
    const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
    const u32 lot = blockIdx.x / (u32)args.blocks, lots = lot / (u32)args.parts, b = lots / (u32)args.groups;
    const int part = (int)(lot - lots * args.parts), group = (int)(lots - b * args.groups);
    const int row = (int)(blockIdx.x - lot * args.blocks) * ROWS;
    const sequence s = sequence_of(args, (int)b);
    if (row >= s.queries * args.ratio)
        return;
    const view mine = view_of(args, s, group, row + warp);
    const reach seen = reach_of(args, s, group, row, ROWS);
    const int begin = part * args.part > seen.from ? part * args.part : seen.from;
    const int end = (part + 1) * args.part < seen.end ? (part + 1) * args.part : seen.end;
    const bool plain = !args.pages.first && args.whole_k && args.whole_v && args.size % EACH == 0 &&
                       args.value_size % EACH == 0;
    A q[ROWS][PIECES * EACH], sums[ROWS][PIECES * EACH] = {};
    state now = {nothing(), 0};
    read_rows(args, s, group, row, q);
    for (int base = begin / TILE * TILE; base < end; base += TILE) {
        const int first = base > begin ? base : begin, last = base + TILE < end ? base + TILE : end;
        if (plain)
            multiply<true>(args, s, group, base, first, last, q, room);
        else
            multiply<false>(args, s, group, base, first, last, q, room);
        __syncthreads();
        const A less = weigh(args, s, mine, base, first, warp < ROWS ? last : first, room, now);
        if (warp < ROWS && lane == 0)
            lessened[warp] = less;
        __syncthreads();
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
#pragma unroll
            for (int p = 0; p < PIECES * EACH; p++)
                sums[r][p] *= lessened[r];
        }
        if (plain)
            add_values<true>(args, s, group, base, first, last, room, sums);
        else
            add_values<false>(args, s, group, base, first, last, room, sums);
        __syncthreads();
    }
    gather_values(sums);
    if (warp < ROWS && lane == 0 && mine.query < s.queries)
        finish_weights(args, s, mine, part_of(args, s.b, group, row + warp, part), now, &factors[warp]);
    finish(args, s, group, row, part, sums, factors, room);
}
