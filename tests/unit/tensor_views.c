/* Views with another shape, against a model that moves the elements instead. */
#include "world.h"

#include "device/tensor/tensor.h"

enum { MOST = 4096, RANK = 6 };

/* A dense array that each view is compared with. */
typedef struct model {
    int32_t ndim;
    int64_t shape[RANK + 1];
    int32_t numbers[MOST];
} model;

static uint64_t drawn;

static int64_t draw(int64_t below)
{
    drawn = drawn * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((drawn >> 33) % (uint64_t)below);
}

static int64_t count_of(const model *m)
{
    int64_t count = 1;
    for (int32_t i = 0; i < m->ndim; i++)
        count *= m->shape[i];
    return count;
}

/* Copies the element of `from` that each index of `to` means: its index along axis i is
 * begin[i] + step[i] * the index along the axis of `to` that came[i] names; -1: begin[i] alone. */
static void gather(const model *from, const int32_t *came, const int64_t *begin,
                   const int64_t *step, model *to)
{
    int64_t index[RANK + 1] = {0};
    for (int64_t n = 0, all = count_of(to); n < all; n++) {
        int64_t at = 0;
        for (int32_t i = 0; i < from->ndim; i++)
            at = at * from->shape[i] + begin[i] + (came[i] < 0 ? 0 : step[i] * index[came[i]]);
        to->numbers[n] = from->numbers[at];
        for (int32_t i = to->ndim; i-- > 0 && ++index[i] == to->shape[i];)
            index[i] = 0;
    }
}

static void expect_same(const tn_tensor *view, const model *m)
{
    static int32_t found[MOST];
    tn_error err;
    assert_int_equal(view->ndim, m->ndim);
    for (int32_t i = 0; i < m->ndim; i++)
        assert_int_equal(view->shape[i], m->shape[i]);
    const int64_t count = count_of(m);
    if (tn_tensor_read(view, found, (uint64_t)count * sizeof found[0], &err))
        fail_msg("%s", err.message);
    assert_memory_equal(found, m->numbers, (size_t)count * sizeof found[0]);
}

/* Replaces the view by another one; the memory stays alive by the views alone. */
static void replace(tn_tensor *view, tn_tensor *by)
{
    tn_tensor_release(view);
    *view = *by;
}

static void slice_any(tn_tensor *view, model *m)
{
    static model to;
    const int32_t axis = (int32_t)draw(m->ndim);
    const int64_t size = m->shape[axis], first = draw(size + 1),
                  end = first + draw(size - first + 1);
    const int64_t step = 1 + draw(3);
    int32_t came[RANK + 1];
    int64_t begin[RANK + 1] = {0}, steps[RANK + 1];
    tn_tensor made = {0};
    tn_error err;
    for (int32_t i = 0; i < m->ndim; i++)
        came[i] = i, steps[i] = 1;
    begin[axis] = first;
    steps[axis] = step;
    to = *m;
    to.shape[axis] = end == first ? 0 : (end - first - 1) / step + 1;
    gather(m, came, begin, steps, &to);
    const bool last = end == size && draw(2);
    assert_int_equal(tn_tensor_slice(view, draw(2) ? axis : axis - m->ndim,
                                     draw(2) || first == size ? first : first - size,
                                     last ? TN_SLICE_END : end, step, &made, &err),
                     TN_OK);
    replace(view, &made);
    *m = to;
}

static void select_any(tn_tensor *view, model *m)
{
    static model to;
    const int32_t axis = (int32_t)draw(m->ndim);
    int32_t came[RANK + 1];
    int64_t begin[RANK + 1] = {0}, steps[RANK + 1];
    tn_tensor made = {0};
    if (m->shape[axis] == 0)
        return;
    for (int32_t i = 0; i < m->ndim; i++)
        came[i] = i < axis ? i : i - 1, steps[i] = 1;
    came[axis] = -1;
    begin[axis] = draw(m->shape[axis]);
    to.ndim = m->ndim - 1;
    for (int32_t i = 0; i < to.ndim; i++)
        to.shape[i] = m->shape[i < axis ? i : i + 1];
    gather(m, came, begin, steps, &to);
    assert_int_equal(tn_tensor_select(view, axis,
                                      draw(2) ? begin[axis] : begin[axis] - m->shape[axis], &made,
                                      NULL),
                     TN_OK);
    replace(view, &made);
    *m = to;
}

/* Also transposes, which are permutations of two axes. */
static void permute_any(tn_tensor *view, model *m)
{
    static model to;
    int32_t axes[RANK + 1], came[RANK + 1];
    const int64_t begin[RANK + 1] = {0};
    int64_t steps[RANK + 1];
    tn_tensor made = {0};
    const bool two = draw(2);
    for (int32_t i = 0; i < m->ndim; i++)
        axes[i] = i, steps[i] = 1;
    int32_t a = 0, b = 0;
    for (int32_t turn = two ? 1 : m->ndim; turn-- > 0;) {
        a = (int32_t)draw(m->ndim), b = (int32_t)draw(m->ndim);
        const int32_t kept = axes[a];
        axes[a] = axes[b];
        axes[b] = kept;
    }
    to.ndim = m->ndim;
    for (int32_t i = 0; i < m->ndim; i++) {
        to.shape[i] = m->shape[axes[i]];
        came[axes[i]] = i;
    }
    gather(m, came, begin, steps, &to);
    assert_int_equal(two ? tn_tensor_transpose(view, a, b - m->ndim, &made, NULL)
                         : tn_tensor_permute(view, axes, m->ndim, &made, NULL),
                     TN_OK);
    replace(view, &made);
    *m = to;
}

/* A view that cannot have the shape is refused; one that is dense can have any. */
static void reshape_any(tn_tensor *view, model *m)
{
    int64_t shape[RANK], rest = count_of(m);
    int32_t ndim = 0;
    tn_tensor made = {0};
    tn_error err = {0};
    if (rest == 0)
        return;
    while (ndim < RANK - 1 && rest > 1) {
        const int64_t tried = 1 + draw(6);
        if (rest % tried == 0) {
            shape[ndim++] = tried;
            rest /= tried;
        }
    }
    shape[ndim++] = rest;
    const int32_t open = (int32_t)draw(ndim + 1);
    const int64_t kept = open < ndim ? shape[open] : 0;
    if (open < ndim)
        shape[open] = -1;
    const tn_status status = tn_tensor_reshape(view, shape, ndim, &made, &err);
    if (open < ndim)
        shape[open] = kept;
    if (status) {
        assert_int_equal(status, TN_UNSUPPORTED);
        assert_int_equal(tn_tensor_is_dense(view), 0);
        return;
    }
    replace(view, &made);
    m->ndim = ndim;
    memcpy(m->shape, shape, (size_t)ndim * sizeof shape[0]);
}

static void resize_any(tn_tensor *view, model *m)
{
    tn_tensor made = {0};
    const int32_t axis = (int32_t)draw(m->ndim + 1);
    if (m->ndim < RANK && draw(2)) {
        assert_int_equal(tn_tensor_unsqueeze(view, axis, &made, NULL), TN_OK);
        memmove(&m->shape[axis + 1], &m->shape[axis],
                (size_t)(m->ndim++ - axis) * sizeof m->shape[0]);
        m->shape[axis] = 1;
    } else if (axis < m->ndim && m->shape[axis] == 1) {
        assert_int_equal(tn_tensor_squeeze(view, axis, &made, NULL), TN_OK);
        memmove(&m->shape[axis], &m->shape[axis + 1],
                (size_t)(--m->ndim - axis) * sizeof m->shape[0]);
    } else {
        return;
    }
    replace(view, &made);
}

static void views_of_views_have_the_elements_of_the_model(void **state)
{
    static int32_t numbers[MOST];
    static void (*const changes[])(tn_tensor *, model *) = {slice_any, select_any, permute_any,
                                                            reshape_any, resize_any};
    static model m;
    (void)state;
    drawn = test_seed();
    for (int32_t i = 0; i < MOST; i++)
        numbers[i] = i * 7;
    for (int turn = 0; turn < (test_reduced() ? 200 : 2000); turn++) {
        tn_tensor view = {0};
        m.ndim = (int32_t)draw(4) + 1;
        for (int32_t i = 0; i < m.ndim; i++)
            m.shape[i] = draw(7) + 1;
        memcpy(m.numbers, numbers, sizeof numbers);
        assert_int_equal(tn_tensor_create(NULL, TN_I32, m.shape, m.ndim, &view, NULL), TN_OK);
        assert_int_equal(tn_tensor_write(&view, numbers, (uint64_t)count_of(&m) * 4, NULL), TN_OK);
        for (int step = 0; step < 6 && m.ndim > 0; step++) {
            changes[draw(5)](&view, &m);
            expect_same(&view, &m);
        }
        tn_tensor_release(&view);
    }
}

/* A reversed tensor: the first element of a view may be before the tensor's. */
static void negative_strides_are_followed(void **state)
{
    int32_t numbers[6] = {0, 1, 2, 3, 4, 5}, found[2];
    const int64_t shape[] = {6}, strides[] = {-1};
    tn_tensor all = {0}, part = {0}, one = {0};
    tn_error err;
    (void)state;
    assert_int_equal(
        tn_tensor_wrap(NULL, numbers + 5, TN_I32, shape, strides, 1, NULL, NULL, &all, &err),
        TN_OK);
    assert_int_equal(tn_tensor_slice(&all, 0, 1, 4, 2, &part, &err), TN_OK);
    assert_int_equal(tn_tensor_read(&part, found, sizeof found, &err), TN_OK);
    assert_true(found[0] == 4 && found[1] == 2);
    assert_int_equal(tn_tensor_select(&part, 0, -1, &one, &err), TN_OK);
    assert_int_equal(one.ndim, 0);
    assert_int_equal(*(int32_t *)tni_tensor_first(&one), 2);
    tn_tensor_release(&one);
    tn_tensor_release(&part);
    tn_tensor_release(&all);
}

/* Arguments and strides at the limits of their types. */
static void extreme_values_are_refused_or_harmless(void **state)
{
    int8_t byte[4] = {0};
    const int64_t shape[] = {0, 5}, far[] = {1, INT64_MAX}, one[] = {1, 3}, odd[] = {INT64_MIN, 1};
    const int64_t wide[] = {2}, apart[] = {INT64_C(1) << 62}, none[] = {0, INT64_MAX, INT64_MAX};
    const int64_t same[] = {2, 1}, least[] = {INT64_MIN, -1};
    const int64_t parts[] = {1, INT64_MAX};
    tn_tensor all = {0}, out = {0}, many[2] = {{0}};
    tn_error err = {0};
    (void)state;
    assert_int_equal(tn_tensor_wrap(NULL, byte, TN_I8, shape, far, 2, NULL, NULL, &all, &err),
                     TN_OK); /* empty: its strides mean nothing */
    assert_int_equal(tn_tensor_slice(&all, 1, 2, -1, INT64_MAX, &out, &err), TN_OK);
    assert_true(out.shape[0] == 0 && out.shape[1] == 1 && out.byte_offset == 0);
    tn_tensor_release(&out);
    assert_int_equal(tn_tensor_select(&all, 1, 4, &out, &err), TN_OK);
    assert_int_equal(out.shape[0], 0);
    tn_tensor_release(&out);
    assert_int_equal(tn_tensor_reshape(&all, none, 3, &out, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_tensor_reshape(&all, (int64_t[]){0, -1}, 2, &out, &err),
                     TN_INVALID_ARGUMENT);
    assert_string_equal(err.message, "shape: no size in place of -1, dimension 1, gives the "
                                     "tensor's 0 elements");
    assert_int_equal(tn_tensor_reshape(&all, (int64_t[]){3, 0}, 2, &out, &err), TN_OK);
    tn_tensor_release(&out);
    tn_tensor_release(&all);
    assert_int_equal(tn_tensor_wrap(NULL, byte, TN_I8, one, odd, 2, NULL, NULL, &all, &err), TN_OK);
    assert_int_equal(tn_tensor_select(&all, 0, 0, &out, &err), TN_OK);
    tn_tensor_release(&out);
    assert_int_equal(tn_tensor_slice(&all, 1, INT64_MIN, 3, 1, &out, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_tensor_slice(&all, 1, 0, INT64_MIN, 1, &out, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_tensor_slice(&all, 1, 0, INT64_MAX - 1, 1, &out, &err),
                     TN_INVALID_ARGUMENT);
    assert_int_equal(tn_tensor_slice(&all, 1, 0, 3, INT64_MIN, &out, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_tensor_slice(&all, INT32_MIN, 0, 3, 1, &out, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_tensor_select(&all, 1, INT64_MIN, &out, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_tensor_reshape(&all, least, 2, &out, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_tensor_split(&all, 1, parts, 2, many, &err), TN_INVALID_ARGUMENT);
    tn_tensor_release(&all);
    assert_int_equal(tn_tensor_wrap(NULL, byte, TN_I8, wide, apart, 1, NULL, NULL, &all, &err),
                     TN_OK);
    assert_int_equal(tn_tensor_reshape(&all, same, 2, &out, &err), TN_OK);
    assert_true(out.strides[0] == apart[0]);
    tn_tensor_release(&out);
    tn_tensor_release(&all);
}

/* One number in every element: strides of 0 are kept. */
static void elements_may_share_one_address(void **state)
{
    int32_t number = 7, found[12];
    const int64_t shape[] = {3, 4}, strides[] = {0, 0}, flat[] = {-1};
    tn_tensor all = {0}, part = {0}, line = {0};
    tn_error err;
    (void)state;
    assert_int_equal(
        tn_tensor_wrap(NULL, &number, TN_I32, shape, strides, 2, NULL, NULL, &all, &err), TN_OK);
    assert_int_equal(tn_tensor_reshape(&all, flat, 1, &line, &err), TN_OK);
    assert_true(line.shape[0] == 12 && line.strides[0] == 0);
    assert_int_equal(tn_tensor_slice(&line, 0, 2, 11, 4, &part, &err), TN_OK);
    assert_int_equal(tn_tensor_read(&part, found, 3 * sizeof found[0], &err), TN_OK);
    assert_true(found[0] == 7 && found[1] == 7 && found[2] == 7);
    tn_tensor_release(&part);
    tn_tensor_release(&line);
    tn_tensor_release(&all);
}

/* A tensor of another library: no owner, and the shape is the library's too. */
static void a_view_needs_no_owner(void **state)
{
    int32_t numbers[6] = {0, 1, 2, 3, 4, 5}, found[2];
    int64_t shape[] = {2, 3};
    tn_tensor foreign = {.data = numbers,
                         .device_type = TN_DLPACK_CPU,
                         .ndim = 2,
                         .dtype = TN_I32,
                         .shape = shape,
                         .flags = TN_TENSOR_READ_ONLY};
    tn_tensor column = {0};
    (void)state;
    assert_int_equal(tn_tensor_select(&foreign, 1, -1, &column, NULL), TN_OK);
    shape[0] = shape[1] = -1; /* the view has a shape of its own */
    assert_int_equal(tn_tensor_read(&column, found, sizeof found, NULL), TN_OK);
    assert_true(found[0] == 2 && found[1] == 5);
    assert_int_equal(tn_tensor_write(&column, found, sizeof found, NULL), TN_REFUSED);
    tn_tensor_release(&column);
}

static void count_release(void *user)
{
    ++*(int *)user;
}

static void memory_lives_as_long_as_its_last_view(void **state)
{
    int32_t numbers[24] = {0};
    const int64_t shape[] = {4, 6};
    int released = 0;
    tn_tensor all = {0}, parts[3] = {{0}}, again = {0};
    (void)state;
    assert_int_equal(
        tn_tensor_wrap(NULL, numbers, TN_I32, shape, NULL, 2, count_release, &released, &all, NULL),
        TN_OK);
    assert_int_equal(tn_tensor_split(&all, 1, NULL, 3, parts, NULL), TN_OK);
    assert_int_equal(tn_tensor_slice(&parts[2], 0, 1, 3, 1, &again, NULL), TN_OK);
    tn_tensor_release(&all);
    for (int i = 0; i < 3; i++) {
        assert_true(parts[i].ndim == 2 && parts[i].shape[0] == 4 && parts[i].shape[1] == 2);
        assert_ptr_equal(tni_tensor_first(&parts[i]), numbers + 2 * i);
        tn_tensor_release(&parts[i]);
    }
    assert_int_equal(released, 0);
    const int32_t written[] = {1, 2, 3, 4};
    assert_int_equal(tn_tensor_write(&again, written, sizeof written, NULL), TN_OK);
    assert_true(numbers[10] == 1 && numbers[11] == 2 && numbers[16] == 3 && numbers[17] == 4);
    tn_tensor_release(&again);
    assert_int_equal(released, 1);
}

/* Each view is one of the last: releasing them must not recurse through all of them. */
static void views_of_views_form_no_chain(void **state)
{
    int32_t number = 0;
    const int64_t shape[] = {1};
    int released = 0;
    tn_tensor view = {0}, next = {0};
    (void)state;
    assert_int_equal(tn_tensor_wrap(NULL, &number, TN_I32, shape, NULL, 1, count_release, &released,
                                    &view, NULL),
                     TN_OK);
    const tni_owner *first = view.owner;
    for (int i = 0; i < 100000; i++) {
        assert_int_equal(tn_tensor_slice(&view, 0, 0, 1, 1, &next, NULL), TN_OK);
        replace(&view, &next);
    }
    assert_ptr_equal(((tni_owner *)view.owner)->user, first);
    assert_int_equal(released, 0);
    tn_tensor_release(&view);
    assert_int_equal(released, 1);
}

static void parts_have_the_sizes_that_were_asked_for(void **state)
{
    int32_t numbers[7] = {0};
    const int64_t shape[] = {7}, sizes[] = {2, 0, 5}, few[] = {2, 4}, negative[] = {8, -1};
    tn_tensor all = {0}, parts[3] = {{0}};
    tn_error err = {0};
    (void)state;
    assert_int_equal(tn_tensor_wrap(NULL, numbers, TN_I32, shape, NULL, 1, NULL, NULL, &all, &err),
                     TN_OK);
    assert_int_equal(tn_tensor_split(&all, -1, sizes, 3, parts, &err), TN_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(parts[i].shape[0], sizes[i]);
        tn_tensor_release(&parts[i]);
    }
    assert_int_equal(tn_tensor_split(&all, 0, few, 2, parts, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_tensor_split(&all, 0, negative, 2, parts, &err), TN_INVALID_ARGUMENT);
    assert_null(parts[0].owner);
    assert_int_equal(tn_tensor_split(&all, 0, NULL, 7, &all, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_tensor_split(&all, 0, NULL, 2, parts, &err), TN_INVALID_ARGUMENT);
    assert_string_equal(
        err.message,
        "count: expected a divisor of 7, the size of axis 0, got 2; pass sizes for parts of "
        "different sizes");
    assert_int_equal(tn_tensor_split(&all, 0, NULL, 0, parts, &err), TN_INVALID_ARGUMENT);
    tn_tensor_release(&all);
}

static void invalid_arguments_leave_out_as_it_was(void **state)
{
    int32_t numbers[6] = {0};
    const int64_t shape[] = {2, 3}, five[] = {5}, twice[] = {-1, -1}, odd[] = {4, -1};
    const int32_t same[] = {1, 1}, beyond[] = {0, 2};
    tn_tensor all = {0}, out = {0};
    tn_error err = {0};
    (void)state;
    assert_int_equal(tn_tensor_wrap(NULL, numbers, TN_I32, shape, NULL, 2, NULL, NULL, &all, &err),
                     TN_OK);
    const tn_status wrong[] = {tn_tensor_slice(&all, 2, 0, 1, 1, &out, &err),
                               tn_tensor_slice(&all, 0, 0, 3, 1, &out, &err),
                               tn_tensor_slice(&all, 0, 2, 1, 1, &out, &err),
                               tn_tensor_slice(&all, 0, 0, 1, 0, &out, &err),
                               tn_tensor_slice(&all, 0, 0, 1, 1, &all, &err),
                               tn_tensor_slice(&all, 0, 0, 1, 1, NULL, &err),
                               tn_tensor_slice(NULL, 0, 0, 1, 1, &out, &err),
                               tn_tensor_select(&all, 1, 3, &out, &err),
                               tn_tensor_select(&all, 1, -4, &out, &err),
                               tn_tensor_permute(&all, same, 2, &out, &err),
                               tn_tensor_permute(&all, beyond, 2, &out, &err),
                               tn_tensor_permute(&all, NULL, 2, &out, &err),
                               tn_tensor_permute(&all, same, 1, &out, &err),
                               tn_tensor_transpose(&all, 0, 2, &out, &err),
                               tn_tensor_squeeze(&all, 0, &out, &err),
                               tn_tensor_unsqueeze(&all, 4, &out, &err),
                               tn_tensor_reshape(&all, five, 1, &out, &err),
                               tn_tensor_reshape(&all, twice, 2, &out, &err),
                               tn_tensor_reshape(&all, odd, 2, &out, &err),
                               tn_tensor_reshape(&all, NULL, 1, &out, &err),
                               tn_tensor_reshape(&all, shape, 33, &out, &err)};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (wrong[i] != TN_INVALID_ARGUMENT)
            fail_msg("call %zu: expected invalid-argument, got %d", i, (int)wrong[i]);
    }
    assert_memory_equal(&out, &(tn_tensor){0}, sizeof out);
    tn_tensor_release(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_of_views_have_the_elements_of_the_model),
        cmocka_unit_test(negative_strides_are_followed),
        cmocka_unit_test(extreme_values_are_refused_or_harmless),
        cmocka_unit_test(elements_may_share_one_address),
        cmocka_unit_test(a_view_needs_no_owner),
        cmocka_unit_test(views_of_views_form_no_chain),
        cmocka_unit_test(memory_lives_as_long_as_its_last_view),
        cmocka_unit_test(parts_have_the_sizes_that_were_asked_for),
        cmocka_unit_test(invalid_arguments_leave_out_as_it_was),
    };
    return run_suite("unit.tensor_views", tests);
}
