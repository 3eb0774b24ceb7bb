#include "suite.h"

#include "host.h"

#include <stdlib.h>

static const suite_case *const groups[] = {
    cases_device, cases_properties, cases_current, cases_stream,       cases_stream_order,
    cases_event,  cases_event_time, cases_memory,  cases_memory_limit, cases_memory_order,
    cases_copy,   cases_fill,       cases_tensor,  cases_dlpack,       cases_graph,
    cases_worker, cases_lost, /* must be last: it loses the device */
};
enum { GROUPS = sizeof groups / sizeof groups[0], LATE_MOST = 3 };

const suite_case *suite_at(size_t index)
{
    for (size_t g = 0; g < GROUPS; g++) {
        for (const suite_case *c = groups[g]; c->name; c++) {
            if (index-- == 0)
                return c;
        }
    }
    return NULL;
}

size_t suite_count(void)
{
    size_t count = 0;
    while (suite_at(count))
        count++;
    return count;
}

/* One case in progress. It is not freed if the case was abandoned or failed. */
typedef struct attempt {
    struct attempt *next; /* in the list of failed attempts */
    const suite_case *of;
    subject on;
    trial trial;
} attempt;

static bool has_what_it_needs(const suite_case *c, trial *t)
{
    if ((c->needs & NEED_TWO_DEVICES) && !t->second)
        return trial_unavailable(t, "needs 2 devices, has 1");
    if ((c->needs & NEED_LOSS) && !t->on->lose)
        return trial_unavailable(t, "needs a command that makes the device fail: --lose COMMAND");
    return true;
}

static void run_attempt(void *user)
{
    attempt *a = user;
    trial *t = &a->trial;
    if (has_what_it_needs(a->of, t) && !a->of->run(t) && t->ended == OUTCOME_PASS)
        trial_fail(t, "bug in the test suite: the case ended without a result");
    trial_give_back(t);
}

/* A case's random numbers depend only on the seed and its name, so that a single case can be
 * repeated. */
static uint64_t seed_of(const char *name, uint64_t seed)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001B3);
    return hash ^ seed;
}

static attempt *create_attempt(const suite_case *c, const subject *on, uint64_t seed)
{
    attempt *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    a->of = c;
    a->on = *on;
    a->trial.on = &a->on;
    a->trial.platform = on->platform;
    a->trial.device = on->device;
    a->trial.second = on->second;
    a->trial.of = c;
    a->trial.random = seed_of(c->name, seed);
    return a;
}

/* Frees the attempt; a failed one stays reachable, because its memory may still be in use. */
static void end(attempt *a)
{
    static attempt *failed;
    if (a->trial.ended != OUTCOME_FAIL) {
        free(a);
        return;
    }
    a->next = failed;
    failed = a;
}

/* Turns a finding into an outcome, using the lists that name the case. */
static void judge_result(suite_result *result, const suite_options *options)
{
    bool may_lack = name_list_has(options->unsupported, result->of->name);
    bool may_fail = name_list_has(options->expected, result->of->name);
    const char *prefix = NULL;
    if (result->ended == OUTCOME_UNSUPPORTED && !may_lack)
        prefix = "unsupported, but not in the --unsupported list: ";
    else if (result->ended == OUTCOME_PASS && may_lack)
        prefix = "passes, but is in the --unsupported list: remove it from the list";
    else if (result->ended == OUTCOME_PASS && may_fail)
        prefix = "passes, but is in the --expected list: remove it from the list";
    if (prefix) {
        char said[TRIAL_TEXT];
        memcpy(said, result->text, sizeof said);
        snprintf(result->text, sizeof result->text, "%s%.*s", prefix, TRIAL_TEXT - 80, said);
        bool is_expected = result->ended == OUTCOME_UNSUPPORTED && may_fail;
        result->ended = is_expected ? OUTCOME_EXPECTED_FAILURE : OUTCOME_FAIL;
    } else if (result->ended == OUTCOME_FAIL && may_fail) {
        result->ended = OUTCOME_EXPECTED_FAILURE;
    }
}

static void run_case(const suite_case *c, const subject *on, const suite_options *options,
                     suite_report *report)
{
    suite_result *result = &report->results[report->count++];
    *result = (suite_result){.of = c, .ended = OUTCOME_FAIL};
    if (report->late >= LATE_MOST) {
        snprintf(result->text, sizeof result->text, "not run: %zu earlier cases did not finish",
                 report->late);
        return;
    }
    attempt *a = create_attempt(c, on, options->seed);
    double began = host_seconds();
    host_ending ending = a ? host_run_for(run_attempt, a, on->patience) : HOST_NO_THREAD;
    result->ms = (host_seconds() - began) * 1e3;
    if (ending == HOST_ENDED) {
        result->ended = a->trial.ended;
        memcpy(result->text, a->trial.text, sizeof result->text);
        end(a);
    } else if (ending == HOST_LATE) {
        const char *problem = strchr(host_place_now(), ';'); /* of a kernel: how to repeat it */
        snprintf(result->text, sizeof result->text,
                 "did not finish within %g s: a call blocks forever%s", on->patience,
                 problem ? problem : "");
        report->late++; /* the attempt now belongs to the thread */
    } else {
        snprintf(result->text, sizeof result->text,
                 "the system could not create a thread to run it on");
        free(a);
    }
}

/* Selects the platform's first device, and the second if it can run too. */
static tn_status choose_devices(subject *on, tn_error *err)
{
    tn_status status = tn_platform_device_get(on->platform, 0, &on->device, err);
    if (status)
        return status;
    if (tn_device_plans_only(on->device))
        return tn_fail(err, TN_UNAVAILABLE, 0, "conformance",
                       "%s is %s for planning only and cannot run anything",
                       tn_device_id(on->device), tn_device_origin(on->device));
    if (tn_platform_device_get(on->platform, 1, &on->second, NULL) ||
        tn_device_plans_only(on->second))
        on->second = NULL;
    return TN_OK;
}

/* A run of the suite on one platform. */
typedef struct suite_run_state {
    const subject *on;
    const suite_options *options;
    suite_listener *listener;
    void *user;
    suite_report *out;
} suite_run_state;

static void run_one(const suite_run_state *s, const suite_case *c)
{
    static char place[256];
    snprintf(place, sizeof place, "in the case %s", c->name);
    host_place(place);
    run_case(c, s->on, s->options, s->out);
    suite_result *result = &s->out->results[s->out->count - 1];
    judge_result(result, s->options);
    s->out->counts[result->ended]++;
    s->listener(s->user, result);
    host_place(NULL);
}

static void run_kernels(const suite_run_state *s)
{
    for (size_t i = 0; i < s->options->kernel_count; i++) {
        const suite_case *c = s->options->kernels[i];
        if (s->options->only->count == 0 || name_list_covers(s->options->only, c->name))
            run_one(s, c);
    }
}

static void run_all(const suite_run_state *s)
{
    const suite_options *options = s->options;
    bool lost = false;
    for (size_t i = 0; i < suite_count(); i++) {
        const suite_case *c = suite_at(i);
        if (!lost && (c->needs & NEED_LOSS))
            run_kernels(s);
        lost = lost || c->needs & NEED_LOSS;
        if (!options->kernels_only &&
            (options->only->count == 0 || name_list_has(options->only, c->name)))
            run_one(s, c);
    }
    if (!lost)
        run_kernels(s);
}

tn_status suite_run(const tn_platform *platform, const suite_options *options,
                    suite_listener *listener, void *user, suite_report *out, tn_error *err)
{
    subject on = {.platform = platform, .lose = options->lose, .patience = options->patience};
    *out = (suite_report){.platform = platform};
    tn_status status = choose_devices(&on, err);
    if (status)
        return status;
    out->results = calloc(suite_count() + options->kernel_count + 1, sizeof *out->results);
    if (!out->results)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "conformance", "no memory for the results");
    run_all(&(suite_run_state){&on, options, listener, user, out});
    return TN_OK;
}

void suite_report_release(suite_report *report)
{
    free(report->results);
    *report = (suite_report){0};
}
