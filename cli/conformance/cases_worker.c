/* The worker view: what is known about devices where no driver may be used. */
#include "host.h"
#include "suite.h"

static bool snapshot(trial *t)
{
    const char *name = tn_platform_name(t->platform);
    tn_device_properties seen = {.struct_size = sizeof seen};
    int32_t count = 77, current = 77;
    if (!DO(t, tn_worker_snapshot_take(&t->err)) ||
        !DO(t, tn_worker_device_count(name, &count, &t->err)) ||
        !EQUAL(t, count, tn_platform_device_count(t->platform)) ||
        !DO(t, tn_worker_current_device(name, &current, &t->err)) || !EQUAL(t, current, 0))
        return false;
    const tn_device_properties *own = tn_device_properties_get(t->device);
    if (!DO(t, tn_worker_properties(name, 0, &seen, &t->err)) ||
        !EQUAL(t, seen.known, own->known) || !EQUAL(t, seen.memory_bytes, own->memory_bytes) ||
        !EQUAL(t, seen.multi_processor_count, own->multi_processor_count) ||
        !EQUAL(t, seen.capability.major, own->capability.major))
        return false;
    return strcmp(seen.name, own->name) == 0 ||
           trial_fail(t, "the worker's name is \"%s\", expected \"%s\"", seen.name, own->name);
}

static bool numbers(trial *t)
{
    const char *name = tn_platform_name(t->platform);
    int32_t n = tn_platform_device_count(t->platform), current = 77;
    tn_device_properties seen = {.struct_size = sizeof seen};
    return DO(t, tn_worker_snapshot_take(&t->err)) &&
           DO(t, tn_worker_set_device(name, 0, &t->err)) &&
           DO(t, tn_worker_set_device(name, -1, &t->err)) &&
           DO(t, tn_worker_current_device(name, &current, &t->err)) && EQUAL(t, current, 0) &&
           REFUSES(t, TN_NOT_FOUND, tn_worker_set_device(name, n, &t->err)) &&
           REFUSES(t, TN_NOT_FOUND, tn_worker_set_device(name, -2, &t->err)) &&
           DO(t, tn_worker_properties(name, -1, &seen, &t->err)) &&
           REFUSES(t, TN_NOT_FOUND, tn_worker_properties(name, n, &seen, &t->err)) &&
           REFUSES(t, TN_NOT_FOUND, tn_worker_current_device("no-such", &current, &t->err));
}

/* Setting the worker's device does not change any other current device. */
static bool set_is_recorded(trial *t)
{
    const char *name = tn_platform_name(t->platform);
    int32_t current = 77;
    bool held = DO(t, tn_worker_snapshot_take(&t->err)) &&
                DO(t, tn_worker_set_device(name, 1, &t->err)) &&
                DO(t, tn_worker_current_device(name, &current, &t->err)) && EQUAL(t, current, 1) &&
                EQUAL(t, tn_device_current(t->platform), 0);
    return DO(t, tn_worker_snapshot_take(&t->err)) && held;
}

static bool text(trial *t)
{
    const char *name = tn_platform_name(t->platform);
    char *first = NULL, *second = NULL;
    int32_t count = 77;
    if (!DO(t, tn_worker_snapshot_take(&t->err)) ||
        !DO(t, tn_worker_snapshot_save(&first, &t->err)))
        return false;
    bool held = DO(t, tn_worker_snapshot_load(first, &t->err)) &&
                DO(t, tn_worker_device_count(name, &count, &t->err)) &&
                EQUAL(t, count, tn_platform_device_count(t->platform)) &&
                DO(t, tn_worker_snapshot_save(&second, &t->err));
    if (held && strcmp(first, second) != 0)
        held = trial_fail(t, "saving, loading and saving a snapshot again gives a different text");
    held = held && REFUSES(t, TN_CORRUPT, tn_worker_snapshot_load("nonsense [", &t->err)) &&
           DO(t, tn_worker_device_count(name, &count, &t->err));
    tn_worker_text_release(first);
    tn_worker_text_release(second);
    tn_worker_text_release(NULL);
    return held;
}

/* Runs in a forked child, which uses only the worker view. */
static bool query_in_child(void *user, char *words, size_t size)
{
    const trial *t = user;
    const char *name = tn_platform_name(t->platform);
    tn_device_properties seen = {.struct_size = sizeof seen};
    const tn_device_properties *own = tn_device_properties_get(t->device);
    int32_t count = 77, current = 77;
    tn_error err;
    tn_status status = tn_worker_device_count(name, &count, &err);
    if (!status)
        status = tn_worker_set_device(name, count - 1, &err);
    if (!status)
        status = tn_worker_current_device(name, &current, &err);
    if (!status)
        status = tn_worker_properties(name, 0, &seen, &err);
    if (status)
        snprintf(words, size, "in a forked child: %s: %s", tn_status_name(status), err.message);
    else if (count != tn_platform_device_count(t->platform) || current != count - 1)
        snprintf(words, size, "in a forked child there are %d devices and device %d is current",
                 (int)count, (int)current);
    else if (seen.known != own->known || strcmp(seen.name, own->name) != 0)
        snprintf(words, size, "in a forked child the properties differ");
    else if (tn_worker_snapshot_take(&err) != TN_REFUSED)
        snprintf(words, size, "in a forked child taking a snapshot succeeded, expected refused");
    else
        return true;
    return false;
}

static bool forked(trial *t)
{
    char words[256] = "";
    if (!DO(t, tn_worker_snapshot_take(&t->err)))
        return false;
    switch (host_fork(query_in_child, t, t->on->patience / 2, words, sizeof words)) {
    case HOST_CHILD_TRUE: return true;
    case HOST_NO_FORK: return trial_unavailable(t, "needs fork(), which this system does not have");
    default: return trial_fail(t, "%s", words);
    }
}

const suite_case cases_worker[] = {
    {"worker.snapshot", "a snapshot has every device and its properties", snapshot, 0},
    {"worker.numbers", "device numbers follow the rules of the current device", numbers, 0},
    {"worker.set", "setting a device is recorded and changes no real device", set_is_recorded,
     NEED_TWO_DEVICES},
    {"worker.text", "a snapshot can be saved and loaded", text, 0},
    {"worker.fork", "a forked child answers from the snapshot and cannot take one", forked, 0},
    {0},
};
