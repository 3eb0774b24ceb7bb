#include "base/alloc.h"
#include "base/checked.h"
#include "inside.h"
#include "rows.h"

/* One block: this, then the reports, then the places. Their texts belong to the registry, whose
 * records live as long as it does and change at most once: when they are withdrawn. */
struct tn_module_list {
    size_t count;
    size_t place_count;
    tn_module_report *reports;
    tn_module_place *places;
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

/* What a program released is as if it had never been. */
static bool has_row(const tni_record *record)
{
    return record->status || !record->withdrawn || record->refusal.status;
}

/* One that was ready, and then not taken in. */
static void fill_refusal(tn_module_report *out, const tni_record *record)
{
    if (record->status || !record->withdrawn)
        return;
    out->stage = TN_STAGE_PROBED;
    out->status = record->refusal.status;
    out->message = record->refusal.message;
    out->remedy = out->status == TN_ALREADY_EXISTS
                      ? "register it with TN_MODULE_REPLACE, or take the other module out"
                      : "register it again";
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
    size_t bytes, more;
    if (!tni_mul_size(records, sizeof(tn_module_report), &bytes) ||
        !tni_mul_size(places, sizeof(tn_module_place), &more) ||
        !tni_add_size(bytes, more, &bytes) || !tni_add_size(bytes, sizeof(tn_module_list), &bytes))
        return NULL;
    tn_module_list *list = tni_alloc(bytes);
    if (!list)
        return NULL;
    *list = (tn_module_list){.reports = (tn_module_report *)(list + 1)};
    list->places = (tn_module_place *)(list->reports + records);
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
    /* Memory is taken without the lock; what is published meanwhile is left for the next list. */
    tni_mutex_lock(&registry->lock);
    size_t records = registry->records.count;
    size_t wishes = registry->wishes.count, standing = registry->standing.count;
    tni_mutex_unlock(&registry->lock);
    tn_module_list *list = allocate(records, wishes + standing);
    if (!list)
        return tni_no_memory(err, "tn_module_list_create", "the list");

    tni_mutex_lock(&registry->lock);
    for (size_t i = 0; i < records; i++) {
        const tni_record *record = registry->records.items[i];
        if (!has_row(record))
            continue;
        tn_module_report *report = &list->reports[list->count++];
        fill_report(report, record);
        fill_refusal(report, record);
    }
    add_places(list, &registry->wishes, wishes);
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
