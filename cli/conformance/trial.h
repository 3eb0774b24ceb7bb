/* A trial: one case on one platform, what it checks with, and what it has found so far.
 *
 * A case is a chain of checks, each of which is false once the case is decided:
 *
 *     return DO(t, tn_device_set(t->platform, -1, &t->err)) &&
 *            EQUAL(t, tn_device_current(t->platform), 0);
 *
 * What it takes through the trial is given back when it ends, in the opposite order, so a case may
 * return at any point.
 *
 * Thread-safety: a trial belongs to the thread it runs on; helpers that a case starts report back
 * through what they share with it. */
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

/* What is under test. */
typedef struct subject {
    const tn_platform *platform;
    tn_device *device; /* its first  */
    tn_device *second; /* or NULL    */
    const char *lose;  /* a command line that loses the device, or NULL */
    double patience;   /* seconds that a case may take */
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
    const struct suite_case *of; /* the case itself, for those that are part of something larger */
    tn_error err;                /* for the calls of a case */
    uint64_t random;
    outcome ended;         /* OUTCOME_PASS until something is found */
    char text[TRIAL_TEXT]; /* what was found, and what was expected */
    thing things[TRIAL_THINGS];
    size_t thing_count;
} trial;

/* Decides the case, unless it is decided already. Always false. */
bool trial_fail(trial *t, const char *format, ...) TN_PRINTF(2, 3);
/* For what the suite itself lacks: a second device, a way to lose one. */
bool trial_unavailable(trial *t, const char *format, ...) TN_PRINTF(2, 3);

/* The call, of which `words` are the text, succeeded. TN_UNSUPPORTED decides the case as such; anything
 * else fails it, TN_UNAVAILABLE too: a device that is under test is there. */
#define DO(t, call) trial_did(t, (call), #call)
bool trial_did(trial *t, tn_status status, const char *words);

/* The call was refused with this status, and said why in a sentence. */
#define REFUSES(t, status, call) trial_refused(t, status, (trial_clear(t), (call)), #call)
bool trial_refused(trial *t, tn_status expected, tn_status found, const char *words);

/* Integers, pointers, conditions. */
#define EQUAL(t, found, expected) \
    trial_equal(t, (int64_t)(found), (int64_t)(expected), #found, #expected)
#define SAME(t, found, expected) trial_same(t, found, expected, #found, #expected)
#define HOLDS(t, condition)      trial_holds(t, condition, #condition)
bool trial_equal(trial *t, int64_t found, int64_t expected, const char *words, const char *what);
bool trial_same(trial *t, const void *found, const void *expected, const char *words,
                const char *what);
bool trial_holds(trial *t, bool condition, const char *words);

/* The last refusal's message has `part` in it. */
bool trial_says(trial *t, const char *part);

void trial_clear(trial *t); /* err is as if nothing had been written to it */

/* Random bits, bytes, and a number below `below`, which is at least 1. */
uint64_t trial_bits(trial *t);
void trial_bytes(trial *t, void *to, size_t bytes);
size_t trial_below(trial *t, size_t below);

/* Things that are given back when the case ends. */
bool trial_keep(trial *t, void (*give_back)(void *owner, void *what), void *owner, void *what);
bool trial_host(trial *t, size_t bytes, void **out); /* ordinary memory */
bool trial_memory(trial *t, tn_device *device, uint64_t bytes, void **out);
bool trial_stream(trial *t, tn_device *device, tn_stream **out);
bool trial_event(trial *t, tn_device *device, const tn_event_args *args, tn_event **out);

/* Ends the trial. Of one that failed the host's memory stays, and `things` with it. */
void trial_give_back(trial *t);

#endif
