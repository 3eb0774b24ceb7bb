#include "cublas_after.h"

#include "../../matmul/matmul_cuda.h"
#include "../../matmul/matmul_finish.h"
#include "tenon/module/op/matmul.h"

#include <math.h>

/* The library's f64 gelu has only f32 accuracy, and its 16-bit gelu is computed from rounded sums (seen with
 * 13.0). */
static bool is_the_librarys(const tn_op *op)
{
    const int32_t act = TN_PARAMS(op, matmul)->activation;
    return act == TN_ACT_NONE || act == TN_ACT_RELU ||
           (act == TN_ACT_GELU_TANH && op->operand[TN_MATMUL_OUT].dtype == TN_F32);
}

static bool is_narrow(const tn_op *op)
{
    const tn_dtype out = op->operand[TN_MATMUL_OUT].dtype;
    return out == TN_F16 || out == TN_BF16;
}

/* The library cannot add a bias to complex products; the op has no activation for them. */
static bool has_complex_bias(const tn_op *op)
{
    const tn_dtype bias = op->operand[TN_MATMUL_BIAS].dtype;
    return bias == TN_C64 || bias == TN_C128;
}

bool lt_is_finished(const tn_op *op)
{
    return has_complex_bias(op) ||
           (!is_the_librarys(op) && (is_narrow(op) || op->operand[TN_MATMUL_OUT].dtype == TN_F32));
}

/* The sizes of lines of sums are multiples of this, so that the library can use its fastest kernels. */
enum { LINE_TOGETHER = 8 };

static int64_t line_of(const tn_op *op)
{
    const tn_matmul_op *mm = TN_PARAMS(op, matmul);
    return cuda_round_up(cuda_matmul_by_columns(op) ? mm->m : mm->n, LINE_TOGETHER);
}

/* An f32 layout with out's order of rows and columns, whose lines are aligned to 32 bytes. */
static tn_layout lines_as(const tn_op *op)
{
    const tn_matmul_op *mm = TN_PARAMS(op, matmul);
    const int32_t m = mm->batch_rank, n = m + 1;
    const bool by_columns = cuda_matmul_by_columns(op);
    tn_layout out = op->operand[TN_MATMUL_OUT];
    const int64_t line = line_of(op);
    int64_t matrix = line * (by_columns ? mm->n : mm->m);
    out.dtype = TN_F32;
    out.alignment = TN_OP_ALIGNMENT_MAX;
    out.stride[m] = by_columns ? 1 : line;
    out.stride[n] = by_columns ? line : 1;
    for (int32_t d = m - 1; d >= 0; d--) {
        out.stride[d] = matrix;
        matrix *= out.shape[d];
    }
    return out;
}

void lt_sums_of(const tn_op *op, tn_op *out)
{
    *out = *op;
    if (!lt_is_finished(op))
        return;
    out->uses &= ~(uint64_t)(TN_MATMUL_USES_BIAS | TN_MATMUL_USES_ACTIVATION);
    TN_PARAMS_MUTABLE(out, matmul)->activation = TN_ACT_NONE;
    out->operand[TN_MATMUL_BIAS] = (tn_layout){.dtype = TN_DTYPE_NONE};
    if (is_narrow(op))
        out->operand[TN_MATMUL_OUT] = lines_as(op);
}

double lt_sums_bytes(const tn_op *op)
{
    enum { TOGETHER = 256 };
    const tn_matmul_op *mm = TN_PARAMS(op, matmul);
    if (!lt_is_finished(op) || !is_narrow(op))
        return 0;
    const double lines = (double)(cuda_matmul_by_columns(op) ? mm->n : mm->m);
    const double bytes = lines * (double)line_of(op) * (double)mm->matrices * sizeof(float);
    return ceil(bytes / TOGETHER) * TOGETHER;
}

tn_status lt_admit_following(const tn_kernel_row *row, const tn_op *op, tn_refusal *why)
{
    const int32_t act = TN_PARAMS(op, matmul)->activation;
    const bool finished = lt_is_finished(op);
    if (!finished && is_the_librarys(op))
        return TN_OK;
    if (!finished || row->numerics & TN_NUM_F16_SUMS)
        return cuda_refuse(why, TN_REFUSE_FEATURE, "act", TN_ACT_RELU, act,
                           "of f64 and sums of f16 it has relu alone");
    if (is_narrow(op) && op->uses & TN_MATMUL_USES_BETA)
        return cuda_refuse(why, TN_REFUSE_FEATURE, "beta", 0, 1,
                           "gelu and silu of 16 bits follow sums of f32, to which no out is added");
    if (cuda_finish_tiles(op) > INT32_MAX)
        return cuda_refuse(why, TN_REFUSE_SHAPE, "tiles", INT32_MAX, cuda_finish_tiles(op),
                           "what follows sums takes at most 2147483647 parts of rows");
    const double bytes = lt_sums_bytes(op);
    const tn_status status = cuda_admit_bytes(
        "sums", bytes, 0x1p30, "sums of f32 take at most 1 GiB of workspace: split A", why);
    if (!status && bytes > 0)
        (void)snprintf(why->text, sizeof why->text,
                       "sums of f32 go to %.0f bytes of workspace, and a kernel of Tenon's does "
                       "what follows",
                       bytes);
    return status;
}
