/* fft: by prime factors, each summed as the definition says: n (p + q + ...) steps for the primes p,
 * q, ... of n. Computed in double for f32, in long double for f64. */
#include "ref_elementwise.h"

#include "tenon/module/op/fft.h"

#include <math.h>
#include <stdbool.h>

typedef struct fft_job {
    const tn_run *run;
    const tn_fft_op *fft;
    const tni_ref_element *in, *out;
    int64_t slices; /* of the batch: one for each thread */
} fft_job;

static int64_t smallest_prime(int64_t n)
{
    for (int64_t p = 2; p * p <= n; p++) {
        if (n % p == 0)
            return p;
    }
    return n;
}

static int64_t longest(const tn_fft_op *fft)
{
    int64_t most = 0;
    for (int32_t d = 0; d < fft->dims; d++)
        most = fft->length[d] > most ? fft->length[d] : most;
    return most;
}

/* The address of a line of the last dimension: transform `number` of the batch, line `row` of it. */
static char *place_of_row(const fft_job *job, int32_t operand, int64_t number, int64_t row)
{
    const tn_layout *layout = &job->run->op->operand[operand];
    const tn_fft_op *fft = job->fft;
    int64_t offset = 0;
    for (int32_t i = fft->dims - 2; i >= 0; i--) {
        offset += row % fft->length[i] * layout->stride[layout->rank - fft->dims + i];
        row /= fft->length[i];
    }
    for (int32_t d = layout->rank - fft->dims; d-- > 0;) {
        offset += number % layout->shape[d] * layout->stride[d];
        number /= layout->shape[d];
    }
    const tni_ref_element *element = operand == TN_FFT_IN ? job->in : job->out;
    return (char *)tn_operand(job->run, operand) + offset * element->bytes;
}

#define REAL       double
#define OF(name)   name##_double
#define MATH(name) name
#include "fft_ref_inc.h"

/* For f64. */
#define REAL       long double
#define OF(name)   name##_long
#define MATH(name) name##l
#include "fft_ref_inc.h"

static bool in_long(const tn_op *op)
{
    const tn_dtype in = op->operand[TN_FFT_IN].dtype;
    return in == TN_F64 || in == TN_C128;
}

/* The roots, and a slice for each thread, as far as they fit into 256 MiB. */
static uint64_t workspace_of_fft(const tn_kernel_row *row, const tn_query *query)
{
    enum { MOST = 256 << 20 };
    const tn_fft_op *fft = TN_PARAMS(query->op, fft);
    const bool wide = in_long(query->op);
    const int64_t roots = wide ? bytes_of_roots_long(fft) : bytes_of_roots_double(fft);
    const int64_t slice = wide ? bytes_of_slice_long(fft) : bytes_of_slice_double(fft);
    int64_t slices = query->threads < fft->batch ? query->threads : fft->batch;
    (void)row;
    slices = slices * slice > MOST ? MOST / slice : slices;
    return (uint64_t)(roots + (slices > 1 ? slices : 1) * slice);
}

static tn_status run_fft(const tn_run *run, tn_error *err)
{
    fft_job job = {.run = run,
                   .fft = TN_PARAMS(run->op, fft),
                   .in = tni_ref_operand_element(run->op, TN_FFT_IN),
                   .out = tni_ref_operand_element(run->op, TN_FFT_OUT)};
    (void)err;
    if (in_long(run->op))
        run_long(&job);
    else
        run_double(&job);
    return TN_OK;
}

static const tn_dtype dtypes[] = {TN_F32, TN_C64, TN_F64, TN_C128, 0};

const tn_kernel_row tni_ref_fft = {
    .struct_size = sizeof tni_ref_fft,
    .name = "cpu.fft.ref",
    .platform = "cpu",
    .backend = "ref",
    .op = TN_OP_FFT,
    .version = 1,
    .dtypes = dtypes,
    .numerics = TNI_REF_REPEATS,
    .honours = TN_FFT_USES_STRIDES | TN_FFT_USES_BROADCAST | TN_FFT_USES_REAL |
               TN_FFT_USES_IN_PLACE | TN_FFT_USES_DIMS,
    .flops_per_us = 200,
    .bytes_per_us = 200,
    .overhead_us = 1,
    .workspace = workspace_of_fft,
    .run = run_fft,
};
