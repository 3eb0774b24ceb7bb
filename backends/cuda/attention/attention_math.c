#include "attention_math.h"

#include "tenon/module/op/attention.h"
#include "tenon/module/op/matmul.h"

#include <math.h>

CUDA_TEXT_DECLARE(attention_math_args_h);
CUDA_TEXT_DECLARE(attention_math_cu);
static const cuda_text text_of_args = CUDA_TEXT(attention_math_args_h, "attention_math_args.h");
static const cuda_text text = CUDA_TEXT(attention_math_cu, "attention_math.cu");
static const cuda_unit unit = {{CUDA_ATTENTION_PARTS, &text_of_args, &text}};

enum { TOGETHER = 8, PART_ALIGNMENT = 256 };

/* Lines of matrices are padded to whole units of TOGETHER elements, so that the library can use its fastest kernels. */
static int64_t padded_line(int64_t size)
{
    return cuda_round_up(size, TOGETHER);
}

/* The dtype in which everything is computed. */
static tn_dtype wide_of(const tn_op *op)
{
    return op->operand[TN_ATTENTION_Q].dtype == TN_F64 ? TN_F64 : TN_F32;
}

static bool is_narrow(const tn_kernel_row *row)
{
    return (row->numerics & TN_NUM_REDUCED_REDUCTION) != 0;
}

/* The dtype in which scores are stored. */
static tn_dtype scores_of(const tn_kernel_row *row, const tn_op *op)
{
    return is_narrow(row) ? op->operand[TN_ATTENTION_Q].dtype : wide_of(op);
}

/* Writes where each part of the workspace begins, and where the last ends. The type is double, which no size of an op
 * overflows. */
static void place_parts(const tn_kernel_row *row, const tn_op *op, double out[CUDA_MATH_PARTS + 1])
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    const double each = (double)cuda_bytes_of(op->operand[TN_ATTENTION_Q].dtype);
    const double wide = (double)cuda_bytes_of(wide_of(op));
    const double scores = (double)cuda_bytes_of(scores_of(row, op));
    const double groups = (double)at->batch * (double)at->groups;
    const double rows = (double)at->batch * (double)at->heads * (double)at->queries;
    const double keys = groups * (double)at->keys, pairs = rows * (double)padded_line(at->keys);
    const double line = (double)padded_line(at->size), values = (double)padded_line(at->value_size);
    const double bytes[CUDA_MATH_PARTS] = {
        [CUDA_MATH_Q] = rows * line * each,   [CUDA_MATH_K] = keys * line * each,
        [CUDA_MATH_V] = keys * values * each, [CUDA_MATH_SCORES] = pairs * scores,
        [CUDA_MATH_WEIGHTS] = pairs * each,   [CUDA_MATH_SUMS] = rows * values * wide,
        [CUDA_MATH_FACTORS] = rows * wide,    [CUDA_MATH_FLAGS] = groups * sizeof(int)};
    out[0] = 0;
    for (int i = 0; i < CUDA_MATH_PARTS; i++)
        out[i + 1] = out[i] + ceil(bytes[i] / PART_ALIGNMENT) * PART_ALIGNMENT;
}

double cuda_math_bytes(const tn_kernel_row *row, const tn_op *op)
{
    double parts[CUDA_MATH_PARTS + 1];
    place_parts(row, op, parts);
    return parts[CUDA_MATH_PARTS];
}

static tn_layout matrix_of(tn_dtype dtype, int64_t lots, int64_t rows, int64_t columns,
                           int64_t line)
{
    return (tn_layout){.dtype = dtype,
                       .rank = 3,
                       .alignment = TN_OP_ALIGNMENT_MAX,
                       .shape = {lots, rows, columns},
                       .stride = {rows * line, line, 1}};
}

static void begin_product(const tn_op *op, int64_t n, int64_t k, tn_dtype to, tn_op *out)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    *out = (tn_op){.struct_size = sizeof *out, .kind = TN_OP_MATMUL, .count = TN_MATMUL_OPERANDS};
    *TN_PARAMS_MUTABLE(out, matmul) = (tn_matmul_op){.m = at->heads / at->groups * at->queries,
                                                     .n = n,
                                                     .k = k,
                                                     .matrices = at->batch * at->groups,
                                                     .batch_rank = 1,
                                                     .acc = wide_of(op),
                                                     .alpha = 1};
    out->uses = to == op->operand[TN_ATTENTION_Q].dtype ? 0 : TN_MATMUL_USES_OUT_DTYPE;
    if (at->batch * at->groups > 1)
        out->uses |= TN_MATMUL_USES_BATCH;
}

void cuda_math_products(const tn_kernel_row *row, const tn_op *op, tn_op *scores, tn_op *sums)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    const tn_dtype dtype = op->operand[TN_ATTENTION_Q].dtype, wide = wide_of(op);
    const tn_dtype stored = scores_of(row, op);
    const int64_t lots = at->batch * at->groups, rows = at->heads / at->groups * at->queries;
    const int64_t line = padded_line(at->size), values = padded_line(at->value_size);
    const int64_t keys = padded_line(at->keys);
    begin_product(op, at->keys, line, stored, scores);
    scores->uses |= TN_MATMUL_USES_TRANSPOSE;
    if (is_narrow(row)) { /* before it is scaled a score may exceed what f16 can hold */
        TN_PARAMS_MUTABLE(scores, matmul)->alpha = at->scale;
        scores->uses |= at->scale == 1 ? 0 : TN_MATMUL_USES_ALPHA;
    }
    scores->operand[TN_MATMUL_A] = matrix_of(dtype, lots, rows, line, line);
    scores->operand[TN_MATMUL_B] = matrix_of(dtype, lots, line, at->keys, line);
    scores->operand[TN_MATMUL_B].stride[0] = at->keys * line;
    scores->operand[TN_MATMUL_B].stride[1] = 1;
    scores->operand[TN_MATMUL_B].stride[2] = line;
    scores->operand[TN_MATMUL_OUT] = matrix_of(stored, lots, rows, at->keys, keys);
    begin_product(op, values, at->keys, wide, sums);
    sums->operand[TN_MATMUL_A] = matrix_of(dtype, lots, rows, at->keys, keys);
    sums->operand[TN_MATMUL_B] = matrix_of(dtype, lots, at->keys, values, values);
    sums->operand[TN_MATMUL_OUT] = matrix_of(wide, lots, rows, values, values);
}

static tn_status admit_products(const tn_kernel_row *row, const tn_kernel_row *product,
                                const tn_query *query, tn_refusal *why)
{
    tn_op scores, sums;
    tn_query asked = *query;
    cuda_math_products(row, query->op, &scores, &sums);
    asked.op = &scores;
    tn_status status = product->admit ? product->admit(product, &asked, why) : TN_OK;
    asked.op = &sums;
    return status || !product->admit ? status : product->admit(product, &asked, why);
}

tn_status cuda_math_admit_counts(const tn_op *op, tn_refusal *why)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    const cuda_count counts[] = {{"batch", at->batch},      {"heads", at->heads},
                                 {"key heads", at->groups}, {"keys", at->keys},
                                 {"queries", at->queries},  {"head size", at->size},
                                 {"v", at->value_size}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        if (counts[i].found < 1)
            return tn_refuse(why, TN_REFUSE_SHAPE, counts[i].name, 1, counts[i].found);
    }
    return cuda_attention_admit_counts(op, why);
}

tn_status cuda_math_admit(const tn_kernel_row *row, const tn_kernel_row *product,
                          const tn_query *query, tn_refusal *why)
{
    tn_status status = cuda_math_admit_counts(query->op, why);
    if (!status)
        status = cuda_attention_admit_numbers(query->op, why);
    const double bytes = status ? 0 : cuda_math_bytes(row, query->op);
    if (!status)
        status = cuda_admit_bytes(
            "scores", bytes, 0x1p32,
            "scores and copies take at most 4 GiB of workspace: split the batch", why);
    if (!status)
        status = cuda_admit_alignment(query, why);
    if (!status)
        status = admit_products(row, product, query, why);
    if (!status && why)
        (void)snprintf(why->text, sizeof why->text,
                       "two products of matrices; scores and copies take %.0f bytes of workspace",
                       bytes);
    return status;
}

uint64_t cuda_math_workspace(const tn_kernel_row *row, const tn_kernel_row *product,
                             const tn_query *query)
{
    tn_op ops[2];
    tn_query asked = *query;
    uint64_t most = 0;
    cuda_math_products(row, query->op, &ops[0], &ops[1]);
    for (int i = 0; i < 2 && product->workspace; i++) {
        asked.op = &ops[i];
        const uint64_t bytes = product->workspace(product, &asked);
        most = bytes > most ? bytes : most;
    }
    const double own = cuda_math_bytes(row, query->op);
    return own < 0x1p62 ? (uint64_t)own + most : (uint64_t)1 << 62;
}

/* A run of one of the products. */
static tn_run product_run(const tn_run *run, const cuda_math *plan, int which, void *const *data)
{
    const uint64_t own = plan->parts[CUDA_MATH_PARTS];
    tn_run out = *run;
    out.row = plan->product;
    out.op = &plan->ops[which];
    out.data = data;
    out.plan = plan->plans[which];
    out.workspace = run->workspace ? (char *)run->workspace + own : NULL;
    out.workspace_bytes = run->workspace_bytes > own ? run->workspace_bytes - own : 0;
    return out;
}

static tn_status get_kernels(const tn_run *run, cuda_math *plan, tn_error *err)
{
    const tn_op *op = run->op;
    char options[CUDA_ATTENTION_OPTIONS];
    const struct {
        const char *function;
        cuda_kernel **to;
    } wanted[] = {{"math_gather", &plan->gather},
                  {"math_weights", &plan->weights},
                  {"math_scatter", &plan->scatter}};
    tn_status status = TN_OK;
    snprintf(options, sizeof options,
             "-DIN=%s\n-DOUT=%s\n-DSCORES=%s\n-DDROPOUT=%d\n-DCOMPUTED=1\n-default-device\n",
             cuda_type_of(op->operand[TN_ATTENTION_Q].dtype),
             cuda_type_of(op->operand[TN_ATTENTION_OUT].dtype),
             cuda_type_of(scores_of(run->row, op)), (op->uses & TN_ATTENTION_USES_DROPOUT) != 0);
    for (int i = 0; i < 3 && !status; i++) {
        const cuda_case one = {&unit, wanted[i].function, options};
        status = cuda_kernel_beside(run, &one, "scores and weights", wanted[i].to, err);
    }
    return status;
}

void cuda_math_release(const tn_run *run, void *any)
{
    cuda_math *plan = any;
    for (int i = 0; i < 2; i++) {
        tn_run product = *run; /* has no op */
        product.row = plan->product;
        if (plan->plans[i])
            plan->product->plan_release(&product, plan->plans[i]);
    }
    run->host->release(run->host->self, plan);
}

tn_status cuda_math_plan(const tn_run *run, const tn_kernel_row *product, void **out,
                         uint64_t *out_bytes, tn_error *err)
{
    void *any = NULL;
    tn_status status = cuda_plan_alloc(run, sizeof(cuda_math), &any, out_bytes, err);
    if (status)
        return status;
    cuda_math *plan = any;
    double parts[CUDA_MATH_PARTS + 1];
    plan->product = product;
    place_parts(run->row, run->op, parts);
    for (int i = 0; i <= CUDA_MATH_PARTS; i++)
        plan->parts[i] = (uint64_t)parts[i];
    cuda_math_products(run->row, run->op, &plan->ops[0], &plan->ops[1]);
    status = get_kernels(run, plan, err);
    for (int i = 0; i < 2 && !status; i++) {
        uint64_t bytes = 0;
        void *const none[TN_MATMUL_OPERANDS] = {NULL};
        const tn_run one = product_run(run, plan, i, none);
        status = product->plan(&one, &plan->plans[i], &bytes, err);
        *out_bytes += bytes;
    }
    if (status)
        cuda_math_release(run, plan);
    else
        *out = plan;
    return status;
}

static void fill_args(const tn_run *run, cuda_math_args *out)
{
    const tn_attention_op *at = TN_PARAMS(run->op, attention);
    const cuda_math *plan = run->plan;
    cuda_attention_put(run, &out->at);
    cuda_attention_put_tables(run, &out->at);
    for (int i = 0; i < CUDA_MATH_PARTS; i++)
        out->parts[i] = (char *)run->workspace + plan->parts[i];
    out->lots = (int)(at->batch * at->groups);
    out->rows = (int)(at->heads / at->groups * at->queries);
    out->line = (int)padded_line(at->size);
    out->value_line = (int)padded_line(at->value_size);
    out->key_line = (int)padded_line(at->keys);
    if (is_narrow(run->row))
        out->at.scale = 1;
}

/* Multiplies A and B of the workspace. */
static tn_status multiply(const tn_run *run, int which, void *a, void *b, void *to, tn_error *err)
{
    const cuda_math *plan = run->plan;
    void *const data[TN_MATMUL_OPERANDS] = {
        [TN_MATMUL_A] = a, [TN_MATMUL_B] = b, [TN_MATMUL_OUT] = to};
    const tn_run one = product_run(run, plan, which, data);
    return plan->product->run(&one, err);
}

tn_status cuda_math_run(const tn_run *run, tn_error *err)
{
    enum { WARPS = 8 };
    const cuda_math *plan = run->plan;
    cuda_math_args args = {0};
    fill_args(run, &args);
    const int64_t rows = (int64_t)args.lots * args.rows, keys = (int64_t)args.lots * args.at.keys;
    tn_status status = cuda_plan_launch(
        run, plan->gather, cuda_blocks_for(run, (rows + keys) / WARPS + 1), &args, err);
    args.values = 1;
    if (!status)
        status =
            cuda_plan_launch(run, plan->gather, cuda_blocks_for(run, keys / WARPS + 1), &args, err);
    if (!status)
        status = multiply(run, 0, args.parts[CUDA_MATH_Q], args.parts[CUDA_MATH_K],
                          args.parts[CUDA_MATH_SCORES], err);
    if (!status)
        status = cuda_plan_launch(run, plan->weights, cuda_blocks_for(run, rows), &args, err);
    if (!status)
        status = multiply(run, 1, args.parts[CUDA_MATH_WEIGHTS], args.parts[CUDA_MATH_V],
                          args.parts[CUDA_MATH_SUMS], err);
    return status ? status
                  : cuda_plan_launch(run, plan->scatter, cuda_blocks_for(run, rows / WARPS + 1),
                                     &args, err);
}
