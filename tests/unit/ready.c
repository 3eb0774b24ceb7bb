/* Whether a device can be used: after a fork, after a loss, after a reset. */
#include "async_platform.h"

#include "device/memory/memory.h"
#include "os/thread.h"
#include "tenon/event.h"
#include "tenon/memory.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

/* A platform whose calls go as a test wants. */
static struct {
    _Atomic tn_status alloc, copy, reset; /* what they give, without a word */
    _Atomic int inside, together; /* threads in device_reset, and whether there ever were two */
    _Atomic int resets;
} frail;

static tn_status frail_probe(const tn_host *host, void **out_self, int32_t *out, tn_error *err)
{
    (void)host, (void)out_self, (void)err;
    *out = 2;
    return TN_OK;
}

static tn_status frail_alloc(void *self, int32_t device, uint64_t bytes, void **out, tn_error *err)
{
    (void)self, (void)device, (void)bytes, (void)out, (void)err;
    return frail.alloc;
}

static void frail_free(void *self, int32_t device, void *memory)
{
    (void)self, (void)device, (void)memory;
}

static tn_status frail_copy(void *self, const tn_copy_job *job, tn_error *err)
{
    (void)self, (void)job, (void)err;
    return frail.copy;
}

static tn_status frail_reset(void *self, int32_t device, tn_error *err)
{
    (void)self, (void)device, (void)err;
    if (atomic_fetch_add(&frail.inside, 1) > 0)
        frail.together = 1;
    for (int i = 0; i < 20; i++)
        (void)sched_yield();
    frail.resets++;
    frail.inside--;
    return frail.reset;
}

static tn_status frail_entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    static const tn_platform_row row = {.struct_size = sizeof row,
                                        .name = "frail",
                                        .kind = TN_PLATFORM_OOT,
                                        .probe = frail_probe,
                                        .memory_alloc = frail_alloc,
                                        .memory_free = frail_free,
                                        .copy = frail_copy,
                                        .device_reset = frail_reset};
    static const tn_platform_row *const rows[] = {&row, NULL};
    static const tn_module module = {.struct_size = sizeof module,
                                     TN_MODULE_ABI,
                                     .name = "frail",
                                     .version = "1",
                                     .platforms = rows};
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}

static world w;

/* What a child of one thread inherits of a device. */
typedef struct belongings {
    tn_device *device;
    void *memory, *host_memory;
    tn_stream *stream;
    tn_event *event;
} belongings;

static bool is_refused(tn_status status, const tn_error *err)
{
    return status == TN_UNAVAILABLE && err->status == TN_UNAVAILABLE &&
           strstr(err->message, "async:0 was opened before this process was forked") &&
           strstr(err->message, "the worker view (tenon/worker.h)");
}

/* Nothing of it reaches the module, not even what is given back. */
static int child_is_refused(const belongings *b)
{
    tn_error err = {0};
    int32_t done;
    char bytes[8] = {0};
    tn_stream *stream = NULL;
    void *memory = NULL;
    long calls = async_calls(NULL);
    const tn_memory_copy_args copy = {.struct_size = sizeof copy,
                                      .to = bytes,
                                      .from_device = b->device,
                                      .from = b->memory,
                                      .bytes = sizeof bytes};
#define REFUSED(call)              \
    if (!is_refused((call), &err)) \
    return __LINE__ % 200 + 1
    REFUSED(tn_device_health(b->device, &err));
    REFUSED(tn_memory_alloc(b->device, 64, NULL, &memory, &err));
    REFUSED(tn_memory_copy(&copy, &err));
    REFUSED(tn_stream_create(b->device, NULL, &stream, &err));
    REFUSED(tn_stream_query(b->stream, &done, &err));
    REFUSED(tn_stream_synchronize(b->stream, &err));
    REFUSED(tn_event_synchronize(b->event, &err));
    REFUSED(tn_device_synchronize(b->device, &err));
    REFUSED(tn_device_set(tn_device_platform(b->device), 0, &err));
    REFUSED(tn_device_reset(b->device, &err));
#undef REFUSED
    tn_event_release(b->event);
    tn_stream_release(b->stream);
    tn_memory_free(b->device, b->memory);
    tn_memory_host_free(b->device, b->host_memory);
    tn_memory_trim(b->device);
    if (tn_platform_is_available(tn_device_platform(b->device)) || async_calls(NULL) != calls)
        return 255;
    return tn_device_health(world_device(&w, "cpu:0"), &err) ? 254 : 0;
}

static void child_is_refused_its_parents_devices(void **state)
{
    belongings b = {.device = world_device(&w, "async:0")};
    tn_error err;
    int status = -1;
    (void)state;
    assert_int_equal(tn_memory_alloc(b.device, 64, NULL, &b.memory, &err), TN_OK);
    assert_int_equal(tn_memory_host_alloc(b.device, 64, NULL, &b.host_memory, &err), TN_OK);
    assert_int_equal(tn_event_create(b.device, NULL, &b.event, &err), TN_OK);
    assert_int_equal(tn_stream_create(b.device, NULL, &b.stream, &err), TN_OK);
    assert_int_equal(tn_event_record(b.event, b.stream, &err), TN_OK);
    assert_int_equal(tn_device_synchronize(b.device, &err), TN_OK);
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(child_is_refused(&b));
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    assert_int_equal(status, 0);
    assert_int_equal(tn_device_health(b.device, &err), TN_OK);
    tn_event_release(b.event);
    tn_stream_release(b.stream);
    tn_memory_free(b.device, b.memory);
    tn_memory_host_free(b.device, b.host_memory);
    tn_memory_trim(b.device);
    assert_true(async_holds_nothing());
}

/* A call that began before a reset says afterwards that the device is lost: that one was. */
static void loss_of_an_earlier_life_does_not_count(void **state)
{
    tn_device *device = world_device(&w, "async:1");
    tn_error err, said = {.message = "the old line died"};
    tni_call early, late;
    (void)state;
    assert_int_equal(tni_device_open(device, "early", &early, &err), TN_OK);
    async_lose(1, "pulled out");
    assert_int_equal(tn_device_synchronize(device, &err), TN_DEVICE_LOST);
    assert_int_equal(tn_device_reset(device, &err), TN_OK);
    assert_int_equal(tni_device_result_check(&early, "early", TN_DEVICE_LOST, &said, &err),
                     TN_DEVICE_LOST);
    assert_int_equal(tn_device_health(device, &err), TN_OK);
    assert_int_equal(tni_device_open(device, "late", &late, &err), TN_OK);
    assert_int_equal(tni_device_result_check(&late, "late", TN_DEVICE_LOST, &said, &err),
                     TN_DEVICE_LOST);
    assert_int_equal(tn_device_health(device, &err), TN_DEVICE_LOST);
    assert_string_equal(err.message, "async:1 was lost at late: the old line died");
    assert_int_equal(tn_device_reset(device, &err), TN_OK);
    assert_int_equal(tn_device_health(device, &err), TN_OK);
}

static void loss_without_words_has_a_cause(void **state)
{
    tn_device *device = world_device(&w, "frail:0");
    tn_error err;
    void *memory = NULL;
    (void)state;
    frail.alloc = TN_DEVICE_LOST;
    assert_int_equal(tn_memory_alloc(device, 64, NULL, &memory, &err), TN_DEVICE_LOST);
    assert_string_equal(err.message, "frail:0: it gave no reason");
    assert_int_equal(tn_device_health(device, &err), TN_DEVICE_LOST);
    assert_string_equal(err.message, "frail:0 was lost at tn_memory_alloc: it gave no reason");
    assert_int_equal(tn_device_reset(device, &err), TN_OK);
}

/* Of two devices, none is taken for lost that may be well. */
static void loss_that_is_nobodys_is_kept_with_none(void **state)
{
    tn_device *from = world_device(&w, "frail:0"), *to = world_device(&w, "frail:1");
    const tn_memory_copy_args copy = {.struct_size = sizeof copy,
                                      .to_device = to,
                                      .to = (void *)64,
                                      .from_device = from,
                                      .from = (void *)64,
                                      .bytes = 64};
    tn_error err;
    (void)state;
    frail.copy = TN_DEVICE_LOST;
    assert_int_equal(tn_memory_copy(&copy, &err), TN_DEVICE_LOST);
    assert_string_equal(err.message,
                        "frail:0 or frail:1 is lost, but neither reports which: it gave "
                        "no reason");
    assert_int_equal(tn_device_health(from, &err), TN_OK);
    assert_int_equal(tn_device_health(to, &err), TN_OK);
    frail.copy = TN_OK;
    assert_int_equal(tn_memory_copy(&copy, &err), TN_OK);
}

static void reset_that_fails_is_told_as_any_call(void **state)
{
    tn_device *device = world_device(&w, "frail:0");
    tn_error err;
    (void)state;
    frail.reset = 99;
    assert_int_equal(tn_device_reset(device, &err), TN_INTERNAL);
    assert_string_equal(err.message, "frail:0 returned the status 99, which does not exist");
    frail.reset = -1;
    assert_int_equal(tn_device_reset(device, &err), TN_INTERNAL);
    frail.reset = TN_IO;
    assert_int_equal(tn_device_reset(device, &err), TN_IO);
    assert_string_equal(err.message, "frail:0: it gave no reason");
    assert_int_equal(tn_device_health(device, &err), TN_OK);
    frail.reset = TN_DEVICE_LOST;
    assert_int_equal(tn_device_reset(device, &err), TN_DEVICE_LOST);
    assert_int_equal(tn_device_health(device, &err), TN_DEVICE_LOST);
    assert_contains(err.message, "frail:0 was lost at tn_device_reset");
    frail.reset = TN_OK;
    assert_int_equal(tn_device_reset(device, &err), TN_OK);
    assert_int_equal(tn_device_health(device, &err), TN_OK);
}

enum { THREADS = 4 };

static void reset_often(void *user)
{
    _Atomic int *failed = user;
    for (int i = 0; i < (test_reduced() ? 10 : 50); i++)
        *failed += tn_device_reset(world_device(&w, "frail:0"), NULL) != TN_OK;
}

/* Those who wait for another one's reset find the device reset. */
static void resets_do_not_meet(void **state)
{
    tni_thread threads[THREADS];
    _Atomic int failed = 0;
    tn_error err;
    (void)state;
    frail.resets = 0;
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(tni_thread_create(&threads[i], reset_often, &failed, &err), TN_OK);
    for (size_t i = 0; i < THREADS; i++)
        tni_thread_join(threads[i]);
    assert_int_equal(failed, 0);
    assert_int_equal(frail.together, 0);
    assert_true(frail.resets > 0);
    assert_int_equal(tn_device_health(world_device(&w, "frail:0"), &err), TN_OK);
}

/* Kept blocks go back at once; what the program holds goes back when it lets go of it. */
static void platform_that_is_taken_back_gets_its_things(void **state)
{
    world other;
    tn_registration *registration = NULL;
    tn_stream *stream = NULL;
    tn_event *event = NULL;
    void *blocks[3] = {NULL}, *host = NULL;
    tn_error err;
    (void)state;
    world_make(&other, WORLD_CPU, NULL);
    assert_int_equal(
        tni_platforms_register(other.set, async_builtin().entry, 0, &registration, &err), TN_OK);
    tn_device *device = world_device(&other, "async:0");
    tni_memory_of(device)->keeps = true;
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(tn_memory_alloc(device, 256, NULL, &blocks[i], &err), TN_OK);
    assert_int_equal(tn_memory_host_alloc(device, 64, NULL, &host, &err), TN_OK);
    assert_int_equal(tn_stream_create(device, NULL, &stream, &err), TN_OK);
    assert_int_equal(tn_event_create(device, NULL, &event, &err), TN_OK);
    assert_int_equal(
        tn_memory_fill(TN_ARGS(memory_fill, .device = device, .to = (char *)blocks[0] + 1,
                               .bytes = 8, .pattern_bytes = 8), /* through a stage */
                       &err),
        TN_OK);
    tn_memory_free(device, blocks[0]);
    assert_true(async_held().blocks == 3 && async_held().host_blocks == 2);
    tn_registration_release(registration);
    assert_int_equal(tn_device_health(device, &err), TN_UNAVAILABLE);
    assert_true(async_held().blocks == 2 && async_held().host_blocks == 1);
    assert_true(async_held().streams == 1 && async_held().events == 1);
    tn_memory_free(device, blocks[1]);
    tn_memory_free(device, blocks[2]);
    tn_memory_host_free(device, host);
    tn_stream_release(stream);
    tn_event_release(event);
    assert_true(async_holds_nothing());
    world_end(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(child_is_refused_its_parents_devices),
        cmocka_unit_test(loss_of_an_earlier_life_does_not_count),
        cmocka_unit_test(loss_without_words_has_a_cause),
        cmocka_unit_test(loss_that_is_nobodys_is_kept_with_none),
        cmocka_unit_test(reset_that_fails_is_told_as_any_call),
        cmocka_unit_test(resets_do_not_meet),
        cmocka_unit_test(platform_that_is_taken_back_gets_its_things),
    };
    tn_registration *registration = NULL;
    tn_error err = {0};
    async_world_make(&w, WORLD_CPU);
    if (tni_platforms_register(w.set, frail_entry, 0, &registration, &err))
        return 1;
    int failed = run_suite("unit.ready", tests);
    tn_registration_release(registration);
    async_world_end(&w);
    return failed;
}
