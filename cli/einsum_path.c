/* `tenon einsum-path`: the order in which an einsum contracts its operands, and what it costs. */
#include "einsum_problem.h"
#include "einsum_tree.h"
#include "json.h"
#include "options.h"
#include "rules.h"
#include "text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char who[] = " einsum-path";

static void print_labels(const char *equation, int32_t part)
{
    size_t size;
    char term[4 * TN_TENSOR_NDIM_MAX + 1];
    const char *labels = einsum_labels(equation, part, &size);
    snprintf(term, sizeof term, "%.*s", (int)size, labels);
    printf("%s", text_clean(term));
}

/* Prints a term, indented by its level in the tree. `lines` has a bit for each level with parts still to be
 * printed. Levels beyond 60 are not drawn. */
static void print_term(const einsum_tree *of, int32_t term, const char *equation, int32_t part,
                       int level, uint64_t lines)
{
    for (int i = 1; i < level; i++)
        printf("%s", lines >> i & 1 ? "│  " : "   ");
    if (level > 0)
        printf("%s", lines >> level & 1 ? "├─ " : "└─ ");
    print_labels(equation, part);
    const tn_einsum_step *step =
        term < of->operands ? NULL : tn_einsum_path_step(of->path, (size_t)(term - of->operands));
    if (!step) {
        printf("  operand %d\n", (int)term);
        return;
    }
    printf("  step %d\n", (int)(term - of->operands) + 1);
    for (int32_t i = 0; i < 2 && level < 60; i++) {
        const int32_t next = of->parts[term - of->operands][i];
        const uint64_t bit = UINT64_C(1) << (level + 1);
        if (next >= 0)
            print_term(of, next, step->equation, i, level + 1,
                       i == 0 && step->second >= 0 ? lines | bit : lines & ~bit);
    }
}

static void print_path(const tn_einsum_path *path, const tn_einsum_path_info *info,
                       const einsum_tree *drawn)
{
    const tn_einsum_step *step;
    printf("%s\n\n", text_clean(info->equation));
    printf("strategy           %s\n", info->strategy);
    printf("cost of the path   %.6g\n", info->cost);
    printf("cost of one loop   %.6g\n", info->cost_at_once);
    printf("speed-up           %.4g\n", info->cost > 0 ? info->cost_at_once / info->cost : 1);
    printf("largest result     %.6g elements\n", info->largest);
    printf("memory of results  %" PRIu64 " bytes\n", info->workspace_bytes);
    if (info->slices > 1)
        printf("slices             %.6g; the steps are those of one\n", info->slices);
    putchar('\n');
    printf("step  pair       cost        elements    equation\n");
    for (size_t i = 0; (step = tn_einsum_path_step(path, i)); i++) {
        char pair[24];
        snprintf(pair, sizeof pair, step->second < 0 ? "(%d)" : "(%d, %d)", (int)step->first,
                 (int)step->second);
        printf("%-4zu  %-9s  %-10.6g  %-10.6g  %s\n", i + 1, pair, step->cost, step->elements,
               text_clean(step->equation));
        for (size_t k = 0; k < step->calls; k++)
            printf("      %s  %s\n", step->kernels[k][0] ? step->kernels[k] : "no kernel",
                   step->problems[k]);
    }
    putchar('\n');
    print_term(drawn, drawn->operands + drawn->steps - 1, info->equation, -1, 0, 0);
}

static void write_path(const command *self, const tn_einsum_path *path,
                       const tn_einsum_path_info *info)
{
    json to = {0};
    const tn_einsum_step *step;
    json_begin_document(&to, self->name);
    json_text(&to, "equation", info->equation);
    json_text(&to, "strategy", info->strategy);
    json_exact_number(&to, "cost", info->cost);
    json_exact_number(&to, "cost_at_once", info->cost_at_once);
    json_exact_number(&to, "largest", info->largest);
    json_integer(&to, "workspace", (int64_t)info->workspace_bytes);
    json_exact_number(&to, "slices", info->slices);
    json_begin_list(&to, "steps");
    for (size_t i = 0; (step = tn_einsum_path_step(path, i)); i++) {
        json_begin_object(&to, NULL);
        json_integer(&to, "first", step->first);
        json_known_integer(&to, "second", step->second >= 0, step->second);
        json_text(&to, "equation", step->equation);
        json_text(&to, "remaining", step->remaining);
        json_exact_number(&to, "cost", step->cost);
        json_exact_number(&to, "elements", step->elements);
        json_begin_list(&to, "calls");
        for (size_t k = 0; k < step->calls; k++) {
            json_begin_object(&to, NULL);
            json_text(&to, "problem", step->problems[k]);
            json_known_text(&to, "kernel", step->kernels[k]);
            json_end_object(&to);
        }
        json_end_list(&to);
        json_end_object(&to);
    }
    json_end_list(&to);
    json_end_document(&to);
}

/* Parses a number of bytes, with k, m, g or t for multiples of 1024. */
static tn_status parse_limit(const option_values *limit, uint64_t *out, tn_error *err)
{
    static const char units[] = "kmgt";
    *out = 0;
    if (!limit->count)
        return TN_OK;
    const char *text = limit->texts[0];
    char *end = NULL;
    errno = 0;
    *out = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
    const char *rest = *out ? end : "", *unit = *rest ? strchr(units, *rest | 0x20) : NULL;
    const int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if (!*out || errno || (*rest && (!unit || rest[1])) || *out > UINT64_MAX >> shift)
        return tn_fail(
            err, TN_INVALID_ARGUMENT, 0, "",
            "--memory-limit: expected a number of bytes above 0 such as 4096 or 16m, got \"%.40s\"",
            text);
    *out <<= shift;
    return TN_OK;
}

/* Explains the path. Unlike tn_einsum_explain, fails if the limit is exceeded. */
static tn_status explain_path(const option_values *words, const char *strategy, uint64_t limit,
                              einsum_operands *of, tn_einsum_path **out,
                              tn_einsum_path_info *out_info, tn_error *err)
{
    tn_status status = einsum_operands_parse(words->count > 1 ? words->texts[1] : "", of, err);
    if (!status)
        status = tn_einsum_explain(NULL,
                                   TN_ARGS(einsum, .equation = words->texts[0],
                                           .operands = of->list, .count = of->count,
                                           .strategy = strategy, .memory_limit = limit),
                                   out, err);
    if (!status)
        status = tn_einsum_path_info_get(*out, out_info, err);
    if (!status && limit && out_info->workspace_bytes > limit)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "",
                       "--memory-limit: expected a limit that slices fit in, got %" PRIu64
                       " bytes; intermediate results need %" PRIu64 " bytes: raise it",
                       limit, out_info->workspace_bytes);
    return status;
}

/* Writes the tree as a picture. */
static tn_status save_svg(const char *name, const einsum_tree *drawn, const char *equation,
                          tn_error *err)
{
    errno = 0;
    FILE *file = fopen(name, "wb");
    int failed = file ? 0 : errno;
    if (file) {
        einsum_tree_draw(drawn, equation, file);
        failed = ferror(file) ? EIO : 0;
        if (fclose(file) != 0 && !failed)
            failed = errno ? errno : EIO;
    }
    return failed ? tn_fail(err, TN_IO, failed, "--svg", "%s: %s", name, strerror(failed)) : TN_OK;
}

int run_einsum_path(const command *self, int count, char **arguments)
{
    static einsum_operands of;
    static einsum_tree drawn;
    option_values words = {0}, strategy = {0}, svg = {0}, limit_word = {0};
    uint64_t limit = 0;
    bool as_json = false;
    tn_einsum_path *path = NULL;
    tn_einsum_path_info info = {.struct_size = sizeof info};
    tn_error err;
    const option_row rows[] = {
        {"EQUATION SHAPES", NULL,
         "such as ij,jk,kl->il 10x20,20x30,30x5; the shape of a number is empty", NULL, &words, 2},
        {"--strategy", "S",
         "left, greedy, branch-1, branch-2, branch-all, optimal, dp, random-greedy, "
         "random-greedy-128, auto or auto-hq instead of the settings' one",
         NULL, &strategy, 1},
        {"--memory-limit", "BYTES",
         "limit of intermediate results, such as 4096 or 16m; a call that needs more is computed "
         "in slices, whose steps are shown",
         NULL, &limit_word, 1},
        {"--json", NULL, "print JSON", &as_json, NULL, 0},
        {"--svg", "FILE", "also write the tree to FILE as a picture", NULL, &svg, 1},
    };
    int code = options_read(self, rows, sizeof rows / sizeof rows[0], count, arguments);
    if (code != OPTIONS_RUN || (code = options_need(self, &rows[0], 2)) != OPTIONS_RUN)
        return code;
    rules_say_unknown();
    if (parse_limit(&limit_word, &limit, &err) ||
        explain_path(&words, strategy.count ? strategy.texts[0] : NULL, limit, &of, &path, &info,
                     &err))
        code = report_request(who, &err);
    if (code == OPTIONS_RUN)
        einsum_tree_make(path, of.count, &drawn);
    if (code == OPTIONS_RUN && svg.count && save_svg(svg.texts[0], &drawn, info.equation, &err))
        code = report_request(who, &err);
    if (code == OPTIONS_RUN && as_json)
        write_path(self, path, &info);
    else if (code == OPTIONS_RUN)
        print_path(path, &info, &drawn);
    tn_einsum_path_release(path);
    return code == OPTIONS_RUN ? EXIT_DONE : code;
}
