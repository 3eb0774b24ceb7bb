/* Filling memory with a pattern. */
#include "base/alloc.h"
#include "device/graph/graph.h"
#include "memory.h"

static const char where[] = "tn_memory_fill";

/* A fill operation; `bytes` is not 0. */
typedef struct fill {
    tn_device *device; /* NULL: host memory */
    tni_call call;
    char *to;
    uint64_t bytes;
    unsigned char pattern[8]; /* in memory byte order */
    uint32_t pattern_bytes;
    uint64_t word;
} fill;

static void write_pattern(uint64_t pattern, uint32_t bytes, unsigned char out[8])
{
    const uint8_t one = (uint8_t)pattern;
    const uint16_t two = (uint16_t)pattern;
    const uint32_t four = (uint32_t)pattern;
    memcpy(out,
           bytes == 1   ? (const void *)&one
           : bytes == 2 ? (const void *)&two
           : bytes == 4 ? (const void *)&four
                        : (const void *)&pattern,
           bytes);
}

static tn_status read_args(const tn_memory_fill_args *args, fill *out, tn_error *err)
{
    if (!args || !TN_HAS(args, tn_memory_fill_args, stream))
        return tn_fail(
            err, TN_INVALID_ARGUMENT, 0, where, "%s",
            args ? "args->struct_size is too small; make args with TN_ARGS(memory_fill, ...)"
                 : "args is NULL");
    if (args->reserved)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "args->reserved: expected 0, got %u",
                       (unsigned)args->reserved);
    uint32_t size = args->pattern_bytes ? args->pattern_bytes : 1;
    if (size != 1 && size != 2 && size != 4 && size != 8)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "pattern_bytes: expected 1, 2, 4 or 8, got %u", (unsigned)size);
    if (args->bytes % size != 0)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "%llu bytes are not a multiple of the pattern size %u",
                       (unsigned long long)args->bytes, (unsigned)size);
    if (args->bytes > 0 && !args->to)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "to is NULL");
    if (args->bytes > 0 && args->bytes - 1 > UINTPTR_MAX - (uintptr_t)args->to)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%llu bytes exceed the address space",
                       (unsigned long long)args->bytes);
    if (args->stream && args->stream->device != args->device)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "the stream belongs to %s, but the memory to %s", args->stream->device->id,
                       args->device ? args->device->id : "the host");
    *out = (fill){.device = args->device,
                  .to = args->to,
                  .bytes = args->bytes,
                  .pattern_bytes = size,
                  .word = args->pattern};
    write_pattern(args->pattern, size, out->pattern);
    return TN_OK;
}

/* Doubles the filled part up to a piece that fits the L1 cache, then repeats that piece. */
static void fill_host(const fill *f, char *to, size_t bytes)
{
    enum { PIECE = 4096 };
    if (f->pattern_bytes == 1) {
        memset(to, f->pattern[0], bytes);
        return;
    }
    memcpy(to, f->pattern, f->pattern_bytes);
    for (size_t done = f->pattern_bytes, more; done < bytes; done += more) {
        more = done < PIECE ? done : PIECE;
        if (more > bytes - done)
            more = bytes - done;
        memcpy(to + done, to, more);
    }
}

static tn_status fill_direct(const fill *f, const tn_stream *stream, tn_error *err)
{
    tn_error said = {0};
    const tn_fill_job job = {.struct_size = sizeof job,
                             .to = f->to,
                             .bytes = f->bytes,
                             .pattern = f->word,
                             .pattern_bytes = f->pattern_bytes,
                             .device = f->call.device,
                             .stream = stream->native};
    tn_status status = f->call.row->fill(f->call.self, &job, &said);
    return tni_device_result_check(&f->call, where, status, &said, err);
}

/* The host fills a staging buffer once and copies it repeatedly. */
static tn_status fill_staged(const fill *f, tn_stream *stream, tn_error *err)
{
    tn_status status =
        tni_capture_reject(stream, where, "the host would have to fill the memory and wait", err);
    if (status)
        return status;
    tni_stage *stage = tni_stage_acquire(f->device, &f->call, where);
    if (!stage)
        return tni_no_memory(err, where, "a copy through the host");
    uint64_t most = f->bytes < TNI_STAGE_BYTES ? f->bytes : TNI_STAGE_BYTES;
    fill_host(f, stage->bytes, (size_t)most);
    for (uint64_t done = 0; !status && done < f->bytes; done += most) {
        uint64_t left = f->bytes - done, bytes = left < most ? left : most;
        const tni_copy copy = {
            .to = {.device = f->device, .call = f->call, .at = f->to + done, .pitch = bytes},
            .from = {.at = stage->bytes, .pitch = bytes},
            .bytes = bytes,
            .rows = 1};
        status = tni_copy_call(&copy, stream, err);
    }
    tn_status last = tn_stream_synchronize(stream, status ? NULL : err);
    if (last)
        tni_stage_leave(f->device, stage);
    else
        tni_stage_release(f->device, stage);
    return status ? status : last;
}

/* Whether the platform can do the fill itself. */
static bool is_direct(const fill *f)
{
    return f->call.row->fill && (uintptr_t)f->to % f->pattern_bytes == 0;
}

static tn_status run_step(void *object, tn_stream *stream, tn_error *err)
{
    const fill *f = object;
    if (!tni_memory_is_host(f->device))
        return fill_direct(f, stream, err);
    fill_host(f, f->to, (size_t)f->bytes);
    return TN_OK;
}

static void write_step(const void *object, tni_buffer *out)
{
    const fill *f = object;
    tni_buffer_format(out, "fill of %llu bytes of %s", (unsigned long long)f->bytes, f->device->id);
}

static tn_status record_fill(const fill *f, tn_stream *stream, tn_error *err)
{
    tn_graph *graph = tni_graph_of(stream);
    if (!tni_memory_is_host(f->device) && !is_direct(f))
        return tni_graph_reject(stream, where, "this platform fills memory through the host", err);
    fill *kept = tni_alloc(sizeof *kept);
    if (!kept)
        return tni_no_memory(err, where, "a step of a graph");
    *kept = *f;
    tn_status status = graph->native ? run_step(kept, stream, err) : TN_OK;
    if (status) {
        tni_release(kept);
        return status;
    }
    return tni_graph_add(graph, &(tni_graph_step){kept, run_step, write_step, tni_release}, where,
                         err);
}

/* Whether a graph is being recorded on the stream of the fill. */
static bool is_recorded(const fill *f, const tn_memory_fill_args *args)
{
    tn_stream *stream = args->stream ? args->stream : tn_stream_current(f->device);
    return stream && tni_graph_of(stream);
}

/* The platform's fill function requires `to` to be aligned to the pattern size; the host fill does
 * not. */
tn_status tn_memory_fill(const tn_memory_fill_args *args, tn_error *err)
{
    fill f;
    tn_stream *stream = NULL;
    tn_status status = read_args(args, &f, err);
    if (status || f.bytes == 0)
        return status;
    if (f.device)
        status = tni_device_open(f.device, where, &f.call, err);
    if (status)
        return status;
    const bool recorded = tni_graph_any() && is_recorded(&f, args);
    if (tni_memory_is_host(f.device) && !recorded) {
        fill_host(&f, f.to, (size_t)f.bytes);
        return TN_OK;
    }
    status = tni_stream_for_step(args->stream, f.device, where, &stream, err);
    if (status)
        return status;
    if (recorded)
        return record_fill(&f, stream, err);
    return is_direct(&f) ? fill_direct(&f, stream, err) : fill_staged(&f, stream, err);
}
