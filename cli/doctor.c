/* `tenon doctor`: the machine, its platforms, devices, modules, libraries and kernels, and whether
 * anything is broken. */
#include "devices.h"
#include "document.h"
#include "page.h"
#include "phrases.h"
#include "progress.h"
#include "report.h"
#include "rules.h"
#include "summary.h"

#include <limits.h>

typedef struct doctor_request {
    bool as_json;
    bool full;
    bool fresh;
    bool quick;
    option_values html;
    option_values files;
} doctor_request;

static void print_all(const findings *found)
{
    (void)print_verdict(found, INT_MAX);
    printf("\ntenon %s\n\n", found->version);
    print_machine(found);
    putchar('\n');
    print_platforms(found, false);
    putchar('\n');
    print_choice(found);
    putchar('\n');
    print_devices(found);
    putchar('\n');
    print_modules(found);
    putchar('\n');
    print_libraries_here(found);
    putchar('\n');
    print_kernels(found);
    print_attention(found);
}

static void write_all(const findings *found, const char *name)
{
    json to = {0};
    json_begin_document(&to, name);
    json_text(&to, "version", found->version);
    json_integer(&to, "broken", findings_count_broken(found));
    write_machine(&to, found);
    write_topology(&to, found);
    write_platforms(&to, found);
    write_devices(&to, found);
    write_modules(&to, found);
    write_libraries(&to, found);
    write_kernels(&to, found);
    write_attention(&to, found);
    write_problems(&to);
    json_end_document(&to);
}

/* Prints the report first, so that it is not lost if the page cannot be written. */
static int write_reports(const command *self, const doctor_request *request, const findings *found)
{
    const char *path = request->html.count ? request->html.texts[0] : NULL;
    tn_error err;
    if (path && strcmp(path, "-") == 0) {
        page_write(found, stdout);
        return EXIT_DONE;
    }
    if (request->as_json)
        write_all(found, self->name);
    else
        (request->full ? print_all : print_summary)(found);
    if (path && page_save(found, path, &err))
        return report_error(&err);
    if (path && !request->as_json)
        text_wrapped(0, "page: ", 6, path);
    return EXIT_DONE;
}

static int read_options(const command *self, int count, char **arguments, doctor_request *request)
{
    const option_row rows[] = {
        {"--json", NULL, "print JSON", &request->as_json, NULL, 0},
        {"--full", NULL, "print everything that was found, not one screen", &request->full, NULL,
         0},
        {"--html", "FILE",
         "also write a self-contained HTML page; - writes only the page, to stdout", NULL,
         &request->html, 1},
        {"--fresh", NULL, "probe unknown modules again, ignoring cached results", &request->fresh,
         NULL, 0},
        {"--quick", NULL, "do not check or time kernels, and open no libraries except drivers",
         &request->quick, NULL, 0},
        {"--device-file", "F", "also use the devices described in F; may be repeated", NULL,
         &request->files, OPTION_VALUES_MAX},
    };
    int code = options_read(self, rows, sizeof rows / sizeof rows[0], count, arguments);
    if (code != OPTIONS_RUN)
        return code;
    if (request->as_json && request->html.count && strcmp(request->html.texts[0], "-") == 0) {
        fprintf(stderr, "tenon %s: --json and --html - cannot both write to stdout\n", self->name);
        return EXIT_WRONG_USE;
    }
    return OPTIONS_RUN;
}

/* Gathers kernels first, so that the state of libraries and modules includes what trying them
 * showed. */
static tn_status gather(const doctor_request *request, findings *out, tn_error *err)
{
    enum { ALL = FIND_PLATFORMS | FIND_MACHINE | FIND_SETTINGS | FIND_MODULES | FIND_LIBRARIES };
    const uint32_t topology = request->quick ? FIND_TOPOLOGY_BASIC : FIND_TOPOLOGY;
    found_kernels kernels = {0};
    found_backends backends = {0};
    kernels_progress *show = request->as_json ? NULL : progress_show;
    tn_status status = request->quick ? kernels_gather_lock(&kernels, err)
                                      : kernels_gather(show, NULL, &kernels, err);
    if (!status && !request->quick)
        status = backends_gather(&backends, err);
    if (!status)
        status = findings_gather(ALL | topology, out, err);
    if (status)
        kernels_release(&kernels);
    else {
        out->kernels = kernels;
        out->backends = backends;
    }
    return status;
}

int run_doctor(const command *self, int count, char **arguments)
{
    doctor_request request = {0};
    findings found;
    tn_error err;
    int code = read_options(self, count, arguments, &request);
    if (code != OPTIONS_RUN)
        return code;
    if (request.fresh && tn_module_verdicts_ignore(&err))
        return report_error(&err);
    if ((code = add_device_files(&request.files)))
        return code;
    if (gather(&request, &found, &err))
        return report_error(&err);
    rules_say_unknown();
    code = write_reports(self, &request, &found);
    if (code == EXIT_DONE)
        code = findings_count_broken(&found) ? EXIT_FAILURES_FOUND : code_of_choice(&found);
    findings_release(&found);
    return code;
}
