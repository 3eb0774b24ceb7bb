/* Element types: their names.
 * Thread-safety: Safe. */
#ifndef TENON_DTYPE_H
#define TENON_DTYPE_H

#include "base.h"
#include "module/dtype.h"

TN_BEGIN_DECLS

/* "bf16" for TN_BF16; NULL if `dtype` is not a valid dtype. Static text. */
TN_API const char *tn_dtype_name(tn_dtype dtype);

TN_END_DECLS

#endif
