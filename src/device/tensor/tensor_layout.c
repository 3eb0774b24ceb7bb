/* The memory layout of a tensor: validated before anything is done with its elements. */
#include "tensor.h"

#include "base/checked.h"
#include "base/dtype.h"

#include <inttypes.h>

/* What is being checked, for messages. */
typedef struct subject {
    const char *where;
    const char *name;
    tn_error *err;
} subject;

TN_PRINTF(2, 3)
static tn_status reject_tensor(const subject *s, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return tn_fail(s->err, TN_INVALID_ARGUMENT, 0, s->where, "%s: %s", s->name, text);
}

static tn_status check_dtype(const subject *s, tn_dtype dtype)
{
    unsigned lanes = (unsigned)(dtype >> 16);
    if (tn_dtype_name(dtype))
        return TN_OK;
    if (lanes != 1 && tn_dtype_name(TN_DTYPE(dtype & 0xFF, dtype >> 8 & 0xFF, 1)))
        return reject_tensor(s, "lanes: expected 1, got %u", lanes);
    return reject_tensor(s, "no dtype has code %u, %u bits and %u lanes", (unsigned)(dtype & 0xFF),
                         (unsigned)(dtype >> 8 & 0xFF), lanes);
}

static tn_status check_ndim(const subject *s, const int64_t *shape, int32_t ndim)
{
    if (ndim < 0 || ndim > TN_TENSOR_NDIM_MAX)
        return reject_tensor(s, "ndim: expected 0 to %d, got %d", TN_TENSOR_NDIM_MAX, (int)ndim);
    if (ndim > 0 && !shape)
        return reject_tensor(s, "shape is NULL, and ndim is %d", (int)ndim);
    return TN_OK;
}

/* Empty dimensions count as one here, so that the strides of a contiguous tensor fit too. */
static tn_status count_elements(const subject *s, tn_dtype dtype, const int64_t *shape,
                                int32_t ndim, tni_layout *out)
{
    int64_t all = 1;
    bool empty = false, fits = true;
    for (int32_t i = 0; i < ndim; i++) {
        if (shape[i] < 0)
            return reject_tensor(s, "dimension %d: expected at least 0, got %" PRId64, (int)i,
                                 shape[i]);
        empty = empty || shape[i] == 0;
        fits = fits && (shape[i] == 0 || tni_mul_i64(all, shape[i], &all));
    }
    out->elements = empty ? 0 : all;
    if (!fits || !tni_mul_i64(all, out->size, &all))
        return reject_tensor(s, "its size in bytes of %s exceeds 63 bits", tn_dtype_name(dtype));
    out->bytes = empty ? 0 : all;
    return TN_OK;
}

/* The lowest and the highest byte, for strides of any sign. */
static bool compute_span(const int64_t *shape, const int64_t *strides, int32_t ndim,
                         tni_layout *out)
{
    int64_t low = 0, high = out->size, reach;
    for (int32_t i = 0; i < ndim; i++) {
        if (shape[i] == 1)
            continue;
        if (!tni_mul_i64(shape[i] - 1, strides[i], &reach) ||
            !tni_mul_i64(reach, out->size, &reach) ||
            !tni_add_i64(reach < 0 ? low : high, reach, reach < 0 ? &low : &high))
            return false;
    }
    out->low = low;
    out->high = high;
    return low > INT64_MIN;
}

bool tni_strides_are_dense(const int64_t *shape, const int64_t *strides, int32_t ndim)
{
    int64_t step = 1;
    for (int32_t i = ndim; i-- > 0;) {
        if (shape[i] != 1 && strides[i] != step)
            return false;
        step *= shape[i];
    }
    return true;
}

void tni_strides_dense(const int64_t *shape, int32_t ndim, int64_t *out)
{
    int64_t step = 1;
    for (int32_t i = ndim; i-- > 0;) {
        out[i] = step;
        step *= shape[i] > 0 ? shape[i] : 1;
    }
}

tn_status tni_layout_of(tn_dtype dtype, const int64_t *shape, const int64_t *strides, int32_t ndim,
                        const char *where, const char *name, tni_layout *out, tn_error *err)
{
    const subject s = {where, name, err};
    tni_layout layout = {.size = tni_dtype_bytes(dtype), .dense = true};
    tn_status status = layout.size ? TN_OK : check_dtype(&s, dtype);
    if (!status)
        status = check_ndim(&s, shape, ndim);
    if (!status)
        status = count_elements(&s, dtype, shape, ndim, &layout);
    if (status)
        return status;
    layout.high = layout.bytes;
    if (strides && layout.elements > 0) {
        layout.dense = tni_strides_are_dense(shape, strides, ndim);
        if (!compute_span(shape, strides, ndim, &layout))
            return reject_tensor(&s, "its strides span more than 63 bits of bytes");
    }
    *out = layout;
    return TN_OK;
}

/* Returns whether every byte has an address, and none is farther from `data` than a pointer difference counts. */
static bool has_addresses(const tn_tensor *tensor, const tni_layout *layout)
{
    uintptr_t at = (uintptr_t)tensor->data;
    if (tensor->byte_offset > (uint64_t)PTRDIFF_MAX || tensor->byte_offset > TNI_ADDRESS_MOST ||
        (uint64_t)layout->high > (uint64_t)PTRDIFF_MAX - tensor->byte_offset ||
        tensor->byte_offset > UINTPTR_MAX - at)
        return false;
    at += (uintptr_t)tensor->byte_offset;
    return (uint64_t)-layout->low <= at && (uint64_t)layout->high <= UINTPTR_MAX - at;
}

/* Fast path without messages: a contiguous tensor of fewer than 2^31 elements. False for anything
 * else, valid or not. */
static bool measure_plain(const tn_tensor *tensor, tni_layout *out)
{
    int64_t elements = 1;
    int64_t size = tensor ? tni_dtype_bytes(tensor->dtype) : 0;
    if (size == 0 || !tensor->data || (uint32_t)tensor->ndim > TN_TENSOR_NDIM_MAX || !tensor->shape)
        return false;
    for (int32_t i = tensor->ndim; i-- > 0;) {
        int64_t count = tensor->shape[i];
        if (count < 1 || count > INT32_MAX ||
            (tensor->strides && count != 1 && tensor->strides[i] != elements))
            return false;
        elements *= count;
        if (elements > INT32_MAX)
            return false;
    }
    int64_t bytes = elements * size;
    *out = (tni_layout){elements, size, bytes, 0, bytes, true};
    return has_addresses(tensor, out);
}

tn_status tni_tensor_measure(const tn_tensor *tensor, const char *where, const char *name,
                             tni_layout *out, tn_error *err)
{
    const subject s = {where, name, err};
    tni_layout layout = {0};
    if (measure_plain(tensor, out))
        return TN_OK;
    if (!tensor)
        return reject_tensor(&s, "the tensor is NULL");
    if (!tensor->dtype && !tensor->data && !tensor->owner)
        return reject_tensor(
            &s, "the tensor is not initialized: it was never created, or was released");
    tn_status status = tni_layout_of(tensor->dtype, tensor->shape, tensor->strides, tensor->ndim,
                                     where, name, &layout, err);
    if (status)
        return status;
    if (layout.elements > 0 && !tensor->data)
        return reject_tensor(&s, "data is NULL, and there are %" PRId64 " elements",
                             layout.elements);
    if (!has_addresses(tensor, &layout))
        return reject_tensor(&s,
                             "its offset of %" PRIu64 " bytes and its strides lead to no address",
                             tensor->byte_offset);
    *out = layout;
    return TN_OK;
}

tn_status tni_tensor_suppose(tn_tensor *tensor, const char *where, const char *name,
                             uintptr_t *io_end, tn_error *err)
{
    tni_layout layout;
    const tn_status status = tni_layout_of(tensor->dtype, tensor->shape, tensor->strides,
                                           tensor->ndim, where, name, &layout, err);
    if (status)
        return status;
    const uint64_t below = 0 - (uint64_t)layout.low; /* the span may need all 64 bits */
    const uint64_t span = below + (uint64_t)layout.high;
    tensor->data = (void *)(*io_end + (uintptr_t)(below / 64 * 64 + 64));
    tensor->byte_offset = 0;
    *io_end += (uintptr_t)(span / 64 * 64 + 192);
    return TN_OK;
}

tn_status tn_tensor_elements(const tn_tensor *tensor, int64_t *out, tn_error *err)
{
    static const char where[] = "tn_tensor_elements";
    tni_layout layout = {0};
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "out is NULL");
    tn_status status = tni_tensor_measure(tensor, where, "tensor", &layout, err);
    if (!status)
        *out = layout.elements;
    return status;
}

tn_status tn_tensor_bytes(const tn_tensor *tensor, uint64_t *out, tn_error *err)
{
    static const char where[] = "tn_tensor_bytes";
    tni_layout layout = {0};
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "out is NULL");
    tn_status status = tni_tensor_measure(tensor, where, "tensor", &layout, err);
    if (!status)
        *out = (uint64_t)layout.bytes;
    return status;
}

int32_t tn_tensor_is_dense(const tn_tensor *tensor)
{
    tni_layout layout = {0};
    return !tni_tensor_measure(tensor, "tn_tensor_is_dense", "tensor", &layout, NULL) &&
           layout.dense;
}
