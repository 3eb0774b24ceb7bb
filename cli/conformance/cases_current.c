/* The current device of a thread, and the guards that restore it. */
#include "host.h"
#include "suite.h"

static bool initial(trial *t)
{
    return EQUAL(t, tn_device_current(t->platform), 0);
}

static bool set(trial *t)
{
    return DO(t, tn_device_set(t->platform, 0, &t->err)) &&
           EQUAL(t, tn_device_current(t->platform), 0) &&
           DO(t, tn_device_set(t->platform, 0, &t->err));
}

static bool set_second(trial *t)
{
    tn_device *found = NULL;
    return DO(t, tn_device_set(t->platform, 1, &t->err)) &&
           EQUAL(t, tn_device_current(t->platform), 1) &&
           DO(t, tn_device_default(&found, &t->err)) && SAME(t, found, t->second) &&
           DO(t, tn_device_set(t->platform, 0, &t->err)) &&
           EQUAL(t, tn_device_current(t->platform), 0);
}

static bool minus_one(trial *t)
{
    int32_t previous = 77;
    return DO(t, tn_device_set(t->platform, -1, &t->err)) &&
           EQUAL(t, tn_device_current(t->platform), 0) &&
           DO(t, tn_device_exchange(t->platform, -1, &previous, &t->err)) &&
           EQUAL(t, previous, 0) && EQUAL(t, tn_device_current(t->platform), 0) &&
           DO(t, tn_device_maybe_exchange(t->platform, -1, &previous, &t->err)) &&
           EQUAL(t, previous, 0) && EQUAL(t, tn_device_current(t->platform), 0);
}

static bool out_of_range(trial *t)
{
    int32_t n = tn_platform_device_count(t->platform);
    const int32_t wrong[] = {n, n + 7, -2, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        int32_t previous = 77;
        if (!REFUSES(t, TN_NOT_FOUND, tn_device_set(t->platform, wrong[i], &t->err)) ||
            !REFUSES(t, TN_NOT_FOUND,
                     tn_device_exchange(t->platform, wrong[i], &previous, &t->err)) ||
            !REFUSES(t, TN_NOT_FOUND,
                     tn_device_maybe_exchange(t->platform, wrong[i], &previous, &t->err)) ||
            !EQUAL(t, previous, 77) || !EQUAL(t, tn_device_current(t->platform), 0))
            return false;
    }
    return true;
}

static bool exchange(trial *t)
{
    int32_t previous = 77;
    return DO(t, tn_device_exchange(t->platform, 0, &previous, &t->err)) && EQUAL(t, previous, 0) &&
           DO(t, tn_device_maybe_exchange(t->platform, 0, &previous, &t->err)) &&
           EQUAL(t, previous, 0) && EQUAL(t, tn_device_current(t->platform), 0);
}

static bool exchange_second(trial *t)
{
    int32_t previous = 77;
    return DO(t, tn_device_exchange(t->platform, 1, &previous, &t->err)) && EQUAL(t, previous, 0) &&
           EQUAL(t, tn_device_current(t->platform), 1) &&
           DO(t, tn_device_maybe_exchange(t->platform, 0, &previous, &t->err)) &&
           EQUAL(t, previous, 1) && EQUAL(t, tn_device_current(t->platform), 0);
}

typedef struct view {
    const tn_platform *platform;
    int32_t first; /* device another thread finds current */
    int32_t set;   /* device it then sets */
    tn_status status;
} view;

static void read_in_thread(void *user, size_t index)
{
    view *v = user;
    (void)index;
    v->first = tn_device_current(v->platform);
    v->status = tn_device_set(v->platform, v->set, NULL);
}

static bool per_thread(trial *t)
{
    view other = {.platform = t->platform, .set = 0};
    if (!DO(t, tn_device_set(t->platform, 1, &t->err)))
        return false;
    if (!host_run_together(1, read_in_thread, &other))
        return trial_fail(t, "the system could not create a thread");
    return EQUAL(t, other.status, TN_OK) && EQUAL(t, other.first, 0) &&
           EQUAL(t, tn_device_current(t->platform), 1);
}

static bool guard_restores(trial *t)
{
    tn_device_guard guard = {0};
    bool held = DO(t, tn_device_guard_enter(&guard, t->second, &t->err)) &&
                EQUAL(t, tn_device_current(t->platform), 1);
    tn_device_guard_leave(&guard);
    return held && EQUAL(t, tn_device_current(t->platform), 0);
}

static bool guard_nests(trial *t)
{
    tn_device *other = t->second ? t->second : t->device;
    tn_device_guard outer = {0}, inner = {0};
    bool held = DO(t, tn_device_guard_enter(&outer, other, &t->err)) &&
                EQUAL(t, tn_device_current(t->platform), tn_device_index(other)) &&
                DO(t, tn_device_guard_enter(&inner, t->device, &t->err)) &&
                EQUAL(t, tn_device_current(t->platform), 0);
    tn_device_guard_leave(&inner);
    held = held && EQUAL(t, tn_device_current(t->platform), tn_device_index(other));
    tn_device_guard_leave(&outer);
    return held && EQUAL(t, tn_device_current(t->platform), 0);
}

/* The guard restores the device that was current when it was entered, even if the current device
 * changed in between, and it can be reused for the same device. */
static bool guard_after_change(trial *t)
{
    tn_device_guard guard = {0};
    for (int turn = 0; turn < 2; turn++) {
        bool held = DO(t, tn_device_guard_enter(&guard, t->second, &t->err)) &&
                    EQUAL(t, tn_device_current(t->platform), 1) &&
                    DO(t, tn_device_set(t->platform, 0, &t->err));
        tn_device_guard_leave(&guard);
        if (!held || !EQUAL(t, tn_device_current(t->platform), 0))
            return false;
    }
    return DO(t, tn_device_set(t->platform, 1, &t->err)) &&
           DO(t, tn_device_guard_enter(&guard, t->device, &t->err)) &&
           DO(t, tn_device_set(t->platform, 1, &t->err)) &&
           (tn_device_guard_leave(&guard), EQUAL(t, tn_device_current(t->platform), 1));
}

static bool guard_twice(trial *t)
{
    tn_device_guard guard = {0};
    if (!DO(t, tn_device_guard_enter(&guard, t->device, &t->err)))
        return false;
    bool held = REFUSES(t, TN_BUSY, tn_device_guard_enter(&guard, t->device, &t->err));
    tn_device_guard_leave(&guard);
    held = held && DO(t, tn_device_guard_enter(&guard, t->device, &t->err));
    tn_device_guard_leave(&guard);
    return held;
}

static bool guard_of_nothing(trial *t)
{
    tn_device_guard guard = {0};
    tn_device_guard_leave(NULL);
    tn_device_guard_leave(&guard);
    bool held = EQUAL(t, tn_device_current(t->platform), 0) &&
                DO(t, tn_device_guard_enter(&guard, NULL, &t->err)) &&
                EQUAL(t, tn_device_current(t->platform), 0);
    tn_device_guard_leave(&guard);
    tn_device_guard_leave(&guard);
    return held && EQUAL(t, tn_device_current(t->platform), 0);
}

const suite_case cases_current[] = {
    {"current.initial", "device 0 is current in a new thread", initial, 0},
    {"current.set", "the device that is set becomes current", set, 0},
    {"current.set-second", "the device that is set becomes current and the default for new objects",
     set_second, NEED_TWO_DEVICES},
    {"current.minus-one", "setting -1 changes nothing and is not an error", minus_one, 0},
    {"current.out-of-range", "another number gives not-found and changes nothing", out_of_range, 0},
    {"current.exchange", "exchange returns the previous device", exchange, 0},
    {"current.exchange-second", "exchange returns the previous device and sets the new one",
     exchange_second, NEED_TWO_DEVICES},
    {"current.per-thread", "each thread has its own current device", per_thread, NEED_TWO_DEVICES},
    {"guard.restore", "leaving restores the previous device", guard_restores, NEED_TWO_DEVICES},
    {"guard.nest", "guards nest", guard_nests, 0},
    {"guard.restore-after-change", "leaving restores the device even if it was changed inside",
     guard_after_change, NEED_TWO_DEVICES},
    {"guard.twice", "a guard cannot be entered twice", guard_twice, 0},
    {"guard.nothing", "leaving NULL, or a guard that was not entered, changes nothing",
     guard_of_nothing, 0},
    {0},
};
