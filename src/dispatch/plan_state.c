/* The kernel's own plan: made once, shared by the plans of problems with the same key. */
#include "base/alloc.h"
#include "base/log.h"
#include "base/out_of_line.h"
#include "declined.h"
#include "device/stream/epoch.h"
#include "judge.h"
#include "os/parallel.h"

static const char where[] = "plan";

tn_status tni_kernel_open_library(const tni_kernel *kernel, void **out_self, int64_t *out_version,
                                  tn_error *err)
{
    *out_self = NULL;
    *out_version = -1;
    if (!kernel->library)
        return TN_OK;
    return tni_library_open(kernel->library, kernel->record, out_self, out_version, err);
}

void tni_state_init(const tni_question *question, const tni_contender *of, tni_state *out)
{
    const tni_kernel *kernel = of->kernel;
    tn_op op;
    tni_op_free(question->op, kernel->row->free_dims, &op);
    tni_references_init(&out->references);
    out->next = NULL;
    out->kept = 0;
    out->kernel = kernel;
    out->device = question->device;
    out->bytes = 0;
    out->workspace = kernel->row->free_dims ? 0 : of->workspace;
    out->key_count = tni_op_key_up_to(&op, kernel->alignment, out->key);
    out->key[out->key_count++] = (uint32_t)tni_device_epoch(question->device);
    out->key[out->key_count++] = out->workspace;
    out->hash = (uint64_t)(uintptr_t)kernel;
    for (size_t i = 0; i < out->key_count; i++)
        out->hash = tni_hash_mix(out->hash, out->key[i]);
}

TNI_OUT_OF_LINE bool tni_declined(const tni_question *question, const tni_contender *of,
                                  tn_refusal *why)
{
    tni_state state;
    if (!tni_declined_any())
        return false;
    tni_state_init(question, of, &state);
    return tni_declined_find(&state, why);
}

/* An op without elements is not run and needs no native plan: libraries refuse to make one. The
 * plan of a row with free dimensions also serves other sizes. */
static bool is_never_run(const tn_op *op, const tn_kernel_row *row)
{
    return !row->free_dims && tni_op_is_empty(op);
}

static tn_status make_native(const tni_question *question, tni_state *state, tn_error *err)
{
    static void *const nothing[TN_OP_OPERANDS_MAX] = {NULL};
    const tni_kernel *kernel = state->kernel;
    tn_op shown;
    tn_error said = {0};
    int64_t version;
    tni_call call;
    void *plan = NULL;
    tn_status status = tni_device_open(question->device, where, &call, err);
    state->made_with = (tn_run){.struct_size = sizeof(tn_run),
                                .row = kernel->row,
                                .data = nothing,
                                .platform = status ? NULL : call.self,
                                .host = &kernel->record->host,
                                .device = status ? 0 : call.device,
                                .threads = tni_parallel_threads_hint()};
    if (!status)
        status = tni_kernel_open_library(kernel, &state->made_with.library, &version, err);
    if (status || !kernel->row->plan || is_never_run(question->op, kernel->row))
        return status;
    tni_op_copy(question->op, &shown);
    if (kernel->talker)
        tni_library_apply_verbosity(kernel->talker, question->context);
    tni_alignments_set(&shown, tni_state_alignments(state));
    state->made_with.op = &shown;
    state->made_with.workspace_bytes = state->workspace;
    status = kernel->row->plan(&state->made_with, &plan, &state->bytes, &said);
    state->made_with.plan = plan;
    state->made_with.op = NULL;
    state->made_with.workspace_bytes = 0;
    return tni_device_result_check(&call, kernel->row->name, status, &said, err);
}

tn_status tni_state_make(const tni_question *question, const tni_state *like, tni_state **out,
                         tn_error *err)
{
    tni_state *made = tni_alloc(sizeof *made);
    if (!made)
        return tni_no_memory(err, where, "a plan");
    tn_error said = {0};
    *made = *like;
    tni_references_init(&made->references);
    tn_status status = make_native(question, made, &said);
    if (tni_declined_by(status))
        tni_declined_note(made, said.message);
    if (tni_declined_by(status))
        tni_log(tni_does_not_serve(status) ? TN_LOG_WARNING : TN_LOG_INFO,
                tni_does_not_serve(status) ? "%s cannot be used on this device: %s"
                                           : "%s does not support a problem: %s",
                like->kernel->row->name, said.message);
    if (status && err)
        *err = said;
    if (status)
        tni_release(made);
    else
        *out = made;
    return status;
}

tni_state *tni_state_retain(tni_state *state)
{
    tni_references_add(&state->references);
    return state;
}

/* If the device was lost or reset since, the kernel's plan was lost with it and is not released. */
void tni_state_release(tni_state *state)
{
    tni_call call;
    if (!state || !tni_references_drop(&state->references))
        return;
    const tn_kernel_row *row = state->kernel->row;
    if (row->plan_release && state->made_with.plan &&
        tni_device_open_to_return(state->device, &call))
        row->plan_release(&state->made_with, state->made_with.plan);
    tni_release(state);
}
