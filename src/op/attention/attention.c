/* attention: its entry points and class, and the validation that attention-backward shares. */
#include "attention.h"

#include "base/checked.h"
#include "base/dtype.h"
#include "dispatch/call.h"
#include "op/elementwise.h"
#include "policy/backend_names/names.h"
#include "tenon/module/attention.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

static const char *const names[] = {"q",           "k",           "v",        "out",      "lse",
                                    "mask_tensor", "sinks",       "starts_q", "starts_k", "lengths",
                                    "pages",       "seed_tensor", NULL};

/* Small enough that sums of positions do not overflow. */
#define SHIFT_MOST (INT64_C(1) << 48)

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

static bool is_backward(const tn_op *op)
{
    return op->kind == TN_OP_ATTENTION_BACKWARD;
}

/* Checks the dtypes of Q and of the other operands. */
static tn_status check_dtypes(const tn_op *op, tn_error *err)
{
    tn_dtype q = op->operand[TN_ATTENTION_Q].dtype;
    if (q != TN_F64 && q != TN_F32 && q != TN_F16 && q != TN_BF16)
        return tn_fail(err, TN_UNSUPPORTED, 0, where_of(op),
                       "q: expected f64, f32, f16 or bf16, got %s", tn_dtype_name(q));
    for (int32_t i = TN_ATTENTION_K; i < op->count; i++) {
        tn_dtype found = op->operand[i].dtype, other = TN_DTYPE_NONE, needed = q;
        bool table = i >= TN_ATTENTION_STARTS_Q && i <= TN_ATTENTION_PAGES;
        if (i == TN_ATTENTION_LSE)
            needed = tni_attention_lse(q);
        else if (table)
            needed = TN_I32;
        else if (i == TN_ATTENTION_SEED)
            needed = TN_I64;
        else if (i == TN_ATTENTION_OUT)
            other = tni_elementwise_wider(q);
        else if (i == TN_ATTENTION_MASK || i == TN_ATTENTION_SINKS)
            other = q == TN_F32 ? TN_DTYPE_NONE : TN_F32;
        if (!found || found == needed || (other && found == other) ||
            (i == TN_ATTENTION_MASK && found == TN_BOOL))
            continue;
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                       "%s: expected %s%s%s for q of %s, got %s", name_of(op, i),
                       i == TN_ATTENTION_MASK ? "bool or " : "", tn_dtype_name(needed),
                       other ? " or f32" : "", tn_dtype_name(q), tn_dtype_name(found));
    }
    return TN_OK;
}

static tn_status check_ranks(const tn_op *op, tn_error *err)
{
    static const int32_t ranks[] = {4, 4, 4, 4, 3, 0, 1, 1, 1, 1, 2, 1, 4, 4, 4, 4};
    for (int32_t i = 0; i < op->count; i++) {
        int32_t needed = ranks[i]; /* 0: any rank, it is broadcast */
        int32_t added = tni_attention_is_packed(op, i);
        if (has(op, i) && needed && op->operand[i].rank != needed)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                           "%s%s: expected %d dimensions, got %d", name_of(op, i),
                           added ? ", packed" : "", (int)(needed - added),
                           (int)(op->operand[i].rank - added));
    }
    return TN_OK;
}

/* Checks that operands that need each other are both present. */
static tn_status check_company(const tn_op *op, tn_error *err)
{
    bool packed = has(op, TN_ATTENTION_STARTS_Q), paged = has(op, TN_ATTENTION_PAGES);
    if (has(op, TN_ATTENTION_STARTS_K) && (!packed || paged))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op), "starts_k: expected %s",
                       packed ? "none with pages, got both; remove one of them"
                              : "starts_q too, got starts_k alone");
    if (packed && !paged && !has(op, TN_ATTENTION_STARTS_K))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                       "starts_q: expected starts_k or pages too, got starts_q alone");
    if (paged && !has(op, TN_ATTENTION_LENGTHS))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                       "pages: expected lengths too, got pages alone");
    if (has(op, TN_ATTENTION_MASK) && (packed || paged))
        return tn_fail(err, TN_UNSUPPORTED, 0, where_of(op),
                       "mask_tensor: expected none for packed or paged sequences, got one");
    return TN_OK;
}

static tn_status check_number(const tn_op *op, const char *name, double value, bool fits,
                              const char *needed, tn_error *err)
{
    return fits ? TN_OK
                : tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op), "%s: expected %s, got %g",
                          name, needed, value);
}

tn_status tni_attention_check_numbers(const tn_op *op, tn_error *err)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    tn_status status =
        check_number(op, "scale", at->scale, fabs(at->scale) <= DBL_MAX, "a finite number", err);
    if (!status)
        status =
            check_number(op, "softcap", at->softcap, at->softcap >= 0 && at->softcap <= DBL_MAX,
                         "a finite number of at least 0", err);
    if (!status)
        status = check_number(op, "dropout", at->dropout, at->dropout >= 0 && at->dropout < 1,
                              "a number of at least 0 and below 1", err);
    if (!status)
        status = check_number(op, at->left < -1 ? "window_left" : "window_right",
                              (double)(at->left < -1 ? at->left : at->right),
                              at->left >= -1 && at->right >= -1, "-1 or more", err);
    if (!status)
        status = check_number(op, "shift", (double)at->shift,
                              at->shift >= -SHIFT_MOST && at->shift <= SHIFT_MOST,
                              "a number from -2^48 to 2^48", err);
    return status;
}

/* A dimension whose size is determined by other operands. */
typedef struct need {
    int32_t operand;
    int32_t dimension;
    int64_t size;
    const char *why;
} need;

static tn_status check_needs(const tn_op *op, const need *needs, size_t count, tn_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const tn_layout *layout = &op->operand[needs[i].operand];
        if (has(op, needs[i].operand) && layout->shape[needs[i].dimension] != needs[i].size)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                           "%s: expected %" PRId64 ", %s, got %" PRId64,
                           name_of(op, needs[i].operand), needs[i].size, needs[i].why,
                           layout->shape[needs[i].dimension]);
    }
    return TN_OK;
}

tn_status tni_attention_check_shapes(const tn_op *op, tn_error *err)
{
    const tn_layout *q = &op->operand[TN_ATTENTION_Q], *k = &op->operand[TN_ATTENTION_K];
    const tn_layout *v = &op->operand[TN_ATTENTION_V];
    const need needs[] = {
        {TN_ATTENTION_K, 3, q->shape[3], "the head size of q"},
        {TN_ATTENTION_V, 0, k->shape[0], "the batch of k"},
        {TN_ATTENTION_V, 1, k->shape[1], "the heads of k"},
        {TN_ATTENTION_V, 2, k->shape[2], "the length of k"},
        {TN_ATTENTION_OUT, 0, q->shape[0], "the batch of q"},
        {TN_ATTENTION_OUT, 1, q->shape[1], "the heads of q"},
        {TN_ATTENTION_OUT, 2, q->shape[2], "the length of q"},
        {TN_ATTENTION_OUT, 3, v->shape[3], "the head size of v"},
        {TN_ATTENTION_LSE, 0, q->shape[0], "the batch of q"},
        {TN_ATTENTION_LSE, 1, q->shape[1], "the heads of q"},
        {TN_ATTENTION_LSE, 2, q->shape[2], "the length of q"},
    };
    tn_status status = check_needs(op, needs, sizeof needs / sizeof needs[0], err);
    int64_t heads = q->shape[1], groups = k->shape[1];
    if (!status && (groups == 0 ? heads != 0 : heads % groups != 0))
        status = tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                         "q: expected a multiple of the %" PRId64 " heads of k and v, got %" PRId64,
                         groups, heads);
    return status;
}

tn_status tni_attention_check_gradients(const tn_op *op, tn_error *err)
{
    static const int32_t of[][2] = {{TN_ATTENTION_BACKWARD_DOUT, TN_ATTENTION_OUT},
                                    {TN_ATTENTION_BACKWARD_DQ, TN_ATTENTION_Q},
                                    {TN_ATTENTION_BACKWARD_DK, TN_ATTENTION_K},
                                    {TN_ATTENTION_BACKWARD_DV, TN_ATTENTION_V}};
    static const char *const what[] = {"the batch", "the heads", "the length", "the head size"};
    for (int32_t i = 0; i < 16; i++) {
        int32_t one = of[i / 4][0], other = of[i / 4][1], d = i % 4;
        int64_t needed = op->operand[other].shape[d], found = op->operand[one].shape[d];
        if (found != needed)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                           "%s: expected %" PRId64 ", %s of %s, got %" PRId64, name_of(op, one),
                           needed, what[d], name_of(op, other), found);
    }
    return TN_OK;
}

/* Checks the sizes of the tables, sinks and seed, and the batch of K unless it is in pages. */
static tn_status check_tables(const tn_op *op, bool packed, tn_error *err)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    const need needs[] = {
        {TN_ATTENTION_STARTS_K, 0, at->batch + 1, "as many as starts_q"},
        {TN_ATTENTION_LENGTHS, 0, at->batch, "one for each sequence"},
        {TN_ATTENTION_PAGES, 0, at->batch, "a row for each sequence"},
        {TN_ATTENTION_SINKS, 0, op->operand[TN_ATTENTION_Q].shape[1], "the heads of q"},
        {TN_ATTENTION_SEED, 0, 2, "seed and offset"}};
    const need batch = {TN_ATTENTION_K, 0, packed ? 1 : at->batch, "the batch of q"};
    tn_status status = check_needs(op, needs, sizeof needs / sizeof needs[0], err);
    if (!status && has(op, TN_ATTENTION_SEED) && op->operand[TN_ATTENTION_SEED].stride[0] != 1)
        status = tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                         "seed_tensor: expected stride 1, got %" PRId64,
                         op->operand[TN_ATTENTION_SEED].stride[0]);
    return status || at->page ? status : check_needs(op, &batch, 1, err);
}

/* Checks the length of the longest packed sequence: at most the number of rows. Sequences need not cover all rows, so
 * the minimum is 1; without rows it is 0. */
static tn_status check_most(const tn_op *op, const char *name, int64_t found, int64_t rows,
                            tn_error *err)
{
    int64_t least = rows > 0;
    if (found < least || found > rows)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                       "%s: expected %" PRId64 " to %" PRId64 " for sequences in %" PRId64
                       " rows, got %" PRId64,
                       name, least, rows, rows, found);
    return TN_OK;
}

/* For K and V in pages: sets the page size and the maximum number of keys of a sequence. */
static tn_status validate_pages(tn_op *op, tn_error *err)
{
    tn_attention_op *at = TN_PARAMS_MUTABLE(op, attention);
    int64_t each = op->operand[TN_ATTENTION_PAGES].shape[1];
    at->page = op->operand[TN_ATTENTION_K].shape[2];
    if (at->page < 1)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                       "k: expected at least 1 key in each page, got 0");
    if (!tni_mul_i64(each, at->page, &at->keys) || at->keys > INT64_MAX / 2)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                       "pages: expected at most %" PRId64 " keys for each sequence, got %" PRId64
                       " pages of %" PRId64 " keys",
                       INT64_MAX / 2, each, at->page);
    return TN_OK;
}

/* Sets batch, queries and keys, for sequences in a batch, packed, or in pages. */
static tn_status validate_sequences(tn_op *op, tn_error *err)
{
    tn_attention_op *at = TN_PARAMS_MUTABLE(op, attention);
    const tn_layout *q = &op->operand[TN_ATTENTION_Q], *k = &op->operand[TN_ATTENTION_K];
    const tn_layout *starts = &op->operand[TN_ATTENTION_STARTS_Q];
    bool packed = starts->dtype, paged = has(op, TN_ATTENTION_PAGES);
    if (packed && starts->shape[0] < 2)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where_of(op),
                       "starts_q: expected at least 2 numbers, got %" PRId64, starts->shape[0]);
    at->batch = packed ? starts->shape[0] - 1 : q->shape[0];
    at->page = 0;
    if (!packed || at->queries == 0)
        at->queries = q->shape[2];
    if (!packed || at->keys == 0)
        at->keys = k->shape[2];
    tn_status status = paged ? validate_pages(op, err) : TN_OK;
    if (!status)
        status = check_tables(op, packed, err);
    if (!status && packed)
        status = check_most(op, "max_queries", at->queries, q->shape[2], err);
    if (!status && packed && !paged)
        status = check_most(op, "max_keys", at->keys, k->shape[2], err);
    return status;
}

static uint64_t uses_of(const tn_op *op)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    tn_dtype q = op->operand[TN_ATTENTION_Q].dtype, mask = op->operand[TN_ATTENTION_MASK].dtype;
    bool forward = !is_backward(op);
    uint64_t uses = at->left >= 0 || at->right >= 0 ? TN_ATTENTION_USES_WINDOW : 0;
    uses |= mask == TN_BOOL ? TN_ATTENTION_USES_MASK : mask ? TN_ATTENTION_USES_ADDITIVE : 0;
    uses |= at->groups != at->heads ? TN_ATTENTION_USES_GROUPS : 0;
    uses |= at->softcap != 0 ? TN_ATTENTION_USES_SOFTCAP : 0;
    uses |= at->dropout != 0 ? TN_ATTENTION_USES_DROPOUT : 0;
    uses |= at->size != at->value_size ? TN_ATTENTION_USES_VALUE_SIZE : 0;
    uses |= at->shift ? TN_ATTENTION_USES_OFFSET : 0;
    uses |= op->operand[TN_ATTENTION_OUT].dtype != q ? TN_ATTENTION_USES_OUT_DTYPE : 0;
    uses |= has(op, TN_ATTENTION_LSE) && forward ? TN_ATTENTION_USES_LSE : 0;
    uses |= has(op, TN_ATTENTION_SINKS) ? TN_ATTENTION_USES_SINKS : 0;
    uses |= has(op, TN_ATTENTION_STARTS_Q) ? TN_ATTENTION_USES_PACKED : 0;
    uses |= has(op, TN_ATTENTION_LENGTHS) ? TN_ATTENTION_USES_LENGTHS : 0;
    uses |= has(op, TN_ATTENTION_PAGES) ? TN_ATTENTION_USES_PAGES : 0;
    uses |= has(op, TN_ATTENTION_SEED) ? TN_ATTENTION_USES_SEED : 0;
    for (int32_t i = 0; i < op->count; i++) {
        const tn_layout *layout = &op->operand[i];
        bool whole = i <= TN_ATTENTION_OUT || i >= TN_ATTENTION_BACKWARD_DOUT;
        if (whole && layout->shape[3] > 1 && layout->stride[3] != 1)
            uses |= TN_ATTENTION_USES_STRIDES;
    }
    return uses;
}

static tn_status validate_mask(tn_op *op, tn_error *err)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    const int64_t shape[] = {at->batch, at->heads, at->queries, at->keys};
    if (!has(op, TN_ATTENTION_MASK))
        return TN_OK;
    return tni_layout_broadcast(&op->operand[TN_ATTENTION_MASK], shape, 4, where_of(op),
                                "mask_tensor", err);
}

tn_status tni_attention_validate(tn_op *op, tn_error *err)
{
    tn_attention_op *at = TN_PARAMS_MUTABLE(op, attention);
    tn_status status = check_dtypes(op, err);
    if (!status)
        status = check_company(op, err);
    if (!status)
        status = check_ranks(op, err);
    if (!status)
        status = tni_attention_check_shapes(op, err);
    if (!status && is_backward(op))
        status = tni_attention_check_gradients(op, err);
    if (!status)
        status = validate_sequences(op, err);
    if (!status)
        status = tni_attention_check_numbers(op, err);
    if (status)
        return status;
    at->heads = op->operand[TN_ATTENTION_Q].shape[1];
    at->groups = op->operand[TN_ATTENTION_K].shape[1];
    at->size = op->operand[TN_ATTENTION_Q].shape[3];
    at->value_size = op->operand[TN_ATTENTION_V].shape[3];
    if (at->left < 0 && at->right < 0) /* every query sees all keys */
        at->corner = TN_CORNER_TOP_LEFT, at->shift = 0;
    if (has(op, TN_ATTENTION_SEED))
        at->seed = at->offset = 0;
    status = validate_mask(op, err);
    op->uses = uses_of(op);
    return status;
}

double tni_attention_pairs(const tn_attention_op *at)
{
    enum { LOOKS = 64 };
    int64_t looks = at->queries < LOOKS ? at->queries : LOOKS, first;
    double seen = 0;
    if (at->left < 0 && at->right < 0)
        return (double)at->queries * (double)at->keys;
    for (int64_t i = 0; i < looks; i++) {
        int64_t query = (int64_t)(((double)i + 0.5) * (double)at->queries / (double)looks);
        seen += (double)tn_attention_seen(at, query, at->queries, at->keys, &first);
    }
    return looks > 0 ? seen / (double)looks * (double)at->queries : 0;
}

void tni_attention_cost(const tn_op *op, double *out_flops, double *out_bytes)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    double pairs = (double)at->batch * (double)at->heads * tni_attention_pairs(at);
    *out_flops = 2 * pairs * (double)(at->size + at->value_size) * (is_backward(op) ? 2.5 : 1);
    *out_bytes = 0;
    for (int32_t i = 0; i < op->count; i++)
        *out_bytes += tni_layout_bytes(&op->operand[i]);
}

/* Kernels refuse a scale or softcap that would leave the range of their scores. So such a number's
 * exponent, of 12 bits, is part of the key. It is 0 for ordinary numbers, which share plans. The sign of the scale is
 * part of the key, too: kernels may be compiled for positive scales, which keep the order of scores. */
static uint64_t extreme_exponent(double number)
{
    enum { ORDINARY = 96, BIAS = 2048 };
    const int exponent = number != 0 && isfinite(number) ? ilogb(number) : 0;
    return exponent < -ORDINARY || exponent > ORDINARY ? (uint64_t)(exponent + BIAS) : 0;
}

size_t tni_attention_words(const tn_op *op, uint64_t *out)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    const uint64_t numbers = extreme_exponent(at->scale) | extreme_exponent(at->softcap) << 12;
    const uint64_t not_positive = !(at->scale > 0);
    out[0] = (uint64_t)at->queries;
    out[1] = (uint64_t)at->keys;
    out[2] = (uint64_t)at->left;
    out[3] = (uint64_t)at->right;
    out[4] = (uint64_t)at->shift;
    out[5] = (uint64_t)at->corner | not_positive << 7 | numbers << 8 | (uint64_t)at->backend << 32;
    out[6] = (uint64_t)at->batch; /* not part of the layouts of packed operands */
    return 7;
}

void tni_attention_free(tn_op *op, uint64_t dims)
{
    static const uint64_t of[] = {TN_ATTENTION_DIM_BATCH, TN_ATTENTION_DIM_HEADS};
    tn_attention_op *at = TN_PARAMS_MUTABLE(op, attention);
    for (int32_t i = 0; i < op->count; i++) {
        tn_layout *layout = &op->operand[i];
        bool of_keys = i == TN_ATTENTION_K || i == TN_ATTENTION_V ||
                       i == TN_ATTENTION_BACKWARD_DK || i == TN_ATTENTION_BACKWARD_DV;
        for (int32_t d = 0; d < layout->rank && d < 2; d++)
            layout->shape[d] = layout->rank < 3 || dims & of[d] ? 0 : layout->shape[d];
        if (layout->rank >= 3 &&
            dims & (of_keys ? TN_ATTENTION_DIM_KEYS : TN_ATTENTION_DIM_QUERIES))
            layout->shape[2] = 0;
        if (i == TN_ATTENTION_MASK && layout->rank == 4 && dims & TN_ATTENTION_DIM_KEYS)
            layout->shape[3] = 0;
    }
    at->batch = dims & TN_ATTENTION_DIM_BATCH ? 0 : at->batch;
    at->heads = dims & TN_ATTENTION_DIM_HEADS ? 0 : at->heads;
    at->groups = dims & TN_ATTENTION_DIM_HEADS ? 0 : at->groups;
    at->queries = dims & TN_ATTENTION_DIM_QUERIES ? 0 : at->queries;
    at->keys = dims & TN_ATTENTION_DIM_KEYS ? 0 : at->keys;
}

/* Reads the lengths of the longest sequences: only for packed ones, and for keys only without pages. */
static tn_status read_most(const tni_op_class *class, const tn_attention_args *args,
                           tn_attention_op *out, tn_error *err)
{
    bool queries = args->max_queries != 0 && !args->starts_q;
    bool keys = args->max_keys != 0 && (!args->starts_q || args->pages);
    if (queries || keys)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, class->where, "%s: expected 0 %s, got %" PRId64,
                       queries ? "max_queries" : "max_keys",
                       args->pages && !queries ? "with pages" : "without starts_q",
                       queries ? args->max_queries : args->max_keys);
    out->queries = args->max_queries;
    out->keys = args->max_keys;
    return TN_OK;
}

tn_status tni_attention_make(const void *given, tni_problem *out, tn_error *err)
{
    const tn_attention_args *args = given;
    const tni_op_class *class = &tni_attention_class;
    tn_status status = tni_elementwise_args(class->where, args, class->args.size, err);
    if (status)
        return status;
    const tni_attention_numbers numbers = TNI_ATTENTION_NUMBERS(args);
    const tn_tensor *const tensors[] = {
        args->q,        args->k,
        args->v,        args->out,
        args->lse,      args->mask_tensor,
        args->sinks,    args->starts_q,
        args->starts_k, args->lengths,
        args->pages,    TN_HAS(args, tn_attention_args, seed_tensor) ? args->seed_tensor : NULL};
    status = tni_problem_init(out, class, tensors, err);
    if (!status)
        status = tni_attention_read_numbers(class, &numbers, TN_PARAMS_MUTABLE(&out->op, attention),
                                            err);
    if (status)
        return status;
    status = read_most(class, args, TN_PARAMS_MUTABLE(&out->op, attention), err);
    if (status)
        return status;
    return tni_attention_finish(&out->op, args->layout, args->set & TN_ATTENTION_SET_SCALE, err);
}

/* By bit of TN_ATTENTION_USES_.... */
const char *const tni_attention_uses[] = {
    "window",  "mask",  "additive", "groups",  "softcap", "sinks", "lse",  "dropout", "packed",
    "lengths", "pages", "dv",       "strides", "out",     "shift", "seed", NULL};

#define AT(field) offsetof(tn_attention_args, field)

tn_setting tni_attention_replaces(const tn_op *op)
{
    return tni_backend_name(tn_op_attention(op)->backend) ? TN_SETTING_ATTENTION_BACKEND : -1;
}

const tni_op_class tni_attention_class = {
    .kind = TN_OP_ATTENTION,
    .replaces = tni_attention_replaces,
    .word = "attention",
    .fields = "b h hk l lq lk d dv layout mask mdtype sink lse out scale softcap dropout seed "
              "offset shift varlen varlenk rows rowsk used page pool sq sk sv so slse smask ssink "
              "sstart sstartk slength spage backward backend align",
    .where = "tn_attention",
    .args = {TNI_ARGS_FORM(attention, scale),
             .tensors = {AT(q), AT(k), AT(v), AT(out), AT(lse), AT(mask_tensor), AT(sinks),
                         AT(starts_q), AT(starts_k), AT(lengths), AT(pages), AT(seed_tensor)}},
    .check = &tni_attention_check,
    .make = tni_attention_make,
    .operands = names,
    .optional = ~(1U << TN_ATTENTION_Q | 1U << TN_ATTENTION_K | 1U << TN_ATTENTION_V |
                  1U << TN_ATTENTION_OUT),
    .outputs = 1U << TN_ATTENTION_OUT | 1U << TN_ATTENTION_LSE,
    .output = TN_ATTENTION_OUT,
    TNI_ATTENTION_CLASS};

tn_status tn_attention(const tn_context *context, const tn_attention_args *args, tn_error *err)
{
    return tni_call_run(context, &tni_attention_class, args, err);
}

tn_status tn_attention_explain(const tn_context *context, const tn_attention_args *args,
                               tn_decision **out, tn_error *err)
{
    return tni_call_explain(context, &tni_attention_class, args, out, err);
}

tn_status tn_attention_prepare(const tn_context *context, const tn_attention_args *args,
                               tn_error *err)
{
    return tni_call_prepare(context, &tni_attention_class, args, err);
}
