/* Platforms that the program contains: registered, replacing others, taken back. */
#include "world.h"

#include "os/thread.h"

static tn_module_entry_fn *entry_of(unsigned module)
{
    return world_builtins(module)[0].entry;
}

static void registered_platform_comes_and_goes(void **state)
{
    world w;
    tn_registration *registration = NULL;
    tn_device *device = NULL, *gone = NULL;
    tn_device_memory memory = {.struct_size = sizeof memory};
    const tn_platform *current = NULL;
    tn_error err;
    (void)state;
    unsetenv("TENON_PLATFORM");
    world_make(&w, WORLD_CPU, NULL);
    assert_int_equal(tni_platforms_current(w.set, &current, &err), TN_OK);
    assert_string_equal(tn_platform_name(current), "cpu");
    uint64_t generation = tni_registry_generation(w.registry);
    assert_int_equal(tni_platforms_register(w.set, entry_of(WORLD_ACME), 0, &registration, &err),
                     TN_OK);
    assert_true(tni_registry_generation(w.registry) > generation);
    assert_int_equal(tni_devices_get(w.set, "acme:1", &device, &err), TN_OK);
    assert_int_equal(tni_platforms_select(w.set, "acme", &err), TN_OK);
    generation = tni_registry_generation(w.registry);
    tn_registration_release(registration);
    assert_true(tni_registry_generation(w.registry) > generation);
    assert_int_equal(tni_devices_get(w.set, "acme:1", &gone, &err), TN_UNAVAILABLE);
    assert_int_equal(tn_platform_device_count(tn_device_platform(device)), 0);
    assert_string_equal(tn_device_name(device), "Acme Board 1"); /* the handle stays valid */
    assert_int_equal(tn_device_memory_get(device, &memory, &err), TN_UNAVAILABLE);
    assert_contains(err.message, "acme:1 is gone: the program took its platform back");
    assert_int_equal(tn_device_health(device, &err), TN_UNAVAILABLE);
    assert_int_equal(tni_platforms_current(w.set, &current, &err), TN_OK);
    assert_string_equal(tn_platform_name(current), "cpu"); /* resolved anew */
    assert_int_equal(tni_platforms_register(w.set, entry_of(WORLD_ACME), 0, &registration, &err),
                     TN_OK); /* and it may come again */
    assert_int_equal(tni_devices_get(w.set, "acme:1", &gone, &err), TN_OK);
    assert_ptr_not_equal(gone, device);
    tn_registration_release(registration);
    tn_registration_release(NULL);
    world_end(&w);
}

static void second_of_a_name_is_refused_or_replaces(void **state)
{
    world w;
    tn_registration *first = NULL, *second = NULL;
    tn_device *original, *device = NULL;
    tn_error err;
    (void)state;
    world_make(&w, WORLD_CPU | WORLD_ACME, NULL);
    original = world_device(&w, "acme:0");
    assert_int_equal(tni_platforms_register(w.set, entry_of(WORLD_ACME), 0, &first, &err),
                     TN_ALREADY_EXISTS);
    assert_contains(err.message, "a module \"acme\" is ready already, from the library itself");
    assert_null(first);
    assert_int_equal(
        tni_platforms_register(w.set, entry_of(WORLD_ACME), TN_MODULE_REPLACE, &first, &err),
        TN_OK);
    assert_int_equal(
        tni_platforms_register(w.set, entry_of(WORLD_ACME), TN_MODULE_REPLACE, &second, &err),
        TN_OK);
    device = world_device(&w, "acme:0");
    assert_ptr_not_equal(device, original);
    assert_int_equal(tn_platform_device_count(tn_device_platform(device)), 3);
    assert_int_equal(tn_device_health(original, &err), TN_OK); /* replaced, but still at work */
    tn_registration_release(first);                            /* not the one that serves */
    assert_ptr_equal(world_device(&w, "acme:0"), device);
    tn_registration_release(second);
    assert_ptr_equal(world_device(&w, "acme:0"), original);
    assert_int_equal(tn_platform_device_count(tn_device_platform(original)), 3);
    assert_int_equal(tn_device_health(device, &err), TN_UNAVAILABLE);
    world_end(&w);
}

static tn_status refuse(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host, (void)out;
    return tn_fail(err, TN_UNSUPPORTED, 0, "refuse", "not today");
}

static void what_stops_is_said_and_leaves_nothing(void **state)
{
    world w;
    tn_registration *registration = NULL;
    tn_error err;
    (void)state;
    world_make(&w, WORLD_CPU, NULL);
    assert_int_equal(tni_platforms_register(w.set, refuse, 0, &registration, &err), TN_UNSUPPORTED);
    assert_contains(err.message, "stopped at opened: its entry refused: not today");
    assert_int_equal(tni_platforms_register(w.set, entry_of(WORLD_BROKEN), 0, &registration, &err),
                     TN_DEVICE_LOST);
    assert_contains(err.message, "the board does not answer");
    assert_int_equal(tni_platforms_register(w.set, NULL, 0, &registration, &err),
                     TN_INVALID_ARGUMENT);
    assert_int_equal(tni_platforms_register(w.set, refuse, 0, NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tni_platforms_register(w.set, refuse, 8, &registration, &err),
                     TN_INVALID_ARGUMENT);
    assert_contains(err.message, "unknown bits 0x8");
    assert_null(registration);
    assert_null(tni_platform_row_of(world_platform(&w, "rocm")));
    world_end(&w);
}

enum { THREADS = 8 };

typedef struct worker {
    world *w;
    tni_thread thread;
    tn_module_entry_fn *entry;
    bool wrong;
} worker;

static void come_and_go(void *user)
{
    worker *me = user;
    for (int i = 0; i < (test_reduced() ? 5 : 40); i++) {
        tn_registration *registration = NULL;
        tn_device *device = NULL;
        tn_error err = {0};
        tn_status status =
            tni_platforms_register(me->w->set, me->entry, TN_MODULE_REPLACE, &registration, &err);
        me->wrong = me->wrong || status || tni_devices_get(me->w->set, "cpu:0", &device, &err);
        (void)tni_devices_get(me->w->set, "acme:0", &device, &err);
        (void)tn_device_name(device);
        tn_registration_release(registration);
    }
}

static void many_register_at_once(void **state)
{
    worker workers[THREADS] = {{0}};
    world w;
    tn_error err;
    (void)state;
    world_make(&w, WORLD_CPU, NULL);
    for (size_t i = 0; i < THREADS; i++) {
        workers[i].w = &w;
        workers[i].entry = entry_of(i % 2 ? WORLD_ACME : WORLD_BOLT);
        assert_int_equal(tni_thread_create(&workers[i].thread, come_and_go, &workers[i], &err),
                         TN_OK);
    }
    for (size_t i = 0; i < THREADS; i++)
        tni_thread_join(workers[i].thread);
    for (size_t i = 0; i < THREADS; i++)
        assert_false(workers[i].wrong);
    assert_int_equal(tn_platform_device_count(world_platform(&w, "acme")), 0);
    assert_int_equal(tn_platform_device_count(world_platform(&w, "bolt")), 0);
    world_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registered_platform_comes_and_goes),
        cmocka_unit_test(second_of_a_name_is_refused_or_replaces),
        cmocka_unit_test(what_stops_is_said_and_leaves_nothing),
        cmocka_unit_test(many_register_at_once),
    };
    return run_suite("unit.register", tests);
}
