#include "cudnn_graph.h"

static void fail_graph(dnn_graph *graph, dnn_status code, const char *call)
{
    if (!graph->code && code) {
        graph->code = code;
        graph->call = call;
    }
}

void dnn_graph_begin(const cuda_dnn *dnn, dnn_graph *out)
{
    memset(out, 0, sizeof *out);
    out->dnn = dnn;
    out->next_id = 1;
}

void dnn_graph_end(dnn_graph *graph)
{
    while (graph->descs > 0)
        (void)graph->dnn->desc_destroy(graph->desc[--graph->descs]);
}

dnn_desc dnn_make(dnn_graph *graph, dnn_desc_type type)
{
    dnn_desc made = NULL;
    if (!graph->code && graph->descs == DNN_DESCS_MOST)
        fail_graph(graph, DNN_INTERNAL, "a graph of too many descriptors");
    if (graph->code)
        return NULL;
    fail_graph(graph, graph->dnn->desc_create(type, &made), "cudnnBackendCreateDescriptor");
    if (!graph->code)
        graph->desc[graph->descs++] = made;
    return graph->code ? NULL : made;
}

void dnn_put(dnn_graph *graph, dnn_desc desc, dnn_attribute attribute, dnn_type type, int64_t count,
             const void *of)
{
    if (!graph->code)
        fail_graph(graph, graph->dnn->set(desc, attribute, type, count, of),
                   "cudnnBackendSetAttribute");
}

void dnn_put_desc(dnn_graph *graph, dnn_desc desc, dnn_attribute attribute, dnn_desc of)
{
    if (of)
        dnn_put(graph, desc, attribute, DNN_TYPE_DESC, 1, &of);
}

void dnn_put_word(dnn_graph *graph, dnn_desc desc, dnn_attribute attribute, dnn_type type,
                  int32_t word)
{
    dnn_put(graph, desc, attribute, type, 1, &word);
}

void dnn_finish(dnn_graph *graph, dnn_desc desc, const char *what)
{
    if (!graph->code)
        fail_graph(graph, graph->dnn->finalize(desc), what);
}

/* Sets the attributes that all tensors have; the caller must finish the tensor. */
static dnn_desc begin_tensor(dnn_graph *graph, const dnn_layout *layout, int64_t *out_id)
{
    enum { ALIGNMENT = 16 };
    const int64_t alignment = layout->alignment ? layout->alignment : ALIGNMENT;
    dnn_desc made = dnn_make(graph, DNN_TENSOR);
    *out_id = graph->next_id++;
    dnn_put(graph, made, DNN_TENSOR_ALIGNMENT, DNN_TYPE_I64, 1, &alignment);
    dnn_put_word(graph, made, DNN_TENSOR_TYPE, DNN_TYPE_DATA, layout->type);
    dnn_put(graph, made, DNN_TENSOR_SHAPE, DNN_TYPE_I64, DNN_RANK, layout->shape);
    dnn_put(graph, made, DNN_TENSOR_STRIDES, DNN_TYPE_I64, DNN_RANK, layout->stride);
    dnn_put(graph, made, DNN_TENSOR_ID, DNN_TYPE_I64, 1, out_id);
    return made;
}

static void add_slot(dnn_graph *graph, const dnn_slot *slot)
{
    if (graph->slots == DNN_SLOTS_MOST)
        fail_graph(graph, DNN_INTERNAL, "a graph of too many tensors");
    else
        graph->slot[graph->slots++] = *slot;
}

dnn_desc dnn_tensor(dnn_graph *graph, const dnn_layout *layout, int32_t from)
{
    return dnn_tensor_at(graph, layout, from, NULL);
}

dnn_desc dnn_tensor_at(dnn_graph *graph, const dnn_layout *layout, int32_t from, dnn_desc places)
{
    dnn_slot slot = {.from = from};
    dnn_desc made = begin_tensor(graph, layout, &slot.id);
    dnn_put_desc(graph, made, DNN_TENSOR_PLACES, places);
    dnn_finish(graph, made, "a tensor of cuDNN");
    add_slot(graph, &slot);
    return made;
}

dnn_desc dnn_between(dnn_graph *graph, const dnn_layout *layout)
{
    const bool yes = true;
    int64_t id;
    dnn_desc made = begin_tensor(graph, layout, &id);
    dnn_put(graph, made, DNN_TENSOR_VIRTUAL, DNN_TYPE_BOOL, 1, &yes);
    dnn_finish(graph, made, "a tensor of cuDNN");
    return made;
}

dnn_desc dnn_number(dnn_graph *graph, int32_t from, int32_t type, double number)
{
    const dnn_layout one = {.type = type, .shape = {1, 1, 1, 1}, .stride = {1, 1, 1, 1}};
    const bool yes = true;
    dnn_slot slot = {.from = from};
    if (from == DNN_FROM_WHOLE)
        slot.number.whole = (int32_t)number;
    else
        slot.number.real = (float)number;
    dnn_desc made = begin_tensor(graph, &one, &slot.id);
    dnn_put(graph, made, DNN_TENSOR_BY_VALUE, DNN_TYPE_BOOL, 1, &yes);
    dnn_finish(graph, made, "a number of cuDNN");
    add_slot(graph, &slot);
    return made;
}

static void add_op(dnn_graph *graph, dnn_desc op, const char *what)
{
    dnn_finish(graph, op, what);
    if (graph->ops == DNN_OPS_MOST)
        fail_graph(graph, DNN_INTERNAL, "a graph of too many operations");
    else
        graph->op[graph->ops++] = op;
}

void dnn_add_matmul(dnn_graph *graph, const dnn_matmul *of)
{
    const double zero = 0;
    dnn_desc how = dnn_make(graph, DNN_MATMUL);
    dnn_put_word(graph, how, DNN_MATMUL_COMPUTE, DNN_TYPE_DATA, DNN_F32);
    if (of->padded)
        dnn_put(graph, how, DNN_MATMUL_PADDING, DNN_TYPE_F64, 1, &zero);
    dnn_finish(graph, how, "a product of cuDNN");
    dnn_desc op = dnn_make(graph, DNN_OP_MATMUL);
    dnn_put_desc(graph, op, DNN_OP_MATMUL_A, of->a);
    dnn_put_desc(graph, op, DNN_OP_MATMUL_B, of->b);
    dnn_put_desc(graph, op, DNN_OP_MATMUL_C, of->c);
    dnn_put_desc(graph, op, DNN_OP_MATMUL_DESC, how);
    dnn_put_desc(graph, op, DNN_OP_MATMUL_M, of->m);
    dnn_put_desc(graph, op, DNN_OP_MATMUL_N, of->n);
    dnn_put_desc(graph, op, DNN_OP_MATMUL_K, of->k);
    add_op(graph, op, "a product of cuDNN");
}

void dnn_add_each(dnn_graph *graph, const dnn_each *of)
{
    const int64_t axis = of->axis;
    dnn_desc how = dnn_make(graph, DNN_POINTWISE);
    dnn_put_word(graph, how, DNN_POINTWISE_MODE, DNN_TYPE_POINTWISE, of->mode);
    dnn_put_word(graph, how, DNN_POINTWISE_PRECISION, DNN_TYPE_DATA, of->type);
    if (of->mode == DNN_INDEX)
        dnn_put(graph, how, DNN_POINTWISE_AXIS, DNN_TYPE_I64, 1, &axis);
    dnn_finish(graph, how, "a function of cuDNN");
    dnn_desc op = dnn_make(graph, DNN_OP_POINTWISE);
    dnn_put_desc(graph, op, DNN_OP_POINTWISE_DESC, how);
    dnn_put_desc(graph, op, DNN_OP_POINTWISE_X, of->x);
    dnn_put_desc(graph, op, DNN_OP_POINTWISE_B, of->b);
    dnn_put_desc(graph, op, DNN_OP_POINTWISE_T, of->t);
    dnn_put_desc(graph, op, DNN_OP_POINTWISE_Y, of->y);
    add_op(graph, op, "a function of cuDNN");
}

void dnn_add_reduction(dnn_graph *graph, int32_t mode, dnn_desc x, dnn_desc y)
{
    dnn_desc how = dnn_make(graph, DNN_REDUCTION);
    dnn_put_word(graph, how, DNN_REDUCTION_MODE, DNN_TYPE_REDUCTION, mode);
    dnn_put_word(graph, how, DNN_REDUCTION_COMPUTE, DNN_TYPE_DATA, DNN_F32);
    dnn_finish(graph, how, "a reduction of cuDNN");
    dnn_desc op = dnn_make(graph, DNN_OP_REDUCTION);
    dnn_put_desc(graph, op, DNN_OP_REDUCTION_X, x);
    dnn_put_desc(graph, op, DNN_OP_REDUCTION_Y, y);
    dnn_put_desc(graph, op, DNN_OP_REDUCTION_DESC, how);
    add_op(graph, op, "a reduction of cuDNN");
}

void dnn_add_reshape(dnn_graph *graph, dnn_desc x, dnn_desc y)
{
    dnn_desc op = dnn_make(graph, DNN_OP_RESHAPE);
    dnn_put_desc(graph, op, DNN_OP_RESHAPE_X, x);
    dnn_put_desc(graph, op, DNN_OP_RESHAPE_Y, y);
    add_op(graph, op, "a view of cuDNN");
}

void dnn_add_paged(dnn_graph *graph, const dnn_paged *of)
{
    dnn_desc op = dnn_make(graph, DNN_OP_PAGED);
    dnn_put_desc(graph, op, DNN_OP_PAGED_FROM, of->from);
    dnn_put_desc(graph, op, DNN_OP_PAGED_LENGTHS, of->lengths);
    dnn_put_desc(graph, op, DNN_OP_PAGED_TABLE, of->table);
    dnn_put_desc(graph, op, DNN_OP_PAGED_Y, of->y);
    add_op(graph, op, "pages of cuDNN");
}

dnn_desc dnn_graph_make(dnn_graph *graph, dnn_handle handle)
{
    dnn_desc made = dnn_make(graph, DNN_GRAPH);
    dnn_put(graph, made, DNN_GRAPH_OPS, DNN_TYPE_DESC, graph->ops, graph->op);
    if (handle)
        dnn_put(graph, made, DNN_GRAPH_HANDLE, DNN_TYPE_HANDLE, 1, &handle);
    dnn_finish(graph, made, "a graph of cuDNN's operations");
    return made;
}

int32_t dnn_type_of(tn_dtype dtype)
{
    return dtype == TN_F16 ? DNN_F16 : dtype == TN_BF16 ? DNN_BF16 : DNN_F32;
}

void dnn_layout_turn(dnn_layout *io)
{
    const int64_t shape = io->shape[DNN_LENGTH], stride = io->stride[DNN_LENGTH];
    io->shape[DNN_LENGTH] = io->shape[DNN_SIZE];
    io->stride[DNN_LENGTH] = io->stride[DNN_SIZE];
    io->shape[DNN_SIZE] = shape;
    io->stride[DNN_SIZE] = stride;
}

/* A dimension of one element gets the size of the whole tensor as its stride, or 1 if it is the last. */
void dnn_layout_of(const tn_op *op, int32_t operand, bool turned, dnn_layout *out)
{
    const tn_layout *of = &op->operand[operand];
    dnn_layout to = {.type = dnn_type_of(of->dtype)};
    int64_t all = 1;
    for (int32_t d = DNN_RANK - 1; d >= 0; d--) {
        const bool several = of->shape[d] > 1 && of->stride[d] != 0;
        to.shape[d] = several ? of->shape[d] : 1;
        to.stride[d] = several ? of->stride[d] : 0;
        all = several && to.shape[d] * to.stride[d] > all ? to.shape[d] * to.stride[d] : all;
    }
    for (int32_t d = 0; d < DNN_RANK; d++)
        to.stride[d] = to.stride[d] ? to.stride[d] : d == DNN_SIZE ? 1 : all;
    if (turned)
        dnn_layout_turn(&to);
    *out = to;
}
