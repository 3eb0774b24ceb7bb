/* Kernel rows of oneDNN: one for each kind of numbers, because each has its own speed. */
#include "../../cpu_module.h"
#include "../cblas/cblas_side.h"
#include "onednn_matmul.h"
#include "tenon/module/op/matmul.h"

static tn_status reject_product(tn_refusal *why, int32_t code, const char *what, int64_t needed,
                                int64_t found, const char *text)
{
    (void)tn_refuse(why, code, what, needed, found);
    if (why)
        tn_text_fit(why->text, sizeof why->text, text);
    return TN_UNSUPPORTED;
}

/* Without these instructions it adds pairs of products in 16 bits, which can overflow. */
static tn_status admit_i8(const tn_query *query, tn_refusal *why)
{
    const uint64_t dots = TN_CPU_BIT(AVX512_VNNI) | TN_CPU_BIT(AVX_VNNI);
    if (query->op->operand[TN_MATMUL_A].dtype != TN_I8 || query->cpu_features & dots)
        return TN_OK;
    return reject_product(why, TN_REFUSE_DEVICE, "instructions", 1, 0,
                          "without avx512-vnni or avx-vnni its sums of i8 are not exact");
}

/* A bias must have one number for each column, contiguous. */
static tn_status admit_bias(const tni_mm_product *p, tn_refusal *why)
{
    if (!p->bias.dtype || (p->bias.row == 0 && (p->bias.column == 1 || p->n == 1)))
        return TN_OK;
    return reject_product(why, TN_REFUSE_STRIDE, "bias.stride", 0, p->bias.row,
                          "bias must be contiguous, with one element for each column of out");
}

/* The stride of a single row or column; 1 for other matrices. */
static int64_t stride_of_vector(const tni_side *side, int64_t rows, int64_t columns)
{
    bool across = rows == 1 && columns > 1 && side->by_columns;
    bool down = columns == 1 && rows > 1 && !side->by_columns;
    return across || down ? side->leading : 1;
}

/* A product with a vector: oneDNN 3.7.2 treats every vector of it as dense. */
static tn_status admit_vectors(const tni_mm_product *p, const tni_sides *sides, tn_refusal *why)
{
    static const char *const names[] = {"a.stride", "b.stride", "out.stride"};
    const int64_t strides[] = {stride_of_vector(&sides->a, p->m, p->k),
                               stride_of_vector(&sides->b, p->k, p->n),
                               stride_of_vector(&sides->out, p->m, p->n)};
    const int32_t operands[] = {p->a.operand, p->b.operand, p->out.operand};
    for (int32_t i = 0; i < 3 && (p->m == 1 || p->n == 1); i++) {
        if (strides[i] != 1)
            return reject_product(why, TN_REFUSE_STRIDE, names[operands[i]], 1, strides[i],
                                  "a single row or column must be contiguous");
    }
    return TN_OK;
}

/* Since 3.7, bf16 tiles are padded with the memory that follows, times 0: a NaN in the next row
 * then becomes a NaN in the result. */
static tn_status admit_depth(const tn_kernel_row *row, const tni_mm_product *p, tn_refusal *why)
{
    enum { TILE = 32 };
    bool tiled = p->a.dtype == TN_BF16 || row->numerics & TN_NUM_ROUNDS_F32_BF16;
    if (p->k == 0)
        return tn_refuse(why, TN_REFUSE_SHAPE, "k", 1, 0);
    if (!tiled || p->k % TILE == 0)
        return TN_OK;
    return reject_product(why, TN_REFUSE_SHAPE, "k", (p->k / TILE + 1) * TILE, p->k,
                          "k must be a multiple of 32, or a NaN in one row can reach another row");
}

static tn_status admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    tni_mm_product product;
    tni_sides sides;
    tn_status status = admit_i8(query, why);
    if (!status)
        status = tni_sides_describe(query->op, &product, &sides, why);
    if (!status)
        status = admit_depth(row, &product, why);
    if (!status)
        status = admit_vectors(&product, &sides, why);
    return status ? status : admit_bias(&product, why);
}

/* No f16: oneDNN supports it only in a few layouts, and it is not faster than f32. */
static const tn_dtype f32[] = {TN_F32, 0}, bf16[] = {TN_BF16, 0}, i8[] = {TN_I8, 0};

enum {
    SHAPES_OF_ALL = TN_MATMUL_USES_BATCH | TN_MATMUL_USES_BROADCAST | TN_MATMUL_USES_TRANSPOSE,
    AFTER_SUMS = TN_MATMUL_USES_BIAS | TN_MATMUL_USES_ACTIVATION
};

#define ROW                                                                            \
    .struct_size = sizeof(tn_kernel_row), .platform = "cpu", .library = "mkldnn",      \
    .op = TN_OP_MATMUL, .version = 1, .admit = admit, .plan = tni_dnnl_plan,           \
    .plan_release = tni_dnnl_plan_release, .run = tni_dnnl_run, .cost = tni_dnnl_cost, \
    .pack = tni_dnnl_pack, .pack_release = tni_dnnl_pack_release

/* Sums are made in a fixed order for each op, because each tile is computed by one thread. */
const tn_kernel_row tni_cpu_module_matmul_onednn = {
    .name = "cpu.matmul.onednn",
    .dtypes = f32,
    .numerics = TN_NUM_RUN_TO_RUN,
    .honours = SHAPES_OF_ALL | AFTER_SUMS,
    .flops_per_us = 5.5e4,
    .bytes_per_us = 6e3,
    .overhead_us = 2,
    ROW,
};

const tn_kernel_row tni_cpu_module_matmul_onednn_rounded = {
    .name = "cpu.matmul.onednn.rounded",
    .dtypes = f32,
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_ROUNDS_F32_BF16,
    .honours = SHAPES_OF_ALL | AFTER_SUMS,
    .cpu_needs = TN_CPU_BIT(AVX512_BF16),
    .flops_per_us = 1.2e5,
    .bytes_per_us = 6e3,
    .overhead_us = 2,
    ROW,
};

const tn_kernel_row tni_cpu_module_matmul_onednn_bf16 = {
    .name = "cpu.matmul.onednn.bf16",
    .dtypes = bf16,
    .numerics = TN_NUM_RUN_TO_RUN,
    .honours = SHAPES_OF_ALL | AFTER_SUMS | TN_MATMUL_USES_OUT_DTYPE,
    .cpu_needs = TN_CPU_BIT(AVX512BW),
    .flops_per_us = 1.2e5,
    .bytes_per_us = 6e3,
    .overhead_us = 2,
    ROW,
};

const tn_kernel_row tni_cpu_module_matmul_onednn_int8 = {
    .name = "cpu.matmul.onednn.int8",
    .dtypes = i8,
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT | TN_NUM_CROSS_DEVICE,
    .honours = SHAPES_OF_ALL,
    .flops_per_us = 2.4e5,
    .bytes_per_us = 6e3,
    .overhead_us = 2,
    ROW,
};
