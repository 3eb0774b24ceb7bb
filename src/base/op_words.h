/* Names of operators, as in problem texts. */
#ifndef TNI_BASE_OP_WORDS_H
#define TNI_BASE_OP_WORDS_H

#include "tenon/module/op.h"

/* Returns the name of a TN_OP_..., such as "matmul"; NULL for a number without an operator. */
const char *tni_op_word(int32_t kind);

#endif
