#include "span.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\0';
}

tni_span tni_span_of(const char *text)
{
    return (tni_span){text, strlen(text)};
}

tni_span tni_span_trim(tni_span span)
{
    while (span.length && is_blank(span.text[0])) {
        span.text++;
        span.length--;
    }
    while (span.length && is_blank(span.text[span.length - 1]))
        span.length--;
    return span;
}

bool tni_span_begins(tni_span span, const char *word)
{
    size_t length = strlen(word);
    return span.length >= length && memcmp(span.text, word, length) == 0;
}

bool tni_span_is(tni_span span, const char *word)
{
    return span.length == strlen(word) && tni_span_begins(span, word);
}

bool tni_span_next(tni_span *rest, char end, tni_span *out)
{
    if (!rest->text)
        return false;
    const char *found = rest->length ? memchr(rest->text, end, rest->length) : NULL;
    size_t length = found ? (size_t)(found - rest->text) : rest->length;
    *out = (tni_span){rest->text, length};
    *rest = found ? (tni_span){found + 1, rest->length - length - 1} : (tni_span){NULL, 0};
    return true;
}

bool tni_span_next_word(tni_span *rest, tni_span *out)
{
    tni_span trimmed = rest->text ? tni_span_trim(*rest) : *rest;
    size_t length = 0;
    while (length < trimmed.length && !is_blank(trimmed.text[length]))
        length++;
    *rest = (tni_span){trimmed.text ? trimmed.text + length : NULL, trimmed.length - length};
    if (length == 0)
        return false;
    *out = (tni_span){trimmed.text, length};
    return true;
}

bool tni_span_lists(tni_span list, const char *word)
{
    tni_span item;
    while (tni_span_next(&list, ',', &item)) {
        if (tni_span_is(item, word))
            return true;
    }
    return false;
}

static int digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : 99;
}

static bool number(tni_span span, int base, int64_t *out)
{
    int64_t value = 0;
    for (size_t i = 0; i < span.length; i++) {
        int next = digit(span.text[i]);
        if (next >= base)
            return false;
        value = value > (INT64_MAX - next) / base ? INT64_MAX : value * base + next;
    }
    if (span.length == 0)
        return false;
    *out = value;
    return true;
}

bool tni_span_number(tni_span span, int64_t *out)
{
    return number(span, 10, out);
}

bool tni_span_hex(tni_span span, int64_t *out)
{
    size_t skipped = tni_span_begins(span, "0x") ? 2 : 0;
    return number((tni_span){span.text + skipped, span.length - skipped}, 16, out);
}

bool tni_span_bytes(tni_span span, int64_t *out)
{
    static const struct {
        const char *word;
        int64_t bytes;
    } units[] = {{"", 1},        {"kB", 1 << 10}, {"KB", 1 << 10},
                 {"K", 1 << 10}, {"M", 1 << 20},  {"G", 1 << 30}};
    size_t digits = 0;
    int64_t value;
    while (digits < span.length && digit(span.text[digits]) < 10)
        digits++;
    if (!tni_span_number((tni_span){span.text, digits}, &value))
        return false;
    tni_span unit = tni_span_trim((tni_span){span.text + digits, span.length - digits});
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (!tni_span_is(unit, units[i].word) || value > INT64_MAX / units[i].bytes)
            continue;
        *out = value * units[i].bytes;
        return true;
    }
    return false;
}

bool tni_span_value(tni_span text, const char *key, char separator, tni_span *out)
{
    size_t length = strlen(key);
    tni_span line;
    while (tni_span_next(&text, '\n', &line)) {
        if (line.length <= length || memcmp(line.text, key, length) != 0)
            continue;
        tni_span after = {line.text + length, line.length - length};
        tni_span value = tni_span_trim(after);
        if (separator == ' ' ? is_blank(after.text[0]) : tni_span_begins(value, ":")) {
            size_t skipped = separator == ' ' ? 0 : 1;
            *out = tni_span_trim((tni_span){value.text + skipped, value.length - skipped});
            return true;
        }
    }
    return false;
}

void tni_span_unescape(tni_span span, char *out)
{
    for (size_t i = 0; i < span.length; i++) {
        const char *at = span.text + i;
        bool octal = *at == '\\' && span.length - i > 3 && at[1] >= '0' && at[1] <= '3' &&
                     digit(at[2]) < 8 && digit(at[3]) < 8;
        if (octal)
            i += 3;
        *out++ = octal ? (char)(digit(at[1]) * 64 + digit(at[2]) * 8 + digit(at[3])) : *at;
    }
    *out = '\0';
}
