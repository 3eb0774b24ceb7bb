/* The classes of all ops, from the generated list of their folders. */
#include "op/op.h"
#include "op_headers.h"

const tni_op_class *const tni_op_classes[TN_OP_KIND_MAX] = {
#define TNI_OP(NAME, noun, word) [TN_OP_##NAME] = &tni_##noun##_class,
#include "op_list.h"
#undef TNI_OP
};
