/* A cache of answers to which backend computes a layer. */
#ifndef TNI_COMPAT_LAYER_ANSWERS_H
#define TNI_COMPAT_LAYER_ANSWERS_H

#include "dispatch/dispatch.h"
#include "tenon/attention_backend.h"

/* Everything that an answer depends on: the layer, the device and its epoch, the context settings
 * that attention reads, and everything else that affects choices. */
enum { TNI_ANSWER_WORDS = 19 };
typedef struct tni_answer_key {
    uint64_t words[TNI_ANSWER_WORDS];
} tni_answer_key;

/* The arguments must be valid. */
void tni_answer_key_make(const tn_context *context, const tn_device *device,
                         const tn_attention_backend_args *args, tni_answer_key *out);

/* Returns whether there is an answer. *out keeps its struct_size and gets no origin, which is not
 * part of the key. Both functions are thread-safe. */
bool tni_answer_find(const tni_answer_key *key, tn_attention_choice *out);
void tni_answer_keep(const tni_answer_key *key, const tn_attention_choice *choice);

#endif
