/* The properties of one device, and what is derived from them. */
#include "base/alloc.h"
#include "base/log.h"
#include "base/words.h"
#include "device/description_values.h"
#include "device/platform/platforms.h"
#include "os/clock.h"
#include "tenon/dtype.h"

const tn_platform *tn_device_platform(const tn_device *device)
{
    return device ? device->platform : tn_platform_unspecified();
}

int32_t tn_device_index(const tn_device *device)
{
    return device ? device->index : -1;
}

const char *tn_device_id(const tn_device *device)
{
    return device ? device->id : "";
}

const char *tn_device_name(const tn_device *device)
{
    return device ? device->properties.name : "";
}

const char *tn_device_uuid(const tn_device *device)
{
    return device ? device->properties.uuid : "";
}

const char *tn_device_bus(const tn_device *device)
{
    return device ? device->properties.bus : "";
}

const char *tn_device_origin(const tn_device *device)
{
    return device ? device->origin : "";
}

int32_t tn_device_plans_only(const tn_device *device)
{
    return device && device->plans_only;
}

tn_generator *tn_device_generator(const tn_device *device)
{
    return device ? device->generator : NULL;
}

/* Makes valid text of whatever a module's function wrote. */
static void tidy_text(char *text, size_t size)
{
    text[size - 1] = '\0';
    tni_words_clean(text);
}

typedef struct faults {
    char text[144];
} faults;

TN_PRINTF(2, 3)
static void note_fault(faults *to, const char *format, ...)
{
    char one[64];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(one, sizeof one, format, arguments);
    va_end(arguments);
    size_t used = strlen(to->text);
    snprintf(to->text + used, sizeof to->text - used, "%s%s", used ? ", " : "", one);
}

/* A number must be from 0 to `most`; otherwise it becomes unknown, and 0. */
static void check_number(tn_device_properties *p, uint64_t bit, const char *word, int64_t *number,
                         int64_t most, faults *out)
{
    if ((p->known & bit) && (*number < 0 || *number > most)) {
        note_fault(out, "%s %lld", word, (long long)*number);
        p->known &= ~bit;
    }
    if (!(p->known & bit))
        *number = 0;
}

static void check_capability(tn_device_properties *p, faults *out)
{
    const uint64_t bit = TN_DEVICE_KNOWS(capability);
    tn_capability *c = &p->capability;
    if ((p->known & bit) && (c->major < 0 || c->minor < 0)) {
        note_fault(out, "capability %d.%d", (int)c->major, (int)c->minor);
        p->known &= ~bit;
    }
    if (!(p->known & bit))
        *c = (tn_capability){0, 0};
}

static void check_dtypes(tn_dtype dtypes[TN_DEVICE_DTYPES_MAX], faults *out)
{
    size_t kept = 0;
    dtypes[TN_DEVICE_DTYPES_MAX - 1] = 0;
    for (size_t i = 0; dtypes[i]; i++) {
        if (tn_dtype_name(dtypes[i]))
            dtypes[kept++] = dtypes[i];
        else
            note_fault(out, "dtype %#x", (unsigned)dtypes[i]);
    }
    dtypes[kept] = 0;
}

/* Makes invalid values unknown. */
static void make_sound(tn_device_properties *p, faults *out)
{
    const uint64_t all =
        TN_DEVICE_KNOWS(capability) | ((UINT64_C(1) << TN_DEVICE_NUMBER_COUNT) - 1);
    if (p->known & ~all)
        note_fault(out, "known %#llx", (unsigned long long)(p->known & ~all));
    p->known &= all;
    p->struct_size = sizeof *p;
    tidy_text(p->name, sizeof p->name);
    tidy_text(p->uuid, sizeof p->uuid);
    tidy_text(p->bus, sizeof p->bus);
    tidy_text(p->architecture, sizeof p->architecture);
#define NUMBER(field, word, unit, meaning)                   \
    check_number(p, TN_DEVICE_KNOWS(field), word, &p->field, \
                 TNI_NUMBER_IS_SWITCH(field) ? 1 : INT64_MAX, out);
    TN_DEVICE_NUMBER_LIST(NUMBER)
#undef NUMBER
    check_capability(p, out);
    check_dtypes(p->dtypes, out);
}

static const char untold[] = "does not report its properties: ";

void tni_device_query(tn_device *device)
{
    const tni_platform *of = device->offer->platform;
    tn_device_properties told = {.struct_size = sizeof told};
    tn_error said = {0};
    faults wrong = {""};
    tn_status status = TN_OK;
    if (!of->row->device_properties)
        return;
    if (tni_offer_is_of_this_process(device->offer))
        status = of->row->device_properties(of->self, device->index, &told, &said);
    else
        status =
            tn_fail(&said, TN_UNAVAILABLE, 0, "", "it was opened before this process was forked");
    if (status) {
        tidy_text(said.message, sizeof said.message);
        snprintf(device->fault, sizeof device->fault, "%s%.140s", untold, tni_words_of(&said));
    } else {
        make_sound(&told, &wrong);
        device->properties = told;
        if (wrong.text[0])
            snprintf(device->fault, sizeof device->fault,
                     "impossible values, treated as unknown: %s", wrong.text);
    }
    if (device->fault[0])
        tni_log(TN_LOG_WARNING, "%s %s", device->id, device->fault);
}

const tn_device_properties *tni_device_known(const tn_device *device)
{
    const tn_device_properties *whole = atomic_load_explicit(&device->whole, memory_order_acquire);
    return whole ? whole : &device->properties;
}

/* Adds the properties that the platform reports late to `to`, which has those known so far. */
static tn_status add_late(const tn_device *device, tn_device_properties *to, tn_error *said)
{
    const tni_platform *of = device->offer->platform;
    tn_device_properties told = *to;
    faults wrong = {""};
    tn_status status = of->row->device_numbers(of->self, device->index, &told, said);
    tidy_text(said->message, sizeof said->message);
    make_sound(&told, &wrong);
    if (status || wrong.text[0])
        tni_log(TN_LOG_WARNING, "%s does not report all of its properties: %s", device->id,
                status ? tni_words_of(said) : wrong.text);
    if (status)
        return status;
#define NUMBER(field, word, unit, meaning)                         \
    if ((told.known & ~to->known & TN_DEVICE_KNOWS(field)) != 0) { \
        to->field = told.field;                                    \
        to->known |= TN_DEVICE_KNOWS(field);                       \
    }
    TN_DEVICE_NUMBER_LIST(NUMBER)
    NUMBER(capability, , , )
#undef NUMBER
    if (!to->architecture[0])
        memcpy(to->architecture, told.architecture, sizeof to->architecture);
    if (!to->dtypes[0])
        memcpy(to->dtypes, told.dtypes, sizeof to->dtypes);
    return TN_OK;
}

/* After a failed query, plans use the known properties for this long. */
enum { SILENT_NS = 1000 * 1000 * 1000 };

/* Stores the result of a late query. The first complete answer is kept and clears the fault of a
 * failed one; failures after it are ignored. Returns the stored properties, `whole` or earlier
 * ones; NULL if none exist. */
static tn_device_properties *store_properties(tn_device *device, tn_device_properties *whole,
                                              const tn_error *said)
{
    tni_mutex_lock(&device->platform->set->lock);
    tn_device_properties *kept = atomic_load_explicit(&device->whole, memory_order_relaxed);
    if (!kept && whole) {
        kept = whole;
        atomic_store_explicit(&device->whole, whole, memory_order_release);
        if (strncmp(device->fault, untold, sizeof untold - 1) == 0)
            device->fault[0] = '\0';
    } else if (!kept)
        snprintf(device->fault, sizeof device->fault, "%s%.140s", untold, tni_words_of(said));
    atomic_store_explicit(&device->silent_ns, kept ? 0 : tni_clock_ns() + SILENT_NS,
                          memory_order_relaxed);
    tni_mutex_unlock(&device->platform->set->lock);
    return kept;
}

/* A second thread that arrives meanwhile queries too. */
static tn_status query_all_properties(tn_device *device, const tn_device_properties **out,
                                      tn_error *err)
{
    tn_device_properties *whole = tni_alloc(sizeof *whole);
    tn_error said = {0};
    if (!whole)
        return tni_no_memory(err, "devices", device->id);
    *whole = device->properties;
    tn_status status = add_late(device, whole, &said);
    tn_device_properties *kept = store_properties(device, status ? NULL : whole, &said);
    if (kept != whole)
        tni_release(whole);
    if (!kept)
        return tn_fail(err, status, said.native_code, "", "%s %s%s", device->id, untold,
                       tni_words_of(&said));
    *out = kept;
    return TN_OK;
}

static bool has_late_numbers(const tn_device *device)
{
    return device->offer && device->offer->platform->row->device_numbers;
}

const tn_device_properties *tn_device_properties_get(const tn_device *device)
{
    if (!device)
        return NULL;
    const tn_device_properties *told = tni_device_known(device);
    if (told == &device->properties && has_late_numbers(device) && tni_device_is_usable(device))
        (void)query_all_properties((tn_device *)(uintptr_t)device, &told, NULL);
    return told;
}

static bool is_described(const tn_device_properties *p)
{
    const uint64_t needed = TN_DEVICE_KNOWS(capability) | TN_DEVICE_KNOWS(memory_bytes) |
                            TN_DEVICE_KNOWS(multi_processor_count);
    return p->architecture[0] && p->dtypes[0] && (p->known & needed) == needed;
}

static bool is_silent(const tn_device *device)
{
    const int64_t until = atomic_load_explicit(&device->silent_ns, memory_order_relaxed);
    return until > 0 && tni_clock_ns() < until;
}

const tn_device_properties *tni_device_described(const tn_device *device)
{
    const tn_device_properties *so_far = tni_device_known(device);
    return is_described(so_far) || is_silent(device) ? so_far : tn_device_properties_get(device);
}

static tn_status no_device(const char *where, tn_error *err)
{
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "the device is NULL");
}

static void tidy_fact(tn_fact *fact)
{
    fact->known = fact->known != 0;
    if (!fact->known)
        fact->value = 0;
    fact->origin[sizeof fact->origin - 1] = '\0';
    tni_words_clean(fact->origin);
}

/* What is known about a device's memory if it cannot be queried. */
static void set_unknown_memory(const tn_device *device, const char *why, tn_device_memory *out)
{
    const tn_device_properties *told = tni_device_described(device);
    bool total = told->known & TN_DEVICE_KNOWS(memory_bytes);
    out->total = total ? tn_fact_of(told->memory_bytes, device->origin) : tn_fact_unknown(why);
    out->available = tn_fact_unknown(why);
    out->in_use = tn_fact_unknown(why);
}

static tn_status query_memory(const tn_device *device, tn_device_memory *out, tn_error *err)
{
    static const char where[] = "tn_device_memory_get";
    tni_call call;
    tn_error said = {0};
    tn_status status = tni_device_open(device, where, &call, err);
    if (!status)
        status = tni_device_result_check(
            &call, where, call.row->device_memory(call.self, call.device, out, &said), &said, err);
    return status;
}

tn_status tn_device_memory_get(const tn_device *device, tn_device_memory *out, tn_error *err)
{
    static const char where[] = "tn_device_memory_get";
    tn_device_memory read = {.struct_size = sizeof read};
    if (!device)
        return no_device(where, err);
    if (!out || !TN_HAS(out, tn_device_memory, in_use))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s",
                       out ? "out->struct_size is too small" : "out is NULL");
    if (device->plans_only) {
        set_unknown_memory(device, "the device is described for planning only", &read);
    } else if (!device->offer->platform->row->device_memory) {
        set_unknown_memory(device, "its platform does not report it", &read);
    } else {
        tn_status status = query_memory(device, &read, err);
        if (status)
            return status;
    }
    tidy_fact(&read.total);
    tidy_fact(&read.available);
    tidy_fact(&read.in_use);
    out->total = read.total;
    out->available = read.available;
    out->in_use = read.in_use;
    return TN_OK;
}

/* As tni_device_described, but fails with the reason if the query was not possible. */
static tn_status describe_device(const tn_device *device, const char *where,
                                 const tn_device_properties **out, tn_error *err)
{
    tni_call call;
    tn_error why = {0};
    *out = tni_device_known(device);
    if (is_described(*out) || *out != &device->properties || !has_late_numbers(device))
        return TN_OK;
    tn_status status = tni_device_open(device, where, &call, &why);
    if (status)
        return tn_fail(err, status, why.native_code, where, "it was not queried before: %s",
                       why.message);
    return query_all_properties((tn_device *)(uintptr_t)device, out, err);
}

tn_status tn_device_capability(const tn_device *device, tn_capability *out, tn_error *err)
{
    static const char where[] = "tn_device_capability";
    const tn_device_properties *told = NULL;
    tn_error why = {0};
    if (!device)
        return no_device(where, err);
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "out is NULL");
    tn_status status = describe_device(device, where, &told, &why);
    if (told->known & TN_DEVICE_KNOWS(capability)) {
        *out = told->capability;
        return TN_OK;
    }
    if (status)
        return tn_fail(err, status, why.native_code, where, "the capability of %s is unknown: %s",
                       device->id, why.message);
    return tn_fail(err, TN_UNSUPPORTED, 0, where,
                   "%s has no capability: platform %s has no generation numbers", device->id,
                   device->platform->name);
}

int32_t tn_device_has_capability(const tn_device *device, tn_capability least)
{
    tn_capability has = {0};
    return !tn_device_capability(device, &has, NULL) && tn_capability_compare(has, least) >= 0;
}

int32_t tn_device_has_capability_int(const tn_device *device, int32_t least)
{
    return tn_device_has_capability(device, tn_capability_from_int(least));
}

int32_t tn_device_is_capability(const tn_device *device, tn_capability same)
{
    tn_capability has = {0};
    return !tn_device_capability(device, &has, NULL) && tn_capability_compare(has, same) == 0;
}

int32_t tn_device_is_capability_int(const tn_device *device, int32_t same)
{
    return tn_device_is_capability(device, tn_capability_from_int(same));
}

int32_t tn_device_is_capability_family(const tn_device *device, int32_t number)
{
    tn_capability has = {0};
    return !tn_device_capability(device, &has, NULL) &&
           tn_capability_same_family(has, tn_capability_from_int(number));
}

const tn_dtype *tn_device_supported_dtypes(const tn_device *device)
{
    static const tn_dtype none[] = {0};
    return device ? tni_device_described(device)->dtypes : none;
}

tn_status tn_device_verify_dtype(const tn_device *device, tn_dtype dtype, tn_error *err)
{
    static const char where[] = "tn_device_verify_dtype";
    char there[256] = "";
    size_t used = 0;
    const char *asked = tn_dtype_name(dtype);
    if (!device)
        return no_device(where, err);
    if (!asked)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%#x is not a dtype", (unsigned)dtype);
    const tn_dtype *dtypes = tn_device_supported_dtypes(device);
    for (size_t i = 0; dtypes[i]; i++) {
        const char *word = tn_dtype_name(dtypes[i]);
        if (dtypes[i] == dtype)
            return TN_OK;
        if (used < sizeof there)
            used += (size_t)snprintf(there + used, sizeof there - used, "%s%s", used ? ", " : "",
                                     word ? word : "?");
    }
    if (!there[0])
        return tn_fail(err, TN_UNSUPPORTED, 0, where,
                       "cannot tell whether %s supports %s: platform %s does not report its dtypes",
                       device->id, asked, device->platform->name);
    return tn_fail(err, TN_UNSUPPORTED, 0, where, "%s does not support %s; it supports %s",
                   device->id, asked, there);
}

static bool computes_with(const tn_device *device, tn_dtype dtype)
{
    const tn_dtype *dtypes = tn_device_supported_dtypes(device);
    while (*dtypes && *dtypes != dtype)
        dtypes++;
    return *dtypes == dtype;
}

int32_t tn_device_supports_bf16(const tn_device *device, int32_t including_emulation)
{
    return computes_with(device, TN_BF16) || (including_emulation && computes_with(device, TN_F32));
}

int32_t tn_device_is_triton_capable(const tn_device *device)
{
    const tn_device_properties *told = device ? tni_device_described(device) : NULL;
    return told && (told->known & TN_DEVICE_KNOWS(triton_capable)) && told->triton_capable;
}

tn_dtype tn_device_fp8_dtype(const tn_device *device)
{
    const tn_dtype *dtypes = tn_device_supported_dtypes(device);
    for (size_t i = 0; dtypes[i]; i++) {
        if (dtypes[i] == TN_F8_E4M3FN || dtypes[i] == TN_F8_E4M3FNUZ || dtypes[i] == TN_F8_E5M2 ||
            dtypes[i] == TN_F8_E5M2FNUZ)
            return dtypes[i];
    }
    return 0;
}

int32_t tn_device_supports_fp8(const tn_device *device)
{
    return tn_device_fp8_dtype(device) != 0;
}

int32_t tn_device_is_fp8_fnuz(const tn_device *device)
{
    tn_dtype dtype = tn_device_fp8_dtype(device);
    return dtype == TN_F8_E4M3FNUZ || dtype == TN_F8_E5M2FNUZ;
}
