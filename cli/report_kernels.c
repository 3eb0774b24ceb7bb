/* Kernels as text: whether each is correct, its time and its rate. */
#include "candidates.h"
#include "report.h"

enum { INDENT = 4, VERDICT = 12, TIME = 9, RATE = 13 };

static int paint_of_kernel(const found_kernel *kernel)
{
    if (kernel_is_broken(kernel))
        return PAINT_BAD;
    return !candidate_may_run(&kernel->candidate)              ? PAINT_SOFT
           : kernel->checked == TRIAL_DONE && kernel->check.ok ? PAINT_GOOD
                                                               : PAINT_ODD;
}

static void print_kernel(const found_decision *decision, const found_kernel *kernel, int width)
{
    char time[TEXT_TIME] = "-", rate[TEXT_RATE];
    const char *unit;
    text_line line = {0};
    double giga = kernel_rate(decision, kernel, &unit);
    bool is_taken = strcmp(kernel->candidate.kernel, decision->taken) == 0;
    if (kernel->timed == TRIAL_DONE)
        (void)text_time(kernel->bench.us, time);
    printf("  %s%c%s ", paint(PAINT_GOOD), is_taken ? '*' : ' ', paint(PAINT_NONE));
    text_cell(kernel->candidate.kernel, width);
    printf("  %s%-*s%s%*s %*s  ", paint(paint_of_kernel(kernel)), VERDICT, kernel_word(kernel),
           paint(PAINT_NONE), TIME, time, RATE, text_rate(giga, unit, rate));
    phrase_kernel_fault(kernel, &line);
    if (line.length == 0)
        phrase_kernel_figures(kernel, &line);
    text_wrapped_on(INDENT + width + 2 + VERDICT + TIME + 1 + RATE + 2, "", 0, line.text);
}

static int measure(const found_kernels *kernels)
{
    int width = 0;
    for (size_t d = 0; d < kernels->count; d++) {
        for (size_t k = 0; k < kernels->decisions[d].count; k++) {
            int columns = text_columns(kernels->decisions[d].kernels[k].candidate.kernel);
            width = columns > width ? columns : width;
        }
    }
    return width;
}

void print_kernels(const findings *found)
{
    const found_kernels *kernels = &found->kernels;
    int width = measure(kernels);
    if (kernels->count == 0)
        return;
    text_heading("kernels");
    for (size_t d = 0; d < kernels->count; d++) {
        const found_decision *decision = &kernels->decisions[d];
        text_wrapped(2, "", 0, decision->problem);
        for (size_t k = 0; k < decision->count; k++)
            print_kernel(decision, &decision->kernels[k], width);
        if (decision_is_broken(decision))
            text_wrapped(INDENT, "", 0, decision->message);
    }
    printf("  %zu checked against the reference; * marks the selected kernel\n\n",
           kernels_count_checked(kernels));
}

void print_attention(const findings *found)
{
    const found_backends *backends = &found->backends;
    int width = 0;
    if (backends->count == 0)
        return;
    putchar('\n');
    text_heading("attention backends");
    text_wrapped(2, "", 0, backends->problem);
    for (size_t i = 0; i < backends->count; i++) {
        const int columns = text_columns(backends->rows[i].name);
        width = columns > width ? columns : width;
    }
    for (size_t i = 0; i < backends->count; i++) {
        const found_backend *row = &backends->rows[i];
        text_line line = {0};
        if (row->kernel[0])
            text_add_item(&line, "%s", row->kernel);
        if (row->what[0])
            text_add_item(&line, "%s", row->what);
        text_wrapped(INDENT, row->name, width + 2, line.text);
    }
}
