/* The process's settings: one published context, changed by whoever holds the lock and read by anyone
 * without it. */
#ifndef TNI_SETTINGS_PROCESS_H
#define TNI_SETTINGS_PROCESS_H

#include "context.h"
#include "os/pool.h"

/* A thread that reads. While `sees` is set, what it points to is not released. */
typedef struct tni_reader {
    tn_context *_Atomic sees;
    struct tni_reader *next;
    struct tni_reader *before;
} tni_reader;

/* Reads file and environment, once. Every call here does so first; loops do to learn their threads. */
void tni_settings_begin(void);

/* Adds a thread to those that read, and takes it away again. */
void tni_reader_add(tni_reader *reader);
void tni_reader_remove(tni_reader *reader);

/* The calling thread's; NULL when it is not among them. */
tni_reader *tni_reader_mine(void);

/* The published context, counted for the caller. Waits for nobody, save with a NULL reader. */
tn_context *tni_process_context(tni_reader *reader);

/* Makes every thread look again. */
void tni_settings_stir(void);

/* The lock over the list of readers, and over scopes that pass from one thread to another. Held for a
 * few steps only: threads end under it. */
void tni_settings_lock(void);
void tni_settings_unlock(void);

/* Puts in force what the process has one of: the threads of loops, unless `threads` is false, whose they are, and
 * the limit of instructions. All or nothing. A pool that this ends is in *out_ended, which the caller has set
 * to NULL and destroys after its turn. */
tn_status tni_settings_force(const tn_context *context, bool threads, tni_pool **out_ended,
                             tn_error *err);

/* Whether this machine has what the context's limit of instructions asks for. */
tn_status tni_settings_check(const tn_context *context, tn_error *err);

/* What file and environment said, over the defaults; and what they said wrong, of which only so much
 * is told. */
enum { TNI_PROBLEMS_MOST = 100 };
typedef struct tni_sources {
    tn_context *context; /* counted; never NULL */
    bool starved;        /* something was not taken for want of memory */
    char *problems[TNI_PROBLEMS_MOST];
    size_t problem_count;
    char *file;                            /* NULL for none */
    uint32_t line[TN_SETTING_COUNT];       /* where the file has it; 0 for nowhere */
    tn_setting variable[TN_SETTING_COUNT]; /* the row by whose variable the environment has it */
} tni_sources;
void tni_sources_read(tni_sources *out);
void tni_sources_tell(tni_sources *sources, const char *problem);

/* What a file of this text alone would say. The caller releases it. */
enum { TNI_SOURCES_LIMIT = 1 << 20 }; /* bytes of a file */
void tni_sources_of_text(const char *file, const char *text, size_t size, tni_sources *out);
void tni_sources_release(tni_sources *sources);

/* The setting that a section and a key in it mean: [cuda.matmul] and allow_tf32 are
 * cuda.matmul.allow_tf32. Returns `room`. */
enum { TNI_SOURCES_KEY = 256 };
const char *tni_sources_key(const char *section, const char *key, char room[TNI_SOURCES_KEY]);

/* What was read. Lives as long as the process. */
const tni_sources *tni_settings_sources(void);

#endif
