/* What a child process found out about a module, as text between processes and in the cache. */
#ifndef TNI_REGISTRY_VERDICT_H
#define TNI_REGISTRY_VERDICT_H

#include "base/buffer.h"
#include "os/cache/cache.h"
#include "record.h"

typedef struct tni_verdict {
    tn_module_stage stage;
    tn_status status;
    uint32_t abi_major;
    uint32_t abi_minor;
    bool ended_badly; /* crashed or hung: its code is kept out of this process */
    int64_t until;    /* remembered up to this second of the calendar; 0 for as long as it holds */
    bool complete;    /* its last word was read */
    char name[64];
    char version[64];
    char message[1024];
    char remedy[512];
} tni_verdict;

void tni_verdict_from_record(tni_verdict *out, const tni_record *record);

/* In the one text form. A partial answer reads as far as it goes, the last of a key counting;
 * anything else is TN_CORRUPT. */
tn_status tni_verdict_write(const tni_verdict *verdict, tni_buffer *to, tn_error *err);
tn_status tni_verdict_read(const char *text, size_t length, tni_verdict *out, tn_error *err);

/* Asks the child program `probe` about `file`. TN_OK whatever became of the child: that is in
 * *out. Fails when it could not be asked. */
tn_status tni_verdict_ask(const char *probe, const char *file, int64_t limit_ns, tni_verdict *out,
                          tn_error *err);

/* A verdict is remembered for one state of file, child program, drivers and boot when nothing else can change it: a
 * sound module, one of another ABI or with bad rows, one that crashed. One that hung is remembered for
 * ten minutes, as a busy machine looks the same. A missing driver, want of memory, a signal from
 * outside and whatever else a probe may say are asked for anew every time. */
bool tni_verdict_recall(tni_cache *cache, const char *probe, const char *file, tni_verdict *out);
void tni_verdict_remember(tni_cache *cache, const char *probe, const char *file,
                          const tni_verdict *verdict);

#endif
