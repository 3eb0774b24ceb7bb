/* Answers to which backend computes a layer, kept for who asks again. */
#ifndef TNI_DISPATCH_ATTENTION_ANSWERS_H
#define TNI_DISPATCH_ATTENTION_ANSWERS_H

#include "dispatch/dispatch.h"
#include "tenon/attention_backend.h"

/* Everything that an answer follows from: the layer, the device in this life, what attention reads of the
 * context, and whatever choices are made by. */
enum { TNI_ANSWER_WORDS = 19 };
typedef struct tni_answer_key {
    uint64_t words[TNI_ANSWER_WORDS];
} tni_answer_key;

/* The arguments are sound. */
void tni_answer_key_make(const tn_context *context, const tn_device *device,
                         const tn_attention_backend_args *args, tni_answer_key *out);

/* Whether there is one; it keeps its struct_size and has no origin, which is not part of the key. Safe for
 * threads, as is keeping one. */
bool tni_answer_find(const tni_answer_key *key, tn_attention_choice *out);
void tni_answer_keep(const tni_answer_key *key, const tn_attention_choice *choice);

#endif
