/* What a call of attention asks for, or the setting attention.backend, and what follows from it. */
#ifndef TNI_DISPATCH_ATTENTION_WISH_H
#define TNI_DISPATCH_ATTENTION_WISH_H

#include "dispatch/dispatch.h"

enum { TNI_WISHED_MOST = 16 };
typedef struct tni_backend_wish {
    int32_t strength; /* TN_REQUIRE, ..., TN_FORBID; TN_PERMIT: nothing is asked for         */
    size_t count;
    const char *names[TNI_WISHED_MOST]; /* static, or lent by the context in small letters   */
} tni_backend_wish;

/* What the question asks for: what its op does, else what attention.backend does. */
void tni_backend_wished(const tni_question *question, tni_backend_wish *out);

/* The row whose rules are not heard, as the op itself asks for a backend; -1: none. */
tn_setting tni_backend_unheard(const tn_op *op);

/* Whether the wish is for no attention at all. */
bool tni_backend_wishes_none(const tni_backend_wish *wish);

/* Before a decision, of whatever op: TN_NOT_FOUND for a name of attention.backend that nobody knows,
 * TN_INVALID_ARGUMENT for NO_ATTENTION among others, or less than required. */
tn_status tni_attention_check(const tni_question *question, tn_error *err);

/* What rules say of a contender, of whatever op; what goes by the name that an op asks for is required. */
void tni_attention_judge(const tni_question *question, tni_contender *to);

/* False, and why, when no attention may run, or not by a kernel of these names. The wish is the question's, NULL
 * for an op that is not attention. */
bool tni_attention_permits(const tni_question *question, const tni_backend_wish *wish,
                           tni_contender *to);

/* When nothing is admitted: what to say where attention.backend is the reason; TN_OK where it is not. */
tn_status tni_attention_refused(const tni_question *question, const tni_choice *choice,
                                tn_error *err);

#endif
