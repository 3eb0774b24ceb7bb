/* The result of probing a module in a child process, as text between processes and in the cache. */
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
    bool ended_badly; /* crashed or hung: its code is not loaded into this process */
    int64_t until;    /* cached until this time (seconds since the epoch); 0: no expiry */
    bool complete;    /* the final entry was read */
    char name[64];
    char version[64];
    char message[1024];
    char remedy[512];
} tni_verdict;

void tni_verdict_from_record(tni_verdict *out, const tni_record *record);

/* Written in the text form of base/form.h. A partial answer is read as far as it goes, and the last
 * value of a key counts; anything else fails with TN_CORRUPT. */
tn_status tni_verdict_write(const tni_verdict *verdict, tni_buffer *to, tn_error *err);
tn_status tni_verdict_read(const char *text, size_t length, tni_verdict *out, tn_error *err);

/* Runs the child program `probe` on `file`. Returns TN_OK however the child ended: *out says how.
 * Fails if the child could not be run or gave no answer. */
tn_status tni_verdict_probe(const char *probe, const char *file, int64_t limit_ns, tni_verdict *out,
                            tn_error *err);

/* A verdict is cached for one state of the file, the child program, the drivers and the boot if
 * nothing else can change it: a valid module, one of another ABI or with invalid rows, one that
 * crashed. A hang is cached for ten minutes, because a busy machine looks the same. A missing
 * driver, lack of memory, a signal from outside and anything else that a probe may report are
 * probed again every time. */
bool tni_verdict_recall(tni_cache *cache, const char *probe, const char *file, tni_verdict *out);
void tni_verdict_remember(tni_cache *cache, const char *probe, const char *file,
                          const tni_verdict *verdict);

#endif
