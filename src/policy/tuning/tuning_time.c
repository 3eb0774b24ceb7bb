#include "tuning_time.h"

#include "base/alloc.h"
#include "base/log.h"
#include "check/inputs.h"
#include "device/graph/graph.h"
#include "os/clock.h"
#include "times.h"
#include "tuning.h"

#include <math.h>
#include <stdatomic.h>

static const char where[] = "tuning";

/* Minimum nanoseconds of a sample by the processor's clock; by a device's clock, whose tick is half
 * a microsecond; approximate budget of all rounds. */
static const int64_t sample_ns = 200 * 1000, held_ns = 300 * 1000, budget_ns = 1000 * 1000 * 1000;
enum { ROUNDS_LEAST = 3, ROUNDS = 15, CALLS_MOST = 4096, TRIALS = 3, HOLDS_MOST = 1024 };

/* For kernels of a few microseconds, the place of the operands matters more than the kernel's code:
 * on an H200, two cuBLASLt kernels for the same product were ahead in turn, by up to three percent.
 * So each round has its operands at another of several places, as long as those together take no
 * more than this many bytes. Each place gets a few rounds, and a few more while the result is
 * unclear. */
static const size_t places_bytes = (size_t)32 << 20;
enum { PLACES_MOST = 8, ROUNDS_OF_PLACE = 3, ROUNDS_OF_PLACE_MOST = 12 };

/* A kernel slower than the fastest by the factor `hopeless` is not timed further if that would take
 * long. A kernel slower by the factor `beaten` (processor's clock) or `beaten_held` (device's
 * clock), beyond the scatter of its ratios, gets no further rounds. */
static const double hopeless = 4.0, beaten = 1.25, beaten_held = 1.02;

/* The clock. */

static tni_tuning_clock *_Atomic clock_read;
static void *_Atomic clock_user;

void tni_tuning_clock_set(tni_tuning_clock *clock, void *user)
{
    atomic_store(&clock_user, user);
    atomic_store(&clock_read, clock);
}

static int64_t read_clock(void)
{
    tni_tuning_clock *read = atomic_load(&clock_read);
    return read ? read(atomic_load(&clock_user)) : tni_clock_ns();
}

/* Measuring. */

typedef struct contender {
    tni_plan *plan;
    tni_timed *timed;
    int64_t calls; /* in one sample */
    int64_t holds; /* runs of the graph that holds the stream while the calls are queued */
    double least;  /* smallest ns per call so far */
    double spent;  /* total ns of the last sample */
    double behind; /* its time divided by the fastest one's when it was beaten; 0: not beaten */
    bool is_out;   /* it failed, is hopeless, or is beaten */
} contender;

typedef struct bench {
    const tni_question *question;
    tni_operands operands[PLACES_MOST];
    tni_problem problem[PLACES_MOST];
    size_t places, place; /* number of places, and the one that calls use now */
    tn_stream *stream;
    tn_graph *hold; /* calls of one contender; NULL: calls are timed as they are queued */
    tn_event *begin, *end;
    bool
        hold_fails; /* the hold or an event failed; or the hold ends before the calls are queued, however often it is run */
    contender *contenders;
    size_t count;
    double *rounds;  /* TNI_ROUNDS_MOST for each contender */
    double *samples; /* of the contenders that are timed to the end, packed */
    tn_status lost;  /* TN_DEVICE_LOST once the device is lost */
} bench;

static tn_status queue_calls(const bench *b, const contender *c, tn_error *err)
{
    const tni_call_args args = {.stream = b->stream};
    tni_problem problem = b->problem[b->place];
    tn_status status = TN_OK;
    tni_plan_fit(c->plan, &problem);
    for (int64_t i = 0; i < c->calls && !status; i++)
        status = tni_plan_run_fitted(c->plan, b->question->context, &problem, NULL, &args, err);
    return status;
}

/* Uses the processor's clock. */
static tn_status time_queued(const bench *b, contender *c, double *out_ns, tn_error *err)
{
    const int64_t begin = read_clock();
    tn_status status = queue_calls(b, c, err);
    if (!status)
        status = tn_stream_synchronize(b->stream, err);
    *out_ns = (double)(read_clock() - begin);
    return status;
}

static tn_status hold_for(const bench *b, const contender *c, tn_error *err)
{
    tn_status status = TN_OK;
    for (int64_t i = 0; i < c->holds && !status; i++)
        status = tn_graph_run(b->hold, b->stream, err);
    return status ? status : tn_event_record(b->begin, b->stream, err);
}

/* Waits for both events and returns the time between them. */
static tn_status read_events(const bench *b, double *out_ns, tn_error *err)
{
    double ms = 0;
    tn_status status = tn_stream_synchronize(b->stream, err);
    if (!status)
        status = tn_event_elapsed_time(b->begin, b->end, &ms, err);
    *out_ns = ms * 1e6;
    return status;
}

/* Times the calls between two events, while the stream is held; *out_late is whether the hold
 * ended before all calls were queued. Any failure except that of the calls counts as a failure of
 * the hold. */
static tn_status time_held(bench *b, const contender *c, double *out_ns, int32_t *out_late,
                           tn_error *err)
{
    tn_status status = hold_for(b, c, err);
    b->hold_fails = status != TN_OK;
    if (!status)
        status = queue_calls(b, c, err);
    if (status)
        return status;
    status = tn_event_query(b->begin, out_late, err);
    if (!status)
        status = tn_event_record(b->end, b->stream, err);
    if (!status)
        status = read_events(b, out_ns, err);
    b->hold_fails = status != TN_OK;
    return status;
}

/* Uses the device's clock. If the stream was not held long enough, holds it longer. */
static tn_status time_in_order(bench *b, contender *c, double *out_ns, tn_error *err)
{
    int32_t late = 0;
    tn_status status = time_held(b, c, out_ns, &late, err);
    while (!status && late && c->holds < HOLDS_MOST) {
        c->holds *= 2;
        status = time_held(b, c, out_ns, &late, err);
    }
    b->hold_fails = b->hold_fails || late;
    return status;
}

/* Synchronizes, because work that was queued before the failure may still run. */
static void drop_contender(bench *b, contender *c, tn_status status, const tn_error *why)
{
    tni_log(TN_LOG_INFO, "tuning skips %s: %s", c->timed->kernel->row->name, why->message);
    (void)tn_stream_synchronize(b->stream, NULL);
    c->is_out = true;
    c->timed->ns = TNI_TIME_FAILED;
    b->lost = status == TN_DEVICE_LOST ? status : b->lost;
}

/* Returns the nanoseconds of one call, above 0. If a call fails, the contender is out. */
static double take_sample(bench *b, contender *c)
{
    tn_error why;
    double ns = 0;
    const int64_t begin = read_clock();
    tn_status status = b->hold ? time_in_order(b, c, &ns, &why) : time_queued(b, c, &ns, &why);
    if (status && b->hold_fails && status != TN_DEVICE_LOST) /* not the contender's fault */
        status = time_queued(b, c, &ns, &why);
    c->spent = (double)(read_clock() - begin);
    if (status)
        drop_contender(b, c, status, &why);
    ns = ns > 0 ? ns / (double)c->calls : 1e-3;
    c->least = c->least == 0 || ns < c->least ? ns : c->least;
    return ns;
}

static void make_plan(bench *b, contender *c)
{
    tni_question only = *b->question;
    tn_error why;
    only.only = c->timed->kernel;
    if (tni_plan_make(&only, &c->plan, &why)) {
        tni_log(TN_LOG_INFO, "tuning skips %s: %s", only.only->row->name, why.message);
        c->is_out = true;
    }
}

/* Finds how many calls the clock needs by doubling them. The first call is not measured. */
static void calibrate(bench *b, contender *c)
{
    const double wanted = (double)(b->hold ? held_ns : sample_ns);
    c->calls = c->holds = 1;
    if (!c->is_out)
        (void)take_sample(b, c);
    c->least = 0;
    while (!c->is_out && !b->hold_fails && take_sample(b, c) * (double)c->calls < wanted &&
           c->calls < CALLS_MOST)
        c->calls *= 2;
}

static void calibrate_all(bench *b)
{
    for (size_t i = 0; i < b->count && !b->lost && !b->hold_fails; i++)
        calibrate(b, &b->contenders[i]);
}

/* Records the calls of a sample if the platform records natively. Calls of a kernel that takes many
 * at once are never recorded: the memory that it hands over need not stay valid. */
static tn_graph *record_calls(const bench *b, const contender *c)
{
    const tni_kernel *kernel = c->timed->kernel;
    tn_graph *made = NULL;
    tn_error why = {.message = "it runs several problems at once"};
    if (tni_kernel_takes_many(kernel) || tn_graph_begin(b->stream, &why))
        goto fail;
    if (!tni_graph_of(b->stream)->native) {
        tn_graph_cancel(b->stream);
        return NULL;
    }
    if (queue_calls(b, c, &why))
        tn_graph_cancel(b->stream);
    else if (!tn_graph_end(b->stream, &made, &why))
        return made;
fail:
    tni_log(TN_LOG_INFO, "tuning cannot hold a stream with %s: %s", kernel->row->name, why.message);
    return NULL;
}

/* Creates operands at the next place. On failure, what was created is released with the other
 * places. */
static tn_status add_place(bench *b, tn_error *err)
{
    tni_operands *to = &b->operands[b->places];
    tn_status status = tni_operands_create(b->question->op, b->question->device, to, err);
    if (!status)
        status = tni_operands_fill(to, 1, TNI_INPUTS_PLAIN, err);
    if (!status)
        status = tni_operands_upload(to, b->stream, err);
    if (!status)
        tni_operands_on_device(to, &b->problem[b->places++]);
    return status;
}

/* Adds as many places as there is memory for; one is enough. */
static void add_places(bench *b)
{
    tn_error why;
    const size_t bytes = tni_operands_bytes(b->question->op);
    while (b->places < PLACES_MOST && bytes <= places_bytes / (b->places + 1) &&
           !add_place(b, &why))
        continue;
}

static bool make_events(bench *b)
{
    const tn_event_args timed = {.struct_size = sizeof timed, .enable_timing = 1};
    return !tn_event_create(b->question->device, &timed, &b->begin, NULL) &&
           !tn_event_create(b->question->device, &timed, &b->end, NULL);
}

/* Makes the graph that holds the stream: calls of the fastest contender that can be recorded. Made
 * only if some contender's call is too short for the clock. */
static tn_graph *make_hold(bench *b)
{
    bool tried[TNI_CANDIDATES_MOST] = {false}, wanted = false;
    for (size_t i = 0; i < b->count; i++)
        wanted = wanted || (!b->contenders[i].is_out && b->contenders[i].calls > 1);
    while (wanted) {
        size_t first = b->count;
        for (size_t i = 0; i < b->count; i++) {
            if (!tried[i] && !b->contenders[i].is_out &&
                (first == b->count || b->contenders[i].least < b->contenders[first].least))
                first = i;
        }
        if (first == b->count)
            return NULL;
        tried[first] = true;
        tn_graph *made = record_calls(b, &b->contenders[first]);
        if (made)
            return made;
    }
    return NULL;
}

/* Times all contenders by the processor's clock again, so that all use the same clock. */
static void release_hold(bench *b)
{
    (void)tn_stream_synchronize(b->stream, NULL);
    tn_graph_release(b->hold);
    b->hold = NULL;
    b->hold_fails = false;
    b->places = 1;
    b->place = 0;
    tni_log(TN_LOG_INFO,
            "tuning times calls without holding the stream: the stream cannot be held");
    calibrate_all(b);
}

/* If a call ends before the next one is queued, all kernels seem to take as long as queueing.
 * Recorded calls need no queueing, so they can hold the stream until the timed calls are queued.
 * The timed calls are not a graph: work in a graph does not follow each other as it does in a
 * stream. */
static void hold_stream(bench *b)
{
    b->hold = make_hold(b);
    if (!b->hold)
        return;
    b->hold_fails = !make_events(b);
    if (!b->hold_fails)
        add_places(b);
    calibrate_all(b);
    if (b->hold_fails && !b->lost)
        release_hold(b);
}

static double fastest(const bench *b)
{
    double least = INFINITY;
    for (size_t i = 0; i < b->count; i++) {
        const contender *c = &b->contenders[i];
        if (!c->is_out && c->least < least)
            least = c->least;
    }
    return least;
}

/* Takes more samples before it drops a contender: a single sample may have been disturbed. */
static void drop_hopeless(bench *b)
{
    double limit = hopeless * fastest(b);
    for (size_t i = 0; i < b->count; i++) {
        contender *c = &b->contenders[i];
        bool long_time = c->spent * ROUNDS > (double)budget_ns / 10;
        for (int32_t trial = 1; trial < TRIALS && !c->is_out && long_time && c->least > limit;
             trial++)
            (void)take_sample(b, c);
        if (c->is_out || !long_time || c->least <= limit)
            continue;
        c->is_out = true;
        c->timed->ns = (int64_t)(c->least + 0.5);
    }
}

/* Takes one sample of each contender, starting with a different one each round. */
static void run_round(bench *b, size_t round)
{
    const size_t places = b->places > 1 ? b->places : 1;
    const size_t turn =
        places > 1 ? round + round / places : round; /* a different one also at each place */
    b->place = round % places;
    for (size_t i = 0; i < b->count; i++) {
        size_t index = (i + turn) % b->count;
        contender *c = &b->contenders[index];
        if (!c->is_out && !b->lost)
            b->rounds[index * TNI_ROUNDS_MOST + round] = take_sample(b, c);
    }
}

static size_t rounds_within_budget(const bench *b)
{
    double round = 0;
    for (size_t i = 0; i < b->count; i++) {
        const contender *c = &b->contenders[i];
        round += c->is_out ? 0 : c->spent;
    }
    double many = round > 0 ? (double)budget_ns / round : ROUNDS;
    return many >= TNI_ROUNDS_MOST ? TNI_ROUNDS_MOST
           : many < ROUNDS_LEAST   ? ROUNDS_LEAST
                                   : (size_t)many;
}

/* Returns the smallest time of the contenders that are timed to the end. */
static int64_t least_time(const bench *b)
{
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < b->count; i++) {
        const contender *c = &b->contenders[i];
        if (!c->is_out && c->timed->ns < least)
            least = c->timed->ns;
    }
    return least;
}

/* The device's clock rate may have changed since a contender was beaten: it keeps its ratio to the
 * fastest. If all others failed since, it keeps its time. */
static void carry_beaten(bench *b)
{
    const int64_t least = least_time(b);
    for (size_t i = 0; i < b->count && least < INT64_MAX; i++) {
        contender *c = &b->contenders[i];
        if (c->behind > 0)
            c->timed->ns = (int64_t)((double)least * c->behind + 0.5);
    }
}

/* Collects the samples of the contenders that are timed to the end and resolves their times. */
static bool resolve_times(bench *b, size_t rounds)
{
    int64_t ns[TNI_CANDIDATES_MOST];
    size_t count = 0;
    for (size_t i = 0; i < b->count; i++) {
        if (!b->contenders[i].is_out)
            memcpy(b->samples + rounds * count++, b->rounds + i * TNI_ROUNDS_MOST,
                   rounds * sizeof *b->samples);
    }
    bool is_clear = tni_times_resolve(b->samples, rounds, rounds < b->places ? rounds : b->places,
                                      count, tni_times_tie(b->question->device), ns);
    for (size_t i = b->count; i-- > 0;) {
        if (!b->contenders[i].is_out)
            b->contenders[i].timed->ns = ns[--count];
    }
    carry_beaten(b);
    return is_clear;
}

static size_t first_of(const bench *b, size_t rounds)
{
    size_t first = b->count;
    double least = INFINITY;
    for (size_t i = 0; i < b->count; i++) {
        if (b->contenders[i].is_out)
            continue;
        double middle = tni_times_median(b->rounds + i * TNI_ROUNDS_MOST, rounds);
        first = middle < least ? i : first;
        least = middle < least ? middle : least;
    }
    return first;
}

/* Must be called after the times are resolved; a contender that ties with the fastest is not
 * beaten. */
static void drop_beaten(bench *b, size_t rounds)
{
    const int64_t least = least_time(b);
    const size_t first = first_of(b, rounds);
    const double limit = b->hold ? beaten_held : beaten;
    for (size_t i = 0; i < b->count && first < b->count; i++) {
        contender *it = &b->contenders[i];
        if (it->is_out || it->timed->ns <= least)
            continue;
        tni_times_ratio c =
            tni_times_compare(b->rounds + i * TNI_ROUNDS_MOST, b->rounds + first * TNI_ROUNDS_MOST,
                              rounds, rounds < b->places ? rounds : b->places);
        if (c.ratio - c.noise <= limit)
            continue;
        it->is_out = true;
        it->behind = (double)it->timed->ns / (double)least;
    }
}

static void measure_rounds(bench *b)
{
    for (size_t i = 0; i < b->count && !b->lost; i++) {
        make_plan(b, &b->contenders[i]);
        calibrate(b, &b->contenders[i]);
    }
    if (!b->lost)
        hold_stream(b);
    drop_hopeless(b);
    const size_t few = ROUNDS_OF_PLACE * b->places, first = few > ROUNDS ? few : ROUNDS;
    size_t most = rounds_within_budget(b), wanted = most < first ? most : first, round = 0;
    if (b->places > 1 && most > ROUNDS_OF_PLACE_MOST * b->places)
        most = ROUNDS_OF_PLACE_MOST * b->places;
    for (;;) {
        for (; round < wanted && !b->lost; round++)
            run_round(b, round);
        if (b->lost || resolve_times(b, round) || wanted == most)
            return;
        drop_beaten(b, round);
        wanted = 2 * wanted < most ? 2 * wanted : most;
    }
}

static tn_status make_bench(bench *b, tni_timed *timed, tn_error *err)
{
    const tni_question *q = b->question;
    b->contenders = tni_alloc_zeroed(b->count, sizeof *b->contenders);
    b->rounds = tni_alloc_zeroed(b->count * TNI_ROUNDS_MOST, sizeof *b->rounds);
    b->samples = tni_alloc_zeroed(b->count * TNI_ROUNDS_MOST, sizeof *b->samples);
    if (!b->contenders || !b->rounds || !b->samples)
        return tni_no_memory(err, where, "samples");
    for (size_t i = 0; i < b->count; i++) {
        timed[i].ns = TNI_TIME_FAILED;
        b->contenders[i].timed = &timed[i];
    }
    tn_status status = tn_stream_create(q->device, NULL, &b->stream, err);
    return status ? status : add_place(b, err);
}

/* Synchronizes first: queued work must not use released operands. */
static void release_bench(bench *b)
{
    if (b->stream)
        (void)tn_stream_synchronize(b->stream, NULL);
    for (size_t i = 0; b->contenders && i < b->count; i++)
        tni_plan_release(b->contenders[i].plan);
    tn_graph_release(b->hold);
    tn_event_release(b->begin);
    tn_event_release(b->end);
    for (size_t i = 0; i < PLACES_MOST; i++)
        tni_operands_release(&b->operands[i]);
    tn_stream_release(b->stream);
    tni_release(b->samples);
    tni_release(b->rounds);
    tni_release(b->contenders);
}

tn_status tni_time_kernels(const tni_question *question, tni_timed *timed, size_t count,
                           tn_error *err)
{
    bench *b = tni_alloc_zeroed(1, sizeof *b);
    if (!b)
        return tni_no_memory(err, where, "a measurement");
    b->question = question;
    b->count = count;
    tn_status status = make_bench(b, timed, err);
    if (!status) {
        measure_rounds(b);
        if (b->lost)
            status = tn_device_health(question->device, err);
    }
    release_bench(b);
    tni_release(b);
    return status;
}
