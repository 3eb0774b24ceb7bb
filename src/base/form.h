/* The one text form: settings files, device descriptions, locks, overrides, verdicts.
 *
 *     # a comment
 *     key = value                 outside any section
 *     [section name]
 *     key = value                 up to the end of the line, blanks around it dropped
 *     key = "quoted \"text\"\n"   for blanks at the ends, '#', and what cannot be seen
 *     key = """                   a block: the lines up to the closing mark, as they stand
 *     line one
 *     """
 *
 * Keys may repeat; order is kept. Text is UTF-8; CR LF counts as LF. */
#ifndef TNI_BASE_FORM_H
#define TNI_BASE_FORM_H

#include "base/buffer.h"

typedef struct tni_form tni_form;

typedef struct tni_form_entry {
    const char *key;
    const char *value;
    uint32_t line; /* where the key stands, from 1 */
} tni_form_entry;

typedef struct tni_form_section {
    const char *name; /* "" for what stands before the first section */
    const tni_form_entry *entries;
    size_t count;
    uint32_t line; /* 0 for the unnamed one */
} tni_form_section;

/* Reads `length` bytes of `text`. `origin` names them in messages ("config"). TN_CORRUPT says line,
 * column, what was found and what was expected; there is no partial result. Bounded in memory by a
 * small multiple of `length` and in time by O(length). The first section is the unnamed one, always
 * there. */
tn_status tni_form_parse(const char *text, size_t length, const char *origin, tni_form **out,
                         tn_error *err);
void tni_form_release(tni_form *form);

size_t tni_form_section_count(const tni_form *form);
const tni_form_section *tni_form_section_get(const tni_form *form, size_t index);

/* The value of the last `key` in the first section called `section`, or NULL. */
const char *tni_form_find(const tni_form *form, const char *section, const char *key);

/* Append in the same form; what is written parses back to the same key and value, byte for byte,
 * for every legal key, section name and UTF-8 value. Illegal ones are refused and nothing is
 * added. */
tn_status tni_form_write_section(tni_buffer *to, const char *name, tn_error *err);
tn_status tni_form_write_entry(tni_buffer *to, const char *key, const char *value, tn_error *err);

#endif
