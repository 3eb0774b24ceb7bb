#include "json.h"

#include "base/utf8.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void put_text(const char *text)
{
    size_t left = strlen(text);
    putchar('"');
    while (left > 0) {
        size_t size = tni_utf8_size(text, left);
        unsigned char c = (unsigned char)*text;
        if (size == 0)
            fputs("\\ufffd", stdout);
        else if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c == '\n')
            fputs("\\n", stdout);
        else if (c < 0x20 || c == 0x7F)
            printf("\\u%04x", c);
        else
            fwrite(text, 1, size, stdout);
        text += size ? size : 1;
        left -= size ? size : 1;
    }
    putchar('"');
}

/* Writes the part before a value: a comma, the line's indentation, the key. */
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

static void open_container(json *to, const char *key, char mark)
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
    open_container(to, key, '{');
}

void json_end_object(json *to)
{
    end(to, '}');
}

void json_begin_list(json *to, const char *key)
{
    open_container(to, key, '[');
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

static void put_number(json *to, const char *key, double value, int digits)
{
    begin_value(to, key);
    if (fabs(value) <= DBL_MAX) /* neither infinite nor NaN */
        printf("%.*g", digits, value);
    else
        fputs("null", stdout);
}

void json_number(json *to, const char *key, double value)
{
    put_number(to, key, value, 6);
}

void json_exact_number(json *to, const char *key, double value)
{
    put_number(to, key, value, DBL_DECIMAL_DIG);
}

void json_bool(json *to, const char *key, bool value)
{
    begin_value(to, key);
    fputs(value ? "true" : "false", stdout);
}

void json_null(json *to, const char *key)
{
    begin_value(to, key);
    fputs("null", stdout);
}

void json_known_text(json *to, const char *key, const char *text)
{
    json_text(to, key, text && text[0] ? text : NULL);
}

void json_known_integer(json *to, const char *key, bool known, int64_t value)
{
    if (known)
        json_integer(to, key, value);
    else
        json_null(to, key);
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
