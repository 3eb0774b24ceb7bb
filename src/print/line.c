#include "line.h"

#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { CLEAN = 8192 };

void tni_line_add_list(tni_line *line, const char *format, va_list arguments)
{
    size_t room = sizeof line->text - line->length;
    int length = vsnprintf(line->text + line->length, room, format, arguments);
    if (length > 0)
        line->length += (size_t)length < room ? (size_t)length : room - 1;
}

void tni_line_add(tni_line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    tni_line_add_list(line, format, arguments);
    va_end(arguments);
}

void tni_line_add_item(tni_line *line, const char *format, ...)
{
    va_list arguments;
    if (line->length > 0)
        tni_line_add(line, ", ");
    va_start(arguments, format);
    tni_line_add_list(line, format, arguments);
    va_end(arguments);
}

int tni_columns(const char *text)
{
    int columns = 0;
    for (; *text; text++)
        columns += !tni_utf8_continues(*text);
    return columns;
}

const char *tni_plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

const char *tni_bytes_text(int64_t bytes, char room[TNI_BYTES_ROOM])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
    if (bytes < 1024) {
        snprintf(room, TNI_BYTES_ROOM, "%" PRId64 " byte%s", bytes, tni_plural(bytes));
        return room;
    }
    double value = (double)bytes / 1024;
    size_t unit = 0;
    while (value >= 1023.95 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024;
        unit++;
    }
    int64_t tenths = (int64_t)(value * 10 + 0.5);
    snprintf(room, TNI_BYTES_ROOM, "%.*f %s", tenths % 10 == 0 ? 0 : 1, (double)tenths / 10,
             units[unit]);
    return room;
}

int tni_decimals(double value)
{
    return value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
}

const char *tni_time_text(double us, char room[TNI_TIME_ROOM])
{
    static const struct {
        double us;
        const char *name;
    } units[] = {{1e-3, "ns"}, {1, "us"}, {1e3, "ms"}, {1e6, "s"}};
    size_t unit = 0;
    while (unit + 1 < sizeof units / sizeof units[0] && us / units[unit].us >= 999.5)
        unit++;
    double value = us / units[unit].us;
    snprintf(room, TNI_TIME_ROOM, "%.*f %s", tni_decimals(value), value, units[unit].name);
    return room;
}

const char *tni_sheet_color(const tni_sheet *sheet, int color)
{
    static const char *const codes[] = {"\033[0m",  "\033[1m",  "\033[2m",
                                        "\033[32m", "\033[33m", "\033[31m"};
    return sheet->colors ? codes[color] : "";
}

static void print_text(const tni_sheet *sheet, const char *text, size_t length)
{
    if (length > 0)
        sheet->write(sheet->user, text, length);
}

void tni_sheet_print(const tni_sheet *sheet, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length > 0)
        print_text(sheet, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
}

/* Writes `text` to `room` as one line of UTF-8. */
static void clean_text(const char *text, char room[CLEAN])
{
    tn_text_fit(room, CLEAN, text);
    tn_text_escape(room, CLEAN);
}

/* Bytes of the first `columns` characters of `text`. */
static size_t bytes_of_columns(const char *text, int columns)
{
    const char *at = text;
    while (*at && columns > 0) {
        at++;
        while (tni_utf8_continues(*at))
            at++;
        columns--;
    }
    return (size_t)(at - text);
}

void tni_sheet_cell(const tni_sheet *sheet, const char *text, int width)
{
    char cleaned[CLEAN];
    clean_text(text, cleaned);
    int columns = tni_columns(cleaned);
    if (columns <= width) {
        print_text(sheet, cleaned, strlen(cleaned));
        tni_sheet_print(sheet, "%*s", width - columns, "");
    } else {
        print_text(sheet, cleaned, bytes_of_columns(cleaned, width - 3));
        tni_sheet_print(sheet, "...");
    }
}

void tni_sheet_wrapped(const tni_sheet *sheet, int column, const char *label, int label_width,
                       const char *text)
{
    char cleaned[CLEAN];
    int begin = column + label_width;
    clean_text(text, cleaned);
    column = begin;
    tni_sheet_print(sheet, "%-*s", label_width, label);
    for (const char *at = cleaned; *at;) {
        int length = (int)strcspn(at, " ");
        int columns = tni_columns(at) - tni_columns(at + length);
        if (column > begin && column + 1 + columns > sheet->columns) {
            tni_sheet_print(sheet, "\n%*s", begin, "");
            column = begin;
        } else if (column > begin) {
            tni_sheet_print(sheet, " ");
            column++;
        }
        print_text(sheet, at, (size_t)length);
        column += columns;
        at += length;
        at += strspn(at, " ");
    }
    tni_sheet_print(sheet, "\n");
}

void tni_sheet_wrapped_line(const tni_sheet *sheet, int indent, const char *label, int label_width,
                            const char *text)
{
    tni_sheet_print(sheet, "%*s", indent, "");
    tni_sheet_wrapped(sheet, indent, label, label_width, text);
}
