/* Rows of attention in tiles (attention_tile.cuh), which visit one tile of keys after the other. */

/* A thread's state of its rows. The 16 threads of a row have the same values, except for the sum: each sums its
 * own keys. */
struct rows {
    view of[WIDE];
    A greatest[WIDE], sum[WIDE];
};

/* Converts a tile's scores to weights, stores them transposed, and rescales the previous sums. key_of(i) is the key of column i
 * of the tile. */
template <typename KEY>
DEVICE void weigh(const cuda_attention_args &args, const sequence &s, KEY key_of, rows &r, A score[WIDE][WIDE],
                  A sums[WIDE][COLUMNS][WIDE], A *weights)
{
    const int x = threadIdx.x % SIDE * WIDE;
    A kept[WIDE][WIDE];
#pragma unroll
    for (int i = 0; i < WIDE; i++) {
        A high = r.greatest[i], sum = 0;
        bool seen[WIDE];
#pragma unroll
        for (int j = 0; j < WIDE; j++) {
            score[i][j] = score_of(args, s, r.of[i], key_of(x + j), score[i][j], seen[j]);
            high = score[i][j] > high ? score[i][j] : high;
        }
        for (int far = SIDE / 2; far > 0; far /= 2) {
            const A other = __shfl_xor_sync(0xFFFFFFFFu, high, far);
            high = other > high ? other : high;
        }
        const A level = level_of(high), less = of_exp(r.greatest[i] - level);
#if DROPOUT
        dice d = {};
#endif
#pragma unroll
        for (int j = 0; j < WIDE; j++) {
            const A weight = of_exp(score[i][j] - level);
            sum += weight;
#if DROPOUT
            seen[j] = seen[j] && keeps(args, s, r.of[i], key_of(x + j), d);
#endif
            kept[i][j] = seen[j] ? weight : UNCOUNTED;
        }
        r.greatest[i] = high;
        r.sum[i] = r.sum[i] * less + sum;
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
#pragma unroll
            for (int e = 0; e < WIDE; e++)
                sums[i][c][e] *= less;
        }
    }
    lay_turned(kept, weights);
}

/* Starts the rows of a tile whose first row is `row`. */
DEVICE void begin_rows(const cuda_attention_args &args, const sequence &s, int group, int row, rows &r)
{
#pragma unroll
    for (int i = 0; i < WIDE; i++) {
        r.of[i] = view_of(args, s, group, row + (int)threadIdx.x / SIDE * WIDE + i);
        r.greatest[i] = nothing();
        r.sum[i] = 0;
    }
}

/* Computes the places of the queries of a tile, in shared memory; ABSENT for rows that do not exist. */
DEVICE void place_queries(const cuda_attention_args &args, const sequence &s, int group, int row, i64 *at)
{
    if (threadIdx.x < TILE) {
        const view mine = view_of(args, s, group, row + (int)threadIdx.x);
        at[threadIdx.x] = mine.query < s.queries ? query_at(s, mine, args.q_stride) : ABSENT;
    }
}

/* Computes the products of the rows of a tile with the keys of a tile, whose places are in shared memory. */
DEVICE void multiply_heads(const cuda_attention_args &args, const i64 *q_at, const i64 *k_at, A *room, A score[WIDE][WIDE])
{
    for (int d = 0; d < args.size; d += STEP) {
        __syncthreads();
        lay_heads((const IN *)args.q, q_at, d, args.size, args.q_stride[3], args.whole_q, room);
        lay_heads((const IN *)args.k, k_at, d, args.size, args.k_stride[3], args.whole_k, room + STEP * PITCH);
        __syncthreads();
        multiply(room, room + STEP * PITCH, score);
    }
}

DEVICE void write_rows(const cuda_attention_args &args, const sequence &s, const rows &r,
                       const A sums[WIDE][COLUMNS][WIDE])
{
    const int x = threadIdx.x % SIDE;
#pragma unroll
    for (int i = 0; i < WIDE; i++) {
        A sum = r.sum[i];
        for (int far = SIDE / 2; far > 0; far /= 2)
            sum += __shfl_xor_sync(0xFFFFFFFFu, sum, far);
        if (r.of[i].query >= s.queries)
            continue;
        const verdict is = verdict_of(args, r.of[i].head, r.greatest[i], sum);
        OUT *out = (OUT *)args.out + query_at(s, r.of[i], args.out_stride);
        if (args.lse && x == 0)
            ((A *)args.lse)[query_at(s, r.of[i], args.lse_stride)] = is.lse;
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            const int first = c * TILE + x * WIDE;
            pack<OUT, WIDE> some;
#pragma unroll
            for (int e = 0; e < WIDE; e++)
                some.of[e] = narrowed<OUT>(value_of(sums[i][c][e], is.factor));
            if (args.whole_out && first + WIDE <= args.value_size) {
                *(pack<OUT, WIDE> *)(out + first) = some;
            } else {
#pragma unroll
                for (int e = 0; e < WIDE; e++) {
                    if (first + e < args.value_size)
                        out[(first + e) * args.out_stride[3]] = some.of[e];
                }
            }
        }
    }
}
