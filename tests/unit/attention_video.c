/* Attention for video against attention with a mask of all pairs of tokens, which follows from the coordinates of the
 * tokens alone: every small canvas, windows, text, means, selection with ties, and what is refused. */
#include "test.h"

#include "compose/attention_video/attention_video.h"
#include "tenon/tenon.h"

#include <math.h>
#include <stdbool.h>

enum { HEADS = 2, SIZE = 4, LENGTH_MOST = 12 * 12 * 12 + 40, NUMBERS = HEADS * LENGTH_MOST * SIZE };

static float q_numbers[NUMBERS], k_numbers[NUMBERS], v_numbers[NUMBERS], gate_numbers[NUMBERS];
static float found[NUMBERS], wanted[NUMBERS];
static uint8_t seen[HEADS * LENGTH_MOST * LENGTH_MOST];

static uint32_t roll(uint32_t below)
{
    static uint64_t state;
    if (!state)
        state = test_seed();
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((state >> 33) % below);
}

static void roll_numbers(float *to, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = (float)roll(2001) / 1000 - 1;
}

/* A dense tensor of [1, heads, length, size], or [1, length, heads, size]. */
typedef struct piece {
    tn_tensor tensor;
    int64_t shape[4];
} piece;

static const tn_tensor *lay(piece *p, float *data, int64_t length, int32_t layout)
{
    const int32_t at = layout == TN_LAYOUT_BLHD ? 1 : 2;
    p->shape[0] = 1;
    p->shape[at] = length;
    p->shape[3 - at] = HEADS;
    p->shape[3] = SIZE;
    p->tensor = (tn_tensor){
        .data = data, .device_type = TN_DLPACK_CPU, .ndim = 4, .dtype = TN_F32, .shape = p->shape};
    return &p->tensor;
}

static int64_t element(int64_t h, int64_t i, int64_t d, int64_t length, int32_t layout)
{
    return layout == TN_LAYOUT_BLHD ? (i * HEADS + h) * SIZE + d : (h * length + i) * SIZE + d;
}

/* What a token's coordinate along an axis is divided by to get its tile; the coordinates of a token. */
static void tile_of(const int64_t *canvas, const int64_t *tile, int64_t token, int64_t *out)
{
    out[2] = token % canvas[2] / tile[2];
    out[1] = token / canvas[2] % canvas[1] / tile[1];
    out[0] = token / canvas[2] / canvas[1] / tile[0];
}

/* Whether a tile sees another along an axis: within half a window of a centre that is as near to the tile as the
 * window's fitting permits. */
static bool sees_along(int64_t tiles, int64_t from, int64_t to, int64_t window)
{
    const int64_t half = window / 2, size = 2 * half + 1;
    if (size >= tiles)
        return true;
    int64_t first = from - half;
    while (first < 0)
        first++;
    while (first + size > tiles)
        first--;
    return to >= first && to < first + size;
}

static void write_seen(const int64_t *canvas, const int64_t *tile, const int64_t *windows,
                       int64_t count, int64_t length)
{
    const int64_t tokens = canvas[0] * canvas[1] * canvas[2];
    for (int64_t h = 0; h < HEADS; h++) {
        const int64_t *window = windows + 3 * (count == 1 ? 0 : h);
        for (int64_t i = 0; i < length; i++) {
            int64_t from[3], to[3];
            if (i < tokens)
                tile_of(canvas, tile, i, from);
            for (int64_t j = 0; j < length; j++) {
                bool sees = true;
                if (i < tokens && j < tokens) {
                    tile_of(canvas, tile, j, to);
                    for (int32_t axis = 0; axis < 3; axis++)
                        sees = sees && sees_along((canvas[axis] + tile[axis] - 1) / tile[axis],
                                                  from[axis], to[axis], window[axis]);
                }
                seen[(h * length + i) * length + j] = sees;
            }
        }
    }
}

static void attend_by_mask(int64_t length, double scale, int32_t layout)
{
    piece q, k, v, out;
    int64_t shape[] = {HEADS, length, length};
    const tn_tensor mask = {
        .data = seen, .device_type = TN_DLPACK_CPU, .ndim = 3, .dtype = TN_BOOL, .shape = shape};
    tn_error err;
    if (tn_attention(NULL,
                     TN_ARGS(attention, .q = lay(&q, q_numbers, length, layout),
                             .k = lay(&k, k_numbers, length, layout),
                             .v = lay(&v, v_numbers, length, layout),
                             .out = lay(&out, wanted, length, layout), .mask_tensor = &mask,
                             .scale = scale, .layout = layout),
                     &err))
        fail_msg("%s", err.message);
}

static void expect_same(int64_t length, const char *what, const int64_t *canvas)
{
    for (int64_t i = 0; i < HEADS * length * SIZE; i++) {
        if (!(fabsf(found[i] - wanted[i]) <= 2e-5F))
            fail_msg("%s: canvas %d %d %d: expected %g, got %g at %d", what, (int)canvas[0],
                     (int)canvas[1], (int)canvas[2], (double)wanted[i], (double)found[i], (int)i);
    }
}

static void check_sliding(const int64_t *canvas, const int64_t *tile, const int64_t *windows,
                          int32_t count, int64_t text, int32_t layout)
{
    const int64_t length = canvas[0] * canvas[1] * canvas[2] + text;
    const double scale = roll(2) ? 0.4 : 0;
    piece q, k, v, out;
    tn_error err;
    roll_numbers(q_numbers, HEADS * length * SIZE);
    roll_numbers(k_numbers, HEADS * length * SIZE);
    roll_numbers(v_numbers, HEADS * length * SIZE);
    memset(found, 0xFF, sizeof found);
    write_seen(canvas, tile, windows, count, length);
    attend_by_mask(length, scale, layout);
    if (tn_attention_video(NULL,
                           TN_ARGS(attention_video, .q = lay(&q, q_numbers, length, layout),
                                   .k = lay(&k, k_numbers, length, layout),
                                   .v = lay(&v, v_numbers, length, layout),
                                   .out = lay(&out, found, length, layout), .canvas = canvas,
                                   .tile = tile, .windows = windows, .window_count = count,
                                   .scale = scale, .layout = layout),
                           &err))
        fail_msg("%s", err.message);
    expect_same(length, "sliding tiles", canvas);
    if (length * HEADS * SIZE < NUMBERS) /* nothing is written behind out */
        assert_true(isnan(found[length * HEADS * SIZE]));
}

/* Windows of 1 to 15 tiles along each axis: even, odd, larger than the canvas. */
static void roll_windows(int64_t *windows)
{
    for (int32_t n = 0; n < 3 * HEADS; n++)
        windows[n] = 1 + (int64_t)roll(roll(4) ? 5 : 15);
}

static void every_small_canvas(void **state)
{
    (void)state;
    uint64_t index = 0;
    for (int64_t t = 1; t <= 12; t++) {
        for (int64_t h = 1; h <= 12; h++) {
            for (int64_t w = 1; w <= 12; w++) {
                const int64_t canvas[] = {t, h, w};
                const int64_t tile[] = {1 + (int64_t)roll(4), 1 + (int64_t)roll(4),
                                        1 + (int64_t)roll(4)};
                int64_t windows[3 * HEADS];
                if (!test_sampled(index++, test_reduced() ? 160 : 24))
                    continue;
                roll_windows(windows);
                check_sliding(canvas, tile, windows, roll(3) ? HEADS : 1,
                              roll(2) ? (int64_t)roll(40) : 0, (int32_t)roll(2));
            }
        }
    }
}

/* Without a canvas, everything is text, and every token sees every other. */
static void text_alone(void **state)
{
    (void)state;
    static const int64_t canvas[] = {0, 4, 4}, tile[] = {2, 2, 2}, window[] = {1, 1, 1};
    check_sliding(canvas, tile, window, 1, 37, TN_LAYOUT_BLHD);
    check_sliding(canvas, tile, window, 1, 8, TN_LAYOUT_BHLD);
    check_sliding(canvas, tile, window, 1, 1, TN_LAYOUT_BHLD);
}

/* The definition of video sparse attention in double, for `wanted`: the coarse stage to `coarse`, and the mask of the
 * selected tiles. */
static double coarse[HEADS * LENGTH_MOST * SIZE];

static int64_t number_of(const int64_t *canvas, const int64_t *tile, int64_t token)
{
    const int64_t rows = (canvas[1] + tile[1] - 1) / tile[1],
                  columns = (canvas[2] + tile[2] - 1) / tile[2];
    int64_t at[3];
    tile_of(canvas, tile, token, at);
    return (at[0] * rows + at[1]) * columns + at[2];
}

/* The first token of a tile. */
static int64_t token_of(const int64_t *canvas, const int64_t *tile, int64_t number)
{
    int64_t token = 0;
    while (number_of(canvas, tile, token) != number)
        token++;
    return token;
}

enum { TILES_MOST = LENGTH_MOST };
static double means[3][TILES_MOST][SIZE], scores[TILES_MOST];
static uint8_t kept[TILES_MOST];

static void compute_means(const float *from, int64_t h, const int64_t *canvas, const int64_t *tile,
                          int64_t length, int64_t tiles, int32_t layout, double (*to)[SIZE])
{
    static int64_t counts[TILES_MOST];
    memset(to, 0, (size_t)tiles * sizeof *to);
    memset(counts, 0, (size_t)tiles * sizeof *counts);
    for (int64_t i = 0; i < length; i++) {
        const int64_t n = number_of(canvas, tile, i);
        counts[n]++;
        for (int64_t d = 0; d < SIZE; d++)
            to[n][d] += (double)from[element(h, i, d, length, layout)];
    }
    for (int64_t n = 0; n < tiles * SIZE; n++)
        to[n / SIZE][n % SIZE] /= (double)counts[n / SIZE];
}

/* Selects the tile with the greatest score `keep` times, the first of equal ones; returns the difference between the
 * least score that is selected and the greatest that is not. */
static double select_tiles(int64_t tiles, int64_t keep)
{
    double last = 0, next = -(double)INFINITY;
    memset(kept, 0, sizeof kept);
    for (int64_t n = 0; n < keep; n++) {
        int64_t best = -1;
        for (int64_t j = 0; j < tiles; j++) {
            if (!kept[j] && (best < 0 || scores[j] > scores[best]))
                best = j;
        }
        kept[best] = 1;
        last = scores[best];
    }
    for (int64_t j = 0; j < tiles; j++)
        next = !kept[j] && scores[j] > next ? scores[j] : next;
    return last - next;
}

/* Returns false if scores are too near to each other for f32 to select the same tiles. */
static bool define_sparse(const int64_t *canvas, const int64_t *tile, int64_t keep, double scale,
                          int32_t layout, bool exact)
{
    const int64_t length = canvas[0] * canvas[1] * canvas[2];
    const int64_t tiles = number_of(canvas, tile, length - 1) + 1;
    bool same = true;
    for (int64_t h = 0; h < HEADS; h++) {
        compute_means(q_numbers, h, canvas, tile, length, tiles, layout, means[0]);
        compute_means(k_numbers, h, canvas, tile, length, tiles, layout, means[1]);
        compute_means(v_numbers, h, canvas, tile, length, tiles, layout, means[2]);
        for (int64_t n = 0; n < tiles; n++) {
            double sum = 0, values[SIZE] = {0};
            for (int64_t j = 0; j < tiles; j++) {
                scores[j] = 0;
                for (int64_t d = 0; d < SIZE; d++)
                    scores[j] += scale * means[0][n][d] * means[1][j][d];
                sum += exp(scores[j]);
                for (int64_t d = 0; d < SIZE; d++)
                    values[d] += exp(scores[j]) * means[2][j][d];
            }
            same = (exact || select_tiles(tiles, keep) > 1e-5) && same;
            if (exact)
                (void)select_tiles(tiles, keep);
            for (int64_t i = 0; i < length; i++) {
                if (number_of(canvas, tile, i) != n)
                    continue;
                for (int64_t d = 0; d < SIZE; d++)
                    coarse[element(h, i, d, length, layout)] = values[d] / sum;
                for (int64_t j = 0; j < length; j++)
                    seen[(h * length + i) * length + j] = kept[number_of(canvas, tile, j)];
            }
        }
    }
    return same;
}

static void check_sparse(const int64_t *canvas, const int64_t *tile, int64_t keep, bool gate,
                         int32_t layout, bool exact)
{
    const int64_t length = canvas[0] * canvas[1] * canvas[2], numbers = HEADS * length * SIZE;
    piece q, k, v, out, of_gate;
    tn_error err;
    if (!define_sparse(canvas, tile, keep, 0.7, layout, exact))
        return;
    attend_by_mask(length, 0.7, layout);
    for (int64_t i = 0; i < numbers; i++)
        wanted[i] += (float)coarse[i] * (gate ? gate_numbers[i] : 1);
    memset(found, 0xFF, sizeof found);
    if (tn_attention_video(
            NULL,
            TN_ARGS(
                attention_video, .kind = TN_VIDEO_SPARSE, .q = lay(&q, q_numbers, length, layout),
                .k = lay(&k, k_numbers, length, layout), .v = lay(&v, v_numbers, length, layout),
                .gate = gate ? lay(&of_gate, gate_numbers, length, layout) : NULL,
                .out = lay(&out, found, length, layout), .canvas = canvas, .tile = tile,
                .keep = keep, .scale = 0.7, .layout = layout),
            &err))
        fail_msg("%s", err.message);
    expect_same(length, "video sparse", canvas);
}

static void every_small_canvas_sparsely(void **state)
{
    (void)state;
    uint64_t index = 0;
    for (int64_t t = 1; t <= 12; t++) {
        for (int64_t h = 1; h <= 12; h++) {
            for (int64_t w = 1; w <= 12; w++) {
                const int64_t canvas[] = {t, h, w};
                const int64_t tile[] = {1 + (int64_t)roll(4), 1 + (int64_t)roll(4),
                                        1 + (int64_t)roll(4)};
                const int64_t tiles = number_of(canvas, tile, t * h * w - 1) + 1;
                if (!test_sampled(index++, test_reduced() ? 200 : 32))
                    continue;
                roll_numbers(q_numbers, NUMBERS);
                roll_numbers(k_numbers, NUMBERS);
                roll_numbers(v_numbers, NUMBERS);
                roll_numbers(gate_numbers, NUMBERS);
                check_sparse(canvas, tile, 1 + (int64_t)roll((uint32_t)tiles), roll(2),
                             (int32_t)roll(2), false);
            }
        }
    }
}

/* Equal keys have equal scores: the first tiles are selected. Numbers are small whole ones, so that means and scores
 * are exact. */
static void ties_take_the_first_tiles(void **state)
{
    (void)state;
    static const int64_t canvas[] = {2, 4, 6}, tile[] = {1, 2, 2}, length = 48;
    for (int32_t turn = 0; turn < 20; turn++) {
        roll_numbers(v_numbers, NUMBERS);
        for (int64_t h = 0; h < HEADS; h++) {
            int64_t of_tile[12][SIZE];
            for (int64_t n = 0; n < 12 * SIZE; n++)
                of_tile[n / SIZE][n % SIZE] = (int64_t)roll(turn ? 2 : 1);
            for (int64_t i = 0; i < length; i++) {
                for (int64_t d = 0; d < SIZE; d++) {
                    const int64_t at = element(h, i, d, length, TN_LAYOUT_BHLD);
                    q_numbers[at] = 1;
                    k_numbers[at] = (float)of_tile[number_of(canvas, tile, i)][d];
                }
            }
        }
        check_sparse(canvas, tile, 1 + turn % 12, false, TN_LAYOUT_BHLD, true);
    }
}

/* Whether number i comes before number j: greater, or equal and earlier; NaN is less than all others. */
static bool comes_before(const double *row, int64_t i, int64_t j)
{
    if (isnan(row[i]) || isnan(row[j]))
        return !isnan(row[i]) || (isnan(row[j]) && i < j);
    return row[i] > row[j] || (row[i] == row[j] && i < j);
}

static void the_greatest_numbers_are_selected(void **state)
{
    (void)state;
    enum { ROWS = 37, COUNT = 70 };
    static const double special[] = {0,           -0.0,   (double)INFINITY, -(double)INFINITY,
                                     (double)NAN, 1e-310, -1e300,           2};
    static double wide[ROWS * COUNT], rounded[ROWS * COUNT];
    static float narrow[ROWS * COUNT];
    static int32_t selected[2][ROWS * COUNT];
    for (int64_t turn = 0; turn < 12; turn++) {
        const int64_t count = 1 + (int64_t)roll(COUNT), keep = 1 + (int64_t)roll((uint32_t)count);
        for (int64_t i = 0; i < ROWS * count; i++) {
            wide[i] = roll(3) ? (double)roll(7) - 3 : special[roll(8)];
            narrow[i] = (float)wide[i];
            rounded[i] = (double)narrow[i];
        }
        tni_video_select(TN_F64, wide, ROWS, count, keep, selected[0]);
        tni_video_select(TN_F32, narrow, ROWS, count, keep, selected[1]);
        for (int64_t row = 0; row < ROWS * 2; row++) {
            const double *numbers = (row % 2 ? rounded : wide) + row / 2 * count;
            const int32_t *found_row = selected[row % 2] + row / 2 * keep;
            for (int64_t i = 0, at = 0; i < count; i++) {
                int64_t before = 0;
                for (int64_t j = 0; j < count; j++)
                    before += j != i && comes_before(numbers, j, i);
                if (before < keep)
                    assert_int_equal(found_row[at++], i);
            }
        }
    }
}

static piece of_q, of_k, of_v, of_out, other;

/* A call on a canvas of 4x4x4, whose arguments `a` the further arguments of REFUSED change. */
static tn_attention_video_args args_of_64(const int64_t *canvas, const int64_t *tile)
{
    return (tn_attention_video_args){.struct_size = sizeof(tn_attention_video_args),
                                     .q = lay(&of_q, q_numbers, 64, 0),
                                     .k = lay(&of_k, k_numbers, 64, 0),
                                     .v = lay(&of_v, v_numbers, 64, 0),
                                     .out = lay(&of_out, found, 64, 0),
                                     .canvas = canvas,
                                     .tile = tile};
}

#define REFUSED(text, ...)                                                         \
    do {                                                                           \
        tn_attention_video_args a = args_of_64(canvas, tile);                      \
        (void)(__VA_ARGS__);                                                       \
        assert_int_equal(tn_attention_video(NULL, &a, &err), TN_INVALID_ARGUMENT); \
        if (!strstr(err.message, text))                                            \
            fail_msg("\"%s\" is not in \"%s\"", text, err.message);                \
    } while (0)
#define SLIDING a.windows = windows, a.window_count = 1
#define SPARSE  a.kind = TN_VIDEO_SPARSE

static void bad_geometry_is_refused(void **state)
{
    (void)state;
    static const int64_t canvas[] = {4, 4, 4}, tile[] = {2, 2, 2}, windows[] = {1, 1, 1, 1, 1, 1};
    static const int64_t wide[] = {4, 4, 5}, none[] = {4, 0, 4}, below[] = {4, -1, 4},
                         huge[] = {INT32_MAX, INT32_MAX, INT32_MAX};
    tn_error err;
    REFUSED("canvas: expected three numbers", SLIDING, a.canvas = NULL);
    REFUSED("canvas: expected at most the 64 tokens of q, got 80", SLIDING, a.canvas = wide);
    REFUSED("canvas[1]: expected 0 to 2147483647, got -1", SLIDING, a.canvas = below);
    REFUSED("canvas[1]: expected 1 to 2147483647, got 0", SPARSE, a.canvas = none);
    REFUSED("canvas: expected at most 2147483647 slots", SLIDING, a.canvas = huge);
    REFUSED("canvas: expected at most 2147483647 slots", SLIDING, a.tile = huge);
    REFUSED("tile[1]: expected 1 to 2147483647, got 0", SLIDING, a.tile = none);
    REFUSED("windows: expected one window, or 2 windows, one for each head; got 3", SLIDING,
            a.window_count = 3, a.windows = (const int64_t[]){1, 1, 1, 1, 1, 1, 1, 1, 1});
    REFUSED("windows: expected one window, or 2 windows", a.windows = windows);
    REFUSED("window_count: expected the number of windows, got 1; windows is NULL",
            a.window_count = 1);
    REFUSED("windows[1]: expected 1 to 2147483647, got 0", SLIDING, a.windows = none);
    REFUSED("kind: expected 0 (sliding tile) or 1 (sparse), got 2", SLIDING, a.kind = 2);
    REFUSED("keep: expected none for sliding tiles", SLIDING, a.keep = 2);
    REFUSED("sparsity: expected none for sliding tiles", SLIDING, a.sparsity = 0.5);
    REFUSED("gate: expected none for sliding tiles", SLIDING,
            a.gate = lay(&other, v_numbers, 64, 0));
    REFUSED("windows: expected none for sparse attention", SPARSE, SLIDING);
    REFUSED("q: expected 80 tokens in dimension 2, got 64", SPARSE, a.canvas = wide);
    REFUSED("sparsity: expected 0 to 1, got 1.5", SPARSE, a.sparsity = 1.5);
    REFUSED("sparsity: expected 0 to 1, got nan", SPARSE, a.sparsity = (double)NAN);
    REFUSED("keep: expected 1 to 8, the tiles, without sparsity; or 0; got 9", SPARSE, a.keep = 9);
    REFUSED("keep: expected 1 to 8, the tiles, without sparsity", SPARSE, a.keep = 2,
            a.sparsity = 0.5);
    REFUSED("k: expected 64 tokens in dimension 2, got 63", SLIDING,
            a.k = lay(&other, k_numbers, 63, 0));
    REFUSED("gate: expected 64 tokens in dimension 2, got 60", SPARSE,
            a.gate = lay(&other, v_numbers, 60, 0));
    REFUSED("gate shares memory with out", SPARSE, a.gate = lay(&other, found, 64, 0));
    REFUSED("layout: expected 0 (bhld) or 1 (blhd), got 2", SLIDING, a.layout = 2);
    REFUSED("scale: expected a finite number, got inf", SLIDING, a.scale = (double)INFINITY);
    REFUSED("set: expected TN_ATTENTION_SET_SCALE or 0, got 2", SLIDING, a.set = 2);
    REFUSED("q: the tensor is NULL", SLIDING, a.q = NULL);
    REFUSED("expected both workspace and workspace_bytes", SLIDING, a.workspace_bytes = 64);
    REFUSED("workspace: expected ", SLIDING, a.workspace = found, a.workspace_bytes = 64);
    memset(found, 0xFF, sizeof found);
    REFUSED("share", SLIDING, a.k = lay(&other, found, 64, 0));
    assert_true(isnan(found[0]));
    assert_int_equal(tn_attention_video(NULL, NULL, &err), TN_INVALID_ARGUMENT);
}

/* The table of selected tiles: with a result and alone, in both layouts. */
static void the_selection_is_written(void **state)
{
    (void)state;
    enum { TILES = 12, LENGTH = 60, ENTRIES = HEADS * TILES * TILES };
    static const int64_t canvas[] = {3, 4, 5}, tile[] = {2, 2, 2};
    static int32_t table[2][ENTRIES + 1];
    for (int64_t keep = 1; keep <= TILES; keep++) {
        const int32_t layout = (int32_t)roll(2);
        int64_t shape[] = {1, HEADS, TILES, keep};
        tn_tensor selected = {.data = table[0],
                              .device_type = TN_DLPACK_CPU,
                              .ndim = 4,
                              .dtype = TN_I32,
                              .shape = shape};
        piece q, k, v, out, of_gate;
        tn_error err;
        roll_numbers(q_numbers, NUMBERS);
        roll_numbers(k_numbers, NUMBERS);
        roll_numbers(v_numbers, NUMBERS);
        if (!define_sparse(canvas, tile, keep, 0.7, layout, false))
            continue;
        tn_attention_video_args args = {.struct_size = sizeof args,
                                        .kind = TN_VIDEO_SPARSE,
                                        .q = lay(&q, q_numbers, LENGTH, layout),
                                        .k = lay(&k, k_numbers, LENGTH, layout),
                                        .v = lay(&v, v_numbers, LENGTH, layout),
                                        .out = lay(&out, wanted, LENGTH, layout),
                                        .canvas = canvas,
                                        .tile = tile,
                                        .keep = keep,
                                        .scale = 0.7,
                                        .layout = layout};
        assert_int_equal(tn_attention_video(NULL, &args, &err), TN_OK);
        memset(table, 0xFF, sizeof table);
        memset(found, 0xFF, sizeof found);
        args.out = lay(&out, found, LENGTH, layout);
        args.selected = &selected;
        assert_int_equal(tn_attention_video(NULL, &args, &err), TN_OK);
        assert_memory_equal(found, wanted, (size_t)HEADS * LENGTH * SIZE * sizeof(float));
        selected.data = table[1];
        args.out = args.v = NULL;
        args.gate = lay(&of_gate, gate_numbers, 7, layout); /* is not read */
        assert_int_equal(tn_attention_video(NULL, &args, &err), TN_OK);
        assert_memory_equal(table[0], table[1], sizeof table[0]);
        assert_int_equal(table[1][HEADS * TILES * keep], -1);
        const int64_t last = LENGTH - 1; /* its tile is the last one */
        for (int64_t n = 0, at = 0; n < TILES; n++) {
            if (seen[((HEADS - 1) * LENGTH + last) * LENGTH + token_of(canvas, tile, n)])
                assert_int_equal(table[0][((HEADS - 1) * TILES + TILES - 1) * keep + at++], n);
        }
    }
}

static void bad_selections_are_refused(void **state)
{
    (void)state;
    static const int64_t canvas[] = {4, 4, 4}, tile[] = {2, 2, 2}, windows[] = {1, 1, 1};
    static int32_t table[HEADS * 8 * 8 + 1];
    int64_t shape[] = {1, HEADS, 8, 8}, apart[] = {HEADS * 64, 64, 8, 2};
    const tn_tensor right = {
        .data = table, .device_type = TN_DLPACK_CPU, .ndim = 4, .dtype = TN_I32, .shape = shape};
    tn_tensor selected = right;
    tn_error err;
    REFUSED("selected: expected none for sliding tiles", SLIDING, a.selected = &selected);
    REFUSED("selected: expected aligned contiguous i32 of 1 x 2 x 8 x 3", SPARSE, a.keep = 3,
            a.selected = &selected);
    selected.dtype = TN_F32;
    REFUSED("selected: expected aligned contiguous i32", SPARSE, a.selected = &selected);
    selected = right;
    selected.strides = apart;
    REFUSED("selected: expected aligned contiguous i32", SPARSE, a.selected = &selected);
    selected = right;
    selected.byte_offset = 2;
    REFUSED("selected: expected aligned contiguous i32", SPARSE, a.selected = &selected);
    selected = right;
    selected.ndim = 3;
    REFUSED("selected: expected aligned contiguous i32", SPARSE, a.selected = &selected);
    selected = right;
    selected.data = q_numbers;
    REFUSED("selected shares memory with q", SPARSE, a.selected = &selected);
    selected.data = found;
    REFUSED("selected shares memory with out", SPARSE, a.selected = &selected);
    selected.data = k_numbers;
    REFUSED("selected shares memory with k", SPARSE, a.selected = &selected, a.out = NULL);
    selected.data = NULL;
    REFUSED("selected", SPARSE, a.selected = &selected);
    REFUSED("k: expected 64 tokens in dimension 2, got 63", SPARSE, a.selected = &right,
            a.out = NULL, a.k = lay(&other, k_numbers, 63, 0));
    REFUSED("out: the tensor is NULL", SPARSE, a.out = NULL);
    tn_attention_video_args args = args_of_64(canvas, tile);
    tn_attention_video_plan *plan = NULL;
    args.kind = TN_VIDEO_SPARSE;
    args.out = NULL;
    args.selected = &selected; /* without data: explained */
    assert_int_equal(tn_attention_video_explain(NULL, &args, &plan, &err), TN_OK);
    assert_string_equal(tn_attention_video_part_get(plan, 2)->stage, "scores");
    assert_null(tn_attention_video_part_get(plan, 3));
    tn_attention_video_plan_release(plan);
}

static void calls_are_explained(void **state)
{
    (void)state;
    static const int64_t canvas[] = {5, 6, 7}, windows[] = {1, 3, 2}, tile[] = {2, 3, 4};
    for (int32_t kind = 0; kind < TN_VIDEO_COUNT; kind++) {
        piece q, k, v, out;
        tn_attention_video_plan *plan = NULL;
        tn_attention_video_info info = {.struct_size = sizeof info};
        tn_attention_video_args args = {.struct_size = sizeof args,
                                        .kind = kind,
                                        .q = lay(&q, NULL, 210 + 8 * (1 - kind), 1),
                                        .k = lay(&k, NULL, 210 + 8 * (1 - kind), 1),
                                        .v = lay(&v, NULL, 210 + 8 * (1 - kind), 1),
                                        .out = lay(&out, NULL, 210 + 8 * (1 - kind), 1),
                                        .canvas = canvas,
                                        .tile = tile,
                                        .windows = kind ? NULL : windows,
                                        .window_count = kind ? 0 : 1,
                                        .sparsity = kind ? 0.5 : 0,
                                        .layout = 1};
        tn_error err;
        if (tn_attention_video_explain(NULL, &args, &plan, &err))
            fail_msg("%s", err.message);
        assert_int_equal(tn_attention_video_info_get(plan, &info, &err), TN_OK);
        assert_int_equal(info.tiles, 12);
        assert_int_equal(info.blocks, kind ? 12 : 13);
        assert_int_equal(info.slots, 12 * 24 + (kind ? 0 : 8));
        assert_int_equal(info.keep, kind ? 6 : 0);
        assert_true(fabs(info.density - (kind ? 0.5 : (12 * 5 + 13) / 169.0)) < 1e-12);
        assert_true(info.workspace_bytes > 0);
        bool attends = false;
        assert_true(info.parts >= 1);
        for (size_t i = 0; i < info.parts; i++) {
            const tn_attention_video_part *part = tn_attention_video_part_get(plan, i);
            assert_true(part->kernel[0] != '\0');
            attends = attends || (strcmp(part->stage, "attention") == 0 &&
                                  strstr(part->problem, "attention-sparse:f32:"));
        }
        assert_true(attends);
        assert_null(tn_attention_video_part_get(plan, info.parts));
        tn_attention_video_plan_release(plan);
        args.window_count = 5;
        assert_int_equal(tn_attention_video_explain(NULL, &args, &plan, &err), TN_INVALID_ARGUMENT);
    }
}

/* Results do not depend on whose workspace is used; 16-bit floats are rounded once. */
static void workspaces_and_low_precision(void **state)
{
    (void)state;
    static const int64_t canvas[] = {3, 4, 5}, tile[] = {2, 2, 2}, length = 60;
    static uint16_t low[4][HEADS * 60 * SIZE], low_out[2][HEADS * 60 * SIZE];
    static _Alignas(64) char workspace[1 << 16];
    float *const numbers[] = {q_numbers, k_numbers, v_numbers, gate_numbers};
    piece of[5], wide;
    tn_error err;
    for (int32_t n = 0; n < 4; n++) {
        roll_numbers(numbers[n], NUMBERS);
        lay(&of[n], numbers[n], length, 1);
        lay(&wide, (float *)(void *)low[n], length, 1);
        wide.tensor.dtype = TN_BF16;
        assert_int_equal(
            tn_cast(NULL, TN_ARGS(cast, .in = &of[n].tensor, .out = &wide.tensor), &err), TN_OK);
        assert_int_equal(
            tn_cast(NULL, TN_ARGS(cast, .in = &wide.tensor, .out = &of[n].tensor), &err), TN_OK);
    }
    for (int32_t gate = 0; gate < 2; gate++) {
        tn_attention_video_args args = {.struct_size = sizeof args,
                                        .kind = TN_VIDEO_SPARSE,
                                        .q = &of[0].tensor,
                                        .k = &of[1].tensor,
                                        .v = &of[2].tensor,
                                        .gate = gate ? &of[3].tensor : NULL,
                                        .out = lay(&of[4], wanted, length, 1),
                                        .canvas = canvas,
                                        .tile = tile,
                                        .keep = 12, /* all: rounded means may not change a choice */
                                        .layout = 1};
        assert_int_equal(tn_attention_video(NULL, &args, &err), TN_OK);
        args.workspace = workspace;
        args.workspace_bytes = sizeof workspace;
        args.out = lay(&of[4], found, length, 1);
        assert_int_equal(tn_attention_video(NULL, &args, &err), TN_OK);
        assert_memory_equal(found, wanted, HEADS * (size_t)length * SIZE * sizeof(float));
        for (int32_t n = 0; n < 4; n++) {
            of[n].tensor.dtype = TN_BF16;
            of[n].tensor.data = low[n];
        }
        assert_int_equal(tn_attention_video(NULL, &args, &err), TN_OK); /* out is f32 */
        of[4].tensor.dtype = TN_BF16;
        of[4].tensor.data = low_out[0];
        assert_int_equal(tn_attention_video(NULL, &args, &err), TN_OK);
        lay(&wide, gate_numbers + HEADS * 60 * SIZE, length, 1);
        assert_int_equal(
            tn_cast(NULL, TN_ARGS(cast, .in = &of[4].tensor, .out = &wide.tensor), &err), TN_OK);
        for (int64_t i = 0; i < HEADS * length * SIZE; i++) {
            const float rounded = gate_numbers[HEADS * 60 * SIZE + i];
            assert_true(fabsf(found[i] - wanted[i]) < 0.02F);
            assert_true(fabsf(rounded - found[i]) <= fabsf(found[i]) / 256 + 1e-6F);
        }
        for (int32_t n = 0; n < 4; n++)
            lay(&of[n], numbers[n], length, 1);
    }
}

static void tables_have_every_token_once(void **state)
{
    (void)state;
    static const int64_t canvas[] = {3, 5, 4}, tile[] = {2, 2, 3}, windows[] = {3, 1, 2, 9, 9, 9};
    static int32_t order[400], sizes[100], starts[200], listed[10000];
    const tn_attention_video_args args = {.struct_size = sizeof args,
                                          .canvas = canvas,
                                          .tile = tile,
                                          .windows = windows,
                                          .window_count = 2};
    tn_attention_video_tables tables = {.struct_size = sizeof tables, .text = 20};
    tn_error err;
    uint8_t times[80] = {0};
    assert_int_equal(tn_attention_video_tables_get(&args, &tables, &err), TN_OK);
    assert_int_equal(tables.blocks, 2 * 3 * 2 + 2);
    assert_int_equal(tables.slots, 12 * 12 + 20);
    tables.order = order;
    tables.sizes = sizes;
    tables.starts = starts;
    tables.listed = listed;
    assert_true(tables.slots <= 400 && tables.entries <= 10000);
    assert_int_equal(tn_attention_video_tables_get(&args, &tables, &err), TN_OK);
    for (int64_t n = 0; n < tables.blocks; n++) {
        for (int32_t i = 0; i < sizes[n]; i++)
            times[order[n * 12 + i]]++;
    }
    for (int32_t i = 0; i < 80; i++)
        assert_int_equal(times[i], 1);
    assert_int_equal(starts[0], 0);
    assert_int_equal(starts[2 * (tables.blocks + 1) - 1], tables.entries);
    for (int64_t n = 0; n < tables.blocks; n++) { /* the second window sees everything */
        assert_int_equal(starts[tables.blocks + 1 + n + 1] - starts[tables.blocks + 1 + n],
                         tables.blocks);
    }
    tables.text = -1;
    assert_int_equal(tn_attention_video_tables_get(&args, &tables, &err), TN_INVALID_ARGUMENT);
    tables.listed = NULL;
    assert_int_equal(tn_attention_video_tables_get(&args, &tables, &err), TN_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_small_canvas),
        cmocka_unit_test(text_alone),
        cmocka_unit_test(every_small_canvas_sparsely),
        cmocka_unit_test(ties_take_the_first_tiles),
        cmocka_unit_test(the_greatest_numbers_are_selected),
        cmocka_unit_test(bad_geometry_is_refused),
        cmocka_unit_test(the_selection_is_written),
        cmocka_unit_test(bad_selections_are_refused),
        cmocka_unit_test(calls_are_explained),
        cmocka_unit_test(workspaces_and_low_precision),
        cmocka_unit_test(tables_have_every_token_once),
    };
    return run_suite("unit.attention_video", tests);
}
