#include "bounds.h"

#include "op_check.h"
#include "tenon/module/op/elementwise.h"

static const tni_op_check *check_of(const tn_op *op)
{
    return tni_op_class_of(op->kind)->check;
}

void tni_bounds_read_row(tni_bounds *b, tni_place place, int32_t kept)
{
    const tn_layout *in = &b->op->operand[TN_ELEMENTWISE_IN];
    double squares = 0, sum = 0, count = 0;
    bool more = TN_PARAMS(b->op, elementwise)->size > 0;
    b->greatest = b->total = 0;
    while (more) {
        tni_number x = tni_bounds_input(b, TN_ELEMENTWISE_IN, &place);
        double size = tni_number_size(x);
        if (size > b->greatest && !tni_is_infinite(size))
            b->greatest = size;
        b->total += size;
        sum += x.re;
        squares += size * size;
        count += 1;
        more = false;
        for (int32_t d = in->rank; d-- > in->rank - kept && !more;) {
            more = ++place.index[d] < in->shape[d];
            place.index[d] = more ? place.index[d] : 0;
        }
    }
    b->mean = count > 0 ? sum / count : 0;
    b->square = count > 0 ? squares / count : 0;
}

void tni_bounds_enter_row(tni_bounds *b, const tni_place *place)
{
    const tn_layout *in = &b->op->operand[TN_ELEMENTWISE_IN];
    if (in->rank == 0 || place->index[in->rank - 1] == 0)
        tni_bounds_read_row(b, *place, in->rank > 0);
}

double tni_bounds_at(tni_bounds *bounds, const tni_place *place, tni_number expected)
{
    const tni_op_check *check = check_of(bounds->op);
    tn_dtype out = bounds->op->operand[bounds->output].dtype;
    double size = tni_number_size(expected);
    if (!check->bound || (tni_dtype_is_integer(out) && !check->bounds_integers))
        return 0;
    double bound = check->bound(bounds, place, size);
    if (bound == 0 || tni_dtype_is_integer(out))
        return bound;
    bound += 2 * tni_dtype_roundoff(out) * size + tni_dtype_least(out);
    return tni_is_nan(bound) ? INFINITY : bound;
}

static double default_roundoff(const tn_op *op)
{
    tn_dtype out = op->operand[tni_op_class_of(op->kind)->output].dtype;
    tn_dtype work = tni_dtype_work(op->operand[0].dtype ? op->operand[0].dtype : out);
    return tni_dtype_roundoff(tni_dtype_is_integer(work) ? tni_dtype_work(out) : work);
}

tn_status tni_bounds_init(tni_bounds *bounds, tn_error *err)
{
    const tn_op *op = bounds->op;
    const tni_op_check *check = check_of(op);
    bounds->work = check->roundoff ? check->roundoff(op, bounds->numerics) : default_roundoff(op);
    bounds->sum = tni_bounds_gathered(check->terms ? check->terms(op) : 0);
    return check->bound_init ? check->bound_init(bounds, err) : TN_OK;
}

void tni_bounds_release(tni_bounds *bounds)
{
    const tni_op_check *check = check_of(bounds->op);
    if (check->bound_release)
        check->bound_release(bounds);
}
