/* Pieces of text that others own, as small parsers take them apart.
 * Thread-safety: Safe. */
#ifndef TNI_OS_SPAN_H
#define TNI_OS_SPAN_H

#include "tenon/base.h"

#include <stdbool.h>

/* Without a terminator; may contain any byte. */
typedef struct tni_span {
    const char *text; /* NULL only for a rest of which nothing is left */
    size_t length;
} tni_span;

tni_span tni_span_of(const char *text);
tni_span tni_span_trim(tni_span span); /* without blanks and line ends at its ends */
bool tni_span_is(tni_span span, const char *word);
bool tni_span_begins(tni_span span, const char *word);

/* Takes what stands before the next `end`, or all that is left, from *rest; the `end` goes too.
 * False when nothing is left. "a,,b," gives "a", "", "b", "". */
bool tni_span_take(tni_span *rest, char end, tni_span *out);

/* As above for words that any number of blanks part: never an empty one. */
bool tni_span_take_word(tni_span *rest, tni_span *out);

/* True when one of the words between commas is `word`. */
bool tni_span_lists(tni_span list, const char *word);

/* The whole of it as a number of digits, base 10 or 16, "0x" allowed before the latter. What is
 * greater than INT64_MAX counts as that. */
bool tni_span_number(tni_span span, int64_t *out);
bool tni_span_hex(tni_span span, int64_t *out);

/* "1024 kB", "48K", "2M" or "17" in bytes; false too when they are more than INT64_MAX. */
bool tni_span_bytes(tni_span span, int64_t *out);

/* The value on the first line that begins with `key`: after a ':' ("MemTotal:  1 kB", "model name
 * : x"), or with `separator` ' ' after a blank ("inactive_file 1"). False when there is none. */
bool tni_span_value(tni_span text, const char *key, char separator, tni_span *out);

/* Writes `span` with "\040" and the like turned back to bytes and a terminator to `out`, which has
 * room for span.length + 1. */
void tni_span_unescape(tni_span span, char *out);

#endif
