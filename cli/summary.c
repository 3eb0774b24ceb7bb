#include "summary.h"

#include "phrases.h"

#include <ctype.h>
#include <limits.h>

enum { LABEL = 12, VERDICT_LINES = 3, PLATFORM_LINES = 5, DEVICE_LINES = 3 };

static int print_row(const char *label, const char *text, int most)
{
    return text_wrapped_within(0, label, LABEL, text, most);
}

/* Names on one line: "ready: cpu, ref and 3 more". */
typedef struct name_list {
    text_line line;
    int count;
    int hidden;
} name_list;

static void add_name(name_list *list, const char *label, const char *name)
{
    enum { MORE = 13 }; /* columns of " and 123 more" */
    const int room = text_width() - LABEL - MORE;
    if (list->count++ == 0)
        text_add(&list->line, "%s: %s", label, name);
    else if (list->hidden > 0 || text_columns(list->line.text) + 2 + text_columns(name) > room)
        list->hidden++;
    else
        text_add(&list->line, ", %s", name);
}

/* Prints nothing for an empty list. */
static int print_names(const char *label, name_list *list)
{
    if (list->count == 0)
        return 0;
    if (list->hidden > 0)
        text_add(&list->line, " and %d more", list->hidden);
    return print_row(label, list->line.text, 1);
}

/* Prints broken things while lines are left, and counts the others. */
typedef struct broken_printer {
    int left;
    int most; /* lines of a reason, and of a remedy */
    int hidden;
} broken_printer;

static void print_broken(void *to, const broken_thing *thing)
{
    broken_printer *by = to;
    text_line line = {0};
    if (by->hidden > 0 || by->left <= 2 * by->most) {
        by->hidden++;
        return;
    }
    text_add(&line, "%s %s: %s", thing->kind, thing->name, thing->why);
    printf("  ");
    by->left -= text_wrapped_within(2, "", 0, line.text, by->most);
    if (!thing->remedy[0])
        return;
    printf("    ");
    by->left -= text_wrapped_within(4, "remedy: ", 8, thing->remedy, by->most);
}

int print_verdict(const findings *found, int lines)
{
    const bool is_all = lines == INT_MAX;
    text_line line = {0};
    phrase_verdict(found, &line);
    text_add(&line, "; ");
    phrase_counts(found, &line);
    printf("%s", paint(findings_count_broken(found) ? PAINT_BAD : PAINT_GOOD));
    broken_printer by = {.most = is_all ? INT_MAX / 4 : 2};
    by.left = lines - text_wrapped_within(0, "verdict: ", 9, line.text, VERDICT_LINES);
    printf("%s", paint(PAINT_NONE));
    findings_visit_broken(found, print_broken, &by);
    if (by.hidden > 0) {
        printf("  and %d more: `tenon doctor --full`\n", by.hidden);
        by.left--;
    }
    return lines - by.left;
}

static int print_host(const findings *found)
{
    const tn_machine_facts *facts = found->facts;
    char total[TEXT_BYTES], available[TEXT_BYTES];
    text_line processor = {0}, structure = {0}, caches = {0}, memory = {0}, budget = {0};
    phrase_processor(found, &processor);
    text_add_item(&processor, "level %s", found->level);
    phrase_structure(found, &structure);
    phrase_caches(found, &caches);
    if (caches.length > 0)
        text_add(&structure, "; %s", caches.text);
    text_add(&memory, "%s in total, %s available", text_fact_bytes(&facts->memory_total, total),
             text_fact_bytes(&facts->memory_available, available));
    phrase_budget(found, &budget);
    return print_row("machine", processor.text, 1) + print_row("", structure.text, 2) +
           print_row("memory", memory.text, 1) + print_row("budget", budget.text, 1);
}

static int print_platform(const char *label, const tn_platform_report *report)
{
    text_line line = {0};
    text_add(&line, "%s%s %s: %s", report->current ? "* " : "", report->name,
             tn_platform_verdict_name(report->verdict), report->reason);
    if (report->remedy[0] && report->verdict != TN_PLATFORM_READY)
        text_add(&line, "; remedy: %s", report->remedy);
    return print_row(label, line.text, report->verdict == TN_PLATFORM_READY ? 1 : 2);
}

/* Absent platforms by name, and the others while lines are left; broken ones stand above. */
static int print_platforms_briefly(const findings *found)
{
    name_list absent = {0}, others = {0};
    int used = 0;
    if (found->choice_status != TN_OK) {
        text_line line = {0};
        text_add(&line, "none is current: %s", found->choice);
        used += print_row("platforms", line.text, 2);
    }
    for (size_t i = 0; i < TN_PLATFORM_VERDICT_COUNT * found->platform_count; i++) {
        const tn_platform_report *report = &found->platforms[i % found->platform_count].report;
        if (report->verdict != findings_verdict_order[i / found->platform_count] ||
            platform_is_broken(report))
            continue;
        if (report->verdict == TN_PLATFORM_ABSENT)
            add_name(&absent, "absent", report->name);
        else if (used + 2 < PLATFORM_LINES)
            used += print_platform(used ? "" : "platforms", report);
        else
            add_name(&others, "also", report->name);
    }
    used += print_names(used ? "" : "platforms", &others);
    return used + print_names(used ? "" : "platforms", &absent);
}

/* Whether a device differs from the one before it in nothing but its number and its available
 * memory. */
static bool is_alike(const found_device *a, const found_device *b)
{
    return strcmp(a->platform, b->platform) == 0 && strcmp(a->name, b->name) == 0 &&
           strcmp(a->capability, b->capability) == 0 && a->plans_only == b->plans_only &&
           a->memory.total.known == b->memory.total.known &&
           a->memory.total.value == b->memory.total.value;
}

/* "cpu:0", or "cuda:0 to cuda:7, 8 alike", with what is known of the first. */
static int print_alike(const char *label, const found_device *first, size_t count)
{
    char total[TEXT_BYTES], available[TEXT_BYTES];
    bool is_current = false;
    text_line line = {0};
    for (size_t i = 0; i < count; i++)
        is_current = is_current || first[i].current;
    text_add(&line, "%s%s", is_current ? "* " : "", first->id);
    if (count > 1)
        text_add(&line, " to %s", first[count - 1].id);
    text_add(&line, ": %s", first->name[0] ? first->name : "unknown name");
    if (first->capability[0])
        text_add_item(&line, "capability %s", first->capability);
    text_add_item(&line, "%s in total", text_fact_bytes(&first->memory.total, total));
    if (count == 1 && first->memory.available.known)
        text_add_item(&line, "%s available", text_fact_bytes(&first->memory.available, available));
    if (first->plans_only)
        text_add_item(&line, "plans only");
    return print_row(label, line.text, 1);
}

static int print_devices_briefly(const findings *found)
{
    int used = 0;
    size_t at = 0;
    while (at < found->device_count && used + 1 < DEVICE_LINES) {
        size_t count = 1;
        while (at + count < found->device_count &&
               is_alike(&found->devices[at], &found->devices[at + count]))
            count++;
        used += print_alike(used ? "" : "devices", &found->devices[at], count);
        at += count;
    }
    if (at < found->device_count) {
        text_line line = {0};
        text_add(&line, "and %zu more: `tenon devices`", found->device_count - at);
        used += print_row("", line.text, 1);
    }
    return used ? used : print_row("devices", "none", 1);
}

static int print_modules_briefly(const findings *found)
{
    name_list ready = {0}, partly = {0}, others = {0};
    for (size_t i = 0; i < found->module_count; i++) {
        const tn_module_report *module = &found->modules[i];
        text_line line = {0};
        text_add(&line, "%s (%s)", module->name, tn_status_name(module->status));
        if (module->stage == TN_STAGE_READY)
            add_name(&ready, "ready", module->name);
        if (module->stage == TN_STAGE_READY && module->remedy[0])
            add_name(&partly, "partly in use (`tenon modules`)", module->name);
        if (module->stage != TN_STAGE_READY && !module_is_broken(module))
            add_name(&others, "not ready (`tenon modules`)", line.text);
    }
    int used = print_names("modules", &ready);
    used += print_names(used ? "" : "modules", &partly);
    return used + print_names(used ? "" : "modules", &others);
}

/* Parts of Tenon are not listed. */
static int print_libraries_briefly(const findings *found)
{
    name_list open = {0}, here = {0}, missing = {0};
    for (size_t i = 0; i < found->library_count; i++) {
        const tn_library_state *library = &found->libraries[i];
        text_line line = {0};
        text_add(&line, "%s", library->name);
        if (isdigit((unsigned char)library->version_text[0]))
            text_add(&line, " %.*s", (int)strcspn(library->version_text, " "),
                     library->version_text);
        if (library->available == TN_AVAILABLE_YES && library->path[0])
            add_name(&open, "in use", line.text);
        else if (library->available == TN_AVAILABLE_UNTRIED && library->path[0])
            add_name(&here, "found, not opened", line.text);
        else if (library->remedy[0] && library_is_used(library) && !library->path[0])
            add_name(&missing, "missing (`tenon libraries`)", line.text);
    }
    int used = print_names("libraries", &open);
    used += print_names(used ? "" : "libraries", &here);
    return used + print_names(used ? "" : "libraries", &missing);
}

static bool has_kernels(const found_kernels *kernels)
{
    for (size_t d = 0; d < kernels->count; d++) {
        if (kernels->decisions[d].count > 0)
            return true;
    }
    return false;
}

void print_summary(const findings *found)
{
    enum { BOTTOM = 3, KERNELS_LEAST = 5 }; /* lines below the kernels; lines of their part */
    int left = SUMMARY_LINES - BOTTOM - print_verdict(found, SUMMARY_BROKEN);
    putchar('\n');
    left -= 1 + print_host(found);
    putchar('\n');
    left -= 1 + print_platforms_briefly(found);
    left -= print_devices_briefly(found);
    left -= print_modules_briefly(found);
    left -= print_libraries_briefly(found);
    if (has_kernels(&found->kernels) && left >= KERNELS_LEAST) {
        putchar('\n');
        (void)print_summary_kernels(&found->kernels, left - 1);
    }
    printf("\ntenon %s; more: `tenon doctor --full`\n", found->version);
}
