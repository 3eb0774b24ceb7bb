/* print_decision PROBLEM [COLUMNS]: prints a decision as a C program does, for cli/explain; with COLUMNS also with
 * colours. Without arguments, tests what the function refuses. */
#include "tenon/tenon.h"

#include <stdio.h>
#include <stdlib.h>

static void write_file(void *user, const char *text, size_t length)
{
    (void)fwrite(text, 1, length, user);
}

static int print_decision(const char *problem, const tn_print_args *how)
{
    tn_decision *decision = NULL;
    tn_error err;
    tn_status status = tn_explain(NULL, problem, &decision, &err);
    if (!status)
        status = tn_decision_print(decision, how, write_file, stdout, &err);
    if (status)
        fprintf(stderr, "%s\n", err.message);
    tn_decision_release(decision);
    return status != TN_OK;
}

static int test_refusals(void)
{
    tn_decision *decision = NULL;
    tn_error err = {0};
    if (tn_explain(NULL, "fill:f32:shape=4", &decision, &err))
        return 1;
    const int refused =
        tn_decision_print(NULL, NULL, write_file, stdout, &err) == TN_INVALID_ARGUMENT &&
        tn_decision_print(decision, NULL, NULL, NULL, &err) == TN_INVALID_ARGUMENT &&
        tn_decision_print(decision, &(tn_print_args){.struct_size = 4}, write_file, stdout, &err) ==
            TN_INVALID_ARGUMENT &&
        tn_decision_print(decision, TN_ARGS(print, .full = 2), write_file, stdout, &err) ==
            TN_INVALID_ARGUMENT &&
        tn_decision_print(decision, TN_ARGS(print, .reserved = 1), write_file, stdout, &err) ==
            TN_INVALID_ARGUMENT;
    tn_decision_release(decision);
    return !refused;
}

int main(int count, char **words)
{
    if (count < 2)
        return test_refusals();
    if (count < 3)
        return print_decision(words[1], NULL);
    return print_decision(words[1], TN_ARGS(print, .columns = atoi(words[2]), .colors = 1));
}
