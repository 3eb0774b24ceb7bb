/* Layouts of operands. */
#include "op.h"

#include "base/checked.h"
#include "base/dtype.h"

#include <inttypes.h>

void tni_layout_make(tn_layout *out, tn_dtype dtype, const int64_t *shape, int32_t rank)
{
    out->dtype = dtype;
    out->rank = rank;
    out->alignment = TN_OP_ALIGNMENT_MAX;
    memcpy(out->shape, shape, (size_t)rank * sizeof *shape);
    tni_layout_dense(out);
}

void tni_layout_dense(tn_layout *layout)
{
    int64_t step = 1;
    for (int32_t i = layout->rank; i-- > 0;) {
        layout->stride[i] = step;
        if (layout->shape[i] > 0 && !tni_mul_i64(step, layout->shape[i], &step))
            step = 0;
    }
}

void tni_layout_tidy(tn_layout *layout)
{
    bool empty = false;
    for (int32_t i = 0; i < layout->rank; i++) {
        empty = empty || layout->shape[i] == 0;
        layout->stride[i] = layout->shape[i] > 1 ? layout->stride[i] : 1;
    }
    if (!empty)
        return;
    tni_layout_dense(layout);
    for (int32_t i = 0; i < layout->rank; i++)
        layout->stride[i] = layout->shape[i] > 1 ? layout->stride[i] : 1;
}

int64_t tni_layout_elements(const tn_layout *layout)
{
    int64_t elements = 1;
    for (int32_t i = 0; i < layout->rank; i++)
        elements *= layout->shape[i];
    return elements;
}

double tni_layout_bytes(const tn_layout *layout)
{
    double elements = layout->dtype ? 1 : 0;
    for (int32_t i = 0; i < layout->rank; i++)
        elements *= layout->stride[i] == 0 && layout->shape[i] > 0 ? 1 : (double)layout->shape[i];
    return elements * (double)tni_dtype_bytes(layout->dtype);
}

void tni_layout_swap(tn_layout *layout, int32_t a, int32_t b)
{
    int64_t shape = layout->shape[a], stride = layout->stride[a];
    layout->shape[a] = layout->shape[b];
    layout->stride[a] = layout->stride[b];
    layout->shape[b] = shape;
    layout->stride[b] = stride;
}

tn_status tni_layout_broadcast(tn_layout *layout, const int64_t *shape, int32_t rank,
                               const char *where, const char *name, tn_error *err)
{
    int32_t missing = rank - layout->rank;
    if (missing < 0)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "%s: expected at most %d dimensions, got %d", name, (int)rank,
                       (int)layout->rank);
    if (missing == 0 && memcmp(layout->shape, shape, (size_t)rank * sizeof *shape) == 0)
        return TN_OK;
    for (int32_t i = rank; i-- > 0;) {
        int64_t found = i < missing ? 1 : layout->shape[i - missing];
        if (found != shape[i] && found != 1)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                           "%s: dimension %d: expected %" PRId64 "%s, got %" PRId64, name,
                           (int)(i - missing), shape[i], shape[i] == 1 ? "" : ", or 1 to serve all",
                           found);
        layout->stride[i] = found == shape[i] && i >= missing ? layout->stride[i - missing] : 0;
        layout->shape[i] = shape[i];
    }
    layout->rank = rank;
    tni_layout_tidy(layout);
    return TN_OK;
}

void tni_layout_put_last(tn_layout *layout, uint64_t axes)
{
    tn_layout from = *layout;
    int32_t at = 0;
    for (uint64_t last = 0; last < 2; last++) {
        for (int32_t i = 0; i < from.rank; i++) {
            if ((axes >> i & 1) != last)
                continue;
            layout->shape[at] = from.shape[i];
            layout->stride[at++] = from.stride[i];
        }
    }
}
