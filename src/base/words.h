/* Names: checks which are legal, and finds the known name nearest to an unknown one. */
#ifndef TNI_BASE_WORDS_H
#define TNI_BASE_WORDS_H

#include "tenon/base.h"

#include <stdbool.h>

enum { TNI_NAME_MAX = 48 };

/* Whether `name` has 1 to `most` bytes: lower-case letters, digits, '-', '_' and the characters of
 * `extra`, beginning with a letter or digit. */
bool tni_name_is_legal(const char *name, const char *extra, size_t most);

/* Returns the message of a failed call, or a text that it gave none. Valid as long as `err`. */
const char *tni_words_of(const tn_error *err);

/* Turns untrusted text into one line of UTF-8: control characters and invalid bytes become '?'. */
void tni_words_clean(char *text);

/* Formats into `out`, which holds `size` bytes, at least 4; shortened as by tn_text_fit. */
void tni_text_format(char *out, size_t size, const char *format, ...) TN_PRINTF(3, 4);
TN_PRINTF(3, 0)
void tni_text_format_list(char *out, size_t size, const char *format, va_list arguments);

/* "no sanitizer", "the address sanitizer" ... for TN_MODULE_SANITIZER_* bits. Static text. */
const char *tni_words_sanitizer(uint64_t sanitizers);

/* ASCII letters only. */
static inline char tni_words_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Whether the words are equal, ignoring the case of ASCII letters. */
bool tni_words_same(const char *a, const char *b);

/* Returns the entry of `words` nearest to `word` by edit distance (insert, delete, replace, swap),
 * or NULL if none is near enough to suggest. Ignores case, but an exact match takes precedence. Of
 * equally near entries, returns the first. Allocates no memory. */
const char *tni_words_nearest(const char *word, const char *const *words, size_t count);

/* Writes "a, b, c"; text that does not fit into `size` bytes (at least 4) is truncated and ends in
 * "...". */
void tni_words_join(const char *const *words, size_t count, char *out, size_t size);

/* Writes "; did you mean NEAREST?" for the end of a message, or "" if `nearest` is NULL. Returns
 * `room`. */
enum { TNI_HINT = 96 };
const char *tni_words_hint(const char *nearest, char room[TNI_HINT]);

/* Writes the end of a message about an unknown word: the hint with the nearest of `words`, or "; there are
 * A, B, C" if none is near. Returns `room`. */
enum { TNI_OFFER = 320 };
const char *tni_words_offer(const char *word, const char *const *words, size_t count,
                            char room[TNI_OFFER]);

#endif
