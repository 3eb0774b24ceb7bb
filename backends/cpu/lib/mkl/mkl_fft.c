/* fft by MKL's DFTI. A plan keeps two of its descriptors: one for a single transform, one for several of
 * the batch's last dimension. Each thread computes a part of the batch with them. */
#include "../../fft/fft_plan.h"
#include "../../shared/sizes.h"
#include "mkl.h"

#include <math.h>
#include <stdatomic.h>

/* From mkl_dfti.h. */
enum {
    FORWARD_SCALE = 4,
    BACKWARD_SCALE = 5,
    NUMBER_OF_TRANSFORMS = 7,
    CONJUGATE_EVEN_STORAGE = 10,
    PLACEMENT = 11,
    INPUT_STRIDES = 12,
    OUTPUT_STRIDES = 13,
    INPUT_DISTANCE = 14,
    OUTPUT_DISTANCE = 15,
    THREAD_LIMIT = 27
};
enum { COMPLEX = 32, REAL = 33, COMPLEX_COMPLEX = 39, IN_PLACE = 43, NOT_IN_PLACE = 44 };
enum { TOGETHER = 16384 }; /* numbers of a call, about: they stay in the second cache */

/* The batch's dimensions, merged where the strides of both operands permit; strides in elements. There is
 * always one. */
typedef struct batch {
    int32_t rank;
    int64_t shape[TN_OP_RANK_MAX], in[TN_OP_RANK_MAX], out[TN_OP_RANK_MAX];
} batch;

typedef struct fft_plan {
    void *one, *several; /* descriptors; `several` may be NULL */
    int64_t count;       /* transforms of `several` */
    batch batch;
    bool backward;
} fft_plan;

static void find_batch(const tn_op *op, batch *out)
{
    const tn_layout *in = &op->operand[TN_FFT_IN], *to = &op->operand[TN_FFT_OUT];
    *out = (batch){.rank = 1, .shape = {1}};
    for (int32_t d = 0; d < in->rank - TN_PARAMS(op, fft)->dims; d++) {
        const int32_t last = out->rank - 1;
        const bool merges = out->in[last] == in->stride[d] * in->shape[d] &&
                            out->out[last] == to->stride[d] * in->shape[d];
        if (in->shape[d] == 1)
            continue;
        const int32_t at = merges || out->shape[last] == 1 ? last : out->rank++;
        out->shape[at] = merges ? out->shape[at] * in->shape[d] : in->shape[d];
        out->in[at] = in->stride[d];
        out->out[at] = to->stride[d];
    }
}

static tn_status admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    static const char *const strides[] = {"si", "so"}, *const alignments[] = {"in.alignment",
                                                                              "out.alignment"};
    const tn_op *op = query->op;
    const tn_fft_op *fft = TN_PARAMS(op, fft);
    const int64_t bytes = tni_fft_is_wide(op) ? 8 : 4;
    (void)row;
    /* With several dimensions, MKL assumes a half spectrum that real numbers have, and does not read the
     * redundant elements. Tenon's definition uses all of them. */
    if (fft->kind == TN_FFT_COMPLEX_TO_REAL && fft->dims > 1)
        return tn_refuse(why, TN_REFUSE_SHAPE, "dims", 1, fft->dims);
    /* For real numbers MKL has forward transforms to, and backward transforms from, half spectra only. */
    if (fft->kind != TN_FFT_COMPLEX &&
        (fft->direction == TN_FFT_FORWARD) != (fft->kind == TN_FFT_REAL_TO_COMPLEX))
        return tn_refuse(why, TN_REFUSE_OTHER, "direction", !fft->direction, fft->direction);
    for (int32_t i = 0; i < TN_FFT_OPERANDS; i++) {
        const tn_layout *layout = &op->operand[i];
        if (layout->alignment < bytes)
            return tn_refuse(why, TN_REFUSE_ALIGNMENT, alignments[i], bytes, layout->alignment);
        for (int32_t d = 0; d < layout->rank; d++) {
            if (layout->stride[d] < 1 && layout->shape[d] > 1)
                return tn_refuse(why, TN_REFUSE_STRIDE, strides[i], 1, layout->stride[d]);
        }
    }
    return TN_OK;
}

static tn_status fail(const tni_mkl_dfti *dfti, const char *call, long code, tn_error *err)
{
    const char *message = dfti->message(code);
    return tn_fail(err, TN_UNSUPPORTED, (int32_t)code, call,
                   "MKL cannot compute this transform: %.200s",
                   message ? message : "no reason is given");
}

/* Zero, then the strides of the transformed dimensions. */
static void copy_strides(const tn_op *op, int32_t operand, long *out)
{
    const tn_layout *layout = &op->operand[operand];
    const int32_t dims = TN_PARAMS(op, fft)->dims;
    out[0] = 0;
    for (int32_t d = 0; d < dims; d++) {
        const int32_t at = layout->rank - dims + d;
        out[d + 1] = layout->shape[at] == 1 ? 1 : (long)layout->stride[at];
    }
}

static long create(const tni_mkl_dfti *dfti, const tn_op *op, void **out)
{
    const tn_fft_op *fft = TN_PARAMS(op, fft);
    const int domain = fft->kind == TN_FFT_COMPLEX ? COMPLEX : REAL;
    long lengths[TN_FFT_DIMS_MAX];
    for (int32_t d = 0; d < fft->dims; d++)
        lengths[d] = (long)fft->length[d];
    if (fft->dims == 1)
        return (tni_fft_is_wide(op) ? dfti->create_1d_f64 : dfti->create_1d_f32)(out, domain,
                                                                                 lengths[0]);
    return (tni_fft_is_wide(op) ? dfti->create_nd_f64 : dfti->create_nd_f32)(out, domain, fft->dims,
                                                                             lengths);
}

/* A descriptor of `count` transforms along the last dimension of the batch; *out is NULL on failure. */
static tn_status describe(const tni_mkl_dfti *dfti, const tn_op *op, const batch *b, int64_t count,
                          void **out, tn_error *err)
{
    const tn_fft_op *fft = TN_PARAMS(op, fft);
    const bool in_place = op->uses & TN_FFT_USES_IN_PLACE;
    const int32_t last = b->rank - 1;
    long in[TN_FFT_DIMS_MAX + 1], to[TN_FFT_DIMS_MAX + 1];
    copy_strides(op, TN_FFT_IN, in);
    copy_strides(op, TN_FFT_OUT, to);
    *out = NULL;
    long code = create(dfti, op, out);
    if (code)
        return fail(dfti, "DftiCreateDescriptor", code, err);
    const struct {
        int which;
        long value;
    } values[] = {{PLACEMENT, in_place ? IN_PLACE : NOT_IN_PLACE},
                  {THREAD_LIMIT, 1},
                  {NUMBER_OF_TRANSFORMS, (long)count},
                  {INPUT_DISTANCE, count > 1 ? (long)b->in[last] : 0},
                  {OUTPUT_DISTANCE, count > 1 ? (long)b->out[last] : 0},
                  {CONJUGATE_EVEN_STORAGE, COMPLEX_COMPLEX}};
    const size_t most = sizeof values / sizeof *values - (fft->kind == TN_FFT_COMPLEX);
    for (size_t i = 0; i < most && !code; i++)
        code = dfti->set(*out, values[i].which, values[i].value);
    if (!code)
        code = dfti->set(*out, INPUT_STRIDES, in);
    if (!code)
        code = dfti->set(*out, OUTPUT_STRIDES, in_place ? in : to);
    if (!code)
        code = dfti->set(*out, fft->direction ? BACKWARD_SCALE : FORWARD_SCALE, fft->scale);
    const char *call = code ? "DftiSetValue" : "DftiCommitDescriptor";
    if (!code)
        code = dfti->commit(*out);
    if (!code)
        return TN_OK;
    (void)dfti->destroy(out);
    *out = NULL;
    return fail(dfti, call, code, err);
}

static void release_plan(const tn_run *run, void *made)
{
    tni_mkl *mkl = run->library;
    fft_plan *plan = made;
    const int before = tni_vendor_threads_enter(&mkl->blas.threads, mkl);
    if (plan->one)
        (void)mkl->dfti.destroy(&plan->one);
    if (plan->several)
        (void)mkl->dfti.destroy(&plan->several);
    tni_vendor_threads_leave(&mkl->blas.threads, mkl, before);
    run->host->release(run->host->self, plan);
}

static tn_status make_plan(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    tni_mkl *mkl = run->library;
    const tn_fft_op *fft = TN_PARAMS(run->op, fft);
    const tni_mkl_dfti *d = &mkl->dfti;
    if (!d->create_1d_f32 || !d->create_1d_f64 || !d->create_nd_f32 || !d->create_nd_f64 ||
        !d->set || !d->commit || !d->forward || !d->backward || !d->destroy || !d->message)
        return tn_fail(err, TN_UNSUPPORTED, 0, run->row->name,
                       "this MKL has no Fourier transforms (DFTI); install a complete one");
    fft_plan *plan = run->host->alloc(run->host->self, sizeof *plan, _Alignof(fft_plan));
    if (!plan)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, run->row->name, "no memory for a plan");
    *plan = (fft_plan){.backward = fft->direction == TN_FFT_INVERSE};
    find_batch(run->op, &plan->batch);
    const int64_t most = plan->batch.shape[plan->batch.rank - 1];
    plan->count = fft->points < TOGETHER ? TOGETHER / fft->points : 1;
    plan->count = plan->count < most ? plan->count : most;
    const int before = tni_vendor_threads_enter(&mkl->blas.threads, mkl);
    tn_status status = describe(d, run->op, &plan->batch, 1, &plan->one, err);
    if (!status && plan->count > 1)
        status = describe(d, run->op, &plan->batch, plan->count, &plan->several, err);
    tni_vendor_threads_leave(&mkl->blas.threads, mkl, before);
    if (status) {
        release_plan(run, plan);
        return status;
    }
    /* An estimate: MKL does not report the size of its tables. */
    *out_bytes = sizeof *plan + (uint64_t)(plan->several ? 2 : 1) * 2 * (uint64_t)fft->points *
                                    (tni_fft_is_wide(run->op) ? 16 : 8);
    *out = plan;
    return TN_OK;
}

typedef struct job {
    const tn_run *run;
    const fft_plan *plan;
    int64_t parts; /* of the last dimension of the batch */
    int64_t total, tasks;
    _Atomic long failed; /* a result of the library */
} job;

static long compute(const job *j, void *descriptor, int64_t in, int64_t out)
{
    const tni_mkl_dfti *dfti = &((const tni_mkl *)j->run->library)->dfti;
    const tn_op *op = j->run->op;
    const tn_layout *operand = op->operand;
    char *from = tn_operand(j->run, TN_FFT_IN), *to = tn_operand(j->run, TN_FFT_OUT);
    from += in * dtype_bytes(operand[TN_FFT_IN].dtype);
    to += out * dtype_bytes(operand[TN_FFT_OUT].dtype);
    if (op->uses & TN_FFT_USES_IN_PLACE)
        return (j->plan->backward ? dfti->backward : dfti->forward)(descriptor, from);
    return (j->plan->backward ? dfti->backward : dfti->forward)(descriptor, from, to);
}

/* Part `index` of the batch: `count` transforms, or the rest of its last dimension one by one. */
static long compute_part(const job *j, int64_t index)
{
    const fft_plan *plan = j->plan;
    const batch *b = &plan->batch;
    const int32_t last = b->rank - 1;
    const int64_t first = index % j->parts * plan->count, left = b->shape[last] - first;
    int64_t in = first * b->in[last], out = first * b->out[last], at = index / j->parts;
    for (int32_t d = last - 1; d >= 0; d--) {
        in += at % b->shape[d] * b->in[d];
        out += at % b->shape[d] * b->out[d];
        at /= b->shape[d];
    }
    if (plan->several && left >= plan->count)
        return compute(j, plan->several, in, out);
    long code = 0;
    for (int64_t i = 0; i < left && i < plan->count && !code; i++)
        code = compute(j, plan->one, in + i * b->in[last], out + i * b->out[last]);
    return code;
}

static void task(void *user, int64_t index)
{
    job *j = user;
    tni_mkl *mkl = j->run->library;
    const int before = tni_vendor_threads_enter(&mkl->blas.threads, mkl);
    long code = 0;
    for (int64_t i = index * j->total / j->tasks; i < (index + 1) * j->total / j->tasks && !code;
         i++)
        code = compute_part(j, i);
    tni_vendor_threads_leave(&mkl->blas.threads, mkl, before);
    if (code)
        atomic_store_explicit(&j->failed, code, memory_order_relaxed);
}

static tn_status run_fft(const tn_run *run, tn_error *err)
{
    const fft_plan *plan = run->plan;
    const batch *b = &plan->batch;
    job j = {.run = run, .plan = plan, .total = 1};
    j.parts = (b->shape[b->rank - 1] + plan->count - 1) / plan->count;
    j.total = j.parts;
    for (int32_t d = 0; d < b->rank - 1; d++)
        j.total *= b->shape[d];
    atomic_init(&j.failed, 0);
    j.tasks = j.total < run->threads ? j.total : run->threads > 1 ? run->threads : 1;
    if (j.tasks > 1)
        run->host->parallel_for(run->host->self, j.tasks, task, &j);
    else
        task(&j, 0);
    const long code = atomic_load_explicit(&j.failed, memory_order_relaxed);
    return code ? fail(&((const tni_mkl *)run->library)->dfti, "DftiCompute", code, err) : TN_OK;
}

/* Lengths with primes that the library has no code for are slow, except short ones. */
static bool is_slow(int64_t n)
{
    enum { PRIME_MOST = 13, SHORT = 2048 };
    if (n <= SHORT)
        return false;
    for (int64_t p = 2; p <= PRIME_MOST; p++) {
        while (n % p == 0)
            n /= p;
    }
    return n > 1;
}

/* In the units of cpu.fft.avx512, with which it was compared on one core (docs/benchmarks.md): MKL is
 * faster, except at the lengths of is_slow, and for lines larger than the second cache. 0.64, the speed
 * without AVX-512, is an estimate that was not measured. MKL does not share a single transform among
 * threads here; Tenon's kernels do. */
static double cost(const tn_kernel_row *row, const tn_query *query)
{
    const tn_fft_op *fft = TN_PARAMS(query->op, fft);
    const bool wide = query->cpu_features & TN_CPU_BIT(AVX512F);
    const double size =
        (tni_fft_is_wide(query->op) ? 16.0 : 8.0) / (fft->kind == TN_FFT_COMPLEX ? 1 : 2);
    const double points = (double)fft->points, numbers = points * (double)fft->batch;
    double speed = fft->dims == 1 && points * size > 0x1p22 ? 0.73 : 1, alone = 1;
    for (int32_t d = 0; d < fft->dims; d++)
        speed = is_slow(fft->length[d]) ? 0.5 : speed;
    if ((fft->points >= TOGETHER || fft->dims > 1) && fft->batch < query->threads)
        alone = (double)query->threads / (double)(fft->batch > 0 ? fft->batch : 1);
    const double compute = (fft->kind == TN_FFT_COMPLEX ? 5 : 2.5) * numbers *
                           log2(points > 2 ? points : 2) /
                           (speed * (wide ? 1 : 0.64) * row->flops_per_us);
    const double move = 2 * numbers * size / row->bytes_per_us;
    return row->overhead_us + alone * (compute > move ? compute : move);
}

static const tn_dtype dtypes[] = {TN_F32, TN_C64, TN_F64, TN_C128, 0};

const tn_kernel_row tni_cpu_module_fft_mkl = {
    .struct_size = sizeof tni_cpu_module_fft_mkl,
    .name = "cpu.fft.mkl",
    .platform = "cpu",
    .library = "mkl",
    .op = TN_OP_FFT,
    .version = 1,
    .dtypes = dtypes,
    .honours = TN_FFT_USES_STRIDES | TN_FFT_USES_REAL | TN_FFT_USES_IN_PLACE | TN_FFT_USES_DIMS,
    .flops_per_us = 18e3,
    .bytes_per_us = 8e3,
    .overhead_us = 0.1,
    .alignment = sizeof(double),
    .admit = admit,
    .plan = make_plan,
    .plan_release = release_plan,
    .run = run_fft,
    .cost = cost,
};
