/* Reads a snapshot from text; all of it is validated before any of it is used. Unknown keys are
 * errors; whole sections of other nouns are ignored. */
#include "snapshot.h"

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/form.h"
#include "base/words.h"
#include "device/description_values.h"
#include "snapshot_text.h"

#include <errno.h>
#include <stdlib.h>

enum { MOST_PLATFORMS = 1024, MOST_DEVICES = 4096 };

static const char origin[] = "snapshot";

TN_PRINTF(3, 4)
static tn_status reject_line(tn_error *err, uint32_t line, const char *format, ...)
{
    char place[TNI_FORM_PLACE], text[320];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return tn_fail(err, TN_CORRUPT, 0, "tn_worker_snapshot_load", "%s: %s",
                   tni_form_place(origin, line, place), text);
}

static tn_status refuse_value(tn_error *err, const tni_form_entry *entry, const char *needed)
{
    return reject_line(err, entry->line, "%s = \"%.60s\": needs %s", entry->key, entry->value,
                       needed);
}

/* A whole number exactly as the writer spells it. */
static bool read_number(const char *text, int64_t least, int64_t most, int64_t *out)
{
    char *end, again[24];
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || *end || value < least || value > most)
        return false;
    snprintf(again, sizeof again, "%lld", value);
    if (strcmp(again, text) != 0)
        return false;
    *out = value;
    return true;
}

static bool read_capability(const char *text, tn_capability *out)
{
    char major[16];
    int64_t first, second;
    const char *point = strchr(text, '.');
    size_t length = point ? (size_t)(point - text) : sizeof major;
    if (length >= sizeof major)
        return false;
    memcpy(major, text, length);
    major[length] = '\0';
    if (!read_number(major, 0, INT32_MAX, &first) || !read_number(point + 1, 0, INT32_MAX, &second))
        return false;
    *out = (tn_capability){(int32_t)first, (int32_t)second};
    return true;
}

static bool read_dtypes(const char *text, tn_dtype out[TN_DEVICE_DTYPES_MAX])
{
    for (size_t count = 0; count + 1 < TN_DEVICE_DTYPES_MAX; count++) {
        char word[16];
        size_t length = strcspn(text, ",");
        if (length >= sizeof word)
            return false;
        memcpy(word, text, length);
        word[length] = '\0';
        out[count] = tni_dtype_find(word);
        if (!out[count])
            return false;
        if (!text[length])
            return true;
        if (text[length + 1] != ' ')
            return false;
        text += length + 2;
    }
    return false;
}

static bool read_text(const char *text, char *out, size_t size)
{
    tni_need need; /* unused: the caller has its own message */
    return tni_value_text(text, out, size, &need);
}

/* Rejects duplicate keys, and keys that are not in `words`. */
static tn_status check_keys(const tni_form_section *in, const char *const *words, size_t count,
                            tn_error *err)
{
    for (size_t i = 0; i < in->count; i++) {
        const tni_form_entry *entry = &in->entries[i];
        size_t known = 0;
        while (known < count && strcmp(words[known], entry->key) != 0)
            known++;
        if (known == count) {
            char hint[TNI_HINT];
            const char *nearest = tni_words_nearest(entry->key, words, count);
            return reject_line(err, entry->line, "unknown key \"%.60s\" in [%.80s]%s", entry->key,
                               in->name, tni_words_hint(nearest, hint));
        }
        for (size_t j = 0; j < i; j++) {
            if (strcmp(in->entries[j].key, entry->key) == 0)
                return reject_line(err, entry->line, "duplicate %s, first set in line %u",
                                   entry->key, (unsigned)in->entries[j].line);
        }
    }
    return TN_OK;
}

static const tni_form_entry *find_entry(const tni_form_section *in, const char *key)
{
    for (size_t i = 0; i < in->count; i++) {
        if (strcmp(in->entries[i].key, key) == 0)
            return &in->entries[i];
    }
    return NULL;
}

static tn_status read_kind(const tni_form_section *in, tni_seen_platform *out, tn_error *err)
{
    const tni_form_entry *entry = find_entry(in, "kind");
    if (!entry)
        return reject_line(err, in->line, "[%.80s] has no kind", in->name);
    for (int32_t kind = TN_PLATFORM_CPU; kind < TN_PLATFORM_KIND_COUNT; kind++) {
        if (strcmp(tn_platform_kind_name(kind), entry->value) == 0) {
            out->kind = kind;
            return TN_OK;
        }
    }
    return refuse_value(err, entry, "a kind of platform, as in cuda or out-of-tree");
}

static tn_status read_platform(const tni_form_section *in, const char *name, tni_snapshot *into,
                               tn_error *err)
{
    static const char *const words[] = {"kind", "current", "reason"};
    tni_seen_platform *out = &into->platforms[into->platform_count];
    const tni_form_entry *reason = find_entry(in, "reason");
    if (!tni_name_is_legal(name, "", sizeof out->name - 1))
        return reject_line(err, in->line, "[%.80s]: not a valid platform name", in->name);
    if (tni_snapshot_platform(into, name))
        return reject_line(err, in->line, "duplicate [%.80s]", in->name);
    tn_status status = check_keys(in, words, sizeof words / sizeof words[0], err);
    if (!status)
        status = read_kind(in, out, err);
    if (!status && reason && !read_text(reason->value, out->reason, sizeof out->reason))
        status = refuse_value(err, reason, "one line");
    if (status)
        return status;
    tn_text_fit(out->name, sizeof out->name, name);
    atomic_init(&out->current, -1);
    into->platform_count++;
    return TN_OK;
}

/* Must be called after all devices were read. */
static tn_status read_current(const tni_form_section *in, tni_snapshot *into,
                              tni_seen_platform *out, tn_error *err)
{
    const tni_form_entry *entry = find_entry(in, "current");
    int64_t index = 0;
    if (out->devices == 0 && !out->reason[0])
        return reject_line(err, in->line, "[%.80s] has neither devices nor a reason", in->name);
    if (out->devices == 0 && !entry)
        return TN_OK;
    if (!entry)
        return reject_line(err, in->line, "[%.80s] does not state the current device", in->name);
    if (!read_number(entry->value, 0, INT32_MAX, &index) ||
        !tni_snapshot_device(into, out, (int32_t)index))
        return refuse_value(err, entry, "the number of a device of the platform");
    atomic_store(&out->current, (int32_t)index);
    return TN_OK;
}

/* Returns NULL on success, else what the value should have been. */
static const char *read_property(const tni_property *property, const char *text,
                                 tn_device_properties *out)
{
    void *at = (char *)out + property->offset;
    out->known |= property->known;
    switch (property->is) {
    case TNI_PROPERTY_TEXT: return read_text(text, at, property->size) ? NULL : "a shorter line";
    case TNI_PROPERTY_CAPABILITY: return read_capability(text, at) ? NULL : "the form 9.0";
    case TNI_PROPERTY_DTYPES: return read_dtypes(text, at) ? NULL : "dtypes, as in bf16, f32";
    default: return read_number(text, 0, INT64_MAX, at) ? NULL : "a whole number of 63 bits";
    }
}

static tn_status read_properties(const tni_form_section *in, tn_device_properties *out,
                                 tn_error *err)
{
    const char *words[TNI_PROPERTIES + 1];
    for (size_t i = 0; i < TNI_PROPERTIES; i++)
        words[i] = tni_properties[i].word;
    words[TNI_PROPERTIES] = TNI_SNAPSHOT_PLANS;
    tn_status status = check_keys(in, words, TNI_PROPERTIES + 1, err);
    out->struct_size = sizeof *out;
    for (size_t i = 0; !status && i < TNI_PROPERTIES; i++) {
        const tni_form_entry *entry = find_entry(in, words[i]);
        const char *need = entry ? read_property(&tni_properties[i], entry->value, out) : NULL;
        if (need)
            status = refuse_value(err, entry, need);
    }
    return status;
}

/* "cuda:0": the platform of that name, and the number. */
static tn_status read_id(const tni_form_section *in, const char *id, tni_snapshot *into,
                         tni_seen_device *out, tn_error *err)
{
    const char *colon = strrchr(id, ':');
    int64_t index = 0;
    for (size_t i = 0; colon && i < into->platform_count; i++) {
        const char *name = into->platforms[i].name;
        if (strlen(name) != (size_t)(colon - id) || strncmp(name, id, strlen(name)) != 0)
            continue;
        if (!read_number(colon + 1, 0, INT32_MAX, &index))
            break;
        if (tni_snapshot_device(into, &into->platforms[i], (int32_t)index))
            return reject_line(err, in->line, "duplicate [%.80s]", in->name);
        out->platform = (int32_t)i;
        out->index = (int32_t)index;
        return TN_OK;
    }
    return reject_line(err, in->line,
                       "[%.80s]: needs a platform that has a section, and a number, as in "
                       "[device cuda:0]",
                       in->name);
}

static tn_status read_device(const tni_form_section *in, const char *id, tni_snapshot *into,
                             tn_error *err)
{
    tni_seen_device *out = &into->devices[into->device_count];
    tn_status status = read_id(in, id, into, out, err);
    if (!status)
        status = read_properties(in, &out->properties, err);
    const tni_form_entry *plans = find_entry(in, TNI_SNAPSHOT_PLANS);
    if (!status && plans && strcmp(plans->value, "1") != 0)
        status = refuse_value(err, plans, "1, or no value");
    if (status)
        return status;
    out->plans_only = plans != NULL;
    into->platforms[out->platform].devices++;
    into->device_count++;
    return TN_OK;
}

/* The part after "noun " in a section's name, or NULL. */
static const char *name_of(const tni_form_section *section, const char *noun)
{
    size_t length = strlen(noun);
    bool is = strncmp(section->name, noun, length) == 0 && section->name[length] == ' ';
    return is ? section->name + length + 1 : NULL;
}

static size_t count_sections(const tni_form *form, const char *noun)
{
    size_t count = 0;
    for (size_t i = 0; i < tni_form_section_count(form); i++)
        count += name_of(tni_form_section_get(form, i), noun) != NULL;
    return count;
}

/* Reads all sections of one noun. */
typedef tn_status read_fn(const tni_form_section *in, const char *name, tni_snapshot *into,
                          tn_error *err);

static tn_status read_sections(const tni_form *form, const char *noun, read_fn *read,
                               tni_snapshot *into, tn_error *err)
{
    tn_status status = TN_OK;
    for (size_t i = 0; !status && i < tni_form_section_count(form); i++) {
        const tni_form_section *section = tni_form_section_get(form, i);
        const char *name = name_of(section, noun);
        if (name)
            status = read(section, name, into, err);
    }
    return status;
}

static tn_status read_current_of(const tni_form_section *in, const char *name, tni_snapshot *into,
                                 tn_error *err)
{
    return read_current(in, into, tni_snapshot_platform(into, name), err);
}

static tn_status check_head(const tni_form *form, tn_error *err)
{
    static const char *const words[] = {TNI_SNAPSHOT_KEY};
    const tni_form_section *head = tni_form_section_get(form, 0);
    const tni_form_entry *entry = find_entry(head, TNI_SNAPSHOT_KEY);
    int64_t format = 0;
    if (!entry)
        return reject_line(err, 1, "needs %s = %d before the first section", TNI_SNAPSHOT_KEY,
                           TNI_SNAPSHOT_FORMAT);
    if (!read_number(entry->value, TNI_SNAPSHOT_FORMAT, TNI_SNAPSHOT_FORMAT, &format))
        return refuse_value(err, entry, "1: another version of Tenon wrote this text");
    return check_keys(head, words, 1, err);
}

static tn_status check_end(const tni_form *form, tn_error *err)
{
    static const char *const words[] = {TNI_SNAPSHOT_SECTIONS};
    size_t count = tni_form_section_count(form);
    const tni_form_section *last = tni_form_section_get(form, count - 1);
    bool is_end = strcmp(last->name, TNI_SNAPSHOT_END) == 0;
    const tni_form_entry *entry = is_end ? find_entry(last, TNI_SNAPSHOT_SECTIONS) : NULL;
    int64_t said = -1;
    if (!entry)
        return reject_line(err, last->line ? last->line : 1,
                           "the text is cut off: it ends with [" TNI_SNAPSHOT_END
                           "] and the number of "
                           "its sections");
    if (!read_number(entry->value, 0, INT32_MAX, &said) || (size_t)said != count - 2)
        return reject_line(err, entry->line,
                           TNI_SNAPSHOT_SECTIONS " = \"%.20s\": needs %zu, or the "
                                                 "text is cut off",
                           entry->value, count - 2);
    return check_keys(last, words, 1, err);
}

static tn_status read_all(const tni_form *form, tni_snapshot **out, tn_error *err)
{
    size_t platforms = count_sections(form, "platform"), devices = count_sections(form, "device");
    tn_status status = check_head(form, err);
    if (!status)
        status = check_end(form, err);
    if (!status && (platforms > MOST_PLATFORMS || devices > MOST_DEVICES))
        status = reject_line(err, 1, "found %zu platforms and %zu devices, needs at most %d and %d",
                             platforms, devices, MOST_PLATFORMS, MOST_DEVICES);
    if (status)
        return status;
    tni_snapshot *snapshot = tni_snapshot_create(platforms, devices);
    if (!snapshot)
        return tni_no_memory(err, "tn_worker_snapshot_load", "the snapshot");
    status = read_sections(form, "platform", read_platform, snapshot, err);
    if (!status)
        status = read_sections(form, "device", read_device, snapshot, err);
    if (!status)
        status = read_sections(form, "platform", read_current_of, snapshot, err);
    if (status)
        tni_release(snapshot);
    else
        *out = snapshot;
    return status;
}

tn_status tni_snapshot_read(const char *text, tni_snapshot **out, tn_error *err)
{
    tni_form *form;
    tn_status status = tni_form_parse(text, strlen(text), origin, &form, err);
    if (status)
        return status;
    status = read_all(form, out, err);
    tni_form_release(form);
    return status;
}
