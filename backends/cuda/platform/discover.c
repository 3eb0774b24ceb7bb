/* Looking for devices: by the management library, which initialises nothing and leaves a process that forks
 * well, and by the driver where that one alone knows. */
#include "cuda.h"
#include "verdict.h"

#include <stdlib.h>

static void set_device(cuda *self, int32_t index, const cuda_found *found)
{
    cuda_device *device = &self->devices[index];
    device->found = *found;
    device->index = index;
    device->handle = -1;
}

/* Every device of the machine, as the management library lists them: in the order of the bus. */
typedef struct listing {
    cuda_found all[CUDA_MOST];
    int32_t count;
} listing;

/* True when the library's answer is all there is to know. */
static bool find_by_nvml(cuda *self, const listing *list)
{
    int32_t visible[CUDA_MOST], seen = 0;
    if (!cuda_visible(list->all, list->count, getenv("CUDA_VISIBLE_DEVICES"),
                      getenv("CUDA_DEVICE_ORDER"), visible, &seen) ||
        seen == 0)
        return false;
    for (int32_t i = 0; i < seen; i++)
        set_device(self, i, &list->all[visible[i]]);
    self->count = seen;
    return true;
}

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

/* Which device it is, and no more. */
static void identify(const cuda_driver *driver, cu_device device, cuda_found *out)
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

/* The driver counts a memory clock's cycles in kHz, each of which has two transfers. */
static void describe(const cuda_driver *driver, cu_device device, cuda_found *out)
{
    size_t bytes = 0;
    identify(driver, device, out);
    if (driver->device_memory(&bytes, device) == CUDA_SUCCESS)
        out->memory_bytes = bytes;
    out->major = (int32_t)attribute(driver, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    out->minor = (int32_t)attribute(driver, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    out->multi_processors = attribute(driver, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    out->clock_khz = attribute(driver, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, device);
    out->bandwidth = 2 * attribute(driver, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, device) * 1000 *
                     attribute(driver, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, device) / 8;
}

/* Starts the driver; *out_count is how many devices it shows. */
static tn_status init_driver(cuda *self, int *out_count, tn_error *err)
{
    const cuda_driver *driver = &self->driver;
    cuda_surroundings around;
    cu_result code = driver->init(0);
    if (!code)
        code = driver->device_count(out_count);
    if (!code && *out_count == 0)
        code = CUDA_ERROR_NO_DEVICE;
    if (!code)
        return TN_OK;
    cuda_look_around("", &around);
    return cuda_verdict_driver(driver, code, &around, getenv("CUDA_VISIBLE_DEVICES"), err);
}

/* Whether the driver's device is the one that the management library described. */
static bool is_same(const cuda_found *described, const cuda_found *has)
{
    return has->uuid[0] && !has->is_split ? strcmp(described->uuid, has->uuid) == 0
                                          : strcmp(described->bus, has->bus) == 0;
}

/* The machine's number of a device that the driver numbers otherwise. A MIG instance has that of the device
 * it is part of, whose memory and clocks are not its own. */
static void number_by_nvml(const listing *list, cuda_found *found)
{
    for (int32_t i = 0; i < list->count; i++) {
        if (!is_same(&list->all[i], found))
            continue;
        found->physical = list->all[i].physical;
        found->nvml = found->is_split ? NULL : list->all[i].nvml;
    }
}

/* Without the management library: in the order of the bus, where no device is hidden or split. */
static void number_by_bus(cuda *self)
{
    bool known = !getenv("CUDA_VISIBLE_DEVICES");
    for (int32_t i = 0; i < self->count; i++)
        known = known && self->devices[i].found.bus[0] && !self->devices[i].found.is_split;
    for (int32_t i = 0; known && i < self->count; i++) {
        cuda_found *found = &self->devices[i].found;
        found->physical = 0;
        for (int32_t k = 0; k < self->count; k++)
            found->physical += strcmp(self->devices[k].found.bus, found->bus) < 0;
    }
}

/* Without the management library, or where it does not know: the driver's own devices, in its order. */
static tn_status find_by_driver(cuda *self, const listing *list, tn_error *err)
{
    const cuda_driver *driver = &self->driver;
    int count = 0;
    tn_status status = init_driver(self, &count, err);
    for (int i = 0; !status && i < count && i < CUDA_MOST; i++) {
        cuda_found found;
        cu_device handle = -1;
        cu_result code = driver->device_get(&handle, i);
        if (code)
            return cuda_driver_fail(driver, code, "cuDeviceGet", err);
        describe(driver, handle, &found);
        number_by_nvml(list, &found);
        set_device(self, i, &found);
        self->devices[i].handle = handle;
        self->count = i + 1;
    }
    if (!status && list->count == 0)
        number_by_bus(self);
    if (!status)
        atomic_store(&self->started, true);
    return status;
}

/* One that the driver does not show keeps the number -1: others are none the worse for it. */
static void match(cuda *self, cuda_device *device, int count)
{
    const cuda_driver *driver = &self->driver;
    for (int i = 0; i < count; i++) {
        cu_device handle = -1;
        cuda_found has;
        if (driver->device_get(&handle, i) != CUDA_SUCCESS)
            continue;
        identify(driver, handle, &has);
        if (is_same(&device->found, &has))
            device->handle = handle;
    }
}

tn_status cuda_find_handle(const cuda_device *device, tn_error *err)
{
    return device->handle >= 0
               ? TN_OK
               : tn_fail(
                     err, TN_UNAVAILABLE, 0, "cuDeviceGet",
                     "the driver does not show %s (%s), which was here when devices were sought; was "
                     "CUDA_VISIBLE_DEVICES changed since?",
                     device->found.name, device->found.uuid);
}

tn_status cuda_start(cuda *self, tn_error *err)
{
    tn_status status = TN_OK;
    int count = 0;
    if (atomic_load_explicit(&self->started, memory_order_acquire))
        return TN_OK;
    mtx_lock(&self->lock);
    if (!atomic_load(&self->started)) {
        status = init_driver(self, &count, err);
        for (int32_t i = 0; !status && i < self->count; i++)
            match(self, &self->devices[i], count);
        if (!status)
            atomic_store_explicit(&self->started, true, memory_order_release);
    }
    mtx_unlock(&self->lock);
    return status;
}

/* An empty list where the library is not there or does not serve; *out_code is its result. */
static void open_nvml(cuda *self, listing *out, nvml_result *out_code)
{
    out->count = 0;
    self->has_nvml = cuda_nvml_open(self->host, &self->nvml, out_code, NULL) == TN_OK;
    if (self->has_nvml && cuda_nvml_list(&self->nvml, out->all, CUDA_MOST, &out->count, NULL))
        out->count = 0;
}

const cuda_nvml *cuda_management(cuda *self)
{
    nvml_result code;
    listing list;
    if (!atomic_load_explicit(&self->sought_nvml, memory_order_acquire)) {
        mtx_lock(&self->lock);
        if (!atomic_load(&self->sought_nvml)) {
            open_nvml(self, &list, &code);
            for (int32_t i = 0; i < self->count; i++)
                number_by_nvml(&list, &self->devices[i].found);
            atomic_store_explicit(&self->sought_nvml, true, memory_order_release);
        }
        mtx_unlock(&self->lock);
    }
    return self->has_nvml ? &self->nvml : NULL;
}

/* By the program, before it came here: then the driver counts at once. */
static bool has_started(const cuda_driver *driver)
{
    int count = 0;
    return driver->device_count(&count) == CUDA_SUCCESS && count > 0;
}

/* Everything but the host's memory for it, which the caller has. */
static tn_status look(cuda *self, tn_error *err)
{
    nvml_result code = NVML_SUCCESS;
    cuda_surroundings around;
    listing list = {.count = 0};
    tn_status status = cuda_driver_bind(self->host, &self->driver, &self->driver_version, err);
    if (status)
        return status;
    if (has_started(&self->driver))
        return find_by_driver(self, &list, err);
    open_nvml(self, &list, &code);
    atomic_store(&self->sought_nvml, true);
    if (list.count > 0 && find_by_nvml(self, &list))
        return TN_OK;
    if (code) {
        cuda_look_around("", &around);
        status = cuda_verdict_nvml(code, &around, err);
    }
    return status ? status : find_by_driver(self, &list, err);
}

tn_status cuda_probe(const tn_host *host, void **out_self, int32_t *out_devices, tn_error *err)
{
    cuda *self = host->alloc(host->self, sizeof *self, _Alignof(cuda));
    if (!self)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "cuda: probe", "no memory for the platform");
    memset(self, 0, sizeof *self);
    self->host = host;
    tn_status status = look(self, err);
    if (status) {
        host->release(host->self, self);
        return status;
    }
    mtx_init(&self->lock, mtx_plain);
    for (int32_t i = 0; i < self->count; i++) {
        mtx_init(&self->devices[i].lock, mtx_plain);
        mtx_init(&self->devices[i].kernels_lock, mtx_plain);
        atomic_flag_clear(&self->devices[i].fault_guard);
    }
    *out_self = self;
    *out_devices = self->count;
    return TN_OK;
}
