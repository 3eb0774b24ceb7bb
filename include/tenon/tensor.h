/* Tensors: DLPack's twin. A tensor is a view: it borrows its shape, strides and data, from its owner
 * when it has one.
 *
 * Thread-safety: as any struct; owners are counted safely. */
#ifndef TENON_TENSOR_H
#define TENON_TENSOR_H

#include "memory.h"

TN_BEGIN_DECLS

/* Most dimensions. */
#define TN_TENSOR_NDIM_MAX 32

/* The first 48 bytes are a DLTensor. Zeroed is empty and can be released. Frozen at 64 bytes. */
typedef struct tn_tensor {
    void *data;
    int32_t device_type; /* DLPack's: TN_DLPACK_CPU, ... */
    int32_t device_id;
    int32_t ndim;
    tn_dtype dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: dense, the last dimension fastest */
    uint64_t byte_offset;
    void *owner; /* what keeps data and shape alive; NULL: the program does */
    uint64_t flags;
} tn_tensor;

TN_STATIC_ASSERT(sizeof(void *) != 8 || sizeof(tn_tensor) == 64, "tn_tensor is frozen at 64 bytes");

/* tn_tensor.flags */
#define TN_TENSOR_READ_ONLY UINT64_C(1) /* whoever writes to it is refused */
#define TN_TENSOR_COPIED    UINT64_C(2) /* its producer says that the data is a copy */

/* A dense tensor with memory of its own, not initialised. NULL device: the current one. On failure
 * *out is untouched. */
TN_API tn_status tn_tensor_create(tn_device *device, tn_dtype dtype, const int64_t *shape,
                                  int32_t ndim, tn_tensor *out, tn_error *err);

/* Over memory that the program has. `release(user)` is called once, when the last view of it is
 * released, or NULL; on failure it is not called. NULL strides: dense. */
TN_API tn_status tn_tensor_wrap(tn_device *device, void *data, tn_dtype dtype, const int64_t *shape,
                                const int64_t *strides, int32_t ndim, void (*release)(void *user),
                                void *user, tn_tensor *out, tn_error *err);

/* Another view of the same data, with the same owner, which it keeps alive. */
TN_API tn_status tn_tensor_view(const tn_tensor *tensor, tn_tensor *out, tn_error *err);

/* Lets go of the owner and zeroes the tensor. Accepts NULL and a zeroed one; twice is once. */
TN_API void tn_tensor_release(tn_tensor *tensor);

/* The device its memory is on. */
TN_API tn_status tn_tensor_device(const tn_tensor *tensor, tn_device **out, tn_error *err);

/* Elements; the bytes they take when dense; 1 when it is dense. */
TN_API tn_status tn_tensor_elements(const tn_tensor *tensor, int64_t *out, tn_error *err);
TN_API tn_status tn_tensor_bytes(const tn_tensor *tensor, uint64_t *out, tn_error *err);
TN_API int32_t tn_tensor_is_dense(const tn_tensor *tensor);

/* Copies between tensors of one shape and dtype, on any devices; of any strides where both lie in
 * host memory or one copy of rows does it, else TN_UNSUPPORTED. NULL stream: the current one of the
 * device written to. */
TN_API tn_status tn_copy(tn_stream *stream, const tn_tensor *from, const tn_tensor *to,
                         tn_error *err);

/* Fills a dense tensor with random numbers, as tn_random_fill_uniform and _normal do; on a device
 * that is not the host's by a copy. NULL generator: that of the tensor's device. */
TN_API tn_status tn_random_uniform(tn_generator *generator, const tn_tensor *tensor, tn_error *err);
TN_API tn_status tn_random_normal(tn_generator *generator, const tn_tensor *tensor, tn_error *err);

TN_END_DECLS

#endif
