/* A trial: one case on one platform, the checks it uses, and its findings so far.
 *
 * A case is a chain of checks. Each check returns false once the case is decided:
 *
 *     return DO(t, tn_device_set(t->platform, -1, &t->err)) &&
 *            EQUAL(t, tn_device_current(t->platform), 0);
 *
 * Everything acquired through the trial is released when it ends, in reverse order, so a case may
 * return at any point.
 *
 * Thread-safety: a trial belongs to the thread it runs on; threads that a case starts report back
 * through the data they share with it. */
#ifndef TENON_CLI_CONFORMANCE_TRIAL_H
#define TENON_CLI_CONFORMANCE_TRIAL_H

#include <tenon/tenon.h>

#include <stdbool.h>

/* How a case ended. */
typedef enum outcome {
    OUTCOME_PASS,
    OUTCOME_FAIL,
    OUTCOME_UNSUPPORTED,
    OUTCOME_EXPECTED_FAILURE,
    OUTCOME_UNAVAILABLE,
    OUTCOME_COUNT
} outcome;

/* "pass", "fail", "unsupported", "expected-failure", "unavailable". */
const char *outcome_word(outcome ended);

/* The platform and devices under test. */
typedef struct subject {
    const tn_platform *platform;
    tn_device *device; /* its first device */
    tn_device *second; /* or NULL    */
    const char *lose;  /* a command line that makes the device fail, or NULL */
    double patience;   /* time limit of a case, in seconds */
} subject;

enum { TRIAL_TEXT = 768, TRIAL_THINGS = 512 };

typedef struct thing {
    void (*give_back)(void *owner, void *what);
    void *owner;
    void *what;
} thing;

typedef struct trial {
    const subject *on;
    const tn_platform *platform;
    tn_device *device;
    tn_device *second;
    const struct suite_case *of; /* the case itself, for cases embedded in a larger struct */
    tn_error err;                /* for the calls of a case */
    uint64_t random;
    outcome ended;         /* OUTCOME_PASS until a check fails */
    char text[TRIAL_TEXT]; /* what was found and what was expected */
    thing things[TRIAL_THINGS];
    size_t thing_count;
} trial;

/* Decides the case, unless it is already decided. Always returns false. */
bool trial_fail(trial *t, const char *format, ...) TN_PRINTF(2, 3);
/* For requirements that the suite itself lacks: a second device, a way to lose one. */
bool trial_unavailable(trial *t, const char *format, ...) TN_PRINTF(2, 3);

/* Checks that the call, whose text is `words`, succeeded. TN_UNSUPPORTED gives the case that
 * outcome; any other error fails it, including TN_UNAVAILABLE, because a device under test is
 * present. */
#define DO(t, call) trial_did(t, (call), #call)
bool trial_did(trial *t, tn_status status, const char *words);

/* Checks that the call failed with this status and a message. */
#define REFUSES(t, status, call) trial_refused(t, status, (trial_clear(t), (call)), #call)
bool trial_refused(trial *t, tn_status expected, tn_status found, const char *words);

/* Checks of integers, pointers and conditions. */
#define EQUAL(t, found, expected) \
    trial_equal(t, (int64_t)(found), (int64_t)(expected), #found, #expected)
#define SAME(t, found, expected) trial_same(t, found, expected, #found, #expected)
#define HOLDS(t, condition)      trial_holds(t, condition, #condition)
bool trial_equal(trial *t, int64_t found, int64_t expected, const char *words, const char *what);
bool trial_same(trial *t, const void *found, const void *expected, const char *words,
                const char *what);
bool trial_holds(trial *t, bool condition, const char *words);

/* Checks that the last refusal's message contains `part`. */
bool trial_says(trial *t, const char *part);

void trial_clear(trial *t); /* resets err to its unwritten state */

/* Random bits, bytes, and a number below `below`, which is at least 1. */
uint64_t trial_bits(trial *t);
void trial_bytes(trial *t, void *to, size_t bytes);
size_t trial_below(trial *t, size_t below);

/* Resources that are released when the case ends. */
bool trial_keep(trial *t, void (*give_back)(void *owner, void *what), void *owner, void *what);
bool trial_host(trial *t, size_t bytes, void **out); /* ordinary memory */
bool trial_memory(trial *t, tn_device *device, uint64_t bytes, void **out);
bool trial_stream(trial *t, tn_device *device, tn_stream **out);
bool trial_event(trial *t, tn_device *device, const tn_event_args *args, tn_event **out);

/* Ends the trial and releases its resources. If it failed, host memory is not freed, and `things`
 * still refers to it. */
void trial_give_back(trial *t);

#endif
