/* Kernels on typical problems: rates as bars, and the decision for each problem. */
#include "candidates.h"
#include "html.h"
#include "page_parts.h"

static const char *badge_of_kernel(const found_kernel *kernel)
{
    if (kernel_is_broken(kernel))
        return "bad";
    return kernel->checked == TRIAL_DONE && kernel->check.ok ? "good" : "none";
}

static const char *badge_of_candidate(const tn_candidate *candidate)
{
    switch (candidate->verdict) {
    case TN_VERDICT_CHOSEN: return "current";
    case TN_VERDICT_ADMITTED: return "good";
    case TN_VERDICT_UNTESTED: return "odd";
    case TN_VERDICT_QUARANTINED: return "bad";
    default: return "none";
    }
}

static double greatest_rate(const found_decision *decision)
{
    const char *unit;
    double most = 0;
    for (size_t k = 0; k < decision->count; k++) {
        double rate = kernel_rate(decision, &decision->kernels[k], &unit);
        most = rate > most ? rate : most;
    }
    return most;
}

static void write_bar(FILE *to, double part, bool is_taken)
{
    html_write(to,
               "<svg class=\"bar\" width=\"100%%\" height=\"10\" aria-hidden=\"true\"><rect "
               "class=\"track\" width=\"100%%\" height=\"10\" rx=\"2\"/><rect class=\"%s\" "
               "width=\"%.2f%%\" height=\"10\" rx=\"2\"/></svg>",
               is_taken ? "used" : "all", part * 100 > 0.4 ? part * 100 : 0.4);
}

static void write_kernel(FILE *to, const found_decision *decision, const found_kernel *kernel,
                         double most)
{
    char time[TEXT_TIME] = "", room[TEXT_RATE];
    const char *unit;
    text_line figures = {0};
    double rate = kernel_rate(decision, kernel, &unit);
    bool is_taken = strcmp(kernel->candidate.kernel, decision->taken) == 0;
    if (kernel->timed == TRIAL_DONE)
        text_add(&figures, "%s", text_time(kernel->bench.us, time));
    phrase_kernel_figures(kernel, &figures);
    if (kernel_is_broken(kernel)) {
        text_add(&figures, "%s", figures.length ? "; " : "");
        phrase_kernel_fault(kernel, &figures);
    }
    html_write(to, "<li><span><code>%s</code> <span class=\"badge %s\">%s</span>",
               kernel->candidate.kernel, badge_of_kernel(kernel), kernel_word(kernel));
    if (is_taken)
        html_write(to, " <span class=\"badge current\">selected</span>");
    html_write(to, "</span><b>%s</b>", text_rate(rate, unit, room));
    if (rate > 0 && most > 0)
        write_bar(to, rate / most, is_taken);
    html_write(to, "<small>%s</small></li>\n", figures.text);
}

static void write_candidate(FILE *to, const tn_candidate *candidate)
{
    char time[TEXT_TIME];
    text_line facts = {0}, why = {0}, rule = {0};
    phrase_candidate(candidate, &facts);
    tni_phrase_rule(candidate, &rule);
    if (candidate->why)
        tni_phrase_refusal(candidate->why, &why);
    html_write(to,
               "<tr><th scope=\"row\"><code>%s</code></th><td data-label=\"Status\"><span "
               "class=\"badge %s\">%s</span></td><td class=\"number\" data-label=\"Time\">%s"
               "<small>%s</small></td><td data-label=\"Says\">%s<small>%s</small><small>%s</small>"
               "</td></tr>\n",
               candidate->kernel, badge_of_candidate(candidate),
               tn_verdict_name(candidate->verdict), text_time(tni_candidate_us(candidate), time),
               tni_candidate_us_source(candidate), why.text, facts.text, rule.text);
}

static void write_table(FILE *to, const found_decision *decision)
{
    html_write(to, "<details><summary>The decision</summary>\n<table>\n<thead><tr><th "
                   "scope=\"col\">Kernel</th><th scope=\"col\">Verdict</th><th scope=\"col\" "
                   "class=\"number\">Time</th><th scope=\"col\">Says</th></tr></thead>\n<tbody>\n");
    for (size_t k = 0; k < decision->count; k++)
        write_candidate(to, &decision->kernels[k].candidate);
    html_write(to, "</tbody>\n</table>\n</details>\n");
}

static void write_decision(FILE *to, const found_decision *decision)
{
    double most = greatest_rate(decision);
    html_write(to, "<h3><code>%s</code></h3>\n", decision->problem);
    if (!decision->taken[0])
        html_write(to, "<p>No kernel is selected: %s</p>\n", decision->message);
    if (decision->count == 0)
        return;
    html_write(to, "<ul class=\"bars kernels\">\n");
    for (size_t k = 0; k < decision->count; k++) {
        if (candidate_may_run(&decision->kernels[k].candidate) ||
            kernel_is_broken(&decision->kernels[k]))
            write_kernel(to, decision, &decision->kernels[k], most);
    }
    html_write(to, "</ul>\n");
    write_table(to, decision);
}

void page_kernels(FILE *to, const findings *found)
{
    const found_kernels *kernels = &found->kernels;
    if (kernels->count == 0)
        return;
    html_write(
        to,
        "<section id=\"kernels\">\n<h2>Kernels</h2>\n<p>Typical problems: each available "
        "kernel was compared with the reference, %zu in all, and timed briefly; bars show rates. "
        "<code>tenon explain</code>, <code>tenon check</code> and <code>tenon bench</code> do "
        "the same for your own problems.</p>\n",
        kernels_count_checked(kernels));
    for (size_t d = 0; d < kernels->count; d++)
        write_decision(to, &kernels->decisions[d]);
    html_write(to, "</section>\n");
}
