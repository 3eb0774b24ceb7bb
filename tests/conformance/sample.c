/* The seed's sample device through the public interface: what it shows of the seed, and where the rules
 * win. */
#include "tenon/tenon.h"
#include "test.h"

#include <time.h>

tn_module_entry_fn seed_sample_entry;

static tn_registration *registration;
static const tn_platform *platform;
static tn_device *device;

static void come_in(void)
{
    tn_error err;
    if (device)
        return;
    if (tn_module_register(seed_sample_entry, 0, &registration, &err) ||
        tn_platform_get("sample", &platform, &err) || tn_device_get("sample:0", &device, &err))
        fail_msg("%s: %s", err.where, err.message);
}

static int64_t now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * INT64_C(1000000000) + at.tv_nsec;
}

static void there_is_index_0_only(void **state)
{
    int32_t previous = 77;
    tn_error err;
    (void)state;
    come_in();
    assert_int_equal(tn_platform_device_count(platform), 1);
    assert_int_equal(tn_platform_is_available(platform), 1);
    assert_int_equal(tn_device_current(platform), 0);
    assert_int_equal(tn_device_exchange(platform, 0, &previous, &err), TN_OK);
    assert_int_equal(previous, 0);
    assert_int_equal(tn_device_maybe_exchange(platform, 0, &previous, &err), TN_OK);
    assert_int_equal(previous, 0);
    assert_int_equal(tn_device_set(platform, 1, &err), TN_NOT_FOUND);
    assert_contains(err.message, "sample:1");
    assert_int_equal(tn_device_exchange(platform, 1, &previous, &err), TN_NOT_FOUND);
    assert_int_equal(tn_device_current(platform), 0);
}

/* The seed asserts on -1; here it is no device, and no failure. */
static void minus_one_is_no_failure(void **state)
{
    int32_t previous = 77;
    tn_error err;
    (void)state;
    come_in();
    assert_int_equal(tn_device_exchange(platform, -1, &previous, &err), TN_OK);
    assert_int_equal(previous, 0);
    assert_int_equal(tn_device_maybe_exchange(platform, -1, &previous, &err), TN_OK);
    assert_int_equal(previous, 0);
    assert_int_equal(tn_device_current(platform), 0);
}

static void properties_are_the_seeds(void **state)
{
    tn_device_properties seen = {.struct_size = sizeof seen};
    tn_error err;
    (void)state;
    come_in();
    const tn_device_properties *own = tn_device_properties_get(device);
    assert_true(own->known & TN_DEVICE_KNOWS(multi_processor_count));
    assert_int_equal(own->multi_processor_count, 80);
    assert_int_equal(own->max_threads_per_multi_processor, 1);
    assert_int_equal(tn_worker_snapshot_take(&err), TN_OK);
    assert_int_equal(tn_worker_properties("sample", -1, &seen, &err), TN_OK);
    assert_int_equal(seen.multi_processor_count, 80);
    assert_int_equal(tn_worker_current_device("sample", &(int32_t){77}, &err), TN_OK);
}

static void capability_is_0(void **state)
{
    tn_capability capability = {77, 77};
    tn_error err;
    (void)state;
    come_in();
    assert_int_equal(tn_device_capability(device, &capability, &err), TN_OK);
    assert_int_equal(tn_capability_to_int(capability), 0);
    assert_int_equal(tn_device_has_capability_int(device, 0), 1);
    assert_int_equal(tn_device_has_capability_int(device, 80), 0);
}

/* Both sides read one clock, so the bounds are exact. */
static void events_are_timed_with_the_monotonic_clock(void **state)
{
    tn_event *start = NULL, *stop = NULL;
    double ms = -77;
    tn_error err;
    (void)state;
    come_in();
    assert_int_equal(tn_event_create(device, TN_ARGS(event, .enable_timing = 1), &start, &err), 0);
    assert_int_equal(tn_event_create(device, TN_ARGS(event, .enable_timing = 1), &stop, &err), 0);
    int64_t before = now();
    assert_int_equal(tn_event_record(start, NULL, &err), TN_OK);
    int64_t first = now();
    nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
    int64_t second = now();
    assert_int_equal(tn_event_record(stop, NULL, &err), TN_OK);
    int64_t after = now();
    assert_int_equal(tn_event_elapsed_time(start, stop, &ms, &err), TN_OK);
    assert_true(ms >= (double)(second - first) / 1e6);
    assert_true(ms <= (double)(after - before) / 1e6);
    tn_event_release(start);
    tn_event_release(stop);
}

/* The seed's can be recorded once, and its query answers nothing. */
static void an_event_can_be_recorded_again(void **state)
{
    tn_event *start = NULL, *stop = NULL;
    int32_t done = 77;
    double ms = -77;
    tn_error err;
    (void)state;
    come_in();
    assert_int_equal(tn_event_create(device, TN_ARGS(event, .enable_timing = 1), &start, &err), 0);
    assert_int_equal(tn_event_create(device, TN_ARGS(event, .enable_timing = 1), &stop, &err), 0);
    assert_int_equal(tn_event_record(stop, NULL, &err), TN_OK);
    assert_int_equal(tn_event_record(start, NULL, &err), TN_OK);
    assert_int_equal(tn_event_elapsed_time(start, stop, &ms, &err), TN_OK);
    assert_true(ms <= 0);
    assert_int_equal(tn_event_record(stop, NULL, &err), TN_OK);
    assert_int_equal(tn_event_query(stop, &done, &err), TN_OK);
    assert_int_equal(done, 1);
    assert_int_equal(tn_event_elapsed_time(start, stop, &ms, &err), TN_OK);
    assert_true(ms >= 0);
    tn_event_release(start);
    tn_event_release(stop);
}

/* The last one: what was registered is taken back, and what was given out stays valid. */
static void it_can_be_taken_back(void **state)
{
    void *memory = NULL;
    tn_error err;
    (void)state;
    come_in();
    tn_registration_release(registration);
    assert_int_equal(tn_memory_alloc(device, 1, NULL, &memory, &err), TN_UNAVAILABLE);
    assert_contains(err.message, "sample:0");
    assert_string_equal(tn_device_id(device), "sample:0");
    assert_int_equal(tn_platform_is_available(platform), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_is_index_0_only),
        cmocka_unit_test(minus_one_is_no_failure),
        cmocka_unit_test(properties_are_the_seeds),
        cmocka_unit_test(capability_is_0),
        cmocka_unit_test(events_are_timed_with_the_monotonic_clock),
        cmocka_unit_test(an_event_can_be_recorded_again),
        cmocka_unit_test(it_can_be_taken_back),
    };
    return run_suite("conformance.sample", tests);
}
