/* The conditions of cuDNN's attention, from its documentation and its own front end, for each version. Other
 * problems are rejected when a plan is made. The figures are those of an H200. */
#include "../../attention/attention_cuda.h"
#include "../../kernels/layout.h"
#include "cudnn_attention.h"
#include "cudnn_bias.h"
#include "cudnn_dropout.h"
#include "cudnn_packed.h"
#include "tenon/module/op/attention_backward.h"

#include <math.h>

static const char *const names[] = {"q",     "k",        "v",        "out",     "lse",   "mask",
                                    "sinks", "starts_q", "starts_k", "lengths", "pages", "seed",
                                    "dout",  "dq",       "dk",       "dv"};

/* Returns the last of an op's operands that contain numbers. */
static int32_t last_of(const tn_op *op)
{
    return op->kind == TN_OP_ATTENTION ? TN_ATTENTION_MASK : TN_ATTENTION_BACKWARD_DV;
}

/* Returns whether the library is known to be earlier than `version`; an unknown version counts as the
 * newest. */
static bool is_before(const tn_query *query, int64_t version)
{
    return query->library_version >= 0 && query->library_version < version;
}

static tn_status refuse_version(tn_refusal *why, const tn_query *query, int64_t needed,
                                const char *text)
{
    return cuda_refuse(why, TN_REFUSE_VERSION, "cuDNN", needed, query->library_version, text);
}

static int32_t capability_of(const tn_query *query)
{
    return query->device->capability.major * 10 + query->device->capability.minor;
}

static tn_status admit_device(const tn_query *query, tn_refusal *why)
{
    enum { LEAST = 80, MOST = 121 };
    const int32_t found = capability_of(query);
    if (found < LEAST)
        return cuda_refuse(why, TN_REFUSE_DEVICE, "capability", LEAST, found,
                           "capability times ten: its attention came with 8.0");
    return found <= MOST ? TN_OK
                         : cuda_refuse(why, TN_REFUSE_DEVICE, "capability", MOST, found,
                                       "capability times ten: later ones are not known to it");
}

static tn_status admit_types(const tn_op *op, tn_refusal *why)
{
    const tn_dtype dtype = op->operand[TN_ATTENTION_Q].dtype;
    const tn_dtype lse = op->operand[TN_ATTENTION_LSE].dtype;
    const tn_dtype mask = op->operand[TN_ATTENTION_MASK].dtype;
    for (int32_t i = TN_ATTENTION_K; i <= last_of(op); i++) {
        if (i != TN_ATTENTION_LSE && i != TN_ATTENTION_MASK && op->operand[i].dtype &&
            op->operand[i].dtype != dtype)
            return tn_refuse(why, TN_REFUSE_DTYPE, names[i], dtype, op->operand[i].dtype);
    }
    if (lse && lse != TN_F32)
        return tn_refuse(why, TN_REFUSE_DTYPE, "lse", TN_F32, lse);
    return !mask || mask == dtype || mask == TN_F32 || mask == TN_BOOL
               ? TN_OK
               : tn_refuse(why, TN_REFUSE_DTYPE, "mask", dtype, mask);
}

/* Returns the maximum head size for a device and version. */
static int64_t size_most(const tn_query *query)
{
    enum { ALL_256 = 91000, BLACKWELL_256 = 90900 };
    const int32_t major = query->device->capability.major;
    const bool early = major == 9    ? false
                       : major == 10 ? is_before(query, BLACKWELL_256)
                                     : is_before(query, ALL_256);
    return early ? 128 : 256;
}

static tn_status admit_sizes(const tn_query *query, tn_refusal *why)
{
    enum { TOGETHER = 8, COUNT_MOST = 65535 };
    const tn_attention_op *at = TN_PARAMS(query->op, attention);
    const int64_t greater = at->size > at->value_size ? at->size : at->value_size;
    if (at->size < TOGETHER || at->size % TOGETHER || at->value_size % TOGETHER)
        return cuda_refuse(why, TN_REFUSE_SHAPE, "head size", TOGETHER,
                           at->size < TOGETHER || at->size % TOGETHER ? at->size : at->value_size,
                           "head sizes must be multiples of 8");
    if (greater > size_most(query))
        return cuda_refuse(why, TN_REFUSE_SHAPE, "head size", size_most(query), greater,
                           "as this device and version take");
    if (at->keys < 2)
        return cuda_refuse(why, TN_REFUSE_SHAPE, "keys", 2, at->keys,
                           "more than one key is needed");
    if (at->batch < 1 || at->heads < 1)
        return cuda_refuse(why, TN_REFUSE_SHAPE, "batch, heads", 1, 0, "the problem is empty");
    return at->batch <= COUNT_MOST && at->heads <= COUNT_MOST
               ? TN_OK
               : cuda_refuse(why, TN_REFUSE_SHAPE, "batch, heads", COUNT_MOST,
                             at->batch > at->heads ? at->batch : at->heads, "split it");
}

/* Rows of an operand must be a multiple of 16 bytes apart, and the elements of a row contiguous. */
static tn_status admit_operand(const tn_op *op, int32_t operand, tn_refusal *why)
{
    enum { ALIGNMENT = 16, TOGETHER = 8, ROOM = 32 };
    const tn_layout *layout = &op->operand[operand];
    char what[ROOM];
    snprintf(what, sizeof what, "%s.stride", names[operand]);
    if (layout->alignment < ALIGNMENT)
        return tn_refuse(why, TN_REFUSE_ALIGNMENT, names[operand], ALIGNMENT, layout->alignment);
    for (int32_t d = 0; d < layout->rank; d++) {
        const int64_t stride = layout->stride[d];
        const bool last = d == layout->rank - 1;
        if (layout->shape[d] == 1 || (operand == TN_ATTENTION_MASK && stride == 0 && !last))
            continue;
        if (last && stride != 1)
            return cuda_refuse(why, TN_REFUSE_STRIDE, what, 1, stride,
                               "the elements of a row must be contiguous");
        if (!last && (stride <= 0 || (operand != TN_ATTENTION_MASK && stride % TOGETHER)))
            return cuda_refuse(why, TN_REFUSE_STRIDE, what, TOGETHER, stride,
                               "row strides must be nonzero multiples of 8 elements");
    }
    return TN_OK;
}

/* LSE must be dense, and so must the table of lengths. */
static tn_status admit_tables(const tn_op *op, tn_refusal *why)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    const tn_layout *lse = &op->operand[TN_ATTENTION_LSE];
    static const tn_layout none = {.dtype = TN_DTYPE_NONE};
    const tn_layout *lengths =
        op->kind == TN_OP_ATTENTION ? &op->operand[TN_ATTENTION_LENGTHS] : &none;
    const int64_t rows = lse->dtype ? lse->shape[2] : 0; /* including all packed sequences */
    enum { ALIGNMENT = 16 };
    if (lse->dtype && lse->alignment < ALIGNMENT)
        return tn_refuse(why, TN_REFUSE_ALIGNMENT, "lse", ALIGNMENT, lse->alignment);
    const int64_t needed[] = {at->heads * rows, rows, 1};
    for (int32_t d = 0; lse->dtype && d < 3; d++) {
        if (lse->shape[d] > 1 && lse->stride[d] != needed[d])
            return cuda_refuse(why, TN_REFUSE_STRIDE, "lse.stride", needed[d], lse->stride[d],
                               "lse must be contiguous");
    }
    return !lengths->dtype || at->batch == 1 || lengths->stride[0] == 1
               ? TN_OK
               : cuda_refuse(why, TN_REFUSE_STRIDE, "lengths.stride", 1, lengths->stride[0],
                             "lengths must be contiguous");
}

static tn_status admit_layouts(const tn_op *op, tn_refusal *why)
{
    tn_status status = TN_OK;
    for (int32_t i = TN_ATTENTION_Q; i <= last_of(op) && !status; i++) {
        if (i != TN_ATTENTION_LSE && op->operand[i].dtype)
            status = admit_operand(op, i, why);
    }
    if (!status)
        status = dnn_bias_admit(op, why);
    return status ? status : admit_tables(op, why);
}

/* Checks the bounds on the keys that a query sees, which depend on the version. */
static tn_status admit_bounds(const tn_query *query, tn_refusal *why)
{
    enum { TILE = 64, BOTTOM_ANY = 90600, WINDOW_ANY = 91002, BLIND = 91000 };
    const tn_attention_op *at = TN_PARAMS(query->op, attention);
    const bool masked = query->op->operand[TN_ATTENTION_MASK].dtype != TN_DTYPE_NONE;
    const bool drops = query->op->uses & TN_ATTENTION_USES_DROPOUT;
    dnn_shape shape;
    tn_status status = dnn_shape_of(query->op, &shape, why);
    if (status)
        return status;
    if (shape.bottom && masked)
        return cuda_refuse(why, TN_REFUSE_FEATURE, "mask", 0, 1,
                           "bounds from the bottom right corner cannot be combined with a mask");
    if (shape.bottom && drops)
        return cuda_refuse(why, TN_REFUSE_FEATURE, "dropout", 0, 1,
                           "bounds from the bottom right corner cannot be combined with dropout");
    if (shape.bottom && is_before(query, BOTTOM_ANY) && (at->queries % TILE || at->keys % TILE))
        return refuse_version(why, query, BOTTOM_ANY,
                              "before 9.6 bounds from the bottom right corner need lengths that "
                              "are multiples of 64");
    if (shape.blind && is_before(query, BLIND))
        return refuse_version(why, query, BLIND,
                              "a query may see no key here, and before 9.10 has a mean of all of "
                              "them then");
    if (shape.left && is_before(query, WINDOW_ANY) && (masked || drops || !shape.right))
        return refuse_version(why, query, WINDOW_ANY,
                              "before 9.10.2 a bound on the left needs one on the right, no mask "
                              "and no dropout");
    return TN_OK;
}

/* pytorch/pytorch issues 193893 and 194927: these versions give wrong results for a single query. */
static tn_status admit_decode(const tn_query *query, tn_refusal *why)
{
    enum { FROM = 91900, RIGHT = 92401, AGAIN = 92500, TO = 92501 };
    const int32_t major = query->device->capability.major;
    const int64_t version = query->library_version;
    const bool wrong = version >= FROM && version < TO && !(version >= RIGHT && version < AGAIN);
    return !wrong || (major != 10 && major != 11)
               ? TN_OK
               : refuse_version(why, query, TO,
                                "9.19 to 9.25.0, but not 9.24.1, are wrong for one query on 10.x "
                                "and 11.x");
}

/* Attention sinks, one additional score per head: supported since 9.13. */
static tn_status admit_sinks(const tn_query *query, tn_refusal *why)
{
    enum { FIRST = 91300, ALIGNMENT = 16 };
    const tn_layout *sinks = &query->op->operand[TN_ATTENTION_SINKS];
    if (query->op->kind != TN_OP_ATTENTION || !sinks->dtype)
        return TN_OK;
    if (is_before(query, FIRST))
        return refuse_version(why, query, FIRST, "sinks came with 9.13");
    if (sinks->dtype != TN_F32)
        return tn_refuse(why, TN_REFUSE_DTYPE, "sinks", TN_F32, sinks->dtype);
    if (sinks->alignment < ALIGNMENT)
        return tn_refuse(why, TN_REFUSE_ALIGNMENT, "sinks", ALIGNMENT, sinks->alignment);
    if (sinks->shape[0] > 1 && sinks->stride[0] != 1)
        return cuda_refuse(why, TN_REFUSE_STRIDE, "sinks.stride", 1, sinks->stride[0],
                           "sinks must be contiguous");
    return TN_OK;
}

static int64_t power_above(int64_t x)
{
    int64_t power = 1;
    while (power < x)
        power *= 2;
    return power;
}

/* Paged keys always have lengths, so the conditions of those apply, too. NVIDIA/TransformerEngine pull request
 * 2121. */
static tn_status admit_pages(const tn_query *query, tn_refusal *why)
{
    enum { ADA = 89, ON_ADA = 91300 };
    const tn_layout *pages = &query->op->operand[TN_ATTENTION_PAGES];
    if (query->op->kind != TN_OP_ATTENTION || !pages->dtype)
        return TN_OK;
    if (capability_of(query) == ADA && is_before(query, ON_ADA))
        return refuse_version(why, query, ON_ADA, "before 9.13 keys in pages go wrong on 8.9");
    const int64_t page = TN_PARAMS(query->op, attention)->page;
    if (page & (page - 1))
        return cuda_refuse(why, TN_REFUSE_SHAPE, "page", power_above(page), page,
                           "the number of keys per page must be a power of two");
    return pages->shape[1] <= 1 || pages->stride[1] == 1
               ? TN_OK
               : cuda_refuse(why, TN_REFUSE_STRIDE, "pages.stride", 1, pages->stride[1],
                             "the pages of a sequence must be contiguous");
}

/* From the conditions of fused attention in NVIDIA/TransformerEngine. */
static tn_status admit_packed(const tn_query *query, tn_refusal *why)
{
    enum { LEAST = 90 };
    if (!(query->op->uses & TN_ATTENTION_USES_PACKED))
        return TN_OK;
    if (capability_of(query) < LEAST)
        return cuda_refuse(why, TN_REFUSE_DEVICE, "capability", LEAST, capability_of(query),
                           "capability times ten: packed sequences came with 9.0");
    return dnn_packed_admit(query->op, why);
}

/* PyTorch disables dropout for versions after 9.11.0 and before 9.14. If dropout is admitted, `why` has a note about
 * its memory. */
static tn_status admit_dropout(const tn_query *query, tn_refusal *why)
{
    enum { LOST = 91100, FOUND = 91400 };
    const double bytes = dnn_kept_bytes(query->op), most = (double)INT32_MAX * sizeof(uint16_t);
    if (!(query->op->uses & TN_ATTENTION_USES_DROPOUT))
        return TN_OK;
    if (query->library_version > LOST && is_before(query, FOUND))
        return refuse_version(why, query, FOUND, "9.11.1 to 9.13 are known to have no dropout");
    if (bytes > most)
        return cuda_refuse(why, TN_REFUSE_SHAPE, "weights", INT32_MAX,
                           bytes < 9e18 ? (int64_t)(bytes / sizeof(uint16_t)) : INT64_MAX,
                           "the dropout mask has too many elements");
    (void)snprintf(why->text, sizeof why->text,
                   "what dropout keeps is written before, to %.0f bytes of workspace", bytes);
    return TN_OK;
}

static tn_status admit_attention(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    (void)row;
    tn_status status = admit_device(query, why);
    if (!status)
        status = admit_types(query->op, why);
    if (!status)
        status = admit_sizes(query, why);
    if (!status)
        status = cuda_attention_admit_numbers(query->op, why);
    if (!status)
        status = admit_layouts(query->op, why);
    if (!status)
        status = admit_bounds(query, why);
    if (!status)
        status = admit_sinks(query, why);
    if (!status)
        status = admit_pages(query, why);
    if (!status)
        status = admit_packed(query, why);
    if (!status)
        status = cuda_admit_alignment(query, why);
    return status ? status : admit_dropout(query, why);
}

static tn_status admit_queries(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    return TN_PARAMS(query->op, attention)->queries != 1
               ? admit_attention(row, query, why)
               : cuda_refuse(why, TN_REFUSE_SHAPE, "queries", 2, 1,
                             "cuda.attention.cudnn.single is for one query");
}

static tn_status admit_single(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const int64_t queries = TN_PARAMS(query->op, attention)->queries;
    if (queries != 1)
        return cuda_refuse(why, TN_REFUSE_SHAPE, "queries", 1, queries,
                           "cuda.attention.cudnn is for more than one query");
    const tn_status status = admit_decode(query, why);
    return status ? status : admit_attention(row, query, why);
}

/* cuDNN 9.19 on an H200 gave correct gradients with a mask over every sequence, head, query and key, and wrong ones
 * with a mask over keys only and grouped heads. Other combinations were not tested. */
static tn_status admit_gradient_mask(const tn_op *op, tn_refusal *why)
{
    const tn_layout *mask = &op->operand[TN_ATTENTION_MASK];
    const tn_attention_op *at = TN_PARAMS(op, attention);
    for (int32_t d = 0; mask->dtype && d < DNN_RANK; d++) {
        if (mask->shape[d] > 1 && mask->stride[d] == 0)
            return cuda_refuse(why, TN_REFUSE_STRIDE, "mask.stride", 1, 0,
                               "gradients need a mask of every sequence, head, query and key");
    }
    return !mask->dtype || at->groups == at->heads
               ? TN_OK
               : cuda_refuse(why, TN_REFUSE_FEATURE, "key heads", at->heads, at->groups,
                             "gradients with a mask need as many key heads as heads");
}

/* Returns whether the bounds let no query see beyond the last key. */
static bool is_hidden_behind(const tn_attention_op *at, const dnn_shape *shape)
{
    const int64_t corner = shape->bottom ? at->keys - at->queries : 0;
    return shape->right && corner + at->queries - 1 + shape->right_by <= at->keys - 1;
}

/* Head sizes above 128 for which PyTorch uses the gradients. */
static bool is_pair(int64_t size, int64_t value_size)
{
    return (size == 256 && value_size == 256) || (size == 192 && value_size == 128);
}

/* From pytorch/pytorch issue 196678, NVIDIA/cudnn-frontend issue 1072 and its notes on 9.15.1. */
static tn_status admit_gradient(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    enum { TILE = 128, ODD_KEYS = 91501, FINITE = 92600, LATE_BOTH = 91800 };
    const tn_attention_op *at = TN_PARAMS(query->op, attention);
    const int64_t greater = at->size > at->value_size ? at->size : at->value_size;
    dnn_shape shape;
    tn_status status = admit_attention(row, query, why);
    if (status || (status = admit_gradient_mask(query->op, why)) ||
        (status = dnn_shape_of(query->op, &shape, why)))
        return status;
    if (at->queries == 1)
        return cuda_refuse(why, TN_REFUSE_SHAPE, "queries", 2, 1,
                           "gradients of a single query may be NaN");
    if (greater > TILE && query->device->capability.major != 9)
        return cuda_refuse(why, TN_REFUSE_SHAPE, "head size", TILE, greater,
                           "gradients of greater heads are for 9.x");
    if (greater > TILE && !is_pair(at->size, at->value_size))
        return cuda_refuse(why, TN_REFUSE_SHAPE, "head size", TILE, greater,
                           "gradients of heads above 128 are of 256 and 256, or 192 and 128");
    if (at->keys % TILE != 0 && is_before(query, ODD_KEYS))
        return refuse_version(why, query, ODD_KEYS,
                              "before 9.15.1 gradients need keys that are a multiple of 128");
    if (capability_of(query) == 90 && at->keys % TILE == TILE / 2 &&
        !is_hidden_behind(at, &shape) && is_before(query, FINITE))
        return refuse_version(why, query, FINITE,
                              "before 9.26, on 9.0, gradients of queries can be infinite when keys "
                              "are 64 more than a multiple of 128");
    if (row->numerics & TN_NUM_RUN_TO_RUN && query->device->capability.major == 10 &&
        is_before(query, LATE_BOTH))
        return refuse_version(why, query, LATE_BOTH,
                              "before 9.18, on 10.x, gradients differ from run to run");
    return TN_OK;
}

/* Operations per microsecond of an H200 on long sequences, from docs/kernels/hopper-attention.md (cuDNN 9.19). Head sizes
 * of 192 were not measured. With bounds, scores of keys that are not seen are computed, too: by the same page, causal
 * attention had 0.83 to 0.91 of the speed. */
static double rate_of(const tn_attention_op *at)
{
    static const double in_bounds = 0.88;
    const int64_t greater = at->size > at->value_size ? at->size : at->value_size;
    const double rate = greater <= 64    ? 4.55e8
                        : greater <= 96  ? 4.8e8
                        : greater <= 128 ? 6.1e8
                        : greater <= 192 ? 6.3e8
                                         : 6.54e8;
    return at->left >= 0 || at->right >= 0 ? rate * in_bounds : rate;
}

/* Few queries over more keys are a decoding step. */
static bool is_step(const tn_attention_op *at)
{
    enum { FEW = 16 };
    return at->queries <= FEW && at->keys > at->queries;
}

/* Only for one query, the keys are split: then they were read at 4.4 TB/s, or 3 with large heads. Of more queries, a block
 * computes 128 with all their keys, faster if at least half of these do not exist (docs/kernels/decode-attention.md). */
static double time_of(const tn_kernel_row *row, const tn_attention_op *at)
{
    enum { ROWS = 128, PROCESSORS = 132, LARGE = 128 };
    static const double few_bytes_per_us = 4.4e6, large_bytes_per_us = 3e6, few_gain = 1.27;
    const bool single = at->queries == 1, few = at->queries <= ROWS / 2;
    const bool large = at->size > LARGE || at->value_size > LARGE;
    const double elements = (double)(at->size + at->value_size);
    const double heads = (double)at->batch * (double)at->heads;
    const double rows =
        (double)at->batch * (double)at->groups * (double)at->keys + heads * (double)at->queries;
    const double rate = !few ? row->bytes_per_us : large ? large_bytes_per_us : few_bytes_per_us;
    const double move = rows * elements * sizeof(uint16_t) / rate;
    const double each = 2 * ROWS * cuda_attention_keys_seen(at) * elements / rate_of(at);
    const double blocks = heads * ceil((double)at->queries / ROWS);
    const double busy = blocks < PROCESSORS ? PROCESSORS : blocks;
    const double compute = single ? 0 : each * busy / (few ? few_gain : 1);
    return row->overhead_us + (compute > move ? compute : move);
}

/* The next step of decoding has one more key and needs another plan, which takes half a second to compile. That time
 * is divided among SHARED_BY calls, an estimate of those with the same number of keys. An op with lengths or pages has one plan for all steps. */
static double estimate_attention(const tn_kernel_row *row, const tn_query *query)
{
    enum { SHARED_BY = 100 };
    static const double compiled_us = 5e5;
    const tn_attention_op *at = TN_PARAMS(query->op, attention);
    const bool grows = is_step(at) && !dnn_has_lengths(query->op);
    return time_of(row, at) + (grows ? compiled_us / SHARED_BY : 0);
}

static const tn_dtype dtypes[] = {TN_BF16, TN_F16, 0};

/* With dropout, gradients of queries and keys were wrong in cuDNN 9.19 on an H200. */
enum {
    BOTH = TN_ATTENTION_USES_WINDOW | TN_ATTENTION_USES_GROUPS | TN_ATTENTION_USES_VALUE_SIZE |
           TN_ATTENTION_USES_OFFSET,
    MASKS = TN_ATTENTION_USES_ADDITIVE | TN_ATTENTION_USES_MASK,
    PLACES = TN_ATTENTION_USES_PAGES | TN_ATTENTION_USES_PACKED,
    SINGLE = BOTH | MASKS | PLACES | TN_ATTENTION_USES_SOFTCAP | TN_ATTENTION_USES_LSE |
             TN_ATTENTION_USES_LENGTHS,
    FORWARD = SINGLE | TN_ATTENTION_USES_SINKS | TN_ATTENTION_USES_DROPOUT
};

/* A plan is compiled for its exact shape: no dimension is free. */
#define ROW                                                                       \
    .struct_size = sizeof(tn_kernel_row), .platform = "cuda", .library = "cudnn", \
    .backend = "cudnn", .version = 2, .dtypes = dtypes, .bytes_per_us = 3.5e6,    \
    .alignment = CUDA_VECTOR, .workspace = dnn_workspace, .plan = dnn_plan,       \
    .plan_release = dnn_plan_release, .run = dnn_run

#define FORWARD_ROW \
    .op = TN_OP_ATTENTION, .flops_per_us = 6e8, .overhead_us = 8, .cost = estimate_attention, ROW

const tn_kernel_row cuda_dnn_attention_row = {
    .name = "cuda.attention.cudnn",
    .numerics = TN_NUM_RUN_TO_RUN,
    .honours = FORWARD,
    .admit = admit_queries,
    FORWARD_ROW,
};

/* One query: cuDNN splits the keys, and adds the parts in any order. On an H200, 9.14 gave an LSE whose last bit
 * differed from run to run. */
const tn_kernel_row cuda_dnn_single_row = {
    .name = "cuda.attention.cudnn.single",
    .honours = SINGLE,
    .admit = admit_single,
    FORWARD_ROW,
};

/* Partial gradients of queries are added in any order. */
const tn_kernel_row cuda_dnn_gradient_row = {
    .name = "cuda.attention-backward.cudnn",
    .op = TN_OP_ATTENTION_BACKWARD,
    .honours = BOTH | MASKS,
    .flops_per_us = 4.5e8,
    .overhead_us = 20,
    .admit = admit_gradient,
    ROW,
};

const tn_kernel_row cuda_dnn_gradient_repeating_row = {
    .name = "cuda.attention-backward.cudnn.repeating",
    .op = TN_OP_ATTENTION_BACKWARD,
    .numerics = TN_NUM_RUN_TO_RUN,
    .honours = BOTH | MASKS,
    .flops_per_us = 3e8,
    .overhead_us = 20,
    .admit = admit_gradient,
    ROW,
};
