/* Counting, finding and waiting for devices. */
#include "block.h"
#include "suite.h"

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

/* The one of this platform with the most memory, or the first of those. */
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

static bool conditions(trial *t)
{
    char text[160];
    tn_device *found = NULL;
    const char *platform = tn_platform_name(t->platform);
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

/* Work on a stream, then a wait for all of the device: with `device` NULL, for the current one. */
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
           block_check(t, &here, "what was there after waiting for the device");
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

static bool null_device(trial *t)
{
    tn_device *found = NULL;
    return DO(t, tn_device_default(&found, &t->err)) && SAME(t, found, t->device) &&
           REFUSES(t, TN_INVALID_ARGUMENT, tn_device_health(NULL, &t->err)) &&
           EQUAL(t, tn_device_index(NULL), -1) && SAME(t, tn_stream_default(NULL), NULL);
}

const suite_case cases_device[] = {
    {"device.count", "devices are numbered from 0, and no other number is one", count, 0},
    {"device.names", "a device is found by id, platform, UUID and bus address", names, 0},
    {"device.best", "\"best\" is the current platform's device with the most memory", best, 0},
    {"device.conditions", "conditions that no device meets find none; nonsense is refused",
     conditions, 0},
    {"device.available", "is_available is 1, can be replaced for tests, and comes back", available,
     0},
    {"device.synchronize", "waiting for a device waits for all that was queued", synchronize, 0},
    {"device.every", "each device keeps what is copied to it", every, 0},
    {"device.health", "a device that works is well", health, 0},
    {"device.null", "NULL is the current device where things are created, and no other",
     null_device, 0},
    {0},
};
