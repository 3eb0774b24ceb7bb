/* fft by cuFFT. A plan keeps one of its handles. The work area, whose size only the library knows, is stream-ordered
 * memory of each run. */
#include "cufft.h"
#include "cufft_shape.h"

typedef struct ready {
    cufft_shape shape;
    cuda_fft_copy before, after;
    mtx_t turn; /* of the handle */
    bool has_turn, has_handle;
    atomic_bool recorded; /* into a graph, which may run after the plan was released */
    fft_handle handle;
    size_t work; /* bytes of the work area */
} ready;

static tn_status admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    cufft_shape shape;
    (void)row;
    const tn_status status = cuda_admit_alignment(query, why);
    if (status)
        return status;
    cufft_shape_of(query->op, &shape);
    const bool in = shape.side[TN_FFT_IN].staged, out = shape.side[TN_FFT_OUT].staged;
    if ((in || out) && why)
        (void)snprintf(why->text, sizeof why->text, "%s copied to %.0f bytes of workspace",
                       in && out ? "in and out are"
                       : in      ? "in is"
                                 : "out is",
                       shape.bytes);
    return TN_OK;
}

static uint64_t workspace(const tn_kernel_row *row, const tn_query *query)
{
    cufft_shape shape;
    (void)row;
    cufft_shape_of(query->op, &shape);
    return shape.bytes < 0x1p62 ? (uint64_t)shape.bytes : (uint64_t)1 << 62;
}

static fft_type type_of(tn_dtype dtype)
{
    switch (dtype) {
    case TN_F32: return FFT_R32;
    case TN_F64: return FFT_R64;
    case TN_C64: return FFT_C32;
    default: return FFT_C64;
    }
}

static fft_status make_handle(const cuda_cufft *cufft, const tn_op *op, ready *plan,
                              const char **call)
{
    const tn_fft_op *fft = TN_PARAMS(op, fft);
    cufft_operand *in = &plan->shape.side[TN_FFT_IN], *out = &plan->shape.side[TN_FFT_OUT];
    const bool is_double = in->layout.dtype == TN_F64 || in->layout.dtype == TN_C128;
    long long lengths[TN_FFT_DIMS_MAX];
    for (int32_t d = 0; d < fft->dims; d++)
        lengths[d] = fft->length[d];
    *call = "cufftCreate";
    fft_status code = cufft->create(&plan->handle);
    plan->has_handle = code == FFT_SUCCESS;
    if (!code) {
        *call = "cufftSetAutoAllocation";
        code = cufft->set_auto(plan->handle, 0);
    }
    if (!code) {
        *call = "cufftXtMakePlanMany";
        code = cufft->make_plan(plan->handle, fft->dims, lengths, in->embed, in->stride,
                                in->distance, type_of(in->layout.dtype), out->embed, out->stride,
                                out->distance, type_of(out->layout.dtype), fft->batch, &plan->work,
                                is_double ? FFT_C64 : FFT_C32);
    }
    return code;
}

/* A device that was reset has no plans any more: then this is not called. A handle that a graph may still need is kept as
 * long as the process: the driver does not report when the program destroys the graph. */
static void plan_release(const tn_run *run, void *any)
{
    const cuda_cufft *cufft = run->library;
    ready *plan = any;
    cuda_scope scope;
    if (plan->has_handle && !atomic_load(&plan->recorded) &&
        !cuda_enter(run->platform, run->device, &scope, NULL)) {
        cuda_relax(&scope);
        (void)cufft->destroy(plan->handle);
        cuda_leave(&scope);
    }
    if (plan->has_turn)
        mtx_destroy(&plan->turn);
    run->host->release(run->host->self, plan);
}

/* The library allocates its tables and may load code, which must not disturb a capture elsewhere. */
static tn_status plan_handle(const tn_run *run, ready *plan, tn_error *err)
{
    const char *call = "";
    cuda_scope scope;
    plan->has_turn = mtx_init(&plan->turn, mtx_plain) == thrd_success;
    if (!plan->has_turn)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, run->row->name, "no memory for a lock");
    tn_status status = cuda_enter(run->platform, run->device, &scope, err);
    if (status)
        return status;
    cuda_relax(&scope);
    const fft_status code = make_handle(run->library, run->op, plan, &call);
    status = cuda_blame(&scope, cuda_cufft_check(code, call, err), call, err);
    cuda_leave(&scope);
    return status;
}

static tn_status make_plan(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    void *any = NULL;
    tn_status status = cuda_plan_alloc(run, sizeof(ready), &any, out_bytes, err);
    if (status)
        return status;
    ready *plan = any;
    cufft_shape_of(run->op, &plan->shape);
    status = cufft_copies_plan(run, &plan->shape, &plan->before, &plan->after, err);
    if (!status)
        status = plan_handle(run, plan, err);
    if (status)
        plan_release(run, plan);
    else
        *out = plan;
    return status;
}

/* Queues the transform with a work area. */
static tn_status transform_with(const tn_run *run, void *work, tn_error *err)
{
    const cuda_cufft *cufft = run->library;
    ready *plan = run->plan;
    cuda_scope scope;
    tn_status status = cuda_enter(run->platform, run->device, &scope, err);
    if (status)
        return status;
    mtx_lock(&plan->turn);
    const char *call = "cufftSetStream";
    fft_status code = cufft->set_stream(plan->handle, run->stream);
    if (!code && plan->work > 0) {
        call = "cufftSetWorkArea";
        code = cufft->set_work(plan->handle, work);
    }
    if (!code) {
        call = "cufftXtExec";
        code = cufft->exec(plan->handle, cufft_memory(run, &plan->shape, TN_FFT_IN),
                           cufft_memory(run, &plan->shape, TN_FFT_OUT), plan->shape.direction);
    }
    mtx_unlock(&plan->turn);
    status = cuda_blame(&scope, cuda_cufft_check(code, call, err), call, err);
    cuda_leave(&scope);
    return status;
}

/* In a capture of the program, the work area becomes part of its graph. */
static tn_status transform(const tn_run *run, tn_error *err)
{
    ready *plan = run->plan;
    void *work = NULL;
    const bool captured = cuda_stream_is_captured(run->platform, run->device, run->stream);
    if (captured)
        atomic_store(&plan->recorded, true);
    if (plan->work == 0)
        return transform_with(run, NULL, err);
    tn_status status =
        captured
            ? cuda_capture_alloc(run->platform, run->device, run->stream, plan->work, &work, err)
            : cuda_memory_alloc_on(run->platform, run->device, run->stream, plan->work, &work, err);
    if (status)
        return status;
    status = transform_with(run, work, err);
    if (captured)
        cuda_capture_free(run->platform, run->device, run->stream, work);
    else if (cuda_memory_free_on(run->platform, run->device, run->stream, work,
                                 status ? NULL : err) &&
             !status)
        status = TN_INTERNAL;
    return status;
}

static tn_status run_fft(const tn_run *run, tn_error *err)
{
    const ready *plan = run->plan;
    const cufft_shape *shape = &plan->shape;
    void *out = tn_operand(run, TN_FFT_OUT);
    tn_status status = TN_OK;
    if (shape->copies_before)
        status = cuda_fft_copy_run(run, &plan->before, tn_operand(run, TN_FFT_IN),
                                   cufft_memory(run, shape, TN_FFT_IN), err);
    if (!status)
        status = transform(run, err);
    if (!status && shape->copies_after)
        status =
            cuda_fft_copy_run(run, &plan->after, cufft_memory(run, shape, TN_FFT_OUT), out, err);
    return status;
}

static const tn_dtype dtypes[] = {TN_C64, TN_C128, TN_F32, TN_F64, 0};

/* The speed is that of complex transforms of 64 x 1024 x 1024 numbers on an H200, where others reach 2.6 to 12 TFLOP/s
 * (docs/benchmarks.md). The overhead was not measured. */
const tn_kernel_row cuda_cufft_row = {
    .struct_size = sizeof cuda_cufft_row,
    .name = "cuda.fft.cufft",
    .platform = "cuda",
    .library = "cufft",
    .op = TN_OP_FFT,
    .version = 1,
    .dtypes = dtypes,
    .numerics = TN_NUM_RUN_TO_RUN,
    .honours = TN_FFT_USES_STRIDES | TN_FFT_USES_BROADCAST | TN_FFT_USES_REAL |
               TN_FFT_USES_IN_PLACE | TN_FFT_USES_DIMS,
    .flops_per_us = 1.2e7,
    .bytes_per_us = 1.9e6,
    .overhead_us = 10,
    .alignment = CUDA_VECTOR,
    .admit = admit,
    .workspace = workspace,
    .plan = make_plan,
    .plan_release = plan_release,
    .run = run_fft,
};
