/* `tenon lock`: writes down selections and compares them with a machine or with each other. */
#include "devices.h"
#include "json.h"
#include "rules.h"
#include "text.h"

typedef struct lock_request {
    option_values words; /* the action and its arguments */
    option_values device;
    option_values files;
    bool strict;
    bool as_json;
} lock_request;

static const char who[] = " lock";

/* Whether the row means that a problem would not be computed by the locked kernel. */
static bool is_unmet(const tn_lock_row *row)
{
    return row->kind == TN_LOCK_ROW_KERNEL || row->kind == TN_LOCK_ROW_VERSION ||
           row->kind == TN_LOCK_ROW_REFUSED;
}

static size_t count_unmet(const tn_lock_report *report)
{
    size_t unmet = 0;
    for (size_t i = 0; i < tn_lock_report_count(report); i++)
        unmet += is_unmet(tn_lock_report_row(report, i));
    return unmet;
}

static void write_row(json *to, const char *kind, const tn_lock_row *row)
{
    json_begin_object(to, NULL);
    json_text(to, "kind", kind);
    json_known_text(to, "problem", row->problem);
    json_known_text(to, "locked", row->locked);
    json_known_text(to, "found", row->found);
    json_text(to, "text", row->text);
    json_end_object(to);
}

static void begin_document(json *to, const command *self, const lock_request *request,
                           size_t differences)
{
    json_begin_document(to, self->name);
    json_text(to, "action", request->words.texts[0]);
    json_text(to, "file", request->words.texts[1]);
    json_integer(to, "differences", (int64_t)differences);
    json_begin_list(to, "rows");
}

static void end_document(json *to)
{
    json_end_list(to);
    json_end_document(to);
}

static void print_row(const char *kind, int colour, const char *text)
{
    enum { INDENT = 2, KIND = 13 };
    printf("%*s%s%-*s%s", INDENT, "", paint(colour), KIND, kind, paint(PAINT_NONE));
    text_wrapped_on(INDENT + KIND, "", 0, text);
}

/* Results of a comparison. */

static void write_report(const command *self, const lock_request *request,
                         const tn_lock_report *report)
{
    json to = {0};
    begin_document(&to, self, request, tn_lock_report_differences(report));
    for (size_t i = 0; i < tn_lock_report_count(report); i++) {
        const tn_lock_row *row = tn_lock_report_row(report, i);
        write_row(&to, tn_lock_row_name(row->kind), row);
    }
    end_document(&to);
}

static void print_report(const tn_lock_report *report)
{
    size_t differences = tn_lock_report_differences(report);
    text_line line = {0};
    for (size_t i = 0; i < tn_lock_report_count(report); i++) {
        const tn_lock_row *row = tn_lock_report_row(report, i);
        int colour = row->kind == TN_LOCK_ROW_SAME ? PAINT_GOOD
                     : is_unmet(row)               ? PAINT_BAD
                                                   : PAINT_ODD;
        print_row(tn_lock_row_name(row->kind), colour, row->text);
    }
    if (differences == 0)
        text_add(&line, "no difference");
    else
        text_add(&line, "%zu difference%s", differences, plural((int64_t)differences));
    text_wrapped(0, "", 0, line.text);
}

static void report_lock(const command *self, const lock_request *request,
                        const tn_lock_report *report)
{
    if (request->as_json)
        write_report(self, request, report);
    else
        print_report(report);
}

static int check_lock(const command *self, const lock_request *request)
{
    tn_lock_report *report = NULL;
    tn_device *device = NULL;
    tn_error err;
    tn_status status =
        request->device.count ? tn_device_get(request->device.texts[0], &device, &err) : TN_OK;
    if (!status)
        status = tn_lock_check(NULL, request->words.texts[1], device, &report, &err);
    if (status)
        return report_request(who, &err);
    report_lock(self, request, report);
    int code = count_unmet(report) ? EXIT_REFUSED : EXIT_DONE;
    tn_lock_report_release(report);
    return code;
}

static int diff_locks(const command *self, const lock_request *request)
{
    tn_lock_report *report = NULL;
    tn_error err;
    if (tn_lock_diff(request->words.texts[1], request->words.texts[2], &report, &err))
        return report_request(who, &err);
    report_lock(self, request, report);
    int code = tn_lock_report_differences(report) ? EXIT_FAILURES_FOUND : EXIT_DONE;
    tn_lock_report_release(report);
    return code;
}

/* Results of writing. */

typedef struct written {
    tn_decision *decisions[OPTION_VALUES_MAX];
    size_t count;
} written;

static bool is_listed(const written *in, const char *problem)
{
    for (size_t i = 0; i < in->count; i++) {
        if (strcmp(tn_decision_problem(in->decisions[i]), problem) == 0)
            return true;
    }
    return false;
}

/* Decides again instead of reading the file: the output may have been a pipe. */
static tn_status gather_written(const tn_lock_write_args *args, written *out, tn_error *err)
{
    tn_status status = TN_OK;
    for (size_t i = 0; i < args->count && !status; i++) {
        tn_decision *decision = NULL;
        status = tn_explain(NULL, args->problems[i], &decision, err);
        if (!status && !is_listed(out, tn_decision_problem(decision)))
            out->decisions[out->count++] = decision;
        else
            tn_decision_release(decision);
    }
    return status;
}

static bool is_untested(const tn_candidate *taken)
{
    return taken && taken->verdict == TN_VERDICT_UNTESTED;
}

static void print_end(const lock_request *request, const written *all)
{
    const char *file = request->words.texts[1];
    text_line line = {0};
    size_t untested = 0;
    for (size_t i = 0; i < all->count; i++)
        untested += is_untested(tn_decision_chosen(all->decisions[i]));
    text_add(&line, "%zu problem%s written to %s", all->count, plural((int64_t)all->count), file);
    if (untested > 0)
        text_add(
            &line,
            "; %zu untested: a kernel that fails its test at the first call is rejected; `tenon "
            "warm %s` tests "
            "them in advance",
            untested, file);
    text_wrapped(0, "", 0, line.text);
}

static void report_written(const command *self, const lock_request *request, const written *all)
{
    static const char kind[] = "written";
    json to = {0};
    if (request->as_json)
        begin_document(&to, self, request, 0);
    for (size_t i = 0; i < all->count; i++) {
        const tn_candidate *taken = tn_decision_chosen(all->decisions[i]);
        tn_lock_row row = {.problem = tn_decision_problem(all->decisions[i]),
                           .locked = taken ? taken->kernel : "",
                           .found = ""};
        text_line line = {0};
        text_add(&line, "%s: %s%s", row.problem, row.locked,
                 is_untested(taken) ? ", untested" : "");
        row.text = line.text;
        if (request->as_json)
            write_row(&to, kind, &row);
        else
            print_row(kind, is_untested(taken) ? PAINT_ODD : PAINT_GOOD, row.text);
    }
    if (request->as_json)
        end_document(&to);
    else
        print_end(request, all);
}

static int write_lock(const command *self, const lock_request *request)
{
    const tn_lock_write_args args = {.struct_size = sizeof args,
                                     .path = request->words.texts[1],
                                     .problems = request->words.texts + 2,
                                     .count = request->words.count - 2,
                                     .flags = request->strict ? TN_LOCK_STRICT : 0};
    written all = {.count = 0};
    tn_error err;
    tn_status status = tn_lock_write(NULL, &args, &err);
    if (!status)
        status = gather_written(&args, &all, &err);
    if (!status)
        report_written(self, request, &all);
    for (size_t i = 0; i < all.count; i++)
        tn_decision_release(all.decisions[i]);
    return status ? report_request(who, &err) : EXIT_DONE;
}

enum { WRITE, CHECK, DIFF, ACTIONS };
static const option_action actions[ACTIONS] = {
    [WRITE] = {"write", "FILE PROBLEM...", 3, OPTION_VALUES_MAX},
    [CHECK] = {"check", "FILE", 2, 2},
    [DIFF] = {"diff", "FILE FILE", 3, 3},
};

/* Whether the options fit the action; reports an error otherwise. */
static bool is_sound(int action, const lock_request *request)
{
    const char *fault = request->strict && action != WRITE         ? "--strict is only for write"
                        : request->device.count && action != CHECK ? "--device is only for check"
                                                                   : NULL;
    if (fault)
        fprintf(stderr, "tenon%s: %s\n", who, fault);
    return !fault;
}

int run_lock(const command *self, int count, char **arguments)
{
    lock_request request = {0};
    const option_row rows[] = {
        {"ACTION", NULL, "write FILE PROBLEM..., check FILE, or diff FILE FILE", NULL,
         &request.words, OPTION_VALUES_MAX},
        {"--strict", NULL, "write: make the lock reject problems that it does not list",
         &request.strict, NULL, 0},
        {"--device", "NAME", "check: test every problem on this device, which may be described",
         NULL, &request.device, 1},
        {"--device-file", "F", "also use the devices described in F; may be repeated", NULL,
         &request.files, OPTION_VALUES_MAX},
        {"--json", NULL, "print JSON", &request.as_json, NULL, 0},
    };
    int code = options_read(self, rows, sizeof rows / sizeof rows[0], count, arguments);
    if (code != OPTIONS_RUN || (code = options_need(self, &rows[0], 1)) != OPTIONS_RUN)
        return code;
    int action = options_action(self, actions, ACTIONS, &request.words);
    if (action < 0 || !is_sound(action, &request))
        return EXIT_WRONG_USE;
    code = add_device_files(&request.files);
    if (code)
        return code;
    if (action == DIFF)
        return diff_locks(self, &request);
    rules_say_unknown();
    return action == WRITE ? write_lock(self, &request) : check_lock(self, &request);
}
