#include "text.h"

#include "system.h"

#include "base/utf8.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

enum { TEXT_ROOM = sizeof((text_line *)0)->text };

static bool is_painted(void)
{
    static int known = -1;
    if (known < 0) {
        const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
        known = system_is_terminal(stdout) && !(no_color && no_color[0]) &&
                !(term && strcmp(term, "dumb") == 0);
    }
    return known != 0;
}

const char *paint(int colour)
{
    static const char *const codes[] = {"\033[0m",  "\033[1m",  "\033[2m",
                                        "\033[32m", "\033[33m", "\033[31m"};
    return is_painted() ? codes[colour] : "";
}

int paint_of_verdict(tn_platform_verdict verdict)
{
    switch (verdict) {
    case TN_PLATFORM_READY: return PAINT_GOOD;
    case TN_PLATFORM_BROKEN: return PAINT_BAD;
    case TN_PLATFORM_ABSENT: return PAINT_SOFT;
    default: return PAINT_ODD;
    }
}

int paint_of_status(tn_status status)
{
    switch (status) {
    case TN_OK: return PAINT_GOOD;
    case TN_UNAVAILABLE:
    case TN_ALREADY_EXISTS: return PAINT_SOFT;
    default: return PAINT_BAD;
    }
}

int text_width(void)
{
    enum { LEAST = 60, MOST = 100 };
    static int width;
    if (width == 0) {
        int columns = system_columns(stdout);
        width = columns == 0 || columns > MOST ? MOST : columns < LEAST ? LEAST : columns;
    }
    return width;
}

void text_heading(const char *title)
{
    printf("%s%s%s\n", paint(PAINT_STRONG), title, paint(PAINT_NONE));
}

const char *text_clean(const char *text)
{
    static char copy[TEXT_ROOM];
    tn_text_fit(copy, sizeof copy, text);
    tn_text_escape(copy, sizeof copy);
    return copy;
}

int text_columns(const char *text)
{
    int columns = 0;
    for (; *text; text++)
        columns += !tni_utf8_continues(*text);
    return columns;
}

/* Bytes of the first `columns` characters of `text`. */
static int bytes_of_columns(const char *text, int columns)
{
    const char *at = text;
    while (*at && columns > 0) {
        at++;
        while (tni_utf8_continues(*at))
            at++;
        columns--;
    }
    return (int)(at - text);
}

void text_cell(const char *text, int width)
{
    const char *cleaned = text_clean(text);
    int columns = text_columns(cleaned);
    if (columns <= width)
        printf("%s%*s", cleaned, width - columns, "");
    else
        printf("%.*s...", bytes_of_columns(cleaned, width - 3), cleaned);
}

void text_wrapped(int indent, const char *label, int label_width, const char *text)
{
    printf("%*s", indent, "");
    text_wrapped_on(indent, label, label_width, text);
}

/* The bytes of the next line: as many words of `at` as fit into `columns`, at least one. */
static int measure_line(const char *at, int columns)
{
    int length = 0, used = 0;
    while (at[length]) {
        int gap = (int)strspn(at + length, " ");
        int word = (int)strcspn(at + length + gap, " ");
        used += gap + text_columns(at + length + gap) - text_columns(at + length + gap + word);
        if (length > 0 && used > columns)
            break;
        length += gap + word;
    }
    return length;
}

/* Collapses runs of spaces and drops those at either end. */
static void squeeze_spaces(char *text)
{
    char *to = text;
    for (const char *at = text; *at; at++) {
        bool is_extra = *at == ' ' && (to == text || to[-1] == ' ' || !at[strspn(at, " ")]);
        if (!is_extra)
            *to++ = *at;
    }
    *to = '\0';
}

int text_wrapped_within(int column, const char *label, int label_width, const char *text, int most)
{
    static char words[TEXT_ROOM];
    const int begin = column + label_width, width = text_width() - begin;
    const char *at = words;
    int lines = 0;
    tn_text_fit(words, sizeof words, text_clean(text));
    squeeze_spaces(words);
    printf("%-*s", label_width, label);
    do {
        int length = measure_line(at, width);
        bool is_cut = lines + 1 == most && text_columns(at) > width;
        if (lines++ > 0)
            printf("%*s", begin, "");
        if (is_cut)
            text_cell(at, width);
        else
            printf("%.*s", length, at);
        putchar('\n');
        at += is_cut ? (int)strlen(at) : length;
        at += strspn(at, " ");
    } while (*at);
    return lines;
}

void text_wrapped_on(int column, const char *label, int label_width, const char *text)
{
    (void)text_wrapped_within(column, label, label_width, text, INT_MAX);
}

TN_PRINTF(2, 0)
static void add(text_line *line, const char *format, va_list arguments)
{
    size_t room = sizeof line->text - line->length;
    int length = vsnprintf(line->text + line->length, room, format, arguments);
    if (length > 0)
        line->length += (size_t)length < room ? (size_t)length : room - 1;
}

void text_add(text_line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add(line, format, arguments);
    va_end(arguments);
}

void text_add_item(text_line *line, const char *format, ...)
{
    va_list arguments;
    if (line->length > 0)
        text_add(line, ", ");
    va_start(arguments, format);
    add(line, format, arguments);
    va_end(arguments);
}

const char *text_bytes(int64_t bytes, char room[TEXT_BYTES])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
    if (bytes < 1024) {
        snprintf(room, TEXT_BYTES, "%" PRId64 " byte%s", bytes, plural(bytes));
        return room;
    }
    double value = (double)bytes / 1024;
    size_t unit = 0;
    while (value >= 1023.95 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024;
        unit++;
    }
    int64_t tenths = (int64_t)(value * 10 + 0.5);
    snprintf(room, TEXT_BYTES, "%.*f %s", tenths % 10 == 0 ? 0 : 1, (double)tenths / 10,
             units[unit]);
    return room;
}

const char *text_fact_bytes(const tn_fact *fact, char room[TEXT_BYTES])
{
    if (!fact->known)
        return "unknown";
    return text_bytes(fact->value, room);
}

const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}
