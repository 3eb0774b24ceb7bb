/* Device properties: identity and already known numbers at once, other numbers on request. While the driver has not
 * started, numbers come from NVML and the table of compute capabilities; after that, from the driver. */
#include "cuda.h"

/* Properties of every device of a compute capability, from NVIDIA's programming guide. */
typedef struct generation {
    int32_t major, minor;
    int32_t threads;      /* maximum resident threads per multiprocessor */
    int32_t shared;       /* KiB of shared memory per multiprocessor */
    int32_t shared_block; /* maximum KiB of shared memory per block */
    const char *suffix;   /* of the architecture's name, if it has one */
} generation;

static const generation generations[] = {
    {6, 0, 2048, 64, 48, ""},     {6, 1, 2048, 96, 48, ""},     {6, 2, 2048, 64, 48, ""},
    {7, 0, 2048, 96, 96, ""},     {7, 2, 2048, 96, 96, ""},     {7, 5, 1024, 64, 64, ""},
    {8, 0, 2048, 164, 163, ""},   {8, 6, 1536, 100, 99, ""},    {8, 7, 1536, 164, 163, ""},
    {8, 9, 1536, 100, 99, ""},    {9, 0, 2048, 228, 227, "a"},  {10, 0, 2048, 228, 227, "a"},
    {10, 3, 2048, 228, 227, "a"}, {11, 0, 1536, 228, 227, "a"}, {12, 0, 1536, 100, 99, "a"},
    {12, 1, 1536, 100, 99, "a"},
};

static const generation *generation_of(const cuda_found *found)
{
    for (size_t i = 0; i < sizeof generations / sizeof generations[0]; i++) {
        if (generations[i].major == found->major && generations[i].minor == found->minor)
            return &generations[i];
    }
    return NULL;
}

#define SET(field, number)                        \
    do {                                          \
        int64_t number_ = (number);               \
        if (number_ > 0) {                        \
            out->field = number_;                 \
            out->known |= TN_DEVICE_KNOWS(field); \
        }                                         \
    } while (0)

void cuda_architecture(const cuda_found *found, char *out, size_t size)
{
    const generation *g = generation_of(found);
    snprintf(out, size, "sm_%d%d%s", (int)found->major, (int)found->minor, g ? g->suffix : "");
}

static void set_generation(const cuda_found *found, tn_device_properties *out)
{
    const generation *g = generation_of(found);
    out->capability = (tn_capability){found->major, found->minor};
    out->triton_capable = found->major >= 7;
    out->known |= TN_DEVICE_KNOWS(capability) | TN_DEVICE_KNOWS(triton_capable);
    SET(warp_size, 32);
    SET(max_threads_per_block, 1024);
    if (!g)
        return;
    SET(max_threads_per_multi_processor, g->threads);
    SET(registers_per_multi_processor, 65536);
    SET(shared_memory_per_block, (int64_t)g->shared_block << 10);
    SET(shared_memory_per_multi_processor, (int64_t)g->shared << 10);
}

static int64_t read_attribute(const cuda *self, const cuda_device *device,
                              cu_device_attribute which)
{
    int value = 0;
    cu_result code = self->driver.device_attribute(&value, which, device->handle);
    return code == CUDA_SUCCESS ? value : 0;
}

/* The driver's values override the table's. */
static void set_from_driver(const cuda *self, const cuda_device *device, tn_device_properties *out)
{
#define ASK(which) read_attribute(self, device, CU_DEVICE_ATTRIBUTE_##which)
    SET(warp_size, ASK(WARP_SIZE));
    SET(max_threads_per_block, ASK(MAX_THREADS_PER_BLOCK));
    SET(max_threads_per_multi_processor, ASK(MAX_THREADS_PER_MULTIPROCESSOR));
    SET(registers_per_multi_processor, ASK(MAX_REGISTERS_PER_MULTIPROCESSOR));
    SET(shared_memory_per_block, ASK(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
    SET(shared_memory_per_multi_processor, ASK(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
    SET(l2_cache_bytes, ASK(L2_CACHE_SIZE));
    out->is_integrated = ASK(INTEGRATED) != 0;
    out->known |= TN_DEVICE_KNOWS(is_integrated);
#undef ASK
}

/* The first dtype is the default. */
static void list_dtypes(const cuda_found *found, tn_dtype *out)
{
    static const tn_dtype always[] = {TN_F16, TN_F32, TN_F64, TN_I8,  TN_I16,  TN_I32, TN_I64,
                                      TN_U8,  TN_U16, TN_U32, TN_U64, TN_BOOL, TN_C64, TN_C128};
    size_t count = 0;
    if (found->major >= 8)
        out[count++] = TN_BF16;
    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++)
        out[count++] = always[i];
    if (found->major > 8 || (found->major == 8 && found->minor >= 9)) {
        out[count++] = TN_F8_E4M3FN;
        out[count++] = TN_F8_E5M2;
    }
}

/* Returns the NUMA node next to the device; -1 if unknown. */
static int32_t node_of(const char *bus)
{
    char path[96];
    int node = -1;
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/numa_node", bus);
    FILE *file = bus[0] ? fopen(path, "r") : NULL;
    if (!file)
        return -1;
    char text[16] = "";
    if (fgets(text, sizeof text, file) && text[0] >= '0' && text[0] <= '9') {
        node = 0;
        for (const char *c = text; *c >= '0' && *c <= '9' && node < 10000; c++)
            node = node * 10 + (*c - '0');
    }
    fclose(file);
    return node;
}

static void set_physical(const cuda_found *found, tn_device_properties *out)
{
    if (found->physical < 0)
        return;
    out->physical_index = found->physical;
    out->known |= TN_DEVICE_KNOWS(physical_index);
}

static void set_numbers(const cuda *self, const cuda_device *device, tn_device_properties *out)
{
    const cuda_found *found = &device->found;
    cuda_architecture(found, out->architecture, sizeof out->architecture);
    set_generation(found, out);
    SET(memory_bytes, (int64_t)found->memory_bytes);
    SET(multi_processor_count, found->multi_processors);
    SET(clock_khz, found->clock_khz);
    SET(memory_bandwidth, found->bandwidth);
    if (atomic_load_explicit(&self->started, memory_order_acquire))
        set_from_driver(self, device, out);
    list_dtypes(found, out->dtypes);
}

tn_status cuda_device_properties(void *any, int32_t index, tn_device_properties *out, tn_error *err)
{
    cuda *self = any;
    const cuda_device *device = &self->devices[index];
    const cuda_found *found = &device->found;
    int32_t node = node_of(found->bus);
    (void)err;
    tn_text_fit(out->name, sizeof out->name, found->name);
    tn_text_fit(out->uuid, sizeof out->uuid, found->uuid);
    tn_text_fit(out->bus, sizeof out->bus, found->is_split ? "" : found->bus);
    SET(pinned_memory, 1);
    set_physical(found, out);
    if (node >= 0) {
        out->numa_node = node;
        out->known |= TN_DEVICE_KNOWS(numa_node);
    }
    if (atomic_load_explicit(&device->described, memory_order_acquire))
        set_numbers(self, device, out);
    return TN_OK;
}

/* A started driver reports the rates itself; the machine-wide index is known only to NVML and the kernel module. */
tn_status cuda_device_numbers(void *any, int32_t index, tn_device_properties *out, tn_error *err)
{
    const uint64_t rates = TN_DEVICE_KNOWS(clock_khz) | TN_DEVICE_KNOWS(memory_bandwidth);
    const uint64_t wanted = rates | TN_DEVICE_KNOWS(physical_index);
    cuda *self = any;
    int64_t khz = 0, bandwidth = 0;
    const cuda_found *found = NULL;
    tn_status status = cuda_describe(self, index, &found, err);
    if (status)
        return status;
    set_numbers(self, &self->devices[index], out);
    const cuda_nvml *nvml = (out->known & wanted) == wanted ? NULL : cuda_management(self);
    if (!nvml)
        return TN_OK;
    set_physical(found, out);
    if (!found->nvml || (out->known & rates) == rates)
        return TN_OK;
    cuda_nvml_rates(nvml, found->nvml, &khz, &bandwidth);
    SET(clock_khz, khz);
    SET(memory_bandwidth, bandwidth);
    return TN_OK;
}

static bool is_nvlink(cuda *self, const cuda_device *from, const cuda_device *to)
{
    unsigned how = 1;
    const cuda_nvml *nvml = cuda_management(self);
    return nvml && nvml->link && from->found.nvml && to->found.nvml &&
           nvml->link(from->found.nvml, to->found.nvml, NVML_P2P_CAPS_INDEX_NVLINK, &how) ==
               NVML_SUCCESS &&
           how == NVML_P2P_STATUS_OK;
}

tn_status cuda_device_link(void *any, int32_t from, int32_t to, int32_t *out_link, tn_error *err)
{
    cuda *self = any;
    const cuda_device *a = &self->devices[from], *b = &self->devices[to];
    int reaches = 0;
    tn_status status = cuda_start(self, err);
    if (status)
        return status;
    cu_result code = self->driver.device_reaches(&reaches, a->handle, b->handle);
    if (code)
        return cuda_driver_fail(&self->driver, code, "cuDeviceCanAccessPeer", err);
    *out_link = !reaches ? TN_LINK_STAGED : is_nvlink(self, a, b) ? TN_LINK_FABRIC : TN_LINK_BUS;
    return TN_OK;
}
