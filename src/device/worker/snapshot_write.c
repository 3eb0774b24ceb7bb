/* Writes a snapshot in Tenon's text form:
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
 * A device has its properties by name, each as a whole number of its unit. Unknown properties are
 * absent. A device that is for planning only has plans_only = 1. The last section has the number of
 * sections before it, so that truncated text is detected. */
#include "snapshot.h"

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/form.h"
#include "snapshot_text.h"

#include <inttypes.h>

/* The text so far and the first failure. */
typedef struct writer {
    tni_buffer text;
    tn_status status;
    tn_error *err;
} writer;

static void write_section(writer *w, const char *noun, const char *name)
{
    char whole[128];
    snprintf(whole, sizeof whole, "%s%s%s", noun, name[0] ? " " : "", name);
    if (!w->status)
        w->status = tni_form_write_section(&w->text, whole, w->err);
}

static void write_entry(writer *w, const char *key, const char *value)
{
    if (!w->status)
        w->status = tni_form_write_entry(&w->text, key, value, w->err);
}

static void write_text(writer *w, const char *key, const char *value)
{
    if (value[0])
        write_entry(w, key, value);
}

static void write_number(writer *w, const char *key, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    write_entry(w, key, text);
}

static void write_capability(writer *w, const char *key, const tn_capability *capability)
{
    char text[32];
    snprintf(text, sizeof text, "%d.%d", (int)capability->major, (int)capability->minor);
    write_entry(w, key, text);
}

static void write_dtypes(writer *w, const char *key, const tn_dtype *dtypes)
{
    char text[TN_DEVICE_DTYPES_MAX * 16] = "";
    size_t used = 0;
    for (; *dtypes; dtypes++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used ? ", " : "",
                                 tn_dtype_name(*dtypes));
    write_text(w, key, text);
}

static void write_property(writer *w, const tni_property *property,
                           const tn_device_properties *from)
{
    const void *at = (const char *)from + property->offset;
    if (property->known && !(from->known & property->known))
        return;
    switch (property->is) {
    case TNI_PROPERTY_TEXT: write_text(w, property->word, at); break;
    case TNI_PROPERTY_CAPABILITY: write_capability(w, property->word, at); break;
    case TNI_PROPERTY_DTYPES: write_dtypes(w, property->word, at); break;
    default: write_number(w, property->word, *(const int64_t *)at); break;
    }
}

static void write_platform(writer *w, const tni_seen_platform *platform)
{
    write_section(w, "platform", platform->name);
    write_entry(w, "kind", tn_platform_kind_name(platform->kind));
    if (platform->devices > 0)
        write_number(w, "current", atomic_load(&platform->current));
    else
        write_text(w, "reason", platform->reason);
}

static void write_device(writer *w, const tni_snapshot *snapshot, const tni_seen_device *device)
{
    char name[80];
    snprintf(name, sizeof name, "%s:%d", snapshot->platforms[device->platform].name,
             (int)device->index);
    write_section(w, "device", name);
    if (device->plans_only)
        write_number(w, TNI_SNAPSHOT_PLANS, 1);
    for (size_t i = 0; i < TNI_PROPERTIES; i++)
        write_property(w, &tni_properties[i], &device->properties);
}

tn_status tni_snapshot_write(const tni_snapshot *snapshot, char **out, tn_error *err)
{
    writer w = {.err = err};
    write_number(&w, TNI_SNAPSHOT_KEY, TNI_SNAPSHOT_FORMAT);
    for (size_t i = 0; i < snapshot->platform_count; i++)
        write_platform(&w, &snapshot->platforms[i]);
    for (size_t i = 0; i < snapshot->device_count; i++)
        write_device(&w, snapshot, &snapshot->devices[i]);
    write_section(&w, TNI_SNAPSHOT_END, "");
    write_number(&w, TNI_SNAPSHOT_SECTIONS,
                 (int64_t)(snapshot->platform_count + snapshot->device_count));
    char *text = w.status ? NULL : tni_buffer_detach(&w.text);
    if (text)
        *out = text;
    else if (!w.status)
        w.status = tni_no_memory(err, "tn_worker_snapshot_save", "the text");
    tni_buffer_release(&w.text);
    return w.status;
}
