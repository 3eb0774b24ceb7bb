#include "text.h"

#include "system.h"

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

static void write_stdout(void *user, const char *text, size_t length)
{
    (void)user;
    (void)fwrite(text, 1, length, stdout);
}

const tni_sheet *text_sheet(void)
{
    static tni_sheet sheet;
    sheet = (tni_sheet){.write = write_stdout, .columns = text_width(), .colors = is_painted()};
    return &sheet;
}

const char *paint(int colour)
{
    return tni_sheet_color(text_sheet(), colour);
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
    return tni_columns(text);
}

void text_cell(const char *text, int width)
{
    tni_sheet_cell(text_sheet(), text, width);
}

void text_wrapped(int indent, const char *label, int label_width, const char *text)
{
    tni_sheet_wrapped_line(text_sheet(), indent, label, label_width, text);
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
    tni_sheet_wrapped(text_sheet(), column, label, label_width, text);
}

void text_add(text_line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    tni_line_add_list(line, format, arguments);
    va_end(arguments);
}

void text_add_item(text_line *line, const char *format, ...)
{
    va_list arguments;
    if (line->length > 0)
        text_add(line, ", ");
    va_start(arguments, format);
    tni_line_add_list(line, format, arguments);
    va_end(arguments);
}

const char *text_bytes(int64_t bytes, char room[TEXT_BYTES])
{
    return tni_bytes_text(bytes, room);
}

const char *text_fact_bytes(const tn_fact *fact, char room[TEXT_BYTES])
{
    if (!fact->known)
        return "unknown";
    return text_bytes(fact->value, room);
}

const char *plural(int64_t count)
{
    return tni_plural(count);
}
