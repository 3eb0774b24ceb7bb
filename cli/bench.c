/* `tenon bench`: times kernels. */
#include "candidates.h"
#include "document.h"
#include "text.h"
#include "trials.h"

#include <stdlib.h>

typedef struct bench_request {
    trials_request trials;
    option_values against;
    option_values seconds;
    double span; /* 0: the library's default */
} bench_request;

static const char who[] = " bench";

enum { INDENT = 2, NAME = 28, TIME = 9, RATE = 13 };

static void print_header(const bench_request *request)
{
    printf("%s%*s%-*s %*s %*s %*s %7s %5s", paint(PAINT_SOFT), INDENT, "", NAME, "kernel", TIME,
           "time", RATE, "compute", RATE, "memory", "spread", "runs");
    if (request->against.count)
        printf("  against %s", request->against.texts[0]);
    printf("%s\n", paint(PAINT_NONE));
}

static void print_result(const char *name, const bench_request *request,
                         const tn_bench_result *result)
{
    char time[TEXT_TIME], flops[TEXT_RATE], bytes[TEXT_RATE], other[TEXT_TIME];
    printf("%*s", INDENT, "");
    text_cell(name, NAME);
    printf(" %*s %*s %*s", TIME, text_time(result->us, time), RATE,
           text_rate(result->gflops, "FLOP", flops), RATE, text_rate(result->gbps, "B", bytes));
    if (result->runs != 1)
        printf(" %6.1f%% %5d", result->spread * 100, (int)result->runs);
    else
        printf(" %7s %5d", "-", (int)result->runs);
    if (request->against.count)
        printf("  %s, x %.2f (A/A within %.1f%%)", text_time(result->against_us, other),
               result->ratio, result->aa_spread * 100);
    if (result->runs != 1 && !is_measurable(result->spread))
        printf("  %snot measurable here%s", paint(PAINT_ODD), paint(PAINT_NONE));
    putchar('\n');
}

static void print_failure(const char *name, tn_status status, const tn_error *err)
{
    text_line line = {0};
    printf("%*s", INDENT, "");
    text_cell(name, NAME);
    text_add(&line, "%s: %s", tn_status_name(status), err->message);
    printf(" %s", paint(status == TN_CORRUPT ? PAINT_BAD : PAINT_ODD));
    const char *word = status == TN_CORRUPT ? "wrong: " : "not run: ";
    text_wrapped_on(INDENT + NAME + 1, word, (int)strlen(word), line.text);
    printf("%s", paint(PAINT_NONE));
}

static void write_against(json *to, const bench_request *request, const tn_bench_result *result)
{
    if (!request->against.count) {
        json_null(to, "against");
        return;
    }
    json_begin_object(to, "against");
    json_text(to, "kernel", request->against.texts[0]);
    json_number(to, "ms", result->against_us / 1000);
    json_number(to, "ratio", result->ratio);
    json_number(to, "aa_spread", result->aa_spread);
    json_end_object(to);
}

static void write_result(json *to, const char *problem, const char *name, tn_status status,
                         const bench_request *request, const tn_bench_result *result,
                         const tn_error *err)
{
    static const char *const keys[] = {"ms",   "spread", "measurable", "gflops",
                                       "gbps", "runs",   "calls",      "against"};
    json_begin_object(to, NULL);
    json_text(to, "problem", problem);
    json_text(to, "kernel", name);
    json_text(to, "status", tn_status_name(status));
    json_text(to, "message", status ? err->message : "");
    for (size_t i = 0; status && i < sizeof keys / sizeof keys[0]; i++)
        json_null(to, keys[i]);
    if (!status) {
        json_number(to, "ms", result->us / 1000);
        json_number(to, "spread", spread_of(result));
        json_bool(to, "measurable", is_measurable(spread_of(result)));
        json_number(to, "gflops", result->gflops);
        json_number(to, "gbps", result->gbps);
        json_integer(to, "runs", result->runs);
        json_integer(to, "calls", result->calls);
        write_against(to, request, result);
    }
    json_end_object(to);
}

/* Times one kernel. `to` is NULL for text output. Returns the exit code. */
static int bench_one(const bench_request *request, const trials *of, size_t problem, size_t index,
                     json *to)
{
    const char *text = trials_text(of, problem);
    const einsum_problem *whole = of->problems[problem].einsum;
    tn_bench_result result = {.struct_size = sizeof result};
    const tn_bench_args args = {.struct_size = sizeof args,
                                .problem = text,
                                .kernel = trials_kernel(of, problem, index),
                                .against =
                                    request->against.count ? request->against.texts[0] : NULL,
                                .seconds = request->span};
    tn_error err;
    tn_status status = whole ? einsum_problem_time(whole, request->span, &result, &err)
                             : tn_bench(NULL, &args, &result, &err);
    const char *name = status ? name_of_trial(of, problem, index) : result.kernel;
    if (to)
        write_result(to, text, name, status, request, &result, &err);
    else if (status)
        print_failure(name, status, &err);
    else
        print_result(name, request, &result);
    (void)fflush(stdout);
    return code_of_trial(status);
}

/* Returns the exit code of the first kernel that could not be timed. */
static int bench_all(const bench_request *request, const trials *of, json *to)
{
    int code = EXIT_DONE;
    for (size_t p = 0; p < of->count; p++) {
        if (!to) {
            text_heading(trials_text(of, p));
            print_header(request);
        }
        for (size_t k = 0; k < trials_kernels(of, p); k++) {
            int its = bench_one(request, of, p, k, to);
            code = code ? code : its;
        }
    }
    return code;
}

static int bench_problems(const command *self, const bench_request *request, const trials *of)
{
    json to = {0};
    findings found;
    tn_error err;
    if (!request->trials.as_json)
        return bench_all(request, of, NULL);
    if (findings_gather(FIND_MACHINE, &found, &err))
        return report_error(&err);
    json_begin_document(&to, self->name);
    write_machine(&to, &found);
    json_begin_list(&to, "results");
    int code = bench_all(request, of, &to);
    json_end_list(&to);
    json_end_document(&to);
    findings_release(&found);
    return code;
}

static int read_options(const command *self, int count, char **arguments, bench_request *request)
{
    const option_row rows[] = {
        {"PROBLEM", NULL,
         "the problem, in the form that `tenon explain --help` describes, or "
         "einsum:DTYPE:EQUATION:SHAPES[@DEVICE]",
         NULL, &request->trials.problems, OPTION_VALUES_MAX},
        {"--kernel", "NAME", "use this kernel instead of the selected one", NULL,
         &request->trials.kernel, 1},
        {"--all-kernels", NULL, "every kernel that can run the problem",
         &request->trials.all_kernels, NULL, 0},
        {"--against", "NAME", "time a second kernel, alternating with each", NULL,
         &request->against, 1},
        {"--seconds", "S", "time limit per kernel in seconds, approximate; default 1", NULL,
         &request->seconds, 1},
        {"--device-file", "F", "also use the devices described in F; may be repeated", NULL,
         &request->trials.files, OPTION_VALUES_MAX},
        {"--json", NULL, "print JSON", &request->trials.as_json, NULL, 0},
    };
    int code = options_read(self, rows, sizeof rows / sizeof rows[0], count, arguments);
    if (code != OPTIONS_RUN || (code = options_need(self, &rows[0], 1)) != OPTIONS_RUN)
        return code;
    if (request->against.count &&
        (code = trials_need_operators(who, &request->trials, "--against")) != OPTIONS_RUN)
        return code;
    if (!request->seconds.count)
        return OPTIONS_RUN;
    char *end;
    request->span = strtod(request->seconds.texts[0], &end);
    if (*end || !(request->span > 0 && request->span <= 3600)) {
        tn_error err;
        tn_fail(&err, TN_INVALID_ARGUMENT, 0, "",
                "--seconds: expected a number above 0, up to 3600; got \"%.80s\"",
                request->seconds.texts[0]);
        return report_request(who, &err);
    }
    return OPTIONS_RUN;
}

int run_bench(const command *self, int count, char **arguments)
{
    bench_request request = {0};
    trials of = {0};
    int code = read_options(self, count, arguments, &request);
    if (code != OPTIONS_RUN)
        return code;
    code = trials_decide(who, &request.trials, &of);
    if (code == OPTIONS_RUN)
        code = bench_problems(self, &request, &of);
    trials_release(&of);
    return code;
}
