/* What settings do to the numbers of products on a GPU: whose bits change, and whose may not. Skipped without one.
 * Which of a few shapes show a change is told; one has to. */
#include "hardware.h"

#include <pthread.h>

typedef struct size {
    int64_t m, n, k;
} size;

/* With long sums and few outputs, which are split where that is permitted; and one of odd sizes, as cuBLASLt puts parts
 * together in 16 bits for those alone. */
static const size sizes[] = {{64, 64, 65536},    {128, 128, 16384}, {256, 256, 8192},
                             {16, 16, 32768},    {512, 512, 16384}, {32, 1024, 16384},
                             {128, 128, 131072}, {64, 256, 4096},   {127, 65, 4096}};
enum { SIZES = sizeof sizes / sizeof sizes[0], SETTINGS_MOST = 3 };

/* A and B on the device, the same for every product of one size, and out there and here. */
typedef struct product {
    tn_tensor a, b, out, here;
} product;

static void fill(tn_tensor *tensor, uint64_t seed)
{
    tn_generator *generator = NULL;
    must(tn_generator_create(seed, &generator, &err));
    must(tn_random_normal(generator, tensor, &err));
    tn_generator_release(generator);
}

static product product_make(tn_dtype dtype, size s)
{
    product made = {make(gpu, dtype, s.m, s.k), make(gpu, dtype, s.k, s.n),
                    make(gpu, dtype, s.m, s.n), make(cpu, dtype, s.m, s.n)};
    fill(&made.a, 1);
    fill(&made.b, 2);
    must(tn_device_synchronize(gpu, &err));
    return made;
}

static void product_end(product *p)
{
    tn_tensor_release(&p->a);
    tn_tensor_release(&p->b);
    tn_tensor_release(&p->out);
    tn_tensor_release(&p->here);
}

/* Computes, and waits until the result is here. Also for threads: fails no test. */
static tn_status product_run(const product *p, const tn_context *context, tn_stream *on,
                             tn_error *said)
{
    tn_status status = tn_matmul(
        context, TN_ARGS(matmul, .a = &p->a, .b = &p->b, .out = &p->out, .stream = on), said);
    if (!status)
        status = on ? tn_stream_synchronize(on, said) : tn_device_synchronize(gpu, said);
    if (!status)
        status = tn_copy(NULL, &p->out, &p->here, said);
    return status ? status : tn_device_synchronize(gpu, said);
}

static uint64_t bytes_of(const tn_tensor *tensor)
{
    uint64_t bytes = 0;
    must(tn_tensor_bytes(tensor, &bytes, &err));
    return bytes;
}

/* Settings end with NULL, or fill their array. */
static tn_context *context_of(const char *const settings[SETTINGS_MOST])
{
    tn_change changes[SETTINGS_MOST];
    tn_context *made = NULL;
    size_t count = 0;
    for (; count < SETTINGS_MOST && settings[count]; count++)
        must(tn_setting_parse(settings[count], &changes[count], &err));
    must(tn_context_derive(NULL, changes, count, &made, &err));
    return made;
}

static bool bits_differ(tn_dtype dtype, size s, const char *const one[SETTINGS_MOST],
                        const char *const two[SETTINGS_MOST])
{
    product p = product_make(dtype, s), q = product_make(dtype, s);
    tn_context *first = context_of(one), *second = context_of(two);
    must(product_run(&p, first, NULL, &err));
    must(product_run(&q, second, NULL, &err));
    const bool differ = memcmp(p.here.data, q.here.data, (size_t)bytes_of(&p.here)) != 0;
    tn_context_release(first);
    tn_context_release(second);
    product_end(&p);
    product_end(&q);
    return differ;
}

/* How many of the sizes show it. */
static int count_differing(const char *name, tn_dtype dtype, const char *const one[SETTINGS_MOST],
                           const char *const two[SETTINGS_MOST])
{
    int count = 0;
    print_message("%s:", name);
    for (int i = 0; i < SIZES; i++) {
        if (!bits_differ(dtype, sizes[i], one, two))
            continue;
        print_message(" %dx%dx%d", (int)sizes[i].m, (int)sizes[i].n, (int)sizes[i].k);
        count++;
    }
    print_message("%s\n", count ? "" : " none");
    return count;
}

#define BLAS         "cuda.preferred_blas_library=cublas"
#define WIDE(dtype)  "cuda.matmul.allow_" dtype "_reduced_precision_reduction=false"
#define WHOLE(dtype) "cuda.matmul.allow_" dtype "_reduced_precision_reduction_split_k=false"
/* Of one library and one of its answers, so that what differs is how parts of a sum are put together. */
#define ONLY(row) "rules=require:cuda.matmul." row

static const struct {
    const char *name;
    const char *one[SETTINGS_MOST], *two[SETTINGS_MOST];
    tn_dtype dtype;
} changes_of_bits[] = {
    {"tf32", {NULL}, {"cuda.matmul.fp32_precision=tf32"}, TN_F32},
    {"tf32, cublas", {BLAS}, {BLAS, "cuda.matmul.fp32_precision=tf32"}, TN_F32},
    {"bf16 reduction",
     {ONLY("cublaslt.half-reduced")},
     {WIDE("bf16"), ONLY("cublaslt.half")},
     TN_BF16},
    {"f16 reduction",
     {ONLY("cublaslt.half-reduced")},
     {WIDE("fp16"), ONLY("cublaslt.half")},
     TN_F16},
    {"f16 reduction, cublas",
     {BLAS, ONLY("cublas.half-reduced")},
     {BLAS, WIDE("fp16"), ONLY("cublas.half")},
     TN_F16},
    {"bf16 split", {NULL}, {WHOLE("bf16")}, TN_BF16},
    {"f16 split", {NULL}, {WHOLE("fp16")}, TN_F16},
    {"f16 sums", {NULL}, {"cuda.matmul.allow_fp16_accumulation=true"}, TN_F16},
    {"f16 sums, cublas", {BLAS}, {BLAS, "cuda.matmul.allow_fp16_accumulation=true"}, TN_F16},
    {"no memory", {NULL}, {"cuda.cublaslt_workspace_size=0"}, TN_BF16},
    {"little memory, cublas", {BLAS}, {BLAS, "cuda.cublas_workspace_size=16k"}, TN_BF16},
    {"library", {NULL}, {BLAS}, TN_F32},
};

/* Rows whose sums may be narrow are not taken where a setting forbids that: what differs above is the setting's doing. */
static void narrow_sums_are_refused(void **state)
{
    static const struct {
        const char *settings[SETTINGS_MOST];
        tn_dtype dtype;
    } forbidden[] = {{{WIDE("bf16"), ONLY("cublaslt.half-reduced")}, TN_BF16},
                     {{WIDE("fp16"), ONLY("cublaslt.half-reduced")}, TN_F16},
                     {{BLAS, WIDE("fp16"), ONLY("cublas.half-reduced")}, TN_F16}};
    (void)state;
    begin_gpu();
    for (size_t i = 0; i < sizeof forbidden / sizeof forbidden[0]; i++) {
        tn_context *context = context_of(forbidden[i].settings);
        product p = product_make(forbidden[i].dtype, sizes[SIZES - 1]);
        assert_int_equal(product_run(&p, context, NULL, &err), TN_REFUSED);
        product_end(&p);
        tn_context_release(context);
    }
}

static void settings_change_the_bits(void **state)
{
    const char *silent = NULL;
    (void)state;
    begin_gpu();
    for (size_t i = 0; i < sizeof changes_of_bits / sizeof changes_of_bits[0]; i++) {
        if (!count_differing(changes_of_bits[i].name, changes_of_bits[i].dtype,
                             changes_of_bits[i].one, changes_of_bits[i].two))
            silent = changes_of_bits[i].name;
    }
    if (silent)
        fail_msg("%s: no size shows it", silent);
}

/* Views of one setting, and the same settings again. */
static void others_leave_them(void **state)
{
    static const char *const tf32[SETTINGS_MOST] = {"cuda.matmul.fp32_precision=tf32"};
    static const char *const same[][SETTINGS_MOST] = {{"cuda.matmul.fp32_precision=tf32"},
                                                      {"cuda.matmul.allow_tf32=true"},
                                                      {"float32_matmul_precision=high"},
                                                      {"cuda.fp32_precision=tf32"}};
    (void)state;
    begin_gpu();
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        assert_int_equal(count_differing(same[i][0], TN_F32, tf32, same[i]), 0);
}

/* On two streams by turns, without waiting in between. */
static void runs_repeat(void **state)
{
    enum { TURNS = 16 };
    static const char *const settings[SETTINGS_MOST] = {"determinism=run-to-run"};
    tn_stream *streams[2] = {NULL, NULL};
    (void)state;
    begin_gpu();
    tn_context *context = context_of(settings);
    product p = product_make(TN_BF16, sizes[0]);
    tn_tensor outs[TURNS], here = make(cpu, TN_BF16, sizes[0].m, sizes[0].n);
    must(product_run(&p, context, NULL, &err));
    for (int i = 0; i < 2; i++)
        must(tn_stream_create(gpu, NULL, &streams[i], &err));
    for (int i = 0; i < TURNS; i++) {
        outs[i] = make(gpu, TN_BF16, sizes[0].m, sizes[0].n);
        must(tn_matmul(
            context,
            TN_ARGS(matmul, .a = &p.a, .b = &p.b, .out = &outs[i], .stream = streams[i % 2]),
            &err));
    }
    must(tn_device_synchronize(gpu, &err));
    for (int i = 0; i < TURNS; i++) {
        must(tn_copy(NULL, &outs[i], &here, &err));
        must(tn_device_synchronize(gpu, &err));
        assert_memory_equal(here.data, p.here.data, (size_t)bytes_of(&here));
        tn_tensor_release(&outs[i]);
    }
    for (int i = 0; i < 2; i++)
        tn_stream_release(streams[i]);
    tn_tensor_release(&here);
    tn_context_release(context);
    product_end(&p);
}

static tn_tensor whole_numbers(tn_device *device, int64_t rows, int64_t columns)
{
    tn_tensor here = make(cpu, TN_I8, rows, columns), made = make(device, TN_I8, rows, columns);
    tn_generator *generator = NULL;
    must(tn_generator_create(3, &generator, &err));
    must(tn_random_fill_uniform(generator, TN_U32, here.data, rows * columns / 4, &err));
    must(tn_copy(NULL, &here, &made, &err));
    must(tn_device_synchronize(device, &err));
    tn_generator_release(generator);
    tn_tensor_release(&here);
    return made;
}

/* Of `rows` rows, computed on a device, in host memory. */
static tn_tensor whole_product(const tn_context *context, tn_device *device, int64_t rows)
{
    enum { SIDE = 256, DEEP = 512 };
    tn_tensor a = whole_numbers(device, rows, DEEP), b = whole_numbers(device, SIDE, DEEP);
    tn_tensor out = make(device, TN_I32, rows, SIDE), here = make(cpu, TN_I32, rows, SIDE);
    must(
        tn_matmul(context, TN_ARGS(matmul, .a = &a, .b = &b, .out = &out, .transpose_b = 1), &err));
    must(tn_device_synchronize(device, &err));
    must(tn_copy(NULL, &out, &here, &err));
    must(tn_device_synchronize(device, &err));
    tn_tensor_release(&a);
    tn_tensor_release(&b);
    tn_tensor_release(&out);
    return here;
}

/* Rows of A alone have the bits that they have among others, in whatever tile. */
static void assert_rows_are_their_own(const tn_context *context, tn_dtype dtype)
{
    static const size alike[] = {{1, 320, 777}, {33, 320, 777}, {3000, 320, 777}};
    product many = product_make(dtype, alike[2]);
    must(product_run(&many, context, NULL, &err));
    for (int i = 0; i < 2; i++) {
        product few = product_make(dtype, alike[i]);
        must(product_run(&few, context, NULL, &err));
        assert_memory_equal(few.here.data, many.here.data, (size_t)bytes_of(&few.here));
        product_end(&few);
    }
    product_end(&many);
}

/* What depends on no batch is promised of integers and of our own kernel's floats; on no device, of integers alone. */
static void stricter_classes_are_kept_or_refused(void **state)
{
    static const char *const invariant[SETTINGS_MOST] = {"determinism=batch-invariant"},
                             *const anywhere[SETTINGS_MOST] = {"determinism=cross-device"},
                             *const libraries[SETTINGS_MOST] = {"determinism=batch-invariant",
                                                                "rules=forbid:cuda.matmul.own"};
    static const tn_dtype floats[] = {TN_F32, TN_F64, TN_BF16, TN_F16};
    (void)state;
    begin_gpu();
    tn_context *one = context_of(invariant), *two = context_of(anywhere);
    tn_context *without = context_of(libraries);
    product p = product_make(TN_BF16, sizes[3]);
    assert_int_equal(product_run(&p, without, NULL, &err), TN_REFUSED);
    assert_contains(err.message, "no kernel can compute it"); /* neither library's */
    assert_int_equal(product_run(&p, two, NULL, &err), TN_REFUSED);
    assert_contains(err.message, "cross-device");
    for (int i = 0; i < 4; i++)
        assert_rows_are_their_own(one, floats[i]);
    tn_tensor many = whole_product(one, gpu, 128), few = whole_product(one, gpu, 16);
    assert_memory_equal(few.data, many.data, (size_t)bytes_of(&few));
    tn_tensor there = whole_product(two, gpu, 128), here = whole_product(NULL, cpu, 128);
    assert_memory_equal(there.data, here.data, (size_t)bytes_of(&here));
    tn_tensor_release(&many);
    tn_tensor_release(&few);
    tn_tensor_release(&there);
    tn_tensor_release(&here);
    tn_context_release(one);
    tn_context_release(two);
    tn_context_release(without);
    product_end(&p);
}

/* Small whole numbers, whose products are exact in every dtype here. */
static tn_tensor small_numbers(tn_dtype dtype, int64_t m, int64_t n, uint32_t seed)
{
    tn_tensor wide = make(cpu, TN_F32, m, n), here = make(cpu, dtype, m, n);
    float *numbers = wide.data;
    for (int64_t i = 0; i < m * n; i++) {
        seed = seed * 1664525 + 1013904223;
        numbers[i] = (float)(seed >> 30) - 1;
    }
    must(tn_cast(NULL, TN_ARGS(cast, .in = &wide, .out = &here), &err));
    tn_tensor_release(&wide);
    return here;
}

static tn_tensor sent(const tn_tensor *here)
{
    tn_tensor there = make(gpu, here->dtype, here->shape[0], here->shape[1]);
    must(tn_copy(NULL, here, &there, &err));
    must(tn_device_synchronize(gpu, &err));
    return there;
}

/* Of many sizes, one of them without rows, against the processor. */
static void groups_are_what_each_is_alone(void **state)
{
    enum { GROUPS = 40 };
    static const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_BF16, TN_F16};
    (void)state;
    begin_gpu();
    for (int t = 0; t < 4; t++) {
        tn_tensor a[GROUPS], b[GROUPS], out[GROUPS], expected[GROUPS];
        tn_matmul_args args[GROUPS];
        const tn_matmul_args *groups[GROUPS];
        for (int i = 0; i < GROUPS; i++) {
            const int64_t m = i % 7 * 5, n = 16 + i, k = 8 + i;
            tn_tensor on_left = small_numbers(dtypes[t], m, k, (uint32_t)i);
            tn_tensor on_right = small_numbers(dtypes[t], k, n, (uint32_t)(i + 99));
            expected[i] = make(cpu, dtypes[t], m, n);
            must(tn_matmul(
                NULL, TN_ARGS(matmul, .a = &on_left, .b = &on_right, .out = &expected[i]), &err));
            a[i] = sent(&on_left), b[i] = sent(&on_right), out[i] = make(gpu, dtypes[t], m, n);
            args[i] = (tn_matmul_args){
                .struct_size = sizeof args[i], .a = &a[i], .b = &b[i], .out = &out[i]};
            groups[i] = &args[i];
            tn_tensor_release(&on_left), tn_tensor_release(&on_right);
        }
        must(tn_matmul_grouped(NULL, groups, GROUPS, &err));
        must(tn_device_synchronize(gpu, &err));
        for (int i = 0; i < GROUPS; i++) {
            tn_tensor here = make(cpu, dtypes[t], out[i].shape[0], out[i].shape[1]);
            must(tn_copy(NULL, &out[i], &here, &err));
            must(tn_device_synchronize(gpu, &err));
            assert_memory_equal(here.data, expected[i].data, (size_t)bytes_of(&here));
            tn_tensor_release(&here), tn_tensor_release(&a[i]), tn_tensor_release(&b[i]);
            tn_tensor_release(&out[i]), tn_tensor_release(&expected[i]);
        }
    }
}

/* A thread with settings and a stream of its own, and what it has to find. */
typedef struct worker {
    pthread_t thread;
    tn_context *context;
    tn_stream *stream;
    product p;
    tn_tensor expected;
    uint64_t bytes;
    int wrong;
    tn_status status;
    tn_error said;
} worker;

static void *work(void *any)
{
    enum { TURNS = 100 };
    worker *w = any;
    for (int i = 0; i < TURNS && !w->status; i++) {
        memset(w->p.here.data, 0, (size_t)w->bytes);
        w->status = product_run(&w->p, w->context, w->stream, &w->said);
        w->wrong += memcmp(w->p.here.data, w->expected.data, (size_t)w->bytes) != 0;
    }
    return NULL;
}

static void worker_begin(worker *w, tn_dtype dtype, size s, const char *const *settings)
{
    *w = (worker){.context = context_of(settings), .p = product_make(dtype, s)};
    w->bytes = bytes_of(&w->p.here);
    w->expected = make(cpu, dtype, s.m, s.n);
    must(tn_stream_create(gpu, NULL, &w->stream, &err));
    must(product_run(&w->p, w->context, w->stream, &err));
    memcpy(w->expected.data, w->p.here.data, (size_t)w->bytes);
}

static void worker_end(worker *w)
{
    tn_stream_release(w->stream);
    tn_context_release(w->context);
    tn_tensor_release(&w->expected);
    product_end(&w->p);
}

/* cuBLAS has one handle for both, and cuBLASLt none of a product's state. */
static void two_threads_have_the_bits_of_their_settings(void **state)
{
    static const struct {
        tn_dtype dtype;
        const char *settings[2][SETTINGS_MOST];
    } cases[] = {{TN_F32, {{BLAS}, {BLAS, "cuda.matmul.fp32_precision=tf32"}}},
                 {TN_BF16, {{NULL}, {WHOLE("bf16")}}}};
    (void)state;
    begin_gpu();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        worker workers[2];
        for (int t = 0; t < 2; t++)
            worker_begin(&workers[t], cases[i].dtype, sizes[1], cases[i].settings[t]);
        assert_true(memcmp(workers[0].expected.data, workers[1].expected.data,
                           (size_t)workers[0].bytes) != 0);
        for (int t = 0; t < 2; t++)
            assert_int_equal(pthread_create(&workers[t].thread, NULL, work, &workers[t]), 0);
        for (int t = 0; t < 2; t++)
            assert_int_equal(pthread_join(workers[t].thread, NULL), 0);
        for (int t = 0; t < 2; t++) {
            if (workers[t].status)
                fail_msg("%s: %s", workers[t].said.where, workers[t].said.message);
            assert_int_equal(workers[t].wrong, 0);
            worker_end(&workers[t]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_change_the_bits),
        cmocka_unit_test(narrow_sums_are_refused),
        cmocka_unit_test(others_leave_them),
        cmocka_unit_test(runs_repeat),
        cmocka_unit_test(stricter_classes_are_kept_or_refused),
        cmocka_unit_test(groups_are_what_each_is_alone),
        cmocka_unit_test(two_threads_have_the_bits_of_their_settings),
    };
    return run_suite("cuda.hardware_products", tests);
}
