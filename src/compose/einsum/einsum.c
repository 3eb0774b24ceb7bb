/* Einstein summation: entry points, validation, and the explanation of a path. */
#include "einsum.h"

#include "base/alloc.h"
#include "base/dtype.h"
#include "device/device.h"
#include "device/tensor/tensor.h"
#include "op/elementwise.h"
#include "settings/context.h"

#include <inttypes.h>
#include <string.h>

static const char where[] = "tn_einsum";

/* A validated call. */
typedef struct call {
    const tn_context *context;
    const tn_einsum_args *args;
    tni_einsum sum;
    tni_einsum_order order;
    tni_einsum_plan *plan; /* if not NULL, it owns `sum` and `order` */
    tn_tensor *operands;   /* copies; out is the last */
    tn_device *device;
    tn_stream *stream;
    uint64_t bytes;    /* of intermediate results */
    uint32_t by_parts; /* that of tni_einsum_run */
    tni_einsum_slices slices;
    uintptr_t supposed;
    int64_t out_shape[TN_TENSOR_NDIM_MAX];
} call;

/* The name of an operand in messages. */
static const char *name_operand(int32_t index, char room[32])
{
    static const char *const first[] = {"operand 0", "operand 1", "operand 2", "operand 3"};
    if (index < (int32_t)(sizeof first / sizeof first[0]))
        return first[index];
    snprintf(room, 32, "operand %d", (int)index);
    return room;
}

static tn_status check_args(const tn_einsum_args *args, tn_error *err)
{
    tn_status status =
        tni_elementwise_args(where, args, TN_UP_TO(tn_einsum_args, workspace_bytes), err);
    if (status)
        return status;
    if (!args->equation)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "args->equation is NULL");
    if (args->count < 1 || args->count > TN_EINSUM_OPERANDS_MAX || !args->operands)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "expected 1 to %d operands, got %d%s",
                       TN_EINSUM_OPERANDS_MAX, (int)args->count,
                       args->operands ? "" : "; args->operands is NULL");
    if (!args->path && args->path_count)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "path_count is %d, and path is NULL",
                       (int)args->path_count);
    if (!args->workspace != !args->workspace_bytes)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "expected both workspace and workspace_bytes, or neither; got %s and "
                       "%" PRIu64,
                       args->workspace ? "memory" : "NULL", args->workspace_bytes);
    return TN_OK;
}

/* Checks a tensor by itself, and copies it. Only an explanation (`supposing`) needs no data. */
static tn_status take_tensor(call *c, const tn_tensor *tensor, int32_t index, bool supposing,
                             tn_error *err)
{
    char room[32];
    const char *name = index == c->args->count ? "out" : name_operand(index, room);
    tni_layout layout;
    tn_device *device;
    tn_tensor *copy = &c->operands[index];
    tn_status status = TN_OK;
    if (tensor) {
        *copy = *tensor;
        if (supposing && !copy->data && copy->dtype)
            status = tni_tensor_suppose(copy, where, name, &c->supposed, err);
    }
    if (!status)
        status = tni_tensor_measure(tensor ? copy : NULL, where, name, &layout, err);
    if (!status)
        status = tni_tensor_device_of(copy, where, &device, err);
    if (status)
        return status;
    if (c->device && device != c->device)
        return tn_fail(err, TN_REFUSED, 0, where,
                       "operand 0 is on %s and %s on %s; copy one of them", c->device->id, name,
                       device->id);
    c->device = device;
    if (copy->dtype != c->operands[0].dtype)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "%s: expected the dtype of operand 0, %s, got %s; tn_cast changes dtypes",
                       name, tn_dtype_name(c->operands[0].dtype), tn_dtype_name(copy->dtype));
    return TN_OK;
}

static tn_status check_dtype(tn_dtype dtype, tn_error *err)
{
    switch (dtype) {
    case TN_F64:
    case TN_F32:
    case TN_F16:
    case TN_BF16:
    case TN_C64:
    case TN_C128:
    case TN_I8:
    case TN_I16:
    case TN_I32:
    case TN_I64:
    case TN_U8:
    case TN_U16:
    case TN_U32:
    case TN_U64: return TN_OK;
    default:
        return tn_fail(err, TN_UNSUPPORTED, 0, where,
                       "operands: expected f64, f32, f16, bf16, c64, c128 or integers, got %s; "
                       "tn_cast changes dtypes",
                       tn_dtype_name(dtype));
    }
}

/* Checks that the shapes of the operands can be read. */
static tn_status check_shapes(const tn_einsum_args *args, tn_error *err)
{
    tni_layout layout;
    for (int32_t i = 0; i < args->count; i++) {
        char room[32];
        const char *name = name_operand(i, room);
        const tn_tensor *tensor = args->operands[i];
        if (!tensor)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s: the tensor is NULL", name);
        const tn_status status = tni_layout_of(tensor->dtype, tensor->shape, tensor->strides,
                                               tensor->ndim, where, name, &layout, err);
        if (status)
            return status;
    }
    return TN_OK;
}

/* Copies the shape of out, as the equation implies it; returns its number of dimensions. */
static int32_t shape_of_out(const tni_einsum *sum, int64_t *out_shape)
{
    const int32_t ndim = sum->ndim[sum->terms];
    for (int32_t i = 0; i < ndim; i++)
        out_shape[i] = sum->size[sum->axes[sum->terms][i]];
    return ndim;
}

static tn_status check_out(call *c, tn_error *err)
{
    const tn_tensor *out = &c->operands[c->args->count];
    const int32_t ndim = shape_of_out(&c->sum, c->out_shape);
    tni_layout of_out, of_operand;
    if (out->ndim != ndim)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "out: expected %d dimensions, got %d",
                       (int)ndim, (int)out->ndim);
    for (int32_t i = 0; i < ndim; i++) {
        if (out->shape[i] != c->out_shape[i])
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                           "out: dimension %d: expected size %" PRId64 ", got %" PRId64, (int)i,
                           c->out_shape[i], out->shape[i]);
    }
    tn_status status = tni_tensor_writable(out, where, "out", err);
    if (!status)
        status = tni_tensor_measure(out, where, "out", &of_out, err);
    if (!status && of_out.elements > 0)
        status = tni_tensor_separate(out, where, "out", err);
    for (int32_t i = 0; i < c->args->count && !status; i++) {
        status = tni_tensor_measure(&c->operands[i], where, "operand", &of_operand, err);
        if (!status && of_out.elements > 0 && of_operand.elements > 0 &&
            tni_tensors_overlap(&c->operands[i], of_operand.size, out, of_out.size))
            status = tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                             "operand %d shares memory with out; use another out", (int)i);
    }
    return status;
}

/* A contiguous out for an explanation without one. */
static tn_tensor imply_out(call *c)
{
    tn_tensor out = c->operands[0];
    out.ndim = shape_of_out(&c->sum, c->out_shape);
    out.shape = c->out_shape;
    out.strides = NULL;
    out.data = NULL;
    out.flags = 0;
    return out;
}

static tni_einsum_run make_run(const call *c, tni_einsum_mode mode, void *memory)
{
    return (tni_einsum_run){.mode = mode,
                            .by_parts = c->by_parts,
                            .sum = &c->sum,
                            .order = &c->order,
                            .context = c->context,
                            .operands = c->operands,
                            .out = &c->operands[c->args->count],
                            .stream = c->stream,
                            .memory = memory};
}

static tn_status measure(call *c, tn_error *err)
{
    const tni_einsum_run run = make_run(c, TNI_EINSUM_MEASURE, NULL);
    return tni_einsum_execute(&run, &c->bytes, err);
}

/* An address for intermediate results that are only explained. */
static void *supposed_memory(const call *c)
{
    return (void *)(c->supposed + (TNI_SUPPOSED - c->supposed) % 64);
}

static void end_call(call *c)
{
    tni_einsum_slices_release(&c->slices);
    tni_einsum_plan_release(c->plan);
    if (!c->plan) {
        tni_einsum_release(&c->sum);
        tni_einsum_order_release(&c->order);
    }
    tni_release(c->operands);
}

/* Copies the operands, and out if there is one, and checks each by itself. */
static tn_status take_tensors(call *c, bool supposing, tn_error *err)
{
    const tn_einsum_args *args = c->args;
    tn_status status = TN_OK;
    c->operands = tni_alloc_zeroed((size_t)args->count + 1, sizeof *c->operands);
    if (!c->operands)
        return tni_einsum_no_memory(err, "a call");
    for (int32_t i = 0; i < args->count && !status; i++)
        status = take_tensor(c, args->operands[i], i, supposing, err);
    if (!status)
        status = check_dtype(c->operands[0].dtype, err);
    if (!status && args->out)
        status = take_tensor(c, args->out, args->count, supposing, err);
    return status;
}

/* Parses the equation, makes an out if there is none and the call is only explained, and checks out. */
static tn_status parse_call(call *c, bool supposing, tn_error *err)
{
    const tn_einsum_args *args = c->args;
    tn_status status = c->plan ? TN_OK : tni_einsum_parse(args, &c->sum, err);
    if (status)
        return status;
    if (!args->out) {
        const tn_tensor implied = supposing ? imply_out(c) : (tn_tensor){0};
        status = take_tensor(c, supposing ? &implied : NULL, args->count, supposing, err);
    }
    if (!status)
        status = check_out(c, err);
    if (!status)
        tni_dlpack_numbers(c->device, &c->operands[args->count].device_type,
                           &c->operands[args->count].device_id);
    return status;
}

static tn_status divide_call(call *c, tn_error *err)
{
    const tni_einsum_run run = make_run(c, TNI_EINSUM_MEASURE, supposed_memory(c));
    return tni_einsum_slice(c->args, &run, c->plan ? c->plan->parts : NULL, &c->slices, err);
}

/* Validates a call and finds its path. An explanation (`supposing`) is made anew; a call uses the plan of
 * an earlier call. `c` must be zeroed; end_call releases what it got, also if this fails. */
static tn_status begin_call(const tn_context *context, const tn_einsum_args *args, bool supposing,
                            call *c, tn_error *err)
{
    tni_einsum_key key;
    int32_t strategy;
    tn_status status = check_args(args, err);
    if (status)
        return status;
    c->context = tni_context_or_current(context);
    c->args = args;
    c->supposed = TNI_SUPPOSED;
    status = take_tensors(c, supposing, err);
    if (!status)
        status = tni_einsum_choose_strategy(c->context, args, &strategy, err);
    if (status)
        return status;
    key.fits = false;
    if (!supposing && args->out) {
        tni_einsum_key_make(c->context, args, strategy, c->operands, &key);
        c->plan = tni_einsum_plan_find(&key);
    }
    if (c->plan) {
        c->sum = c->plan->sum;
        c->order = c->plan->order;
        c->bytes = c->plan->bytes;
        c->by_parts = c->plan->by_parts;
    }
    status = parse_call(c, supposing, err);
    if (status)
        return status;
    c->stream = args->stream ? args->stream : tn_stream_current(c->device);
    if (!c->plan) {
        c->by_parts = tni_einsum_find_by_parts(c->context, &c->operands[0]);
        status = tni_einsum_search(args, strategy, &c->sum, &c->order, err);
        if (!status)
            status = measure(c, err);
    }
    if (!status && args->memory_limit && c->bytes > args->memory_limit)
        status = divide_call(c, err);
    if (!status && !c->plan) {
        const tni_einsum_plan made = {.sum = c->sum,
                                      .order = c->order,
                                      .bytes = c->bytes,
                                      .by_parts = c->by_parts,
                                      .parts = c->slices.parts};
        c->plan = tni_einsum_plan_keep(&key, &made);
    }
    return status;
}

/* The memory of intermediate results of the call, or of a slice. */
static uint64_t needed_bytes(const call *c)
{
    return c->slices.fits ? c->slices.bytes : c->bytes;
}

/* Provides the memory of intermediate results: the caller's, or allocated. */
static tn_status acquire_memory(const call *c, void **out, tn_error *err)
{
    const tn_einsum_args *args = c->args;
    const uint64_t bytes = needed_bytes(c);
    if (args->memory_limit && bytes > args->memory_limit)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, where,
                       "intermediate results need %" PRIu64 " bytes, and memory_limit is %" PRIu64
                       ", which no slices fit in; raise it",
                       c->bytes, args->memory_limit);
    *out = args->workspace;
    if (!bytes)
        return TN_OK;
    if (!args->workspace)
        return tn_memory_alloc_on(c->stream, bytes, "einsum", out, err);
    if (args->workspace_bytes < bytes || (uintptr_t)args->workspace % 64)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "workspace: expected %" PRIu64 " bytes aligned to 64, got %" PRIu64
                       " bytes at %p",
                       bytes, args->workspace_bytes, args->workspace);
    return TN_OK;
}

tn_status tn_einsum(const tn_context *context, const tn_einsum_args *args, tn_error *err)
{
    call c = {0};
    void *memory = NULL;
    uint64_t bytes;
    tn_status status = begin_call(context, args, false, &c, err);
    if (!status)
        status = acquire_memory(&c, &memory, err);
    if (!status) {
        const tni_einsum_run run = make_run(&c, TNI_EINSUM_RUN, memory);
        status = c.slices.fits ? tni_einsum_run_slices(&run, &c.slices, err)
                               : tni_einsum_execute(&run, &bytes, err);
        if (memory != args->workspace) {
            const tn_status freed = tn_memory_free_on(c.stream, memory, status ? NULL : err);
            status = status ? status : freed;
        }
    }
    end_call(&c);
    return status;
}

tn_status tn_einsum_shape(const tn_einsum_args *args, int64_t *out_shape, int32_t *out_ndim,
                          tn_error *err)
{
    tni_einsum sum = {0};
    if (!out_shape || !out_ndim)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_einsum_shape", "%s is NULL",
                       out_shape ? "out_ndim" : "out_shape");
    tn_status status = check_args(args, err);
    if (!status)
        status = check_shapes(args, err);
    if (!status)
        status = tni_einsum_parse(args, &sum, err);
    if (!status)
        *out_ndim = shape_of_out(&sum, out_shape);
    tni_einsum_release(&sum);
    return status;
}

tn_status tn_einsum_search(const tn_context *context, const tn_einsum_args *args, int32_t *out_path,
                           int32_t *out_steps, double *out_cost, tn_error *err)
{
    tni_einsum sum = {0};
    tni_einsum_order order = {0};
    int32_t strategy;
    if (!out_path || !out_steps || !out_cost)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_einsum_search", "%s is NULL",
                       !out_path    ? "out_path"
                       : !out_steps ? "out_steps"
                                    : "out_cost");
    tn_status status = check_args(args, err);
    if (!status)
        status = check_shapes(args, err);
    if (!status)
        status = tni_einsum_parse(args, &sum, err);
    if (!status)
        status = tni_einsum_choose_strategy(tni_context_or_current(context), args, &strategy, err);
    if (!status)
        status = tni_einsum_search(args, strategy, &sum, &order, err);
    if (!status && sum.terms > 1)
        status = tni_einsum_order_write(&sum, &order, out_path, out_steps, out_cost, err);
    else if (!status) {
        out_path[0] = 0;
        out_path[1] = -1;
        *out_steps = 1;
        *out_cost = tni_einsum_cost_of_one(&sum);
    }
    tni_einsum_release(&sum);
    tni_einsum_order_release(&order);
    return status;
}

struct tn_einsum_path {
    tn_einsum_path_info info;
    char *equation;
    tni_einsum_path_step *steps;
};

static tn_status add_text(char ***list, size_t *room, size_t count, const char *text, tn_error *err)
{
    void *array = *list;
    char *copy = tni_text_copy(text);
    if (!copy || !tni_array_reserve(&array, room, count, count + 1, sizeof **list)) {
        tni_release(copy);
        return tni_einsum_no_memory(err, "an explanation");
    }
    *list = array;
    (*list)[count] = copy;
    return TN_OK;
}

/* Keeps the decision of a call. */
static tn_status keep_decision(void *user, int32_t index, const tn_decision *decision,
                               tn_error *err)
{
    tni_einsum_path_step *to = &((tn_einsum_path *)user)->steps[index];
    const tn_candidate *chosen = tn_decision_chosen(decision);
    tn_status status = add_text(&to->problems, &to->problem_room, to->face.calls,
                                tn_decision_problem(decision), err);
    if (status)
        return status;
    status =
        add_text(&to->kernels, &to->kernel_room, to->face.calls, chosen ? chosen->kernel : "", err);
    if (status)
        tni_release(to->problems[to->face.calls]);
    else
        to->face.calls++;
    return status;
}

/* Cost of one loop over all labels, and of the whole path. */
static void sum_up(const call *c, tn_einsum_path *path)
{
    const tni_einsum *sum = &c->sum;
    double all = 1;
    bool summed = false;
    path->info.largest = tni_einsum_values(sum, tni_einsum_set(sum, sum->terms));
    for (int32_t i = 0; i < sum->indices; i++) {
        all *= (double)sum->size[i];
        summed = summed ||
                 (sum->size[i] != 1 && !(tni_einsum_set(sum, sum->terms)[i / 64] >> i % 64 & 1));
    }
    path->info.cost_at_once = all * ((sum->terms > 1 ? sum->terms - 1 : 1) + summed);
    for (size_t i = 0; i < path->info.steps; i++) {
        tni_einsum_path_step *of = &path->steps[i];
        path->info.cost += of->face.cost;
        if (of->face.elements > path->info.largest)
            path->info.largest = of->face.elements;
        of->face.struct_size = sizeof of->face;
        of->face.equation = of->equation;
        of->face.remaining = of->remaining;
        of->face.problems = (const char *const *)of->problems;
        of->face.kernels = (const char *const *)of->kernels;
    }
    path->info.cost *= path->info.slices;
    path->info.equation = path->equation;
}

static tn_status explain_calls(call *c, tn_einsum_path *path, tn_error *err)
{
    uint64_t bytes;
    const tni_einsum_slices *slices = &c->slices;
    const tn_tensor *tensors = slices->fits ? slices->tensors : c->operands;
    tni_einsum_run run = make_run(c, TNI_EINSUM_EXPLAIN, supposed_memory(c));
    run.explained = keep_decision;
    run.user = path;
    if (slices->fits) {
        run.sum = &slices->sum;
        run.operands = tensors;
        run.out = &tensors[c->args->count];
    }
    const tn_status status = tni_einsum_execute(&run, &bytes, err);
    if (status || !slices->fits || !slices->adds)
        return status;
    const tn_tensor added = tni_einsum_added(slices, run.memory); /* in the last step */
    run.out = &added;
    return tni_einsum_add(&run, (int32_t)path->info.steps - 1, &tensors[c->args->count], err);
}

tn_status tn_einsum_explain(const tn_context *context, const tn_einsum_args *args,
                            tn_einsum_path **out, tn_error *err)
{
    call c = {0};
    tn_einsum_path *path = NULL;
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_einsum_explain", "out is NULL");
    tn_status status = begin_call(context, args, true, &c, err);
    if (!status) {
        path = tni_alloc_zeroed(1, sizeof *path);
        status = path ? TN_OK : tni_einsum_no_memory(err, "an explanation");
    }
    if (!status && path) {
        path->info.struct_size = sizeof path->info;
        path->info.strategy = c.order.strategy;
        path->info.workspace_bytes = needed_bytes(&c);
        path->info.slices = c.slices.fits ? c.slices.count : 1;
        path->equation = tni_einsum_write(&c.sum);
        path->steps = tni_alloc_zeroed(2 * (size_t)args->count, sizeof *path->steps);
        status = path->equation && path->steps
                     ? tni_einsum_describe(c.slices.fits ? &c.slices.sum : &c.sum, &c.order,
                                           path->steps, &path->info.steps, err)
                     : tni_einsum_no_memory(err, "an explanation");
    }
    if (!status)
        status = explain_calls(&c, path, err);
    if (!status)
        sum_up(&c, path);
    end_call(&c);
    if (status) {
        tn_einsum_path_release(path);
        return status;
    }
    *out = path;
    return TN_OK;
}

void tn_einsum_path_release(tn_einsum_path *path)
{
    if (!path)
        return;
    for (size_t i = 0; i < path->info.steps; i++) {
        tni_einsum_path_step *of = &path->steps[i];
        for (size_t k = 0; k < of->face.calls; k++) {
            tni_release(of->problems[k]);
            tni_release(of->kernels[k]);
        }
        tni_release(of->problems);
        tni_release(of->kernels);
        tni_release(of->equation);
        tni_release(of->remaining);
    }
    tni_release(path->steps);
    tni_release(path->equation);
    tni_release(path);
}

tn_status tn_einsum_path_info_get(const tn_einsum_path *path, tn_einsum_path_info *out,
                                  tn_error *err)
{
    if (!path || !out || out->struct_size < TN_UP_TO(tn_einsum_path_info, slices))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_einsum_path_info_get",
                       "expected a path and an out whose struct_size is at least %zu",
                       TN_UP_TO(tn_einsum_path_info, slices));
    const size_t size = out->struct_size;
    memcpy(out, &path->info, TN_UP_TO(tn_einsum_path_info, slices));
    out->struct_size = size;
    return TN_OK;
}

const tn_einsum_step *tn_einsum_path_step(const tn_einsum_path *path, size_t index)
{
    return path && index < path->info.steps ? &path->steps[index].face : NULL;
}
