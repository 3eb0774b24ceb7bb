/* `tenon warm`: prepares problems ahead, so that their first calls find libraries tried, kernels tested and
 * times measured. */
#include "candidates.h"
#include "json.h"
#include "options.h"
#include "system.h"

#include <errno.h>

enum { LINE = 4096 };

typedef struct warm_run {
    json *to; /* NULL for text */
    int prepared;
    int failed;
} warm_run;

static const char who[] = " warm";

/* The line's text: without blanks around it, a comment, and the end of the line. */
static char *text_of(char *line)
{
    line[strcspn(line, "#\r\n")] = '\0';
    line += strspn(line, " \t");
    size_t length = strlen(line);
    while (length > 0 && (line[length - 1] == ' ' || line[length - 1] == '\t'))
        line[--length] = '\0';
    return line;
}

/* A lock has sections and "key = value"; a problem has neither. 0, or errno when it cannot be read. */
static int look_for_lock(FILE *file, bool *out)
{
    char line[LINE];
    const char *text = "";
    while (!text[0] && fgets(line, sizeof line, file))
        text = text_of(line);
    if (ferror(file))
        return errno ? errno : EIO;
    *out = text[0] == '[' || strstr(text, " = ");
    rewind(file);
    return 0;
}

static void tell(warm_run *run, const char *problem, const char *kernel, double ms,
                 tn_status status, const tn_error *err)
{
    char time[TEXT_TIME];
    text_line line = {0};
    if (run->to) {
        json_begin_object(run->to, NULL);
        json_text(run->to, "problem", problem);
        json_text(run->to, "kernel", kernel);
        json_text(run->to, "status", tn_status_name(status));
        json_text(run->to, "message", status ? err->message : "");
        json_number(run->to, "ms", ms);
        json_end_object(run->to);
        return;
    }
    if (status)
        text_add(&line, "%s: %s", tn_status_name(status), err->message);
    else
        text_add(&line, "%s in %s: %s", kernel, text_time(ms * 1000, time), problem);
    printf("  %s", paint(status ? PAINT_BAD : PAINT_GOOD));
    text_wrapped_on(2, status ? "failed" : "prepared", 10, line.text);
    printf("%s", paint(PAINT_NONE));
    (void)fflush(stdout);
}

static void prepare(warm_run *run, const char *problem)
{
    tn_decision *decision = NULL;
    tn_error err;
    double began = system_seconds();
    tn_status status = tn_prepare(NULL, problem, &err);
    double ms = (system_seconds() - began) * 1000;
    if (!status)
        status = tn_explain(NULL, problem, &decision, &err);
    const tn_candidate *taken = tn_decision_chosen(decision);
    tell(run, decision ? tn_decision_problem(decision) : problem, taken ? taken->kernel : NULL, ms,
         status, &err);
    tn_decision_release(decision);
    run->prepared += status == TN_OK;
    run->failed += status != TN_OK;
}

static void prepare_lines(warm_run *run, FILE *file)
{
    char line[LINE];
    while (fgets(line, sizeof line, file)) {
        const char *text = text_of(line);
        if (text[0])
            prepare(run, text);
    }
}

static void prepare_rows(warm_run *run, const tn_lock_report *report)
{
    for (size_t i = 0; i < tn_lock_report_count(report); i++) {
        const tn_lock_row *row = tn_lock_report_row(report, i);
        if (row->kind != TN_LOCK_ROW_MACHINE && row->kind != TN_LOCK_ROW_STRICT)
            prepare(run, row->problem);
    }
}

/* `report` is NULL for a list. */
static int run_file(const command *self, const char *path, FILE *file, const tn_lock_report *report,
                    bool as_json)
{
    json to = {0};
    warm_run run = {.to = as_json ? &to : NULL};
    double began = system_seconds();
    char time[TEXT_TIME];
    if (as_json) {
        json_begin_document(&to, self->name);
        json_text(&to, "file", path);
        json_bool(&to, "lock", report != NULL);
        json_begin_list(&to, "results");
    }
    if (report)
        prepare_rows(&run, report);
    else
        prepare_lines(&run, file);
    double ms = (system_seconds() - began) * 1000;
    if (as_json) {
        json_end_list(&to);
        json_integer(&to, "prepared", run.prepared);
        json_integer(&to, "failed", run.failed);
        json_number(&to, "ms", ms);
        json_end_document(&to);
    } else {
        printf("%d of %d problem%s prepared in %s\n", run.prepared, run.prepared + run.failed,
               plural(run.prepared + run.failed), text_time(ms * 1000, time));
    }
    return run.failed ? EXIT_FAILURES_FOUND : EXIT_DONE;
}

static int warm(const command *self, const char *path, FILE *file, bool as_json)
{
    tn_lock_report *report = NULL;
    tn_error err;
    tn_status status = TN_OK;
    bool locked = false;
    int fault = look_for_lock(file, &locked);
    if (fault)
        status = tn_fail(&err, TN_IO, fault, "", "\"%s\": %s", path, strerror(fault));
    else if (locked && !(status = tn_lock_check(NULL, path, NULL, &report, &err)))
        status = tn_lock_use(path, &err);
    int code = status ? report_wish(who, &err) : run_file(self, path, file, report, as_json);
    tn_lock_report_release(report);
    return code;
}

int run_warm(const command *self, int count, char **arguments)
{
    option_values path = {0};
    bool as_json = false;
    tn_error err;
    const option_row rows[] = {
        {"FILE", NULL, "a problem on each line, # begins a comment; or a lock", NULL, &path, 1},
        {"--json", NULL, "as a JSON document", &as_json, NULL, 0},
    };
    int code = options_read(self, rows, sizeof rows / sizeof rows[0], count, arguments);
    if (code != OPTIONS_RUN || (code = options_need(self, &rows[0])) != OPTIONS_RUN)
        return code;
    FILE *file = fopen(path.texts[0], "rb");
    if (!file) {
        tn_fail(&err, TN_IO, errno, "", "\"%s\": %s", path.texts[0], strerror(errno));
        return report_wish(who, &err);
    }
    code = warm(self, path.texts[0], file, as_json);
    (void)fclose(file);
    return code;
}
