#include "einsum_tree.h"

#include "base/utf8.h"
#include "html.h"

#include <stdbool.h>
#include <string.h>

enum { TERMS_MOST = 3 * TN_EINSUM_OPERANDS_MAX };

void einsum_tree_make(const tn_einsum_path *path, int32_t operands, einsum_tree *out)
{
    static int32_t left[TN_EINSUM_OPERANDS_MAX];
    const tn_einsum_step *step;
    out->path = path;
    out->operands = operands;
    out->steps = 0;
    for (int32_t i = 0; i < operands; i++)
        left[i] = i;
    for (int32_t terms = operands; (step = tn_einsum_path_step(path, (size_t)out->steps));) {
        int32_t kept = 0, *parts = out->parts[out->steps];
        parts[0] = left[step->first];
        parts[1] = step->second < 0 ? -1 : left[step->second];
        for (int32_t k = 0; k < terms; k++) {
            if (k != step->first && k != step->second)
                left[kept++] = left[k];
        }
        left[kept++] = operands + out->steps++;
        terms = kept;
    }
}

const char *einsum_labels(const char *equation, int32_t part, size_t *out_size)
{
    const char *arrow = strstr(equation, "->"), *at = equation;
    for (; part > 0; part--)
        at += strcspn(at, ",") + 1;
    at = part < 0 ? arrow + 2 : at;
    *out_size = strcspn(at, ",-");
    if (*out_size)
        return at;
    *out_size = 1;
    return "1";
}

/* Sizes of the picture, in pixels. */
enum { COLUMN = 120, ROW = 80, BOX = 100, HEIGHT = 44, MARGIN = 20, LABELS_MOST = 12 };

/* Where the terms are. */
typedef struct picture {
    double x[TERMS_MOST];
    int32_t level[TERMS_MOST]; /* 0 for operands */
    const char *equation[TERMS_MOST];
    int32_t part[TERMS_MOST]; /* of the equation */
} picture;

/* Places the operands from left to right so that no lines cross, and each result above its parts. */
static void place_terms(const einsum_tree *of, const char *equation, picture *out)
{
    static int32_t stack[TERMS_MOST];
    int32_t waiting = 0, columns = 0;
    const int32_t root = of->operands + of->steps - 1;
    out->equation[root] = equation;
    out->part[root] = -1;
    stack[waiting++] = root;
    while (waiting) {
        const int32_t term = stack[--waiting];
        if (term < of->operands) {
            out->x[term] = columns++;
            out->level[term] = 0;
            continue;
        }
        const int32_t step = term - of->operands;
        for (int32_t i = 2; i-- > 0;) {
            const int32_t part = of->parts[step][i];
            if (part < 0)
                continue;
            out->equation[part] = tn_einsum_path_step(of->path, (size_t)step)->equation;
            out->part[part] = i;
            stack[waiting++] = part;
        }
    }
    for (int32_t step = 0; step < of->steps; step++) { /* parts have smaller numbers */
        const int32_t a = of->parts[step][0], b = of->parts[step][1] < 0 ? a : of->parts[step][1];
        const int32_t higher = out->level[a] > out->level[b] ? a : b;
        out->x[of->operands + step] = (out->x[a] + out->x[b]) / 2;
        out->level[of->operands + step] = out->level[higher] + 1;
    }
}

static double left_of(const picture *at, int32_t term)
{
    return MARGIN + at->x[term] * COLUMN;
}

static double top_of(const picture *at, int32_t term, int32_t levels)
{
    return MARGIN + (double)(levels - at->level[term]) * ROW;
}

/* The labels of a term, shortened to what a box has room for; valid until the next call. */
static const char *short_labels(const picture *at, int32_t term)
{
    static char text[4 * LABELS_MOST + 8];
    size_t size, used = 0;
    const char *labels = einsum_labels(at->equation[term], at->part[term], &size);
    int32_t characters = 0;
    for (; used < size; used++) {
        const bool begins = !tni_utf8_continues(labels[used]);
        if (begins && characters++ == LABELS_MOST)
            break;
    }
    snprintf(text, sizeof text, "%.*s%s", (int)used, labels, used < size ? "..." : "");
    return text;
}

static void draw_term(const einsum_tree *of, const picture *at, int32_t term, int32_t levels,
                      FILE *to)
{
    const double x = left_of(at, term), y = top_of(at, term, levels);
    html_write(to,
               "<rect x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%d\" rx=\"6\" "
               "class=\"%s\"/>\n<text x=\"%.1f\" y=\"%.1f\">%s</text>\n",
               x, y, BOX, HEIGHT, term < of->operands ? "operand" : "result", x + BOX / 2.0, y + 18,
               short_labels(at, term));
    html_write(to, "<text x=\"%.1f\" y=\"%.1f\" class=\"small\">", x + BOX / 2.0, y + 36);
    if (term < of->operands)
        html_write(to, "operand %d</text>\n", (int)term);
    else {
        char cost[32];
        const int32_t step = term - of->operands;
        snprintf(cost, sizeof cost, "%.4g", tn_einsum_path_step(of->path, (size_t)step)->cost);
        html_write(to, "step %d: %s</text>\n", (int)step + 1, cost);
    }
}

static void draw_lines(const einsum_tree *of, const picture *at, int32_t step, int32_t levels,
                       FILE *to)
{
    const int32_t made = of->operands + step;
    for (int32_t i = 0; i < 2; i++) {
        const int32_t part = of->parts[step][i];
        if (part >= 0)
            html_write(to, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
                       left_of(at, made) + BOX / 2.0, top_of(at, made, levels) + HEIGHT,
                       left_of(at, part) + BOX / 2.0, top_of(at, part, levels));
    }
}

void einsum_tree_draw(const einsum_tree *of, const char *equation, FILE *to)
{
    static picture at;
    place_terms(of, equation, &at);
    const int32_t levels = at.level[of->operands + of->steps - 1];
    const int width = 2 * MARGIN + (of->operands - 1) * COLUMN + BOX;
    const int height = 2 * MARGIN + levels * ROW + HEIGHT;
    html_write(to,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
               "height=\"%d\">\n<title>%s</title>\n",
               width, height, width, height, equation);
    html_write(to, "<style>text{font:14px monospace;text-anchor:middle;fill:#222}"
                   ".small{font-size:10px}line{stroke:#888}rect{stroke:#888}"
                   ".operand{fill:#eef}.result{fill:#efe}</style>\n");
    for (int32_t step = 0; step < of->steps; step++)
        draw_lines(of, &at, step, levels, to);
    for (int32_t term = 0; term < of->operands + of->steps; term++)
        draw_term(of, &at, term, levels, to);
    html_write(to, "</svg>\n");
}
