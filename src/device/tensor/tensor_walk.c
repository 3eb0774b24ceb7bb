/* Iteration over two tensors of one shape, in as few dimensions as their layouts allow. */
#include "tensor.h"

static void add_dimension(tni_walk *walk, int64_t count, int64_t to_step, int64_t from_step)
{
    int32_t at = walk->ndim++;
    if (to_step < 0) {
        walk->to += (count - 1) * to_step;
        walk->from += (count - 1) * from_step;
        to_step = -to_step;
        from_step = -from_step;
    }
    for (; at > 0 && walk->to_step[at - 1] < to_step; at--) {
        walk->count[at] = walk->count[at - 1];
        walk->to_step[at] = walk->to_step[at - 1];
        walk->from_step[at] = walk->from_step[at - 1];
    }
    walk->count[at] = count;
    walk->to_step[at] = to_step;
    walk->from_step[at] = from_step;
}

/* Merges what is contiguous on both sides into one run of bytes. */
static void join_runs(tni_walk *walk)
{
    while (walk->ndim > 0) {
        int32_t last = walk->ndim - 1;
        if (walk->to_step[last] != walk->bytes || walk->from_step[last] != walk->bytes)
            return;
        walk->bytes *= walk->count[last];
        walk->ndim = last;
    }
}

static bool goes_on(int64_t outer, int64_t count, int64_t inner)
{
    return outer % count == 0 && outer / count == inner;
}

/* Merges two dimensions if the outer continues where the inner ends. */
static void join_dimensions(tni_walk *walk)
{
    int32_t kept = 0;
    for (int32_t i = 1; i < walk->ndim; i++) {
        if (goes_on(walk->to_step[kept], walk->count[i], walk->to_step[i]) &&
            goes_on(walk->from_step[kept], walk->count[i], walk->from_step[i])) {
            walk->count[kept] *= walk->count[i];
        } else {
            kept++;
            walk->count[kept] = walk->count[i];
        }
        walk->to_step[kept] = walk->to_step[i];
        walk->from_step[kept] = walk->from_step[i];
    }
    if (walk->ndim > 0)
        walk->ndim = kept + 1;
}

void tni_walk_plan(const tn_tensor *from, const tn_tensor *to, int64_t size, tni_walk *out)
{
    int64_t from_dense[TN_TENSOR_NDIM_MAX], to_dense[TN_TENSOR_NDIM_MAX];
    const int64_t *from_strides = from->strides, *to_strides = to->strides;
    out->to = tni_tensor_first(to);
    out->from = tni_tensor_first(from);
    out->bytes = size;
    out->ndim = 0;
    if (!from_strides) {
        tni_strides_dense(from->shape, from->ndim, from_dense);
        from_strides = from_dense;
    }
    if (!to_strides) {
        tni_strides_dense(to->shape, to->ndim, to_dense);
        to_strides = to_dense;
    }
    for (int32_t i = 0; i < to->ndim; i++) {
        if (to->shape[i] > 1)
            add_dimension(out, to->shape[i], to_strides[i] * size, from_strides[i] * size);
    }
    join_runs(out);
    join_dimensions(out);
}

/* Copies along one dimension. Common element sizes are constants, so that each copy is a load and a
 * store. */
static void copy_line(const tni_walk *walk, int32_t dimension, char *to, const char *from)
{
    const int64_t count = walk->count[dimension];
    const int64_t to_step = walk->to_step[dimension], from_step = walk->from_step[dimension];
#define LINE(bytes)                                                       \
    for (int64_t i = 0; i < count; i++, to += to_step, from += from_step) \
    memcpy(to, from, bytes)
    switch (walk->bytes) {
    case 1: LINE(1); break;
    case 2: LINE(2); break;
    case 4: LINE(4); break;
    case 8: LINE(8); break;
    case 16: LINE(16); break;
    default: LINE((size_t)walk->bytes); break;
    }
#undef LINE
}

static void copy_from(const tni_walk *walk, int32_t dimension, char *to, const char *from)
{
    if (dimension == walk->ndim - 1) {
        copy_line(walk, dimension, to, from);
        return;
    }
    for (int64_t i = 0; i < walk->count[dimension]; i++)
        copy_from(walk, dimension + 1, to + i * walk->to_step[dimension],
                  from + i * walk->from_step[dimension]);
}

void tni_walk_copy(const tni_walk *walk)
{
    if (walk->ndim == 0)
        memcpy(walk->to, walk->from, (size_t)walk->bytes);
    else
        copy_from(walk, 0, walk->to, walk->from);
}
