/* The backends of a decision on attention, as text and as JSON. */
#include "explain.h"

#include "candidates.h"

enum { INDENT = 2, VERDICT = 12, STEP = 2, OUTCOME = 11 };

static int columns_of(const tn_backend *backend)
{
    return text_columns(backend->name) + (backend->family[0] ? STEP : 0);
}

static int measure(const tn_decision *decision)
{
    enum { LEAST = 7 };
    int width = LEAST;
    for (size_t i = 0; i < tn_decision_backend_count(decision); i++) {
        int columns = columns_of(tn_decision_backend(decision, i));
        width = columns > width ? columns : width;
    }
    return width;
}

/* Text after the verdict: the kernel, or the reason why none exists. */
static void phrase_backend(const tn_backend *backend, text_line *out)
{
    bool missing = !backend->kernel[0] && backend->why && backend->why->code == TN_REFUSE_LIBRARY;
    if (backend->kernel[0])
        text_add_item(out, "%s", backend->kernel);
    if (missing)
        text_add_item(out, "%s", backend->why->text);
    else if (backend->why) {
        text_add_item(out, "%s", "");
        phrase_refusal(backend->why, out);
    }
}

static void print_backend(const tn_backend *backend, int width)
{
    const tn_candidate like = {.verdict = backend->verdict};
    int step = backend->family[0] ? STEP : 0;
    text_line line = {0};
    printf("%*s%s", INDENT + step, "", paint(PAINT_STRONG));
    text_cell(backend->name, width - step);
    phrase_backend(backend, &line);
    printf("%s  %s%-*s%s", paint(PAINT_NONE), paint(paint_of_candidate(&like)),
           line.length ? VERDICT : 0, tn_verdict_name(backend->verdict), paint(PAINT_NONE));
    text_wrapped_on(INDENT + width + 2 + VERDICT, "", 0, line.text);
}

/* Prints the names of the conditions with an outcome: "holds: rank, dtype". */
static void print_outcome(const tn_sdpa_report *report, int32_t outcome, int column)
{
    text_line line = {0};
    for (size_t i = 0; i < report->count; i++) {
        if (report->checks[i].outcome == outcome)
            text_add_item(&line, "%s", report->checks[i].name);
    }
    if (line.length > 0)
        text_wrapped(column, tn_sdpa_outcome_name(outcome), OUTCOME, line.text);
}

/* Prints upstream's conditions of each backend of the TORCH_SDPA family. */
static void print_conditions(const tn_decision *decision)
{
    bool any = false;
    for (size_t i = 0; i < tn_decision_backend_count(decision); i++) {
        const tn_backend *backend = tn_decision_backend(decision, i);
        if (!backend->conditions || !backend->family[0])
            continue;
        printf("%*s%sPyTorch's conditions for %s%s\n", INDENT, "", paint(PAINT_SOFT), backend->name,
               paint(PAINT_NONE));
        print_outcome(backend->conditions, TN_SDPA_FAILS, 2 * INDENT);
        print_outcome(backend->conditions, TN_SDPA_HOLDS, 2 * INDENT);
        print_outcome(backend->conditions, TN_SDPA_NOT_ASKED, 2 * INDENT);
        any = true;
    }
    if (any)
        putchar('\n');
}

void explained_print_backends(const tn_decision *decision)
{
    int width = measure(decision);
    if (tn_decision_backend_count(decision) == 0)
        return;
    printf("%s%*s%-*s  %-*skernel, or reason%s\n", paint(PAINT_SOFT), INDENT, "", width, "backend",
           VERDICT, "verdict", paint(PAINT_NONE));
    for (size_t i = 0; i < tn_decision_backend_count(decision); i++)
        print_backend(tn_decision_backend(decision, i), width);
    putchar('\n');
    print_conditions(decision);
}

static void write_conditions(json *to, const tn_sdpa_report *report)
{
    if (!report) {
        json_null(to, "conditions");
        return;
    }
    json_begin_list(to, "conditions");
    for (size_t i = 0; i < report->count; i++) {
        const tn_sdpa_check *check = &report->checks[i];
        json_begin_object(to, NULL);
        json_text(to, "name", check->name);
        json_text(to, "outcome", tn_sdpa_outcome_name(check->outcome));
        explained_write_why(to, check->why.code ? &check->why : NULL);
        json_end_object(to);
    }
    json_end_list(to);
}

void explained_write_backends(json *to, const tn_decision *decision)
{
    json_begin_list(to, "backends");
    for (size_t i = 0; i < tn_decision_backend_count(decision); i++) {
        const tn_backend *backend = tn_decision_backend(decision, i);
        json_begin_object(to, NULL);
        json_text(to, "name", backend->name);
        json_known_text(to, "family", backend->family);
        json_text(to, "verdict", tn_verdict_name(backend->verdict));
        json_known_text(to, "kernel", backend->kernel);
        explained_write_why(to, backend->why);
        write_conditions(to, backend->conditions);
        json_end_object(to);
    }
    json_end_list(to);
}
