/* Copies between tensors, and tensors of random numbers: in host memory against the simplest loop,
 * on devices through the streams of a made-up platform. */
#include "async_platform.h"

#include "base/dtype.h"

#include "device/tensor/tensor.h"

static tn_device *cpu(void)
{
    tn_device *device = NULL;
    tn_error err;
    if (tn_device_get("cpu", &device, &err))
        fail_msg("%s", err.message);
    return device;
}

/* Numbers that are the same in every run. */
static uint64_t dice;

static int64_t roll(int64_t least, int64_t most)
{
    dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return least + (int64_t)((dice >> 33) % (uint64_t)(most - least + 1));
}

/* A tensor of the host's that no one owns. */
typedef struct piece {
    int64_t shape[4];
    int64_t strides[4];
    tn_tensor tensor;
} piece;

static void piece_make(piece *p, int32_t ndim, const int64_t *shape, const int64_t *strides,
                       void *data, tn_dtype dtype)
{
    memset(p, 0, sizeof *p);
    for (int32_t i = 0; i < ndim; i++) {
        p->shape[i] = shape[i];
        p->strides[i] = strides ? strides[i] : 0;
    }
    p->tensor = (tn_tensor){.data = data,
                            .device_type = TN_DLPACK_CPU,
                            .ndim = ndim,
                            .dtype = dtype,
                            .shape = p->shape,
                            .strides = strides ? p->strides : NULL};
}

/* Dimensions in any order, either way round, with gaps; `loose` ones may also stand still or overlap
 * in themselves. */
static void roll_strides(int32_t ndim, const int64_t *shape, bool loose, int64_t *out)
{
    int32_t order[4] = {0, 1, 2, 3};
    int64_t step = roll(1, 2);
    for (int32_t i = ndim; i-- > 1;) {
        int32_t j = (int32_t)roll(0, i), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
    for (int32_t i = 0; i < ndim; i++) {
        int32_t at = order[i];
        out[at] = roll(0, 3) == 0 ? -step : step;
        if (loose && roll(0, 4) == 0)
            out[at] = roll(-2, 2);
        step = step * shape[at] + roll(0, 1) * roll(0, 3);
    }
}

/* Elements from the first one to the lowest. */
static int64_t below(int32_t ndim, const int64_t *shape, const int64_t *strides)
{
    int64_t low = 0;
    for (int32_t i = 0; i < ndim; i++)
        low += strides[i] < 0 ? (shape[i] - 1) * -strides[i] : 0;
    return low;
}

static int64_t offset_of(const piece *p, int64_t number)
{
    int64_t offset = 0;
    for (int32_t i = p->tensor.ndim; i-- > 0;) {
        offset += number % p->shape[i] * p->strides[i];
        number /= p->shape[i];
    }
    return offset;
}

static int64_t elements_of(const piece *p)
{
    int64_t elements = 1;
    for (int32_t i = 0; i < p->tensor.ndim; i++)
        elements *= p->shape[i];
    return elements;
}

static void copy_simply(const piece *from, const piece *to, char *data, size_t size)
{
    for (int64_t i = 0; i < elements_of(to); i++)
        memcpy(data + offset_of(to, i) * (int64_t)size,
               (char *)from->tensor.data + offset_of(from, i) * (int64_t)size, size);
}

enum { ROOM = 1 << 16 };

static void any_strides_copy_in_host_memory(void **state)
{
    static const tn_dtype dtypes[] = {TN_I8, TN_BF16, TN_F32, TN_F64, TN_C128};
    static char source[ROOM], target[ROOM], expected[ROOM];
    (void)state;
    dice = 1;
    for (int i = 0; i < ROOM; i++)
        source[i] = (char)roll(0, 255);
    for (int round = 0; round < 4000; round++) {
        tn_dtype dtype = dtypes[roll(0, 4)];
        size_t size = (size_t)tni_dtype_bytes(dtype);
        int32_t ndim = (int32_t)roll(0, 4);
        int64_t shape[4], from_strides[4], to_strides[4];
        piece from, to;
        tn_error err;
        for (int32_t i = 0; i < ndim; i++)
            shape[i] = roll(1, 5);
        roll_strides(ndim, shape, true, from_strides);
        roll_strides(ndim, shape, false, to_strides);
        int64_t to_first = below(ndim, shape, to_strides);
        piece_make(&from, ndim, shape, from_strides,
                   source + (size_t)below(ndim, shape, from_strides) * size, dtype);
        piece_make(&to, ndim, shape, to_strides, target, dtype);
        to.tensor.byte_offset = (uint64_t)to_first * size;
        memset(target, 0x5a, sizeof target);
        memset(expected, 0x5a, sizeof expected);
        copy_simply(&from, &to, expected + (size_t)to_first * size, size);
        if (tn_copy(NULL, &from.tensor, &to.tensor, &err))
            fail_msg("round %d: %s", round, err.message);
        assert_memory_equal(target, expected, sizeof target);
    }
}

/* Layouts in one small piece of memory: refused exactly when a byte would be both read and
 * written. */
static void overlap_is_seen_exactly(void **state)
{
    enum { SMALL = 4096 };
    static unsigned char memory[SMALL], expected[SMALL], marks[SMALL];
    int seen[2] = {0};
    (void)state;
    dice = 2;
    for (int round = 0; round < 20000; round++) {
        int32_t ndim = (int32_t)roll(0, 3);
        int64_t shape[4], from_strides[4], to_strides[4];
        const int64_t size = roll(0, 1) ? 4 : 1;
        piece from, to;
        tn_error err;
        for (int32_t i = 0; i < ndim; i++)
            shape[i] = roll(1, 4);
        roll_strides(ndim, shape, true, from_strides);
        roll_strides(ndim, shape, false, to_strides);
        if (roll(0, 1)) /* as two windows of one tensor */
            memcpy(from_strides, to_strides, sizeof from_strides);
        char *middle = (char *)memory + SMALL / 2;
        piece_make(&from, ndim, shape, from_strides, middle, size == 4 ? TN_F32 : TN_I8);
        piece_make(&to, ndim, shape, to_strides, middle + roll(-40, 40) * (roll(0, 1) ? 1 : size),
                   size == 4 ? TN_F32 : TN_I8);
        memset(marks, 0, sizeof marks);
        bool overlaps = false;
        for (int64_t i = 0; i < elements_of(&to); i++)
            memset(marks + ((char *)to.tensor.data - (char *)memory) + offset_of(&to, i) * size, 1,
                   (size_t)size);
        for (int64_t i = 0; i < elements_of(&from); i++) {
            const unsigned char *at = marks + SMALL / 2 + offset_of(&from, i) * size;
            for (int64_t b = 0; b < size; b++)
                overlaps = overlaps || at[b];
        }
        for (size_t i = 0; i < SMALL; i++)
            memory[i] = expected[i] = (unsigned char)roll(0, 255);
        if (!overlaps)
            copy_simply(&from, &to, (char *)expected + ((char *)to.tensor.data - (char *)memory),
                        (size_t)size);
        seen[overlaps]++;
        assert_int_equal(tn_copy(NULL, &from.tensor, &to.tensor, &err),
                         overlaps ? TN_INVALID_ARGUMENT : TN_OK);
        assert_memory_equal(memory, expected, SMALL);
        if (overlaps)
            assert_contains(err.message, "from and to overlap in the memory of cpu:0");
    }
    assert_true(seen[0] > 2000 && seen[1] > 2000);
}

/* A search without end is given up, and the copy goes on. */
static void far_overlap_is_not_sought_for_ever(void **state)
{
    tni_walk walk = {.bytes = 1, .ndim = 20};
    static char memory[2];
    (void)state;
    walk.to = memory;
    walk.from = memory + 1;
    for (int32_t i = 0; i < walk.ndim; i++) {
        walk.count[i] = 1 << 20;
        walk.to_step[i] = 1000003 + 2 * i;
        walk.from_step[i] = 1000002 + 2 * i;
    }
    (void)tni_walk_overlaps(&walk); /* it ends */
    walk.count[0] = INT64_MAX;      /* and sums that no number holds are not summed */
    assert_false(tni_walk_overlaps(&walk));
}

/* Whether two elements of a small layout lie at one place, counted out. */
static bool share(const int64_t *shape, const int64_t *strides, int32_t ndim)
{
    enum { MIDDLE = 128 };
    bool seen[2 * MIDDLE] = {false};
    int64_t elements = 1;
    for (int32_t d = 0; d < ndim; d++)
        elements *= shape[d];
    for (int64_t i = 0; i < elements; i++) {
        int64_t at = MIDDLE, rest = i;
        for (int32_t d = 0; d < ndim; d++) {
            at += rest % shape[d] * strides[d];
            rest /= shape[d];
        }
        if (seen[at])
            return true;
        seen[at] = true;
    }
    return false;
}

static void elements_that_share_a_place_are_seen(void **state)
{
    const int64_t far_shape[] = {INT64_C(1) << 31, INT64_C(1) << 31};
    const int64_t far[] = {INT64_C(1) << 31, 1};
    int together = 0, rounds = test_reduced() ? 2000 : 20000;
    (void)state;
    dice = 3;
    for (int round = 0; round < rounds; round++) {
        int64_t shape[4], strides[4];
        int32_t ndim = (int32_t)roll(1, 4);
        for (int32_t d = 0; d < ndim; d++) {
            shape[d] = roll(1, 4);
            strides[d] = roll(-10, 10);
        }
        bool shared = share(shape, strides, ndim);
        assert_int_equal(tni_strides_overlap(shape, strides, ndim), shared);
        together += shared;
    }
    assert_in_range(together, rounds / 10, rounds - rounds / 10);
    assert_false(tni_strides_overlap(far_shape, far, 2));
}

/* The stride of a dimension with one element means nothing, and may be one whose negative is no number. */
static void the_least_stride_of_one_element_is_taken(void **state)
{
    const int64_t shape[] = {1, 3, 1}, strides[] = {INT64_MIN, 2, INT64_MIN},
                  shared[] = {INT64_MIN, 0, 1};
    float a[8] = {1, 0, 2, 0, 3}, b[8] = {0};
    piece from, to;
    tn_error err;
    (void)state;
    assert_false(tni_strides_overlap(shape, strides, 3));
    assert_true(tni_strides_overlap(shape, shared, 3));
    piece_make(&from, 3, shape, strides, a, TN_F32);
    piece_make(&to, 3, shape, strides, b, TN_F32);
    assert_int_equal(tn_copy(NULL, &from.tensor, &to.tensor, &err), TN_OK);
    assert_memory_equal(a, b, sizeof a);
}

static void what_is_refused_says_why(void **state)
{
    const int64_t shape[] = {2, 3}, other[] = {2, 4}, still[] = {0, 1};
    float a[8] = {0}, b[8] = {0};
    piece from, to;
    tn_error err;
    (void)state;
    piece_make(&from, 2, shape, NULL, a, TN_F32);
    piece_make(&to, 2, other, NULL, b, TN_F32);
    assert_int_equal(tn_copy(NULL, &from.tensor, &to.tensor, &err), TN_INVALID_ARGUMENT);
    assert_string_equal(err.message, "to: dimension 1: expected 3, the size of from, got 4");
    piece_make(&to, 1, shape, NULL, b, TN_F32);
    assert_int_equal(tn_copy(NULL, &from.tensor, &to.tensor, &err), TN_INVALID_ARGUMENT);
    assert_string_equal(err.message, "to: expected 2 dimensions, as many as from, got 1");
    piece_make(&to, 2, shape, NULL, b, TN_I32);
    assert_int_equal(tn_copy(NULL, &from.tensor, &to.tensor, &err), TN_INVALID_ARGUMENT);
    assert_string_equal(err.message, "to: expected f32, the dtype of from, got i32");
    piece_make(&to, 2, shape, still, b, TN_F32);
    assert_int_equal(tn_copy(NULL, &from.tensor, &to.tensor, &err), TN_INVALID_ARGUMENT);
    assert_string_equal(err.message, "to: dimension 0 has the stride 0, so its 2 elements share "
                                     "one address; such a tensor can only be read");
    piece_make(&to, 2, shape, (int64_t[]){1, 1}, b, TN_F32);
    assert_int_equal(tn_copy(NULL, &from.tensor, &to.tensor, &err), TN_INVALID_ARGUMENT);
    assert_string_equal(
        err.message,
        "to: several elements have the same address because of its strides; such a tensor "
        "can only be read");
    piece_make(&to, 2, shape, NULL, b, TN_F32);
    to.tensor.flags = TN_TENSOR_READ_ONLY;
    assert_int_equal(tn_copy(NULL, &from.tensor, &to.tensor, &err), TN_REFUSED);
    assert_string_equal(err.message, "to: the tensor is read-only; write to another tensor");
    assert_int_equal(tn_copy(NULL, &to.tensor, &from.tensor, &err), TN_OK); /* it may be read */
    to.tensor.flags = 0;
    assert_int_equal(tn_copy(NULL, &from.tensor, &from.tensor, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_copy(NULL, NULL, &to.tensor, &err), TN_INVALID_ARGUMENT);
    assert_string_equal(err.message, "from: the tensor is NULL");
    assert_int_equal(tn_copy(NULL, &from.tensor, NULL, &err), TN_INVALID_ARGUMENT);
    to.tensor.device_type = TN_DLPACK_VPI;
    assert_int_equal(tn_copy(NULL, &from.tensor, &to.tensor, &err), TN_UNAVAILABLE);
    to.tensor.device_type = TN_DLPACK_CUDA_HOST;
    assert_int_equal(tn_copy(NULL, &from.tensor, &to.tensor, &err), TN_OK);
    piece_make(&from, 2, (int64_t[]){0, 3}, NULL, NULL, TN_F32);
    piece_make(&to, 2, (int64_t[]){0, 3}, NULL, NULL, TN_F32);
    assert_int_equal(tn_copy(NULL, &from.tensor, &to.tensor, &err), TN_OK);
}

/* A dense tensor of an async device, of 0, 1, 2 ... as f32. */
static void make_counting(tn_device *device, const int64_t *shape, int32_t ndim, tn_tensor *out)
{
    static float numbers[64];
    tn_tensor host = {0};
    tn_error err;
    for (int i = 0; i < 64; i++)
        numbers[i] = (float)i;
    if (tn_tensor_create(device, TN_F32, shape, ndim, out, &err) ||
        tn_tensor_wrap(cpu(), numbers, TN_F32, shape, NULL, ndim, NULL, NULL, &host, &err) ||
        tn_copy(NULL, &host, out, &err) || tn_device_synchronize(device, &err))
        fail_msg("%s", err.message);
    tn_tensor_release(&host);
}

static void expect_floats(const tn_tensor *tensor, const float *expected, int64_t count)
{
    float found[64] = {0};
    tn_tensor host = {0};
    tn_error err;
    if (tn_tensor_wrap(cpu(), found, TN_F32, tensor->shape, NULL, tensor->ndim, NULL, NULL, &host,
                       &err) ||
        tn_copy(NULL, tensor, &host, &err)) /* done when it returns: host memory is written to */
        fail_msg("%s", err.message);
    for (int64_t i = 0; i < count; i++)
        assert_true(found[i] == expected[i]);
    tn_tensor_release(&host);
}

static void devices_copy_what_is_dense(void **state)
{
    const int64_t shape[] = {4, 6};
    float expected[24];
    tn_tensor a = {0}, b = {0};
    tn_stream *stream = NULL;
    world w;
    tn_error err;
    (void)state;
    async_world_make(&w, WORLD_CPU);
    tn_device *first = world_device(&w, "async:0"), *second = world_device(&w, "async:1");
    for (int i = 0; i < 24; i++)
        expected[i] = (float)i;
    make_counting(first, shape, 2, &a);
    assert_int_equal(a.device_type, TN_DLPACK_EXT_DEV);
    assert_int_equal(a.device_id, first->ordinal);
    expect_floats(&a, expected, 24);
    assert_int_equal(tn_tensor_create(second, TN_F32, shape, 2, &b, &err), TN_OK);
    assert_int_equal(tn_stream_create(second, NULL, &stream, &err), TN_OK);
    assert_int_equal(tn_copy(stream, &a, &b, &err), TN_OK);
    assert_int_equal(tn_stream_synchronize(stream, &err), TN_OK);
    expect_floats(&b, expected, 24);
    assert_int_equal(tn_copy(stream, &a, &a, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "overlap in the memory of async:0");
    tn_tensor_release(&a);
    assert_int_equal(tn_tensor_create(first, TN_F32, shape, 2, &a, &err), TN_OK);
    tn_tensor host = {0};
    assert_int_equal(
        tn_tensor_wrap(cpu(), expected, TN_F32, shape, NULL, 2, NULL, NULL, &host, &err), TN_OK);
    assert_int_equal(tn_copy(stream, &host, &a, &err), TN_INVALID_ARGUMENT); /* of another device */
    tn_tensor_release(&host);
    tn_tensor_release(&a);
    tn_tensor_release(&b);
    tn_stream_release(stream);
    async_world_end(&w);
}

/* Columns 1 and 2 of a device's 4 x 6 become a dense 4 x 2, in one call of its row. */
static void devices_copy_rows_at_once(void **state)
{
    const int64_t whole[] = {4, 6};
    static const float expected[] = {1, 2, 7, 8, 13, 14, 19, 20};
    int64_t part[] = {4, 2}, steps[] = {6, 1}, turned[] = {2, 4}, turned_steps[] = {1, 6};
    tn_tensor a = {0}, b = {0};
    world w;
    tn_error err;
    (void)state;
    async_world_make(&w, WORLD_CPU);
    tn_device *device = world_device(&w, "async:0");
    make_counting(device, whole, 2, &a);
    tn_tensor window = a;
    window.shape = part;
    window.strides = steps;
    window.byte_offset = sizeof(float);
    assert_int_equal(tn_tensor_create(device, TN_F32, part, 2, &b, &err), TN_OK);
    long calls = async_calls("copy");
    assert_int_equal(tn_copy(NULL, &window, &b, &err), TN_OK);
    assert_int_equal(async_calls("copy"), calls + 1);
    assert_int_equal(tn_device_synchronize(device, &err), TN_OK);
    expect_floats(&b, expected, 8);
    float host[8] = {0};
    piece to;
    piece_make(&to, 2, part, NULL, host, TN_F32);
    assert_int_equal(tn_copy(NULL, &window, &to.tensor, &err), TN_OK); /* the same to the host */
    assert_memory_equal(host, expected, sizeof expected);
    window.shape = turned; /* both in another order: the same rows */
    window.strides = turned_steps;
    int64_t b_turned[] = {1, 2};
    tn_tensor b_view = b;
    b_view.shape = turned;
    b_view.strides = b_turned;
    calls = async_calls("copy");
    assert_int_equal(tn_copy(NULL, &window, &b_view, &err), TN_OK);
    assert_int_equal(async_calls("copy"), calls + 1);
    b_view.strides = NULL; /* only one turned: no copy of rows */
    assert_int_equal(tn_copy(NULL, &window, &b_view, &err), TN_UNSUPPORTED);
    assert_contains(err.message,
                    "from async:0 to async:0, these strides cannot be copied by rows: copy "
                    "through a dense tensor in host memory");
    int64_t standing[] = {0, 1};
    window.shape = part;
    window.strides = standing; /* one row many times over: neither */
    assert_int_equal(tn_copy(NULL, &window, &b, &err), TN_UNSUPPORTED);
    assert_int_equal(tn_device_synchronize(device, &err), TN_OK);
    tn_tensor_release(&a);
    tn_tensor_release(&b);
    async_world_end(&w);
}

typedef tn_status random_fn(tn_generator *generator, const tn_tensor *tensor, tn_error *err);
typedef tn_status fill_fn(tn_generator *generator, tn_dtype dtype, void *out, int64_t count,
                          tn_error *err);

/* The tensor gets what a fill of memory gives, and the generator stands where that leaves it. */
static void expect_numbers(tn_device *device, random_fn *random, fill_fn *fill, tn_dtype dtype,
                           int64_t count)
{
    size_t bytes = (size_t)(count * tni_dtype_bytes(dtype));
    tn_generator *generator = NULL, *same = NULL;
    tn_generator_state a = {.struct_size = sizeof a}, b = {.struct_size = sizeof b};
    tn_tensor tensor = {0}, host = {0};
    char *expected = malloc(bytes), *found = malloc(bytes);
    float before[4]; /* so that neither begins at 0 */
    tn_error err = {0};
    assert_true(expected && found);
    memset(found, 0x5a, bytes);
    if (tn_generator_create(42, &generator, &err) || tn_generator_create(42, &same, &err) ||
        fill(same, TN_F32, before, 4, &err) || fill(generator, TN_F32, before, 4, &err) ||
        fill(same, dtype, expected, count, &err) ||
        tn_tensor_create(device, dtype, &count, 1, &tensor, &err) ||
        random(generator, &tensor, &err) ||
        tn_tensor_wrap(cpu(), found, dtype, &count, NULL, 1, NULL, NULL, &host, &err) ||
        tn_copy(NULL, &tensor, &host, &err))
        fail_msg("%s", err.message);
    assert_memory_equal(found, expected, bytes);
    assert_int_equal(tn_generator_state_get(generator, &a, &err), TN_OK);
    assert_int_equal(tn_generator_state_get(same, &b, &err), TN_OK);
    assert_true(a.seed == b.seed && a.offset == b.offset && a.subsequence == b.subsequence);
    tn_tensor_release(&tensor);
    tn_tensor_release(&host);
    tn_generator_release(generator);
    tn_generator_release(same);
    free(expected);
    free(found);
}

static void random_numbers_are_the_same_everywhere(void **state)
{
    static const int64_t counts[] = {1, 5, 1 << 18, (1 << 18) + 3, (1 << 19) + 1};
    world w;
    (void)state;
    async_world_make(&w, WORLD_CPU);
    tn_device *devices[] = {cpu(), world_device(&w, "async:1")};
    for (size_t d = 0; d < 2; d++) {
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
            expect_numbers(devices[d], tn_random_uniform, tn_random_fill_uniform, TN_F32,
                           counts[i]);
            expect_numbers(devices[d], tn_random_uniform, tn_random_fill_uniform, TN_U32,
                           counts[i]);
            expect_numbers(devices[d], tn_random_normal, tn_random_fill_normal, TN_F64, counts[i]);
            expect_numbers(devices[d], tn_random_normal, tn_random_fill_normal, TN_BF16, counts[i]);
        }
    }
    async_world_end(&w);
}

static void random_numbers_are_of_the_device(void **state)
{
    float first[4], second[4], expected[8];
    piece p;
    tn_generator *same = NULL;
    tn_error err;
    (void)state;
    assert_int_equal(tn_seed_everything(7, &err), TN_OK);
    piece_make(&p, 1, (int64_t[]){4}, NULL, first, TN_F32);
    assert_int_equal(tn_random_uniform(NULL, &p.tensor, &err), TN_OK);
    p.tensor.data = second;
    assert_int_equal(tn_random_uniform(NULL, &p.tensor, &err), TN_OK);
    assert_int_equal(tn_generator_create(7, &same, &err), TN_OK);
    assert_int_equal(tn_random_fill_uniform(same, TN_F32, expected, 8, &err), TN_OK);
    assert_memory_equal(first, expected, sizeof first);
    assert_memory_equal(second, expected + 4, sizeof second);
    tn_generator_release(same);
    assert_int_equal(tn_seed_everything(TN_SEED_DEFAULT, &err), TN_OK);
}

static void random_numbers_are_refused_and_not_taken(void **state)
{
    float data[8] = {0};
    static const float zeros[8];
    int64_t two[] = {2};
    piece p;
    tn_generator *generator = NULL;
    tn_generator_state now = {.struct_size = sizeof now};
    tn_error err;
    (void)state;
    assert_int_equal(tn_generator_create(1, &generator, &err), TN_OK);
    piece_make(&p, 1, (int64_t[]){4}, two, data, TN_F32);
    assert_int_equal(tn_random_uniform(generator, &p.tensor, &err), TN_UNSUPPORTED);
    assert_string_equal(err.message,
                        "tensor: strides are not dense; fill a dense tensor and copy it");
    piece_make(&p, 1, (int64_t[]){4}, NULL, data, TN_F32);
    p.tensor.flags = TN_TENSOR_READ_ONLY;
    assert_int_equal(tn_random_normal(generator, &p.tensor, &err), TN_REFUSED);
    p.tensor.flags = 0;
    p.tensor.dtype = TN_I8;
    assert_int_equal(tn_random_normal(generator, &p.tensor, &err), TN_UNSUPPORTED);
    assert_contains(err.message, "normal numbers do not support dtype i8");
    p.tensor.dtype = TN_F32;
    p.tensor.device_type = TN_DLPACK_VPI;
    assert_int_equal(tn_random_normal(generator, &p.tensor, &err), TN_UNAVAILABLE);
    assert_int_equal(tn_random_uniform(generator, NULL, &err), TN_INVALID_ARGUMENT);
    piece_make(&p, 1, (int64_t[]){0}, NULL, NULL, TN_F32);
    assert_int_equal(tn_random_uniform(generator, &p.tensor, &err), TN_OK);
    assert_int_equal(tn_generator_state_get(generator, &now, &err), TN_OK);
    assert_int_equal(now.offset, 0);
    assert_memory_equal(data, zeros, sizeof data);
    tn_generator_release(generator);
}

/* Host memory on the way to a device goes back, unless the device may still be reading it. */
static void memory_on_the_way_is_given_back(void **state)
{
    const int64_t count = 1000;
    tn_tensor tensor = {0};
    world w;
    tn_error err;
    (void)state;
    async_world_make(&w, WORLD_CPU);
    tn_device *device = world_device(&w, "async:0");
    tn_memory_stats stats = {.struct_size = sizeof stats};
    assert_int_equal(tn_tensor_create(device, TN_F32, &count, 1, &tensor, &err), TN_OK);
    assert_int_equal(tn_random_uniform(NULL, &tensor, &err), TN_OK);
    async_fail("copy", 1, TN_IO);
    assert_int_equal(tn_random_uniform(NULL, &tensor, &err), TN_IO);
    assert_true(async_heal());
    assert_int_equal(tn_memory_stats_get(device, &stats, &err), TN_OK);
    assert_int_equal(stats.host, 0);
    async_gate *gate = async_gate_put(tn_stream_current(device));
    async_fail("stream_synchronize", 1, TN_IO);
    assert_int_equal(tn_random_uniform(NULL, &tensor, &err), TN_IO);
    assert_true(async_heal());
    assert_int_equal(tn_memory_stats_get(device, &stats, &err), TN_OK);
    assert_int_equal(stats.host, 4000);
    async_gate_open(gate);
    assert_int_equal(tn_device_synchronize(device, &err), TN_OK);
    tn_tensor_release(&tensor);
    async_world_end(&w);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(any_strides_copy_in_host_memory),
    cmocka_unit_test(overlap_is_seen_exactly),
    cmocka_unit_test(far_overlap_is_not_sought_for_ever),
    cmocka_unit_test(the_least_stride_of_one_element_is_taken),
    cmocka_unit_test(elements_that_share_a_place_are_seen),
    cmocka_unit_test(what_is_refused_says_why),
    cmocka_unit_test(devices_copy_what_is_dense),
    cmocka_unit_test(devices_copy_rows_at_once),
    cmocka_unit_test(random_numbers_are_the_same_everywhere),
    cmocka_unit_test(random_numbers_are_of_the_device),
    cmocka_unit_test(random_numbers_are_refused_and_not_taken),
    cmocka_unit_test(memory_on_the_way_is_given_back),
};

int main(void)
{
    return run_suite("unit.tensor_copy", tests);
}
