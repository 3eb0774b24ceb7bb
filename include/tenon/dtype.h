/* Element types: their words.
 * Thread-safety: Safe. */
#ifndef TENON_DTYPE_H
#define TENON_DTYPE_H

#include "base.h"
#include "module/dtype.h"

TN_BEGIN_DECLS

/* "bf16" for TN_BF16; NULL for what is no dtype. Static text. */
TN_API const char *tn_dtype_name(tn_dtype dtype);

TN_END_DECLS

#endif
