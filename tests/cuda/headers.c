/* The module's own declarations of the driver's interface against NVIDIA's header, where that is
 * installed. */
#include "test.h"

#include "../../backends/cuda/platform/driver.h"
#include "headers.h"

#if defined(HAS_CUDA_HEADER)
#define NEED_HEADER
#else
#define NEED_HEADER                                                                        \
    do {                                                                                   \
        print_message("skipped: cuda.h is not here: cmake -DTENON_CUDA_INCLUDE=FOLDER\n"); \
        skip();                                                                            \
    } while (0)
const header_number vendor_numbers[] = {{NULL, 0}};
const header_number vendor_sizes[] = {{NULL, 0}};
#endif

static const header_number numbers[] = {
#define CUDA_NUMBER_(name, value) {#name, value},
    CUDA_NUMBER_LIST(CUDA_NUMBER_)
#undef CUDA_NUMBER_
        {NULL, 0}};

#define SIZE(type)                               \
    {                                            \
        "sizeof " #type, (long long)sizeof(type) \
    }
#define OFFSET(type, field)                                \
    {                                                      \
#type "." #field, (long long)offsetof(type, field) \
    }
static const header_number sizes[] = {
    SIZE(cu_result),
    SIZE(cu_device),
    SIZE(cu_deviceptr),
    SIZE(cu_uuid),
    SIZE(cu_event_handle),
    SIZE(cu_copy_2d),
    OFFSET(cu_copy_2d, from_type),
    OFFSET(cu_copy_2d, from_host),
    OFFSET(cu_copy_2d, from_device),
    OFFSET(cu_copy_2d, from_pitch),
    OFFSET(cu_copy_2d, to_type),
    OFFSET(cu_copy_2d, to_host),
    OFFSET(cu_copy_2d, to_device),
    OFFSET(cu_copy_2d, to_pitch),
    OFFSET(cu_copy_2d, width),
    OFFSET(cu_copy_2d, height),
    SIZE(cu_copy_peer),
    OFFSET(cu_copy_peer, from_type),
    OFFSET(cu_copy_peer, from_device),
    OFFSET(cu_copy_peer, from_context),
    OFFSET(cu_copy_peer, from_pitch),
    OFFSET(cu_copy_peer, from_height),
    OFFSET(cu_copy_peer, to_type),
    OFFSET(cu_copy_peer, to_device),
    OFFSET(cu_copy_peer, to_context),
    OFFSET(cu_copy_peer, to_pitch),
    OFFSET(cu_copy_peer, to_height),
    OFFSET(cu_copy_peer, width),
    OFFSET(cu_copy_peer, depth),
    SIZE(cu_pool_properties),
    OFFSET(cu_pool_properties, allocation_type),
    OFFSET(cu_pool_properties, handle_types),
    OFFSET(cu_pool_properties, location),
    OFFSET(cu_pool_properties, security),
    SIZE(cu_pool_access),
    OFFSET(cu_pool_access, flags),
    SIZE(cu_location),
    OFFSET(cu_location, id),
    {NULL, 0},
};

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
    NEED_HEADER;
    compare(numbers, vendor_numbers);
}

static void structs_lie_as_in_nvidias_header(void **state)
{
    (void)state;
    NEED_HEADER;
    compare(sizes, vendor_sizes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_as_in_nvidias_header),
        cmocka_unit_test(structs_lie_as_in_nvidias_header),
    };
    return run_suite("cuda.headers", tests);
}
