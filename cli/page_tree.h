/* The machine's parts as nested boxes, laid out for one width. */
#ifndef TENON_CLI_PAGE_TREE_H
#define TENON_CLI_PAGE_TREE_H

#include "findings.h"

enum { TREE_LABEL = 64 };

/* A part that is drawn, or folded into its core. Indices refer to the boxes; -1 for none. Lengths
 * are in drawing units. */
typedef struct tree_box {
    const tn_topology_object *object;
    int32_t parent; /* the nearest drawn ancestor */
    int32_t child;
    int32_t next;
    int32_t core_count; /* contained in it; also the next two */
    int32_t thread_count;
    int32_t usable_count;
    bool is_folded; /* a cache that belongs to a single core */
    int32_t x, y, width, height;
    char title[TREE_LABEL];  /* of a box that contains others; "" for none */
    char detail[TREE_LABEL]; /* after the title, if there is room */
} tree_box;

typedef struct box_tree {
    tree_box *boxes; /* one for each object, in the same order */
    size_t count;
    bool is_roomy;         /* few cores: each is drawn with its caches and text */
    int32_t thread_width;  /* of one thread                                       */
    int32_t width, height; /* of the whole drawing, after tree_lay_out */
} box_tree;

enum {
    TREE_PAD = 8,      /* between a box and its contents */
    TREE_GAP = 6,      /* between boxes                     */
    TREE_HEADER = 20,  /* of a box with a title             */
    TREE_STRIP = 20,   /* a core's cache, in a roomy drawing */
    TREE_CORE_PAD = 2, /* between a core and its threads    */
    TREE_ROOMY_PAD = 6
};

/* Returns false if out of memory or if there is nothing to draw. Release it in either case. */
bool tree_make(const findings *found, box_tree *out);
void tree_release(box_tree *tree);

/* Positions every box so that the whole is at most `width` wide, if possible. */
void tree_lay_out(box_tree *tree, int32_t width);

/* The caches that belong only to `core`, the largest level first: writes at most TREE_CACHES of
 * them and returns their number. */
enum { TREE_CACHES = 4 };
size_t tree_caches_of(const box_tree *tree, const tree_box *core,
                      const tn_topology_object *out[TREE_CACHES]);

/* Approximate width of text in the drawing. */
int32_t tree_text_width(const char *text, int32_t font_size);

#endif
