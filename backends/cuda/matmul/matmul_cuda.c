/* Matrix products by a kernel of our own: for small ones, where queueing a library call takes longer than
 * computing, for batches of these, and for all strides that the libraries reject. */
#include "matmul_cuda.h"

#include "tenon/module/op/matmul.h"

CUDA_TEXT_DECLARE(matmul_args_h);
CUDA_TEXT_DECLARE(matmul_cu);
const cuda_text cuda_text_of_matmul_args = CUDA_TEXT(matmul_args_h, "matmul_args.h");
static const cuda_text text = CUDA_TEXT(matmul_cu, "matmul.cu");
static const cuda_unit unit = {{&cuda_text_of_args, &cuda_text_of_matmul_args, &cuda_text_of_common,
                                &cuda_text_of_functions, &text}};

/* Side lengths of tiles. */
enum { NARROW = 16, WIDE = 32 };

int64_t cuda_matmul_lanes(int64_t size, int64_t each)
{
    int64_t lanes = 1;
    while (lanes < CUDA_THREADS && lanes * each < size)
        lanes *= 2;
    return lanes;
}

/* At most as many as out has elements. */
static int64_t tiles_of(const tn_matmul_op *mm, int64_t side)
{
    if (mm->matrices == 0)
        return 0;
    return cuda_tiles_along(mm->m, side) * cuda_tiles_along(mm->n, side) * mm->matrices;
}

/* Times on an H200, in microseconds. `started`: to queue and start. `alone`: for a single block, per 64 products of
 * its tile's sums, limited by memory latency. `tile` and `product`: for a multiprocessor with enough blocks, per
 * tile and per product of its sums. */
typedef struct pace {
    double alone;
    double tile;
    double product;
} pace;
static const double started = 5.2;
static const pace paces[3][2] = {
    {{0.54, 0.45, 0.0050}, {1.03, 0.78, 0.0127}}, /* f32: narrow tiles, wide tiles */
    {{0.78, 0.48, 0.0054}, {1.49, 0.84, 0.0136}}, /* 16 bits */
    {{0.77, 0.60, 0.0095}, {1.84, 1.40, 0.0285}}, /* with f64 sums */
};

static double time_of(const tn_op *op, bool wide, int64_t processors)
{
    enum { DEPTH = 64, USUAL = 100 };
    const tn_matmul_op *mm = TN_PARAMS(op, matmul);
    const int32_t kind = mm->acc == TN_F64 ? 2 : op->operand[TN_MATMUL_A].dtype == TN_F32 ? 0 : 1;
    const pace *p = &paces[kind][wide];
    const int64_t turns =
        cuda_tiles_along(tiles_of(mm, wide ? WIDE : NARROW), processors > 0 ? processors : USUAL);
    const double alone = p->alone * (double)cuda_tiles_along(mm->k, DEPTH);
    const double busy = (double)turns * (p->tile + p->product * (double)mm->k);
    return alone > busy ? alone : busy;
}

/* Wide tiles read less memory, but there are fewer of them. */
static bool takes_wide(const tn_op *op, int64_t processors)
{
    return time_of(op, true, processors) < time_of(op, false, processors);
}

static int64_t distance(int64_t stride)
{
    return stride < 0 ? -stride : stride;
}

/* Returns whether the stride of dimension `d` is smaller than that of `other`, the other one of the
 * last two. */
static bool lies_by(const tn_layout *layout, int32_t d, int32_t other)
{
    return layout->shape[other] == 1 ||
           (layout->shape[d] > 1 && distance(layout->stride[d]) < distance(layout->stride[other]));
}

bool cuda_matmul_by_columns(const tn_op *op)
{
    const int32_t m = TN_PARAMS(op, matmul)->batch_rank;
    return lies_by(&op->operand[TN_MATMUL_OUT], m, m + 1);
}

static void fill_batch(const tn_op *op, cuda_matmul_args *out)
{
    static const int32_t operands[] = {TN_MATMUL_A, TN_MATMUL_B, TN_MATMUL_OUT, TN_MATMUL_BIAS};
    const int32_t count = op->operand[TN_MATMUL_BIAS].dtype ? 4 : 3;
    tn_walk walk;
    tn_walk_over(&walk, op, operands, count, 0, TN_PARAMS(op, matmul)->batch_rank);
    out->rank = cuda_walk_sizes(&walk, out->outer);
    for (int32_t i = 0; i < count; i++)
        cuda_walk_strides(&walk, i, out->stride[i]);
}

static void fill_tiles(const tn_matmul_op *mm, int64_t side, cuda_matmul_args *out)
{
    out->tiles_down = (unsigned)cuda_tiles_along(mm->m, side);
    out->tiles_across = (unsigned)cuda_tiles_along(mm->n, side);
    out->tiles = out->tiles_down * out->tiles_across * (unsigned)mm->matrices;
}

/* The kernels for both sizes of tiles. */
typedef struct plan {
    cuda_kernel *narrow, *wide;
} plan;

static tn_status run_matmul(const tn_run *run, tn_error *err)
{
    const plan *made = run->plan;
    const tn_op *op = run->op;
    const tn_matmul_op *mm = TN_PARAMS(op, matmul);
    const int32_t m = mm->batch_rank, n = m + 1;
    const bool wide = takes_wide(op, cuda_processors(run->platform, run->device));
    cuda_matmul_args args = {
        .alpha = mm->alpha, .beta = mm->beta, .m = mm->m, .n = mm->n, .k = mm->k};
    for (int32_t i = TN_MATMUL_A; i <= TN_MATMUL_BIAS; i++) {
        args.data[i] = op->operand[i].dtype ? tn_operand(run, i) : NULL;
        args.down[i] = op->operand[i].dtype ? op->operand[i].stride[m] : 0;
        args.across[i] = op->operand[i].dtype ? op->operand[i].stride[n] : 0;
    }
    args.a_by_k = lies_by(&op->operand[TN_MATMUL_A], n, m);
    args.b_by_k = lies_by(&op->operand[TN_MATMUL_B], m, n);
    args.by_columns = cuda_matmul_by_columns(op);
    if (mm->matrices > 1)
        fill_batch(op, &args);
    fill_tiles(mm, wide ? WIDE : NARROW, &args);
    return cuda_plan_launch(run, wide ? made->wide : made->narrow, cuda_blocks_for(run, args.tiles),
                            &args, err);
}

const char *cuda_matmul_function(int32_t activation)
{
    switch (activation) {
    case TN_ACT_RELU: return "of_relu(x)";
    case TN_ACT_GELU: return "of_gelu(x)";
    case TN_ACT_GELU_TANH: return "of_gelu_tanh(x)";
    case TN_ACT_SILU: return "of_silu(x)";
    default: return "(x)";
    }
}

static tn_status plan_tiles(const tn_run *run, int64_t side, cuda_kernel **out, tn_error *err)
{
    enum { THREADS_ALONG = 8 };
    const tn_op *op = run->op;
    char options[176];
    snprintf(options, sizeof options,
             "-DIN=%s\n-DOUT=%s\n-DW=%s\n-DPER=%d\n-DFUNCTION(x)=%s\n-DCOMPUTED=1\n",
             cuda_type_of(op->operand[TN_MATMUL_A].dtype),
             cuda_type_of(op->operand[TN_MATMUL_OUT].dtype),
             cuda_type_of(TN_PARAMS(op, matmul)->acc), (int)(side / THREADS_ALONG),
             cuda_matmul_function(TN_PARAMS(op, matmul)->activation));
    return cuda_plan_kernel(run, &unit, "matmul_tiles", options, out, err);
}

static tn_status get_kernels(const tn_run *run, void *any, tn_error *err)
{
    plan *made = any;
    tn_status status = plan_tiles(run, NARROW, &made->narrow, err);
    return status ? status : plan_tiles(run, WIDE, &made->wide, err);
}

/* Sizes and strides are passed in each run, so one plan serves all of them. */
static tn_status plan_matmul(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    return cuda_plan_make(run, sizeof(plan), get_kernels, out, out_bytes, err);
}

tn_status cuda_admit_groups(const tn_query *query, tn_refusal *why)
{
    const tn_op *op = query->op;
    int64_t other = 0;
    if (TN_PARAMS(op, matmul)->grouped && op->operand[TN_MATMUL_A].dtype == TN_BF16)
        (void)query->setting(query, "cuda.matmul.prefer_cublaslt_grouped_gemm", &other);
    if (!other)
        return TN_OK;
    return cuda_refuse(why, TN_REFUSE_SETTING, "prefer_cublaslt_grouped_gemm", 0, 1,
                       "cuda.matmul.prefer_cublaslt_grouped_gemm=true has bf16 go through "
                       "cuBLASLt");
}

static tn_status admit_types(const tn_op *op, tn_refusal *why)
{
    const tn_dtype a = op->operand[TN_MATMUL_A].dtype, b = op->operand[TN_MATMUL_B].dtype;
    const tn_dtype out = op->operand[TN_MATMUL_OUT].dtype, acc = TN_PARAMS(op, matmul)->acc;
    const tn_dtype bias = op->operand[TN_MATMUL_BIAS].dtype;
    if (b != a)
        return tn_refuse(why, TN_REFUSE_DTYPE, "b.dtype", a, b);
    if (!cuda_is_float(out) || (out == TN_F64) != (a == TN_F64))
        return tn_refuse(why, TN_REFUSE_DTYPE, "out.dtype", a, out);
    if (bias && bias != out)
        return tn_refuse(why, TN_REFUSE_DTYPE, "bias.dtype", out, bias);
    if (acc != TN_F64 && (acc != TN_F32 || a == TN_F64))
        return cuda_refuse(why, TN_REFUSE_DTYPE, "acc", TN_F32, acc, "it sums in f32 or f64");
    return TN_OK;
}

static tn_status admit_tiles(const tn_query *query, tn_refusal *why)
{
    const int64_t tiles = tiles_of(TN_PARAMS(query->op, matmul), NARROW);
    if (tiles > INT32_MAX)
        return cuda_refuse(why, TN_REFUSE_SHAPE, "tiles", INT32_MAX, tiles,
                           "at most 2147483647 tiles of 16 rows and columns");
    return cuda_admit_alignment(query, why);
}

static tn_status admit_matmul(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    (void)row;
    tn_status status = cuda_admit_groups(query, why);
    if (!status)
        status = admit_types(query->op, why);
    return status ? status : admit_tiles(query, why);
}

static double estimate_matmul(const tn_kernel_row *row, const tn_query *query)
{
    const int64_t processors = query->device->multi_processor_count;
    (void)row;
    return started + time_of(query->op, takes_wide(query->op, processors), processors);
}

const tn_kernel_row cuda_matmul_row = {
    .name = "cuda.matmul.own",
    .op = TN_OP_MATMUL,
    CUDA_ROW,
    .dtypes = cuda_float_dtypes,
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT,
    .honours = TN_MATMUL_USES_BATCH | TN_MATMUL_USES_BROADCAST | TN_MATMUL_USES_TRANSPOSE |
               TN_MATMUL_USES_STRIDES | TN_MATMUL_USES_ALPHA | TN_MATMUL_USES_BETA |
               TN_MATMUL_USES_BIAS | TN_MATMUL_USES_ACTIVATION | TN_MATMUL_USES_OUT_DTYPE |
               TN_MATMUL_USES_ACC,
    .free_dims = TN_MATMUL_DIM_M | TN_MATMUL_DIM_N | TN_MATMUL_DIM_K | TN_MATMUL_DIM_BATCH,
    .admit = admit_matmul,
    .cost = estimate_matmul,
    .plan = plan_matmul,
    .run = run_matmul,
};

static tn_status admit_int8(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const tn_dtype b = query->op->operand[TN_MATMUL_B].dtype;
    (void)row;
    if (b != TN_I8)
        return tn_refuse(why, TN_REFUSE_DTYPE, "b.dtype", TN_I8, b);
    return admit_tiles(query, why);
}

/* For i8 products that the libraries do not support: row-major B, sizes that are not multiples of 4. Sums are
 * integers, so their order does not matter. */
const tn_kernel_row cuda_matmul_int8_row = {
    .struct_size = sizeof cuda_matmul_int8_row,
    .name = "cuda.matmul.own.int8",
    .platform = "cuda",
    .library = "nvrtc",
    .op = TN_OP_MATMUL,
    .version = 1,
    .flops_per_us = 2e7,
    .bytes_per_us = 3e6,
    .overhead_us = 4,
    .alignment = CUDA_VECTOR,
    .dtypes = (const tn_dtype[]){TN_I8, 0},
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT | TN_NUM_CROSS_DEVICE,
    .honours = TN_MATMUL_USES_BATCH | TN_MATMUL_USES_BROADCAST | TN_MATMUL_USES_TRANSPOSE |
               TN_MATMUL_USES_STRIDES,
    .free_dims = TN_MATMUL_DIM_M | TN_MATMUL_DIM_N | TN_MATMUL_DIM_K | TN_MATMUL_DIM_BATCH,
    .admit = admit_int8,
    .cost = estimate_matmul,
    .plan = plan_matmul,
    .plan_release = cuda_plan_release,
    .run = run_matmul,
};
