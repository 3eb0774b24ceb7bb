/* The suite: every rule of the device interface as a case, and how a platform is checked against
 * them.
 *
 * Each case runs on its own thread, so that it begins with nothing current, and within a time
 * limit: a case that hangs fails and is abandoned. */
#ifndef TENON_CLI_CONFORMANCE_SUITE_H
#define TENON_CLI_CONFORMANCE_SUITE_H

#include "lists.h"
#include "trial.h"

/* Requirements of a case. */
enum { NEED_TWO_DEVICES = 1, NEED_LOSS = 2 };

typedef struct suite_case {
    const char *name; /* "copy.2d": subject first, lower case */
    const char *rule; /* the promise, in one line */
    bool (*run)(trial *t);
    uint32_t needs;
} suite_case;

/* Tables of cases; each ends with an entry without a name. */
extern const suite_case cases_device[];
extern const suite_case cases_properties[];
extern const suite_case cases_current[];
extern const suite_case cases_stream[];
extern const suite_case cases_stream_order[];
extern const suite_case cases_event[];
extern const suite_case cases_event_time[];
extern const suite_case cases_memory[];
extern const suite_case cases_memory_limit[];
extern const suite_case cases_memory_order[];
extern const suite_case cases_copy[];
extern const suite_case cases_fill[];
extern const suite_case cases_tensor[];
extern const suite_case cases_dlpack[];
extern const suite_case cases_graph[];
extern const suite_case cases_worker[];
extern const suite_case cases_lost[];

/* Every case of the device interface, in the order in which they run; suite_at returns NULL past
 * the end. */
size_t suite_count(void);
const suite_case *suite_at(size_t index);

typedef struct suite_options {
    uint64_t seed;
    double patience;
    const char *lose;
    const name_list *only;        /* empty: every case */
    const name_list *unsupported; /* these may return TN_UNSUPPORTED, and must */
    const name_list *expected;    /* these fail, and must                    */
    const suite_case *const
        *kernels; /* kernel cases (kernel_cases.h), run before the device is lost */
    size_t kernel_count;
    bool kernels_only; /* run no other cases */
} suite_options;

typedef struct suite_result {
    const suite_case *of;
    outcome ended;
    char text[TRIAL_TEXT]; /* the finding; "" for a pass in which everything was tried */
    double ms;
} suite_result;

/* Called after each case. */
typedef void suite_listener(void *user, const suite_result *result);

/* One platform's results: `count` of them, and the count of each outcome. */
typedef struct suite_report {
    const tn_platform *platform;
    suite_result *results;
    size_t count;
    size_t counts[OUTCOME_COUNT];
    size_t late; /* abandoned cases: their threads may still run */
} suite_report;

/* Runs the cases on a platform that has a device. Release the report in either case. */
tn_status suite_run(const tn_platform *platform, const suite_options *options,
                    suite_listener *listener, void *user, suite_report *out, tn_error *err);
void suite_report_release(suite_report *report);

#endif
