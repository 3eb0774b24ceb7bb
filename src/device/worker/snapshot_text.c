/* A snapshot as text, in the form of device descriptions:
 *
 *     worker = 1
 *     [platform cuda]
 *     kind = cuda
 *     current = 0
 *     [platform tpu]
 *     kind = tpu
 *     reason = platform tpu is absent: ...
 *     [device cuda:0]
 *     name = NVIDIA H200
 *     capability = 9.0
 *     dtypes = bf16, f16, f32
 *     memory = 150754820096
 *     [end]
 *     sections = 3
 *
 * Unknown properties are absent. A device that is for planning only has plans_only = 1. The last
 * section has the number of sections before it, so that truncated text is detected. All is validated
 * before any of it is used; whole sections of other nouns are ignored. */
#include "snapshot.h"

#include "base/alloc.h"
#include "base/words.h"
#include "device/device_schema.h"

enum { FORMAT = 1, MOST_PLATFORMS = 1024, MOST_DEVICES = 4096 };

static bool read_kind(const tni_schema_key *key, const char *text, void *at, tni_need *need)
{
    (void)key;
    for (int32_t kind = TN_PLATFORM_CPU; kind < TN_PLATFORM_KIND_COUNT; kind++) {
        if (strcmp(tn_platform_kind_name(kind), text) == 0) {
            memcpy(at, &kind, sizeof kind);
            return true;
        }
    }
    return tni_need_set(need, "a kind of platform, as in cuda or out-of-tree");
}

static bool write_kind(const tni_schema_key *key, const void *at, tni_buffer *out)
{
    int32_t kind;
    (void)key;
    memcpy(&kind, at, sizeof kind);
    tni_buffer_add(out, tn_platform_kind_name(kind));
    return true;
}

/* The current device is an atomic number; -1 is left out. */
static bool read_current(const tni_schema_key *key, const char *text, void *at, tni_need *need)
{
    int64_t index;
    if (!tni_schema_number.read(key, text, &index, need))
        return false;
    atomic_store((_Atomic int32_t *)at, (int32_t)index);
    return true;
}

static bool write_current(const tni_schema_key *key, const void *at, tni_buffer *out)
{
    const int64_t index = atomic_load((const _Atomic int32_t *)at);
    return tni_schema_number.write(key, &index, out);
}

static const tni_schema_type kind_type = {read_kind, write_kind};
static const tni_schema_type current_type = {read_current, write_current};

static const tni_schema_key head_keys[] = {
    {.word = "worker", .type = &tni_schema_number, .required = true, .most = INT64_MAX}};
static const tni_schema_key end_keys[] = {
    {.word = "sections", .type = &tni_schema_number, .required = true, .most = INT64_MAX}};
static const tni_schema_key platform_keys[] = {
    {.word = "kind",
     .type = &kind_type,
     .offset = offsetof(tni_seen_platform, kind),
     .required = true},
    {.word = "current",
     .type = &current_type,
     .offset = offsetof(tni_seen_platform, current),
     .most = INT32_MAX,
     .standard = -1},
    {.word = "reason",
     .type = &tni_schema_line,
     .offset = offsetof(tni_seen_platform, reason),
     .size = sizeof((tni_seen_platform *)0)->reason},
};
static const tni_schema_key device_keys[] = {{.word = "plans_only",
                                              .type = &tni_schema_number,
                                              .offset = offsetof(tni_seen_device, plans_only),
                                              .most = 1}};

#define SCHEMA(keys_of)                                       \
    {                                                         \
        .keys = (keys_of), .count = TNI_SCHEMA_COUNT(keys_of) \
    }
static const tni_schema head_schema = SCHEMA(head_keys), end_schema = SCHEMA(end_keys);
static const tni_schema platform_schema = SCHEMA(platform_keys);
static const tni_schema device_schema = {
    .keys = device_keys, .count = TNI_SCHEMA_COUNT(device_keys), .also = &tni_device_schema};

/* Writing. */

static tn_status write_device(const tni_snapshot *snapshot, const tni_seen_device *device,
                              tni_buffer *to, tn_error *err)
{
    char name[80];
    snprintf(name, sizeof name, "%s:%d", snapshot->platforms[device->platform].name,
             (int)device->index);
    return tni_schema_write_section(&device_schema, "device", name, device, to, err);
}

tn_status tni_snapshot_write(const tni_snapshot *snapshot, char **out, tn_error *err)
{
    const int64_t format = FORMAT;
    const int64_t sections = (int64_t)(snapshot->platform_count + snapshot->device_count);
    tni_buffer text = {0};
    tn_status status = tni_schema_write(&head_schema, &format, &text, err);
    for (size_t i = 0; i < snapshot->platform_count && !status; i++)
        status = tni_schema_write_section(&platform_schema, "platform", snapshot->platforms[i].name,
                                          &snapshot->platforms[i], &text, err);
    for (size_t i = 0; i < snapshot->device_count && !status; i++)
        status = write_device(snapshot, &snapshot->devices[i], &text, err);
    if (!status)
        status = tni_schema_write_section(&end_schema, "end", "", &sections, &text, err);
    char *made = status ? NULL : tni_buffer_detach(&text);
    if (made)
        *out = made;
    else if (!status)
        status = tni_no_memory(err, "tn_worker_snapshot_save", "the text");
    tni_buffer_release(&text);
    return status;
}

/* Reading. */

typedef tn_status read_fn(const tni_schema_source *source, const tni_form_section *in,
                          const char *name, tni_snapshot *into);

static tn_status read_platform(const tni_schema_source *source, const tni_form_section *in,
                               const char *name, tni_snapshot *into)
{
    tni_seen_platform *out = &into->platforms[into->platform_count];
    if (!tni_name_is_legal(name, "", sizeof out->name - 1))
        return tni_schema_reject(source, in->line, "[%s]: not a valid platform name",
                                 tni_show(in->name).text);
    if (tni_snapshot_platform(into, name))
        return tni_schema_reject(source, in->line, "duplicate [%s]", tni_show(in->name).text);
    atomic_init(&out->current, -1);
    tn_text_fit(out->name, sizeof out->name, name);
    into->platform_count++;
    return tni_schema_read(source, &platform_schema, in, out);
}

/* Called after all devices were read. */
static tn_status check_current(const tni_schema_source *source, const tni_form_section *in,
                               const char *name, tni_snapshot *into)
{
    const tni_seen_platform *seen = tni_snapshot_platform(into, name);
    const tni_form_entry *entry = tni_section_entry(in, "current");
    if (seen->devices == 0 && !seen->reason[0])
        return tni_schema_reject(source, in->line, "[%s] has neither devices nor a reason",
                                 tni_show(in->name).text);
    if (seen->devices > 0 && !entry)
        return tni_schema_reject(source, in->line, "[%s] does not state the current device",
                                 tni_show(in->name).text);
    if (entry && !tni_snapshot_device(into, seen, atomic_load(&seen->current)))
        return tni_schema_reject_value(source, entry, "the number of a device of the platform");
    return TN_OK;
}

/* "cuda:0": the platform of that name, and the number. */
static tn_status read_id(const tni_schema_source *source, const tni_form_section *in,
                         const char *id, tni_snapshot *into, tni_seen_device *out)
{
    const tni_schema_key number = {.most = INT32_MAX};
    const char *colon = strrchr(id, ':');
    tni_need need;
    int64_t index = 0;
    for (size_t i = 0; colon && i < into->platform_count; i++) {
        const char *name = into->platforms[i].name;
        if (strlen(name) != (size_t)(colon - id) || strncmp(name, id, strlen(name)) != 0)
            continue;
        if (!tni_schema_number.read(&number, colon + 1, &index, &need))
            break;
        if (tni_snapshot_device(into, &into->platforms[i], (int32_t)index))
            return tni_schema_reject(source, in->line, "duplicate [%s]", tni_show(in->name).text);
        out->platform = (int32_t)i;
        out->index = (int32_t)index;
        return TN_OK;
    }
    return tni_schema_reject(source, in->line,
                             "[%s]: expected a platform that has a section, and a number, as in "
                             "[device cuda:0]",
                             tni_show(in->name).text);
}

static tn_status read_device(const tni_schema_source *source, const tni_form_section *in,
                             const char *id, tni_snapshot *into)
{
    tni_seen_device *out = &into->devices[into->device_count];
    tn_status status = read_id(source, in, id, into, out);
    out->properties.struct_size = sizeof out->properties;
    if (!status)
        status = tni_schema_read(source, &device_schema, in, out);
    if (status)
        return status;
    into->platforms[out->platform].devices++;
    into->device_count++;
    return TN_OK;
}

/* Calls `read` for all sections of one noun. */
static tn_status read_sections(const tni_schema_source *source, const tni_form *form,
                               const char *noun, read_fn *read, tni_snapshot *into)
{
    tn_status status = TN_OK;
    for (size_t i = 0; !status && i < tni_form_section_count(form); i++) {
        const tni_form_section *section = tni_form_section_get(form, i);
        const char *name = tni_section_name(section, noun);
        if (name && name[0])
            status = read(source, section, name, into);
    }
    return status;
}

static tn_status check_head(const tni_schema_source *source, const tni_form *form)
{
    const tni_form_section *head = tni_form_section_get(form, 0);
    int64_t format = 0;
    tn_status status = tni_schema_read(source, &head_schema, head, &format);
    if (!status && format != FORMAT)
        status = tni_schema_reject_value(source, tni_section_entry(head, "worker"),
                                         "1: another version of Tenon wrote this text");
    return status;
}

static tn_status check_end(const tni_schema_source *source, const tni_form *form)
{
    size_t count = tni_form_section_count(form);
    const tni_form_section *last = tni_form_section_get(form, count - 1);
    int64_t said = -1;
    if (strcmp(last->name, "end") != 0 || !tni_section_entry(last, "sections"))
        return tni_schema_reject(source, last->line,
                                 "the text is cut off: it ends with [end] and the number of its "
                                 "sections");
    tn_status status = tni_schema_read(source, &end_schema, last, &said);
    if (!status && (uint64_t)said != count - 2)
        status = tni_schema_reject(source, last->entries[0].line,
                                   "sections = \"%lld\": expected %zu, or the text is cut off",
                                   (long long)said, count - 2);
    return status;
}

static size_t count_sections(const tni_form *form, const char *noun)
{
    size_t count = 0;
    for (size_t i = 0; i < tni_form_section_count(form); i++)
        count += tni_section_name(tni_form_section_get(form, i), noun) != NULL;
    return count;
}

static tn_status read_all(const tni_schema_source *source, const tni_form *form, tni_snapshot **out)
{
    size_t platforms = count_sections(form, "platform"), devices = count_sections(form, "device");
    tn_status status = check_head(source, form);
    if (!status)
        status = check_end(source, form);
    if (!status && (platforms > MOST_PLATFORMS || devices > MOST_DEVICES))
        status = tni_schema_reject(source, 1,
                                   "expected at most %d platforms and %d devices, got %zu and %zu",
                                   MOST_PLATFORMS, MOST_DEVICES, platforms, devices);
    if (status)
        return status;
    tni_snapshot *snapshot = tni_snapshot_create(platforms, devices);
    if (!snapshot)
        return tni_no_memory(source->err, source->where, "the snapshot");
    status = read_sections(source, form, "platform", read_platform, snapshot);
    if (!status)
        status = read_sections(source, form, "device", read_device, snapshot);
    if (!status)
        status = read_sections(source, form, "platform", check_current, snapshot);
    if (status)
        tni_release(snapshot);
    else
        *out = snapshot;
    return status;
}

tn_status tni_snapshot_read(const char *text, tni_snapshot **out, tn_error *err)
{
    const tni_schema_source source = {"snapshot", "tn_worker_snapshot_load", TN_CORRUPT, err};
    tni_form *form;
    tn_status status = tni_form_parse(text, strlen(text), source.origin, &form, err);
    if (status)
        return status;
    status = read_all(&source, form, out);
    tni_form_release(form);
    return status;
}
