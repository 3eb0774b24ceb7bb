#include "report.h"

#include "base/alloc.h"
#include "base/words.h"

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

/* Hardware that cannot be checked for is assumed present if its driver is: nobody loads a driver
 * without it. */
static bool has_hardware(const tni_traces *traces)
{
    return traces->hardware == TNI_SEEN ||
           (traces->hardware != TNI_SEEN_ABSENT && traces->driver == TNI_SEEN);
}

static bool has_software(const tni_traces *traces)
{
    return traces->driver != TNI_SEEN_ABSENT && traces->library != TNI_SEEN_ABSENT;
}

tn_platform_verdict tni_platform_judge(const tni_traces *traces)
{
    bool failed = traces->offered && traces->probe != TN_UNAVAILABLE &&
                  traces->probe != TN_NOT_READY && traces->probe != TN_OK;
    if (traces->ready)
        return TN_PLATFORM_READY;
    if (!has_hardware(traces))
        return failed ? TN_PLATFORM_BROKEN : TN_PLATFORM_ABSENT;
    if (traces->hides_all)
        return TN_PLATFORM_HIDDEN;
    if (failed || traces->denied)
        return TN_PLATFORM_BROKEN;
    if (!has_software(traces))
        return TN_PLATFORM_NO_DRIVER;
    return traces->offered ? TN_PLATFORM_BROKEN : TN_PLATFORM_NO_MODULE;
}

/* "PCI device 10de:03, /usr/lib/libcuda.so.1": the traces that were found. */
static void list_traces(const tni_platform_report *report, char *out, size_t size)
{
    static const char more[] = ", ...";
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < report->evidence_count; i++) {
        const tni_evidence *e = &report->evidence[i];
        const char *trace = e->is_path ? e->found : e->what;
        if (!e->is_trace || e->holds != 1)
            continue;
        if (used + 2 + strlen(trace) + sizeof more > size) {
            snprintf(out + used, size - used, "%s", used ? more : more + 2);
            return;
        }
        used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", trace);
    }
}

#define REASON(...) tni_text_format(to->reason, sizeof to->reason, __VA_ARGS__)
#define REMEDY(...) tni_text_format(to->remedy, sizeof to->remedy, __VA_ARGS__)

/* The only remedy is the module's: nothing else knows what is missing. */
static void explain_absence(const char *traces, const char *remedy, tni_platform_report *to)
{
    const char *module = to->module[0] ? to->of_module : "";
    const char *between = to->module[0] ? "; " : "";
    char unseen[64] = "";
    size_t looked = 0, unlooked = 0;
    for (size_t i = 0; i < to->evidence_count; i++) {
        looked += to->evidence[i].is_trace;
        unlooked += to->evidence[i].is_trace && to->evidence[i].holds < 0;
    }
    if (unlooked)
        snprintf(unseen, sizeof unseen, ", %zu of which could not be checked", unlooked);
    REMEDY("%s", remedy);
    if (looked == 0)
        REASON("%s", to->module[0] ? module : "no evidence for it");
    else if (traces[0])
        REASON("%s%sno %s found, only %s", module, between,
               to->traces.hardware == TNI_SEEN_NOTHING_ASKED ? "driver" : "hardware", traces);
    else
        REASON("%s%snot found (%zu places checked%s)", module, between, looked, unseen);
}

static void explain_broken(const char *traces, const char *remedy, tni_platform_report *to)
{
    if (to->traces.denied) {
        REASON("this user may not open %s%s%s", to->denied, to->module[0] ? "; " : "",
               to->module[0] ? to->of_module : "");
        REMEDY("give this user access: ls -l %s shows the group that has it", to->denied);
        return;
    }
    REASON("module %s: %s%s%s", to->module, to->of_module, traces[0] ? "; but found " : "", traces);
    REMEDY("%s", remedy[0] ? remedy : "report this to the module's author");
}

static void explain(const tn_platform *platform, tni_platform_report *to)
{
    const tni_offer *offer = atomic_load_explicit(&platform->served, memory_order_acquire);
    const char *of_module = offer ? offer->platform->remedy : "";
    const char *remedy = of_module[0] ? of_module : platform->known->driver_remedy;
    const char *thing = platform->known->thing, *variable;
    char traces[256];
    (void)tni_platform_visible_value(platform, &variable);
    list_traces(to, traces, sizeof traces);
    switch (to->verdict) {
    case TN_PLATFORM_READY: REASON("module %s %s", to->module, to->of_module); break;
    case TN_PLATFORM_HIDDEN:
        REASON("%s hides every %s", variable, thing);
        REMEDY("unset %s, or list the devices to use in it", variable);
        break;
    case TN_PLATFORM_BROKEN: explain_broken(traces, remedy, to); break;
    case TN_PLATFORM_NO_MODULE:
        REASON("%s and driver are present (%s), but no module supports %s", thing, traces,
               platform->name);
        REMEDY("Tenon has no module for it; install a tenon-%s into a module folder (`tenon "
               "modules` lists them)",
               platform->name);
        break;
    case TN_PLATFORM_NO_DRIVER:
        REASON("%s without a working driver: found %s", thing, traces);
        REMEDY("%s", remedy);
        break;
    default: explain_absence(traces, of_module, to); break;
    }
}

void tni_platform_examine(const tn_platform *platform, tni_platform_report *out)
{
    tni_platform_gather(platform, out);
    out->verdict = tni_platform_judge(&out->traces);
    explain(platform, out);
}

tn_status tni_platform_unready(const tn_platform *platform, const char *where, tn_error *err)
{
    if (!platform->set)
        return tn_fail(err, TN_UNAVAILABLE, 0, where,
                       "no platform is selected: call tn_platform_current or tn_platform_get");
    tni_platform_report *report = tni_alloc(sizeof *report);
    if (!report)
        return tni_no_memory(err, where, "a report of the platform");
    tni_platform_examine(platform, report);
    tn_status status = tn_fail(err, TN_UNAVAILABLE, 0, where, "platform %s is %s: %s%s%s",
                               platform->name, tn_platform_verdict_name(report->verdict),
                               report->reason, report->remedy[0] ? "; remedy: " : "; ",
                               report->remedy[0] ? report->remedy
                                                 : "`tenon devices --explain` shows the evidence");
    tni_release(report);
    return status;
}

tn_status tni_platform_empty(const tn_platform *platform, const char *where, tn_error *err)
{
    if (!platform->set || !tni_platform_is_ready(platform))
        return tni_platform_unready(platform, where, err);
    return tn_fail(err, TN_NOT_FOUND, 0, where,
                   "platform %s has no device yet: describe one (tn_device_file_add)",
                   platform->name);
}

tn_status tni_platform_no_device(const tn_platform *platform, int32_t index, const char *where,
                                 tn_error *err)
{
    int32_t count = tn_platform_device_count(platform);
    if (count == 0)
        return tni_platform_empty(platform, where, err);
    return tn_fail(err, TN_NOT_FOUND, 0, where, "no device \"%s:%d\": %s has %d", platform->name,
                   (int)index, platform->name, (int)count);
}
