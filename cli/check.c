/* `tenon check`: compares kernels with the reference. */
#include "json.h"
#include "system.h"
#include "text.h"
#include "trials.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

typedef struct check_request {
    trials_request trials;
    option_values seed;
    option_values dump;
    bool nonfinite;
    uint64_t first; /* the seed; 0 for a random one */
} check_request;

typedef struct check_tally {
    int tried;
    int wrong;
    int code;      /* of the first kernel that could not be tried */
    uint64_t seed; /* of the run; 0 until the first check has chosen one */
} check_tally;

static const char who[] = " check";

/* Result for one kernel; `wrong` is also set if it was not run because of earlier wrong results. */
typedef struct check_outcome {
    tn_check_result result;
    tn_error err;
    tn_status status;
    bool wrong;
    char name[TRIAL_NAME];
} check_outcome;

static void print_outcome(const check_outcome *of)
{
    enum { INDENT = 2, NAME = 28, VERDICT = 9 };
    text_line line = {0};
    const tn_check_result *result = &of->result;
    const char *word = of->wrong ? "wrong" : of->status ? "not run" : "ok";
    printf("%*s", INDENT, "");
    text_cell(of->name, NAME);
    printf(" %s%-*s%s",
           paint(of->wrong    ? PAINT_BAD
                 : of->status ? PAINT_ODD
                              : PAINT_GOOD),
           VERDICT, word, paint(PAINT_NONE));
    if (of->status)
        text_add(&line, "%s: %s", tn_status_name(of->status), of->err.message);
    else
        text_add(&line, "error %.3g%% of its bound %.3g, %s%" PRId64 " output%s",
                 result->error * 100, result->bound, result->sampled ? "looked at " : "",
                 result->checked, plural(result->checked));
    text_wrapped_on(INDENT + NAME + 1 + VERDICT, "", 0, line.text);
    if (!of->status && result->text[0])
        text_wrapped(INDENT * 3, "", 0, result->text);
}

static void write_outcome(json *to, const char *problem, const check_outcome *of)
{
    const tn_check_result *result = &of->result;
    json_begin_object(to, NULL);
    json_text(to, "problem", problem);
    json_text(to, "kernel", of->name);
    json_text(to, "status", tn_status_name(of->status));
    json_text(to, "message", of->status ? of->err.message : result->text);
    if (of->wrong || !of->status)
        json_bool(to, "ok", !of->wrong);
    else
        json_null(to, "ok");
    if (of->status) {
        static const char *const keys[] = {"error", "bound",   "found",   "expected",
                                           "at",    "checked", "sampled", "seed"};
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
            json_null(to, keys[i]);
    } else {
        char seed[24];
        snprintf(seed, sizeof seed, "%" PRIu64, result->seed);
        json_number(to, "error", result->error);
        json_number(to, "bound", result->bound);
        json_number(to, "found", result->found);
        json_number(to, "expected", result->expected);
        json_known_integer(to, "at", result->at >= 0, result->at);
        json_integer(to, "checked", result->checked);
        json_bool(to, "sampled", result->sampled != 0);
        json_text(to, "seed", seed);
    }
    json_end_object(to);
}

/* Checks one kernel. `to` is NULL for text output. */
static void check_one(const check_request *request, const trials *of, size_t problem, size_t index,
                      json *to, check_tally *tally)
{
    const char *text = trials_text(of, problem);
    const einsum_problem *whole = of->problems[problem].einsum;
    check_outcome it = {.result = {.struct_size = sizeof it.result}};
    const tn_check_args args = {.struct_size = sizeof args,
                                .problem = text,
                                .kernel = trials_kernel(of, problem, index),
                                .seed = tally->seed,
                                .dump = request->dump.count ? request->dump.texts[0] : NULL,
                                .flags = request->nonfinite ? TN_CHECK_NONFINITE : 0};
    it.status = whole ? einsum_problem_check(whole, tally->seed, &it.result, &it.err)
                      : tn_check(NULL, &args, &it.result, &it.err);
    tn_text_fit(it.name, sizeof it.name,
                it.status ? name_of_trial(of, problem, index) : it.result.kernel);
    it.wrong =
        it.status ? !whole && trial_is_quarantined(text, args.kernel, it.name) : !it.result.ok;
    if (to)
        write_outcome(to, text, &it);
    else
        print_outcome(&it);
    (void)fflush(stdout); /* the next check may take long */
    if (!it.status)
        tally->seed = it.result.seed;
    tally->tried += !it.status || it.wrong;
    tally->wrong += it.wrong;
    if (it.status && tally->code == EXIT_DONE)
        tally->code = code_of_trial(it.status);
}

static void check_all(const check_request *request, const trials *of, json *to, check_tally *tally)
{
    for (size_t p = 0; p < of->count; p++) {
        if (!to)
            text_heading(trials_text(of, p));
        for (size_t k = 0; k < trials_kernels(of, p); k++)
            check_one(request, of, p, k, to, tally);
    }
}

static void print_tally(const check_tally *tally)
{
    text_line line = {0};
    if (tally->wrong)
        text_add(&line, "%d of %d wrong", tally->wrong, tally->tried);
    else if (tally->tried)
        text_add(&line, "%d checked, no errors found", tally->tried);
    else
        text_add(&line, "nothing could be checked");
    if (tally->seed)
        text_add(&line, "; --seed %" PRIu64 " repeats it", tally->seed);
    text_wrapped(0, "", 0, line.text);
}

static int check_problems(const command *self, const check_request *request, const trials *of)
{
    check_tally tally = {.seed = request->first};
    json to = {0};
    if (request->trials.as_json) {
        json_begin_document(&to, self->name);
        json_begin_list(&to, "results");
        check_all(request, of, &to, &tally);
        json_end_list(&to);
        json_end_document(&to);
    } else {
        check_all(request, of, NULL, &tally);
        print_tally(&tally);
    }
    return tally.wrong ? EXIT_FAILURES_FOUND : tally.code;
}

/* Whether --dump fits the other options and can be written, checked before a long run; reports an
 * error otherwise. */
static bool dump_is_sound(const check_request *request)
{
    const char *path = request->dump.count ? request->dump.texts[0] : NULL;
    bool several = request->trials.problems.count != 1 || request->trials.all_kernels ||
                   einsum_problem_is(request->trials.problems.texts[0]);
    int fault = path && !several ? system_can_write(path) : 0;
    if (path && several)
        fprintf(stderr, "tenon%s: --dump: expected one problem of an operator and one kernel\n",
                who);
    else if (fault)
        fprintf(stderr, "tenon%s: --dump %s: %s\n", who, text_clean(path), strerror(fault));
    return !fault && !(path && several);
}

static int read_seed(check_request *request)
{
    const char *seed = request->seed.count ? request->seed.texts[0] : "1";
    char *end;
    errno = 0;
    request->first = strtoull(seed, &end, 10);
    if (errno || *end || seed[0] < '0' || seed[0] > '9' || request->first == 0) {
        tn_error err;
        tn_fail(&err, TN_INVALID_ARGUMENT, 0, "",
                "--seed: expected a number from 1 to %" PRIu64 ", got \"%.80s\"", UINT64_MAX, seed);
        return report_request(who, &err);
    }
    if (!request->seed.count)
        request->first = 0;
    return OPTIONS_RUN;
}

static int read_options(const command *self, int count, char **arguments, check_request *request)
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
        {"--seed", "N", "seed of the inputs, to repeat a run; every run prints its seed", NULL,
         &request->seed, 1},
        {"--nonfinite", NULL, "make some inputs NaN or infinite", &request->nonfinite, NULL, 0},
        {"--dump", "F", "write inputs and both outputs to F if the outputs differ", NULL,
         &request->dump, 1},
        {"--device-file", "F", "also use the devices described in F; may be repeated", NULL,
         &request->trials.files, OPTION_VALUES_MAX},
        {"--json", NULL, "print JSON", &request->trials.as_json, NULL, 0},
    };
    int code = options_read(self, rows, sizeof rows / sizeof rows[0], count, arguments);
    if (code != OPTIONS_RUN || (code = options_need(self, &rows[0], 1)) != OPTIONS_RUN)
        return code;
    if (request->nonfinite &&
        (code = trials_need_operators(who, &request->trials, "--nonfinite")) != OPTIONS_RUN)
        return code;
    return dump_is_sound(request) ? read_seed(request) : EXIT_WRONG_USE;
}

int run_check(const command *self, int count, char **arguments)
{
    check_request request = {.trials = {.quarantined = true}};
    trials of = {0};
    int code = read_options(self, count, arguments, &request);
    if (code != OPTIONS_RUN)
        return code;
    code = trials_decide(who, &request.trials, &of);
    if (code == OPTIONS_RUN)
        code = check_problems(self, &request, &of);
    trials_release(&of);
    return code;
}
