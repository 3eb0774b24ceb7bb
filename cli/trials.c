#include "trials.h"

#include "candidates.h"
#include "devices.h"
#include "rules.h"

int trials_decide(const char *who, const trials_request *request, trials *out)
{
    tn_error err;
    *out = (trials){.request = request};
    if (request->all_kernels && request->kernel.count) {
        fprintf(stderr, "tenon%s: use either --kernel or --all-kernels, not both\n", who);
        return EXIT_WRONG_USE;
    }
    int code = add_device_files(&request->files);
    if (code)
        return code;
    rules_say_unknown();
    for (; out->count < request->problems.count; out->count++) {
        if (tn_explain(NULL, request->problems.texts[out->count], &out->decisions[out->count],
                       &err))
            return report_request(who, &err);
    }
    return OPTIONS_RUN;
}

void trials_release(trials *of)
{
    for (size_t i = 0; i < of->count; i++)
        tn_decision_release(of->decisions[i]);
    of->count = 0;
}

/* Returns the index-th kernel that could be tried, or NULL. *out_count is the number of kernels
 * passed: all of them with index SIZE_MAX. */
static const tn_candidate *find_usable(const trials *of, size_t problem, size_t index,
                                       size_t *out_count)
{
    const tn_decision *decision = of->decisions[problem];
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
    if (of->request->all_kernels)
        (void)find_usable(of, problem, SIZE_MAX, &count);
    return count > 0 ? count : 1;
}

const char *trials_kernel(const trials *of, size_t problem, size_t index)
{
    size_t count;
    if (!of->request->all_kernels)
        return of->request->kernel.count ? of->request->kernel.texts[0] : NULL;
    const tn_candidate *found = find_usable(of, problem, index, &count);
    return found ? found->kernel : NULL;
}

const char *name_of_trial(const trials *of, size_t problem, size_t index)
{
    const char *name = trials_kernel(of, problem, index);
    const tn_candidate *taken = tn_decision_chosen(of->decisions[problem]);
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
