/* Video sparse attention: the means of the tiles, attention of the means and the selection of tiles,
 * attention over the selected tiles, and the sum of both. */
#include "attention_video.h"

#include "base/dtype.h"
#include "device/tensor/tensor.h"

#define AXES_OF_TOKENS (UINT64_C(1) << 2 | UINT64_C(1) << 4 | UINT64_C(1) << 6)

/* The batch elements that calls are made for: an explanation shows one of several equal calls. */
static int64_t batch_of(const tni_video_call *c)
{
    return c->plan && c->q.shape[0] > 1 ? 1 : c->q.shape[0];
}

/* Computes the means of the tokens of each tile, [batch, heads, tiles, size]. */
static tn_status compute_means(tni_video_call *c, const tni_video_side *of, uintptr_t to,
                               tn_error *err)
{
    tn_status status = TN_OK;
    for (int64_t b = 0; b < batch_of(c) && !status; b++) {
        for (int32_t box = 0; box < TNI_VIDEO_BOXES && !status; box++) {
            tni_video_view tokens, means;
            if (!tni_video_box_exists(&c->grid, box))
                continue;
            tni_video_view_tokens(c, of, b, box, &tokens);
            tni_video_view_tiles(c, to, c->dtype, of->shape[1], of->shape[3], b, box, &means);
            status =
                TNI_VIDEO_CALL(c, "means", reduce, err, .in = &tokens.tensor, .out = &means.tensor,
                               .axes = AXES_OF_TOKENS, .kind = TN_REDUCE_MEAN, .keep = 1);
        }
    }
    return status;
}

/* The selected tiles, [batch, heads, tiles, keep]. */
static int32_t *selected_of(const tni_video_call *c)
{
    return c->selects ? tni_tensor_first(&c->selected) : (int32_t *)tni_video_at(c, &c->blocks);
}

/* A part of a contiguous table [batch, heads, tiles, size]: some tiles of one head. */
static void view_rows(const tni_video_call *c, uintptr_t table, tn_dtype dtype, int64_t head,
                      int64_t row, int64_t rows, int64_t size, tni_video_view *out)
{
    const int64_t shape[] = {rows, size}, at = (head * c->grid.tiles + row) * size;
    tni_video_view_make(c, dtype, table + (uintptr_t)(at * tni_dtype_bytes(dtype)), 2, shape, NULL,
                        out);
}

/* Computes attention of the means for some tiles of queries of a head, and selects their tiles of
 * keys. `head` counts those of all batch elements. */
static tn_status compute_rows(tni_video_call *c, int64_t head, int64_t row, int64_t rows,
                              tn_error *err)
{
    const int64_t tiles = c->grid.tiles, heads = c->q.shape[1], groups = c->k.shape[1];
    const int64_t group = head / heads * groups + head % heads / (heads / groups);
    const int64_t shape[] = {rows, tiles};
    tni_video_view q, k, v, scores, coarse;
    view_rows(c, tni_video_at(c, &c->means[0]), c->dtype, head, row, rows, c->q.shape[3], &q);
    view_rows(c, tni_video_at(c, &c->means[1]), c->dtype, group, 0, tiles, c->k.shape[3], &k);
    view_rows(c, tni_video_at(c, &c->values), c->wide, group, 0, tiles, c->v.shape[3], &v);
    view_rows(c, tni_video_at(c, &c->coarse), c->wide, head, row, rows, c->v.shape[3], &coarse);
    tni_video_view_make(c, c->wide, tni_video_at(c, &c->scores), 2, shape, NULL, &scores);
    tn_status status = TNI_VIDEO_CALL(c, "scores", matmul, err, .a = &q.tensor, .b = &k.tensor,
                                      .out = &scores.tensor, .transpose_b = 1, .alpha = c->scale,
                                      .set = TN_MATMUL_SET_ALPHA);
    if (!status && !c->plan)
        tni_video_select(c->wide, scores.tensor.data, rows, tiles, c->keep,
                         selected_of(c) + (head * tiles + row) * c->keep);
    if (c->selects_only)
        return status;
    if (!status)
        status =
            TNI_VIDEO_CALL(c, "weights", softmax, err, .in = &scores.tensor, .out = &scores.tensor);
    if (!status)
        status = TNI_VIDEO_CALL(c, "coarse", matmul, err, .a = &scores.tensor, .b = &v.tensor,
                                .out = &coarse.tensor);
    return status;
}

static tn_status compute_coarse(tni_video_call *c, tn_error *err)
{
    const int64_t tiles = c->grid.tiles, all = c->q.shape[0] * c->q.shape[1];
    const int64_t heads = c->plan && all > 1 ? 1 : all;
    const tni_video_side *const sides[] = {&c->q, &c->k, &c->v};
    tn_status status = TN_OK;
    for (int32_t n = 0; n < (c->selects_only ? 2 : 3) && !status; n++)
        status = compute_means(c, sides[n], tni_video_at(c, &c->means[n]), err);
    if (!status && !c->selects_only && c->values.at != c->means[2].at) {
        const int64_t shape[] = {c->k.shape[0], c->k.shape[1], tiles, c->v.shape[3]};
        tni_video_view means, values;
        tni_video_view_make(c, c->dtype, tni_video_at(c, &c->means[2]), 4, shape, NULL, &means);
        tni_video_view_make(c, c->wide, tni_video_at(c, &c->values), 4, shape, NULL, &values);
        status = TNI_VIDEO_CALL(c, "values", cast, err, .in = &means.tensor, .out = &values.tensor);
    }
    for (int64_t head = 0; head < heads && !status; head++) {
        for (int64_t row = 0; row < tiles && !status; row += c->score_rows) {
            const int64_t left = tiles - row;
            status = compute_rows(c, head, row, left < c->score_rows ? left : c->score_rows, err);
            if (c->plan)
                break;
        }
    }
    return status;
}

/* A tensor of out's shape and layout in the workspace. */
static void view_whole(const tni_video_call *c, const tni_video_span *span, tni_video_view *out,
                       tni_video_side *out_side)
{
    const int64_t *shape = c->out.tensor.shape;
    const int32_t length = c->args->layout == TN_LAYOUT_BLHD ? 1 : 2, heads = 3 - length;
    tni_video_view_make(c, c->wide, tni_video_at(c, span), 4, shape, NULL, out);
    *out_side = (tni_video_side){.tensor = out->tensor, .first = tni_video_at(c, span)};
    const int32_t from[] = {0, heads, length, 3};
    for (int32_t d = 0; d < 4; d++) {
        out_side->shape[d] = out->shape[from[d]];
        out_side->stride[d] = out->stride[from[d]];
    }
}

/* Computes attention over the selected tiles. */
static tn_status compute_fine(tni_video_call *c, const tn_tensor *to, tn_error *err)
{
    const tni_video_grid *grid = &c->grid;
    const int64_t batch = c->q.shape[0], heads = c->q.shape[1], lists = batch * heads * grid->tiles;
    const int64_t slots[] = {grid->slots}, blocks[] = {grid->blocks}, entries[] = {lists * c->keep};
    const int64_t starts[] = {batch, heads, grid->tiles + 1};
    tni_video_view order, sizes, of_starts, listed;
    tni_video_view_make(c, TN_I32, tni_video_at(c, &c->order), 1, slots, NULL, &order);
    tni_video_view_make(c, TN_I32, tni_video_at(c, &c->sizes), 1, blocks, NULL, &sizes);
    tni_video_view_make(c, TN_I32, tni_video_at(c, &c->starts), 3, starts, NULL, &of_starts);
    tni_video_view_make(c, TN_I32, (uintptr_t)selected_of(c), 1, entries, NULL, &listed);
    if (!c->plan) {
        int32_t *start = of_starts.tensor.data;
        tni_video_write_order(grid, order.tensor.data);
        tni_video_write_sizes(grid, sizes.tensor.data);
        for (int64_t head = 0; head < batch * heads; head++) {
            for (int64_t n = 0; n <= grid->tiles; n++)
                *start++ = (int32_t)((head * grid->tiles + n) * c->keep);
        }
    }
    return TNI_VIDEO_CALL(c, "attention", attention_sparse, err, .q = &c->q.tensor,
                          .k = &c->k.tensor, .v = &c->v.tensor, .out = to,
                          .starts = &of_starts.tensor, .blocks = &listed.tensor,
                          .block_sizes = &sizes.tensor, .order = &order.tensor, .scale = c->scale,
                          .set = TN_ATTENTION_SET_SCALE, .block_queries = grid->block,
                          .block_keys = grid->block, .layout = c->args->layout);
}

/* to = from + or * the coarse stage of each token's tile; `to` may be `from`. */
static tn_status join_coarse(tni_video_call *c, const char *stage, int32_t kind,
                             const tni_video_side *from, const tni_video_side *to, tn_error *err)
{
    tn_status status = TN_OK;
    for (int64_t b = 0; b < batch_of(c) && !status; b++) {
        for (int32_t box = 0; box < TNI_VIDEO_BOXES && !status; box++) {
            tni_video_view in, coarse, out;
            if (!tni_video_box_exists(&c->grid, box))
                continue;
            tni_video_view_tokens(c, from, b, box, &in);
            tni_video_view_tokens(c, to, b, box, &out);
            tni_video_view_tiles(c, tni_video_at(c, &c->coarse), c->wide, to->shape[1],
                                 to->shape[3], b, box, &coarse);
            status = TNI_VIDEO_CALL(c, stage, binary, err, .in = &in.tensor,
                                    .other = &coarse.tensor, .out = &out.tensor, .kind = kind);
        }
    }
    return status;
}

/* Sums of 16-bit floats are made in f32 and then rounded to out. */
static tn_status add_low(tni_video_call *c, const tni_video_view *fine, const tni_video_side *sum,
                         tn_error *err)
{
    tni_video_view gated;
    tni_video_side of_gated;
    tn_status status;
    if (c->gate.shape[0] > 0) {
        view_whole(c, &c->gated, &gated, &of_gated);
        status = TNI_VIDEO_CALL(c, "gate", cast, err, .in = &c->gate.tensor, .out = &gated.tensor);
        if (!status)
            status = join_coarse(c, "gate", TN_BINARY_MUL, &of_gated, &of_gated, err);
        if (!status)
            status =
                TNI_VIDEO_CALL(c, "sum", binary, err, .in = &fine->tensor, .other = &gated.tensor,
                               .out = &fine->tensor, .kind = TN_BINARY_ADD);
    } else {
        status = join_coarse(c, "sum", TN_BINARY_ADD, sum, sum, err);
    }
    return status ? status
                  : TNI_VIDEO_CALL(c, "sum", cast, err, .in = &fine->tensor, .out = &c->out.tensor);
}

tn_status tni_video_sparse(tni_video_call *c, tn_error *err)
{
    const bool gate = c->gate.shape[0] > 0, low = c->dtype != c->wide;
    tni_video_view fine;
    tni_video_side sum = c->out;
    tn_status status = compute_coarse(c, err);
    if (status || c->selects_only)
        return status;
    if (c->fine.bytes > 0)
        view_whole(c, &c->fine, &fine, &sum);
    status = compute_fine(c, c->fine.bytes > 0 ? &fine.tensor : &c->out.tensor, err);
    if (status)
        return status;
    if (low)
        return add_low(c, &fine, &sum, err);
    if (!gate)
        return join_coarse(c, "sum", TN_BINARY_ADD, &sum, &c->out, err);
    status = join_coarse(c, "gate", TN_BINARY_MUL, &c->gate, &c->out, err);
    return status
               ? status
               : TNI_VIDEO_CALL(c, "sum", binary, err, .in = &c->out.tensor, .other = &fine.tensor,
                                .out = &c->out.tensor, .kind = TN_BINARY_ADD);
}
