#include "json.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The length of the UTF-8 character at `s`, or 0 when there is none. */
static int character(const unsigned char *s)
{
    if (s[0] < 0x80)
        return 1;
    int length = s[0] >= 0xF0 && s[0] < 0xF5 ? 4 : s[0] >= 0xE0 ? 3 : s[0] >= 0xC2 ? 2 : 0;
    if (s[0] >= 0xF5)
        return 0;
    for (int i = 1; i < length; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    }
    bool overlong = (s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xF0 && s[1] < 0x90);
    bool beyond = (s[0] == 0xED && s[1] > 0x9F) || (s[0] == 0xF4 && s[1] > 0x8F);
    return length > 0 && (overlong || beyond) ? 0 : length;
}

static void put_text(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    putchar('"');
    while (*s) {
        int length = character(s);
        if (length == 0)
            fputs("\\ufffd", stdout);
        else if (*s == '"' || *s == '\\')
            printf("\\%c", *s);
        else if (*s == '\n')
            fputs("\\n", stdout);
        else if (*s < 0x20 || *s == 0x7F)
            printf("\\u%04x", *s);
        else
            fwrite(s, 1, (size_t)length, stdout);
        s += length > 0 ? length : 1;
    }
    putchar('"');
}

/* What comes before a value: a comma, the line's indentation, the key. */
static void begin_value(json *to, const char *key)
{
    if (to->filled)
        putchar(',');
    if (to->depth > 0)
        printf("\n%*s", to->depth * 2, "");
    if (key) {
        put_text(key);
        fputs(": ", stdout);
    }
    to->filled = true;
}

static void begin(json *to, const char *key, char mark)
{
    begin_value(to, key);
    putchar(mark);
    to->depth++;
    to->filled = false;
}

static void end(json *to, char mark)
{
    to->depth--;
    if (to->filled)
        printf("\n%*s", to->depth * 2, "");
    putchar(mark);
    to->filled = true;
}

void json_begin_object(json *to, const char *key)
{
    begin(to, key, '{');
}

void json_end_object(json *to)
{
    end(to, '}');
}

void json_begin_list(json *to, const char *key)
{
    begin(to, key, '[');
}

void json_end_list(json *to)
{
    end(to, ']');
}

void json_text(json *to, const char *key, const char *text)
{
    begin_value(to, key);
    if (text)
        put_text(text);
    else
        fputs("null", stdout);
}

void json_integer(json *to, const char *key, int64_t value)
{
    begin_value(to, key);
    printf("%" PRId64, value);
}

void json_number(json *to, const char *key, double value)
{
    begin_value(to, key);
    if (fabs(value) <= DBL_MAX) /* neither infinite nor NaN */
        printf("%.6g", value);
    else
        fputs("null", stdout);
}

void json_bool(json *to, const char *key, bool value)
{
    begin_value(to, key);
    fputs(value ? "true" : "false", stdout);
}

void json_begin_document(json *to, const char *command_name)
{
    json_begin_object(to, NULL);
    json_integer(to, "schema", 1);
    json_text(to, "command", command_name);
}

void json_end_document(json *to)
{
    json_end_object(to);
    putchar('\n');
}
