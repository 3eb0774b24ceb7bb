/* Parameters in the initializer of an op that a test makes by hand:
 *
 *     tn_op op = {.kind = TN_OP_MATMUL, .params = PARAMS(matmul, .m = 2, .n = 3, .k = 4)};
 */
#ifndef TEST_PARAMS_H
#define TEST_PARAMS_H

#include "tenon/module/op.h"

#define PARAMS(noun, ...) params_of(&(tn_##noun##_op){__VA_ARGS__}, sizeof(tn_##noun##_op))

static inline tn_op_params params_of(const void *params, size_t size)
{
    tn_op_params made = {{0}};
    memcpy(made.bytes, params, size);
    return made;
}

#endif
