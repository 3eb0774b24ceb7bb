/* tn_decision_print: a decision as text that can be pasted into a bug report. */
#include "backends_print.h"
#include "candidate_words.h"
#include "line.h"
#include "tenon/status.h"

#include <string.h>

enum { LABEL = 10, VERDICT = 12, TIME = 8, SOURCE = 10, INDENT = 2 };
enum { COLUMNS = 100, COLUMNS_LEAST = 60 };

/* The version of the library that was used last: candidates of one library follow each other. */
typedef struct known_version {
    const char *library;
    char text[TNI_VERSION_ROOM];
} known_version;

/* Whether the candidate computes other dtypes than the problem's: its time means nothing. */
static bool has_other_dtype(const tn_candidate *candidate)
{
    return candidate->why && candidate->why->code == TN_REFUSE_DTYPE;
}

static size_t count_other_dtypes(const tn_decision *decision)
{
    size_t count = 0;
    for (size_t i = 0; i < tn_decision_count(decision); i++)
        count += has_other_dtype(tn_decision_candidate(decision, i));
    return count;
}

/* Candidates of other dtypes are printed if that is requested, or if there are no others. */
static bool prints_all(const tn_decision *decision, const tn_print_args *how)
{
    return (how && TN_HAS(how, tn_print_args, full) && how->full) ||
           count_other_dtypes(decision) == tn_decision_count(decision);
}

static int measure_names(const tn_decision *decision, bool all)
{
    enum { LEAST = 6 };
    int width = LEAST;
    for (size_t i = 0; i < tn_decision_count(decision); i++) {
        const tn_candidate *candidate = tn_decision_candidate(decision, i);
        int columns = all || !has_other_dtype(candidate) ? tni_columns(candidate->kernel) : 0;
        width = columns > width ? columns : width;
    }
    return width;
}

static const char *version_of(const char *library, known_version *known)
{
    if (!known->library || strcmp(known->library, library) != 0)
        tni_library_version(library, known->text);
    known->library = library;
    return known->text;
}

/* Prints a line below a candidate; nothing if it is empty. */
static void print_remark(const tni_sheet *sheet, const tni_line *line)
{
    if (line->length > 0)
        tni_sheet_wrapped_line(sheet, INDENT * 3, "", 0, line->text);
}

static void print_candidate(const tni_sheet *sheet, const tn_candidate *candidate, int width,
                            known_version *known)
{
    const bool has_time = !has_other_dtype(candidate);
    char time[TNI_TIME_ROOM] = "-";
    const char *none = tni_sheet_color(sheet, TNI_COLOR_NONE);
    tni_line line = {0};
    tni_sheet_print(sheet, "%*s%s", INDENT, "", tni_sheet_color(sheet, TNI_COLOR_STRONG));
    tni_sheet_cell(sheet, candidate->kernel, width);
    tni_sheet_print(sheet, "%s  %s%-*s%s%*s %-*s ", none,
                    tni_sheet_color(sheet, tni_candidate_color(candidate)), VERDICT,
                    tn_verdict_name(candidate->verdict), none, TIME,
                    has_time ? tni_time_text(tni_candidate_us(candidate), time) : time, SOURCE,
                    has_time ? tni_candidate_us_source(candidate) : "");
    tni_phrase_candidate(candidate, version_of(candidate->library, known), &line);
    tni_sheet_wrapped(sheet, INDENT + width + 2 + VERDICT + TIME + 1 + SOURCE + 1, "", 0,
                      line.text);
    line.length = 0;
    if (candidate->why)
        tni_phrase_refusal(candidate->why, &line);
    print_remark(sheet, &line);
    line.length = 0;
    tni_phrase_rule(candidate, &line);
    print_remark(sheet, &line);
}

static bool has_time_from(const tn_candidate *candidate, const char *source)
{
    return !has_other_dtype(candidate) && strcmp(tni_candidate_us_source(candidate), source) == 0;
}

/* Explains the words after the times, only those that were printed. */
static void print_time_words(const tni_sheet *sheet, const tn_decision *decision)
{
    static const char *const words[][2] = {
        {"measured", "timed on this device"},
        {"modelled", "from the kernel's cost function"},
        {"predicted", "from the kernel's compute rate and bandwidth"}};
    tni_line line = {0};
    for (size_t w = 0; w < sizeof words / sizeof words[0]; w++) {
        size_t i = 0;
        while (i < tn_decision_count(decision) &&
               !has_time_from(tn_decision_candidate(decision, i), words[w][0]))
            i++;
        if (i < tn_decision_count(decision))
            tni_line_add(&line, "%s%s = %s", line.length ? "; " : "", words[w][0], words[w][1]);
    }
    if (line.length > 0)
        tni_sheet_wrapped_line(sheet, INDENT, "times: ", 7, line.text);
}

static void print_folded(const tni_sheet *sheet, size_t count)
{
    tni_line line = {0};
    tni_line_add(&line, "%zu kernel%s with other dtypes (`tenon explain --full` lists %s)", count,
                 count == 1 ? " computes" : "s compute", count == 1 ? "it" : "them");
    tni_sheet_wrapped_line(sheet, INDENT, "", 0, line.text);
}

static void print_candidates(const tni_sheet *sheet, const tn_decision *decision, bool all)
{
    known_version known = {0};
    int width = measure_names(decision, all);
    const size_t folded = all ? 0 : count_other_dtypes(decision);
    if (tn_decision_count(decision) == 0)
        tni_sheet_print(sheet, "%*sno available kernel computes it\n", INDENT, "");
    else
        tni_sheet_print(sheet, "%s%*s%-*s  %-*s%*s %-*s library, numerics%s\n",
                        tni_sheet_color(sheet, TNI_COLOR_SOFT), INDENT, "", width, "kernel",
                        VERDICT, "verdict", TIME, "time", SOURCE, "",
                        tni_sheet_color(sheet, TNI_COLOR_NONE));
    for (size_t i = 0; i < tn_decision_count(decision); i++) {
        const tn_candidate *candidate = tn_decision_candidate(decision, i);
        if (all || !has_other_dtype(candidate))
            print_candidate(sheet, candidate, width, &known);
    }
    if (folded > 0)
        print_folded(sheet, folded);
    print_time_words(sheet, decision);
    tni_sheet_print(sheet, "\n");
}

static void print_selection(const tni_sheet *sheet, const tn_decision *decision)
{
    const tn_candidate *now = tn_decision_runs_now(decision);
    const tn_candidate *once_tested = tn_decision_runs_once_tested(decision);
    const char *message;
    tni_line line = {0};
    tn_status status = tn_decision_status(decision, &message);
    if (now || once_tested)
        tni_sheet_wrapped_line(sheet, 0, "runs now: ", 10,
                               now ? now->kernel : "nothing until a kernel is tested");
    if (once_tested)
        tni_sheet_wrapped_line(sheet, 0, "runs once tested: ", 18, once_tested->kernel);
    if (now || once_tested)
        return;
    tni_line_add(&line, "%s: %s", tn_status_name(status), message);
    tni_sheet_print(sheet, "%s", tni_sheet_color(sheet, TNI_COLOR_BAD));
    tni_sheet_wrapped_line(sheet, 0, "nothing selected: ", 18, line.text);
    tni_sheet_print(sheet, "%s", tni_sheet_color(sheet, TNI_COLOR_NONE));
}

/* An unmet request is part of the answer: its kernels are refused above, or do not exist here. */
static void print_unmet(const tni_sheet *sheet, const tn_decision *decision)
{
    const char *rule = tn_decision_unmet(decision);
    tni_line line = {0};
    if (!rule[0])
        return;
    tni_line_add(&line, "%s: no candidate that it names can be used", rule);
    tni_sheet_wrapped_line(sheet, 0, "not met: ", 9, line.text);
}

tn_status tn_decision_print(const tn_decision *decision, const tn_print_args *how,
                            tn_print_fn *write, void *user, tn_error *err)
{
    static const char where[] = "tn_decision_print";
    if (!decision || !write)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s is NULL",
                       decision ? "write" : "decision");
    if (how && !TN_HAS(how, tn_print_args, colors))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "how->struct_size: expected at least %zu, got %zu",
                       offsetof(tn_print_args, colors) + sizeof how->colors, how->struct_size);
    if (how && TN_HAS(how, tn_print_args, full) && (how->full & ~1))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "how->full: expected 0 or 1, got %d",
                       (int)how->full);
    if (how && TN_HAS(how, tn_print_args, reserved) && how->reserved)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "how->reserved: expected 0, got %d",
                       (int)how->reserved);
    const int32_t columns = how && how->columns ? how->columns : COLUMNS;
    const tni_sheet sheet = {.write = write,
                             .user = user,
                             .columns = columns < COLUMNS_LEAST ? COLUMNS_LEAST : (int)columns,
                             .colors = how && how->colors};
    tni_sheet_wrapped_line(&sheet, 0, "problem", LABEL, tn_decision_problem(decision));
    tni_sheet_print(&sheet, "\n");
    print_candidates(&sheet, decision, prints_all(decision, how));
    tni_print_backends(&sheet, decision);
    print_selection(&sheet, decision);
    print_unmet(&sheet, decision);
    return TN_OK;
}
