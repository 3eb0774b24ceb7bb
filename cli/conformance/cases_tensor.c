/* Tensors: made, wrapped, viewed, copied, filled with random numbers. */
#include "block.h"
#include "suite.h"
#include "tensors.h"

static bool create(trial *t)
{
    static const int64_t shape[] = {3, 5, 7};
    tn_tensor *x = NULL;
    tn_device *device = NULL;
    int64_t elements = 0;
    uint64_t bytes = 0;
    bool held = tensor_make(t, t->device, TN_F32, shape, 3, &x) && HOLDS(t, x->data != NULL) &&
                EQUAL(t, x->ndim, 3) && EQUAL(t, x->dtype, TN_F32) && EQUAL(t, x->shape[0], 3) &&
                EQUAL(t, x->shape[2], 7) && DO(t, tn_tensor_device(x, &device, &t->err)) &&
                SAME(t, device, t->device) && DO(t, tn_tensor_elements(x, &elements, &t->err)) &&
                EQUAL(t, elements, 105) && DO(t, tn_tensor_bytes(x, &bytes, &t->err)) &&
                EQUAL(t, bytes, 420) && EQUAL(t, tn_tensor_is_dense(x), 1);
    if (!held)
        return false;
    tn_tensor_release(x);
    return SAME(t, x->data, NULL) && SAME(t, x->owner, NULL) &&
           (tn_tensor_release(x), tn_tensor_release(NULL), true);
}

static bool empty(trial *t)
{
    static const int64_t none[] = {4, 0, 3};
    tn_tensor *scalar = NULL, *nothing = NULL, *other = NULL;
    int64_t elements = 77;
    return tensor_make(t, t->device, TN_F64, NULL, 0, &scalar) &&
           DO(t, tn_tensor_elements(scalar, &elements, &t->err)) && EQUAL(t, elements, 1) &&
           tensor_make(t, t->device, TN_I8, none, 3, &nothing) &&
           tensor_make(t, t->device, TN_I8, none, 3, &other) &&
           DO(t, tn_tensor_elements(nothing, &elements, &t->err)) && EQUAL(t, elements, 0) &&
           DO(t, tn_copy(NULL, nothing, other, &t->err));
}

static bool refusals(trial *t)
{
    static const int64_t negative[] = {3, -1}, vast[] = {INT64_MAX / 2, 3, 5};
    tn_tensor out = {.ndim = 77};
    return REFUSES(t, TN_INVALID_ARGUMENT,
                   tn_tensor_create(t->device, TN_F32, negative, 2, &out, &t->err)) &&
           REFUSES(t, TN_INVALID_ARGUMENT,
                   tn_tensor_create(t->device, TN_F32, vast, 3, &out, &t->err)) &&
           REFUSES(t, TN_INVALID_ARGUMENT,
                   tn_tensor_create(t->device, 0xFF, negative, 0, &out, &t->err)) &&
           REFUSES(t, TN_INVALID_ARGUMENT,
                   tn_tensor_create(t->device, TN_F32, negative, 33, &out, &t->err)) &&
           EQUAL(t, out.ndim, 77);
}

static void count_release(void *user)
{
    ++*(int *)user;
}

static bool wrap(trial *t)
{
    static const int64_t shape[] = {10, 10};
    block memory;
    int released = 0;
    tn_tensor tensor = {0}, view = {0};
    if (!block_make(t, t->device, 400, &memory) ||
        !DO(t, tn_tensor_wrap(t->device, memory.at, TN_F32, shape, NULL, 2, count_release,
                              &released, &tensor, &t->err)))
        return false;
    bool held = SAME(t, tensor.data, memory.at) && DO(t, tn_tensor_view(&tensor, &view, &t->err)) &&
                EQUAL(t, released, 0);
    tn_tensor_release(&tensor);
    held = held && EQUAL(t, released, 0) && SAME(t, view.data, memory.at);
    tn_tensor_release(&view);
    return held && EQUAL(t, released, 1) && block_check(t, &memory, "wrapped memory");
}

static bool wrap_refused(trial *t)
{
    static const int64_t negative[] = {-1};
    int released = 0;
    tn_tensor tensor = {0};
    return REFUSES(t, TN_INVALID_ARGUMENT,
                   tn_tensor_wrap(t->device, &released, TN_F32, negative, NULL, 1, count_release,
                                  &released, &tensor, &t->err)) &&
           EQUAL(t, released, 0);
}

/* Copies to the device and back, with tensors. */
static bool copy(trial *t)
{
    static const int64_t shape[] = {17, 33};
    enum { BYTES = 17 * 33 * 2 };
    block here, back;
    tn_device *cpu = NULL;
    tn_tensor *there = NULL, *from = NULL, *to = NULL;
    if (!block_make(t, NULL, BYTES, &here) || !block_make(t, NULL, BYTES, &back))
        return false;
    memcpy(back.mirror, here.mirror, BYTES);
    return DO(t, tn_device_get("cpu:0", &cpu, &t->err)) &&
           tensor_make(t, t->device, TN_BF16, shape, 2, &there) &&
           tensor_over(t, cpu, here.at, TN_BF16, shape, NULL, 2, &from) &&
           tensor_over(t, cpu, back.at, TN_BF16, shape, NULL, 2, &to) &&
           DO(t, tn_copy(NULL, from, there, &t->err)) &&
           DO(t, tn_device_synchronize(t->device, &t->err)) &&
           DO(t, tn_copy(NULL, there, to, &t->err)) &&
           DO(t, tn_device_synchronize(t->device, &t->err)) &&
           block_check(t, &back, "data read back") && block_check(t, &here, "data written");
}

/* Rows with padding between them. */
static bool copy_rows(trial *t)
{
    static const int64_t shape[] = {9, 10}, wide[] = {16, 1}, dense[] = {10, 1};
    block here, there;
    tn_device *cpu = NULL;
    tn_tensor *from = NULL, *to = NULL;
    if (!block_make(t, NULL, 9 * 16 * 4, &here) || !block_make(t, t->device, 9 * 10 * 4, &there))
        return false;
    for (size_t i = 0; i < 9; i++)
        memcpy(there.mirror + i * 40, here.mirror + i * 64, 40);
    return DO(t, tn_device_get("cpu:0", &cpu, &t->err)) &&
           tensor_over(t, cpu, here.at, TN_I32, shape, wide, 2, &from) &&
           tensor_over(t, t->device, there.at, TN_I32, shape, dense, 2, &to) &&
           EQUAL(t, tn_tensor_is_dense(from), 0) && EQUAL(t, tn_tensor_is_dense(to), 1) &&
           DO(t, tn_copy(NULL, from, to, &t->err)) &&
           DO(t, tn_device_synchronize(t->device, &t->err)) &&
           block_check(t, &there, "copied rows") &&
           block_check(t, &here, "source of the copied rows");
}

/* Fills a tensor from host memory, then a part of it, seen with its dimensions in another order, and
 * reads both back. */
static bool host_memory(trial *t)
{
    enum { A = 6, B = 5, C = 7, PART = C * 2 * B };
    static const int64_t shape[] = {A, B, C};
    static const int32_t order[] = {2, 0, 1};
    uint32_t all[A * B * C], part[PART], found[A * B * C];
    tn_tensor *whole = NULL, *turned = NULL, *rows = NULL;
    for (size_t i = 0; i < A * B * C; i++)
        all[i] = (uint32_t)trial_bits(t);
    for (size_t i = 0; i < PART; i++)
        part[i] = (uint32_t)trial_bits(t);
    bool held = tensor_make(t, t->device, TN_U32, shape, 3, &whole) && tensor_empty(t, &turned) &&
                tensor_empty(t, &rows) &&
                DO(t, tn_tensor_permute(whole, order, 3, turned, &t->err)) &&
                DO(t, tn_tensor_slice(turned, 1, 1, -1, 2, rows, &t->err)) &&
                DO(t, tn_tensor_write(whole, all, sizeof all, &t->err)) &&
                DO(t, tn_tensor_write(rows, part, sizeof part, &t->err));
    for (size_t i = 0; i < PART; i++) { /* element [c][a][b] of the part is [1 + 2 a][b][c] */
        size_t c = i / (2 * B), a = i / B % 2, b = i % B;
        all[(1 + 2 * a) * B * C + b * C + c] = part[i];
    }
    return held && DO(t, tn_tensor_read(whole, found, sizeof found, &t->err)) &&
           bytes_match(t, found, all, sizeof all, "elements read back") &&
           DO(t, tn_tensor_read(rows, found, sizeof part, &t->err)) &&
           bytes_match(t, found, part, sizeof part, "part read back");
}

static bool copy_refused(trial *t)
{
    static const int64_t shape[] = {4, 4}, other[] = {4, 5};
    tn_tensor *a = NULL, *b = NULL, *c = NULL, *d = NULL;
    return tensor_make(t, t->device, TN_F32, shape, 2, &a) &&
           tensor_make(t, t->device, TN_F32, other, 2, &b) &&
           tensor_make(t, t->device, TN_I32, shape, 2, &c) &&
           tensor_make(t, t->device, TN_F32, shape, 2, &d) &&
           REFUSES(t, TN_INVALID_ARGUMENT, tn_copy(NULL, a, b, &t->err)) &&
           REFUSES(t, TN_INVALID_ARGUMENT, tn_copy(NULL, a, c, &t->err)) &&
           REFUSES(t, TN_INVALID_ARGUMENT, tn_copy(NULL, NULL, a, &t->err)) &&
           (d->flags |= TN_TENSOR_READ_ONLY, true) &&
           REFUSES(t, TN_REFUSED, tn_copy(NULL, a, d, &t->err));
}

typedef tn_status fill_host(tn_generator *generator, tn_dtype dtype, void *out, int64_t count,
                            tn_error *err);
typedef tn_status fill_tensor(tn_generator *generator, const tn_tensor *tensor, tn_error *err);

static void release_generator(void *owner, void *what)
{
    (void)owner;
    tn_generator_release(what);
}

static bool same_numbers(trial *t, fill_host *on_host, fill_tensor *on_device)
{
    enum { COUNT = 7 * 11 * 13 };
    static const int64_t shape[] = {7, 11, 13};
    float expected[COUNT], found[COUNT];
    uint64_t seed = trial_bits(t);
    tn_generator *own = NULL;
    tn_tensor *x = NULL;
    if (!DO(t, tn_generator_create(seed, &own, &t->err)) ||
        !trial_keep(t, release_generator, NULL, own) ||
        !DO(t, on_host(own, TN_F32, expected, COUNT, &t->err)))
        return false;
    tn_generator_seed(own, seed);
    return tensor_make(t, t->device, TN_F32, shape, 3, &x) && DO(t, on_device(own, x, &t->err)) &&
           DO(t, tn_device_synchronize(t->device, &t->err)) &&
           DO(t, tn_memory_copy(TN_ARGS(memory_copy, .to = found, .from_device = t->device,
                                        .from = x->data, .bytes = sizeof found),
                                &t->err)) &&
           DO(t, tn_device_synchronize(t->device, &t->err)) &&
           bytes_match(t, found, expected, sizeof found, "random numbers");
}

static bool uniform_numbers(trial *t)
{
    return same_numbers(t, tn_random_fill_uniform, tn_random_uniform);
}

static bool normal_numbers(trial *t)
{
    return same_numbers(t, tn_random_fill_normal, tn_random_normal);
}

static bool subsequence(trial *t)
{
    tn_generator_state state = {.struct_size = sizeof state};
    for (int32_t i = 0; i < tn_platform_device_count(t->platform); i++) {
        tn_device *device = NULL;
        if (!DO(t, tn_platform_device_get(t->platform, i, &device, &t->err)) ||
            !HOLDS(t, tn_device_generator(device) != NULL) ||
            !DO(t, tn_generator_state_get(tn_device_generator(device), &state, &t->err)) ||
            !EQUAL(t, state.subsequence, i))
            return false;
    }
    return true;
}

const suite_case cases_tensor[] = {
    {"tensor.create", "a tensor belongs to its device, is dense, and is released once", create, 0},
    {"tensor.empty", "a tensor without dimensions has one element; a dimension of 0 gives none",
     empty, 0},
    {"tensor.refusals", "invalid dimensions are errors", refusals, 0},
    {"tensor.wrap", "the release function is called once, after the last view is released", wrap,
     0},
    {"tensor.wrap.refusals", "the release function is not called if wrapping fails", wrap_refused,
     0},
    {"tensor.copy", "elements can be copied to the device and back", copy, 0},
    {"tensor.copy.rows", "rows with gaps between them can be copied too", copy_rows, 0},
    {"tensor.host", "a tensor with any strides can be filled from host memory and read back",
     host_memory, 0},
    {"tensor.copy.refusals", "a different shape or dtype and a read-only destination are errors",
     copy_refused, 0},
    {"random.uniform", "a seed gives the same numbers as on the host", uniform_numbers, 0},
    {"random.normal", "a seed gives the same numbers as on the host", normal_numbers, 0},
    {"random.subsequence", "device n uses subsequence n, on every platform", subsequence, 0},
    {0},
};
