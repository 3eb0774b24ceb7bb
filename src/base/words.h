/* Names: which are legal, and which of those there are is nearest to one that is not. */
#ifndef TNI_BASE_WORDS_H
#define TNI_BASE_WORDS_H

#include "tenon/base.h"

#include <stdbool.h>

enum { TNI_NAME_MAX = 48 };

/* Lower-case letters, digits, '-', '_', and those of `extra`; begins with a letter or digit; 1 to
 * `most` bytes. */
bool tni_name_is_legal(const char *name, const char *extra, size_t most);

/* What a failing call said, or that it said nothing. Lent by `err`. */
const char *tni_words_of(const tn_error *err);

/* Makes one line of UTF-8 out of what a stranger said: a control character, and a byte that is part
 * of no character, becomes '?'. */
void tni_words_clean(char *text);

/* "no sanitizer", "the address sanitizer" ... for TN_MODULE_SANITIZER_* bits. Static text. */
const char *tni_words_sanitizer(uint64_t sanitizers);

/* Of ASCII letters only. */
static inline char tni_words_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* The same letters, in whatever case; of ASCII only. */
bool tni_words_same(const char *a, const char *b);

/* The entry of `words` nearest to `word` by edits (insert, delete, replace, swap), or NULL when
 * none is near enough to be worth suggesting. Case does not count, but the word itself comes before
 * its other spellings. The first of equals. No memory is needed. */
const char *tni_words_nearest(const char *word, const char *const *words, size_t count);

/* "a, b, c"; what does not fit into `size` bytes, at least 4, is cut and ends in "...". */
void tni_words_join(const char *const *words, size_t count, char *out, size_t size);

/* "; did you mean NEAREST?" for the end of a message, or "" for NULL. Returns `room`. */
enum { TNI_HINT = 96 };
const char *tni_words_hint(const char *nearest, char room[TNI_HINT]);

#endif
