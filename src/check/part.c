#include "part.h"

#include "base/dtype.h"
#include "tenon/module/op/elementwise.h"
#include "tenon/random.h"

static const tn_layout *output_of(const tn_op *op)
{
    return &op->operand[tni_op_class_of(op->kind)->output];
}

static const tni_op_check *check_of(const tn_op *op)
{
    return tni_op_class_of(op->kind)->check;
}

int32_t tni_split_rows(const tn_op *op)
{
    int32_t rank = output_of(op)->rank;
    return rank > 0 ? rank - 1 : 0;
}

/* Returns how many of the output's first dimensions can be split. */
static int32_t dims_of(const tn_op *op)
{
    return check_of(op)->split_dims ? check_of(op)->split_dims(op) : output_of(op)->rank;
}

/* Returns whether an operand's dimension is split with the output's. */
static bool is_split(const tn_op *op, int32_t operand, int32_t d)
{
    return check_of(op)->is_split ? check_of(op)->is_split(op, operand, d) : d < dims_of(op);
}

static int64_t min_int64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Returns the range of one dimension of an operand that belongs to a part. An operand may have fewer
 * elements there than the output, each for several of the output's: heads that share keys. */
static void extent_of(const tn_op *op, const tni_part *part, int32_t operand, int32_t d,
                      int64_t *out_begin, int64_t *out_count)
{
    int64_t have = op->operand[operand].shape[d], whole = output_of(op)->shape[d];
    bool shared = have != whole && have > 0 && whole > 0;
    *out_begin = shared ? part->begin[d] / (whole / have) : part->begin[d];
    *out_count = shared ? part->count[d] / (whole / have) : part->count[d];
    *out_count = shared && *out_count == 0 ? 1 : *out_count;
}

tn_status tni_part_extract(const tn_op *op, void *const *data, const tni_part *part, tn_op *out_op,
                           void *out_data[TN_OP_OPERANDS_MAX], tn_error *err)
{
    *out_op = *op;
    if (tni_op_class_of(op->kind)->may_be_in_place)
        out_op->uses &= ~(uint64_t)TN_ELEMENTWISE_USES_IN_PLACE;
    for (int32_t i = 0; i < op->count; i++) {
        tn_layout *layout = &out_op->operand[i];
        int64_t bytes = tni_dtype_bytes(layout->dtype), skipped = 0, begin;
        for (int32_t d = 0; d < layout->rank && layout->dtype; d++) {
            if (!is_split(op, i, d))
                continue;
            extent_of(op, part, i, d, &begin, &layout->shape[d]);
            skipped += begin * layout->stride[d];
        }
        layout->alignment = skipped ? min_int64(layout->alignment, bytes) : layout->alignment;
        out_data[i] = data[i] ? (char *)data[i] + skipped * bytes : NULL;
    }
    if (check_of(op)->shift_part)
        check_of(op)->shift_part(op, part, out_op, out_data);
    return tni_op_validate(out_op, err);
}

int64_t tni_part_place(const tn_op *op, const tni_part *part, int32_t output, int64_t at)
{
    const tn_layout *layout = &op->operand[output];
    int64_t place = 0, step = 1;
    for (int32_t d = layout->rank; d-- > 0;) {
        int64_t begin = 0, count = layout->shape[d];
        if (is_split(op, output, d))
            extent_of(op, part, output, d, &begin, &count);
        place += (begin + at % count) * step;
        at /= count;
        step *= layout->shape[d];
    }
    return place;
}

/* The arguments of tni_parts_visit. */
typedef struct tour {
    const tn_op *op;
    tni_part_visit *visit;
    void *user;
    tn_error *err;
} tour;

static void set_whole_part(const tn_op *op, tni_part *out)
{
    const tn_layout *layout = output_of(op);
    *out = (tni_part){{0}, {0}};
    for (int32_t d = 0; d < layout->rank; d++)
        out->count[d] = layout->shape[d];
}

/* Visits each combination of first and last element; once for dimensions of length 1. */
static tn_status visit_corners(const tour *t)
{
    const tn_layout *layout = output_of(t->op);
    int32_t dims = dims_of(t->op);
    tn_status status = TN_OK;
    for (uint32_t corner = 0; corner < UINT32_C(1) << dims && !status; corner++) {
        bool twice = false;
        tni_part part;
        set_whole_part(t->op, &part);
        for (int32_t d = 0; d < dims; d++) {
            bool last = corner >> d & 1;
            part.begin[d] = last ? layout->shape[d] - 1 : 0;
            part.count[d] = 1;
            twice = twice || (last && layout->shape[d] == 1);
        }
        if (!twice)
            status = t->visit(t->user, &part, t->err);
    }
    return status;
}

/* Visits one row or column of a matrix, shortened to the permitted number of operations. */
static tn_status visit_line(const tour *t, bool last, int32_t along)
{
    const tn_layout *layout = output_of(t->op);
    int64_t cost = check_of(t->op)->line_cost(t->op);
    int64_t most = (int64_t)5e7 / (cost > 0 ? cost : 1) + 1;
    tni_part part;
    set_whole_part(t->op, &part);
    for (int32_t d = 0; d < layout->rank; d++) {
        part.count[d] = d == along ? min_int64(layout->shape[d], most) : 1;
        part.begin[d] = last ? layout->shape[d] - part.count[d] : 0;
    }
    return t->visit(t->user, &part, t->err);
}

static tn_status visit_edges(const tour *t)
{
    int32_t rank = output_of(t->op)->rank;
    tn_status status = TN_OK;
    for (int32_t i = 0; i < 4 && !status; i++)
        status = visit_line(t, i & 1, rank - 1 - i / 2);
    return status;
}

/* Returns how many random parts are checked: about 4096 outputs and at least 16 parts, but only one part
 * more than 2e9 operations allow. */
static int64_t count_random(const tn_op *op)
{
    enum { OUTPUTS = 4096, PARTS_LEAST = 16 };
    const tn_layout *layout = output_of(op);
    int32_t dims = dims_of(op);
    int64_t row = dims < layout->rank ? layout->shape[dims] : 1, parts = 1;
    int64_t visits = OUTPUTS / (row > 0 ? row : 1);
    double flops, bytes;
    tni_op_class_of(op->kind)->cost(op, &flops, &bytes);
    for (int32_t d = 0; d < dims; d++)
        parts *= layout->shape[d];
    visits = visits < PARTS_LEAST ? PARTS_LEAST : visits;
    return (double)visits * (flops / (double)parts) <= 2e9
               ? visits
               : (int64_t)(2e9 / (flops / (double)parts)) + 1;
}

static tn_status visit_random(const tour *t, tn_generator *generator)
{
    const tn_layout *layout = output_of(t->op);
    const int64_t visits = count_random(t->op);
    int32_t dims = dims_of(t->op);
    tn_status status = TN_OK;
    for (int64_t i = 0; i < visits && !status; i++) {
        double at[TN_OP_RANK_MAX];
        tni_part part;
        set_whole_part(t->op, &part);
        status = tn_random_fill_uniform(generator, TN_F64, at, TN_OP_RANK_MAX, t->err);
        for (int32_t d = 0; d < dims; d++) {
            part.begin[d] = (int64_t)(at[d] * (double)layout->shape[d]);
            part.count[d] = 1;
        }
        if (!status)
            status = t->visit(t->user, &part, t->err);
    }
    return status;
}

tn_status tni_parts_visit(const tn_op *op, bool sampled, uint64_t seed, tni_part_visit *visit,
                          void *user, tn_error *err)
{
    const tour t = {op, visit, user, err};
    tn_generator *generator = NULL;
    tni_part all;
    set_whole_part(op, &all);
    if (!sampled || tni_layout_elements(output_of(op)) == 0)
        return visit(user, &all, err);
    tn_status status = visit_corners(&t);
    if (!status && check_of(op)->line_cost)
        status = visit_edges(&t);
    if (!status)
        status = tn_generator_create(seed, &generator, err);
    if (!status)
        status = visit_random(&t, generator);
    tn_generator_release(generator);
    return status;
}
