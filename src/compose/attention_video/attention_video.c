/* Attention for video: entry points, validation and memory. */
#include "attention_video.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/dtype.h"
#include "device/tensor/tensor.h"
#include "op/elementwise.h"
#include "settings/context.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char where[] = "tn_attention_video";

enum { ALIGNMENT = 64 };
/* The most bytes of scores that are computed at a time, unless a row has more. */
enum { SCORES_MOST = 8 << 20 };

static tn_status check_args(const tn_attention_video_args *args, tn_error *err)
{
    tn_status status =
        tni_elementwise_args(where, args, TN_UP_TO(tn_attention_video_args, workspace_bytes), err);
    if (status)
        return status;
    if (args->layout < 0 || args->layout >= TN_LAYOUT_COUNT)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "layout: expected 0 (bhld) or 1 (blhd), got %d", (int)args->layout);
    if (args->set & ~TN_ATTENTION_SET_SCALE)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "set: expected TN_ATTENTION_SET_SCALE or 0, got %" PRIu32, args->set);
    if (!isfinite(args->scale))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "scale: expected a finite number, got %g", args->scale);
    if (!args->workspace != !args->workspace_bytes)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "expected both workspace and workspace_bytes, or neither; got %s and "
                       "%" PRIu64,
                       args->workspace ? "memory" : "NULL", args->workspace_bytes);
    return TN_OK;
}

/* Copies a tensor of [batch, heads, length, size] in the layout. One that is only explained needs no
 * data. */
static tn_status take_side(tni_video_call *c, const char *name, const tn_tensor *tensor,
                           uintptr_t *io_supposed, tni_video_side *out, tn_error *err)
{
    const int32_t heads = c->args->layout == TN_LAYOUT_BLHD ? 2 : 1;
    const int32_t from[] = {0, heads, 3 - heads, 3};
    int64_t dense[4];
    tni_layout layout;
    tn_device *device;
    tn_status status = TN_OK;
    if (tensor) {
        out->tensor = *tensor;
        if (c->plan && !tensor->data && tensor->dtype)
            status = tni_tensor_suppose(&out->tensor, where, name, io_supposed, err);
    }
    if (!status)
        status = tni_tensor_measure(tensor ? &out->tensor : NULL, where, name, &layout, err);
    if (!status)
        status = tni_tensor_device_of(&out->tensor, where, &device, err);
    if (status)
        return status;
    if (c->device && device != c->device)
        return tn_fail(err, TN_REFUSED, 0, where, "q is on %s and %s on %s; copy one of them",
                       c->device->id, name, device->id);
    c->device = device;
    if (out->tensor.ndim != 4)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s: expected 4 dimensions, got %d",
                       name, (int)out->tensor.ndim);
    tni_strides_dense(out->tensor.shape, 4, dense);
    for (int32_t d = 0; d < 4; d++) {
        out->shape[d] = out->tensor.shape[from[d]];
        out->stride[d] = out->tensor.strides ? out->tensor.strides[from[d]] : dense[from[d]];
    }
    out->first = (uintptr_t)tni_tensor_first(&out->tensor);
    return TN_OK;
}

/* Checks one dimension, counted in the order batch, heads, length, size. */
static tn_status check_dimension(const tni_video_call *c, const char *name,
                                 const tni_video_side *of, int32_t dimension, int64_t needed,
                                 const char *what, tn_error *err)
{
    const int32_t given = dimension == 1 || dimension == 2
                              ? (c->args->layout == TN_LAYOUT_BLHD ? 3 - dimension : dimension)
                              : dimension;
    if (of->shape[dimension] == needed)
        return TN_OK;
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                   "%s: expected %" PRId64 " %s in dimension %d, got %" PRId64, name, needed, what,
                   (int)given, of->shape[dimension]);
}

static tn_status check_like_q(const tni_video_call *c, const char *name, const tni_video_side *of,
                              int64_t heads, int64_t size, tn_error *err)
{
    tn_status status = check_dimension(c, name, of, 0, c->q.shape[0], "batch elements", err);
    if (!status)
        status = check_dimension(c, name, of, 1, heads, "heads", err);
    if (!status)
        status = check_dimension(c, name, of, 2, c->q.shape[2], "tokens", err);
    return status ? status : check_dimension(c, name, of, 3, size, "elements", err);
}

static tn_status check_dtypes(const tni_video_call *c, tn_error *err)
{
    const tni_video_side *const same[] = {&c->k, &c->v, &c->gate};
    static const char *const names[] = {"k", "v", "gate"};
    const tn_dtype dtype = c->dtype, out = c->out.tensor.dtype;
    if (dtype != TN_F64 && dtype != TN_F32 && dtype != TN_F16 && dtype != TN_BF16)
        return tn_fail(err, TN_UNSUPPORTED, 0, where, "q: expected f64, f32, f16 or bf16, got %s",
                       tn_dtype_name(dtype));
    for (int32_t n = 0; n < (c->selects_only ? 1 : c->args->gate ? 3 : 2); n++) {
        if (same[n]->tensor.dtype != dtype)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                           "%s: expected %s, the dtype of q, got %s", names[n],
                           tn_dtype_name(dtype), tn_dtype_name(same[n]->tensor.dtype));
    }
    if (!c->selects_only && out != dtype && out != c->wide)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "out: expected %s%s, got %s",
                       tn_dtype_name(dtype), dtype != c->wide ? " or f32" : "", tn_dtype_name(out));
    return TN_OK;
}

static tn_status check_shapes(const tni_video_call *c, tn_error *err)
{
    const int64_t heads = c->q.shape[1], groups = c->k.shape[1];
    tn_status status = check_like_q(c, "k", &c->k, groups, c->q.shape[3], err);
    if (!status && !c->selects_only)
        status = check_like_q(c, "v", &c->v, groups, c->v.shape[3], err);
    if (!status && (groups ? heads % groups : heads))
        status = tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                         "q: expected a multiple of the %" PRId64 " heads of k, got %" PRId64,
                         groups, heads);
    if (status || c->selects_only)
        return status;
    status = check_like_q(c, "out", &c->out, heads, c->v.shape[3], err);
    if (!status && c->args->gate)
        status = check_like_q(c, "gate", &c->gate, heads, c->v.shape[3], err);
    return status;
}

/* Checks that out can be written and has no memory in common with the gate; operators check it
 * against the others. */
static tn_status check_out(const tni_video_call *c, tn_error *err)
{
    const tn_tensor *out = &c->out.tensor;
    tni_layout layout;
    tn_status status = tni_tensor_writable(out, where, "out", err);
    if (!status)
        status = tni_tensor_measure(out, where, "out", &layout, err);
    if (!status && layout.elements > 0)
        status = tni_tensor_separate(out, where, "out", err);
    if (!status && layout.elements > 0 && c->args->gate &&
        tni_tensors_overlap(&c->gate.tensor, tni_dtype_bytes(c->dtype), out, layout.size))
        status = tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                         "gate shares memory with out; use another out");
    return status;
}

static tn_status check_sliding(tni_video_call *c, tn_error *err)
{
    const tn_attention_video_args *args = c->args;
    const int64_t length = c->q.shape[2], heads = c->q.shape[1];
    if (args->gate || c->selects || args->keep || args->sparsity != 0)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "%s: expected none for sliding tiles, got one; kind is TN_VIDEO_SPARSE?",
                       args->gate   ? "gate"
                       : c->selects ? "selected"
                       : args->keep ? "keep"
                                    : "sparsity");
    /* Before any window is read. */
    if (args->window_count != 1 && args->window_count != heads)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "windows: expected one window, or %" PRId64
                       " windows, one for each head; got %d",
                       heads, (int)args->window_count);
    tn_status status = tni_video_grid_make(args, 0, &c->grid, err);
    if (!status && c->grid.tokens > length)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "canvas: expected at most the %" PRId64 " tokens of q, got %" PRId64, length,
                       c->grid.tokens);
    return status ? status : tni_video_grid_make(args, length - c->grid.tokens, &c->grid, err);
}

/* The number of tiles that are selected: of a product that is rounded to nine digits, so that 0.9 of
 * 10 tiles leaves one. */
static int64_t count_kept(double sparsity, int64_t tiles)
{
    const double kept = ceil(rint((1 - sparsity) * (double)tiles * 1e9) / 1e9);
    return kept < 1 ? 1 : kept > (double)tiles ? tiles : (int64_t)kept;
}

/* Checks the table that receives the selection. It is written before the last tensor is read. */
static tn_status check_selected(const tni_video_call *c, tn_error *err)
{
    const tni_video_side *const sides[] = {&c->q, &c->k, &c->v, &c->gate, &c->out};
    static const char *const names[] = {"q", "k", "v", "gate", "out"};
    const int64_t shape[] = {c->q.shape[0], c->q.shape[1], c->grid.tiles, c->keep};
    const tn_tensor *selected = &c->selected;
    tni_layout layout;
    tn_device *device;
    tn_status status = tni_tensor_measure(selected, where, "selected", &layout, err);
    if (!status)
        status = tni_tensor_writable(selected, where, "selected", err);
    if (!status)
        status = tni_tensor_device_of(selected, where, &device, err);
    if (!status && device != c->device)
        status = tn_fail(err, TN_REFUSED, 0, where,
                         "q is on %s and selected on %s; give memory of the host", c->device->id,
                         device->id);
    if (status)
        return status;
    if (selected->dtype != TN_I32 || selected->ndim != 4 || !layout.dense ||
        (uintptr_t)tni_tensor_first(selected) % sizeof(int32_t) ||
        memcmp(selected->shape, shape, sizeof shape) != 0)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "selected: expected aligned contiguous i32 of %" PRId64 " x %" PRId64
                       " x %" PRId64 " x %" PRId64 ": batch, heads, tiles, tiles to select",
                       shape[0], shape[1], shape[2], shape[3]);
    for (size_t n = 0; n < sizeof sides / sizeof *sides && layout.elements > 0; n++) {
        const tn_tensor *side = &sides[n]->tensor;
        tni_layout of_side = {0};
        if (sides[n]->shape[0] > 0)
            status = tni_tensor_measure(side, where, names[n], &of_side, err);
        if (!status && of_side.elements > 0 &&
            tni_tensors_overlap(side, of_side.size, selected, layout.size))
            status = tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                             "selected shares memory with %s; use another tensor", names[n]);
        if (status)
            return status;
    }
    return TN_OK;
}

static tn_status check_sparse(tni_video_call *c, tn_error *err)
{
    const tn_attention_video_args *args = c->args;
    int64_t entries = 0;
    if (args->windows || args->window_count)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "windows: expected none for sparse attention, got some; kind is "
                       "TN_VIDEO_SLIDING_TILE?");
    if (!(args->sparsity >= 0 && args->sparsity <= 1))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "sparsity: expected 0 to 1, got %g",
                       args->sparsity);
    tn_status status = tni_video_grid_make(args, 0, &c->grid, err);
    if (!status)
        status = check_dimension(c, "q", &c->q, 2, c->grid.tokens, "tokens", err);
    if (status)
        return status;
    if (args->keep < 0 || args->keep > c->grid.tiles || (args->keep && args->sparsity != 0))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "keep: expected 1 to %" PRId64 ", the tiles, without sparsity; or 0; got "
                       "%" PRId64 " and sparsity %g",
                       c->grid.tiles, args->keep, args->sparsity);
    c->keep = args->keep ? args->keep : count_kept(args->sparsity, c->grid.tiles);
    if (!tni_mul_i64(c->q.shape[0] * c->q.shape[1], c->grid.tiles, &entries) ||
        !tni_mul_i64(entries, c->keep, &entries) || entries > INT32_MAX)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "keep: expected at most %" PRId32
                       " pairs of tiles of all heads, got more; use larger tiles or fewer heads",
                       INT32_MAX);
    c->grid.entries = entries;
    return c->selects ? check_selected(c, err) : TN_OK;
}

/* Adds a part to the workspace. */
static tni_video_span add_span(tni_video_call *c, int64_t elements, tn_dtype dtype)
{
    const uint64_t bytes = (uint64_t)elements * (uint64_t)tni_dtype_bytes(dtype);
    const tni_video_span span = {c->bytes, bytes};
    c->bytes += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return span;
}

static void lay_out_sparse(tni_video_call *c)
{
    const tni_video_side *const sides[] = {&c->q, &c->k, &c->v};
    const int64_t tiles = c->grid.tiles, row = tiles * tni_dtype_bytes(c->wide);
    const int64_t all = c->q.shape[0] * c->q.shape[1];
    const bool low = c->dtype != c->wide, gate = c->args->gate != NULL;
    for (int32_t n = 0; n < 3; n++) {
        const int64_t heads = sides[n]->shape[0] * sides[n]->shape[1];
        c->means[n] = add_span(c, heads * tiles * sides[n]->shape[3], c->dtype);
    }
    c->values = c->means[2];
    if (low)
        c->values = add_span(c, c->v.shape[0] * c->v.shape[1] * tiles * c->v.shape[3], c->wide);
    c->score_rows = row > SCORES_MOST ? 1 : SCORES_MOST / row;
    c->score_rows = c->score_rows < tiles ? c->score_rows : tiles;
    c->scores = add_span(c, c->score_rows * tiles, c->wide);
    c->coarse = add_span(c, all * tiles * c->v.shape[3], c->wide);
    if (low || gate)
        c->fine = add_span(c, all * c->q.shape[2] * c->v.shape[3], c->wide);
    if (low && gate)
        c->gated = add_span(c, all * c->q.shape[2] * c->v.shape[3], c->wide);
}

static void lay_out(tni_video_call *c)
{
    const tni_video_grid *grid = &c->grid;
    const bool sparse = c->args->kind == TN_VIDEO_SPARSE;
    const int64_t lists = sparse ? c->q.shape[0] * c->q.shape[1] : grid->window_count;
    c->order = add_span(c, grid->slots, TN_I32);
    c->sizes = add_span(c, grid->blocks, TN_I32);
    c->starts = add_span(c, lists * (grid->blocks + 1), TN_I32);
    if (!c->selects)
        c->blocks = add_span(c, grid->entries, TN_I32);
    if (sparse)
        lay_out_sparse(c);
}

static tn_status check_device(const tni_video_call *c, tn_error *err)
{
    int32_t type, id;
    tni_dlpack_numbers(c->device, &type, &id);
    return type == TN_DLPACK_CPU
               ? TN_OK
               : tn_fail(err, TN_UNSUPPORTED, 0, where,
                         "q: expected tensors in memory of the host, which writes the tables and "
                         "selects the tiles; got %s: copy them",
                         c->device->id);
}

static bool out_is_empty(const tni_video_call *c)
{
    bool empty = false;
    for (int32_t d = 0; d < 4; d++)
        empty = empty || c->out.shape[d] == 0;
    return empty;
}

/* Whether nothing is to be computed. A canvas with a selection has tokens. */
static bool is_empty(const tni_video_call *c)
{
    return c->selects ? c->q.shape[0] == 0 || c->q.shape[1] == 0 : out_is_empty(c);
}

/* Validates a call and lays out its workspace. With c->plan, it is being explained. */
static tn_status begin_call(const tn_context *context, const tn_attention_video_args *args,
                            tni_video_call *c, tn_error *err)
{
    uintptr_t supposed = TNI_SUPPOSED;
    tn_status status = check_args(args, err);
    if (status)
        return status;
    c->context = tni_context_or_current(context);
    c->args = args;
    const struct {
        const char *name;
        const tn_tensor *tensor;
        tni_video_side *to;
    } sides[] = {{"q", args->q, &c->q},
                 {"k", args->k, &c->k},
                 {"v", args->v, &c->v},
                 {"out", args->out, &c->out},
                 {"gate", args->gate, &c->gate}};
    if (TN_HAS(args, tn_attention_video_args, selected) && args->selected) {
        c->selected = *args->selected;
        c->selects = true;
        c->selects_only = !args->out;
    }
    const size_t count = c->selects_only ? 2 : args->gate ? 5 : 4;
    for (size_t n = 0; n < count && !status; n++)
        status = take_side(c, sides[n].name, sides[n].tensor, &supposed, sides[n].to, err);
    if (!status && c->plan && c->selects && !c->selected.data && c->selected.dtype)
        status = tni_tensor_suppose(&c->selected, where, "selected", &supposed, err);
    if (status)
        return status;
    c->dtype = c->q.tensor.dtype;
    c->wide = c->dtype == TN_F64 ? TN_F64 : TN_F32;
    c->scale = args->scale != 0 || args->set & TN_ATTENTION_SET_SCALE
                   ? args->scale
                   : 1 / sqrt((double)c->q.shape[3]);
    c->stream = args->stream ? args->stream : tn_stream_current(c->device);
    status = check_device(c, err);
    if (!status)
        status = check_dtypes(c, err);
    if (!status)
        status = check_shapes(c, err);
    if (!status && !c->selects_only)
        status = check_out(c, err);
    if (!status)
        status = args->kind == TN_VIDEO_SPARSE ? check_sparse(c, err) : check_sliding(c, err);
    c->selects_only = c->selects && out_is_empty(c);
    if (!status)
        lay_out(c);
    c->memory = supposed + (TNI_SUPPOSED - supposed) % ALIGNMENT;
    return status;
}

static tn_status acquire_memory(const tni_video_call *c, void **out, tn_error *err)
{
    const tn_attention_video_args *args = c->args;
    *out = args->workspace;
    if (!args->workspace)
        return tn_memory_alloc_on(c->stream, c->bytes, "attention-video", out, err);
    if (args->workspace_bytes < c->bytes || (uintptr_t)args->workspace % ALIGNMENT)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "workspace: expected %" PRIu64 " bytes aligned to %d, got %" PRIu64
                       " bytes at %p",
                       c->bytes, ALIGNMENT, args->workspace_bytes, args->workspace);
    return TN_OK;
}

static tn_status compute(tni_video_call *c, tn_error *err)
{
    return c->args->kind == TN_VIDEO_SPARSE ? tni_video_sparse(c, err) : tni_video_sliding(c, err);
}

tn_status tn_attention_video(const tn_context *context, const tn_attention_video_args *args,
                             tn_error *err)
{
    tni_video_call c = {0};
    void *memory = NULL;
    tn_status status = begin_call(context, args, &c, err);
    if (!status && is_empty(&c))
        return TN_OK;
    if (!status)
        status = acquire_memory(&c, &memory, err);
    if (status)
        return status;
    c.memory = (uintptr_t)memory;
    status = compute(&c, err);
    if (memory != args->workspace) {
        const tn_status freed = tn_memory_free_on(c.stream, memory, status ? NULL : err);
        status = status ? status : freed;
    }
    return status;
}

static void sum_up(const tni_video_call *c, tn_attention_video_info *out)
{
    const tni_video_grid *grid = &c->grid;
    const double lists =
        c->keep ? (double)(c->q.shape[0] * c->q.shape[1]) : (double)grid->window_count;
    const double pairs = lists * (double)grid->blocks * (double)grid->blocks;
    out->struct_size = sizeof *out;
    out->tiles = grid->tiles;
    out->blocks = grid->blocks;
    out->slots = grid->slots;
    out->keep = c->keep;
    out->density = pairs > 0 ? (double)grid->entries / pairs : 0;
    out->workspace_bytes = c->bytes;
}

tn_status tn_attention_video_explain(const tn_context *context, const tn_attention_video_args *args,
                                     tn_attention_video_plan **out, tn_error *err)
{
    tni_video_call c = {0};
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_attention_video_explain", "out is NULL");
    c.plan = tni_alloc_zeroed(1, sizeof *c.plan);
    if (!c.plan)
        return tni_no_memory(err, where, "an explanation");
    tn_status status = begin_call(context, args, &c, err);
    if (!status && !is_empty(&c))
        status = compute(&c, err);
    if (status) {
        tn_attention_video_plan_release(c.plan);
        return status;
    }
    sum_up(&c, &c.plan->info);
    *out = c.plan;
    return TN_OK;
}
