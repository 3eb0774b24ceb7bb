/* Sliding tiles: one call of attention-sparse, whose order is that of the tiles. */
#include "attention_video.h"

tn_status tni_video_sliding(tni_video_call *c, tn_error *err)
{
    const tni_video_grid *grid = &c->grid;
    const int64_t slots[] = {grid->slots}, blocks[] = {grid->blocks}, entries[] = {grid->entries};
    const int64_t starts[] = {grid->window_count, grid->blocks + 1};
    tni_video_view order, sizes, of_starts, listed;
    tni_video_view_make(c, TN_I32, tni_video_at(c, &c->order), 1, slots, NULL, &order);
    tni_video_view_make(c, TN_I32, tni_video_at(c, &c->sizes), 1, blocks, NULL, &sizes);
    tni_video_view_make(c, TN_I32, tni_video_at(c, &c->starts), 2, starts, NULL, &of_starts);
    tni_video_view_make(c, TN_I32, tni_video_at(c, &c->blocks), 1, entries, NULL, &listed);
    if (!c->plan) {
        tni_video_write_order(grid, order.tensor.data);
        tni_video_write_sizes(grid, sizes.tensor.data);
        tni_video_write_lists(grid, of_starts.tensor.data, listed.tensor.data);
    }
    return TNI_VIDEO_CALL(c, "attention", attention_sparse, err, .q = &c->q.tensor,
                          .k = &c->k.tensor, .v = &c->v.tensor, .out = &c->out.tensor,
                          .starts = &of_starts.tensor, .blocks = &listed.tensor,
                          .block_sizes = &sizes.tensor, .order = &order.tensor, .scale = c->scale,
                          .set = TN_ATTENTION_SET_SCALE, .block_queries = grid->block,
                          .block_keys = grid->block, .layout = c->args->layout);
}
