/* The machine's structure as a drawing of nested boxes, once for a wide page and once for a narrow
 * one. */
#include "html.h"
#include "page_parts.h"
#include "page_tree.h"
#include "phrases.h"

enum { WIDE = 912, NARROW = 328, TITLE_SIZE = 12 };

/* Core classes differ in corners and lines as well as in colour. */
static int class_of(const tn_topology_object *object)
{
    enum { KINDS = 3 };
    return object->speed_class > 0 ? object->speed_class % KINDS : 0;
}

static const char *corner_of(const tn_topology_object *object)
{
    return class_of(object) == 1 ? "7" : "3";
}

static void draw_rect(FILE *to, const tree_box *box, const char *kind, int number,
                      const char *corner)
{
    html_write(to, "<rect class=\"%s%d\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"%s\"/>",
               kind, number, (int)box->x, (int)box->y, (int)box->width, (int)box->height, corner);
}

static int nesting_of(const box_tree *tree, const tree_box *box)
{
    int depth = 0;
    for (; box != tree->boxes; box = &tree->boxes[box->parent])
        depth++;
    return depth;
}

static void draw_holder(FILE *to, const box_tree *tree, const tree_box *box)
{
    int x = (int)box->x + TREE_PAD, y = (int)box->y + 15;
    int title = (int)tree_text_width(box->title, TITLE_SIZE);
    int both = title + TREE_PAD + (int)tree_text_width(box->detail, TITLE_SIZE);
    if (!box->title[0])
        return;
    draw_rect(to, box, "h", nesting_of(tree, box) % 2, "5");
    html_write(to, "<text class=\"b\" x=\"%d\" y=\"%d\">%s", x, y, box->title);
    if (box->detail[0] && both <= box->width - 2 * TREE_PAD)
        html_write(to, "<tspan class=\"d\" dx=\"%d\">%s</tspan>", TREE_PAD - 2, box->detail);
    html_write(to, "</text>\n");
}

/* Writes the tooltip of a core's box. */
static void name_core(FILE *to, const findings *found, const box_tree *tree, const tree_box *core)
{
    const tn_topology_object *caches[TREE_CACHES];
    size_t count = tree_caches_of(tree, core, caches);
    int32_t class = core->object->speed_class;
    char room[TEXT_BYTES];
    html_write(to, "<title>%s", core->title);
    if (class >= 0 && (size_t) class < found->class_count)
        html_write(to, ", %s", found->classes[class].name);
    for (size_t i = 0; i < count; i++)
        html_write(to, ", L%d %s", (int)caches[i]->level, text_bytes(caches[i]->bytes, room));
    html_write(to, "</title>");
}

static void draw_strips(FILE *to, const box_tree *tree, const tree_box *core)
{
    const tn_topology_object *caches[TREE_CACHES];
    size_t count = tree_caches_of(tree, core, caches);
    char room[TEXT_BYTES];
    int x = (int)core->x + TREE_ROOMY_PAD, width = (int)core->width - 2 * TREE_ROOMY_PAD;
    for (size_t i = 0; i < count; i++) {
        int y = (int)core->y + TREE_HEADER + (int)i * (TREE_STRIP + 4);
        html_write(to, "<rect class=\"k\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"3\"/>",
                   x, y, width, TREE_STRIP);
        html_write(to, "<text class=\"m\" x=\"%d\" y=\"%d\">L%d %s</text>", x + width / 2, y + 14,
                   (int)caches[i]->level,
                   caches[i]->bytes > 0 ? text_bytes(caches[i]->bytes, room) : "");
    }
}

static void draw_core(FILE *to, const findings *found, const box_tree *tree, const tree_box *core)
{
    html_write(to, "<g>");
    name_core(to, found, tree, core);
    draw_rect(to, core, "c", class_of(core->object), corner_of(core->object));
    if (tree->is_roomy) {
        html_write(to, "<text class=\"b\" x=\"%d\" y=\"%d\">%s</text>",
                   (int)core->x + TREE_ROOMY_PAD, (int)core->y + 14, core->title);
        draw_strips(to, tree, core);
    }
    html_write(to, "</g>\n");
}

static void draw_thread(FILE *to, const box_tree *tree, const tree_box *box)
{
    const tn_topology_object *core = tree->boxes[box->parent].object;
    bool is_usable = box->object->usable != 0;
    int x = (int)box->x + (int)box->width / 2, y = (int)box->y + (int)box->height / 2;
    draw_rect(to, box, is_usable ? "t" : "x", is_usable ? class_of(core) : 0, "2");
    if (box->object->number >= 0)
        html_write(to, "<text class=\"%s\" x=\"%d\" y=\"%d\">%s%d</text>",
                   tree->is_roomy ? "m" : "n", x, y + (tree->is_roomy ? 4 : 3),
                   tree->is_roomy ? "thread " : "", (int)box->object->number);
    html_write(to, "\n");
}

static void draw_boxes(FILE *to, const findings *found, const box_tree *tree)
{
    for (size_t i = 1; i < tree->count; i++) {
        const tree_box *box = &tree->boxes[i];
        if (box->is_folded)
            continue;
        if (box->object->type == TN_TOPOLOGY_THREAD)
            draw_thread(to, tree, box);
        else if (box->object->type == TN_TOPOLOGY_CORE)
            draw_core(to, found, tree, box);
        else
            draw_holder(to, tree, box);
    }
}

static void describe(FILE *to, const findings *found, const box_tree *tree)
{
    text_line structure = {0}, caches = {0};
    phrase_structure(found, &structure);
    phrase_caches(found, &caches);
    html_write(to, "%s. ", structure.text);
    if (caches.length > 0)
        html_write(to, "Caches: %s. ", caches.text);
    html_write(to, "This process may run on %d of %d threads.", (int)tree->boxes[0].usable_count,
               (int)tree->boxes[0].thread_count);
}

static void draw(FILE *to, const findings *found, box_tree *tree, const char *name, int32_t width)
{
    tree_lay_out(tree, width - 2);
    html_write(to,
               "<svg class=\"topology %s\" role=\"img\" viewBox=\"-1 -1 %d %d\" width=\"%d\" "
               "height=\"%d\" aria-labelledby=\"topology-%s topology-%s-text\">\n",
               name, (int)tree->width + 2, (int)tree->height + 2, (int)tree->width + 2,
               (int)tree->height + 2, name, name);
    html_write(to, "<title id=\"topology-%s\">Topology of this machine</title>\n", name);
    html_write(to, "<desc id=\"topology-%s-text\">", name);
    describe(to, found, tree);
    html_write(to, "</desc>\n");
    draw_boxes(to, found, tree);
    html_write(to, "</svg>\n");
}

static void write_swatch(FILE *to, const char *class, const char *corner)
{
    html_write(to,
               "<svg class=\"swatch\" viewBox=\"0 0 22 16\" width=\"22\" height=\"16\" "
               "aria-hidden=\"true\"><rect class=\"%s\" x=\"1\" y=\"1\" width=\"20\" height=\"14\" "
               "rx=\"%s\"/></svg>",
               class, corner);
}

static void write_legend(FILE *to, const findings *found, const box_tree *tree)
{
    static const char *const classes[] = {"c0", "c1", "c2"};
    bool has_classes = found->class_count > 1;
    bool has_unusable = tree->boxes[0].usable_count < tree->boxes[0].thread_count;
    if (!has_classes && !has_unusable)
        return;
    html_write(to, "<ul class=\"legend\">\n");
    for (size_t i = 0; has_classes && i < found->class_count; i++) {
        text_line line = {0};
        phrase_class(&found->classes[i], &line);
        html_write(to, "<li>");
        write_swatch(to, classes[i % 3], i % 3 == 1 ? "7" : "3");
        html_write(to, "%s</li>\n", line.text);
    }
    if (has_unusable) {
        html_write(to, "<li>");
        write_swatch(to, "x0", "2");
        html_write(to, "threads that this process cannot use</li>\n");
    }
    html_write(to, "</ul>\n");
}

/* "L2 1 MiB, L1 32 KiB" for a core; cores with the same caches get the same text. */
static void phrase_own_caches(const box_tree *tree, const tree_box *core, text_line *out)
{
    const tn_topology_object *caches[TREE_CACHES];
    size_t count = tree_caches_of(tree, core, caches);
    char room[TEXT_BYTES];
    for (size_t i = 0; i < count; i++)
        text_add_item(out, "L%d %s", (int)caches[i]->level, text_bytes(caches[i]->bytes, room));
}

/* Where cores are drawn small, their caches are listed as text. */
static void write_own_caches(FILE *to, const box_tree *tree)
{
    enum { MOST = 4 };
    text_line kinds[MOST] = {{{0}, 0}};
    int counts[MOST] = {0}, used = 0;
    for (size_t i = 0; i < tree->count && !tree->is_roomy; i++) {
        text_line line = {0};
        int k = 0;
        if (tree->boxes[i].object->type != TN_TOPOLOGY_CORE)
            continue;
        phrase_own_caches(tree, &tree->boxes[i], &line);
        while (k < used && strcmp(kinds[k].text, line.text) != 0)
            k++;
        if (k == MOST || line.length == 0)
            continue;
        kinds[k] = line;
        counts[k]++;
        used = k == used ? used + 1 : used;
    }
    for (int k = 0; k < used; k++)
        html_write(to, "%d core%s with %s of %s own. ", counts[k], plural(counts[k]), kinds[k].text,
                   counts[k] == 1 ? "its" : "their");
}

void page_topology(FILE *to, const findings *found)
{
    box_tree tree;
    html_write(to, "<figure>\n");
    if (tree_make(found, &tree)) {
        html_write(to,
                   "<svg class=\"defs\" width=\"0\" height=\"0\" aria-hidden=\"true\"><defs>"
                   "<pattern id=\"hatch\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" "
                   "patternTransform=\"rotate(45)\"><rect class=\"hatch-ground\" width=\"5\" "
                   "height=\"5\"/><rect class=\"hatch-line\" width=\"1.5\" height=\"5\"/>"
                   "</pattern></defs></svg>\n");
        draw(to, found, &tree, "wide", WIDE);
        draw(to, found, &tree, "narrow", NARROW);
        write_legend(to, found, &tree);
    }
    html_write(to, "<figcaption>");
    if (tree.boxes)
        write_own_caches(to, &tree);
    html_write(to, "Source: %s.</figcaption>\n</figure>\n",
               found->topology_source ? found->topology_source : "nobody");
    tree_release(&tree);
}
