/* What speaks for and against one kernel, each in its own place. */
#ifndef TNI_DISPATCH_JUDGE_H
#define TNI_DISPATCH_JUDGE_H

#include "dispatch.h"

/* A question with what is asked of the machine once for all candidates. */
typedef struct tni_asking {
    const tni_question *question;
    const tni_op_class *class;
    uint64_t cpu_features;
    int32_t threads;
    double flops;
    double bytes;
    const struct tni_backend_wish *wish; /* of attention; NULL for other ops */
    tn_op *
        shown; /* the question's op as the kernel at hand sees it: aligned to no more than it distinguishes */
} tni_asking;

/* False, and why, when rules forbid what they judged, or ask for another. */
bool tni_rules_permit(const tni_judgement *judged, tn_refusal *why);

/* False, and why, for a row of this processor's that goes through a library while cpu.isa_mask hides
 * instructions: libraries choose theirs themselves, and none says what it took. */
bool tni_mask_permits(const tn_kernel_row *row, tn_refusal *why);

/* Whether what the kernel does to numbers is allowed: precision, determinism, narrow sums. */
bool tni_numerics_permit(const tni_question *question, const tni_kernel *kernel, tn_refusal *why);

/* The query that a row's pure functions are asked with. `library_version` is -1 for unknown. */
void tni_query_make(const tni_asking *asking, int64_t library_version, tn_query *out);

/* A hash of what ops of the class's group read of the context. Never 0. */
uint64_t tni_context_hash(const tn_context *context, const tni_op_class *class);

/* Mixes a word into a hash. */
static inline uint64_t tni_hash_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 29;
}

/* Of many words: four at a time, as none waits for the other. */
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

/* How late the test is that refused: a candidate with a greater one came farther. */
int32_t tni_refusal_progress(int32_t code);

/* Fills in a refusal whose text is `words`, NULL-ended, one behind the other; always false. Without numbers:
 * for what most candidates of a problem are refused for, as formatting takes most of their time. */
bool tni_refuse_words(tn_refusal *why, int32_t code, const char *what, const char *const *words);

/* Fills in a refusal, with a text of what would help; always false. */
bool tni_refuse(tn_refusal *why, int32_t code, const char *what, int64_t needed, int64_t found,
                const char *format, ...) TN_PRINTF(6, 7);

/* Puts a refusal into words, whoever made it: afterwards its text says all of it, with its numbers where
 * they are more than there or not there. */
void tni_refusal_word(tn_refusal *why);

#endif
