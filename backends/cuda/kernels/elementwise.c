#include "elementwise.h"

#include "tenon/module/op/elementwise.h"

CUDA_TEXT_DECLARE(elementwise_cu);
static const cuda_text text = CUDA_TEXT(elementwise_cu, "elementwise.cu");
const cuda_unit cuda_elementwise_unit = {
    {&cuda_text_of_args, &cuda_text_of_common, &cuda_text_of_functions, &text}};

/* Operands in the order of the walk: out is first, because it determines the order of dimensions. */
enum { PLACES = 3 };
static const int32_t places[PLACES] = {TN_ELEMENTWISE_OUT, TN_ELEMENTWISE_IN, TN_ELEMENTWISE_OTHER};

static int32_t count_places(int inputs)
{
    return inputs + 1 < PLACES ? inputs + 1 : PLACES;
}

static bool is_dense(const tn_walk *walk)
{
    bool dense = walk->rank == 0;
    for (int32_t i = 0; i < walk->count; i++)
        dense = dense && (walk->stride[i] == 1 || walk->size == 1);
    return dense;
}

/* Returns the elements per access: 16 bytes of the widest dtype, or fewer if an operand is not
 * aligned to that. */
static int vector_of(const tn_op *op, int inputs)
{
    const int32_t count = count_places(inputs);
    int64_t widest = 1, aligned = TN_OP_ALIGNMENT_MAX;
    for (int32_t i = 0; i < count; i++) {
        const tn_layout *layout = &op->operand[places[i]];
        int64_t bytes = cuda_bytes_of(layout->dtype);
        widest = bytes > widest ? bytes : widest;
        aligned = layout->alignment < aligned ? layout->alignment : aligned;
    }
    int64_t vector = 16 / widest;
    while (vector > 1 && aligned < vector * widest)
        vector /= 2;
    return (int)vector;
}

void cuda_elementwise_walk(const tn_op *op, int inputs, tn_walk *walk, cuda_each_args *args)
{
    const int32_t count = count_places(inputs);
    tn_walk_over(walk, op, places, count, 0, op->operand[TN_ELEMENTWISE_OUT].rank);
    args->elements = TN_PARAMS(op, elementwise)->elements;
    args->rank = cuda_walk_sizes(walk, args->size);
    for (int32_t i = 0; i < count; i++)
        cuda_walk_strides(walk, i, args->stride[places[i]]);
}

tn_status cuda_elementwise_kernel(const tn_run *run, const cuda_elementwise *variant,
                                  const tn_walk *walk, cuda_plan *plan, tn_error *err)
{
    const int64_t elements = plan->args.each.elements;
    const bool dense = is_dense(walk);
    const int vector = dense ? vector_of(run->op, variant->inputs) : 1;
    const int64_t in_block = (int64_t)CUDA_THREADS * vector;
    char options[256];
    snprintf(options, sizeof options,
             "-DIN=%s\n-DOUT=%s\n-DCOMPUTE(a,b)=%s\n-DINPUTS=%d\n-DWRAPS=%d\n-DVECTOR=%d\n"
             "-DINDEX=%s\n-DCOMPUTED=%d\n",
             variant->inputs ? variant->in : variant->out, variant->out, variant->compute,
             variant->inputs, variant->wraps, vector, cuda_index_of(elements),
             !variant->keeps_nans);
    plan->blocks = cuda_blocks_for(run, (elements + in_block - 1) / in_block);
    return cuda_plan_kernel(run, &cuda_elementwise_unit, dense ? "dense" : "strided", options,
                            &plan->kernel, err);
}

tn_status cuda_elementwise_plan(const tn_run *run, const cuda_elementwise *variant, void **out,
                                uint64_t *out_bytes, tn_error *err)
{
    tn_walk walk;
    cuda_plan *plan = NULL;
    tn_status status = cuda_plan_create(run, &plan, out_bytes, err);
    if (status)
        return status;
    cuda_elementwise_walk(run->op, variant->inputs, &walk, &plan->args.each);
    status = cuda_elementwise_kernel(run, variant, &walk, plan, err);
    if (status)
        cuda_plan_release(run, plan);
    else
        *out = plan;
    return status;
}

tn_status cuda_elementwise_run(const tn_run *run, tn_error *err)
{
    const cuda_plan *plan = run->plan;
    cuda_each_args args = plan->args.each;
    for (int32_t i = 0; i < run->op->count && i < CUDA_ARGS_OPERANDS; i++)
        args.data[i] = tn_operand(run, i);
    args.value = TN_PARAMS(run->op, elementwise)->value;
    return cuda_plan_launch(run, plan->kernel, plan->blocks, &args, err);
}

tn_status cuda_elementwise_admit_out(const tn_query *query, tn_refusal *why)
{
    const tn_dtype out = query->op->operand[TN_ELEMENTWISE_OUT].dtype;
    if (!cuda_type_of(out))
        return cuda_refuse(why, TN_REFUSE_DTYPE, "out.dtype", TN_F32, out,
                           "no complex numbers and 8-bit floats here yet");
    return cuda_admit_alignment(query, why);
}

tn_status cuda_elementwise_admit_same(const tn_query *query, tn_refusal *why)
{
    const tn_dtype in = query->op->operand[TN_ELEMENTWISE_IN].dtype;
    const tn_dtype out = query->op->operand[TN_ELEMENTWISE_OUT].dtype;
    bool floats = cuda_is_float(in) && cuda_is_float(out) && (in == TN_F64) == (out == TN_F64);
    if (in == TN_BOOL || (!floats && in != out))
        return cuda_refuse(why, TN_REFUSE_DTYPE, "out.dtype", in, out,
                           "in and out need one dtype, or narrow floats: cast before or after");
    return cuda_elementwise_admit_out(query, why);
}
