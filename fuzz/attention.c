/* Calls of attention with tensors of any shape: an accepted call gives an op whose text parses to
 * the same op, and a refused one gives a reason. No element is read. */
#include "input.h"

#include "op/attention/attention.h"
#include "op/op.h"
#include "tenon/attention.h"
#include "tenon/dlpack.h"

enum { TENSORS = TN_ATTENTION_OPERANDS, DIMS = TN_OP_RANK_MAX, APART = 1 << 16 };

static char memory[TENSORS][APART];

/* A call under construction. */
typedef struct call {
    input in;
    int64_t batch, heads, groups, queries, keys, size, value_size;
    tn_dtype dtype;
    int32_t layout;
    int64_t shape[TENSORS][DIMS], stride[TENSORS][DIMS];
    tn_tensor tensor[TENSORS];
    int32_t count;
} call;

/* Wrapping arithmetic: numbers may be arbitrary, so results may overflow. */
static int64_t times(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

static int64_t plus_one(int64_t a)
{
    return (int64_t)((uint64_t)a + 1);
}

static int64_t take_size(input *in)
{
    return take_number(in, 1 + take_byte(in) % 5);
}

static void begin(call *c, const uint8_t *data, size_t size)
{
    static const tn_dtype dtypes[] = {TN_F32, TN_BF16, TN_F64, TN_F16, TN_I32};
    *c = (call){.in = {data, size}};
    c->batch = take_size(&c->in);
    c->groups = take_size(&c->in);
    c->heads = take_number(&c->in, times(c->groups, 1 + take_byte(&c->in) % 3));
    c->queries = take_size(&c->in);
    c->keys = take_size(&c->in);
    c->size = take_size(&c->in);
    c->value_size = take_number(&c->in, c->size);
    c->dtype = dtypes[take_byte(&c->in) % (sizeof dtypes / sizeof dtypes[0])];
    c->layout = (int32_t)take_number(&c->in, take_byte(&c->in) % TN_LAYOUT_COUNT);
}

/* Makes a tensor, usually with these dimensions. */
static const tn_tensor *make(call *c, tn_dtype dtype, int32_t rank, const int64_t *shape)
{
    int32_t i = c->count++;
    tn_tensor *t = &c->tensor[i];
    uint8_t choice = take_byte(&c->in);
    *t = (tn_tensor){.data = choice & 1 && choice > 240 ? NULL : memory[i] + APART / 2,
                     .device_type = TN_DLPACK_CPU,
                     .ndim = (int32_t)take_number(&c->in, rank),
                     .dtype = (tn_dtype)take_number(&c->in, (int64_t)dtype),
                     .shape = c->shape[i],
                     .strides = choice & 2 ? c->stride[i] : NULL,
                     .byte_offset = (uint64_t)take_number(&c->in, 0)};
    t->ndim = t->ndim < 0 || t->ndim > DIMS ? rank : t->ndim;
    int64_t step = 1;
    for (int32_t d = t->ndim; d-- > 0;) {
        c->shape[i][d] = take_number(&c->in, d < rank ? shape[d] : 1);
        c->stride[i][d] = take_number(&c->in, step);
        step = times(step, c->shape[i][d]);
    }
    return t;
}

/* Makes [batch, heads, length, size] in the order of the layout. */
static const tn_tensor *make_whole(call *c, tn_dtype dtype, int64_t heads, int64_t length,
                                   int64_t size)
{
    bool turned = c->layout == TN_LAYOUT_BLHD;
    const int64_t shape[] = {c->batch, turned ? length : heads, turned ? heads : length, size};
    return make(c, dtype, 4, shape);
}

static const tn_tensor *make_rows(call *c)
{
    const int64_t shape[] = {c->batch, c->heads, c->queries};
    return make(c, c->dtype == TN_F64 ? TN_F64 : TN_F32, 3, shape);
}

static const tn_tensor *make_mask(call *c)
{
    const int64_t shape[] = {c->batch, c->heads, c->queries, c->keys};
    return make(c, take_byte(&c->in) % 2 ? TN_BOOL : c->dtype, 4, shape);
}

static const tn_tensor *make_table(call *c, int64_t rows)
{
    const int64_t shape[] = {rows, take_byte(&c->in) % 4};
    return make(c, TN_I32, 1, shape);
}

static tn_status make_forward(call *c, tni_problem *out, tn_error *err)
{
    uint8_t has = take_byte(&c->in);
    tn_attention_args args = {.struct_size = sizeof args, .layout = c->layout};
    args.q = make_whole(c, c->dtype, c->heads, c->queries, c->size);
    args.k = make_whole(c, c->dtype, c->groups, c->keys, c->size);
    args.v = make_whole(c, c->dtype, c->groups, c->keys, c->value_size);
    args.out = make_whole(c, has & 1 ? TN_F32 : c->dtype, c->heads, c->queries, c->value_size);
    args.lse = has & 2 ? make_rows(c) : NULL;
    args.mask_tensor = has & 4 ? make_mask(c) : NULL;
    args.sinks = has & 8 ? make(c, c->dtype, 1, &c->heads) : NULL;
    args.starts_q = has & 16 ? make_table(c, plus_one(c->batch)) : NULL;
    args.starts_k = has & 32 ? make_table(c, plus_one(c->batch)) : NULL;
    args.lengths = has & 64 ? make_table(c, c->batch) : NULL;
    args.pages = has & 128 ? make_table(c, c->batch) : NULL;
    take(&c->in, &args.scale, sizeof args.scale);
    take(&c->in, &args.softcap, take_byte(&c->in) % 4 ? 0 : sizeof args.softcap);
    args.dropout = take_byte(&c->in) / 128.0;
    args.mask = (int32_t)take_number(&c->in, take_byte(&c->in) % TN_MASK_COUNT);
    args.window_left = take_number(&c->in, 0);
    args.window_right = take_number(&c->in, 0);
    args.max_queries = take_number(&c->in, 0);
    args.max_keys = take_number(&c->in, 0);
    args.backend = (int32_t)take_number(&c->in, 0);
    args.set = take_byte(&c->in) % 4;
    return tni_attention_make(&args, out, err);
}

static tn_status make_backward(call *c, tni_problem *out, tn_error *err)
{
    uint8_t has = take_byte(&c->in);
    tn_attention_backward_args args = {.struct_size = sizeof args, .layout = c->layout};
    args.q = make_whole(c, c->dtype, c->heads, c->queries, c->size);
    args.k = make_whole(c, c->dtype, c->groups, c->keys, c->size);
    args.v = make_whole(c, c->dtype, c->groups, c->keys, c->value_size);
    args.out = make_whole(c, c->dtype, c->heads, c->queries, c->value_size);
    args.lse = make_rows(c);
    args.mask_tensor = has & 4 ? make_mask(c) : NULL;
    args.dout = make_whole(c, c->dtype, c->heads, c->queries, c->value_size);
    args.dq = make_whole(c, c->dtype, c->heads, c->queries, c->size);
    args.dk = make_whole(c, c->dtype, c->groups, c->keys, c->size);
    args.dv = make_whole(c, c->dtype, c->groups, c->keys, c->value_size);
    args.dropout = take_byte(&c->in) / 128.0;
    args.mask = (int32_t)take_number(&c->in, take_byte(&c->in) % TN_MASK_COUNT);
    args.backend = (int32_t)take_number(&c->in, 0);
    return tni_attention_backward_make(&args, out, err);
}

static tn_status make_merge(call *c, tni_problem *out, tn_error *err)
{
    uint8_t has = take_byte(&c->in);
    tn_attention_merge_args args = {.struct_size = sizeof args, .layout = c->layout};
    args.in = make_whole(c, c->dtype, c->heads, c->queries, c->size);
    args.lse_in = make_rows(c);
    args.other = make_whole(c, c->dtype, c->heads, c->queries, c->size);
    args.lse_other = make_rows(c);
    args.out = make_whole(c, c->dtype, c->heads, c->queries, c->size);
    args.lse = has & 1 ? make_rows(c) : NULL;
    return tni_attention_merge_make(&args, out, err);
}

/* An accepted op must have a consistent cost and key, and a text that describes it. */
static void require_op(const tn_op *op)
{
    uint64_t key[TNI_KEY_MOST], again_key[TNI_KEY_MOST];
    tni_buffer text = {0};
    char device[8];
    double flops, bytes;
    tn_op again;
    tni_op_class_of(op->kind)->cost(op, &flops, &bytes);
    require(flops >= 0 && bytes >= 0);
    tni_problem_write(op, "", &text);
    require(!text.failed && !tni_problem_parse(text.text, &again, device, sizeof device, NULL));
    size_t count = tni_op_key(op, key);
    require(count <= TNI_KEY_MOST && tni_op_key(&again, again_key) == count);
    require(memcmp(key, again_key, count * sizeof key[0]) == 0);
    require(tni_op_is_empty(op) == tni_op_is_empty(&again));
    tni_buffer_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tn_error err = {0};
    tni_problem problem;
    call c;
    begin(&c, data, size);
    uint8_t kind = take_byte(&c.in) % 4;
    tn_status status = kind == 0   ? make_backward(&c, &problem, &err)
                       : kind == 1 ? make_merge(&c, &problem, &err)
                                   : make_forward(&c, &problem, &err);
    if (status)
        require(err.status == status && err.message[0]);
    else
        require_op(&problem.op);
    return 0;
}
