/* attention-sparse: its entry points and class, and the validation that its backward pass shares. */
#include "attention_sparse.h"

#include "dispatch/call.h"
#include "op/elementwise.h"
#include "tenon/dtype.h"

#include <inttypes.h>

static const char *const names[] = {"q",      "k",      "v",           "out",   "lse", "block_mask",
                                    "starts", "blocks", "block_sizes", "order", NULL};

static const char *where_of(const tn_op *op)
{
    return tni_op_class_of(op->kind)->where;
}

static const char *name_of(const tn_op *op, int32_t operand)
{
    return tni_op_class_of(op->kind)->operands[operand];
}

static bool has(const tn_op *op, int32_t operand)
{
    return op->operand[operand].dtype != TN_DTYPE_NONE;
}

static tn_status check_dtypes(const tn_op *op, tn_error *err)
{
    const tn_dtype q = op->operand[TN_ATTENTION_SPARSE_Q].dtype;
    if (q != TN_F64 && q != TN_F32 && q != TN_F16 && q != TN_BF16)
        return tn_fail(err, TN_UNSUPPORTED, 0, where_of(op),
                       "q: expected f64, f32, f16 or bf16, got %s", tn_dtype_name(q));
    for (int32_t i = TN_ATTENTION_SPARSE_K; i < op->count; i++) {
        const tn_dtype found = op->operand[i].dtype;
        const tn_dtype needed = i == TN_ATTENTION_SPARSE_LSE       ? tni_attention_lse(q)
                                : i == TN_ATTENTION_SPARSE_MASK    ? (tn_dtype)TN_BOOL
                                : tni_attention_sparse_is_whole(i) ? q
                                                                   : (tn_dtype)TN_I32;
        const tn_dtype other =
            i == TN_ATTENTION_SPARSE_OUT ? tni_elementwise_wider(q) : (tn_dtype)TN_DTYPE_NONE;
        if (found && found != needed && (!other || found != other))
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                           "%s: expected %s%s for q of %s, got %s", name_of(op, i),
                           tn_dtype_name(needed), other ? " or f32" : "", tn_dtype_name(q),
                           tn_dtype_name(found));
    }
    return TN_OK;
}

static tn_status check_ranks(const tn_op *op, tn_error *err)
{
    for (int32_t i = 0; i < op->count; i++) {
        const int32_t needed = tni_attention_sparse_is_whole(i)  ? 4
                               : i == TN_ATTENTION_SPARSE_LSE    ? 3
                               : i == TN_ATTENTION_SPARSE_BLOCKS ? 1
                                                                 : 0; /* it is broadcast */
        if (has(op, i) && needed && op->operand[i].rank != needed)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                           "%s: expected %d dimensions, got %d", name_of(op, i), (int)needed,
                           (int)op->operand[i].rank);
    }
    return TN_OK;
}

/* Operands between those of the forward pass and DOUT. */
static tn_status check_reserved(const tn_op *op, tn_error *err)
{
    for (int32_t i = TN_ATTENTION_SPARSE_ORDER; i < TN_ATTENTION_SPARSE_BACKWARD_DOUT; i++) {
        if (tni_attention_sparse_is_backward(op) && has(op, i))
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op), "%s: expected none, got one",
                           name_of(op, i));
    }
    return TN_OK;
}

/* Checks that the listed blocks are given in exactly one of the two ways. */
static tn_status check_block_source(const tn_op *op, tn_error *err)
{
    const bool mask = has(op, TN_ATTENTION_SPARSE_MASK),
               starts = has(op, TN_ATTENTION_SPARSE_STARTS);
    const bool blocks = has(op, TN_ATTENTION_SPARSE_BLOCKS);
    if (starts == blocks && mask != starts)
        return TN_OK;
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                   "block_mask: expected either block_mask, or starts and blocks, got %s%s%s%s",
                   mask ? "block_mask" : "",
                   mask && starts ? " and starts"
                   : starts       ? "starts"
                                  : "",
                   (mask || starts) && blocks ? " and blocks"
                   : blocks                   ? "blocks"
                                              : "",
                   mask || starts || blocks ? "" : "none of them");
}

static tn_status check_size(const tn_op *op, const char *name, int64_t found, tn_error *err)
{
    return found >= 1 ? TN_OK
                      : tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                                "%s: expected at least 1, got %" PRId64, name, found);
}

static tn_status check_number(const tn_op *op, const char *name, int64_t needed, const char *what,
                              int64_t found, tn_error *err)
{
    return found == needed ? TN_OK
                           : tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                                     "%s: expected %" PRId64 ", %s, with order; got %" PRId64, name,
                                     needed, what, found);
}

/* Checks what ORDER requires of the others, and returns the number of slots of queries and of keys. */
static tn_status read_slots(const tn_op *op, int64_t *out_queries, int64_t *out_keys, tn_error *err)
{
    const tn_attention_sparse_op *sparse = TN_PARAMS(op, attention_sparse);
    const tn_layout *order = &op->operand[TN_ATTENTION_SPARSE_ORDER];
    *out_queries = sparse->at.queries;
    *out_keys = sparse->at.keys;
    if (!order->dtype)
        return TN_OK;
    const bool sizes = has(op, TN_ATTENTION_SPARSE_SIZES);
    if (order->rank < 1)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                       "order: expected the dimensions [batch, slots] or [slots], got none");
    tn_status status =
        check_number(op, "k", sparse->at.queries, "the queries of q", sparse->at.keys, err);
    if (!status)
        status = check_number(op, "block_keys", sparse->block_queries, "block_queries",
                              sparse->block_keys, err);
    if (!status && (sparse->at.left >= 0 || sparse->at.right >= 0))
        status = tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                         "mask: expected none with order, got one; list the blocks that are seen");
    *out_queries = *out_keys = order->shape[order->rank - 1];
    const bool fits = sizes ? *out_keys >= sparse->at.keys : *out_keys == sparse->at.keys;
    if (status || fits)
        return status;
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                   "order: expected %s%" PRId64 " slots, one for each token of q%s; got %" PRId64,
                   sizes ? "at least " : "", sparse->at.keys, sizes ? "" : ", without block_sizes",
                   *out_keys);
}

/* Sets the sizes that follow from the shapes of Q, K, V and ORDER. */
static tn_status set_sizes(tn_op *op, tn_error *err)
{
    tn_attention_sparse_op *sparse = TN_PARAMS_MUTABLE(op, attention_sparse);
    const int64_t *q = op->operand[TN_ATTENTION_SPARSE_Q].shape;
    const int64_t *k = op->operand[TN_ATTENTION_SPARSE_K].shape;
    tn_status status = check_size(op, "block_queries", sparse->block_queries, err);
    if (!status)
        status = check_size(op, "block_keys", sparse->block_keys, err);
    if (!status && k[0] != q[0])
        status = tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                         "k: expected %" PRId64 ", the batch of q, got %" PRId64, q[0], k[0]);
    if (status)
        return status;
    sparse->at.batch = q[0];
    sparse->at.heads = q[1];
    sparse->at.groups = k[1];
    sparse->at.queries = q[2];
    sparse->at.keys = k[2];
    sparse->at.size = q[3];
    sparse->at.value_size = op->operand[TN_ATTENTION_SPARSE_V].shape[3];
    int64_t queries, keys;
    status = read_slots(op, &queries, &keys, err);
    if (status)
        return status;
    sparse->query_blocks = tni_attention_sparse_blocks(queries, sparse->block_queries);
    sparse->key_blocks = tni_attention_sparse_blocks(keys, sparse->block_keys);
    if (sparse->query_blocks == INT64_MAX) /* starts has one entry more */
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                       "block_queries: expected fewer than %" PRId64
                       " blocks of queries, got as many",
                       INT64_MAX);
    if (sparse->at.left < 0 && sparse->at.right < 0) /* position restricts nothing */
        sparse->at.corner = TN_CORNER_TOP_LEFT;
    return TN_OK;
}

static tn_status broadcast_tables(tn_op *op, tn_error *err)
{
    const tn_attention_sparse_op *sparse = TN_PARAMS(op, attention_sparse);
    const int64_t mask[] = {sparse->at.batch, sparse->at.heads, sparse->query_blocks,
                            sparse->key_blocks};
    const int64_t starts[] = {sparse->at.batch, sparse->at.heads, sparse->query_blocks + 1};
    const int64_t sizes[] = {sparse->at.batch, sparse->key_blocks};
    const tn_layout *given = &op->operand[TN_ATTENTION_SPARSE_ORDER];
    const int64_t order[] = {sparse->at.batch, given->dtype ? given->shape[given->rank - 1] : 0};
    const struct {
        int32_t operand, rank;
        const int64_t *shape;
    } tables[] = {{TN_ATTENTION_SPARSE_MASK, 4, mask},
                  {TN_ATTENTION_SPARSE_STARTS, 3, starts},
                  {TN_ATTENTION_SPARSE_SIZES, 2, sizes},
                  {TN_ATTENTION_SPARSE_ORDER, 2, order}};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        const int32_t operand = tables[i].operand;
        const tn_status status =
            has(op, operand)
                ? tni_layout_broadcast(&op->operand[operand], tables[i].shape, tables[i].rank,
                                       where_of(op), names[operand], err)
                : TN_OK;
        if (status)
            return status;
    }
    return TN_OK;
}

static uint64_t uses_of(const tn_op *op)
{
    const tn_attention_op *at = &TN_PARAMS(op, attention_sparse)->at;
    uint64_t uses = at->left >= 0 || at->right >= 0 ? TN_ATTENTION_SPARSE_USES_WINDOW : 0;
    uses |= has(op, TN_ATTENTION_SPARSE_MASK) ? TN_ATTENTION_SPARSE_USES_MASK
                                              : TN_ATTENTION_SPARSE_USES_LISTS;
    uses |= has(op, TN_ATTENTION_SPARSE_SIZES) ? TN_ATTENTION_SPARSE_USES_SIZES : 0;
    uses |= has(op, TN_ATTENTION_SPARSE_ORDER) ? TN_ATTENTION_SPARSE_USES_ORDER : 0;
    uses |= at->groups != at->heads ? TN_ATTENTION_SPARSE_USES_GROUPS : 0;
    uses |= has(op, TN_ATTENTION_SPARSE_LSE) && !tni_attention_sparse_is_backward(op)
                ? TN_ATTENTION_SPARSE_USES_LSE
                : 0;
    uses |= at->size != at->value_size ? TN_ATTENTION_SPARSE_USES_VALUE_SIZE : 0;
    uses |= op->operand[TN_ATTENTION_SPARSE_OUT].dtype != op->operand[TN_ATTENTION_SPARSE_Q].dtype
                ? TN_ATTENTION_SPARSE_USES_OUT_DTYPE
                : 0;
    for (int32_t i = 0; i < op->count; i++) {
        const tn_layout *layout = &op->operand[i];
        if (tni_attention_sparse_is_whole(i) && layout->shape[3] > 1 && layout->stride[3] != 1)
            uses |= TN_ATTENTION_SPARSE_USES_STRIDES;
    }
    return uses;
}

tn_status tni_attention_sparse_validate(tn_op *op, tn_error *err)
{
    tn_status status = check_reserved(op, err);
    if (!status)
        status = check_dtypes(op, err);
    if (!status)
        status = check_block_source(op, err);
    if (!status)
        status = check_ranks(op, err);
    if (!status)
        status = tni_attention_check_shapes(op, err);
    if (!status && tni_attention_sparse_is_backward(op))
        status = tni_attention_check_gradients(op, err);
    if (!status)
        status = tni_attention_check_numbers(op, err);
    if (!status)
        status = set_sizes(op, err);
    if (!status)
        status = broadcast_tables(op, err);
    if (!status)
        op->uses = uses_of(op);
    return status;
}

/* Returns the share of the blocks that is listed; 1 for a mask, whose contents are not known. */
static double listed_share(const tn_op *op)
{
    const tn_attention_sparse_op *sparse = TN_PARAMS(op, attention_sparse);
    const tn_layout *starts = &op->operand[TN_ATTENTION_SPARSE_STARTS];
    double all = (double)sparse->query_blocks * (double)sparse->key_blocks;
    for (int32_t d = 0; d < 2 && starts->dtype; d++)
        all *= starts->stride[d] == 0 ? 1 : (double)starts->shape[d];
    const double entries = (double)op->operand[TN_ATTENTION_SPARSE_BLOCKS].shape[0];
    return !starts->dtype || entries >= all ? 1 : entries / all;
}

void tni_attention_sparse_cost(const tn_op *op, double *out_flops, double *out_bytes)
{
    const tn_attention_op *at = &TN_PARAMS(op, attention_sparse)->at;
    const double rows = (double)at->batch * (double)at->heads;
    *out_flops =
        2 * rows * tni_attention_pairs(at) * listed_share(op) * (double)(at->size + at->value_size);
    *out_flops *= tni_attention_sparse_is_backward(op) ? 2.5 : 1;
    *out_bytes = 0;
    for (int32_t i = 0; i < op->count; i++)
        *out_bytes += tni_layout_bytes(&op->operand[i]);
}

size_t tni_attention_sparse_words(const tn_op *op, uint64_t *out)
{
    const tn_attention_sparse_op *sparse = TN_PARAMS(op, attention_sparse);
    const size_t count = tni_attention_words(op, out);
    out[4] = (uint64_t)sparse->block_queries; /* the shift is 0 */
    out[count] = (uint64_t)sparse->block_keys;
    return count + 1;
}

void tni_attention_sparse_free(tn_op *op, uint64_t dims)
{
    (void)op;
    (void)dims;
}

tn_status tni_attention_sparse_finish(tn_op *op, const tni_attention_numbers *numbers,
                                      int64_t block_queries, int64_t block_keys, tn_error *err)
{
    tn_attention_sparse_op *sparse = TN_PARAMS_MUTABLE(op, attention_sparse);
    const tn_status status =
        tni_attention_read_numbers(tni_op_class_of(op->kind), numbers, &sparse->at, err);
    if (status)
        return status;
    sparse->block_queries = block_queries;
    sparse->block_keys = block_keys;
    for (int32_t i = 0; i < op->count; i++)
        tni_attention_turn(&op->operand[i],
                           tni_attention_sparse_is_whole(i) ? numbers->layout : TN_LAYOUT_BHLD);
    const tn_layout *q = &op->operand[TN_ATTENTION_SPARSE_Q];
    if (sparse->at.scale == 0 && !(numbers->set & TN_ATTENTION_SET_SCALE) && q->rank == 4)
        sparse->at.scale = tni_attention_scale(q->shape[3]);
    return tni_op_validate(op, err);
}

tn_status tni_attention_sparse_make(const void *given, tni_problem *out, tn_error *err)
{
    const tn_attention_sparse_args *args = given;
    const tni_op_class *class = &tni_attention_sparse_class;
    tn_status status = tni_elementwise_args(class->where, args, class->args.size, err);
    if (!status)
        status = tni_elementwise_reserved(class->where, "reserved", (uint32_t)args->reserved, err);
    if (status)
        return status;
    const tni_attention_numbers numbers = {.scale = args->scale,
                                           .left = args->window_left,
                                           .right = args->window_right,
                                           .mask = args->mask,
                                           .layout = args->layout,
                                           .set = args->set};
    const tn_tensor *const tensors[] = {
        args->q,          args->k,      args->v,      args->out,         args->lse,
        args->block_mask, args->starts, args->blocks, args->block_sizes, args->order};
    status = tni_problem_init(out, class, tensors, err);
    return status ? status
                  : tni_attention_sparse_finish(&out->op, &numbers, args->block_queries,
                                                args->block_keys, err);
}

/* By bit of TN_ATTENTION_SPARSE_USES_.... */
const char *const tni_attention_sparse_uses[] = {
    "window", "mask", "lists", "sizes", "groups", "lse", "dv", "strides", "out", "order", NULL};

#define AT(field) offsetof(tn_attention_sparse_args, field)

const tni_op_class tni_attention_sparse_class = {
    .kind = TN_OP_ATTENTION_SPARSE,
    .word = "attention-sparse",
    .fields = "b h hk l lq lk d dv bq bk layout mask entries sizes slots lse out scale sq sk sv so "
              "slse smask sstarts sblocks ssizes sorder align",
    .where = "tn_attention_sparse",
    .args = {TNI_ARGS_FORM(attention_sparse, scale),
             .tensors = {AT(q), AT(k), AT(v), AT(out), AT(lse), AT(block_mask), AT(starts),
                         AT(blocks), AT(block_sizes), AT(order)}},
    .check = &tni_attention_sparse_check,
    .make = tni_attention_sparse_make,
    .operands = names,
    .optional = ~(1U << TN_ATTENTION_SPARSE_Q | 1U << TN_ATTENTION_SPARSE_K |
                  1U << TN_ATTENTION_SPARSE_V | 1U << TN_ATTENTION_SPARSE_OUT),
    .outputs = 1U << TN_ATTENTION_SPARSE_OUT | 1U << TN_ATTENTION_SPARSE_LSE,
    .output = TN_ATTENTION_SPARSE_OUT,
    TNI_ATTENTION_SPARSE_CLASS};

tn_status tn_attention_sparse(const tn_context *context, const tn_attention_sparse_args *args,
                              tn_error *err)
{
    return tni_call_run(context, &tni_attention_sparse_class, args, err);
}

tn_status tn_attention_sparse_explain(const tn_context *context,
                                      const tn_attention_sparse_args *args, tn_decision **out,
                                      tn_error *err)
{
    return tni_call_explain(context, &tni_attention_sparse_class, args, out, err);
}

tn_status tn_attention_sparse_prepare(const tn_context *context,
                                      const tn_attention_sparse_args *args, tn_error *err)
{
    return tni_call_prepare(context, &tni_attention_sparse_class, args, err);
}
