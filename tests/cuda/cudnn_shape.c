/* What cuDNN is told of attention, without it: which keys a query sees by the bounds that it is told, against
 * those that it sees by the op; and what is said of a library of which a part is missing. */
#include "test.h"

#include "../../backends/cuda/lib/cudnn/cudnn_attention.h"
#include "../../backends/cuda/lib/cudnn/cudnn_shape.h"
#include "../../backends/cuda/lib/cudnn/dnn.h"
#include "base/alloc.h"
#include "op/op.h"
#include "tenon/module/attention.h"

/* As the graph's operations have it, for a sequence of so many keys. */
static bool is_seen(const dnn_shape *shape, const tn_attention_op *at, int64_t i, int64_t j,
                    int64_t keys)
{
    const int64_t corner = shape->bottom ? keys - at->queries : 0;
    if (j >= keys || (shape->right && i + corner + shape->right_by < j))
        return false;
    return !shape->left || j + shape->left_by - (shape->lengths ? corner : 0) > i;
}

/* Every pair of a query and a key; returns whether some query sees none. */
static bool compare(const dnn_shape *shape, const tn_attention_op *at, int64_t keys)
{
    bool blind = false;
    for (int64_t i = 0; i < at->queries; i++) {
        int64_t first, count = tn_attention_seen(at, i, at->queries, keys, &first);
        bool none = true;
        for (int64_t j = 0; j < at->keys; j++) {
            const bool needed = j >= first && j < first + count && j < keys;
            const bool found = is_seen(shape, at, i, j, keys);
            none = none && !needed;
            if (needed != found)
                fail_msg("q=%lld k=%lld of %lld left=%lld right=%lld shift=%lld corner=%d: query "
                         "%lld, key %lld",
                         (long long)at->queries, (long long)keys, (long long)at->keys,
                         (long long)at->left, (long long)at->right, (long long)at->shift,
                         (int)at->corner, (long long)i, (long long)j);
        }
        blind = blind || none;
    }
    return blind;
}

static int64_t one_of(uint32_t *seed, int64_t least, int64_t most)
{
    *seed = *seed * 1664525 + 1013904223;
    return least + (int64_t)(*seed >> 8) % (most - least + 1);
}

static void bounds_are_those_of_the_op(void **state)
{
    enum { TRIES = 20000 };
    uint32_t seed = 7;
    int taken = 0;
    (void)state;
    for (int t = 0; t < TRIES; t++) {
        tn_op op = {.struct_size = sizeof op, .kind = TN_OP_ATTENTION};
        tn_attention_op *at = TN_PARAMS_MUTABLE(&op, attention);
        dnn_shape shape;
        at->queries = one_of(&seed, 1, 9);
        at->keys = one_of(&seed, 1, 9);
        at->left = one_of(&seed, -1, 9);
        at->right = one_of(&seed, -1, 9);
        at->shift = one_of(&seed, 0, 2) == 0 ? one_of(&seed, -4, 4) : 0;
        at->corner = (int32_t)one_of(&seed, 0, 1);
        if (one_of(&seed, 0, 1))
            op.operand[TN_ATTENTION_LENGTHS].dtype = TN_I32;
        if (dnn_shape_of(&op, &shape, NULL))
            continue;
        taken++;
        for (int64_t keys = shape.lengths ? 0 : at->keys; keys <= at->keys; keys++) {
            if (compare(&shape, at, keys))
                assert_true(shape.blind);
        }
    }
    assert_true(taken > TRIES / 2);
}

static void bounds_that_hide_nothing_are_none(void **state)
{
    tn_op op = {.struct_size = sizeof op, .kind = TN_OP_ATTENTION};
    tn_attention_op *at = TN_PARAMS_MUTABLE(&op, attention);
    dnn_shape shape;
    (void)state;
    *at = (tn_attention_op){
        .queries = 1, .keys = 64, .left = -1, .right = 0, .corner = TN_CORNER_BOTTOM_RIGHT};
    assert_int_equal(dnn_shape_of(&op, &shape, NULL), TN_OK);
    assert_false(shape.right || shape.left || shape.bottom || shape.blind);
    at->queries = 64; /* both corners are one: the pattern that engines know best */
    assert_int_equal(dnn_shape_of(&op, &shape, NULL), TN_OK);
    assert_true(shape.right && !shape.bottom && shape.right_by == 0);
    at->queries = 1;
    at->corner = TN_CORNER_TOP_LEFT;
    assert_int_equal(dnn_shape_of(&op, &shape, NULL), TN_UNSUPPORTED);
}

static void *take(void *self, size_t size, size_t align)
{
    (void)self;
    return tni_alloc_aligned(size, align);
}

static void give(void *self, void *memory)
{
    (void)self;
    tni_release(memory);
}

static size_t any_version(void)
{
    return 91900;
}

/* A loader that has `self`, a file's name, and nothing else. */
static tn_status bind(void *self, const char *files, const tn_symbol *symbols, size_t count,
                      void *table, tn_error *err)
{
    size_t (*const found)(void) = any_version;
    if (strcmp(files, self) != 0)
        return tn_fail(err, TN_UNAVAILABLE, 0, "test", "no %s", files);
    if (count > 0)
        memcpy((char *)table + symbols[0].offset, &found, sizeof found);
    return TN_OK;
}

static void a_missing_part_is_named(void **state)
{
    static char nothing[] = "", whole[] = "libcudnn.so.9", early[] = "libcudnn.so.8";
    static const char *const names[] = {"CUDA_PATH",    "CUDA_HOME", "VIRTUAL_ENV",
                                        "CONDA_PREFIX", "PATH",      "HOME"};
    tn_host host = {.struct_size = offsetof(tn_host, library_look),
                    .self = nothing,
                    .alloc = take,
                    .release = give,
                    .library_bind = bind};
    tn_error err = {0};
    void *self = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
    assert_int_equal(cuda_dnn_row.open(&host, &self, &err), TN_UNAVAILABLE);
    assert_string_equal(err.message, "no libcudnn_graph.so.9");
    host.self = whole;
    assert_int_equal(cuda_dnn_row.open(&host, &self, &err), TN_UNAVAILABLE);
    assert_contains(err.message, "its part libcudnn_graph.so.9 is not");
    host.self = early; /* it has no functions of 9, whatever it says of itself */
    assert_int_equal(cuda_dnn_row.open(&host, &self, &err), TN_INCOMPATIBLE);
    assert_contains(err.message, "too old");
    assert_null(self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_are_those_of_the_op),
        cmocka_unit_test(bounds_that_hide_nothing_are_none),
        cmocka_unit_test(a_missing_part_is_named),
    };
    return run_suite("cuda.cudnn_shape", tests);
}
