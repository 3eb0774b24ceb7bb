/* Pictures of which blocks of keys the blocks of queries see: queries from top to bottom, keys from left to right. */
#ifndef TENON_CLI_MASK_IMAGE_H
#define TENON_CLI_MASK_IMAGE_H

#include <tenon/tenon.h>

#include <stdbool.h>

/* A cell is a pair of blocks. */
enum { MASK_UNSEEN = 0, MASK_SEEN, MASK_TEXT, MASK_CELLS };

/* At most so many blocks along a side: a larger picture shows every n-th pair. */
enum { MASK_SIDE_MOST = 2048 };

typedef struct mask_image {
    int64_t rows, columns;
    uint8_t *cells; /* [rows][columns]: MASK_... */
} mask_image;

/* Of the window of a head in sliding tiles; `args` needs no tensors. Blocks of text have their own color. */
tn_status mask_image_of_window(const tn_attention_video_args *args, int64_t text, int32_t head,
                               mask_image *out, tn_error *err);

/* Of a head of an attention-sparse problem. A problem's text says how many blocks are listed, not which: the picture
 * has that many, drawn at random, the same ones for the same head; of a mask, half of them. */
tn_status mask_image_of_problem(const char *problem, int32_t head, mask_image *out, tn_error *err);

void mask_image_release(mask_image *image);

/* Writes an SVG element of a given width in pixels: a file, or a part of a page, whose text describes it. */
void mask_image_draw(const mask_image *image, int32_t width, bool is_file, FILE *to);
/* Writes a PNG file. */
void mask_image_write_png(const mask_image *image, FILE *to);

/* Writes a file, whose name ends with .png or .svg. */
tn_status mask_image_save(const mask_image *image, const char *name, tn_error *err);

#endif
