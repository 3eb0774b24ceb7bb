/* The backend request of an attention call or of the setting attention.backend, and its effects. */
#ifndef TNI_POLICY_BACKEND_NAMES_REQUEST_H
#define TNI_POLICY_BACKEND_NAMES_REQUEST_H

#include "dispatch/dispatch.h"

enum { TNI_REQUESTED_MOST = 16 };
typedef struct tni_backend_request {
    int32_t strength; /* TN_REQUIRE, ..., TN_FORBID; TN_PERMIT: no request */
    size_t count;
    const char *names[TNI_REQUESTED_MOST]; /* static, or borrowed from the context in lower case */
} tni_backend_request;

/* Returns the question's request: that of its op, otherwise that of attention.backend. */
void tni_backend_request_find(const tni_question *question, tni_backend_request *out);

/* Returns the setting whose rules are ignored because the op itself requests a backend; -1 if
 * none. */
tn_setting tni_backend_ignored_setting(const tn_op *op);

/* Whether the request is for no attention at all. */
bool tni_backend_request_is_none(const tni_backend_request *request);

/* To be called before a decision, for any op. Fails with TN_NOT_FOUND for an unknown name in
 * attention.backend, with TN_INVALID_ARGUMENT if NO_ATTENTION is combined with other names or is
 * not required. */
tn_status tni_attention_request_check(const tni_question *question, tn_error *err);

/* Applies the rules to a contender, for any op. A kernel with the name that the op requests is
 * required. */
void tni_attention_judge(const tni_question *question, tni_contender *to);

/* Returns false and sets `why` if no attention may run, or not by a kernel with these names. `request`
 * is the question's; NULL for an op that is not attention. */
bool tni_attention_permits(const tni_question *question, const tni_backend_request *request,
                           tni_contender *to);

/* If nothing is admitted because of attention.backend, fails with the message for that; TN_OK if
 * the cause is another. */
tn_status tni_attention_refused(const tni_question *question, const tni_choice *choice,
                                tn_error *err);

#endif
