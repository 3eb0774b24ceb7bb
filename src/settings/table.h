/* Internals of the table of settings: rows, words, and values as text. */
#ifndef TNI_SETTINGS_TABLE_H
#define TNI_SETTINGS_TABLE_H

#include "tenon/rule.h"

#include <stdbool.h>

/* Words of WORD and ORDER rows; index = value. `other` has alternative spellings of some of
 * them. */
typedef struct tni_word_list {
    const char *const *words; /* NULL-ended */
    size_t settable;          /* the first `settable` words can be set; the others are only read */
    const char *const *other; /* pairs: "hipblas", "cublas", ..., NULL; or NULL */
} tni_word_list;

typedef struct tni_setting_row {
    tn_setting_facts facts;
    int32_t kind; /* TN_VALUE_... */
    const tni_word_list *words;
    const char *word;   /* INT and BYTES: name of the default, or NULL */
    const char *prefix; /* RULE: prefix of its selectors, "matmul/library:" */
    int64_t standard;
    int64_t least;
    int64_t most;
} tni_setting_row;

/* Returns NULL for a number that is not a setting. The first call builds the texts of all rows. */
const tni_setting_row *tni_setting_row_of(tn_setting setting);

/* The setting of a key or of an environment variable; -1 if unknown. */
tn_setting tni_setting_find(const char *key);
tn_setting tni_setting_of_variable(const char *name);

/* Fails because the key is unknown; the message suggests the nearest one. */
tn_status tni_setting_unknown(const char *key, const char *where, tn_error *err);

/* Validates a change against its row: kind, range, strength, text. */
tn_status tni_change_check(const tn_change *change, const char *where, tn_error *err);

/* Parses a value's text into a change of `setting`, whose text points into `value`. */
tn_status tni_value_parse(tn_setting setting, const char *value, tn_change *out, const char *where,
                          tn_error *err);

/* Copies the text from `from` to `end` without surrounding blanks; false if it does not fit. */
bool tni_text_trim(const char *from, const char *end, char *out, size_t size);

/* Writes a number of a row as text, "" if the row cannot have it; not for RULE and RULES. Returns
 * the length needed, without the final NUL. */
size_t tni_value_write(const tni_setting_row *row, int64_t value, char *out, size_t size);

/* "require", ...; -1 for an unknown word. */
int32_t tni_strength_parse(const char *word);
const char *tni_strength_nearest(const char *word); /* or NULL */

/* "flash,math" as digits of 4 bits, the first one lowest, each the word's number plus 1. Words that
 * are not named follow those that are. Fails with TN_INVALID_ARGUMENT for an unknown or repeated
 * word. */
tn_status tni_order_parse(const tni_setting_row *row, const char *text, int64_t *out,
                          const char *where, tn_error *err);

#endif
