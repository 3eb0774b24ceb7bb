/* The attention backends as a table, and the tiles that a small video's tiles see as a picture. */
#include "html.h"
#include "mask_image.h"
#include "page_parts.h"

/* Draws a window of three tiles along each axis of a canvas of 3 by 4 by 6 tiles, and text. */
static void write_mask(FILE *to)
{
    static const int64_t canvas[] = {3, 4, 6}, tile[] = {1, 1, 1}, window[] = {1, 3, 3};
    mask_image image = {0};
    tn_error err;
    const tn_attention_video_args args = {.struct_size = sizeof args,
                                          .canvas = canvas,
                                          .tile = tile,
                                          .windows = window,
                                          .window_count = 1};
    if (mask_image_of_window(&args, 6, 0, &image, &err) == TN_OK) {
        html_write(to, "<figure>\n");
        mask_image_draw(&image, 240, false, to);
        html_write(to, "<figcaption>Sliding tiles: which of 72 tiles, 3 by 4 by 6, and of 6 blocks "
                       "of text each sees in a window of 1 by 3 by 3. <code>tenon explain "
                       "--mask-image</code> draws others.</figcaption>\n</figure>\n");
    }
    mask_image_release(&image);
}

void page_attention(FILE *to, const findings *found)
{
    const found_backends *backends = &found->backends;
    if (backends->count == 0)
        return;
    html_write(to,
               "<section id=\"attention\">\n<h2>Attention backends</h2>\n<p>For layers of %s.</p>\n"
               "<table>\n<thead><tr><th scope=\"col\">Backend</th><th scope=\"col\">Kernel</th><th "
               "scope=\"col\">Says</th></tr></thead>\n<tbody>\n",
               backends->problem);
    for (size_t i = 0; i < backends->count; i++) {
        const found_backend *row = &backends->rows[i];
        html_write(to,
                   "<tr><th scope=\"row\"><code>%s</code></th><td data-label=\"Kernel\">%s</td><td "
                   "data-label=\"Says\">%s</td></tr>\n",
                   row->name, row->kernel[0] ? row->kernel : "none", row->what);
    }
    html_write(to, "</tbody>\n</table>\n");
    write_mask(to);
    html_write(to, "</section>\n");
}
