/* Calls of the library on cuda:0, timed here for a script that times a rival: what a call from Python would
 * add is in neither. Not a benchmark of its own; bench/peers/bench_torch_cuda.py runs it.
 *
 * Each line of stdin is an operation and how often to do it; the answer is nanoseconds of one until the call
 * returns, the device's queue never being full. */
#include "cuda_open.h"

#include "os/clock.h"

#include <stdio.h>
#include <stdlib.h>

enum { AT_ONCE = 128, SIDE = 64 };

static tn_tensor in, other, out;
static tn_event *event;

static tn_status add(tn_error *err)
{
    return tn_binary(NULL,
                     TN_ARGS(binary, .in = &in, .other = &other, .out = &out, .kind = TN_BINARY_ADD,
                             .stream = gpu.stream),
                     err);
}

static tn_status soften(tn_error *err)
{
    return tn_softmax(NULL, TN_ARGS(softmax, .in = &in, .out = &out, .stream = gpu.stream), err);
}

static tn_status multiply(tn_error *err)
{
    return tn_matmul(
        NULL, TN_ARGS(matmul, .a = &in, .b = &other, .out = &out, .stream = gpu.stream), err);
}

static tn_status record(tn_error *err)
{
    return tn_event_record(event, gpu.stream, err);
}

typedef tn_status call_fn(tn_error *err);

static call_fn *call_of(const char *word)
{
    if (strcmp(word, "add") == 0)
        return add;
    if (strcmp(word, "softmax") == 0)
        return soften;
    if (strcmp(word, "matmul") == 0)
        return multiply;
    if (strcmp(word, "record") == 0)
        return record;
    fprintf(stderr, "cuda_calls: no operation \"%s\"\n", word);
    exit(1);
}

static void make(void)
{
    const int64_t shape[] = {SIDE, SIDE};
    tn_tensor *tensors[] = {&in, &other, &out};
    tn_error err;
    for (int i = 0; i < 3; i++) {
        bench_cuda_must(tn_tensor_create(gpu.device, TN_F32, shape, 2, tensors[i], &err), &err);
        bench_cuda_must(
            tn_fill(NULL, TN_ARGS(fill, .out = tensors[i], .value = 1, .stream = gpu.stream), &err),
            &err);
    }
    bench_cuda_must(tn_event_create(gpu.device, TN_ARGS(event, .enable_timing = 1), &event, &err),
                    &err);
}

static int64_t time_calls(call_fn *call, long long times)
{
    int64_t took = 0;
    tn_error err;
    for (long long left = times; left > 0; left -= AT_ONCE) {
        long long now = left < AT_ONCE ? left : AT_ONCE;
        int64_t start = tni_clock_ns();
        for (long long i = 0; i < now; i++)
            bench_cuda_must(call(&err), &err);
        took += tni_clock_ns() - start;
        bench_cuda_must(tn_stream_synchronize(gpu.stream, &err), &err);
    }
    return took;
}

int main(void)
{
    char word[32];
    long long times;
    if (!bench_cuda_open())
        return 1;
    fflush(stdout);
    make();
    while (scanf("%31s %lld", word, &times) == 2) {
        call_fn *call = call_of(word);
        (void)time_calls(call, 1);
        printf("%.3f\n", (double)time_calls(call, times) / (double)times);
        fflush(stdout);
    }
    return 0;
}
