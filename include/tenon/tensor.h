/* Tensors, compatible with DLPack. A tensor is a view: it borrows its shape, strides and data, from
 * its owner if it has one.
 *
 * Thread-safety: as for any struct; the reference count of owners is atomic. */
#ifndef TENON_TENSOR_H
#define TENON_TENSOR_H

#include "memory.h"

TN_BEGIN_DECLS

/* Maximum number of dimensions. */
#define TN_TENSOR_NDIM_MAX 32

/* The first 48 bytes are a DLTensor. A zeroed tensor is empty and can be released. Frozen at 64
 * bytes. */
typedef struct tn_tensor {
    void *data;
    int32_t device_type; /* as in DLPack: TN_DLPACK_CPU, ... */
    int32_t device_id;
    int32_t ndim;
    tn_dtype dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: contiguous, row-major */
    uint64_t byte_offset;
    void *owner; /* keeps data and shape alive; NULL: the program must */
    uint64_t flags;
} tn_tensor;

TN_STATIC_ASSERT(sizeof(void *) != 8 || sizeof(tn_tensor) == 64, "tn_tensor is frozen at 64 bytes");

/* tn_tensor.flags */
#define TN_TENSOR_READ_ONLY UINT64_C(1) /* writing to it is refused */
#define TN_TENSOR_COPIED    UINT64_C(2) /* the producer says that the data is a copy */

/* Creates a contiguous tensor with its own, uninitialized memory. NULL device: the current one. On
 * failure *out is unchanged. */
TN_API tn_status tn_tensor_create(tn_device *device, tn_dtype dtype, const int64_t *shape,
                                  int32_t ndim, tn_tensor *out, tn_error *err);

/* Creates a tensor on memory of the program. `release(user)`, unless NULL, is called once, when the
 * last view of it is released; it is not called if this fails. NULL strides: contiguous. */
TN_API tn_status tn_tensor_wrap(tn_device *device, void *data, tn_dtype dtype, const int64_t *shape,
                                const int64_t *strides, int32_t ndim, void (*release)(void *user),
                                void *user, tn_tensor *out, tn_error *err);

/* Creates another view of the same data and shares its owner, which stays alive. */
TN_API tn_status tn_tensor_view(const tn_tensor *tensor, tn_tensor *out, tn_error *err);

/* Views with another shape. They share the data: nothing is copied, and a write through one is seen
 * through the others. A view keeps the owner of the data alive, also after the tensor itself was
 * released; without an owner, the program must keep the data. `out` must not be the tensor itself; on
 * failure it is unchanged. A negative axis, index, begin or end counts from the end. */

#define TN_SLICE_END INT64_MAX /* as `end`: up to the last element */

/* The elements begin, begin + step, ... below `end` of an axis. The step is at least 1. */
TN_API tn_status tn_tensor_slice(const tn_tensor *tensor, int32_t axis, int64_t begin, int64_t end,
                                 int64_t step, tn_tensor *out, tn_error *err);

/* One element of an axis; the result has one dimension less. */
TN_API tn_status tn_tensor_select(const tn_tensor *tensor, int32_t axis, int64_t index,
                                  tn_tensor *out, tn_error *err);

/* Another shape with as many elements in the same order. One size may be -1: it follows from the
 * others. Fails with TN_UNSUPPORTED if the strides do not permit the shape without a copy. */
TN_API tn_status tn_tensor_reshape(const tn_tensor *tensor, const int64_t *shape, int32_t ndim,
                                   tn_tensor *out, tn_error *err);

/* Dimension i of the result is dimension axes[i] of the tensor; `count` is its number of
 * dimensions. */
TN_API tn_status tn_tensor_permute(const tn_tensor *tensor, const int32_t *axes, int32_t count,
                                   tn_tensor *out, tn_error *err);

/* Exchanges two dimensions. */
TN_API tn_status tn_tensor_transpose(const tn_tensor *tensor, int32_t axis, int32_t other,
                                     tn_tensor *out, tn_error *err);

/* Removes a dimension of size 1. */
TN_API tn_status tn_tensor_squeeze(const tn_tensor *tensor, int32_t axis, tn_tensor *out,
                                   tn_error *err);

/* Inserts a dimension of size 1, which is dimension `axis` of the result. */
TN_API tn_status tn_tensor_unsqueeze(const tn_tensor *tensor, int32_t axis, tn_tensor *out,
                                     tn_error *err);

/* Divides an axis into `count` parts of sizes[0], sizes[1], ... elements, and writes the views to
 * out[0] ... out[count - 1]. NULL sizes: equal parts. On failure none is written. */
TN_API tn_status tn_tensor_split(const tn_tensor *tensor, int32_t axis, const int64_t *sizes,
                                 int32_t count, tn_tensor *out, tn_error *err);

/* Fill a tensor from host memory, and read it back: on any device, with any strides. The host memory
 * is contiguous and row-major; `bytes` is its size, and must be that of the tensor
 * (tn_tensor_bytes). The copy is ordered as other work on the calling thread's current stream of the
 * tensor's device, and is complete on return. On that stream no graph may be being recorded. If a
 * copy fails, part of the memory may have been written. */
TN_API tn_status tn_tensor_write(const tn_tensor *tensor, const void *from, uint64_t bytes,
                                 tn_error *err);
TN_API tn_status tn_tensor_read(const tn_tensor *tensor, void *to, uint64_t bytes, tn_error *err);

/* Drops the reference to the owner and zeroes the tensor. Accepts NULL and a zeroed tensor, so a
 * second release does nothing. */
TN_API void tn_tensor_release(tn_tensor *tensor);

/* The device its memory is on. */
TN_API tn_status tn_tensor_device(const tn_tensor *tensor, tn_device **out, tn_error *err);

/* Number of elements; bytes they take if contiguous; 1 if the tensor is contiguous. */
TN_API tn_status tn_tensor_elements(const tn_tensor *tensor, int64_t *out, tn_error *err);
TN_API tn_status tn_tensor_bytes(const tn_tensor *tensor, uint64_t *out, tn_error *err);
TN_API int32_t tn_tensor_is_dense(const tn_tensor *tensor);

/* Copies between tensors of the same shape and dtype, on any devices. Any strides are supported if
 * both are in host memory or one copy of rows is enough; otherwise fails with TN_UNSUPPORTED. NULL
 * stream: the current stream of the destination device. */
TN_API tn_status tn_copy(tn_stream *stream, const tn_tensor *from, const tn_tensor *to,
                         tn_error *err);

/* Fill a contiguous tensor with random numbers, as tn_random_fill_uniform and _normal do; if it is
 * not in host memory, possibly by a copy from the host. NULL generator: that of the tensor's
 * device. */
TN_API tn_status tn_random_uniform(tn_generator *generator, const tn_tensor *tensor, tn_error *err);
TN_API tn_status tn_random_normal(tn_generator *generator, const tn_tensor *tensor, tn_error *err);

TN_END_DECLS

#endif
