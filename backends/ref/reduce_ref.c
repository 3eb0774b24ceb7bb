/* reduce: each output is computed by one thread, from the first element to the last; floats in
 * twice the precision of f64. */
#include "ref_elementwise.h"
#include "ref_wide.h"
#include "tenon/module/op/reduce.h"

typedef struct job {
    tni_ref_each each;
    tni_ref_walk within; /* over the input of one output */
} job;

/* The intermediate state of one output. */
typedef struct state {
    const job *job;
    bool begun;           /* max and min have an element */
    int64_t whole;        /* integers to integers */
    double extreme;       /* max and min of floats */
    tni_ref_wide part[2]; /* sums and products of floats */
    int64_t exponent;     /* binary exponent of the product, applied at the end */
} state;

static void accumulate_whole(state *s, int64_t value)
{
    const bool is_signed = s->job->each.in->sort == TNI_REF_SIGNED;
    const bool less = is_signed ? value < s->whole : (uint64_t)value < (uint64_t)s->whole;
    switch (s->job->each.each->kind) {
    case TN_REDUCE_PROD: s->whole = (int64_t)((uint64_t)s->whole * (uint64_t)value); break;
    case TN_REDUCE_MAX: s->whole = s->begun && less ? s->whole : value; break;
    case TN_REDUCE_MIN: s->whole = s->begun && !less ? s->whole : value; break;
    default: s->whole = (int64_t)((uint64_t)s->whole + (uint64_t)value); break;
    }
    s->begun = true;
}

/* A 64-bit integer is the sum of two doubles. */
static void add_whole(state *s, int64_t value)
{
    const bool is_signed = s->job->each.in->sort == TNI_REF_SIGNED;
    const int64_t low = value & 0xFFFFFFFF;
    const uint64_t high = (uint64_t)value - (uint64_t)low;
    s->part[0] = tni_ref_wide_add(s->part[0], is_signed ? (double)(int64_t)high : (double)high);
    s->part[0] = tni_ref_wide_add(s->part[0], (double)low);
}

/* NaN is kept: nothing compares greater or less. */
static void update_extreme(state *s, double value)
{
    const bool max = s->job->each.each->kind == TN_REDUCE_MAX;
    if (!s->begun || tni_ref_is_nan(value) || (max ? value > s->extreme : value < s->extreme))
        s->extreme = value;
    s->begun = true;
}

/* The exponent of the greater of two magnitudes; 0 if that is 0 or not finite. */
static int exponent_of(double a, double b)
{
    const double size = fmax(fabs(a), fabs(b));
    return size > 0 && tni_ref_is_finite(size) ? ilogb(size) : 0;
}

static tni_ref_wide shifted(tni_ref_wide value, int exponent)
{
    return (tni_ref_wide){scalbn(value.hi, exponent), scalbn(value.lo, exponent)};
}

/* Both factors and the product are kept near 1, so that only the final result can overflow or
 * underflow. */
static void multiply(state *s, const double *value, int32_t parts)
{
    const int exponent = exponent_of(value[0], parts == 2 ? value[1] : 0);
    const double x = scalbn(value[0], -exponent);
    const double y = parts == 2 ? scalbn(value[1], -exponent) : 0;
    const tni_ref_wide re = s->part[0], im = s->part[1];
    s->part[0] = tni_ref_wide_scale(re, x);
    if (parts == 2) {
        s->part[0] = tni_ref_wide_plus(s->part[0], tni_ref_wide_scale(im, -y));
        s->part[1] = tni_ref_wide_plus(tni_ref_wide_scale(re, y), tni_ref_wide_scale(im, x));
        s->part[1] = tni_ref_wide_tidy(s->part[1]);
    }
    s->part[0] = tni_ref_wide_tidy(s->part[0]);
    const int above = exponent_of(s->part[0].hi, s->part[1].hi);
    for (int32_t p = 0; p < parts; p++)
        s->part[p] = shifted(s->part[p], -above);
    s->exponent += exponent + above;
}

/* Adds one part of `count` numbers. */
static void add_part(state *s, const double *value, int32_t part, int32_t parts, int64_t count)
{
    tni_ref_wide sum = s->part[part];
    for (int64_t i = 0; i < count; i++)
        sum = tni_ref_wide_add(sum, value[i * parts + part]);
    s->part[part] = sum;
}

static void accumulate(state *s, const double *value, int32_t parts, int64_t count)
{
    const int32_t kind = s->job->each.each->kind;
    if (kind == TN_REDUCE_SUM || kind == TN_REDUCE_MEAN) {
        for (int32_t part = 0; part < parts; part++)
            add_part(s, value, part, parts, count);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        if (kind == TN_REDUCE_PROD)
            multiply(s, value + i * parts, parts);
        else
            update_extreme(s, value[i]);
    }
}

static void accumulate_piece(void *user, char *const *at, int64_t count)
{
    state *s = user;
    const tni_ref_each *each = &s->job->each;
    const int64_t step = s->job->within.along[TN_ELEMENTWISE_IN];
    if (tni_ref_is_whole(each->in)) {
        int64_t value[TNI_REF_PIECE];
        each->in->read_whole(at[TN_ELEMENTWISE_IN], step, count, value);
        for (int64_t i = 0; i < count; i++)
            (tni_ref_is_whole(each->out) ? accumulate_whole : add_whole)(s, value[i]);
    } else {
        double value[2 * TNI_REF_PIECE];
        each->in->read(at[TN_ELEMENTWISE_IN], step, count, value);
        accumulate(s, value, each->in->parts, count);
    }
}

static void write_output(const state *s, char *to)
{
    const tni_ref_each *each = &s->job->each;
    const int32_t kind = each->each->kind;
    const int64_t most = 4096; /* beyond it, everything is 0 or infinite */
    const int scale = (int)(s->exponent > most ? most : s->exponent < -most ? -most : s->exponent);
    double value[2];
    if (tni_ref_is_whole(each->in) && tni_ref_is_whole(each->out)) {
        each->out->write_whole(&s->whole, 1, to, 0);
        return;
    }
    for (int32_t p = 0; p < 2; p++) {
        tni_ref_wide part = tni_ref_wide_tidy(s->part[p]);
        if (kind == TN_REDUCE_MEAN)
            part = tni_ref_wide_divide(part, (tni_ref_wide){(double)each->each->size, 0});
        value[p] = scalbn(part.hi, scale);
    }
    if (kind == TN_REDUCE_MAX || kind == TN_REDUCE_MIN)
        value[0] = s->extreme;
    each->out->write(value, 1, to, 0);
}

static void reduce_one(void *user, char *const *at, int64_t count)
{
    const job *j = user;
    const int64_t first = j->each.each->kind == TN_REDUCE_PROD;
    state s = {.job = j, .whole = first, .part = {{(double)first, 0}, {0, 0}}};
    (void)count;
    if (j->each.each->size > 0)
        tni_ref_walk_in_order(&j->within, at, accumulate_piece, &s);
    write_output(&s, at[TN_ELEMENTWISE_OUT]);
}

/* Describes the reduced dimensions as a separate op. */
static void describe_within(const tn_op *op, int32_t axes, tni_ref_walk *out)
{
    tn_op within = {.struct_size = sizeof within, .count = 2};
    tn_layout *layout = &within.operand[TN_ELEMENTWISE_IN];
    const tn_layout *in = &op->operand[TN_ELEMENTWISE_IN];
    *layout = (tn_layout){.dtype = in->dtype, .rank = axes};
    for (int32_t d = 0; d < axes; d++) {
        layout->shape[d] = in->shape[in->rank - axes + d];
        layout->stride[d] = in->stride[in->rank - axes + d];
    }
    within.operand[TN_ELEMENTWISE_OUT] = *layout;
    tni_ref_walk_each(&within, out);
}

static tn_status run_reduce(const tn_run *run, tn_error *err)
{
    job j = {.each = tni_ref_each_of(run->op)};
    (void)err;
    tni_ref_walk_rows(run->op, j.each.each->axes, j.each.each->size, &j.each.walk);
    describe_within(run->op, j.each.each->axes, &j.within);
    tni_ref_walk_run(&j.each.walk, run, reduce_one, &j);
    return TN_OK;
}

static tn_status admit_reduce(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const tni_ref_each each = tni_ref_each_of(query->op);
    const int32_t kind = each.each->kind;
    const bool ordered = kind == TN_REDUCE_MAX || kind == TN_REDUCE_MIN;
    const bool sums = kind == TN_REDUCE_SUM || kind == TN_REDUCE_MEAN;
    const bool in_whole = tni_ref_is_whole(each.in), out_whole = tni_ref_is_whole(each.out);
    (void)row;
    if (each.in->parts == 2 && ordered)
        return tni_ref_refuse(why, TN_REFUSE_DTYPE, "in.dtype", TN_F32, each.in->dtype,
                              "complex numbers are not ordered: compare their abs");
    if (in_whole && out_whole && kind == TN_REDUCE_MEAN)
        return tni_ref_refuse(why, TN_REFUSE_DTYPE, "out.dtype", TN_F64, each.out->dtype,
                              "the mean of whole numbers needs a float for out");
    if (each.in->parts != each.out->parts || (in_whole != out_whole && !(in_whole && sums)))
        return tni_ref_refuse(why, TN_REFUSE_DTYPE, "out.dtype", each.in->dtype, each.out->dtype,
                              "out needs numbers of in's sort; sums and means of whole numbers may "
                              "be floats: cast before or after");
    if (ordered && each.each->size == 0)
        return tni_ref_refuse(why, TN_REFUSE_SHAPE, "size", 1, 0,
                              "of nothing there is neither a max nor a min");
    return TN_OK;
}

const tn_kernel_row tni_ref_reduce = {
    .name = "cpu.reduce.ref",
    .op = TN_OP_REDUCE,
    TNI_REF_ROW,
    .dtypes = tni_ref_all_dtypes,
    .numerics = TNI_REF_EVERYWHERE,
    .honours =
        TN_ELEMENTWISE_USES_STRIDES | TN_ELEMENTWISE_USES_BROADCAST | TN_ELEMENTWISE_USES_OUT_DTYPE,
    .flops_per_us = 200,
    .bytes_per_us = 1000,
    .admit = admit_reduce,
    .run = run_reduce,
};
