/* The text form of settings files, device descriptions, locks, overrides and verdicts.
 *
 *     # a comment
 *     key = value                 outside any section
 *     [section name]
 *     key = value                 # up to the end of the line, blanks around it dropped
 *     key = "quoted \"text\"\n"   # for blanks at the ends, '#', and control characters
 *     key = """                   # a block: the lines up to the closing mark, unchanged
 *     line one
 *     """
 *
 * Text is UTF-8, a byte-order mark at its beginning is skipped, and CR LF counts as LF. Control
 * characters other than TAB and line ends are not allowed, not even in comments.
 *
 * A blank is a space or a TAB. Blanks at the ends of a line, around '=' and inside the brackets at
 * either end of a section's name are ignored. '#' begins a comment at the start of a line and
 * after a blank, except inside brackets, quotes and blocks; elsewhere it is an ordinary
 * character ("a#b").
 *
 * A key is one or more letters, digits and . _ - + / @ : of ASCII. A section's name is one or more
 * characters without ']' and TAB. Keys and sections may repeat; order is kept.
 *
 * A value that begins with '"' is quoted and ends with the next '"' on its line; in it \n \t \r \"
 * \\ and \xHH (01 to 7f) mean one character each, and no other escape exists. Elsewhere a
 * backslash is an ordinary character. A missing value is "".
 *
 * A block opens with """ as the whole value and closes with the first line that begins with """,
 * ignoring blanks before it. Its value is the lines between, each with a line feed at its end and
 * otherwise unchanged; without lines it is "". */
#ifndef TNI_BASE_FORM_H
#define TNI_BASE_FORM_H

#include "base/buffer.h"

/* The maximum length of a text that is read. */
enum { TNI_FORM_LIMIT = 1 << 28 };

typedef struct tni_form tni_form;

typedef struct tni_form_entry {
    const char *key;
    const char *value;
    uint32_t line; /* line of the key, from 1 */
} tni_form_entry;

typedef struct tni_form_section {
    const char *name; /* "" for entries before the first section */
    const tni_form_entry *entries;
    size_t count;
    uint32_t line; /* 0 for the unnamed section */
} tni_form_section;

/* Parses `length` bytes of `text`, which needs no terminator. `origin` names the text in messages
 * ("config"). Fails with TN_CORRUPT and a message with the line, the column in characters, what was
 * expected and what was found: "config:3:7: expected '=', got the end of the line"; there is no
 * partial result. One allocation, bounded by a small multiple of `length`; time O(length). The
 * first section is the unnamed one; it always exists. */
tn_status tni_form_parse(const char *text, size_t length, const char *origin, tni_form **out,
                         tn_error *err);
void tni_form_release(tni_form *form);

size_t tni_form_section_count(const tni_form *form);
const tni_form_section *tni_form_section_get(const tni_form *form, size_t index);

/* Writes "config:3", for messages about a line. Shows only the end of a long origin, so that the
 * message has room for the rest. Returns `room`. */
enum { TNI_FORM_PLACE = 192 };
const char *tni_form_place(const char *origin, uint32_t line, char room[TNI_FORM_PLACE]);

/* The value of the last `key` in the first section called `section`, or NULL. */
const char *tni_form_find(const tni_form *form, const char *section, const char *key);

/* Append in the same form. The output parses back to the same key and value, byte for byte, for
 * every legal key, section name and UTF-8 value. Illegal ones fail with TN_INVALID_ARGUMENT;
 * nothing is added then, nor if out of memory. A section's name must not begin or end with a
 * blank. */
tn_status tni_form_write_section(tni_buffer *to, const char *name, tn_error *err);
tn_status tni_form_write_entry(tni_buffer *to, const char *key, const char *value, tn_error *err);

#endif
