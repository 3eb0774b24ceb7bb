/* Collects the evidence for and against one platform, without caching. */
#include "base/words.h"
#include "os/env.h"
#include "os/look/look.h"
#include "report.h"
#include "visible.h"

TN_PRINTF(4, 5)
static tni_evidence *add_evidence(tni_platform_report *to, const char *what, int32_t holds,
                                  const char *format, ...)
{
    va_list arguments;
    if (to->evidence_count == TNI_EVIDENCE_MAX)
        return &to->evidence[TNI_EVIDENCE_MAX - 1];
    tni_evidence *evidence = &to->evidence[to->evidence_count++];
    va_start(arguments, format);
    tni_text_format_list(evidence->found, sizeof evidence->found, format, arguments);
    va_end(arguments);
    tn_text_fit(evidence->what, sizeof evidence->what, what);
    evidence->holds = holds;
    return evidence;
}

static void check_evidence(const tn_platform *platform, const tn_evidence_row *row, tni_look *out)
{
    const char *root = platform->set ? platform->set->root : NULL;
    switch (row->look) {
    case TN_LOOK_FILE: tni_look_file(root, row->what, out); break;
    case TN_LOOK_PCI: tni_look_pci(root, row->what, out); break;
    case TN_LOOK_LIBRARY:
        tni_look_library(root, row->what, root ? NULL : tni_env_get("LD_LIBRARY_PATH"), out);
        break;
    default: tni_look_system(row->what, out); break;
    }
}

/* Merges the results of several checks for one thing: the strongest wins. */
static void strengthen_seen(tni_seen *seen, int32_t holds)
{
    tni_seen now = holds > 0 ? TNI_SEEN : holds < 0 ? TNI_SEEN_UNKNOWN : TNI_SEEN_ABSENT;
    if (now > *seen)
        *seen = now;
}

static void report_evidence(const tn_platform *platform, const tn_evidence_row *row,
                            tni_platform_report *to)
{
    static const char *const looks[TN_LOOK_COUNT] = {"", "file", "PCI device", "library", "system"};
    static const char *const shows[TN_SHOWS_COUNT] = {"", "hardware", "driver", "library"};
    tni_seen *of[TN_SHOWS_COUNT] = {NULL, &to->traces.hardware, &to->traces.driver,
                                    &to->traces.library};
    char what[256];
    tni_look seen = {0};
    check_evidence(platform, row, &seen);
    strengthen_seen(of[row->shows], seen.holds);
    snprintf(what, sizeof what, "%s %s", looks[row->look], row->what);
    tni_evidence *evidence = add_evidence(to, what, seen.holds, "%s", seen.text);
    evidence->shows = shows[row->shows];
    evidence->is_trace = true;
    evidence->is_path = row->look == TN_LOOK_LIBRARY;
    if (seen.denied && !to->traces.denied) {
        to->traces.denied = true;
        tn_text_fit(to->denied, sizeof to->denied, row->what);
    }
}

const char *tni_platform_visible_value(const tn_platform *platform, const char **out_name)
{
    const char *name = tn_platform_visible_variable(platform);
    const char *value = name[0] ? tni_env_value(name) : NULL;
    const tn_platform_row *row = tni_platform_row_of(platform);
    for (size_t i = 0; !value && i < 2 && !(row && row->visible_variable); i++) {
        const char *also = platform->known->also_visible[i];
        value = also ? tni_env_value(also) : NULL;
        if (value)
            name = also;
    }
    *out_name = name;
    return value;
}

static void report_variable(const tn_platform *platform, tni_platform_report *to)
{
    const char *name, *value = tni_platform_visible_value(platform, &name);
    char what[128];
    tni_visible visible;
    if (!name[0])
        return;
    snprintf(what, sizeof what, "variable %s", name);
    tni_visible_parse(value, &visible);
    to->traces.hides_all = visible.is_set && visible.count == 0;
    tni_evidence *evidence = visible.is_set
                                 ? add_evidence(to, what, 1, "\"%.100s\": %zu device%s%s", value,
                                                visible.count, visible.count == 1 ? "" : "s",
                                                to->traces.hides_all ? ", which hides all" : "")
                                 : add_evidence(to, what, 0, "not set");
    evidence->shows = "choice";
}

static void report_module(const tn_platform *platform, tni_platform_report *to)
{
    const tni_offer *offer = atomic_load_explicit(&platform->served, memory_order_acquire);
    char what[128] = "module";
    tni_traces *traces = &to->traces;
    traces->offered = offer != NULL;
    traces->ready = offer && tni_offer_is_ready(offer);
    traces->probe = offer ? offer->platform->status : TN_NOT_READY;
    to->module = offer ? offer->record->name : "";
    if (offer)
        snprintf(what, sizeof what, "module %s", offer->record->name);
    if (!offer)
        snprintf(to->of_module, sizeof to->of_module, "no module offers it");
    else if (traces->ready && offer->platform->devices == 0)
        snprintf(to->of_module, sizeof to->of_module, "is ready to receive described devices");
    else if (traces->ready)
        snprintf(to->of_module, sizeof to->of_module, "found %d device%s",
                 (int)offer->platform->devices, offer->platform->devices == 1 ? "" : "s");
    else
        tn_text_fit(to->of_module, sizeof to->of_module,
                    offer->platform->message[0] ? offer->platform->message
                                                : offer->record->message);
    add_evidence(to, what, traces->ready, "%s", to->of_module)->shows = "module";
}

/* Reports faults in the properties that devices returned. */
static void report_device_faults(const tn_platform *platform, tni_platform_report *to)
{
    const tni_offer *offer = atomic_load_explicit(&platform->served, memory_order_acquire);
    if (!offer)
        return;
    tni_mutex_lock(&platform->set->lock);
    const tni_pointers *devices = &platform->set->devices;
    for (size_t i = 0; i < devices->count; i++) {
        const tn_device *device = devices->items[i];
        char what[128];
        if (device->offer != offer || !device->fault[0])
            continue;
        snprintf(what, sizeof what, "properties of %s", device->id);
        add_evidence(to, what, 0, "%s", device->fault)->shows = "module";
    }
    tni_mutex_unlock(&platform->set->lock);
}

void tni_platform_gather(const tn_platform *platform, tni_platform_report *out)
{
    const tn_evidence_row *const *rows = tni_platform_evidence_rows(platform);
    memset(out, 0, sizeof *out);
    for (; *rows; rows++)
        report_evidence(platform, *rows, out);
    report_variable(platform, out);
    report_module(platform, out);
    report_device_faults(platform, out);
}
