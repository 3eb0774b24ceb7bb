/* The process's own set of platforms under everything at once: eight threads that switch devices,
 * allocate, copy, record and register; and children that are forked meanwhile. */
#include "async_platform.h"

#include "tenon/event.h"
#include "tenon/memory.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8, NUMBERS = 512, BYTES = NUMBERS * (int)sizeof(uint32_t), DEVICES = 3 };

static _Atomic int wrong_turns; /* a thread that is not the test's cannot fail it */

static void expect(bool right)
{
    wrong_turns += !right;
}

static tn_device *get(const char *name)
{
    tn_device *device = NULL;
    tn_error err = {0};
    if (tn_device_get(name, &device, &err))
        fail_msg("%s", err.message);
    return device;
}

typedef struct worker {
    tni_thread thread;
    uint64_t dice;
    tn_device *devices[DEVICES];
    tn_module_entry_fn *entry; /* of a module that it registers again and again */
    const char *name;          /* of a device of that one */
    uint32_t numbers[2][NUMBERS];
} worker;

static uint64_t throw_dice(worker *me)
{
    me->dice = me->dice * 6364136223846793005u + 1442695040888963407u;
    return me->dice >> 33;
}

static tn_status copy(tn_device *to_device, void *to, tn_device *from_device, const void *from,
                      tn_stream *stream)
{
    const tn_memory_copy_args args = {.struct_size = sizeof args,
                                      .to_device = to_device,
                                      .to = to,
                                      .from_device = from_device,
                                      .from = from,
                                      .bytes = BYTES,
                                      .stream = stream};
    return tn_memory_copy(&args, NULL);
}

/* Numbers go to one device, on to another and back, the stream of one waiting for that of the other
 * by an event. */
static void carry(worker *me, tn_device *on, tn_device *other)
{
    void *here = NULL, *there = NULL;
    tn_stream *stream = NULL;
    tn_event *event = NULL;
    for (uint32_t i = 0; i < NUMBERS; i++)
        me->numbers[0][i] = (uint32_t)throw_dice(me);
    memset(me->numbers[1], 0, BYTES);
    expect(tn_memory_alloc(on, BYTES, "carry", &here, NULL) == TN_OK);
    expect(tn_memory_alloc(other, BYTES, me->name, &there, NULL) == TN_OK);
    expect(tn_stream_create(on, NULL, &stream, NULL) == TN_OK);
    expect(tn_event_create(on, NULL, &event, NULL) == TN_OK);
    expect(copy(on, here, NULL, me->numbers[0], stream) == TN_OK);
    expect(tn_event_record(event, stream, NULL) == TN_OK);
    expect(tn_stream_wait_event(tn_stream_current(other), event, NULL) == TN_OK);
    expect(tn_event_synchronize(event, NULL) == TN_OK);
    expect(copy(other, there, on, here, NULL) == TN_OK);
    expect(copy(NULL, me->numbers[1], other, there, NULL) == TN_OK);
    expect(tn_stream_synchronize(tn_stream_current(other), NULL) == TN_OK);
    expect(memcmp(me->numbers[0], me->numbers[1], BYTES) == 0);
    tn_event_release(event);
    tn_stream_release(stream);
    tn_memory_free(other, there);
    tn_memory_free(on, here);
}

/* Another thread may serve the platform, or have taken it back, before this one looks. */
static void come_and_go(const worker *me)
{
    tn_registration *registration = NULL;
    tn_device *device = NULL;
    void *memory = NULL;
    size_t count = 0;
    expect(tn_module_register(me->entry, TN_MODULE_REPLACE, &registration, NULL) == TN_OK);
    if (tn_device_get(me->name, &device, NULL) == TN_OK &&
        tn_memory_alloc(device, 64, "passing", &memory, NULL) == TN_OK)
        tn_memory_free(device, memory);
    expect(tn_device_count(&count, NULL) == TN_OK && count >= 1);
    tn_registration_release(registration);
}

static void live(void *user)
{
    worker *me = user;
    for (int i = 0; i < (test_reduced() ? 12 : 80); i++) {
        tn_device *on = me->devices[throw_dice(me) % DEVICES];
        tn_device *other = me->devices[throw_dice(me) % DEVICES];
        tn_device_guard guard = {0};
        int32_t before = tn_device_current(tn_device_platform(on));
        expect(tn_device_guard_enter(&guard, on, NULL) == TN_OK);
        expect(tn_device_current(tn_device_platform(on)) == tn_device_index(on));
        carry(me, on, other);
        come_and_go(me);
        tn_device_guard_leave(&guard);
        expect(tn_device_current(tn_device_platform(on)) == before);
        expect(tn_device_set(tn_device_platform(other), tn_device_index(other), NULL) == TN_OK);
    }
}

static void eight_threads_do_everything_at_once(void **state)
{
    static worker workers[THREADS];
    tn_registration *registration = NULL;
    tn_device *gone = NULL;
    tn_error err = {0};
    (void)state;
    if (tn_module_register(async_builtin().entry, 0, &registration, &err))
        fail_msg("%s", err.message);
    for (size_t i = 0; i < THREADS; i++) {
        workers[i] = (worker){.dice = i + 1,
                              .devices = {get("async:0"), get("async:1"), get("cpu:0")},
                              .entry = world_builtins(i % 2 ? WORLD_ACME : WORLD_BOLT)[0].entry,
                              .name = i % 2 ? "acme:0" : "bolt:0"};
        assert_int_equal(tni_thread_create(&workers[i].thread, live, &workers[i], &err), TN_OK);
    }
    for (size_t i = 0; i < THREADS; i++)
        tni_thread_join(workers[i].thread);
    assert_int_equal(wrong_turns, 0);
    assert_int_equal(tn_device_get("acme:0", &gone, &err), TN_UNAVAILABLE);
    assert_int_equal(tn_device_get("bolt:0", &gone, &err), TN_UNAVAILABLE);
    tn_registration_release(registration);
    assert_true(async_holds_nothing());
    async_end();
}

static _Atomic bool over;

/* Has the lock of the set nearly always. */
static void hold_the_lock(void *user)
{
    tni_platforms *set = user;
    while (!over) {
        tni_mutex_lock(&set->lock);
        for (int i = 0; i < 20; i++)
            (void)sched_yield();
        tni_mutex_unlock(&set->lock);
        (void)sched_yield();
    }
}

/* Loads, so that the registry is at work too. */
static void register_again_and_again(void *user)
{
    worker *me = user;
    while (!over)
        come_and_go(me);
}

/* One that hangs is ended by its alarm, which its parent sees. */
static int child_goes_on(void)
{
    tn_device *device = NULL;
    void *memory = NULL;
    size_t count = 0;
    (void)alarm(TEST_HANG_SECONDS);
    if (tn_device_get("cpu:0", &device, NULL) || tn_device_count(&count, NULL) || count == 0)
        return 1;
    if (tn_memory_alloc(device, 64, "child", &memory, NULL))
        return 2;
    tn_memory_free(device, memory);
    return 0;
}

static void children_find_devices_whatever_others_do(void **state)
{
    worker busy = {.entry = world_builtins(WORLD_BOLT)[0].entry, .name = "bolt:0"};
    tni_platforms *set = NULL;
    tni_thread holder, loader;
    tn_error err = {0};
    (void)state;
    skip_unless_fork_is_safe();
    /* What is begun once is begun here: the C library does so anew in a child when another thread was at
     * it, the thread sanitizer's stand-in for it waits for ever. */
    void *memory = NULL;
    tn_device *cpu = get("cpu:0");
    assert_int_equal(tn_memory_alloc(cpu, 64, "parent", &memory, &err), TN_OK);
    tn_memory_free(cpu, memory);
    assert_int_equal(tni_platforms_process(&set, &err), TN_OK);
    over = false;
    assert_int_equal(tni_thread_create(&holder, hold_the_lock, set, &err), TN_OK);
    assert_int_equal(tni_thread_create(&loader, register_again_and_again, &busy, &err), TN_OK);
    int failed = 0;
    for (int i = 0; i < (test_reduced() ? 5 : 30) && !failed; i++) {
        int status = -1;
        (void)fflush(NULL);
        pid_t pid = fork();
        if (pid == 0)
            _exit(child_goes_on());
        failed = pid < 0 || waitpid(pid, &status, 0) != pid || status != 0;
    }
    over = true;
    tni_thread_join(holder);
    tni_thread_join(loader);
    assert_int_equal(failed, 0);
    assert_int_equal(wrong_turns, 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_find_devices_whatever_others_do),
        cmocka_unit_test(eight_threads_do_everything_at_once),
    };
    return run_suite("unit.process_threads", tests);
}
