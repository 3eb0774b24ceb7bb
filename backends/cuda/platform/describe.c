/* The identity and the numbers of a device, from the driver and from NVML. */
#include "cuda.h"

static void write_uuid(const cu_uuid *uuid, bool is_split, char out[48])
{
    size_t used = (size_t)snprintf(out, 48, is_split ? "MIG" : "GPU");
    for (int i = 0; i < 16; i++) {
        bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
        used += (size_t)snprintf(out + used, 48 - used, "%s%02x", dash ? "-" : "",
                                 (unsigned)(unsigned char)uuid->bytes[i]);
    }
}

static int64_t attribute(const cuda_driver *driver, cu_device_attribute which, cu_device device)
{
    int value = 0;
    return driver->device_attribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
}

void cuda_identify(const cuda_driver *driver, cu_device device, cuda_found *out)
{
    cu_uuid uuid;
    memset(out, 0, sizeof *out);
    out->physical = -1;
    (void)driver->device_name(out->name, (int)sizeof out->name, device);
    out->is_split = strstr(out->name, " MIG ") != NULL;
    if (driver->device_uuid && driver->device_uuid(&uuid, device) == CUDA_SUCCESS)
        write_uuid(&uuid, out->is_split, out->uuid);
    if (driver->device_bus(out->bus, (int)sizeof out->bus, device) != CUDA_SUCCESS)
        out->bus[0] = '\0';
    for (char *c = out->bus; *c; c++)
        *c = *c >= 'A' && *c <= 'F' ? (char)(*c - 'A' + 'a') : *c;
}

/* The driver reports the memory clock in kHz; there are two transfers per cycle. */
void cuda_measure(const cuda_driver *driver, cu_device device, cuda_found *out)
{
    size_t bytes = 0;
    if (driver->device_memory(&bytes, device) == CUDA_SUCCESS)
        out->memory_bytes = bytes;
    out->major = (int32_t)attribute(driver, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    out->minor = (int32_t)attribute(driver, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    out->multi_processors = attribute(driver, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    out->clock_khz = attribute(driver, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, device);
    out->bandwidth = 2 * attribute(driver, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, device) * 1000 *
                     attribute(driver, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, device) / 8;
}

bool cuda_is_same(const cuda_found *described, const cuda_found *has)
{
    return has->uuid[0] && !has->is_split ? strcmp(described->uuid, has->uuid) == 0
                                          : strcmp(described->bus, has->bus) == 0;
}

/* Copies the numbers that NVML reports for a whole device. */
static void copy_numbers(const cuda_found *from, cuda_device *to)
{
    to->found.major = from->major;
    to->found.minor = from->minor;
    to->found.memory_bytes = from->memory_bytes;
    to->found.multi_processors = from->multi_processors;
    atomic_store_explicit(&to->described, true, memory_order_release);
}

void cuda_join(const cuda_listing *list, cuda_device *device)
{
    cuda_found *found = &device->found;
    for (int32_t i = 0; i < list->count; i++) {
        const cuda_found *listed = &list->all[i];
        if (!cuda_is_same(listed, found))
            continue;
        if (found->physical < 0) /* another thread may be reading it */
            found->physical = listed->physical;
        found->nvml = found->is_split ? NULL : listed->nvml;
        if (!atomic_load(&device->described) && !listed->is_split)
            copy_numbers(listed, device);
    }
}

void cuda_open_management(cuda *self, cuda_listing *out, nvml_result *out_code)
{
    out->count = 0;
    self->has_nvml = cuda_nvml_open(self->host, &self->nvml, out_code, NULL) == TN_OK;
    if (self->has_nvml && cuda_nvml_list(&self->nvml, out->all, CUDA_MOST, &out->count, NULL))
        out->count = 0;
}

const cuda_nvml *cuda_management(cuda *self)
{
    nvml_result code;
    cuda_listing list;
    if (!atomic_load_explicit(&self->sought_nvml, memory_order_acquire)) {
        mtx_lock(&self->lock);
        if (!atomic_load(&self->sought_nvml)) {
            cuda_open_management(self, &list, &code);
            for (int32_t i = 0; i < self->count; i++)
                cuda_join(&list, &self->devices[i]);
            atomic_store_explicit(&self->sought_nvml, true, memory_order_release);
        }
        mtx_unlock(&self->lock);
    }
    return self->has_nvml ? &self->nvml : NULL;
}
