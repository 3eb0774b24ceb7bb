/* Names of statuses. The types are in module/abi.h, because modules share them.
 * Thread-safety: Safe. */
#ifndef TENON_STATUS_H
#define TENON_STATUS_H

#include "base.h"

TN_BEGIN_DECLS

/* The name of a status as reports print it ("out-of-memory"); "unknown" for a number that this
 * version does not know. Static text. */
TN_API const char *tn_status_name(tn_status status);

/* The meaning of the status, as a phrase. Static text. */
TN_API const char *tn_status_meaning(tn_status status);

TN_END_DECLS

#endif
