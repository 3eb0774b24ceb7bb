/* The table of settings from inside: rows, words, and values as text. */
#ifndef TNI_SETTINGS_TABLE_H
#define TNI_SETTINGS_TABLE_H

#include "tenon/rule.h"

#include <stdbool.h>

/* Words of WORD and ORDER rows; index = value. Other spellings of some of them follow the end. */
typedef struct tni_word_list {
    const char *const *words; /* NULL-ended */
    size_t settable;          /* the first so many can be set; the others are only read */
    const char *const *other; /* "hipblas", "cublas", ..., NULL; or NULL */
} tni_word_list;

typedef struct tni_setting_row {
    tn_setting_facts facts;
    int32_t kind; /* TN_VALUE_... */
    const tni_word_list *words;
    const char *word;   /* of INT and BYTES: of the default, or NULL     */
    const char *prefix; /* of RULE: of its selectors, "matmul/library:"  */
    int64_t standard;
    int64_t least;
    int64_t most;
} tni_setting_row;

/* NULL for a number that is no setting's. The texts of all rows are made at the first call. */
const tni_setting_row *tni_setting_row_of(tn_setting setting);

/* The row of a key or of an environment variable's name; -1 for none. */
tn_setting tni_setting_find(const char *key);
tn_setting tni_setting_of_variable(const char *name);

/* err says that the key is none, and the nearest. */
tn_status tni_setting_unknown(const char *key, const char *where, tn_error *err);

/* Whether a change is one that its row takes, whoever made it: kind, range, strength, text. */
tn_status tni_change_check(const tn_change *change, const char *where, tn_error *err);

/* A value's text as a change of `setting`, whose text lies in `value`. */
tn_status tni_value_parse(tn_setting setting, const char *value, tn_change *out, const char *where,
                          tn_error *err);

/* A number of a row as text, "" for one that the row cannot have; RULE and RULES are not numbers.
 * Returns the length it needs without its end. */
size_t tni_value_write(const tni_setting_row *row, int64_t value, char *out, size_t size);

/* "require", ...; -1 for a word that is none. */
int32_t tni_strength_parse(const char *word);
const char *tni_strength_nearest(const char *word); /* or NULL */

/* "flash,math" as digits of 4 bits, the first one lowest, each word's number plus 1; all words are in
 * it, those not named behind those that are. TN_INVALID_ARGUMENT for a word that is none, or twice. */
tn_status tni_order_parse(const tni_setting_row *row, const char *text, int64_t *out,
                          const char *where, tn_error *err);

#endif
