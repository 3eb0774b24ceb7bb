#include "report.h"

#include "phrases.h"

static void print_module(const tn_module_report *report)
{
    printf("  %-16s %-10s %-11s %s%-16s%s %7.2f ms  %s\n", report->name,
           report->version[0] ? report->version : "-", tn_module_stage_name(report->stage),
           paint(paint_of_status(report->status)), tn_status_name(report->status),
           paint(PAINT_NONE), report->ms, report->origin);
    text_wrapped(4, "", 0, report->message);
    if (report->remedy[0])
        text_wrapped(4, "remedy: ", 8, report->remedy);
    if (report->path)
        text_wrapped(4, "file: ", 6, report->path);
}

static void print_places(const findings *found)
{
    text_heading("places sought");
    for (size_t i = 0; i < found->place_count; i++) {
        const tn_module_place *place = &found->places[i];
        text_line line = {0};
        text_add(&line, "%s (%s): %s", place->path, place->origin, place->message);
        text_wrapped(2, "", 0, line.text);
    }
    if (found->place_count == 0)
        text_wrapped(2, "", 0,
                     "none: there is no module folder beside the library, and TENON_MODULE_PATH is "
                     "not set");
}

void print_modules(const findings *found)
{
    text_heading("modules");
    for (size_t i = 0; i < found->module_count; i++)
        print_module(&found->modules[i]);
    putchar('\n');
    print_places(found);
}

/* Widths of a table's columns. */
typedef struct device_columns {
    int id;
    int name;
} device_columns;

static device_columns measure_devices(const findings *found)
{
    enum { REST = 46, NAME_LEAST = 16 }; /* everything but the two columns */
    device_columns widths = {2, 4};
    for (size_t i = 0; i < found->device_count; i++) {
        int id = text_columns(found->devices[i].id), name = text_columns(found->devices[i].name);
        widths.id = id > widths.id ? id : widths.id;
        widths.name = name > widths.name ? name : widths.name;
    }
    int most = TEXT_WIDTH - REST - widths.id;
    most = most > NAME_LEAST ? most : NAME_LEAST;
    widths.name = widths.name < most ? widths.name : most;
    return widths;
}

static void print_device(const findings *found, const found_device *device, device_columns widths)
{
    char total[TEXT_BYTES], available[TEXT_BYTES];
    text_line facts = {0};
    printf("  %s%c%s ", paint(PAINT_GOOD), device->current ? '*' : ' ', paint(PAINT_NONE));
    printf("%s%-*s%s  ", paint(PAINT_STRONG), widths.id, device->id, paint(PAINT_NONE));
    text_cell(device->name[0] ? device->name : "unknown", widths.name);
    printf("  %-10s  %10s  %10s\n", device->capability[0] ? device->capability : "-",
           text_fact_bytes(&device->memory.total, total),
           text_fact_bytes(&device->memory.available, available));
    phrase_device(found, device, &facts);
    if (facts.length > 0)
        text_wrapped(widths.id + 6, "", 0, facts.text);
}

void print_devices(const findings *found)
{
    text_heading("devices");
    if (found->device_count == 0) {
        printf("  none\n");
        return;
    }
    device_columns widths = measure_devices(found);
    printf("%s    %-*s  %-*s  %-10s  %10s  %10s%s\n", paint(PAINT_SOFT), widths.id, "id",
           widths.name, "name", "capability", "memory", "available", paint(PAINT_NONE));
    for (size_t i = 0; i < found->device_count; i++)
        print_device(found, &found->devices[i], widths);
}

void print_choice(const findings *found)
{
    text_line line = {0};
    bool is_chosen = found->choice_status == TN_OK;
    text_add(&line, "%s%s",
             is_chosen ? "the current platform is " : "no platform is current: ", found->choice);
    text_wrapped(0, "", 0, line.text);
}

static void print_evidence(const tn_platform_evidence *evidence)
{
    text_line line = {0};
    const char *word = evidence->holds > 0 ? "yes" : evidence->holds == 0 ? "no" : "?";
    int colour = evidence->holds > 0 ? PAINT_GOOD : PAINT_SOFT;
    printf("      %s%-5s%s", paint(colour), word, paint(PAINT_NONE));
    text_add(&line, "%s: %s", evidence->what, evidence->found);
    text_wrapped_on(11, evidence->shows, 11, line.text);
}

static void print_platform(const found_platform *platform, bool with_evidence)
{
    const tn_platform_report *report = &platform->report;
    printf("  %c %-12s %s%-11s%s", report->current ? '*' : ' ', report->name,
           paint(paint_of_verdict(report->verdict)), tn_platform_verdict_name(report->verdict),
           paint(PAINT_NONE));
    text_wrapped_on(28, "", 0, report->reason);
    if (report->remedy[0])
        text_wrapped(28, "remedy: ", 8, report->remedy);
    for (size_t i = 0; with_evidence && i < report->evidence_count; i++)
        print_evidence(&platform->evidence[i]);
}

void print_platforms(const findings *found, bool with_evidence)
{
    text_heading("platforms");
    for (size_t v = 0; v < TN_PLATFORM_VERDICT_COUNT; v++) {
        for (size_t i = 0; i < found->platform_count; i++) {
            if (found->platforms[i].report.verdict == findings_verdict_order[v])
                print_platform(&found->platforms[i], with_evidence);
        }
    }
}
