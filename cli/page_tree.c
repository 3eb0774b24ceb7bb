#include "page_tree.h"

#include "text.h"

#include <stdlib.h>

enum { ROOMY_CORES = 16, TITLE_SIZE = 12, SMALL_SIZE = 9 };

int32_t tree_text_width(const char *text, int32_t font_size)
{
    return text_columns(text) * font_size * 13 / 20 + 2;
}

static bool is_type(const tree_box *box, int32_t type)
{
    return box->object->type == type;
}

/* Parents precede their children, so one backward pass sums up. */
static void count_parts(box_tree *tree)
{
    for (size_t i = tree->count; i-- > 0;) {
        tree_box *box = &tree->boxes[i];
        box->core_count += is_type(box, TN_TOPOLOGY_CORE);
        box->thread_count += is_type(box, TN_TOPOLOGY_THREAD);
        box->usable_count += is_type(box, TN_TOPOLOGY_THREAD) && box->object->usable;
        if (i == 0)
            return;
        tree_box *parent = &tree->boxes[box->parent];
        parent->core_count += box->core_count;
        parent->thread_count += box->thread_count;
        parent->usable_count += box->usable_count;
    }
}

static void fold_caches(box_tree *tree)
{
    for (size_t i = 1; i < tree->count; i++) {
        tree_box *box = &tree->boxes[i];
        while (tree->boxes[box->parent].is_folded)
            box->parent = tree->boxes[box->parent].parent;
        box->is_folded = is_type(box, TN_TOPOLOGY_CACHE) && box->core_count <= 1 &&
                         tree->boxes[0].core_count > 0;
    }
}

static void link_children(box_tree *tree)
{
    for (size_t i = tree->count; i-- > 1;) {
        tree_box *box = &tree->boxes[i];
        if (box->is_folded)
            continue;
        box->next = tree->boxes[box->parent].child;
        tree->boxes[box->parent].child = (int32_t)i;
    }
}

static void add_detail(tree_box *box, const char *noun, int32_t count)
{
    size_t used = strlen(box->detail);
    if (count > 0)
        snprintf(box->detail + used, sizeof box->detail - used, "%s%d %s%s", used ? ", " : "",
                 (int)count, noun, plural(count));
}

/* The size of a single node is omitted: it adds nothing, and under a hypervisor it is often
 * wrong. */
static void name_box(tree_box *box, bool is_only_node)
{
    static const char *const words[TN_TOPOLOGY_TYPE_COUNT] = {
        [TN_TOPOLOGY_PACKAGE] = "Package", [TN_TOPOLOGY_DIE] = "Die",
        [TN_TOPOLOGY_NODE] = "NUMA node",  [TN_TOPOLOGY_CACHE] = "L",
        [TN_TOPOLOGY_CORE] = "Core",
    };
    const tn_topology_object *object = box->object;
    char bytes[TEXT_BYTES];
    bool is_known = object->type > 0 && object->type < TN_TOPOLOGY_THREAD;
    const char *size = object->bytes > 0 ? text_bytes(object->bytes, bytes) : "";
    if (!is_known)
        return;
    if (object->type == TN_TOPOLOGY_CACHE)
        snprintf(box->title, sizeof box->title, "L%d %s", (int)object->level, size);
    else if (object->number >= 0)
        snprintf(box->title, sizeof box->title, "%s %d", words[object->type], (int)object->number);
    else
        snprintf(box->title, sizeof box->title, "%s", words[object->type]);
    if (object->type == TN_TOPOLOGY_NODE && !is_only_node)
        snprintf(box->detail, sizeof box->detail, "%s", size);
    if (object->type != TN_TOPOLOGY_CORE) {
        add_detail(box, "core", box->core_count);
        if (box->thread_count != box->core_count)
            add_detail(box, "thread", box->thread_count);
    }
}

static int32_t widest_thread(const box_tree *tree)
{
    int32_t greatest = 0;
    char number[16];
    for (size_t i = 0; i < tree->count; i++) {
        const tn_topology_object *object = tree->boxes[i].object;
        if (object->type == TN_TOPOLOGY_THREAD && object->number > greatest)
            greatest = object->number;
    }
    snprintf(number, sizeof number, "%d", (int)greatest);
    int32_t width = tree_text_width(number, SMALL_SIZE) + 4;
    return width > 20 ? width : 20;
}

bool tree_make(const findings *found, box_tree *out)
{
    *out = (box_tree){.count = found->object_count};
    if (found->object_count == 0)
        return false;
    out->boxes = calloc(found->object_count, sizeof *out->boxes);
    if (!out->boxes)
        return false;
    for (size_t i = 0; i < out->count; i++) {
        tree_box *box = &out->boxes[i];
        int32_t parent = found->objects[i].parent;
        box->object = &found->objects[i];
        box->parent = parent >= 0 && (size_t)parent < i ? parent : 0;
        box->child = box->next = -1;
    }
    count_parts(out);
    fold_caches(out);
    link_children(out);
    size_t nodes = 0;
    for (size_t i = 0; i < out->count; i++)
        nodes += out->boxes[i].object->type == TN_TOPOLOGY_NODE;
    for (size_t i = 1; i < out->count; i++)
        name_box(&out->boxes[i], nodes == 1);
    out->is_roomy = out->boxes[0].core_count > 0 && out->boxes[0].core_count <= ROOMY_CORES;
    out->thread_width = widest_thread(out);
    return out->boxes[0].thread_count > 0;
}

void tree_release(box_tree *tree)
{
    free(tree->boxes);
    tree->boxes = NULL;
}

/* A folded cache's parents were folded before it, so this walks the object's own parents. */
size_t tree_caches_of(const box_tree *tree, const tree_box *core,
                      const tn_topology_object *out[TREE_CACHES])
{
    size_t count = 0;
    const tree_box *box = core;
    while (box->object->parent > 0 && count < TREE_CACHES) {
        box = &tree->boxes[box->object->parent];
        if (!box->is_folded)
            break;
        out[count++] = box->object;
    }
    for (size_t i = 0; i < count / 2; i++) {
        const tn_topology_object *swapped = out[i];
        out[i] = out[count - 1 - i];
        out[count - 1 - i] = swapped;
    }
    return count;
}

/* The area that children occupy. */
typedef struct rows {
    int32_t width, height;
} rows;

static int32_t header_of(const tree_box *box)
{
    return box->title[0] ? TREE_HEADER : 0;
}

/* Memory without its own processors: a strip above or below its neighbours. */
static bool is_strip(const tree_box *box)
{
    return is_type(box, TN_TOPOLOGY_NODE) && box->child < 0;
}

/* The number of children that are not strips, if all have the same size; otherwise 0. */
static int32_t count_uniform(const box_tree *tree, const tree_box *box, int32_t *out_width)
{
    const tree_box *first = NULL;
    int32_t count = 0;
    for (int32_t i = box->child; i >= 0; i = tree->boxes[i].next) {
        const tree_box *child = &tree->boxes[i];
        if (is_strip(child))
            continue;
        if (first && (child->width != first->width || child->height != first->height))
            return 0;
        first = child;
        count++;
    }
    *out_width = first ? first->width : 0;
    return count;
}

/* Columns for equal children: a number that fills all rows, if one exists that uses more than half
 * of the width; otherwise the most even one. */
static int32_t choose_columns(int32_t count, int32_t most)
{
    if (most >= count)
        return count;
    if (most < 1)
        most = 1;
    for (int32_t columns = most; columns > most / 2; columns--) {
        if (count % columns == 0)
            return columns;
    }
    int32_t row_count = (count + most - 1) / most;
    return (count + row_count - 1) / row_count;
}

/* A strip without neighbouring strips is at least `width` wide. */
static void widen_strips(box_tree *tree, const tree_box *box, int32_t width)
{
    bool after_strip = false;
    for (int32_t i = box->child; i >= 0; i = tree->boxes[i].next) {
        tree_box *child = &tree->boxes[i];
        bool before_strip = child->next >= 0 && is_strip(&tree->boxes[child->next]);
        bool is_alone = is_strip(child) && !after_strip && !before_strip;
        after_strip = is_strip(child);
        if (is_alone && child->width < width)
            child->width = width;
    }
}

/* Places the children of `box` in rows, relative to its corner; returns the area they occupy. */
static rows flow(box_tree *tree, const tree_box *box, int32_t room, int32_t gap)
{
    int32_t x = 0, y = 0, row_height = 0, in_row = 0, each = 0;
    int32_t uniform = count_uniform(tree, box, &each);
    int32_t columns = uniform > 0 ? choose_columns(uniform, (room + gap) / (each + gap)) : 0;
    const tree_box *before = NULL;
    rows used = {0, 0};
    for (int32_t i = box->child; i >= 0; i = tree->boxes[i].next) {
        tree_box *child = &tree->boxes[i];
        bool by_count = columns > 0 && !is_strip(child);
        bool is_full = by_count ? in_row == columns : x > 0 && x + child->width > room;
        if (before && (is_full || is_strip(before) != is_strip(child))) {
            y += row_height + gap;
            x = row_height = in_row = 0;
        }
        child->x = x;
        child->y = y;
        x += child->width + gap;
        in_row++;
        row_height = child->height > row_height ? child->height : row_height;
        used.width = x - gap > used.width ? x - gap : used.width;
        used.height = y + row_height;
        before = child;
    }
    widen_strips(tree, box, used.width);
    return used;
}

static void move_children(box_tree *tree, const tree_box *box, int32_t x, int32_t y)
{
    for (int32_t i = box->child; i >= 0; i = tree->boxes[i].next) {
        tree->boxes[i].x += x;
        tree->boxes[i].y += y;
    }
}

static void size_thread(const box_tree *tree, tree_box *box)
{
    enum { ROOMY_WIDTH = 56, ROOMY_HEIGHT = 22, HEIGHT = 15 };
    box->width = tree->is_roomy ? ROOMY_WIDTH : tree->thread_width;
    box->height = tree->is_roomy ? ROOMY_HEIGHT : HEIGHT;
}

static void size_core(box_tree *tree, tree_box *box)
{
    enum { TWO = 2 }; /* most threads side by side */
    const tn_topology_object *caches[TREE_CACHES];
    int32_t pad = tree->is_roomy ? TREE_ROOMY_PAD : TREE_CORE_PAD;
    int32_t per_row = tree->is_roomy || box->thread_count > TWO ? TWO : 1;
    int32_t thread = box->child >= 0 ? tree->boxes[box->child].width : tree->thread_width;
    int32_t gap = tree->is_roomy ? 4 : 1, above = pad;
    if (tree->is_roomy)
        above = TREE_HEADER + (int32_t)tree_caches_of(tree, box, caches) * (TREE_STRIP + gap);
    rows used = flow(tree, box, per_row * (thread + gap) - gap, gap);
    move_children(tree, box, pad, above);
    if (tree->is_roomy)
        used.width = TWO * (thread + gap) - gap;
    if (tree->is_roomy && box->thread_count == 1 && box->child >= 0)
        tree->boxes[box->child].width = used.width;
    box->width = used.width + 2 * pad;
    box->height = above + used.height + pad;
}

/* Sizes a box that contains others, or a memory node without processors. */
static void size_holder(box_tree *tree, tree_box *box, int32_t room)
{
    int32_t pad = box->title[0] ? TREE_PAD : 0;
    int32_t title = tree_text_width(box->title, TITLE_SIZE) + 2 * pad;
    rows used = flow(tree, box, room - 2 * pad, TREE_GAP);
    if (box->child < 0)
        title += TREE_PAD + tree_text_width(box->detail, TITLE_SIZE);
    move_children(tree, box, pad, header_of(box) + (box->title[0] ? 2 : 0));
    box->width = used.width + 2 * pad;
    box->height = header_of(box) + used.height + (used.height ? pad + 2 : pad / 2);
    if (box->width < title)
        box->width = title;
}

static int32_t depth_of(const box_tree *tree, const tree_box *box)
{
    int32_t depth = 0;
    for (; box != tree->boxes; box = &tree->boxes[box->parent])
        depth++;
    return depth;
}

void tree_lay_out(box_tree *tree, int32_t width)
{
    for (size_t i = tree->count; i-- > 0;) {
        tree_box *box = &tree->boxes[i];
        int32_t depth = depth_of(tree, box);
        int32_t room = width - 2 * TREE_PAD * (depth > 0 ? depth - 1 : 0);
        if (box->is_folded)
            continue;
        if (is_type(box, TN_TOPOLOGY_THREAD))
            size_thread(tree, box);
        else if (is_type(box, TN_TOPOLOGY_CORE))
            size_core(tree, box);
        else
            size_holder(tree, box, room);
    }
    tree->width = tree->boxes[0].width;
    tree->height = tree->boxes[0].height;
    for (size_t i = 1; i < tree->count;
         i++) { /* from positions in the parent to positions in the drawing */
        tree_box *box = &tree->boxes[i];
        box->x += tree->boxes[box->parent].x;
        box->y += tree->boxes[box->parent].y;
    }
}
