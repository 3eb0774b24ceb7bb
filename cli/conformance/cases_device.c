/* Counting, finding and waiting for devices. */
#include "block.h"
#include "host.h"
#include "suite.h"

/* Must run before any other case uses a device. */
static bool initialized(trial *t)
{
    const tn_device *device = t->second ? t->second : t->device;
    int32_t index = tn_device_index(device), previous = 77;
    int32_t before = tn_device_is_initialized(device);
    return DO(t, tn_device_maybe_exchange(t->platform, index, &previous, &t->err)) &&
           EQUAL(t, previous, 0) && EQUAL(t, tn_device_current(t->platform), index) &&
           EQUAL(t, tn_device_is_initialized(device), before) &&
           DO(t, tn_device_set(t->platform, index, &t->err)) &&
           EQUAL(t, tn_device_is_initialized(device), 1);
}

static bool count(trial *t)
{
    int32_t n = tn_platform_device_count(t->platform);
    tn_device *device = NULL;
    if (!HOLDS(t, n >= 1))
        return false;
    for (int32_t i = 0; i < n; i++) {
        if (!DO(t, tn_platform_device_get(t->platform, i, &device, &t->err)) ||
            !EQUAL(t, tn_device_index(device), i) ||
            !SAME(t, tn_device_platform(device), t->platform))
            return false;
    }
    device = NULL;
    return REFUSES(t, TN_NOT_FOUND, tn_platform_device_get(t->platform, n, &device, &t->err)) &&
           REFUSES(t, TN_NOT_FOUND, tn_platform_device_get(t->platform, -1, &device, &t->err)) &&
           SAME(t, device, NULL) && EQUAL(t, tn_platform_device_count(t->platform), n);
}

static bool finds(trial *t, const char *name)
{
    tn_device *found = NULL;
    return !name[0] || (DO(t, tn_device_get(name, &found, &t->err)) && SAME(t, found, t->device));
}

static bool names(trial *t)
{
    char id[128];
    tn_device *device = NULL;
    const char *platform = tn_platform_name(t->platform);
    snprintf(id, sizeof id, "%s:0", platform);
    if (!finds(t, id) || !finds(t, platform) || !finds(t, tn_device_uuid(t->device)) ||
        !finds(t, tn_device_bus(t->device)))
        return false;
    if (strcmp(tn_device_id(t->device), id) != 0)
        return trial_fail(t, "tn_device_id is \"%s\", expected \"%s\"", tn_device_id(t->device),
                          id);
    snprintf(id, sizeof id, "%s:%d", platform, (int)tn_platform_device_count(t->platform) + 5);
    return REFUSES(t, TN_NOT_FOUND, tn_device_get(id, &device, &t->err)) && trial_says(t, id) &&
           SAME(t, device, NULL);
}

/* Returns the device of this platform with the most memory; of equals, the first. */
static tn_device *with_most_memory(const trial *t)
{
    tn_device *best = t->device, *device = NULL;
    for (int32_t i = 1; i < tn_platform_device_count(t->platform); i++) {
        if (tn_platform_device_get(t->platform, i, &device, NULL) || tn_device_plans_only(device))
            continue;
        if (tn_device_properties_get(device)->memory_bytes >
            tn_device_properties_get(best)->memory_bytes)
            best = device;
    }
    return best;
}

static bool best(trial *t)
{
    char condition[128];
    tn_device *found = NULL, *expected = with_most_memory(t);
    snprintf(condition, sizeof condition, "platform=%s", tn_platform_name(t->platform));
    return DO(t, tn_device_get("best", &found, &t->err)) && SAME(t, found, expected) &&
           DO(t, tn_device_get(condition, &found, &t->err)) && SAME(t, found, expected);
}

/* Finds a device by the first device's value. A value that no device reports matches no condition;
 * this is checked only with a single device, because others may know what the first does not. */
static bool number_condition(trial *t, const char *word, bool known, int64_t value, tn_device **out)
{
    char text[160];
    const char *platform = tn_platform_name(t->platform);
    *out = t->device;
    if (known) {
        snprintf(text, sizeof text, "platform=%s,%s=%lld", platform, word, (long long)value);
        return DO(t, tn_device_get(text, out, &t->err)) &&
               SAME(t, tn_device_platform(*out), t->platform);
    }
    if (tn_platform_device_count(t->platform) > 1)
        return true;
    snprintf(text, sizeof text, "platform=%s,%s>=0", platform, word);
    return REFUSES(t, TN_NOT_FOUND, tn_device_get(text, out, &t->err));
}

static bool number_conditions(trial *t)
{
    const tn_device_properties *p = tn_device_properties_get(t->device);
    tn_device *found;
#define NUMBER(field, word, unit, meaning)                                                         \
    if (!number_condition(t, word, (p->known & TN_DEVICE_KNOWS(field)) && p->field >= 0, p->field, \
                          &found) ||                                                               \
        !EQUAL(t, tn_device_properties_get(found)->field, p->field))                               \
        return false;
    TN_DEVICE_NUMBER_LIST(NUMBER)
#undef NUMBER
    return true;
}

static bool conditions(trial *t)
{
    char text[160];
    tn_device *found = NULL;
    const char *platform = tn_platform_name(t->platform);
    if (!number_conditions(t))
        return false;
    snprintf(text, sizeof text, "platform=%s,memory>=8388607t", platform);
    if (!REFUSES(t, TN_NOT_FOUND, tn_device_get(text, &found, &t->err)))
        return false;
    snprintf(text, sizeof text, "platform=%s,memroy>=1", platform);
    return REFUSES(t, TN_INVALID_ARGUMENT, tn_device_get(text, &found, &t->err)) &&
           trial_says(t, "memory") && SAME(t, found, NULL);
}

static bool available(trial *t)
{
    bool held = EQUAL(t, tn_platform_is_available(t->platform), 1) &&
                DO(t, tn_platform_availability_replace(t->platform, 0, &t->err)) &&
                EQUAL(t, tn_platform_is_available(t->platform), 0) &&
                DO(t, tn_platform_availability_replace(t->platform, 1, &t->err)) &&
                EQUAL(t, tn_platform_is_available(t->platform), 1);
    tn_status status = tn_platform_availability_replace(t->platform, -1, &t->err);
    return held && DO(t, status) && EQUAL(t, tn_platform_is_available(t->platform), 1);
}

/* Queues work on a stream, then waits for the whole device; `device` NULL: the current one. */
static bool wait_for_all(trial *t, tn_device *device)
{
    enum { BYTES = 4 << 20, STEPS = 16 };
    block work, here;
    tn_stream *stream = NULL;
    if (!block_make(t, t->device, BYTES, &work) || !block_make(t, NULL, BYTES, &here) ||
        !trial_stream(t, t->device, &stream))
        return false;
    return block_fill_often(t, &work, STEPS, stream) &&
           block_copy(t, &work, 0, &here, 0, BYTES, stream) &&
           DO(t, tn_device_synchronize(device, &t->err)) &&
           block_check(t, &here, "data after waiting for the device");
}

static bool synchronize(trial *t)
{
    return wait_for_all(t, t->device) && wait_for_all(t, NULL);
}

static bool every(trial *t)
{
    for (int32_t i = 0; i < tn_platform_device_count(t->platform); i++) {
        tn_device *device = NULL;
        block there, back;
        size_t bytes = 1 + trial_below(t, 10000);
        if (!DO(t, tn_platform_device_get(t->platform, i, &device, &t->err)))
            return false;
        if (tn_device_plans_only(device))
            continue;
        if (!block_make(t, device, bytes, &there) || !block_make(t, NULL, bytes, &back) ||
            !block_copy(t, &there, 0, &back, 0, bytes, NULL) ||
            !DO(t, tn_device_synchronize(device, &t->err)) ||
            !block_check(t, &back, tn_device_id(device)))
            return false;
    }
    return true;
}

static bool health(trial *t)
{
    return DO(t, tn_device_health(t->device, &t->err));
}

static tn_status use(tn_device *device, char *bytes, size_t size, tn_error *err)
{
    void *memory = NULL;
    tn_status status = tn_memory_alloc(device, size, "conformance", &memory, err);
    if (!status)
        status = tn_memory_copy(
            TN_ARGS(memory_copy, .to_device = device, .to = memory, .from = bytes, .bytes = size),
            err);
    if (!status)
        status = tn_device_synchronize(device, err);
    memset(bytes, 0, size);
    if (!status)
        status = tn_memory_copy(
            TN_ARGS(memory_copy, .to = bytes, .from_device = device, .from = memory, .bytes = size),
            err);
    if (!status)
        status = tn_device_synchronize(device, err);
    tn_memory_free(device, memory);
    return status;
}

/* Runs in a forked child. There the platform is unavailable, unless its row says that it survives a
 * fork. */
static bool use_in_child(void *user, char *words, size_t size)
{
    const trial *t = user;
    char bytes[] = "a forked child";
    tn_error err;
    tn_status status = tn_device_health(t->device, &err);
    if (status == TN_UNAVAILABLE)
        return true;
    if (!status)
        status = use(t->device, bytes, sizeof bytes, &err);
    if (status)
        snprintf(words, size, "in a forked child: %s: %s", tn_status_name(status), err.message);
    else if (strcmp(bytes, "a forked child") != 0)
        snprintf(words, size, "in a forked child the copied data differs");
    else
        return true;
    return false;
}

static bool forked(trial *t)
{
    char words[256] = "";
    switch (host_fork(use_in_child, t, t->on->patience / 2, words, sizeof words)) {
    case HOST_CHILD_TRUE: return DO(t, tn_device_health(t->device, &t->err));
    case HOST_NO_FORK: return trial_unavailable(t, "needs fork(), which this system does not have");
    default: return trial_fail(t, "%s", words);
    }
}

static bool null_device(trial *t)
{
    tn_device *found = NULL;
    return DO(t, tn_device_default(&found, &t->err)) && SAME(t, found, t->device) &&
           REFUSES(t, TN_INVALID_ARGUMENT, tn_device_health(NULL, &t->err)) &&
           EQUAL(t, tn_device_index(NULL), -1) && SAME(t, tn_stream_default(NULL), NULL);
}

const suite_case cases_device[] = {
    {"device.initialized", "tn_device_maybe_exchange initializes no device, tn_device_set does",
     initialized, 0},
    {"device.count", "devices are numbered from 0; other numbers give not-found", count, 0},
    {"device.names", "a device is found by id, platform, UUID and bus address", names, 0},
    {"device.best", "\"best\" is the device of the current platform with the most memory", best, 0},
    {"device.conditions",
     "conditions match devices by their properties; invalid conditions are "
     "errors",
     conditions, 0},
    {"device.available", "is_available is 1, can be overridden for tests, and can be restored",
     available, 0},
    {"device.synchronize", "synchronizing a device waits for all queued work", synchronize, 0},
    {"device.every", "each device keeps its own data", every, 0},
    {"device.health", "a working device reports ok", health, 0},
    {"device.fork", "a forked child can use a device, or gets an error", forked, 0},
    {"device.null",
     "NULL means the current device where objects are created, and is an error elsewhere",
     null_device, 0},
    {0},
};
