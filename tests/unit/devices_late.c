/* Devices that tell the greater part of their properties late: who is asked, how often, and what stays of a
 * failure. */
#include "world.h"

#include "os/thread.h"

#include <stdatomic.h>

static _Atomic int asked, failing; /* so many more do not answer */

static tn_status probe(const tn_host *host, void **out_self, int32_t *out, tn_error *err)
{
    (void)host, (void)out_self, (void)err;
    *out = 1;
    return TN_OK;
}

static tn_status properties(void *self, int32_t device, tn_device_properties *out, tn_error *err)
{
    (void)self, (void)device, (void)err;
    snprintf(out->name, sizeof out->name, "Late");
    return TN_OK;
}

static tn_status numbers(void *self, int32_t device, tn_device_properties *out, tn_error *err)
{
    (void)self, (void)device;
    asked++;
    if (atomic_fetch_sub(&failing, 1) > 0)
        return tn_fail(err, TN_UNAVAILABLE, 5, "late", "the bus is busy");
    snprintf(out->architecture, sizeof out->architecture, "late-1");
    out->known |= TN_DEVICE_KNOWS(capability) | TN_DEVICE_KNOWS(memory_bytes) |
                  TN_DEVICE_KNOWS(multi_processor_count);
    out->capability = (tn_capability){3, 1};
    out->memory_bytes = 1 << 20;
    out->multi_processor_count = 7;
    out->dtypes[0] = TN_F32;
    return TN_OK;
}

static tn_status take(void *self, int32_t device, uint64_t bytes, void **out, tn_error *err)
{
    (void)self, (void)device, (void)bytes, (void)out;
    return tn_fail(err, TN_UNSUPPORTED, 0, "late", "no memory here");
}

static void give(void *self, int32_t device, void *memory)
{
    (void)self, (void)device, (void)memory;
}

static tn_status copy(void *self, const tn_copy_job *job, tn_error *err)
{
    (void)self, (void)job, (void)err;
    return TN_OK;
}

static const tn_platform_row row = {.struct_size = sizeof row,
                                    .name = "late",
                                    .kind = TN_PLATFORM_OOT,
                                    .probe = probe,
                                    .device_properties = properties,
                                    .device_numbers = numbers,
                                    .memory_alloc = take,
                                    .memory_free = give,
                                    .copy = copy};
static const tn_module module = {.struct_size = sizeof module,
                                 TN_MODULE_ABI,
                                 .name = "late",
                                 .version = "1",
                                 .platforms = (const tn_platform_row *const[]){&row, NULL}};

static tn_status entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}

static const tni_builtin builtins[] = {{"late", entry}, {NULL, NULL}};

static tn_device *begin(world *w, int failures)
{
    const tni_registry_params params = {.builtins = builtins};
    tn_error err = {0};
    asked = 0;
    failing = failures;
    if (tni_registry_create(&params, &w->registry, &err) ||
        tni_platforms_create(w->registry, NULL, &w->set, &err))
        fail_msg("%s", err.message);
    return world_device(w, "late:0");
}

static void asked_when_someone_wants_to_know(void **state)
{
    world w;
    (void)state;
    tn_device *device = begin(&w, 0);
    assert_string_equal(tn_device_name(device), "Late");
    assert_int_equal(asked, 0);
    assert_int_equal(tni_device_described(device)->multi_processor_count, 7);
    assert_string_equal(tn_device_properties_get(device)->architecture, "late-1");
    assert_string_equal(tn_device_properties_get(device)->name, "Late");
    assert_int_equal(asked, 1);
    world_end(&w);
}

/* Steps of a plan do not ask again after a failure, for a while; who asks for it in so many words does, and is told. */
static void a_failure_is_not_repeated(void **state)
{
    world w;
    tn_error err = {0};
    tn_capability capability = {0, 0};
    (void)state;
    tn_device *device = begin(&w, 3);
    for (int i = 0; i < 5; i++) {
        assert_string_equal(tni_device_described(device)->architecture, "");
        device->silent_ns = INT64_MAX; /* that second lasts as long as the test needs */
    }
    assert_int_equal(asked, 1);
    device->silent_ns = 1; /* over */
    assert_string_equal(tni_device_described(device)->architecture, "");
    assert_int_equal(asked, 2);
    assert_string_equal(device->fault, "does not report its properties: the bus is busy");
    assert_int_equal(tn_device_capability(device, &capability, &err), TN_UNAVAILABLE);
    assert_contains(err.message, "late:0 does not report its properties: the bus is busy");
    assert_int_equal(err.native_code, 5);
    assert_int_equal(asked, 3);
    assert_int_equal(tn_device_capability(device, &capability, &err), TN_OK);
    assert_int_equal(capability.major, 3);
    assert_int_equal(asked, 4);
    assert_string_equal(device->fault, "");
    assert_string_equal(tni_device_described(device)->architecture, "late-1");
    assert_int_equal(asked, 4);
    world_end(&w);
}

static void ask(void *user)
{
    (void)tn_device_properties_get(user);
}

/* Whoever comes last: where one was told, no fault stays. */
static void threads_leave_no_fault_of_before(void **state)
{
    enum { THREADS = 4, TURNS = 50 };
    (void)state;
    for (int turn = 0; turn < TURNS; turn++) {
        tni_thread thread[THREADS];
        world w;
        tn_error err = {0};
        tn_device *device = begin(&w, turn % THREADS);
        for (int t = 0; t < THREADS; t++)
            assert_int_equal(tni_thread_create(&thread[t], ask, device, &err), TN_OK);
        for (int t = 0; t < THREADS; t++)
            tni_thread_join(thread[t]);
        assert_string_equal(tni_device_described(device)->architecture, "late-1");
        assert_string_equal(device->fault, "");
        world_end(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asked_when_someone_wants_to_know),
        cmocka_unit_test(a_failure_is_not_repeated),
        cmocka_unit_test(threads_leave_no_fault_of_before),
    };
    return run_suite("unit.devices_late", tests);
}
