#include "html.h"

#include "base/utf8.h"

/* Control characters and invalid UTF-8 bytes become U+FFFD. */
static void put_escaped(FILE *to, const char *text)
{
    size_t left = strlen(text);
    while (left > 0) {
        size_t size = tni_utf8_size(text, left);
        unsigned char c = (unsigned char)*text;
        bool is_control = (c < 0x20 && c != '\n' && c != '\t') || c == 0x7F;
        if (size == 0 || is_control)
            fputs("&#xFFFD;", to);
        else if (c == '&')
            fputs("&amp;", to);
        else if (c == '<')
            fputs("&lt;", to);
        else if (c == '>')
            fputs("&gt;", to);
        else if (c == '"')
            fputs("&quot;", to);
        else if (c == '\'')
            fputs("&#39;", to);
        else
            fwrite(text, 1, size, to);
        text += size ? size : 1;
        left -= size ? size : 1;
    }
}

/* The part of a directive after '%', up to its final letter. */
typedef struct directive {
    int precision; /* -1 for none */
    int longs;
    bool is_size;
    char letter;
} directive;

/* Reads the directive after '%' and returns where it ends. */
static const char *read_directive(const char *at, directive *out)
{
    *out = (directive){.precision = -1};
    if (*at == '.')
        for (out->precision = 0, at++; *at >= '0' && *at <= '9'; at++)
            out->precision = out->precision * 10 + (*at - '0');
    for (; *at == 'l' || *at == 'z'; at++) {
        out->longs += *at == 'l';
        out->is_size |= *at == 'z';
    }
    out->letter = *at;
    return *at ? at + 1 : at;
}

static void put_integer(FILE *to, const directive *how, va_list *arguments)
{
    if (how->is_size)
        fprintf(to, "%zu", va_arg(*arguments, size_t));
    else if (how->longs == 2)
        fprintf(to, "%lld", va_arg(*arguments, long long));
    else if (how->letter == 'u')
        fprintf(to, "%u", va_arg(*arguments, unsigned));
    else
        fprintf(to, "%d", va_arg(*arguments, int));
}

static void put_directive(FILE *to, const directive *how, va_list *arguments)
{
    const char *text;
    switch (how->letter) {
    case 's':
        text = va_arg(*arguments, const char *);
        put_escaped(to, text ? text : "");
        break;
    case 'f':
        fprintf(to, "%.*f", how->precision < 0 ? 6 : how->precision, va_arg(*arguments, double));
        break;
    case 'd':
    case 'u': put_integer(to, how, arguments); break;
    default: fputc(how->letter, to); break;
    }
}

void html_write(FILE *to, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    while (*format) {
        size_t plain = strcspn(format, "%");
        fwrite(format, 1, plain, to);
        format += plain;
        if (*format == '%') {
            directive how;
            format = read_directive(format + 1, &how);
            put_directive(to, &how, &arguments);
        }
    }
    va_end(arguments);
}
