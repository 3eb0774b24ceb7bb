/* The fields of a problem's text:
 *
 *     problem = op ":" dtype [":" field {"," field}] ["@" device]
 *     field   = key "=" value
 *     value   = number | word | shape | list        shape = n {"x" n}        list = value {";" value}
 */
#ifndef TNI_OP_FIELDS_H
#define TNI_OP_FIELDS_H

#include "op.h"

enum { TNI_FIELDS_MOST = 48, TNI_PROBLEM_MOST = 4096, TNI_FIELDS_KNOWN = 48 };

/* The fields of a text. Each op's parser takes the fields that it knows. */
typedef struct tni_fields {
    const char *problem;         /* the whole text, for messages */
    char text[TNI_PROBLEM_MOST]; /* the fields, cut at their separators */
    size_t count;
    struct {
        const char *key;
        const char *value;
        bool taken;
    } field[TNI_FIELDS_MOST];
    const char *known[TNI_FIELDS_KNOWN]; /* keys that were looked up: the fields of the op */
    size_t known_count;
} tni_fields;

/* Returns the value of `key` and marks it as taken; NULL if absent. The key must be a static
 * string. */
const char *tni_fields_take(tni_fields *fields, const char *key);

/* The same, converted to a number, a list of numbers separated by `separator`, a dtype, or a word of a list.
 * If the field is absent, *out is unchanged. Fails with TN_INVALID_ARGUMENT, naming the problem,
 * the key and the expected value. */
tn_status tni_fields_integer(tni_fields *fields, const char *key, int64_t least, int64_t *out,
                             tn_error *err);
tn_status tni_fields_real(tni_fields *fields, const char *key, double *out, tn_error *err);
tn_status tni_fields_list(tni_fields *fields, const char *key, char separator, int64_t least,
                          int64_t *out, int32_t most, int32_t *out_count, tn_error *err);
tn_status tni_fields_dtype(tni_fields *fields, const char *key, tn_dtype *out, tn_error *err);
tn_status tni_fields_word(tni_fields *fields, const char *key, const char *const *words,
                          int32_t *out, tn_error *err);

/* Writes "m n k", with "..." for words that do not fit. Returns `room`. */
enum { TNI_FIELDS_LISTED = 256 };
const char *tni_fields_listed(const char *const *words, size_t count, char room[TNI_FIELDS_LISTED]);

/* Fails because a required field is missing. */
tn_status tni_fields_missing(const tni_fields *fields, const char *key, tn_error *err);

/* Sets the strides of a layout, one for each dimension, if the text has them. */
tn_status tni_fields_strides(tni_fields *fields, const char *key, tn_layout *layout, tn_error *err);

/* A switch: 0 or 1. */
tn_status tni_fields_switch(tni_fields *fields, const char *key, int64_t *out, tn_error *err);

/* Write fields. */
void tni_write_integer(tni_buffer *out, const char *key, int64_t value);
void tni_write_real(tni_buffer *out, const char *key, double value); /* exact: uses %a if
                                                                      * necessary */
void tni_write_list(tni_buffer *out, const char *key, char separator, const int64_t *values,
                    int32_t count);
void tni_write_word(tni_buffer *out, const char *key, const char *word);

/* Writes the strides of `layout`, unless they equal those of `usual` in every dimension where
 * strides matter. */
void tni_write_strides(tni_buffer *out, const char *key, const tn_layout *layout,
                       const tn_layout *usual);
bool tni_strides_same(const tn_layout *a, const tn_layout *b);

#endif
