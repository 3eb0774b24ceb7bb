/* Mapping between DLPack's device numbers and devices. */
#include "tensor.h"

/* DLPack's device types: name for messages, and the platform whose devices they number. Host memory
 * belongs to cpu:0, however it was allocated. */
static const struct kind {
    const char *word;
    int32_t platform; /* TN_PLATFORM_..., 0: no platform in Tenon */
    bool is_host;     /* host memory, whatever the id */
} kinds[] = {
    [TN_DLPACK_CPU] = {"cpu", TN_PLATFORM_CPU, false},
    [TN_DLPACK_CUDA] = {"cuda", TN_PLATFORM_CUDA, false},
    [TN_DLPACK_CUDA_HOST] = {"cuda_host", TN_PLATFORM_CPU, true},
    [TN_DLPACK_OPENCL] = {"opencl", TN_PLATFORM_OPENCL, false},
    [TN_DLPACK_VULKAN] = {"vulkan", 0, false},
    [TN_DLPACK_METAL] = {"metal", TN_PLATFORM_MPS, false},
    [TN_DLPACK_VPI] = {"vpi", 0, false},
    [TN_DLPACK_ROCM] = {"rocm", TN_PLATFORM_ROCM, false},
    [TN_DLPACK_ROCM_HOST] = {"rocm_host", TN_PLATFORM_CPU, true},
    [TN_DLPACK_EXT_DEV] = {"ext_dev", TN_PLATFORM_OOT, false},
    [TN_DLPACK_CUDA_MANAGED] = {"cuda_managed", TN_PLATFORM_CPU, true},
    [TN_DLPACK_ONE_API] = {"one_api", TN_PLATFORM_XPU, false},
    [TN_DLPACK_WEBGPU] = {"webgpu", 0, false},
    [TN_DLPACK_HEXAGON] = {"hexagon", 0, false},
    [TN_DLPACK_MAIA] = {"maia", 0, false},
    [TN_DLPACK_TRN] = {"trn", 0, false},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* Whether the type numbers the platform's devices: only the platform of that name. Another platform
 * that claims to be of the kind CUDA is not the one DLPack means. */
static bool is_of(const tn_platform *platform, int32_t type)
{
    const tni_known *known = platform->known;
    return kinds[type].platform == known->kind && strcmp(platform->name, known->word) == 0;
}

static int32_t type_of(const tn_platform *platform)
{
    for (int32_t type = 0; type < KINDS; type++) {
        if (!kinds[type].is_host && is_of(platform, type))
            return type;
    }
    return TN_DLPACK_EXT_DEV;
}

void tni_dlpack_numbers(const tn_device *device, int32_t *out_type, int32_t *out_id)
{
    *out_type = type_of(device->platform);
    *out_id = *out_type == TN_DLPACK_EXT_DEV ? device->ordinal : device->index;
}

/* Finds a device by ordinal, if its type is numbered that way. */
static tn_device *find_ordinal(tni_platforms *set, int32_t ordinal)
{
    tni_mutex_lock(&set->lock);
    const tni_pointers *devices = &set->ever;
    tn_device *device =
        ordinal >= 0 && (size_t)ordinal < devices->count ? devices->items[ordinal] : NULL;
    tni_mutex_unlock(&set->lock);
    return device && type_of(device->platform) == TN_DLPACK_EXT_DEV ? device : NULL;
}

/* Finds a device by index, on the platform of that DLPack type. Of two devices with one index only
 * one is visible. */
static tn_device *find_index(tni_platforms *set, int32_t type, int32_t index)
{
    tn_device *found = NULL;
    tni_mutex_lock(&set->lock);
    for (size_t i = 0; i < set->devices.count && !found; i++) {
        tn_device *device = set->devices.items[i];
        if (device->index == index && tni_device_is_visible(device) &&
            is_of(device->platform, type))
            found = device;
    }
    tni_mutex_unlock(&set->lock);
    return found;
}

static tn_device *find(tni_platforms *set, int32_t type, int32_t id)
{
    if (type < 0 || type >= KINDS || !kinds[type].platform)
        return NULL;
    if (type == TN_DLPACK_EXT_DEV)
        return find_ordinal(set, id);
    return find_index(set, type, kinds[type].is_host ? 0 : id);
}

static tn_status not_here(tni_platforms *set, int32_t type, int32_t id, const char *where,
                          tn_error *err)
{
    const char *word = type >= 0 && type < KINDS ? kinds[type].word : NULL;
    char there[200] = "";
    size_t used = 0;
    tni_mutex_lock(&set->lock);
    for (size_t i = 0; i < set->devices.count && used < sizeof there; i++) {
        const tn_device *device = set->devices.items[i];
        if (tni_device_is_visible(device))
            used += (size_t)snprintf(there + used, sizeof there - used, "%s%s", used ? ", " : "",
                                     device->id);
    }
    tni_mutex_unlock(&set->lock);
    return tn_fail(err, TN_UNAVAILABLE, 0, where,
                   "no device matches DLPack's %s (device type %d), id %d; present: %s",
                   word ? word : "unknown kind", (int)type, (int)id, used ? there : "none");
}

/* Looks for new devices only if no known one matches. */
tn_status tni_dlpack_device(tni_platforms *set, int32_t type, int32_t id, const char *where,
                            tn_device **out, tn_error *err)
{
    tn_device *device = find(set, type, id);
    if (!device) {
        tn_status status = tni_platforms_sync(set, err);
        if (status)
            return status;
        device = find(set, type, id);
    }
    if (!device)
        return not_here(set, type, id, where, err);
    *out = device;
    return TN_OK;
}
