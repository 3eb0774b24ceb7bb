/* Random problems: every kernel that takes one agrees with the reference, under random settings. What tn_check
 * compares includes the bytes around the outputs. */
#include "attack.h"

enum { PROBLEMS = 20 };

/* One kernel of a problem; NULL: what a call would take. */
static void check_kernel(attack *self, const tn_context *context, const char *problem,
                         const char *kernel)
{
    tn_check_result result = {.struct_size = sizeof result};
    tn_error err = {0};
    const tn_check_args args = {.struct_size = sizeof args,
                                .problem = problem,
                                .kernel = kernel,
                                .seed = dice_next(&self->dice) | 1};
    tn_status status = tn_check(context, &args, &result, &err);
    attack_check_status(self, problem, status, &err);
    if (!status && !result.ok)
        attack_found(self, "%s: %s is wrong: %s (tenon check '%s' --kernel %s --seed %llu)",
                     problem, result.kernel, result.text, problem, result.kernel,
                     (unsigned long long)args.seed);
    self->accepted += !status;
}

static void check_problem(attack *self, const tn_context *context, const char *problem)
{
    tn_decision *decision = NULL;
    tn_error err = {0};
    tn_status status = tn_explain(context, problem, &decision, &err);
    attack_check_status(self, problem, status, &err);
    if (status)
        return;
    for (size_t i = 0; i < tn_decision_count(decision); i++)
        check_kernel(self, context, problem, tn_decision_candidate(decision, i)->kernel);
    /* The canonical text is the same problem. */
    tn_decision *again = NULL;
    if (tn_explain(context, tn_decision_problem(decision), &again, &err))
        attack_found(self, "%s: its canonical text %s: %s", problem, tn_decision_problem(decision),
                     err.message);
    if (strcmp(tn_decision_problem(decision), tn_decision_problem(again)) != 0)
        attack_found(self, "%s: two canonical texts, %s and %s", problem,
                     tn_decision_problem(decision), tn_decision_problem(again));
    tn_decision_release(again);
    tn_decision_release(decision);
}

void attack_numerics(attack *self)
{
    char problem[ATTACK_PROBLEM];
    for (int i = 0; i < PROBLEMS; i++) {
        tn_context *context = attack_context(self, &self->dice);
        attack_problem(&self->dice, self->device, problem);
        self->tried++;
        check_problem(self, context, problem);
        tn_context_release(context);
    }
}
