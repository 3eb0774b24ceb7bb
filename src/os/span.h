/* Views of text owned by others, for small parsers. Thread-safety: Safe. */
#ifndef TNI_OS_SPAN_H
#define TNI_OS_SPAN_H

#include "tenon/base.h"

#include <stdbool.h>

/* Has no terminator; may contain any byte. */
typedef struct tni_span {
    const char *text; /* NULL only for an exhausted rest */
    size_t length;
} tni_span;

tni_span tni_span_of(const char *text);
tni_span tni_span_trim(tni_span span); /* removes blanks and line ends from both ends */
bool tni_span_is(tni_span span, const char *word);
bool tni_span_begins(tni_span span, const char *word);

/* Removes the text before the next `end`, or all that is left, from *rest; also removes the `end`.
 * Returns false if nothing is left. "a,,b," gives "a", "", "b", "". */
bool tni_span_next(tni_span *rest, char end, tni_span *out);

/* As above, for words separated by any number of blanks: never returns an empty word. */
bool tni_span_next_word(tni_span *rest, tni_span *out);

/* Whether `word` is an item of a comma-separated list. */
bool tni_span_lists(tni_span list, const char *word);

/* Parse the whole span as digits, in base 10 or 16 ("0x" allowed before the latter). Numbers
 * greater than INT64_MAX become INT64_MAX. */
bool tni_span_number(tni_span span, int64_t *out);
bool tni_span_hex(tni_span span, int64_t *out);

/* Parses "1024 kB", "48K", "2M" or "17" into bytes; false also if the result exceeds INT64_MAX. */
bool tni_span_bytes(tni_span span, int64_t *out);

/* Finds the value on the first line that begins with `key`: after a ':' ("MemTotal: 1 kB", "model
 * name : x"), or, if `separator` is ' ', after a blank ("inactive_file 1"). Returns false if none
 * exists. */
bool tni_span_value(tni_span text, const char *key, char separator, tni_span *out);

/* Writes `span` to `out` with octal escapes ("\040") decoded, and a terminator. `out` must have
 * room for span.length + 1. */
void tni_span_unescape(tni_span span, char *out);

#endif
