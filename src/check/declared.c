#include "declared.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/dtype.h"
#include "op/element.h"
#include "op/walk.h"
#include "settings/context.h"
#include "tenon/graph.h"
#include "tenon/status.h"

#include <inttypes.h>
#include <stdarg.h>

static const char where[] = "tn_check";

enum { GUARD = 256, GUARD_BYTE = 0xFF };

/* The second run. */
typedef struct repeat {
    const tni_first_run *first;
    tn_stream *stream;
    tn_stream *own;           /* the same stream if it was created here, else NULL */
    unsigned char *workspace; /* on the device, with guard bytes behind it; NULL: none */
    uint64_t bytes;           /* of the workspace, without guard bytes */
    tn_graph *graph;          /* NULL if the call is not recorded */
} repeat;

static const tn_kernel_row *row_of(const repeat *r)
{
    return tni_plan_kernel(r->first->trial->plan)->row;
}

TN_PRINTF(2, 3)
static void report_fault(tn_check_result *out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    out->ok = 0;
    if (vsnprintf(out->text, sizeof out->text, format, arguments) < 0)
        out->text[0] = '\0';
    va_end(arguments);
}

/* Allocates the workspace and fills it and its guard bytes. */
static tn_status create_workspace(repeat *r, tn_error *err)
{
    size_t bytes;
    void *memory;
    tn_device *device = r->first->trial->device;
    r->bytes = tni_plan_workspace(r->first->trial->plan);
    if (r->bytes == 0)
        return TN_OK;
    if (r->bytes > SIZE_MAX || !tni_add_size((size_t)r->bytes, GUARD, &bytes))
        return tni_no_memory(err, where, "a workspace");
    tn_status status = tn_memory_alloc(device, bytes, "check", &memory, err);
    if (status)
        return status;
    r->workspace = memory;
    const tn_memory_fill_args fill = {.struct_size = sizeof fill,
                                      .device = device,
                                      .to = memory,
                                      .bytes = bytes,
                                      .pattern = GUARD_BYTE,
                                      .stream = r->stream};
    return tn_memory_fill(&fill, err);
}

/* Records calls on a stream of its own, as graphs need. A device without further streams has no
 * graphs. */
static tn_status begin_graph(repeat *r, bool *out_began, tn_error *err)
{
    *out_began = false;
    if (tni_kernel_traits(tni_plan_kernel(r->first->trial->plan)) & TN_ROW_NO_GRAPHS)
        return TN_OK;
    tn_status status = tn_graph_begin(r->stream, err);
    *out_began = status == TN_OK;
    return status == TN_UNSUPPORTED ? TN_OK : status;
}

static tn_status queue_call(const repeat *r, tn_error *err)
{
    tni_problem problem;
    const tni_call_args args = {
        .stream = r->stream, .workspace = r->workspace, .workspace_bytes = r->bytes};
    tni_operands_on_device(r->first->operands, &problem);
    return tni_plan_run(r->first->trial->plan, tni_context_defaults(), &problem, &args, err);
}

/* Runs the kernel, through a graph if that is possible. A failure of the kernel is a fault. */
static tn_status run_again(repeat *r, tn_check_result *out, tn_error *err)
{
    bool recorded;
    tn_error said = {0};
    tn_status status = begin_graph(r, &recorded, err);
    if (status)
        return status;
    status = queue_call(r, &said);
    if (recorded && status)
        tn_graph_cancel(r->stream);
    if (recorded && !status)
        status = tn_graph_end(r->stream, &r->graph, &said);
    if (!status && r->graph)
        status = tn_graph_run(r->graph, r->stream, &said);
    if (!status)
        status = tn_stream_synchronize(r->stream, &said);
    if (status == TN_OUT_OF_MEMORY || status == TN_DEVICE_LOST)
        return tn_fail(err, status, said.native_code, where, "%s", said.message);
    if (status)
        report_fault(out, "the second run%s fails with %s: %s",
                     recorded ? ", recorded into a graph (TN_ROW_NO_GRAPHS forbids that)," : "",
                     tn_status_name(status), said.message);
    return TN_OK;
}

static tn_status check_guards(const repeat *r, tn_check_result *out, tn_error *err)
{
    unsigned char guard[GUARD];
    int at = 0;
    if (!r->workspace || !out->ok)
        return TN_OK;
    const tn_memory_copy_args copy = {.struct_size = sizeof copy,
                                      .to = guard,
                                      .from_device = r->first->trial->device,
                                      .from = r->workspace + r->bytes,
                                      .bytes = GUARD,
                                      .stream = r->stream};
    tn_status status = tn_memory_copy(&copy, err);
    if (!status)
        status = tn_stream_synchronize(r->stream, err);
    if (status)
        return status;
    while (at < GUARD && guard[at] == GUARD_BYTE)
        at++;
    if (at < GUARD)
        report_fault(out, "byte %" PRIu64 " of the workspace was written, which has %" PRIu64,
                     r->bytes + (uint64_t)at, r->bytes);
    return TN_OK;
}

/* Whether two elements have the same bits. The bits of a NaN are not part of the promise. */
static bool same_element(tn_dtype dtype, const void *a, const void *b)
{
    if (memcmp(a, b, (size_t)tni_dtype_bytes(dtype)) == 0)
        return true;
    const tni_number x = tni_element_read(dtype, a), y = tni_element_read(dtype, b);
    return tni_is_nan(x.re) && tni_is_nan(y.re) && tni_is_nan(x.im) == tni_is_nan(y.im);
}

static void compare_elements(const repeat *r, int32_t index, const unsigned char *now,
                             tn_check_result *out)
{
    const tn_layout *layout = &r->first->trial->op->operand[index];
    const unsigned char *before = r->first->block[index];
    const int64_t size = tni_dtype_bytes(layout->dtype);
    const int64_t first = (int64_t)tni_operands_at(r->first->operands, index)->first;
    int64_t element = 0;
    tni_place place = {{0}};
    do {
        const int64_t at = first + tni_place_in(&place, layout) * size;
        if (!same_element(layout->dtype, before + at, now + at)) {
            report_fault(out,
                         "output %" PRId64 " is %.9g in the second run and was %.9g in the first; "
                         "the kernel declares TN_NUM_RUN_TO_RUN",
                         element, tni_element_read(layout->dtype, now + at).re,
                         tni_element_read(layout->dtype, before + at).re);
            return;
        }
        element++;
    } while (tni_place_next(&place, layout));
}

static tn_status compare_outputs(const repeat *r, tn_check_result *out, tn_error *err)
{
    tn_status status = TN_OK;
    if (!(row_of(r)->numerics & TN_NUM_RUN_TO_RUN))
        return TN_OK;
    for (int32_t i = 0; i < r->first->trial->op->count && !status && out->ok; i++) {
        const size_t bytes = tni_operands_at(r->first->operands, i)->bytes;
        if (!r->first->block[i])
            continue;
        unsigned char *now = tni_alloc(bytes);
        status = now ? tni_operands_download(r->first->operands, i, r->stream, now, err)
                     : tni_no_memory(err, where, "a copy of the output");
        if (now && !status && memcmp(now, r->first->block[i], bytes) != 0)
            compare_elements(r, i, now, out);
        tni_release(now);
    }
    return status;
}

tn_status tni_declared_check(const tni_first_run *first, tn_check_result *out, tn_error *err)
{
    const tni_trial *trial = first->trial;
    repeat r = {.first = first};
    if (tn_stream_create(trial->device, NULL, &r.own, NULL))
        r.own = NULL;
    r.stream = r.own ? r.own : trial->stream ? trial->stream : tn_stream_current(trial->device);
    tn_status status = create_workspace(&r, err);
    const bool full = status == TN_OUT_OF_MEMORY; /* the first run has passed: that must do */
    if (!status)
        status = tni_operands_upload(first->operands, r.stream, err);
    if (!status)
        status = run_again(&r, out, err);
    if (!status)
        status = check_guards(&r, out, err);
    if (!status)
        status = compare_outputs(&r, out, err);
    tn_graph_release(r.graph);
    if (r.workspace)
        tn_memory_free(trial->device, r.workspace);
    tn_stream_release(r.own);
    return full ? TN_OK : status;
}
