/* The geometry: tiles of a canvas, the order of their tokens, and the tiles in windows. */
#include "attention_video.h"

#include "base/checked.h"

#include <inttypes.h>

static const char where[] = "tn_attention_video";

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static tn_status read_box(const char *name, const int64_t *from, int64_t smallest, int64_t *out,
                          tn_error *err)
{
    if (!from)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "%s: expected three numbers, for frames, rows and columns; got NULL", name);
    for (int32_t axis = 0; axis < TNI_VIDEO_AXES; axis++) {
        if (from[axis] < smallest || from[axis] > INT32_MAX)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                           "%s[%d]: expected %" PRId64 " to %" PRId32 ", got %" PRId64, name,
                           (int)axis, smallest, INT32_MAX, from[axis]);
        out[axis] = from[axis];
    }
    return TN_OK;
}

static tn_status reject_count(const char *name, const char *what, tn_error *err)
{
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                   "%s: expected at most %" PRId32 " %s, got more; %s", name, INT32_MAX, what,
                   name[0] == 'w' ? "give smaller windows or larger tiles"
                                  : "give a smaller canvas or tile");
}

/* The number of tiles along an axis that a tile sees. */
static int64_t seen_along(const tni_video_grid *grid, int32_t axis, int64_t window)
{
    return least(window / 2 * 2 + 1, grid->counts[axis]);
}

/* Adds the entries of a window; false if they are too many. */
static bool count_entries(const tni_video_grid *grid, const int64_t *window, int64_t *io_entries)
{
    const int64_t text = grid->blocks - grid->tiles;
    int64_t seen = 1, all = 0, rest = 0;
    for (int32_t axis = 0; axis < TNI_VIDEO_AXES; axis++)
        seen *= seen_along(grid, axis, window[axis]); /* at most the tiles */
    return tni_mul_i64(grid->tiles, seen + text, &all) && tni_mul_i64(text, grid->blocks, &rest) &&
           tni_add_i64(all, rest, &all) && tni_add_i64(*io_entries, all, io_entries) &&
           *io_entries <= INT32_MAX;
}

static tn_status read_windows(const tn_attention_video_args *args, tni_video_grid *out,
                              tn_error *err)
{
    int64_t window[TNI_VIDEO_AXES] = {0};
    out->windows = args->windows;
    out->window_count = args->window_count;
    out->entries = 0;
    if (args->window_count < 0 || (args->window_count > 0 && !args->windows))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "window_count: expected the number of windows, got %d%s",
                       (int)args->window_count, args->windows ? "" : "; windows is NULL");
    for (int32_t n = 0; n < args->window_count; n++) {
        const tn_status status =
            read_box("windows", args->windows + (size_t)TNI_VIDEO_AXES * (size_t)n, 1, window, err);
        if (status)
            return status;
        if (!count_entries(out, window, &out->entries))
            return reject_count("windows", "pairs of tiles", err);
    }
    return TN_OK;
}

tn_status tni_video_grid_make(const tn_attention_video_args *args, int64_t text,
                              tni_video_grid *out, tn_error *err)
{
    static const int64_t tiles[TN_VIDEO_COUNT][TNI_VIDEO_AXES] = {{6, 8, 8}, {4, 4, 4}};
    *out = (tni_video_grid){.tiles = 1, .tokens = 1, .block = 1, .text = text};
    if (args->kind < 0 || args->kind >= TN_VIDEO_COUNT)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "kind: expected 0 (sliding tile) or 1 (sparse), got %d", (int)args->kind);
    tn_status status =
        read_box("canvas", args->canvas, args->kind == TN_VIDEO_SPARSE, out->canvas, err);
    if (!status)
        status = read_box("tile", args->tile ? args->tile : tiles[args->kind], 1, out->tile, err);
    if (status)
        return status;
    if (text < 0)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "text: expected at least 0 tokens, got %" PRId64, text);
    bool fits = true;
    for (int32_t axis = 0; axis < TNI_VIDEO_AXES; axis++) {
        const int64_t size = out->canvas[axis], tile = out->tile[axis];
        out->counts[axis] = size / tile + (size % tile > 0);
        fits = fits && tni_mul_i64(out->tiles, out->counts[axis], &out->tiles) &&
               tni_mul_i64(out->tokens, size, &out->tokens) &&
               tni_mul_i64(out->block, tile, &out->block) && out->block <= INT32_MAX;
    }
    fits = fits && tni_mul_i64(out->tiles, out->block, &out->slots) &&
           tni_add_i64(out->slots, text, &out->slots) && out->slots <= INT32_MAX;
    if (!fits)
        return reject_count("canvas", "slots of tiles and tokens of text", err);
    out->blocks = out->tiles + text / out->block + (text % out->block > 0);
    return read_windows(args, out, err);
}

/* The tokens of a tile along an axis, from *out_first on. */
static int64_t tokens_along(const tni_video_grid *grid, int32_t axis, int64_t tile,
                            int64_t *out_first)
{
    *out_first = tile * grid->tile[axis];
    return least(grid->tile[axis], grid->canvas[axis] - *out_first);
}

/* The next tile in raster order. */
static void move_on(const tni_video_grid *grid, int64_t *at)
{
    for (int32_t axis = TNI_VIDEO_AXES; axis-- > 0;) {
        if (++at[axis] < grid->counts[axis])
            return;
        at[axis] = 0;
    }
}

/* Writes the tokens of a tile to its slots; empty slots have its first token. */
static void write_tile(const tni_video_grid *grid, const int64_t *at, int32_t *out)
{
    int64_t first[TNI_VIDEO_AXES], count[TNI_VIDEO_AXES], slot = 0;
    for (int32_t axis = 0; axis < TNI_VIDEO_AXES; axis++)
        count[axis] = tokens_along(grid, axis, at[axis], &first[axis]);
    for (int64_t t = first[0]; t < first[0] + count[0]; t++) {
        for (int64_t h = first[1]; h < first[1] + count[1]; h++) {
            const int64_t row = (t * grid->canvas[1] + h) * grid->canvas[2];
            for (int64_t w = first[2]; w < first[2] + count[2]; w++)
                out[slot++] = (int32_t)(row + w);
        }
    }
    for (; slot < grid->block; slot++)
        out[slot] = out[0];
}

void tni_video_write_order(const tni_video_grid *grid, int32_t *out)
{
    int64_t at[TNI_VIDEO_AXES] = {0};
    for (int64_t n = 0; n < grid->tiles; n++) {
        write_tile(grid, at, out + n * grid->block);
        move_on(grid, at);
    }
    for (int64_t i = 0; i < grid->text; i++)
        out[grid->tiles * grid->block + i] = (int32_t)(grid->tokens + i);
}

void tni_video_write_sizes(const tni_video_grid *grid, int32_t *out)
{
    int64_t at[TNI_VIDEO_AXES] = {0}, first, left = grid->text;
    for (int64_t n = 0; n < grid->tiles; n++) {
        int64_t size = 1;
        for (int32_t axis = 0; axis < TNI_VIDEO_AXES; axis++)
            size *= tokens_along(grid, axis, at[axis], &first);
        out[n] = (int32_t)size;
        move_on(grid, at);
    }
    for (int64_t n = grid->tiles; n < grid->blocks; n++) {
        out[n] = (int32_t)least(grid->block, left);
        left -= out[n];
    }
}

/* The first of the tiles along an axis that tile `at` sees: a window that is moved inward at the
 * ends. */
static int64_t first_seen(const tni_video_grid *grid, int32_t axis, int64_t at, int64_t window)
{
    const int64_t half = window / 2;
    const int64_t centre = most(half, least(at, grid->counts[axis] - 1 - half));
    return most(0, least(centre - half, grid->counts[axis] - seen_along(grid, axis, window)));
}

/* Writes the tiles that a tile sees, and returns where they end. */
static int32_t *write_window(const tni_video_grid *grid, const int64_t *at, const int64_t *window,
                             int32_t *out)
{
    int64_t first[TNI_VIDEO_AXES], count[TNI_VIDEO_AXES];
    for (int32_t axis = 0; axis < TNI_VIDEO_AXES; axis++) {
        first[axis] = first_seen(grid, axis, at[axis], window[axis]);
        count[axis] = seen_along(grid, axis, window[axis]);
    }
    for (int64_t t = first[0]; t < first[0] + count[0]; t++) {
        for (int64_t h = first[1]; h < first[1] + count[1]; h++) {
            const int64_t row = (t * grid->counts[1] + h) * grid->counts[2];
            for (int64_t w = first[2]; w < first[2] + count[2]; w++)
                *out++ = (int32_t)(row + w);
        }
    }
    return out;
}

static int32_t *write_range(int64_t from, int64_t to, int32_t *out)
{
    for (int64_t n = from; n < to; n++)
        *out++ = (int32_t)n;
    return out;
}

void tni_video_write_lists(const tni_video_grid *grid, int32_t *out_starts, int32_t *out_blocks)
{
    int32_t *to = out_blocks;
    for (int64_t n = 0; n < grid->window_count; n++) {
        int64_t at[TNI_VIDEO_AXES] = {0};
        for (int64_t block = 0; block < grid->blocks; block++) {
            *out_starts++ = (int32_t)(to - out_blocks);
            if (block < grid->tiles) {
                to = write_window(grid, at, grid->windows + TNI_VIDEO_AXES * n, to);
                to = write_range(grid->tiles, grid->blocks, to);
                move_on(grid, at);
            } else {
                to = write_range(0, grid->blocks, to);
            }
        }
        *out_starts++ = (int32_t)(to - out_blocks);
    }
}

tn_status tn_attention_video_tables_get(const tn_attention_video_args *args,
                                        tn_attention_video_tables *io, tn_error *err)
{
    tni_video_grid grid;
    if (!args || args->struct_size < TN_UP_TO(tn_attention_video_args, window_count) || !io ||
        io->struct_size < TN_UP_TO(tn_attention_video_tables, listed))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_attention_video_tables_get",
                       "expected args and io with struct_size set; use TN_ARGS");
    if (!io->starts != !io->listed)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_attention_video_tables_get",
                       "expected both starts and listed, or neither; got %s",
                       io->starts ? "starts" : "listed");
    const tn_status status = tni_video_grid_make(args, io->text, &grid, err);
    if (status)
        return status;
    io->blocks = grid.blocks;
    io->slots = grid.slots;
    io->entries = grid.entries;
    if (io->order)
        tni_video_write_order(&grid, io->order);
    if (io->sizes)
        tni_video_write_sizes(&grid, io->sizes);
    if (io->starts)
        tni_video_write_lists(&grid, io->starts, io->listed);
    return TN_OK;
}
