/* `tenon warm`: prepares problems ahead of time, so that on their first call libraries are already
 * tried, kernels tested and times measured. */
#include "candidates.h"
#include "json.h"
#include "options.h"
#include "rules.h"
#include "system.h"

#include <errno.h>
#include <stdlib.h>

typedef struct warm_run {
    json *to; /* NULL for text output */
    int prepared;
    int failed;
    int due;  /* problems with new findings that later processes need, */
    int kept; /* and those of them for which the cache stored an entry */
    tn_cache_list *cache;
} warm_run;

/* Result for one problem. */
typedef struct warm_result {
    const char *problem;
    const char *kernel;
    int line; /* in the list; 0 if none exists */
    bool due;
    bool kept;
    double ms;
    tn_status status;
    tn_error err;
} warm_result;

static const char who[] = " warm";

/* A list's text, read line by line. */
typedef struct lines {
    char *at, *end;
    int number;     /* of the latest line */
    bool has_zeros; /* the line has NUL bytes, so it is not valid text */
} lines;

static void skip_mark(lines *of)
{
    static const char mark[] = "\xEF\xBB\xBF";
    if (of->end - of->at >= 3 && memcmp(of->at, mark, 3) == 0)
        of->at += 3;
}

/* Returns the next line without surrounding blanks, comment and line end; NULL past the last.
 * Writes terminators into the text. */
static char *next_line(lines *of)
{
    if (of->at == of->end)
        return NULL;
    char *line = of->at, *end = memchr(line, '\n', (size_t)(of->end - line));
    end = end ? end : of->end;
    of->at = end < of->end ? end + 1 : end;
    of->number++;
    of->has_zeros = memchr(line, '\0', (size_t)(end - line)) != NULL;
    *end = '\0';
    line[strcspn(line, "#\r")] = '\0';
    line += strspn(line, " \t");
    size_t length = strlen(line);
    while (length > 0 && (line[length - 1] == ' ' || line[length - 1] == '\t'))
        line[--length] = '\0';
    return line;
}

/* A lock has sections and "key = value"; a problem has neither. Does not change `begin`. */
static bool is_lock(const char *begin, size_t size)
{
    char copy[512];
    for (size_t at = 0; at < size;) {
        size_t length = strcspn(begin + at, "\n");
        snprintf(copy, sizeof copy, "%.*s", (int)(length < sizeof copy ? length : sizeof copy - 1),
                 begin + at);
        lines one = {.at = copy, .end = copy + strlen(copy)};
        const char *text = next_line(&one);
        if (text && text[0])
            return text[0] == '[' || strstr(text, " = ");
        at += length + 1;
    }
    return false;
}

/* Reads the whole file and appends a terminator; the caller frees it. Returns 0, or errno: EFBIG if
 * it is larger than any list of problems would be. */
static int read_all(FILE *file, char **out, size_t *out_size)
{
    const size_t most = (size_t)64 << 20;
    size_t room = 1 << 16, size = 0;
    char *text = malloc(room + 1);
    while (text) {
        size += fread(text + size, 1, room - size, file);
        if (size < room)
            break;
        if (room >= most) {
            free(text);
            return EFBIG;
        }
        room *= 2;
        char *larger = realloc(text, room + 1);
        if (!larger)
            free(text);
        text = larger;
    }
    if (!text)
        return ENOMEM;
    if (ferror(file)) {
        free(text);
        return errno ? errno : EIO;
    }
    text[size] = '\0';
    *out = text;
    *out_size = size;
    return 0;
}

static void write_result(json *to, const warm_result *of)
{
    json_begin_object(to, NULL);
    json_text(to, "problem", of->problem);
    json_text(to, "kernel", of->kernel);
    json_text(to, "status", tn_status_name(of->status));
    json_text(to, "message", of->status ? of->err.message : "");
    json_known_integer(to, "line", of->line > 0, of->line);
    if (of->due)
        json_bool(to, "kept", of->kept);
    else
        json_null(to, "kept");
    json_number(to, "ms", of->ms);
    json_end_object(to);
}

static void print_result(const warm_result *of)
{
    char time[TEXT_TIME];
    text_line line = {0};
    if (of->status && of->line)
        text_add(&line, "line %d: ", of->line);
    if (of->status)
        text_add(&line, "%s: %s", tn_status_name(of->status), of->err.message);
    else
        text_add(&line, "%s in %s: %s", of->kernel, text_time(of->ms * 1000, time), of->problem);
    printf("  %s", paint(of->status ? PAINT_BAD : PAINT_GOOD));
    text_wrapped_on(2, of->status ? "failed" : "prepared", 10, line.text);
    printf("%s", paint(PAINT_NONE));
    (void)fflush(stdout);
}

static void report_result(warm_run *run, const warm_result *of)
{
    run->prepared += !of->status;
    run->failed += of->status != TN_OK;
    run->due += of->due;
    run->kept += of->kept;
    if (run->to)
        write_result(run->to, of);
    else
        print_result(of);
}

/* Counts tested and timed kernels: an increase means new findings. */
static size_t count_known(const tn_decision *decision)
{
    size_t known = 0;
    for (size_t i = 0; i < tn_decision_count(decision); i++) {
        const tn_candidate *candidate = tn_decision_candidate(decision, i);
        known += candidate->verdict != TN_VERDICT_UNTESTED;
        known += candidate->tuned_us > 0;
    }
    return known;
}

/* Whether this process wrote to the cache since the last call. Comparing sizes is not enough: an
 * entry that replaces a damaged one has the same size. */
static bool cache_was_written(warm_run *run)
{
    tn_cache_list *now = NULL;
    if (tn_cache_list_create(&now, NULL))
        return false;
    bool wrote = tn_cache_list_written(now) != tn_cache_list_written(run->cache);
    tn_cache_list_release(run->cache);
    run->cache = now;
    return wrote;
}

static void prepare(warm_run *run, const char *problem, int line)
{
    tn_decision *before = NULL, *after = NULL;
    warm_result it = {.problem = problem, .line = line};
    double began = system_seconds();
    it.status = tn_explain(NULL, problem, &before, &it.err);
    if (!it.status)
        it.status = tn_prepare(NULL, problem, &it.err);
    it.ms = (system_seconds() - began) * 1000;
    if (before && !tn_explain(NULL, problem, &after, NULL)) {
        const tn_candidate *taken = tn_decision_chosen(after);
        it.problem = tn_decision_problem(after);
        it.kernel = taken ? taken->kernel : NULL;
        it.due = count_known(after) > count_known(before);
        it.kept = it.due && cache_was_written(run);
    }
    report_result(run, &it);
    tn_decision_release(before);
    tn_decision_release(after);
}

static void refuse_line(warm_run *run, const lines *of, const char *text)
{
    warm_result it = {.problem = text, .line = of->number};
    it.status =
        tn_fail(&it.err, TN_INVALID_ARGUMENT, 0, "", "a zero byte: this is not a text file");
    report_result(run, &it);
}

static void prepare_lines(warm_run *run, lines *of)
{
    const char *text;
    while ((text = next_line(of))) {
        if (of->has_zeros)
            refuse_line(run, of, text);
        else if (text[0])
            prepare(run, text, of->number);
    }
}

static void prepare_rows(warm_run *run, const tn_lock_report *report)
{
    for (size_t i = 0; i < tn_lock_report_count(report); i++) {
        const tn_lock_row *row = tn_lock_report_row(report, i);
        if (row->kind != TN_LOCK_ROW_MACHINE && row->kind != TN_LOCK_ROW_STRICT)
            prepare(run, row->problem, 0);
    }
}

/* Why fewer were kept than were due; "" if all were kept. */
static void phrase_loss(const warm_run *run, text_line *out)
{
    const char *reason = tn_cache_list_reason(run->cache),
               *folder = tn_cache_list_folder(run->cache);
    if (run->kept == run->due)
        return;
    if (reason[0])
        text_add(out, "%s", reason);
    else
        text_add(out, "%s accepts nothing more; TENON_LOG=warning shows why", folder);
}

static void print_end(const warm_run *run, double ms)
{
    char time[TEXT_TIME];
    int count = run->prepared + run->failed;
    text_line line = {0}, loss = {0};
    printf("%d of %d problem%s prepared in %s\n", run->prepared, count, plural(count),
           text_time(ms * 1000, time));
    phrase_loss(run, &loss);
    if (run->due == 0)
        text_add(&line, "nothing to store: no kernel had to be tested, and none was timed%s",
                 tn_get_tuning_enabled(NULL) ? "" : ", because tuning.enabled is false");
    else
        text_add(&line, "stored for later processes: %d of %d%s%s", run->kept, run->due,
                 loss.length ? ": " : ", in ",
                 loss.length ? loss.text : tn_cache_list_folder(run->cache));
    text_wrapped(0, "", 0, line.text);
}

static void write_end(json *to, const warm_run *run, double ms)
{
    text_line loss = {0};
    phrase_loss(run, &loss);
    json_end_list(to);
    json_integer(to, "prepared", run->prepared);
    json_integer(to, "failed", run->failed);
    json_integer(to, "due", run->due);
    json_integer(to, "kept", run->kept);
    json_text(to, "reason", loss.text);
    json_number(to, "ms", ms);
    json_end_document(to);
}

/* `report` is NULL for a list. */
static int run_file(const command *self, const char *path, lines *list,
                    const tn_lock_report *report, bool as_json)
{
    json to = {0};
    warm_run run = {.to = as_json ? &to : NULL};
    double began = system_seconds();
    if (as_json) {
        json_begin_document(&to, self->name);
        json_text(&to, "file", path);
        json_bool(&to, "lock", report != NULL);
        json_begin_list(&to, "results");
    }
    (void)cache_was_written(&run);
    if (report)
        prepare_rows(&run, report);
    else
        prepare_lines(&run, list);
    double ms = (system_seconds() - began) * 1000;
    if (as_json)
        write_end(&to, &run, ms);
    else
        print_end(&run, ms);
    tn_cache_list_release(run.cache);
    return run.failed || run.kept < run.due ? EXIT_FAILURES_FOUND : EXIT_DONE;
}

static int warm(const command *self, const char *path, FILE *file, bool as_json)
{
    tn_lock_report *report = NULL;
    tn_error err;
    tn_status status = TN_OK;
    char *text = NULL;
    size_t size = 0;
    int fault = read_all(file, &text, &size);
    if (fault) {
        tn_fail(&err, TN_IO, fault, "", "\"%s\": %s", path, strerror(fault));
        return report_request(who, &err);
    }
    lines list = {.at = text, .end = text + size};
    skip_mark(&list);
    if (is_lock(list.at, (size_t)(list.end - list.at)) &&
        !(status = tn_lock_check(NULL, path, NULL, &report, &err)))
        status = tn_lock_use(path, &err);
    int code = status ? report_request(who, &err) : run_file(self, path, &list, report, as_json);
    tn_lock_report_release(report);
    free(text);
    return code;
}

int run_warm(const command *self, int count, char **arguments)
{
    option_values path = {0};
    bool as_json = false;
    tn_error err;
    const option_row rows[] = {
        {"FILE", NULL, "file with one problem per line, # starts a comment; or a lock", NULL, &path,
         1},
        {"--json", NULL, "print JSON", &as_json, NULL, 0},
    };
    int code = options_read(self, rows, sizeof rows / sizeof rows[0], count, arguments);
    if (code != OPTIONS_RUN || (code = options_need(self, &rows[0], 1)) != OPTIONS_RUN)
        return code;
    FILE *file = fopen(path.texts[0], "rb");
    if (!file) {
        tn_fail(&err, TN_IO, errno, "", "\"%s\": %s", path.texts[0], strerror(errno));
        return report_request(who, &err);
    }
    rules_say_unknown();
    code = warm(self, path.texts[0], file, as_json);
    (void)fclose(file);
    return code;
}
