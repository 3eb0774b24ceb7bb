/* The time of a whole einsum. */
#include "einsum_values.h"

#include "system.h"

#include <stdlib.h>
#include <string.h>

enum { RUNS_LEAST = 15, RUNS_MOST = 201 };

/* A call that is repeated. */
typedef struct stand {
    const einsum_problem *of;
    tn_tensor *tensors; /* operands, then out */
    const tn_tensor **list;
    tn_stream *stream;
    double bytes; /* of operands and out */
    double samples[RUNS_MOST];
} stand;

static tn_status no_memory(tn_error *err)
{
    return tn_fail(err, TN_OUT_OF_MEMORY, 0, "einsum", "out of memory for a benchmark");
}

static tn_status make_operand(stand *s, int32_t term, tn_generator *random, tn_error *err)
{
    double *values = NULL;
    uint64_t bytes = 0;
    tn_status status = einsum_values_make(s->of, term, random, &s->tensors[term], &values, err);
    free(values);
    if (!status)
        status = tn_tensor_bytes(&s->tensors[term], &bytes, err);
    s->list[term] = &s->tensors[term];
    s->bytes += (double)bytes;
    return status;
}

static tn_status make_tensors(stand *s, tn_error *err)
{
    const int32_t count = s->of->operands.count;
    tn_generator *random = NULL;
    int64_t shape[TN_TENSOR_NDIM_MAX];
    int32_t ndim;
    uint64_t bytes = 0;
    tn_status status = tn_generator_create(1, &random, err);
    for (int32_t i = 0; i < count && !status; i++)
        status = make_operand(s, i, random, err);
    tn_generator_release(random);
    if (!status)
        status = tn_einsum_shape(
            TN_ARGS(einsum, .equation = s->of->equation, .operands = s->list, .count = count),
            shape, &ndim, err);
    if (!status)
        status =
            tn_tensor_create(s->of->device, s->of->dtype, shape, ndim, &s->tensors[count], err);
    if (!status)
        status = tn_tensor_bytes(&s->tensors[count], &bytes, err);
    s->bytes += (double)bytes;
    s->stream = tn_stream_current(s->of->device);
    return status;
}

/* Seconds of so many calls. */
static tn_status time_calls(stand *s, int32_t calls, double *out_seconds, tn_error *err)
{
    const int32_t count = s->of->operands.count;
    const double start = system_seconds();
    tn_status status = TN_OK;
    for (int32_t i = 0; i < calls && !status; i++)
        status = tn_einsum(NULL,
                           TN_ARGS(einsum, .equation = s->of->equation, .operands = s->list,
                                   .count = count, .out = &s->tensors[count], .stream = s->stream),
                           err);
    if (!status)
        status = tn_stream_synchronize(s->stream, err);
    *out_seconds = system_seconds() - start;
    return status;
}

static double clamp(double value, double least, double most)
{
    return value < least ? least : value > most ? most : value;
}

static int compare_numbers(const void *a, const void *b)
{
    double x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x < y ? -1 : x > y;
}

static tn_status time_runs(stand *s, double seconds, tn_bench_result *to, tn_error *err)
{
    double taken = 0;
    tn_status status = time_calls(s, 1, &taken, err);
    for (int32_t i = 0; i < 3 && !status && taken < seconds; i++)
        status = time_calls(s, 1, &taken, err);
    const double each = taken > 1e-7 ? taken : 1e-7;
    const double sample = clamp(seconds / 30, 2e-5, 1e-2);
    to->calls = (int32_t)clamp(sample / each + 1, 1, 1e6);
    to->runs =
        (int32_t)clamp(seconds / (each * to->calls), each > seconds ? 1 : RUNS_LEAST, RUNS_MOST);
    for (int32_t i = 0; i < to->runs && !status; i++)
        status = time_calls(s, to->calls, &s->samples[i], err);
    if (status)
        return status;
    qsort(s->samples, (size_t)to->runs, sizeof s->samples[0], compare_numbers);
    const double median = s->samples[to->runs / 2];
    to->us = median / to->calls * 1e6;
    to->spread = (s->samples[to->runs * 3 / 4] - s->samples[to->runs / 4]) / median;
    to->gflops = s->of->info.cost / to->us / 1e3;
    to->gbps = s->bytes / to->us / 1e3;
    return TN_OK;
}

tn_status einsum_problem_time(const einsum_problem *of, double seconds, tn_bench_result *out,
                              tn_error *err)
{
    const size_t count = (size_t)of->operands.count + 1;
    stand *s = calloc(1, sizeof *s);
    *out = (tn_bench_result){.struct_size = out->struct_size};
    snprintf(out->kernel, sizeof out->kernel, "tn_einsum");
    if (!s)
        return no_memory(err);
    s->of = of;
    s->tensors = calloc(count, sizeof *s->tensors);
    s->list = calloc(count, sizeof *s->list);
    tn_status status = s->tensors && s->list ? make_tensors(s, err) : no_memory(err);
    if (!status)
        status = time_runs(s, seconds > 0 ? seconds : 1, out, err);
    for (size_t i = 0; i < count && s->tensors; i++)
        tn_tensor_release(&s->tensors[i]);
    free(s->tensors);
    free(s->list);
    free(s);
    return status;
}
