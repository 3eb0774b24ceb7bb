/* A program that has started the driver before Tenon looks, as one with PyTorch has, against the stub: the driver counts,
 * and the management library is opened when it alone can tell. */
#include "mapped.h"
#include "program.h"

static void the_driver_counts_where_it_has_started(void **state)
{
    tn_device_memory memory = {.struct_size = sizeof memory};
    cu_result (*init)(unsigned flags);
    (void)state;
    bind("cuInit", &init);
    assert_int_equal(init(0), CUDA_SUCCESS);
    come_in();
    assert_string_equal(tn_device_uuid(first), "GPU-11a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf");
    assert_string_equal(tn_device_uuid(second), "GPU-01a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf");
    assert_int_equal(tn_device_is_initialized(first), 0);
    assert_false(has_opened_the_management_library());
    DO(tn_device_memory_get(first, &memory, &err));
    assert_true(has_opened_the_management_library());
    assert_int_equal(memory.available.known, 1);
    assert_string_equal(memory.available.origin, "NVML");
}

/* CUDA_VISIBLE_DEVICES is 1,0, so that the driver cannot tell. */
static void numbers_of_the_machine_are_told_late(void **state)
{
    int32_t physical = -1;
    (void)state;
    come_in();
    DO(tn_platform_id_convert(tn_device_platform(first), TN_ID_VISIBLE, 0, TN_ID_PHYSICAL,
                              &physical, &err));
    assert_int_equal(physical, 1);
    assert_int_equal(tn_device_properties_get(second)->physical_index, 0);
    assert_true(tn_device_properties_get(second)->known & TN_DEVICE_KNOWS(physical_index));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_driver_counts_where_it_has_started),
        cmocka_unit_test(numbers_of_the_machine_are_told_late),
    };
    setenv("CUDA_VISIBLE_DEVICES", "1,0", 1);
    return run_suite("cuda.started", tests);
}
