#include "base/alloc.h"
#include "base/checked.h"
#include "inside.h"
#include "rows.h"
#include "tenon/module/kernel.h"

enum { NOTE = 1536 };

/* One allocation: this struct, then the reports, the places and the notes. Other texts belong to
 * the registry; its records live as long as it does and change at most once: when they are
 * withdrawn. */
struct tn_module_list {
    size_t count;
    size_t place_count;
    tn_module_report *reports;
    tn_module_place *places;
    char (*notes)
        [NOTE]; /* one per report: its message, followed by remarks about its relation to others */
};

static void fill_report(tn_module_report *out, const tni_record *record)
{
    const tn_module *table = record->table;
    *out = (tn_module_report){
        .struct_size = sizeof *out,
        .name = record->name,
        .version = record->version,
        .path = record->path,
        .origin = tni_origin_name(record->origin),
        .message = record->message,
        .remedy = record->remedy,
        .stage = record->stage,
        .status = record->status,
        .abi_major = record->abi_major,
        .abi_minor = record->abi_minor,
        .platforms = table ? tni_rows_count(table->platforms) : 0,
        .libraries = table ? tni_rows_count(table->libraries) : 0,
        .kernels = table ? tni_rows_count(table->kernels) : 0,
        .languages = table ? tni_rows_count(table->languages) : 0,
        .communicators = table ? tni_rows_count(table->communicators) : 0,
        .devices = record->devices,
        .ms = record->ms,
    };
}

/* A module that the program released is not listed. */
static bool has_row(const tni_record *record)
{
    return record->status || !record->withdrawn || record->refusal.status;
}

/* Reports a module that was ready and was then rejected. */
static void fill_refusal(tn_module_report *out, const tni_record *record)
{
    if (record->status || !record->withdrawn)
        return;
    out->stage = TN_STAGE_PROBED;
    out->status = record->refusal.status;
    out->message = record->refusal.message;
    out->remedy = out->status == TN_ALREADY_EXISTS
                      ? "register it with TN_MODULE_REPLACE, or remove the other module"
                      : "register it again";
}

/* The modules that offer a platform: the first one, which determines the platform's kind, and the
 * one that serves it. */
typedef struct offerers {
    const tni_record *first, *serving;
    int32_t kind;
} offerers;

/* Must hold the registry's lock. */
static offerers find_offerers(const tni_registry *registry, const char *platform)
{
    offerers found = {0};
    const tni_platform *best = NULL;
    for (size_t i = 0; i < registry->records.count; i++) {
        const tni_record *record = registry->records.items[i];
        for (int32_t p = 0; p < record->platform_count && tni_record_counts(record); p++) {
            const tni_platform *offered = &record->platforms[p];
            if (strcmp(offered->row->name, platform) != 0)
                continue;
            if (!found.first)
                found = (offerers){.first = record, .kind = offered->row->kind};
            if (offered->row->kind != found.kind ||
                !tni_platform_goes_before(record, offered, best))
                continue;
            best = offered;
            found.serving = record;
        }
    }
    return found;
}

/* Appends to `note` why a platform that the record's probe found is served by another module.
 * Returns whether something would have to change for this module to serve it. */
static bool note_platform(const tni_record *record, const tn_platform_row *row, const offerers *of,
                          char *note)
{
    const bool stands_back = row->kind == of->kind && of->serving->replaces;
    size_t used = strlen(note);
    if (row->kind != of->kind)
        snprintf(note + used, NOTE - used,
                 "; platform %s is ignored: its row has kind %s, but module %s, which "
                 "came first, has kind %s",
                 row->name, tni_kind_word(row->kind), of->first->name, tni_kind_word(of->kind));
    else if (of->serving != record)
        snprintf(note + used, NOTE - used, "; platform %s is provided by module %s, which %s",
                 row->name, of->serving->name,
                 stands_back ? "the program registered as a replacement" : "came first");
    return note[used] && !stands_back;
}

/* For a ready module: reports which of its platforms it does not serve, and why. Must hold the
 * registry's lock; `note` has NOTE bytes and must live as long as the report. */
static void fill_platforms(const tni_registry *registry, const tni_record *record, char *note,
                           tn_module_report *out)
{
    if (out->status)
        return;
    bool waits = false;
    tn_text_fit(note, NOTE, out->message);
    for (int32_t p = 0; p < record->platform_count; p++) {
        const tni_platform *platform = &record->platforms[p];
        const offerers of = find_offerers(registry, platform->row->name);
        if (tni_platform_can_serve(platform) && of.first && of.serving)
            waits = note_platform(record, platform->row, &of, note) || waits;
    }
    out->message = note;
    if (waits && !out->remedy[0])
        out->remedy = "rename the platform, remove the other module, or register this one "
                      "with TN_MODULE_REPLACE";
}

/* Returns the module before `record` that has a kernel of this name and is used; NULL for none. */
static const tni_record *find_kernel_before(const tni_registry *registry, const tni_record *record,
                                            const char *name)
{
    for (size_t i = 0; registry->records.items[i] != record; i++) {
        const tni_record *other = registry->records.items[i];
        const tn_kernel_row *const *row = tni_record_counts(other) ? other->table->kernels : NULL;
        for (; row && *row; row++) {
            if (strcmp((*row)->name, name) == 0)
                return other;
        }
    }
    return NULL;
}

static bool platform_exists(const tni_registry *registry, const char *name)
{
    for (int32_t kind = TN_PLATFORM_CPU; kind < TN_PLATFORM_OOT; kind++) {
        if (strcmp(tni_kind_word(kind), name) == 0)
            return true;
    }
    return find_offerers(registry, name).first != NULL;
}

/* For a ready module: reports the first kernel that is not used because its name exists already, the
 * first whose platform no module has, and those of unknown operators. As fill_platforms, and after
 * it. */
static void fill_kernels(const tni_registry *registry, const tni_record *record, char *note,
                         tn_module_report *out)
{
    const tn_kernel_row *twin = NULL, *stray = NULL;
    const tni_record *first = NULL;
    char unknown[TNI_ROWS_UNKNOWN_TEXT];
    if (out->status)
        return;
    for (const tn_kernel_row *const *row = record->table->kernels; row && *row; row++) {
        const tni_record *other = twin ? NULL : find_kernel_before(registry, record, (*row)->name);
        twin = other ? *row : twin;
        first = other ? other : first;
        stray = !stray && !platform_exists(registry, (*row)->platform) ? *row : stray;
    }
    size_t used = strlen(note);
    if (twin)
        snprintf(note + used, NOTE - used,
                 "; kernel %s is ignored: module %s, which came first, has a kernel of this name",
                 twin->name, first->name);
    used = strlen(note);
    if (stray)
        snprintf(note + used, NOTE - used,
                 "; kernel %s is not used: no module has its platform, \"%s\"", stray->name,
                 stray->platform);
    used = strlen(note);
    const bool has_unknown = tni_rows_unknown(record->table->kernels, unknown);
    if (has_unknown)
        snprintf(note + used, NOTE - used, "; %s", unknown);
    if ((twin || stray || has_unknown) && !out->remedy[0])
        out->remedy = twin    ? "give the kernel another name"
                      : stray ? "correct the row's platform, or install the module that has it"
                              : "correct the row's op, or use a Tenon that has this operator";
}

static void fill_place(tn_module_place *out, const tni_place *place)
{
    *out = (tn_module_place){
        .struct_size = sizeof *out,
        .path = place->path,
        .origin = tni_origin_name(place->origin),
        .message = place->message,
        .status = place->status,
        .modules = place->is_folder ? (place->names ? (int32_t)place->names->count : 0) : 1,
    };
}

static tn_module_list *allocate(size_t records, size_t places)
{
    size_t bytes, more, notes;
    if (!tni_mul_size(records, sizeof(tn_module_report), &bytes) ||
        !tni_mul_size(places, sizeof(tn_module_place), &more) ||
        !tni_mul_size(records, NOTE, &notes) || !tni_add_size(bytes, notes, &bytes) ||
        !tni_add_size(bytes, more, &bytes) || !tni_add_size(bytes, sizeof(tn_module_list), &bytes))
        return NULL;
    tn_module_list *list = tni_alloc(bytes);
    if (!list)
        return NULL;
    *list = (tn_module_list){.reports = (tn_module_report *)(list + 1)};
    list->places = (tn_module_place *)(list->reports + records);
    list->notes = (char(*)[NOTE])(list->places + places);
    return list;
}

static void add_places(tn_module_list *list, const tni_list *from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const tni_place *place = from->items[i];
        if (place->done)
            fill_place(&list->places[list->place_count++], place);
    }
}

tn_status tni_registry_list(tni_registry *registry, tn_module_list **out, tn_error *err)
{
    tn_status status = tni_registry_discover(registry, err);
    if (status)
        return status;
    /* Allocates without the lock; records published meanwhile appear in the next list. */
    tni_mutex_lock(&registry->lock);
    size_t records = registry->records.count;
    size_t requests = registry->requests.count, standing = registry->standing.count;
    tni_mutex_unlock(&registry->lock);
    tn_module_list *list = allocate(records, requests + standing);
    if (!list)
        return tni_no_memory(err, "tn_module_list_create", "the list");

    tni_mutex_lock(&registry->lock);
    for (size_t i = 0; i < records; i++) {
        const tni_record *record = registry->records.items[i];
        if (!has_row(record))
            continue;
        char *note = list->notes[list->count];
        tn_module_report *report = &list->reports[list->count++];
        fill_report(report, record);
        fill_refusal(report, record);
        fill_platforms(registry, record, note, report);
        fill_kernels(registry, record, note, report);
    }
    add_places(list, &registry->requests, requests);
    add_places(list, &registry->standing, standing);
    tni_mutex_unlock(&registry->lock);
    *out = list;
    return TN_OK;
}

void tn_module_list_release(tn_module_list *list)
{
    tni_release(list);
}

size_t tn_module_list_count(const tn_module_list *list)
{
    return list ? list->count : 0;
}

const tn_module_report *tn_module_list_get(const tn_module_list *list, size_t index)
{
    return list && index < list->count ? &list->reports[index] : NULL;
}

size_t tn_module_list_place_count(const tn_module_list *list)
{
    return list ? list->place_count : 0;
}

const tn_module_place *tn_module_list_place_get(const tn_module_list *list, size_t index)
{
    return list && index < list->place_count ? &list->places[index] : NULL;
}
