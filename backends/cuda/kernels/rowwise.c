#include "rowwise.h"

CUDA_TEXT_DECLARE(rowwise_cuh);
const cuda_text cuda_text_of_rowwise = CUDA_TEXT(rowwise_cuh, "rowwise.cuh");

bool cuda_rowwise_has_vectors(const tn_op *op, int32_t operand, int64_t vector)
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
    int64_t in = cuda_bytes_of(op->operand[TN_ELEMENTWISE_IN].dtype);
    int64_t out = cuda_bytes_of(op->operand[TN_ELEMENTWISE_OUT].dtype);
    return (int)(16 / (in > out ? in : out));
}

cuda_sharing cuda_rowwise_sharing(const tn_op *op)
{
    enum { OF_WARP = 1024, HELD_F32 = 64, HELD_F64 = 32 };
    const int64_t size = TN_PARAMS(op, elementwise)->size;
    const int held = op->operand[TN_ELEMENTWISE_IN].dtype == TN_F64 ? HELD_F64 : HELD_F32;
    cuda_sharing s = {
        .group = size <= OF_WARP ? 32 : CUDA_THREADS, .per = 4, .vector = vector_of(op)};
    if (s.per < s.vector)
        s.per = s.vector;
    while ((int64_t)s.per * s.group < size)
        s.per *= 2;
    if (s.per > held) {
        s.per = 0;
        s.vector = 1;
    }
    s.at_once = s.vector > 1 && cuda_rowwise_has_vectors(op, TN_ELEMENTWISE_IN, s.vector) &&
                cuda_rowwise_has_vectors(op, TN_ELEMENTWISE_OUT, s.vector);
    s.full = (int64_t)s.per * s.group == size;
    return s;
}

const char *cuda_rowwise_type(tn_dtype dtype)
{
    return dtype ? cuda_type_of(dtype) : "f32";
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
    const tn_layout *in = &op->operand[TN_ELEMENTWISE_IN];
    const int32_t last = in->rank - 1;
    out->rows = TN_PARAMS(op, elementwise)->rows;
    out->size = TN_PARAMS(op, elementwise)->size;
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

tn_status cuda_rowwise_plan(const tn_run *run, const cuda_rowwise *variant, void **out,
                            uint64_t *out_bytes, tn_error *err)
{
    const cuda_sharing *s = &variant->sharing;
    char options[416];
    cuda_plan *plan = NULL;
    tn_status status = cuda_plan_create(run, &plan, out_bytes, err);
    if (status)
        return status;
    snprintf(options, sizeof options,
             "-DIN=%s\n-DOUT=%s\n%s-DGROUP=%d\n-DPER=%d\n-DVECTOR=%d\n-DAT_ONCE=%d\n-DFULL=%d\n"
             "-DPACKED=%d\n-DINDEX=%s\n-DCOMPUTED=1\n",
             cuda_type_of(run->op->operand[TN_ELEMENTWISE_IN].dtype),
             cuda_type_of(run->op->operand[TN_ELEMENTWISE_OUT].dtype), variant->options, s->group,
             s->per, s->vector, s->at_once, s->full, s->packed, cuda_index_of(variant->threads));
    fill_args(run->op, &plan->args.rows);
    plan->blocks = cuda_blocks_for(run, (variant->threads + CUDA_THREADS - 1) / CUDA_THREADS);
    status = cuda_plan_kernel(run, variant->unit, variant->function, options, &plan->kernel, err);
    if (status)
        cuda_plan_release(run, plan);
    else
        *out = plan;
    return status;
}

tn_status cuda_rowwise_run(const tn_run *run, tn_error *err)
{
    const cuda_plan *plan = run->plan;
    cuda_rows_args args = plan->args.rows;
    for (int32_t i = 0; i < run->op->count && i < CUDA_ARGS_OPERANDS; i++)
        args.data[i] = tn_operand(run, i);
    args.epsilon = TN_PARAMS(run->op, elementwise)->value;
    return cuda_plan_launch(run, plan->kernel, plan->blocks, &args, err);
}

tn_status cuda_rowwise_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const tn_op *op = query->op;
    const tn_dtype in = op->operand[TN_ELEMENTWISE_IN].dtype;
    (void)row;
    for (int32_t i = 1; i < op->count && i < CUDA_ARGS_OPERANDS; i++) {
        const tn_dtype dtype = op->operand[i].dtype;
        if (dtype && (!cuda_is_float(dtype) || (dtype == TN_F64) != (in == TN_F64)))
            return cuda_refuse(why, TN_REFUSE_DTYPE,
                               i == TN_ELEMENTWISE_OUT ? "out.dtype" : "dtype", in, dtype,
                               "f64 cannot be mixed with other floats: cast");
    }
    return cuda_admit_alignment(query, why);
}
