/* Running a plan: from tensors to the kernel. */
#include "base/alloc.h"
#include "device/graph/graph.h"
#include "device/stream/trail.h"
#include "os/parallel.h"
#include "plan.h"
#include "policy.h"
#include "settings/context.h"
#include "tenon/stream.h"

/* Returns the alignment of `memory`, at most TN_OP_ALIGNMENT_MAX, which workspaces need. */
static int alignment_of(const void *memory)
{
    int alignment = TN_OP_ALIGNMENT_MAX;
    while ((uintptr_t)memory % (uintptr_t)alignment != 0)
        alignment /= 2;
    return alignment;
}

tn_status tni_workspace_check(const tni_call_args *args, const tn_kernel_row *row, uint64_t needed,
                              const char *where, tn_error *err)
{
    if (!args->workspace != !args->workspace_bytes)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "expected both workspace and workspace_bytes, or neither; got %s and %llu",
                       args->workspace ? "memory" : "NULL",
                       (unsigned long long)args->workspace_bytes);
    if (!args->workspace || needed == 0 ||
        (args->workspace_bytes >= needed && alignment_of(args->workspace) == TN_OP_ALIGNMENT_MAX))
        return TN_OK;
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                   "workspace: expected %llu bytes aligned to %d for %s, got %llu aligned to %d",
                   (unsigned long long)needed, TN_OP_ALIGNMENT_MAX, row->name,
                   (unsigned long long)args->workspace_bytes, alignment_of(args->workspace));
}

/* Uses the caller's workspace, which was checked; or that of the graph that is being recorded; or
 * the stream's, which is then *out_taken and must be given back. */
static tn_status find_workspace(const tni_plan *plan, const tni_call_args *args, tn_stream *stream,
                                tn_run *run, tni_scratch **out_taken, tn_error *err)
{
    run->workspace_bytes = plan->workspace;
    if (args->workspace) {
        run->workspace = args->workspace;
        return TN_OK;
    }
    if (tni_graph_of(stream))
        return tni_graph_scratch(tni_graph_of(stream), plan->workspace, plan->where,
                                 &run->workspace, err);
    tn_status status = tni_scratch_acquire(stream, plan->workspace, plan->where, out_taken, err);
    if (!status)
        run->workspace = (*out_taken)->memory;
    return status;
}

/* Reports a failure with its problem, which gets the alignments of its data. */
static tn_status report_failure(const tni_call *call, const tni_plan *plan,
                                const tni_problem *problem, tn_status status, tn_error *said,
                                tn_error *err)
{
    tni_problem placed = *problem;
    tni_buffer text = {0};
    size_t used;
    tni_problem_place(&placed);
    said->message[sizeof said->message - 1] = '\0';
    used = strlen(said->message);
    tni_problem_write(&placed.op, plan->device->id, &text);
    snprintf(said->message + used, sizeof said->message - used, "%s%s", used ? "; " : "",
             tni_buffer_text(&text));
    tni_buffer_release(&text);
    return tni_device_result_check(call, plan->kernel->row->name, status, said, err);
}

static void write_trace(const void *object, tni_buffer *out)
{
    const tni_plan *plan = object;
    tni_problem_write(&plan->op, plan->device->id, out);
    tni_buffer_format(out, " (%s)", plan->kernel->row->name);
}

static void release_trace(void *object)
{
    tni_plan_release(object);
}

/* A fault of queued work is reported by some later call; the trace names the work that was
 * queued. */
static void add_trace(const tni_plan *plan, tn_stream *stream)
{
    const tni_trace trace = {tni_plan_retain((tni_plan *)(uintptr_t)plan), write_trace,
                             release_trace};
    tni_trail_add(stream, &trace);
}

static inline tn_run init_run(const tni_plan *plan, const tni_call *call,
                              const tni_problem *problem, const tn_stream *stream)
{
    return (tn_run){.struct_size = sizeof(tn_run),
                    .row = plan->kernel->row,
                    .op = &problem->op,
                    .data = problem->data,
                    .stream = stream->native,
                    .platform = call->self,
                    .library = plan->library,
                    .plan = plan->state->made_with.plan,
                    .host = &plan->kernel->record->host,
                    .device = call->device,
                    .threads = tni_parallel_threads_hint()};
}

static inline tn_status call_kernel(const tn_run *run, const tni_plan *plan, const tni_call *call,
                                    const tni_problem *problem, tn_error *err)
{
    tn_error said;
    said.status = TN_OK;
    said.native_code = 0;
    said.where[0] = said.message[0] = '\0';
    tn_status status = run->row->run(run, &said);
    return status ? report_failure(call, plan, problem, status, &said, err) : TN_OK;
}

/* A call that a graph repeats. */
typedef struct step {
    tni_plan *plan;
    tni_problem problem;
    void *workspace;
} step;

static tn_status run_step(void *object, tn_stream *stream, tn_error *err)
{
    const step *s = object;
    tni_call call;
    tn_status status = tni_device_open(s->plan->device, "tn_graph_run", &call, err);
    if (status)
        return status;
    tn_run run = init_run(s->plan, &call, &s->problem, stream);
    run.workspace = s->workspace;
    run.workspace_bytes = s->plan->workspace;
    return call_kernel(&run, s->plan, &call, &s->problem, err);
}

static void write_step(const void *object, tni_buffer *out)
{
    write_trace(((const step *)object)->plan, out);
}

static void release_step(void *object)
{
    tni_plan_release(((step *)object)->plan);
    tni_release(object);
}

/* Refuses a recorded call of a kernel that cannot be recorded. */
static tn_status check_recording(const tni_plan *plan, tn_stream *stream, bool packed,
                                 tn_error *err)
{
    char why[256];
    const bool graph = tni_graph_of(stream) != NULL;
    if (graph && packed)
        return tni_graph_reject(stream, plan->where, "a graph cannot keep the memory of a packed B",
                                err);
    if (!(tni_kernel_traits(plan->kernel) & TN_ROW_NO_GRAPHS))
        return TN_OK;
    snprintf(why, sizeof why, "%s cannot be recorded; a rule can choose another kernel",
             plan->kernel->row->name);
    return graph ? tni_graph_reject(stream, plan->where, why, err)
                 : tni_capture_reject(stream, plan->where, why, err);
}

/* If the platform records natively, the kernel is called once while it records; otherwise the graph
 * calls the kernel. */
static tn_status record_step(const tn_run *run, const tni_plan *plan, const tni_call *call,
                             const tni_problem *problem, tn_graph *graph, tn_error *err)
{
    const char *where = tni_op_class_of(problem->op.kind)->where;
    step *s = tni_alloc(sizeof *s);
    if (!s)
        return tni_no_memory(err, where, "a step of a graph");
    *s = (step){tni_plan_retain((tni_plan *)(uintptr_t)plan), *problem, run->workspace};
    tn_status status = graph->native ? call_kernel(run, plan, call, problem, err) : TN_OK;
    if (status) {
        release_step(s);
        return status;
    }
    return tni_graph_add(graph, &(tni_graph_step){s, run_step, write_step, release_step}, where,
                         err);
}

static tn_status run_problem(const tni_plan *plan, const tni_call *call, const tni_problem *problem,
                             const void *packed, const tni_call_args *args, tn_stream *stream,
                             tn_error *err)
{
    tni_scratch *taken = NULL;
    tn_graph *graph = tni_graph_of(stream);
    tn_run run = init_run(plan, call, problem, stream);
    tn_status status = check_recording(plan, stream, packed != NULL, err);
    if (status)
        return status;
    run.packed = packed;
    if (plan->workspace > 0) {
        status = find_workspace(plan, args, stream, &run, &taken, err);
        if (status)
            return status;
    }
    if (graph)
        return record_step(&run, plan, call, problem, graph, err);
    status = call_kernel(&run, plan, call, problem, err);
    if (taken)
        tni_scratch_release(stream, taken);
    if (tni_row_has_streams(call->row))
        add_trace(plan, stream);
    return status;
}

bool tni_plan_is_plain(const tni_plan *plan)
{
    return !plan->kernel->talker && !tni_row_has_streams(plan->device->offer->platform->row);
}

tn_status tni_plan_run_plain(const tni_plan *plan, const tni_call *call, const tni_problem *problem,
                             tn_stream *stream, tn_error *err)
{
    tni_scratch *taken = NULL;
    tn_status status = TN_OK;
    tn_run run = init_run(plan, call, problem, stream);
    run.workspace_bytes = plan->workspace;
    if (plan->workspace > 0)
        status = tni_scratch_acquire(stream, plan->workspace, plan->where, &taken, err);
    if (status)
        return status;
    run.workspace = taken ? taken->memory : NULL;
    status = call_kernel(&run, plan, call, problem, err);
    if (taken)
        tni_scratch_release(stream, taken);
    return status;
}

static const tni_run_watch *find_watch(void)
{
    TNI_POLICIES_EACH (policy) {
        if (policy->watch)
            return policy->watch;
    }
    return NULL;
}

void tni_plan_fit(const tni_plan *plan, tni_problem *problem)
{
    tni_alignments_set(&problem->op, tni_state_alignments(plan->state));
}

tn_status tni_plan_run(const tni_plan *plan, const tn_context *context, tni_problem *problem,
                       const tni_call_args *args, tn_error *err)
{
    tni_plan_fit(plan, problem);
    return tni_plan_run_fitted(plan, context, problem, NULL, args, err);
}

tn_status tni_plan_run_fitted(const tni_plan *plan, const tn_context *context,
                              const tni_problem *problem, const void *packed,
                              const tni_call_args *args, tn_error *err)
{
    const bool empty = tni_op_is_empty(&problem->op);
    tn_stream *stream;
    tni_call call;
    tn_status status =
        tni_workspace_check(args, plan->kernel->row, empty ? 0 : plan->workspace, plan->where, err);
    if (!status)
        status = tni_device_open(plan->device, plan->where, &call, err);
    if (!status)
        status = tni_stream_for_step(args->stream, plan->device, plan->where, &stream, err);
    if (status || empty)
        return status;
    void *watched = NULL;
    const tni_run_watch *watch = NULL;
    const bool recorded = tni_graph_of(stream) != NULL;
    if (context->value[TN_SETTING_DEBUG_SAMPLE] > 0 && !recorded && !tni_capture_is_on(stream))
        watch = find_watch();
    if (watch)
        status = watch->begin(context, problem, stream, &watched, err);
    if (!status && plan->kernel->talker)
        tni_library_apply_verbosity(plan->kernel->talker, context);
    if (!status)
        status = run_problem(plan, &call, problem, packed, args, stream, err);
    if (!status && !recorded && context->value[TN_SETTING_DEBUG_SYNC] && !tni_capture_is_on(stream))
        status = tn_stream_synchronize(stream, err);
    if (!status && watched)
        status = watch->end(watched, plan, problem, stream, err);
    if (watch)
        watch->release(watched);
    return status;
}

/* Prepares the runs of many problems. They share one workspace, large enough for the largest of
 * them. */
static void init_runs(const tni_many *many, const tni_call *call, const tn_stream *stream,
                      const tn_run *with, tn_run *out)
{
    for (size_t i = 0; i < many->count; i++) {
        out[i] = init_run(many->plans[i], call, many->problems[i], stream);
        out[i].workspace = with->workspace;
        out[i].workspace_bytes = with->workspace_bytes;
    }
}

/* Reports a failure with the problem that the kernel failed on; without a problem if the failure
 * concerns all. */
static tn_status queue_many(const tni_many *many, const tni_call *call, const tn_run *runs,
                            size_t *out_failed, tn_error *err)
{
    size_t failed_on = 0;
    tn_error said = {0};
    tn_status status = runs->row->run_many(runs, many->count, &failed_on, &said);
    if (!status)
        return TN_OK;
    failed_on = many->count == 1 ? 0 : failed_on;
    if (failed_on >= many->count)
        return tni_device_result_check(call, runs->row->name, status, &said, err);
    *out_failed = failed_on;
    return report_failure(call, many->plans[failed_on], many->problems[failed_on], status, &said,
                          err);
}

static tn_status call_many(const tni_many *many, const tni_call *call, tn_stream *stream,
                           tn_run *runs, size_t *out_failed, tn_error *err)
{
    const tni_plan *greatest = many->plans[0];
    const tni_call_args args = {.stream = stream};
    tni_scratch *taken = NULL;
    tn_run with = {.struct_size = sizeof with};
    tn_status status = TN_OK;
    for (size_t i = 1; i < many->count; i++)
        greatest = many->plans[i]->workspace > greatest->workspace ? many->plans[i] : greatest;
    if (greatest->workspace > 0)
        status = find_workspace(greatest, &args, stream, &with, &taken, err);
    if (status)
        return status;
    init_runs(many, call, stream, &with, runs);
    status = queue_many(many, call, runs, out_failed, err);
    if (taken)
        tni_scratch_release(stream, taken);
    for (size_t i = 0; i < many->count && tni_row_has_streams(call->row); i++)
        add_trace(many->plans[i], stream);
    return status;
}

tn_status tni_plan_run_many(const tni_many *many, const tn_context *context, tn_stream *on,
                            size_t *out_failed, tn_error *err)
{
    const tni_plan *first = many->plans[0];
    const char *where = tni_op_class_of(many->problems[0]->op.kind)->where;
    tn_stream *stream;
    tni_call call;
    *out_failed = many->count;
    tn_status status = tni_device_open(first->device, where, &call, err);
    if (!status)
        status = tni_stream_for_step(on, first->device, where, &stream, err);
    if (status)
        return status;
    tn_run *runs = tni_alloc_zeroed(many->count, sizeof *runs);
    if (!runs)
        return tni_no_memory(err, where, "the runs of a group");
    if (first->kernel->talker)
        tni_library_apply_verbosity(first->kernel->talker, context);
    status = call_many(many, &call, stream, runs, out_failed, err);
    tni_release(runs);
    if (!status && context->value[TN_SETTING_DEBUG_SYNC])
        status = tn_stream_synchronize(stream, err);
    return status;
}

bool tni_is_recorded(tn_stream *on, tn_device *device)
{
    if (!tni_graph_any() && !tni_capture_any())
        return false;
    tn_stream *stream = on ? on : tn_stream_current(device);
    return stream && (tni_graph_of(stream) || tni_capture_is_on(stream));
}
