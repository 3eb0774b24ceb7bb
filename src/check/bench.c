/* tn_bench: measures the time of kernels. */
#include "base/alloc.h"
#include "check.h"
#include "os/clock.h"
#include "settings/context.h"

#include <math.h>
#include <stdlib.h>

static const char where[] = "tn_bench";

enum {
    SETS_MOST = 64,
    ROUNDS_LEAST = 15,
    ROUNDS_MOST = 201,
    WARM_CALLS = 3,
    CACHE_GUESS = 32 << 20,
    BYTES_MOST = 1 << 30,
    CALLS_MOST = 1000000
};

/* Samples of a round: the first kernel, the second, and the first again. */
enum { FIRST, SECOND, AGAIN, TURNS };

typedef struct stand {
    const tn_context *context;
    tn_device *device;
    tn_stream *stream;
    tni_plan *plans[TURNS]; /* AGAIN's is FIRST's; SECOND's may be NULL */
    tn_op op;
    tni_operands sets[SETS_MOST];
    size_t set_count;
    size_t next; /* the set that the next call uses */
    int32_t calls, rounds;
    double *samples[TURNS]; /* nanoseconds of one call, by round */
} stand;

/* Returns how many sets of operands are twice the size of the last-level cache, so that no set is
 * still cached when it is used again. */
static size_t count_sets(const tn_op *op, const tn_device *device)
{
    const tn_device_properties *properties = tni_device_described(device);
    bool known = properties->known & TN_DEVICE_KNOWS(l2_cache_bytes);
    double cache = known ? (double)properties->l2_cache_bytes : (double)CACHE_GUESS;
    double bytes = (double)tni_operands_bytes(op), sets = ceil(2 * cache / (bytes > 1 ? bytes : 1));
    if (sets * bytes > (double)BYTES_MOST)
        sets = floor((double)BYTES_MOST / bytes);
    return sets < 1 ? 1 : sets > SETS_MOST ? SETS_MOST : (size_t)sets;
}

static tn_status make_sets(stand *s, tn_error *err)
{
    size_t needed = count_sets(&s->op, s->device);
    tn_status status = TN_OK;
    while (s->set_count < needed && !status) {
        tni_operands *set = &s->sets[s->set_count++];
        status = tni_operands_create(&s->op, s->device, set, err);
        if (!status)
            status = tni_operands_fill(set, s->set_count, TNI_INPUTS_PLAIN, err);
        if (!status)
            status = tni_operands_upload(set, s->stream, err);
    }
    return status;
}

static tn_status run_calls(stand *s, const tni_plan *plan, int32_t calls, double *out_ns,
                           tn_error *err)
{
    const tni_call_args args = {.stream = s->stream};
    tni_problem problem;
    tn_status status = TN_OK;
    int64_t begin = tni_clock_ns();
    for (int32_t i = 0; i < calls && !status; i++) {
        tni_operands_on_device(&s->sets[s->next], &problem);
        s->next = s->next + 1 < s->set_count ? s->next + 1 : 0;
        status = tni_plan_run(plan, s->context, &problem, &args, err);
    }
    if (!status)
        status = tn_stream_synchronize(s->stream, err);
    *out_ns = (double)(tni_clock_ns() - begin) / calls;
    return status;
}

/* Runs calls that are not counted, and returns the time per call of the last ones. Runs only one
 * call if it takes longer than `most_ns`. */
static tn_status warm_up(stand *s, const tni_plan *plan, double most_ns, double *out_ns,
                         tn_error *err)
{
    tn_status status = run_calls(s, plan, 1, out_ns, err);
    for (int32_t i = 0; i < WARM_CALLS && *out_ns <= most_ns && !status; i++)
        status = run_calls(s, plan, 1 + (int32_t)s->set_count / WARM_CALLS, out_ns, err);
    return status;
}

/* Chooses the calls per sample and the number of rounds: a sample must be long enough for the clock,
 * and all rounds together take about `seconds`. If one call takes longer than that, there may be
 * only one round. */
static tn_status choose_rounds(stand *s, double seconds, tn_error *err)
{
    const double sample_least = 2e4;
    double ns = 0, slowest = 0, turns = s->plans[SECOND] ? 3 : 2;
    tn_status status = TN_OK;
    for (int32_t turn = FIRST; turn <= SECOND && !status; turn++) {
        if (s->plans[turn])
            status = warm_up(s, s->plans[turn], seconds * 1e9, &ns, err);
        slowest = ns > slowest ? ns : slowest;
    }
    slowest = slowest < 1 ? 1 : slowest;
    double sample = seconds * 1e9 / (turns * 2 * ROUNDS_LEAST);
    sample = sample < sample_least ? sample_least : sample > 1e7 ? 1e7 : sample;
    double calls = ceil(sample / slowest);
    s->calls = calls > CALLS_MOST ? CALLS_MOST : (int32_t)calls;
    double rounds = seconds * 1e9 / (turns * slowest * s->calls);
    int32_t least = slowest > seconds * 1e9 ? 1 : ROUNDS_LEAST;
    s->rounds = rounds < least ? least : rounds > ROUNDS_MOST ? ROUNDS_MOST : (int32_t)rounds;
    return status;
}

/* Alternates the kernels. Every second round starts with the other kernel, so that neither always
 * follows the same one. */
static tn_status time_rounds(stand *s, tn_error *err)
{
    static const int32_t orders[2][TURNS] = {{FIRST, SECOND, AGAIN}, {SECOND, FIRST, AGAIN}};
    tn_status status = TN_OK;
    for (int32_t round = 0; round < s->rounds && !status; round++) {
        for (int32_t i = 0; i < TURNS && !status; i++) {
            int32_t turn = orders[round & 1][i];
            if (s->plans[turn])
                status = run_calls(s, s->plans[turn], s->calls, &s->samples[turn][round], err);
        }
    }
    return status;
}

static int compare_numbers(const void *a, const void *b)
{
    double x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x < y ? -1 : x > y;
}

/* Returns the quantile `part` of the numbers. Sorts them in place. */
static double quantile(double *numbers, int32_t count, double part)
{
    qsort(numbers, (size_t)count, sizeof *numbers, compare_numbers);
    double at = part * (count - 1);
    int32_t low = (int32_t)at, high = low + 1 < count ? low + 1 : low;
    return numbers[low] + (at - low) * (numbers[high] - numbers[low]);
}

/* Returns the median over rounds of one turn's time divided by another's. */
static double ratio_of(const stand *s, int32_t over, int32_t under, double *room)
{
    for (int32_t i = 0; i < s->rounds; i++)
        room[i] = s->samples[over][i] / s->samples[under][i];
    return quantile(room, s->rounds, 0.5);
}

static void write_bench_result(stand *s, double *room, tn_bench_result *out)
{
    double flops, bytes;
    tni_op_class_of(s->op.kind)->cost(&s->op, &flops, &bytes);
    tn_text_fit(out->kernel, sizeof out->kernel, tni_plan_kernel(s->plans[FIRST])->row->name);
    out->runs = s->rounds;
    out->calls = s->calls;
    out->aa_spread = fabs(ratio_of(s, AGAIN, FIRST, room) - 1);
    out->ratio = s->plans[SECOND] ? ratio_of(s, SECOND, FIRST, room) : 0;
    double median = quantile(s->samples[FIRST], s->rounds, 0.5);
    out->spread = (quantile(s->samples[FIRST], s->rounds, 0.75) -
                   quantile(s->samples[FIRST], s->rounds, 0.25)) /
                  median;
    out->us = median / 1e3;
    out->against_us = s->plans[SECOND] ? quantile(s->samples[SECOND], s->rounds, 0.5) / 1e3 : 0;
    out->gflops = flops / median;
    out->gbps = bytes / median;
}

static tn_status measure_kernels(stand *s, double seconds, tn_bench_result *out, tn_error *err)
{
    double *room = NULL;
    tn_status status = make_sets(s, err);
    if (!status)
        status = choose_rounds(s, seconds, err);
    if (status)
        return status;
    room = tni_alloc_zeroed((size_t)(TURNS + 1) * (size_t)s->rounds, sizeof *room);
    if (!room)
        return tni_no_memory(err, where, "the samples");
    for (int32_t i = 0; i < TURNS; i++)
        s->samples[i] = room + (i + 1) * s->rounds;
    status = time_rounds(s, err);
    if (!status)
        write_bench_result(s, room, out);
    tni_release(room);
    return status;
}

static tn_status plan_for(const stand *s, const char *kernel, tni_plan **out, tn_error *err)
{
    tni_question question = {.context = s->context, .op = &s->op, .device = s->device};
    tn_status status =
        kernel ? tni_kernel_for(kernel, &s->op, s->device, &question.only, err) : TN_OK;
    return status ? status : tni_plan_make(&question, out, err);
}

static tn_status check_args(const tn_bench_args *args, const tn_bench_result *out, tn_error *err)
{
    if (!args || !out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s is NULL", args ? "out" : "args");
    if (!TN_HAS(args, tn_bench_args, seconds) || !TN_HAS(out, tn_bench_result, aa_spread))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "struct_size: expected at least %zu in args, got %zu; at least %zu in "
                       "out, got %zu",
                       TN_UP_TO(tn_bench_args, seconds), args->struct_size,
                       TN_UP_TO(tn_bench_result, aa_spread), out->struct_size);
    if (!(args->seconds >= 0 && args->seconds <= 3600))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "seconds: expected 0 to 3600, got %g",
                       args->seconds);
    return TN_OK;
}

static tn_status make_plans(stand *s, const tn_bench_args *args, tn_error *err)
{
    tn_status status = tni_question_parse(args->problem, &s->op, &s->device, err);
    if (!status)
        status = plan_for(s, args->kernel, &s->plans[FIRST], err);
    if (!status && args->against)
        status = plan_for(s, args->against, &s->plans[SECOND], err);
    s->plans[AGAIN] = s->plans[FIRST];
    if (!status)
        s->stream = tn_stream_current(s->device);
    return status;
}

tn_status tn_bench(const tn_context *context, const tn_bench_args *args, tn_bench_result *out,
                   tn_error *err)
{
    tn_bench_result result = {0};
    tn_status status = check_args(args, out, err);
    if (status)
        return status;
    stand *s = tni_alloc_zeroed(1, sizeof *s);
    if (!s)
        return tni_no_memory(err, where, "a bench");
    s->context = tni_context_or_current(context);
    status = make_plans(s, args, err);
    if (!status)
        status = measure_kernels(s, args->seconds > 0 ? args->seconds : 1, &result, err);
    for (size_t i = 0; i < s->set_count; i++)
        tni_operands_release(&s->sets[i]);
    tni_plan_release(s->plans[FIRST]);
    tni_plan_release(s->plans[SECOND]);
    tni_release(s);
    if (!status) {
        result.struct_size = out->struct_size;
        *out = result;
    }
    return status;
}
