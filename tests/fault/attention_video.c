/* Attention for video when the n-th allocation fails: the call says so or is computed as without a fault, and nothing is
 * left behind. */
#include "fault.h"

#include "tenon/tenon.h"

enum { LENGTH = 3 * 3 * 4, SIZE = 8 };

static const int64_t canvas[] = {3, 3, 4}, tile[] = {2, 2, 2}, windows[] = {1, 3, 1};
static int64_t shape[] = {1, 1, LENGTH, SIZE};
static float numbers[LENGTH * SIZE], found[LENGTH * SIZE];
static tn_tensor in, out;
static int32_t kind;

static tn_attention_video_args args_of(void)
{
    const bool sparse = kind == TN_VIDEO_SPARSE;
    return (tn_attention_video_args){.struct_size = sizeof(tn_attention_video_args),
                                     .q = &in,
                                     .k = &in,
                                     .v = &in,
                                     .gate = sparse ? &in : NULL,
                                     .out = &out,
                                     .canvas = canvas,
                                     .tile = tile,
                                     .windows = sparse ? NULL : windows,
                                     .window_count = !sparse,
                                     .kind = kind};
}

/* All numbers are 1, so the fine stage is 1, and so is the coarse stage. */
static tn_status compute(tn_error *err)
{
    const tn_attention_video_args args = args_of();
    const float sum = kind == TN_VIDEO_SPARSE ? 2 : 1;
    const tn_status status = tn_attention_video(NULL, &args, err);
    for (size_t i = 0; i < LENGTH * SIZE && !status; i++)
        assert_true(found[i] > sum - 1e-5F && found[i] < sum + 1e-5F);
    return status;
}

static tn_status explain(tn_error *err)
{
    tn_attention_video_plan *plan = NULL;
    const tn_attention_video_args args = args_of();
    const tn_status status = tn_attention_video_explain(NULL, &args, &plan, err);
    assert_int_equal(plan != NULL, status == TN_OK);
    tn_attention_video_plan_release(plan);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    static tn_status (*const runs[])(tn_error *) = {compute, explain};
    (void)state;
    for (int32_t i = 0; i < 4; i++) {
        struct fault_state before = {0};
        kind = i / 2;
        for (int pass = 0; pass < 2; pass++) { /* the first makes plans and what else is kept */
            long n = 1;
            tn_error err;
            assert_int_equal(runs[i % 2](&err), TN_OK);
            while (fault_survive_memory(runs[i % 2], n))
                n++;
            if (pass)
                assert_int_equal(fault_left(before, i % 2 ? "explain" : "compute", n), 0);
            before = fault_look();
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
    fault_memory_install();
    for (size_t i = 0; i < LENGTH * SIZE; i++)
        numbers[i] = 1;
    in = (tn_tensor){
        .data = numbers, .device_type = TN_DLPACK_CPU, .ndim = 4, .dtype = TN_F32, .shape = shape};
    out = in;
    out.data = found;
    return run_suite("fault.attention_video", tests);
}
