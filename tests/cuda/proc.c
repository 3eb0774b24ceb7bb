/* The kernel module's list of devices: what is taken from it, and when it is not enough. */
#include "listing.h"

#include "../../backends/cuda/platform/proc.h"

#define UUID_A "GPU-b89a1853-a419-1a9e-796f-e896f3c05262"
#define UUID_B "GPU-0234aa77-a419-1a9e-796f-e896f3c05262"
#define UUID_C "GPU-7734aa77-a419-1a9e-796f-e896f3c05262"
#define GPUS   "/proc/driver/nvidia/gpus/"

static char root[SCRATCH_PATH], library[LISTING_PATH];
static cuda_listing list;

static const listing_device first = {"0000:00:06.0", "NVIDIA H200", UUID_A, NULL, 0};
static const listing_device second = {"0000:1a:00.0", "NVIDIA H200", UUID_B, NULL, 1};
static const listing_device far = {"10000:01:00.0", "NVIDIA H200", UUID_C, NULL, 2};

static int begin(void **state)
{
    (void)state;
    scratch_make(root);
    listing_begin(root);
    listing_library(root, LISTING_VERSION, library);
    listing_add(root, &first);
    return 0;
}

static int end(void **state)
{
    (void)state;
    scratch_remove(root);
    return 0;
}

static int lists(void)
{
    return cuda_proc_list(root, library, &list);
}

static void a_device_is_named(void **state)
{
    (void)state;
    assert_true(lists());
    assert_int_equal(list.count, 1);
    assert_string_equal(list.all[0].name, "NVIDIA H200");
    assert_string_equal(list.all[0].uuid, UUID_A);
    assert_string_equal(list.all[0].bus, "0000:00:06.0");
    assert_int_equal(list.all[0].physical, 0);
    assert_int_equal(list.all[0].major, 0);
    assert_null(list.all[0].nvml);
}

/* By its numbers: as a text, the one with five digits would come before the second. */
static void the_bus_orders_them(void **state)
{
    (void)state;
    listing_add(root, &far);
    listing_add(root, &second);
    assert_true(lists());
    assert_int_equal(list.count, 3);
    assert_string_equal(list.all[1].uuid, UUID_B);
    assert_string_equal(list.all[2].uuid, UUID_C);
    assert_string_equal(list.all[2].bus, "10000:01:00.0");
    assert_int_equal(list.all[2].physical, 2);
}

static void no_list_is_not_enough(void **state)
{
    (void)state;
    assert_false(cuda_proc_list("/nowhere", library, &list));
    listing_take_away(root, GPUS "0000:00:06.0/information");
    assert_false(lists()); /* a folder without its file */
    listing_take_away(root, GPUS "0000:00:06.0");
    assert_false(lists()); /* as a Jetson has it */
    assert_int_equal(list.count, 0);
}

static void other_kinds_of_machines_have_others_to_ask(void **state)
{
    (void)state;
    listing_put(root, "/dev/dxg", "");
    assert_false(lists());
    listing_take_away(root, "/dev/dxg");
    assert_true(lists());
    listing_put(root, "/etc/nv_tegra_release", "");
    assert_false(lists());
}

static void the_librarys_version_is_the_modules(void **state)
{
    (void)state;
    listing_library(root, "580.159", library);
    assert_false(lists());
    listing_library(root, "575.57.08", library); /* a compatibility package's, or after an update */
    assert_false(lists());
    listing_library(root, "Module", library); /* a word of the line, and no version */
    assert_false(lists());
    listing_library(root, "", library);
    assert_false(lists());
    listing_library(root, LISTING_VERSION, library);
    assert_true(lists());
    listing_put(root, "/proc/driver/nvidia/version",
                "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19\n");
    assert_false(lists());
    listing_library(root, "535.104.05", library);
    assert_true(lists());
    listing_take_away(root, "/proc/driver/nvidia/version");
    assert_false(lists());
}

static void a_device_that_is_not_told_in_full_is_for_others(void **state)
{
    static const listing_device untold[] = {
        {"0000:1a:00.0", "NVIDIA H200", LISTING_UNTOLD, NULL, 1},
        {"0000:1a:00.0", "NVIDIA H200", "", NULL, 1},
        {"0000:1a:00.0", "NVIDIA H200", "b89a1853-a419-1a9e-796f-e896f3c05262", NULL, 1},
        {"0000:1a:00.0", "Unknown", UUID_B, NULL, 1},
        {"0000:1a:00.1", "NVIDIA H200", UUID_B, NULL, 1},
        {"1a:00.0", "NVIDIA H200", UUID_B, NULL, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof untold / sizeof untold[0]; i++) {
        char path[64];
        listing_add(root, &untold[i]);
        if (lists())
            fail_msg("case %zu is taken", i);
        snprintf(path, sizeof path, GPUS "%s/information", untold[i].bus);
        listing_take_away(root, path);
        snprintf(path, sizeof path, GPUS "%s", untold[i].bus);
        listing_take_away(root, path);
        assert_true(lists());
    }
    /* A driver that does not say whether a device is excluded, or which file is its own. */
    listing_put(root, GPUS "0000:00:06.0/information",
                "Model: NVIDIA H200\nGPU UUID: " UUID_A
                "\nBus Location: 0000:00:06.0\nDevice Minor: 0\n");
    assert_false(lists());
    listing_put(root, GPUS "0000:00:06.0/information",
                "Model: NVIDIA H200\nGPU UUID: " UUID_A
                "\nBus Location: 0000:00:06.0\nGPU Excluded: No\n");
    assert_false(lists());
}

static void what_is_excluded_does_not_count(void **state)
{
    listing_device excluded = second;
    (void)state;
    excluded.excluded = "Yes";
    excluded.uuid = LISTING_UNTOLD;
    listing_add(root, &excluded);
    listing_add(root, &far);
    assert_true(lists());
    assert_int_equal(list.count, 2);
    assert_string_equal(list.all[1].uuid, UUID_C);
    assert_int_equal(list.all[1].physical, 1);
}

/* In a container that has some of the machine's devices; of the others nothing is asked. */
static void a_device_without_its_file_does_not_count(void **state)
{
    listing_device hidden = first;
    (void)state;
    hidden.uuid = LISTING_UNTOLD;
    listing_add(root, &hidden);
    listing_add(root, &second);
    listing_take_away(root, "/dev/nvidia0");
    assert_true(lists());
    assert_int_equal(list.count, 1);
    assert_string_equal(list.all[0].uuid, UUID_B);
    assert_int_equal(list.all[0].physical, 0);
    listing_put(root, "/usr/bin/nvidia-modprobe", ""); /* the libraries would have it made */
    assert_false(lists());
    listing_put(root, "/dev/nvidia0", "");
    listing_add(root, &first);
    assert_true(lists());
    assert_int_equal(list.count, 2);
    listing_take_away(root, "/usr/bin/nvidia-modprobe");
    listing_take_away(root, "/dev/nvidia0");
    listing_take_away(root, "/dev/nvidia1");
    assert_false(lists()); /* none is left, and why is for others to say */
}

/* Whoever runs this may be one whom no mode stops. */
static void list_as_nobody(void)
{
    const uid_t me = geteuid();
    assert_int_equal(chmod(root, 0755), 0);
    if (me == 0)
        assert_int_equal(seteuid(65534), 0);
    (void)lists();
    if (me == 0)
        assert_int_equal(seteuid(me), 0);
}

static void a_file_that_may_not_be_opened_is_as_none(void **state)
{
    char path[LISTING_PATH];
    (void)state;
    listing_add(root, &second);
    list_as_nobody();
    if (list.count != 2)
        skip(); /* the folder for scratch is closed to others */
    snprintf(path, sizeof path, "%s/dev/nvidia0", root);
    assert_int_equal(chmod(path, 0), 0);
    listing_put(root, "/usr/bin/nvidia-modprobe", ""); /* what is there is not made anew */
    list_as_nobody();
    assert_int_equal(list.count, 1);
    assert_string_equal(list.all[0].uuid, UUID_B);
    snprintf(path, sizeof path, "%s/dev/nvidiactl", root);
    assert_int_equal(chmod(path, 0), 0);
    list_as_nobody();
    assert_int_equal(list.count, 0);
}

static void without_the_control_file_others_say_why(void **state)
{
    (void)state;
    listing_take_away(root, "/dev/nvidiactl");
    assert_false(lists());
}

static void what_is_split_is_for_others(void **state)
{
    (void)state;
    listing_put(root, "/proc/driver/nvidia/capabilities/mig/config", "");
    listing_put(root, "/proc/driver/nvidia/capabilities/gpu0/mig/x", "");
    assert_true(lists()); /* the folder is there in any case */
    listing_put(root, "/proc/driver/nvidia/capabilities/gpu1/mig/gi1/access", "");
    assert_true(lists()); /* of a device that is not here */
    listing_put(root, "/proc/driver/nvidia/capabilities/gpu0/mig/gi1/ci0/access", "");
    assert_false(lists());
}

static void more_than_there_is_room_for_is_for_others(void **state)
{
    (void)state;
    for (unsigned i = 1; i <= CUDA_MOST; i++) {
        char bus[16], uuid[48];
        snprintf(bus, sizeof bus, "0001:%02x:00.0", i);
        snprintf(uuid, sizeof uuid, "GPU-%08x-a419-1a9e-796f-e896f3c05262", i);
        listing_add(root, &(listing_device){bus, "NVIDIA H200", uuid, NULL, i});
        assert_int_equal(lists(), i < CUDA_MOST);
    }
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_device_is_named),
        TEST(the_bus_orders_them),
        TEST(no_list_is_not_enough),
        TEST(other_kinds_of_machines_have_others_to_ask),
        TEST(the_librarys_version_is_the_modules),
        TEST(a_device_that_is_not_told_in_full_is_for_others),
        TEST(what_is_excluded_does_not_count),
        TEST(a_device_without_its_file_does_not_count),
        TEST(a_file_that_may_not_be_opened_is_as_none),
        TEST(without_the_control_file_others_say_why),
        TEST(what_is_split_is_for_others),
        TEST(more_than_there_is_room_for_is_for_others),
    };
#undef TEST
    return run_suite("cuda.proc", tests);
}
