/* The kernels on one screen: what was selected for each problem, and how many were refused why. */
#include "candidates.h"
#include "summary.h"

enum { LABEL = 12, INDENT = 2, RATE = 13, REFUSED_LINES = 2 };

static const char *device_of(const found_decision *decision)
{
    const char *at = strrchr(decision->problem, '@');
    return at ? at : "";
}

/* The number of decisions for the same device that are shown before this one: headlines first. */
static int rank_of(const found_kernels *kernels, size_t index)
{
    const found_decision *decision = &kernels->decisions[index];
    int rank = 0;
    for (size_t i = 0; i < kernels->count; i++) {
        const found_decision *other = &kernels->decisions[i];
        bool is_before =
            other->is_headline == decision->is_headline ? i < index : other->is_headline;
        rank += is_before && strcmp(device_of(other), device_of(decision)) == 0;
    }
    return rank;
}

static int count_below(const found_kernels *kernels, int rank)
{
    int count = 0;
    for (size_t i = 0; i < kernels->count; i++)
        count += rank_of(kernels, i) < rank;
    return count;
}

static const found_kernel *selected_kernel(const found_decision *decision)
{
    for (size_t k = 0; k < decision->count; k++) {
        if (strcmp(decision->kernels[k].candidate.kernel, decision->taken) == 0)
            return &decision->kernels[k];
    }
    return NULL;
}

static void print_decision(const found_decision *decision, int width)
{
    const found_kernel *kernel = selected_kernel(decision);
    const char *unit;
    char rate[TEXT_RATE] = "-";
    if (kernel && kernel_is_broken(kernel)) {
        snprintf(rate, sizeof rate, "%s", kernel_word(kernel));
    } else if (kernel) {
        double giga = kernel_rate(decision, kernel, &unit);
        if (giga > 0)
            (void)text_rate(giga, unit, rate);
        else
            snprintf(rate, sizeof rate, "not timed");
    }
    printf("%*s", INDENT, "");
    text_cell(decision->problem, text_width() - INDENT - 2 - width - RATE);
    printf("  ");
    text_cell(kernel ? decision->taken : "none", width);
    printf("%*s\n", RATE, rate);
}

static int measure_names(const found_kernels *kernels)
{
    int width = 0, most = (text_width() - INDENT - RATE) / 2;
    for (size_t d = 0; d < kernels->count; d++) {
        int columns = text_columns(kernels->decisions[d].taken);
        width = columns > width ? columns : width;
    }
    return width < most ? width : most;
}

/* Prints the decisions of the lowest ranks, as many of each device, in at most `lines` lines. */
static int print_decisions(const found_kernels *kernels, int lines)
{
    int rank = 0, width = measure_names(kernels), printed = 0;
    const int total = (int)kernels->count;
    const int room = total <= lines ? total : lines - 1;
    while (count_below(kernels, rank) < total && count_below(kernels, rank + 1) <= room)
        rank++;
    rank += rank == 0;
    for (size_t i = 0; i < kernels->count && printed < room; i++) {
        if (rank_of(kernels, i) >= rank)
            continue;
        print_decision(&kernels->decisions[i], width);
        printed++;
    }
    if (printed == total)
        return printed;
    printf("%*sand %d more problem%s\n", INDENT, "", total - printed, plural(total - printed));
    return printed + 1;
}

/* Counts the refused kernels by reason; returns how many there are. */
static int count_refusals(const found_kernels *kernels, int by_code[TN_REFUSE_COUNT])
{
    int count = 0;
    for (size_t d = 0; d < kernels->count; d++) {
        for (size_t k = 0; k < kernels->decisions[d].count; k++) {
            const tn_refusal *why = kernels->decisions[d].kernels[k].candidate.why;
            if (!why)
                continue;
            by_code[why->code > 0 && why->code < TN_REFUSE_COUNT ? why->code : TN_REFUSE_OTHER]++;
            count++;
        }
    }
    return count;
}

static int most_frequent(const int by_code[TN_REFUSE_COUNT])
{
    int most = 0;
    for (int code = 1; code < TN_REFUSE_COUNT; code++)
        most = by_code[code] > by_code[most] ? code : most;
    return most;
}

/* "214 of 404: 96 dtype, 60 library, 58 device; why: `tenon explain PROBLEM`" */
static int print_refusals(const found_kernels *kernels)
{
    int by_code[TN_REFUSE_COUNT] = {0};
    const int count = count_refusals(kernels, by_code);
    size_t total = 0;
    text_line reasons = {0}, line = {0};
    if (count == 0)
        return 0;
    for (size_t d = 0; d < kernels->count; d++)
        total += kernels->decisions[d].count;
    for (int code; by_code[code = most_frequent(by_code)] > 0; by_code[code] = 0)
        text_add_item(&reasons, "%d %s", by_code[code], tn_refusal_name(code));
    text_add(&line, "%d of %zu, by reason: %s; details: `tenon explain %s`", count, total,
             reasons.text, kernels->decisions[0].problem);
    return text_wrapped_within(0, "refused", LABEL, line.text, REFUSED_LINES);
}

int print_summary_kernels(const found_kernels *kernels, int lines)
{
    text_line line = {0};
    text_add(&line, "%zu checked against the reference; the selected ones:",
             kernels_count_checked(kernels));
    int used = text_wrapped_within(0, "kernels", LABEL, line.text, 1);
    used += print_decisions(kernels, lines - used - REFUSED_LINES);
    return used + print_refusals(kernels);
}
