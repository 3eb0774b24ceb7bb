/* Attention by two products of a library: kernels that copy Q, K and V to dense matrices, make weights of the scores, and
 * write OUT. A warp copies a line, a block makes the weights of a row, one after the other. SCORES is the dtype in which
 * scores are stored. */
enum { WARPS = BLOCK / WARP };

DEVICE bool is_finite(A x) { return x - x == (A)0; }

/* A lot's sequence and group. */
struct lot_place {
    sequence s;
    int group;
};

DEVICE lot_place lot_of(const cuda_math_args &args, i64 lot)
{
    const int b = (int)(lot / args.at.groups);
    return {sequence_of(args.at, b), (int)(lot - (i64)b * args.at.groups)};
}

/* Copies a line of `size` elements to one of `whole`, which is filled up with 0; `from` is 0 for a line of zeros. If
 * `clean`, non-finite elements become 0; returns whether a lane found one. */
DEVICE bool copy_line(const IN *from, i64 along, int size, IN *to, int whole, bool clean)
{
    bool found = false;
    for (int e = (int)threadIdx.x % WARP; e < whole; e += WARP) {
        IN x = {};
        if (from && e < size)
            x = from[e * along];
        if (clean && !is_finite((A)widened<IN>(x))) {
            found = true;
            x = IN{};
        }
        to[e] = x;
    }
    return found;
}

DEVICE void gather_query(const cuda_math_args &args, i64 line)
{
    const i64 lot = line / args.rows;
    const lot_place is = lot_of(args, lot);
    const view v = view_of(args.at, is.s, is.group, (int)(line - lot * args.rows));
    const IN *from =
        v.query < is.s.queries ? (const IN *)args.at.q + query_at(is.s, v, args.at.q_stride) : (const IN *)0;
    copy_line(from, args.at.q_stride[3], args.at.size, (IN *)args.parts[CUDA_MATH_Q] + line * args.line, args.line, false);
}

DEVICE void gather_key(const cuda_math_args &args, i64 line)
{
    const i64 lot = line / args.at.keys;
    const int key = (int)(line - lot * args.at.keys);
    const lot_place is = lot_of(args, lot);
    const long long *stride = args.values ? args.at.v_stride : args.at.k_stride;
    const IN *all = (const IN *)(args.values ? args.at.v : args.at.k);
    const i64 place = key < is.s.keys ? key_at(args.at, is.s, is.group, key, stride) : ABSENT;
    const IN *from = place == ABSENT ? (const IN *)0 : all + place;
    const int whole = args.values ? args.value_line : args.line;
    IN *to = (IN *)(args.values ? args.parts[CUDA_MATH_V] : args.parts[CUDA_MATH_K]) + line * whole;
    if (copy_line(from, stride[3], args.values ? args.at.value_size : args.at.size, to, whole, args.values != 0))
        ((int *)args.parts[CUDA_MATH_FLAGS])[lot] = 1;
}

extern "C" __global__ void __launch_bounds__(BLOCK) math_gather(const cuda_math_args args)
{
    const i64 first = (i64)blockIdx.x * BLOCK + threadIdx.x, step = (i64)gridDim.x * BLOCK;
    const i64 queries = args.values ? 0 : (i64)args.lots * args.rows, all = queries + (i64)args.lots * args.at.keys;
    for (i64 i = first; i < args.lots && !args.values; i += step)
        ((int *)args.parts[CUDA_MATH_FLAGS])[i] = 0;
    for (i64 line = first / WARP; line < all; line += step / WARP) {
        if (line < queries)
            gather_query(args, line);
        else
            gather_key(args, line - queries);
    }
}

/* Keys that do not count have the weight -0 (UNCOUNTED). */
extern "C" __global__ void __launch_bounds__(BLOCK) math_weights(const cuda_math_args args)
{
    const i64 all = (i64)args.lots * args.rows;
    for (i64 line = blockIdx.x; line < all; line += gridDim.x) {
        const i64 lot = line / args.rows;
        const lot_place is = lot_of(args, lot);
        const view v = view_of(args.at, is.s, is.group, (int)(line - lot * args.rows));
        const SCORES *scores = (const SCORES *)args.parts[CUDA_MATH_SCORES] + line * args.key_line;
        IN *weights = (IN *)args.parts[CUDA_MATH_WEIGHTS] + line * args.key_line;
        A maximum = nothing(), sum = 0;
        bool seen;
        for (int key = v.from + (int)threadIdx.x; key < v.end; key += BLOCK) {
            const A score = score_of(args.at, is.s, v, key, (A)widened<SCORES>(scores[key]), seen);
            maximum = score > maximum ? score : maximum;
        }
        maximum = combined<greatest, BLOCK>(maximum);
        const A level = level_of(maximum);
#if DROPOUT
        dice d = {0, {}, false};
#endif
        for (int key = (int)threadIdx.x; key < args.key_line; key += BLOCK) {
            A weight = UNCOUNTED;
            const A product = key < v.end ? (A)widened<SCORES>(scores[key]) : (A)0;
            const A score = score_of(args.at, is.s, v, key, product, seen);
            if (seen) {
                weight = of_exp(score - level);
                sum += weight;
#if DROPOUT
                if (!keeps(args.at, is.s, v, key, d))
                    weight = UNCOUNTED;
#endif
            }
            weights[key] = narrowed<IN>(weight);
        }
        sum = combined<summed, BLOCK>(sum);
        if (threadIdx.x != 0 || v.query >= is.s.queries)
            continue;
        const verdict found = verdict_of(args.at, v.head, maximum, sum);
        ((A *)args.parts[CUDA_MATH_FACTORS])[line] = found.factor;
        if (args.at.lse)
            ((A *)args.at.lse)[query_at(is.s, v, args.at.lse_stride)] = found.lse;
    }
}

/* The sum of a column from V itself, where that has non-finite elements. */
DEVICE A sum_exactly(const cuda_math_args &args, const lot_place &is, i64 line, int column)
{
    const IN *weights = (const IN *)args.parts[CUDA_MATH_WEIGHTS] + line * args.key_line;
    A sum = 0;
    for (int key = 0; key < is.s.keys; key++) {
        const A weight = (A)widened<IN>(weights[key]);
        const i64 place = key_at(args.at, is.s, is.group, key, args.at.v_stride);
        if (!counts(weight) || place == ABSENT)
            continue;
        sum = fused(weight, (A)widened<IN>(((const IN *)args.at.v)[place + column * args.at.v_stride[3]]), sum);
    }
    return sum;
}

extern "C" __global__ void __launch_bounds__(BLOCK) math_scatter(const cuda_math_args args)
{
    const i64 all = (i64)args.lots * args.rows, step = (i64)gridDim.x * WARPS;
    for (i64 line = (i64)blockIdx.x * WARPS + threadIdx.x / WARP; line < all; line += step) {
        const i64 lot = line / args.rows;
        const lot_place is = lot_of(args, lot);
        const view v = view_of(args.at, is.s, is.group, (int)(line - lot * args.rows));
        if (v.query >= is.s.queries)
            continue;
        OUT *out = (OUT *)args.at.out + query_at(is.s, v, args.at.out_stride);
        const A factor = ((const A *)args.parts[CUDA_MATH_FACTORS])[line];
        for (int column = (int)threadIdx.x % WARP; column < args.at.value_size; column += WARP) {
            const A sum = ((int *)args.parts[CUDA_MATH_FLAGS])[lot] ? sum_exactly(args, is, line, column)
                                          : ((const A *)args.parts[CUDA_MATH_SUMS])[line * args.value_line + column];
            out[column * args.at.out_stride[3]] = narrowed<OUT>(value_of(sum, factor));
        }
    }
}
