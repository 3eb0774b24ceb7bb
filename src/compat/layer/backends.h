/* All attention backends of one decision: the verdict on each, and which one is the answer. */
#ifndef TNI_COMPAT_LAYER_BACKENDS_H
#define TNI_COMPAT_LAYER_BACKENDS_H

#include "dispatch/policy.h"
#include "tenon/attention_backend.h"

/* Restrictions of a layer, in addition to those of the kernels. */
typedef struct tni_backend_bounds {
    const int32_t *supported; /* TN_BACKEND_...; NULL: all */
    size_t supported_count;
    const tni_choice *backward; /* the candidates for the gradients; NULL: no gradients are
                                 * needed */
} tni_backend_bounds;

/* The kernel that computes the layer, and the name under which it is taken. */
typedef struct tni_backend_pick {
    const tni_contender *taken; /* NULL if none */
    const char *name;           /* "FLASH_ATTN", the name of an unnumbered backend, or "" */
    int32_t number;             /* TN_BACKEND_... */
} tni_backend_pick;

/* Picks the first candidate of the choice that the bounds (may be NULL) permit. Its name is one
 * that the question's context asks for, if the kernel has it; otherwise its own. */
void tni_backend_pick_of(const tni_question *question, const tni_choice *choice,
                         const tni_backend_bounds *bounds, tni_backend_pick *out);

/* Whether the layer supports the backend. */
bool tni_backend_is_supported(const tni_backend_bounds *bounds, int32_t number);

enum { TNI_BACKENDS_MOST = 32 };
struct tni_backends {
    size_t count;
    tn_backend rows[TNI_BACKENDS_MOST];
    tn_refusal why[TNI_BACKENDS_MOST];
    struct tn_sdpa_report *reports; /* of flash, mem_efficient and cudnn; owned, may be NULL */
};

/* The caller releases *out. Its texts are borrowed from the choice, or live as long as the
 * process. */
tn_status tni_backends_make(const tni_question *question, const tni_choice *choice,
                            const tni_backend_bounds *bounds, tni_backends **out, tn_error *err);
void tni_backends_release(tni_backends *backends); /* accepts NULL */

/* Changes the verdict from chosen to admitted, because a call would be refused anyway. Accepts
 * NULL. */
void tni_backends_unpick(tni_backends *backends);

/* Finds a row by name, ignoring case; NULL if none exists. */
const tn_backend *tni_backends_find(const tni_backends *backends, const char *name);

#endif
