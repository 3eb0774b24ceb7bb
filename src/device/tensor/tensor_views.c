/* Views with another shape: slices, reshaped and permuted tensors, which share the data. */
#include "tensor.h"

#include "base/alloc.h"
#include "base/checked.h"

#include <inttypes.h>

/* The shape and strides of a view that is being made. Strides of an empty tensor are those of a
 * contiguous one, because its own may have any value. */
typedef struct view {
    const char *where;
    const tn_tensor *from;
    int64_t size;   /* of one element */
    int64_t offset; /* of its first element from that of `from`, in elements */
    int32_t ndim;
    int64_t shape[TN_TENSOR_NDIM_MAX];
    int64_t strides[TN_TENSOR_NDIM_MAX];
} view;

/* Checks the arguments, of which `out` is the first of `count` tensors, and copies the tensor's
 * shape and strides. */
static tn_status init_view(const tn_tensor *tensor, const tn_tensor *out, uint32_t count,
                           const char *where, view *made, tn_error *err)
{
    tni_layout layout;
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "out is NULL");
    if ((uintptr_t)tensor >= (uintptr_t)out &&
        ((uintptr_t)tensor - (uintptr_t)out) / sizeof *out < count)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "out is the tensor itself; a view needs another tensor");
    tn_status status = tni_tensor_measure(tensor, where, "tensor", &layout, err);
    if (status)
        return status;
    *made = (view){.where = where, .from = tensor, .size = layout.size, .ndim = tensor->ndim};
    for (int32_t i = 0; i < tensor->ndim; i++)
        made->shape[i] = tensor->shape[i];
    if (tensor->strides && layout.elements > 0)
        memcpy(made->strides, tensor->strides, (size_t)tensor->ndim * sizeof made->strides[0]);
    else
        tni_strides_dense(made->shape, made->ndim, made->strides);
    return TN_OK;
}

/* Resolves an axis, which counts from the end if it is negative, among `ndim` dimensions. */
static tn_status resolve_axis(const view *v, const char *name, int32_t axis, int32_t ndim,
                              int32_t *out, tn_error *err)
{
    const int32_t found = axis < 0 ? axis + ndim : axis;
    if (ndim == 0)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, v->where,
                       "%s: the tensor has no dimensions, got axis %d", name, (int)axis);
    if (found < 0 || found >= ndim)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, v->where,
                       "%s: expected an axis from %d to %d, got %d", name, (int)-ndim,
                       (int)ndim - 1, (int)axis);
    *out = found;
    return TN_OK;
}

static void release_parent(void *owner)
{
    tni_owner_release(owner);
}

/* The owner that keeps the data of a tensor alive: for a view, that of the tensor it is a view of.
 * So views of views do not form a chain, whose release would recurse. */
static tni_owner *owner_of_data(const tn_tensor *tensor)
{
    tni_owner *owner = tensor->owner;
    return owner && owner->release == release_parent ? owner->user : owner;
}

/* Creates an owner of `count` views with `ndim` dimensions: it has room for their shapes and
 * strides, and holds a reference to the owner of the data. On failure returns NULL, with the reason
 * in *out_status. */
static tni_owner *create_view_owner(const view *v, int32_t ndim, int32_t count,
                                    tn_status *out_status, tn_error *err)
{
    tn_device *device = NULL;
    size_t dims, bytes;
    *out_status = tni_tensor_device_of(v->from, v->where, &device, err);
    if (*out_status)
        return NULL;
    const bool fits = tni_mul_size(2 * (size_t)ndim, (size_t)count, &dims) &&
                      tni_mul_size(dims, sizeof(int64_t), &bytes) &&
                      tni_add_size(bytes, sizeof(tni_owner), &bytes);
    tni_owner *owner = fits ? tni_owner_create(device, dims) : NULL;
    if (!owner) {
        *out_status = tni_no_memory(err, v->where, "a view");
        return NULL;
    }
    owner->user = owner_of_data(v->from);
    owner->release = release_parent;
    tni_owner_retain(owner->user);
    return owner;
}

/* Moves the first element by `bytes`, which is negative only with negative strides: then the data
 * pointer may have to move too. */
static void move_first(tn_tensor *tensor, int64_t bytes)
{
    if (bytes < 0 && tensor->byte_offset < (uint64_t)-bytes) {
        tensor->data = (char *)tensor->data + tensor->byte_offset;
        tensor->data = (char *)tensor->data + bytes;
        tensor->byte_offset = 0;
    } else {
        tensor->byte_offset += (uint64_t)bytes;
    }
}

/* Describes a view, with its shape and strides in `dims`. Takes over a reference to the owner. */
static void describe_view(const view *v, tni_owner *owner, int64_t *dims, tn_tensor *out)
{
    const size_t bytes = (size_t)v->ndim * sizeof v->shape[0];
    bool empty = false;
    tn_tensor made = *v->from;
    made.owner = owner;
    made.ndim = v->ndim;
    made.shape = v->ndim > 0 ? dims : NULL;
    made.strides = NULL;
    memcpy(dims, v->shape, bytes);
    for (int32_t i = 0; i < v->ndim; i++)
        empty = empty || v->shape[i] == 0;
    if (!empty)
        move_first(&made, v->offset * v->size);
    if (!empty && !tni_strides_are_dense(v->shape, v->strides, v->ndim)) {
        made.strides = dims + v->ndim;
        memcpy(made.strides, v->strides, bytes);
    }
    *out = made;
}

/* Creates the tensor. */
static tn_status finish_view(const view *v, tn_tensor *out, tn_error *err)
{
    tn_status status;
    tni_owner *owner = create_view_owner(v, v->ndim, 1, &status, err);
    if (owner)
        describe_view(v, owner, owner->dims, out);
    return status;
}

/* Removes dimension `axis`. */
static void remove_dimension(view *v, int32_t axis)
{
    const size_t after = (size_t)(v->ndim - axis - 1);
    memmove(&v->shape[axis], &v->shape[axis + 1], after * sizeof v->shape[0]);
    memmove(&v->strides[axis], &v->strides[axis + 1], after * sizeof v->strides[0]);
    v->ndim--;
}

/* Restricts dimension `axis` to the elements first, first + step, ... below `last`; 0 <= first <=
 * last <= its size. The sums and products cannot overflow: every element that they lead to is one
 * of the tensor. */
static void restrict_dimension(view *v, int32_t axis, int64_t first, int64_t last, int64_t step)
{
    v->shape[axis] = last == first ? 0 : (last - first - 1) / step + 1;
    v->offset += v->shape[axis] > 0 ? first * v->strides[axis] : 0;
    if (v->shape[axis] > 1)
        v->strides[axis] *= step;
}

tn_status tn_tensor_slice(const tn_tensor *tensor, int32_t axis, int64_t begin, int64_t end,
                          int64_t step, tn_tensor *out, tn_error *err)
{
    view v;
    tn_status status = init_view(tensor, out, 1, "tn_tensor_slice", &v, err);
    if (!status)
        status = resolve_axis(&v, "axis", axis, v.ndim, &axis, err);
    if (status)
        return status;
    const int64_t size = v.shape[axis];
    const int64_t first = begin < 0 ? begin + size : begin;
    const int64_t last = end == TN_SLICE_END ? size : end < 0 ? end + size : end;
    if (first < 0 || last > size || first > last)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, v.where,
                       "expected begin and end from %" PRId64 " to %" PRId64
                       ", the size of axis %d, and begin not after end, got begin %" PRId64
                       " and end %" PRId64,
                       -size, size, (int)axis, begin, end);
    if (step < 1)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, v.where,
                       "step: expected at least 1, got %" PRId64, step);
    restrict_dimension(&v, axis, first, last, step);
    return finish_view(&v, out, err);
}

tn_status tn_tensor_select(const tn_tensor *tensor, int32_t axis, int64_t index, tn_tensor *out,
                           tn_error *err)
{
    view v;
    tn_status status = init_view(tensor, out, 1, "tn_tensor_select", &v, err);
    if (!status)
        status = resolve_axis(&v, "axis", axis, v.ndim, &axis, err);
    if (status)
        return status;
    const int64_t size = v.shape[axis], at = index < 0 ? index + size : index;
    if (at < 0 || at >= size)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, v.where,
                       "index: expected %" PRId64 " to %" PRId64 ", got %" PRId64, -size, size - 1,
                       index);
    v.offset = at * v.strides[axis];
    remove_dimension(&v, axis);
    return finish_view(&v, out, err);
}

tn_status tn_tensor_permute(const tn_tensor *tensor, const int32_t *axes, int32_t count,
                            tn_tensor *out, tn_error *err)
{
    view v, from;
    uint32_t seen = 0;
    tn_status status = init_view(tensor, out, 1, "tn_tensor_permute", &v, err);
    if (status)
        return status;
    if (count != v.ndim || (!axes && count > 0))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, v.where,
                       "axes: expected %d, one for each dimension, got %d%s", (int)v.ndim,
                       (int)count, axes ? "" : " and NULL");
    from = v;
    for (int32_t i = 0; i < from.ndim && !status; i++) {
        int32_t axis = 0;
        status = resolve_axis(&from, "axes", axes[i], from.ndim, &axis, err);
        if (!status && seen >> axis & 1)
            status = tn_fail(err, TN_INVALID_ARGUMENT, 0, v.where,
                             "axes: expected each axis once, got axis %d twice", (int)axis);
        if (status)
            break;
        seen |= UINT32_C(1) << axis;
        v.shape[i] = from.shape[axis];
        v.strides[i] = from.strides[axis];
    }
    return status ? status : finish_view(&v, out, err);
}

tn_status tn_tensor_transpose(const tn_tensor *tensor, int32_t axis, int32_t other, tn_tensor *out,
                              tn_error *err)
{
    view v;
    tn_status status = init_view(tensor, out, 1, "tn_tensor_transpose", &v, err);
    if (!status)
        status = resolve_axis(&v, "axis", axis, v.ndim, &axis, err);
    if (!status)
        status = resolve_axis(&v, "other", other, v.ndim, &other, err);
    if (status)
        return status;
    const int64_t size = v.shape[axis], stride = v.strides[axis];
    v.shape[axis] = v.shape[other];
    v.strides[axis] = v.strides[other];
    v.shape[other] = size;
    v.strides[other] = stride;
    return finish_view(&v, out, err);
}

tn_status tn_tensor_squeeze(const tn_tensor *tensor, int32_t axis, tn_tensor *out, tn_error *err)
{
    view v;
    tn_status status = init_view(tensor, out, 1, "tn_tensor_squeeze", &v, err);
    if (!status)
        status = resolve_axis(&v, "axis", axis, v.ndim, &axis, err);
    if (status)
        return status;
    if (v.shape[axis] != 1)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, v.where,
                       "axis %d: expected size 1, got %" PRId64, (int)axis, v.shape[axis]);
    remove_dimension(&v, axis);
    return finish_view(&v, out, err);
}

tn_status tn_tensor_unsqueeze(const tn_tensor *tensor, int32_t axis, tn_tensor *out, tn_error *err)
{
    view v;
    tn_status status = init_view(tensor, out, 1, "tn_tensor_unsqueeze", &v, err);
    if (!status && v.ndim == TN_TENSOR_NDIM_MAX)
        status =
            tn_fail(err, TN_INVALID_ARGUMENT, 0, v.where,
                    "expected fewer than %d dimensions, got %d", TN_TENSOR_NDIM_MAX, (int)v.ndim);
    if (!status)
        status = resolve_axis(&v, "axis", axis, v.ndim + 1, &axis, err);
    if (status)
        return status;
    const size_t after = (size_t)(v.ndim - axis);
    memmove(&v.shape[axis + 1], &v.shape[axis], after * sizeof v.shape[0]);
    memmove(&v.strides[axis + 1], &v.strides[axis], after * sizeof v.strides[0]);
    v.shape[axis] = 1;
    v.strides[axis] = 1;
    v.ndim++;
    return finish_view(&v, out, err);
}

/* Replaces the -1 in a shape, if it has one, by the size that gives `elements`. */
static tn_status complete_shape(const view *v, int64_t elements, int64_t *shape, int32_t ndim,
                                tn_error *err)
{
    int64_t known = 1;
    int32_t open = -1;
    bool fits = true;
    for (int32_t i = 0; i < ndim; i++) {
        if (shape[i] == -1 && open >= 0)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, v->where,
                           "shape: expected -1 at most once, got it as dimensions %d and %d",
                           (int)open, (int)i);
        if (shape[i] == -1)
            open = i;
        else
            fits = fits && tni_mul_i64(known, shape[i], &known);
    }
    if (open < 0)
        return TN_OK;
    if (!fits || known <= 0 || elements % known != 0)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, v->where,
                       "shape: no size in place of -1, dimension %d, gives the tensor's %" PRId64
                       " elements",
                       (int)open, elements);
    shape[open] = elements / known;
    return TN_OK;
}

/* Checks a shape of `ndim` dimensions, replaces its -1, and copies it to the view. */
static tn_status init_shape(view *v, const int64_t *shape, int32_t ndim, tni_layout *out,
                            tn_error *err)
{
    tni_layout from;
    const tn_dtype dtype = v->from->dtype;
    if (ndim < 0 || ndim > TN_TENSOR_NDIM_MAX || (ndim > 0 && !shape))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, v->where,
                       "shape: expected 0 to %d dimensions, got %d%s", TN_TENSOR_NDIM_MAX,
                       (int)ndim, shape ? "" : " and NULL");
    tn_status status = tni_tensor_measure(v->from, v->where, "tensor", &from, err);
    for (int32_t i = 0; i < ndim; i++)
        v->shape[i] = shape[i];
    v->ndim = ndim;
    if (!status)
        status = complete_shape(v, from.elements, v->shape, ndim, err);
    if (!status)
        status = tni_layout_of(dtype, v->shape, NULL, ndim, v->where, "shape", out, err);
    if (!status && out->elements != from.elements)
        status = tn_fail(err, TN_INVALID_ARGUMENT, 0, v->where,
                         "shape: expected %" PRId64 " elements, as the tensor has, got %" PRId64,
                         from.elements, out->elements);
    return status;
}

/* Returns whether stepping `count` times by `stride` is one step of `outer`. */
static bool continues_run(int64_t stride, int64_t count, int64_t outer)
{
    int64_t whole;
    return tni_mul_i64(stride, count, &whole) && whole == outer;
}

/* Computes the strides of a new shape for a tensor that is not empty. Neighboring dimensions whose
 * elements have one distance form a run, which can be divided into any dimensions; false if the
 * shape needs a dimension that spans two runs. */
static bool divide_strides(const view *from, const int64_t *shape, int32_t ndim, int64_t *out)
{
    int32_t i = from->ndim - 1, k = ndim - 1;
    while (i >= 0) {
        int64_t run = from->shape[i], stride = from->strides[i], made = 1;
        while (i > 0 && (from->shape[i - 1] == 1 || run == 1 ||
                         continues_run(stride, run, from->strides[i - 1]))) {
            stride = run == 1 ? from->strides[i - 1] : stride;
            run *= from->shape[--i];
        }
        i--;
        for (; k >= 0 && (made < run || shape[k] == 1); k--) {
            out[k] = shape[k] == 1 ? 1 : stride * made;
            made *= shape[k];
        }
        if (made != run)
            return false;
    }
    for (; k >= 0; k--)
        out[k] = 1; /* all of size 1 */
    return true;
}

tn_status tn_tensor_reshape(const tn_tensor *tensor, const int64_t *shape, int32_t ndim,
                            tn_tensor *out, tn_error *err)
{
    view v, from;
    tni_layout layout;
    tn_status status = init_view(tensor, out, 1, "tn_tensor_reshape", &v, err);
    if (status)
        return status;
    from = v;
    status = init_shape(&v, shape, ndim, &layout, err);
    if (status)
        return status;
    if (layout.elements > 0 && !divide_strides(&from, v.shape, ndim, v.strides))
        return tn_fail(err, TN_UNSUPPORTED, 0, v.where,
                       "the tensor's strides do not permit this shape without a copy; copy it to a "
                       "contiguous tensor with tn_copy first");
    return finish_view(&v, out, err);
}

/* Checks the sizes of the parts of an axis of `size` elements. */
static tn_status check_parts(const view *v, int32_t axis, const int64_t *sizes, int32_t count,
                             tn_error *err)
{
    const int64_t size = v->shape[axis];
    int64_t left = size;
    if (count < 1 || (!sizes && size % count != 0))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, v->where,
                       "count: expected a divisor of %" PRId64 ", the size of axis %d, got %d; "
                       "pass sizes for parts of different sizes",
                       size, (int)axis, (int)count);
    for (int32_t i = 0; sizes && i < count; i++) {
        if (sizes[i] < 0 || sizes[i] > left)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, v->where,
                           "sizes: expected 0 to %" PRId64 ", what is left of axis %d, for part "
                           "%d, got %" PRId64,
                           left, (int)axis, (int)i, sizes[i]);
        left -= sizes[i];
    }
    if (sizes && left > 0)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, v->where,
                       "sizes: expected a sum of %" PRId64 ", the size of axis %d, got %" PRId64,
                       size, (int)axis, size - left);
    return TN_OK;
}

/* The parts share one owner, so that either all of them are made or none. */
tn_status tn_tensor_split(const tn_tensor *tensor, int32_t axis, const int64_t *sizes,
                          int32_t count, tn_tensor *out, tn_error *err)
{
    view v;
    int64_t begin = 0;
    tn_status status =
        init_view(tensor, out, count > 0 ? (uint32_t)count : 1, "tn_tensor_split", &v, err);
    if (!status)
        status = resolve_axis(&v, "axis", axis, v.ndim, &axis, err);
    if (!status)
        status = check_parts(&v, axis, sizes, count, err);
    if (status)
        return status;
    tni_owner *owner = create_view_owner(&v, v.ndim, count, &status, err);
    if (!owner)
        return status;
    for (int32_t i = 0; i < count; i++) {
        const int64_t part = sizes ? sizes[i] : v.shape[axis] / count;
        view one = v;
        restrict_dimension(&one, axis, begin, begin + part, 1);
        if (i > 0) /* the first part has the reference of the creation */
            tni_owner_retain(owner);
        describe_view(&one, owner, owner->dims + 2 * (size_t)v.ndim * (size_t)i, &out[i]);
        begin += part;
    }
    return TN_OK;
}
