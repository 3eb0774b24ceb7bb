/* The helper ops: what tensors and arguments make of them, and what is refused. */
#include "ops_elementwise.h"

static piece x, y, z, v;

static void arguments_are_checked(void **state)
{
    (void)state;
    CHECK_ARGS(permute);
    CHECK_ARGS(cast);
    CHECK_ARGS(fill);
    CHECK_ARGS(unary);
    CHECK_ARGS(binary);
    CHECK_ARGS(reduce);
    CHECK_ARGS(softmax);
    CHECK_ARGS(norm);
    CHECK_ARGS(rotary);
    const tn_tensor *in = DENSE(&x, 0, TN_F32, 4), *out = DENSE(&y, 1024, TN_F32, 4);
    REFUSED(permute, "args->reserved has bits", .in = in, .out = out, .reserved = 1);
    REFUSED(unary, "args->reserved has bits", .in = in, .out = out, .reserved = 1);
    REFUSED(binary, "args->reserved has bits", .in = in, .other = in, .out = out, .reserved = 1);
    REFUSED(rotary, "args->reserved has bits", .in = in, .out = out, .reserved = 1);
    REFUSED(norm, "args->set has bits", .in = in, .out = out, .set = 2);
    REFUSED(reduce, "keep: expected 0 or 1, got 2", .in = in, .out = out, .keep = 2);
    REFUSED(softmax, "log: expected 0 or 1, got -1", .in = in, .out = out, .log = -1);
    REFUSED(unary, "in: the tensor is NULL", .out = out);
    REFUSED(fill, "out: the tensor is NULL", .value = 1);
    REFUSED(binary, "other: the tensor is NULL", .in = in, .out = out);
    REFUSED(rotary, "cos: the tensor is NULL", .in = in, .out = out, .sin = in);
    REFUSED(unary, "kind: expected 0 (neg) to 11 (silu), got 12", .in = in, .out = out, .kind = 12);
    REFUSED(binary, "kind: expected 0 (add) to 5 (min), got -1", .in = in, .other = in, .out = out,
            .kind = -1);
    REFUSED(reduce, "kind: expected 0 (sum) to 4 (prod), got 5", .in = in,
            .out = NUMBER(&y, 1024, TN_F32), .kind = 5);
    out = DENSE(&y, 1024, TN_F32, 4);
    REFUSED(norm, "kind: expected 0 (layer) to 1 (rms), got 2", .in = in, .out = out, .kind = 2);
    REFUSED(rotary, "kind: expected 0 (halves) to 1 (pairs), got 2", .in = in, .out = out,
            .cos = DENSE(&z, 2048, TN_F32, 2), .sin = DENSE(&v, 3072, TN_F32, 2), .kind = 2);
}

static void permute_orders_dimensions(void **state)
{
    (void)state;
    const tn_tensor *in = DENSE(&x, 0, TN_I16, 2, 3, 4);
    const tn_op *op = MAKE(permute, .in = in, .out = DENSE(&y, 1024, TN_I16, 2, 3, 4));
    assert_true(op->kind == TN_OP_PERMUTE && op->uses == 0 && op->count == 2);
    assert_int_equal(TN_PARAMS(op, elementwise)->elements, 24);
    assert_string_equal(round_trip(op), "permute:i16:shape=2x3x4");
    const int32_t order[] = {2, 0, 1};
    op = MAKE(permute, .in = in, .out = DENSE(&y, 1024, TN_I16, 4, 2, 3), .order = order,
              .order_count = 3);
    expect_layout(&op->operand[TN_ELEMENTWISE_IN], TN_I16, LIST(4, 2, 3, -1), LIST(1, 12, 4, -1));
    expect_layout(&op->operand[TN_ELEMENTWISE_OUT], TN_I16, LIST(4, 2, 3, -1), LIST(6, 3, 1, -1));
    assert_int_equal(op->uses, TN_ELEMENTWISE_USES_STRIDES);
    assert_string_equal(round_trip(op), "permute:i16:shape=4x2x3,si=1;12;4");
    tn_op said;
    parse("permute:i16:shape=2x3x4,order=2;0;1", &said);
    assert_true(same_op(op, &said));
    parse("permute:i16:shape=2x3x4,order=2;0;1,si=24;8;2", &said); /* si are in's own */
    expect_layout(&said.operand[TN_ELEMENTWISE_IN], TN_I16, LIST(4, 2, 3, -1), LIST(2, 24, 8, -1));
    TEXT(permute, "permute:i8:shape=1x2x1x2x1x2x1x2,align=1;64",
         .in = DENSE(&z, 1, TN_I8, 1, 2, 1, 2, 1, 2, 1, 2),
         .out = DENSE(&v, 4096, TN_I8, 1, 2, 1, 2, 1, 2, 1, 2));
    REFUSED(permute, "out: dimension 0: expected 2, the size of in, got 4", .in = in,
            .out = &y.tensor);
    REFUSED(permute, "out: expected 3 dimensions, as many as in, got 1", .in = in,
            .out = DENSE(&z, 1024, TN_I16, 24));
    REFUSED(permute, "out: expected the dtype of in, i16, got i32; tn_cast", .in = in,
            .out = DENSE(&z, 1024, TN_I32, 2, 3, 4));
    REFUSED(permute, "order: expected 3 numbers, one for each dimension of in, got 2", .in = in,
            .out = &y.tensor, .order = order, .order_count = 2);
    REFUSED(permute, "order is NULL, and order_count is 3", .in = in, .out = &y.tensor,
            .order_count = 3);
    REFUSED(permute, "order[1] is 2: duplicate dimension", .in = in, .out = &y.tensor,
            .order = (const int32_t[]){2, 2, 1}, .order_count = 3);
    REFUSED(permute, "order[2]: expected a dimension of in, 0 to 2, got 3", .in = in,
            .out = &y.tensor, .order = (const int32_t[]){0, 1, 3}, .order_count = 3);
    REFUSED(permute, "order[0]: expected a dimension of in, 0 to 2, got -1", .in = in,
            .out = &y.tensor, .order = (const int32_t[]){-1, 1, 2}, .order_count = 3);
    REFUSED(permute, "in shares memory with out", .in = in, .out = DENSE(&z, 0, TN_I16, 2, 3, 4));
}

static void numbers_have_no_dimensions(void **state)
{
    (void)state;
    const tn_tensor *in = NUMBER(&x, 0, TN_F32), *out = NUMBER(&y, 64, TN_F32);
    TEXT(permute, "permute:f32", .in = in, .out = out);
    TEXT(cast, "cast:f32:to=f32", .in = in, .out = out);
    TEXT(fill, "fill:f32:value=0", .out = out);
    TEXT(unary, "unary:f32:kind=exp", .in = in, .out = out, .kind = TN_UNARY_EXP);
    TEXT(binary, "binary:f32:kind=sub", .in = in, .other = in, .out = out, .kind = TN_BINARY_SUB);
    TEXT(reduce, "reduce:f32:kind=mean,axes=0", .in = in, .out = out, .kind = TN_REDUCE_MEAN);
    assert_true(TN_PARAMS(&problem.op, elementwise)->size == 1 &&
                TN_PARAMS(&problem.op, elementwise)->rows == 1);
    assert_int_equal(TN_PARAMS(&problem.op, elementwise)->elements, 1);
    REFUSED(softmax, "in: expected at least 1 dimension, got 0", .in = in, .out = out);
    REFUSED(norm, "in: expected at least 1 dimension, got 0", .in = in, .out = out);
    REFUSED(rotary, "in: expected at least 1 dimension, got 0", .in = in, .out = out, .cos = in,
            .sin = in);
    tni_buffer text = {0};
    MAKE(permute, .in = in, .out = out);
    tni_problem_write(&problem.op, "cpu:0", &text);
    assert_string_equal(tni_buffer_text(&text), "permute:f32@cpu:0");
    tni_buffer_release(&text);
}

static void cast_takes_any_dtypes(void **state)
{
    (void)state;
    static const tn_dtype dtypes[] = {
#define DTYPE(name, word, code, bits) name,
        TN_DTYPE_LIST(DTYPE)
#undef DTYPE
    };
    enum { COUNT = sizeof dtypes / sizeof dtypes[0] };
    for (size_t i = 0; i < COUNT * COUNT; i++) {
        const tn_tensor *in = DENSE(&x, 0, dtypes[i / COUNT], 3, 5);
        MAKE(cast, .in = in, .out = DENSE(&y, 1024, dtypes[i % COUNT], 3, 5));
        assert_int_equal(problem.op.uses, 0);
    }
    const tn_tensor *in = DENSE(&x, 0, TN_F32, 128, 64);
    TEXT(cast, "cast:f32:shape=128x64,to=bf16", .in = in,
         .out = DENSE(&y, 1 << 15, TN_BF16, 128, 64));
    REFUSED(cast, "in shares memory with out", .in = in, .out = DENSE(&y, 0, TN_BF16, 128, 64));
    REFUSED(cast, "out: dimension 1: expected 64, the size of in, got 32", .in = in,
            .out = DENSE(&y, 1 << 15, TN_BF16, 128, 32));
    TEXT(cast, "cast:f32:shape=128x64,to=f32,inplace=1", .in = in, .out = in);
    expect_refused("cast:f32:shape=4", "to is missing");
    expect_refused("cast:f32:shape=4,to=f33", "to: no dtype \"f33\"; did you mean f32?");
    expect_refused("cast:f32:shape=4,to=f64,inplace=1",
                   "in place, out needs the dtype, strides and alignment of in");
}

static void fill_has_no_input(void **state)
{
    (void)state;
    const tn_tensor *out = DENSE(&y, 0, TN_F32, 10);
    const tn_op *op = MAKE(fill, .out = out, .value = 1.5);
    assert_true(op->uses == 0 && op->count == 2 &&
                op->operand[TN_ELEMENTWISE_IN].dtype == TN_DTYPE_NONE);
    assert_true(problem.data[TN_ELEMENTWISE_IN] == NULL &&
                problem.data[TN_ELEMENTWISE_OUT] == memory);
    assert_true(TN_PARAMS(op, elementwise)->value == 1.5 &&
                TN_PARAMS(op, elementwise)->elements == 10);
    assert_string_equal(round_trip(op), "fill:f32:shape=10,value=1.5");
    TEXT(fill, "fill:f32:shape=10,value=0.1", .out = out, .value = 0.1);
    TEXT(fill, "fill:f32:shape=10,value=0x1.999999999999bp-4", .out = out,
         .value = 0x1.999999999999bp-4);
    TEXT(fill, "fill:f32:shape=10,value=-0", .out = out, .value = -0.0);
    TEXT(fill, "fill:f32:shape=10,value=-inf", .out = out, .value = -INFINITY);
    MAKE(fill, .out = out, .value = NAN);
    TEXT(fill, "fill:c64:shape=2x5,value=1,imaginary=-2,so=1;2",
         .out = piece_at(&x, 0, TN_C64, LIST(2, 5, -1), LIST(1, 2, -1)), .value = 1,
         .imaginary = -2);
    MAKE(fill, .out = &x.tensor, .imaginary = -0.0);
    MAKE(fill, .out = out, .imaginary = -0.0);
    REFUSED(fill, "imaginary: expected complex numbers in out, got f32", .out = out,
            .imaginary = 1);
    REFUSED(fill, "several elements to the same address",
            .out = piece_at(&x, 0, TN_F32, LIST(10, -1), LIST(0, -1)));
}

static void unary_takes_what_has_a_meaning(void **state)
{
    (void)state;
    const tn_tensor *in = DENSE(&x, 0, TN_F32, 6, 7), *out = DENSE(&y, 4096, TN_F32, 6, 7);
    TEXT(unary, "unary:f32:kind=gelu-tanh,shape=6x7", .in = in, .out = out,
         .kind = TN_UNARY_GELU_TANH);
    assert_int_equal(problem.op.uses, 0);
    TEXT(unary, "unary:f32:kind=neg,shape=6x7,inplace=1", .in = in, .out = in);
    assert_int_equal(problem.op.uses, TN_ELEMENTWISE_USES_IN_PLACE);
    REFUSED(unary, "in shares memory with out", .in = in, .out = DENSE(&z, 28, TN_F32, 6, 7));
    REFUSED(unary, "in shares memory with out", .in = in,
            .out = piece_at(&z, 0, TN_F32, LIST(6, 7, -1), LIST(1, 6, -1)));
    TEXT(unary, "unary:bf16:kind=silu,shape=4,out=f32", .in = DENSE(&x, 0, TN_BF16, 4),
         .out = DENSE(&y, 4096, TN_F32, 4), .kind = TN_UNARY_SILU);
    assert_int_equal(problem.op.uses, TN_ELEMENTWISE_USES_OUT_DTYPE);
    REFUSED(unary, "out: expected the dtype of in, bf16, or f32, got f64", .in = &x.tensor,
            .out = DENSE(&y, 4096, TN_F64, 4));
    REFUSED(unary, "out: expected the dtype of in, f32, got bf16", .in = DENSE(&x, 0, TN_F32, 4),
            .out = DENSE(&y, 4096, TN_BF16, 4));
    REFUSED(unary, "out: dimension 0: expected 4, the size of in, got 5", .in = &x.tensor,
            .out = DENSE(&y, 4096, TN_F32, 5));
    in = DENSE(&x, 0, TN_I32, 4), out = DENSE(&y, 4096, TN_I32, 4);
    MAKE(unary, .in = in, .out = out, .kind = TN_UNARY_RELU);
    REFUSED(unary, "exp: in: expected floats, got i32; cast it first", .in = in, .out = out,
            .kind = TN_UNARY_EXP);
    REFUSED(unary, "gelu: in: expected floats, got i32", .in = in, .out = out,
            .kind = TN_UNARY_GELU);
    in = DENSE(&x, 0, TN_C64, 4), out = DENSE(&y, 4096, TN_C64, 4);
    MAKE(unary, .in = in, .out = out, .kind = TN_UNARY_NEG);
    REFUSED(unary, "exp: in: expected floats, got c64", .in = in, .out = out, .kind = TN_UNARY_EXP);
    REFUSED(unary, "abs: in: expected integers or floats, got c64", .in = in, .out = out,
            .kind = TN_UNARY_ABS);
    in = DENSE(&x, 0, TN_BOOL, 4), out = DENSE(&y, 4096, TN_BOOL, 4);
    REFUSED(unary, "neg: in: expected integers, floats or complex numbers, got bool", .in = in,
            .out = out);
}

static void uses_say_how_operands_lie(void **state)
{
    (void)state;
    const tn_tensor *out = DENSE(&y, 8192, TN_F32, 6, 7);
    const tn_tensor *apart = piece_at(&x, 256, TN_F32, LIST(6, 7, -1), LIST(8, 1, -1));
    TEXT(unary, "unary:f32:kind=neg,shape=6x7,si=8;1", .in = apart, .out = out);
    assert_int_equal(problem.op.uses, TN_ELEMENTWISE_USES_STRIDES);
    TEXT(unary, "unary:f32:kind=neg,shape=6x7,si=7;-1",
         .in = piece_at(&x, 256, TN_F32, LIST(6, 7, -1), LIST(7, LESS, -1)), .out = out);
    assert_int_equal(problem.op.uses, TN_ELEMENTWISE_USES_STRIDES);
    TEXT(unary, "unary:f32:kind=neg,shape=6x7,si=0;1",
         .in = piece_at(&x, 256, TN_F32, LIST(6, 7, -1), LIST(0, 1, -1)), .out = out);
    assert_int_equal(problem.op.uses, TN_ELEMENTWISE_USES_BROADCAST);
    TEXT(unary, "unary:f32:kind=neg,shape=6x7,si=1;0",
         .in = piece_at(&x, 256, TN_F32, LIST(6, 7, -1), LIST(1, 0, -1)), .out = out);
    assert_int_equal(problem.op.uses, TN_ELEMENTWISE_USES_BROADCAST);
    MAKE(unary, .in = piece_at(&x, 256, TN_F32, LIST(6, 7, -1), LIST(2, 0, -1)), .out = out);
    assert_int_equal(problem.op.uses, TN_ELEMENTWISE_USES_BROADCAST | TN_ELEMENTWISE_USES_STRIDES);
    out = DENSE(&y, 8192, TN_F32, 1, 7);
    MAKE(unary, .in = piece_at(&x, 256, TN_F32, LIST(1, 7, -1), LIST(0, 1, -1)), .out = out);
    assert_int_equal(problem.op.uses, 0);
    out = DENSE(&y, 8192, TN_F32, 3, 0, 7);
    TEXT(unary, "unary:f32:kind=neg,shape=3x0x7", .out = out,
         .in = piece_at(&x, 256, TN_F32, LIST(3, 0, 7, -1), LIST(0, 99, INT64_MIN, -1)));
    assert_int_equal(problem.op.uses, 0);
    assert_int_equal(TN_PARAMS(&problem.op, elementwise)->elements, 0);
}

static void binary_broadcasts(void **state)
{
    (void)state;
    const tn_tensor *row = DENSE(&x, 0, TN_F32, 7), *column = DENSE(&z, 1024, TN_F32, 6, 1);
    const tn_tensor *out = DENSE(&y, 4096, TN_F32, 6, 7);
    const tn_op *op = MAKE(binary, .in = row, .other = column, .out = out, .kind = TN_BINARY_DIV);
    expect_layout(&op->operand[TN_ELEMENTWISE_IN], TN_F32, LIST(6, 7, -1), LIST(0, 1, -1));
    expect_layout(&op->operand[TN_ELEMENTWISE_OTHER], TN_F32, LIST(6, 7, -1), LIST(1, 0, -1));
    assert_int_equal(op->uses, TN_ELEMENTWISE_USES_BROADCAST);
    assert_string_equal(round_trip(op), "binary:f32:kind=div,shape=6x7,si=0;1,s2=1;0");
    double flops, bytes;
    tni_binary_class.cost(op, &flops, &bytes);
    assert_true(flops == 42 && bytes == (6 + 7 + 42) * 4);
    TEXT(binary, "binary:f32:kind=add,shape=6x7,s2=0;0,inplace=1", .in = out, .out = out,
         .other = NUMBER(&v, 2048, TN_F32));
    assert_int_equal(op->uses, TN_ELEMENTWISE_USES_BROADCAST | TN_ELEMENTWISE_USES_IN_PLACE);
    REFUSED(binary, "other shares memory with out", .in = row, .other = out, .out = out);
    REFUSED(binary, "in shares memory with out", .in = DENSE(&v, 4096, TN_F32, 1, 7),
            .other = column, .out = out);
    REFUSED(binary, "other: dimension 0: expected 7, or 1 to serve all, got 6", .in = row,
            .other = DENSE(&v, 2048, TN_F32, 6), .out = out);
    REFUSED(binary, "in: expected at most 2 dimensions, got 3",
            .in = DENSE(&v, 2048, TN_F32, 1, 6, 7), .other = column, .out = out);
    REFUSED(binary, "other: expected the dtype of in, f32, got f64", .in = row, .out = out,
            .other = DENSE(&v, 2048, TN_F64, 7));
    REFUSED(binary, "out: expected the dtype of in, f32, got f64", .in = row, .other = column,
            .out = DENSE(&v, 8192, TN_F64, 6, 7));
    out = DENSE(&y, 4096, TN_C64, 2), row = DENSE(&x, 0, TN_C64, 2);
    REFUSED(binary, "max: in: expected integers or floats, got c64", .in = row, .other = row,
            .out = out, .kind = TN_BINARY_MAX);
    out = DENSE(&y, 4096, TN_BOOL, 2), row = DENSE(&x, 0, TN_BOOL, 2);
    REFUSED(binary, "min: in: expected integers or floats, got bool; cast it first", .in = row,
            .other = row, .out = out, .kind = TN_BINARY_MIN);
    REFUSED(binary, "add: in: expected integers, floats or complex numbers, got bool", .in = row,
            .other = row, .out = out);
}

static void reduce_puts_axes_last(void **state)
{
    (void)state;
    const tn_tensor *in = DENSE(&x, 0, TN_F32, 2, 3, 4, 5);
    const tn_op *op = MAKE(reduce, .in = in, .out = DENSE(&y, 1024, TN_F32, 3, 5), .axes = 5,
                           .kind = TN_REDUCE_SUM);
    expect_layout(&op->operand[TN_ELEMENTWISE_IN], TN_F32, LIST(3, 5, 2, 4, -1),
                  LIST(20, 1, 60, 5, -1));
    expect_layout(&op->operand[TN_ELEMENTWISE_OUT], TN_F32, LIST(3, 5, 1, 1, -1),
                  LIST(5, 1, 0, 0, -1));
    const tn_elementwise_op *each = TN_PARAMS(op, elementwise);
    assert_true(each->axes == 2 && each->size == 8 && each->rows == 15 && each->elements == 15);
    assert_int_equal(op->uses, TN_ELEMENTWISE_USES_STRIDES);
    assert_string_equal(round_trip(op), "reduce:f32:kind=sum,shape=3x5x2x4,axes=2,si=20;1;60;5");
    tn_op dropped = *op;
    op = MAKE(reduce, .in = in, .out = DENSE(&y, 1024, TN_F32, 1, 3, 1, 5), .axes = 5, .keep = 1);
    assert_true(same_op(op, &dropped));
    TEXT(reduce, "reduce:f32:kind=max,shape=2x3x4x5,axes=1", .in = in,
         .out = DENSE(&y, 1024, TN_F32, 2, 3, 4), .axes = 8, .kind = TN_REDUCE_MAX);
    assert_int_equal(problem.op.uses, 0);
    TEXT(reduce, "reduce:f32:kind=prod,shape=2x3x4x5,axes=4", .in = in,
         .out = NUMBER(&y, 1024, TN_F32), .kind = TN_REDUCE_PROD);
    TEXT(reduce, "reduce:f32:kind=sum,shape=2x3x4x5,axes=1,so=1;2;6;0", .in = in, .axes = 8,
         .out = piece_at(&y, 1024, TN_F32, LIST(2, 3, 4, -1), LIST(1, 2, 6, -1)));
    REFUSED(reduce, "axes: expected bits of in's 4 dimensions, got 0x11", .in = in,
            .out = &y.tensor, .axes = 17);
    REFUSED(reduce, "out: expected 2 dimensions, got 3", .in = in, .out = &y.tensor, .axes = 12);
    REFUSED(reduce, "out: expected 4 dimensions, with 1 for those that are reduced, got 3",
            .in = in, .out = &y.tensor, .axes = 12, .keep = 1);
    REFUSED(reduce, "out: dimension 1: expected 5, got 4", .in = in,
            .out = DENSE(&y, 1024, TN_F32, 3, 4), .axes = 5);
    REFUSED(reduce, "out: dimension 2: expected 1, got 4", .in = in,
            .out = DENSE(&y, 1024, TN_F32, 1, 3, 4, 5), .axes = 5, .keep = 1);
    REFUSED(reduce, "in shares memory with out", .in = in, .out = NUMBER(&y, 476, TN_F32));
}

static void reduce_knows_its_dtypes(void **state)
{
    (void)state;
    static const struct {
        tn_dtype in, out;
        int32_t kind;
        const char *why; /* NULL: fine */
    } cases[] = {
        {TN_F16, TN_F32, TN_REDUCE_SUM, NULL},
        {TN_BF16, TN_BF16, TN_REDUCE_MEAN, NULL},
        {TN_I8, TN_I64, TN_REDUCE_SUM, NULL},
        {TN_U32, TN_I64, TN_REDUCE_PROD, NULL},
        {TN_U64, TN_U64, TN_REDUCE_MAX, NULL},
        {TN_C64, TN_C64, TN_REDUCE_MEAN, NULL},
        {TN_BOOL, TN_I64, TN_REDUCE_SUM, NULL},
        {TN_BOOL, TN_BOOL, TN_REDUCE_MAX, NULL},
        {TN_F32, TN_F64, TN_REDUCE_SUM, "out of sum of f32: expected f32, got f64"},
        {TN_F16, TN_F64, TN_REDUCE_MAX, "out of max of f16: expected f16 or f32, got f64"},
        {TN_I8, TN_I32, TN_REDUCE_SUM, "out of sum of i8: expected i8 or i64, got i32"},
        {TN_U64, TN_I64, TN_REDUCE_SUM, "out of sum of u64: expected u64, got i64"},
        {TN_BOOL, TN_BOOL, TN_REDUCE_SUM, "out of sum of bool: expected i64, got bool"},
        {TN_BOOL, TN_I64, TN_REDUCE_MAX, "out of max of bool: expected bool, got i64"},
        {TN_I32, TN_I32, TN_REDUCE_MEAN, "mean: in: expected floats or complex numbers, got i32"},
        {TN_C64, TN_C64, TN_REDUCE_MIN, "min: in: expected bool, integers or floats, got c64"},
        {TN_BOOL, TN_I64, TN_REDUCE_PROD, "prod: in: expected integers, floats or complex numbers"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        DENSE(&x, 0, cases[i].in, 4);
        NUMBER(&y, 1024, cases[i].out);
        if (cases[i].why)
            REFUSED(reduce, cases[i].why, .in = &x.tensor, .out = &y.tensor, .kind = cases[i].kind);
        else
            MAKE(reduce, .in = &x.tensor, .out = &y.tensor, .kind = cases[i].kind);
    }
}

static void reduce_of_nothing(void **state)
{
    (void)state;
    const tn_tensor *in = DENSE(&x, 0, TN_F32, 3, 0), *out = DENSE(&y, 1024, TN_F32, 3);
    TEXT(reduce, "reduce:f32:kind=sum,shape=3x0,axes=1", .in = in, .out = out, .axes = 2);
    assert_true(TN_PARAMS(&problem.op, elementwise)->rows == 3 &&
                TN_PARAMS(&problem.op, elementwise)->size == 0);
    REFUSED(reduce, "max of no elements is nothing", .in = in, .out = out, .axes = 2,
            .kind = TN_REDUCE_MAX);
    REFUSED(reduce, "min of no elements is nothing", .in = in, .out = NUMBER(&z, 2048, TN_F32),
            .kind = TN_REDUCE_MIN);
    MAKE(reduce, .in = in, .out = DENSE(&y, 1024, TN_F32, 0), .axes = 1, .kind = TN_REDUCE_MAX);
    MAKE(reduce, .in = DENSE(&x, 0, TN_F32, 0, 0), .out = &y.tensor, .axes = 2,
         .kind = TN_REDUCE_MAX);
    expect_refused("reduce:f32:kind=sum,shape=3x4,axes=0", "axes: expected 1 to 2 of in's last");
    expect_refused("reduce:f32:kind=sum,shape=3x4,axes=3", "dimensions, got 3");
    expect_refused("reduce:f32:kind=sum,shape=3x4,axes=99999999999", "axes: expected 1 to 2");
    expect_refused("reduce:f32:kind=sum,axes=1", "axes: expected 0 to 0");
    expect_refused("reduce:f32:kind=sun,shape=3x4", "; did you mean sum?");
    tn_op op;
    parse("reduce:f32:kind=sum,shape=3x4", &op);
    assert_int_equal(TN_PARAMS(&op, elementwise)->axes, 2);
}

static void softmax_is_along_any_dimension(void **state)
{
    (void)state;
    const tn_tensor *in = DENSE(&x, 0, TN_F32, 2, 3, 4), *out = DENSE(&y, 1024, TN_F32, 2, 3, 4);
    const tn_op *op = MAKE(softmax, .in = in, .out = out);
    assert_true(op->uses == 0 && TN_PARAMS(op, elementwise)->rows == 6 &&
                TN_PARAMS(op, elementwise)->size == 4);
    assert_string_equal(round_trip(op), "softmax:f32:shape=2x3x4");
    op = MAKE(softmax, .in = in, .out = out, .axis = 2, .log = 1);
    assert_int_equal(op->uses, TN_ELEMENTWISE_USES_STRIDES | TN_ELEMENTWISE_USES_LOG);
    expect_layout(&op->operand[TN_ELEMENTWISE_IN], TN_F32, LIST(3, 4, 2, -1), LIST(4, 1, 12, -1));
    expect_layout(&op->operand[TN_ELEMENTWISE_OUT], TN_F32, LIST(3, 4, 2, -1), LIST(4, 1, 12, -1));
    assert_true(TN_PARAMS(op, elementwise)->rows == 12 && TN_PARAMS(op, elementwise)->size == 2);
    assert_string_equal(round_trip(op), "softmax:f32:shape=3x4x2,log=1,si=4;1;12,so=4;1;12");
    TEXT(softmax, "softmax:f32:shape=2x4x3,si=12;1;4,so=12;1;4,inplace=1", .in = in, .out = in,
         .axis = 1);
    REFUSED(softmax, "axis counts from the last dimension: expected 0 to 2, got 3", .in = in,
            .out = out, .axis = 3);
    REFUSED(softmax, "expected 0 to 2, got -1", .in = in, .out = out, .axis = -1);
    REFUSED(softmax, "out: dimension 0: expected 2, the size of in, got 4", .in = in,
            .out = DENSE(&z, 1024, TN_F32, 4, 3, 2), .axis = 2);
    UNSUPPORTED(softmax, "in: expected f64, f32, f16 or bf16, got i8", .in = DENSE(&z, 0, TN_I8, 4),
                .out = DENSE(&v, 1024, TN_I8, 4));
    REFUSED(softmax, "out: expected the dtype of in, f64, got f32", .in = DENSE(&z, 0, TN_F64, 4),
            .out = DENSE(&v, 1024, TN_F32, 4));
    expect_refused("softmax:f32", "shape is missing");
    expect_refused("softmax:f32:shape=4,log=2", "log: expected 0 or 1, got \"2\"");
}

static void norm_has_rows_for_all(void **state)
{
    (void)state;
    const tn_tensor *in = DENSE(&x, 0, TN_BF16, 6, 8), *out = DENSE(&y, 1024, TN_BF16, 6, 8);
    const tn_op *op = MAKE(norm, .in = in, .out = out);
    assert_true(op->uses == 0 && TN_PARAMS(op, elementwise)->rows == 6 &&
                TN_PARAMS(op, elementwise)->size == 8);
    assert_true(TN_PARAMS(op, elementwise)->value == 1e-5);
    assert_string_equal(round_trip(op), "norm:bf16:kind=layer,shape=6x8");
    op = MAKE(norm, .in = in, .out = out, .weight = DENSE(&z, 2048, TN_BF16, 8),
              .bias = DENSE(&v, 3072, TN_F32, 1, 8), .kind = TN_NORM_RMS, .epsilon = 1e-6);
    expect_layout(&op->operand[TN_NORM_WEIGHT], TN_BF16, LIST(6, 8, -1), LIST(0, 1, -1));
    expect_layout(&op->operand[TN_NORM_BIAS], TN_F32, LIST(6, 8, -1), LIST(0, 1, -1));
    assert_int_equal(op->uses, TN_ELEMENTWISE_USES_WEIGHT | TN_ELEMENTWISE_USES_BIAS);
    assert_string_equal(round_trip(op), "norm:bf16:kind=rms,shape=6x8,eps=1e-06,weight=1,bias=f32");
    TEXT(norm, "norm:bf16:kind=layer,shape=6x8,eps=0,bias=1,sbias=0;2,inplace=1", .in = in,
         .out = in, .set = TN_NORM_SET_EPSILON,
         .bias = piece_at(&v, 3072, TN_BF16, LIST(8, -1), LIST(2, -1)));
    assert_int_equal(problem.op.uses, TN_ELEMENTWISE_USES_BIAS | TN_ELEMENTWISE_USES_STRIDES |
                                          TN_ELEMENTWISE_USES_IN_PLACE);
    MAKE(norm, .in = in, .out = out, .weight = DENSE(&z, 2048, TN_BF16, 8));
    double flops, bytes;
    tni_norm_class.cost(&problem.op, &flops, &bytes);
    assert_true(flops == 6 * 48 && bytes == (48 + 48 + 8) * 2);
    REFUSED(norm, "weight: expected 8 elements, as many as a row of in, got 6", .in = in,
            .out = out, .weight = DENSE(&z, 2048, TN_BF16, 6));
    REFUSED(norm, "bias: expected 8 elements, as many as a row of in, got 1", .in = in, .out = out,
            .bias = NUMBER(&z, 2048, TN_BF16));
    REFUSED(norm, "weight: dimension 0: expected 1 (one row for all), got 6", .in = in, .out = out,
            .weight = DENSE(&z, 2048, TN_BF16, 6, 8));
    REFUSED(norm, "weight: expected the dtype of in, bf16, or f32, got f16", .in = in, .out = out,
            .weight = DENSE(&z, 2048, TN_F16, 8));
    REFUSED(norm, "epsilon: expected a finite number of at least 0, got -1", .in = in, .out = out,
            .epsilon = -1);
    REFUSED(norm, "epsilon: expected a finite number of at least 0, got inf", .in = in, .out = out,
            .epsilon = INFINITY);
    REFUSED(norm, "out: expected the dtype of in, bf16, or f32, got f64", .in = in,
            .out = DENSE(&z, 2048, TN_F64, 6, 8));
    REFUSED(norm, "out: dimension 0: expected 6, the size of in, got 5", .in = in,
            .out = DENSE(&z, 2048, TN_BF16, 5, 8));
    TEXT(norm, "norm:f32:kind=layer,shape=1x8,weight=1", .in = DENSE(&x, 0, TN_F32, 1, 8),
         .out = DENSE(&y, 1024, TN_F32, 1, 8), .weight = DENSE(&z, 2048, TN_F32, 8));
    REFUSED(norm, "weight shares memory with out", .in = DENSE(&x, 0, TN_F32, 8),
            .out = DENSE(&y, 1024, TN_F32, 8), .weight = &y.tensor);
    UNSUPPORTED(norm, "in: expected f64, f32, f16 or bf16, got c64", .in = DENSE(&x, 0, TN_C64, 8),
                .out = DENSE(&y, 1024, TN_C64, 8));
    expect_refused("norm:f32:kind=layer,shape=2x4,weight=f23", "weight: no dtype \"f23\"");
    expect_refused("norm:float:kind=layer,shape=2x4", "no dtype \"float\"; did you mean f32?");
    expect_refused("norm:real:kind=layer,shape=2x4", "no dtype \"real\"; there are i8, i16,");
    expect_refused("norm:f32:shape=2x4", "kind is missing");
    expect_refused("norm:f32:kind=layer,shape=2x4,weight=1,sweight=4;1", "one row for all");
}

static void rotary_broadcasts_its_angles(void **state)
{
    (void)state;
    const tn_tensor *in = DENSE(&x, 0, TN_F16, 1, 3, 5, 8);
    const tn_tensor *out = DENSE(&y, 1024, TN_F16, 1, 3, 5, 8);
    const tn_tensor *cos = DENSE(&z, 2048, TN_F16, 5, 4), *sin = DENSE(&v, 3072, TN_F32, 5, 4);
    const tn_op *op = MAKE(rotary, .in = in, .out = out, .cos = cos, .sin = sin);
    assert_int_equal(op->uses, TN_ELEMENTWISE_USES_BROADCAST);
    assert_true(TN_PARAMS(op, elementwise)->rows == 15 && TN_PARAMS(op, elementwise)->size == 8);
    expect_layout(&op->operand[TN_ROTARY_COS], TN_F16, LIST(1, 3, 5, 4, -1), LIST(1, 0, 4, 1, -1));
    assert_string_equal(round_trip(op), "rotary:f16:kind=halves,shape=1x3x5x8,sin=f32");
    op = MAKE(rotary, .in = in, .out = in, .cos = DENSE(&z, 2048, TN_F16, 5, 2),
              .sin = DENSE(&v, 3072, TN_F16, 5, 2), .size = 4, .kind = TN_ROTARY_PAIRS);
    assert_int_equal(op->uses, TN_ELEMENTWISE_USES_BROADCAST | TN_ELEMENTWISE_USES_PARTIAL |
                                   TN_ELEMENTWISE_USES_IN_PLACE);
    assert_string_equal(round_trip(op), "rotary:f16:kind=pairs,shape=1x3x5x8,size=4,inplace=1");
    op = MAKE(rotary, .in = in, .out = out, .cos = DENSE(&z, 2048, TN_F16, 3, 5, 2),
              .sin = DENSE(&v, 3072, TN_F16, 3, 5, 2), .size = 4);
    assert_int_equal(op->uses, TN_ELEMENTWISE_USES_PARTIAL);
    assert_string_equal(round_trip(op), "rotary:f16:kind=halves,shape=1x3x5x8,size=4,"
                                        "scos=1;10;2;1,ssin=1;10;2;1");
    REFUSED(rotary, "size: expected an even number up to in's last dimension, 8, got 3", .in = in,
            .out = out, .cos = cos, .sin = sin, .size = 3);
    REFUSED(rotary, "last dimension, 8, got 10", .in = in, .out = out, .cos = cos, .sin = sin,
            .size = 10);
    REFUSED(rotary, "last dimension, 8, got -2", .in = in, .out = out, .cos = cos, .sin = sin,
            .size = -2);
    REFUSED(rotary, "cos: dimension 2: expected 4, or 1 to serve all, got 2", .in = in, .out = out,
            .cos = &z.tensor, .sin = sin);
    REFUSED(rotary, "sin: expected the dtype of in, f16, or f32, got f64", .in = in, .out = out,
            .cos = DENSE(&z, 2048, TN_F16, 5, 4), .sin = DENSE(&v, 3072, TN_F64, 5, 4));
    TEXT(rotary, "rotary:f16:kind=halves,shape=5x0", .in = DENSE(&x, 0, TN_F16, 5, 0),
         .out = DENSE(&y, 1024, TN_F16, 5, 0), .cos = DENSE(&z, 2048, TN_F16, 5, 0),
         .sin = DENSE(&v, 3072, TN_F16, 5, 0));
    tn_op said;
    parse("rotary:bf16:kind=halves,shape=1x24x4096x128,size=64", &said);
    assert_int_equal(said.uses, TN_ELEMENTWISE_USES_BROADCAST | TN_ELEMENTWISE_USES_PARTIAL);
    expect_refused("rotary:f32:kind=halves,shape=4x5", "last dimension, 5, got 5");
    expect_refused("rotary:f32:kind=halves", "shape is missing");
}

static void costs_are_counted(void **state)
{
    (void)state;
    static const struct {
        const char *problem;
        double flops, bytes;
    } cases[] = {
        {"permute:f32:shape=2x3", 0, 48},
        {"fill:f64:shape=2x3,value=1", 0, 48},
        {"cast:f32:shape=2x3,to=bf16", 6, 36},
        {"unary:f32:kind=neg,shape=2x3", 6, 48},
        {"unary:f32:kind=abs,shape=2x3", 6, 48},
        {"unary:f32:kind=relu,shape=2x3", 6, 48},
        {"unary:f32:kind=exp,shape=2x3", 60, 48},
        {"binary:f32:kind=sub,shape=2x3", 6, 72},
        {"binary:f32:kind=sub,shape=2x3,s2=0;0", 6, 52},
        {"reduce:f32:kind=sum,shape=2x3,axes=1", 6, 32},
        {"softmax:f32:shape=2x3", 84, 48},
        {"norm:f32:kind=layer,shape=2x3", 30, 48},
        {"norm:f32:kind=rms,shape=2x3,weight=1,bias=1", 30, 72},
        {"rotary:f32:kind=pairs,shape=5x2x6,size=4", 120, 2 * 240 + 2 * 16},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double flops, bytes;
        tn_op op;
        parse(cases[i].problem, &op);
        tni_op_class_of(op.kind)->cost(&op, &flops, &bytes);
        if (flops != cases[i].flops || bytes != cases[i].bytes)
            fail_msg("%s: %g operations, %g bytes", cases[i].problem, flops, bytes);
    }
}

static void plans_serve_all_shapes(void **state)
{
    (void)state;
    tn_op a, b;
    parse("softmax:f32:shape=2x3", &a);
    parse("softmax:f32:shape=20x300", &b);
    assert_false(same_op(&a, &b));
    tni_op_free(&a, TN_ELEMENTWISE_DIM_ALL, &a);
    tni_op_free(&b, TN_ELEMENTWISE_DIM_ALL, &b);
    assert_true(same_op(&a, &b));
    parse("softmax:f32:shape=20x300,log=1", &b);
    tni_op_free(&b, TN_ELEMENTWISE_DIM_ALL, &b);
    assert_false(same_op(&a, &b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_are_checked),
        cmocka_unit_test(permute_orders_dimensions),
        cmocka_unit_test(numbers_have_no_dimensions),
        cmocka_unit_test(cast_takes_any_dtypes),
        cmocka_unit_test(fill_has_no_input),
        cmocka_unit_test(unary_takes_what_has_a_meaning),
        cmocka_unit_test(uses_say_how_operands_lie),
        cmocka_unit_test(binary_broadcasts),
        cmocka_unit_test(reduce_puts_axes_last),
        cmocka_unit_test(reduce_knows_its_dtypes),
        cmocka_unit_test(reduce_of_nothing),
        cmocka_unit_test(softmax_is_along_any_dimension),
        cmocka_unit_test(norm_has_rows_for_all),
        cmocka_unit_test(rotary_broadcasts_its_angles),
        cmocka_unit_test(costs_are_counted),
        cmocka_unit_test(plans_serve_all_shapes),
    };
    return run_suite("unit.ops_each", tests);
}
