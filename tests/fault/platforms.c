/* Platforms and devices when the n-th allocation or the n-th system call fails: the call says so or
 * goes on with what it knows, nothing is left behind, and the next attempt succeeds. */
#include "fault.h"
#include "unit/world.h"

#include "device/host/host.h"
#include "os/parallel.h"
#include "tenon/machine.h"

static const char text[] = "[device h200]\nplatform = cuda\nname = NVIDIA H200\nmemory = 141 GB\n"
                           "[device toy]\nplatform = stand\nbehaviour.x = y\n";

/* One life of a set of platforms. TN_OK when everything was there in the end. */
static tn_status live(tn_error *err)
{
    const tni_registry_params params = {.builtins = world_builtins(WORLD_ALL)};
    tni_registry *registry = NULL;
    tni_platforms *set = NULL;
    tni_descriptions *descriptions = NULL;
    tn_platform_list *list = NULL;
    tn_device *device = NULL;
    tni_pool *ended = NULL;
    tn_device_memory memory = {.struct_size = sizeof memory};
    const int32_t ids[] = {2, 0};
    tn_status status = tni_registry_create(&params, &registry, err);
    if (!status)
        status = tni_platforms_create(registry, NULL, &set, err);
    if (!status)
        status = tni_platform_list_of(set, &list, err);
    if (!status)
        status = tni_descriptions_parse(text, sizeof text - 1, "lab", &descriptions, err);
    if (!status)
        status = tni_devices_describe(set, descriptions, "lab", err);
    if (!status)
        status = tni_devices_get(set, "h200", &device, err);
    if (!status)
        status = tn_device_memory_get(device, &memory, err);
    if (!status)
        status = tn_platform_ids_assign(tn_device_platform(device), ids, 2, err);
    if (!status)
        assert_int_equal(set->devices.count, 7);
    tn_platform_list_release(list);
    tni_descriptions_release(descriptions);
    tni_platforms_destroy(set);
    tni_registry_destroy(registry);
    assert_int_equal(tni_parallel_threads_set(0, &ended, NULL), TN_OK);
    tni_pool_destroy(ended);
    return status;
}

/* The machine and its topology, by the built-in cpu platform's own row where it can. */
static tn_status read_machine(tn_error *err)
{
    tn_machine *machine = NULL;
    tn_topology *topology = NULL;
    tn_status status = tn_machine_create(&machine, err);
    if (!status)
        status = tni_topology_collect(NULL, NULL, &topology, err);
    if (!status) {
        assert_true(tn_machine_facts_get(machine)->threads >= 1);
        assert_true(tn_topology_count(topology) >= 2);
    }
    tn_topology_release(topology);
    tn_machine_release(machine);
    return status;
}

static bool survive(tn_status (*run)(tn_error *), struct fault *fault, long n, int code)
{
    tn_error err = {0};
    struct fault_state before = fault_look();
    fault_arm(fault, n, false, code);
    tn_status status = run(&err);
    bool fired = fault_end(fault);
    if (status) {
        assert_true(fired);
        assert_true(status == TN_OUT_OF_MEMORY || status == TN_BUSY);
        assert_int_equal(err.status, status);
        assert_int_not_equal(err.message[0], '\0');
    }
    if (fault_left(before, "a life", n))
        fail();
    if (run(&err))
        fail_msg("after fault %ld: %s", n, err.message);
    return fired;
}

static void every_allocation_may_fail(void **state)
{
    long n = 1;
    (void)state;
    while (!test_sampled((uint64_t)n, 4) || survive(live, &fault_memory, n, 0))
        n++;
    assert_true(n > 30);
    for (n = 1; !test_sampled((uint64_t)n, 4) || survive(read_machine, &fault_memory, n, 0);)
        n++;
    assert_true(n > 10);
}

static void every_call_may_fail(void **state)
{
    static const int codes[] = {EIO, ENOMEM, EACCES, EMFILE};
    long n = 1;
    (void)state;
    while (!test_sampled((uint64_t)n, 4) || survive(live, &fault_call, n, codes[n % 4]))
        n++;
    assert_true(n >= 10);
    n = 1;
    while (!test_sampled((uint64_t)n, 4) || survive(read_machine, &fault_call, n, codes[n % 4]))
        n++;
    assert_true(n >= 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(every_call_may_fail),
    };
    fault_memory_install();
    fault_calls_install();
    return run_suite("fault.platforms", tests);
}
