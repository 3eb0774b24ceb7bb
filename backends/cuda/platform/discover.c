/* Discovery: by the kernel module's list, which needs no library; by NVML, which does not initialise the
 * driver, so that the process can still fork; and by the driver, if only it knows. */
#include "cuda.h"
#include "proc.h"
#include "verdict.h"

#include <stdlib.h>

static void set_device(cuda *self, int32_t index, const cuda_found *found, bool described)
{
    cuda_device *device = &self->devices[index];
    device->found = *found;
    device->index = index;
    device->handle = -1;
    atomic_store(&device->described, described);
}

/* Returns true if the list was sufficient and devices were set. */
static bool find_by_list(cuda *self, const cuda_listing *list)
{
    int32_t visible[CUDA_MOST], seen = 0;
    if (!cuda_visible(list->all, list->count, getenv("CUDA_VISIBLE_DEVICES"),
                      getenv("CUDA_DEVICE_ORDER"), visible, &seen) ||
        seen == 0)
        return false;
    for (int32_t i = 0; i < seen; i++)
        set_device(self, i, &list->all[visible[i]], list->all[visible[i]].nvml != NULL);
    self->count = seen;
    return true;
}

/* Starts the driver; *out_count is the number of devices it shows. `known` is how many devices other sources
 * have shown: more than 0 implies that device files exist. On failure sets *out_remedy. */
static tn_status init_driver(const cuda *self, int32_t known, int *out_count,
                             const char **out_remedy, tn_error *err)
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
    cuda_look_around(self->root, &around);
    around.has_nodes |= known > 0;
    return cuda_verdict_driver(driver, code, &around, getenv("CUDA_VISIBLE_DEVICES"), out_remedy,
                               err);
}

/* Without NVML: numbers devices by bus address, if no device is hidden or split. */
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

/* If NVML is absent or not sufficient: takes the driver's devices, in its order. */
static tn_status find_by_driver(cuda *self, const cuda_listing *list, const char **out_remedy,
                                tn_error *err)
{
    const cuda_driver *driver = &self->driver;
    int count = 0;
    tn_status status = init_driver(self, list->count, &count, out_remedy, err);
    for (int i = 0; !status && i < count && i < CUDA_MOST; i++) {
        cuda_found found;
        cu_device handle = -1;
        cu_result code = driver->device_get(&handle, i);
        if (code)
            return cuda_driver_fail(driver, code, "cuDeviceGet", err);
        cuda_identify(driver, handle, &found);
        cuda_measure(driver, handle, &found);
        set_device(self, i, &found, true);
        self->devices[i].handle = handle;
        cuda_join(list, &self->devices[i]);
        self->count = i + 1;
    }
    if (!status && list->count == 0)
        number_by_bus(self);
    if (!status)
        atomic_store(&self->started, true);
    return status;
}

/* A device that the driver does not show keeps the handle -1; other devices are not affected. */
static void match(cuda *self, cuda_device *device, int count)
{
    const cuda_driver *driver = &self->driver;
    for (int i = 0; i < count; i++) {
        cu_device handle = -1;
        cuda_found has;
        if (driver->device_get(&handle, i) != CUDA_SUCCESS)
            continue;
        cuda_identify(driver, handle, &has);
        if (cuda_is_same(&device->found, &has))
            device->handle = handle;
    }
    if (device->handle >= 0 && !atomic_load(&device->described)) {
        cuda_measure(driver, device->handle, &device->found);
        atomic_store_explicit(&device->described, true, memory_order_release);
    }
}

tn_status cuda_find_handle(const cuda_device *device, tn_error *err)
{
    return device->handle >= 0
               ? TN_OK
               : tn_fail(
                     err, TN_UNAVAILABLE, 0, "cuDeviceGet",
                     "the driver does not show %s (%s), which was here when devices were sought; was "
                     "CUDA_VISIBLE_DEVICES changed since, or is it in MIG mode without an instance?",
                     device->found.name, device->found.uuid);
}

tn_status cuda_start(cuda *self, tn_error *err)
{
    tn_status status = TN_OK;
    tn_error why = {0};
    const char *remedy = "";
    int count = 0;
    if (atomic_load_explicit(&self->started, memory_order_acquire))
        return TN_OK;
    mtx_lock(&self->lock);
    if (!atomic_load(&self->started)) {
        status = init_driver(self, self->count, &count, &remedy, &why);
        if (status) /* a call has no separate place for the remedy */
            tn_fail(err, status, why.native_code, why.where, "%s; %s", why.message, remedy);
        for (int32_t i = 0; !status && i < self->count; i++)
            match(self, &self->devices[i], count);
        if (!status)
            atomic_store_explicit(&self->started, true, memory_order_release);
    }
    mtx_unlock(&self->lock);
    return status;
}

static bool is_described(const cuda_device *device)
{
    return atomic_load_explicit(&device->described, memory_order_acquire);
}

/* Starting the driver describes every device that it shows. */
tn_status cuda_describe(cuda *self, int32_t index, const cuda_found **out_found, tn_error *err)
{
    cuda_device *device = &self->devices[index];
    tn_status status = TN_OK;
    if (!is_described(device) && !atomic_load_explicit(&self->started, memory_order_acquire))
        (void)cuda_management(self);
    if (!is_described(device))
        status = cuda_start(self, err);
    if (!status && !is_described(device))
        status = cuda_find_handle(device, err);
    if (!status)
        *out_found = &device->found;
    return status;
}

/* Returns whether the program has started the driver already: only then can it count devices. */
static bool has_started(const cuda_driver *driver)
{
    int count = 0;
    return driver->device_count(&count) == CUDA_SUCCESS && count > 0;
}

/* The library's path is needed because its file name contains the version. */
static bool list_by_proc(const cuda *self, cuda_listing *out)
{
    const tn_host *host = self->host;
    char library[512];
    int32_t is_here = 0;
    return TN_HAS(host, tn_host, library_look) &&
           !host->library_look(host->self, "libcuda.so.1", library, sizeof library, &is_here,
                               NULL) &&
           is_here && cuda_proc_list(self->root, library, out);
}

/* Does everything except allocating and freeing `self`, which the caller does. */
static tn_status open_libraries(cuda *self, const char **out_remedy, tn_error *err)
{
    nvml_result code = NVML_SUCCESS;
    cuda_surroundings around;
    cuda_listing list = {.count = 0};
    tn_status status = cuda_driver_bind(self->host, &self->driver, &self->driver_version, err);
    if (status) {
        cuda_look_around(self->root, &around);
        *out_remedy = cuda_verdict_library(status, &around);
        return status;
    }
    if (has_started(&self->driver))
        return find_by_driver(self, &list, out_remedy, err);
    if (list_by_proc(self, &list) && find_by_list(self, &list))
        return TN_OK;
    cuda_open_management(self, &list, &code);
    atomic_store(&self->sought_nvml, true);
    if (list.count > 0 && find_by_list(self, &list))
        return TN_OK;
    if (code) {
        cuda_look_around(self->root, &around);
        status = cuda_verdict_nvml(code, &around, out_remedy, err);
    }
    return status ? status : find_by_driver(self, &list, out_remedy, err);
}

tn_status cuda_probe_at(const tn_host *host, const char *root, void **out_self,
                        int32_t *out_devices, tn_error *err)
{
    const char *remedy = "";
    cuda *self = host->alloc(host->self, sizeof *self, _Alignof(cuda));
    if (!self)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "cuda: probe", "no memory for the platform");
    memset(self, 0, sizeof *self);
    self->host = host;
    self->root = root;
    tn_status status = open_libraries(self, &remedy, err);
    if (status) {
        if (TN_HAS(host, tn_host, remedy_tell))
            host->remedy_tell(host->self, remedy);
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

tn_status cuda_probe(const tn_host *host, void **out_self, int32_t *out_devices, tn_error *err)
{
    return cuda_probe_at(host, "", out_self, out_devices, err);
}
