/* What the suites of ops share: tensors of the host's that no one owns, dice, and that an op and its
 * text are one. */
#ifndef TENON_TEST_OPS_CHECK_H
#define TENON_TEST_OPS_CHECK_H

#include "test.h"

#include "op/fields.h"
#include "tenon/dlpack.h"
#include "tenon/module/op/attention.h"
#include "tenon/module/op/elementwise.h"
#include "tenon/module/op/matmul.h"

#include <math.h>

/* Memory for tensors that nobody reads. */
static _Alignas(64) char memory[1 << 16];

typedef struct piece {
    int64_t shape[TN_TENSOR_NDIM_MAX];
    int64_t strides[TN_TENSOR_NDIM_MAX];
    tn_tensor tensor;
} piece;

/* Shape and strides, NULL for dense, end with -1; a stride of that is written LESS. */
enum { LESS = -1000 };

static inline int32_t numbers_take(const int64_t *from, int64_t *out)
{
    int32_t count = 0;
    for (; from[count] != -1; count++)
        out[count] = from[count] == LESS ? -1 : from[count];
    return count;
}

static inline const tn_tensor *piece_at(piece *p, size_t offset, tn_dtype dtype,
                                        const int64_t *shape, const int64_t *strides)
{
    memset(p, 0, sizeof *p);
    p->tensor = (tn_tensor){.data = memory + offset,
                            .device_type = TN_DLPACK_CPU,
                            .ndim = numbers_take(shape, p->shape),
                            .dtype = dtype,
                            .shape = p->shape,
                            .strides = strides ? p->strides : NULL};
    if (strides)
        assert_int_equal(numbers_take(strides, p->strides), p->tensor.ndim);
    return &p->tensor;
}

#define LIST(...)                    ((const int64_t[]){__VA_ARGS__})
#define DENSE(p, offset, dtype, ...) piece_at(p, offset, dtype, LIST(__VA_ARGS__, -1), NULL)
#define NUMBER(p, offset, dtype)     piece_at(p, offset, dtype, LIST(-1), NULL)

static inline void expect_layout(const tn_layout *layout, tn_dtype dtype, const int64_t *shape,
                                 const int64_t *strides)
{
    int64_t numbers[TN_OP_RANK_MAX + 1];
    assert_int_equal(layout->dtype, dtype);
    assert_int_equal(layout->rank, numbers_take(shape, numbers));
    assert_memory_equal(layout->shape, numbers, (size_t)layout->rank * sizeof numbers[0]);
    assert_int_equal(layout->rank, numbers_take(strides, numbers));
    assert_memory_equal(layout->stride, numbers, (size_t)layout->rank * sizeof numbers[0]);
}

/* Numbers that are the same in every run. */
static uint64_t dice = 1;

static inline int64_t roll(int64_t least, int64_t most)
{
    dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return least + (int64_t)((dice >> 33) % (uint64_t)(most - least + 1));
}

static inline bool same_number(double a, double b)
{
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

static inline bool same_each(const tn_elementwise_op *a, const tn_elementwise_op *b)
{
    return a->kind == b->kind && a->axes == b->axes && a->elements == b->elements &&
           a->rows == b->rows && a->size == b->size && same_number(a->value, b->value) &&
           same_number(a->imaginary, b->imaginary);
}

static inline bool same_matmul(const tn_matmul_op *a, const tn_matmul_op *b)
{
    return a->m == b->m && a->n == b->n && a->k == b->k && a->matrices == b->matrices &&
           a->batch_rank == b->batch_rank && a->activation == b->activation && a->acc == b->acc &&
           same_number(a->alpha, b->alpha) &&
           (a->beta == b->beta || same_number(a->beta, b->beta)); /* 0 has no sign there */
}

static inline bool same_attention(const tn_attention_op *a, const tn_attention_op *b)
{
    return a->batch == b->batch && a->heads == b->heads && a->groups == b->groups &&
           a->queries == b->queries && a->keys == b->keys && a->size == b->size &&
           a->value_size == b->value_size && a->page == b->page && a->left == b->left &&
           a->right == b->right && a->shift == b->shift && a->corner == b->corner &&
           same_number(a->scale, b->scale) && a->softcap == b->softcap &&
           a->dropout == b->dropout && a->seed == b->seed && a->offset == b->offset;
}

static inline bool same_op(const tn_op *a, const tn_op *b)
{
    uint64_t x[TNI_KEY_MOST], y[TNI_KEY_MOST];
    size_t count = tni_op_key(a, x);
    if (a->kind != b->kind || tni_op_key(b, y) != count || memcmp(x, y, count * sizeof x[0]) != 0)
        return false;
    if (tn_op_attention(a))
        return same_attention(TN_PARAMS(a, attention), TN_PARAMS(b, attention));
    return a->kind == TN_OP_MATMUL
               ? same_matmul(TN_PARAMS(a, matmul), TN_PARAMS(b, matmul))
               : same_each(TN_PARAMS(a, elementwise), TN_PARAMS(b, elementwise));
}

/* The op from a text; the test ends when there is none. */
static inline void parse(const char *text, tn_op *out)
{
    char device[32];
    tn_error err;
    if (tni_problem_parse(text, out, device, sizeof device, &err))
        fail_msg("%s", err.message);
}

/* Writes an op and reads it again. The text is lent until the next call. */
static inline const char *round_trip(const tn_op *op)
{
    static char text[TNI_PROBLEM_MOST];
    tni_buffer buffer = {0};
    tn_op again;
    tni_problem_write(op, NULL, &buffer);
    assert_false(buffer.failed);
    assert_true(buffer.length < sizeof text);
    snprintf(text, sizeof text, "%s", tni_buffer_text(&buffer));
    tni_buffer_release(&buffer);
    parse(text, &again);
    if (!same_op(op, &again))
        fail_msg("%s is read as another op", text);
    return text;
}

/* A text that is refused, in words that have `part` among them. */
static inline void expect_refused(const char *text, const char *part)
{
    char device[32] = "as it was";
    tn_op op = {.kind = 99};
    tn_error err = {0};
    tn_status status = tni_problem_parse(text, &op, device, sizeof device, &err);
    if (status != TN_INVALID_ARGUMENT)
        fail_msg("\"%s\" gives %d", text, (int)status);
    assert_contains(err.message, part);
    assert_string_equal(device, "as it was");
}

#endif
