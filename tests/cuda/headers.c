/* The module's own declarations of the driver's interface, the management library's and the compiler's against
 * NVIDIA's headers, where those are installed. */
#include "test.h"

#include "../../backends/cuda/compile/nvrtc.h"
#include "../../backends/cuda/platform/driver.h"
#include "../../backends/cuda/platform/nvml.h"
#include "headers.h"

/* A header that is not here leaves a list that is empty. */
#define NEED(list, header)                                                                         \
    do {                                                                                           \
        if (!(list)[0].name) {                                                                     \
            print_message("skipped: " header " is not here: cmake -DTENON_CUDA_INCLUDE=FOLDER\n"); \
            skip();                                                                                \
        }                                                                                          \
    } while (0)
#if !defined(HAS_CUDA_HEADER)
const header_number vendor_numbers[] = {{NULL, 0}};
const header_number vendor_sizes[] = {{NULL, 0}};
#endif
#if !defined(HAS_NVML_HEADER)
const header_number vendor_nvml_numbers[] = {{NULL, 0}};
const header_number vendor_nvml_sizes[] = {{NULL, 0}};
#endif
#if !defined(HAS_NVRTC_HEADER)
const header_number vendor_nvrtc_numbers[] = {{NULL, 0}};
#endif

static const header_number numbers[] = {
#define CUDA_NUMBER_(name, value) {#name, value},
    CUDA_NUMBER_LIST(CUDA_NUMBER_)
#undef CUDA_NUMBER_
        {NULL, 0}};

static const header_number sizes[] = {
    SIZE(cu_result),
    SIZE(cu_device),
    SIZE(cu_deviceptr),
    SIZE(cu_uuid),
    SIZE(cu_event_handle),
    SIZE(cu_tensor_map),
    SIZE(cu_launch_attribute_id),
    SIZE(cu_launch_attribute),
    OFFSET(cu_launch_attribute, permitted, permitted),
    SIZE(cu_launch_config),
    OFFSET(cu_launch_config, block_x, block_x),
    OFFSET(cu_launch_config, shared_bytes, shared_bytes),
    OFFSET(cu_launch_config, stream, stream),
    OFFSET(cu_launch_config, attributes, attributes),
    OFFSET(cu_launch_config, count, count),
    SIZE(cu_copy_2d),
    OFFSET(cu_copy_2d, from_type, from_type),
    OFFSET(cu_copy_2d, from_host, from_host),
    OFFSET(cu_copy_2d, from_device, from_device),
    OFFSET(cu_copy_2d, from_pitch, from_pitch),
    OFFSET(cu_copy_2d, to_type, to_type),
    OFFSET(cu_copy_2d, to_host, to_host),
    OFFSET(cu_copy_2d, to_device, to_device),
    OFFSET(cu_copy_2d, to_pitch, to_pitch),
    OFFSET(cu_copy_2d, width, width),
    OFFSET(cu_copy_2d, height, height),
    SIZE(cu_copy_peer),
    OFFSET(cu_copy_peer, from_type, from_type),
    OFFSET(cu_copy_peer, from_device, from_device),
    OFFSET(cu_copy_peer, from_context, from_context),
    OFFSET(cu_copy_peer, from_pitch, from_pitch),
    OFFSET(cu_copy_peer, from_height, from_height),
    OFFSET(cu_copy_peer, to_type, to_type),
    OFFSET(cu_copy_peer, to_device, to_device),
    OFFSET(cu_copy_peer, to_context, to_context),
    OFFSET(cu_copy_peer, to_pitch, to_pitch),
    OFFSET(cu_copy_peer, to_height, to_height),
    OFFSET(cu_copy_peer, width, width),
    OFFSET(cu_copy_peer, depth, depth),
    SIZE(cu_pool_properties),
    OFFSET(cu_pool_properties, allocation_type, allocation_type),
    OFFSET(cu_pool_properties, handle_types, handle_types),
    OFFSET(cu_pool_properties, location, location),
    OFFSET(cu_pool_properties, security, security),
    SIZE(cu_pool_access),
    OFFSET(cu_pool_access, flags, flags),
    SIZE(cu_location),
    OFFSET(cu_location, id, id),
    {NULL, 0},
};

static const header_number nvml_numbers[] = {
#define NVML_NUMBER_(name, value) {#name, value},
    NVML_NUMBER_LIST(NVML_NUMBER_)
#undef NVML_NUMBER_
        {NULL, 0}};

static const header_number nvml_sizes[] = {
    SIZE(nvml_result),
    SIZE(nvml_clock),
    SIZE(nvml_link_kind),
    SIZE(nvml_link_status),
    SIZE(nvml_device),
    SIZE(nvml_pci),
    OFFSET(nvml_pci, domain, domain),
    OFFSET(nvml_pci, bus, bus),
    OFFSET(nvml_pci, device, device),
    OFFSET(nvml_pci, bus_id, bus_id),
    SIZE(nvml_memory),
    OFFSET(nvml_memory, total, total),
    OFFSET(nvml_memory, available, available),
    OFFSET(nvml_memory, used, used),
    {NULL, 0},
};

static const header_number nvrtc_numbers[] = {
#define NVRTC_NUMBER_(name, value) {#name, value},
    NVRTC_NUMBER_LIST(NVRTC_NUMBER_)
#undef NVRTC_NUMBER_
        {"sizeof nvrtc_result", (long long)sizeof(nvrtc_result)},
    {NULL, 0}};

static void compare(const header_number *ours, const header_number *theirs)
{
    for (; ours->name; ours++, theirs++) {
        assert_non_null(theirs->name);
        assert_string_equal(ours->name, theirs->name);
        if (ours->value != theirs->value)
            fail_msg("%s: ours is %lld, NVIDIA's %lld", ours->name, ours->value, theirs->value);
    }
    assert_null(theirs->name);
}

static void numbers_are_as_in_nvidias_header(void **state)
{
    (void)state;
    NEED(vendor_numbers, "cuda.h");
    compare(numbers, vendor_numbers);
}

static void structs_lie_as_in_nvidias_header(void **state)
{
    (void)state;
    NEED(vendor_sizes, "cuda.h");
    compare(sizes, vendor_sizes);
}

static void the_management_librarys_are_as_in_its_header(void **state)
{
    (void)state;
    NEED(vendor_nvml_numbers, "nvml.h");
    compare(nvml_numbers, vendor_nvml_numbers);
    compare(nvml_sizes, vendor_nvml_sizes);
}

static void the_compilers_are_as_in_its_header(void **state)
{
    (void)state;
    NEED(vendor_nvrtc_numbers, "nvrtc.h");
    compare(nvrtc_numbers, vendor_nvrtc_numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_as_in_nvidias_header),
        cmocka_unit_test(structs_lie_as_in_nvidias_header),
        cmocka_unit_test(the_management_librarys_are_as_in_its_header),
        cmocka_unit_test(the_compilers_are_as_in_its_header),
    };
    return run_suite("cuda.headers", tests);
}
