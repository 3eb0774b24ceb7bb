/* The machine's parts as boxes in boxes, laid out for one width. */
#ifndef TENON_CLI_PAGE_TREE_H
#define TENON_CLI_PAGE_TREE_H

#include "findings.h"

enum { TREE_LABEL = 64 };

/* A part that is drawn, or folded into the core it belongs to. Indices are into the boxes; -1 for
 * none. Lengths are units of the drawing. */
typedef struct tree_box {
    const tn_topology_object *object;
    int32_t parent; /* the nearest that is drawn */
    int32_t child;
    int32_t next;
    int32_t core_count; /* in it, and so the next two */
    int32_t thread_count;
    int32_t usable_count;
    bool is_folded; /* a cache that one core alone has */
    int32_t x, y, width, height;
    char title[TREE_LABEL];  /* of a box that holds others; "" for none */
    char detail[TREE_LABEL]; /* after it, where there is room           */
} tree_box;

typedef struct box_tree {
    tree_box *boxes; /* one for each object, in the same order */
    size_t count;
    bool is_roomy;         /* few cores: each is drawn with its caches and words  */
    int32_t thread_width;  /* of one thread                                       */
    int32_t width, height; /* of the whole, after tree_lay_out                     */
} box_tree;

enum {
    TREE_PAD = 8,      /* between a box and what it holds   */
    TREE_GAP = 6,      /* between boxes                     */
    TREE_HEADER = 20,  /* of a box with a title             */
    TREE_STRIP = 20,   /* a core's cache, where it is roomy */
    TREE_CORE_PAD = 2, /* between a core and its threads    */
    TREE_ROOMY_PAD = 6
};

/* False without memory, or when there is nothing to draw. Release it either way. */
bool tree_make(const findings *found, box_tree *out);
void tree_release(box_tree *tree);

/* Gives every box its place, so that the whole is no wider than `width` where that can be. */
void tree_lay_out(box_tree *tree, int32_t width);

/* The caches that only `core` has, the largest level first: writes up to `most` and returns how
 * many there are. */
enum { TREE_CACHES = 4 };
size_t tree_caches_of(const box_tree *tree, const tree_box *core,
                      const tn_topology_object *out[TREE_CACHES]);

/* About how wide text is in the drawing. */
int32_t tree_text_width(const char *text, int32_t font_size);

#endif
