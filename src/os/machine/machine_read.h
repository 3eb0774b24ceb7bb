/* A reading of the machine under way: the root it reads below, the memory its result lies in, and
 * what it found wrong. Want of memory is sticky: go on freely, then ask once, at the end. */
#ifndef TNI_OS_MACHINE_READ_H
#define TNI_OS_MACHINE_READ_H

#include "machine.h"
#include "os/span.h"

enum { TNI_READING_PATH = 4096, TNI_READING_NOTES = 32 };

typedef struct tni_reading {
    const char *root; /* "" for the running system: put before every path */
    bool running;     /* the system may also be asked by calls            */
    bool failed;      /* there was no memory; the result is worthless     */
    struct tni_block *blocks;
    const char *notes[TNI_READING_NOTES];
    size_t note_count;
    uint32_t state; /* of the last file: TNI_FACT_...; unknown when it could not be read */
    bool absent;    /* of the last file: there is none, or no folder for it       */
    tn_error error; /* of the last file */
    char path[TNI_READING_PATH]; /* of the last file, root included */
} tni_reading;

void tni_reading_begin(tni_reading *reading, const char *root);
void tni_reading_discard(tni_reading *reading); /* with everything kept in it */

/* Zeroed memory that lives as long as the result; NULL for want of memory. */
void *tni_reading_keep(tni_reading *reading, size_t count, size_t size);
void tni_blocks_release(struct tni_block *blocks);

/* One line of text that lives as long as the result; what is not UTF-8, or cannot be seen, becomes
 * '?'. Never NULL. */
const char *tni_reading_format(tni_reading *reading, const char *format, ...) TN_PRINTF(2, 3);
const char *tni_reading_text(tni_reading *reading, tni_span text);

/* Reads a file by its path below the root. True: *out is its contents, which the caller releases
 * by tni_release(*out_text). False: tni_reading_why says why; all but absence is noted. */
bool tni_reading_file(tni_reading *reading, char **out_text, tni_span *out, const char *format, ...)
    TN_PRINTF(4, 5);

/* Of the last file: its path without the root; why it gave nothing. Lent until the next file. */
const char *tni_reading_path(const tni_reading *reading);
const char *tni_reading_why(const tni_reading *reading);

/* A file that holds one value. False when it cannot be read, as above, or is malformed, which is
 * noted too; `state` and tni_reading_why tell. */
bool tni_reading_number(tni_reading *reading, int64_t *out, const char *format, ...)
    TN_PRINTF(3, 4);
bool tni_reading_bytes(tni_reading *reading, int64_t *out, const char *format, ...) TN_PRINTF(3, 4);
bool tni_reading_cpus(tni_reading *reading, tni_cpus *out, const char *format, ...) TN_PRINTF(3, 4);
bool tni_reading_word(tni_reading *reading, const char **out, const char *format, ...)
    TN_PRINTF(3, 4);

/* Notes that the last file holds `found` where `expected` should be, and makes that its reason. */
void tni_reading_malformed(tni_reading *reading, tni_span found, const char *expected);

tni_fact tni_fact_known(int64_t value, const char *origin);
tni_fact tni_fact_none(uint32_t state, const char *origin); /* every state but known */

/* What the last file gave instead of a value. */
tni_fact tni_reading_nothing(tni_reading *reading);

/* Makes *fact the lesser of the two: a known one before any other, then what casts most doubt:
 * malformed, unknown, unlimited. A zeroed fact counts for nothing. */
void tni_fact_lessen(tni_fact *fact, tni_fact other);

/* An empty set with room for numbers below `room`, and numbers into it. */
bool tni_cpus_make(tni_reading *reading, int32_t room, tni_cpus *out);
void tni_cpus_add(tni_cpus *set, int32_t first, int32_t last);
void tni_cpus_count(tni_cpus *set); /* after the last addition */

/* "0-3,8,16-31:2/4" and blanks at the ends: of the last form, the first 2 of every 4 from 16 on.
 * Nothing is the empty set. False for anything else, and for numbers out of range. */
bool tni_cpus_parse(tni_reading *reading, tni_span text, tni_cpus *out);

/* The list as text for an origin: shortened when long. */
const char *tni_cpus_brief(tni_reading *reading, const tni_cpus *set);

/* Fills in `threads` and `least` from the limits. */
void tni_machine_budget_settle(tni_machine_budget *budget, int32_t wish);

/* "Neoverse-N1", or the numbers of a core that is not in the table. */
const char *tni_arm_core_words(tni_reading *reading, int32_t implementer, int32_t part);

/* From a kind of source and what it says. */
void tni_machine_uuid(const char *kind, tni_span text, char out[TNI_UUID_SIZE]);

/* Hands the result out, or says why there is none and discards it. */
tn_status tni_reading_end(tni_reading *reading, tni_machine *machine, tni_machine **out,
                          tn_error *err);

#endif
