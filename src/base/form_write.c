#include "alloc.h"
#include "form.h"
#include "form_text.h"
#include "utf8.h"

/* Returns the first byte of `text` that is not valid UTF-8, or its terminator. */
static const char *first_invalid(const char *text)
{
    size_t left = strlen(text), size;
    for (; left > 0; left -= size, text += size) {
        size = tni_utf8_size(text, left);
        if (size == 0)
            break;
    }
    return text;
}

static const char *first_illegal_in_key(const char *key)
{
    while (tni_form_is_key(*key))
        key++;
    return key;
}

static const char *first_illegal_in_name(const char *name)
{
    const char *invalid = first_invalid(name), *c = name;
    if (tni_form_is_blank(*c))
        return c;
    while (c < invalid && *c != ']' && !tni_form_is_control(*c))
        c++;
    return *c == '\0' && c > name && tni_form_is_blank(c[-1]) ? c - 1 : c;
}

/* Shows only the text before the fault: that part is known to be one line of text. */
static tn_status reject_text(const char *text, const char *fault, const char *needed, tn_error *err)
{
    if (*text == '\0')
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "form", "%s; got nothing", needed);
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, "form", "%s; got byte 0x%02x after \"%.*s\"",
                   needed, (unsigned)(unsigned char)*fault, (int)(fault - text), text);
}

/* Whether `value` consists of complete lines that a block reproduces unchanged. */
static bool fits_block(const char *value)
{
    bool line_start = true;
    for (const char *c = value; *c; c++) {
        if (tni_form_is_control(*c) && *c != '\t' && *c != '\n')
            return false;
        if (line_start && strncmp(c, TNI_FORM_BLOCK, strlen(TNI_FORM_BLOCK)) == 0)
            return false;
        line_start = *c == '\n' || (line_start && tni_form_is_blank(*c));
    }
    return *value && value[strlen(value) - 1] == '\n';
}

static bool fits_plain(const char *value)
{
    if (*value == '\0' || *value == '"' || strchr(value, '#'))
        return false;
    for (const char *c = value; *c; c++)
        if (tni_form_is_control(*c))
            return false;
    return !tni_form_is_blank(value[0]) && !tni_form_is_blank(value[strlen(value) - 1]);
}

static void add_escaped(tni_buffer *to, char c)
{
    static const char meanings[] = "\n\t\r\"\\", letters[] = "ntr\"\\";
    const char *meaning = strchr(meanings, c);
    if (meaning)
        tni_buffer_format(to, "\\%c", letters[meaning - meanings]);
    else
        tni_buffer_format(to, "\\x%02x", (unsigned)(unsigned char)c);
}

static void add_quoted(tni_buffer *to, const char *value)
{
    tni_buffer_add_char(to, '"');
    while (*value) {
        size_t plain = 0;
        while (value[plain] && value[plain] != '"' && value[plain] != '\\' &&
               !tni_form_is_control(value[plain]))
            plain++;
        tni_buffer_add_part(to, value, plain);
        value += plain;
        if (*value)
            add_escaped(to, *value++);
    }
    tni_buffer_add_char(to, '"');
}

/* Removes what was added since `before` if any append ran out of memory. */
static tn_status finish(tni_buffer *to, size_t before, tn_error *err)
{
    if (!to->failed)
        return TN_OK;
    to->length = before;
    if (to->text)
        to->text[before] = '\0';
    return tni_no_memory(err, "form", "a text that grows");
}

tn_status tni_form_write_section(tni_buffer *to, const char *name, tn_error *err)
{
    size_t before = to->length;
    const char *fault = first_illegal_in_name(name);
    if (fault == name || *fault)
        return reject_text(
            name, fault,
            "a section's name: expected UTF-8 text without ']', control characters and "
            "blanks at its ends",
            err);
    tni_buffer_add(to, before ? "\n[" : "[");
    tni_buffer_add(to, name);
    tni_buffer_add(to, "]\n");
    return finish(to, before, err);
}

tn_status tni_form_write_entry(tni_buffer *to, const char *key, const char *value, tn_error *err)
{
    size_t before = to->length;
    const char *fault = first_illegal_in_key(key), *invalid = first_invalid(value);
    if (fault == key || *fault)
        return reject_text(key, fault, "a key: expected one or more " TNI_FORM_KEY_WORD, err);
    if (*invalid)
        return tn_fail(
            err, TN_INVALID_ARGUMENT, 0, "form",
            "a value: expected UTF-8 text; got byte 0x%02x at offset %zu of the value of "
            "\"%s\"",
            (unsigned)(unsigned char)*invalid, (size_t)(invalid - value), key);
    tni_buffer_add(to, key);
    tni_buffer_add(to, " = ");
    if (fits_plain(value))
        tni_buffer_add(to, value);
    else if (fits_block(value))
        tni_buffer_format(to, "%s\n%s%s", TNI_FORM_BLOCK, value, TNI_FORM_BLOCK);
    else
        add_quoted(to, value);
    tni_buffer_add_char(to, '\n');
    return finish(to, before, err);
}
