/* The tests that admit or refuse one kernel; each is in its own file. */
#ifndef TNI_DISPATCH_JUDGE_H
#define TNI_DISPATCH_JUDGE_H

#include "dispatch.h"
#include "settings/context.h"

/* A question, with the facts about the machine that are read once for all candidates. */
typedef struct tni_asking {
    const tni_question *question;
    const tni_op_class *class;
    uint64_t cpu_features;
    int32_t threads;
    double flops;
    double bytes;
    tn_op *
        shown; /* the question's op as the current kernel sees it: alignments limited to what the kernel distinguishes */
} tni_asking;

/* Returns false and sets `why` for a row of this processor that uses a library while cpu.isa_mask
 * hides instructions: libraries choose instructions themselves and do not report which. */
bool tni_mask_permits(const tn_kernel_row *row, tn_refusal *why);

/* Makes the query that a row's pure functions get. `library_version` is -1 if unknown. */
void tni_query_make(const tni_asking *asking, int64_t library_version, tn_query *out);

/* Returns a hash of the context settings that ops of the class's group read. Never 0. The context
 * keeps it. */
uint64_t tni_context_hash_make(const tn_context *context, const tni_op_class *class);
static inline uint64_t tni_context_hash(const tn_context *context, const tni_op_class *class)
{
    const uint64_t kept = tni_context_note(context, class->group);
    return kept ? kept : tni_context_hash_make(context, class);
}

/* Mixes a word into a hash. */
static inline uint64_t tni_hash_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 29;
}

/* Hashes many words, in four independent chains that the processor can run in parallel. */
static inline uint64_t tni_hash_words(const uint64_t *words, size_t count)
{
    uint64_t a = count, b = 1, c = 2, d = 3;
    size_t i = 0;
    for (; i + 4 <= count; i += 4) {
        a = tni_hash_mix(a, words[i]);
        b = tni_hash_mix(b, words[i + 1]);
        c = tni_hash_mix(c, words[i + 2]);
        d = tni_hash_mix(d, words[i + 3]);
    }
    for (; i < count; i++)
        a = tni_hash_mix(a, words[i]);
    return tni_hash_mix(tni_hash_mix(a, b), tni_hash_mix(c, d));
}

/* Returns the position of the test that refused: a larger value means that more tests were
 * passed. */
int32_t tni_refusal_progress(int32_t code);

/* Fills in a refusal whose text is the concatenation of `words`, a NULL-terminated array; always
 * returns false. Takes no numbers: meant for the refusals that most candidates of a problem get,
 * where formatting would take most of the time. */
bool tni_refuse_words(tn_refusal *why, int32_t code, const char *what, const char *const *words);

/* Fills in a refusal, with a text that suggests a remedy; always returns false. */
bool tni_refuse(tn_refusal *why, int32_t code, const char *what, int64_t needed, int64_t found,
                const char *format, ...) TN_PRINTF(6, 7);

/* Completes the text of a refusal, whichever function made it, so that it says everything; includes
 * the numbers unless they only mean present or absent. */
void tni_refusal_complete(tn_refusal *why);

#endif
