/* Capabilities: what generation of hardware a device is, as a pair that has an order.
 * Thread-safety: Safe. */
#ifndef TENON_CAPABILITY_H
#define TENON_CAPABILITY_H

#include "base.h"
#include "module/device.h"

TN_BEGIN_DECLS

/* "9.0". Room for any is 24 bytes; text too long for `size` is cut. Returns `out`, or "" when there is
 * none. */
TN_API const char *tn_capability_as_version_str(tn_capability capability, char *out, size_t size);

/* major * 10 + minor, as in 90 for 9.0. Defined for every pair: a minor above 9 counts as 9, so that
 * the order of the numbers never contradicts that of the pairs; what is negative counts as 0, and
 * what is too great as INT32_MAX. */
TN_API int32_t tn_capability_to_int(tn_capability capability);

/* The pair that an integer means: 90 is 9.0. */
TN_API tn_capability tn_capability_from_int(int32_t number);

/* "9.0", or "9", or as an integer, "90" or "120". What could be either, from 10 to 19, needs the
 * point. */
TN_API tn_status tn_capability_parse(const char *text, tn_capability *out, tn_error *err);

/* Negative, 0 or positive: a before b, the same, after. By major, then minor. */
TN_API int32_t tn_capability_compare(tn_capability a, tn_capability b);

/* The same major. */
TN_API int32_t tn_capability_same_family(tn_capability a, tn_capability b);

TN_END_DECLS

#endif
