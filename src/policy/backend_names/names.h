/* Names of attention backends: the numbered ones, the TORCH_SDPA family, and the names of a
 * kernel. */
#ifndef TNI_POLICY_BACKEND_NAMES_NAMES_H
#define TNI_POLICY_BACKEND_NAMES_NAMES_H

#include "dispatch/kernels.h"
#include "tenon/attention_backend.h"

#include <stdbool.h>

/* Backend names by TN_BACKEND_...; NULL for an unnamed number and after the last. */
extern const char *const tni_attention_backends[TN_BACKEND_COUNT + 1];

/* Returns the name of a numbered backend, TN_BACKEND_..., and its description, as "dense, 8-bit
 * queries and keys"; NULL if none exists. */
const char *tni_backend_name(int32_t number);
const char *tni_backend_about(int32_t number);

/* Returns what computes a backend that the operator attention has no kernel for, as "tn_attention_quantized"; NULL if nothing does. */
const char *tni_backend_elsewhere(int32_t number);

/* Returns the number of a name, ignoring case; TN_BACKEND_NONE for any other. */
int32_t tni_backend_number(const char *name);

enum { TNI_SDP_COUNT = 5 };
const char *tni_sdp_word(int32_t sdp); /* NULL if none exists */

/* The family's settings, by TN_SDP_... */
tn_setting tni_sdp_switch(int32_t sdp);

/* Returns the other names of a row of attention: NULL-terminated, static. NULL for a row of another
 * op and for one without other names. */
const char *const *tni_backend_others(const tn_kernel_row *row);

/* Returns the op whose rules also apply to the row's op; NULL if none. */
const char *tni_backend_op(const tn_kernel_row *row);

/* Whether a candidate has the name, ignoring case. */
bool tni_backend_is(const tni_candidate *candidate, const char *name);

/* Whether the candidate has the name only as long as its platform has no kernel of that name. It is
 * then used on request, and never reported for an automatic choice. */
bool tni_backend_is_borrowed(const tni_candidate *candidate, const char *name);

/* Returns which backend of the family the candidate is; -1 if none. */
int32_t tni_backend_sdp(const tni_candidate *candidate);

/* Returns the canonical spelling of a numbered name; any other name unchanged. */
const char *tni_backend_spelling(const char *name);

/* Whether the name is a numbered one, one of the family, or that of a module's row. */
bool tni_backend_is_known(const char *name);

/* Reports an unknown name in attention.backend and the nearest known one. */
tn_status tni_backend_unknown(const char *name, const char *where, tn_error *err);

/* Returns a candidate for a backend of the family without a kernel, for the rules to judge: op,
 * names, platform, library. */
tni_candidate tni_sdp_candidate(int32_t sdp, const char *platform);

#endif
