/* Times library calls on small f32 squares for a script that times a rival: neither side includes
 * the overhead of a call from Python. Not a benchmark by itself; bench/peers/bench_numpy_small.py
 * runs it.
 *
 * Each line of stdin is an operation, a side and a count; the answer is the nanoseconds of one. */
#include "os/clock.h"
#include "tenon/tenon.h"

#include <stdio.h>
#include <stdlib.h>

/* The operands, of the size that was last requested. */
typedef struct squares {
    int64_t side;
    tn_tensor in, other, out, half, wide, sums, weight, bias;
} squares;

static squares now;

static void must(tn_status status, const tn_error *err)
{
    if (status) {
        fprintf(stderr, "small_calls: %s\n", err->message);
        exit(1);
    }
}

static void make(tn_device *device, int64_t side)
{
    const int64_t shape[] = {side, side};
    const struct {
        tn_tensor *tensor;
        tn_dtype dtype;
        int32_t rank;
    } all[] = {{&now.in, TN_F32, 2},     {&now.other, TN_F32, 2}, {&now.out, TN_F32, 2},
               {&now.half, TN_F16, 2},   {&now.wide, TN_F64, 2},  {&now.sums, TN_F32, 1},
               {&now.weight, TN_F32, 1}, {&now.bias, TN_F32, 1}};
    tn_error err;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (now.side)
            tn_tensor_release(all[i].tensor);
        must(tn_tensor_create(device, all[i].dtype, shape, all[i].rank, all[i].tensor, &err), &err);
        if (all[i].dtype == TN_F32)
            must(tn_random_normal(NULL, all[i].tensor, &err), &err);
    }
    now.side = side;
}

static tn_status transpose(tn_error *err)
{
    static const int32_t order[] = {1, 0};
    return tn_permute(
        NULL, TN_ARGS(permute, .in = &now.in, .out = &now.out, .order = order, .order_count = 2),
        err);
}

static tn_status to_f16(tn_error *err)
{
    return tn_cast(NULL, TN_ARGS(cast, .in = &now.in, .out = &now.half), err);
}

static tn_status to_f64(tn_error *err)
{
    return tn_cast(NULL, TN_ARGS(cast, .in = &now.in, .out = &now.wide), err);
}

static tn_status binary(int32_t kind, tn_error *err)
{
    return tn_binary(
        NULL, TN_ARGS(binary, .in = &now.in, .other = &now.other, .out = &now.out, .kind = kind),
        err);
}

static tn_status add(tn_error *err)
{
    return binary(TN_BINARY_ADD, err);
}

static tn_status multiply(tn_error *err)
{
    return binary(TN_BINARY_MUL, err);
}

static tn_status exponential(tn_error *err)
{
    return tn_unary(NULL, TN_ARGS(unary, .in = &now.in, .out = &now.out, .kind = TN_UNARY_EXP),
                    err);
}

static tn_status sum(tn_error *err)
{
    return tn_reduce(
        NULL, TN_ARGS(reduce, .in = &now.in, .out = &now.sums, .axes = 2, .kind = TN_REDUCE_SUM),
        err);
}

static tn_status softmax(tn_error *err)
{
    return tn_softmax(NULL, TN_ARGS(softmax, .in = &now.in, .out = &now.out), err);
}

static tn_status layer_norm(tn_error *err)
{
    return tn_norm(NULL,
                   TN_ARGS(norm, .in = &now.in, .out = &now.out, .weight = &now.weight,
                           .bias = &now.bias, .kind = TN_NORM_LAYER),
                   err);
}

typedef tn_status call_fn(tn_error *err);

static call_fn *call_of(const char *word)
{
    static const struct {
        const char *word;
        call_fn *call;
    } calls[] = {
        {"transpose", transpose},  {"to_f16", to_f16},   {"to_f64", to_f64}, {"add", add},
        {"mul", multiply},         {"exp", exponential}, {"sum", sum},       {"softmax", softmax},
        {"layer_norm", layer_norm}};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (strcmp(word, calls[i].word) == 0)
            return calls[i].call;
    }
    fprintf(stderr, "small_calls: no operation \"%s\"\n", word);
    exit(1);
}

int main(void)
{
    char word[32];
    long long side, times;
    tn_device *device = NULL;
    tn_error err;
    must(tn_device_get("cpu:0", &device, &err), &err);
    while (scanf("%31s %lld %lld", word, &side, &times) == 3) {
        call_fn *call = call_of(word);
        if (side != now.side)
            make(device, side);
        must(call(&err), &err);
        int64_t start = tni_clock_ns();
        for (long long i = 0; i < times; i++)
            must(call(&err), &err);
        printf("%.3f\n", (double)(tni_clock_ns() - start) / (double)times);
        fflush(stdout);
    }
    return 0;
}
