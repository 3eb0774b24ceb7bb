/* What only a GPU can show of the device interface: graphs of kernels, Tenon's and the program's, random numbers, and a
 * kernel that traps. Skipped without one. The trap comes last, as it takes the device along. */
#include "hardware.h"

#include "hardware_driver.h"

enum { ROWS = 517, SIZE = 1003, LONG = 300007 };

static tn_stream *stream, *other;

static void begin(void)
{
    begin_gpu();
    if (!stream) {
        must(tn_stream_create(gpu, NULL, &stream, &err));
        must(tn_stream_create(gpu, NULL, &other, &err));
    }
}

/* Both have the same bytes. */
static void expect_same(const tn_tensor *there, const tn_tensor *here, const char *what)
{
    tn_tensor copy = make(cpu, there->dtype, there->shape[0], there->shape[1]);
    uint64_t bytes = 0;
    must(tn_tensor_bytes(there, &bytes, &err));
    memset(copy.data, 0xA5, (size_t)bytes);
    must(tn_device_synchronize(gpu, &err));
    must(tn_copy(NULL, there, &copy, &err));
    must(tn_device_synchronize(gpu, &err));
    if (memcmp(copy.data, here->data, (size_t)bytes) != 0)
        fail_msg("%s: the bits differ", what);
    tn_tensor_release(&copy);
}

static void random_numbers_have_the_processors_bits(void **state)
{
    static const struct {
        tn_dtype dtype;
        const char *name;
    } dtypes[] = {{TN_F32, "f32"},   {TN_F64, "f64"}, {TN_F16, "f16"},
                  {TN_BF16, "bf16"}, {TN_U32, "u32"}, {TN_I32, "i32"}};
    (void)state;
    begin();
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        for (int normal = 0; normal < (i < 4 ? 2 : 1); normal++) {
            tn_tensor there = make(gpu, dtypes[i].dtype, 3, LONG);
            tn_tensor here = make(cpu, dtypes[i].dtype, 3, LONG);
            tn_generator *one = NULL, *two = NULL;
            must(tn_generator_create(77 + i, &one, &err));
            must(tn_generator_create(77 + i, &two, &err));
            must(normal ? tn_random_normal(one, &there, &err)
                        : tn_random_uniform(one, &there, &err));
            must(normal ? tn_random_normal(two, &here, &err) : tn_random_uniform(two, &here, &err));
            expect_same(&there, &here, dtypes[i].name);
            tn_generator_release(one);
            tn_generator_release(two);
            tn_tensor_release(&there);
            tn_tensor_release(&here);
        }
    }
}

/* in + in, softened, and a sum in parts, which needs scratch memory. */
typedef struct work {
    tn_tensor in, sum, rows, parts, square, product;
} work;

static work work_make(void)
{
    work w = {make(gpu, TN_F32, ROWS, SIZE), make(gpu, TN_F32, ROWS, SIZE),
              make(gpu, TN_F32, ROWS, SIZE), make(gpu, TN_F32, 1, 1),
              make(gpu, TN_F32, ROWS, ROWS), make(gpu, TN_F32, ROWS, ROWS)};
    must(tn_random_normal(NULL, &w.in, &err));
    must(tn_random_normal(NULL, &w.square, &err));
    must(tn_device_synchronize(gpu, &err));
    return w;
}

static void work_end(work *w)
{
    tn_tensor_release(&w->in);
    tn_tensor_release(&w->sum);
    tn_tensor_release(&w->rows);
    tn_tensor_release(&w->parts);
    tn_tensor_release(&w->square);
    tn_tensor_release(&w->product);
}

/* Where there is a library for products. */
static bool multiply(const work *w, tn_stream *on)
{
    tn_status status = tn_matmul(
        NULL, TN_ARGS(matmul, .a = &w->square, .b = &w->square, .out = &w->product, .stream = on),
        &err);
    if (status && status != TN_UNSUPPORTED && status != TN_REFUSED)
        fail_msg("%s: %s", err.where, err.message);
    return !status;
}

static void work_queue(const work *w, tn_stream *on)
{
    must(tn_binary(NULL,
                   TN_ARGS(binary, .in = &w->in, .other = &w->in, .out = &w->sum,
                           .kind = TN_BINARY_ADD, .stream = on),
                   &err));
    must(tn_softmax(NULL, TN_ARGS(softmax, .in = &w->sum, .out = &w->rows, .stream = on), &err));
    must(tn_reduce(NULL,
                   TN_ARGS(reduce, .in = &w->rows, .out = &w->parts, .axes = 3, .keep = 1,
                           .kind = TN_REDUCE_SUM, .stream = on),
                   &err));
}

static void work_keep(const work *w, tn_tensor *rows, tn_tensor *parts)
{
    *rows = make(cpu, TN_F32, ROWS, SIZE);
    *parts = make(cpu, TN_F32, 1, 1);
    must(tn_device_synchronize(gpu, &err));
    must(tn_copy(NULL, &w->rows, rows, &err));
    must(tn_copy(NULL, &w->parts, parts, &err));
    must(tn_device_synchronize(gpu, &err));
}

static void a_graph_of_kernels_gives_what_the_calls_give(void **state)
{
    tn_graph_info info = {.struct_size = sizeof info};
    tn_graph *graph = NULL;
    tn_tensor rows, parts;
    (void)state;
    begin();
    work w = work_make();
    work_queue(&w, stream);
    must(tn_graph_begin(stream, &err));
    work_queue(&w, stream);
    assert_int_equal(tn_stream_synchronize(stream, &err), TN_UNSUPPORTED);
    must(tn_graph_end(stream, &graph, &err));
    must(tn_graph_info_get(graph, &info, &err));
    assert_int_equal(info.steps, 3);
    assert_int_equal(info.native, 1);
    assert_true(info.arena_bytes > 0);
    for (int turn = 0; turn < 4; turn++) {
        must(tn_random_normal(NULL, &w.in, &err));
        must(tn_device_synchronize(gpu, &err));
        work_queue(&w, stream);
        work_keep(&w, &rows, &parts);
        must(tn_fill(NULL, TN_ARGS(fill, .out = &w.rows, .value = -1, .stream = stream), &err));
        must(tn_fill(NULL, TN_ARGS(fill, .out = &w.parts, .value = -1, .stream = stream), &err));
        must(tn_stream_synchronize(stream, &err));
        must(tn_graph_run(graph, turn % 2 ? stream : other, &err));
        must(tn_graph_run(graph, turn % 2 ? other : stream, &err));
        expect_same(&w.rows, &rows, "softmax in a graph");
        expect_same(&w.parts, &parts, "sum in a graph");
        tn_tensor_release(&rows);
        tn_tensor_release(&parts);
    }
    must(tn_graph_run(graph, stream, &err));
    tn_graph_release(graph);
    must(tn_stream_synchronize(stream, &err));
    work_end(&w);
}

/* cuBLASLt is recorded as our own kernels are. */
static void a_product_in_a_graph_is_the_product(void **state)
{
    tn_graph *graph = NULL;
    (void)state;
    begin();
    work w = work_make();
    tn_tensor expected = make(cpu, TN_F32, ROWS, ROWS);
    if (!multiply(&w, stream)) {
        print_message("skipped: no kernel multiplies here: %s\n", err.message);
        work_end(&w);
        tn_tensor_release(&expected);
        skip();
    }
    must(tn_stream_synchronize(stream, &err));
    must(tn_copy(NULL, &w.product, &expected, &err));
    must(tn_device_synchronize(gpu, &err));
    must(tn_graph_begin(stream, &err));
    assert_true(multiply(&w, stream));
    must(tn_graph_end(stream, &graph, &err));
    must(tn_fill(NULL, TN_ARGS(fill, .out = &w.product, .value = -1, .stream = stream), &err));
    must(tn_graph_run(graph, stream, &err));
    must(tn_stream_synchronize(stream, &err));
    expect_same(&w.product, &expected, "a product in a graph");
    tn_graph_release(graph);
    work_end(&w);
    tn_tensor_release(&expected);
}

/* Attention of q, k and v by one kernel, or by none where that is refused; all are [sequences heads queries, size]. */
static bool attend_by(const char *kernel, const tn_tensor of[4], tn_stream *on)
{
    const int64_t shape[] = {2, 4, 256, 64};
    char setting[96];
    tn_tensor as[4];
    tn_change change;
    tn_context *only = NULL;
    snprintf(setting, sizeof setting, "rules=require:%s", kernel);
    must(tn_setting_parse(setting, &change, &err));
    must(tn_context_derive(NULL, &change, 1, &only, &err));
    for (int i = 0; i < 4; i++)
        must(tn_tensor_wrap(gpu, of[i].data, TN_BF16, shape, NULL, 4, NULL, NULL, &as[i], &err));
    tn_status status = tn_attention(
        only,
        TN_ARGS(attention, .q = &as[0], .k = &as[1], .v = &as[2], .out = &as[3], .stream = on),
        &err);
    for (int i = 0; i < 4; i++)
        tn_tensor_release(&as[i]);
    tn_context_release(only);
    if (status && status != TN_UNSUPPORTED && status != TN_REFUSED)
        fail_msg("%s: %s", err.where, err.message);
    return !status;
}

/* cuDNN is recorded as our own kernels are; a graph reads what is there when it runs. */
static void attention_in_a_graph_is_the_attention(void **state)
{
    static const char *const kernels[] = {"cuda.attention.cudnn", "cuda.attention.own"};
    enum { COUNT = 2 * 4 * 256, WIDE = 64 };
    tn_tensor of[4], expected;
    (void)state;
    begin();
    expected = make(cpu, TN_BF16, COUNT, WIDE);
    for (int i = 0; i < 4; i++)
        of[i] = make(gpu, TN_BF16, COUNT, WIDE);
    for (size_t n = 0; n < sizeof kernels / sizeof kernels[0]; n++) {
        tn_graph *graph = NULL;
        if (!attend_by(kernels[n], of, stream)) {
            print_message("skipped: %s: %s\n", kernels[n], err.message);
            continue;
        }
        must(tn_graph_begin(stream, &err));
        assert_true(attend_by(kernels[n], of, stream));
        must(tn_graph_end(stream, &graph, &err));
        for (int i = 0; i < 3; i++)
            must(tn_random_normal(NULL, &of[i], &err));
        must(tn_device_synchronize(gpu, &err));
        assert_true(attend_by(kernels[n], of, stream));
        must(tn_stream_synchronize(stream, &err));
        must(tn_copy(NULL, &of[3], &expected, &err));
        must(tn_device_synchronize(gpu, &err));
        must(tn_fill(NULL, TN_ARGS(fill, .out = &of[3], .value = -1, .stream = stream), &err));
        must(tn_graph_run(graph, stream, &err));
        must(tn_stream_synchronize(stream, &err));
        expect_same(&of[3], &expected, kernels[n]);
        tn_graph_release(graph);
    }
    for (int i = 0; i < 4; i++)
        tn_tensor_release(&of[i]);
    tn_tensor_release(&expected);
}

/* As PyTorch captures: with the driver's strictest mode, and a graph that is the program's own. */
static void calls_become_part_of_the_programs_graph(void **state)
{
    enum { GLOBAL = 0 };
    cu_graph graph = NULL;
    cu_graph_exec exec = NULL;
    tn_tensor rows, parts;
    void *taken = NULL;
    (void)state;
    begin();
    bind_driver();
    const cu_stream raw = (cu_stream)tn_stream_raw(stream);
    work w = work_make();
    work_queue(&w, stream);
    const bool multiplies = multiply(&w, stream);
    work_keep(&w, &rows, &parts);
    must(tn_device_set(tn_device_platform(gpu), 0, &err));
    assert_int_equal(driver.graph_begin(raw, GLOBAL), CUDA_SUCCESS);
    work_queue(&w, stream);
    assert_int_equal(multiply(&w, stream), multiplies);
    assert_int_equal(tn_stream_synchronize(stream, &err), TN_UNSUPPORTED);
    must(tn_memory_alloc(gpu, 3 << 20, "test", &taken, &err));
    tn_memory_free(gpu, taken);
    tn_memory_trim(gpu);
    assert_int_equal(driver.graph_end(raw, &graph), CUDA_SUCCESS);
    assert_int_equal(driver.graph_instantiate(&exec, graph, 0), CUDA_SUCCESS);
    must(tn_fill(NULL, TN_ARGS(fill, .out = &w.rows, .value = -1, .stream = stream), &err));
    must(tn_fill(NULL, TN_ARGS(fill, .out = &w.parts, .value = -1, .stream = stream), &err));
    for (int turn = 0; turn < 3; turn++)
        assert_int_equal(driver.graph_launch(exec, raw), CUDA_SUCCESS);
    must(tn_stream_synchronize(stream, &err));
    expect_same(&w.rows, &rows, "softmax in the program's graph");
    expect_same(&w.parts, &parts, "sum in the program's graph");
    assert_int_equal(driver.graph_exec_destroy(exec) || driver.graph_destroy(graph), CUDA_SUCCESS);
    tn_tensor_release(&rows);
    tn_tensor_release(&parts);
    work_end(&w);
}

static void assert_current(cu_context expected)
{
    cu_context now = NULL;
    assert_int_equal(driver.context_get(&now), CUDA_SUCCESS);
    assert_ptr_equal(now, expected);
}

/* Handles 1 and 2 are the default streams, that of old and the thread's own. */
static void use_default_streams(cu_context own)
{
    for (uintptr_t raw = 1; raw <= 2; raw++) {
        tn_tensor there = make(gpu, TN_F32, 1, SIZE), here = make(cpu, TN_F32, 1, SIZE);
        tn_stream *wrapped = NULL;
        must(tn_stream_wrap(gpu, (void *)raw, &wrapped, &err));
        must(tn_fill(NULL, TN_ARGS(fill, .out = &there, .value = 3, .stream = wrapped), &err));
        assert_current(own);
        must(tn_stream_synchronize(wrapped, &err));
        assert_current(own);
        must(tn_fill(NULL, TN_ARGS(fill, .out = &here, .value = 3), &err));
        expect_same(&there, &here, "a default stream");
        tn_stream_release(wrapped);
        tn_tensor_release(&there);
        tn_tensor_release(&here);
        assert_current(own);
    }
}

/* A context of the program's own is current before, between and after Tenon's calls and guards. */
static void the_programs_context_comes_back(void **state)
{
    cu_result (*create)(cu_context *, unsigned, int);
    cu_result (*destroy)(cu_context);
    cu_context own = NULL, inside = NULL;
    tn_device_guard guard = {0};
    (void)state;
    begin();
    bind_driver();
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *symbols[] = {dlsym(library, "cuCtxCreate_v2"), dlsym(library, "cuCtxDestroy_v2")};
    memcpy(&create, &symbols[0], sizeof create);
    memcpy(&destroy, &symbols[1], sizeof destroy);
    must(tn_device_synchronize(gpu, &err));
    assert_int_equal(create(&own, 0, 0), CUDA_SUCCESS);
    assert_current(own);
    use_default_streams(own);
    must(tn_device_guard_enter(&guard, gpu, &err));
    assert_int_equal(driver.context_get(&inside), CUDA_SUCCESS);
    assert_ptr_not_equal(inside, own);
    assert_int_equal(driver.context_set(NULL), CUDA_SUCCESS);
    tn_device_guard_leave(&guard);
    assert_current(own);
    assert_int_equal(destroy(own), CUDA_SUCCESS);
}

/* Launches a kernel that traps on the stream, behind Tenon's back. */
static void trap(void)
{
    static const char text[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                               ".visible .entry boom()\n{\n    trap;\n}\n";
    cu_module module = NULL;
    cu_function boom = NULL;
    bind_driver();
    must(tn_device_set(tn_device_platform(gpu), 0, &err));
    assert_int_equal(driver.module_load(&module, text), CUDA_SUCCESS);
    assert_int_equal(driver.module_function(&boom, module, "boom"), CUDA_SUCCESS);
    assert_int_equal(
        driver.launch(boom, 1, 1, 1, 1, 1, 1, 0, (cu_stream)tn_stream_raw(stream), NULL, NULL),
        CUDA_SUCCESS);
}

/* The processor computes all the same. */
static void expect_cpu_works(void)
{
    tn_tensor a = make(cpu, TN_F32, 8, 8), out = make(cpu, TN_F32, 8, 8);
    must(tn_fill(NULL, TN_ARGS(fill, .out = &a, .value = 1), &err));
    must(tn_matmul(NULL, TN_ARGS(matmul, .a = &a, .b = &a, .out = &out), &err));
    assert_true(*(float *)out.data == 8);
    tn_tensor_release(&a);
    tn_tensor_release(&out);
}

static void a_trap_is_told_with_what_ran_and_leaves_the_process_well(void **state)
{
    char cause[sizeof err.message];
    void *none = NULL;
    (void)state;
    begin();
    work w = work_make();
    work_queue(&w, stream);
    trap();
    assert_int_equal(tn_stream_synchronize(stream, &err), TN_DEVICE_LOST);
    print_message("%s\n", err.message);
    assert_contains(err.message, "CUDA_ERROR_");
    assert_contains(err.message, "reduce:f32"); /* the last problem that ran there */
    assert_int_equal(tn_device_health(gpu, &err), TN_DEVICE_LOST);
    snprintf(cause, sizeof cause, "%s", err.message);
    print_message("%s\n", cause);
    assert_int_equal(tn_memory_alloc(gpu, 4096, NULL, &none, &err), TN_DEVICE_LOST);
    assert_int_equal(tn_stream_synchronize(other, &err), TN_DEVICE_LOST);
    assert_contains(err.message, "CUDA_ERROR_");
    expect_cpu_works();
    work_end(&w);
    tn_stream_release(stream);
    tn_stream_release(other);
    stream = other = NULL;
    tn_status status = tn_device_reset(gpu, &err);
    print_message("after a trap the device %s%s\n", status ? "stays lost: " : "was opened anew",
                  status ? err.message : "");
    if (status) {
        assert_int_equal(status, TN_DEVICE_LOST);
        assert_contains(err.message, "start the process anew");
    } else {
        random_numbers_have_the_processors_bits(NULL);
    }
    expect_cpu_works();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_numbers_have_the_processors_bits),
        cmocka_unit_test(a_graph_of_kernels_gives_what_the_calls_give),
        cmocka_unit_test(a_product_in_a_graph_is_the_product),
        cmocka_unit_test(attention_in_a_graph_is_the_attention),
        cmocka_unit_test(calls_become_part_of_the_programs_graph),
        cmocka_unit_test(the_programs_context_comes_back),
        cmocka_unit_test(a_trap_is_told_with_what_ran_and_leaves_the_process_well),
    };
    return run_suite("cuda.hardware", tests);
}
