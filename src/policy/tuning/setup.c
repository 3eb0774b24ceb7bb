#include "setup.h"

#include "base/alloc.h"
#include "settings/context.h"
#include "settings/table.h"
#include "tenon/parallel.h"

/* Platforms report no driver version, so the version of the module that uses the driver is
 * written. */
static void write_driver(const tn_device *device, char room[TNI_SETUP_DRIVER])
{
    room[0] = '\0';
    if (device->offer)
        snprintf(room, TNI_SETUP_DRIVER, "%s %s", device->offer->record->name,
                 device->offer->record->version);
}

void tni_setup_of(const tn_device *device, char room[TNI_SETUP_DRIVER], tni_setup *out)
{
    bool loops = device->platform->known->kind == TN_PLATFORM_CPU && !device->plans_only;
    write_driver(device, room);
    *out = (tni_setup){.id = device->id,
                       .name = device->properties.name,
                       .architecture = tni_device_described(device)->architecture,
                       .driver = room,
                       .threads = loops ? tn_parallel_threads() : 0,
                       .libraries = ""};
}

void tni_setup_add_library(const char *name, const tn_device *device, tni_buffer *out)
{
    const tn_library *library;
    tn_library_state state = {.struct_size = sizeof state};
    if (device->plans_only || tn_library_get(name, &library, NULL) ||
        tn_library_try(library, NULL) ||
        tn_library_state_get(library, tni_context_defaults(), &state, NULL) ||
        !state.version_text[0])
        return;
    tni_buffer_format(out, "%s%s %s", out->length ? ", " : "", state.name, state.version_text);
}

/* Settings that decide which kernels may be taken, not how they run. */
static bool only_chooses(tn_setting setting)
{
    int32_t kind = tni_setting_row_of(setting)->kind;
    return kind == TN_VALUE_RULE || kind == TN_VALUE_RULES || kind == TN_VALUE_ORDER ||
           setting == TN_SETTING_TUNING_ENABLED || setting == TN_SETTING_TUNING_LIMIT ||
           setting == TN_SETTING_ADMISSION || setting == TN_SETTING_WORKSPACE_LIMIT;
}

static void write_setting(const tn_context *context, tn_setting setting, tni_buffer *out)
{
    char few[128], usual[128];
    char *text = few, *more = NULL;
    size_t length = tn_setting_write_resolved(context, setting, few, sizeof few);
    (void)tn_setting_write_resolved(tni_context_defaults(), setting, usual, sizeof usual);
    if (strcmp(few, usual) == 0 && length < sizeof few)
        return;
    if (length >= sizeof few) {
        text = more = tni_alloc(length + 1);
        if (!more) {
            out->failed = true;
            return;
        }
        (void)tn_setting_write_resolved(context, setting, more, length + 1);
    }
    tni_buffer_format(out, "%s%s=%s", out->length ? "; " : "", tn_setting_info(setting)->key, text);
    tni_release(more);
}

void tni_settings_differing(const tn_context *context, const tn_op *op, bool times, tni_buffer *out)
{
    const tn_setting *setting = tni_op_class_of(op->kind)->settings;
    for (; *setting >= 0; setting++) {
        if (!times || !only_chooses(*setting))
            write_setting(context, *setting, out);
    }
}

int64_t tni_kernel_library_version(const tni_kernel *kernel, const tn_device *device)
{
    void *self;
    int64_t version = -1;
    if (!kernel->library || device->plans_only ||
        tni_library_open(kernel->library, kernel->record, &self, &version, NULL))
        return -1;
    return version;
}
