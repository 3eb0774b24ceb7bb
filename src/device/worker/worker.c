/* The worker view: a snapshot that is replaced as a whole, and queries that take no lock, so that
 * they work in a child whatever the parent's other threads were doing at the fork. */
#include "tenon/worker.h"

#include "base/alloc.h"
#include "base/words.h"
#include "os/fork.h"
#include "worker.h"

/* Readers are counted while they read. A replaced snapshot is released once there are no readers;
 * never in a child of a process that had readers, as those do not exist there. */
static tni_snapshot *_Atomic now;
static tni_snapshot *_Atomic replaced; /* linked by `next` */
static _Atomic int64_t readers;

/* 1 + the fork generation of the process that took the last snapshot; 0: none yet. */
static _Atomic unsigned taken_by;

static const tni_snapshot *enter_reader(void)
{
    atomic_fetch_add(&readers, 1);
    return atomic_load(&now);
}

static void leave_reader(void)
{
    atomic_fetch_sub(&readers, 1);
}

static void retire_snapshot(tni_snapshot *snapshot)
{
    snapshot->next = atomic_load(&replaced);
    while (!atomic_compare_exchange_weak(&replaced, &snapshot->next, snapshot)) {
    }
}

/* Snapshots in the list are unreachable: a new reader cannot get them. */
static void release_replaced(void)
{
    tni_snapshot *list = atomic_exchange(&replaced, NULL);
    bool is_read = atomic_load(&readers) > 0;
    while (list) {
        tni_snapshot *next = list->next;
        if (is_read)
            retire_snapshot(list);
        else
            tni_release(list);
        list = next;
    }
}

static void swap_snapshot(tni_snapshot *snapshot)
{
    tni_snapshot *before = atomic_exchange(&now, snapshot);
    if (before)
        retire_snapshot(before);
    release_replaced();
}

tn_status tni_worker_snapshot_take(tni_platforms *set, tn_error *err)
{
    tni_snapshot *snapshot;
    unsigned by = tni_fork_generation() + 1, last = atomic_load(&taken_by);
    if (last != 0 && last != by)
        return tn_fail(
            err, TN_REFUSED, 0, "tn_worker_snapshot_take",
            "this process was forked from one that took a snapshot and cannot use a driver; "
            "take the snapshot before fork(), or start a new process");
    tn_status status = set ? TN_OK : tni_platforms_process(&set, err);
    if (!status)
        status = tni_snapshot_take(set, &snapshot, err);
    if (status)
        return status;
    atomic_store(&taken_by, by);
    swap_snapshot(snapshot);
    return TN_OK;
}

tn_status tn_worker_snapshot_take(tn_error *err)
{
    return tni_worker_snapshot_take(NULL, err);
}

static tn_status no_snapshot(const char *where, tn_error *err)
{
    return tn_fail(err, TN_UNAVAILABLE, 0, where,
                   "there is no snapshot; take one before fork(), or load the text "
                   "from tn_worker_snapshot_save");
}

tn_status tn_worker_snapshot_save(char **out_text, tn_error *err)
{
    static const char where[] = "tn_worker_snapshot_save";
    if (!out_text)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "out_text is NULL");
    const tni_snapshot *snapshot = enter_reader();
    tn_status status =
        snapshot ? tni_snapshot_write(snapshot, out_text, err) : no_snapshot(where, err);
    leave_reader();
    return status;
}

tn_status tn_worker_snapshot_load(const char *text, tn_error *err)
{
    tni_snapshot *snapshot;
    if (!text)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_worker_snapshot_load", "text is NULL");
    tn_status status = tni_snapshot_read(text, &snapshot, err);
    if (!status)
        swap_snapshot(snapshot);
    return status;
}

void tn_worker_text_release(char *text)
{
    tni_release(text);
}

enum { MOST_NAMED = 64 };

static tn_status no_such(const tni_snapshot *snapshot, const char *name, const char *where,
                         tn_error *err)
{
    const char *names[MOST_NAMED];
    char there[256], hint[TNI_HINT];
    size_t count = 0;
    for (; count < snapshot->platform_count && count < MOST_NAMED; count++)
        names[count] = snapshot->platforms[count].name;
    tni_words_join(names, count, there, sizeof there);
    const char *nearest = tni_words_nearest(name, names, count);
    return tn_fail(err, TN_NOT_FOUND, 0, where,
                   "unknown platform \"%.60s\" in the snapshot; platforms: %s%s", name, there,
                   tni_words_hint(nearest, hint));
}

/* Common start of all queries. The caller must call leave_reader() in any case. */
static tn_status find_seen_platform(const char *name, const char *where,
                                    const tni_snapshot **out_snapshot, tni_seen_platform **out,
                                    tn_error *err)
{
    const tni_snapshot *snapshot = enter_reader();
    if (!name)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "platform is NULL");
    if (!snapshot)
        return no_snapshot(where, err);
    *out_snapshot = snapshot;
    *out = tni_snapshot_platform(snapshot, name);
    return *out ? TN_OK : no_such(snapshot, name, where, err);
}

/* As tn_device_set, for any number but -1. */
static tn_status find_seen_device(const tni_snapshot *snapshot, const tni_seen_platform *platform,
                                  int32_t index, const char *where, const tni_seen_device **out,
                                  tn_error *err)
{
    const tni_seen_device *device = tni_snapshot_device(snapshot, platform, index);
    if (!device && platform->devices == 0)
        return tn_fail(err, TN_UNAVAILABLE, 0, where, "%s", platform->reason);
    if (!device)
        return tn_fail(err, TN_NOT_FOUND, 0, where,
                       "no device \"%s:%d\" in the snapshot: %s has %d", platform->name, (int)index,
                       platform->name, (int)platform->devices);
    *out = device;
    return TN_OK;
}

/* The number of the current device, or the count of devices. */
static tn_status read_number(const char *platform, bool current, const char *where, int32_t *out,
                             tn_error *err)
{
    const tni_snapshot *snapshot = NULL;
    tni_seen_platform *seen = NULL;
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "out is NULL");
    tn_status status = find_seen_platform(platform, where, &snapshot, &seen, err);
    if (!status)
        *out = current ? atomic_load(&seen->current) : seen->devices;
    leave_reader();
    return status;
}

tn_status tn_worker_device_count(const char *platform, int32_t *out, tn_error *err)
{
    return read_number(platform, false, "tn_worker_device_count", out, err);
}

tn_status tn_worker_set_device(const char *platform, int32_t index, tn_error *err)
{
    static const char where[] = "tn_worker_set_device";
    const tni_snapshot *snapshot = NULL;
    const tni_seen_device *device;
    tni_seen_platform *seen = NULL;
    tn_status status = find_seen_platform(platform, where, &snapshot, &seen, err);
    if (!status && index != -1) {
        status = find_seen_device(snapshot, seen, index, where, &device, err);
        if (!status)
            atomic_store(&seen->current, index);
    }
    leave_reader();
    return status;
}

tn_status tn_worker_current_device(const char *platform, int32_t *out, tn_error *err)
{
    return read_number(platform, true, "tn_worker_current_device", out, err);
}

/* The device of a number; -1 is the current one. The caller must call leave_reader() in any case. */
static tn_status begin_device(const char *platform, int32_t index, const char *where,
                              const tni_seen_device **out, tn_error *err)
{
    const tni_snapshot *snapshot = NULL;
    tni_seen_platform *seen = NULL;
    tn_status status = find_seen_platform(platform, where, &snapshot, &seen, err);
    if (status)
        return status;
    int32_t wanted = index == -1 ? atomic_load(&seen->current) : index;
    return find_seen_device(snapshot, seen, wanted, where, out, err);
}

tn_status tn_worker_plans_only(const char *platform, int32_t index, int32_t *out, tn_error *err)
{
    static const char where[] = "tn_worker_plans_only";
    const tni_seen_device *device = NULL;
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "out is NULL");
    tn_status status = begin_device(platform, index, where, &device, err);
    if (!status)
        *out = (int32_t)device->plans_only;
    leave_reader();
    return status;
}

/* Copies as many fields as the caller's struct has. */
static void copy_properties(const tn_device_properties *from, tn_device_properties *out)
{
    size_t size = out->struct_size;
    memcpy(out, from, size < sizeof *from ? size : sizeof *from);
    out->struct_size = size;
}

tn_status tn_worker_properties(const char *platform, int32_t index, tn_device_properties *out,
                               tn_error *err)
{
    static const char where[] = "tn_worker_properties";
    const tni_seen_device *device = NULL;
    if (!out || !TN_HAS(out, tn_device_properties, pinned_memory))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s",
                       out ? "out->struct_size is too small" : "out is NULL");
    tn_status status = begin_device(platform, index, where, &device, err);
    if (!status)
        copy_properties(&device->properties, out);
    leave_reader();
    return status;
}
