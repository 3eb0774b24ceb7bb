/* The backends of a decision on attention, as a table. */
#include "backends_print.h"

#include "candidate_words.h"
#include "tenon/attention_backend.h"
#include "tenon/sdpa.h"

enum { INDENT = 2, VERDICT = 12, STEP = 2, OUTCOME = 11 };

static int columns_of_backend(const tn_backend *backend)
{
    return tni_columns(backend->name) + (backend->family[0] ? STEP : 0);
}

static int measure_backends(const tn_decision *decision)
{
    enum { LEAST = 7 };
    int width = LEAST;
    for (size_t i = 0; i < tn_decision_backend_count(decision); i++) {
        int columns = columns_of_backend(tn_decision_backend(decision, i));
        width = columns > width ? columns : width;
    }
    return width;
}

/* Text after the verdict: the kernel, or the reason why none exists. */
static void phrase_backend(const tn_backend *backend, tni_line *out)
{
    bool missing = !backend->kernel[0] && backend->why && backend->why->code == TN_REFUSE_LIBRARY;
    if (backend->kernel[0])
        tni_line_add_item(out, "%s", backend->kernel);
    if (missing)
        tni_line_add_item(out, "%s", backend->why->text);
    else if (backend->why) {
        tni_line_add_item(out, "%s", "");
        tni_phrase_refusal(backend->why, out);
    }
}

static void print_backend(const tni_sheet *sheet, const tn_backend *backend, int width)
{
    const tn_candidate like = {.verdict = backend->verdict};
    const char *none = tni_sheet_color(sheet, TNI_COLOR_NONE);
    int step = backend->family[0] ? STEP : 0;
    tni_line line = {0};
    tni_sheet_print(sheet, "%*s%s", INDENT + step, "", tni_sheet_color(sheet, TNI_COLOR_STRONG));
    tni_sheet_cell(sheet, backend->name, width - step);
    phrase_backend(backend, &line);
    tni_sheet_print(sheet, "%s  %s%-*s%s", none, tni_sheet_color(sheet, tni_candidate_color(&like)),
                    line.length ? VERDICT : 0, tn_verdict_name(backend->verdict), none);
    tni_sheet_wrapped(sheet, INDENT + width + 2 + VERDICT, "", 0, line.text);
}

/* Prints the names of the conditions with an outcome: "holds: rank, dtype". */
static void print_outcome(const tni_sheet *sheet, const tn_sdpa_report *report, int32_t outcome)
{
    tni_line line = {0};
    for (size_t i = 0; i < report->count; i++) {
        if (report->checks[i].outcome == outcome)
            tni_line_add_item(&line, "%s", report->checks[i].name);
    }
    if (line.length > 0)
        tni_sheet_wrapped_line(sheet, 2 * INDENT, tn_sdpa_outcome_name(outcome), OUTCOME,
                               line.text);
}

/* Prints upstream's conditions of each backend of the TORCH_SDPA family. */
static void print_conditions(const tni_sheet *sheet, const tn_decision *decision)
{
    bool any = false;
    for (size_t i = 0; i < tn_decision_backend_count(decision); i++) {
        const tn_backend *backend = tn_decision_backend(decision, i);
        if (!backend->conditions || !backend->family[0])
            continue;
        tni_sheet_print(sheet, "%*s%sPyTorch's conditions for %s%s\n", INDENT, "",
                        tni_sheet_color(sheet, TNI_COLOR_SOFT), backend->name,
                        tni_sheet_color(sheet, TNI_COLOR_NONE));
        print_outcome(sheet, backend->conditions, TN_SDPA_FAILS);
        print_outcome(sheet, backend->conditions, TN_SDPA_HOLDS);
        print_outcome(sheet, backend->conditions, TN_SDPA_NOT_ASKED);
        any = true;
    }
    if (any)
        tni_sheet_print(sheet, "\n");
}

void tni_print_backends(const tni_sheet *sheet, const tn_decision *decision)
{
    int width = measure_backends(decision);
    if (tn_decision_backend_count(decision) == 0)
        return;
    tni_sheet_print(sheet, "%s%*s%-*s  %-*skernel, or reason%s\n",
                    tni_sheet_color(sheet, TNI_COLOR_SOFT), INDENT, "", width, "backend", VERDICT,
                    "verdict", tni_sheet_color(sheet, TNI_COLOR_NONE));
    for (size_t i = 0; i < tn_decision_backend_count(decision); i++)
        print_backend(sheet, tn_decision_backend(decision, i), width);
    tni_sheet_print(sheet, "\n");
    print_conditions(sheet, decision);
}
