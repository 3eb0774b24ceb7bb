/* debug.sample: who is accused, of what, and who is put into quarantine. Kernels of the test's own on the
 * cpu that lie when they are told to, and matmul of described devices. */
#include "test.h"

#include "scratch.h"

#include "os/thread.h"
#include "policy/admission/admission_store.h"
#include "settings/context.h"
#include "tenon/module/kernel.h"
#include "tenon/tenon.h"

#include <limits.h>
#include <math.h>
#include <stdatomic.h>

static char scratch[SCRATCH_PATH];
static char heard[1024]; /* the last error of the log */

static void hear(void *user, int32_t level, const char *text)
{
    (void)user;
    if (level == TN_LOG_ERROR)
        tn_text_fit(heard, sizeof heard, text);
}

static const tn_log_sink sink = {.struct_size = sizeof sink, .write = hear, .level = TN_LOG_ERROR};

static const char devices[] =
    "[device honest]\nplatform = described\nname = honest\nmemory = 64 MiB\n"
    "[device liar]\nplatform = described\nname = liar\nmemory = 64 MiB\nbehaviour.lie_every = 1\n"
    "[device flaky]\nplatform = described\nname = flaky\nmemory = 64 MiB\nbehaviour.lie_every = 2\n"
    "[device halting]\nplatform = described\nname = halting\nmemory = 64 MiB\n"
    "behaviour.lie_every = 1\nbehaviour.fail_run = 2\n";

/* Turns signs, in place too; the next so many runs of each are wrong. */
enum { KERNELS = 3 };
static _Atomic int lies[KERNELS];

static tn_status negate(const tn_run *run, tn_error *err)
{
    const float *in = tn_operand(run, TN_ELEMENTWISE_IN);
    float *out = tn_operand(run, TN_ELEMENTWISE_OUT);
    int index = run->row->name[strlen("cpu.unary.")] - 'a';
    (void)err;
    for (int64_t i = 0; i < TN_PARAMS(run->op, elementwise)->elements; i++)
        out[i] = -in[i];
    if (atomic_load(&lies[index]) > 0 && atomic_fetch_sub(&lies[index], 1) > 0)
        out[1] += 1;
    return TN_OK;
}

static const tn_dtype only_f32[] = {TN_F32, TN_DTYPE_NONE};

#define ROW(letter)                                                               \
    static const tn_kernel_row letter = {.struct_size = sizeof letter,            \
                                         .name = "cpu.unary." #letter,            \
                                         .platform = "cpu",                       \
                                         .op = TN_OP_UNARY,                       \
                                         .version = 1,                            \
                                         .dtypes = only_f32,                      \
                                         .honours = TN_ELEMENTWISE_USES_IN_PLACE, \
                                         .flops_per_us = 1,                       \
                                         .bytes_per_us = 1,                       \
                                         .overhead_us = 1000,                     \
                                         .run = negate}
ROW(a);
ROW(b);
ROW(c);

/* Merges dense parts; all of its outputs but the last are right. */
static tn_status merge(const tn_run *run, tn_error *err)
{
    const float *in[] = {tn_operand(run, TN_MERGE_IN), tn_operand(run, TN_MERGE_OTHER)};
    const float *lse_in[] = {tn_operand(run, TN_MERGE_LSE_IN), tn_operand(run, TN_MERGE_LSE_OTHER)};
    float *out = tn_operand(run, TN_MERGE_OUT), *lse = tn_operand(run, TN_MERGE_LSE);
    const int64_t size = run->op->operand[TN_MERGE_OUT].shape[3];
    (void)err;
    for (int64_t i = 0; i < TN_PARAMS(run->op, elementwise)->elements; i++) {
        double x = exp((double)lse_in[0][i / size]), y = exp((double)lse_in[1][i / size]);
        out[i] = (float)((x * (double)in[0][i] + y * (double)in[1][i]) / (x + y));
        lse[i / size] = (float)log(x + y) + 0.5F;
    }
    return TN_OK;
}

static const tn_kernel_row half_right = {.struct_size = sizeof half_right,
                                         .name = "cpu.attention-merge.half-right",
                                         .platform = "cpu",
                                         .op = TN_OP_ATTENTION_MERGE,
                                         .version = 1,
                                         .dtypes = only_f32,
                                         .flops_per_us = 1,
                                         .bytes_per_us = 1,
                                         .overhead_us = 1000,
                                         .run = merge};
static const tn_kernel_row *const kernels[] = {&a, &b, &c, &half_right, NULL};
static const tn_module module = {.struct_size = sizeof module,
                                 TN_MODULE_ABI,
                                 .name = "stranger",
                                 .version = "1.0",
                                 .kernels = kernels};

static tn_status entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}

static void set_up(void)
{
    static tn_registration *described, *stranger;
    char path[SCRATCH_PATH + 16];
    tn_error err;
    scratch_make(scratch);
    setenv("TENON_CACHE", scratch, 1);
    snprintf(path, sizeof path, "%s/devices", scratch);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(devices, file) >= 0);
    assert_int_equal(fclose(file), 0);
    if (tn_log_set(&sink, &err) || tn_module_register(tn_module_entry, 0, &described, &err) ||
        tn_module_register(entry, 0, &stranger, &err) || tn_device_file_add(path, &err))
        fail_msg("%s", err.message);
}

/* Every call is sampled, and `kernel` is what it takes; untested, as its test would find it out. */
static tn_context *context_of(const char *kernel)
{
    char rule[64];
    tn_change changes[3] = {tn_with_debug_sample(1), tn_with_admission(TN_ADMISSION_NEVER)};
    tn_context *made = NULL;
    tn_error err;
    snprintf(rule, sizeof rule, "rules=require:%s", kernel);
    if (tn_setting_parse(rule, &changes[2], &err) ||
        tn_context_derive(NULL, changes, 3, &made, &err))
        fail_msg("%s", err.message);
    return made;
}

static bool is_quarantined(const char *kernel, const char *device)
{
    const tni_kernel *found = NULL;
    tn_device *on = NULL;
    tni_trust trust;
    tn_error err;
    if (tni_kernel_find(kernel, &found, &err) || tn_device_get(device, &on, &err))
        fail_msg("%s", err.message);
    tni_trust_lookup(&(tni_exam){found, on, -1, NULL}, &trust);
    return trust.verdict == TNI_TRUST_QUARANTINED;
}

/* Turns eight signs with the kernel; `in_place` in the memory they are in. */
static tn_status turn(const tn_context *context, bool in_place, tn_error *err)
{
    float in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8];
    const int64_t shape[] = {8};
    tn_tensor from = {0}, to = {0};
    tn_device *cpu = NULL;
    if (tn_device_get("cpu:0", &cpu, err) ||
        tn_tensor_wrap(cpu, in, TN_F32, shape, NULL, 1, NULL, NULL, &from, err) ||
        tn_tensor_wrap(cpu, in_place ? in : out, TN_F32, shape, NULL, 1, NULL, NULL, &to, err))
        fail_msg("%s", err->message);
    tn_status status =
        tn_unary(context, TN_ARGS(unary, .in = &from, .out = &to, .kind = TN_UNARY_NEG), err);
    tn_tensor_release(&from);
    tn_tensor_release(&to);
    return status;
}

static void chance_is_told_and_no_more(void **state)
{
    tn_context *context = context_of("cpu.unary.a");
    tn_error err;
    (void)state;
    assert_int_equal(turn(context, false, &err), TN_OK);
    for (int round = 0; round < 4; round++) { /* one that comes again and again is still chance */
        heard[0] = '\0';
        atomic_store(&lies[0], 1);
        assert_int_equal(turn(context, round % 2, &err), TN_CORRUPT);
        assert_contains(err.message, "cpu.unary.a on cpu:0: output 1 is -1, the reference has -2, "
                                     "and they may be 0 apart; 1 of 8 are wrong");
        assert_contains(err.message, "run again with the same operands, it is right; ");
        assert_contains(err.message, round % 2 ? "unary:f32:kind=neg,shape=8,inplace=1"
                                               : "unary:f32:kind=neg,shape=8");
        assert_contains(heard, err.message);
        assert_false(is_quarantined("cpu.unary.a", "cpu:0"));
        assert_int_equal(turn(context, round % 2, &err), TN_OK);
    }
    tn_context_release(context);
}

static void wrong_again_is_out(void **state)
{
    tn_context *context = context_of("cpu.unary.b");
    tn_error err;
    (void)state;
    atomic_store(&lies[1], 2);
    assert_int_equal(turn(context, true, &err), TN_CORRUPT);
    assert_contains(err.message, "cpu.unary.b on cpu:0: output 1 is ");
    assert_contains(err.message, "run again with the same operands, it is wrong again; ");
    assert_true(is_quarantined("cpu.unary.b", "cpu:0"));
    assert_false(is_quarantined("cpu.unary.a", "cpu:0"));
    assert_int_equal(turn(context, true, &err), TN_REFUSED); /* as the rule leaves no other */
    assert_contains(err.message, "cpu.unary.b: quarantine: ");
    tn_context_release(context);
}

typedef struct caller {
    tn_context *context;
    int calls, wrong, other;
} caller;

static void call_often(void *user)
{
    caller *self = user;
    for (int i = 0; i < self->calls; i++) {
        tn_error err;
        tn_status status = turn(self->context, i % 2, &err);
        self->wrong += status == TN_CORRUPT;
        self->other += status != TN_CORRUPT && status != TN_OK;
    }
}

/* One thread's kernel lies now and then, the other's always: each is judged by its own. */
static void threads_are_not_mixed_up(void **state)
{
    enum { CALLS = 40 };
    caller callers[] = {{context_of("cpu.unary.a"), CALLS, 0, 0},
                        {context_of("cpu.unary.a"), CALLS, 0, 0},
                        {context_of("cpu.unary.c"), CALLS, 0, 0}};
    tni_thread threads[3];
    (void)state;
    atomic_store(&lies[2], INT_MAX);
    for (int i = 0; i < 3; i++)
        assert_int_equal(tni_thread_create(&threads[i], call_often, &callers[i], NULL), TN_OK);
    for (int i = 0; i < 3; i++)
        tni_thread_join(threads[i]);
    atomic_store(&lies[2], 0);
    for (int i = 0; i < 2; i++)
        assert_true(callers[i].wrong == 0 && callers[i].other == 0);
    assert_int_equal(callers[2].wrong, 1);
    assert_int_equal(callers[2].other, CALLS - 1);
    assert_true(is_quarantined("cpu.unary.c", "cpu:0"));
    assert_false(is_quarantined("cpu.unary.a", "cpu:0"));
    for (int i = 0; i < 3; i++)
        tn_context_release(callers[i].context);
}

static tn_tensor make(tn_device *device, int64_t rows, int64_t columns)
{
    const int64_t shape[] = {rows, columns};
    tn_tensor made = {0};
    tn_error err;
    if (tn_tensor_create(device, TN_F32, shape, 2, &made, &err) ||
        tn_random_normal(NULL, &made, &err))
        fail_msg("%s", err.message);
    return made;
}

/* A product whose output is read, lies backwards and is not dense. */
static tn_status multiply(const char *id, const tn_context *context, tn_error *err)
{
    enum { M = 5, N = 3, K = 4 };
    const int64_t shape[] = {M, N}, backwards[] = {-2 * N, 2};
    tn_device *device = NULL;
    tn_tensor out = {0};
    if (tn_device_get(id, &device, err))
        fail_msg("%s", err->message);
    tn_tensor left = make(device, M, K), right = make(device, K, N), block = make(device, M, 2 * N);
    if (tn_tensor_wrap(device, (float *)block.data + (M - 1) * 2 * N, TN_F32, shape, backwards, 2,
                       NULL, NULL, &out, err))
        fail_msg("%s", err->message);
    tn_status status =
        tn_matmul(context, TN_ARGS(matmul, .a = &left, .b = &right, .out = &out, .beta = 0.5), err);
    tn_tensor_release(&left);
    tn_tensor_release(&right);
    tn_tensor_release(&out);
    tn_tensor_release(&block);
    return status;
}

/* A quarantine is of one device; outputs that are read are put back before a kernel is asked again. */
static void devices_are_not_mixed_up(void **state)
{
    static const char name[] = "described.matmul.plain";
    tn_context *context = context_of(name);
    tn_error err;
    (void)state;
    assert_int_equal(multiply("described:0", context, &err), TN_OK);
    assert_int_equal(multiply("described:2", context, &err), TN_OK);
    assert_int_equal(multiply("described:2", context, &err), TN_CORRUPT);
    assert_contains(err.message, "described.matmul.plain on described:2: output 0 is ");
    assert_contains(err.message, "it is right; matmul:f32:m=5,n=3,k=4,");
    assert_int_equal(multiply("described:1", context, &err), TN_CORRUPT);
    assert_contains(err.message, "it is wrong again; matmul:f32:m=5,n=3,k=4,");
    assert_contains(err.message, "@described:1");
    assert_true(is_quarantined(name, "described:1"));
    assert_false(is_quarantined(name, "described:0") || is_quarantined(name, "described:2"));
    assert_int_equal(multiply("described:0", context, &err), TN_OK);
    tn_context_release(context);
}

/* What cannot be asked again is told, and not judged. */
static void no_verdict_without_an_answer(void **state)
{
    tn_context *context = context_of("described.matmul.plain");
    tn_error err;
    (void)state;
    assert_int_equal(multiply("described:3", context, &err), TN_CORRUPT);
    assert_contains(err.message, "run again with the same operands, it fails: described:3: "
                                 "run 2 of described:3 is described to fail; matmul:f32:m=5,");
    assert_false(is_quarantined("described.matmul.plain", "described:3"));
    tn_context_release(context);
}

/* Also where what is wrong is not the first of them. */
static void every_output_is_compared(void **state)
{
    static float in[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}}, lse_in[2][1], out[4], lse[1];
    int64_t shape[] = {1, 1, 1, 4};
    float *const data[] = {in[0], lse_in[0], in[1], lse_in[1], out, lse};
    tn_context *context = context_of("cpu.attention-merge.half-right");
    tn_tensor t[TN_MERGE_OPERANDS];
    tn_error err = {0};
    (void)state;
    for (int i = 0; i < TN_MERGE_OPERANDS; i++)
        t[i] = (tn_tensor){
            .data = data[i],
            .device_type = TN_DLPACK_CPU,
            .ndim = data[i] == lse_in[0] || data[i] == lse_in[1] || data[i] == lse ? 3 : 4,
            .dtype = TN_F32,
            .shape = shape};
    const tn_attention_merge_args *args =
        TN_ARGS(attention_merge, .in = &t[TN_MERGE_IN], .lse_in = &t[TN_MERGE_LSE_IN],
                .other = &t[TN_MERGE_OTHER], .lse_other = &t[TN_MERGE_LSE_OTHER],
                .out = &t[TN_MERGE_OUT], .lse = &t[TN_MERGE_LSE]);
    assert_int_equal(tn_attention_merge(context, args, &err), TN_CORRUPT);
    assert_contains(err.message, "cpu.attention-merge.half-right on cpu:0: lse 0 is 1.19");
    assert_contains(err.message, "1 of 5 are wrong; run again with the same operands, it is wrong "
                                 "again; attention-merge:f32:");
    assert_int_equal(tn_attention_merge(context, args, &err), TN_REFUSED); /* in quarantine now */
    tn_context_release(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chance_is_told_and_no_more),   cmocka_unit_test(wrong_again_is_out),
        cmocka_unit_test(threads_are_not_mixed_up),     cmocka_unit_test(devices_are_not_mixed_up),
        cmocka_unit_test(no_verdict_without_an_answer), cmocka_unit_test(every_output_is_compared),
    };
    set_up();
    int failed = run_suite("unit.sample", tests);
    scratch_remove(scratch);
    return failed;
}
