/* The reference kernel of attention-quantized against its definition, and the processor's own, every row that runs here,
 * against both: fresh random numbers, masks, layouts, weights and scales. And both against exact attention, on inputs that
 * are hard to quantize. */
#include "tenon/module/op/attention_quantized.h"

#include "op/bounds.h"

#include "cpu_attention_make.h"

static const tn_dtype all[] = {TN_F32, TN_BF16, TN_F16, 0};
static const tn_dtype precisions[] = {TN_F32, TN_F16, TN_F8_E4M3FN, TN_U8, TN_I8};
static const int32_t results[] = {TN_ATTENTION_QUANTIZED_OUT, TN_ATTENTION_QUANTIZED_LSE};
enum { RESULTS = 2, PRECISIONS = 5 };

static tn_attention_quantized_op *params_of(call *c)
{
    return TN_PARAMS_MUTABLE(&c->op, attention_quantized);
}

static call quantized_call(tn_dtype dtype, tn_dtype weights, int64_t batch, int64_t heads,
                           int64_t groups, int64_t queries, int64_t keys, int64_t size,
                           int64_t value_size)
{
    call c = call_of(dtype, batch, heads, groups, queries, keys, size, value_size);
    const tn_attention_op at = *TN_PARAMS(&c.op, attention);
    c.op.kind = TN_OP_ATTENTION_QUANTIZED;
    c.op.count = TN_ATTENTION_QUANTIZED_OPERANDS;
    *params_of(&c) = (tn_attention_quantized_op){.at = at, .weights = weights};
    params_of(&c)->at.scale = 1 / sqrt((double)size);
    return c;
}

static call roll_call(int64_t most)
{
    const int64_t groups = 1 + (int64_t)dice(2), heads = groups * (1 + (int64_t)dice(3));
    const int64_t size = roll_size(most < 150 ? 140 : 40);
    call c = quantized_call(all[dice(3)], precisions[dice(PRECISIONS)], 1 + (int64_t)dice(2), heads,
                            groups, roll_size(most), roll_size(most), size,
                            dice(3) ? size : roll_size(140));
    tn_attention_quantized_op *params = params_of(&c);
    params->scales = (int32_t)dice(TN_SCALES_COUNT);
    params->smoothing = (int32_t)dice(4) == 0;
    params->at.scale *= dice(3) ? 1 : (double)dice(5) - 2;
    roll_wide_window(&params->at);
    params->at.shift = 0;
    for (int32_t o = TN_ATTENTION_QUANTIZED_Q; o <= TN_ATTENTION_QUANTIZED_V; o++)
        call_lay(&c, o, dice(2) ? DENSE : (int)dice(LAYOUTS));
    return c;
}

/* The definition, for one head: matrices of integers, then of weights. */
typedef struct matrices {
    int64_t queries, keys, size, value_size;
    long double *q, *k, *v;     /* with their scales divided out */
    long double *sq, *sk, *sv;  /* of rows, rows and columns */
    long double *mean, *scores; /* [size], [queries][keys] */
} matrices;

static long double *numbers_of(int64_t count)
{
    long double *memory = calloc((size_t)count + 1, sizeof *memory);
    assert_non_null(memory);
    return memory;
}

static long double half_away(long double x)
{
    return x < 0 ? -floorl(0.5L - x) : floorl(0.5L + x);
}

/* To the nearest number with so many digits, ties to even, in steps of at least 2^least. */
static long double in_digits(long double x, int digits, int least)
{
    int exponent;
    if (x == 0)
        return x;
    (void)frexpl(x, &exponent);
    const int step = exponent - digits > least ? exponent - digits : least;
    return ldexpl(rintl(ldexpl(x, -step)), step);
}

static long double in_format(tn_dtype to, long double x)
{
    return to == TN_F16         ? in_digits(x, 11, -24)
           : to == TN_F8_E4M3FN ? in_digits(x, 4, -9)
           : to == TN_F32       ? x
                                : half_away(x);
}

/* The first row of the group that a row is in: rows are in the same group if this is the same. */
static int64_t group_of_query(int32_t scales, int64_t i)
{
    return scales == TN_SCALES_BLOCK  ? i - i % 128
           : scales == TN_SCALES_WARP ? i - i % 32
                                      : i - i % 32 + i % 8;
}

static int64_t group_of_key(int32_t scales, int64_t j)
{
    return scales == TN_SCALES_THREAD ? j - j % 64 + j % 8 - j % 2 : j - j % 64;
}

/* Divides rows by scales, and rounds. */
static void quantize_rows(long double *x, long double *scales, int64_t count, int64_t size,
                          int32_t kind, int64_t (*group)(int32_t, int64_t))
{
    long double *greatest = numbers_of(count + 128);
    for (int64_t i = 0; i < count * size; i++) {
        long double *of = &greatest[group(kind, i / size)];
        *of = fabsl(x[i]) > *of ? fabsl(x[i]) : *of;
    }
    for (int64_t i = 0; i < count; i++)
        scales[i] = greatest[group(kind, i)] / 127 + 1e-7L;
    for (int64_t i = 0; i < count * size; i++)
        x[i] = half_away(x[i] / scales[i / size]);
    free(greatest);
}

static void subtract_means(matrices *m, bool smooth)
{
    for (int64_t d = 0; d < m->size && smooth; d++) {
        for (int64_t j = 0; j < m->keys; j++)
            m->mean[d] += m->k[j * m->size + d] / m->keys;
        for (int64_t j = 0; j < m->keys; j++)
            m->k[j * m->size + d] -= m->mean[d];
    }
}

static void quantize_values(matrices *m, tn_dtype weights)
{
    const long double limit = weights == TN_F8_E4M3FN ? 448 : 127;
    for (int64_t c = 0; c < m->value_size; c++) {
        long double greatest = 0;
        for (int64_t j = 0; j < m->keys; j++)
            greatest = fmaxl(greatest, fabsl(m->v[j * m->value_size + c]));
        m->sv[c] = weights == TN_F32 || weights == TN_F16 ? 1 : greatest / limit + 1e-7L;
        for (int64_t j = 0; j < m->keys; j++)
            m->v[j * m->value_size + c] =
                in_format(weights, m->v[j * m->value_size + c] / m->sv[c]);
    }
}

static matrices matrices_of(call *c, int64_t b, int64_t h)
{
    const tn_attention_quantized_op *op = params_of(c);
    const tn_attention_op *at = &op->at;
    const int64_t q = (b * at->heads + h) * at->queries;
    const int64_t k = (b * at->groups + h * at->groups / at->heads) * at->keys;
    matrices m = {
        .queries = at->queries, .keys = at->keys, .size = at->size, .value_size = at->value_size};
    m.q = numbers_of(m.queries * m.size);
    m.k = numbers_of(m.keys * m.size);
    m.v = numbers_of(m.keys * m.value_size);
    m.sq = numbers_of(m.queries);
    m.sk = numbers_of(m.keys);
    m.sv = numbers_of(m.value_size);
    m.mean = numbers_of(m.size);
    m.scores = numbers_of(m.queries * m.keys);
    for (int64_t n = 0; n < m.queries * m.size; n++)
        m.q[n] = value_at(&c->o[TN_ATTENTION_QUANTIZED_Q], q * m.size + n, 0);
    for (int64_t n = 0; n < m.keys * m.size; n++)
        m.k[n] = value_at(&c->o[TN_ATTENTION_QUANTIZED_K], k * m.size + n, 0);
    for (int64_t n = 0; n < m.keys * m.value_size; n++)
        m.v[n] = value_at(&c->o[TN_ATTENTION_QUANTIZED_V], k * m.value_size + n, 0);
    return m;
}

static void drop_matrices(matrices *m)
{
    long double *const memory[] = {m->q, m->k, m->v, m->sq, m->sk, m->sv, m->mean, m->scores};
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        free(memory[i]);
}

/* Weights of a row relative to its greatest score; out and lse of the row. */
static void define_row(call *c, const matrices *m, int64_t i, long double offset, long double *out,
                       long double *lse)
{
    const tn_attention_quantized_op *op = params_of(c);
    const long double limit = op->weights == TN_U8          ? 255
                              : op->weights == TN_I8        ? 127
                              : op->weights == TN_F8_E4M3FN ? 448
                                                            : 1;
    const long double *s = m->scores + i * m->keys;
    long double most = -(long double)INFINITY, near = most, exact = 0, sum = 0;
    for (int64_t j = 0; j < m->keys; j++)
        most = s[j] > most ? s[j] : most;
    for (int64_t d = 0; d < m->value_size; d++)
        out[d] = 0;
    for (int64_t j = 0; j < m->keys; j++) {
        if (j % 128 == 0)
            near = -(long double)INFINITY;
        for (int64_t n = j; j % 128 == 0 && n < m->keys && n < j + 128; n++)
            near = s[n] > near ? s[n] : near;
        if (s[j] == -(long double)INFINITY)
            continue;
        const long double weight =
            in_format(op->weights, limit * expl(s[j] - near)) * expl(near - most);
        exact += expl(s[j] - most);
        sum += weight;
        for (int64_t d = 0; d < m->value_size; d++)
            out[d] += weight * m->v[j * m->value_size + d] * m->sv[d];
    }
    for (int64_t d = 0; d < m->value_size; d++)
        out[d] = sum > 0 ? out[d] / sum : 0;
    *lse = sum > 0 ? most + logl(exact) + offset : -(long double)INFINITY;
}

static void define_head(call *c, matrices *m, int64_t b, int64_t h, call *to)
{
    const tn_attention_quantized_op *op = params_of(c);
    long double *out = numbers_of(m->value_size), *offsets = numbers_of(m->queries), lse;
    subtract_means(m, op->smoothing == TN_SMOOTHING_K);
    for (int64_t n = 0; n < m->queries * m->size; n++)
        offsets[n / m->size] += m->q[n] * m->mean[n % m->size] * (long double)op->at.scale;
    quantize_rows(m->q, m->sq, m->queries, m->size, op->scales, group_of_query);
    quantize_rows(m->k, m->sk, m->keys, m->size, op->scales, group_of_key);
    quantize_values(m, op->weights);
    for (int64_t n = 0; n < m->queries * m->keys; n++) {
        const int64_t i = n / m->keys, j = n % m->keys;
        for (int64_t d = 0; d < m->size; d++)
            m->scores[n] += m->q[i * m->size + d] * m->k[j * m->size + d];
        m->scores[n] *= (long double)op->at.scale * m->sq[i] * m->sk[j];
        if (!place_is_seen(&op->at, i, j, m->queries, m->keys))
            m->scores[n] = -(long double)INFINITY;
    }
    for (int64_t i = 0; i < m->queries; i++) {
        const int64_t row = (b * op->at.heads + h) * m->queries + i;
        define_row(c, m, i, offsets[i], out, &lse);
        for (int64_t d = 0; d < m->value_size; d++)
            put_number(&to->o[TN_ATTENTION_QUANTIZED_OUT], row * m->value_size + d, (double)out[d]);
        put_number(&to->o[TN_ATTENTION_QUANTIZED_LSE], row, (double)lse);
    }
    free(out);
    free(offsets);
}

/* The definition's results are f64, whatever the dtype. */
static call defined_of(call *c)
{
    const tn_attention_op *at = &params_of(c)->at;
    call want = *c;
    for (int n = 0; n < RESULTS; n++) {
        const tn_layout *of = &c->o[results[n]].layout;
        want.o[results[n]] = make(TN_F64, of->rank, of->shape, DENSE);
    }
    for (int64_t n = 0; n < at->batch * at->heads; n++) {
        matrices m = matrices_of(c, n / at->heads, n % at->heads);
        define_head(c, &m, n / at->heads, n % at->heads, &want);
        drop_matrices(&m);
    }
    return want;
}

/* The mean and the greatest difference, relative to the mean and the greatest size. */
typedef struct distance {
    long double mean, most;
} distance;

static distance distance_of(const operand *found, const operand *want)
{
    long double off = 0, all_sizes = 0, most = 0, greatest = 0;
    for (int64_t e = 0; e < elements_of(&want->layout); e++) {
        const long double x = value_at(found, e, 0), y = value_at(want, e, 0);
        if (x == y)
            continue;
        assert_false(is_nan(x) || is_nan(y) || is_inf(x) || is_inf(y));
        off += fabsl(x - y);
        most = fmaxl(most, fabsl(x - y));
    }
    for (int64_t e = 0; e < elements_of(&want->layout); e++) {
        const long double y = value_at(want, e, 0);
        all_sizes += is_inf(y) ? 0 : fabsl(y);
        greatest = is_inf(y) ? greatest : fmaxl(greatest, fabsl(y));
    }
    return (distance){off / (all_sizes + 1e-30L), most / (greatest + 1e-30L)};
}

/* Rounding to the dtype of out. */
static long double slack_of_out(const call *c)
{
    const tn_dtype dtype = c->o[TN_ATTENTION_QUANTIZED_OUT].layout.dtype;
    return dtype == TN_BF16 ? 0x1p-8L : dtype == TN_F16 ? 0x1p-11L : 0x1p-24L;
}

static void assert_as_defined(call *found, call *want)
{
    for (int i = 0; i < RESULTS; i++) {
        const bool out = results[i] == TN_ATTENTION_QUANTIZED_OUT;
        const distance d = distance_of(&found->o[results[i]], &want->o[results[i]]);
        const long double slack = (out ? slack_of_out(found) : 0x1p-24L) + 0x1p-20L;
        if (!(d.mean <= slack && d.most <= 4 * slack))
            fail_msg("reference: operand %d is off by %Lg on average and %Lg at most",
                     (int)results[i], d.mean, d.most);
    }
}

/* Returns how many results are farther from the reference's than the error bound permits: it allows an integer that is one
 * off where f32 cannot tell. */
static int64_t count_wrong(call *found, const call *reference, const tn_kernel_row *row)
{
    void *data[TN_OP_OPERANDS_MAX] = {NULL};
    int64_t wrong = 0;
    for (int32_t i = 0; i < found->op.count; i++) {
        found->op.operand[i] = found->o[i].layout;
        data[i] = found->o[i].first;
    }
    for (int i = 0; i < RESULTS; i++) {
        const operand *x = &found->o[results[i]], *y = &reference->o[results[i]];
        tni_bounds bounds = {
            .op = &found->op, .output = results[i], .data = data, .numerics = row->numerics};
        tni_place place = {{0}};
        assert_int_equal(tni_bounds_init(&bounds, NULL), TN_OK);
        for (int64_t e = 0; e < elements_of(&x->layout); e++) {
            const tni_number want = {(double)value_at(y, e, 0), 0};
            const double off = fabs((double)value_at(x, e, 0) - want.re);
            const double bound = tni_bounds_at(&bounds, &place, want);
            wrong += value_at(x, e, 0) != value_at(y, e, 0) && !(off <= bound);
            (void)tni_place_next(&place, &x->layout);
        }
        tni_bounds_release(&bounds);
    }
    return wrong;
}

static void any_problem_is_as_defined(void **state)
{
    (void)state;
    (void)find_rows_of(TN_OP_ATTENTION_QUANTIZED, all, 0, 0);
    for (int turn = 0; turn < 200; turn++) {
        if (!test_sampled((uint64_t)turn, test_reduced() ? 40 : 10))
            continue;
        call c = roll_call(turn % 20 ? 100 : 300), want = defined_of(&c);
        call by_reference = twin_of(&c, results, RESULTS);
        call_compute(&by_reference, 1 + (int32_t)dice(3));
        assert_as_defined(&by_reference, &want);
        for (int n = 0; n < row_count; n++) {
            call found = twin_of(&c, results, RESULTS);
            compute_by(rows[n], &found, 1 + (int32_t)dice(3));
            const int64_t wrong = count_wrong(&found, &by_reference, rows[n]);
            if (wrong)
                fail_msg("%s: %lld results are wrong", rows[n]->name, (long long)wrong);
            for (int i = 0; i < RESULTS; i++)
                assert_outside_untouched(&found.o[results[i]]);
            twin_drop(&found, results, RESULTS);
        }
        twin_drop(&by_reference, results, RESULTS);
        twin_drop(&want, results, RESULTS);
        call_drop(&c);
    }
}

/* The bound is tight enough to find a kernel that has other scales, other weights, or does not smooth. */
static void other_precisions_are_found(void **state)
{
    const uint64_t before = dice_hold();
    (void)state;
    (void)find_rows_of(TN_OP_ATTENTION_QUANTIZED, all, 0, 0);
    for (int turn = 0; turn < 3; turn++) {
        if (test_fewest() && (uint64_t)turn != test_seed() % 3)
            continue;
        call c = quantized_call(TN_F32, TN_U8, 1, 2, 1, 140, 150, 64, 64);
        call reference = twin_of(&c, results, RESULTS);
        call_compute(&reference, 1);
        for (int n = 0; n < row_count; n++) {
            call other = twin_of(&c, results, RESULTS);
            tn_attention_quantized_op *params = params_of(&other);
            params->scales = turn == 0 ? TN_SCALES_WARP : TN_SCALES_THREAD;
            params->weights = turn == 1 ? TN_I8 : TN_U8;
            params->smoothing = turn == 2 ? TN_SMOOTHING_NONE : TN_SMOOTHING_K;
            compute_by(rows[n], &other, 1);
            *params = *params_of(&c);
            assert_true(count_wrong(&other, &reference, rows[n]) > 100);
            twin_drop(&other, results, RESULTS);
        }
        twin_drop(&reference, results, RESULTS);
        call_drop(&c);
    }
    dice_state = before;
}

static void assert_same_bits(const call *one, const call *other, const char *name)
{
    for (int i = 0; i < RESULTS; i++) {
        const operand *a = &one->o[results[i]], *b = &other->o[results[i]];
        const int64_t bytes = (a->layout.dtype >> 8 & 255) / 8;
        if (memcmp(a->first, b->first, (size_t)(elements_of(&a->layout) * bytes)) != 0)
            fail_msg("%s: operand %d differs", name, (int)results[i]);
    }
}

static void threads_change_no_bit(void **state)
{
    (void)state;
    (void)find_rows_of(TN_OP_ATTENTION_QUANTIZED, all, 0, 0);
    for (int turn = 0; turn < 12; turn++) {
        if (!test_sampled((uint64_t)turn, 4))
            continue;
        call one = roll_call(1200), many = twin_of(&one, results, RESULTS);
        for (int n = 0; n < row_count; n++) {
            compute_by(rows[n], &one, 1);
            compute_by(rows[n], &many, 4);
            assert_same_bits(&one, &many, rows[n]->name);
        }
        twin_drop(&many, results, RESULTS);
        call_drop(&one);
    }
}

/* A normal random number: the sum of twelve uniform ones. */
static double normal_number(void)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += (double)dice(1 << 20) / (1 << 20);
    return sum;
}

/* The recipe for inputs that are hard to quantize. Q, K and V are normal random numbers. Every sixteenth column of Q and K
 * and every eighth of V is an outlier: 8 times as large. If `constant`, a random number from a normal distribution of
 * deviation 100 is added to each column of K, the same for all keys. Scores have a deviation of about 1. */
static void put_outliers(call *c, bool constant)
{
    const tn_attention_op *at = &params_of(c)->at;
    double offset[256];
    assert_true(at->size <= 256);
    for (int64_t d = 0; d < at->size; d++)
        offset[d] = constant ? 100 * normal_number() : 0;
    for (int32_t o = TN_ATTENTION_QUANTIZED_Q; o <= TN_ATTENTION_QUANTIZED_V; o++) {
        const int64_t size = c->o[o].layout.shape[3];
        const int64_t every = o == TN_ATTENTION_QUANTIZED_V ? 8 : 16;
        for (int64_t e = 0; e < elements_of(&c->o[o].layout); e++) {
            const double x = normal_number() * (e % size % every == 3 ? 8 : 1);
            put_number(&c->o[o], e, x + (o == TN_ATTENTION_QUANTIZED_K ? offset[e % size] : 0));
        }
    }
    params_of(c)->at.scale = 1 / sqrt((double)at->size * (15 + 8 * 8 * 8 * 8) / 16);
}

/* Exact attention of the first `rows` queries of each head, in long double. */
static void attend(call *c, int64_t rows_most, call *to)
{
    const tn_attention_op *at = &params_of(c)->at;
    const int64_t count = at->queries < rows_most ? at->queries : rows_most;
    long double *out = numbers_of(at->value_size), *s = numbers_of(at->keys);
    for (int64_t n = 0; n < at->batch * at->heads * count; n++) {
        const int64_t in = n / count, i = n % count, row = in * at->queries + i;
        const int64_t k = in / at->heads * at->groups + in % at->heads * at->groups / at->heads;
        long double most = -(long double)INFINITY, sum = 0;
        for (int64_t j = 0; j < at->keys; j++) {
            long double dot = 0;
            for (int64_t d = 0; d < at->size; d++)
                dot +=
                    value_at(&c->o[TN_ATTENTION_QUANTIZED_Q], row * at->size + d, 0) *
                    value_at(&c->o[TN_ATTENTION_QUANTIZED_K], (k * at->keys + j) * at->size + d, 0);
            s[j] = place_is_seen(at, i, j, at->queries, at->keys) ? dot * at->scale
                                                                  : -(long double)INFINITY;
            most = s[j] > most ? s[j] : most;
        }
        memset(out, 0, (size_t)at->value_size * sizeof *out);
        for (int64_t j = 0; j < at->keys; j++) {
            const long double p = expl(s[j] - most);
            sum += p;
            for (int64_t d = 0; d < at->value_size; d++)
                out[d] += p * value_at(&c->o[TN_ATTENTION_QUANTIZED_V],
                                       (k * at->keys + j) * at->value_size + d, 0);
        }
        for (int64_t d = 0; d < at->value_size; d++)
            put_number(&to->o[TN_ATTENTION_QUANTIZED_OUT], row * at->value_size + d,
                       (double)(out[d] / sum));
        put_number(&to->o[TN_ATTENTION_QUANTIZED_LSE], row, (double)(most + logl(sum)));
    }
    free(out);
    free(s);
}

/* Cosine and relative L1 of out, and the greatest error of lse, over the first `most` queries of each head. */
static void assert_accurate(const call *found, const call *want, int64_t most, const char *name,
                            bool accurate)
{
    const tn_layout *of = &want->o[TN_ATTENTION_QUANTIZED_OUT].layout;
    long double both = 0, one = 0, other = 0, off = 0, sizes = 0, lse = 0;
    for (int64_t e = 0; e < elements_of(of); e++) {
        if (e / of->shape[3] % of->shape[2] >= most)
            continue;
        const long double x = value_at(&found->o[TN_ATTENTION_QUANTIZED_OUT], e, 0);
        const long double y = value_at(&want->o[TN_ATTENTION_QUANTIZED_OUT], e, 0);
        both += x * y;
        one += x * x;
        other += y * y;
        off += fabsl(x - y);
        sizes += fabsl(y);
        const int64_t row = e / of->shape[3];
        lse = fmaxl(lse, fabsl(value_at(&found->o[TN_ATTENTION_QUANTIZED_LSE], row, 0) -
                               value_at(&want->o[TN_ATTENTION_QUANTIZED_LSE], row, 0)));
    }
    const long double cosine = both / sqrtl(one * other), l1 = off / sizes;
    if (accurate != (cosine >= 0.999L && l1 <= 0.05L && lse <= 0.2L))
        fail_msg("%s: expected it to be %s, got cosine %.6Lf, relative L1 %.4Lf, lse off by %.4Lf",
                 name, accurate ? "accurate" : "inaccurate", cosine, l1, lse);
}

/* The greatest number of queries that are compared with exact attention. */
enum { COMPARED = 40 };

static void check_accuracy(tn_dtype weights, int32_t scales, bool constant, int64_t keys)
{
    call c = quantized_call(TN_F32, weights, 1, 2, 1, 200, keys, 128, 64);
    char name[96];
    params_of(&c)->scales = scales;
    put_outliers(&c, constant);
    call want = twin_of(&c, results, RESULTS);
    attend(&c, COMPARED, &want);
    for (int n = -1; n < row_count; n++) {
        call found = twin_of(&c, results, RESULTS);
        if (n < 0)
            call_compute(&found, 2);
        else
            compute_by(rows[n], &found, 2);
        snprintf(name, sizeof name, "%s, weights %x, scales %d, constant %d, %d keys",
                 n < 0 ? "reference" : rows[n]->name, (unsigned)weights, (int)scales, constant,
                 (int)keys);
        assert_accurate(&found, &want, COMPARED, name, true);
        twin_drop(&found, results, RESULTS);
    }
    twin_drop(&want, results, RESULTS);
    call_drop(&c);
}

static void hard_inputs_stay_accurate(void **state)
{
    const uint64_t before = dice_hold();
    (void)state;
    (void)find_rows_of(TN_OP_ATTENTION_QUANTIZED, all, 0, 0);
    for (int n = 0; n < PRECISIONS; n++) {
        const bool constant = test_sampled((uint64_t)n, 2); /* both in a full run */
        check_accuracy(precisions[n], n % TN_SCALES_COUNT, constant, test_full() ? 300 : 130);
        if (test_full())
            check_accuracy(precisions[n], n % TN_SCALES_COUNT, !constant, 300);
    }
    check_accuracy(TN_U8, TN_SCALES_THREAD, true, test_full() ? 3000 : 300);
    dice_state = before;
}

/* Without smoothing, the constant spoils the result: so the test above needs it. */
static void smoothing_matters(void **state)
{
    const uint64_t before = dice_hold();
    (void)state;
    (void)find_rows_of(TN_OP_ATTENTION_QUANTIZED, all, 0, 0);
    call c = quantized_call(TN_F32, TN_F32, 1, 2, 1, 200, 300, 128, 64);
    params_of(&c)->smoothing = TN_SMOOTHING_NONE;
    put_outliers(&c, true);
    call want = twin_of(&c, results, RESULTS);
    attend(&c, COMPARED, &want);
    for (int n = 0; n < row_count; n++) {
        compute_by(rows[n], &c, 2);
        assert_accurate(&c, &want, COMPARED, rows[n]->name, false);
    }
    twin_drop(&want, results, RESULTS);
    call_drop(&c);
    dice_state = before;
}

/* NaN and infinity in K or V make all results of the heads that read them NaN; in Q, those of the rows that share a scale.
 * Other rows keep their bits. */
static void check_flaw(int32_t operand_index, int64_t at_row, double value, tn_dtype weights)
{
    call c = quantized_call(TN_F32, weights, 2, 4, 2, 70, 150, 24, 16);
    call bad = twin_of(&c, results, RESULTS);
    const tn_layout *of = &c.o[operand_index].layout;
    bad.o[operand_index] = make(TN_F32, 4, of->shape, DENSE);
    for (int64_t e = 0; e < elements_of(of); e++)
        put_number(&bad.o[operand_index], e, (double)value_at(&c.o[operand_index], e, 0));
    put_number(&bad.o[operand_index], at_row * of->shape[3] + 5, value);
    for (int n = -1; n < row_count; n++) {
        if (n < 0) {
            call_compute(&c, 1);
            call_compute(&bad, 1);
        } else {
            compute_by(rows[n], &c, 2);
            compute_by(rows[n], &bad, 2);
        }
        for (int64_t row = 0; row < 2 * 4 * 70; row++) {
            const bool q = operand_index == TN_ATTENTION_QUANTIZED_Q;
            const bool flawed =
                q ? row / 70 == at_row / 70 && row % 70 / 32 == at_row % 70 / 32 &&
                        row % 70 % 8 == at_row % 70 % 8
                  : row / 70 / 2 == at_row / 150; /* two heads of queries for one of keys */
            for (int64_t d = 0; d < 16; d++) {
                const long double x = value_at(&bad.o[TN_ATTENTION_QUANTIZED_OUT], row * 16 + d, 0);
                assert_true(flawed
                                ? is_nan(x)
                                : x == value_at(&c.o[TN_ATTENTION_QUANTIZED_OUT], row * 16 + d, 0));
            }
            const long double lse = value_at(&bad.o[TN_ATTENTION_QUANTIZED_LSE], row, 0);
            assert_true(flawed ? is_nan(lse)
                               : lse == value_at(&c.o[TN_ATTENTION_QUANTIZED_LSE], row, 0));
        }
    }
    drop(&bad.o[operand_index]);
    twin_drop(&bad, results, RESULTS);
    call_drop(&c);
}

static void flaws_are_told(void **state)
{
    static const double values[] = {NAN, INFINITY, -INFINITY};
    (void)state;
    (void)find_rows_of(TN_OP_ATTENTION_QUANTIZED, all, 0, 0);
    for (int turn = 0; turn < 15; turn++) {
        if (!test_sampled((uint64_t)turn, 5))
            continue;
        const tn_dtype weights = precisions[turn % PRECISIONS];
        check_flaw(TN_ATTENTION_QUANTIZED_Q, (int64_t)dice(2 * 4 * 70), values[turn % 3], weights);
        check_flaw(TN_ATTENTION_QUANTIZED_K, (int64_t)dice(2 * 2 * 150), values[turn % 3], weights);
        check_flaw(TN_ATTENTION_QUANTIZED_V, (int64_t)dice(2 * 2 * 150), values[turn % 3], weights);
    }
    check_flaw(TN_ATTENTION_QUANTIZED_V, 3, 65520, TN_F16); /* rounds to infinity */
}

/* The workspace is proportional to the length. */
static void workspace_is_linear(void **state)
{
    (void)state;
    (void)find_rows_of(TN_OP_ATTENTION_QUANTIZED, all, 0, 0);
    for (int n = 0; n < row_count; n++) {
        uint64_t bytes[2];
        for (int i = 0; i < 2; i++) {
            call c = quantized_call(TN_F32, precisions[n % PRECISIONS], 1, 1, 1, 1, 1, 128, 128);
            const tn_query query = {.struct_size = sizeof query, .op = &c.op, .threads = 2};
            params_of(&c)->at.queries = params_of(&c)->at.keys = INT64_C(16384) << i;
            bytes[i] = rows[n]->workspace(rows[n], &query);
            call_drop(&c);
        }
        assert_true(bytes[1] <= 2 * bytes[0]);
        assert_true(bytes[1] <= UINT64_C(32768) * 128 * 10 + (1 << 20));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_problem_is_as_defined), cmocka_unit_test(other_precisions_are_found),
        cmocka_unit_test(threads_change_no_bit),     cmocka_unit_test(hard_inputs_stay_accurate),
        cmocka_unit_test(smoothing_matters),         cmocka_unit_test(flaws_are_told),
        cmocka_unit_test(workspace_is_linear),
    };
    dice_begin();
    return run_suite("kernels.cpu_attention_quantized", tests);
}
