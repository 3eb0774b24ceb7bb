#include "description.h"

#include "base/alloc.h"
#include "base/words.h"
#include "description_values.h"
#include "device_schema.h"
#include "os/file.h"

enum {
    MOST_DEVICES = 1024,  /* per description */
    MOST_EQUAL = 64,      /* maximum of `count` */
    MOST_KEYS = 256,      /* per section */
    MOST_BYTES = 1 << 20, /* per file */
};

#define OWN_PREFIX "behaviour."

/* One device. Texts that are not stored here belong to the form. */
struct item {
    tni_description description;
    char name[TNI_NAME_MAX + 8];
    char origin[TNI_FORM_PLACE];
    char platform_origin[TNI_FORM_PLACE];
};

struct tni_descriptions {
    tni_form *form;
    tn_description_entry *entries;  /* of all sections */
    char (*places)[TNI_FORM_PLACE]; /* origins of the entries */
    size_t entry_count;
    struct item *items;
    size_t count;
    size_t capacity;
};

/* The values of one section. */
struct draft {
    tn_device_properties properties; /* must be first, for tni_device_schema */
    const char *platform;            /* NULL until set */
    int64_t count;
    uint64_t cpu_features;
};

static bool read_platform(const tni_schema_key *key, const char *text, void *at, tni_need *need)
{
    (void)key;
    if (!tni_name_is_legal(text, "", TNI_NAME_MAX))
        return tni_need_set(need, "1 to %d of a-z 0-9 - _, as in cuda or described", TNI_NAME_MAX);
    memcpy(at, &text, sizeof text);
    return true;
}

static bool read_count(const tni_schema_key *key, const char *text, void *at, tni_need *need)
{
    return tni_value_number(text, "", 1, key->most, at, need);
}

static bool read_features(const tni_schema_key *key, const char *text, void *at, tni_need *need)
{
    (void)key;
    return tni_value_features(text, at, need);
}

static const tni_schema_type platform_type = {read_platform, NULL};
static const tni_schema_type count_type = {read_count, NULL};
static const tni_schema_type features_type = {read_features, NULL};

static const tni_schema_key keys[] = {
    {.word = "platform", .type = &platform_type, .offset = offsetof(struct draft, platform)},
    {.word = "count",
     .type = &count_type,
     .offset = offsetof(struct draft, count),
     .most = MOST_EQUAL},
    {.word = "features", .type = &features_type, .offset = offsetof(struct draft, cpu_features)},
};
static const tni_schema schema = {.keys = keys,
                                  .count = TNI_SCHEMA_COUNT(keys),
                                  .also = &tni_device_schema,
                                  .others = OWN_PREFIX};

/* What is being read, for messages. */
typedef struct reader {
    tni_descriptions *into;
    tni_schema_source source;
} reader;

/* Several equal devices cannot have unique properties. */
static tn_status check_equal(const reader *r, const tni_form_section *in, const struct draft *draft)
{
    const tn_device_properties *p = &draft->properties;
    const char *own = p->uuid[0]                                   ? "uuid"
                      : p->bus[0]                                  ? "bus"
                      : p->known & TN_DEVICE_KNOWS(physical_index) ? "physical_index"
                                                                   : NULL;
    if (draft->count == 1 || !own)
        return TN_OK;
    return tni_schema_reject(
        &r->source, tni_section_entry(in, own)->line,
        "count = \"%d\": cannot be combined with %s, which is unique to each device; write "
        "one section per device",
        (int)draft->count, own);
}

/* Only kernels of the cpu platform require instruction sets. */
static tn_status check_features(const reader *r, const tni_form_section *in,
                                const struct draft *draft)
{
    if (!draft->cpu_features || strcmp(draft->platform, "cpu") == 0)
        return TN_OK;
    return tni_schema_reject(&r->source, tni_section_entry(in, "features")->line,
                             "features: expected platform = cpu, got \"%s\"", draft->platform);
}

static void add_own(const reader *r, const tni_form_entry *entry)
{
    size_t at = r->into->entry_count++;
    r->into->entries[at] = (tn_description_entry){
        .struct_size = sizeof(tn_description_entry),
        .key = entry->key,
        .value = entry->value,
        .origin = tni_form_place(r->source.origin, entry->line, r->into->places[at]),
    };
}

/* Checks the uuid and the bus address, and makes them lower case. */
static tn_status check_addresses(const reader *r, const tni_form_section *in,
                                 tn_device_properties *io)
{
    char uuid[sizeof io->uuid], bus[sizeof io->bus];
    tni_need need;
    memcpy(uuid, io->uuid, sizeof uuid);
    memcpy(bus, io->bus, sizeof bus);
    if (uuid[0] && !tni_value_uuid(uuid, io->uuid, sizeof io->uuid, &need))
        return tni_schema_reject_value(&r->source, tni_section_entry(in, "uuid"), need.text);
    if (bus[0] && !tni_value_bus(bus, io->bus, sizeof io->bus, &need))
        return tni_schema_reject_value(&r->source, tni_section_entry(in, "bus"), need.text);
    return TN_OK;
}

static tn_status read_section(reader *r, const tni_form_section *in, struct draft *out)
{
    *out = (struct draft){.count = 1, .properties = {.struct_size = sizeof out->properties}};
    if (in->count > MOST_KEYS)
        return tni_schema_reject(&r->source, in->line,
                                 "expected at most %d keys in one section, got %zu", MOST_KEYS,
                                 in->count);
    tn_status status = tni_schema_read(&r->source, &schema, in, out);
    if (!status && !out->platform)
        status = tni_schema_reject(&r->source, in->line,
                                   "expected a platform, such as platform = cuda; got none");
    for (size_t i = 0; i < in->count && !status; i++) {
        if (strncmp(in->entries[i].key, OWN_PREFIX, strlen(OWN_PREFIX)) == 0)
            add_own(r, &in->entries[i]);
    }
    if (!status)
        status = check_addresses(r, in, &out->properties);
    if (!status)
        status = check_features(r, in, out);
    return status ? status : check_equal(r, in, out);
}

/* The word after "device", or "". */
static tn_status read_name(const reader *r, const tni_form_section *in, const char **out)
{
    const char *rest = tni_section_name(in, "device");
    if (!rest)
        return tni_schema_reject(&r->source, in->line,
                                 "expected [device] or [device NAME], got section [%s]",
                                 tni_show(in->name).text);
    rest += strspn(rest, " ");
    if (*rest && !tni_name_is_legal(rest, "", TNI_NAME_MAX))
        return tni_schema_reject(&r->source, in->line,
                                 "expected a name of 1 to %d of a-z 0-9 - _, got [%s]",
                                 TNI_NAME_MAX, tni_show(in->name).text);
    *out = rest;
    return TN_OK;
}

/* A name must denote one section. */
static tn_status check_name(const reader *r, size_t index, const char *name)
{
    for (size_t i = 1; i < index && *name; i++) {
        const tni_form_section *before = tni_form_section_get(r->into->form, i);
        const char *other = strrchr(before->name, ' ');
        if (other && strcmp(other + 1, name) == 0)
            return tni_schema_reject(&r->source, tni_form_section_get(r->into->form, index)->line,
                                     "duplicate [device %s]: the name is used in line %u already",
                                     name, (unsigned)before->line);
    }
    return TN_OK;
}

/* Adds the draft `count` times. Pointers into the items are set after all items are added. */
static tn_status add_items(const reader *r, const tni_form_section *in, const char *name,
                           const struct draft *draft, size_t first_entry)
{
    tni_descriptions *into = r->into;
    const uint32_t platform_line = tni_section_entry(in, "platform")->line;
    size_t needed = into->count + (size_t)draft->count;
    void *items = into->items;
    if (needed > MOST_DEVICES)
        return tni_schema_reject(&r->source, in->line,
                                 "expected at most %d devices, got %zu up to here", MOST_DEVICES,
                                 needed);
    if (!tni_array_reserve(&items, &into->capacity, into->count, needed, sizeof(struct item)))
        return tni_no_memory(r->source.err, "description", r->source.origin);
    into->items = items;
    for (int i = 0; i < (int)draft->count; i++) {
        struct item *item = &into->items[into->count++];
        memset(item, 0, sizeof *item);
        item->description.platform = draft->platform;
        item->description.properties = draft->properties;
        item->description.cpu_features = draft->cpu_features;
        item->description.view.struct_size = sizeof item->description.view;
        item->description.view.entries = into->entries + first_entry;
        item->description.view.entry_count = into->entry_count - first_entry;
        if (*name && draft->count > 1)
            snprintf(item->name, sizeof item->name, "%s.%d", name, i);
        else
            tn_text_fit(item->name, sizeof item->name, name);
        (void)tni_form_place(r->source.origin, in->line, item->origin);
        (void)tni_form_place(r->source.origin, platform_line, item->platform_origin);
    }
    return TN_OK;
}

static tn_status read_device(reader *r, size_t index)
{
    const tni_form_section *in = tni_form_section_get(r->into->form, index);
    size_t first_entry = r->into->entry_count;
    const char *name = "";
    struct draft draft;
    tn_status status = read_name(r, in, &name);
    if (!status)
        status = check_name(r, index, name);
    if (!status)
        status = read_section(r, in, &draft);
    return status ? status : add_items(r, in, name, &draft, first_entry);
}

/* Reserves room for platform-specific keys, as if all keys were. */
static bool reserve_entries(tni_descriptions *into)
{
    size_t count = 0;
    for (size_t i = 1; i < tni_form_section_count(into->form); i++)
        count += tni_form_section_get(into->form, i)->count;
    into->entries = tni_alloc_zeroed(count, sizeof *into->entries);
    into->places = tni_alloc_zeroed(count, sizeof *into->places);
    return into->entries && into->places;
}

static tn_status read_all(reader *r)
{
    tn_status status = TN_OK;
    const tni_form_section *before = tni_form_section_get(r->into->form, 0);
    size_t sections = tni_form_section_count(r->into->form);
    if (before->count > 0)
        return tni_schema_reject(
            &r->source, before->entries[0].line, "%s = \"%s\": expected [device] before it",
            tni_show(before->entries[0].key).text, tni_show(before->entries[0].value).text);
    if (sections == 1)
        return tni_schema_reject(&r->source, 1, "expected a section [device], got none");
    if (!reserve_entries(r->into))
        return tni_no_memory(r->source.err, "description", r->source.origin);
    for (size_t i = 1; i < sections && !status; i++)
        status = read_device(r, i);
    for (size_t i = 0; i < r->into->count; i++) {
        struct item *item = &r->into->items[i];
        item->description.view.name = item->name;
        item->description.view.origin = item->origin;
        item->description.platform_origin = item->platform_origin;
        item->description.view.properties = &item->description.properties;
    }
    return status;
}

tn_status tni_descriptions_parse(const char *text, size_t length, const char *origin,
                                 tni_descriptions **out, tn_error *err)
{
    tni_descriptions *read = tni_alloc_zeroed(1, sizeof *read);
    if (!read)
        return tni_no_memory(err, "description", origin);
    reader r = {read, {origin, "description", TN_INVALID_ARGUMENT, err}};
    tn_status status = tni_form_parse(text, length, origin, &read->form, err);
    if (!status)
        status = read_all(&r);
    if (status)
        tni_descriptions_release(read);
    else
        *out = read;
    return status;
}

tn_status tni_descriptions_read(const char *path, tni_descriptions **out, tn_error *err)
{
    char *text = NULL;
    size_t length = 0;
    tn_status status = tni_file_read(path, MOST_BYTES, &text, &length, err);
    if (!status)
        status = tni_descriptions_parse(text, length, path, out, err);
    tni_release(text);
    return status;
}

void tni_descriptions_release(tni_descriptions *descriptions)
{
    if (!descriptions)
        return;
    tni_form_release(descriptions->form);
    tni_release(descriptions->places);
    tni_release(descriptions->entries);
    tni_release(descriptions->items);
    tni_release(descriptions);
}

size_t tni_descriptions_count(const tni_descriptions *descriptions)
{
    return descriptions->count;
}

const tni_description *tni_descriptions_get(const tni_descriptions *descriptions, size_t index)
{
    return &descriptions->items[index].description;
}
