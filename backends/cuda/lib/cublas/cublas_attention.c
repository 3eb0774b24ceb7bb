#include "cublas_attention.h"

#include "../../attention/attention_math.h"
#include "../../kernels/rows.h"
#include "cublas_matmul.h"
#include "tenon/module/op/attention.h"
#include "tenon/module/op/matmul.h"

/* Returns the row that computes the products: for 16 bits with sums of f32 that are not split. cuBLASLt may split sums of
 * f32 and f64. */
static const tn_kernel_row *product_of(const tn_op *op)
{
    return cuda_bytes_of(op->operand[TN_ATTENTION_Q].dtype) == 2 ? &cuda_lt_half_whole_rows[0].row
                                                                 : &cuda_lt_wide_rows[0].row;
}

static tn_status admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    return cuda_math_admit(row, product_of(query->op), query, why);
}

static uint64_t workspace(const tn_kernel_row *row, const tn_query *query)
{
    return cuda_math_workspace(row, product_of(query->op), query);
}

static tn_status plan(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    return cuda_math_plan(run, product_of(run->op), out, out_bytes, err);
}

/* Counts the launches, both products, and scores and weights that are written and read; 0 if the row does not support the
 * counts. Is always longer than the time of cuda.attention.own, which needs no memory for scores: only tuning selects
 * these rows (docs/cuda.md), of both the one that moves fewer bytes first. */
static double estimate(const tn_kernel_row *row, const tn_query *query)
{
    tn_op ops[2];
    if (cuda_math_admit_counts(query->op, NULL))
        return 0;
    double us = row->overhead_us + 2 * cuda_math_bytes(row, query->op) / row->bytes_per_us;
    cuda_math_products(row, query->op, &ops[0], &ops[1]);
    for (int i = 0; i < 2; i++) {
        const tn_matmul_op *mm = TN_PARAMS(&ops[i], matmul);
        us += 2 * (double)mm->m * (double)mm->n * (double)mm->k * (double)mm->matrices /
              product_of(query->op)->flops_per_us;
    }
    const double own = cuda_attention_cost(&cuda_attention_row, &cuda_attention_row, query);
    const double least = row->numerics & TN_NUM_REDUCED_REDUCTION ? 1.01 * own : 1.02 * own;
    return us > least ? us : least;
}

static const tn_dtype narrow_dtypes[] = {TN_BF16, TN_F16, 0};

/* Name, dtypes, further numerics. */
#define ROW(its_name, its_dtypes, its_numerics)                                                 \
    {                                                                                           \
        .struct_size = sizeof(tn_kernel_row), .name = its_name, .platform = "cuda",             \
        .library = "cublaslt", .backend = "math", .op = TN_OP_ATTENTION, .version = 2,          \
        .dtypes = its_dtypes, .numerics = TN_NUM_RUN_TO_RUN | (its_numerics),                   \
        .honours = CUDA_ATTENTION_USES, .flops_per_us = 5e7, .bytes_per_us = 3e6,               \
        .overhead_us = 24, /* six launches */                                                   \
            .alignment = CUDA_VECTOR, .admit = admit, .workspace = workspace, .cost = estimate, \
        .plan = plan, .plan_release = cuda_math_release, .run = cuda_math_run,                  \
    }

const tn_kernel_row cuda_lt_attention_row = ROW("cuda.attention.math", cuda_float_dtypes, 0);

/* Scores are rounded to the operands' dtype. */
const tn_kernel_row cuda_lt_attention16_row =
    ROW("cuda.attention.math16", narrow_dtypes, TN_NUM_REDUCED_REDUCTION);
