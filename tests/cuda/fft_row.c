/* A row for numbers.c: transforms whose operands are copied as those of cuFFT are, and computed here by the definition, from
 * what cuFFT would be given: lengths, strides, embedding, direction. */
#include "test_rows.h"

#include "../../backends/cuda/lib/cufft/cufft.h"
#include "../../backends/cuda/lib/cufft/cufft_shape.h"

#include <complex.h>
#include <math.h>

typedef struct planned {
    cufft_shape shape;
    cuda_fft_copy before, after;
} planned;

static uint64_t workspace(const tn_kernel_row *row, const tn_query *query)
{
    cufft_shape shape;
    (void)row;
    cufft_shape_of(query->op, &shape);
    return (uint64_t)shape.bytes;
}

static void release(const tn_run *run, void *plan)
{
    run->host->release(run->host->self, plan);
}

static tn_status make(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    planned *plan = run->host->alloc(run->host->self, sizeof *plan, _Alignof(planned));
    if (!plan)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, run->row->name, "no memory for a plan");
    memset(plan, 0, sizeof *plan);
    cufft_shape_of(run->op, &plan->shape);
    tn_status status = cufft_copies_plan(run, &plan->shape, &plan->before, &plan->after, err);
    if (status)
        release(run, plan);
    else
        *out = plan;
    *out_bytes = sizeof *plan;
    return status;
}

/* cuFFT's address of an element: index x of the array that contains the transform, by rows. */
static int64_t address_of(const cufft_operand *side, int32_t dims, const int64_t *x, int64_t batch)
{
    int64_t at = x[0];
    for (int32_t d = 1; d < dims; d++)
        at = at * side->embed[d] + x[d];
    return batch * side->distance + at * side->stride;
}

static double complex read_element(const cufft_operand *side, const void *data, int64_t at)
{
    switch (side->layout.dtype) {
    case TN_F32: return ((const float *)data)[at];
    case TN_F64: return ((const double *)data)[at];
    case TN_C64: return ((const float complex *)data)[at];
    default: return ((const double complex *)data)[at];
    }
}

static void write_element(const cufft_operand *side, void *data, int64_t at, double complex x)
{
    switch (side->layout.dtype) {
    case TN_F32: ((float *)data)[at] = (float)creal(x); break;
    case TN_F64: ((double *)data)[at] = creal(x); break;
    case TN_C64: ((float complex *)data)[at] = (float complex)x; break;
    default: ((double complex *)data)[at] = x;
    }
}

/* The index of element `number` in a box of the transform's lengths. */
static void index_of(const tn_fft_op *fft, int64_t number, int64_t *out)
{
    for (int32_t d = fft->dims - 1; d >= 0; d--) {
        out[d] = number % fft->length[d];
        number /= fft->length[d];
    }
}

/* An element of the input; of a half spectrum, the other half is what cuFFT supposes: the conjugate mirror image. */
static double complex input_of(const planned *plan, const tn_fft_op *fft, const void *in,
                               const int64_t *x, int64_t batch)
{
    const cufft_operand *side = &plan->shape.side[TN_FFT_IN];
    const int64_t n = fft->length[fft->dims - 1];
    int64_t mirror[TN_FFT_DIMS_MAX];
    if (fft->kind != TN_FFT_COMPLEX_TO_REAL || x[fft->dims - 1] <= n / 2)
        return read_element(side, in, address_of(side, fft->dims, x, batch));
    for (int32_t d = 0; d < fft->dims; d++)
        mirror[d] = x[d] ? fft->length[d] - x[d] : 0;
    return conj(read_element(side, in, address_of(side, fft->dims, mirror, batch)));
}

static double complex output_of(const planned *plan, const tn_fft_op *fft, const double complex *in,
                                const int64_t *k)
{
    const bool forward = fft->kind == TN_FFT_COMPLEX ? plan->shape.direction == FFT_FORWARD
                                                     : fft->kind == TN_FFT_REAL_TO_COMPLEX;
    double complex sum = 0;
    for (int64_t j = 0; j < fft->points; j++) {
        int64_t x[TN_FFT_DIMS_MAX];
        double turn = 0;
        index_of(fft, j, x);
        for (int32_t d = 0; d < fft->dims; d++)
            turn += (double)(x[d] * k[d] % fft->length[d]) / (double)fft->length[d];
        sum += in[j] * cexp((forward ? -1 : 1) * 2 * acos(-1) * I * turn);
    }
    return sum;
}

/* One transform of the batch: `in` is read whole before anything is written. */
static void transform(const tn_run *run, const void *from, void *to, double complex *in,
                      int64_t batch)
{
    const planned *plan = run->plan;
    const tn_fft_op *fft = TN_PARAMS(run->op, fft);
    const cufft_operand *side = &plan->shape.side[TN_FFT_OUT];
    int64_t x[TN_FFT_DIMS_MAX];
    for (int64_t j = 0; j < fft->points; j++) {
        index_of(fft, j, x);
        in[j] = input_of(plan, fft, from, x, batch);
    }
    for (int64_t j = 0; j < fft->points; j++) {
        index_of(fft, j, x);
        if (x[fft->dims - 1] < side->layout.shape[side->layout.rank - 1])
            write_element(side, to, address_of(side, fft->dims, x, batch),
                          output_of(plan, fft, in, x));
    }
}

static tn_status compute(const tn_run *run, tn_error *err)
{
    const planned *plan = run->plan;
    const tn_fft_op *fft = TN_PARAMS(run->op, fft);
    void *in = cufft_memory(run, &plan->shape, TN_FFT_IN),
         *out = cufft_memory(run, &plan->shape, TN_FFT_OUT);
    double complex *room =
        run->host->alloc(run->host->self, (size_t)fft->points * sizeof *room, 16);
    tn_status status =
        room ? TN_OK : tn_fail(err, TN_OUT_OF_MEMORY, 0, run->row->name, "no memory");
    if (!status && plan->shape.copies_before)
        status = cuda_fft_copy_run(run, &plan->before, tn_operand(run, TN_FFT_IN), in, err);
    for (int64_t b = 0; b < fft->batch && !status; b++)
        transform(run, in, out, room, b);
    if (room)
        run->host->release(run->host->self, room);
    if (!status && plan->shape.copies_after)
        status = cuda_fft_copy_run(run, &plan->after, out, tn_operand(run, TN_FFT_OUT), err);
    return status;
}

static const tn_dtype dtypes[] = {TN_C64, TN_C128, TN_F32, TN_F64, 0};

const tn_kernel_row fft_row = {
    .struct_size = sizeof fft_row,
    .name = "cuda.fft.copied",
    .op = TN_OP_FFT,
    .version = 1,
    .dtypes = dtypes,
    .flops_per_us = 1,
    .bytes_per_us = 1,
    .overhead_us = 1,
    .alignment = 16,
    .numerics = TN_NUM_RUN_TO_RUN,
    .honours = TN_FFT_USES_STRIDES | TN_FFT_USES_BROADCAST | TN_FFT_USES_REAL |
               TN_FFT_USES_IN_PLACE | TN_FFT_USES_DIMS,
    .workspace = workspace,
    .plan = make,
    .plan_release = release,
    .run = compute,
};
