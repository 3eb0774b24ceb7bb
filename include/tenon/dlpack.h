/* DLPack: exchanges tensors with other libraries without copying. The structs are DLPack's own
 * (version 1.x, and the form without a version), under Tenon's names, so that no DLPack header is
 * needed.
 *
 * Thread-safety: Safe; a managed tensor belongs to one thread at a time. */
#ifndef TENON_DLPACK_H
#define TENON_DLPACK_H

#include "tensor.h"

TN_BEGIN_DECLS

/* Memory kinds, with DLPack's numbers. */
enum {
    TN_DLPACK_CPU = 1,
    TN_DLPACK_CUDA = 2,
    TN_DLPACK_CUDA_HOST = 3,
    TN_DLPACK_OPENCL = 4,
    TN_DLPACK_VULKAN = 7,
    TN_DLPACK_METAL = 8,
    TN_DLPACK_VPI = 9,
    TN_DLPACK_ROCM = 10,
    TN_DLPACK_ROCM_HOST = 11,
    TN_DLPACK_EXT_DEV = 12,
    TN_DLPACK_CUDA_MANAGED = 13,
    TN_DLPACK_ONE_API = 14,
    TN_DLPACK_WEBGPU = 15,
    TN_DLPACK_HEXAGON = 16,
    TN_DLPACK_MAIA = 17,
    TN_DLPACK_TRN = 18
};

#define TN_DLPACK_VERSION_MAJOR 1
#define TN_DLPACK_VERSION_MINOR 1

/* A DLTensor. */
typedef struct tn_dlpack_tensor {
    void *data;
    int32_t device_type;
    int32_t device_id;
    int32_t ndim;
    tn_dtype dtype;
    int64_t *shape;
    int64_t *strides;
    uint64_t byte_offset;
} tn_dlpack_tensor;

/* A DLManagedTensor, the form without a version. */
typedef struct tn_dlpack_managed {
    tn_dlpack_tensor tensor;
    void *manager;
    void (*deleter)(struct tn_dlpack_managed *self);
} tn_dlpack_managed;

/* A DLManagedTensorVersioned. The position of version, manager and deleter is the same in every
 * version. */
typedef struct tn_dlpack_versioned {
    uint32_t major;
    uint32_t minor;
    void *manager;
    void (*deleter)(struct tn_dlpack_versioned *self);
    uint64_t flags; /* 1: read-only, 2: copied */
    tn_dlpack_tensor tensor;
} tn_dlpack_versioned;

/* Devices of platforms that DLPack does not define are TN_DLPACK_EXT_DEV. Their id is a number that
 * Tenon assigns to each device in this process and never reuses, so ids of this kind from other
 * libraries have no meaning here.
 *
 * Exports a tensor. The receiver must call its deleter exactly once. The data stays alive until
 * then; if the tensor has no owner, the program must keep the data alive. `consumer` is the raw
 * handle of the stream on which the tensor will be used: that stream first waits for the work
 * queued on Tenon's current stream of the tensor's device, as DLPack's protocol requires; -1 for no
 * waiting. The legacy form refuses read-only tensors, because it cannot express that flag. */
TN_API tn_status tn_dlpack_export(const tn_tensor *tensor, int64_t consumer,
                                  tn_dlpack_versioned **out, tn_error *err);
TN_API tn_status tn_dlpack_export_legacy(const tn_tensor *tensor, int64_t consumer,
                                         tn_dlpack_managed **out, tn_error *err);

/* Imports a tensor. On success its deleter is called when the last view is released; on failure it
 * is called at once. So it is called exactly once on every path. Fails with TN_INCOMPATIBLE for
 * another major version; with TN_UNAVAILABLE for a device that is not present; with
 * TN_INVALID_ARGUMENT for lanes other than 1 and for an invalid dtype, shape, strides or offset:
 * elements without data, bytes outside the address space, elements not aligned to their dtype.
 * Whether the memory really exists cannot be checked; the producer must guarantee it. */
TN_API tn_status tn_dlpack_import(tn_dlpack_versioned *managed, tn_tensor *out, tn_error *err);
TN_API tn_status tn_dlpack_import_legacy(tn_dlpack_managed *managed, tn_tensor *out, tn_error *err);

TN_END_DECLS

#endif
