/* Products with a constant B: B is copied and packed once, by a kernel that is chosen once. */
#include "base/alloc.h"
#include "base/dtype.h"
#include "device/graph/graph.h"
#include "device/stream/epoch.h"
#include "dispatch/plan.h"
#include "matmul.h"
#include "settings/context.h"
#include "tenon/stream.h"

#include <stdatomic.h>

struct tn_packed {
    tn_context *context;
    tni_plan *plan;
    tn_tensor b;  /* the copy */
    void *native; /* the kernel's packed form of B; NULL: the kernel reads the copy */
    uint64_t copy_bytes, native_bytes;
    int32_t device_epoch;    /* epoch of the device */
    _Atomic uint64_t judged; /* dispatch generation in which its kernel was last found to be
                              * allowed */
};

static const char face[] = "tn_matmul_packed";

/* In later calls A, bias and out may have any address that is aligned to their elements. */
static void forget_alignment(tn_op *op)
{
    for (int32_t i = 0; i < op->count; i++) {
        tn_layout *it = &op->operand[i];
        const int64_t bytes = tni_dtype_bytes(it->dtype), usual = bytes < 8 ? bytes : 8;
        if (i != TN_MATMUL_B && it->dtype && it->alignment > usual)
            it->alignment = usual;
    }
}

/* Returns the arguments with another B. A caller's struct may be shorter than ours. */
static tn_matmul_args args_with(const tn_matmul_args *args, const tn_tensor *b)
{
    tn_matmul_args made = {0};
    memcpy(&made, args, args->struct_size < sizeof made ? args->struct_size : sizeof made);
    made.struct_size = sizeof made;
    made.b = b;
    return made;
}

static tn_status copy_b(const tn_matmul_args *args, tn_device *device, tn_packed *to, tn_error *err)
{
    const tn_tensor *b = args->b;
    tn_stream *stream = args->stream ? args->stream : tn_stream_current(device);
    tn_status status = tni_capture_reject(stream, face, "B is to be copied now", err);
    if (!status)
        status = tn_tensor_create(device, b->dtype, b->shape, b->ndim, &to->b, err);
    if (!status)
        status = tn_tensor_bytes(&to->b, &to->copy_bytes, err);
    if (!status)
        status = tn_copy(stream, b, &to->b, err);
    return status ? status : tn_stream_synchronize(stream, err);
}

/* Makes the argument of the kernel's own functions for packed operands; its op is stored in
 * `room`. */
static tn_run run_of(const tni_plan *plan, const tni_call *call, void *const *data, tn_op *room)
{
    tn_run run = plan->state->made_with;
    *room = plan->op;
    tni_alignments_set(room, tni_state_alignments(plan->state));
    run.op = room;
    run.data = data;
    run.platform = call->self;
    run.device = call->device;
    return run;
}

static tn_status pack_native(tn_packed *to, void *const *data, tn_error *err)
{
    const tn_kernel_row *row = to->plan->kernel->row;
    tn_error said = {0};
    tn_op shown;
    tni_call call;
    if (!row->pack || !data[TN_MATMUL_B] || tni_op_is_empty(&to->plan->op))
        return TN_OK;
    tn_status status = tni_device_open(to->plan->device, face, &call, err);
    if (status)
        return status;
    const tn_run run = run_of(to->plan, &call, data, &shown);
    status = row->pack(&run, &to->native, &to->native_bytes, &said);
    if (status) {
        to->native = NULL;
        to->native_bytes = 0;
    }
    if (status == TN_UNSUPPORTED)
        return TN_OK;
    return tni_device_result_check(&call, row->name, status, &said, err);
}

/* Chooses a kernel and lets it make its plan and its packed form of B. */
static tn_status make_plan(tn_packed *to, tni_problem *problem, tn_error *err)
{
    void *data[TN_OP_OPERANDS_MAX] = {NULL};
    const tni_question question = {
        .context = to->context, .op = &problem->op, .device = problem->device};
    forget_alignment(&problem->op);
    to->judged = tni_dispatch_generation();
    to->device_epoch = tni_device_epoch(problem->device);
    data[TN_MATMUL_B] = problem->data[TN_MATMUL_B];
    tn_status status = tni_plan_make(&question, &to->plan, err);
    return status ? status : pack_native(to, data, err);
}

/* Packs B into `made`, which the caller releases if this fails. */
static tn_status pack_into(const tn_matmul_args *args, tn_packed *made, tni_problem *problem,
                           tn_error *err)
{
    tn_status status = copy_b(args, problem->device, made, err);
    if (!status) {
        const tn_matmul_args with_copy = args_with(args, &made->b);
        status = tni_matmul_make(&with_copy, problem, err);
    }
    return status ? status : make_plan(made, problem, err);
}

/* The problem is on the heap: kernels run while it lives, and callers may have little stack. */
tn_status tn_matmul_pack(const tn_context *context, const tn_matmul_args *args, tn_packed **out,
                         tn_error *err)
{
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_matmul_pack", "out is NULL");
    tn_packed *made = tni_alloc_zeroed(1, sizeof *made);
    tni_problem *problem = tni_alloc(sizeof *problem);
    if (!made || !problem) {
        tni_release(made);
        tni_release(problem);
        return tni_no_memory(err, "tn_matmul_pack", "packed operands");
    }
    tn_status status = tni_matmul_make(args, problem, err);
    if (!status) {
        made->context = tn_context_retain((tn_context *)(uintptr_t)tni_context_or_current(context));
        status = pack_into(args, made, problem, err);
    }
    tni_release(problem);
    if (status)
        tn_packed_release(made);
    else
        *out = made;
    return status;
}

void tn_packed_release(tn_packed *packed)
{
    tni_call call;
    if (!packed)
        return;
    if (packed->native && tni_device_open_to_return(packed->plan->device, &call)) {
        static void *const nothing[TN_OP_OPERANDS_MAX] = {NULL};
        tn_op shown;
        const tn_run run = run_of(packed->plan, &call, nothing, &shown);
        packed->plan->kernel->row->pack_release(&run, packed->native);
    }
    tni_plan_release(packed->plan);
    tn_tensor_release(&packed->b);
    tn_context_release(packed->context);
    tni_release(packed);
}

const char *tn_packed_kernel(const tn_packed *packed)
{
    return packed ? packed->plan->kernel->row->name : "";
}

uint64_t tn_packed_bytes(const tn_packed *packed, uint64_t *out_of_kernel)
{
    if (out_of_kernel)
        *out_of_kernel = packed ? packed->native_bytes : 0;
    return packed ? packed->copy_bytes : 0;
}

/* Checks that a call is for the product that B was packed for. */
static tn_status check_same(const tn_packed *packed, const tni_problem *problem, tn_error *err)
{
    uint64_t asked[TNI_KEY_MOST], there[TNI_KEY_MOST];
    int64_t alignment = tni_kernels_alignment(problem->device->platform->name, TN_OP_MATMUL);
    tn_op op = problem->op;
    tni_buffer text = {0};
    forget_alignment(&op);
    size_t count = tni_op_key_up_to(&op, alignment, asked);
    if (problem->device == packed->plan->device &&
        count == tni_op_key_up_to(&packed->plan->op, alignment, there) &&
        memcmp(asked, there, count * sizeof asked[0]) == 0)
        return TN_OK;
    tni_problem_write(&packed->plan->op, packed->plan->device->id, &text);
    tni_buffer_add(&text, ", and this is ");
    tni_problem_write(&problem->op, problem->device->id, &text);
    tn_status status = tn_fail(err, TN_INVALID_ARGUMENT, 0, face,
                               "B was packed for %s; pack it for this too", tni_buffer_text(&text));
    tni_buffer_release(&text);
    return status;
}

static const tni_contender *contender_of(const tni_choice *choice, const tni_kernel *kernel)
{
    size_t i = 0;
    while (i < choice->count && choice->candidates[i].kernel != kernel)
        i++;
    return i < choice->count ? &choice->candidates[i] : NULL;
}

/* If verdicts or the lock have changed, checks that the kernel may still be taken. */
static tn_status check_kernel(tn_packed *packed, tn_error *err)
{
    const tni_plan *plan = packed->plan;
    const tni_question question = {
        .context = packed->context, .op = &plan->op, .device = plan->device};
    uint64_t now = tni_dispatch_generation();
    if (atomic_load(&packed->judged) == now)
        return TN_OK;
    tni_choice *choice = tni_alloc(sizeof *choice);
    if (!choice)
        return tni_no_memory(err, face, "a choice");
    tn_status status = tni_decide(&question, choice, err);
    if (!status) {
        const tni_contender *it = contender_of(choice, plan->kernel);
        if (!it || it->why.code)
            status =
                tn_fail(err, TN_REFUSED, 0, face,
                        "%s, which B was packed by, may not be taken any more: %s; pack it again",
                        plan->kernel->row->name, it ? it->why.text : "it is gone");
        else
            atomic_store(&packed->judged, now);
    }
    tni_release(choice);
    return status;
}

tn_status tn_matmul_packed(const tn_packed *packed, const tn_matmul_args *args, tn_error *err)
{
    tn_packed *it = (tn_packed *)(uintptr_t)packed;
    tni_problem problem;
    tni_call_args call;
    if (!packed || !args || args->struct_size < TN_UP_TO(tn_matmul_args, workspace_bytes))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, face, "%s",
                       !packed ? "packed is NULL" : "args is NULL, or struct_size is not its size");
    if (args->b)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, face,
                       "b is packed already: it is NULL in a call with it");
    const tn_matmul_args with_copy = args_with(args, &packed->b);
    tn_status status = tni_matmul_make(&with_copy, &problem, err);
    if (!status)
        status = tni_device_epoch_check(packed->plan->device, packed->device_epoch, "the packed B",
                                        face, err);
    if (!status)
        status = check_same(packed, &problem, err);
    if (!status)
        status = check_kernel(it, err);
    if (status)
        return status;
    call = (tni_call_args){args->stream, args->workspace, args->workspace_bytes};
    tni_plan_fit(packed->plan, &problem);
    return tni_plan_run_fitted(packed->plan, packed->context, &problem, packed->native, &call, err);
}
