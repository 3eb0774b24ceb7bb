/* What cuFFT is told of transforms, against its stub: layouts, work areas, streams, failures; by one thread and by several at
 * once. */
#include "test.h"

#include "../../backends/cuda/lib/cufft/cufft.h"
#include "stub_cufft.h"
#include "tenon/tenon.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

static tn_device *device;
static _Thread_local tn_error err;
static stub_fft_seen *seen;

#define DO(call)                                                   \
    do {                                                           \
        if (call)                                                  \
            fail_msg("%s: %s: %s", #call, err.where, err.message); \
    } while (0)

static void begin(void)
{
    DO(tn_settings_reset(NULL, &err));
    DO(tn_settings_set("admission=never", &err)); /* the stub computes nothing */
    unsetenv("STUB_FFT");
    unsetenv("STUB_FFT_WORK");
    unsetenv("STUB_FFT_EXEC");
    if (!device) {
        DO(tn_module_file_add(CUDA_MODULE, TN_MODULE_TRUSTED, &err));
        DO(tn_device_get("cuda:0", &device, &err));
        void *library = dlopen(FFT_STUB, RTLD_NOW | RTLD_LOCAL);
        assert_non_null(library);
        seen = dlsym(library, "stub_cufft_seen");
        assert_non_null(seen);
    }
    tn_plan_cache_clear(NULL, 0);
}

typedef struct problem {
    tn_dtype in, out;
    int32_t rank, dims, direction, norm;
    int64_t shape[4], in_shape[4], in_strides[4];
} problem;

/* A transform whose operands are dense, or in has strides; `in_shape` is shape if its first is 0. */
static tn_status transform(const problem *p, tn_error *out_err)
{
    static const int32_t last[] = {0, 1, 2, 3};
    tn_tensor in, out;
    void *memory = NULL;
    const int64_t *in_shape = p->in_shape[0] ? p->in_shape : p->shape;
    DO(tn_memory_alloc(device, 1 << 20, "test", &memory, &err));
    DO(tn_tensor_wrap(device, (char *)memory + (1 << 19), p->in, in_shape,
                      p->in_strides[0] || p->in_strides[1] ? p->in_strides : NULL, p->rank, NULL,
                      NULL, &in, &err));
    DO(tn_tensor_wrap(device, memory, p->out, p->shape, NULL, p->rank, NULL, NULL, &out, &err));
    const tn_status status =
        tn_fft(NULL,
               TN_ARGS(fft, .in = &in, .out = &out, .axes = last + p->rank - p->dims,
                       .axes_count = p->dims, .direction = p->direction, .norm = p->norm),
               out_err);
    DO(tn_device_synchronize(device, &err));
    tn_tensor_release(&in), tn_tensor_release(&out);
    tn_memory_free(device, memory);
    return status;
}

static const stub_fft_plan *last_plan(void)
{
    return &seen->plans[atomic_load(&seen->made)];
}

static void layouts_are_those_of_the_operands(void **state)
{
    (void)state;
    begin();
    const problem padded = {.in = TN_C64,
                            .out = TN_C64,
                            .rank = 3,
                            .dims = 2,
                            .shape = {3, 4, 6},
                            .in_strides = {100, 18, 2}};
    DO(transform(&padded, &err));
    const stub_fft_plan *plan = last_plan();
    assert_int_equal(plan->rank, 2);
    assert_int_equal(plan->lengths[0], 4);
    assert_int_equal(plan->lengths[1], 6);
    assert_int_equal(plan->in_stride, 2);
    assert_int_equal(plan->in_embed[1], 9);
    assert_int_equal(plan->in_distance, 100);
    assert_int_equal(plan->out_stride, 1);
    assert_int_equal(plan->out_embed[1], 6);
    assert_int_equal(plan->out_distance, 24);
    assert_int_equal(plan->batch, 3);
    assert_int_equal(plan->in_type, FFT_C32);
    assert_int_equal(plan->direction, FFT_FORWARD);
    assert_true(plan->in - plan->out == 1 << 19); /* neither is copied */
    const problem half = {
        .in = TN_F64, .out = TN_C128, .rank = 2, .dims = 1, .shape = {5, 9}, .in_shape = {5, 16}};
    DO(transform(&half, &err));
    plan = last_plan();
    assert_int_equal(plan->lengths[0], 16);
    assert_int_equal(plan->in_type, FFT_R64);
    assert_int_equal(plan->out_type, FFT_C64);
    assert_int_equal(plan->in_distance, 16);
    assert_int_equal(plan->out_distance, 9);
    assert_int_equal(atomic_load(&seen->unready), 0);
}

/* The library overwrites the input of complex to real: it is given a copy. */
static void the_input_of_complex_to_real_is_a_copy(void **state)
{
    const problem real = {.in = TN_C64,
                          .out = TN_F32,
                          .rank = 2,
                          .dims = 1,
                          .direction = TN_FFT_INVERSE,
                          .shape = {5, 16},
                          .in_shape = {5, 9}};
    (void)state;
    begin();
    DO(transform(&real, &err));
    const stub_fft_plan *plan = last_plan();
    assert_int_equal(plan->in_type, FFT_C32);
    assert_int_equal(plan->out_type, FFT_R32);
    assert_true(plan->in != plan->out + (1 << 19));
    assert_int_equal(plan->in_distance, 9);
}

/* The library has forward from real and inverse to real only. */
static void both_directions_with_real_numbers(void **state)
{
    (void)state;
    begin();
    static const int32_t directions[] = {TN_FFT_FORWARD, TN_FFT_INVERSE};
    for (int32_t i = 0; i < 2; i++) {
        const problem from = {.in = TN_F32,
                              .out = TN_C64,
                              .rank = 2,
                              .dims = 1,
                              .direction = directions[i],
                              .shape = {5, 9},
                              .in_shape = {5, 16}};
        DO(transform(&from, &err));
        assert_int_equal(last_plan()->direction, FFT_FORWARD);
        const problem to = {.in = TN_C64,
                            .out = TN_F32,
                            .rank = 2,
                            .dims = 1,
                            .direction = directions[i],
                            .shape = {5, 16},
                            .in_shape = {5, 9}};
        DO(transform(&to, &err));
        assert_int_equal(last_plan()->direction, FFT_INVERSE);
    }
}

static const problem usual = {.in = TN_C64, .out = TN_C64, .rank = 2, .dims = 1, .shape = {4, 64}};

static void the_work_area_is_ours(void **state)
{
    (void)state;
    begin();
    DO(transform(&usual, &err));
    assert_true(last_plan()->is_own_work && last_plan()->work);
    begin();
    setenv("STUB_FFT_WORK", "0", 1);
    DO(transform(&usual, &err));
    assert_int_equal(last_plan()->work, 0);
    begin();
    setenv("STUB_FFT_WORK", "1099511627776", 1); /* more than the device has */
    assert_int_equal(transform(&usual, &err), TN_OUT_OF_MEMORY);
    assert_int_equal(atomic_load(&seen->unready), 0);
}

static void failures_are_named(void **state)
{
    (void)state;
    begin();
    const int alive = atomic_load(&seen->made) - atomic_load(&seen->destroyed);
    setenv("STUB_FFT", "16", 1);
    const problem odd = {.in = TN_C64, .out = TN_C64, .rank = 2, .dims = 1, .shape = {4, 77}};
    assert_int_equal(transform(&odd, &err), TN_UNSUPPORTED);
    assert_contains(err.message, "cuFFT does not support this transform");
    setenv("STUB_FFT", "2", 1);
    assert_int_equal(transform(&usual, &err), TN_OUT_OF_MEMORY);
    assert_contains(err.message, "cuFFT has no memory");
    setenv("STUB_FFT", "6", 1);
    assert_int_equal(transform(&usual, &err), TN_INTERNAL);
    assert_contains(err.message, "cuFFT's result is 6");
    assert_true(atomic_load(&seen->made) - atomic_load(&seen->destroyed) <= alive);
    begin();
    setenv("STUB_FFT_EXEC", "5", 1);
    assert_int_equal(transform(&usual, &err), TN_INTERNAL);
}

static int queue_once(tn_stream *stream)
{
    static const int32_t last = 1;
    const int64_t shape[] = {4, 128};
    tn_tensor in, out;
    DO(tn_tensor_create(device, TN_C64, shape, 2, &in, &err));
    DO(tn_tensor_create(device, TN_C64, shape, 2, &out, &err));
    DO(tn_fft(
        NULL,
        TN_ARGS(fft, .in = &in, .out = &out, .axes = &last, .axes_count = 1, .stream = stream),
        &err));
    tn_tensor_release(&in), tn_tensor_release(&out);
    return atomic_load(&seen->made);
}

/* Records it if `user` says so. Gives the number of its handle in the same place. */
static void *transform_and_record(void *user)
{
    int *place = user;
    const bool records = *place;
    tn_stream *stream = NULL;
    tn_graph *graph = NULL;
    DO(tn_stream_create(device, NULL, &stream, &err));
    *place = queue_once(stream);
    if (records) {
        const int transforms = atomic_load(&seen->transforms);
        DO(tn_graph_begin(stream, &err));
        (void)queue_once(stream);
        DO(tn_graph_end(stream, &graph, &err));
        assert_int_equal(atomic_load(&seen->transforms), transforms + 1);
        DO(tn_graph_run(graph, stream, &err));
    }
    DO(tn_stream_synchronize(stream, &err));
    tn_graph_release(graph);
    tn_stream_release(stream);
    tn_plan_cache_clear(NULL, 0);
    return NULL;
}

/* A recorded handle outlives its plan: nothing tells when the program's last graph with it ends. The thread that
 * remembered the plan ends. */
static void a_recorded_transform_keeps_its_handle(void **state)
{
    (void)state;
    for (int records = 0; records < 2; records++) {
        int handle = records;
        pthread_t thread;
        begin();
        assert_int_equal(pthread_create(&thread, NULL, transform_and_record, &handle), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(atomic_load(&seen->plans[handle].alive), records);
    }
    assert_int_equal(atomic_load(&seen->unready), 0);
}

static int64_t plans_on(const char *name, int64_t *out_max)
{
    tn_plan_cache_state is = {.struct_size = sizeof is};
    tn_device *on;
    DO(tn_device_get(name, &on, &err));
    DO(tn_plan_cache_state_get(NULL, on, TN_OP_FFT, &is, &err));
    *out_max = is.max_size;
    return is.size;
}

static void prepare(const char *name, int64_t length)
{
    char text[64];
    snprintf(text, sizeof text, "fft:c64:shape=4x%lld@%s", (long long)length, name);
    DO(tn_prepare(NULL, text, &err));
}

/* cuda.cufft_plan_cache.max_size: how many of the library's handles live. A device may have a limit of its own. */
static void plans_are_limited_for_each_device(void **state)
{
    int64_t most;
    tn_device *other;
    (void)state;
    begin();
    const int before = atomic_load(&seen->made) - atomic_load(&seen->destroyed);
    DO(tn_settings_set("cuda.cufft_plan_cache.max_size=3", &err));
    for (int64_t i = 0; i < 8; i++) {
        prepare("cuda:0", 64 + i);
        prepare("cuda:1", 64 + i);
    }
    assert_int_equal(plans_on("cuda:0", &most), 3);
    assert_int_equal(most, 3);
    assert_int_equal(plans_on("cuda:1", &most), 3);
    assert_true(atomic_load(&seen->made) - atomic_load(&seen->destroyed) - before <= 6);
    DO(tn_device_get("cuda:1", &other, &err));
    DO(tn_plan_cache_limit_set(other, TN_OP_FFT, 1, &err));
    assert_int_equal(plans_on("cuda:0", &most), 3);
    assert_int_equal(plans_on("cuda:1", &most), 1);
    assert_int_equal(most, 1);
    assert_true(atomic_load(&seen->made) - atomic_load(&seen->destroyed) - before <= 4);
    /* One that cannot be made evicts nothing. */
    setenv("STUB_FFT", "2", 1);
    assert_int_equal(tn_prepare(NULL, "fft:c64:shape=4x99@cuda:1", &err), TN_OUT_OF_MEMORY);
    unsetenv("STUB_FFT");
    assert_int_equal(plans_on("cuda:1", &most), 1);
    const int made = atomic_load(&seen->made);
    prepare("cuda:1", 71); /* the newest is still there */
    assert_int_equal(atomic_load(&seen->made), made);
    /* Other plans are not counted. */
    DO(tn_settings_set("cuda.cufft_plan_cache.max_size=0", &err));
    prepare("cuda:0", 100);
    assert_int_equal(plans_on("cuda:0", &most), 0);
    DO(tn_plan_cache_limit_set(other, TN_OP_FFT, -1, &err));
    assert_int_equal(plans_on("cuda:1", &most), 0);
    DO(tn_settings_set("cuda.cufft_plan_cache.max_size=4096", &err));
    prepare("cuda:0", 100);
    assert_int_equal(plans_on("cuda:0", &most), 1);
    assert_int_equal(most, 4096);
}

static void *limit_often(void *stop)
{
    for (int64_t i = 0; !atomic_load((_Atomic int *)stop); i++)
        DO(tn_plan_cache_limit_set(device, TN_OP_FFT, i % 3, &err));
    return NULL;
}

static void *transform_often(void *failed)
{
    enum { TIMES = 200 };
    for (int i = 0; i < TIMES; i++) {
        tn_error said;
        if (transform(&usual, &said))
            atomic_store((_Atomic int *)failed, 1);
        if (i % 50 == 49)
            tn_plan_cache_clear(device, TN_OP_FFT);
    }
    return NULL;
}

/* While the limit of plans changes. */
static void threads_take_turns_with_a_handle(void **state)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    pthread_t limiter;
    _Atomic int failed = 0, stop = 0;
    (void)state;
    begin();
    assert_int_equal(pthread_create(&limiter, NULL, limit_often, &stop), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, transform_often, &failed), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    atomic_store(&stop, 1);
    assert_int_equal(pthread_join(limiter, NULL), 0);
    DO(tn_plan_cache_limit_set(device, TN_OP_FFT, -1, &err));
    assert_int_equal(failed, 0);
    assert_int_equal(atomic_load(&seen->crossed), 0);
    assert_int_equal(atomic_load(&seen->unready), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_are_those_of_the_operands),
        cmocka_unit_test(the_input_of_complex_to_real_is_a_copy),
        cmocka_unit_test(both_directions_with_real_numbers),
        cmocka_unit_test(the_work_area_is_ours),
        cmocka_unit_test(failures_are_named),
        cmocka_unit_test(a_recorded_transform_keeps_its_handle),
        cmocka_unit_test(plans_are_limited_for_each_device),
        cmocka_unit_test(threads_take_turns_with_a_handle),
    };
    return run_suite("cuda.cufft", tests);
}
