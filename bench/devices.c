/* Overhead of Tenon in very frequent calls, on the cpu platform, where nothing hides it. */
#include "harness.h"

#include "os/clock.h"
#include "tenon/tenon.h"

#include <stdbool.h>
#include <stdio.h>

static const tn_platform *cpu;
static tn_device *device;
static tn_stream *stream;
static tn_event *timed, *plain;

/* Volatile, so that the compiler cannot optimize the call away. */
static int32_t nothing(const tn_platform *platform)
{
    return platform ? 0 : -1;
}
static int32_t (*volatile empty)(const tn_platform *platform) = nothing;

static volatile int64_t sink;

static void call_nothing(void *user, int64_t times)
{
    (void)user;
    for (int64_t i = 0; i < times; i++)
        sink = empty(cpu);
}

static void current_device(void *user, int64_t times)
{
    (void)user;
    for (int64_t i = 0; i < times; i++)
        sink = tn_device_current(cpu);
}

static void current_stream(void *user, int64_t times)
{
    (void)user;
    for (int64_t i = 0; i < times; i++)
        sink = tn_stream_current(device) != NULL;
}

static void device_guard(void *user, int64_t times)
{
    (void)user;
    for (int64_t i = 0; i < times; i++) {
        tn_device_guard guard = {0};
        (void)tn_device_guard_enter(&guard, device, NULL);
        tn_device_guard_leave(&guard);
    }
}

static void stream_guard(void *user, int64_t times)
{
    (void)user;
    for (int64_t i = 0; i < times; i++) {
        tn_stream_guard guard = {0};
        (void)tn_stream_guard_enter(&guard, stream, NULL);
        tn_stream_guard_leave(&guard);
    }
}

static void set_device(void *user, int64_t times)
{
    (void)user;
    for (int64_t i = 0; i < times; i++)
        (void)tn_device_set(cpu, 0, NULL);
}

static void read_clock(void *user, int64_t times)
{
    (void)user;
    for (int64_t i = 0; i < times; i++)
        sink = tni_clock_ns();
}

static void record(void *user, int64_t times)
{
    tn_event *event = *(tn_event **)user;
    for (int64_t i = 0; i < times; i++)
        (void)tn_event_record(event, NULL, NULL);
}

static void query(void *user, int64_t times)
{
    int32_t done = 0;
    (void)user;
    for (int64_t i = 0; i < times; i++)
        (void)tn_event_query(timed, &done, NULL);
}

static bool prepare(tn_error *err)
{
    return tn_platform_get("cpu", &cpu, err) == TN_OK &&
           tn_device_get("cpu:0", &device, err) == TN_OK &&
           tn_stream_create(device, NULL, &stream, err) == TN_OK &&
           tn_event_create(device, NULL, &plain, err) == TN_OK &&
           tn_event_create(device, TN_ARGS(event, .enable_timing = 1), &timed, err) == TN_OK;
}

int main(void)
{
    const bench_side by_current[] = {{.name = "the current stream", .run = current_stream},
                                     {.name = NULL}};
    const bench_side by_guard[] = {{.name = "a stream's guard", .run = stream_guard},
                                   {.name = "setting by number", .run = set_device},
                                   {.name = NULL}};
    const bench_side by_record[] = {{.name = "without timing", .run = record, .user = &plain},
                                    {.name = "asking whether it is done", .run = query},
                                    {.name = NULL}};
    const bench_figure figures[] = {
        {.name = "current device",
         .kind = BENCH_ADDED,
         .aim = 5,
         .unit = "ns",
         .ours = {.name = "tenon", .run = current_device},
         .rival = {.name = "an empty call", .run = call_nothing},
         .beside = by_current},
        {.name = "device guard, in and out",
         .kind = BENCH_ADDED,
         .aim = 20,
         .unit = "ns",
         .ours = {.name = "tenon", .run = device_guard},
         .rival = {.name = "an empty call", .run = call_nothing},
         .beside = by_guard},
        {.name = "event record on the cpu, timed",
         .kind = BENCH_ADDED,
         .aim = 60,
         .unit = "ns",
         .ours = {.name = "tenon", .run = record, .user = &timed},
         .rival = {.name = "a clock reading", .run = read_clock},
         .beside = by_record},
    };
    tn_error err = {0};
    if (!prepare(&err)) {
        printf("the figures of devices need a cpu: %s\n", err.message);
        return bench_end();
    }
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        bench_run(&figures[i]);
    tn_event_release(timed);
    tn_event_release(plain);
    tn_stream_release(stream);
    return bench_end();
}
