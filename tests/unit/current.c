/* The current device: one for each thread and platform, one rule for numbers, guards. */
#include "async_platform.h"

#include "device/stream/current.h"
#include "fault/fault.h"

#include <unistd.h>

/* The platforms of the first world have slots, those of later ones need not. */
static world first;

/* The first world as it was at the beginning. */
static world *renewed(void)
{
    static const char *const names[] = {"cpu", "acme", "bolt", "async"};
    int32_t previous;
    async_end();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const tn_platform *platform = world_platform(&first, names[i]);
        assert_true(platform->slot >= 0);
        assert_int_equal(tn_device_maybe_exchange(platform, 0, &previous, NULL), TN_OK);
    }
    async_active = -1;
    return &first;
}

static void is_zero_until_set(void **state)
{
    world w;
    (void)state;
    async_world_make(&w, WORLD_ALL);
    assert_int_equal(tn_device_current(world_platform(&w, "cpu")), 0);
    assert_int_equal(tn_device_current(world_platform(&w, "acme")), 0);
    assert_int_equal(tn_device_current(world_platform(&w, "cuda")), -1); /* no driver  */
    assert_int_equal(tn_device_current(world_platform(&w, "rocm")), -1); /* broken     */
    assert_int_equal(tn_device_current(world_platform(&w, "tpu")), -1);  /* no module  */
    assert_int_equal(tn_device_current(tn_platform_unspecified()), -1);
    assert_int_equal(tn_device_current(NULL), -1);
    async_world_end(&w);
}

/* Every way to move it, with the same rule. */
typedef tn_status change_fn(const tn_platform *platform, int32_t index, int32_t *out_previous,
                            tn_error *err);

static tn_status set(const tn_platform *platform, int32_t index, int32_t *out_previous,
                     tn_error *err)
{
    int32_t before = tn_device_current(platform);
    tn_status status = tn_device_set(platform, index, err);
    if (!status)
        *out_previous = before;
    return status;
}

static change_fn *const changes[] = {set, tn_device_exchange, tn_device_maybe_exchange};
enum { CHANGES = 3 };

static void check_rule(const tn_platform *platform, int32_t count, change_fn *change)
{
    tn_error err;
    char text[96];
    int32_t previous = 77;
    assert_int_equal(change(platform, count - 1, &previous, &err), TN_OK);
    assert_int_equal(previous, 0);
    assert_int_equal(tn_device_current(platform), count - 1);
    assert_int_equal(change(platform, -1, &previous, &err), TN_OK);
    assert_int_equal(previous, count - 1);
    assert_int_equal(tn_device_current(platform), count - 1);
    previous = 77;
    const int32_t wrong[] = {count, -2, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(change(platform, wrong[i], &previous, &err), TN_NOT_FOUND);
        snprintf(text, sizeof text, "no device \"%s:%d\": %s has %d", tn_platform_name(platform),
                 (int)wrong[i], tn_platform_name(platform), (int)count);
        assert_contains(err.message, text);
        assert_int_equal(previous, 77);
        assert_int_equal(tn_device_current(platform), count - 1);
    }
    assert_int_equal(change(platform, 0, &previous, &err), TN_OK);
    assert_int_equal(previous, count - 1);
    assert_int_equal(change(platform, 0, &previous, NULL), TN_OK);
    assert_int_equal(previous, 0);
}

static void has_one_rule_for_numbers(void **state)
{
    static const struct {
        const char *name;
        int32_t count;
    } rows[] = {{"cpu", 1}, {"acme", 3}, {"bolt", 1}, {"async", 2}};
    world *w = renewed();
    tn_error err;
    (void)state;
    for (size_t i = 0; i < CHANGES; i++) {
        int32_t previous = 77;
        for (size_t j = 0; j < sizeof rows / sizeof rows[0]; j++)
            check_rule(world_platform(w, rows[j].name), rows[j].count, changes[i]);
        const tn_platform *cuda = world_platform(w, "cuda");
        assert_int_equal(changes[i](cuda, 0, &previous, &err), TN_UNAVAILABLE);
        assert_contains(err.message, "libcuda.so.1 was not found");
        assert_int_equal(previous, 77);
        assert_int_equal(changes[i](cuda, -1, &previous, &err), TN_OK);
        assert_int_equal(previous, -1);
        assert_int_equal(changes[i](tn_platform_unspecified(), 0, &previous, &err), TN_UNAVAILABLE);
        assert_contains(err.message, "call tn_platform_current or tn_platform_get");
        assert_int_equal(changes[i](NULL, 0, &previous, &err), TN_INVALID_ARGUMENT);
        assert_contains(err.message, "the platform is NULL");
    }
    const tn_platform *acme = world_platform(w, "acme");
    assert_int_equal(tn_device_exchange(acme, 1, NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_device_maybe_exchange(acme, 1, NULL, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "out_previous is NULL");
    assert_int_equal(tn_device_current(acme), 0);
}

static void platforms_do_not_share_it(void **state)
{
    world *w = renewed();
    tn_error err;
    (void)state;
    const tn_platform *acme = world_platform(w, "acme"), *async = world_platform(w, "async");
    assert_int_equal(tn_device_set(acme, 2, &err), TN_OK);
    assert_int_equal(tn_device_current(async), 0);
    assert_int_equal(tn_device_set(async, 1, &err), TN_OK);
    assert_int_equal(tn_device_current(acme), 2);
}

static void check_guards(world *w)
{
    tn_error err;
    tn_device_guard outer = {0}, inner = {0}, none = {0};
    const tn_platform *acme = world_platform(w, "acme");
    assert_int_equal(tn_device_set(acme, 1, &err), TN_OK);
    assert_int_equal(tn_device_guard_enter(&outer, world_device(w, "acme:2"), &err), TN_OK);
    assert_int_equal(tn_device_current(acme), 2);
    assert_int_equal(tn_device_guard_enter(&none, NULL, &err), TN_OK);
    assert_int_equal(tn_device_guard_enter(&inner, world_device(w, "acme:0"), &err), TN_OK);
    assert_int_equal(tn_device_current(acme), 0);
    assert_int_equal(tn_device_guard_enter(&inner, world_device(w, "acme:1"), &err), TN_BUSY);
    assert_contains(err.message, "entered already");
    assert_int_equal(tn_device_current(acme), 0);
    assert_int_equal(tn_device_set(acme, 1, &err), TN_OK); /* whatever happens inside */
    tn_device_guard_leave(&inner);
    assert_int_equal(tn_device_current(acme), 2);
    tn_device_guard_leave(&inner); /* not entered: nothing */
    assert_int_equal(tn_device_current(acme), 2);
    assert_int_equal(tn_device_guard_enter(&none, NULL, &err), TN_BUSY);
    tn_device_guard_leave(&none);
    assert_int_equal(tn_device_current(acme), 2);
    assert_int_equal(tn_device_guard_enter(&inner, world_device(w, "async:1"), &err), TN_OK);
    tn_device_guard_leave(&outer); /* those of two platforms do not meet */
    assert_int_equal(tn_device_current(acme), 1);
    assert_int_equal(tn_device_current(world_platform(w, "async")), 1);
    tn_device_guard_leave(&inner);
    assert_int_equal(tn_device_current(world_platform(w, "async")), 0);
    tn_device_guard_leave(NULL);
    assert_int_equal(tn_device_guard_enter(NULL, NULL, &err), TN_INVALID_ARGUMENT);
}

static void guards_nest_and_restore(void **state)
{
    (void)state;
    check_guards(renewed());
}

/* A platform for which the slots did not suffice. Its world is the last of many. */
static const tn_platform *beyond_slots(world *w)
{
    for (int i = 0; i < 64; i++) {
        async_world_make(w, WORLD_ALL);
        const tn_platform *async = world_platform(w, "async");
        if (async->slot < 0)
            return async;
        async_world_end(w);
    }
    fail_msg("the slots do not end");
    return NULL;
}

static void platforms_beyond_the_slots_have_it_too(void **state)
{
    world w;
    tn_error err;
    (void)state;
    async_active = -1;
    const tn_platform *async = beyond_slots(&w);
    assert_int_equal(tn_device_current(async), 0);
    for (long n = 1; n <= 2; n++) { /* the table, and its room */
        fault_arm(&fault_memory, n, false, 0);
        assert_int_equal(tn_device_set(async, 1, &err), TN_OUT_OF_MEMORY);
        assert_true(fault_end(&fault_memory));
        assert_contains(err.message, "a thread's current device");
        assert_int_equal(tn_device_current(async), 0);
        assert_int_equal(async_active, -1); /* nor did the vendor's move */
    }
    for (size_t i = 0; i < CHANGES; i++)
        check_rule(async, ASYNC_DEVICES, changes[i]);
    check_guards(&w);
    async_world_end(&w);
    assert_null(tni_current_find(async)); /* nothing is kept of what is gone */
}

static void set_and_exchange_move_the_vendors_too(void **state)
{
    world *w = renewed();
    tn_error err;
    int32_t previous;
    (void)state;
    const tn_platform *async = world_platform(w, "async");
    assert_false(async_initialized[1]); /* finding devices wakes none */
    assert_int_equal(tn_device_current(async), 0);
    assert_int_equal(async_active, -1);
    assert_int_equal(tn_device_set(async, 1, &err), TN_OK);
    assert_int_equal(async_active, 1);
    assert_true(async_initialized[1]);
    assert_int_equal(tn_device_exchange(async, 0, &previous, &err), TN_OK);
    assert_int_equal(async_active, 0);
    async_active = 1; /* someone moved it behind our back */
    assert_int_equal(tn_device_set(async, 0, &err), TN_OK);
    assert_int_equal(async_active, 0);
    assert_int_equal(tn_device_set(async, -1, &err), TN_OK);
    assert_int_equal(async_active, 0);
}

static void maybe_exchange_initialises_nothing(void **state)
{
    world *w = renewed();
    tn_error err;
    int32_t previous = -1;
    (void)state;
    const tn_platform *async = world_platform(w, "async");
    assert_int_equal(tn_device_maybe_exchange(async, 1, &previous, &err), TN_OK);
    assert_int_equal(tn_device_current(async), 1);
    assert_int_equal(async_active, -1);
    assert_false(async_initialized[1]);
    assert_int_equal(async_calls("device_activate"), 0);
    assert_int_equal(tn_device_is_initialized(world_device(w, "async:1")), 0);
    assert_int_equal(tn_device_is_initialized(world_device(w, "acme:1")), 1); /* always is */
    assert_int_equal(tn_device_is_initialized(NULL), 0);
    async_initialized[0] = true;
    assert_int_equal(tn_device_is_initialized(world_device(w, "async:0")), 1);
    assert_int_equal(tn_device_maybe_exchange(async, 0, &previous, &err), TN_OK);
    assert_int_equal(previous, 1);
    assert_int_equal(async_active, 0);
    async_initialized[1] = true; /* what fails is left to the first use */
    async_fail("device_activate", 1, TN_IO);
    assert_int_equal(tn_device_maybe_exchange(async, 1, &previous, &err), TN_OK);
    assert_true(async_heal());
    assert_int_equal(tn_device_current(async), 1);
    assert_int_equal(async_active, 0);
}

static void failing_activation_changes_nothing(void **state)
{
    world *w = renewed();
    tn_error err;
    int32_t previous = 77;
    tn_device_guard guard = {0};
    (void)state;
    tn_device *one = world_device(w, "async:1");
    const tn_platform *async = tn_device_platform(one);
    async_fail("device_activate", 1, TN_BUSY);
    assert_int_equal(tn_device_set(async, 1, &err), TN_BUSY);
    assert_string_equal(err.message, "async:1: fails on request");
    assert_int_equal(err.native_code, 77);
    async_fail("device_activate", 1, TN_OUT_OF_MEMORY);
    assert_int_equal(tn_device_exchange(async, 1, &previous, &err), TN_OUT_OF_MEMORY);
    async_fail("device_activate", 1, 999);
    assert_int_equal(tn_device_guard_enter(&guard, one, &err), TN_INTERNAL);
    assert_int_equal(previous, 77);
    assert_int_equal(guard.entered, 0);
    tn_device_guard_leave(&guard);
    assert_int_equal(tn_device_current(async), 0);
    assert_int_equal(async_active, -1);
    assert_int_equal(tn_device_guard_enter(&guard, one, &err), TN_OK); /* it can still be used */
    tn_device_guard_leave(&guard);
}

static void guards_restore_the_vendors_where_that_wakes_nothing(void **state)
{
    world *w = renewed();
    tn_error err;
    tn_device_guard guard = {0};
    (void)state;
    tn_device *one = world_device(w, "async:1");
    assert_int_equal(tn_device_guard_enter(&guard, one, &err), TN_OK);
    assert_int_equal(async_active, 1);
    tn_device_guard_leave(&guard);
    assert_int_equal(async_active, 1); /* device 0 sleeps, and is not woken */
    assert_false(async_initialized[0]);
    assert_int_equal(tn_device_set(one->platform, 0, &err), TN_OK);
    assert_int_equal(tn_device_guard_enter(&guard, one, &err), TN_OK);
    async_fail("device_activate", 1, TN_IO);
    tn_device_guard_leave(&guard);
    assert_true(async_heal());
    assert_int_equal(tn_device_current(one->platform), 0);
    assert_int_equal(tn_device_guard_enter(&guard, one, &err), TN_OK);
    tn_device_guard_leave(&guard);
    assert_int_equal(async_active, 0);
}

static void lost_device_is_not_made_current(void **state)
{
    world w;
    tn_error err;
    int32_t previous = -1;
    tn_device_guard guard = {0};
    (void)state;
    async_world_make(&w, WORLD_CPU);
    tn_device *one = world_device(&w, "async:1");
    assert_int_equal(tn_device_guard_enter(&guard, one, &err), TN_OK);
    async_lose(1, "the board burns");
    assert_int_equal(tn_device_synchronize(one, &err), TN_DEVICE_LOST);
    assert_contains(err.message, "the board burns");
    assert_int_equal(tn_device_set(one->platform, 1, &err), TN_DEVICE_LOST);
    assert_contains(err.message, "async:1 was lost at device_synchronize: the board burns");
    tn_device_guard_leave(&guard);
    assert_int_equal(tn_device_current(one->platform), 0);
    assert_int_equal(tn_device_guard_enter(&guard, one, &err), TN_DEVICE_LOST);
    assert_int_equal(tn_device_current(one->platform), 0);
    assert_int_equal(tn_device_maybe_exchange(one->platform, 1, &previous, &err), TN_OK);
    assert_int_equal(tn_device_set(one->platform, 0, &err), TN_OK);
    async_world_end(&w);
}

static void device_for_planning_can_be_current(void **state)
{
    static const char text[] = "[device lab]\nplatform = tpu\nname = Toy\n";
    world w;
    tn_error err = {0};
    tni_descriptions *descriptions = NULL;
    tn_device_guard guard = {0};
    (void)state;
    world_make(&w, WORLD_CPU, NULL);
    if (tni_descriptions_parse(text, sizeof text - 1, "lab.device", &descriptions, &err) ||
        tni_devices_describe(w.set, descriptions, "lab.device", &err))
        fail_msg("%s", err.message);
    tni_descriptions_release(descriptions);
    tn_device *lab = world_device(&w, "lab");
    assert_int_equal(tn_device_plans_only(lab), 1);
    assert_int_equal(tn_device_current(lab->platform), 0);
    assert_int_equal(tn_device_set(lab->platform, 0, &err), TN_OK);
    assert_int_equal(tn_device_guard_enter(&guard, lab, &err), TN_OK);
    tn_device_guard_leave(&guard);
    assert_int_equal(tn_device_synchronize(lab, &err), TN_UNAVAILABLE);
    assert_contains(err.message, "for planning only");
    assert_int_equal(tn_platform_is_available(lab->platform), 0);
    world_end(&w);
}

static void platform_may_go_and_come_back_smaller(void **state)
{
    world w;
    tn_error err = {0};
    tn_registration *registration = NULL;
    tn_device_guard guard = {0}, other = {0};
    (void)state;
    world_make(&w, WORLD_CPU, NULL);
    if (tni_platforms_register(w.set, async_builtin().entry, 0, &registration, &err))
        fail_msg("%s", err.message);
    tn_device *one = world_device(&w, "async:1");
    assert_int_equal(tn_device_set(one->platform, 1, &err), TN_OK);
    assert_int_equal(tn_device_guard_enter(&guard, one, &err), TN_OK);
    tn_registration_release(registration);
    assert_int_equal(tn_device_current(one->platform), -1);
    assert_int_equal(tn_device_guard_enter(&other, one, &err), TN_UNAVAILABLE);
    assert_contains(err.message, "async:1 no longer exists");
    assert_int_equal(other.entered, 0);
    tn_device_guard_leave(&guard);
    tn_platform *async = tni_platforms_same(one->platform);
    atomic_store(&async->devices, 1); /* as if another had come, without a device 1 */
    assert_int_equal(tn_device_current(async), 1);
    assert_int_equal(tn_device_set(async, 1, &err), TN_NOT_FOUND); /* nothing stands in for it */
    assert_contains(err.message, "no device \"async:1\": async has 1");
    atomic_store(&async->devices, 0);
    world_end(&w);
    async_end();
}

static void availability_is_told_and_replaced(void **state)
{
    world w;
    tn_error err;
    (void)state;
    async_world_make(&w, WORLD_ALL);
    const tn_platform *async = world_platform(&w, "async"), *cuda = world_platform(&w, "cuda");
    assert_int_equal(tn_platform_is_available(async), 1);
    assert_int_equal(tn_platform_is_available(world_platform(&w, "cpu")), 1);
    assert_int_equal(tn_platform_is_available(cuda), 0);
    assert_int_equal(tn_platform_is_available(world_platform(&w, "stand")), 0); /* no device yet */
    assert_int_equal(tn_platform_is_available(tn_platform_unspecified()), 0);
    assert_int_equal(tn_platform_is_available(NULL), 0);
    assert_false(async_initialized[0]);
    assert_int_equal(tn_platform_availability_replace(async, 0, &err), TN_OK);
    assert_int_equal(tn_platform_availability_replace(cuda, 1, &err), TN_OK);
    assert_int_equal(tn_platform_is_available(async), 0);
    assert_int_equal(tn_platform_is_available(cuda), 1);
    assert_int_equal(tn_platform_availability_replace(cuda, 2, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "got 2");
    assert_int_equal(tn_platform_is_available(cuda), 1);
    assert_int_equal(tn_platform_availability_replace(async, -1, &err), TN_OK);
    assert_int_equal(tn_platform_is_available(async), 1);
    assert_int_equal(tn_platform_availability_replace(NULL, 1, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_platform_availability_replace(tn_platform_unspecified(), 1, &err),
                     TN_UNAVAILABLE);
    for (int32_t i = 0; i < ASYNC_DEVICES; i++) {
        tn_device *device = tni_devices_of(async, i);
        assert_int_equal(tn_platform_is_available(async), 1); /* one that runs is enough */
        async_lose(i, "gone");
        assert_int_equal(tn_device_synchronize(device, &err), TN_DEVICE_LOST);
    }
    assert_int_equal(tn_platform_is_available(async), 0);
    async_world_end(&w);
}

static void synchronize_waits_for_every_stream(void **state)
{
    world *w = renewed();
    tn_error err;
    tn_stream *stream = NULL;
    int32_t done = -1;
    (void)state;
    tn_device *zero = world_device(w, "async:0");
    assert_int_equal(tn_device_synchronize(world_device(w, "cpu:0"), &err), TN_OK);
    assert_int_equal(tn_device_synchronize(zero, &err), TN_OK);
    assert_int_equal(tn_stream_create(zero, NULL, &stream, &err), TN_OK);
    async_gate *gate = async_gate_put(stream);
    assert_int_equal(tn_device_synchronize(world_device(w, "async:1"), &err), TN_OK);
    assert_int_equal(tn_stream_query(stream, &done, &err), TN_OK);
    assert_int_equal(done, 0);
    async_gate_open(gate);
    assert_int_equal(tn_device_synchronize(zero, &err), TN_OK);
    assert_int_equal(tn_stream_query(stream, &done, &err), TN_OK);
    assert_int_equal(done, 1);
    async_fail("device_synchronize", 1, TN_IO);
    assert_int_equal(tn_device_synchronize(zero, &err), TN_IO);
    assert_string_equal(err.message, "async:0: fails on request");
    tn_stream_release(stream);
}

static void default_is_the_current_one_of_the_current_platform(void **state)
{
    tn_device *device = NULL;
    tn_registration *registration = NULL;
    const tn_platform *async = NULL;
    tn_error err = {0};
    (void)state;
    assert_int_equal(tn_platform_select("cpu", &err), TN_OK);
    assert_int_equal(tn_device_default(&device, &err), TN_OK);
    assert_string_equal(tn_device_id(device), "cpu:0");
    assert_int_equal(tn_device_synchronize(NULL, &err), TN_OK);
    if (tn_module_register(async_builtin().entry, 0, &registration, &err) ||
        tn_platform_select("async", &err) || tn_platform_get("async", &async, &err))
        fail_msg("%s", err.message);
    assert_int_equal(tn_device_set(async, 1, &err), TN_OK);
    assert_int_equal(tn_device_default(&device, &err), TN_OK);
    assert_string_equal(tn_device_id(device), "async:1");
    long before = async_calls("device_synchronize");
    assert_int_equal(tn_device_synchronize(NULL, &err), TN_OK);
    assert_int_equal(async_calls("device_synchronize"), before + 1);
    assert_int_equal(tn_device_default(NULL, &err), TN_INVALID_ARGUMENT);
    tn_registration_release(registration);
    assert_int_equal(tn_platform_select("cpu", &err), TN_OK);
    async_end();
}

static _Atomic int wrong_turns; /* a thread that is not the test's cannot fail it */

/* Each thread switches on its own, and finds what it set. */
static void switch_devices(void *user)
{
    world *w = user;
    const tn_platform *platforms[] = {world_platform(w, "acme"), world_platform(w, "async")};
    const int32_t counts[] = {3, ASYNC_DEVICES};
    uint64_t dice = tni_thread_id() | 1;
    for (int i = 0; i < (test_reduced() ? 300 : 3000); i++) {
        dice = dice * 6364136223846793005u + 1442695040888963407u;
        int which = (int)(dice >> 33) & 1;
        const tn_platform *platform = platforms[which];
        int32_t index = (int32_t)((dice >> 40) % (uint64_t)counts[which]), previous = -1;
        int32_t before = tn_device_current(platform);
        tn_device_guard guard = {0};
        tn_device *device = tni_devices_of(platform, index);
        wrong_turns += tn_device_guard_enter(&guard, device, NULL) != TN_OK;
        wrong_turns += tn_device_current(platform) != index;
        tn_device_guard_leave(&guard);
        wrong_turns += tn_device_current(platform) != before;
        wrong_turns += changes[(dice >> 50) % CHANGES](platform, index, &previous, NULL) != TN_OK;
        wrong_turns += previous != before || tn_device_current(platform) != index;
    }
}

static void threads_do_not_meet(void **state)
{
    enum { THREADS = 8 };
    world *w = renewed();
    tni_thread threads[THREADS];
    (void)state;
    const tn_platform *acme = world_platform(w, "acme");
    assert_int_equal(tn_device_set(acme, 2, NULL), TN_OK);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(tni_thread_create(&threads[i], switch_devices, w, NULL), TN_OK);
    for (int i = 0; i < THREADS; i++)
        tni_thread_join(threads[i]);
    assert_int_equal(wrong_turns, 0);
    assert_int_equal(tn_device_current(acme), 2);
}

/* The platform does not survive a fork, so that nothing can be initialised; what was current can be
 * restored all the same. */
static bool child_goes_on(const tn_platform *acme, tn_device *zero, tn_device_guard *guard)
{
    tn_device_guard inner = {0};
    int32_t previous = -1;
    bool right = tn_device_current(acme) == 2;
    right = right && tn_device_guard_enter(&inner, zero, NULL) == TN_UNAVAILABLE;
    right = right && !inner.entered && tn_device_current(acme) == 2;
    right = right && tn_device_maybe_exchange(acme, 0, &previous, NULL) == TN_OK;
    right = right && previous == 2 && tn_device_current(acme) == 0;
    tn_device_guard_leave(guard);
    return right && tn_device_current(acme) == 1;
}

static void child_keeps_what_its_thread_had(void **state)
{
    world *w = renewed();
    tn_error err;
    tn_device_guard guard = {0};
    int status = -1;
    (void)state;
    const tn_platform *acme = world_platform(w, "acme");
    tn_device *zero = world_device(w, "acme:0");
    assert_int_equal(tn_device_set(acme, 1, &err), TN_OK);
    assert_int_equal(tn_device_guard_enter(&guard, world_device(w, "acme:2"), &err), TN_OK);
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(child_goes_on(acme, zero, &guard) ? 0 : 1);
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    assert_int_equal(status, 0);
    assert_int_equal(tn_device_current(acme), 2); /* the child's are its own */
    tn_device_guard_leave(&guard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_zero_until_set),
        cmocka_unit_test(has_one_rule_for_numbers),
        cmocka_unit_test(platforms_do_not_share_it),
        cmocka_unit_test(set_and_exchange_move_the_vendors_too),
        cmocka_unit_test(maybe_exchange_initialises_nothing),
        cmocka_unit_test(failing_activation_changes_nothing),
        cmocka_unit_test(guards_nest_and_restore),
        cmocka_unit_test(guards_restore_the_vendors_where_that_wakes_nothing),
        cmocka_unit_test(platforms_beyond_the_slots_have_it_too),
        cmocka_unit_test(lost_device_is_not_made_current),
        cmocka_unit_test(device_for_planning_can_be_current),
        cmocka_unit_test(platform_may_go_and_come_back_smaller),
        cmocka_unit_test(availability_is_told_and_replaced),
        cmocka_unit_test(synchronize_waits_for_every_stream),
        cmocka_unit_test(default_is_the_current_one_of_the_current_platform),
        cmocka_unit_test(threads_do_not_meet),
        cmocka_unit_test(child_keeps_what_its_thread_had),
    };
    fault_memory_install();
    async_world_make(&first, WORLD_ALL);
    int failed = run_suite("unit.current", tests);
    async_world_end(&first);
    return failed;
}
