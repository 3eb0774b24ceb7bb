#include "cublas_cost.h"

#include "../../kernels/layout.h"
#include "cublas_shape.h"
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

/* Returns the alignment of an operand's lines, of their beginnings and ends. */
static int64_t aligned_ends(const tn_layout *layout)
{
    const int32_t along = lt_along(layout);
    const int64_t bytes = layout->shape[along] * cuda_bytes_of(layout->dtype);
    int64_t aligned = cuda_blas_aligned(layout);
    while (layout->shape[along] > 1 && bytes % aligned != 0)
        aligned /= 2;
    return aligned;
}

/* Returns the part of its speed that a product of 16 bits reaches if lines of A, B or out begin or end at less than 16
 * bytes. On an H200 bf16 4097 cubed had 133 TFLOP/s, 4098 and 4100 cubed 216, and 4104 cubed 699; 2049, 2050, 2052 and
 * 2056 cubed had 102, 157, 156 and 639 (docs/benchmarks.md). */
static double aligned_share(const tn_op *op)
{
    int64_t aligned = CUDA_VECTOR;
    if (cuda_bytes_of(op->operand[TN_MATMUL_A].dtype) != 2)
        return 1;
    for (int32_t i = TN_MATMUL_A; i <= TN_MATMUL_OUT; i++) {
        const int64_t of = aligned_ends(&op->operand[i]);
        aligned = of < aligned ? of : aligned;
    }
    return aligned <= 2 ? 0.16 : aligned < CUDA_VECTOR ? 0.26 : 1;
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
    const double share = aligned_share(op);
    const double compute = flops * m * n * k / (row->flops_per_us * share);
    const double move = ((m + n) * k * in + m * n * out) / row->bytes_per_us;
    const double longer = compute > move ? compute : move;
    return (share < 1 ? compute + move : longer) * (double)mm->matrices;
}
