/* Platforms as cards; devices, modules, places and libraries as tables. */
#include "html.h"
#include "page_parts.h"
#include "phrases.h"

#include "base/words.h"

static const char *badge_of_verdict(tn_platform_verdict verdict)
{
    switch (verdict) {
    case TN_PLATFORM_READY: return "good";
    case TN_PLATFORM_BROKEN: return "bad";
    case TN_PLATFORM_ABSENT: return "none";
    default: return "odd";
    }
}

static const char *badge_of_module(const tn_module_report *module)
{
    return module->status == TN_OK ? "good" : module_is_broken(module) ? "bad" : "none";
}

static const char *badge_of_library(const tn_library_state *library)
{
    switch (library->available) {
    case TN_AVAILABLE_YES: return "good";
    case TN_AVAILABLE_UNTRIED: return "odd";
    default: return library_is_broken(library) ? "bad" : "none";
    }
}

/* Writes the names that frameworks use for the platform, and the variable that hides its
 * devices. */
static void write_words(FILE *to, const found_platform *platform)
{
    text_line words = {0};
    if (platform->device_type[0])
        text_add_item(&words, "device type %s", platform->device_type);
    if (platform->dispatch_key[0])
        text_add_item(&words, "dispatch key %s", platform->dispatch_key);
    if (platform->visible_variable[0])
        text_add_item(&words, "devices hidden by %s", platform->visible_variable);
    if (words.length > 0)
        html_write(to, "<small>%s</small>\n", words.text);
}

static void write_evidence(FILE *to, const found_platform *platform)
{
    size_t count = platform->report.evidence_count;
    html_write(to, "<details><summary>Evidence</summary>\n<ul class=\"evidence\">\n");
    for (size_t i = 0; i < count; i++) {
        const tn_platform_evidence *evidence = &platform->evidence[i];
        const char *word = evidence->holds > 0 ? "yes" : evidence->holds == 0 ? "no" : "unknown";
        html_write(to, "<li class=\"%s\"><span>%s</span> <em>%s</em> <code>%s</code>: %s</li>\n",
                   word, word, evidence->shows, evidence->what, evidence->found);
    }
    html_write(to, "</ul>\n");
    write_words(to, platform);
    html_write(to, "</details>\n");
}

static void write_platform(FILE *to, const found_platform *platform)
{
    const tn_platform_report *report = &platform->report;
    html_write(to, "<article class=\"card %s\">\n<h3>%s", badge_of_verdict(report->verdict),
               report->name);
    if (platform->device_name[0] && !tni_words_same(platform->device_name, report->name))
        html_write(to, " <span>%s</span>", platform->device_name);
    html_write(to, "</h3>\n<p class=\"badges\">");
    if (report->current)
        html_write(to, "<span class=\"badge current\">current</span> ");
    html_write(to, "<span class=\"badge %s\">%s</span></p>\n", badge_of_verdict(report->verdict),
               tn_platform_verdict_name(report->verdict));
    html_write(to, "<p>%s</p>\n", report->reason);
    if (report->remedy[0])
        html_write(to, "<p class=\"remedy\">%s</p>\n", report->remedy);
    write_evidence(to, platform);
    html_write(to, "</article>\n");
}

void page_platforms(FILE *to, const findings *found)
{
    bool is_chosen = found->choice_status == TN_OK;
    html_write(to, "<section id=\"platforms\">\n<h2>Platforms</h2>\n<p>%s%s.</p>\n",
               is_chosen ? "Current platform: " : "No platform is current: ", found->choice);
    html_write(to, "<div class=\"cards\">\n");
    for (size_t v = 0; v < TN_PLATFORM_VERDICT_COUNT; v++) {
        for (size_t i = 0; i < found->platform_count; i++) {
            if (found->platforms[i].report.verdict == findings_verdict_order[v])
                write_platform(to, &found->platforms[i]);
        }
    }
    html_write(to, "</div>\n</section>\n");
}

static void write_device(FILE *to, const findings *found, const found_device *device)
{
    char total[TEXT_BYTES], available[TEXT_BYTES];
    text_line facts = {0}, dtypes = {0};
    phrase_device(found, device, &facts);
    for (const tn_dtype *dtype = device->dtypes; *dtype; dtype++)
        text_add_item(&dtypes, "%s", dtype_word(*dtype));
    html_write(to, "<tr><th scope=\"row\"><code>%s</code>", device->id);
    if (device->current)
        html_write(to, " <span class=\"badge current\">current</span>");
    if (device->plans_only)
        html_write(to, " <span class=\"badge odd\">plans only</span>");
    html_write(to, "</th><td data-label=\"Name\"><b>%s</b><small>%s</small>",
               device->name[0] ? device->name : "unknown", facts.text);
    if (dtypes.length > 0)
        html_write(to, "<small>computes with %s</small>", dtypes.text);
    if (device->uuid[0])
        html_write(to, "<small><code>%s</code></small>", device->uuid);
    html_write(to, "</td><td data-label=\"Capability\">%s</td>",
               device->capability[0] ? device->capability : "-");
    html_write(to, "<td class=\"number\" data-label=\"Memory\" title=\"%s\">%s</td>",
               device->memory.total.origin, text_fact_bytes(&device->memory.total, total));
    html_write(to, "<td class=\"number\" data-label=\"Available\" title=\"%s\">%s</td></tr>\n",
               device->memory.available.origin,
               text_fact_bytes(&device->memory.available, available));
}

void page_devices(FILE *to, const findings *found)
{
    html_write(to, "<section id=\"devices\">\n<h2>Devices</h2>\n");
    if (found->device_count == 0) {
        html_write(to, "<p>No devices found.</p>\n</section>\n");
        return;
    }
    html_write(to,
               "<table>\n<thead><tr><th scope=\"col\">Device</th><th scope=\"col\">Name</th><th "
               "scope=\"col\">Capability</th><th scope=\"col\" class=\"number\">Memory</th><th "
               "scope=\"col\" class=\"number\">Available</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < found->device_count; i++)
        write_device(to, found, &found->devices[i]);
    html_write(to, "</tbody>\n</table>\n</section>\n");
}

static void write_module(FILE *to, const tn_module_report *module)
{
    html_write(to, "<tr><th scope=\"row\"><code>%s</code><small>%s</small></th>", module->name,
               module->version);
    html_write(to, "<td data-label=\"Status\"><span class=\"badge %s\">%s</span></td>",
               badge_of_module(module), tn_status_name(module->status));
    html_write(to, "<td data-label=\"Stage\">%s</td><td data-label=\"Says\">%s",
               tn_module_stage_name(module->stage), module->message);
    if (module->remedy[0])
        html_write(to, "<span class=\"remedy\">%s</span>", module->remedy);
    if (module->path)
        html_write(to, "<small><code>%s</code></small>", module->path);
    html_write(to, "<small>%s</small></td>", module->origin);
    html_write(to, "<td class=\"number\" data-label=\"Time\">%.2f ms</td></tr>\n", module->ms);
}

static void write_places(FILE *to, const findings *found)
{
    html_write(to, "<h3>Searched folders</h3>\n<ul class=\"places\">\n");
    for (size_t i = 0; i < found->place_count; i++) {
        const tn_module_place *place = &found->places[i];
        html_write(to, "<li><code>%s</code> %s<small>%s</small></li>\n", place->path,
                   place->message, place->origin);
    }
    if (found->place_count == 0)
        html_write(to,
                   "<li>None: there is no module folder next to the library, and TENON_MODULE_PATH "
                   "is not set.</li>\n");
    html_write(to, "</ul>\n");
}

void page_modules(FILE *to, const findings *found)
{
    html_write(to, "<section id=\"modules\">\n<h2>Modules</h2>\n<table>\n<thead><tr><th "
                   "scope=\"col\">Module</th><th scope=\"col\">Status</th><th "
                   "scope=\"col\">Stage</th><th scope=\"col\">Says</th><th scope=\"col\" "
                   "class=\"number\">Time</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < found->module_count; i++)
        write_module(to, &found->modules[i]);
    html_write(to, "</tbody>\n</table>\n");
    write_places(to, found);
    html_write(to, "</section>\n");
}

static void write_small(FILE *to, const char *text)
{
    if (text[0])
        html_write(to, "<small>%s</small>", text);
}

static void write_library(FILE *to, const tn_library_state *library)
{
    text_line users = {0};
    if (library->module[0])
        text_add_item(&users, "module %s", library->module);
    if (library->kernels > 0)
        text_add_item(&users, "%d kernel%s", (int)library->kernels, plural(library->kernels));
    html_write(to, "<tr><th scope=\"row\"><code>%s</code><small>%s</small></th>", library->name,
               library->version_text);
    html_write(to, "<td data-label=\"Available\"><span class=\"badge %s\">%s</span></td>",
               badge_of_library(library), tn_available_name(library->available));
    html_write(to, "<td data-label=\"Platform\">%s</td><td data-label=\"Says\">%s",
               library->platform[0] ? library->platform : "-", library->what);
    write_small(to, library_rule(library));
    write_small(to, library->reason);
    if (library->remedy[0] && library_is_used(library))
        html_write(to, "<span class=\"remedy\">%s</span>", library->remedy);
    if (library_file(library)[0])
        html_write(to, "<small><code>%s</code></small>", library_file(library));
    write_small(to, users.text);
    html_write(to, "</td></tr>\n");
}

static void write_other_libraries(FILE *to, const findings *found)
{
    text_line names = {0};
    for (size_t i = 0; i < found->library_count; i++) {
        if (!library_is_here(&found->libraries[i]))
            text_add_item(&names, "%s", found->libraries[i].name);
    }
    if (names.length == 0)
        return;
    html_write(to, "<details><summary>Not used: %s</summary>\n<ul class=\"places\">\n", names.text);
    for (size_t i = 0; i < found->library_count; i++) {
        const tn_library_state *library = &found->libraries[i];
        if (!library_is_here(library))
            html_write(to, "<li><code>%s</code> %s<small>%s</small></li>\n", library->name,
                       library->what, library->reason);
    }
    html_write(to, "</ul>\n</details>\n");
}

void page_libraries(FILE *to, const findings *found)
{
    html_write(
        to, "<section id=\"libraries\">\n<h2>Libraries</h2>\n<p>Listing does not open "
            "libraries; <code>tenon libraries --try</code> opens the untried ones.</p>\n<table>\n"
            "<thead><tr><th scope=\"col\">Library</th><th scope=\"col\">Available</th><th "
            "scope=\"col\">Platform</th><th scope=\"col\">Says</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < found->library_count; i++) {
        if (library_is_here(&found->libraries[i]))
            write_library(to, &found->libraries[i]);
    }
    html_write(to, "</tbody>\n</table>\n");
    write_other_libraries(to, found);
    html_write(to, "</section>\n");
}

void page_notes(FILE *to, const findings *found)
{
    if (found->note_count == 0)
        return;
    html_write(to, "<section id=\"notes\">\n<h2>Unreadable information</h2>\n<ul>\n");
    for (size_t i = 0; i < found->note_count; i++)
        html_write(to, "<li>%s</li>\n", found->notes[i]);
    html_write(to, "</ul>\n</section>\n");
}
