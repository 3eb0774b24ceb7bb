/* Ops along the last dimension: softmax, norm, rotary. */
#include "layout.h"

/* How threads share a row: the number of threads (a warp or a block), the elements in each one's
 * registers, and the elements read at once. */
typedef struct sharing {
    int group;
    int per; /* elements per thread; 0: the row is too long for registers */
    int vector;
    int at_once; /* a vector is read and written at once */
    int full;    /* the threads hold exactly one row */
    int packed;  /* weights and biases are read at once, too */
} sharing;

/* Returns whether every row is aligned to whole vectors: all strides before it and the alignment are
 * multiples of them. True for an absent operand. */
static bool has_vectors(const tn_op *op, int32_t operand, int64_t vector)
{
    const tn_layout *layout = &op->operand[operand];
    const int32_t last = layout->rank - 1;
    if (!layout->dtype)
        return true;
    bool sound = layout->shape[last] % vector == 0 && layout->stride[last] == 1 &&
                 layout->alignment >= vector * cuda_bytes_of(layout->dtype);
    for (int32_t d = 0; d < last; d++)
        sound = sound && (layout->shape[d] == 1 || layout->stride[d] % vector == 0);
    return sound;
}

static int vector_of(const tn_op *op)
{
    int64_t in = cuda_bytes_of(op->operand[TN_EACH_IN].dtype);
    int64_t out = cuda_bytes_of(op->operand[TN_EACH_OUT].dtype);
    return (int)(16 / (in > out ? in : out));
}

/* The assignment of elements to threads depends only on dtypes and the row's length, so that a row's result
 * does not depend on other rows or on its position. */
static sharing sharing_of(const tn_op *op)
{
    enum { OF_WARP = 1024, HELD_F32 = 64, HELD_F64 = 32 };
    const int64_t size = op->as.each.size;
    const int held = op->operand[TN_EACH_IN].dtype == TN_F64 ? HELD_F64 : HELD_F32;
    sharing s = {.group = size <= OF_WARP ? 32 : CUDA_THREADS, .per = 4, .vector = vector_of(op)};
    if (s.per < s.vector)
        s.per = s.vector;
    while ((int64_t)s.per * s.group < size)
        s.per *= 2;
    if (s.per > held) {
        s.per = 0;
        s.vector = 1;
    }
    s.at_once = s.vector > 1 && has_vectors(op, TN_EACH_IN, s.vector) &&
                has_vectors(op, TN_EACH_OUT, s.vector);
    s.full = (int64_t)s.per * s.group == size;
    s.packed = s.at_once && op->kind == TN_OP_NORM && has_vectors(op, TN_NORM_WEIGHT, s.vector) &&
               has_vectors(op, TN_NORM_BIAS, s.vector);
    return s;
}

/* Determines how many pairs a thread rotates: what it reads of in must be aligned to its total size. */
static sharing sharing_of_pairs(const tn_op *op)
{
    const int64_t size = op->as.each.size, in_bytes = cuda_bytes_of(op->operand[TN_EACH_IN].dtype);
    const int64_t neighbours = op->as.each.kind == TN_ROTARY_HALVES ? 1 : 2;
    const int64_t out_bytes = cuda_bytes_of(op->operand[TN_EACH_OUT].dtype);
    int64_t vector = 16 / neighbours / (in_bytes > out_bytes ? in_bytes : out_bytes);
    while (vector > 1 &&
           (size / 2 % vector != 0 || !has_vectors(op, TN_EACH_IN, vector * neighbours) ||
            !has_vectors(op, TN_EACH_OUT, vector * neighbours) ||
            !has_vectors(op, TN_ROTARY_COS, vector) || !has_vectors(op, TN_ROTARY_SIN, vector)))
        vector /= 2;
    return (sharing){.group = 32, .vector = (int)(vector > 1 ? vector : 1), .at_once = vector > 1};
}

/* Returns whether dimension `d - 1` continues where dimension `d` ends, in every operand, so that
 * the two can be merged. */
static bool follows(const cuda_rows_args *args, int d)
{
    bool follows = true;
    for (int32_t i = 0; i < CUDA_ARGS_OPERANDS; i++)
        follows = follows && args->stride[i][d - 1] == args->stride[i][d] * args->outer[d];
    return follows;
}

static void join_last(cuda_rows_args *args)
{
    const int d = args->rank - 1;
    if (d < 1 || !follows(args, d))
        return;
    args->outer[d - 1] *= args->outer[d];
    for (int32_t i = 0; i < CUDA_ARGS_OPERANDS; i++)
        args->stride[i][d - 1] = args->stride[i][d];
    args->rank--;
}

/* Merges the dimensions before the last as far as possible; fills in the strides of every present operand. */
static void fill_args(const tn_op *op, cuda_rows_args *out)
{
    const tn_layout *in = &op->operand[TN_EACH_IN];
    const int32_t last = in->rank - 1;
    out->rows = op->as.each.rows;
    out->size = op->as.each.size;
    out->whole = in->shape[last];
    out->rank = 0;
    for (int32_t d = 0; d < last; d++) {
        if (in->shape[d] == 1)
            continue;
        out->outer[out->rank] = in->shape[d];
        for (int32_t i = 0; i < op->count && i < CUDA_ARGS_OPERANDS; i++)
            out->stride[i][out->rank] = op->operand[i].dtype ? op->operand[i].stride[d] : 0;
        out->rank++;
        join_last(out);
    }
    for (int32_t i = 0; i < op->count && i < CUDA_ARGS_OPERANDS; i++)
        out->along[i] = op->operand[i].dtype ? op->operand[i].stride[last] : 0;
}

static void write_types(const tn_op *op, char *out, size_t size)
{
    snprintf(out, size, "-DIN=%s\n-DOUT=%s\n", cuda_type_of(op->operand[TN_EACH_IN].dtype),
             cuda_type_of(op->operand[TN_EACH_OUT].dtype));
}

/* The options of an op in addition to types and sharing, and its unit and function. */
typedef struct unit {
    int32_t number;
    const char *function;
    char options[160];
} unit;

static const char *type_or(tn_dtype dtype)
{
    return dtype ? cuda_type_of(dtype) : "f32";
}

static unit unit_of(const tn_op *op)
{
    const tn_dtype third = op->operand[2].dtype, fourth = op->operand[3].dtype;
    unit u = {.number = CUDA_UNIT_SOFTMAX, .function = "softmax_rows"};
    switch (op->kind) {
    case TN_OP_NORM:
        u.number = CUDA_UNIT_NORM;
        u.function = "norm_rows";
        snprintf(u.options, sizeof u.options,
                 "-DLAYER=%d\n-DHAS_WEIGHT=%d\n-DHAS_BIAS=%d\n-DWEIGHT=%s\n-DBIAS=%s\n",
                 op->as.each.kind == TN_NORM_LAYER, third != 0, fourth != 0, type_or(third),
                 type_or(fourth));
        break;
    case TN_OP_ROTARY:
        u.number = CUDA_UNIT_ROTARY;
        u.function = "rotary_rows";
        snprintf(u.options, sizeof u.options, "-DHALVES=%d\n-DCOS=%s\n-DSIN=%s\n",
                 op->as.each.kind == TN_ROTARY_HALVES, type_or(third), type_or(fourth));
        break;
    default:
        snprintf(u.options, sizeof u.options, "-DLOG=%d\n-DNARROW=%d\n",
                 (op->uses & TN_EACH_USES_LOG) != 0,
                 cuda_bytes_of(op->operand[TN_EACH_OUT].dtype) == 2);
        break;
    }
    return u;
}

/* Returns the number of threads that have work; the kernels number them from 0. */
static int64_t threads_of(const tn_op *op, const sharing *s)
{
    const tn_each_op *each = &op->as.each;
    const tn_layout *in = &op->operand[TN_EACH_IN];
    const int64_t in_row = (in->shape[in->rank - 1] - each->size / 2) / s->vector;
    return each->rows * (op->kind == TN_OP_ROTARY ? in_row : s->group);
}

static tn_status plan_rows(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    const sharing s =
        run->op->kind == TN_OP_ROTARY ? sharing_of_pairs(run->op) : sharing_of(run->op);
    const int64_t threads = threads_of(run->op, &s);
    const unit u = unit_of(run->op);
    char types[64], options[416];
    cuda_plan *plan = NULL;
    tn_status status = cuda_plan_create(run, &plan, out_bytes, err);
    if (status)
        return status;
    write_types(run->op, types, sizeof types);
    snprintf(options, sizeof options,
             "%s%s-DGROUP=%d\n-DPER=%d\n-DVECTOR=%d\n-DAT_ONCE=%d\n-DFULL=%d\n-DPACKED=%d\n"
             "-DINDEX=%s\n-DCOMPUTED=1\n",
             types, u.options, s.group, s.per, s.vector, s.at_once, s.full, s.packed,
             cuda_index_of(threads));
    fill_args(run->op, &plan->args.rows);
    plan->blocks = cuda_blocks_for(run, (threads + CUDA_THREADS - 1) / CUDA_THREADS);
    status = cuda_plan_kernel(run, u.number, u.function, options, &plan->kernel, err);
    if (status)
        cuda_plan_release(run, plan);
    else
        *out = plan;
    return status;
}

static tn_status run_rows(const tn_run *run, tn_error *err)
{
    const cuda_plan *plan = run->plan;
    cuda_rows_args args = plan->args.rows;
    for (int32_t i = 0; i < run->op->count && i < CUDA_ARGS_OPERANDS; i++)
        args.data[i] = tn_operand(run, i);
    args.epsilon = run->op->as.each.value;
    return cuda_plan_launch(run, plan->kernel, plan->blocks, &args, err);
}

/* f64 only with f64, because computation is in in's type. */
static tn_status admit_rows(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const tn_op *op = query->op;
    const tn_dtype in = op->operand[TN_EACH_IN].dtype;
    (void)row;
    for (int32_t i = 1; i < op->count && i < CUDA_ARGS_OPERANDS; i++) {
        const tn_dtype dtype = op->operand[i].dtype;
        if (dtype && (!cuda_is_float(dtype) || (dtype == TN_F64) != (in == TN_F64)))
            return cuda_refuse(why, TN_REFUSE_DTYPE, i == TN_EACH_OUT ? "out.dtype" : "dtype", in,
                               dtype, "f64 goes with f64, other floats with one another: cast");
    }
    return cuda_admit_alignment(query, why);
}

#define REPEATS (TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT)
enum {
    ANYHOW = TN_EACH_USES_STRIDES | TN_EACH_USES_BROADCAST | TN_EACH_USES_OUT_DTYPE |
             TN_EACH_USES_IN_PLACE
};

const tn_kernel_row cuda_softmax_row = {CUDA_ROW("softmax", SOFTMAX),
                                        .dtypes = cuda_float_dtypes,
                                        .numerics = REPEATS,
                                        .honours = ANYHOW | TN_EACH_USES_LOG,
                                        .admit = admit_rows,
                                        .plan = plan_rows,
                                        .run = run_rows};
const tn_kernel_row cuda_norm_row = {
    CUDA_ROW("norm", NORM), .dtypes = cuda_float_dtypes,
    .numerics = REPEATS,    .honours = ANYHOW | TN_EACH_USES_WEIGHT | TN_EACH_USES_BIAS,
    .admit = admit_rows,    .plan = plan_rows,
    .run = run_rows};
const tn_kernel_row cuda_rotary_row = {CUDA_ROW("rotary", ROTARY),
                                       .dtypes = cuda_float_dtypes,
                                       .numerics = REPEATS,
                                       .honours = ANYHOW | TN_EACH_USES_PARTIAL,
                                       .admit = admit_rows,
                                       .plan = plan_rows,
                                       .run = run_rows};
