#include "cufft_shape.h"

#include "cufft.h"

#include <math.h>

enum { PART_ALIGNMENT = 256 };

/* Writes the embedding of the transformed dimensions; returns false if the library cannot express their strides. */
static bool describe_lines(const tn_layout *layout, int32_t dims, cufft_operand *out)
{
    const int32_t last = layout->rank - 1, first = layout->rank - dims;
    int64_t stride = layout->shape[last] == 1 ? 1 : layout->stride[last];
    if (stride < 1)
        return false;
    out->stride = stride;
    out->embed[0] = layout->shape[first];
    for (int32_t d = last; d > first; d--) {
        const int64_t before = layout->stride[d - 1];
        const bool is_one = layout->shape[d - 1] == 1;
        const int64_t embed = is_one ? layout->shape[d] : before / stride;
        if (!is_one && (before % stride != 0 || embed < layout->shape[d]))
            return false;
        out->embed[d - first] = embed;
        stride *= embed;
    }
    out->distance = stride * layout->shape[first];
    return true;
}

/* The same for the batch, which must have one stride. */
static bool describe_batch(const tn_layout *layout, int32_t dims, cufft_operand *out)
{
    int64_t count = 1;
    for (int32_t d = layout->rank - dims - 1; d >= 0; d--) {
        if (layout->shape[d] == 1)
            continue;
        if (count == 1)
            out->distance = layout->stride[d];
        else if (layout->stride[d] != out->distance * count)
            return false;
        count *= layout->shape[d];
    }
    return out->distance > 0;
}

static tn_layout dense_as(const tn_layout *like)
{
    tn_layout out = *like;
    int64_t step = 1;
    out.alignment = TN_OP_ALIGNMENT_MAX;
    for (int32_t d = out.rank - 1; d >= 0; d--) {
        out.stride[d] = step;
        step *= out.shape[d];
    }
    return out;
}

static double bytes_of(const tn_layout *layout)
{
    double bytes = (double)cuda_bytes_of(layout->dtype);
    for (int32_t d = 0; d < layout->rank; d++)
        bytes *= (double)layout->shape[d];
    return ceil(bytes / PART_ALIGNMENT) * PART_ALIGNMENT;
}

/* Returns whether an operand must be staged. Complex to real overwrites its input in the library; real operands must be
 * aligned like complex ones. */
static bool must_stage(const tn_op *op, int32_t operand)
{
    const tn_layout *layout = &op->operand[operand];
    const bool is_real = layout->dtype == TN_F32 || layout->dtype == TN_F64;
    return (operand == TN_FFT_IN && TN_PARAMS(op, fft)->kind == TN_FFT_COMPLEX_TO_REAL) ||
           (is_real && layout->alignment < 2 * cuda_bytes_of(layout->dtype));
}

static void describe_operand(const tn_op *op, int32_t operand, cufft_operand *out)
{
    const int32_t dims = TN_PARAMS(op, fft)->dims;
    out->layout = op->operand[operand];
    out->staged = must_stage(op, operand) || !describe_lines(&out->layout, dims, out) ||
                  !describe_batch(&out->layout, dims, out);
    if (!out->staged)
        return;
    out->layout = dense_as(&out->layout);
    (void)describe_lines(&out->layout, dims, out);
    (void)describe_batch(&out->layout, dims, out);
}

/* The library has one direction for each kind with real numbers; the other is that of the conjugate spectrum. Of half
 * spectra whose planes at both ends are not those of real numbers, the part that the op ignores is removed. */
static void choose_copies(const tn_fft_op *fft, cufft_shape *out)
{
    const bool forward = fft->direction == TN_FFT_FORWARD;
    const bool to_real = fft->kind == TN_FFT_COMPLEX_TO_REAL;
    const bool conjugates_after = fft->kind == TN_FFT_REAL_TO_COMPLEX && !forward;
    out->copies_before = out->side[TN_FFT_IN].staged;
    out->copies_after = out->side[TN_FFT_OUT].staged || conjugates_after ||
                        (fft->scale != 1 && !out->copies_before);
    out->before = (cuda_fft_copy_args){.scale = out->copies_after ? 1 : fft->scale,
                                       .dims = fft->dims,
                                       .conjugate = to_real && forward,
                                       .symmetric = !to_real                         ? 0
                                                    : fft->length[fft->dims - 1] % 2 ? 1
                                                                                     : 3};
    out->after = (cuda_fft_copy_args){.scale = out->copies_after ? fft->scale : 1,
                                      .dims = fft->dims,
                                      .conjugate = conjugates_after};
    const bool is_forward = fft->kind == TN_FFT_COMPLEX ? forward : !to_real;
    out->direction = is_forward ? FFT_FORWARD : FFT_INVERSE;
}

void cufft_shape_of(const tn_op *op, cufft_shape *out)
{
    const tn_fft_op *fft = TN_PARAMS(op, fft);
    cufft_operand *in = &out->side[TN_FFT_IN], *to = &out->side[TN_FFT_OUT];
    *out = (cufft_shape){.bytes = 0};
    describe_operand(op, TN_FFT_IN, in);
    describe_operand(op, TN_FFT_OUT, to);
    choose_copies(fft, out);
    if (in->staged)
        out->bytes = bytes_of(&in->layout);
    if (to->staged && !(in->staged && fft->kind == TN_FFT_COMPLEX)) {
        to->at = out->bytes < 0x1p62 ? (uint64_t)out->bytes : 0;
        out->bytes += bytes_of(&to->layout);
    }
}

tn_status cufft_copies_plan(const tn_run *run, const cufft_shape *shape, cuda_fft_copy *out_before,
                            cuda_fft_copy *out_after, tn_error *err)
{
    const tn_layout *in = &run->op->operand[TN_FFT_IN], *out = &run->op->operand[TN_FFT_OUT];
    tn_status status = TN_OK;
    if (shape->copies_before)
        status = cuda_fft_copy_plan(run, in, &shape->side[TN_FFT_IN].layout, &shape->before,
                                    out_before, err);
    if (!status && shape->copies_after)
        status = cuda_fft_copy_plan(run, &shape->side[TN_FFT_OUT].layout, out, &shape->after,
                                    out_after, err);
    return status;
}

void *cufft_memory(const tn_run *run, const cufft_shape *shape, int32_t operand)
{
    const cufft_operand *side = &shape->side[operand];
    return side->staged ? (char *)run->workspace + side->at : tn_operand(run, operand);
}
