/* How kernels of attention-sparse are checked: the problems; and what its backward pass shares:
 * sample tables, and the error bound. The bound is attention's, or that of its backward pass, of the
 * problem with a boolean mask that has the same result. */
#include "attention_sparse.h"
#include "attention_sparse_templates.h"

#include "base/alloc.h"
#include "check/inputs.h"
#include "op/attention/attention_bounds.h"
#include "tenon/module/attention_sparse.h"

static const char *const smoke[] = {
    SPARSE_SMOKE,
    "b=2,h=2,l=70,d=16,bq=32,bk=24,sizes=1,lse=1",
    "b=1,h=2,l=9,d=24,bq=4,sq=432;216;48;2,out=$",
    "b=1,h=2,l=130,d=96,bq=128,bk=64,lse=1",
    "b=2,h=2,l=75,d=32,bq=16,entries=30,sizes=1,slots=100,lse=1",
    NULL,
};

static const tn_check_aspect aspects[] = {
    {"shapes", TNI_TEMPLATES(SPARSE_SHAPES)},
    {"alignment", TNI_TEMPLATES("b=1,h=2,lq=17,lk=33,d=40,bq=16,align=&;&;&;&;1",
                                "b=1,h=2,l=64,d=64,bq=32,align=&;64;64;64;1")},
    {"window", TNI_TEMPLATES(SPARSE_WINDOWS)},
    {"mask", TNI_TEMPLATES(SPARSE_MASKS)},
    {"lists", TNI_TEMPLATES(SPARSE_LISTS)},
    {"sizes", TNI_TEMPLATES(SPARSE_SIZES)},
    {"groups", TNI_TEMPLATES("b=1,h=4,hk=1,lq=5,lk=300,d=64,bq=4,bk=64",
                             "b=1,h=6,hk=3,l=?q<90>,d=64,bq=16,entries=40")},
    {"lse", TNI_TEMPLATES("b=1,h=2,l=35,d=24,bq=8,lse=1",
                          "b=1,h=2,lq=?q<60>,lk=?k<60>,d=64,bq=16,entries=4,lse=1")},
    {"dv", TNI_TEMPLATES(SPARSE_VALUE_SIZES)},
    {"strides", TNI_TEMPLATES(SPARSE_STRIDES, "b=1,h=2,l=33,d=64,bq=16,so=4224;2112;64;-1",
                              "b=1,h=2,l=33,d=64,bq=16,sk=4224;-2112;64;1")},
    {"out", TNI_TEMPLATES(SPARSE_OUTS)},
    {"order",
     TNI_TEMPLATES("b=1,h=1,l=9,d=8,bq=4,slots=9", "b=2,h=2,l=35,d=24,bq=8,slots=35,layout=blhd",
                   "b=2,h=4,hk=2,l=50,d=64,bq=16,sizes=1,slots=70,entries=40,lse=1",
                   "b=2,h=1,l=35,d=24,bq=8,slots=35,sorder=0;1",
                   "b=1,h=2,l=?q<90>,d=64,bq=?m<40>,sizes=1,slots=?q+40,entries=?e<20>,out=f32")},
    {"nonfinite", TNI_TEMPLATES("b=1,h=2,l=35,d=24,bq=8", "b=1,h=2,l=64,d=128,bq=16,mask=causal",
                                "b=2,h=2,l=70,d=16,bq=32,bk=24,sizes=1,entries=20",
                                "b=1,h=2,lq=?q<40>,lk=?k<190>,d=64,bq=16,bk=?n<70>")},
    {0},
};

static tni_reads count_reads(const tn_op *op, int32_t operand)
{
    const tn_attention_op *at = &TN_PARAMS(op, attention_sparse)->at;
    switch (operand) {
    case TN_ATTENTION_SPARSE_Q: return (tni_reads){(double)at->size, true};
    case TN_ATTENTION_SPARSE_K: return (tni_reads){(double)at->size * (double)at->keys, true};
    case TN_ATTENTION_SPARSE_V: return (tni_reads){(double)at->keys, false};
    default: return (tni_reads){0, true};
    }
}

/* Tables. */
bool tni_attention_sparse_is_table(const tn_op *op, int32_t operand)
{
    (void)op;
    return operand >= TN_ATTENTION_SPARSE_STARTS && !tni_attention_sparse_is_whole(operand);
}

/* A source of random numbers. */
typedef struct dice {
    double (*draw)(void *user);
    void *user;
} dice;

/* Returns a random integer from `least` to `most`. */
static int64_t draw_between(const dice *from, int64_t least, int64_t most)
{
    return least + (int64_t)(from->draw(from->user) * (double)(most - least + 1));
}

static void store(const tni_operands *operands, int32_t index, int64_t i, int64_t j, int64_t k,
                  int64_t value)
{
    const tn_layout *layout = &operands->op->operand[index];
    const tni_place place = {{i, j, k}};
    const int32_t number = (int32_t)value;
    const tni_operand *block = &operands->operand[index];
    memcpy(block->host + block->first + tni_place_in(&place, layout) * (int64_t)sizeof number,
           &number, sizeof number);
}

/* Divides the entries among all rows: about equally many each, some none. */
static void fill_starts(const tni_operands *operands, const dice *from)
{
    const tn_attention_sparse_op *sparse = TN_PARAMS(operands->op, attention_sparse);
    const tn_layout *starts = &operands->op->operand[TN_ATTENTION_SPARSE_STARTS];
    const int64_t batch = tn_sparse_distinct_(starts, 0), heads = tn_sparse_distinct_(starts, 1);
    const int64_t entries = operands->op->operand[TN_ATTENTION_SPARSE_BLOCKS].shape[0];
    int64_t at = 0;
    for (int64_t i = 0; i < batch * heads; i++) {
        store(operands, TN_ATTENTION_SPARSE_STARTS, i / heads, i % heads, 0, at);
        for (int64_t n = 0; n < sparse->query_blocks; n++) {
            const int64_t rows = (batch * heads - i) * sparse->query_blocks - n;
            const int64_t rest = entries - at, mean = rows > 1 ? rest / rows : rest;
            int64_t count = draw_between(from, mean - mean / 4 - (mean < 4), mean + mean / 4 + 1);
            count = rows == 1 ? rest : count;
            count = count < 0 ? 0 : count < rest ? count : rest;
            at += count < sparse->key_blocks ? count : sparse->key_blocks;
            store(operands, TN_ATTENTION_SPARSE_STARTS, i / heads, i % heads, n + 1, at);
        }
    }
}

/* Draws the blocks of each row, each set of them with the same probability. Unused entries are -1. */
static void fill_blocks(const tni_operands *operands, const dice *from)
{
    const tn_attention_sparse_op *sparse = TN_PARAMS(operands->op, attention_sparse);
    const tn_layout *starts = &operands->op->operand[TN_ATTENTION_SPARSE_STARTS];
    const int64_t batch = tn_sparse_distinct_(starts, 0), heads = tn_sparse_distinct_(starts, 1);
    const int64_t entries = operands->op->operand[TN_ATTENTION_SPARSE_BLOCKS].shape[0];
    void *data[TN_OP_OPERANDS_MAX];
    const tn_run run = {.struct_size = sizeof run, .op = operands->op, .data = data};
    int64_t at = 0;
    tni_operands_on_host(operands, data);
    for (int64_t i = 0; i < batch * heads * sparse->query_blocks; i++) {
        tn_sparse_row row;
        const int64_t head = i / sparse->query_blocks;
        tn_attention_sparse_row(&run, head / heads, head % heads, i % sparse->query_blocks, &row);
        for (int64_t block = 0; row.at < row.end; block++) {
            const double chance = (double)(row.end - row.at) / (double)(sparse->key_blocks - block);
            if (from->draw(from->user) >= chance)
                continue;
            store(operands, TN_ATTENTION_SPARSE_BLOCKS, row.at++, 0, 0, block);
        }
        at = row.end;
    }
    for (; at < entries; at++)
        store(operands, TN_ATTENTION_SPARSE_BLOCKS, at, 0, 0, -1);
}

/* With ORDER, as many slots are in use as there are tokens, the same ones for the whole batch. */
static void fill_used_slots(const tni_operands *operands, const dice *from)
{
    const tn_attention_sparse_op *sparse = TN_PARAMS(operands->op, attention_sparse);
    const tn_layout *sizes = &operands->op->operand[TN_ATTENTION_SPARSE_SIZES];
    int64_t slots = tn_attention_sparse_slots(operands->op), tokens = sparse->at.keys;
    for (int64_t n = 0; n < sparse->key_blocks; n++) {
        const int64_t most = slots < sparse->block_keys ? slots : sparse->block_keys;
        const int64_t after = slots - most, least = tokens > after ? tokens - after : 0;
        const int64_t size = draw_between(from, least, most < tokens ? most : tokens);
        for (int64_t b = 0; b < tn_sparse_distinct_(sizes, 0); b++)
            store(operands, TN_ATTENTION_SPARSE_SIZES, b, n, 0, size);
        slots = after;
        tokens -= size;
    }
}

/* Draws the tokens of the slots in use, each once; the other slots have any tokens. */
static void fill_order(const tni_operands *operands, const dice *from)
{
    const tn_attention_sparse_op *sparse = TN_PARAMS(operands->op, attention_sparse);
    const tn_layout *order = &operands->op->operand[TN_ATTENTION_SPARSE_ORDER];
    const int64_t tokens = sparse->at.keys;
    void *data[TN_OP_OPERANDS_MAX];
    const tn_run run = {.struct_size = sizeof run, .op = operands->op, .data = data};
    tni_operands_on_host(operands, data);
    for (int64_t b = 0; b < tn_sparse_distinct_(order, 0); b++) {
        for (int64_t slot = 0, used = 0; slot < order->shape[1]; slot++) {
            const int64_t block = slot / sparse->block_keys;
            const bool in_use =
                slot % sparse->block_keys < tn_attention_sparse_size(&run, b, block);
            const int64_t token = in_use ? used++ : draw_between(from, 0, tokens - 1);
            store(operands, TN_ATTENTION_SPARSE_ORDER, b, slot, 0, token);
        }
        for (int64_t slot = order->shape[1]; slot-- > 0;) { /* exchanges pairs of slots in use */
            const int64_t other = draw_between(from, 0, slot);
            if (slot % sparse->block_keys >=
                    tn_attention_sparse_size(&run, b, slot / sparse->block_keys) ||
                other % sparse->block_keys >=
                    tn_attention_sparse_size(&run, b, other / sparse->block_keys))
                continue;
            const int64_t token = tn_attention_sparse_token(&run, b, slot);
            store(operands, TN_ATTENTION_SPARSE_ORDER, b, slot, 0,
                  tn_attention_sparse_token(&run, b, other));
            store(operands, TN_ATTENTION_SPARSE_ORDER, b, other, 0, token);
        }
    }
}

/* The first block is whole; of three or more, the second one is empty. */
static void fill_sizes(const tni_operands *operands, const dice *from)
{
    const tn_attention_sparse_op *sparse = TN_PARAMS(operands->op, attention_sparse);
    const tn_layout *sizes = &operands->op->operand[TN_ATTENTION_SPARSE_SIZES];
    for (int64_t b = 0; b < tn_sparse_distinct_(sizes, 0); b++) {
        for (int64_t n = 0; n < sparse->key_blocks; n++) {
            const int64_t left = sparse->at.keys - n * sparse->block_keys;
            const int64_t most = left < sparse->block_keys ? left : sparse->block_keys;
            const int64_t some = draw_between(from, 0, most);
            store(operands, TN_ATTENTION_SPARSE_SIZES, b, n, 0,
                  n == 0                             ? most
                  : n == 1 && sparse->key_blocks > 2 ? 0
                                                     : some);
        }
    }
}

void tni_attention_sparse_fill_table(tni_operands *operands, int32_t index,
                                     double (*draw)(void *user), void *user)
{
    const dice from = {draw, user};
    if (!operands->operand[index].host) /* empty */
        return;
    if (index == TN_ATTENTION_SPARSE_STARTS)
        fill_starts(operands, &from);
    else if (index == TN_ATTENTION_SPARSE_BLOCKS)
        fill_blocks(operands, &from);
    else if (index == TN_ATTENTION_SPARSE_ORDER)
        fill_order(operands, &from);
    else if (operands->op->uses & TN_ATTENTION_SPARSE_USES_ORDER)
        fill_used_slots(operands, &from);
    else
        fill_sizes(operands, &from);
}

/* Bounds: the same problem as attention with a boolean mask. */
typedef struct dense {
    tn_op op;
    void *data[TN_OP_OPERANDS_MAX];
    tni_bounds bounds;
    uint8_t *mask;
} dense;

/* Writes which keys the blocks of one head permit, for all queries. */
static void write_mask(const tn_run *run, int64_t b, int64_t h, uint8_t *to)
{
    const tn_attention_sparse_op *sparse = TN_PARAMS(run->op, attention_sparse);
    const bool ordered = run->op->operand[TN_ATTENTION_SPARSE_ORDER].dtype != TN_DTYPE_NONE;
    const int64_t keys = sparse->at.keys;
    for (int64_t n = 0; n < sparse->query_blocks; n++) {
        const int64_t begin = n * sparse->block_queries;
        const int64_t left = sparse->at.queries - begin;
        const int64_t whole = left < sparse->block_queries ? left : sparse->block_queries;
        const int64_t rows = ordered ? tn_attention_sparse_size(run, b, n) : whole;
        if (rows == 0)
            continue;
        uint8_t *first = to + tn_attention_sparse_token(run, b, begin) * keys;
        tn_sparse_row row;
        tn_attention_sparse_row(run, b, h, n, &row);
        for (int64_t block; (block = tn_attention_sparse_next(&row)) >= 0;) {
            const int64_t size = tn_attention_sparse_size(run, b, block);
            for (int64_t i = 0; i < size; i++)
                first[tn_attention_sparse_token(run, b, block * sparse->block_keys + i)] = 1;
        }
        for (int64_t r = 1; r < rows; r++)
            memcpy(to + tn_attention_sparse_token(run, b, begin + r) * keys, first, (size_t)keys);
    }
}

void tni_attention_sparse_bound_release(tni_bounds *bounds)
{
    dense *d = bounds->own;
    if (!d)
        return;
    tni_attention_bounds_release(&d->bounds);
    tni_release(d->mask);
    tni_release(d);
    bounds->own = NULL;
}

/* Makes the problem with a mask. */
static tn_status make_dense(const tni_bounds *bounds, dense *out, tn_error *err)
{
    const tn_op *op = bounds->op;
    const tn_attention_op *at = &TN_PARAMS(op, attention_sparse)->at;
    const tn_run run = {.struct_size = sizeof run, .op = op, .data = bounds->data};
    const int64_t shape[] = {at->batch, at->heads, at->queries, at->keys};
    const size_t head = (size_t)at->queries * (size_t)at->keys;
    tni_op_init(&out->op, tni_attention_sparse_is_backward(op) ? &tni_attention_backward_class
                                                               : &tni_attention_class);
    for (int32_t i = 0; i < op->count; i++) {
        if (!tni_attention_sparse_is_whole(i) && i != TN_ATTENTION_LSE)
            continue;
        out->op.operand[i] = op->operand[i];
        out->data[i] = bounds->data[i];
    }
    *TN_PARAMS_MUTABLE(&out->op, attention) = *at;
    tni_layout_make(&out->op.operand[TN_ATTENTION_MASK], TN_BOOL, shape, 4);
    out->mask = tni_alloc_zeroed((size_t)at->batch * (size_t)at->heads * head + 1, 1);
    if (!out->mask)
        return tni_no_memory(err, "tn_check", "the mask of all queries and keys");
    for (int64_t n = 0; n < at->batch * at->heads; n++)
        write_mask(&run, n / at->heads, n % at->heads, out->mask + (size_t)n * head);
    out->data[TN_ATTENTION_MASK] = out->mask;
    return tni_op_validate(&out->op, err);
}

tn_status tni_attention_sparse_bound_init(tni_bounds *bounds, tn_error *err)
{
    dense *made = tni_alloc_zeroed(1, sizeof *made);
    bounds->own = made;
    if (!made)
        return tni_no_memory(err, "tn_check", "the bounds of a row");
    tn_status status = make_dense(bounds, made, err);
    if (!status) {
        made->bounds = *bounds;
        made->bounds.op = &made->op;
        made->bounds.data = made->data;
        made->bounds.own = NULL;
        status = tni_attention_bounds_init(&made->bounds, err);
    }
    if (status)
        tni_attention_sparse_bound_release(bounds);
    return status;
}

double tni_attention_sparse_bound(tni_bounds *bounds, const tni_place *place, double size)
{
    dense *d = bounds->own;
    return tni_attention_bound(&d->bounds, place, size);
}

/* Blocks of queries are not split. */
static int32_t split_dims(const tn_op *op)
{
    (void)op;
    return 2;
}

/* Heads that share keys are split by the heads of the keys. Entries of lists are not split. */
static bool is_split(const tn_op *op, int32_t operand, int32_t d)
{
    (void)op;
    if (operand == TN_ATTENTION_SPARSE_BLOCKS)
        return false;
    return d < (operand >= TN_ATTENTION_SPARSE_SIZES ? 1 : 2);
}

const tni_op_check tni_attention_sparse_check = {
    .smoke = smoke,
    .aspects = aspects,
    .reads = count_reads,
    .is_table = tni_attention_sparse_is_table,
    .fill_table = tni_attention_sparse_fill_table,
    .bound = tni_attention_sparse_bound,
    .bound_init = tni_attention_sparse_bound_init,
    .bound_release = tni_attention_sparse_bound_release,
    .split_dims = split_dims,
    .is_split = is_split,
};
