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
    text_heading("searched folders");
    for (size_t i = 0; i < found->place_count; i++) {
        const tn_module_place *place = &found->places[i];
        text_line line = {0};
        text_add(&line, "%s (%s): %s", place->path, place->origin, place->message);
        text_wrapped(2, "", 0, line.text);
    }
    if (found->place_count == 0)
        text_wrapped(
            2, "", 0,
            "none: there is no module folder next to the library, and TENON_MODULE_PATH is "
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

static int paint_of_library(const tn_library_state *library)
{
    switch (library->available) {
    case TN_AVAILABLE_YES: return PAINT_GOOD;
    case TN_AVAILABLE_UNTRIED: return PAINT_ODD;
    default: return library_is_broken(library) ? PAINT_BAD : PAINT_SOFT;
    }
}

static void print_library_details(const tn_library_state *library, int indent)
{
    if (library_rule(library)[0])
        text_wrapped(indent, "", 0, library_rule(library));
    if (library->reason[0])
        text_wrapped(indent, "", 0, library->reason);
    if (library->remedy[0])
        text_wrapped(indent, "remedy: ", 8, library->remedy);
    if (library_file(library)[0])
        text_wrapped(indent, "file: ", 6, library_file(library));
}

static void print_library(const tn_library_state *library)
{
    enum { INDENT = 23 }; /* of the text after name and availability */
    text_line line = {0};
    printf("  %s%-12s%s%s%-9s%s", paint(PAINT_STRONG), library->name, paint(PAINT_NONE),
           paint(paint_of_library(library)), tn_available_name(library->available),
           paint(PAINT_NONE));
    if (library->platform[0])
        text_add_item(&line, "%s", library->platform);
    if (library->version_text[0])
        text_add_item(&line, "%s", library->version_text);
    if (library->kernels > 0)
        text_add_item(&line, "%d kernel%s", (int)library->kernels, plural(library->kernels));
    if (library->what[0])
        text_add(&line, "%s%s", line.length > 0 ? ": " : "", library->what);
    if (!library_is_used(library))
        text_add(&line, "%s%s%s%s", line.length > 0 ? "; " : "", library_rule(library),
                 library_rule(library)[0] ? "; " : "", library->reason);
    text_wrapped_on(INDENT, "", 0, line.text);
    if (library_is_used(library))
        print_library_details(library, INDENT);
}

void print_libraries(const findings *found)
{
    text_heading("libraries");
    for (size_t i = 0; i < found->library_count; i++) {
        if (library_is_used(&found->libraries[i]))
            print_library(&found->libraries[i]);
    }
    putchar('\n');
    text_heading("libraries that no module uses");
    for (size_t i = 0; i < found->library_count; i++) {
        if (!library_is_used(&found->libraries[i]))
            print_library(&found->libraries[i]);
    }
    text_wrapped(
        2, "remedy: ", 8,
        "install a module that offers it into a module folder (`tenon modules` lists them)");
}

void print_libraries_here(const findings *found)
{
    text_line others = {0};
    text_heading("libraries");
    for (size_t i = 0; i < found->library_count; i++) {
        if (library_is_here(&found->libraries[i]))
            print_library(&found->libraries[i]);
        else
            text_add_item(&others, "%s", found->libraries[i].name);
    }
    if (others.length == 0)
        return;
    text_add(&others, " (details: `tenon libraries`)");
    text_wrapped(2, "not used: ", 15, others.text);
}

/* Widths of a table's columns. */
typedef struct device_columns {
    int id;
    int name;
} device_columns;

static device_columns measure_devices(const findings *found)
{
    enum { REST = 46, NAME_LEAST = 16 }; /* width of everything but the two columns */
    device_columns widths = {2, 4};
    for (size_t i = 0; i < found->device_count; i++) {
        int id = text_columns(found->devices[i].id), name = text_columns(found->devices[i].name);
        widths.id = id > widths.id ? id : widths.id;
        widths.name = name > widths.name ? name : widths.name;
    }
    int most = text_width() - REST - widths.id;
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
