#include "trials.h"

#include "candidates.h"
#include "devices.h"
#include "rules.h"

#include <stdlib.h>
#include <string.h>

int trials_need_operators(const char *who, const trials_request *request, const char *option)
{
    for (size_t i = 0; i < request->problems.count; i++) {
        if (einsum_problem_is(request->problems.texts[i])) {
            fprintf(stderr,
                    "tenon%s: %s: expected problems of operators, got an einsum; use the problems "
                    "of its steps\n",
                    who, option);
            return EXIT_WRONG_USE;
        }
    }
    return OPTIONS_RUN;
}

/* Adds a problem; NULL if out of memory. */
static trial_problem *add_problem(trials *to, tn_error *err)
{
    if (to->count == to->room) {
        const size_t room = to->room ? 2 * to->room : OPTION_VALUES_MAX;
        trial_problem *more = realloc(to->problems, room * sizeof *more);
        if (!more) {
            tn_fail(err, TN_OUT_OF_MEMORY, 0, "", "out of memory for the problems");
            return NULL;
        }
        to->problems = more;
        to->room = room;
    }
    trial_problem *made = &to->problems[to->count++];
    *made = (trial_problem){0};
    return made;
}

static tn_status add_decision(const char *text, trials *to, tn_error *err)
{
    trial_problem *made = add_problem(to, err);
    return made ? tn_explain(NULL, text, &made->decision, err) : err->status;
}

/* Adds an einsum, then the problems of its steps, each once. */
static tn_status add_einsum(const char *text, trials *to, tn_error *err)
{
    const tn_einsum_step *step;
    trial_problem *made = add_problem(to, err);
    const size_t first = to->count;
    if (!made)
        return err->status;
    tn_status status = einsum_problem_create(text, &made->einsum, err);
    if (status)
        return status;
    const einsum_problem *whole = made->einsum; /* `made` moves */
    for (size_t i = 0; (step = tn_einsum_path_step(whole->path, i)) && !status; i++) {
        for (size_t k = 0; k < step->calls && !status; k++) {
            bool known = false;
            for (size_t p = first; p < to->count && !known; p++)
                known = strcmp(trials_text(to, p), step->problems[k]) == 0;
            if (!known)
                status = add_decision(step->problems[k], to, err);
        }
    }
    return status;
}

int trials_decide(const char *who, const trials_request *request, trials *out)
{
    tn_error err;
    *out = (trials){.request = request};
    if (request->all_kernels && request->kernel.count) {
        fprintf(stderr, "tenon%s: use either --kernel or --all-kernels, not both\n", who);
        return EXIT_WRONG_USE;
    }
    if (request->kernel.count && trials_need_operators(who, request, "--kernel") != OPTIONS_RUN)
        return EXIT_WRONG_USE;
    int code = add_device_files(&request->files);
    if (code)
        return code;
    rules_say_unknown();
    for (size_t i = 0; i < request->problems.count; i++) {
        const char *text = request->problems.texts[i];
        const tn_status status =
            einsum_problem_is(text) ? add_einsum(text, out, &err) : add_decision(text, out, &err);
        if (status)
            return report_request(who, &err);
    }
    return OPTIONS_RUN;
}

void trials_release(trials *of)
{
    for (size_t i = 0; i < of->count; i++) {
        tn_decision_release(of->problems[i].decision);
        einsum_problem_release(of->problems[i].einsum);
    }
    free(of->problems);
    *of = (trials){0};
}

const char *trials_text(const trials *of, size_t problem)
{
    const trial_problem *it = &of->problems[problem];
    return it->einsum ? it->einsum->text : tn_decision_problem(it->decision);
}

/* Returns the index-th kernel that could be tried, or NULL. *out_count is the number of kernels
 * passed: all of them with index SIZE_MAX. */
static const tn_candidate *find_usable(const trials *of, size_t problem, size_t index,
                                       size_t *out_count)
{
    const tn_decision *decision = of->problems[problem].decision;
    *out_count = 0;
    for (size_t i = 0; i < tn_decision_count(decision); i++) {
        const tn_candidate *candidate = tn_decision_candidate(decision, i);
        bool counts = candidate_may_run(candidate) ||
                      (of->request->quarantined && candidate->verdict == TN_VERDICT_QUARANTINED);
        if (counts && (*out_count)++ == index)
            return candidate;
    }
    return NULL;
}

size_t trials_kernels(const trials *of, size_t problem)
{
    size_t count = 1;
    if (of->request->all_kernels && !of->problems[problem].einsum)
        (void)find_usable(of, problem, SIZE_MAX, &count);
    return count > 0 ? count : 1;
}

const char *trials_kernel(const trials *of, size_t problem, size_t index)
{
    size_t count;
    if (!of->request->all_kernels || of->problems[problem].einsum)
        return of->request->kernel.count ? of->request->kernel.texts[0] : NULL;
    const tn_candidate *found = find_usable(of, problem, index, &count);
    return found ? found->kernel : NULL;
}

const char *name_of_trial(const trials *of, size_t problem, size_t index)
{
    const char *name = trials_kernel(of, problem, index);
    if (of->problems[problem].einsum)
        return "tn_einsum";
    const tn_candidate *taken = tn_decision_chosen(of->problems[problem].decision);
    return name ? name : taken ? taken->kernel : "-";
}

/* Wrong results and a device that fails while running count as failures found. */
int code_of_trial(tn_status status)
{
    return status == TN_CORRUPT || status == TN_IO ? EXIT_FAILURES_FOUND : code_of_status(status);
}

bool trial_is_quarantined(const char *problem, const char *kernel, char out_name[TRIAL_NAME])
{
    tn_decision *decision = NULL;
    bool found = false;
    if (tn_explain(NULL, problem, &decision, NULL))
        return false;
    for (size_t i = 0; i < tn_decision_count(decision) && !found; i++) {
        const tn_candidate *candidate = tn_decision_candidate(decision, i);
        found = candidate->verdict == TN_VERDICT_QUARANTINED &&
                (!kernel || strcmp(kernel, candidate->kernel) == 0);
        if (found)
            tn_text_fit(out_name, TRIAL_NAME, candidate->kernel);
    }
    tn_decision_release(decision);
    return found;
}
