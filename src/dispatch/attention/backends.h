/* Every backend of attention in one decision: what became of it, and which of them is the answer. */
#ifndef TNI_DISPATCH_ATTENTION_BACKENDS_H
#define TNI_DISPATCH_ATTENTION_BACKENDS_H

#include "dispatch/dispatch.h"
#include "tenon/attention_backend.h"

/* What a layer asks beyond what kernels say of the op. */
typedef struct tni_backend_bounds {
    const int32_t *supported; /* TN_BACKEND_...; NULL: all */
    size_t supported_count;
    const tni_choice *backward; /* what is admitted for the gradients; NULL: none are asked for */
} tni_backend_bounds;

/* The kernel that computes it, and the name it is taken by. */
typedef struct tni_backend_pick {
    const tni_contender *taken; /* NULL: none */
    const char *name;           /* "FLASH_ATTN", a stranger's, or "" */
    int32_t number;             /* TN_BACKEND_... */
} tni_backend_pick;

/* The first of the choice that the bounds, NULL for none, permit: by a name that the question's context asks
 * for where it goes by one, else by its own. */
void tni_backend_pick_of(const tni_question *question, const tni_choice *choice,
                         const tni_backend_bounds *bounds, tni_backend_pick *out);

/* Whether the layer supports the backend. */
bool tni_backend_is_supported(const tni_backend_bounds *bounds, int32_t number);

enum { TNI_BACKENDS_MOST = 32 };
typedef struct tni_backends {
    size_t count;
    tn_backend rows[TNI_BACKENDS_MOST];
    tn_refusal why[TNI_BACKENDS_MOST];
    struct tn_sdpa_report *reports; /* of flash, mem_efficient and cudnn; owned, or NULL */
} tni_backends;

/* The caller releases *out; its texts are lent by the choice and live as long as the process. */
tn_status tni_backends_make(const tni_question *question, const tni_choice *choice,
                            const tni_backend_bounds *bounds, tni_backends **out, tn_error *err);
void tni_backends_release(tni_backends *backends); /* accepts NULL */

/* What was chosen is only admitted: a call would be refused all the same. */
void tni_backends_unpick(tni_backends *backends);

/* The row of a name; NULL for none. Case does not count. */
const tn_backend *tni_backends_find(const tni_backends *backends, const char *name);

#endif
