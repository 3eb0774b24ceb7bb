/* Devices: how they are added and found, and what they report. */
#include "described.h"

tn_status described_probe(const tn_host *host, void **out_self, int32_t *out_devices, tn_error *err)
{
    described *self = host->alloc(host->self, sizeof *self, _Alignof(described));
    if (!self)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "described: probe",
                       "no memory for the table of described devices");
    memset(self, 0, sizeof *self);
    self->host = host;
    atomic_flag_clear(&self->guard);
    atomic_init(&self->count, 0);
    *out_self = self;
    *out_devices = 0;
    return TN_OK;
}

/* Copies the fields that both sides know; `to` keeps its struct_size. */
static void copy_properties(const tn_device_properties *from, tn_device_properties *to)
{
    size_t size = from->struct_size < to->struct_size ? from->struct_size : to->struct_size;
    size_t head = sizeof to->struct_size;
    memcpy((char *)to + head, (const char *)from + head, size - head);
}

/* Assigns the next index to the device and publishes it to readers. Returns false if the table is
 * full. */
static bool publish(described *self, described_device *device)
{
    described_lock(&self->guard);
    int32_t count = atomic_load_explicit(&self->count, memory_order_relaxed);
    bool fits = count < DESCRIBED_MOST;
    if (fits) {
        device->index = count;
        self->devices[count] = device;
        atomic_store_explicit(&self->count, count + 1, memory_order_release);
    }
    described_unlock(&self->guard);
    return fits;
}

tn_status described_describe(void *opaque, const tn_description *description, int32_t *out_device,
                             tn_error *err)
{
    described *self = opaque;
    const tn_host *host = self->host;
    described_behaviour behaviour;
    tn_status status = described_behaviour_read(description, &behaviour, err);
    if (status || !out_device)
        return status;
    described_device *device = host->alloc(host->self, sizeof *device, _Alignof(described_device));
    if (!device)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "described: describe",
                       "no memory for a described device");
    memset(device, 0, sizeof *device);
    device->properties.struct_size = sizeof device->properties;
    copy_properties(description->properties, &device->properties);
    device->behaviour = behaviour;
    atomic_flag_clear(&device->guard);
    if (!publish(self, device)) {
        host->release(host->self, device);
        return tn_fail(err, TN_UNSUPPORTED, 0, "described: describe",
                       "%s: %d devices are described already, which is the maximum",
                       description->origin, DESCRIBED_MOST);
    }
    *out_device = device->index;
    return TN_OK;
}

tn_status described_find(described *self, int32_t index, described_device **out, tn_error *err)
{
    int32_t count = atomic_load_explicit(&self->count, memory_order_acquire);
    if (index < 0 || index >= count)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "described",
                       "no device \"described:%d\": %d devices are described", (int)index,
                       (int)count);
    *out = self->devices[index];
    return TN_OK;
}

tn_status described_lost(const described_device *device, tn_error *err)
{
    return tn_fail(err, TN_DEVICE_LOST, 0, "described", "described:%d was lost at %s",
                   (int)device->index, device->lost);
}

tn_status described_properties(void *opaque, int32_t index, tn_device_properties *out,
                               tn_error *err)
{
    described_device *device = NULL;
    tn_status status = described_find(opaque, index, &device, err);
    if (!status)
        copy_properties(&device->properties, out);
    return status;
}

/* The rest of `total`, or the false value that the description asks for. */
static tn_fact available(const described_device *device, tn_fact total, int64_t in_use)
{
    int64_t lie = device->behaviour.lie_memory;
    if (lie >= 0)
        return tn_fact_of(lie, "described");
    return total.known ? tn_fact_of(total.value - in_use, "described") : total;
}

tn_status described_memory(void *opaque, int32_t index, tn_device_memory *out, tn_error *err)
{
    described_device *device = NULL;
    tn_status status = described_find(opaque, index, &device, err);
    if (status)
        return status;
    described_lock(&device->guard);
    int64_t in_use = (int64_t)device->in_use;
    bool lost = device->lost[0] != '\0';
    described_unlock(&device->guard);
    if (lost)
        return described_lost(device, err);
    out->total = device->properties.known & TN_DEVICE_KNOWS(memory_bytes)
                     ? tn_fact_of(device->properties.memory_bytes, "described")
                     : tn_fact_unknown("its description does not state the amount");
    out->available = available(device, out->total, in_use);
    out->in_use = tn_fact_of(in_use, "described");
    return TN_OK;
}

tn_status described_link(void *opaque, int32_t from, int32_t to, int32_t *out_link, tn_error *err)
{
    described_device *a = NULL, *b = NULL;
    tn_status status = described_find(opaque, from, &a, err);
    if (!status)
        status = described_find(opaque, to, &b, err);
    if (status)
        return status;
    int64_t link = a->behaviour.link < b->behaviour.link ? a->behaviour.link : b->behaviour.link;
    *out_link = (int32_t)link;
    return TN_OK;
}
