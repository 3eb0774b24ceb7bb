/* Calls that are the same again skip the checks and the choice: only when nothing that matters changed. */
#include "toy.h"

#include "dispatch/fast_path.h"
#include "os/cpu.h"
#include "os/thread.h"
#include "settings/context.h"
#include "tenon/tenon.h"

enum { SIZE = 4, ELEMENTS = SIZE * SIZE };

/* A square matrix somewhere in `room`. */
typedef struct matrix {
    _Alignas(64) float room[4 * ELEMENTS];
    int64_t shape[2], strides[2];
    tn_tensor tensor;
} matrix;

static void lay(matrix *m, float value)
{
    m->shape[0] = m->shape[1] = SIZE;
    m->strides[0] = SIZE;
    m->strides[1] = 1;
    for (size_t i = 0; i < 4 * ELEMENTS; i++)
        m->room[i] = value;
    m->tensor = (tn_tensor){.data = m->room,
                            .device_type = TN_DLPACK_CPU,
                            .ndim = 2,
                            .dtype = TN_F32,
                            .shape = m->shape,
                            .strides = m->strides};
}

static matrix a, b, out;
static tn_matmul_args args;

static bool recalled(const tni_op_class *class, const void *given, tn_status *status)
{
    tn_error err;
    const tni_asked asked = {tni_context_or_current(NULL), class, given};
    *status = TN_INTERNAL;
    return tni_fast_path_lookup(&asked, status, &err);
}

static bool is_recalled(void)
{
    tn_status status;
    bool is = recalled(&tni_matmul_class, &args, &status);
    assert_true(!is || status == TN_OK);
    return is;
}

/* A product of ones and twos that this thread has made before. */
static void begin(void)
{
    tn_error err;
    lay(&a, 1);
    lay(&b, 2);
    lay(&out, -1);
    args = (tn_matmul_args){
        .struct_size = sizeof args, .a = &a.tensor, .b = &b.tensor, .out = &out.tensor};
    for (int i = 0; i < 3; i++)
        assert_int_equal(tn_matmul(NULL, &args, &err), TN_OK);
    assert_true(is_recalled());
    assert_true(out.room[0] == 2 * SIZE && out.room[ELEMENTS - 1] == 2 * SIZE);
}

static void from_the_second_time_on(void **state)
{
    tn_error err;
    (void)state;
    begin();
    args.alpha = 3;
    assert_false(is_recalled());
    assert_int_equal(tn_matmul(NULL, &args, &err), TN_OK);
    assert_false(is_recalled());
    assert_true(out.room[0] == 6 * SIZE);
    assert_int_equal(tn_matmul(NULL, &args, &err), TN_OK);
    assert_true(is_recalled());
    assert_true(out.room[0] == 6 * SIZE);
}

static void data_may_be_elsewhere(void **state)
{
    static matrix other;
    (void)state;
    begin();
    lay(&other, 5);
    args.b = &other.tensor;
    assert_true(is_recalled());
    assert_true(out.room[0] == 5 * SIZE);
    other.tensor.byte_offset = 64;
    other.room[ELEMENTS] = 9;
    assert_true(is_recalled());
    assert_true(out.room[0] == 9 + 5 * (SIZE - 1));
    other.tensor.byte_offset = 4; /* kernels of the processor take any alignment in the same way */
    assert_true(is_recalled());
    assert_true(out.room[0] == 5 * SIZE && out.room[ELEMENTS - 1] == 9 + 5 * (SIZE - 1));
    lay(&other, 0);
    args.b = &b.tensor;
    args.out = &other.tensor;
    assert_true(is_recalled());
    assert_true(other.room[ELEMENTS - 1] == 2 * SIZE && other.room[ELEMENTS] == 0);
}

static void whatever_tells_calls_apart(void **state)
{
    (void)state;
    begin();
    a.strides[0] = SIZE + 1;
    assert_false(is_recalled());
    a.strides[0] = SIZE;
    a.shape[0] = SIZE - 1;
    assert_false(is_recalled());
    a.shape[0] = SIZE;
    a.tensor.strides = NULL;
    assert_false(is_recalled());
    a.tensor.strides = a.strides;
    a.tensor.dtype = TN_I32;
    assert_false(is_recalled());
    a.tensor.dtype = TN_F32;
    out.tensor.flags = TN_TENSOR_READ_ONLY;
    assert_false(is_recalled());
    out.tensor.flags = 0;
    a.tensor.device_id = 1;
    assert_false(is_recalled());
    a.tensor.device_id = 0;
    args.bias = &b.tensor;
    assert_false(is_recalled());
    args.bias = NULL;
    args.transpose_b = 1;
    assert_false(is_recalled());
    args.transpose_b = 0;
    args.set = TN_MATMUL_SET_ALPHA;
    assert_false(is_recalled());
    args.set = 0;
    assert_true(is_recalled());
}

/* What is wrong is left to the whole way, which says so. */
static void wrong_calls_are_refused_as_ever(void **state)
{
    tn_error err;
    (void)state;
    begin();
    a.tensor.data = out.room + SIZE;
    a.tensor.byte_offset = 0;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tn_matmul(NULL, &args, &err), TN_INVALID_ARGUMENT);
        assert_contains(err.message, "a shares memory with out");
    }
    a.tensor.data = out.room;
    assert_false(is_recalled());
    a.tensor.data = NULL;
    assert_false(is_recalled());
    assert_int_equal(tn_matmul(NULL, &args, &err), TN_INVALID_ARGUMENT);
    a.tensor.data = (void *)(UINTPTR_MAX - 63);
    assert_false(is_recalled());
    assert_int_equal(tn_matmul(NULL, &args, &err), TN_INVALID_ARGUMENT);
    a.tensor.data = a.room;
    a.tensor.byte_offset = UINT64_MAX - 63;
    assert_false(is_recalled());
    a.tensor.byte_offset = 0;
    a.tensor.ndim = 33;
    assert_false(is_recalled());
    a.tensor.ndim = -1;
    assert_false(is_recalled());
    a.tensor.ndim = 2;
    a.tensor.shape = NULL;
    assert_false(is_recalled());
    a.tensor.shape = a.shape;
    args.struct_size = 8;
    assert_false(is_recalled());
    args.struct_size = sizeof args;
    assert_true(is_recalled());
    tn_status status;
    assert_false(recalled(&tni_matmul_class, NULL, &status));
}

static void choices_that_changed_are_made_again(void **state)
{
    tn_error err;
    (void)state;
    begin();
    tn_plan_cache_clear(NULL, TN_OP_NONE);
    assert_false(is_recalled());
    begin();
    tni_cpu_mask_set(0);
    assert_false(is_recalled());
    tni_cpu_mask_set(UINT64_MAX);
    begin();
    tn_scope scope = {0};
    tn_context *context = toy_with("rules=require:cpu.matmul.ref");
    assert_int_equal(tn_scope_enter_context(&scope, context, &err), TN_OK);
    assert_false(is_recalled());
    for (int i = 0; i < 2; i++)
        assert_int_equal(tn_matmul(NULL, &args, &err), TN_OK);
    assert_true(is_recalled());
    tn_scope_leave(&scope);
    tn_context_release(context);
    assert_true(out.room[0] == 2 * SIZE);
}

/* A verdict that comes after the choice and before the call is remembered. */
static void a_choice_that_is_stale_when_it_is_kept_is_made_again(void **state)
{
    tn_device *device = toy_device();
    tn_tensor x = toy_tensor(device, TN_F32, 8, 8, 1), y = toy_tensor(device, TN_F32, 8, 8, 2);
    tn_tensor z = toy_tensor(device, TN_F32, 8, 8, 3);
    tn_error err;
    (void)state;
    args = (tn_matmul_args){.struct_size = sizeof args, .a = &x, .b = &y, .out = &z};
    assert_int_equal(tn_matmul(NULL, &args, &err), TN_OK);
    tn_plan_cache_clear(NULL, TN_OP_NONE);
    atomic_store(&toy.plan_invalidates, true);
    assert_int_equal(tn_matmul(NULL, &args, &err), TN_OK);
    assert_false(atomic_load(&toy.plan_invalidates));
    assert_false(is_recalled());
    assert_int_equal(tn_matmul(NULL, &args, &err), TN_OK);
    assert_true(is_recalled());
    tn_tensor_release(&x);
    tn_tensor_release(&y);
    tn_tensor_release(&z);
}

static void each_time_is_counted(void **state)
{
    tn_plan_cache_state before = {.struct_size = sizeof before}, after = before;
    tn_error err;
    (void)state;
    begin();
    assert_int_equal(tn_plan_cache_state_get(NULL, NULL, TN_OP_NONE, &before, &err), TN_OK);
    assert_true(is_recalled());
    assert_int_equal(tn_plan_cache_state_get(NULL, NULL, TN_OP_NONE, &after, &err), TN_OK);
    assert_int_equal(after.hits, before.hits + 1);
}

/* Memory that outlives the device. */
static tn_tensor on_toy(matrix *m)
{
    const int64_t shape[] = {8, 8};
    tn_tensor made = {0};
    tn_error err;
    lay(m, 1);
    assert_int_equal(
        tn_tensor_wrap(toy_device(), m->room, TN_F32, shape, NULL, 2, NULL, NULL, &made, &err),
        TN_OK);
    return made;
}

static void what_a_run_says_is_passed_on(void **state)
{
    tn_status status;
    tn_error err;
    tn_device *device = toy_device();
    tn_tensor x = on_toy(&a), y = on_toy(&b), to = on_toy(&out);
    tn_matmul_args made = {.struct_size = sizeof made, .a = &x, .b = &y, .out = &to};
    (void)state;
    for (int i = 0; i < 2; i++)
        assert_int_equal(tn_matmul(NULL, &made, &err), TN_OK);
    assert_true(recalled(&tni_matmul_class, &made, &status) && status == TN_OK);
    assert_string_equal(toy.last, "toy.matmul.fast");
    toy.fails = TN_BUSY;
    assert_true(recalled(&tni_matmul_class, &made, &status) && status == TN_BUSY);
    toy.fails = TN_OK;
    made.workspace = x.data;
    made.workspace_bytes = 8;
    assert_true(recalled(&tni_matmul_class, &made, &status) && status == TN_INVALID_ARGUMENT);
    made.workspace = NULL;
    made.workspace_bytes = 0;
    toy.lose = true;
    assert_int_equal(tn_device_synchronize(device, &err), TN_DEVICE_LOST);
    assert_int_equal(tn_matmul(NULL, &made, &err), TN_DEVICE_LOST);
    assert_int_equal(tn_device_reset(device, &err), TN_OK);
    assert_false(recalled(&tni_matmul_class, &made, &status));
    tn_tensor_release(&x);
    tn_tensor_release(&y);
    tn_tensor_release(&to);
}

/* What lies behind a shorter struct is not the caller's. */
static void shorter_arguments_end_where_they_say(void **state)
{
    tn_error err;
    tn_status status;
    (void)state;
    begin();
    args.struct_size = TN_UP_TO(tn_matmul_args, workspace_bytes);
    args.scale_a = args.scale_b = (const tn_tensor *)(uintptr_t)64; /* no tensor is there */
    for (int i = 0; i < 3; i++)
        assert_int_equal(tn_matmul(NULL, &args, &err), TN_OK);
    assert_true(recalled(&tni_matmul_class, &args, &status) && status == TN_OK);
}

static void lists_are_read_each_time(void **state)
{
    int32_t order[] = {1, 0};
    tn_status status;
    tn_error err;
    (void)state;
    lay(&a, 0);
    lay(&out, 0);
    a.room[1] = 7;
    const tn_permute_args move = {.struct_size = sizeof move,
                                  .in = &a.tensor,
                                  .out = &out.tensor,
                                  .order = order,
                                  .order_count = 2};
    for (int i = 0; i < 3; i++)
        assert_int_equal(tn_permute(NULL, &move, &err), TN_OK);
    assert_true(recalled(&tni_permute_class, &move, &status));
    assert_true(out.room[SIZE] == 7 && out.room[1] == 0);
    order[0] = 0;
    order[1] = 1;
    assert_false(recalled(&tni_permute_class, &move, &status));
    assert_int_equal(tn_permute(NULL, &move, &err), TN_OK);
    assert_true(out.room[SIZE] == 0 && out.room[1] == 7);
}

static void in_place_stays_in_place(void **state)
{
    tn_status status;
    tn_error err;
    (void)state;
    lay(&a, -1);
    lay(&out, -2);
    tn_unary_args each = {
        .struct_size = sizeof each, .in = &a.tensor, .out = &a.tensor, .kind = TN_UNARY_NEG};
    for (int i = 0; i < 3; i++)
        assert_int_equal(tn_unary(NULL, &each, &err), TN_OK);
    assert_true(a.room[0] == 1);
    assert_true(recalled(&tni_unary_class, &each, &status));
    assert_true(a.room[0] == -1);
    each.out = &out.tensor;
    assert_false(recalled(&tni_unary_class, &each, &status));
    for (int i = 0; i < 3; i++)
        assert_int_equal(tn_unary(NULL, &each, &err), TN_OK);
    assert_true(out.room[0] == 1);
    assert_true(recalled(&tni_unary_class, &each, &status));
    each.out = &a.tensor;
    assert_false(recalled(&tni_unary_class, &each, &status));
    assert_int_equal(tn_unary(NULL, &each, &err), TN_OK);
    assert_true(a.room[0] == 1);
}

static void of_nothing_nothing_is_kept(void **state)
{
    tn_error err;
    (void)state;
    begin();
    a.shape[0] = out.shape[0] = 0;
    for (int i = 0; i < 3; i++)
        assert_int_equal(tn_matmul(NULL, &args, &err), TN_OK);
    assert_false(is_recalled());
}

static void make_many(void *user)
{
    (void)user;
    begin();
}

static void threads_take_theirs_along(void **state)
{
    tni_thread thread;
    tn_error err;
    (void)state;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(tni_thread_create(&thread, make_many, NULL, &err), TN_OK);
        tni_thread_join(thread);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_the_second_time_on),
        cmocka_unit_test(data_may_be_elsewhere),
        cmocka_unit_test(whatever_tells_calls_apart),
        cmocka_unit_test(wrong_calls_are_refused_as_ever),
        cmocka_unit_test(choices_that_changed_are_made_again),
        cmocka_unit_test(a_choice_that_is_stale_when_it_is_kept_is_made_again),
        cmocka_unit_test(each_time_is_counted),
        cmocka_unit_test(what_a_run_says_is_passed_on),
        cmocka_unit_test(shorter_arguments_end_where_they_say),
        cmocka_unit_test(lists_are_read_each_time),
        cmocka_unit_test(in_place_stays_in_place),
        cmocka_unit_test(of_nothing_nothing_is_kept),
        cmocka_unit_test(threads_take_theirs_along),
    };
    return run_suite("unit.fast_path", tests);
}
