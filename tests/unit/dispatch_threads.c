/* The plan cache while eight threads run, clear and evict; and forking beside them. */
#include "toy.h"

#include "os/thread.h"

enum { THREADS = 8 };

typedef struct worker {
    tni_thread thread;
    int number;
    int rounds;
    int64_t wrong;
    int64_t failed;
} worker;

/* One product whose result is known, with a k of its own choice. */
static void multiply(worker *w, tn_device *device, tn_context *context, int round)
{
    int64_t k = 4 * (1 + (round * 7 + w->number) % 6), m = 1 + round % 3;
    tn_tensor a = {0}, b = {0}, out = {0};
    const int64_t a_shape[] = {m, k}, b_shape[] = {k, 2}, out_shape[] = {m, 2};
    tn_error err;
    bool made = !tn_tensor_create(device, TN_F32, a_shape, 2, &a, &err) &&
                !tn_tensor_create(device, TN_F32, b_shape, 2, &b, &err) &&
                !tn_tensor_create(device, TN_F32, out_shape, 2, &out, &err);
    for (int64_t i = 0; made && i < m * k; i++)
        ((float *)a.data)[i] = 1;
    for (int64_t i = 0; made && i < 2 * k; i++)
        ((float *)b.data)[i] = (float)w->number;
    if (!made || tn_matmul(context, TN_ARGS(matmul, .a = &a, .b = &b, .out = &out), &err))
        w->failed++;
    else
        w->wrong += ((float *)out.data)[2 * m - 1] != (float)(k * w->number);
    tn_tensor_release(&a), tn_tensor_release(&b), tn_tensor_release(&out);
}

static void work(void *user)
{
    worker *w = user;
    tn_device *device = NULL;
    tn_context *small = NULL;
    tn_error err;
    tn_change change = tn_with_plan_cache_size(4);
    if (tn_device_get("toy:0", &device, &err) ||
        tn_context_derive(NULL, &change, 1, &small, &err)) {
        w->failed++;
        return;
    }
    for (int round = 0; round < w->rounds; round++) {
        multiply(w, device, round % 2 ? small : NULL, round);
        if (round % 37 == w->number)
            tn_plan_cache_clear(round % 2 ? device : NULL, TN_OP_NONE);
    }
    tn_context_release(small);
}

static void eight_threads_run_clear_and_evict(void **state)
{
    (void)state;
    worker workers[THREADS];
    tn_error err;
    tn_plan_cache_state s = {.struct_size = sizeof s};
    toy_device();
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){.number = i + 1, .rounds = test_reduced() ? 300 : 3000};
        assert_int_equal(tni_thread_create(&workers[i].thread, work, &workers[i], &err), TN_OK);
    }
    for (int i = 0; i < THREADS; i++) {
        tni_thread_join(workers[i].thread);
        assert_int_equal(workers[i].failed, 0);
        assert_int_equal(workers[i].wrong, 0);
    }
    tn_plan_cache_clear(NULL, TN_OP_NONE);
    assert_int_equal(tn_plan_cache_state_get(NULL, NULL, 0, &s, &err), TN_OK);
    assert_int_equal(s.size, 0);
    assert_int_equal(s.bytes, 0);
    assert_true(toy.plans <= 8); /* given back, but for what the stream remembers to have run */
    assert_true(s.hits > 0 && s.misses > 0 && s.evictions > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(eight_threads_run_clear_and_evict)};
    return run_suite("unit.dispatch_threads", tests);
}
