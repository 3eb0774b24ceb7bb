/* `tenon modules` and `tenon doctor`: what came in, what stopped, and what would help. */
#include "json.h"
#include "options.h"

#include "base/words.h"

/* Absent hardware and a second copy are facts; everything else that stopped is broken. */
static bool is_broken(const tn_module_report *report)
{
    return report->status != TN_OK && report->status != TN_UNAVAILABLE &&
           report->status != TN_ALREADY_EXISTS;
}

/* A place that is not there is empty; one that is there and cannot be read is broken. */
static bool is_broken_place(const tn_module_place *place)
{
    return place->status == TN_IO || place->status == TN_NOT_PERMITTED;
}

static int count_broken(const tn_module_list *list)
{
    int broken = 0;
    for (size_t i = 0; i < tn_module_list_count(list); i++)
        broken += is_broken(tn_module_list_get(list, i));
    for (size_t i = 0; i < tn_module_list_place_count(list); i++)
        broken += is_broken_place(tn_module_list_place_get(list, i));
    return broken;
}

/* Prints words up to column 100, further lines indented like the first. */
static void print_wrapped(const char *label, const char *text)
{
    enum { WIDTH = 96 };
    int indent = 4 + (int)strlen(label), column = indent;
    printf("    %s", label);
    while (*text) {
        int length = (int)strcspn(text, " ");
        if (column > indent && column + length > WIDTH) {
            printf("\n%*s", indent, "");
            column = indent;
        }
        printf("%.*s", length, text);
        text += length;
        column += length;
        if (*text == ' ' && column + 1 < WIDTH)
            putchar(' ');
        column++;
        text += *text == ' ';
    }
    putchar('\n');
}

/* For people: a path is whatever bytes someone made it, and must not reach the terminal raw. */
static const char *printable(const char *text)
{
    static char copy[4096];
    tn_text_fit(copy, sizeof copy, text);
    tni_words_clean(copy);
    return copy;
}

static void print_module(const tn_module_report *report)
{
    printf("  %-16s %-10s %-11s %-16s %7.2f ms  %s\n", report->name,
           report->version[0] ? report->version : "-", tn_module_stage_name(report->stage),
           tn_status_name(report->status), report->ms, report->origin);
    print_wrapped("", report->message);
    if (report->remedy[0])
        print_wrapped("remedy: ", report->remedy);
    if (report->path)
        print_wrapped("file: ", printable(report->path));
}

static void print_modules(const tn_module_list *list)
{
    printf("modules\n");
    for (size_t i = 0; i < tn_module_list_count(list); i++)
        print_module(tn_module_list_get(list, i));
    printf("\nplaces sought\n");
    for (size_t i = 0; i < tn_module_list_place_count(list); i++) {
        const tn_module_place *place = tn_module_list_place_get(list, i);
        printf("  %s (%s): %s\n", printable(place->path), place->origin, place->message);
    }
    if (tn_module_list_place_count(list) == 0)
        printf(
            "  none: there is no module folder beside the library, and TENON_MODULE_PATH is not set\n");
}

static void write_module(json *to, const tn_module_report *report)
{
    char abi[32];
    snprintf(abi, sizeof abi, "%u.%u", (unsigned)report->abi_major, (unsigned)report->abi_minor);
    json_begin_object(to, NULL);
    json_text(to, "name", report->name);
    json_text(to, "version", report->version);
    json_text(to, "path", report->path);
    json_text(to, "origin", report->origin);
    json_text(to, "stage", tn_module_stage_name(report->stage));
    json_text(to, "status", tn_status_name(report->status));
    json_text(to, "message", report->message);
    json_text(to, "remedy", report->remedy);
    json_number(to, "ms", report->ms);
    json_text(to, "abi", abi);
    json_integer(to, "platforms", report->platforms);
    json_integer(to, "libraries", report->libraries);
    json_integer(to, "kernels", report->kernels);
    json_integer(to, "languages", report->languages);
    json_integer(to, "communicators", report->communicators);
    json_integer(to, "devices", report->devices);
    json_end_object(to);
}

static void write_modules(json *to, const tn_module_list *list)
{
    json_begin_list(to, "modules");
    for (size_t i = 0; i < tn_module_list_count(list); i++)
        write_module(to, tn_module_list_get(list, i));
    json_end_list(to);
    json_begin_list(to, "places");
    for (size_t i = 0; i < tn_module_list_place_count(list); i++) {
        const tn_module_place *place = tn_module_list_place_get(list, i);
        json_begin_object(to, NULL);
        json_text(to, "path", place->path);
        json_text(to, "origin", place->origin);
        json_text(to, "status", tn_status_name(place->status));
        json_text(to, "message", place->message);
        json_integer(to, "modules", place->modules);
        json_end_object(to);
    }
    json_end_list(to);
}

/* Reads the options both commands have and makes the list; OPTIONS_RUN when there is one. */
static int begin(const command *self, int count, char **arguments, bool *out_json,
                 tn_module_list **out)
{
    bool fresh = false;
    tn_error err;
    const option_row rows[] = {
        {"--json", "as a JSON document", out_json},
        {"--fresh", "probe unknown modules anew, whatever was found before", &fresh},
    };
    int code = options_read(self, rows, sizeof rows / sizeof rows[0], count, arguments);
    if (code != OPTIONS_RUN)
        return code;
    if ((fresh && tn_module_verdicts_ignore(&err)) || tn_module_list_create(out, &err))
        return report_error(&err);
    return OPTIONS_RUN;
}

int run_modules(const command *self, int count, char **arguments)
{
    bool as_json = false;
    tn_module_list *list = NULL;
    int code = begin(self, count, arguments, &as_json, &list);
    if (code != OPTIONS_RUN)
        return code;
    if (as_json) {
        json to = {0};
        json_begin_document(&to, self->name);
        write_modules(&to, list);
        json_end_document(&to);
    } else {
        print_modules(list);
    }
    tn_module_list_release(list);
    return EXIT_DONE;
}

static void print_verdict(const tn_module_list *list, int broken)
{
    size_t ready = 0;
    for (size_t i = 0; i < tn_module_list_count(list); i++)
        ready += tn_module_list_get(list, i)->stage == TN_STAGE_READY;
    printf("\n%zu of %zu modules ready, %d broken\n", ready, tn_module_list_count(list), broken);
}

int run_doctor(const command *self, int count, char **arguments)
{
    bool as_json = false;
    tn_module_list *list = NULL;
    int code = begin(self, count, arguments, &as_json, &list);
    if (code != OPTIONS_RUN)
        return code;
    int broken = count_broken(list);
    if (as_json) {
        json to = {0};
        json_begin_document(&to, self->name);
        json_text(&to, "version", tn_version());
        json_integer(&to, "broken", broken);
        write_modules(&to, list);
        json_end_document(&to);
    } else {
        printf("tenon %s\n\n", tn_version());
        print_modules(list);
        print_verdict(list, broken);
    }
    tn_module_list_release(list);
    return broken ? EXIT_FAILURES_FOUND : EXIT_DONE;
}
