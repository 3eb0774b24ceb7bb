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

/* Whether the request is for no attention at all. */
bool tni_backend_request_is_none(const tni_backend_request *request);

#endif
