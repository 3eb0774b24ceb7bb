/* Capabilities: the hardware generation of a device, as an ordered pair (major, minor).
 * Thread-safety: Safe. */
#ifndef TENON_CAPABILITY_H
#define TENON_CAPABILITY_H

#include "base.h"
#include "module/device.h"

TN_BEGIN_DECLS

/* Writes "9.0". 24 bytes are always enough; longer text is truncated to `size`. Returns `out`, or
 * "" if there is no buffer. */
TN_API const char *tn_capability_as_version_str(tn_capability capability, char *out, size_t size);

/* major * 10 + minor: 90 for 9.0. Defined for every pair: a minor above 9 counts as 9, so that the
 * numbers never contradict the order of the pairs. Negative parts count as 0; a result that is too
 * large is INT32_MAX. */
TN_API int32_t tn_capability_to_int(tn_capability capability);

/* Converts an integer to a pair: 90 is 9.0. */
TN_API tn_capability tn_capability_from_int(int32_t number);

/* Parses "9.0", "9", or the integer form "90" or "120". Numbers from 10 to 19 are ambiguous and
 * need the point. */
TN_API tn_status tn_capability_parse(const char *text, tn_capability *out, tn_error *err);

/* Returns a negative number, 0 or a positive one if a is less than, equal to or greater than b.
 * Compares major, then minor. */
TN_API int32_t tn_capability_compare(tn_capability a, tn_capability b);

/* 1 if both have the same major. */
TN_API int32_t tn_capability_same_family(tn_capability a, tn_capability b);

TN_END_DECLS

#endif
