/* Internals of attention. */
#ifndef TNI_OP_ATTENTION_H
#define TNI_OP_ATTENTION_H

#include "op/op_check.h"
#include "tenon/attention.h"

#include <math.h>

/* Arguments that attention and attention-backward share. */
typedef struct tni_attention_numbers {
    double scale, softcap, dropout;
    uint64_t seed, offset;
    int64_t left, right;
    int32_t mask, layout, backend;
    uint32_t set;
} tni_attention_numbers;

#define TNI_ATTENTION_NUMBERS(args)                                                    \
    {                                                                                  \
        (args)->scale, (args)->softcap, (args)->dropout, (args)->seed, (args)->offset, \
            (args)->window_left, (args)->window_right, (args)->mask, (args)->layout,   \
            (args)->backend, (args)->set                                               \
    }

/* Checks the numbers and stores them. */
tn_status tni_attention_read_numbers(const tni_op_class *class, const tni_attention_numbers *from,
                                     tn_attention_op *out, tn_error *err);

/* Converts the layouts from the call's memory layout, TN_LAYOUT_..., sets the default scale unless
 * `scaled`, and validates the op. */
tn_status tni_attention_finish(tn_op *op, int32_t way, bool scaled, tn_error *err);

/* Parts of the validation, which attention-sparse and its backward pass share: their Q, K, V, OUT,
 * LSE, DOUT, DQ, DK and DV have the same indices, and their parameters begin with attention's. The
 * first one checks that the shapes of Q, K, V, OUT and LSE are consistent; the second one that each
 * gradient has the shape of its operand; the third one checks scale, softcap, dropout, the window
 * and the shift. */
tn_status tni_attention_check_shapes(const tn_op *op, tn_error *err);
tn_status tni_attention_check_gradients(const tn_op *op, tn_error *err);
tn_status tni_attention_check_numbers(const tn_op *op, tn_error *err);

/* Returns the number of keys that the queries of one head see by position, estimated from a few
 * queries. */
double tni_attention_pairs(const tn_attention_op *at);

/* Parts of the text, which attention-sparse shares: makes a dense layout of [batch, heads, length,
 * size] with the memory order `way`; parses and writes which keys are visible by position
 * ("causal"; "" if all are). The parser moves the text past what it read. */
void tni_attention_make_whole(tn_layout *out, tn_dtype dtype, const int64_t shape[4], int32_t way);
bool tni_attention_read_place(const char **text, tn_attention_op *at);
void tni_attention_write_place(const tn_attention_op *at, char *out, size_t size);

/* Members of the classes. */
tn_status tni_attention_parse(struct tni_fields *fields, tn_dtype dtype, tn_op *op, tn_error *err);
void tni_attention_write(const tn_op *op, tni_buffer *out);

tn_setting tni_attention_replaces(const tn_op *op);
tn_status tni_attention_validate(tn_op *op, tn_error *err);
void tni_attention_cost(const tn_op *op, double *out_flops, double *out_bytes);
size_t tni_attention_words(const tn_op *op, uint64_t *out);
void tni_attention_free(tn_op *op, uint64_t dims);
extern const char *const tni_attention_uses[];

#define TNI_ATTENTION_CLASS                                                                     \
    .group = TNI_OPS_ATTENTION, .settings = tni_attention_settings, .uses = tni_attention_uses, \
    .parse = tni_attention_parse, .validate = tni_attention_validate,                           \
    .write = tni_attention_write, .cost = tni_attention_cost, .words = tni_attention_words,     \
    .free = tni_attention_free

/* Members of tni_op_check that attention-backward shares, or that are in separate files. */
tni_spread tni_attention_spread(const tn_op *op, int32_t operand);
bool tni_attention_is_table(const tn_op *op, int32_t operand);
void tni_attention_fill_table(struct tni_operands *operands, int32_t index,
                              double (*draw)(void *user), void *user);

/* Sets which keys queries see under a mask of TN_MASK_...; returns false for an unknown mask. */
static inline bool tni_attention_see(tn_attention_op *op, int32_t mask, int64_t left, int64_t right)
{
    op->left = mask == TN_MASK_WINDOW ? left : -1;
    op->right = mask == TN_MASK_WINDOW ? right : mask == TN_MASK_NONE ? -1 : 0;
    op->corner = mask == TN_MASK_CAUSAL_BR || mask == TN_MASK_WINDOW ? TN_CORNER_BOTTOM_RIGHT
                                                                     : TN_CORNER_TOP_LEFT;
    return mask >= TN_MASK_NONE && mask < TN_MASK_COUNT;
}

/* Whether the operand has no batch dimension in calls, as for a packed op. */
static inline bool tni_attention_is_packed(const tn_op *op, int32_t operand)
{
    bool of_keys = operand == TN_ATTENTION_K || operand == TN_ATTENTION_V;
    return op->operand[TN_ATTENTION_STARTS_Q].dtype && operand <= TN_ATTENTION_LSE &&
           !(of_keys && op->operand[TN_ATTENTION_PAGES].dtype);
}

/* Defaults. */
static inline double tni_attention_scale(int64_t size)
{
    return size > 0 ? 1 / sqrt((double)size) : 1;
}

static inline tn_dtype tni_attention_lse(tn_dtype dtype)
{
    return dtype == TN_F64 ? TN_F64 : TN_F32;
}

/* Converts a layout between the memory layouts of TN_LAYOUT_... and [batch, heads, ...]. */
static inline void tni_attention_turn(tn_layout *layout, int32_t way)
{
    if (way == TN_LAYOUT_BLHD && layout->rank == 4)
        tni_layout_swap(layout, 1, 2);
}

#endif
