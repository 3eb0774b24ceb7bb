/* The properties that a device reports. */
#include "block.h"
#include "suite.h"

static bool is_text(trial *t, const char *text, size_t size, const char *what)
{
    size_t length = 0;
    while (length < size && text[length])
        length++;
    if (length == size)
        return trial_fail(t, "properties: %s is not terminated", what);
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7F)
            return trial_fail(t, "properties: %s has the control character 0x%02x", what,
                              (unsigned char)text[i]);
    }
    return true;
}

/* Known numbers make sense; unknown ones are 0. */
static bool is_number(trial *t, bool known, int64_t value, int64_t least, const char *what)
{
    if (!known && value != 0)
        return trial_fail(t, "properties: %s is unknown: expected 0, got %lld", what,
                          (long long)value);
    return !known || value >= least ||
           trial_fail(t, "properties: %s is %lld, expected at least %lld", what, (long long)value,
                      (long long)least);
}

/* Returns the smallest valid value of a known number. */
static int64_t least_of(uint64_t bit)
{
    const uint64_t may_be_zero = TN_DEVICE_KNOWS(numa_node) | TN_DEVICE_KNOWS(physical_index) |
                                 TN_DEVICE_KNOWS(is_integrated) | TN_DEVICE_KNOWS(pinned_memory) |
                                 TN_DEVICE_KNOWS(triton_capable) |
                                 TN_DEVICE_KNOWS(shared_memory_per_block) |
                                 TN_DEVICE_KNOWS(shared_memory_per_multi_processor);
    return may_be_zero & bit ? 0 : 1;
}

/* Impossible values that a platform reports do not reach the properties; they appear in the
 * evidence. */
static bool reports_faults(trial *t)
{
    static const char of[] = "properties of ";
    tn_platform_list *list = NULL;
    const tn_platform_evidence *e;
    bool held = DO(t, tn_platform_list_create(&list, &t->err));
    for (size_t i = 0; i < tn_platform_list_count(list); i++) {
        if (tn_platform_list_get(list, i)->platform != t->platform)
            continue;
        for (size_t j = 0; held && (e = tn_platform_list_evidence(list, i, j)) != NULL; j++) {
            if (strncmp(e->what, of, sizeof of - 1) == 0)
                held = trial_fail(t, "%s %s", e->what + sizeof of - 1, e->found);
        }
    }
    tn_platform_list_release(list);
    return held;
}

static bool properties(trial *t)
{
    const tn_device_properties *p = tn_device_properties_get(t->device);
    if (!p)
        return trial_fail(t, "tn_device_properties_get gave NULL");
    if (!reports_faults(t))
        return false;
    if (!EQUAL(t, p->struct_size, sizeof *p) || !SAME(t, tn_device_properties_get(t->device), p))
        return false;
#define NUMBER(field, word, unit, meaning)                         \
    if (!is_number(t, p->known & TN_DEVICE_KNOWS(field), p->field, \
                   least_of(TN_DEVICE_KNOWS(field)), word))        \
        return false;
    TN_DEVICE_NUMBER_LIST(NUMBER)
#undef NUMBER
    return is_text(t, p->name, sizeof p->name, "name") &&
           is_text(t, p->uuid, sizeof p->uuid, "uuid") &&
           is_text(t, p->bus, sizeof p->bus, "bus") &&
           is_text(t, p->architecture, sizeof p->architecture, "architecture") &&
           HOLDS(t, p->is_integrated == 0 || p->is_integrated == 1) &&
           HOLDS(t, p->pinned_memory == 0 || p->pinned_memory == 1) &&
           HOLDS(t, p->triton_capable == 0 || p->triton_capable == 1);
}

static bool unknown_capability(trial *t)
{
    tn_capability none = {77, 78};
    return REFUSES(t, TN_UNSUPPORTED, tn_device_capability(t->device, &none, &t->err)) &&
           EQUAL(t, none.major, 77) && EQUAL(t, none.minor, 78) &&
           EQUAL(t, tn_device_has_capability(t->device, (tn_capability){0, 0}), 0) &&
           EQUAL(t, tn_device_is_capability_family(t->device, 0), 0);
}

static bool capability(trial *t)
{
    tn_capability has = {0};
    const tn_device_properties *p = tn_device_properties_get(t->device);
    if (!(p->known & TN_DEVICE_KNOWS(capability)))
        return unknown_capability(t);
    return DO(t, tn_device_capability(t->device, &has, &t->err)) && HOLDS(t, has.major >= 0) &&
           HOLDS(t, has.minor >= 0) && EQUAL(t, has.major, p->capability.major) &&
           EQUAL(t, has.minor, p->capability.minor) &&
           EQUAL(t, tn_device_has_capability(t->device, has), 1) &&
           EQUAL(t, tn_device_is_capability(t->device, has), 1) &&
           EQUAL(t, tn_device_is_capability_family(t->device, tn_capability_to_int(has)), 1) &&
           EQUAL(t, tn_device_has_capability(t->device, (tn_capability){has.major, has.minor + 1}),
                 0) &&
           EQUAL(t, tn_device_has_capability(t->device, (tn_capability){has.major + 1, 0}), 0);
}

static bool is_listed(const tn_dtype *list, tn_dtype dtype)
{
    for (; *list; list++) {
        if (*list == dtype)
            return true;
    }
    return false;
}

static bool dtypes(trial *t)
{
#define DTYPE(name, word, code, bits) name,
    static const tn_dtype all[] = {TN_DTYPE_LIST(DTYPE) 0};
#undef DTYPE
    const tn_dtype *list = tn_device_supported_dtypes(t->device);
    for (size_t i = 0; list[i]; i++) {
        if (!is_listed(all, list[i]))
            return trial_fail(t, "dtypes: %#x is not a dtype", (unsigned)list[i]);
        if (is_listed(list + i + 1, list[i]))
            return trial_fail(t, "dtypes: duplicate %#x", (unsigned)list[i]);
    }
    for (size_t i = 0; all[i]; i++) {
        bool held =
            is_listed(list, all[i])
                ? DO(t, tn_device_verify_dtype(t->device, all[i], &t->err))
                : REFUSES(t, TN_UNSUPPORTED, tn_device_verify_dtype(t->device, all[i], &t->err));
        if (!held)
            return false;
    }
    return REFUSES(t, TN_INVALID_ARGUMENT, tn_device_verify_dtype(t->device, 0xFF, &t->err));
}

static bool fp8(trial *t)
{
    const tn_dtype *list = tn_device_supported_dtypes(t->device);
    tn_dtype first = tn_device_fp8_dtype(t->device);
    return EQUAL(t, tn_device_supports_fp8(t->device), first != 0) &&
           HOLDS(t, first == 0 || is_listed(list, first));
}

static bool bf16(trial *t)
{
    const tn_dtype *list = tn_device_supported_dtypes(t->device);
    bool real = is_listed(list, TN_BF16);
    return EQUAL(t, tn_device_supports_bf16(t->device, 0), real) &&
           EQUAL(t, tn_device_supports_bf16(t->device, 1), real || is_listed(list, TN_F32)) &&
           EQUAL(t, tn_device_supports_bf16(NULL, 1), 0);
}

static bool triton(trial *t)
{
    const tn_device_properties *p = tn_device_properties_get(t->device);
    return EQUAL(t, tn_device_is_triton_capable(t->device),
                 (p->known & TN_DEVICE_KNOWS(triton_capable)) && p->triton_capable) &&
           EQUAL(t, tn_device_is_triton_capable(NULL), 0);
}

static bool is_fact(trial *t, const tn_fact *fact, const char *what)
{
    if (!fact->origin[0])
        return trial_fail(t, "memory: %s does not state %s", what,
                          fact->known ? "its origin" : "why it is unknown");
    return (fact->known ? fact->value >= 0 : fact->value == 0) ||
           trial_fail(t, "memory: %s is %lld", what, (long long)fact->value);
}

static bool read_memory(trial *t, tn_device_memory *out)
{
    *out = (tn_device_memory){.struct_size = sizeof *out};
    if (!DO(t, tn_device_memory_get(t->device, out, &t->err)) ||
        !is_fact(t, &out->total, "total") || !is_fact(t, &out->available, "available") ||
        !is_fact(t, &out->in_use, "in_use"))
        return false;
    if (out->total.known && out->available.known && out->available.value > out->total.value)
        return trial_fail(t, "memory: %lld of %lld bytes are available",
                          (long long)out->available.value, (long long)out->total.value);
    return true;
}

/* Memory in use is at least what this case holds, and available memory at most the total less that.
 * A plain decrease of available memory is not required: other processes may free some meanwhile. */
static bool memory_state(trial *t)
{
    enum { BYTES = 8 << 20 };
    tn_device_memory before, after;
    block held;
    if (!read_memory(t, &before) || !block_make(t, t->device, BYTES, &held) ||
        !read_memory(t, &after))
        return false;
    if (after.in_use.known && after.in_use.value < BYTES)
        return trial_fail(t, "memory: in_use is %lld while %d bytes are allocated",
                          (long long)after.in_use.value, (int)BYTES);
    if (after.total.known && after.available.known && after.in_use.known &&
        after.available.value > after.total.value - BYTES)
        return trial_fail(t, "memory: %lld of %lld bytes are available while %d are allocated",
                          (long long)after.available.value, (long long)after.total.value,
                          (int)BYTES);
    return true;
}

static bool memory_refusals(trial *t)
{
    tn_device_memory small = {.struct_size = sizeof(size_t)};
    return REFUSES(t, TN_INVALID_ARGUMENT, tn_device_memory_get(t->device, &small, &t->err)) &&
           REFUSES(t, TN_INVALID_ARGUMENT, tn_device_memory_get(t->device, NULL, &t->err));
}

static bool link_of_two(trial *t)
{
    int32_t there = 77;
    return DO(t, tn_device_link(t->device, t->second, &there, &t->err)) &&
           HOLDS(t, there >= TN_LINK_STAGED && there <= TN_LINK_FABRIC) &&
           REFUSES(t, TN_INVALID_ARGUMENT, tn_device_link(t->device, t->device, &there, &t->err));
}

const suite_case cases_properties[] = {
    {"properties", "properties are plausible; texts are terminated, unknown numbers are 0",
     properties, 0},
    {"capability", "capability is an ordered pair, or unknown with a reason", capability, 0},
    {"dtypes", "verify accepts exactly the listed dtypes", dtypes, 0},
    {"dtypes.fp8", "8-bit float support follows from the listed dtypes", fp8, 0},
    {"dtypes.bf16", "bf16 support follows from the listed dtypes, emulated if f32 is listed", bf16,
     0},
    {"properties.triton", "Triton support is reported, and 0 if unknown", triton, 0},
    {"device.memory", "available and in_use agree with the allocated memory", memory_state, 0},
    {"device.memory.refusals", "a struct that is too small is an error", memory_refusals, 0},
    {"device.link", "the link between two devices is reported", link_of_two, NEED_TWO_DEVICES},
    {0},
};
