/* Backward pass of attention. A block of attention_dq computes TILE rows of queries and processes the keys TILE at
 * a time; a block of attention_dkv computes TILE keys and processes the rows. So each gradient is summed by one
 * thread in a fixed order; in return, scores are computed twice. attention_dq must run first: it writes the dot
 * product of out and its gradient for each row, which attention_dkv reads. */

/* The factors of a pair of row and key: for the gradient of the value, and for those of query and key. */
struct gradient {
    A value, score;
};

/* A row's numbers in addition to its view. */
struct known {
    A lse, delta;
};

DEVICE i64 number_of(const cuda_attention_args &args, const sequence &s, const view &v)
{
    return ((i64)s.b * args.heads + v.head) * args.queries + v.query;
}

#if DROPOUT
#define DICE dice &d
#define THROW d
#else
#define DICE int
#define THROW 0
#endif

/* Takes the product of query and key, and that of out's gradient and the value. A hidden key, or a row that saw
 * nothing, does not count for any gradient; a dropped weight does not count for that of the value. */
DEVICE gradient gradient_of(const cuda_attention_args &args, const sequence &s, const view &v, int key, A product,
                            A along, const known &row, DICE)
{
    gradient g = {UNCOUNTED, UNCOUNTED};
    bool seen;
    const A score = score_of(args, s, v, key, product, seen);
    if (!seen || row.lse == nothing())
        return g;
    A slope = (A)args.scale, share = along;
    if (args.softcap != 0) {
        const A turned = of_tanh(product * (A)args.scale / (A)args.softcap);
        slope *= 1 - turned * turned;
    }
    const A weight = of_exp(score - row.lse);
    g.value = weight;
#if DROPOUT
    const A gain = keeps(args, s, v, key, d) ? 1 / (A)args.kept : (A)0;
    g.value = gain == 0 ? UNCOUNTED : weight * gain;
    share = gain == 0 ? (A)0 : along * gain;
#endif
    g.score = weight * (share - row.delta) * slope + (A)0; /* converts -0 to 0 */
    return g;
}

/* Adds the products of TILE rows of one operand (by y) and TILE rows of another (by x). All threads of the block
 * must call it. */
DEVICE void multiply_rows(const void *a, const i64 *a_at, i64 a_along, int a_whole, const void *b, const i64 *b_at,
                          i64 b_along, int b_whole, int size, A *room, A square[WIDE][WIDE])
{
    for (int d = 0; d < size; d += STEP) {
        __syncthreads();
        lay_heads((const IN *)a, a_at, d, size, a_along, a_whole, room);
        lay_heads((const IN *)b, b_at, d, size, b_along, b_whole, room + STEP * PITCH);
        __syncthreads();
        multiply(room, room + STEP * PITCH, square);
    }
}

/* Returns the dot product of out and its gradient in all 16 threads of a row, which share the work. */
DEVICE A delta_of(const cuda_gradient_args &args, i64 out, i64 dout)
{
    A sum = 0;
    for (int d = threadIdx.x % SIDE; d < args.of.value_size; d += SIDE)
        sum = fused((A)widened<IN>(((const IN *)args.of.out)[out + d * args.of.out_stride[3]]),
                    (A)widened<IN>(((const IN *)args.dout)[dout + d * args.dout_stride[3]]), sum);
    for (int far = SIDE / 2; far > 0; far /= 2)
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, far);
    return sum;
}

/* Writes `size` numbers of a row; a thread has WIDE of each TILE. */
DEVICE void write_row(const A sums[COLUMNS][WIDE], IN *to, int size, i64 along)
{
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
#pragma unroll
        for (int e = 0; e < WIDE; e++) {
            const int at = c * TILE + (int)threadIdx.x % SIDE * WIDE + e;
            if (at < size)
                to[at * along] = narrowed<IN>(sums[c][e]);
        }
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK) attention_dq(const cuda_gradient_args args)
{
    __shared__ __align__(16) A room[ROOM];
    __shared__ __align__(16) A scores[TILE * PITCH];
    __shared__ i64 q_at[TILE], d_at[TILE], k_at[TILE], v_at[TILE];
    const cuda_attention_args &of = args.of;
    const u32 lot = blockIdx.x / (u32)of.blocks, b = lot / (u32)of.groups;
    const int group = (int)(lot - b * of.groups), row = (int)(blockIdx.x - lot * of.blocks) * TILE;
    const sequence s = sequence_of(of, (int)b);
    const reach seen = reach_of(of, s, group, row, TILE);
    const int x = threadIdx.x % SIDE * WIDE, y = threadIdx.x / SIDE * WIDE;
    view mine[WIDE];
    known has[WIDE];
    A sums[WIDE][COLUMNS][WIDE] = {};
    if (threadIdx.x < TILE) {
        const view v = view_of(of, s, group, row + (int)threadIdx.x);
        q_at[threadIdx.x] = v.query < s.queries ? query_at(s, v, of.q_stride) : ABSENT;
        d_at[threadIdx.x] = v.query < s.queries ? query_at(s, v, args.dout_stride) : ABSENT;
    }
    for (int i = 0; i < WIDE; i++) {
        mine[i] = view_of(of, s, group, row + y + i);
        const bool is = mine[i].query < s.queries;
        const i64 out = is ? query_at(s, mine[i], of.out_stride) : 0;
        const i64 dout = is ? query_at(s, mine[i], args.dout_stride) : 0;
        has[i].delta = delta_of(args, out, dout);
        has[i].lse = is ? ((const A *)of.lse)[query_at(s, mine[i], of.lse_stride)] : (A)0;
        if (is && x == 0)
            ((A *)args.delta)[number_of(of, s, mine[i])] = has[i].delta;
    }
    for (int first = seen.from / TILE * TILE; first < seen.end; first += TILE) {
        A score[WIDE][WIDE] = {}, along[WIDE][WIDE] = {};
        __syncthreads();
        if (threadIdx.x < TILE) {
            const int key = first + (int)threadIdx.x;
            const bool is = key >= seen.from && key < seen.end;
            k_at[threadIdx.x] = is ? key_at(of, s, group, key, of.k_stride) : ABSENT;
            v_at[threadIdx.x] = is ? key_at(of, s, group, key, of.v_stride) : ABSENT;
        }
        multiply_rows(of.q, q_at, of.q_stride[3], of.whole_q, of.k, k_at, of.k_stride[3], of.whole_k, of.size, room,
                      score);
        multiply_rows(args.dout, d_at, args.dout_stride[3], args.whole_dout, of.v, v_at, of.v_stride[3], of.whole_v,
                      of.value_size, room, along);
        for (int i = 0; i < WIDE; i++) {
#if DROPOUT
            dice d = {};
#endif
            for (int j = 0; j < WIDE; j++)
                score[i][j] = gradient_of(of, s, mine[i], first + x + j, score[i][j], along[i][j], has[i], THROW).score;
        }
        lay_turned(score, scores);
        add_tile(scores, (const IN *)of.k, k_at, seen.end - first, of.size, of.k_stride[3], of.whole_k, room, sums);
    }
    for (int i = 0; i < WIDE; i++) {
        if (mine[i].query < s.queries)
            write_row(sums[i], (IN *)args.dq + query_at(s, mine[i], args.dq_stride), of.size, args.dq_stride[3]);
    }
}

/* The rows of a group are numbered by queries first: the rows of a tile see no key of the block if the range of the
 * first begins after it, or that of the last ends before it. */
DEVICE bool meets(const cuda_attention_args &of, const sequence &s, int group, int row, int first)
{
    const reach seen = reach_of(of, s, group, row, TILE);
    return seen.from < first + TILE && seen.end > first;
}

extern "C" __global__ void __launch_bounds__(BLOCK) attention_dkv(const cuda_gradient_args args)
{
    __shared__ __align__(16) A room[ROOM];
    __shared__ __align__(16) A weights[TILE * PITCH];
    __shared__ i64 q_at[TILE], d_at[TILE], k_at[TILE], v_at[TILE];
    __shared__ known has[TILE];
    const cuda_attention_args &of = args.of;
    const u32 lot = blockIdx.x / (u32)args.key_blocks, b = lot / (u32)of.groups;
    const int group = (int)(lot - b * of.groups), first = (int)(blockIdx.x - lot * args.key_blocks) * TILE;
    const sequence s = sequence_of(of, (int)b);
    const int x = threadIdx.x % SIDE * WIDE, y = threadIdx.x / SIDE * WIDE, rows = s.queries * of.ratio;
    A sums_k[WIDE][COLUMNS][WIDE] = {}, sums_v[WIDE][COLUMNS][WIDE] = {};
    if (threadIdx.x < TILE) {
        const int key = first + (int)threadIdx.x;
        k_at[threadIdx.x] = key < s.keys ? key_at(of, s, group, key, of.k_stride) : ABSENT;
        v_at[threadIdx.x] = key < s.keys ? key_at(of, s, group, key, of.v_stride) : ABSENT;
    }
    for (int row = 0; row < rows; row += TILE) {
        A score[WIDE][WIDE] = {}, along[WIDE][WIDE] = {};
        if (!meets(of, s, group, row, first))
            continue;
        __syncthreads();
        if (threadIdx.x < TILE) {
            const view v = view_of(of, s, group, row + (int)threadIdx.x);
            const bool is = v.query < s.queries;
            q_at[threadIdx.x] = is ? query_at(s, v, of.q_stride) : ABSENT;
            d_at[threadIdx.x] = is ? query_at(s, v, args.dout_stride) : ABSENT;
            has[threadIdx.x].lse = is ? ((const A *)of.lse)[query_at(s, v, of.lse_stride)] : (A)0;
            has[threadIdx.x].delta = is ? ((const A *)args.delta)[number_of(of, s, v)] : (A)0;
        }
        multiply_rows(of.k, k_at, of.k_stride[3], of.whole_k, of.q, q_at, of.q_stride[3], of.whole_q, of.size, room,
                      score);
        multiply_rows(of.v, v_at, of.v_stride[3], of.whole_v, args.dout, d_at, args.dout_stride[3], args.whole_dout,
                      of.value_size, room, along);
        for (int j = 0; j < WIDE; j++) {
            const view v = view_of(of, s, group, row + x + j);
#if DROPOUT
            dice d = {};
#endif
            for (int i = 0; i < WIDE; i++) {
                const gradient g =
                    gradient_of(of, s, v, first + y + i, score[i][j], along[i][j], has[x + j], THROW);
                score[i][j] = g.score;
                along[i][j] = g.value;
            }
        }
        lay_turned(along, weights);
        add_tile(weights, (const IN *)args.dout, d_at, rows - row, of.value_size, args.dout_stride[3], args.whole_dout,
                 room, sums_v);
        __syncthreads();
        lay_turned(score, weights);
        add_tile(weights, (const IN *)of.q, q_at, rows - row, of.size, of.q_stride[3], of.whole_q, room, sums_k);
    }
    for (int i = 0; i < WIDE; i++) {
        if (first + y + i >= s.keys)
            continue;
        write_row(sums_k[i], (IN *)args.dk + key_at(of, s, group, first + y + i, args.dk_stride), of.size,
                  args.dk_stride[3]);
        write_row(sums_v[i], (IN *)args.dv + key_at(of, s, group, first + y + i, args.dv_stride), of.value_size,
                  args.dv_stride[3]);
    }
}
