#include "world.h"

_Atomic int world_probes;
_Atomic int world_describes;
const int32_t *world_numbers;

static tn_status take(void *self, int32_t device, uint64_t bytes, void **out, tn_error *err)
{
    (void)self, (void)device, (void)bytes, (void)out;
    return tn_fail(err, TN_UNSUPPORTED, 0, "world", "no memory here");
}

static void give(void *self, int32_t device, void *memory)
{
    (void)self, (void)device, (void)memory;
}

static tn_status copy(void *self, const tn_copy_job *job, tn_error *err)
{
    (void)self, (void)job, (void)err;
    return TN_OK;
}

static tn_status probe_one(const tn_host *host, void **out_self, int32_t *out, tn_error *err)
{
    (void)host, (void)out_self, (void)err;
    world_probes++;
    *out = 1;
    return TN_OK;
}

static tn_status probe_three(const tn_host *host, void **out_self, int32_t *out, tn_error *err)
{
    (void)host, (void)out_self, (void)err;
    world_probes++;
    *out = 3;
    return TN_OK;
}

static tn_status probe_none(const tn_host *host, void **out_self, int32_t *out, tn_error *err)
{
    (void)host, (void)out_self, (void)err;
    *out = 0;
    return TN_OK;
}

static tn_status probe_fault(const tn_host *host, void **out_self, int32_t *out, tn_error *err)
{
    (void)host, (void)out_self, (void)out;
    return tn_fail(err, TN_DEVICE_LOST, 7, "probe", "the board does not answer");
}

static tn_status probe_away(const tn_host *host, void **out_self, int32_t *out, tn_error *err)
{
    (void)host, (void)out_self, (void)out;
    return tn_fail(err, TN_UNAVAILABLE, 0, "probe", "libcuda.so.1 was not found");
}

static tn_status acme_properties(void *self, int32_t device, tn_device_properties *out,
                                 tn_error *err)
{
    (void)self;
    if (device == 2)
        return tn_fail(err, TN_DEVICE_LOST, 0, "acme", "board 2 does not answer");
    snprintf(out->name, sizeof out->name, "Acme Board %d", (int)device);
    snprintf(out->uuid, sizeof out->uuid, "ACME-0000000%d", (int)device);
    snprintf(out->bus, sizeof out->bus, "0000:0%d:00.0", (int)device);
    out->known = TN_DEVICE_KNOWS(capability) | TN_DEVICE_KNOWS(memory_bytes) |
                 TN_DEVICE_KNOWS(physical_index);
    out->capability = (tn_capability){3, device == 0 ? 5 : 12};
    out->memory_bytes = INT64_C(1) << 34;
    out->physical_index = device * 2;
    out->dtypes[0] = TN_BF16;
    out->dtypes[1] = TN_F32;
    out->dtypes[2] = device == 0 ? TN_F8_E4M3FNUZ : 0;
    return TN_OK;
}

static tn_status acme_memory(void *self, int32_t device, tn_device_memory *out, tn_error *err)
{
    (void)self;
    if (device == 2)
        return tn_fail(err, TN_DEVICE_LOST, 0, "acme", "board 2 does not answer");
    out->total = tn_fact_of(INT64_C(1) << 34, "acme's driver");
    out->available = tn_fact_unknown("acme does not count");
    memset(out->in_use.origin, 'x', sizeof out->in_use.origin); /* text without an end */
    return TN_OK;
}

static tn_status acme_link(void *self, int32_t from, int32_t to, int32_t *out, tn_error *err)
{
    (void)self, (void)err;
    *out = from + to == 1 ? TN_LINK_FABRIC : TN_LINK_BUS;
    return TN_OK;
}

static tn_status stand_describe(void *self, const tn_description *description, int32_t *out,
                                tn_error *err)
{
    (void)self;
    if (description->entry_count > 0 && strcmp(description->entries[0].value, "refuse") == 0)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "stand", "%s: %s is not understood",
                       description->entries[0].origin, description->entries[0].key);
    if (out)
        *out = world_numbers ? world_numbers[world_describes] : world_describes;
    world_describes += out != NULL;
    return TN_OK;
}

static tn_status version(const tn_host *host, uint32_t *major, uint32_t *minor, tn_error *err)
{
    (void)host, (void)err;
    *major = *minor = 1;
    return TN_OK;
}

#define MUST .memory_alloc = take, .memory_free = give, .copy = copy

static const tn_platform_row cpu_row = {.struct_size = sizeof cpu_row,
                                        .name = "cpu",
                                        .kind = TN_PLATFORM_CPU,
                                        .flags = TN_PLATFORM_FORK_SAFE,
                                        .probe = probe_one,
                                        MUST};
static const tn_platform_row acme_row = {
    .struct_size = sizeof acme_row,
    .name = "acme",
    .kind = TN_PLATFORM_OOT,
    .flags = TN_PLATFORM_ASYNC_OUTPUT,
    .async_output_reason = "boards answer while they work, once a graph is recorded",
    .device_name = "Acme",
    .visible_variable = "ACME_VISIBLE",
    .quantizations = (const char *const[]){"int8", "fp8", "awq", NULL},
    .model_archs = (const char *const[]){"LlamaForCausalLM", NULL},
    .probe = probe_three,
    .device_properties = acme_properties,
    .device_memory = acme_memory,
    .device_link = acme_link,
    MUST};
static const tn_platform_row bolt_row = {.struct_size = sizeof bolt_row,
                                         .name = "bolt",
                                         .kind = TN_PLATFORM_OOT,
                                         .probe = probe_one,
                                         MUST};
static const tn_platform_row broken_row = {.struct_size = sizeof broken_row,
                                           .name = "rocm",
                                           .kind = TN_PLATFORM_ROCM,
                                           .remedy = "turn the board on",
                                           .probe = probe_fault,
                                           MUST};
static const tn_platform_row away_row = {.struct_size = sizeof away_row,
                                         .name = "cuda",
                                         .kind = TN_PLATFORM_CUDA,
                                         .probe = probe_away,
                                         MUST};
static const tn_platform_row stand_row = {.struct_size = sizeof stand_row,
                                          .name = "stand",
                                          .kind = TN_PLATFORM_OOT,
                                          .flags = TN_PLATFORM_STAND_IN,
                                          .probe = probe_none,
                                          .describe = stand_describe,
                                          MUST};
static const tn_language_row language = {
    .struct_size = sizeof language, .name = "acme-c", .platform = "acme", .version = version};
static const tn_communicator_row communicator = {
    .struct_size = sizeof communicator, .name = "acmecl", .platform = "acme", .version = version};

#define MODULE(word, ...)                                                                    \
    static const tn_module word##_module = {                                                 \
        .struct_size = sizeof(tn_module),                                                    \
        TN_MODULE_ABI,                                                                       \
        .name = #word,                                                                       \
        .version = "1",                                                                      \
        .platforms = (const tn_platform_row *const[]){&word##_row, NULL},                    \
        __VA_ARGS__};                                                                        \
    static tn_status word##_entry(const tn_host *host, const tn_module **out, tn_error *err) \
    {                                                                                        \
        (void)host, (void)err;                                                               \
        *out = &word##_module;                                                               \
        return TN_OK;                                                                        \
    }
MODULE(cpu, .libraries = NULL)
MODULE(acme, .languages = (const tn_language_row *const[]){&language, NULL},
       .communicators = (const tn_communicator_row *const[]){&communicator, NULL})
MODULE(bolt, .libraries = NULL)
MODULE(broken, .libraries = NULL)
MODULE(away, .libraries = NULL)
MODULE(stand, .libraries = NULL)

static const tni_builtin all[] = {
    {"cpu", cpu_entry},       {"acme", acme_entry}, {"bolt", bolt_entry},
    {"broken", broken_entry}, {"away", away_entry}, {"stand", stand_entry},
};

/* The registry keeps a pointer to its built-ins: each choice of them has a list that stays. */
const tni_builtin *world_builtins(unsigned modules)
{
    static tni_builtin lists[WORLD_ALL + 1][7];
    size_t count = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (modules & 1u << i)
            lists[modules][count++] = all[i];
    }
    return lists[modules];
}

void world_make(world *out, unsigned modules, const char *root)
{
    const tni_registry_params params = {.builtins = world_builtins(modules)};
    tn_error err = {0};
    if (tni_registry_create(&params, &out->registry, &err) ||
        tni_platforms_create(out->registry, root, &out->set, &err))
        fail_msg("%s", err.message);
}

void world_end(world *w)
{
    tni_platforms_destroy(w->set);
    tni_registry_destroy(w->registry);
}

const tn_platform *world_platform(world *w, const char *name)
{
    tn_platform *platform = NULL;
    tn_error err = {0};
    if (tni_platforms_sync(w->set, &err) || tni_platforms_find(w->set, name, &platform, &err))
        fail_msg("%s", err.message);
    return platform;
}

tn_device *world_device(world *w, const char *name)
{
    tn_device *device = NULL;
    tn_error err = {0};
    if (tni_devices_get(w->set, name, &device, &err))
        fail_msg("%s", err.message);
    return device;
}
