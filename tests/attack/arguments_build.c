/* Valid arguments of every operator, with random sizes and contents. */
#include "arguments.h"

/* A dense operand of random bytes. */
static const tn_tensor *add_operand(call *c, tn_dtype dtype, int ndim, const int64_t *shape,
                                    bool written)
{
    operand *o = &c->operands[c->count++];
    o->written = written;
    for (size_t i = 0; i < MEMORY + 2 * GUARD; i += 8) {
        uint64_t bits = dice_next(c->dice);
        memcpy(o->memory + i, &bits, sizeof bits);
    }
    int64_t step = 1;
    for (int i = ndim; i-- > 0;) {
        o->shape[i] = shape[i];
        o->strides[i] = step;
        step *= shape[i] > 0 ? shape[i] : 1;
    }
    for (int i = ndim; i < NDIM; i++)
        o->shape[i] = o->strides[i] = 1;
    o->tensor = (tn_tensor){.data = o->memory + GUARD,
                            .device_type = TN_DLPACK_CPU,
                            .ndim = ndim,
                            .dtype = dtype,
                            .shape = o->shape,
                            .strides = dice_one_in(c->dice, 2) ? o->strides : NULL};
    return &o->tensor;
}

static tn_dtype random_float(dice *d)
{
    static const tn_dtype floats[] = {TN_F32, TN_F64, TN_F16, TN_BF16};
    return DICE_PICK(d, floats);
}

tn_dtype random_any_dtype(dice *d)
{
    static const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_F16, TN_BF16, TN_I8,   TN_I16,
                                      TN_I32, TN_I64, TN_U8,  TN_C64,  TN_C128, TN_BOOL};
    return DICE_PICK(d, dtypes);
}

/* Random sizes for up to four dimensions; returns how many. */
static int random_shape(dice *d, int least, int64_t shape[4])
{
    int ndim = (int)dice_range(d, least, 4);
    for (int i = 0; i < ndim; i++)
        shape[i] = dice_range(d, dice_one_in(d, 10) ? 0 : 1, 7);
    return ndim;
}

static void build_matmul(call *c)
{
    dice *d = c->dice;
    int64_t m = dice_range(d, 0, 20), n = dice_range(d, 0, 20), k = dice_range(d, 0, 20);
    tn_dtype dtype = dice_one_in(d, 4) ? TN_C64 : random_float(d);
    int32_t ta = dice_one_in(d, 3), tb = dice_one_in(d, 3);
    const int64_t a[] = {ta ? k : m, ta ? m : k}, b[] = {tb ? n : k, tb ? k : n}, out[] = {m, n},
                  bias[] = {n};
    tn_matmul_args args = {.struct_size = sizeof args,
                           .a = add_operand(c, dtype, 2, a, false),
                           .b = add_operand(c, dtype, 2, b, false),
                           .out = add_operand(c, dtype, 2, out, true),
                           .bias = dice_one_in(d, 3) ? add_operand(c, dtype, 1, bias, false) : NULL,
                           .transpose_a = ta,
                           .transpose_b = tb,
                           .beta = dice_one_in(d, 3) ? 0.5 : 0};
    memcpy(c->args, &args, sizeof args);
}

static void build_permute(call *c)
{
    int64_t shape[4];
    tn_dtype dtype = random_any_dtype(c->dice);
    int ndim = random_shape(c->dice, 0, shape);
    tn_permute_args args = {.struct_size = sizeof args,
                            .in = add_operand(c, dtype, ndim, shape, false),
                            .out = add_operand(c, dtype, ndim, shape, true)};
    memcpy(c->args, &args, sizeof args);
}

static void build_cast(call *c)
{
    int64_t shape[4];
    int ndim = random_shape(c->dice, 0, shape);
    tn_cast_args args = {.struct_size = sizeof args,
                         .in = add_operand(c, random_any_dtype(c->dice), ndim, shape, false),
                         .out = add_operand(c, random_any_dtype(c->dice), ndim, shape, true)};
    memcpy(c->args, &args, sizeof args);
}

static void build_fill(call *c)
{
    int64_t shape[4];
    int ndim = random_shape(c->dice, 0, shape);
    tn_fill_args args = {.struct_size = sizeof args,
                         .out = add_operand(c, random_any_dtype(c->dice), ndim, shape, true),
                         .value = 1.5};
    memcpy(c->args, &args, sizeof args);
}

static void build_unary(call *c)
{
    int64_t shape[4];
    tn_dtype dtype = random_float(c->dice);
    int ndim = random_shape(c->dice, 0, shape);
    tn_unary_args args = {.struct_size = sizeof args,
                          .in = add_operand(c, dtype, ndim, shape, false),
                          .out = add_operand(c, dtype, ndim, shape, true),
                          .kind = (int32_t)dice_range(c->dice, 0, 11)};
    memcpy(c->args, &args, sizeof args);
}

static void build_binary(call *c)
{
    int64_t shape[4];
    tn_dtype dtype = random_any_dtype(c->dice);
    int ndim = random_shape(c->dice, 0, shape);
    tn_binary_args args = {.struct_size = sizeof args,
                           .in = add_operand(c, dtype, ndim, shape, false),
                           .other = add_operand(c, dtype, ndim, shape, false),
                           .out = add_operand(c, dtype, ndim, shape, true),
                           .kind = (int32_t)dice_range(c->dice, 0, 5)};
    memcpy(c->args, &args, sizeof args);
}

static void build_reduce(call *c)
{
    int64_t shape[4];
    tn_dtype dtype = random_any_dtype(c->dice);
    int ndim = random_shape(c->dice, 1, shape);
    tn_reduce_args args = {.struct_size = sizeof args,
                           .in = add_operand(c, dtype, ndim, shape, false),
                           .out = add_operand(c, dtype, ndim - 1, shape, true),
                           .axes = UINT64_C(1) << (ndim - 1),
                           .kind = (int32_t)dice_range(c->dice, 0, 4)};
    memcpy(c->args, &args, sizeof args);
}

static void build_softmax(call *c)
{
    int64_t shape[4];
    tn_dtype dtype = random_float(c->dice);
    int ndim = random_shape(c->dice, 1, shape);
    tn_softmax_args args = {.struct_size = sizeof args,
                            .in = add_operand(c, dtype, ndim, shape, false),
                            .out = add_operand(c, dtype, ndim, shape, true),
                            .axis = (int32_t)dice_range(c->dice, 0, ndim - 1)};
    memcpy(c->args, &args, sizeof args);
}

/* Of any kind, along one or two dimensions. */
static void build_fft(call *c)
{
    static const tn_dtype pairs[][2] = {{TN_C64, TN_C64},  {TN_C128, TN_C128}, {TN_F32, TN_C64},
                                        {TN_F64, TN_C128}, {TN_C64, TN_F32},   {TN_C128, TN_F64}};
    static const int32_t axes[TN_OP_RANK_MAX] = {0, 1}; /* as many as a damaged count may name */
    int64_t shape[4], half[4];
    const tn_dtype *dtypes = pairs[dice_range(c->dice, 0, 5)];
    const bool from_real = dtypes[0] == TN_F32 || dtypes[0] == TN_F64;
    const int ndim = random_shape(c->dice, 2, shape);
    const int32_t count = (int32_t)dice_range(c->dice, 0, 2);
    const int last = count > 0 ? count - 1 : ndim - 1;
    memcpy(half, shape, sizeof half);
    if (dtypes[0] != dtypes[1])
        half[last] = shape[last] / 2 + 1;
    tn_fft_args args = {.struct_size = sizeof args,
                        .in = add_operand(c, dtypes[0], ndim, from_real ? shape : half, false),
                        .out = add_operand(c, dtypes[1], ndim, from_real ? half : shape, true),
                        .axes = count > 0 ? axes : NULL,
                        .axes_count = count,
                        .direction = (int32_t)dice_range(c->dice, 0, 1),
                        .norm = (int32_t)dice_range(c->dice, 0, 2)};
    memcpy(c->args, &args, sizeof args);
}

static void build_norm(call *c)
{
    int64_t shape[4];
    tn_dtype dtype = random_float(c->dice);
    int ndim = random_shape(c->dice, 1, shape);
    const int64_t *row = shape + ndim - 1;
    bool weight = dice_one_in(c->dice, 2);
    tn_norm_args args = {.struct_size = sizeof args,
                         .in = add_operand(c, dtype, ndim, shape, false),
                         .out = add_operand(c, dtype, ndim, shape, true),
                         .weight = weight ? add_operand(c, dtype, 1, row, false) : NULL,
                         .kind = (int32_t)dice_range(c->dice, 0, 1)};
    memcpy(c->args, &args, sizeof args);
}

static void build_rotary(call *c)
{
    int64_t shape[4], table[2];
    tn_dtype dtype = random_float(c->dice);
    int ndim = random_shape(c->dice, 2, shape);
    shape[ndim - 1] = dice_range(c->dice, 1, 8) * 2;
    table[0] = shape[ndim - 2], table[1] = shape[ndim - 1] / 2;
    tn_rotary_args args = {.struct_size = sizeof args,
                           .in = add_operand(c, dtype, ndim, shape, false),
                           .out = add_operand(c, dtype, ndim, shape, true),
                           .cos = add_operand(c, dtype, 2, table, false),
                           .sin = add_operand(c, dtype, 2, table, false),
                           .kind = (int32_t)dice_range(c->dice, 0, 1)};
    memcpy(c->args, &args, sizeof args);
}

/* Sizes of an attention: batch, heads, groups, queries, keys, size. */
typedef struct attention_sizes {
    int64_t b, h, g, l, k, d;
} attention_sizes;

static attention_sizes random_attention(dice *d)
{
    attention_sizes s = {.b = dice_range(d, 1, 2), .g = dice_range(d, 1, 2)};
    s.h = s.g * dice_range(d, 1, 2);
    s.l = dice_range(d, 0, 9);
    s.k = dice_range(d, 0, 12);
    s.d = dice_range(d, 1, 20);
    return s;
}

static const tn_tensor *add_table(call *c, const int64_t *numbers, int64_t count)
{
    const tn_tensor *made = add_operand(c, TN_I32, 1, &count, false);
    for (int64_t i = 0; i < count; i++) {
        int32_t number = (int32_t)numbers[i];
        memcpy((char *)made->data + i * 4, &number, sizeof number);
    }
    return made;
}

static void build_attention(call *c)
{
    dice *d = c->dice;
    attention_sizes s = random_attention(d);
    tn_dtype dtype = random_float(d), lse = dtype == TN_F64 ? TN_F64 : TN_F32;
    bool packed = dice_one_in(d, 3), lengths = !packed && dice_one_in(d, 3);
    int64_t first = packed ? dice_range(d, 0, s.l) : 0,
            first_key = packed ? dice_range(d, 0, s.k) : 0;
    const int64_t batched_q[] = {s.b, s.h, s.l, s.d}, batched_k[] = {s.b, s.g, s.k, s.d},
                  scores[] = {s.b, s.h, s.l}, starts_q[] = {0, first, s.l},
                  starts_k[] = {0, first_key, s.k}, used[] = {s.k / 2, s.k};
    const int64_t *q = batched_q + packed, *k = batched_k + packed;
    int ndim = packed ? 3 : 4;
    tn_attention_args args = {
        .struct_size = sizeof args,
        .q = add_operand(c, dtype, ndim, q, false),
        .k = add_operand(c, dtype, ndim, k, false),
        .v = add_operand(c, dtype, ndim, k, false),
        .out = add_operand(c, dtype, ndim, q, true),
        .lse = dice_one_in(d, 3) ? add_operand(c, lse, ndim - 1, scores + packed, true) : NULL,
        .starts_q = packed ? add_table(c, starts_q, 3) : NULL,
        .starts_k = packed ? add_table(c, starts_k, 3) : NULL,
        .lengths = lengths ? add_table(c, used, s.b) : NULL,
        .dropout = dice_one_in(d, 5) ? 0.5 : 0,
        .mask = (int32_t)dice_range(d, 0, 3)};
    memcpy(c->args, &args, sizeof args);
}

static void build_backward(call *c)
{
    attention_sizes s = random_attention(c->dice);
    tn_dtype dtype = random_float(c->dice), lse = dtype == TN_F64 ? TN_F64 : TN_F32;
    const int64_t q[] = {s.b, s.h, s.l, s.d}, k[] = {s.b, s.g, s.k, s.d};
    tn_attention_backward_args args = {.struct_size = sizeof args,
                                       .q = add_operand(c, dtype, 4, q, false),
                                       .k = add_operand(c, dtype, 4, k, false),
                                       .v = add_operand(c, dtype, 4, k, false),
                                       .out = add_operand(c, dtype, 4, q, false),
                                       .lse = add_operand(c, lse, 3, q, false),
                                       .dout = add_operand(c, dtype, 4, q, false),
                                       .dq = add_operand(c, dtype, 4, q, true),
                                       .dk = add_operand(c, dtype, 4, k, true),
                                       .dv = add_operand(c, dtype, 4, k, true),
                                       .mask = (int32_t)dice_range(c->dice, 0, 3)};
    memcpy(c->args, &args, sizeof args);
}

static void build_merge(call *c)
{
    attention_sizes s = random_attention(c->dice);
    tn_dtype dtype = random_float(c->dice), lse = dtype == TN_F64 ? TN_F64 : TN_F32;
    const int64_t q[] = {s.b, s.h, s.l, s.d};
    tn_attention_merge_args args = {.struct_size = sizeof args,
                                    .in = add_operand(c, dtype, 4, q, false),
                                    .lse_in = add_operand(c, lse, 3, q, false),
                                    .other = add_operand(c, dtype, 4, q, false),
                                    .lse_other = add_operand(c, lse, 3, q, false),
                                    .out = add_operand(c, dtype, 4, q, true)};
    memcpy(c->args, &args, sizeof args);
}

/* Lists and orders are of random numbers: nearly all of them are refused. */
static void build_sparse(call *c)
{
    attention_sizes s = random_attention(c->dice);
    tn_dtype dtype = random_float(c->dice), lse = dtype == TN_F64 ? TN_F64 : TN_F32;
    const int64_t block = dice_range(c->dice, 1, 40), blocks = (s.l + block - 1) / block;
    const int64_t q[] = {s.b, s.h, s.l, s.d}, mask[] = {blocks, blocks};
    const int64_t starts[] = {blocks + 1}, entries[] = {dice_range(c->dice, 0, 20)};
    const bool lists = dice_one_in(c->dice, 3);
    tn_attention_sparse_args args = {
        .struct_size = sizeof args,
        .q = add_operand(c, dtype, 4, q, false),
        .k = add_operand(c, dtype, 4, q, false),
        .v = add_operand(c, dtype, 4, q, false),
        .out = add_operand(c, dtype, 4, q, true),
        .lse = dice_one_in(c->dice, 2) ? add_operand(c, lse, 3, q, true) : NULL,
        .block_mask = lists ? NULL : add_operand(c, TN_BOOL, 2, mask, false),
        .starts = lists ? add_operand(c, TN_I32, 1, starts, false) : NULL,
        .blocks = lists ? add_operand(c, TN_I32, 1, entries, false) : NULL,
        .order = dice_one_in(c->dice, 4) ? add_operand(c, TN_I32, 1, &s.l, false) : NULL,
        .block_queries = block,
        .block_keys = block,
        .mask = (int32_t)dice_range(c->dice, 0, 2)};
    memcpy(c->args, &args, sizeof args);
}

static void build_sparse_backward(call *c)
{
    attention_sizes s = random_attention(c->dice);
    tn_dtype dtype = random_float(c->dice), lse = dtype == TN_F64 ? TN_F64 : TN_F32;
    const int64_t block = dice_range(c->dice, 1, 40), blocks = (s.l + block - 1) / block;
    const int64_t q[] = {s.b, s.h, s.l, s.d}, mask[] = {blocks, blocks};
    const int64_t starts[] = {blocks + 1}, entries[] = {dice_range(c->dice, 0, 20)};
    const bool lists = dice_one_in(c->dice, 3);
    tn_attention_sparse_backward_args args = {
        .struct_size = sizeof args,
        .q = add_operand(c, dtype, 4, q, false),
        .k = add_operand(c, dtype, 4, q, false),
        .v = add_operand(c, dtype, 4, q, false),
        .out = add_operand(c, dtype, 4, q, false),
        .lse = add_operand(c, lse, 3, q, false),
        .block_mask = lists ? NULL : add_operand(c, TN_BOOL, 2, mask, false),
        .starts = lists ? add_operand(c, TN_I32, 1, starts, false) : NULL,
        .blocks = lists ? add_operand(c, TN_I32, 1, entries, false) : NULL,
        .dout = add_operand(c, dtype, 4, q, false),
        .dq = add_operand(c, dtype, 4, q, true),
        .dk = add_operand(c, dtype, 4, q, true),
        .dv = add_operand(c, dtype, 4, q, true),
        .block_queries = block,
        .block_keys = block,
        .mask = (int32_t)dice_range(c->dice, 0, 2)};
    memcpy(c->args, &args, sizeof args);
}

static void build_quantized(call *c)
{
    static const tn_dtype weights[] = {TN_F32, TN_F16, TN_F8_E4M3FN, TN_U8, TN_I8};
    attention_sizes s = random_attention(c->dice);
    tn_dtype dtype = random_float(c->dice);
    dtype = dtype == TN_F64 ? TN_F32 : dtype;
    const int64_t q[] = {s.b, s.h, s.l, s.d};
    tn_attention_quantized_args args = {
        .struct_size = sizeof args,
        .q = add_operand(c, dtype, 4, q, false),
        .k = add_operand(c, dtype, 4, q, false),
        .v = add_operand(c, dtype, 4, q, false),
        .out = add_operand(c, dtype, 4, q, true),
        .lse = dice_one_in(c->dice, 2) ? add_operand(c, TN_F32, 3, q, true) : NULL,
        .mask = (int32_t)dice_range(c->dice, 0, 2),
        .weights = weights[dice_range(c->dice, 0, 4)],
        .scales = (int32_t)dice_range(c->dice, 0, 2),
        .smoothing = (int32_t)dice_range(c->dice, 0, 1)};
    memcpy(c->args, &args, sizeof args);
}

/* The functions of an operator behind one type. */
#define FUNCTIONS(name)                                                                         \
    static tn_status run_##name(const tn_context *context, const void *args, tn_error *err)     \
    {                                                                                           \
        return tn_##name(context, args, err);                                                   \
    }                                                                                           \
    static tn_status prepare_##name(const tn_context *context, const void *args, tn_error *err) \
    {                                                                                           \
        return tn_##name##_prepare(context, args, err);                                         \
    }                                                                                           \
    static tn_status explain_##name(const tn_context *context, const void *args,                \
                                    tn_decision **out, tn_error *err)                           \
    {                                                                                           \
        return tn_##name##_explain(context, args, out, err);                                    \
    }
FUNCTIONS(matmul)
FUNCTIONS(permute)
FUNCTIONS(cast)
FUNCTIONS(fill)
FUNCTIONS(unary)
FUNCTIONS(binary)
FUNCTIONS(reduce)
FUNCTIONS(softmax)
FUNCTIONS(fft)
FUNCTIONS(norm)
FUNCTIONS(rotary)
FUNCTIONS(attention)
FUNCTIONS(attention_backward)
FUNCTIONS(attention_merge)
FUNCTIONS(attention_quantized)
FUNCTIONS(attention_sparse)
FUNCTIONS(attention_sparse_backward)

#define OPERATOR(op, builder)                                                              \
    .name = #op, .size = sizeof(tn_##op##_args), .run = run_##op, .prepare = prepare_##op, \
    .explain = explain_##op, .build = (builder)
#define T(name, field)                                  \
    {                                                   \
        offsetof(tn_##name##_args, field), FIELD_TENSOR \
    }
#define I32(name, field)                             \
    {                                                \
        offsetof(tn_##name##_args, field), FIELD_I32 \
    }
#define I64(name, field)                             \
    {                                                \
        offsetof(tn_##name##_args, field), FIELD_I64 \
    }
#define F64(name, field)                             \
    {                                                \
        offsetof(tn_##name##_args, field), FIELD_F64 \
    }

static const operator_facts operators[] = {
    {OPERATOR(matmul, build_matmul),
     .fields = {T(matmul, a), T(matmul, b), T(matmul, out), T(matmul, bias), T(matmul, scale_a),
                F64(matmul, alpha), F64(matmul, beta), I32(matmul, activation),
                I32(matmul, transpose_a), I32(matmul, transpose_b), I32(matmul, acc),
                I32(matmul, set), I32(matmul, reserved), I64(matmul, workspace_bytes)}},
    {OPERATOR(permute, build_permute),
     .fields = {T(permute, in), T(permute, out), I32(permute, order_count), I32(permute, reserved),
                I64(permute, workspace_bytes)}},
    {OPERATOR(cast, build_cast), .fields = {T(cast, in), T(cast, out), I64(cast, workspace_bytes)}},
    {OPERATOR(fill, build_fill),
     .fields = {T(fill, out), F64(fill, value), F64(fill, imaginary), I64(fill, workspace_bytes)}},
    {OPERATOR(unary, build_unary),
     .fields = {T(unary, in), T(unary, out), I32(unary, kind), I32(unary, reserved)}},
    {OPERATOR(binary, build_binary), .fields = {T(binary, in), T(binary, other), T(binary, out),
                                                I32(binary, kind), I32(binary, reserved)}},
    {OPERATOR(reduce, build_reduce), .fields = {T(reduce, in), T(reduce, out), I64(reduce, axes),
                                                I32(reduce, kind), I32(reduce, keep)}},
    {OPERATOR(softmax, build_softmax),
     .fields = {T(softmax, in), T(softmax, out), I32(softmax, axis), I32(softmax, log)}},
    {OPERATOR(fft, build_fft), .fields = {T(fft, in), T(fft, out), I32(fft, axes_count),
                                          I32(fft, direction), I32(fft, norm), I32(fft, reserved)}},
    {OPERATOR(norm, build_norm),
     .fields = {T(norm, in), T(norm, out), T(norm, weight), T(norm, bias), F64(norm, epsilon),
                I32(norm, kind), I32(norm, set)}},
    {OPERATOR(rotary, build_rotary),
     .fields = {T(rotary, in), T(rotary, out), T(rotary, cos), T(rotary, sin), I64(rotary, size),
                I32(rotary, kind), I32(rotary, reserved)}},
    {OPERATOR(attention, build_attention), .fields = {T(attention, q),
                                                      T(attention, k),
                                                      T(attention, v),
                                                      T(attention, out),
                                                      T(attention, lse),
                                                      T(attention, mask_tensor),
                                                      T(attention, sinks),
                                                      T(attention, starts_q),
                                                      T(attention, starts_k),
                                                      T(attention, lengths),
                                                      T(attention, pages),
                                                      F64(attention, scale),
                                                      F64(attention, softcap),
                                                      F64(attention, dropout),
                                                      I64(attention, window_left),
                                                      I64(attention, window_right),
                                                      I64(attention, max_queries),
                                                      I64(attention, max_keys),
                                                      I32(attention, mask),
                                                      I32(attention, layout),
                                                      I32(attention, set),
                                                      I32(attention, backend)}},
    {OPERATOR(attention_backward, build_backward),
     .fields = {T(attention_backward, q), T(attention_backward, k), T(attention_backward, v),
                T(attention_backward, out), T(attention_backward, lse), T(attention_backward, dout),
                T(attention_backward, dq), T(attention_backward, dk), T(attention_backward, dv),
                T(attention_backward, mask_tensor), F64(attention_backward, scale),
                F64(attention_backward, softcap), F64(attention_backward, dropout),
                I64(attention_backward, window_left), I64(attention_backward, window_right),
                I32(attention_backward, mask), I32(attention_backward, layout),
                I32(attention_backward, set), I32(attention_backward, backend)}},
    {OPERATOR(attention_merge, build_merge),
     .fields = {T(attention_merge, in), T(attention_merge, lse_in), T(attention_merge, other),
                T(attention_merge, lse_other), T(attention_merge, out), T(attention_merge, lse),
                I32(attention_merge, layout), I32(attention_merge, reserved)}},
    {OPERATOR(attention_quantized, build_quantized),
     .fields = {T(attention_quantized, q), T(attention_quantized, k), T(attention_quantized, v),
                T(attention_quantized, out), T(attention_quantized, lse),
                F64(attention_quantized, scale), I64(attention_quantized, window_left),
                I64(attention_quantized, window_right), I32(attention_quantized, mask),
                I32(attention_quantized, layout), I32(attention_quantized, set),
                I32(attention_quantized, weights), I32(attention_quantized, scales),
                I32(attention_quantized, smoothing)}},
    {OPERATOR(attention_sparse, build_sparse),
     .fields = {T(attention_sparse, q), T(attention_sparse, k), T(attention_sparse, v),
                T(attention_sparse, out), T(attention_sparse, lse), T(attention_sparse, block_mask),
                T(attention_sparse, starts), T(attention_sparse, blocks),
                T(attention_sparse, block_sizes), T(attention_sparse, order),
                F64(attention_sparse, scale), I64(attention_sparse, block_queries),
                I64(attention_sparse, block_keys), I64(attention_sparse, window_left),
                I64(attention_sparse, window_right), I32(attention_sparse, mask),
                I32(attention_sparse, layout), I32(attention_sparse, set),
                I32(attention_sparse, reserved)}},
    {OPERATOR(attention_sparse_backward, build_sparse_backward),
     .fields = {T(attention_sparse_backward, q),
                T(attention_sparse_backward, k),
                T(attention_sparse_backward, v),
                T(attention_sparse_backward, out),
                T(attention_sparse_backward, lse),
                T(attention_sparse_backward, block_mask),
                T(attention_sparse_backward, starts),
                T(attention_sparse_backward, blocks),
                T(attention_sparse_backward, block_sizes),
                T(attention_sparse_backward, dout),
                T(attention_sparse_backward, dq),
                T(attention_sparse_backward, dk),
                T(attention_sparse_backward, dv),
                F64(attention_sparse_backward, scale),
                I64(attention_sparse_backward, block_queries),
                I64(attention_sparse_backward, block_keys),
                I32(attention_sparse_backward, mask),
                I32(attention_sparse_backward, layout),
                I32(attention_sparse_backward, set),
                I32(attention_sparse_backward, reserved)}},
};

const operator_facts *random_operator(dice *d)
{
    return &DICE_PICK(d, operators);
}
