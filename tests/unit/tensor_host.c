/* Filling tensors from host memory and reading them back: any strides, in host memory and on a
 * device with streams. */
#include "async_platform.h"

#include "device/tensor/tensor.h"

enum { ROOM = 4096, RANK = 4 };

static tn_device *cpu(void)
{
    tn_device *device = NULL;
    tn_error err;
    if (tn_device_get("cpu", &device, &err))
        fail_msg("%s", err.message);
    return device;
}

static uint64_t drawn;

static int64_t draw(int64_t least, int64_t most)
{
    drawn = drawn * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return least + (int64_t)((drawn >> 33) % (uint64_t)(most - least + 1));
}

/* A window of a larger tensor: dimensions in any order and direction, with gaps. Elements of a
 * `loose` one may share addresses. */
static void draw_window(const tn_tensor *whole, bool loose, int64_t *shape, int64_t *strides,
                        tn_tensor *out)
{
    int32_t order[RANK], ndim = (int32_t)draw(0, RANK);
    int64_t step = draw(1, 2), first = 0;
    for (int32_t i = 0; i < ndim; i++) {
        const int32_t j = (int32_t)draw(0, i);
        order[i] = order[j];
        order[j] = i;
    }
    for (int32_t i = 0; i < ndim; i++) {
        const int32_t at = order[i];
        shape[at] = draw(1, 5);
        strides[at] = draw(0, 3) == 0 ? -step : step;
        if (loose && draw(0, 4) == 0)
            strides[at] = draw(-2, 2);
        first += strides[at] < 0 ? (shape[at] - 1) * -strides[at] : 0;
        step = step * shape[at] + draw(0, 1) * draw(0, 3);
    }
    *out = *whole;
    out->ndim = ndim;
    out->shape = shape;
    out->strides = strides;
    out->byte_offset = (uint64_t)first * sizeof(int32_t);
}

/* The index in the larger tensor of element `number` of the window. */
static int64_t index_of(const tn_tensor *window, int64_t number)
{
    int64_t at = (int64_t)(window->byte_offset / sizeof(int32_t));
    for (int32_t i = window->ndim; i-- > 0;) {
        at += number % window->shape[i] * window->strides[i];
        number /= window->shape[i];
    }
    return at;
}

static int64_t count_of(const tn_tensor *window)
{
    int64_t count = 1;
    for (int32_t i = 0; i < window->ndim; i++)
        count *= window->shape[i];
    return count;
}

static void must(tn_status status, const tn_error *err)
{
    if (status)
        fail_msg("%s", err->message);
}

/* Fills and reads random windows of a tensor; `expected` has the content that it must have. */
static void use_windows(tn_device *device)
{
    static int32_t expected[ROOM], found[ROOM], part[ROOM];
    const int64_t room = ROOM;
    int64_t shape[RANK], strides[RANK];
    tn_tensor whole = {0}, window;
    tn_error err = {0};
    for (int32_t i = 0; i < ROOM; i++)
        expected[i] = i;
    must(tn_tensor_create(device, TN_I32, &room, 1, &whole, &err), &err);
    must(tn_tensor_write(&whole, expected, sizeof expected, &err), &err);
    for (int round = 0; round < (test_reduced() ? 300 : 3000); round++) {
        draw_window(&whole, false, shape, strides, &window);
        const int64_t count = count_of(&window);
        for (int64_t i = 0; i < count; i++)
            expected[index_of(&window, i)] = part[i] = (int32_t)draw(0, INT32_MAX);
        must(tn_tensor_write(&window, part, (uint64_t)count * sizeof part[0], &err), &err);
        must(tn_tensor_read(&whole, found, sizeof found, &err), &err);
        assert_memory_equal(found, expected, sizeof found);
        draw_window(&whole, true, shape, strides, &window);
        const int64_t seen = count_of(&window);
        must(tn_tensor_read(&window, part, (uint64_t)seen * sizeof part[0], &err), &err);
        for (int64_t i = 0; i < seen; i++)
            assert_int_equal(part[i], expected[index_of(&window, i)]);
    }
    tn_tensor_release(&whole);
}

static void any_window_can_be_filled_and_read(void **state)
{
    world w;
    (void)state;
    async_world_make(&w, WORLD_CPU);
    drawn = test_seed();
    use_windows(cpu());
    use_windows(world_device(&w, "async:1"));
    async_world_end(&w);
}

/* A tensor whose elements lie in another order takes one copy of the device, not one for each row. */
static void another_order_takes_one_copy(void **state)
{
    static int32_t numbers[64 * 16], found[64 * 16];
    const int64_t shape[] = {64, 16};
    tn_tensor all = {0}, turned = {0};
    tn_error err;
    world w;
    (void)state;
    async_world_make(&w, WORLD_CPU);
    for (int32_t i = 0; i < 64 * 16; i++)
        numbers[i] = i;
    must(tn_tensor_create(world_device(&w, "async:0"), TN_I32, shape, 2, &all, &err), &err);
    must(tn_tensor_transpose(&all, 0, 1, &turned, &err), &err);
    long calls = async_calls("copy");
    must(tn_tensor_write(&turned, numbers, sizeof numbers, &err), &err);
    assert_int_equal(async_calls("copy"), calls + 1);
    must(tn_tensor_read(&turned, found, sizeof found, &err), &err);
    assert_int_equal(async_calls("copy"), calls + 2);
    assert_memory_equal(found, numbers, sizeof found);
    must(tn_tensor_read(&all, found, sizeof found, &err), &err);
    for (int32_t i = 0; i < 64 * 16; i++)
        assert_int_equal(found[i], i % 16 * 64 + i / 16);
    tn_tensor_release(&turned);
    tn_tensor_release(&all);
    async_world_end(&w);
}

/* A copy that fails, or a wait, leaves no memory behind but that which the device may still use. */
static void failures_leave_nothing_behind(void **state)
{
    static const char *const functions[] = {"copy", "stream_synchronize", "host_alloc"};
    static int32_t numbers[24];
    const int64_t shape[] = {2, 3, 4};
    const int32_t order[] = {2, 0, 1};
    tn_tensor all = {0}, turned = {0};
    tn_error err;
    world w;
    (void)state;
    async_world_make(&w, WORLD_CPU);
    must(tn_tensor_create(world_device(&w, "async:0"), TN_I32, shape, 3, &all, &err), &err);
    must(tn_tensor_permute(&all, order, 3, &turned, &err), &err);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        async_fail(functions[i], 1, TN_INTERNAL);
        const tn_status wrote = tn_tensor_write(&turned, numbers, sizeof numbers, &err);
        const bool reached = !async_heal();
        if (reached || wrote != TN_INTERNAL)
            fail_msg("%s: expected a failure, got status %d", functions[i], (int)wrote);
        must(tn_tensor_write(&turned, numbers, sizeof numbers, &err), &err);
        must(tn_tensor_read(&turned, numbers, sizeof numbers, &err), &err);
    }
    tn_tensor_release(&turned);
    tn_tensor_release(&all);
    async_world_end(&w);
}

static void wrong_calls_change_nothing(void **state)
{
    int32_t numbers[6] = {0};
    const int64_t shape[] = {2, 3}, zero[] = {0, 3}, still[] = {0, 1};
    tn_tensor all = {0}, empty = {0}, shared = {0};
    tn_error err;
    (void)state;
    must(tn_tensor_wrap(NULL, numbers, TN_I32, shape, NULL, 2, NULL, NULL, &all, &err), &err);
    assert_int_equal(tn_tensor_write(&all, numbers, sizeof numbers - 1, &err), TN_INVALID_ARGUMENT);
    assert_string_equal(err.message, "bytes: expected 24, the size of the tensor, got 23");
    assert_int_equal(tn_tensor_read(&all, NULL, sizeof numbers, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_tensor_read(NULL, numbers, sizeof numbers, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_tensor_read(&empty, numbers, 0, &err), TN_INVALID_ARGUMENT);
    all.flags |= TN_TENSOR_READ_ONLY;
    assert_int_equal(tn_tensor_write(&all, (const int32_t[6]){7}, sizeof numbers, &err),
                     TN_REFUSED);
    must(tn_tensor_wrap(NULL, numbers, TN_I32, shape, still, 2, NULL, NULL, &shared, &err), &err);
    assert_int_equal(tn_tensor_write(&shared, (const int32_t[6]){7}, sizeof numbers, &err),
                     TN_INVALID_ARGUMENT);
    assert_int_equal(numbers[0], 0);
    must(tn_tensor_create(NULL, TN_I32, zero, 2, &empty, &err), &err);
    must(tn_tensor_write(&empty, NULL, 0, &err), &err);
    must(tn_tensor_read(&empty, NULL, 0, &err), &err);
    tn_tensor_release(&empty);
    tn_tensor_release(&shared);
    tn_tensor_release(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_window_can_be_filled_and_read),
        cmocka_unit_test(another_order_takes_one_copy),
        cmocka_unit_test(failures_leave_nothing_behind),
        cmocka_unit_test(wrong_calls_change_nothing),
    };
    return run_suite("unit.tensor_host", tests);
}
