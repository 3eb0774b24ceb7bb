/* The stream that a kernel is run with means what it means to the platform's own functions: NULL
 * is the default stream of the device, on which work is queued in order like on any other. */
#include "async_platform.h"

#include "tenon/module/kernel.h"

enum { ELEMENTS = 64 };

static const tn_platform_row *row; /* of the platform "async" */
static void *_Atomic seen;         /* the stream of the latest run */

/* Copies by the platform's own function, with the stream as it came. */
static tn_status run(const tn_run *r, tn_error *err)
{
    const uint64_t bytes = (uint64_t)TN_PARAMS(r->op, elementwise)->elements * sizeof(float);
    const tn_copy_job job = {.struct_size = sizeof job,
                             .to = tn_operand(r, TN_ELEMENTWISE_OUT),
                             .from = tn_operand(r, TN_ELEMENTWISE_IN),
                             .bytes = bytes,
                             .to_device = r->device,
                             .from_device = r->device,
                             .stream = r->stream,
                             .rows = 1,
                             .to_pitch = bytes,
                             .from_pitch = bytes};
    seen = r->stream;
    return row->copy(r->platform, &job, err);
}

static tn_status kernels_entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    static const tn_dtype f32[] = {TN_F32, 0};
    static const tn_kernel_row kernel = {.struct_size = sizeof kernel,
                                         .name = "async.permute",
                                         .platform = "async",
                                         .op = TN_OP_PERMUTE,
                                         .version = 1,
                                         .dtypes = f32,
                                         .flops_per_us = 1,
                                         .bytes_per_us = 1,
                                         .run = run};
    static const tn_kernel_row *const kernels[] = {&kernel, NULL};
    static const tn_module module = {.struct_size = sizeof module,
                                     TN_MODULE_ABI,
                                     .name = "async-kernels",
                                     .version = "1",
                                     .kernels = kernels};
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}

static void must(tn_status status, const tn_error *err)
{
    if (status)
        fail_msg("%s: %s", err->where, err->message);
}

typedef struct scene {
    tn_registration *platform, *kernels;
    tn_device *device;
    tn_tensor in, out;
} scene;

static void begin(scene *s)
{
    const int64_t shape[] = {ELEMENTS};
    const tn_module *module = NULL;
    tn_error err;
    setenv("TENON_ADMISSION", "never", 1);
    must(async_builtin().entry(NULL, &module, &err), &err);
    row = module->platforms[0];
    must(tn_module_register(async_builtin().entry, 0, &s->platform, &err), &err);
    must(tn_module_register(kernels_entry, 0, &s->kernels, &err), &err);
    must(tn_device_get("async:0", &s->device, &err), &err);
    must(tn_tensor_create(s->device, TN_F32, shape, 1, &s->in, &err), &err);
    must(tn_tensor_create(s->device, TN_F32, shape, 1, &s->out, &err), &err);
}

static void end(scene *s)
{
    tn_tensor_release(&s->in);
    tn_tensor_release(&s->out);
    tn_registration_release(s->kernels);
    tn_registration_release(s->platform);
    async_end();
}

/* Memory of the platform is the host's. */
static void set_all(const tn_tensor *tensor, float value)
{
    for (size_t i = 0; i < ELEMENTS; i++)
        ((float *)tensor->data)[i] = value;
}

static void expect_all(const tn_tensor *tensor, float value)
{
    for (size_t i = 0; i < ELEMENTS; i++)
        assert_true(((const float *)tensor->data)[i] == value);
}

static void run_behind_a_gate(scene *s, tn_stream *on)
{
    tn_error err;
    set_all(&s->in, 3);
    set_all(&s->out, 7);
    async_gate *gate = async_gate_put(on);
    must(tn_permute(NULL, TN_ARGS(permute, .in = &s->in, .out = &s->out, .stream = on), &err),
         &err);
    assert_ptr_equal((void *)seen, (void *)tn_stream_raw(on));
    expect_all(&s->out, 7); /* queued, and not run: what is before it has not ended */
    async_gate_open(gate);
    must(tn_stream_synchronize(on, &err), &err);
    expect_all(&s->out, 3);
}

static void null_is_the_default_stream(void **state)
{
    scene s = {0};
    (void)state;
    begin(&s);
    run_behind_a_gate(&s, tn_stream_default(s.device));
    assert_null((void *)seen);
    end(&s);
}

static void others_are_what_the_platform_gave(void **state)
{
    scene s = {0};
    tn_stream *stream = NULL;
    tn_error err;
    (void)state;
    begin(&s);
    must(tn_stream_create(s.device, NULL, &stream, &err), &err);
    run_behind_a_gate(&s, stream);
    assert_non_null((void *)seen);
    tn_stream_release(stream);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_is_the_default_stream),
        cmocka_unit_test(others_are_what_the_platform_gave),
    };
    return run_suite("unit.kernel_stream", tests);
}
