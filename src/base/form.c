#include "form.h"

#include "alloc.h"
#include "checked.h"
#include "form_text.h"
#include "utf8.h"

struct tni_form {
    size_t section_count;
    tni_form_section *sections;
    tni_form_entry *entries; /* of all sections, in order */
    char *texts;
};

/* State of one pass over the text. The first pass has no form: it checks everything and counts what
 * the second pass stores, which cannot fail. */
typedef struct reader {
    const char *text;
    size_t length;
    size_t begin; /* offset after a byte-order mark */
    size_t at;
    uint32_t line;
    const char *origin;
    tn_error *err;
    tni_form *form;
    size_t sections;
    size_t entries;
    size_t bytes;
} reader;

static bool at_line_end(const reader *r)
{
    return r->at == r->length || r->text[r->at] == '\n' || r->text[r->at] == '\r';
}

static bool at_char(const reader *r, char c)
{
    return r->at < r->length && r->text[r->at] == c;
}

static bool at_block_mark(const reader *r)
{
    size_t size = strlen(TNI_FORM_BLOCK);
    return r->length - r->at >= size && memcmp(r->text + r->at, TNI_FORM_BLOCK, size) == 0;
}

static void skip_blanks(reader *r)
{
    while (r->at < r->length && tni_form_is_blank(r->text[r->at]))
        r->at++;
}

static void skip_line(reader *r)
{
    while (!at_line_end(r))
        r->at++;
}

static void next_line(reader *r)
{
    if (at_char(r, '\r'))
        r->at++;
    if (at_char(r, '\n')) {
        r->at++;
        r->line++;
    }
}

/* Describes the character at the current position, for a message. `room` holds 16 bytes. */
static const char *describe_found(const reader *r, char *room)
{
    if (r->at == r->length)
        return "the end of the text";
    const char *c = r->text + r->at;
    size_t size = tni_utf8_size(c, r->length - r->at);
    if (*c == '\n' || (*c == '\r' && r->length - r->at > 1 && c[1] == '\n'))
        return "the end of the line";
    if (size == 0 || tni_form_is_control(*c))
        snprintf(room, 16, "byte 0x%02x", (unsigned)(unsigned char)*c);
    else
        snprintf(room, 16, "'%.*s'", (int)size, c);
    return room;
}

const char *tni_form_place(const char *origin, uint32_t line, char room[TNI_FORM_PLACE])
{
    enum { SHOWN = 160 };
    const char *cut = "";
    size_t length = strlen(origin);
    if (length > SHOWN) {
        cut = "...";
        origin += length - SHOWN;
        const char *folder = strchr(origin, '/');
        origin = folder ? folder : origin;
        while (tni_utf8_continues(*origin))
            origin++;
    }
    snprintf(room, TNI_FORM_PLACE, "%s%s:%u", cut, origin, (unsigned)line);
    return room;
}

/* Fails with TN_CORRUPT at the current position. */
static tn_status fail_corrupt(const reader *r, const char *expected)
{
    char room[16], place[TNI_FORM_PLACE];
    size_t column = 1;
    for (size_t i = r->at; i > r->begin && r->text[i - 1] != '\n'; i--)
        column += !tni_utf8_continues(r->text[i - 1]);
    return tn_fail(r->err, TN_CORRUPT, 0, "form", "%s:%zu: expected %s, got %s",
                   tni_form_place(r->origin, r->line, place), column, expected,
                   describe_found(r, room));
}

/* Checks every character, including comments, so that the passes need not check encodings again. */
static tn_status check_characters(reader *r)
{
    r->at = r->begin;
    while (r->at < r->length) {
        char c = r->text[r->at];
        size_t size = tni_utf8_size(r->text + r->at, r->length - r->at);
        bool pair = c == '\r' && r->length - r->at > 1 && r->text[r->at + 1] == '\n';
        if (size == 0 || (tni_form_is_control(c) && c != '\t' && c != '\n' && !pair))
            return fail_corrupt(r, "printable UTF-8 text");
        r->at += size;
        r->line += c == '\n';
    }
    return TN_OK;
}

static void put_character(reader *r, char c)
{
    if (r->form)
        r->form->texts[r->bytes] = c;
    r->bytes++;
}

/* Ends the text that begins at offset `begin` and returns it; NULL in the first pass. */
static const char *put_end(reader *r, size_t begin)
{
    put_character(r, '\0');
    return r->form ? r->form->texts + begin : NULL;
}

static const char *put_part(reader *r, size_t from, size_t to)
{
    size_t begin = r->bytes;
    for (size_t i = from; i < to; i++)
        put_character(r, r->text[i]);
    return put_end(r, begin);
}

static void add_section(reader *r, const char *name, uint32_t line)
{
    if (r->form)
        r->form->sections[r->sections] =
            (tni_form_section){name, r->form->entries + r->entries, 0, line};
    r->sections++;
}

static void add_entry(reader *r, const char *key, const char *value, uint32_t line)
{
    if (r->form) {
        r->form->entries[r->entries] = (tni_form_entry){key, value, line};
        r->form->sections[r->sections - 1].count++;
    }
    r->entries++;
}

/* End of the text from `from` to the current position, without trailing blanks. */
static size_t find_trimmed_end(const reader *r, size_t from)
{
    size_t end = r->at;
    while (end > from && tni_form_is_blank(r->text[end - 1]))
        end--;
    return end;
}

/* Whether a comment after other text on its line begins here. */
static bool at_comment(const reader *r)
{
    return at_char(r, '#') && tni_form_is_blank(r->text[r->at - 1]);
}

static tn_status read_rest(reader *r)
{
    skip_blanks(r);
    if (at_comment(r))
        skip_line(r);
    if (!at_line_end(r))
        return fail_corrupt(r, "the end of the line or a comment after a blank");
    next_line(r);
    return TN_OK;
}

static tn_status read_section(reader *r)
{
    r->at++;
    skip_blanks(r);
    size_t from = r->at;
    while (!at_line_end(r) && r->text[r->at] != ']')
        r->at++;
    if (at_line_end(r))
        return fail_corrupt(r, "']' after the section's name");
    size_t end = find_trimmed_end(r, from);
    if (end == from)
        return fail_corrupt(r, "a section's name");
    const char *tab = memchr(r->text + from, '\t', end - from);
    if (tab) {
        r->at = (size_t)(tab - r->text);
        return fail_corrupt(r, "a section's name without TAB");
    }
    r->at++;
    add_section(r, put_part(r, from, end), r->line);
    return read_rest(r);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Reads the two digits after "\x"; the current position is the first. */
static tn_status read_hex(reader *r)
{
    int number = 0;
    size_t begin = r->at;
    for (int i = 0; i < 2; i++, r->at++) {
        int digit = at_line_end(r) ? -1 : hex_digit(r->text[r->at]);
        if (digit < 0)
            return fail_corrupt(r, "two hexadecimal digits after \\x");
        number = number * 16 + digit;
    }
    if (number < 0x01 || number > 0x7F) {
        r->at = begin;
        return fail_corrupt(r, "01 to 7f after \\x");
    }
    put_character(r, (char)number);
    return TN_OK;
}

static tn_status read_escape(reader *r)
{
    static const char letters[] = "ntr\"\\", meanings[] = "\n\t\r\"\\";
    r->at++;
    if (at_char(r, 'x')) {
        r->at++;
        return read_hex(r);
    }
    const char *letter = at_line_end(r) ? NULL : strchr(letters, r->text[r->at]);
    if (!letter)
        return fail_corrupt(r, "one of n t r x \" \\ after \\");
    put_character(r, meanings[letter - letters]);
    r->at++;
    return TN_OK;
}

static tn_status read_quoted(reader *r, const char **out)
{
    size_t begin = r->bytes;
    tn_status status = TN_OK;
    r->at++;
    while (!status && !at_char(r, '"')) {
        if (at_line_end(r))
            return fail_corrupt(r, "'\"' at the end of the quoted value");
        if (at_char(r, '\\'))
            status = read_escape(r);
        else
            put_character(r, r->text[r->at++]);
    }
    if (status)
        return status;
    r->at++;
    *out = put_end(r, begin);
    return read_rest(r);
}

/* Reads one line of the block opened in line `opened`, or its closing mark. */
static tn_status read_block_line(reader *r, uint32_t opened, bool *out_closed)
{
    char expected[64];
    size_t from = r->at;
    skip_blanks(r);
    if (at_block_mark(r)) {
        r->at += strlen(TNI_FORM_BLOCK);
        *out_closed = true;
        return read_rest(r);
    }
    skip_line(r);
    if (r->at == r->length) {
        snprintf(expected, sizeof expected, "a line with \"\"\" to close the block of line %u",
                 (unsigned)opened);
        return fail_corrupt(r, expected);
    }
    for (; from < r->at; from++)
        put_character(r, r->text[from]);
    put_character(r, '\n');
    next_line(r);
    return TN_OK;
}

static tn_status read_block(reader *r, const char **out)
{
    size_t begin = r->bytes;
    uint32_t opened = r->line;
    bool closed = false;
    r->at += strlen(TNI_FORM_BLOCK);
    tn_status status = read_rest(r);
    while (!status && !closed)
        status = read_block_line(r, opened, &closed);
    if (!status)
        *out = put_end(r, begin);
    return status;
}

static tn_status read_plain(reader *r, const char **out)
{
    size_t from = r->at;
    while (!at_line_end(r) && !at_comment(r))
        r->at++;
    *out = put_part(r, from, find_trimmed_end(r, from));
    return read_rest(r);
}

static tn_status read_entry(reader *r)
{
    size_t from = r->at;
    uint32_t line = r->line;
    while (r->at < r->length && tni_form_is_key(r->text[r->at]))
        r->at++;
    if (r->at == from)
        return fail_corrupt(r, "a key (" TNI_FORM_KEY_WORD "), '[' or '#'");
    const char *key = put_part(r, from, r->at), *value = NULL;
    skip_blanks(r);
    if (!at_char(r, '='))
        return fail_corrupt(r, "'='");
    r->at++;
    skip_blanks(r);
    tn_status status = at_block_mark(r)  ? read_block(r, &value)
                       : at_char(r, '"') ? read_quoted(r, &value)
                                         : read_plain(r, &value);
    if (!status)
        add_entry(r, key, value, line);
    return status;
}

static tn_status read_all(reader *r)
{
    tn_status status = TN_OK;
    r->at = r->begin;
    r->line = 1;
    r->sections = r->entries = r->bytes = 0;
    add_section(r, "", 0);
    while (!status && r->at < r->length) {
        skip_blanks(r);
        if (at_char(r, '#'))
            skip_line(r);
        status = at_line_end(r) ? read_rest(r) : at_char(r, '[') ? read_section(r) : read_entry(r);
    }
    return status;
}

/* Allocates room for everything that the first pass counted, in one block. */
static tni_form *form_alloc(const reader *r)
{
    size_t sections, entries, size = sizeof(tni_form);
    if (!tni_mul_size(r->sections, sizeof(tni_form_section), &sections) ||
        !tni_mul_size(r->entries, sizeof(tni_form_entry), &entries) ||
        !tni_add_size(size, sections, &size) || !tni_add_size(size, entries, &size) ||
        !tni_add_size(size, r->bytes, &size))
        return NULL;
    tni_form *form = tni_alloc(size);
    if (!form)
        return NULL;
    form->section_count = r->sections;
    form->sections = (tni_form_section *)(form + 1);
    form->entries = (tni_form_entry *)(form->sections + r->sections);
    form->texts = (char *)(form->entries + r->entries);
    return form;
}

tn_status tni_form_parse(const char *text, size_t length, const char *origin, tni_form **out,
                         tn_error *err)
{
    bool marked = length >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0;
    reader r = {.text = length ? text : "",
                .length = length,
                .begin = marked ? 3 : 0,
                .line = 1,
                .origin = origin,
                .err = err};
    if (length > TNI_FORM_LIMIT)
        return tn_fail(err, TN_CORRUPT, 0, "form", "%s: expected at most %d bytes, got %zu", origin,
                       TNI_FORM_LIMIT, length);
    tn_status status = check_characters(&r);
    if (!status)
        status = read_all(&r);
    if (status)
        return status;
    r.form = form_alloc(&r);
    if (!r.form)
        return tni_no_memory(err, "form", origin);
    (void)read_all(&r);
    *out = r.form;
    return TN_OK;
}

void tni_form_release(tni_form *form)
{
    tni_release(form);
}

size_t tni_form_section_count(const tni_form *form)
{
    return form->section_count;
}

const tni_form_section *tni_form_section_get(const tni_form *form, size_t index)
{
    return &form->sections[index];
}

const char *tni_form_find(const tni_form *form, const char *section, const char *key)
{
    for (size_t s = 0; s < form->section_count; s++) {
        const tni_form_section *in = &form->sections[s];
        if (strcmp(in->name, section) != 0)
            continue;
        for (size_t e = in->count; e > 0; e--)
            if (strcmp(in->entries[e - 1].key, key) == 0)
                return in->entries[e - 1].value;
        return NULL;
    }
    return NULL;
}
