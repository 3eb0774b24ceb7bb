#include "fft_copy.h"

CUDA_TEXT_DECLARE(fft_copy_args_h);
CUDA_TEXT_DECLARE(fft_copy_cu);
static const cuda_text text_of_args = CUDA_TEXT(fft_copy_args_h, "fft_copy_args.h");
static const cuda_text text = CUDA_TEXT(fft_copy_cu, "fft_copy.cu");
static const cuda_unit unit = {{&cuda_text_of_args, &text_of_args, &cuda_text_of_common, &text}};

void cuda_fft_copy_case(tn_dtype dtype, char *options, cuda_case *out)
{
    const bool complex = dtype == TN_C64 || dtype == TN_C128;
    snprintf(options, CUDA_FFT_COPY_OPTIONS, "-DNUMBER=%s\n-DCOMPLEX=%d\n-default-device\n",
             dtype == TN_F32 || dtype == TN_C64 ? "f32" : "f64", complex);
    *out = (cuda_case){&unit, "fft_copy", options};
}

/* Appends a dimension, or merges it into the one before if it continues that in both operands. */
static void add_dimension(cuda_fft_copy_args *out, int64_t size, int64_t from, int64_t to,
                          bool merges)
{
    const int last = out->rank - 1;
    if (merges && last >= 0 && out->stride[0][last] == from * size &&
        out->stride[1][last] == to * size) {
        out->size[last] *= size;
        out->stride[0][last] = from;
        out->stride[1][last] = to;
        return;
    }
    out->size[out->rank] = size;
    out->stride[0][out->rank] = from;
    out->stride[1][out->rank++] = to;
}

tn_status cuda_fft_copy_plan(const tn_run *run, const tn_layout *from, const tn_layout *to,
                             const cuda_fft_copy_args *args, cuda_fft_copy *out, tn_error *err)
{
    char options[CUDA_FFT_COPY_OPTIONS];
    cuda_case wanted;
    out->args = *args;
    out->args.rank = 0;
    out->args.elements = 1;
    for (int32_t d = 0; d < from->rank; d++) {
        const bool merges = !args->symmetric || d < from->rank - args->dims;
        add_dimension(&out->args, from->shape[d], from->stride[d], to->stride[d], merges);
        out->args.elements *= from->shape[d];
    }
    cuda_fft_copy_case(from->dtype, options, &wanted);
    return cuda_kernel_beside(run, &wanted, "copies of operands", &out->kernel, err);
}

tn_status cuda_fft_copy_run(const tn_run *run, const cuda_fft_copy *copy, const void *from,
                            void *to, tn_error *err)
{
    cuda_fft_copy_args args = copy->args;
    args.from = from;
    args.to = to;
    return cuda_plan_launch(run, copy->kernel,
                            cuda_blocks_for(run, args.elements / CUDA_THREADS + 1), &args, err);
}
