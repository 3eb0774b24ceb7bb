/* Graphs of the stub of cuDNN, operation by operation, element by element, in f64 with a rounding where a tensor
 * has a type. It knows no patterns: what a graph means is what its operations say. A score of -infinity stays one
 * when what the graph itself computed is subtracted, and nothing divided by nothing is 0, as NVIDIA's reference has it;
 * not so when what lies in memory is. */
#include "stub_cudnn.h"

#include <math.h>
#include <stdlib.h>

enum { TENSORS_MOST = 160, RANK = 4 };

typedef struct place {
    int64_t at[RANK];
} place;

typedef struct tensor {
    const stub_desc *desc;
    int32_t type;
    int64_t shape[RANK], stride[RANK];
    double *own; /* of what is never in memory */
    void *data;
    const int32_t *places; /* where batches begin, and the last ends, in elements; or NULL */
} tensor;

typedef struct scene {
    const stub_desc *pack;
    int count;
    bool failed;
    tensor tensors[TENSORS_MOST];
} scene;

static double half_to_number(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double sign = bits >> 15 ? -1 : 1;
    if (exponent == 31)
        return fraction ? (double)NAN : sign * (double)INFINITY;
    return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

/* The nearest of what a fraction of so many bits, from an exponent on, can be. */
static double round_to(double x, int bits, int least)
{
    int exponent = 0;
    if (x == 0 || !isfinite(x))
        return x;
    (void)frexp(x, &exponent);
    exponent = (exponent < least ? least : exponent) - bits;
    return ldexp(nearbyint(ldexp(x, -exponent)), exponent);
}

static double to_type(double x, int32_t type)
{
    return type == DNN_F16    ? round_to(x, 11, -13)
           : type == DNN_BF16 ? round_to(x, 8, -125)
           : type == DNN_F32  ? (double)(float)x
                              : x;
}

static uint16_t number_to_half(double x)
{
    const uint16_t sign = signbit(x) ? 0x8000 : 0;
    int exponent = 0;
    if (isnan(x))
        return 0x7e00;
    x = fabs(x);
    if (x > 65504)
        return (uint16_t)(sign | 0x7c00);
    (void)frexp(x, &exponent);
    if (x == 0 || exponent < -13)
        return (uint16_t)(sign | (int)ldexp(x, 24));
    return (uint16_t)(sign | (exponent + 14) << 10 | ((int)ldexp(x, 11 - exponent) & 1023));
}

static double load(const tensor *t, int64_t offset)
{
    uint32_t wide;
    uint16_t narrow;
    float real;
    int32_t whole;
    switch (t->type) {
    case DNN_U8: return ((unsigned char *)t->data)[offset];
    case DNN_I32: memcpy(&whole, (char *)t->data + 4 * offset, 4); return whole;
    case DNN_F32: memcpy(&real, (char *)t->data + 4 * offset, 4); return (double)real;
    case DNN_F16: memcpy(&narrow, (char *)t->data + 2 * offset, 2); return half_to_number(narrow);
    default:
        memcpy(&narrow, (char *)t->data + 2 * offset, 2);
        wide = (uint32_t)narrow << 16;
        memcpy(&real, &wide, sizeof real);
        return (double)real;
    }
}

static void store(const tensor *t, int64_t offset, double x)
{
    const float real = (float)x;
    uint32_t wide;
    uint16_t narrow;
    memcpy(&wide, &real, sizeof wide);
    narrow = t->type == DNN_F16 ? number_to_half(x) : (uint16_t)(wide >> 16);
    const int32_t whole = t->type == DNN_I32 ? (int32_t)x : 0;
    if (t->type == DNN_F32 || t->type == DNN_I32)
        memcpy((char *)t->data + 4 * offset, t->type == DNN_F32 ? (const void *)&real : &whole, 4);
    else
        memcpy((char *)t->data + 2 * offset, &narrow, 2);
}

/* Where an element lies; in a dimension with fewer, as many places as it takes share one. */
static int64_t offset_of(const tensor *t, const int64_t shape[RANK], place p)
{
    int64_t offset = 0, dense = 0;
    for (int d = 0; d < RANK; d++) {
        const int64_t at = t->shape[d] == shape[d] ? p.at[d] : p.at[d] * t->shape[d] / shape[d];
        offset += d == 0 && t->places ? t->places[at] : at * t->stride[d];
        dense = dense * t->shape[d] + at;
    }
    return t->own ? dense : offset;
}

/* Whether a packed sequence has the row; K's are the columns. */
static bool has_row(const tensor *t, place p)
{
    const int d = t->stride[2] == 1 && t->shape[3] > 1 ? 3 : 2;
    return !t->places ||
           p.at[d] * t->stride[d] < t->places[p.at[0] + 1] - (int64_t)t->places[p.at[0]];
}

static double get(const tensor *t, const int64_t shape[RANK], place p)
{
    if (!has_row(t, p))
        return 0;
    const int64_t offset = offset_of(t, shape, p);
    return t->own ? t->own[offset] : load(t, offset);
}

static void put(const tensor *t, place p, double x)
{
    if (!has_row(t, p))
        return;
    const int64_t offset = offset_of(t, t->shape, p);
    const double rounded = to_type(x, t->type);
    if (t->own)
        t->own[offset] = rounded;
    else
        store(t, offset, rounded);
}

/* The next place of a shape; false after the last. */
static bool step(const int64_t shape[RANK], place *p)
{
    for (int d = RANK - 1; d >= 0; d--) {
        if (++p->at[d] < shape[d])
            return true;
        p->at[d] = 0;
    }
    return false;
}

static void *data_of(const scene *s, int64_t id)
{
    int64_t count = 0;
    const int64_t *ids = stub_values(s->pack, DNN_PACK_IDS, &count);
    void *const *data = stub_values(s->pack, DNN_PACK_POINTERS, NULL);
    for (int64_t i = 0; ids && data && i < count; i++) {
        if (ids[i] == id)
            return data[i];
    }
    return NULL;
}

static void open_tensor(scene *s, const stub_desc *desc, tensor *out)
{
    const bool *is_between = stub_values(desc, DNN_TENSOR_VIRTUAL, NULL);
    const int32_t *type = stub_values(desc, DNN_TENSOR_TYPE, NULL);
    size_t elements = 1;
    *out = (tensor){.desc = desc, .type = *type};
    memcpy(out->shape, stub_values(desc, DNN_TENSOR_SHAPE, NULL), sizeof out->shape);
    memcpy(out->stride, stub_values(desc, DNN_TENSOR_STRIDES, NULL), sizeof out->stride);
    for (int d = 0; d < RANK; d++)
        elements *= (size_t)out->shape[d];
    if (is_between && *is_between)
        out->own = calloc(elements, sizeof *out->own);
    else
        out->data = data_of(s, *(const int64_t *)stub_values(desc, DNN_TENSOR_ID, NULL));
    const stub_desc *places = stub_child(desc, DNN_TENSOR_PLACES);
    if (places)
        out->places = data_of(s, *(const int64_t *)stub_values(places, DNN_TENSOR_ID, NULL));
    s->failed = s->failed || (!out->own && !out->data) || (places && !out->places);
}

/* The tensor of one of an operation's attributes; NULL for none. */
static tensor *tensor_of(scene *s, const stub_desc *op, dnn_attribute name)
{
    const stub_desc *desc = stub_child(op, name);
    if (!desc)
        return NULL;
    for (int i = 0; i < s->count; i++) {
        if (s->tensors[i].desc == desc)
            return &s->tensors[i];
    }
    if (s->count == TENSORS_MOST) {
        s->failed = true;
        return NULL;
    }
    tensor *made = &s->tensors[s->count++];
    open_tensor(s, desc, made);
    return made;
}

/* How many rows or columns count in a batch. */
static int64_t bound(const tensor *table, int64_t batch, int64_t all)
{
    return table ? (int64_t)load(table, batch * table->stride[0]) : all;
}

static void compute_matmul(scene *s, const stub_desc *op)
{
    const tensor *a = tensor_of(s, op, DNN_OP_MATMUL_A), *b = tensor_of(s, op, DNN_OP_MATMUL_B);
    const tensor *c = tensor_of(s, op, DNN_OP_MATMUL_C), *m = tensor_of(s, op, DNN_OP_MATMUL_M);
    const tensor *n = tensor_of(s, op, DNN_OP_MATMUL_N), *k = tensor_of(s, op, DNN_OP_MATMUL_K);
    place p = {{0}};
    if (s->failed || !a || !b || !c)
        return;
    const int64_t rows[] = {c->shape[0], c->shape[1], c->shape[2], a->shape[3]};
    const int64_t columns[] = {c->shape[0], c->shape[1], b->shape[2], c->shape[3]};
    do {
        const int64_t batch = p.at[0], most = bound(k, batch, a->shape[3]);
        double sum = 0;
        const bool counts =
            p.at[2] < bound(m, batch, c->shape[2]) && p.at[3] < bound(n, batch, c->shape[3]);
        if (counts && k && most == 0) /* as 9.14 on an H200 */
            sum = (double)NAN;
        for (int64_t i = 0; counts && i < most; i++) {
            const place left = {{p.at[0], p.at[1], p.at[2], i}};
            const place right = {{p.at[0], p.at[1], i, p.at[3]}};
            const double x = get(a, rows, left);
            sum += x == 0 ? 0 : x * get(b, columns, right);
        }
        put(c, p, sum);
    } while (step(c->shape, &p));
}

static double function_of(int32_t mode, double x, double b, double t)
{
    switch (mode) {
    case DNN_ADD: return x + b;
    case DNN_MUL: return x * b;
    case DNN_MAX: return x > b ? x : b;
    case DNN_MIN: return x < b ? x : b;
    case DNN_SUB: return x - b;
    case DNN_DIV: return x == 0 && b == 0 ? 0 : x / b;
    case DNN_EXP: return exp(x);
    case DNN_LOG: return log(x);
    case DNN_TANH: return tanh(x);
    case DNN_IDENTITY: return x;
    case DNN_GREATER: return x > b;
    case DNN_GREATER_EQUAL: return x >= b;
    case DNN_LESS: return x < b;
    case DNN_AND: return x != 0 && b != 0;
    case DNN_SELECT: return t != 0 ? x : b;
    default: return (double)NAN;
    }
}

static void compute_each(scene *s, const stub_desc *op)
{
    const stub_desc *how = stub_child(op, DNN_OP_POINTWISE_DESC);
    const int32_t mode = *(const int32_t *)stub_values(how, DNN_POINTWISE_MODE, NULL);
    const int64_t *axis = stub_values(how, DNN_POINTWISE_AXIS, NULL);
    const tensor *x = tensor_of(s, op, DNN_OP_POINTWISE_X);
    const tensor *b = tensor_of(s, op, DNN_OP_POINTWISE_B);
    const tensor *t = tensor_of(s, op, DNN_OP_POINTWISE_T);
    const tensor *y = tensor_of(s, op, DNN_OP_POINTWISE_Y);
    place p = {{0}};
    if (s->failed || !x || !y)
        return;
    do {
        if (mode == DNN_SUB && b->own && get(x, y->shape, p) == -(double)INFINITY) {
            put(y, p, -(double)INFINITY);
            continue;
        }
        put(y, p,
            mode == DNN_INDEX ? (double)p.at[*axis]
                              : function_of(mode, get(x, y->shape, p), b ? get(b, y->shape, p) : 0,
                                            t ? get(t, y->shape, p) : 0));
    } while (step(y->shape, &p));
}

static void compute_reduction(scene *s, const stub_desc *op)
{
    const stub_desc *how = stub_child(op, DNN_OP_REDUCTION_DESC);
    const bool most =
        *(const int32_t *)stub_values(how, DNN_REDUCTION_MODE, NULL) == DNN_REDUCE_MAX;
    const tensor *x = tensor_of(s, op, DNN_OP_REDUCTION_X);
    const tensor *y = tensor_of(s, op, DNN_OP_REDUCTION_Y);
    place p = {{0}};
    if (s->failed || !x || !y)
        return;
    do { /* each of y from all of x that shares its place */
        double result = most ? -(double)INFINITY : 0;
        const int64_t target = offset_of(y, y->shape, p);
        place from = {{0}};
        do {
            if (offset_of(y, x->shape, from) != target)
                continue;
            const double value = get(x, x->shape, from);
            result = most ? fmax(result, value) : result + value;
        } while (step(x->shape, &from));
        put(y, p, result);
    } while (step(y->shape, &p));
}

/* The last two dimensions change places. */
static void compute_reshape(scene *s, const stub_desc *op)
{
    const tensor *x = tensor_of(s, op, DNN_OP_RESHAPE_X), *y = tensor_of(s, op, DNN_OP_RESHAPE_Y);
    place p = {{0}};
    if (s->failed || !x || !y)
        return;
    do {
        const place turned = {{p.at[0], p.at[1], p.at[3], p.at[2]}};
        put(y, p, get(x, x->shape, turned));
    } while (step(y->shape, &p));
}

/* What a sequence has not is 0. K is turned: its elements lie together along the one but last dimension. */
static void compute_paged(scene *s, const stub_desc *op)
{
    const tensor *from = tensor_of(s, op, DNN_OP_PAGED_FROM), *y = tensor_of(s, op, DNN_OP_PAGED_Y);
    const tensor *lengths = tensor_of(s, op, DNN_OP_PAGED_LENGTHS);
    const tensor *table = tensor_of(s, op, DNN_OP_PAGED_TABLE);
    place p = {{0}};
    if (s->failed || !from || !y || !lengths || !table)
        return;
    const bool turned = y->stride[2] == 1;
    const int64_t page = from->shape[2];
    do {
        const int64_t key = p.at[turned ? 3 : 2], at = p.at[turned ? 2 : 3];
        const place entry = {{p.at[0], 0, key / page, 0}};
        double x = 0;
        if (key < bound(lengths, p.at[0], 0)) {
            const place where = {
                {(int64_t)get(table, table->shape, entry), p.at[1], key % page, at}};
            x = get(from, from->shape, where);
        }
        put(y, p, x);
    } while (step(y->shape, &p));
}

static void compute_op(scene *s, const stub_desc *op)
{
    switch (op->type) {
    case DNN_OP_MATMUL: compute_matmul(s, op); break;
    case DNN_OP_POINTWISE: compute_each(s, op); break;
    case DNN_OP_REDUCTION: compute_reduction(s, op); break;
    case DNN_OP_RESHAPE: compute_reshape(s, op); break;
    case DNN_OP_PAGED: compute_paged(s, op); break;
    default: s->failed = true;
    }
}

bool stub_compute(const stub_desc *graph, const stub_desc *pack)
{
    int64_t count = 0;
    stub_desc *const *ops = stub_values(graph, DNN_GRAPH_OPS, &count);
    scene *s = calloc(1, sizeof *s);
    if (!s)
        return false;
    s->pack = pack;
    for (int64_t i = 0; i < count && !s->failed; i++)
        compute_op(s, ops[i]);
    for (int i = 0; i < s->count; i++)
        free(s->tensors[i].own);
    const bool failed = s->failed;
    free(s);
    return !failed;
}
