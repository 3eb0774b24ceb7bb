#include "trial.h"

#include "host.h"

#include <inttypes.h>
#include <stdlib.h>

const char *outcome_word(outcome ended)
{
    static const char *const words[OUTCOME_COUNT] = {"pass", "fail", "unsupported",
                                                     "expected-failure", "unavailable"};
    return words[ended];
}

TN_PRINTF(3, 0)
static bool decide(trial *t, outcome ended, const char *format, va_list arguments)
{
    if (t->ended != OUTCOME_PASS)
        return false;
    t->ended = ended;
    vsnprintf(t->text, sizeof t->text, format, arguments);
    return false;
}

bool trial_fail(trial *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    decide(t, OUTCOME_FAIL, format, arguments);
    va_end(arguments);
    return false;
}

bool trial_unavailable(trial *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    decide(t, OUTCOME_UNAVAILABLE, format, arguments);
    va_end(arguments);
    return false;
}

TN_PRINTF(2, 3)
static bool unsupported(trial *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    decide(t, OUTCOME_UNSUPPORTED, format, arguments);
    va_end(arguments);
    return false;
}

void trial_clear(trial *t)
{
    memset(&t->err, 0, sizeof t->err);
}

/* Length of the call's name: its text up to the parenthesis. */
static int name_length(const char *words)
{
    return (int)strcspn(words, "(");
}

bool trial_did(trial *t, tn_status status, const char *words)
{
    int length = name_length(words);
    switch (status) {
    case TN_OK: return true;
    case TN_UNSUPPORTED: return unsupported(t, "%.*s: %s", length, words, t->err.message);
    default:
        return trial_fail(t, "%.*s gave %s, expected ok: %s", length, words, tn_status_name(status),
                          t->err.message);
    }
}

bool trial_refused(trial *t, tn_status expected, tn_status found, const char *words)
{
    int length = name_length(words);
    if (found != expected)
        return trial_fail(t, "%s gave %s, expected %s%s%s", words, tn_status_name(found),
                          tn_status_name(expected), found ? ": " : "", found ? t->err.message : "");
    if (t->err.status != expected)
        return trial_fail(t, "%.*s gave %s, but wrote the status %s into its error", length, words,
                          tn_status_name(found), tn_status_name(t->err.status));
    if (!t->err.message[0])
        return trial_fail(t, "%.*s gave %s without a message", length, words,
                          tn_status_name(found));
    return true;
}

bool trial_says(trial *t, const char *part)
{
    return strstr(t->err.message, part) != NULL ||
           trial_fail(t, "a message lacks \"%s\": %s", part, t->err.message);
}

bool trial_equal(trial *t, int64_t found, int64_t expected, const char *words, const char *what)
{
    char number[24];
    snprintf(number, sizeof number, "%" PRId64, expected);
    bool is_plain = strcmp(number, what) == 0;
    return found == expected ||
           trial_fail(t, "%s is %" PRId64 ", expected %s%s%s%s", words, found, number,
                      is_plain ? "" : " (", is_plain ? "" : what, is_plain ? "" : ")");
}

bool trial_same(trial *t, const void *found, const void *expected, const char *words,
                const char *what)
{
    return found == expected ||
           trial_fail(t, "%s is %p, expected %p (%s)", words, found, expected, what);
}

bool trial_holds(trial *t, bool condition, const char *words)
{
    return condition || trial_fail(t, "check failed: %s", words);
}

uint64_t trial_bits(trial *t)
{
    uint64_t bits = t->random += UINT64_C(0x9E3779B97F4A7C15);
    bits = (bits ^ bits >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    bits = (bits ^ bits >> 27) * UINT64_C(0x94D049BB133111EB);
    return bits ^ bits >> 31;
}

void trial_bytes(trial *t, void *to, size_t bytes)
{
    unsigned char *at = to;
    while (bytes > 0) {
        uint64_t bits = trial_bits(t);
        size_t part = bytes < sizeof bits ? bytes : sizeof bits;
        memcpy(at, &bits, part);
        at += part;
        bytes -= part;
    }
}

size_t trial_below(trial *t, size_t below)
{
    return (size_t)(trial_bits(t) % below);
}

bool trial_keep(trial *t, void (*give_back)(void *owner, void *what), void *owner, void *what)
{
    if (t->thing_count == TRIAL_THINGS) {
        give_back(owner, what);
        return trial_fail(t, "bug in the test suite: a case keeps too many objects");
    }
    t->things[t->thing_count++] = (thing){give_back, owner, what};
    return true;
}

static void release_host(void *owner, void *what)
{
    (void)owner;
    free(what);
}

static void release_memory(void *owner, void *what)
{
    tn_memory_free(owner, what);
}

static void release_stream(void *owner, void *what)
{
    (void)owner;
    tn_stream_release(what);
}

static void release_event(void *owner, void *what)
{
    (void)owner;
    tn_event_release(what);
}

/* A failed case may have left work running that the platform does not report. Waits for it as well
 * as possible; host memory is never freed, because the device may still write to it. */
static void come_to_rest(trial *t)
{
    for (size_t i = 0; i < t->thing_count; i++) {
        if (t->things[i].give_back == release_stream)
            (void)tn_stream_synchronize(t->things[i].what, NULL);
    }
    (void)tn_device_synchronize(t->device, NULL);
    host_pause(0.1);
}

void trial_give_back(trial *t)
{
    bool is_failed = t->ended == OUTCOME_FAIL;
    if (is_failed)
        come_to_rest(t);
    for (size_t i = t->thing_count; i-- > 0;) {
        const thing *last = &t->things[i];
        if (!is_failed || last->give_back != release_host)
            last->give_back(last->owner, last->what);
    }
}

bool trial_host(trial *t, size_t bytes, void **out)
{
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory)
        return trial_fail(t, "the host has no memory for %zu bytes", bytes);
    *out = memory;
    return trial_keep(t, release_host, NULL, memory);
}

bool trial_memory(trial *t, tn_device *device, uint64_t bytes, void **out)
{
    void *memory = NULL;
    if (!DO(t, tn_memory_alloc(device, bytes, "conformance", &memory, &t->err)))
        return false;
    *out = memory;
    return trial_keep(t, release_memory, device, memory);
}

bool trial_stream(trial *t, tn_device *device, tn_stream **out)
{
    tn_stream *stream = NULL;
    if (!DO(t, tn_stream_create(device, NULL, &stream, &t->err)))
        return false;
    *out = stream;
    return trial_keep(t, release_stream, NULL, stream);
}

bool trial_event(trial *t, tn_device *device, const tn_event_args *args, tn_event **out)
{
    tn_event *event = NULL;
    if (!DO(t, tn_event_create(device, args, &event, &t->err)))
        return false;
    *out = event;
    return trial_keep(t, release_event, NULL, event);
}
