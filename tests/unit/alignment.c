/* Alignment of memory counts in what a problem is only as far as a kernel distinguishes it: in plans, in what is
 * prepared, and in locks. */
#include "toy.h"

#include "policy/lock/lock.h"
#include "scratch.h"

/* Two more kernels of the toy: toy.matmul.wide is the fastest for f32, and takes memory aligned to 16 or more;
 * toy.fill.old is a row of a header that had no place for its alignment. */
typedef struct wide_state {
    int64_t shown_most; /* alignment that the row was ever shown */
    int64_t planned[3]; /* what its last plan, and its last run, were shown of A, B and out */
    int64_t ran[3];
} wide_state;
static wide_state wide_saw;

static void see(const tn_op *op, int64_t *to)
{
    for (int i = 0; i < 3; i++) {
        int64_t alignment = op->operand[i].alignment;
        if (to)
            to[i] = alignment;
        if (alignment > wide_saw.shown_most)
            wide_saw.shown_most = alignment;
    }
}

static tn_status admit_wide(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    (void)row;
    see(query->op, NULL);
    for (int i = 0; i < 3; i++) {
        if (query->op->operand[i].alignment < 16)
            return tn_refuse(why, TN_REFUSE_ALIGNMENT, "alignment", 16,
                             query->op->operand[i].alignment);
    }
    return TN_OK;
}

static tn_status plan_wide(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    (void)err;
    see(run->op, wide_saw.planned);
    *out = &wide_saw;
    *out_bytes = 1;
    return TN_OK;
}

static void release_wide(const tn_run *run, void *plan)
{
    (void)run, (void)plan;
}

/* Of dense matrices. */
static tn_status run_wide(const tn_run *run, tn_error *err)
{
    const tn_matmul_op *mm = tn_op_matmul(run->op);
    const float *a = tn_operand(run, 0), *b = tn_operand(run, 1);
    float *out = tn_operand(run, 2);
    (void)err;
    see(run->op, wide_saw.ran);
    for (int64_t i = 0; i < mm->m * mm->n; i++) {
        out[i] = 0;
        for (int64_t p = 0; p < mm->k; p++)
            out[i] += a[i / mm->n * mm->k + p] * b[p * mm->n + i % mm->n];
    }
    atomic_fetch_add(&toy.runs, 1);
    toy.last = run->row->name;
    return TN_OK;
}

static const tn_dtype f32[] = {TN_F32, 0};
static const tn_kernel_row wide = {.struct_size = sizeof wide,
                                   .name = "toy.matmul.wide",
                                   .platform = "toy",
                                   .op = TN_OP_MATMUL,
                                   .version = 1,
                                   .dtypes = f32,
                                   .flops_per_us = 1e9,
                                   .bytes_per_us = 1e9,
                                   .admit = admit_wide,
                                   .plan = plan_wide,
                                   .plan_release = release_wide,
                                   .run = run_wide,
                                   .alignment = 16};
static const tn_kernel_row old = {.struct_size = TN_UP_TO(tn_kernel_row, run_many),
                                  .name = "toy.fill.old",
                                  .platform = "toy",
                                  .op = TN_OP_FILL,
                                  .version = 1,
                                  .dtypes = f32,
                                  .flops_per_us = 1,
                                  .bytes_per_us = 1,
                                  .run = run_wide};
static const tn_kernel_row *const kernels[] = {&wide, &old, NULL};
static const tn_module module = {.struct_size = sizeof module,
                                 TN_MODULE_ABI,
                                 .name = "toy-wide",
                                 .version = "1",
                                 .kernels = kernels};

static tn_status enter(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}

enum { SIZE = 8, ELEMENTS = SIZE * SIZE, ROOM = ELEMENTS + 64 };
#define SQUARE "matmul:f32:m=8,n=8,k=8"

/* Room for a square matrix at any alignment, on the device. */
typedef struct square {
    tn_tensor owner, tensor;
} square;

typedef struct scene {
    tn_device *device;
    square of[3];
    tn_matmul_args args;
} scene;

static void lay(scene *s, const char *device)
{
    static const int64_t room[] = {ROOM}, shape[] = {SIZE, SIZE};
    static tn_registration *registration;
    tn_error err;
    *s = (scene){0};
    toy_device();
    if (!registration)
        assert_int_equal(tn_module_register(enter, 0, &registration, &err), TN_OK);
    assert_int_equal(tn_device_get(device, &s->device, &err), TN_OK);
    for (int i = 0; i < 3; i++) {
        tn_tensor *owner = &s->of[i].owner;
        assert_int_equal(tn_tensor_create(s->device, TN_F32, room, 1, owner, &err), TN_OK);
        for (int64_t e = 0; e < ROOM; e++)
            ((float *)owner->data)[e] = 1;
        s->of[i].tensor = *owner;
        s->of[i].tensor.ndim = 2;
        s->of[i].tensor.shape = (int64_t *)(uintptr_t)shape;
        s->of[i].tensor.strides = NULL;
    }
    s->args = (tn_matmul_args){.struct_size = sizeof s->args,
                               .a = &s->of[0].tensor,
                               .b = &s->of[1].tensor,
                               .out = &s->of[2].tensor};
    tn_plan_cache_clear(NULL, 0);
    wide_saw = (wide_state){0};
    toy.last = "";
}

static void end(scene *s)
{
    for (int i = 0; i < 3; i++)
        tn_tensor_release(&s->of[i].owner);
}

/* Multiplies at so many bytes from an alignment of 64; all matrices are of ones, but for out. */
static tn_status multiply_at(scene *s, const tn_context *context, const uint64_t at[3],
                             tn_error *err)
{
    for (int i = 0; i < 3; i++)
        s->of[i].tensor.byte_offset = at[i];
    float *out = (float *)(void *)((char *)s->of[2].owner.data + at[2]);
    for (int i = 0; i < ELEMENTS; i++)
        out[i] = 1;
    tn_status status = tn_matmul(context, &s->args, err);
    for (int i = 0; i < ELEMENTS && !status; i++)
        assert_true(out[i] == SIZE);
    return status;
}

static tn_status multiply(scene *s, const tn_context *context, uint64_t at, tn_error *err)
{
    return multiply_at(s, context, (const uint64_t[]){at, at, at}, err);
}

static tn_status prepare(scene *s, const tn_context *context, uint64_t at, tn_error *err)
{
    for (int i = 0; i < 3; i++)
        s->of[i].tensor.byte_offset = at;
    return tn_matmul_prepare(context, &s->args, err);
}

static int64_t plans_made(void)
{
    tn_error err;
    tn_plan_cache_state is = {.struct_size = sizeof is};
    assert_int_equal(tn_plan_cache_state_get(NULL, NULL, TN_OP_MATMUL, &is, &err), TN_OK);
    return is.misses;
}

/* Every alignment of every operand, in 300 calls, on the processor, whose kernels distinguish none. */
static void one_plan_of_the_processor_serves_all_memory(void **state)
{
    scene s;
    tn_error err;
    (void)state;
    lay(&s, "cpu:0");
    tn_context *only = toy_with("plan.only_prepared=true");
    assert_int_equal(prepare(&s, only, 0, &err), TN_OK);
    const int64_t before = plans_made();
    for (uint64_t i = 0; i < 300; i++) {
        const uint64_t at[] = {i * 4 % 64, i / 16 * 4 % 64, i * 20 % 64};
        if (multiply_at(&s, only, at, &err))
            fail_msg("call %d: %s", (int)i, err.message);
    }
    assert_int_equal(plans_made(), before);
    tn_context_release(only);
    end(&s);
}

/* A kernel that distinguishes 16 bytes is shown no more, and plans are one for all that is aligned to 16. */
static void a_kernel_sees_what_it_distinguishes(void **state)
{
    scene s;
    tn_error err;
    (void)state;
    lay(&s, "toy:0");
    const int64_t before = plans_made();
    for (uint64_t at = 0; at < 64; at += 16) {
        for (int again = 0; again < 4; again++) {
            assert_int_equal(multiply(&s, NULL, at, &err), TN_OK);
            assert_string_equal(toy.last, "toy.matmul.wide");
            assert_memory_equal(wide_saw.ran, wide_saw.planned, sizeof wide_saw.ran);
        }
    }
    assert_int_equal(plans_made(), before + 1);
    assert_int_equal(wide_saw.shown_most, 16);
    for (uint64_t at = 4; at < 64; at += 16) /* every second one comes from the fast path */
        for (int again = 0; again < 4; again++) {
            assert_int_equal(multiply(&s, NULL, at, &err), TN_OK);
            assert_string_equal(toy.last, "toy.matmul.fast");
            assert_int_equal(multiply(&s, NULL, at - 4, &err), TN_OK);
            assert_string_equal(toy.last, "toy.matmul.wide");
        }
    assert_int_equal(plans_made(), before + 2);
    end(&s);
}

static void a_row_without_the_field_distinguishes_all(void **state)
{
    scene s;
    (void)state;
    lay(&s, "toy:0");
    assert_int_equal(tni_kernels_alignment("toy", TN_OP_MATMUL), 16);
    assert_int_equal(tni_kernels_alignment("toy", TN_OP_FILL), 64);
    assert_int_equal(tni_kernels_alignment("cpu", TN_OP_MATMUL), 1);
    assert_int_equal(tni_kernels_alignment("toy", TN_OP_NORM), 64); /* has no kernel */
    end(&s);
}

/* Memory that is aligned to less than the prepared plan needs is refused, and the refusal says so. */
static void a_plan_that_needs_more_alignment_is_told(void **state)
{
    scene s;
    tn_error err;
    const char *message;
    tn_decision *decision = NULL;
    (void)state;
    lay(&s, "toy:0");
    tn_context *only = toy_with("plan.only_prepared=true");
    assert_int_equal(prepare(&s, only, 0, &err), TN_OK);
    assert_int_equal(multiply(&s, only, 16, &err), TN_OK);
    assert_int_equal(multiply(&s, only, 4, &err), TN_REFUSED);
    assert_contains(err.message,
                    "expected memory aligned as in " SQUARE ",align=16;16;16@toy:0, got " SQUARE
                    ",align=4;4;4@toy:0; align the memory, or prepare");
    assert_int_equal(tn_explain(only, SQUARE ",align=4;4;4@toy:0", &decision, &err), TN_OK);
    assert_int_equal(tn_decision_status(decision, &message), TN_REFUSED);
    assert_contains(message, "expected memory aligned as in");
    tn_decision_release(decision);
    tn_context_release(only);
    end(&s);
}

/* Another kernel that is prepared for the problem, and takes any memory, takes it. */
static void another_prepared_kernel_serves(void **state)
{
    scene s;
    tn_error err;
    (void)state;
    lay(&s, "toy:0");
    tn_context *only = toy_with("plan.only_prepared=true");
    tn_context *slow = toy_with("rules=require:toy.matmul.slow");
    assert_int_equal(prepare(&s, only, 0, &err), TN_OK);
    assert_int_equal(prepare(&s, slow, 0, &err), TN_OK);
    assert_string_equal(toy_choice(only, SQUARE ",align=4;4;4@toy:0"), "toy.matmul.slow");
    for (int again = 0; again < 4; again++) {
        assert_int_equal(multiply(&s, only, 4, &err), TN_OK);
        assert_string_equal(toy.last, "toy.matmul.slow");
        assert_int_equal(multiply(&s, only, 0, &err), TN_OK);
        assert_string_equal(toy.last, "toy.matmul.wide");
    }
    assert_int_equal(multiply(&s, NULL, 4, &err), TN_OK);
    assert_string_equal(toy.last, "toy.matmul.fast");
    tn_context_release(slow);
    tn_context_release(only);
    end(&s);
}

/* What was prepared for less alignment serves more. */
static void a_plan_for_less_alignment_serves_more(void **state)
{
    scene s;
    tn_error err;
    (void)state;
    lay(&s, "toy:0");
    tn_context *only = toy_with("plan.only_prepared=true");
    assert_int_equal(prepare(&s, only, 8, &err), TN_OK);
    assert_string_equal(toy_choice(only, SQUARE "@toy:0"), "toy.matmul.fast");
    for (int again = 0; again < 4; again++) {
        assert_int_equal(multiply(&s, only, 0, &err), TN_OK);
        assert_string_equal(toy.last, "toy.matmul.fast");
    }
    assert_int_equal(multiply(&s, NULL, 0, &err), TN_OK);
    assert_string_equal(toy.last, "toy.matmul.wide");
    tn_context_release(only);
    end(&s);
}

static char folder[SCRATCH_PATH], path[SCRATCH_PATH + 16];

static void use_lock(const char *rule, const char *const *problems, size_t count)
{
    tn_error err;
    tn_context *context = toy_with(rule);
    assert_int_equal(tn_lock_use(NULL, &err), TN_OK);
    if (tn_lock_write(context,
                      TN_ARGS(lock_write, .path = path, .problems = problems, .count = count),
                      &err) ||
        tn_lock_use(path, &err))
        fail_msg("%s", err.message);
    tn_context_release(context);
}

/* A lock holds for its problem at every alignment that the locked kernel can run at. */
static void a_lock_holds_at_every_alignment(void **state)
{
    static const char *const problems[] = {SQUARE "@toy:0"};
    scene s;
    tn_error err;
    (void)state;
    lay(&s, "toy:0");
    use_lock("rules=require:toy.matmul.slow", problems, 1);
    for (uint64_t at = 0; at < 64; at += 4) {
        assert_int_equal(multiply(&s, NULL, at, &err), TN_OK);
        assert_string_equal(toy.last, "toy.matmul.slow");
    }
    assert_string_equal(toy_choice(NULL, SQUARE ",align=1;16;32@toy:0"), "toy.matmul.slow");
    assert_int_equal(tn_lock_use(NULL, &err), TN_OK);
    assert_int_equal(multiply(&s, NULL, 0, &err), TN_OK);
    assert_string_equal(toy.last, "toy.matmul.wide");
    end(&s);
}

/* Where the locked kernel cannot run, no other one steps in. */
static void a_locked_kernel_that_needs_alignment_refuses(void **state)
{
    static const char *const problems[] = {SQUARE "@toy:0"};
    scene s;
    tn_error err;
    (void)state;
    lay(&s, "toy:0");
    use_lock("rules=prefer:toy.matmul.wide", problems, 1);
    assert_int_equal(multiply(&s, NULL, 16, &err), TN_OK);
    assert_string_equal(toy.last, "toy.matmul.wide");
    assert_int_equal(multiply(&s, NULL, 8, &err), TN_REFUSED);
    assert_contains(err.message, "toy.matmul.wide: alignment: alignment: expected 16, got 8; ");
    assert_contains(err.message, "locks it for this problem: align the memory, or write the lock");
    assert_int_equal(tn_lock_use(NULL, &err), TN_OK);
    assert_int_equal(multiply(&s, NULL, 8, &err), TN_OK);
    end(&s);
}

/* Of several entries for one problem, that for the most alignment that the memory has. */
static void a_lock_may_name_several_alignments(void **state)
{
    static const char *const problems[] = {SQUARE "@toy:0", SQUARE ",align=4;4;4@toy:0"};
    static const struct {
        const char *align, *kernel;
    } cases[] = {{"", "toy.matmul.wide"},
                 {",align=4;4;4", "toy.matmul.fast"},
                 {",align=32;32;32", "toy.matmul.fast"},
                 {",align=64;64;4", "toy.matmul.fast"},
                 {",align=2;4;4", "toy.matmul.fast"}};
    tn_error err;
    scene s;
    (void)state;
    lay(&s, "toy:0");
    use_lock("rules=prefer:toy.matmul.wide", problems, 2);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[96];
        snprintf(text, sizeof text, "%s%s@toy:0", SQUARE, cases[i].align);
        assert_string_equal(toy_choice(NULL, text), cases[i].kernel);
    }
    assert_int_equal(tn_lock_use(NULL, &err), TN_OK);
    end(&s);
}

/* B is packed once, for A and out at any address. */
static void packed_operands_take_any_memory(void **state)
{
    scene s;
    tn_error err;
    tn_packed *packed = NULL;
    (void)state;
    lay(&s, "cpu:0");
    s.of[0].tensor.byte_offset = 1;
    assert_int_equal(tn_matmul_pack(NULL, &s.args, &packed, &err), TN_OK);
    s.args.b = NULL;
    s.of[0].tensor.byte_offset = 0;
    for (uint64_t at = 0; at < 64; at += 4) {
        s.of[2].tensor.byte_offset = at;
        if (tn_matmul_packed(packed, &s.args, &err))
            fail_msg("%s", err.message);
    }
    tn_packed_release(packed);
    end(&s);
}

/* A failure tells the problem with the alignments that its memory has, not those that kernels see. */
static void a_failure_tells_the_alignment_of_memory(void **state)
{
    scene s;
    tn_error err;
    (void)state;
    lay(&s, "toy:0");
    tn_context *slow = toy_with("rules=require:toy.matmul.slow");
    for (int again = 0; again < 4; again++) {
        toy.fails = TN_INTERNAL;
        assert_int_equal(multiply_at(&s, slow, (const uint64_t[]){0, 4, 32}, &err), TN_INTERNAL);
        assert_contains(err.message, SQUARE ",align=64;4;32@toy:0");
    }
    tn_context_release(slow);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_plan_of_the_processor_serves_all_memory),
        cmocka_unit_test(a_kernel_sees_what_it_distinguishes),
        cmocka_unit_test(a_row_without_the_field_distinguishes_all),
        cmocka_unit_test(a_plan_that_needs_more_alignment_is_told),
        cmocka_unit_test(another_prepared_kernel_serves),
        cmocka_unit_test(a_plan_for_less_alignment_serves_more),
        cmocka_unit_test(a_lock_holds_at_every_alignment),
        cmocka_unit_test(a_locked_kernel_that_needs_alignment_refuses),
        cmocka_unit_test(a_lock_may_name_several_alignments),
        cmocka_unit_test(packed_operands_take_any_memory),
        cmocka_unit_test(a_failure_tells_the_alignment_of_memory),
    };
    scratch_make(folder);
    snprintf(path, sizeof path, "%s/a.lock", folder);
    int failed = run_suite("unit.alignment", tests);
    scratch_remove(folder);
    return failed;
}
