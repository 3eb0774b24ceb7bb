/* Rows of the processor's own attention, run as the core does and held against the reference. */
#ifndef TENON_TEST_KERNELS_CPU_ATTENTION_MAKE_H
#define TENON_TEST_KERNELS_CPU_ATTENTION_MAKE_H

#include "attention_make.h"

#include "tenon/module/cpu.h"

#include "os/cpu.h"

tn_module_entry_fn tni_cpu_module_entry;

static const tn_dtype reals[] = {TN_F32, TN_F64};
static const tn_kernel_row *rows[32];
static int row_count;

static inline void own_loop(void *self, int64_t count, tn_task *task, void *user)
{
    (void)self;
    tn_parallel_for(count, task, user);
}

static const tn_host own_host = {.struct_size = sizeof own_host, .parallel_for = own_loop};

static inline bool computes_with(const tn_kernel_row *row, tn_dtype dtype)
{
    const tn_dtype *it = row->dtypes;
    while (*it && *it != dtype)
        it++;
    return *it != 0;
}

/* Rows that compute with one of the dtypes, ended by 0, and declare all numerics of `has` and none of `lacks`. */
static inline int find_rows_of(int32_t op, const tn_dtype *of, uint64_t has, uint64_t lacks)
{
    const tn_module *module = NULL;
    row_count = 0;
    (void)tni_cpu_amx_request();
    assert_int_equal(tni_cpu_module_entry(&own_host, &module, NULL), TN_OK);
    for (const tn_kernel_row *const *row = module->kernels; *row; row++) {
        bool wanted = false;
        for (const tn_dtype *dtype = of; *dtype; dtype++)
            wanted = wanted || computes_with(*row, *dtype);
        if ((*row)->op != op || !wanted || (*row)->numerics & lacks ||
            ((*row)->numerics & has) != has)
            continue;
        if ((*row)->cpu_needs == ((*row)->cpu_needs & tni_cpu_features())) {
            assert_true(row_count < (int)(sizeof rows / sizeof rows[0]));
            rows[row_count++] = *row;
        } else
            print_message("%s cannot run here\n", (*row)->name);
    }
    assert_true(row_count > 0);
    return row_count;
}

/* Those of f32 and f64. */
static inline int find_rows(int32_t op)
{
    static const tn_dtype of[] = {TN_F32, TN_F64, 0};
    return find_rows_of(op, of, 0, 0);
}

/* Whether the row honours what a call of these tests may use, and computes with its dtype. */
static inline bool takes(const tn_kernel_row *row, const call *c)
{
    const bool paged = c->op.kind == TN_OP_ATTENTION && c->o[TN_ATTENTION_PAGES].layout.dtype;
    return computes_with(row, c->o[TN_ATTENTION_Q].layout.dtype) &&
           (!paged || row->honours & TN_ATTENTION_USES_PAGES);
}

/* workspace.limit, as a row is told it. */
static int64_t workspace_limit = -1;
static inline tn_status tell_setting(const tn_query *query, const char *key, int64_t *out)
{
    (void)query;
    *out = workspace_limit;
    return strcmp(key, "workspace.limit") == 0 ? TN_OK : TN_NOT_FOUND;
}

/* As the core does: with the memory that the row asks for, and not a byte more. */
static inline tn_status run_row(const tn_kernel_row *row, call *c, int32_t threads, tn_error *err)
{
    void *data[TN_OP_OPERANDS_MAX] = {NULL};
    for (int32_t i = 0; i < c->op.count; i++) {
        c->op.operand[i] = c->o[i].layout.dtype ? c->o[i].layout : (tn_layout){.dtype = 0};
        if (c->o[i].layout.dtype && elements_of(&c->o[i].layout) > 0)
            data[i] = c->o[i].first;
    }
    const tn_query query = {
        .struct_size = sizeof query, .op = &c->op, .threads = threads, .setting = tell_setting};
    tn_refusal why = {.struct_size = sizeof why};
    assert_int_equal(row->admit(row, &query, &why), TN_OK);
    const uint64_t bytes = row->workspace ? row->workspace(row, &query) : 0;
    char *room = NULL;
    assert_true(bytes < UINT64_C(1) << 32);
    if (bytes > 0) {
        room = aligned_alloc(64, (size_t)(bytes + 127) / 64 * 64);
        assert_non_null(room);
        memset(room, 0xFF, (size_t)(bytes + 127) / 64 * 64); /* NaNs */
    }
    const tn_run run = {.struct_size = sizeof run,
                        .row = row,
                        .op = &c->op,
                        .data = data,
                        .host = &own_host,
                        .workspace = room,
                        .workspace_bytes = bytes,
                        .threads = threads};
    tn_status status = row->run(&run, err);
    for (uint64_t i = bytes; room && i < (bytes + 127) / 64 * 64; i++)
        assert_int_equal((unsigned char)room[i], 0xFF);
    free(room);
    return status;
}

static inline void compute_by(const tn_kernel_row *row, call *c, int32_t threads)
{
    tn_error err = {0};
    if (run_row(row, c, threads, &err))
        fail_msg("%s: %s", row->name, err.message);
}

/* Another one with the same inputs and outputs of its own. */
static inline call twin_of(const call *c, const int32_t *outputs, int count)
{
    call twin = *c;
    for (int n = 0; n < count; n++) {
        operand *o = &twin.o[outputs[n]];
        if (o->layout.dtype)
            *o = make_poisoned(o->layout.dtype, o->layout.rank, o->layout.shape, DENSE);
    }
    return twin;
}

static inline void twin_drop(call *twin, const int32_t *outputs, int count)
{
    for (int n = 0; n < count; n++)
        drop(&twin->o[outputs[n]]);
}

/* How far a result may be from the reference: roundings of a row's scores and values, u each; of 16 bits, either
 * way. */
static inline long double slack_of(const call *c)
{
    const tn_attention_op *at = TN_PARAMS(&c->op, attention);
    const long double u = c->o[TN_ATTENTION_Q].layout.dtype == TN_F64 ? 0x1p-53L : 0x1p-24L;
    long double score = fabsl((long double)at->scale) * (long double)at->size * 4 * 4;
    return u * (64 + 8 * score + 4 * sqrtl((long double)at->keys)) / (1 - (long double)at->dropout);
}

static inline void assert_close(const call *c, const call *want, int32_t which, const char *name)
{
    const operand *found = &c->o[which], *wanted = &want->o[which];
    const long double slack = slack_of(c);
    for (int64_t e = 0; e < elements_of(&found->layout); e++) {
        long double x = value_at(found, e, 0), y = value_at(wanted, e, 0);
        if (is_nan(x) && is_nan(y))
            continue;
        const tn_dtype dtype = found->layout.dtype;
        const long double more = dtype == TN_BF16 || dtype == TN_F16 ? ulp(dtype, y) : 0;
        if (is_inf(y) ? x != y : !(fabsl(x - y) <= slack * (4 + fabsl(y)) + more))
            fail_msg("%s: operand %d, element %lld: %Lg is not %Lg, off by %Lg of %Lg", name, which,
                     (long long)e, x, y, x - y, slack);
    }
}

/* Up to `most`, more often near multiples of tiles. */
static inline int64_t roll_size(int64_t most)
{
    static const int64_t near[] = {1,  6,  8,  13, 14, 15, 16,  17,  28,
                                   31, 32, 33, 63, 64, 65, 127, 128, 129};
    int64_t size = dice(3) ? 1 + (int64_t)dice((uint64_t)most) : near[dice(18)];
    return size < most ? size : most;
}

static inline void roll_wide_window(tn_attention_op *at)
{
    if (dice(2))
        return;
    at->corner = (int32_t)dice(2);
    at->right = dice(2) ? 0 : (int64_t)dice((uint64_t)at->keys + 2) - 1;
    at->left = dice(2) ? -1 : (int64_t)dice((uint64_t)at->keys + 2) - 1;
    at->shift = dice(3) ? 0 : (int64_t)dice(9) - 4;
}

/* Chooses numbers, masks, lengths, windows, sinks and layouts. */
static inline void roll_features(call *c, bool paged, bool packed)
{
    tn_attention_op *at = TN_PARAMS_MUTABLE(&c->op, attention);
    const tn_dtype dtype = c->o[TN_ATTENTION_Q].layout.dtype;
    roll_numbers(at);
    if (paged)
        roll_pages(c);
    if (packed)
        roll_packed(c, paged);
    if (!paged && !packed)
        roll_mask(c);
    if (paged || dice(3) == 0)
        roll_lengths(c);
    roll_wide_window(at);
    if (dice(3) == 0)
        c->o[TN_ATTENTION_SINKS] =
            make_random(dice(2) ? TN_F32 : dtype, 1, &at->heads, (int)dice(LAYOUTS));
    for (int32_t o = TN_ATTENTION_Q; o <= TN_ATTENTION_V; o++)
        call_lay(c, o, dice(2) ? DENSE : (int)dice(LAYOUTS));
    for (int32_t o = TN_ATTENTION_OUT; o <= TN_ATTENTION_LSE; o++) {
        if (c->o[o].memory)
            call_lay(c, o, DENSE);
    }
}

/* The backward pass of a call that was computed: its operands are taken over. */
static inline call back_of(const call *forward, int dout_layout)
{
    static const int32_t like[] = {TN_ATTENTION_OUT, TN_ATTENTION_Q, TN_ATTENTION_K,
                                   TN_ATTENTION_V};
    call c = *forward;
    c.op.kind = TN_OP_ATTENTION_BACKWARD;
    c.op.count = TN_ATTENTION_BACKWARD_OPERANDS;
    for (int32_t o = TN_ATTENTION_BACKWARD_DOUT; o <= TN_ATTENTION_BACKWARD_DV; o++) {
        const tn_layout *of = &forward->o[like[o - TN_ATTENTION_BACKWARD_DOUT]].layout;
        c.o[o] = o == TN_ATTENTION_BACKWARD_DOUT ? make_random(of->dtype, 4, of->shape, dout_layout)
                                                 : make_poisoned(of->dtype, 4, of->shape, DENSE);
    }
    return c;
}

/* No products, and a mask that alone makes scores: finite ones so great that they are apart by more than weights can
 * tell. A row has one of them, two, or one and some that are not seen. */
static inline void put_great_scores(call *c, double value)
{
    const tn_attention_op *at = TN_PARAMS(&c->op, attention);
    const int64_t shape[] = {at->batch, at->heads, at->queries, at->keys};
    operand *mask = &c->o[TN_ATTENTION_MASK];
    *mask =
        make_random(c->o[TN_ATTENTION_Q].layout.dtype == TN_F64 ? TN_F64 : TN_F32, 4, shape, DENSE);
    for (int64_t e = 0; e < elements_of(&c->o[TN_ATTENTION_Q].layout); e++)
        put_number(&c->o[TN_ATTENTION_Q], e, 0);
    for (int64_t e = 0; e < elements_of(&mask->layout); e++) {
        const int64_t row = e / at->keys, key = e % at->keys;
        const double other = row % 3 == 0 ? value : row % 3 == 1 ? value / 2 : -(double)INFINITY;
        put_number(mask, e, key % 2 ? other : value);
    }
}

/* The values of great scores of a dtype that is computed in f32 or f64; 0 behind the last. */
static inline const double *great_scores_of(tn_dtype dtype)
{
    static const double f32[] = {-1e7, -1e10, -1e12, -1e30, -(double)FLT_MAX, 1e10, 1e30, 0};
    static const double f64[] = {-1e10, -1e16, -1e20, -1e30, -1e300, -DBL_MAX, 1e30, 1e300, 0};
    return dtype == TN_F64 ? f64 : f32;
}

/* Rows refuse a scale or a softcap that takes scores out of the numbers they compute with, on both sides of the edge. */
static inline void check_numbers_refused(tn_dtype dtype)
{
    const int power = dtype == TN_F64 ? 900 : 100;
    call c = call_of(dtype, 1, 1, 1, 2, 3, 4, 4);
    const tn_query query = {.struct_size = sizeof query, .op = &c.op, .threads = 1};
    tn_attention_op *at = TN_PARAMS_MUTABLE(&c.op, attention);
    for (int32_t i = 0; i < c.op.count; i++)
        c.op.operand[i] = c.o[i].layout;
    for (int n = 0; n < 8 * row_count; n++) {
        const int which = n % 8, found = (power + which / 4) * (which % 2 ? -1 : 1);
        const bool scale = which & 2, beyond = which >= 4;
        tn_refusal why = {.struct_size = sizeof why};
        if (!takes(rows[n / 8], &c))
            continue;
        at->scale = scale ? ldexp(-1.5, found) : 1;
        at->softcap = scale ? 0 : ldexp(1.5, found);
        assert_int_equal(rows[n / 8]->admit(rows[n / 8], &query, &why),
                         beyond ? TN_UNSUPPORTED : TN_OK);
        if (!beyond)
            continue;
        assert_int_equal(why.code, TN_REFUSE_FEATURE);
        assert_string_equal(why.what, scale ? "scale" : "softcap");
        assert_int_equal(why.needed, found < 0 ? -power : power);
        assert_int_equal(why.found, found);
    }
    call_drop(&c);
}

#endif
