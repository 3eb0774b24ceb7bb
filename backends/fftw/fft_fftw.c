/* fft by FFTW. One dimension of the batch is cut into parts of about TOGETHER numbers, which the
 * host's threads compute. A plan keeps FFTW's plan of a part, and one of the last part, if that is
 * smaller. FFTW does not scale: each part is scaled right after its transform. */
#include "fftw.h"
#include "tenon/module/op/fft.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { TOGETHER = 16384 }; /* numbers of a part, about: they stay in the second cache */

/* How the batch is cut: known without FFTW. */
typedef struct batch_cut {
    int32_t at;    /* dimension that is cut, or -1: there is no batch */
    int64_t count; /* of its elements in a part */
    int64_t parts;
    int64_t rest; /* elements of the last part */
} batch_cut;

typedef struct fft_plan {
    const fftw_calls *calls;
    void *whole, *last; /* FFTW's; `last` is NULL if all parts have one size */
    batch_cut cut;
} fft_plan;

static bool is_f64(const tn_op *op)
{
    const tn_dtype in = op->operand[TN_FFT_IN].dtype;
    return in == TN_F64 || in == TN_C128;
}

static const fftw_calls *calls_of(const tn_run *run)
{
    const fftw_library *library = run->library;
    return is_f64(run->op) ? &library->f64 : &library->f32;
}

static int64_t bytes_of(tn_dtype dtype)
{
    return (int64_t)(dtype >> 8 & 255) / 8;
}

/* Cuts the largest dimension of the batch. */
static batch_cut make_cut(const tn_op *op)
{
    const tn_fft_op *fft = TN_PARAMS(op, fft);
    const tn_layout *in = &op->operand[TN_FFT_IN];
    batch_cut out = {.at = -1, .count = 1, .parts = 1, .rest = 1};
    int64_t size = 1;
    for (int32_t d = 0; d < in->rank - fft->dims; d++) {
        if (in->shape[d] > size) {
            size = in->shape[d];
            out.at = d;
        }
    }
    const double numbers = (double)fft->points * (double)fft->batch / (double)size;
    const double together = TOGETHER / (numbers > 1 ? numbers : 1);
    out.count = together < 1 ? 1 : together < (double)size ? (int64_t)together : size;
    out.parts = (size + out.count - 1) / out.count;
    out.rest = size - (out.parts - 1) * out.count;
    return out;
}

static tn_status admit_shape(const tn_query *query, tn_refusal *why)
{
    static const char *const alignments[] = {"in.alignment", "out.alignment"};
    const tn_op *op = query->op;
    const tn_fft_op *fft = TN_PARAMS(op, fft);
    const int64_t bytes = is_f64(op) ? 8 : 4;
    /* With several dimensions FFTW overwrites a half spectrum, and assumes one that real numbers have. */
    if (fft->kind == TN_FFT_COMPLEX_TO_REAL && fft->dims > 1)
        return tn_refuse(why, TN_REFUSE_SHAPE, "dims", 1, fft->dims);
    /* For real numbers FFTW has forward transforms to, and inverse transforms from, half spectra only. */
    if (fft->kind != TN_FFT_COMPLEX &&
        (fft->direction == TN_FFT_FORWARD) != (fft->kind == TN_FFT_REAL_TO_COMPLEX))
        return tn_refuse(why, TN_REFUSE_OTHER, "direction", !fft->direction, fft->direction);
    for (int32_t i = 0; i < TN_FFT_OPERANDS; i++) {
        if (op->operand[i].alignment < bytes)
            return tn_refuse(why, TN_REFUSE_ALIGNMENT, alignments[i], bytes,
                             op->operand[i].alignment);
    }
    return TN_OK;
}

static tn_status admit_estimated(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    (void)row;
    return admit_shape(query, why);
}

static tn_status admit_measured(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    int64_t tunes = 0;
    (void)row;
    const tn_status status = query->setting(query, "tuning.enabled", &tunes);
    if (status || !tunes)
        return tn_refuse(why, TN_REFUSE_SETTING, "tuning.enabled", 1, 0);
    return admit_shape(query, why);
}

/* A part of the batch in the form that FFTW's planner reads. */
typedef struct shape {
    fftw_dim dims[TN_FFT_DIMS_MAX], batch[TN_OP_RANK_MAX];
    int rank, batch_rank;
} shape;

/* `count`: elements of the dimension that is cut. */
static shape make_shape(const tn_op *op, const batch_cut *cut, int64_t count)
{
    const tn_fft_op *fft = TN_PARAMS(op, fft);
    const tn_layout *in = &op->operand[TN_FFT_IN], *out = &op->operand[TN_FFT_OUT];
    shape made = {.rank = fft->dims};
    for (int32_t d = 0; d < in->rank; d++) {
        const int32_t at = d - (in->rank - fft->dims);
        const ptrdiff_t n = (ptrdiff_t)(at >= 0        ? fft->length[at]
                                        : d == cut->at ? count
                                                       : in->shape[d]);
        const fftw_dim dim = {n, (ptrdiff_t)in->stride[d], (ptrdiff_t)out->stride[d]};
        if (at >= 0)
            made.dims[at] = dim;
        else if (n > 1)
            made.batch[made.batch_rank++] = dim;
    }
    return made;
}

/* Memory that the planner may use as an operand: with room for every element of a part and aligned as
 * the operand is, unless that is too little for FFTW's vectors. */
typedef struct stand_in {
    char *memory, *first;
    bool is_aligned;
} stand_in;

static tn_status make_stand_in(const tn_run *run, int32_t index, const batch_cut *cut,
                               stand_in *out, tn_error *err)
{
    const fftw_calls *calls = calls_of(run);
    const tn_layout *layout = &run->op->operand[index];
    const int64_t bytes = bytes_of(layout->dtype);
    int64_t before = 0, after = bytes;
    for (int32_t d = 0; d < layout->rank; d++) {
        const int64_t n = d == cut->at ? cut->count : layout->shape[d];
        const int64_t span = (n - 1) * layout->stride[d] * bytes;
        before -= span < 0 ? span : 0;
        after += span > 0 ? span : 0;
    }
    before = (before + TN_OP_ALIGNMENT_MAX - 1) / TN_OP_ALIGNMENT_MAX * TN_OP_ALIGNMENT_MAX;
    const int64_t room = before + after;
    out->memory = run->host->alloc(run->host->self, (size_t)room, TN_OP_ALIGNMENT_MAX);
    if (!out->memory)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, run->row->name,
                       "no memory for a plan: FFTW needs %" PRId64 " bytes to plan with", room);
    out->first = out->memory + before;
    const uint64_t step =
        cut->parts > 1 ? (uint64_t)cut->count * (uint64_t)layout->stride[cut->at] * (uint64_t)bytes
                       : 0;
    const uint64_t offsets = step | (uint64_t)layout->alignment;
    out->is_aligned =
        calls->alignment_of(out->first + (offsets & (~offsets + 1)) % TN_OP_ALIGNMENT_MAX) == 0;
    return TN_OK;
}

static void *make_native(const tn_run *run, const shape *s, const stand_in *sides)
{
    const fftw_calls *calls = calls_of(run);
    const tn_fft_op *fft = TN_PARAMS(run->op, fft);
    const stand_in *in = &sides[TN_FFT_IN], *out = &sides[TN_FFT_OUT];
    const bool in_place = run->op->uses & TN_FFT_USES_IN_PLACE;
    unsigned flags = run->row == &tni_fftw_estimated ? FFTW_ESTIMATES : 0;
    if (!in->is_aligned || !out->is_aligned)
        flags |= FFTW_IS_UNALIGNED;
    if (fft->kind == TN_FFT_REAL_TO_COMPLEX)
        return calls->plan_to_complex(s->rank, s->dims, s->batch_rank, s->batch, in->first,
                                      out->first, flags | FFTW_KEEPS_INPUT);
    if (fft->kind == TN_FFT_COMPLEX_TO_REAL)
        return calls->plan_to_real(s->rank, s->dims, s->batch_rank, s->batch, in->first, out->first,
                                   flags | FFTW_KEEPS_INPUT);
    return calls->plan(s->rank, s->dims, s->batch_rank, s->batch, in->first,
                       in_place ? in->first : out->first,
                       fft->direction == TN_FFT_FORWARD ? FFTW_TO_FREQUENCY : FFTW_FROM_FREQUENCY,
                       flags | (in_place ? 0 : FFTW_KEEPS_INPUT));
}

/* `run` has no op here. */
static void release_plan(const tn_run *run, void *made)
{
    fft_plan *plan = made;
    tni_fftw_planner_enter();
    if (plan->whole)
        plan->calls->release(plan->whole);
    if (plan->last)
        plan->calls->release(plan->last);
    tni_fftw_planner_leave();
    run->host->release(run->host->self, plan);
}

static tn_status make_natives(const tn_run *run, fft_plan *plan, const stand_in *sides,
                              tn_error *err)
{
    const batch_cut *cut = &plan->cut;
    const shape whole = make_shape(run->op, cut, cut->count);
    const shape last = make_shape(run->op, cut, cut->rest);
    const bool differs = cut->rest != cut->count;
    tni_fftw_planner_enter();
    plan->whole = make_native(run, &whole, sides);
    if (plan->whole && differs)
        plan->last = make_native(run, &last, sides);
    tni_fftw_planner_leave();
    if (!plan->whole || (differs && !plan->last))
        return tn_fail(err, TN_UNSUPPORTED, 0, run->row->name,
                       "FFTW has no plan for this transform");
    return TN_OK;
}

static tn_status make_plan(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    const tn_fft_op *fft = TN_PARAMS(run->op, fft);
    stand_in sides[TN_FFT_OPERANDS] = {{NULL, NULL, false}};
    tn_status status = TN_OK;
    fft_plan *plan = run->host->alloc(run->host->self, sizeof *plan, _Alignof(fft_plan));
    if (!plan)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, run->row->name, "no memory for a plan");
    *plan = (fft_plan){.calls = calls_of(run), .cut = make_cut(run->op)};
    for (int32_t i = 0; i < TN_FFT_OPERANDS && !status; i++)
        status = make_stand_in(run, i, &plan->cut, &sides[i], err);
    if (!status)
        status = make_natives(run, plan, sides, err);
    for (int32_t i = 0; i < TN_FFT_OPERANDS; i++)
        run->host->release(run->host->self, sides[i].memory);
    if (status) {
        release_plan(run, plan);
        return status;
    }
    /* An estimate: FFTW does not report the size of its tables. */
    *out_bytes =
        sizeof *plan + (plan->last ? 2U : 1U) * (uint64_t)fft->points * (is_f64(run->op) ? 16 : 8);
    *out = plan;
    return TN_OK;
}

/* The innermost loop of the scaling: n elements of `width` reals. */
static void scale_f32(float *at, int64_t n, int64_t stride, int64_t width, float scale)
{
    for (int64_t i = 0; i < n; i++, at += stride * width) {
        for (int64_t j = 0; j < width; j++)
            at[j] *= scale;
    }
}

static void scale_f64(double *at, int64_t n, int64_t stride, int64_t width, double scale)
{
    for (int64_t i = 0; i < n; i++, at += stride * width) {
        for (int64_t j = 0; j < width; j++)
            at[j] *= scale;
    }
}

/* Elements of the output of a part: sizes and strides of its dimensions, the contiguous one last. */
typedef struct box {
    int32_t rank;
    int64_t n[TN_OP_RANK_MAX + 1], stride[TN_OP_RANK_MAX + 1];
} box;

static box make_box(const tn_op *op, const batch_cut *cut, int64_t count)
{
    const tn_layout *out = &op->operand[TN_FFT_OUT];
    box made = {.rank = 1, .n = {1}, .stride = {1}};
    for (int32_t d = 0; d < out->rank; d++) {
        const int64_t n = d == cut->at ? count : out->shape[d];
        const int32_t last = made.rank - 1;
        if (n == 1)
            continue;
        if (made.n[last] > 1 && made.stride[last] == out->stride[d] * n) {
            made.n[last] *= n;
            made.stride[last] = out->stride[d];
            continue;
        }
        made.n[made.rank] = n;
        made.stride[made.rank++] = out->stride[d];
    }
    for (int32_t d = 0; d < made.rank - 1; d++) {
        const int32_t last = made.rank - 1;
        if (made.stride[d] == 1 && made.stride[last] != 1) {
            const int64_t n = made.n[d];
            made.n[d] = made.n[last];
            made.stride[d] = made.stride[last];
            made.n[last] = n;
            made.stride[last] = 1;
        }
    }
    return made;
}

static void scale_part(const tn_op *op, const batch_cut *cut, int64_t count, char *out)
{
    const box b = make_box(op, cut, count);
    const tn_dtype dtype = op->operand[TN_FFT_OUT].dtype;
    const double scale = TN_PARAMS(op, fft)->scale;
    const int64_t bytes = bytes_of(dtype), width = dtype == TN_C64 || dtype == TN_C128 ? 2 : 1;
    const int32_t last = b.rank - 1;
    const int64_t n = b.stride[last] == 1 ? b.n[last] * width : b.n[last];
    const int64_t inner = b.stride[last] == 1 ? 1 : width;
    int64_t at[TN_OP_RANK_MAX + 1] = {0}, lines = 1;
    for (int32_t d = 0; d < last; d++)
        lines *= b.n[d];
    for (int64_t i = 0; i < lines; i++) {
        int64_t offset = 0;
        for (int32_t d = 0; d < last; d++)
            offset += at[d] * b.stride[d];
        if (is_f64(op))
            scale_f64((double *)(void *)(out + offset * bytes), n, b.stride[last], inner, scale);
        else
            scale_f32((float *)(void *)(out + offset * bytes), n, b.stride[last], inner,
                      (float)scale);
        for (int32_t d = last; d-- > 0;) {
            at[d] = at[d] + 1 < b.n[d] ? at[d] + 1 : 0;
            if (at[d])
                break;
        }
    }
}

static void compute_part(void *user, int64_t index)
{
    const tn_run *run = user;
    const fft_plan *plan = run->plan;
    const batch_cut *cut = &plan->cut;
    const fftw_calls *calls = plan->calls;
    const tn_layout *in = &run->op->operand[TN_FFT_IN], *out = &run->op->operand[TN_FFT_OUT];
    const tn_fft_op *fft = TN_PARAMS(run->op, fft);
    const bool is_last = index == cut->parts - 1 && plan->last;
    void *native = is_last ? plan->last : plan->whole;
    char *from = tn_operand(run, TN_FFT_IN), *to = tn_operand(run, TN_FFT_OUT);
    if (cut->at >= 0) {
        from += index * cut->count * in->stride[cut->at] * bytes_of(in->dtype);
        to += index * cut->count * out->stride[cut->at] * bytes_of(out->dtype);
    }
    if (fft->kind == TN_FFT_REAL_TO_COMPLEX)
        calls->run_to_complex(native, from, to);
    else if (fft->kind == TN_FFT_COMPLEX_TO_REAL)
        calls->run_to_real(native, from, to);
    else
        calls->run(native, from, to);
    if (fft->scale != 1)
        scale_part(run->op, cut, is_last ? cut->rest : cut->count, to);
}

static tn_status run_fft(const tn_run *run, tn_error *err)
{
    const fft_plan *plan = run->plan;
    tn_run own = *run;
    (void)err;
    if (plan->cut.parts > 1 && run->threads > 1) {
        run->host->parallel_for(run->host->self, plan->cut.parts, compute_part, &own);
        return TN_OK;
    }
    for (int64_t i = 0; i < plan->cut.parts; i++)
        compute_part(&own, i);
    return TN_OK;
}

/* FFTW does not share a single transform among threads here; Tenon's kernels do. */
static double cost(const tn_kernel_row *row, const tn_query *query)
{
    const tn_fft_op *fft = TN_PARAMS(query->op, fft);
    const batch_cut cut = make_cut(query->op);
    const double size = (is_f64(query->op) ? 16.0 : 8.0) / (fft->kind == TN_FFT_COMPLEX ? 1 : 2);
    const double points = (double)fft->points, numbers = points * (double)fft->batch;
    const double alone =
        cut.parts < query->threads ? (double)query->threads / (double)cut.parts : 1;
    const double compute = (fft->kind == TN_FFT_COMPLEX ? 5 : 2.5) * numbers *
                           log2(points > 2 ? points : 2) / row->flops_per_us;
    const double move = (fft->scale != 1 ? 3 : 2) * numbers * size / row->bytes_per_us;
    return row->overhead_us + alone * (compute > move ? compute : move);
}

static const tn_dtype dtypes[] = {TN_F32, TN_C64, TN_F64, TN_C128, 0};

/* FFTW plans differ with what it planned before in the process, so no promise is made. The speeds are below
 * those of Tenon's kernels for vectors, which are faster for most problems (docs/benchmarks.md). */
#define ROW(row, word, rate, admits)                                               \
    const tn_kernel_row row = {.struct_size = sizeof(tn_kernel_row),               \
                               .name = word,                                       \
                               .platform = "cpu",                                  \
                               .library = "fftw",                                  \
                               .op = TN_OP_FFT,                                    \
                               .version = 1,                                       \
                               .dtypes = dtypes,                                   \
                               .honours = TN_FFT_USES_STRIDES | TN_FFT_USES_REAL | \
                                          TN_FFT_USES_IN_PLACE | TN_FFT_USES_DIMS, \
                               .flops_per_us = (rate),                             \
                               .bytes_per_us = 6e3,                                \
                               .overhead_us = 0.2,                                 \
                               .alignment = 16,                                    \
                               .admit = (admits),                                  \
                               .plan = make_plan,                                  \
                               .plan_release = release_plan,                       \
                               .run = run_fft,                                     \
                               .cost = cost}

ROW(tni_fftw_estimated, "cpu.fft.fftw", 5.5e3, admit_estimated);
ROW(tni_fftw_measured, "cpu.fft.fftw.measured", 7e3, admit_measured);
