/* Queries about one platform: names, predicates, lists. */
#include "platforms.h"

#include "tenon/module/communicator.h"
#include "tenon/module/language.h"

const tn_platform *tn_platform_unspecified(void)
{
    static const tn_platform unspecified = {
        .name = "unspecified",
        .known = &tni_known_unspecified,
        .no_language = "no platform is selected: call tn_platform_current or tn_platform_get",
        .no_communicator = "no platform is selected: call tn_platform_current or tn_platform_get",
    };
    return &unspecified;
}

const tn_platform_row *tni_platform_row_of(const tn_platform *platform)
{
    const tni_offer *offer = atomic_load_explicit(&platform->served, memory_order_acquire);
    return offer ? offer->platform->row : NULL;
}

bool tni_platform_is_ready(const tn_platform *platform)
{
    const tni_offer *offer = atomic_load_explicit(&platform->served, memory_order_acquire);
    return offer && tni_offer_is_ready(offer);
}

int32_t tn_platform_device_count(const tn_platform *platform)
{
    return platform ? atomic_load_explicit(&platform->devices, memory_order_acquire) : 0;
}

const tn_evidence_row *const *tni_platform_evidence_rows(const tn_platform *platform)
{
    const tn_platform_row *row = tni_platform_row_of(platform);
    return row && row->evidence ? row->evidence : platform->known->evidence;
}

static const char *word(const char *of_row, const char *of_kind, const char *name)
{
    return of_row ? of_row : of_kind ? of_kind : name;
}

const char *tn_platform_name(const tn_platform *platform)
{
    return tni_platform_or_unspecified(platform)->name;
}

const char *tn_platform_device_name(const tn_platform *platform)
{
    const tn_platform *p = tni_platform_or_unspecified(platform);
    const tn_platform_row *row = tni_platform_row_of(p);
    return word(row ? row->device_name : NULL, p->known->device_name, p->name);
}

const char *tn_platform_device_type(const tn_platform *platform)
{
    const tn_platform *p = tni_platform_or_unspecified(platform);
    const tn_platform_row *row = tni_platform_row_of(p);
    return word(row ? row->device_type : NULL, p->known->device_type, p->name);
}

const char *tn_platform_dispatch_key(const tn_platform *platform)
{
    const tn_platform *p = tni_platform_or_unspecified(platform);
    const tn_platform_row *row = tni_platform_row_of(p);
    return word(row ? row->dispatch_key : NULL, p->known->dispatch_key, p->name);
}

const char *tn_platform_visible_variable(const tn_platform *platform)
{
    const tn_platform *p = tni_platform_or_unspecified(platform);
    const tn_platform_row *row = tni_platform_row_of(p);
    return word(row ? row->visible_variable : NULL, p->known->visible_variable, "");
}

int32_t tn_platform_kind(const tn_platform *platform)
{
    return tni_platform_or_unspecified(platform)->known->kind;
}

const char *tn_platform_kind_name(int32_t kind)
{
    return kind >= 0 && kind < TN_PLATFORM_KIND_COUNT ? tni_known_get(kind)->word : "unknown";
}

#define PREDICATE(name, wanted)                                \
    int32_t tn_platform_is_##name(const tn_platform *platform) \
    {                                                          \
        return tn_platform_kind(platform) == (wanted);         \
    }
PREDICATE(cpu, TN_PLATFORM_CPU)
PREDICATE(cuda, TN_PLATFORM_CUDA)
PREDICATE(rocm, TN_PLATFORM_ROCM)
PREDICATE(tpu, TN_PLATFORM_TPU)
PREDICATE(mps, TN_PLATFORM_MPS)
PREDICATE(xpu, TN_PLATFORM_XPU)
PREDICATE(npu, TN_PLATFORM_NPU)
PREDICATE(out_of_tree, TN_PLATFORM_OOT)

int32_t tn_platform_is_cuda_alike(const tn_platform *platform)
{
    return tn_platform_is_cuda(platform) || tn_platform_is_rocm(platform);
}

/* Common first fields of the rows of languages and communicators: size, name, platform. */
typedef struct serving_row {
    size_t struct_size;
    const char *name;
    const char *platform;
} serving_row;
TN_STATIC_ASSERT(offsetof(tn_language_row, platform) == offsetof(serving_row, platform) &&
                     offsetof(tn_communicator_row, platform) == offsetof(serving_row, platform),
                 "the rows do not begin alike");

static const char *serving_in(const void *list, const char *platform)
{
    for (int32_t i = 0, count = tni_rows_count(list); i < count; i++) {
        const serving_row *row;
        memcpy(&row, (const char *)list + (size_t)i * sizeof row, sizeof row);
        if (strcmp(row->platform, platform) == 0)
            return row->name;
    }
    return NULL;
}

/* The first language, or communicator, that any module offers for the platform; "" if none does. */
static const char *find_serving(const tn_platform *platform, bool language)
{
    const tni_record *record;
    const char *name = NULL;
    for (size_t i = 0; platform->set && !name; i++) {
        record = tni_registry_record(platform->set->registry, i);
        if (!record)
            break;
        if (record->table && !atomic_load(&record->withdrawn))
            name = serving_in(language ? (const void *)record->table->languages
                                       : (const void *)record->table->communicators,
                              platform->name);
    }
    return name ? name : "";
}

const char *tn_platform_simple_compile_backend(const tn_platform *platform, const char **out_reason)
{
    const tn_platform *p = tni_platform_or_unspecified(platform);
    const char *name = find_serving(p, true);
    if (out_reason)
        *out_reason = name[0] ? "" : p->no_language;
    return name;
}

const char *tn_platform_communicator(const tn_platform *platform, const char **out_reason)
{
    const tn_platform *p = tni_platform_or_unspecified(platform);
    const char *name = find_serving(p, false);
    if (out_reason)
        *out_reason = name[0] ? "" : p->no_communicator;
    return name;
}

static const char *const everything[] = {NULL};

const char *const *tn_platform_supported_quantization(const tn_platform *platform)
{
    const tn_platform_row *row = tni_platform_row_of(tni_platform_or_unspecified(platform));
    return row && row->quantizations ? row->quantizations : everything;
}

const char *const *tn_platform_supported_model_arch(const tn_platform *platform)
{
    const tn_platform_row *row = tni_platform_row_of(tni_platform_or_unspecified(platform));
    return row && row->model_archs ? row->model_archs : everything;
}

static const tn_setting inference[] = {TN_SETTING_INFERENCE, -1};
const tni_setting_reader tni_platform_reader = {"platform.inference_mode", inference,
                                                TNI_READS_ALWAYS};

int32_t tn_platform_inference_mode(const tn_platform *platform)
{
    (void)platform;
    return tn_get_inference(NULL);
}
