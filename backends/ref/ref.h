/* The module `ref`: what all kernel rows share. */
#ifndef TNI_REF_REF_H
#define TNI_REF_REF_H

#include <float.h>

#include "tenon/module/kernel.h"

/* Each output is computed by one thread, in a fixed order. */
#define TNI_REF_REPEATS (TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT)

/* For kernels that use only IEEE 754 basic operations, in a fixed order. */
#if FLT_EVAL_METHOD == 0
#define TNI_REF_EVERYWHERE (TNI_REF_REPEATS | TN_NUM_CROSS_DEVICE)
#else
#define TNI_REF_EVERYWHERE TNI_REF_REPEATS
#endif

/* tn_refuse with a text that says what to do. */
static inline tn_status tni_ref_refuse(tn_refusal *why, int32_t code, const char *what,
                                       int64_t needed, int64_t found, const char *text)
{
    tn_refuse(why, code, what, needed, found);
    if (why)
        tn_text_fit(why->text, sizeof why->text, text);
    return TN_UNSUPPORTED;
}

#endif
