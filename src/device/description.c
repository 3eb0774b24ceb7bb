#include "description.h"

#include "base/alloc.h"
#include "base/form.h"
#include "base/words.h"
#include "description_values.h"
#include "os/file.h"
#include "tenon/capability.h"

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
    const char *platform; /* NULL until set */
    uint32_t platform_line;
    int64_t count;
    uint64_t cpu_features;
    tn_device_properties properties;
};

/* One key: where its value is stored in the draft, and the function that reads it. */
struct key {
    const char *word;
    bool (*read)(const struct key *key, const char *text, struct draft *out, tni_need *need);
    size_t offset;
    size_t size;
    const char *unit;
    int64_t most;
    uint64_t known; /* the bit of a property */
};

static void *place_of(const struct key *key, struct draft *out)
{
    return (char *)out + key->offset;
}

static bool read_platform(const struct key *key, const char *text, struct draft *out,
                          tni_need *need)
{
    (void)key;
    if (!tni_name_is_legal(text, "", TNI_NAME_MAX)) {
        snprintf(need->text, sizeof need->text, "1 to %d of a-z 0-9 - _, as in cuda or described",
                 TNI_NAME_MAX);
        return false;
    }
    out->platform = text;
    return true;
}

static bool read_count(const struct key *key, const char *text, struct draft *out, tni_need *need)
{
    (void)key;
    return tni_value_number(text, "", 1, MOST_EQUAL, &out->count, need);
}

static bool read_number(const struct key *key, const char *text, struct draft *out, tni_need *need)
{
    return tni_value_number(text, key->unit, 0, key->most, place_of(key, out), need);
}

static bool read_text(const struct key *key, const char *text, struct draft *out, tni_need *need)
{
    return tni_value_text(text, place_of(key, out), key->size, need);
}

static bool read_uuid(const struct key *key, const char *text, struct draft *out, tni_need *need)
{
    return tni_value_uuid(text, place_of(key, out), key->size, need);
}

static bool read_bus(const struct key *key, const char *text, struct draft *out, tni_need *need)
{
    return tni_value_bus(text, place_of(key, out), key->size, need);
}

static bool read_capability(const struct key *key, const char *text, struct draft *out,
                            tni_need *need)
{
    (void)key;
    if (!tn_capability_parse(text, &out->properties.capability, NULL))
        return true;
    snprintf(need->text, sizeof need->text, "a capability, as in 9.0");
    return false;
}

static bool read_dtypes(const struct key *key, const char *text, struct draft *out, tni_need *need)
{
    (void)key;
    return tni_value_dtypes(text, out->properties.dtypes, need);
}

static bool read_features(const struct key *key, const char *text, struct draft *out,
                          tni_need *need)
{
    (void)key;
    return tni_value_features(text, &out->cpu_features, need);
}

/* The greatest value of a number: unlimited with a unit, 1 for a switch, 32 bits for a count. */
#define MOST_OF(field, unit) \
    (sizeof(unit) > 1 ? INT64_MAX : TNI_NUMBER_IS_SWITCH(field) ? 1 : INT32_MAX)

#define TEXT_KEY(field, reader)                                                             \
    {                                                                                       \
        .word = #field, .read = reader, .offset = offsetof(struct draft, properties.field), \
        .size = sizeof(((struct draft *)0)->properties.field)                               \
    }
#define NUMBER_KEY(field, name, unit_of, meaning)        \
    {.word = name,                                       \
     .read = read_number,                                \
     .offset = offsetof(struct draft, properties.field), \
     .unit = unit_of,                                    \
     .most = MOST_OF(field, unit_of),                    \
     .known = TN_DEVICE_KNOWS(field)},

static const struct key keys[] = {
    {.word = "platform", .read = read_platform},
    {.word = "count", .read = read_count},
    TEXT_KEY(name, read_text),
    TEXT_KEY(uuid, read_uuid),
    TEXT_KEY(bus, read_bus),
    TEXT_KEY(architecture, read_text),
    {.word = "capability", .read = read_capability, .known = TN_DEVICE_KNOWS(capability)},
    {.word = "dtypes", .read = read_dtypes},
    {.word = "features", .read = read_features},
    TN_DEVICE_NUMBER_LIST(NUMBER_KEY)};
enum { KEYS = sizeof keys / sizeof keys[0] };

/* What is being read, for messages. */
typedef struct reader {
    tni_descriptions *into;
    const char *origin;
    tn_error *err;
} reader;

TN_PRINTF(3, 4)
static tn_status reject_line(const reader *r, uint32_t line, const char *format, ...)
{
    char place[TNI_FORM_PLACE], text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return tn_fail(r->err, TN_INVALID_ARGUMENT, 0, "description", "%s: %s",
                   tni_form_place(r->origin, line, place), text);
}

/* A text of the file, shortened to one line of a message. */
typedef struct shown {
    char text[64];
} shown;

static shown show(const char *text)
{
    shown out;
    tn_text_fit(out.text, sizeof out.text, text);
    return out;
}

static tn_status refuse_key(const reader *r, const tni_form_entry *entry)
{
    const char *words[KEYS];
    for (size_t i = 0; i < KEYS; i++)
        words[i] = keys[i].word;
    const char *nearest = tni_words_nearest(entry->key, words, KEYS);
    return reject_line(r, entry->line, "unknown key \"%s\" (= \"%s\"); %s%s%s",
                       show(entry->key).text, show(entry->value).text,
                       nearest ? "did you mean " : "",
                       nearest ? nearest : "docs/descriptions.md lists them", nearest ? "?" : "");
}

static bool is_own(const tni_form_entry *entry)
{
    return strncmp(entry->key, OWN_PREFIX, strlen(OWN_PREFIX)) == 0;
}

static tn_status read_entry(const reader *r, const tni_form_entry *entry, struct draft *out)
{
    tni_need need;
    for (size_t i = 0; i < KEYS; i++) {
        if (strcmp(keys[i].word, entry->key) != 0)
            continue;
        if (!keys[i].read(&keys[i], entry->value, out, &need))
            return reject_line(r, entry->line, "%s = \"%s\": needs %s", entry->key,
                               show(entry->value).text, need.text);
        out->properties.known |= keys[i].known;
        if (out->platform && !out->platform_line)
            out->platform_line = entry->line;
        return TN_OK;
    }
    return refuse_key(r, entry);
}

static tn_status check_once(const reader *r, const tni_form_section *in, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (strcmp(in->entries[i].key, in->entries[index].key) == 0)
            return reject_line(r, in->entries[index].line,
                               "%s = \"%s\": duplicate key, first set in line %u",
                               show(in->entries[index].key).text,
                               show(in->entries[index].value).text, (unsigned)in->entries[i].line);
    }
    return TN_OK;
}

static uint32_t line_of(const tni_form_section *in, const char *key)
{
    for (size_t i = 0; i < in->count; i++) {
        if (strcmp(in->entries[i].key, key) == 0)
            return in->entries[i].line;
    }
    return in->line;
}

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
    return reject_line(
        r, line_of(in, own),
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
    return reject_line(r, line_of(in, "features"), "features: needs platform = cpu, found \"%s\"",
                       draft->platform);
}

static void add_own(const reader *r, const tni_form_entry *entry)
{
    size_t at = r->into->entry_count++;
    r->into->entries[at] = (tn_description_entry){
        .struct_size = sizeof(tn_description_entry),
        .key = entry->key,
        .value = entry->value,
        .origin = tni_form_place(r->origin, entry->line, r->into->places[at]),
    };
}

static tn_status read_section(reader *r, const tni_form_section *in, struct draft *out)
{
    tn_status status = TN_OK;
    *out = (struct draft){.count = 1, .properties = {.struct_size = sizeof out->properties}};
    if (in->count > MOST_KEYS)
        return reject_line(r, in->line, "found %zu keys in one section, needs at most %d",
                           in->count, MOST_KEYS);
    for (size_t i = 0; i < in->count && !status; i++) {
        const tni_form_entry *entry = &in->entries[i];
        status = check_once(r, in, i);
        if (!status && is_own(entry))
            add_own(r, entry);
        else if (!status)
            status = read_entry(r, entry, out);
    }
    if (!status && !out->platform)
        status =
            reject_line(r, in->line, "expected a platform, such as platform = cuda; found none");
    if (!status)
        status = check_features(r, in, out);
    return status ? status : check_equal(r, in, out);
}

/* The word after "device", or "". */
static tn_status read_name(const reader *r, const tni_form_section *in, const char **out)
{
    static const char word[] = "device";
    const char *rest = in->name + sizeof word - 1;
    if (strncmp(in->name, word, sizeof word - 1) != 0 || (*rest && *rest != ' '))
        return reject_line(r, in->line, "found section [%s], needs [device] or [device NAME]",
                           show(in->name).text);
    while (*rest == ' ')
        rest++;
    if (*rest && !tni_name_is_legal(rest, "", TNI_NAME_MAX))
        return reject_line(r, in->line, "found [%s], needs a name of 1 to %d of a-z 0-9 - _",
                           show(in->name).text, TNI_NAME_MAX);
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
            return reject_line(r, tni_form_section_get(r->into->form, index)->line,
                               "duplicate [device %s]: the name is used in line %u already", name,
                               (unsigned)before->line);
    }
    return TN_OK;
}

/* Adds the draft `count` times. Pointers into the items are set after all items are added. */
static tn_status add_items(const reader *r, uint32_t line, const char *name,
                           const struct draft *draft, size_t first_entry)
{
    tni_descriptions *into = r->into;
    size_t needed = into->count + (size_t)draft->count;
    void *items = into->items;
    if (needed > MOST_DEVICES)
        return reject_line(r, line, "found %zu devices up to here, needs at most %d", needed,
                           MOST_DEVICES);
    if (!tni_array_reserve(&items, &into->capacity, into->count, needed, sizeof(struct item)))
        return tni_no_memory(r->err, "description", r->origin);
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
        (void)tni_form_place(r->origin, line, item->origin);
        (void)tni_form_place(r->origin, draft->platform_line, item->platform_origin);
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
    return status ? status : add_items(r, in->line, name, &draft, first_entry);
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
        return reject_line(r, before->entries[0].line, "%s = \"%s\": needs [device] before it",
                           show(before->entries[0].key).text, show(before->entries[0].value).text);
    if (sections == 1)
        return reject_line(r, 1, "expected a section [device], found none");
    if (!reserve_entries(r->into))
        return tni_no_memory(r->err, "description", r->origin);
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
    tn_status status = tni_form_parse(text, length, origin, &read->form, err);
    if (!status)
        status = read_all(&(reader){read, origin, err});
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
