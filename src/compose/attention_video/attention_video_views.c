/* Views of the tokens of tiles. Tiles at the ends of the canvas may be shorter, so the tiles are of up
 * to eight shapes; those of one shape are one view, without copies. */
#include "attention_video.h"

#include "base/dtype.h"
#include "device/tensor/tensor.h"

void tni_video_view_make(const tni_video_call *call, tn_dtype dtype, uintptr_t at, int32_t rank,
                         const int64_t *shape, const int64_t *stride, tni_video_view *out)
{
    for (int32_t d = 0; d < rank; d++)
        out->shape[d] = shape[d];
    if (stride) {
        for (int32_t d = 0; d < rank; d++)
            out->stride[d] = stride[d];
    } else {
        tni_strides_dense(out->shape, rank, out->stride);
    }
    out->tensor = (tn_tensor){.data = (void *)at,
                              .device_type = call->q.tensor.device_type,
                              .device_id = call->q.tensor.device_id,
                              .ndim = rank,
                              .dtype = dtype,
                              .shape = out->shape,
                              .strides = out->stride};
}

/* The tiles of a box along an axis: their number, the first one, and their tokens. */
typedef struct span {
    int64_t tiles, first, tokens;
} span;

static span span_of(const tni_video_grid *grid, int32_t box, int32_t axis)
{
    const int64_t size = grid->canvas[axis], tile = grid->tile[axis];
    return box >> axis & 1 ? (span){size % tile > 0, size / tile, size % tile}
                           : (span){size / tile, 0, tile};
}

bool tni_video_box_exists(const tni_video_grid *grid, int32_t box)
{
    bool exists = true;
    for (int32_t axis = 0; axis < TNI_VIDEO_AXES; axis++)
        exists = exists && span_of(grid, box, axis).tiles > 0;
    return exists;
}

void tni_video_view_tokens(const tni_video_call *c, const tni_video_side *of, int64_t batch,
                           int32_t box, tni_video_view *out)
{
    const tni_video_grid *grid = &c->grid;
    const int64_t along[] = {grid->canvas[1] * grid->canvas[2], grid->canvas[2], 1};
    int64_t shape[TN_OP_RANK_MAX] = {of->shape[1]}, stride[TN_OP_RANK_MAX] = {of->stride[1]};
    int64_t at = batch * of->stride[0];
    for (int32_t axis = 0; axis < TNI_VIDEO_AXES; axis++) {
        const span s = span_of(grid, box, axis);
        const int64_t step = along[axis] * of->stride[2];
        shape[1 + 2 * axis] = s.tiles;
        shape[2 + 2 * axis] = s.tokens;
        stride[1 + 2 * axis] = grid->tile[axis] * step;
        stride[2 + 2 * axis] = step;
        at += s.first * grid->tile[axis] * step;
    }
    shape[7] = of->shape[3];
    stride[7] = of->stride[3];
    const int64_t bytes = at * tni_dtype_bytes(of->tensor.dtype);
    tni_video_view_make(c, of->tensor.dtype, of->first + (uintptr_t)bytes, TN_OP_RANK_MAX, shape,
                        stride, out);
}

void tni_video_view_tiles(const tni_video_call *c, uintptr_t at, tn_dtype dtype, int64_t heads,
                          int64_t size, int64_t batch, int32_t box, tni_video_view *out)
{
    const tni_video_grid *grid = &c->grid;
    const int64_t along[] = {grid->counts[1] * grid->counts[2], grid->counts[2], 1};
    int64_t shape[TN_OP_RANK_MAX] = {heads}, stride[TN_OP_RANK_MAX] = {grid->tiles * size};
    int64_t first = batch * heads * grid->tiles * size;
    for (int32_t axis = 0; axis < TNI_VIDEO_AXES; axis++) {
        const span s = span_of(grid, box, axis);
        shape[1 + 2 * axis] = s.tiles;
        shape[2 + 2 * axis] = 1;
        stride[1 + 2 * axis] = along[axis] * size;
        stride[2 + 2 * axis] = size;
        first += s.first * along[axis] * size;
    }
    shape[7] = size;
    stride[7] = 1;
    const int64_t bytes = first * tni_dtype_bytes(dtype);
    tni_video_view_make(c, dtype, at + (uintptr_t)bytes, TN_OP_RANK_MAX, shape, stride, out);
}
