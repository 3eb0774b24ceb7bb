/* CUDA_VISIBLE_DEVICES, as the driver reads it. */
#include "test.h"

#include "../../backends/cuda/platform/visible.h"

/* Four equal devices, or with the last one of another name. */
static int32_t see(const char *value, const char *order, int mixed, char *out, size_t size)
{
    cuda_found all[4];
    int32_t list[CUDA_MOST], count = -1;
    memset(all, 0, sizeof all);
    for (int i = 0; i < 4; i++) {
        snprintf(all[i].name, sizeof all[i].name, "GPU%s", mixed && i == 3 ? " Fast" : "");
        snprintf(all[i].uuid, sizeof all[i].uuid, "GPU-%d1a2a3a4-a5a6-a7a8-a9aa-abacadaeafb%d",
                 i / 2, i);
    }
    if (!cuda_visible(all, 4, value, order, list, &count))
        return -1;
    out[0] = '\0';
    for (int32_t i = 0; i < count; i++)
        snprintf(out + strlen(out), size - strlen(out), "%d", (int)list[i]);
    return count;
}

static void holds(const char *value, const char *expected)
{
    char found[16];
    assert_int_equal(see(value, NULL, 0, found, sizeof found), strlen(expected));
    assert_string_equal(found, expected);
}

static void numbers_choose_and_order(void **state)
{
    (void)state;
    holds(NULL, "0123");
    holds("0", "0");
    holds("2,0", "20");
    holds(" 3 , 1 ", "31");
    holds("+1", "1");
    holds("1x", "1");
    holds("", "");
}

static void what_is_no_device_ends_the_list(void **state)
{
    (void)state;
    holds("1,4,0", "1");
    holds("0,-1,1", "0");
    holds("-1", "");
    holds("none", "");
    holds("2,,1", "2");
    holds("99999999999999999999", "");
}

static void one_that_stands_twice_hides_all(void **state)
{
    (void)state;
    holds("0,1,0", "");
    holds("1,GPU-01a2a3a4-a5a6-a7a8-a9aa-abacadaeafb1", "");
}

static void uuids_may_be_cut_short_while_they_name_one(void **state)
{
    (void)state;
    holds("GPU-01a2a3a4-a5a6-a7a8-a9aa-abacadaeafb1", "1");
    holds("GPU-11a2a3a4-a5a6-a7a8-a9aa-abacadaeafb3,0", "30");
    holds("GPU-0", "");
    holds("GPU-2", "");
    holds("GPU-11a2a3a4-a5a6-a7a8-a9aa-abacadaeafb3x", "");
}

static void what_only_the_driver_knows_is_left_to_it(void **state)
{
    char found[16] = "";
    (void)state;
    assert_int_equal(see(NULL, NULL, 1, found, sizeof found), -1);
    assert_int_equal(see("0", NULL, 1, found, sizeof found), -1);
    assert_int_equal(see("0", "FASTEST_FIRST", 1, found, sizeof found), -1);
    assert_int_equal(see("MIG-GPU-0", NULL, 0, found, sizeof found), -1);
    assert_int_equal(see("1,0", "PCI_BUS_ID", 1, found, sizeof found), 2);
    assert_string_equal(found, "10");
    assert_int_equal(see("GPU-01a2a3a4-a5a6-a7a8-a9aa-abacadaeafb0", NULL, 1, found, sizeof found),
                     1);
    assert_string_equal(found, "0");
}

static void split_devices_are_left_to_the_driver(void **state)
{
    cuda_found all[2];
    int32_t list[CUDA_MOST], count;
    (void)state;
    memset(all, 0, sizeof all);
    all[1].is_split = 1;
    assert_false(cuda_visible(all, 2, NULL, NULL, list, &count));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_choose_and_order),
        cmocka_unit_test(what_is_no_device_ends_the_list),
        cmocka_unit_test(one_that_stands_twice_hides_all),
        cmocka_unit_test(uuids_may_be_cut_short_while_they_name_one),
        cmocka_unit_test(what_only_the_driver_knows_is_left_to_it),
        cmocka_unit_test(split_devices_are_left_to_the_driver),
    };
    return run_suite("cuda.visible", tests);
}
