/* Matrix products as ops: what tensors and arguments make of them, and what is refused. */
#include "ops_check.h"
#include "world.h"

#include "op/matmul/matmul.h"

#include <float.h>
#include <math.h>

#define MAKE(...) make(TN_ARGS(matmul, __VA_ARGS__))

static tni_problem problem;

static const tn_op *make(const tn_matmul_args *args)
{
    tn_error err;
    memset(&problem, 0xA5, sizeof problem);
    if (tni_matmul_make(args, &problem, &err))
        fail_msg("%s", err.message);
    round_trip(&problem.op);
    return &problem.op;
}

#define REFUSED(status, part, ...) refused(TN_ARGS(matmul, __VA_ARGS__), status, part)

static void refused(const tn_matmul_args *args, tn_status status, const char *part)
{
    tn_error err = {0};
    assert_int_equal(tni_matmul_make(args, &problem, &err), status);
    assert_int_equal(err.status, status);
    assert_string_equal(err.where, "tn_matmul");
    assert_contains(err.message, part);
    assert_int_equal(tni_matmul_make(args, &problem, NULL), status);
}

/* A 2 x 3, B 3 x 4, out 2 x 4, apart from each other. */
static piece a, b, c, d;

static void pieces(tn_dtype in, tn_dtype out)
{
    DENSE(&a, 0, in, 2, 3);
    DENSE(&b, 1024, in, 3, 4);
    DENSE(&c, 2048, out, 2, 4);
    DENSE(&d, 4096, out, 4);
}

static void plain_matrices_use_nothing(void **state)
{
    (void)state;
    pieces(TN_F32, TN_F32);
    const tn_op *op = MAKE(.a = &a.tensor, .b = &b.tensor, .out = &c.tensor);
    assert_int_equal(op->kind, TN_OP_MATMUL);
    assert_int_equal(op->count, TN_MATMUL_OPERANDS);
    assert_int_equal(op->uses, 0);
    const tn_matmul_op *mm = tn_op_matmul(op);
    assert_true(mm->m == 2 && mm->n == 4 && mm->k == 3 && mm->matrices == 1 && mm->batch_rank == 0);
    assert_true(mm->alpha == 1 && mm->beta == 0 && mm->activation == 0 && mm->acc == TN_F32);
    expect_layout(&op->operand[TN_MATMUL_A], TN_F32, LIST(2, 3, -1), LIST(3, 1, -1));
    expect_layout(&op->operand[TN_MATMUL_B], TN_F32, LIST(3, 4, -1), LIST(4, 1, -1));
    expect_layout(&op->operand[TN_MATMUL_OUT], TN_F32, LIST(2, 4, -1), LIST(4, 1, -1));
    assert_int_equal(op->operand[TN_MATMUL_BIAS].dtype, TN_DTYPE_NONE);
    assert_ptr_equal(problem.data[TN_MATMUL_A], memory);
    assert_ptr_equal(problem.data[TN_MATMUL_OUT], memory + 2048);
    assert_null(problem.data[TN_MATMUL_BIAS]);
    assert_string_equal(tn_device_id(problem.device), "cpu:0");
    assert_string_equal(round_trip(op), "matmul:f32:m=2,n=4,k=3");
    double flops, bytes;
    tni_matmul_class.cost(op, &flops, &bytes);
    assert_true(flops == 48 && bytes == (6 + 12 + 8) * 4);
}

static void numbers_have_defaults(void **state)
{
    (void)state;
    pieces(TN_BF16, TN_F32);
    const tn_op *op =
        MAKE(.a = &a.tensor, .b = &b.tensor, .out = &c.tensor, .bias = &d.tensor, .alpha = 0.1,
             .beta = -2, .activation = TN_ACT_GELU_TANH, .acc = TN_BF16);
    assert_int_equal(op->uses, TN_MATMUL_USES_ALPHA | TN_MATMUL_USES_BETA | TN_MATMUL_USES_BIAS |
                                   TN_MATMUL_USES_ACTIVATION | TN_MATMUL_USES_OUT_DTYPE |
                                   TN_MATMUL_USES_ACC);
    expect_layout(&op->operand[TN_MATMUL_BIAS], TN_F32, LIST(2, 4, -1), LIST(0, 1, -1));
    assert_string_equal(round_trip(op), "matmul:bf16:m=2,n=4,k=3,bias=1,act=gelu-tanh,alpha=0.1,"
                                        "beta=-2,out=f32,acc=bf16");
    op = MAKE(.a = &a.tensor, .b = &b.tensor, .out = &c.tensor, .set = TN_MATMUL_SET_ALPHA);
    assert_true(TN_PARAMS(op, matmul)->alpha == 0 && TN_PARAMS(op, matmul)->acc == TN_F32);
    assert_int_equal(op->uses, TN_MATMUL_USES_ALPHA | TN_MATMUL_USES_OUT_DTYPE);
    pieces(TN_I8, TN_I32);
    op = MAKE(.a = &a.tensor, .b = &b.tensor, .out = &c.tensor);
    assert_int_equal(op->uses, 0);
    assert_int_equal(TN_PARAMS(op, matmul)->acc, TN_I32);
}

static void transposes_are_strides(void **state)
{
    (void)state;
    piece turned;
    tn_op by_flag, by_strides;
    pieces(TN_F32, TN_F32);
    DENSE(&turned, 0, TN_F32, 3, 2);
    by_flag = *MAKE(.a = &turned.tensor, .b = &b.tensor, .out = &c.tensor, .transpose_a = 1);
    piece_at(&turned, 0, TN_F32, LIST(2, 3, -1), LIST(1, 2, -1));
    by_strides = *MAKE(.a = &turned.tensor, .b = &b.tensor, .out = &c.tensor);
    assert_true(same_op(&by_flag, &by_strides));
    assert_int_equal(by_flag.uses, TN_MATMUL_USES_TRANSPOSE);
    expect_layout(&by_flag.operand[TN_MATMUL_A], TN_F32, LIST(2, 3, -1), LIST(1, 2, -1));
    assert_string_equal(round_trip(&by_flag), "matmul:f32:m=2,n=4,k=3,ta=1");
    DENSE(&turned, 1024, TN_F32, 4, 3);
    MAKE(.a = &a.tensor, .b = &turned.tensor, .out = &c.tensor, .transpose_b = 1);
    assert_string_equal(round_trip(&problem.op), "matmul:f32:m=2,n=4,k=3,tb=1");
    piece_at(&turned, 2048, TN_F32, LIST(2, 4, -1), LIST(1, 2, -1));
    MAKE(.a = &a.tensor, .b = &b.tensor, .out = &turned.tensor);
    assert_int_equal(problem.op.uses, TN_MATMUL_USES_STRIDES);
    assert_string_equal(round_trip(&problem.op), "matmul:f32:m=2,n=4,k=3,sc=1;2");
}

static void batches_broadcast(void **state)
{
    (void)state;
    piece x, y, z;
    DENSE(&x, 0, TN_F32, 5, 1, 2, 3);
    DENSE(&y, 8192, TN_F32, 7, 3, 4);
    DENSE(&z, 16384, TN_F32, 5, 7, 2, 4);
    const tn_op *op = MAKE(.a = &x.tensor, .b = &y.tensor, .out = &z.tensor);
    assert_int_equal(op->uses, TN_MATMUL_USES_BATCH | TN_MATMUL_USES_BROADCAST);
    assert_true(TN_PARAMS(op, matmul)->matrices == 35 && TN_PARAMS(op, matmul)->batch_rank == 2);
    expect_layout(&op->operand[TN_MATMUL_A], TN_F32, LIST(5, 7, 2, 3, -1), LIST(6, 0, 3, 1, -1));
    expect_layout(&op->operand[TN_MATMUL_B], TN_F32, LIST(5, 7, 3, 4, -1), LIST(0, 12, 4, 1, -1));
    assert_string_equal(round_trip(op), "matmul:f32:m=2,n=4,k=3,batch=5x7,sa=6;0;3;1,sb=0;12;4;1");
    DENSE(&y, 8192, TN_F32, 5, 7, 3, 4);
    DENSE(&x, 0, TN_F32, 5, 7, 2, 3);
    assert_int_equal(MAKE(.a = &x.tensor, .b = &y.tensor, .out = &z.tensor)->uses,
                     TN_MATMUL_USES_BATCH);
    DENSE(&x, 0, TN_F32, 1, 1, 2, 3);
    DENSE(&y, 8192, TN_F32, 3, 4);
    DENSE(&z, 16384, TN_F32, 1, 1, 2, 4);
    assert_int_equal(MAKE(.a = &x.tensor, .b = &y.tensor, .out = &z.tensor)->uses, 0);
}

static void strides_go_any_way(void **state)
{
    (void)state;
    piece back;
    pieces(TN_F32, TN_F32);
    piece_at(&back, 256, TN_F32, LIST(2, 3, -1), LIST(-8, -2, -1));
    const tn_op *op = MAKE(.a = &back.tensor, .b = &b.tensor, .out = &c.tensor);
    assert_int_equal(op->uses, TN_MATMUL_USES_STRIDES);
    assert_string_equal(round_trip(op), "matmul:f32:m=2,n=4,k=3,sa=-8;-2");
    piece_at(&back, 256, TN_F32, LIST(2, 3, -1), LIST(LESS, 2, -1));
    assert_string_equal(round_trip(MAKE(.a = &back.tensor, .b = &b.tensor, .out = &c.tensor)),
                        "matmul:f32:m=2,n=4,k=3,sa=-1;2");
    piece_at(&back, 256, TN_F32, LIST(2, 3, -1), LIST(8, 1, -1));
    op = MAKE(.a = &back.tensor, .b = &b.tensor, .out = &c.tensor);
    assert_int_equal(op->uses, 0); /* rows lie apart */
    assert_string_equal(round_trip(op), "matmul:f32:m=2,n=4,k=3,sa=8;1");
    piece_at(&back, 256, TN_F32, LIST(2, 3, -1), LIST(0, 1, -1));
    op = MAKE(.a = &back.tensor, .b = &b.tensor, .out = &c.tensor);
    assert_int_equal(op->uses, TN_MATMUL_USES_STRIDES);
}

/* What strides of nothing or of one element are makes no other op. */
static void idle_strides_do_not_count(void **state)
{
    (void)state;
    piece x, y, z;
    DENSE(&y, 1024, TN_F32, 3, 4);
    DENSE(&z, 2048, TN_F32, 1, 4);
    DENSE(&x, 0, TN_F32, 1, 3);
    tn_op plain = *MAKE(.a = &x.tensor, .b = &y.tensor, .out = &z.tensor);
    piece_at(&x, 0, TN_F32, LIST(1, 3, -1), LIST(77, 1, -1));
    assert_true(same_op(&plain, MAKE(.a = &x.tensor, .b = &y.tensor, .out = &z.tensor)));
    DENSE(&z, 2048, TN_F32, 0, 4);
    DENSE(&x, 0, TN_F32, 0, 3);
    plain = *MAKE(.a = &x.tensor, .b = &y.tensor, .out = &z.tensor);
    assert_int_equal(plain.uses, 0);
    assert_null(problem.data[TN_MATMUL_A]);
    piece_at(&x, 0, TN_F32, LIST(0, 3, -1), LIST(5, INT64_MIN, -1));
    assert_true(same_op(&plain, MAKE(.a = &x.tensor, .b = &y.tensor, .out = &z.tensor)));
}

static void alignment_is_of_the_first_element(void **state)
{
    (void)state;
    pieces(TN_F32, TN_F32);
    a.tensor.byte_offset = 4;
    b.tensor.byte_offset = 96;
    const tn_op *op = MAKE(.a = &a.tensor, .b = &b.tensor, .out = &c.tensor);
    assert_int_equal(op->operand[TN_MATMUL_A].alignment, 4);
    assert_int_equal(op->operand[TN_MATMUL_B].alignment, 32);
    assert_int_equal(op->operand[TN_MATMUL_OUT].alignment, 64);
    assert_string_equal(round_trip(op), "matmul:f32:m=2,n=4,k=3,align=4;32;64");
}

static void arguments_are_checked(void **state)
{
    (void)state;
    pieces(TN_F32, TN_F32);
    tn_error err;
    tn_matmul_args args = {.struct_size = TN_UP_TO(tn_matmul_args, workspace_bytes) - 1};
    assert_int_equal(tni_matmul_make(NULL, &problem, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "args is NULL");
    refused(&args, TN_INVALID_ARGUMENT, "args->struct_size: expected at least");
    refused(&args, TN_INVALID_ARGUMENT, "; make args with TN_ARGS(matmul, ...)");
    REFUSED(TN_INVALID_ARGUMENT, "a: the tensor is NULL", .b = &b.tensor, .out = &c.tensor);
    REFUSED(TN_INVALID_ARGUMENT, "b: the tensor is NULL", .a = &a.tensor, .out = &c.tensor);
    REFUSED(TN_INVALID_ARGUMENT, "out: the tensor is NULL", .a = &a.tensor, .b = &b.tensor);
    REFUSED(TN_INVALID_ARGUMENT, "args->set has bits", .a = &a.tensor, .b = &b.tensor,
            .out = &c.tensor, .set = 2);
    REFUSED(TN_INVALID_ARGUMENT, "args->reserved has bits", .a = &a.tensor, .b = &b.tensor,
            .out = &c.tensor, .reserved = 1);
    REFUSED(TN_INVALID_ARGUMENT, "transpose_a: expected 0 or 1, got 2", .a = &a.tensor,
            .b = &b.tensor, .out = &c.tensor, .transpose_a = 2);
    REFUSED(TN_INVALID_ARGUMENT, "transpose_b: expected 0 or 1, got -1", .a = &a.tensor,
            .b = &b.tensor, .out = &c.tensor, .transpose_b = -1);
    REFUSED(TN_INVALID_ARGUMENT, "activation: expected 0 (none) to 4, got 5", .a = &a.tensor,
            .b = &b.tensor, .out = &c.tensor, .activation = 5);
    REFUSED(TN_INVALID_ARGUMENT, "acc: expected f32 for products of f32, got f16", .a = &a.tensor,
            .b = &b.tensor, .out = &c.tensor, .acc = TN_F16);
    REFUSED(TN_INVALID_ARGUMENT, "got no dtype", .a = &a.tensor, .b = &b.tensor, .out = &c.tensor,
            .acc = 77);
    c.tensor.flags = TN_TENSOR_READ_ONLY;
    REFUSED(TN_REFUSED, "out", .a = &a.tensor, .b = &b.tensor, .out = &c.tensor);
}

static void shapes_are_checked(void **state)
{
    (void)state;
    piece x;
    pieces(TN_F32, TN_F32);
    REFUSED(TN_INVALID_ARGUMENT, "a: expected at least 2 dimensions, got 1", .a = &d.tensor,
            .b = &b.tensor, .out = &c.tensor);
    REFUSED(TN_INVALID_ARGUMENT, "b: expected 3 rows, as many as a has columns, got 2",
            .a = &a.tensor, .b = DENSE(&x, 1024, TN_F32, 2, 4), .out = &c.tensor);
    REFUSED(TN_INVALID_ARGUMENT, "out: expected a 2 x 4 matrix, as a and b make, got 4 x 2",
            .a = &a.tensor, .b = &b.tensor, .out = DENSE(&x, 2048, TN_F32, 4, 2));
    REFUSED(TN_INVALID_ARGUMENT, "a has 3 dimensions, more than the 2 of out",
            .a = DENSE(&x, 0, TN_F32, 1, 2, 3), .b = &b.tensor, .out = &c.tensor);
    REFUSED(TN_INVALID_ARGUMENT, "b has 3 dimensions, more than the 2 of out", .a = &a.tensor,
            .b = DENSE(&x, 1024, TN_F32, 1, 3, 4), .out = &c.tensor);
    piece y, z;
    REFUSED(TN_INVALID_ARGUMENT, "b: dimension 0: expected 5, or 1 to serve all, got 2",
            .a = &a.tensor, .b = DENSE(&x, 1024, TN_F32, 2, 3, 4),
            .out = DENSE(&y, 2048, TN_F32, 5, 2, 4));
    REFUSED(TN_INVALID_ARGUMENT, "bias: dimension 0: expected 4, or 1 to serve all, got 2",
            .a = &a.tensor, .b = &b.tensor, .out = &c.tensor, .bias = DENSE(&x, 0, TN_F32, 2));
    REFUSED(TN_INVALID_ARGUMENT, "bias: dimension 0: expected 1, got 2",
            .a = DENSE(&x, 0, TN_F32, 1, 3), .b = &b.tensor, .out = DENSE(&y, 2048, TN_F32, 1, 4),
            .bias = DENSE(&z, 1024, TN_F32, 2, 4));
    REFUSED(TN_INVALID_ARGUMENT, "bias: expected at most 2 dimensions, got 3", .a = &a.tensor,
            .b = &b.tensor, .out = &c.tensor, .bias = DENSE(&x, 0, TN_F32, 1, 2, 4));
    REFUSED(TN_UNSUPPORTED, "a has 9 dimensions; 8 are the most here",
            .a = DENSE(&x, 0, TN_F32, 1, 1, 1, 1, 1, 1, 1, 2, 3), .b = &b.tensor, .out = &c.tensor);
}

static void dtypes_are_checked(void **state)
{
    (void)state;
    piece x;
    pieces(TN_I32, TN_I32);
    REFUSED(TN_UNSUPPORTED,
            "a: expected f64, f32, f16, bf16, i8, c64, c128, f8_e4m3fn or f8_e5m2, got i32",
            .a = &a.tensor, .b = &b.tensor, .out = &c.tensor);
    pieces(TN_F16, TN_F64);
    REFUSED(TN_INVALID_ARGUMENT, "out of a product of f16: expected f16 or f32, got f64",
            .a = &a.tensor, .b = &b.tensor, .out = &c.tensor);
    pieces(TN_F32, TN_F32);
    REFUSED(TN_INVALID_ARGUMENT, "b: expected the dtype of a, f32, got f64", .a = &a.tensor,
            .b = DENSE(&x, 1024, TN_F64, 3, 4), .out = &c.tensor);
    REFUSED(TN_INVALID_ARGUMENT, "bias: expected the dtype of out, f32, got f64", .a = &a.tensor,
            .b = &b.tensor, .out = &c.tensor, .bias = DENSE(&x, 8192, TN_F64, 4));
    pieces(TN_C64, TN_C64);
    REFUSED(TN_INVALID_ARGUMENT, "activation relu: expected real floats in out, got c64",
            .a = &a.tensor, .b = &b.tensor, .out = &c.tensor, .activation = TN_ACT_RELU);
    pieces(TN_I8, TN_I32);
    REFUSED(TN_INVALID_ARGUMENT, "activation silu: expected real floats in out, got i32",
            .a = &a.tensor, .b = &b.tensor, .out = &c.tensor, .activation = TN_ACT_SILU);
}

static void floats_of_8_bits_have_scales(void **state)
{
    piece rows, columns, one, wide;
    (void)state;
    pieces(TN_F8_E4M3FN, TN_F32);
    DENSE(&b, 1024, TN_F8_E5M2, 3, 4);
    DENSE(&rows, 8192, TN_F32, 2, 1);
    DENSE(&columns, 9216, TN_F32, 4);
    NUMBER(&one, 10240, TN_F32);
    const tn_op *op = MAKE(.a = &a.tensor, .b = &b.tensor, .out = &c.tensor);
    assert_int_equal(op->uses, 0);
    assert_int_equal(TN_PARAMS(op, matmul)->acc, TN_F32);
    assert_string_equal(round_trip(op), "matmul:f8_e4m3fn:m=2,n=4,k=3,b=f8_e5m2");
    op = MAKE(.a = &a.tensor, .b = &b.tensor, .out = &c.tensor, .scale_a = &rows.tensor,
              .scale_b = &columns.tensor);
    assert_int_equal(op->uses, TN_MATMUL_USES_SCALES);
    expect_layout(&op->operand[TN_MATMUL_SCALE_A], TN_F32, LIST(2, 4, -1), LIST(1, 0, -1));
    expect_layout(&op->operand[TN_MATMUL_SCALE_B], TN_F32, LIST(2, 4, -1), LIST(0, 1, -1));
    assert_string_equal(round_trip(op), "matmul:f8_e4m3fn:m=2,n=4,k=3,b=f8_e5m2,scale_a=rows,"
                                        "scale_b=columns");
    DENSE(&c, 2048, TN_BF16, 2, 4);
    op = MAKE(.a = &a.tensor, .b = &b.tensor, .out = &c.tensor, .scale_b = &one.tensor);
    assert_int_equal(op->uses, TN_MATMUL_USES_SCALES | TN_MATMUL_USES_OUT_DTYPE);
    assert_string_equal(round_trip(op),
                        "matmul:f8_e4m3fn:m=2,n=4,k=3,b=f8_e5m2,scale_b=tensor,out=bf16");
    REFUSED(TN_INVALID_ARGUMENT, "scale_a: expected one number for all, or one for each row",
            .a = &a.tensor, .b = &b.tensor, .out = &c.tensor, .scale_a = &columns.tensor);
    REFUSED(TN_INVALID_ARGUMENT, "scale_b: expected one number for all, or one for each column",
            .a = &a.tensor, .b = &b.tensor, .out = &c.tensor, .scale_b = &rows.tensor);
    REFUSED(TN_INVALID_ARGUMENT, "scale_a: expected f32, got f64", .a = &a.tensor, .b = &b.tensor,
            .out = &c.tensor, .scale_a = DENSE(&wide, 8192, TN_F64, 2, 1));
    REFUSED(TN_INVALID_ARGUMENT, "scale_b: dimension 0: expected 4, or 1 to serve all, got 3",
            .a = &a.tensor, .b = &b.tensor, .out = &c.tensor,
            .scale_b = DENSE(&wide, 8192, TN_F32, 3));
    pieces(TN_F8_E5M2, TN_F64);
    REFUSED(TN_INVALID_ARGUMENT, "out of a product of f8_e5m2: expected f32, f16 or bf16, got f64",
            .a = &a.tensor, .b = &b.tensor, .out = &c.tensor);
    pieces(TN_F32, TN_F32);
    REFUSED(TN_INVALID_ARGUMENT, "scale_a: f8_e4m3fn and f8_e5m2 have scales, and a is of f32",
            .a = &a.tensor, .b = &b.tensor, .out = &c.tensor, .scale_a = &rows.tensor);
}

/* A caller that was built before there were scales has a shorter struct, with anything behind it. */
/* Where f32 is multiplied: not where sums are f64, or out is i32. */
static void factors_outside_of_f32_are_used(void **state)
{
    (void)state;
    const uint64_t far = TN_MATMUL_USES_FAR_FACTORS;
    static const struct {
        double alpha, beta;
        bool far;
    } cases[] = {{1e50, 0, true},     {1, 1e50, true},      {-1e-50, 0, true}, {1e30, 1e-30, false},
                 {FLT_MAX, 0, false}, {INFINITY, 0, false}, {NAN, 0, false}};
    static const tn_dtype dtypes[][2] = {
        {TN_F32, TN_F32}, {TN_BF16, TN_F32}, {TN_I8, TN_F32}, {TN_F64, TN_F64}, {TN_I8, TN_I32}};
    for (size_t t = 0; t < sizeof dtypes / sizeof dtypes[0]; t++) {
        const bool narrow = dtypes[t][1] == TN_F32;
        pieces(dtypes[t][0], dtypes[t][1]);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            const tn_op *op = MAKE(.a = &a.tensor, .b = &b.tensor, .out = &c.tensor,
                                   .alpha = cases[i].alpha, .beta = cases[i].beta);
            assert_int_equal(op->uses & far, narrow && cases[i].far ? far : 0);
        }
    }
}

static void shorter_arguments_have_no_scales(void **state)
{
    (void)state;
    pieces(TN_F32, TN_F32);
    tn_matmul_args args;
    tn_error err;
    memset(&args, 0xA5, sizeof args);
    const tn_matmul_args given = {.struct_size = TN_UP_TO(tn_matmul_args, workspace_bytes),
                                  .a = &a.tensor,
                                  .b = &b.tensor,
                                  .out = &c.tensor};
    memcpy(&args, &given, given.struct_size);
    if (tni_matmul_make(&args, &problem, &err))
        fail_msg("%s", err.message);
    assert_int_equal(problem.op.uses, 0);
}

static void out_shares_no_byte(void **state)
{
    (void)state;
    piece x, y;
    pieces(TN_F32, TN_F32);
    REFUSED(TN_INVALID_ARGUMENT, "a shares memory with out, which is written while it is read",
            .a = DENSE(&x, 2048, TN_F32, 2, 3), .b = &b.tensor, .out = &c.tensor);
    REFUSED(TN_INVALID_ARGUMENT, "b shares memory with out", .a = &a.tensor,
            .b = DENSE(&x, 2048 + 28, TN_F32, 3, 4), .out = &c.tensor);
    REFUSED(TN_INVALID_ARGUMENT, "bias shares memory with out", .a = &a.tensor, .b = &b.tensor,
            .out = &c.tensor, .bias = &c.tensor);
    REFUSED(TN_INVALID_ARGUMENT, "out: its strides map several elements to the same address",
            .a = &a.tensor, .b = &b.tensor,
            .out = piece_at(&x, 2048, TN_F32, LIST(2, 4, -1), LIST(2, 1, -1)));
    /* Every second element, between those of the other: no byte is shared. */
    piece_at(&x, 2048, TN_F32, LIST(2, 3, -1), LIST(8, 2, -1));
    piece_at(&y, 2048 + 4, TN_F32, LIST(2, 4, -1), LIST(8, 2, -1));
    MAKE(.a = &x.tensor, .b = &b.tensor, .out = &y.tensor);
    piece_at(&y, 2048 + 2, TN_F32, LIST(2, 4, -1), LIST(8, 2, -1));
    REFUSED(TN_INVALID_ARGUMENT, "a shares memory with out", .a = &x.tensor, .b = &b.tensor,
            .out = &y.tensor);
    /* What is read may share with what is read. */
    piece_at(&x, 0, TN_F32, LIST(3, 4, -1), LIST(1, 1, -1));
    MAKE(.a = &a.tensor, .b = &x.tensor, .out = &c.tensor);
}

static void tensors_are_on_one_device(void **state)
{
    (void)state;
    world w;
    tn_tensor far = {0};
    tn_error err;
    world_make(&w, WORLD_CPU | WORLD_ACME, NULL);
    pieces(TN_F32, TN_F32);
    assert_int_equal(tn_tensor_wrap(world_device(&w, "acme:1"), memory, TN_F32, LIST(2, 3), NULL, 2,
                                    NULL, NULL, &far, &err),
                     TN_OK);
    REFUSED(TN_REFUSED, "a is on acme:1 and b on cpu:0; copy one of them", .a = &far,
            .b = &b.tensor, .out = &c.tensor);
    tn_tensor_release(&far);
    world_end(&w);
}

static void plans_serve_free_dimensions(void **state)
{
    (void)state;
    tn_op small, great, free_small, free_great;
    parse("matmul:f32:m=2,n=4,k=3,batch=5,bias=1", &small);
    parse("matmul:f32:m=200,n=400,k=3,batch=5,bias=1", &great);
    assert_false(same_op(&small, &great));
    tni_op_free(&small, TN_MATMUL_DIM_M | TN_MATMUL_DIM_N, &free_small);
    tni_op_free(&great, TN_MATMUL_DIM_M | TN_MATMUL_DIM_N, &free_great);
    assert_true(same_op(&free_small, &free_great));
    assert_int_equal(TN_PARAMS(&free_small, matmul)->k, 3);
    tni_op_free(&great, TN_MATMUL_DIM_M, &free_great);
    assert_false(same_op(&free_small, &free_great));
    tni_op_free(&great, 0, &free_great);
    assert_true(same_op(&great, &free_great));
}

static void texts_are_read(void **state)
{
    (void)state;
    tn_op op;
    parse("matmul:f32:m=2,n=4,k=3,ta=1", &op);
    expect_layout(&op.operand[TN_MATMUL_A], TN_F32, LIST(2, 3, -1), LIST(1, 2, -1));
    parse("matmul:i8:k=0,n=4,m=0", &op);
    assert_true(TN_PARAMS(&op, matmul)->k == 0 && op.operand[TN_MATMUL_OUT].dtype == TN_I32);
    parse("matmul:f64:m=1,n=1,k=1,alpha=0x1.8p+1,beta=-0.25", &op);
    assert_true(TN_PARAMS(&op, matmul)->alpha == 3 && TN_PARAMS(&op, matmul)->beta == -0.25);
    expect_refused("matmul:f32:m=2,n=4", "k is missing");
    expect_refused("matmul:f32:m=-2,n=4,k=1",
                   "m: expected a whole number from 0 to 9223372036854775807, got \"-2\"");
    expect_refused("matmul:f32:m=2,n=4,k=1,ta=2", "ta: expected 0 or 1, got \"2\"");
    expect_refused("matmul:f32:m=2,n=4,k=1,act=gellu", "act: expected one of none relu");
    expect_refused("matmul:f32:m=2,n=4,k=1,out=bf61", "out: no dtype \"bf61\"; did you mean bf16?");
    expect_refused("matmul:f32:m=2,n=4,k=1,batch=2x",
                   "batch: expected up to 6 whole numbers from 0 to 9223372036854775807");
    expect_refused("matmul:f32:m=2,n=4,k=1,batch=1x1x1x1x1x1x1", "batch: expected up to 6");
    expect_refused("matmul:f32:m=2,n=4,k=1,sa=1",
                   "sa: expected 2 strides, one for each dimension, got 1");
    expect_refused("matmul:f32:m=2,n=4,k=1,sa=1;x",
                   "sa: expected up to 8 whole numbers, with ';' between");
    expect_refused("matmul:f32:m=2,n=4,k=1,sc=0;1",
                   "out: its strides map several elements to the same address");
    expect_refused("matmul:f32:m=2,n=4,k=1,alpha=one", "alpha: expected a number, got \"one\"");
    expect_refused("matmul:f32:m=2,n=4,k=1,sbias=1;1", "matmul has no field \"sbias\"");
    expect_refused("matmul:i32:m=2,n=4,k=1",
                   "a: expected f64, f32, f16, bf16, i8, c64, c128, f8_e4m3fn or f8_e5m2, got i32");
    expect_refused("matmul:f32:m=4000000000,n=4000000000,k=4000000000", "63 bits");
    expect_refused("matmul:f32:m=9223372036854775807,n=9223372036854775807,k=9223372036854775807,"
                   "batch=9223372036854775807",
                   "63 bits");
}

/* It is in the text and in what plans are found by, and asks nothing of a kernel. */
static void one_of_several_is_told_apart(void **state)
{
    uint64_t key[TNI_KEY_MOST], other[TNI_KEY_MOST];
    (void)state;
    pieces(TN_F32, TN_F32);
    const tn_op *op = MAKE(.a = &a.tensor, .b = &b.tensor, .out = &c.tensor);
    assert_string_equal(round_trip(op), "matmul:f32:m=2,n=4,k=3");
    tn_op grouped = *op;
    TN_PARAMS_MUTABLE(&grouped, matmul)->grouped = 1;
    assert_string_equal(round_trip(&grouped), "matmul:f32:m=2,n=4,k=3,grouped=1");
    const size_t count = tni_op_key(op, key);
    assert_int_equal(tni_op_key(&grouped, other), count);
    assert_true(memcmp(key, other, count * sizeof key[0]) != 0);
    assert_int_equal(grouped.uses, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_of_several_is_told_apart),
        cmocka_unit_test(plain_matrices_use_nothing),
        cmocka_unit_test(numbers_have_defaults),
        cmocka_unit_test(transposes_are_strides),
        cmocka_unit_test(batches_broadcast),
        cmocka_unit_test(strides_go_any_way),
        cmocka_unit_test(idle_strides_do_not_count),
        cmocka_unit_test(alignment_is_of_the_first_element),
        cmocka_unit_test(arguments_are_checked),
        cmocka_unit_test(shapes_are_checked),
        cmocka_unit_test(dtypes_are_checked),
        cmocka_unit_test(floats_of_8_bits_have_scales),
        cmocka_unit_test(factors_outside_of_f32_are_used),
        cmocka_unit_test(shorter_arguments_have_no_scales),
        cmocka_unit_test(out_shares_no_byte),
        cmocka_unit_test(tensors_are_on_one_device),
        cmocka_unit_test(plans_serve_free_dimensions),
        cmocka_unit_test(texts_are_read),
    };
    return run_suite("unit.ops_matmul", tests);
}
