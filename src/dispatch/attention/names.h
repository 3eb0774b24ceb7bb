/* Names of attention's backends: the numbered ones, the family of TORCH_SDPA, and what a kernel goes by. */
#ifndef TNI_DISPATCH_ATTENTION_NAMES_H
#define TNI_DISPATCH_ATTENTION_NAMES_H

#include "dispatch/kernels.h"
#include "tenon/attention_backend.h"

#include <stdbool.h>

/* A numbered backend, TN_BACKEND_...: its name, and what it is, "dense, 8-bit queries and keys"; NULL for none. */
const char *tni_backend_name(int32_t number);
const char *tni_backend_about(int32_t number);

/* The number of a name, case does not count; TN_BACKEND_NONE for any other. */
int32_t tni_backend_number(const char *name);

enum { TNI_SDP_COUNT = 5 };
const char *tni_sdp_word(int32_t sdp); /* NULL for none */

/* The family's settings, by TN_SDP_... */
tn_setting tni_sdp_switch(int32_t sdp);

/* What else a row of attention goes by: NULL-ended, static; NULL for a row of another op and for one that
 * has no other name. */
const char *const *tni_backend_others(const tn_kernel_row *row);

/* The op whose rules hold for a row's op too: NULL for none. */
const char *tni_backend_op(const tn_kernel_row *row);

/* Whether a candidate goes by the name; case does not count. */
bool tni_backend_is(const tni_candidate *candidate, const char *name);

/* Which of the family it is; -1 for none. */
int32_t tni_backend_sdp(const tni_candidate *candidate);

/* A numbered name as it is spelt; any other as it is. */
const char *tni_backend_spelling(const char *name);

/* Whether the name is a numbered one, one of the family, or a row's that a module brought. */
bool tni_backend_is_known(const char *name);

/* err says that nobody knows a name of attention.backend, and the nearest. */
tn_status tni_backend_unknown(const char *name, const char *where, tn_error *err);

/* The family's candidate without a kernel, for the rules to judge: op, names, platform, library. */
tni_candidate tni_sdp_candidate(int32_t sdp, const char *platform);

#endif
