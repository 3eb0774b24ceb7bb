#include "cublas_cost.h"

#include "../../kernels/layout.h"
#include "tenon/module/op/matmul.h"

int64_t cuda_blas_aligned(const tn_layout *layout)
{
    int64_t aligned = layout->alignment < CUDA_VECTOR ? layout->alignment : CUDA_VECTOR;
    for (int32_t d = 0; d < layout->rank; d++) {
        const int64_t bytes = layout->stride[d] * cuda_bytes_of(layout->dtype);
        while (layout->shape[d] > 1 && layout->stride[d] != 1 && bytes % aligned != 0)
            aligned /= 2;
    }
    return aligned;
}

/* Returns the part of its speed that a product of misaligned operands of 16 bits reaches. With 2 bytes: 137 TFLOP/s on
 * an H200 at 3333 x 5555 x 7777. The others, and that of out alone, are assumed to be between that and 1; if they are
 * too high, aligned copies (cublas_pad.h) are only used after tuning. */
static double aligned_share(const tn_op *op)
{
    enum { ALONG_OUT = 8 };
    int64_t aligned = CUDA_VECTOR;
    if (cuda_bytes_of(op->operand[TN_MATMUL_A].dtype) != 2)
        return 1;
    for (int32_t i = TN_MATMUL_A; i <= TN_MATMUL_B; i++) {
        const int64_t of = cuda_blas_aligned(&op->operand[i]);
        aligned = of < aligned ? of : aligned;
    }
    if (aligned == CUDA_VECTOR && cuda_blas_aligned(&op->operand[TN_MATMUL_OUT]) < CUDA_VECTOR)
        aligned = ALONG_OUT;
    return aligned <= 2 ? 0.19 : aligned == 4 ? 0.33 : aligned == 8 ? 0.7 : 1;
}

bool cuda_blas_is_misaligned(const tn_op *op)
{
    return aligned_share(op) < 1;
}

double cuda_blas_work_us(const tn_kernel_row *row, const tn_op *op)
{
    const tn_matmul_op *mm = TN_PARAMS(op, matmul);
    const tn_dtype dtype = op->operand[TN_MATMUL_A].dtype;
    const double m = (double)mm->m, n = (double)mm->n, k = (double)mm->k;
    const double in = (double)cuda_bytes_of(dtype);
    const double out = (double)cuda_bytes_of(op->operand[TN_MATMUL_OUT].dtype);
    const double flops =
        dtype == TN_C64 || dtype == TN_C128 ? 8 : 2; /* operations per multiply-add */
    const double compute = flops * m * n * k / (row->flops_per_us * aligned_share(op));
    const double move = ((m + n) * k * in + m * n * out) / row->bytes_per_us;
    return (compute > move ? compute : move) * (double)mm->matrices;
}
