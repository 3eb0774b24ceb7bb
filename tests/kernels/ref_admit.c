/* What the reference kernels declare of themselves and what they refuse, with what would help. */
#include "make.h"

#include "tenon/check.h"
#include "tenon/module/op/attention.h"
#include "tenon/module/op/attention_backward.h"
#include "tenon/module/op/attention_merge.h"
#include "tenon/module/op/attention_quantized.h"
#include "tenon/module/op/attention_sparse.h"
#include "tenon/module/op/attention_sparse_backward.h"
#include "tenon/module/op/binary.h"
#include "tenon/module/op/fft.h"
#include "tenon/module/op/matmul.h"
#include "tenon/module/op/norm.h"
#include "tenon/module/op/permute.h"
#include "tenon/module/op/reduce.h"
#include "tenon/module/op/rotary.h"
#include "tenon/module/op/softmax.h"
#include "tenon/module/op/unary.h"

#include <stdbool.h>

/* Whether the reference of an operator calls libm for every problem, so that its bits depend on the
 * machine. */
static bool uses_libm(int32_t op)
{
    return op == TN_OP_SOFTMAX || op == TN_OP_ATTENTION || op == TN_OP_ATTENTION_BACKWARD ||
           op == TN_OP_ATTENTION_MERGE || op == TN_OP_ATTENTION_SPARSE ||
           op == TN_OP_ATTENTION_SPARSE_BACKWARD || op == TN_OP_ATTENTION_QUANTIZED ||
           op == TN_OP_FFT;
}

static void check_row(int32_t op)
{
    const tn_kernel_row *row = row_of(op);
    char name[64];
    snprintf(name, sizeof name, "cpu.%s.ref", tn_op_name(op));
    assert_int_equal(row->struct_size, sizeof *row);
    assert_int_equal(row->op, op);
    assert_string_equal(row->name, name);
    assert_string_equal(row->platform, "cpu");
    assert_string_equal(row->backend, "ref");
    assert_null(row->library);
    assert_true(row->dtypes && row->dtypes[0] && row->run);
    assert_int_equal(row->numerics & ~TN_NUM_KNOWN, 0);
    assert_true(row->numerics & TN_NUM_RUN_TO_RUN && row->numerics & TN_NUM_BATCH_INVARIANT);
    assert_true(row->flops_per_us > 0 && row->bytes_per_us > 0 && row->overhead_us > 0);
    assert_int_equal(!(row->numerics & TN_NUM_CROSS_DEVICE), uses_libm(op));
}

/* Every operator has one row, and there are no others. */
static void rows_are_whole(void **state)
{
    const tn_module *module = NULL;
    int32_t operators = 0, count = 0;
    (void)state;
    assert_int_equal(tni_ref_module_entry(NULL, &module, NULL), TN_OK);
    for (int32_t op = TN_OP_NONE + 1; op < TN_OP_KIND_MAX; op++) {
        if (!tn_op_name(op)[0])
            continue;
        check_row(op);
        operators++;
    }
    while (module->kernels[count])
        count++;
    assert_true(operators > 0);
    assert_int_equal(count, operators);
}

/* Checks the refusal of one op: its code, what it is about, and a part of the text. */
static void assert_refused(const tn_op *op, int32_t code, const char *what, const char *text)
{
    tn_refusal why = {.struct_size = sizeof why};
    assert_int_equal(admit(op, &why), TN_UNSUPPORTED);
    assert_int_equal(why.code, code);
    assert_string_equal(why.what, what);
    assert_contains(why.text, text);
    assert_int_equal(admit(op, NULL), TN_UNSUPPORTED);
}

static tn_layout vector(tn_dtype dtype, int64_t size)
{
    return layout_of(dtype, 1, &size, DENSE);
}

static tn_op each_of(int32_t kind, int32_t function, tn_dtype in, tn_dtype out)
{
    tn_layout layout = vector(out, 4);
    tn_op op = each_op(kind, function, &layout, 1);
    op.operand[TN_ELEMENTWISE_IN] = vector(in, 4);
    op.operand[TN_ELEMENTWISE_OUT] = layout;
    return op;
}

static tn_op product_of(tn_dtype a, tn_dtype b, tn_dtype out, tn_dtype acc)
{
    const int64_t shape[] = {2, 2};
    tn_op op = {.struct_size = sizeof op, .kind = TN_OP_MATMUL, .count = 4};
    op.operand[TN_MATMUL_A] = layout_of(a, 2, shape, DENSE);
    op.operand[TN_MATMUL_B] = layout_of(b, 2, shape, DENSE);
    op.operand[TN_MATMUL_OUT] = layout_of(out, 2, shape, DENSE);
    *TN_PARAMS_MUTABLE(&op, matmul) = (tn_matmul_op){2, 2, 2, 1, 0, 0, acc, 0, 1, 0};
    return op;
}

static void matmul_refuses(void **state)
{
    tn_op op = product_of(TN_F32, TN_F16, TN_F32, TN_F32);
    (void)state;
    assert_refused(&op, TN_REFUSE_DTYPE, "b.dtype", "one dtype");
    op = product_of(TN_F32, TN_F32, TN_I32, TN_F32);
    assert_refused(&op, TN_REFUSE_DTYPE, "out.dtype", "floats go with floats");
    op = product_of(TN_F32, TN_F32, TN_F8_E5M2, TN_F32);
    assert_refused(&op, TN_REFUSE_DTYPE, "out.dtype", "16 bits and more");
    op = product_of(TN_C64, TN_C64, TN_F32, TN_C64);
    assert_refused(&op, TN_REFUSE_DTYPE, "out.dtype", "complex with complex");
    op = product_of(TN_I8, TN_I8, TN_F64, TN_I32);
    assert_refused(&op, TN_REFUSE_DTYPE, "out.dtype", "i32 or f32");
    op = product_of(TN_I8, TN_I8, TN_I32, TN_F32);
    assert_refused(&op, TN_REFUSE_DTYPE, "acc", "the sums are i32");
    op = product_of(TN_F32, TN_F32, TN_F32, TN_I32);
    assert_refused(&op, TN_REFUSE_DTYPE, "acc", "cast it");
    op = product_of(TN_F32, TN_F32, TN_F32, TN_F32);
    op.operand[TN_MATMUL_BIAS] = vector(TN_I32, 2);
    assert_refused(&op, TN_REFUSE_DTYPE, "bias.dtype", "floats go with floats");
    op = product_of(TN_C64, TN_C64, TN_C64, TN_C64);
    TN_PARAMS_MUTABLE(&op, matmul)->activation = TN_ACT_RELU;
    assert_refused(&op, TN_REFUSE_FEATURE, "activation", "complex numbers");
}

static void libm_is_not_the_same_everywhere(void **state)
{
    (void)state;
    for (determinism_is = 0; determinism_is < 4; determinism_is++) {
        tn_op op = product_of(TN_F32, TN_F32, TN_F32, TN_F32);
        for (int32_t act = 0; act < TN_ACT_COUNT; act++) {
            TN_PARAMS_MUTABLE(&op, matmul)->activation = act;
            if (determinism_is == 3 && act > TN_ACT_RELU)
                assert_refused(&op, TN_REFUSE_DETERMINISM, "determinism", "batch-invariant");
            else
                assert_int_equal(admit(&op, NULL), TN_OK);
        }
        op = each_of(TN_OP_UNARY, TN_UNARY_EXP, TN_F32, TN_F32);
        assert_int_equal(admit(&op, NULL), determinism_is == 3 ? TN_UNSUPPORTED : TN_OK);
        TN_PARAMS_MUTABLE(&op, elementwise)->kind = TN_UNARY_SQRT;
        assert_int_equal(admit(&op, NULL), TN_OK);
        op = each_of(TN_OP_UNARY, TN_UNARY_ABS, TN_C64, TN_F32);
        assert_int_equal(admit(&op, NULL), determinism_is == 3 ? TN_UNSUPPORTED : TN_OK);
    }
    determinism_is = 0;
}

static void elements_refuse(void **state)
{
    tn_op op = each_of(TN_OP_PERMUTE, 0, TN_F32, TN_F16);
    (void)state;
    assert_refused(&op, TN_REFUSE_DTYPE, "out.dtype", "cast changes it");
    op = each_of(TN_OP_UNARY, TN_UNARY_EXP, TN_I32, TN_I32);
    assert_refused(&op, TN_REFUSE_DTYPE, "in.dtype", "cast to a float");
    op = each_of(TN_OP_UNARY, TN_UNARY_RELU, TN_C64, TN_C64);
    assert_refused(&op, TN_REFUSE_DTYPE, "in.dtype", "neg and abs");
    op = each_of(TN_OP_UNARY, TN_UNARY_ABS, TN_C64, TN_C64);
    assert_refused(&op, TN_REFUSE_DTYPE, "out.dtype", "gives floats");
    op = each_of(TN_OP_UNARY, TN_UNARY_NEG, TN_I32, TN_F32);
    assert_refused(&op, TN_REFUSE_DTYPE, "out.dtype", "whole numbers");
    op = each_of(TN_OP_BINARY, TN_BINARY_ADD, TN_F32, TN_F32);
    op.count = 3;
    op.operand[TN_ELEMENTWISE_OTHER] = vector(TN_F64, 4);
    assert_refused(&op, TN_REFUSE_DTYPE, "other.dtype", "one dtype");
    op.operand[TN_ELEMENTWISE_OTHER] = vector(TN_F32, 4);
    op.operand[TN_ELEMENTWISE_OUT] = vector(TN_I32, 4);
    assert_refused(&op, TN_REFUSE_DTYPE, "out.dtype", "cast before or after");
    op = each_of(TN_OP_BINARY, TN_BINARY_MAX, TN_C64, TN_C64);
    op.count = 3;
    op.operand[TN_ELEMENTWISE_OTHER] = vector(TN_C64, 4);
    assert_refused(&op, TN_REFUSE_DTYPE, "in.dtype", "not ordered");
}

static void rows_refuse(void **state)
{
    tn_op op = each_of(TN_OP_REDUCE, TN_REDUCE_MIN, TN_C64, TN_C64);
    (void)state;
    assert_refused(&op, TN_REFUSE_DTYPE, "in.dtype", "not ordered");
    op = each_of(TN_OP_REDUCE, TN_REDUCE_MEAN, TN_I32, TN_I32);
    assert_refused(&op, TN_REFUSE_DTYPE, "out.dtype", "needs a float");
    op = each_of(TN_OP_REDUCE, TN_REDUCE_SUM, TN_F32, TN_I32);
    assert_refused(&op, TN_REFUSE_DTYPE, "out.dtype", "in's sort");
    op = each_of(TN_OP_REDUCE, TN_REDUCE_MAX, TN_I32, TN_F32);
    assert_refused(&op, TN_REFUSE_DTYPE, "out.dtype", "in's sort");
    op = each_of(TN_OP_REDUCE, TN_REDUCE_MAX, TN_F32, TN_F32);
    TN_PARAMS_MUTABLE(&op, elementwise)->size = 0;
    assert_refused(&op, TN_REFUSE_SHAPE, "size", "of nothing");
    op = each_of(TN_OP_SOFTMAX, 0, TN_F32, TN_I32);
    assert_refused(&op, TN_REFUSE_DTYPE, "out.dtype", "cast it");
    op = each_of(TN_OP_NORM, 0, TN_F32, TN_F32);
    op.count = 4;
    op.operand[TN_NORM_BIAS] = vector(TN_C64, 4);
    assert_refused(&op, TN_REFUSE_DTYPE, "bias.dtype", "cast it");
    op = each_of(TN_OP_ROTARY, 0, TN_F32, TN_F32);
    op.count = 4;
    op.operand[TN_ROTARY_COS] = vector(TN_I8, 4);
    assert_refused(&op, TN_REFUSE_DTYPE, "cos.dtype", "cast it");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_whole),
        cmocka_unit_test(matmul_refuses),
        cmocka_unit_test(libm_is_not_the_same_everywhere),
        cmocka_unit_test(elements_refuse),
        cmocka_unit_test(rows_refuse),
    };
    return run_suite("kernels.ref_admit", tests);
}
