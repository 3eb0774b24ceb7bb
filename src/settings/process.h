/* The process's settings: one published context, changed under a lock and read without it. */
#ifndef TNI_SETTINGS_PROCESS_H
#define TNI_SETTINGS_PROCESS_H

#include "context.h"
#include "os/pool.h"

/* A thread that reads. The context that `sees` points to is not released. */
typedef struct tni_reader {
    tn_context *_Atomic sees;
    struct tni_reader *next;
    struct tni_reader *before;
} tni_reader;

/* Reads file and environment, once. Every function here calls it first; parallel loops call it for
 * their number of threads. */
void tni_settings_load(void);

/* Registers a reader, and unregisters it. */
void tni_reader_add(tni_reader *reader);
void tni_reader_remove(tni_reader *reader);

/* Makes a registered reader the calling thread's. */
void tni_reader_use(tni_reader *reader);

/* The published context; the caller releases it. Lock-free for a thread with a reader. */
tn_context *tni_process_context(void);

/* Invalidates the cached context of every thread. */
void tni_settings_invalidate(void);

/* Guards the list of readers, and scopes that one thread leaves for another. Held for a few
 * instructions only: ending threads take it. */
void tni_settings_lock(void);
void tni_settings_unlock(void);

/* Applies the settings that have one value per process: the number of threads of parallel loops (if
 * `threads`), which pool runs them, and the instruction set limit. All or nothing. A pool that this
 * ends is in *out_ended: the caller initializes it to NULL and destroys the pool after it releases
 * `turn`. */
tn_status tni_settings_force(const tn_context *context, bool threads, tni_pool **out_ended,
                             tn_error *err);

/* Checks that this machine supports the context's instruction set limit. */
tn_status tni_settings_check(const tn_context *context, tn_error *err);

/* The values of file and environment over the defaults, and the problems found in them, up to a
 * maximum. */
enum { TNI_PROBLEMS_MOST = 100 };
typedef struct tni_sources {
    tn_context *context; /* holds a reference; never NULL */
    bool starved;        /* a value or problem was lost: out of memory */
    char *problems[TNI_PROBLEMS_MOST];
    size_t problem_count;
    char *file;                            /* NULL for none */
    uint32_t line[TN_SETTING_COUNT];       /* line in the file; 0 if not in it */
    tn_setting variable[TN_SETTING_COUNT]; /* row whose variable set it */
} tni_sources;
void tni_sources_read(tni_sources *out);
void tni_sources_add_problem(tni_sources *sources, const char *problem);

/* Reads a text as if it were the only source. The caller releases *out. */
enum { TNI_SOURCES_LIMIT = 1 << 20 }; /* maximum bytes of a file */
void tni_sources_of_text(const char *file, const char *text, size_t size, tni_sources *out);
void tni_sources_release(tni_sources *sources);

/* The full key of a section and a key in it: [cuda.matmul] and allow_tf32 are
 * cuda.matmul.allow_tf32. Returns `room`. */
enum { TNI_SOURCES_KEY = 256 };
const char *tni_sources_key(const char *section, const char *key, char room[TNI_SOURCES_KEY]);

/* What was read at the start. Lives as long as the process. */
const tni_sources *tni_settings_sources(void);

#endif
