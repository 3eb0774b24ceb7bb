#include "cblas_side.h"

#include <limits.h>

/* Returns false if the layout cannot be expressed; `leading` is then the offending value. */
static bool lay(const tni_mm_side *it, int64_t rows, int64_t columns, tni_side *out)
{
    bool empty = rows == 0 || columns == 0;
    out->by_columns = false;
    out->leading = rows > 1 && !empty ? it->row : columns > 0 ? columns : 1;
    if (empty || ((it->column == 1 || columns == 1) && out->leading >= columns))
        return out->leading <= INT_MAX;
    if (it->row != 1 && rows != 1)
        return false;
    out->by_columns = true;
    out->leading = columns > 1 ? it->column : rows;
    return out->leading >= rows && out->leading <= INT_MAX;
}

static tn_status reject_side(tn_refusal *why, const tni_mm_side *it, const tni_side *found,
                             int64_t rows, int64_t columns)
{
    static const char *const names[] = {"a.stride", "b.stride", "out.stride"};
    bool great = found->leading > INT_MAX;
    int64_t least = found->by_columns ? rows : columns;
    (void)tn_refuse(why, TN_REFUSE_STRIDE, names[it->operand], great ? INT_MAX : least,
                    found->leading);
    if (why)
        tn_text_fit(
            why->text, sizeof why->text,
            great ? "the library's integers have 32 bits"
                  : "rows or columns must be contiguous, not overlap, and have positive strides");
    return TN_UNSUPPORTED;
}

tn_status tni_sides_describe(const tn_op *op, tni_mm_product *out, tni_sides *out_sides,
                             tn_refusal *why)
{
    tni_mm_product *p = out;
    tni_mm_describe(op, p);
    if (p->m == 1 && p->n > 1 && p->out.column != 1)
        tni_mm_transpose(p);
    if (p->k > INT_MAX)
        return tn_refuse(why, TN_REFUSE_SHAPE, "k", INT_MAX, p->k);
    if (!lay(&p->a, p->m, p->k, &out_sides->a))
        return reject_side(why, &p->a, &out_sides->a, p->m, p->k);
    if (!lay(&p->b, p->k, p->n, &out_sides->b))
        return reject_side(why, &p->b, &out_sides->b, p->k, p->n);
    if (!lay(&p->out, p->m, p->n, &out_sides->out) || out_sides->out.by_columns)
        return reject_side(why, &p->out, &out_sides->out, p->m, p->n);
    return TN_OK;
}
