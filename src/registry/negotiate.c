#include "base/words.h"
#include "load.h"
#include "os/fork.h"
#include "os/thread.h"
#include "rows.h"

/* Sanitizes what a module returned: an unknown status is the module's fault, not a success, and its
 * texts are terminated within the struct. */
static tn_status sanitize_result(tn_status status, tn_error *err)
{
    err->where[sizeof err->where - 1] = '\0';
    err->message[sizeof err->message - 1] = '\0';
    if (status > TN_OK && status < TN_STATUS_COUNT)
        return status;
    tn_error said = *err;
    return tn_fail(err, TN_CORRUPT, said.native_code, said.where,
                   "it returned the status %d, which does not exist%s%s", (int)status,
                   said.message[0] ? ": " : "", said.message);
}

/* The ABI is checked first: in another ABI the rest of the table has no meaning. */
static tn_status check_abi(tni_record *record, const tn_module *table)
{
    if (!TN_HAS(table, tn_module, abi_minor))
        return tni_record_stop(record, TN_INCOMPATIBLE, "begin the table like tn_module",
                               "its table's struct_size: expected at least %zu, got %zu",
                               TN_UP_TO(tn_module, abi_minor), table->struct_size);
    record->abi_major = table->abi_major;
    record->abi_minor = table->abi_minor;
    if (table->abi_major == 0 && table->abi_minor == 0)
        return tni_record_stop(record, TN_INCOMPATIBLE, "write TN_MODULE_ABI after struct_size",
                               "its table has no module ABI; this Tenon has %d.%d",
                               TN_MODULE_ABI_MAJOR, TN_MODULE_ABI_MINOR);
    if (table->abi_major != TN_MODULE_ABI_MAJOR || table->abi_minor != TN_MODULE_ABI_MINOR)
        return tni_record_stop(record, TN_INCOMPATIBLE,
                               "build the module with the headers of this Tenon",
                               "it is built for module ABI %u.%u; this Tenon has %d.%d, and both "
                               "numbers must match while the major version is 0",
                               (unsigned)table->abi_major, (unsigned)table->abi_minor,
                               TN_MODULE_ABI_MAJOR, TN_MODULE_ABI_MINOR);
    if (!TN_HAS(table, tn_module, communicators))
        return tni_record_stop(record, TN_INCOMPATIBLE, "set struct_size to the table's sizeof",
                               "its table's struct_size: expected at least %zu, got %zu",
                               TN_UP_TO(tn_module, communicators), table->struct_size);
    return TN_OK;
}

static tn_status check_table(tni_record *record, const tn_module *table)
{
    tn_error err = {0};
    if (table->flags & ~TN_MODULE_SANITIZERS)
        return tni_record_stop(record, TN_INCOMPATIBLE, "use only the flags of module.h",
                               "its flags have unknown bits %#llx",
                               (unsigned long long)(table->flags & ~TN_MODULE_SANITIZERS));
    if (tni_load_check_sanitizer(record, table->flags))
        return record->status;
    if (!table->name || !tni_name_is_legal(table->name, "", TNI_NAME_MAX))
        return tni_record_stop(
            record, TN_INVALID_ARGUMENT, "give the module a valid name",
            "its name: expected 1 to %d of a-z 0-9 - _, beginning with a letter or digit; "
            "got \"%.60s\"",
            TNI_NAME_MAX, table->name ? table->name : "(NULL)");
    tn_text_fit(record->name, sizeof record->name, table->name);
    if (!table->version || !table->version[0])
        return tni_record_stop(record, TN_INVALID_ARGUMENT, "give the module a version",
                               "its version is %s", table->version ? "empty" : "NULL");
    tn_text_fit(record->version, sizeof record->version, table->version);
    tni_words_clean(record->version);
    tn_status status = tni_rows_check(table, &err);
    if (status)
        return tni_record_stop(record, status, "correct the row (docs/modules.md)", "%s",
                               tni_words_of(&err));
    return TN_OK;
}

tn_status tni_load_negotiate(tni_record *record)
{
    tn_error err = {0};
    const tn_module *table = NULL;
    tn_status status = record->entry(&record->host, &table, &err);
    if (status) {
        record->foreign = true;
        status = sanitize_result(status, &err);
        return tni_record_stop(record, status, "", "its entry failed: %s", tni_words_of(&err));
    }
    if (!table)
        return tni_record_stop(record, TN_INVALID_ARGUMENT, "set *out to the module's table",
                               "its entry returned ok but no table");
    status = check_abi(record, table);
    if (!status)
        status = check_table(record, table);
    if (status)
        return status;
    int32_t count = tni_rows_count(table->platforms);
    for (int32_t i = 0; i < count; i++)
        record->platforms[i] = (tni_platform){.row = table->platforms[i], .status = TN_NOT_READY};
    record->platform_count = count;
    record->table = table;
    record->stage = TN_STAGE_NEGOTIATED;
    return TN_OK;
}

enum { MOST_DEVICES = 65536 };

/* Probes one platform. A probe that returns TN_OK with invalid results has failed. */
static tn_status probe_platform(tni_record *record, tni_platform *platform, tn_error *err)
{
    void *self = NULL;
    int32_t devices = 0;
    record->helps[0] = '\0';
    atomic_store(&record->prober, tni_thread_id());
    tn_status status = platform->row->probe(&record->host, &self, &devices, err);
    atomic_store(&record->prober, 0);
    if (!status && (devices < 0 || devices > MOST_DEVICES))
        status = tn_fail(err, TN_CORRUPT, 0, "probe",
                         "its probe returned ok with %d devices; expected 0 to %d", (int)devices,
                         MOST_DEVICES);
    platform->status = status ? sanitize_result(status, err) : TN_OK;
    platform->fork = tni_fork_generation();
    if (!status) {
        platform->self = self;
        platform->devices = devices;
    }
    return platform->status;
}

/* Reports what the module offers and what is missing: a missing driver of one platform is reported
 * even if another platform works. */
static void report_ready(tni_record *record, const char *lacking, const char *remedy)
{
    const tn_module *table = record->table;
    const struct {
        const char *one, *many;
        int32_t count;
    } parts[] = {
        {"platform", "platforms", record->platform_count},
        {"device", "devices", record->devices},
        {"library", "libraries", tni_rows_count(table->libraries)},
        {"kernel", "kernels", tni_rows_count(table->kernels)},
        {"language", "languages", tni_rows_count(table->languages)},
        {"communicator", "communicators", tni_rows_count(table->communicators)},
    };
    char text[256] = "offers";
    size_t used = strlen(text), first = used;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i].count > 0)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s %d %s",
                                     used == first ? "" : ",", (int)parts[i].count,
                                     parts[i].count == 1 ? parts[i].one : parts[i].many);
    }
    record->stage = TN_STAGE_READY;
    tni_record_stop(record, TN_OK, remedy, "%s%s", used == first ? "offers no rows" : text,
                    lacking);
}

/* Notes a platform that is not available, for report_ready. */
static void note_lacking(char *to, size_t size, const tni_platform *platform, const tn_error *err)
{
    size_t used = strlen(to);
    snprintf(to + used, size - used, "; without platform %s: %s", platform->row->name,
             tni_words_of(err));
}

/* Whether a platform accepts described devices: it is ready without any device. */
static bool can_describe(const tni_record *record)
{
    for (int32_t i = 0; i < record->platform_count; i++) {
        if (record->platforms[i].status == TN_OK && record->platforms[i].row->describe)
            return true;
    }
    return false;
}

void tni_load_try_devices(const tni_record *record)
{
    for (int32_t i = 0; i < record->platform_count; i++) {
        const tni_platform *platform = &record->platforms[i];
        for (int32_t d = 0; platform->row->device_properties && d < platform->devices; d++) {
            tn_device_properties told = {.struct_size = sizeof told};
            tn_error err = {0};
            (void)platform->row->device_properties(platform->self, d, &told, &err);
        }
    }
}

/* Stores why a platform failed, and a remedy: the probe's own, or the author's for the missing
 * library; else the author's for the platform; else a generic one for the missing library. */
static void keep_failure(const tni_record *record, const tn_error *err, tni_platform *platform)
{
    const char *own = platform->row->remedy ? platform->row->remedy : "";
    tn_text_fit(platform->message, sizeof platform->message, tni_words_of(err));
    tn_text_escape(platform->message, sizeof platform->message);
    tn_text_fit(platform->remedy, sizeof platform->remedy,
                record->helps[0] && (record->helps_own || !own[0]) ? record->helps : own);
    tn_text_escape(platform->remedy, sizeof platform->remedy);
}

tn_status tni_load_probe(tni_record *record, tni_load_progress *progress, void *user)
{
    tn_error err = {0}, first = {0};
    char lacking[sizeof record->message - 256] = "";
    const char *remedy = "";
    tn_status worst = TN_OK;
    bool any = record->platform_count == 0;
    for (int32_t i = 0; i < record->platform_count; i++) {
        tni_platform *platform = &record->platforms[i];
        err.message[0] = '\0';
        tn_status status = probe_platform(record, platform, &err);
        any = any || !status;
        record->devices += platform->devices;
        if (status) {
            keep_failure(record, &err, platform);
            note_lacking(lacking, sizeof lacking, platform, &err);
        }
        if (status && !worst) {
            worst = status;
            first = err;
            remedy = platform->remedy;
        }
    }
    if (!any) { /* every probe failed: keep the stage and the first reason */
        record->foreign = true;
        return tni_record_stop(record, worst, remedy, "%s", tni_words_of(&first));
    }
    record->stage = TN_STAGE_PROBED;
    if (progress)
        progress(user, record);
    if (record->platform_count > 0 && record->devices == 0 && !can_describe(record))
        return tni_record_stop(record, TN_UNAVAILABLE,
                               "connect a device, or give this user access to it",
                               "its driver is present, but no device");
    report_ready(record, lacking, remedy);
    return TN_OK;
}
