/* Internals of attention for video: the geometry of the tiles, views of the tokens of tiles, and the
 * calls of operators. */
#ifndef TNI_COMPOSE_ATTENTION_VIDEO_H
#define TNI_COMPOSE_ATTENTION_VIDEO_H

#include "device/device.h"
#include "tenon/attention_video.h"
#include "tenon/elementwise.h"
#include "tenon/matmul.h"
#include "tenon/reduce.h"

#include <stdbool.h>

enum { TNI_VIDEO_AXES = 3 };

/* A canvas in tiles, and text behind it. */
typedef struct tni_video_grid {
    int64_t canvas[TNI_VIDEO_AXES], tile[TNI_VIDEO_AXES];
    int64_t counts[TNI_VIDEO_AXES]; /* tiles along each axis */
    int64_t tiles, tokens;          /* of the canvas */
    int64_t block;                  /* slots of a block */
    int64_t text, blocks, slots;    /* of text; of canvas and text */
    const int64_t *windows;
    int64_t window_count;
    int64_t entries; /* of the lists of all windows */
} tni_video_grid;

/* Validates the numbers. At most INT32_MAX slots and entries. */
tn_status tni_video_grid_make(const tn_attention_video_args *args, int64_t text,
                              tni_video_grid *out, tn_error *err);
void tni_video_write_order(const tni_video_grid *grid, int32_t *out);
void tni_video_write_sizes(const tni_video_grid *grid, int32_t *out);
void tni_video_write_lists(const tni_video_grid *grid, int32_t *out_starts, int32_t *out_blocks);

/* A tensor whose dimensions are batch, heads, length and size in this order. */
typedef struct tni_video_side {
    tn_tensor tensor; /* as it was given, with data */
    int64_t shape[4], stride[4];
    uintptr_t first;
} tni_video_side;

/* A part of the workspace. */
typedef struct tni_video_span {
    uint64_t at, bytes;
} tni_video_span;

/* A part of an explanation, and its memory. */
typedef struct tni_video_part {
    tn_attention_video_part face;
    char *problem, *kernel;
} tni_video_part;

struct tn_attention_video_plan {
    tn_attention_video_info info;
    tni_video_part *parts;
    size_t room;
};

/* A call. Validated, or being explained: then `plan` receives its parts, and nothing is read. */
typedef struct tni_video_call {
    const tn_context *context;
    const tn_attention_video_args *args;
    tn_attention_video_plan *plan;
    tn_decision *decision; /* of the part that is being explained */
    tni_video_grid grid;
    tni_video_side q, k, v, out, gate; /* gate: shape[0] is 0 without one */
    tn_tensor selected;                /* as it was given; or zeroed */
    bool selects, selects_only;        /* whether it was given; whether nothing else is computed */
    tn_dtype dtype, wide;              /* of q; of scores and sums */
    double scale;
    int64_t keep;
    tn_device *device;
    tn_stream *stream;
    uintptr_t memory; /* of the spans */
    uint64_t bytes;
    tni_video_span order, sizes, starts, blocks;     /* blocks: without `selected` */
    tni_video_span means[3], values, scores, coarse; /* sparse */
    tni_video_span fine, gated;
    int64_t score_rows; /* rows of scores that are computed at a time */
} tni_video_call;

static inline uintptr_t tni_video_at(const tni_video_call *c, const tni_video_span *span)
{
    return c->memory + (uintptr_t)span->at;
}

/* A tensor with its own shape and strides. */
typedef struct tni_video_view {
    tn_tensor tensor;
    int64_t shape[TN_OP_RANK_MAX], stride[TN_OP_RANK_MAX];
} tni_video_view;

/* Makes a view of `rank` dimensions; NULL strides: contiguous. */
void tni_video_view_make(const tni_video_call *call, tn_dtype dtype, uintptr_t at, int32_t rank,
                         const int64_t *shape, const int64_t *stride, tni_video_view *out);

/* Tiles of equal shape: bit `axis` of `box` is set for the shorter ones at the end of that axis. */
enum { TNI_VIDEO_BOXES = 8 };
bool tni_video_box_exists(const tni_video_grid *grid, int32_t box);

/* The tokens of such tiles in one batch element: [heads, tiles, frames, tiles, rows, tiles, columns,
 * size], with the tiles along each axis before the tokens of a tile along it. */
void tni_video_view_tokens(const tni_video_call *call, const tni_video_side *of, int64_t batch,
                           int32_t box, tni_video_view *out);
/* The same of a contiguous table [batch, heads, tiles, size], with 1 for the tokens. */
void tni_video_view_tiles(const tni_video_call *call, uintptr_t at, tn_dtype dtype, int64_t heads,
                          int64_t size, int64_t batch, int32_t box, tni_video_view *out);

/* Selects the `keep` greatest numbers of each of `rows` contiguous rows of `count` numbers of f32 or
 * f64, and writes their indices, ascending, to out[row * keep]. */
void tni_video_select(tn_dtype dtype, const void *numbers, int64_t rows, int64_t count,
                      int64_t keep, int32_t *out);

/* Ends an explanation of a part, whose `status` it returns: adds call->decision to the plan, and
 * releases it. */
tn_status tni_video_add_part(tni_video_call *call, const char *stage, tn_status status,
                             tn_error *err);

/* A call of an operator, or its explanation. */
#define TNI_VIDEO_CALL(call, stage, noun, error, ...)                                             \
    ((call)->plan ? tni_video_add_part(                                                           \
                        (call), (stage),                                                          \
                        tn_##noun##_explain((call)->context,                                      \
                                            TN_ARGS(noun, .stream = (call)->stream, __VA_ARGS__), \
                                            &(call)->decision, (error)),                          \
                        (error))                                                                  \
                  : tn_##noun((call)->context,                                                    \
                              TN_ARGS(noun, .stream = (call)->stream, __VA_ARGS__), (error)))

/* Computes or explains. The spans of tables and intermediate results have memory. */
tn_status tni_video_sliding(tni_video_call *call, tn_error *err);
tn_status tni_video_sparse(tni_video_call *call, tn_error *err);

#endif
