/* Text for people: columns, wrapped lines, sizes, colours. Untrusted text is sanitized before it
 * reaches the terminal. Writes to stdout. */
#ifndef TENON_CLI_TEXT_H
#define TENON_CLI_TEXT_H

#include "print/line.h"

#include <tenon/tenon.h>

/* Columns of a line: the terminal's, clamped to 60..100; 100 if there is no terminal. */
int text_width(void);

/* Stdout. Colours are on when it is a terminal, TERM is not "dumb" and NO_COLOR is not set. */
const tni_sheet *text_sheet(void);

enum {
    PAINT_NONE = TNI_COLOR_NONE,
    PAINT_STRONG = TNI_COLOR_STRONG,
    PAINT_SOFT = TNI_COLOR_SOFT,
    PAINT_GOOD = TNI_COLOR_GOOD,
    PAINT_ODD = TNI_COLOR_ODD,
    PAINT_BAD = TNI_COLOR_BAD
};
const char *paint(int colour); /* escape sequence; PAINT_NONE resets; "" without colours */
int paint_of_verdict(tn_platform_verdict verdict);
int paint_of_status(tn_status status);

/* `text` as one line of UTF-8, with other bytes as \xNN: for text from users and files. Valid until
 * the next call of a function of this header. */
const char *text_clean(const char *text);

void text_heading(const char *title);

/* Number of characters: columns on a terminal, if no character is wide. */
int text_columns(const char *text);

/* `text` in exactly `width` columns: padded, or cut with "...". */
void text_cell(const char *text, int width);

/* Prints `label` after `indent` spaces, padded to `label_width`, then `text`; continuation lines
 * are aligned with its first line. */
void text_wrapped(int indent, const char *label, int label_width, const char *text);

/* The same on a line that already has `column` columns. */
void text_wrapped_on(int column, const char *label, int label_width, const char *text);

/* The same in at most `most` lines, of which the last is cut with "..." if the text is longer.
 * Returns the number of lines. */
int text_wrapped_within(int column, const char *label, int label_width, const char *text, int most);

typedef tni_line text_line;
void text_add(text_line *line, const char *format, ...) TN_PRINTF(2, 3);
/* The same, preceded by ", " unless the line is empty. */
void text_add_item(text_line *line, const char *format, ...) TN_PRINTF(2, 3);

/* "7.8 GiB", "1 MiB", "512 bytes". Returns `room`. */
enum { TEXT_BYTES = TNI_BYTES_ROOM };
const char *text_bytes(int64_t bytes, char room[TEXT_BYTES]);
const char *text_fact_bytes(const tn_fact *fact, char room[TEXT_BYTES]); /* or "unknown" */

/* "s" unless `count` is 1. */
const char *plural(int64_t count);

#endif
