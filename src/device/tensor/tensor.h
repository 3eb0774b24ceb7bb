/* Internals of tensors: ownership, the layout of the elements, and the mapping of DLPack's device
 * numbers. */
#ifndef TNI_DEVICE_TENSOR_H
#define TNI_DEVICE_TENSOR_H

#include "base/references.h"
#include "device/memory/memory.h"
#include "device/platform/platforms.h"
#include "tenon/dlpack.h"

/* What tn_tensor.owner points to. Freed with the last tensor or DLPack form that holds it. */
typedef struct tni_owner {
    tni_references references;
    tn_device *device;
    void *memory;                /* device memory, freed with the owner; or NULL */
    uint32_t epoch;              /* epoch of the memory */
    void (*release)(void *user); /* informs the actual owner of the data; or NULL */
    void *user;
    int64_t dims[]; /* shape, then strides, if the tensor does not bring its own */
} tni_owner;

/* Creates an owner with one reference and room for `dims` numbers. NULL if out of memory. */
tni_owner *tni_owner_create(tn_device *device, size_t dims);
void tni_owner_retain(tni_owner *owner);  /* accepts NULL */
void tni_owner_release(tni_owner *owner); /* accepts NULL */

/* The memory layout of the elements, in bytes relative to the first element. */
typedef struct tni_layout {
    int64_t elements;
    int64_t size;  /* of one element                            */
    int64_t bytes; /* of all elements if contiguous */
    int64_t low;   /* lowest byte that is used, at most 0 */
    int64_t high;  /* one past the highest; equals `low` if none exists */
    bool dense;
} tni_layout;

/* The highest address that a program can have: 64-bit processors use at most 56 bits, on Arm 55, as
 * bit 55 is set for the kernel's. */
#if defined(__aarch64__)
#define TNI_ADDRESS_MOST ((UINT64_C(1) << 55) - 1)
#elif UINTPTR_MAX > UINT32_MAX
#define TNI_ADDRESS_MOST ((UINT64_C(1) << 56) - 1)
#else
#define TNI_ADDRESS_MOST ((uint64_t)UINTPTR_MAX)
#endif

/* Fails with TN_INVALID_ARGUMENT for invalid arguments or a size beyond the address space; the
 * message has the form "name: dimension 1: expected ..., got ...". */
tn_status tni_layout_of(tn_dtype dtype, const int64_t *shape, const int64_t *strides, int32_t ndim,
                        const char *where, const char *name, tni_layout *out, tn_error *err);

/* The same for a tensor; also checks that its data is at a possible address. Fails if `tensor` is
 * NULL. */
tn_status tni_tensor_measure(const tn_tensor *tensor, const char *where, const char *name,
                             tni_layout *out, tn_error *err);

/* Addresses of tensors without data, which are only explained: the first one. */
#define TNI_SUPPOSED ((uintptr_t)1 << (sizeof(uintptr_t) * 8 - 12))

/* Gives a tensor an address of 64-byte alignment behind *io_end, where nothing may be read or written,
 * and moves *io_end behind it. */
tn_status tni_tensor_suppose(tn_tensor *tensor, const char *where, const char *name,
                             uintptr_t *io_end, tn_error *err);

/* Address of the first element. */
static inline void *tni_tensor_first(const tn_tensor *tensor)
{
    return tensor->data ? (char *)tensor->data + tensor->byte_offset : NULL;
}

/* The strides of a contiguous tensor of that shape, in elements. The shape must have been
 * measured. */
void tni_strides_dense(const int64_t *shape, int32_t ndim, int64_t *out);

/* Whether the strides of a tensor that is not empty are those. */
bool tni_strides_are_dense(const int64_t *shape, const int64_t *strides, int32_t ndim);

/* The device of its owner, or that of its DLPack numbers. */
tn_status tni_tensor_device_of(const tn_tensor *tensor, const char *where, tn_device **out,
                               tn_error *err);

/* Fails with TN_REFUSED for a read-only tensor. */
tn_status tni_tensor_writable(const tn_tensor *tensor, const char *where, const char *name,
                              tn_error *err);

/* Fails if elements of a measured tensor are known to share an address: they cannot be written
 * separately. */
tn_status tni_tensor_separate(const tn_tensor *tensor, const char *where, const char *name,
                              tn_error *err);

/* DLPack's numbers for a device. Platforms that DLPack knows are numbered by index; every other is
 * TN_DLPACK_EXT_DEV, numbered by ordinal, which remains the device's own after it is withdrawn. */
void tni_dlpack_numbers(const tn_device *device, int32_t *out_type, int32_t *out_id);

/* The reverse, among the devices of a set. Host memory of any kind belongs to cpu:0. Fails with
 * TN_UNAVAILABLE; the message names the type and the devices present. */
tn_status tni_dlpack_device(tni_platforms *set, int32_t type, int32_t id, const char *where,
                            tn_device **out, tn_error *err);

/* Iteration over two tensors of one shape: at every combination of steps, `bytes` bytes are
 * contiguous on both sides. Steps are in bytes; those of `to` are positive and descending. Has as
 * few dimensions as the layouts allow. */
typedef struct tni_walk {
    char *to;
    const char *from;
    int64_t bytes;
    int32_t ndim;
    int64_t count[TN_TENSOR_NDIM_MAX];
    int64_t to_step[TN_TENSOR_NDIM_MAX];
    int64_t from_step[TN_TENSOR_NDIM_MAX];
} tni_walk;

/* For measured, non-empty tensors; in `to` no dimension of more than one element may have stride
 * 0. */
void tni_walk_plan(const tn_tensor *from, const tn_tensor *to, int64_t size, tni_walk *out);

/* Copies in host memory. */
void tni_walk_copy(const tni_walk *walk);

/* True if two elements are known to share an address. As exact as below; the layout must have been
 * measured. */
bool tni_strides_overlap(const int64_t *shape, const int64_t *strides, int32_t ndim);

/* True if a byte that is written is known to be read too. Exact, unless the search would take too
 * long: then false. */
bool tni_walk_overlaps(const tni_walk *walk);

/* The same for two measured, non-empty tensors of any shapes; sizes are those of one element. */
bool tni_tensors_overlap(const tn_tensor *a, int64_t a_size, const tn_tensor *b, int64_t b_size);

#endif
