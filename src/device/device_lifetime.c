/* Creates and destroys a device with its parts. */
#include "base/alloc.h"
#include "device/platform/platforms.h"
#include "device/random/generators.h"
#include "device/stream/scratch.h"

void tni_device_destroy(tn_device *device)
{
    if (!device)
        return;
    if (device->standard)
        tni_scratch_end(device->standard); /* it is allocated from the memory destroyed next */
    tni_memory_destroy(device->memory);
    tni_stream_standard_destroy(device->standard);
    tn_generator_release(device->generator);
    tni_release(device->loss);
    tni_release(device->origin);
    tni_release(atomic_load(&device->whole));
    tni_release(device);
}

/* Creates the parts that the device owns. */
static tn_status create_parts(tn_device *device, tn_error *err)
{
    device->origin = tni_text_copy("found");
    device->loss = tni_alloc_zeroed(1, sizeof *device->loss);
    tn_status status =
        device->origin && device->loss ? TN_OK : tni_no_memory(err, "devices", device->id);
    if (!status)
        status = tni_generators_add((uint64_t)device->index, &device->generator, err);
    if (!status)
        status = tni_stream_standard_create(device, &device->standard, err);
    return status;
}

tn_status tni_device_create(const tni_offer *offer, tn_platform *platform, int32_t index,
                            const tn_device_properties *properties, tn_device **out, tn_error *err)
{
    tn_device *device = tni_alloc_zeroed(1, sizeof *device);
    if (!device)
        return tni_no_memory(err, "devices", platform->name);
    device->platform = platform;
    device->offer = offer;
    device->plans_only = !offer;
    device->index = index;
    device->ordinal = -1;
    snprintf(device->id, sizeof device->id, "%s:%d", platform->name, (int)index);
    device->properties.struct_size = sizeof device->properties;
    tn_status status = create_parts(device, err);
    if (status) {
        tni_device_destroy(device);
        return status;
    }
    if (properties)
        device->properties = *properties;
    else
        tni_device_query(device);
    *out = device;
    return TN_OK;
}
