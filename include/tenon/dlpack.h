/* DLPack: tensors to and from other libraries, without copies. The structs are DLPack's own (version
 * 1.x, and the one before versions), under Tenon's names, so that no header of theirs is needed.
 *
 * Thread-safety: Safe; a managed tensor belongs to one thread at a time. */
#ifndef TENON_DLPACK_H
#define TENON_DLPACK_H

#include "tensor.h"

TN_BEGIN_DECLS

/* Kinds of memory, DLPack's numbers. */
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

/* A DLManagedTensor, as it was before versions. */
typedef struct tn_dlpack_managed {
    tn_dlpack_tensor tensor;
    void *manager;
    void (*deleter)(struct tn_dlpack_managed *self);
} tn_dlpack_managed;

/* A DLManagedTensorVersioned. The first three fields are where they are in every version. */
typedef struct tn_dlpack_versioned {
    uint32_t major;
    uint32_t minor;
    void *manager;
    void (*deleter)(struct tn_dlpack_versioned *self);
    uint64_t flags; /* 1: read-only, 2: copied */
    tn_dlpack_tensor tensor;
} tn_dlpack_versioned;

/* Devices of platforms that DLPack has no word for are TN_DLPACK_EXT_DEV. Their id is a number that
 * Tenon gives each when it comes, in this process, and to no other after it: another library's ids of
 * that kind mean nothing here.
 *
 * Gives a tensor away: whoever gets it calls its deleter once. The data stays alive until then; of a
 * tensor without an owner it is the program's to keep alive. With
 * a stream, work that the tensor's device has queued on Tenon's current stream is waited for on it
 * first, as DLPack's protocol asks: `consumer` is the raw handle of the stream it will be used on;
 * -1 for none needed. A read-only tensor is refused by the old form, which cannot say so. */
TN_API tn_status tn_dlpack_export(const tn_tensor *tensor, int64_t consumer,
                                  tn_dlpack_versioned **out, tn_error *err);
TN_API tn_status tn_dlpack_export_legacy(const tn_tensor *tensor, int64_t consumer,
                                         tn_dlpack_managed **out, tn_error *err);

/* Takes a tensor in. On success its deleter is called when the last view is released; on failure at
 * once, so that it is called exactly once on every path. Refused: another major version
 * (TN_INCOMPATIBLE), a device that is not here (TN_UNAVAILABLE), lanes other than 1, a dtype, shape,
 * strides or offset that make no sense (TN_INVALID_ARGUMENT): no data and yet elements, bytes that no
 * address of this process reaches, elements that are not aligned as their dtype. Whether memory is there
 * cannot be checked: it is the producer's promise. */
TN_API tn_status tn_dlpack_import(tn_dlpack_versioned *managed, tn_tensor *out, tn_error *err);
TN_API tn_status tn_dlpack_import_legacy(tn_dlpack_managed *managed, tn_tensor *out, tn_error *err);

TN_END_DECLS

#endif
