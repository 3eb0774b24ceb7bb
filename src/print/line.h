/* Text for people: lines under construction, and output through a function of the caller. The
 * command is compiled with these files too. */
#ifndef TNI_PRINT_LINE_H
#define TNI_PRINT_LINE_H

#include "tenon/explain.h"

#include <stdarg.h>
#include <stdbool.h>

/* A line under construction; excess text is truncated. Zeroed is empty. */
typedef struct tni_line {
    char text[8192]; /* room for a path of maximum length and some words */
    size_t length;
} tni_line;

void tni_line_add(tni_line *line, const char *format, ...) TN_PRINTF(2, 3);
void tni_line_add_list(tni_line *line, const char *format, va_list arguments) TN_PRINTF(2, 0);
/* The same, preceded by ", " unless the line is empty. */
void tni_line_add_item(tni_line *line, const char *format, ...) TN_PRINTF(2, 3);

/* Number of characters: columns on a terminal, if no character is wide. */
int tni_columns(const char *text);

/* "s" unless `count` is 1. */
const char *tni_plural(int64_t count);

/* "7.8 GiB", "1 MiB", "512 bytes". Returns `room`. */
enum { TNI_BYTES_ROOM = 32 };
const char *tni_bytes_text(int64_t bytes, char room[TNI_BYTES_ROOM]);

/* "812 ns", "12.3 us", "4.56 ms", "1.20 s". Returns `room`. */
enum { TNI_TIME_ROOM = 24 };
const char *tni_time_text(double us, char room[TNI_TIME_ROOM]);

/* Decimals that give three significant digits, without an exponent. */
int tni_decimals(double value);

/* Where text is printed. */
typedef struct tni_sheet {
    tn_print_fn *write;
    void *user;
    int columns;
    bool colors;
} tni_sheet;

/* Colours of a terminal. */
enum {
    TNI_COLOR_NONE = 0,
    TNI_COLOR_STRONG,
    TNI_COLOR_SOFT,
    TNI_COLOR_GOOD,
    TNI_COLOR_ODD,
    TNI_COLOR_BAD
};
const char *tni_sheet_color(const tni_sheet *sheet, int color); /* "" without colours */

/* Prints at most 512 bytes. */
void tni_sheet_print(const tni_sheet *sheet, const char *format, ...) TN_PRINTF(2, 3);

/* The functions below print `text` as one line of UTF-8, with other bytes as \xNN: for text from
 * users and files. */

/* Prints `text` in exactly `width` columns: padded, or cut with "...". */
void tni_sheet_cell(const tni_sheet *sheet, const char *text, int width);

/* Prints `label`, padded to `label_width`, then `text`, on a line that already has `column` columns;
 * continuation lines are aligned with its first line. */
void tni_sheet_wrapped(const tni_sheet *sheet, int column, const char *label, int label_width,
                       const char *text);

/* The same on a new line that begins with `indent` spaces. */
void tni_sheet_wrapped_line(const tni_sheet *sheet, int indent, const char *label, int label_width,
                            const char *text);

#endif
