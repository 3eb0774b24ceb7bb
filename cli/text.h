/* Text for people: columns, wrapped lines, sizes, colours. What strangers wrote is cleaned on its
 * way to the terminal. Writes to stdout. */
#ifndef TENON_CLI_TEXT_H
#define TENON_CLI_TEXT_H

#include <tenon/tenon.h>

/* Columns that a line may have: the terminal's, from 60 to 100; 100 where there is none. */
int text_width(void);

/* Colours are on when stdout is a terminal, TERM is not "dumb" and NO_COLOR is not set. */
enum { PAINT_NONE = 0, PAINT_STRONG, PAINT_SOFT, PAINT_GOOD, PAINT_ODD, PAINT_BAD };
const char *paint(int colour); /* what switches it on, PAINT_NONE off; "" without colours */
int paint_of_verdict(tn_platform_verdict verdict);
int paint_of_status(tn_status status);

/* `text` as one line of UTF-8, with other bytes as \xNN: for what users and files say. Lent until the next call of a
 * function of this header. */
const char *text_clean(const char *text);

void text_heading(const char *title);

/* Characters, as a terminal without wide ones shows them. */
int text_columns(const char *text);

/* `text` in exactly `width` columns: padded, or cut with "...". */
void text_cell(const char *text, int width);

/* `label` after `indent` spaces, padded to `label_width`, then `text`, whose further lines begin
 * below its first. */
void text_wrapped(int indent, const char *label, int label_width, const char *text);

/* The same on a line that has `column` columns already. */
void text_wrapped_on(int column, const char *label, int label_width, const char *text);

/* A line that is put together; what does not fit is cut. Zeroed is empty. */
typedef struct text_line {
    char text[8192]; /* a path of the longest, and words around it */
    size_t length;
} text_line;
void text_add(text_line *line, const char *format, ...) TN_PRINTF(2, 3);
/* The same after ", ", unless the line is empty. */
void text_add_item(text_line *line, const char *format, ...) TN_PRINTF(2, 3);

/* "7.8 GiB", "1 MiB", "512 bytes". Returns `room`. */
enum { TEXT_BYTES = 32 };
const char *text_bytes(int64_t bytes, char room[TEXT_BYTES]);
const char *text_fact_bytes(const tn_fact *fact, char room[TEXT_BYTES]); /* or "unknown" */

/* "s" unless `count` is 1. */
const char *plural(int64_t count);

#endif
