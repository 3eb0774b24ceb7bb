/* State while the machine is read: the root folder, the memory of the result, and the problems
 * found. Running out of memory is sticky: callers continue and check `failed` once, at the end. */
#ifndef TNI_OS_MACHINE_READ_H
#define TNI_OS_MACHINE_READ_H

#include "machine.h"
#include "os/span.h"

#include <stdarg.h>

enum { TNI_READING_PATH = 4096, TNI_READING_NOTES = 32 };

typedef struct tni_reading {
    const char *root; /* prefix of every path; "" for the running system */
    bool running;     /* system calls may be used too */
    bool failed;      /* out of memory; the result is invalid */
    struct tni_block *blocks;
    const char *notes[TNI_READING_NOTES];
    size_t note_count;
    uint32_t state; /* of the last file: TNI_FACT_...; unknown if it could not be read */
    bool absent;    /* of the last file: it or its folder does not exist */
    tn_error error; /* of the last file */
    char path[TNI_READING_PATH]; /* of the last file, including the root */
} tni_reading;

void tni_reading_init(tni_reading *reading, const char *root);
void tni_reading_discard(tni_reading *reading); /* also releases all kept memory */

/* Returns zeroed memory that lives as long as the result; NULL if out of memory. */
void *tni_reading_keep(tni_reading *reading, size_t count, size_t size);
void tni_blocks_release(struct tni_block *blocks);

/* Return one line of text that lives as long as the result; invalid UTF-8 and control characters
 * become '?'. Never NULL. */
const char *tni_reading_format(tni_reading *reading, const char *format, ...) TN_PRINTF(2, 3);
const char *tni_reading_text(tni_reading *reading, tni_span text);

/* Reads a file by its path below the root. If true, *out is its contents; the caller releases them
 * with tni_release(*out_text). If false, tni_reading_why has the reason; a note is made unless the
 * file does not exist. */
bool tni_reading_file(tni_reading *reading, char **out_text, tni_span *out, const char *format, ...)
    TN_PRINTF(4, 5);

/* Of the last file: its path without the root, and why it could not be used. Valid until the next
 * file. */
const char *tni_reading_path(const tni_reading *reading);
const char *tni_reading_why(const tni_reading *reading);

/* Read a file that holds one value. Return false if it cannot be read, as above, or is malformed,
 * which is noted too; `state` and tni_reading_why have the reason. */
bool tni_reading_number(tni_reading *reading, int64_t *out, const char *format, ...)
    TN_PRINTF(3, 4);
bool tni_reading_bytes(tni_reading *reading, int64_t *out, const char *format, ...) TN_PRINTF(3, 4);
bool tni_reading_cpus(tni_reading *reading, tni_cpus *out, const char *format, ...) TN_PRINTF(3, 4);
bool tni_reading_word(tni_reading *reading, const char **out, const char *format, ...)
    TN_PRINTF(3, 4);

/* Parses one value from a text. */
typedef bool tni_reading_parse(tni_reading *reading, tni_span text, void *out);

/* The same for any value: `expected` describes it, for the note about a malformed file. */
bool tni_reading_value(tni_reading *reading, tni_reading_parse *parse, const char *expected,
                       void *out, const char *format, va_list arguments) TN_PRINTF(5, 0);

/* Defines tni_reading_NAME by parse_NAME. */
#define TNI_DEFINE_READER(name, type, expected)                                                  \
    bool tni_reading_##name(tni_reading *reading, type *out, const char *format, ...)            \
    {                                                                                            \
        va_list arguments;                                                                       \
        va_start(arguments, format);                                                             \
        bool found = tni_reading_value(reading, parse_##name, expected, out, format, arguments); \
        va_end(arguments);                                                                       \
        return found;                                                                            \
    }

/* Notes that the last file contains `found` instead of `expected`, and makes that its error. */
void tni_reading_malformed(tni_reading *reading, tni_span found, const char *expected);

tni_fact tni_fact_known(int64_t value, const char *origin);
tni_fact tni_fact_none(uint32_t state, const char *origin); /* any state except known */

/* A fact without a value, with the state and error of the last file. */
tni_fact tni_reading_nothing(tni_reading *reading);

/* Sets *fact to the smaller of the two. A known fact takes precedence over any other; then
 * malformed, unknown, unlimited, in this order. A zeroed fact is ignored. */
void tni_fact_lessen(tni_fact *fact, tni_fact other);

/* Create an empty set with room for numbers below `room`, and add numbers to it. */
bool tni_cpus_make(tni_reading *reading, int32_t room, tni_cpus *out);
void tni_cpus_add(tni_cpus *set, int32_t first, int32_t last);
void tni_cpus_count(tni_cpus *set); /* call after the last tni_cpus_add */

/* Parses "0-3,8,16-31:2/4", with blanks at the ends; the last form means the first 2 of every 4
 * numbers from 16 on. An empty text is the empty set. Returns false for anything else and for
 * numbers out of range. */
bool tni_cpus_parse(tni_reading *reading, tni_span text, tni_cpus *out);

/* The list as text for an origin; a long list is truncated. */
const char *tni_cpus_brief(tni_reading *reading, const tni_cpus *set);

/* Computes `threads` and `least` from the limits. */
void tni_machine_budget_compute(tni_machine_budget *budget, int32_t request);

/* Returns "Neoverse-N1", or the numbers of a core that is not in the table. */
const char *tni_arm_core_words(tni_reading *reading, int32_t implementer, int32_t part);

/* Computes a UUID from the kind of source and its text. */
void tni_machine_uuid(const char *kind, tni_span text, char out[TNI_UUID_SIZE]);

/* Returns the result; if out of memory, fails and discards it. */
tn_status tni_reading_end(tni_reading *reading, tni_machine *machine, tni_machine **out,
                          tn_error *err);

#endif
