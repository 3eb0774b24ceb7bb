/* Attention through the stub of cuDNN from several threads at once, each with a stream of its own: two share one
 * plan, and one has the switch off in its scope. */
#include "test.h"

#include "tenon/tenon.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>

enum { BATCH = 1, HEADS = 2, LENGTH = 8, SIZE = 8, ROUNDS = 60, WORKERS = 3 };

static tn_device *device;
static tn_tensor q, k, v;
static float expected[BATCH * HEADS * LENGTH * SIZE];
static tn_error err;

#define DO(call)                                                   \
    do {                                                           \
        if (call)                                                  \
            fail_msg("%s: %s: %s", #call, err.where, err.message); \
    } while (0)

static tn_tensor make(int seed)
{
    const int64_t shape[] = {BATCH, HEADS, LENGTH, SIZE};
    tn_tensor made = {0};
    DO(tn_tensor_create(device, TN_BF16, shape, 4, &made, &err));
    for (int i = 0; i < BATCH * HEADS * LENGTH * SIZE; i++) { /* the stub's memory is the host's */
        const float x = (float)((i * 7 + seed) % 11 - 5) / 8;
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        ((uint16_t *)made.data)[i] = (uint16_t)(bits >> 16);
    }
    return made;
}

static tn_status attend(const tn_tensor *out, tn_stream *stream, tn_error *why)
{
    return tn_attention(NULL,
                        TN_ARGS(attention, .q = &q, .k = &k, .v = &v, .out = out,
                                .mask = TN_MASK_CAUSAL, .stream = stream),
                        why);
}

static float number(const tn_tensor *of, int i)
{
    const uint32_t bits = (uint32_t)((uint16_t *)of->data)[i] << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static bool is_right(const tn_tensor *out)
{
    for (int i = 0; i < BATCH * HEADS * LENGTH * SIZE; i++) {
        if (number(out, i) != expected[i])
            return false;
    }
    return true;
}

typedef struct worker {
    pthread_t thread;
    tn_tensor out;
    tn_stream *stream;
    bool off; /* the switch */
    int right, refused;
    tn_error err;
} worker;

static void *work(void *any)
{
    worker *w = any;
    const tn_change change = tn_with_cuda_cudnn_sdp(!w->off);
    for (int i = 0; i < ROUNDS; i++) {
        tn_scope scope = {0};
        if (tn_scope_enter(&scope, &change, 1, &w->err))
            return NULL;
        memset(w->out.data, 0, BATCH * HEADS * LENGTH * SIZE * sizeof(uint16_t));
        tn_status status = attend(&w->out, w->stream, &w->err);
        w->refused += status == TN_REFUSED;
        if (!status && !tn_stream_synchronize(w->stream, &w->err))
            w->right += is_right(&w->out);
        tn_scope_leave(&scope);
    }
    return NULL;
}

static void threads_share_a_plan_and_not_a_switch(void **state)
{
    worker workers[WORKERS];
    (void)state;
    memset(workers, 0, sizeof workers);
    tn_tensor first = make(0);
    DO(attend(&first, NULL, &err));
    DO(tn_device_synchronize(device, &err));
    for (int i = 0; i < BATCH * HEADS * LENGTH * SIZE; i++)
        expected[i] = number(&first, i);
    assert_true(fabsf(expected[0] - number(&v, 0)) == 0); /* the first query sees one key */
    for (int i = 0; i < WORKERS; i++) {
        workers[i].out = make(0);
        workers[i].off = i == WORKERS - 1;
        DO(tn_stream_create(device, NULL, &workers[i].stream, &err));
    }
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    for (int i = 0; i < WORKERS; i++) {
        worker *w = &workers[i];
        assert_int_equal(pthread_join(w->thread, NULL), 0);
        if (w->off ? w->refused != ROUNDS : w->right != ROUNDS)
            fail_msg("worker %d: %d right, %d refused: %s", i, w->right, w->refused,
                     w->err.message);
        tn_stream_release(w->stream);
        tn_tensor_release(&w->out);
    }
    tn_tensor_release(&first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads_share_a_plan_and_not_a_switch)};
    if (tn_module_file_add(CUDA_MODULE, TN_MODULE_TRUSTED, &err) ||
        tn_settings_set("admission=never", &err) ||
        tn_settings_set("cuda.mem_efficient_sdp=false", &err) || /* a stub runs no kernels */
        tn_settings_set("cuda.flash_sdp=false", &err) ||
        tn_settings_set("cuda.math_sdp=false", &err) || tn_device_get("cuda:0", &device, &err)) {
        fprintf(stderr, "%s: %s\n", err.where, err.message);
        return 1;
    }
    q = make(1);
    k = make(2);
    v = make(3);
    int failed = run_suite("cuda.cudnn_threads", tests);
    tn_tensor_release(&q);
    tn_tensor_release(&k);
    tn_tensor_release(&v);
    return failed;
}
