/* Shared by the attention kernels: positions of sequences and rows, the keys that a row sees, the handling of
 * scores and of a row's sums. IN and OUT are the dtypes; SIZE is the maximum head size: a power of two, at least
 * 64, and not less than either of the two head sizes; DROPOUT says whether weights are dropped.
 *
 * Everything is computed in A. For a given number of parts of the keys and of rows per block, the result of a row
 * depends only on its own sequence. */
typedef work<IN>::type A;
typedef pack<IN, 16 / sizeof(IN)> piece; /* the unit of one read */
enum { EACH = 16 / sizeof(IN) };

#define ABSENT (-0x7FFFFFFFFFFFFFFFll - 1) /* marks an invalid position */

DEVICE f32 fused(f32 a, f32 b, f32 c) { return fmaf(a, b, c); }
DEVICE f64 fused(f64 a, f64 b, f64 c) { return fma(a, b, c); }
DEVICE A nothing() { return -(A)__int_as_float(0x7F800000); }
DEVICE i64 within(i64 x, i64 least, i64 most) { return x < least ? least : x > most ? most : x; }
DEVICE i64 entry(const cuda_table &table, i64 i) { return table.first[i * table.stride]; }

/* The position of sequence b. Out-of-range table entries are clamped. */
struct sequence {
    int b, batch, queries, keys;
    i64 first_query, first_key;
};

DEVICE void span(const cuda_table &starts, int b, i64 all, int most, i64 *first, int *count)
{
    *first = within(entry(starts, b), 0, all);
    *count = (int)within(entry(starts, b + 1) - *first, 0, most < all - *first ? most : all - *first);
}

DEVICE sequence sequence_of(const cuda_attention_args &args, int b)
{
    sequence s = {b, b, args.queries, args.keys, 0, 0};
    if (args.starts_q.first) {
        s.batch = 0;
        span(args.starts_q, b, args.all_queries, args.queries, &s.first_query, &s.queries);
    }
    if (args.starts_k.first)
        span(args.starts_k, b, args.all_keys, args.keys, &s.first_key, &s.keys);
    if (args.lengths.first)
        s.keys = (int)within(entry(args.lengths, b), 0, s.keys);
    return s;
}

/* A row: its query and head, and the keys that it sees by its position; none if the row does not exist. */
struct view {
    int query, head;
    int from, end;
};

DEVICE view view_of(const cuda_attention_args &args, const sequence &s, int group, int row)
{
    const int query = (int)((u32)row / (u32)args.ratio);
    view v = {query, group * args.ratio + row - query * args.ratio, 0, 0};
    if (query >= s.queries)
        return v;
    const i64 place = query + args.shift + (args.bottom ? s.keys - s.queries : 0);
    const i64 end = args.right < 0 || args.right >= s.keys - place ? s.keys : place + args.right + 1;
    v.from = args.left < 0 || place <= args.left ? 0 : (int)within(place - args.left, 0, s.keys);
    v.end = (int)within(end, v.from, s.keys);
    return v;
}

/* The range of keys that a block of rows sees by position: bounded by those of its first and last row. */
struct reach {
    int from, end;
};

DEVICE reach reach_of(const cuda_attention_args &args, const sequence &s, int group, int row, int count)
{
    const int rows = s.queries * args.ratio, last = row + count < rows ? row + count - 1 : rows - 1;
    return {view_of(args, s, group, row).from, view_of(args, s, group, last).end};
}

/* Returns the offset of a key's or value's row; ABSENT if the table has no such page. */
DEVICE i64 key_at(const cuda_attention_args &args, const sequence &s, int group, int key, const long long *stride)
{
    if (!args.pages.first)
        return s.batch * stride[0] + group * stride[1] + (s.first_key + key) * stride[2];
    const int number = (int)((u32)key / (u32)args.page);
    const int page = args.pages.first[s.b * args.pages.stride + number * args.pages_along];
    if (page < 0 || page >= args.pool)
        return ABSENT;
    return page * stride[0] + group * stride[1] + (key - number * args.page) * stride[2];
}

DEVICE i64 query_at(const sequence &s, const view &v, const long long *stride)
{
    return s.batch * stride[0] + v.head * stride[1] + (s.first_query + v.query) * stride[2];
}

/* Reads EACH elements of a row from `first` on, at once if possible; elements beyond its end are 0. */
DEVICE piece piece_of(const IN *row, int first, int size, i64 along, int whole)
{
    piece some = {};
    if (whole && first + EACH <= size) {
        some = *(const piece *)(row + first);
    } else {
        for (int e = 0; e < EACH; e++) {
            if (first + e < size)
                some.of[e] = row[(first + e) * along];
        }
    }
    return some;
}

/* Converts the elements to A; bf16 in pairs, as they are stored in a word. */
template <typename T, int N> DEVICE void widen(const pack<T, N> &some, A *out)
{
#pragma unroll
    for (int e = 0; e < N; e++)
        out[e] = (A)widened<T>(some.of[e]);
}
template <int N> DEVICE void widen(const pack<bf16, N> &some, f32 *out)
{
    u32 words[N / 2];
    memcpy(words, &some, sizeof words);
#pragma unroll
    for (int e = 0; e < N; e += 2) {
        out[e] = __uint_as_float(words[e / 2] << 16);
        out[e + 1] = __uint_as_float(words[e / 2] & 0xFFFF0000u);
    }
}

DEVICE A real_of(const void *from, i64 at, int kind)
{
    return kind == 2 ? (A)((const f32 *)from)[at] : (A)widened<IN>(((const IN *)from)[at]);
}

/* Marks a weight or a gradient whose pair of row and key does not count, because the key is hidden from the row or
 * dropout does not keep the weight. Values that may be non-finite are not multiplied by it; others are, and then it
 * acts as 0. A number that counts is never -0. */
#define UNCOUNTED ((A)-0.0)
DEVICE bool counts(f32 weight) { return __float_as_uint(weight) != 0x80000000u; }
DEVICE bool counts(f64 weight) { return (u64)__double_as_longlong(weight) != 0x8000000000000000ull; }

/* Returns the score for a product of query and key; -infinity if the key is hidden, and then `seen` is
 * false. */
DEVICE A score_of(const cuda_attention_args &args, const sequence &s, const view &v, int key, A product, bool &seen)
{
    seen = key >= v.from && key < v.end;
    if (!seen)
        return nothing();
    A score = product * (A)args.scale;
    if (args.softcap != 0)
        score = (A)args.softcap * of_tanh(score / (A)args.softcap);
    if (args.mask_kind == 0)
        return score;
    const i64 at = s.b * args.mask_stride[0] + v.head * args.mask_stride[1] + v.query * args.mask_stride[2] +
                   key * args.mask_stride[3];
    const A more = args.mask_kind == 1 ? (A)0 : real_of(args.mask, at, args.mask_kind);
    seen = args.mask_kind == 1 ? ((const u8 *)args.mask)[at] != 0 : more != nothing();
    return seen ? score + more : nothing();
}

/* The reference that is subtracted from scores: the maximum so far, or 0 if none exists. */
DEVICE A level_of(A greatest) { return greatest == nothing() ? (A)0 : greatest; }

#if DROPOUT
/* The random words around a position; recomputed if the position is in another block. */
struct dice {
    u64 block;
    u32 words[4];
    bool made;
};

DEVICE bool keeps(const cuda_attention_args &args, const sequence &s, const view &v, int key, dice &d)
{
    const u64 row = ((u64)s.b * (u64)args.heads + (u64)v.head) * (u64)args.queries + (u64)v.query;
    const u64 place = row * (u64)args.keys + (u64)key;
    if (!d.made || d.block != place / 4) {
        d.made = true;
        d.block = place / 4;
        tn_philox_block(args.seed, 0, args.offset + d.block, d.words);
    }
    const u32 low = place % 2 ? d.words[1] : d.words[0], high = place % 2 ? d.words[3] : d.words[2];
    return (place % 4 < 2 ? low : high) >> 8 >= args.threshold;
}
#endif

/* The factor for a row's sums of values, and its lse; both include the head's sink, if it has one. The factor is
 * negative if the row sees no key, or all its scores are -infinity. */
struct verdict {
    A factor, lse;
};

/* A value of such a row is 0, whatever its sum is. */
DEVICE A value_of(A sum, A factor) { return factor < 0 ? (A)0 : sum * factor; }

DEVICE verdict verdict_of(const cuda_attention_args &args, int head, A greatest, A sum)
{
    const A sink = args.sinks_kind ? real_of(args.sinks, head * args.sinks_stride, args.sinks_kind) : nothing();
    const A level = level_of(sink > greatest ? sink : greatest);
    const A share = of_exp(greatest - level);
    const A all = sum * share + of_exp(sink - level);
    const bool none = greatest == nothing() && sum == 0;
    verdict x = {none ? (A)-1 : share / (all * (A)args.kept), all == 0 ? nothing() : level + of_log(all)};
    return x;
}

/* Returns the index of a row's part among all parts. */
DEVICE i64 part_of(const cuda_attention_args &args, int b, int group, int row, int part)
{
    return (((i64)b * args.groups + group) * args.queries * args.ratio + row) * args.parts + part;
}

/* After the sums of values of all parts: the maximum score and the sum of weights of each part. */
DEVICE A *weights_of_parts(const cuda_attention_args &args)
{
    return (A *)args.partial + part_of(args, args.batch, 0, 0, 0) * args.value_size;
}
