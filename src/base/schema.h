/* Sections of the text form (form.h) whose keys are known: each is read into a field of a struct and
 * written from it. A key may occur once; an unknown one is an error. */
#ifndef TNI_BASE_SCHEMA_H
#define TNI_BASE_SCHEMA_H

#include "base/form.h"

#include <stdbool.h>
#include <stddef.h>

/* What a rejected value should have been, as the end of a sentence: "a whole number of bytes". */
typedef struct tni_need {
    char text[160];
} tni_need;

/* Always returns false. */
bool tni_need_set(tni_need *need, const char *format, ...) TN_PRINTF(2, 3);

typedef struct tni_schema_key tni_schema_key;
typedef struct tni_schema_type {
    /* Reads a value into the field `at`; otherwise returns false, sets `need` and leaves the field
     * unchanged. */
    bool (*read)(const tni_schema_key *key, const char *text, void *at, tni_need *need);
    /* Writes the field `at`; returns false for a value that is left out. NULL: never written. */
    bool (*write)(const tni_schema_key *key, const void *at, tni_buffer *out);
} tni_schema_type;

struct tni_schema_key {
    const char *word;
    const tni_schema_type *type;
    size_t offset; /* of the field; 0 for a type that reads the whole struct */
    bool required;
    size_t size;      /* of a text's field */
    int64_t most;     /* of a number */
    int64_t standard; /* a number that is left out, unless it is required */
    const char *unit; /* of a number; NULL: none */
    uint64_t known;   /* bit of the schema's mask that is set if the value is known; 0: none */
};

typedef struct tni_schema {
    const tni_schema_key *keys;
    size_t count;
    size_t known_at;               /* offset of the mask, a uint64_t */
    const struct tni_schema *also; /* further keys of the same struct; NULL: none */
    const char *others;            /* keys with this prefix are accepted but not read; NULL: none */
} tni_schema;

#define TNI_SCHEMA_COUNT(keys) (sizeof(keys) / sizeof((keys)[0]))

/* A field `const char *` that points into the form; "" is left out, unless it is required. */
extern const tni_schema_type tni_schema_text;
/* A field of `size` bytes for one line; "" is left out. */
extern const tni_schema_type tni_schema_line;
/* A field int64_t from 0 to `most`, in digits. */
extern const tni_schema_type tni_schema_number;
/* A value that the caller checks. */
extern const tni_schema_type tni_schema_ignored;

/* The text that is read, for messages "ORIGIN:LINE: ...", and the status for what is wrong in it. */
typedef struct tni_schema_source {
    const char *origin;
    const char *where;
    tn_status status;
    tn_error *err;
} tni_schema_source;

/* A text of the form, shortened to be part of a message. */
typedef struct tni_shown {
    char text[64];
} tni_shown;
tni_shown tni_show(const char *text);

tn_status tni_schema_reject(const tni_schema_source *source, uint32_t line, const char *format, ...)
    TN_PRINTF(3, 4);
tn_status tni_schema_reject_value(const tni_schema_source *source, const tni_form_entry *entry,
                                  const char *expected);

/* Reads a section into `out`. Fields without an entry keep their values. */
tn_status tni_schema_read(const tni_schema_source *source, const tni_schema *schema,
                          const tni_form_section *section, void *out);

/* Writes the entries of a section, in the order of the keys; those of `also` come last. */
tn_status tni_schema_write(const tni_schema *schema, const void *from, tni_buffer *to,
                           tn_error *err);

/* Writes a section's head, "[noun]" or "[noun name]", and its entries. */
tn_status tni_schema_write_section(const tni_schema *schema, const char *noun, const char *name,
                                   const void *from, tni_buffer *to, tn_error *err);

/* Returns the entry of a key, or NULL. */
const tni_form_entry *tni_section_entry(const tni_form_section *section, const char *key);

/* Returns the part of a section's name after "noun ", "" for "noun" alone, or NULL for another
 * noun. */
const char *tni_section_name(const tni_form_section *section, const char *noun);

#endif
