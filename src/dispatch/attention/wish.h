/* What the setting attention.backend asks for, and what follows from it for every call of attention. */
#ifndef TNI_DISPATCH_ATTENTION_WISH_H
#define TNI_DISPATCH_ATTENTION_WISH_H

#include "dispatch/dispatch.h"

enum { TNI_WISHED_MOST = 16 };
typedef struct tni_backend_wish {
    int32_t
        strength;  /* TN_REQUIRE, TN_PREFER, TN_AVOID, TN_FORBID; TN_PERMIT: nothing is asked for */
    int32_t level; /* TN_LEVEL_... that asks                                              */
    size_t count;
    const char
        *names[TNI_WISHED_MOST]; /* in small letters; lent by the context                    */
} tni_backend_wish;

void tni_backend_wished(const tn_context *context, tni_backend_wish *out);

/* Whether the wish is for no attention at all. */
bool tni_backend_wishes_none(const tni_backend_wish *wish);

/* Before a decision, of whatever op: TN_NOT_FOUND for a name of attention.backend that nobody knows,
 * TN_INVALID_ARGUMENT for NO_ATTENTION among others, or less than required. */
tn_status tni_attention_check(const tni_question *question, tn_error *err);

/* False, and why, when no attention may run. */
bool tni_attention_permits(const tni_question *question, tn_refusal *why);

/* When nothing is admitted: what to say where attention.backend is the reason; TN_OK where it is not. */
tn_status tni_attention_refused(const tni_question *question, const tni_choice *choice,
                                tn_error *err);

#endif
