#include "report.h"

#include "os/env.h"
#include "os/look/look.h"
#include "visible.h"

static const char *const verdict_words[TN_PLATFORM_VERDICT_COUNT] = {
    [TN_PLATFORM_READY] = "ready",         [TN_PLATFORM_HIDDEN] = "hidden",
    [TN_PLATFORM_BROKEN] = "broken",       [TN_PLATFORM_NO_MODULE] = "no-module",
    [TN_PLATFORM_NO_DRIVER] = "no-driver", [TN_PLATFORM_ABSENT] = "absent",
};

const char *tn_platform_verdict_name(tn_platform_verdict verdict)
{
    bool known = verdict >= 0 && verdict < TN_PLATFORM_VERDICT_COUNT;
    return known ? verdict_words[verdict] : "unknown";
}

tn_platform_verdict tni_platform_judge(const tni_traces *traces)
{
    bool hardware = traces->hardware_counts ? traces->hardware : traces->driver;
    bool software = traces->driver || traces->library;
    if (traces->ready)
        return TN_PLATFORM_READY;
    if (traces->hides_all && (hardware || traces->offered))
        return TN_PLATFORM_HIDDEN;
    if (traces->offered && traces->probe != TN_UNAVAILABLE && traces->probe != TN_NOT_READY &&
        traces->probe != TN_OK)
        return TN_PLATFORM_BROKEN;
    if (!hardware)
        return TN_PLATFORM_ABSENT;
    if (!software)
        return TN_PLATFORM_NO_DRIVER;
    return traces->offered ? TN_PLATFORM_BROKEN : TN_PLATFORM_NO_MODULE;
}

TN_PRINTF(5, 6)
static void add(tni_platform_report *to, const char *what, const char *shows, int32_t holds,
                const char *format, ...)
{
    char text[1024];
    va_list arguments;
    if (to->evidence_count == TNI_EVIDENCE_MAX)
        return;
    tni_evidence *evidence = &to->evidence[to->evidence_count++];
    va_start(arguments, format);
    if (vsnprintf(text, sizeof text, format, arguments) < 0)
        text[0] = '\0';
    va_end(arguments);
    tn_text_fit(evidence->what, sizeof evidence->what, what);
    tn_text_fit(evidence->found, sizeof evidence->found, text);
    evidence->shows = shows;
    evidence->holds = holds;
}

static void look(const tn_platform *platform, const tn_evidence_row *row, tni_look *out)
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

static void look_for_traces(const tn_platform *platform, tni_platform_report *to,
                            tni_traces *traces)
{
    static const char *const looks[TN_LOOK_COUNT] = {"", "file", "PCI device", "library", "system"};
    static const char *const shows[TN_SHOWS_COUNT] = {"", "hardware", "driver", "library"};
    const tn_evidence_row *const *rows = tni_platform_evidence_rows(platform);
    for (; *rows; rows++) {
        char what[256];
        tni_look seen = {0};
        bool *trace = (*rows)->shows == TN_SHOWS_HARDWARE ? &traces->hardware
                      : (*rows)->shows == TN_SHOWS_DRIVER ? &traces->driver
                                                          : &traces->library;
        look(platform, *rows, &seen);
        *trace = *trace || seen.holds == 1;
        traces->hardware_counts = traces->hardware_counts || trace == &traces->hardware;
        snprintf(what, sizeof what, "%s %s", looks[(*rows)->look], (*rows)->what);
        add(to, what, shows[(*rows)->shows], seen.holds, "%s%s", seen.text,
            seen.denied ? "; this user may not use it" : "");
    }
}

static void look_at_variable(const tn_platform *platform, tni_platform_report *to,
                             tni_traces *traces)
{
    const char *name = tn_platform_visible_variable(platform);
    const char *value = name[0] ? tni_env_value(name) : NULL;
    char what[128];
    tni_visible visible;
    if (!name[0])
        return;
    snprintf(what, sizeof what, "variable %s", name);
    tni_visible_parse(value, &visible);
    traces->hides_all = visible.is_set && visible.count == 0;
    if (!visible.is_set)
        add(to, what, "choice", 0, "not set");
    else
        add(to, what, "choice", 1, "\"%.100s\": %zu device%s%s", value, visible.count,
            visible.count == 1 ? "" : "s", traces->hides_all ? ", so all are hidden" : "");
}

static void look_at_module(const tn_platform *platform, tni_platform_report *to, tni_traces *traces)
{
    const tni_offer *offer = atomic_load_explicit(&platform->served, memory_order_acquire);
    char what[128];
    traces->offered = offer != NULL;
    traces->ready = tni_platform_is_ready(platform);
    traces->probe = offer ? offer->platform->status : TN_NOT_READY;
    to->module = offer ? offer->record->name : "";
    if (!offer) {
        add(to, "module", "module", 0, "none offers it");
        return;
    }
    snprintf(what, sizeof what, "module %s", offer->record->name);
    if (traces->ready && offer->platform->devices == 0)
        add(to, what, "module", 1, "ready to be given devices");
    else if (traces->ready)
        add(to, what, "module", 1, "found %d device%s", (int)offer->platform->devices,
            offer->platform->devices == 1 ? "" : "s");
    else
        add(to, what, "module", 0, "%s",
            offer->platform->message[0] ? offer->platform->message : offer->record->message);
}

static bool is_trace(const tni_evidence *e)
{
    return strcmp(e->shows, "choice") != 0 && strcmp(e->shows, "module") != 0;
}

/* "file /dev/nvidiactl, library libcuda.so.1": the traces that are there. */
static void list_traces(const tni_platform_report *report, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < report->evidence_count && used < size; i++) {
        const tni_evidence *e = &report->evidence[i];
        if (is_trace(e) && e->holds == 1)
            used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", e->what);
    }
    if (used >= size)
        memcpy(out + size - 4, "...", 4);
}

TN_PRINTF(3, 4)
static void say(char *out, size_t size, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    if (vsnprintf(text, sizeof text, format, arguments) < 0)
        text[0] = '\0';
    va_end(arguments);
    tn_text_fit(out, size, text);
}

#define REASON(...) say(to->reason, sizeof to->reason, __VA_ARGS__)
#define REMEDY(...) say(to->remedy, sizeof to->remedy, __VA_ARGS__)

/* The module's own words, as the last piece of evidence has them. */
static const char *of_module(const tni_platform_report *report)
{
    return report->evidence[report->evidence_count - 1].found;
}

/* Whether its devices were found, and are not still to be described. */
static bool has_found(const tni_platform_report *report)
{
    return strncmp(of_module(report), "found", 5) == 0;
}

static void explain_absence(tni_platform_report *to, bool hardware_counts)
{
    char traces[256], unseen[64] = "";
    size_t looked = 0, unlooked = 0;
    for (size_t i = 0; i < to->evidence_count; i++) {
        const tni_evidence *e = &to->evidence[i];
        looked += is_trace(e);
        unlooked += is_trace(e) && e->holds < 0;
    }
    if (unlooked)
        snprintf(unseen, sizeof unseen, ", %zu of which could not be looked for", unlooked);
    list_traces(to, traces, sizeof traces);
    if (looked == 0)
        REASON("%s", to->module[0] ? of_module(to) : "nothing speaks for it");
    else if (traces[0])
        REASON("%s%sno trace of its %s; there is %s", to->module[0] ? of_module(to) : "",
               to->module[0] ? "; " : "", hardware_counts ? "hardware" : "driver", traces);
    else
        REASON("%s%snone of %zu traces of it is here%s", to->module[0] ? of_module(to) : "",
               to->module[0] ? "; " : "", looked, unseen);
}

static void explain(const tn_platform *platform, bool hardware_counts, tni_platform_report *to)
{
    const tn_platform_row *row = tni_platform_row_of(platform);
    const char *remedy = row && row->remedy ? row->remedy : platform->known->driver_remedy;
    const char *variable = tn_platform_visible_variable(platform);
    char traces[256];
    list_traces(to, traces, sizeof traces);
    switch (to->verdict) {
    case TN_PLATFORM_READY:
        REASON("module %s %s%s", to->module, has_found(to) ? "" : "is ", of_module(to));
        break;
    case TN_PLATFORM_HIDDEN:
        REASON("%s hides every device", variable);
        REMEDY("unset %s, or list the devices to use in it", variable);
        break;
    case TN_PLATFORM_BROKEN:
        REASON("module %s: %s%s%s", to->module, of_module(to), traces[0] ? "; yet there is " : "",
               traces);
        REMEDY("%s", remedy[0] ? remedy : "tell the module's author");
        break;
    case TN_PLATFORM_NO_MODULE:
        REASON("there is %s, but no module serves %s", traces, platform->name);
        REMEDY("put tenon-%s into the module folder; `tenon modules` lists the places sought",
               platform->name);
        break;
    case TN_PLATFORM_NO_DRIVER:
        REASON("there is %s, but no driver or library for it", traces);
        REMEDY("%s", remedy);
        break;
    default: explain_absence(to, hardware_counts); break;
    }
}

void tni_platform_examine(const tn_platform *platform, tni_platform_report *out)
{
    tni_traces traces = {.hardware = false};
    memset(out, 0, sizeof *out);
    look_for_traces(platform, out, &traces);
    look_at_variable(platform, out, &traces);
    look_at_module(platform, out, &traces);
    out->verdict = tni_platform_judge(&traces);
    explain(platform, traces.hardware_counts, out);
}

tn_status tni_platform_unready(const tn_platform *platform, const char *where, tn_error *err)
{
    tni_platform_report report;
    if (!platform->set)
        return tn_fail(err, TN_UNAVAILABLE, 0, where,
                       "no platform is chosen: call tn_platform_current or tn_platform_get");
    tni_platform_examine(platform, &report);
    return tn_fail(err, TN_UNAVAILABLE, 0, where, "platform %s is %s: %s%s%s", platform->name,
                   tn_platform_verdict_name(report.verdict), report.reason,
                   report.remedy[0] ? "; remedy: " : "", report.remedy);
}
