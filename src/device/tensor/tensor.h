/* Tensors from inside: what keeps one alive, how its elements lie, and whose DLPack numbers are
 * whose. */
#ifndef TNI_DEVICE_TENSOR_H
#define TNI_DEVICE_TENSOR_H

#include "device/memory/memory.h"
#include "device/platform/platforms.h"
#include "tenon/dlpack.h"

/* What tn_tensor.owner points to: it ends with the last tensor or DLPack form that holds it. */
typedef struct tni_owner {
    _Atomic int64_t holders;
    tn_device *device;
    void *memory;                /* of the device, given back at the end; or NULL   */
    uint32_t life;               /* the memory's                                    */
    void (*release)(void *user); /* tells whoever else has the data of the end; or NULL */
    void *user;
    int64_t dims[]; /* shape, then strides, of a tensor that brought none of its own */
} tni_owner;

/* With one holder and room for `dims` numbers. NULL for want of memory. */
tni_owner *tni_owner_create(tn_device *device, size_t dims);
void tni_owner_hold(tni_owner *owner);    /* accepts NULL */
void tni_owner_release(tni_owner *owner); /* accepts NULL */

/* How elements lie, in bytes counted from the first element. */
typedef struct tni_layout {
    int64_t elements;
    int64_t size;  /* of one element                            */
    int64_t bytes; /* that they take when dense                 */
    int64_t low;   /* the lowest byte that is touched, at most 0 */
    int64_t high;  /* one past the highest; `low` when there is none */
    bool dense;
} tni_layout;

/* The highest user-space address: 64-bit processors use at most 56 bits for these. */
#if UINTPTR_MAX > UINT32_MAX
#define TNI_ADDRESS_MOST ((UINT64_C(1) << 56) - 1)
#else
#define TNI_ADDRESS_MOST ((uint64_t)UINTPTR_MAX)
#endif

/* TN_INVALID_ARGUMENT for what makes no sense or fits no address, in the words of "name: dimension 1
 * needs ..., found ...". */
tn_status tni_layout_of(tn_dtype dtype, const int64_t *shape, const int64_t *strides, int32_t ndim,
                        const char *where, const char *name, tni_layout *out, tn_error *err);

/* The same of a tensor, and that its data is where data can be. `tensor` may be NULL: refused. */
tn_status tni_tensor_measure(const tn_tensor *tensor, const char *where, const char *name,
                             tni_layout *out, tn_error *err);

/* Where the first element is. */
static inline void *tni_tensor_first(const tn_tensor *tensor)
{
    return tensor->data ? (char *)tensor->data + tensor->byte_offset : NULL;
}

/* What a dense tensor of that shape has as strides, in elements. The shape was measured. */
void tni_strides_dense(const int64_t *shape, int32_t ndim, int64_t *out);

/* Its owner's, or that of its DLPack numbers. */
tn_status tni_tensor_device_of(const tn_tensor *tensor, const char *where, tn_device **out,
                               tn_error *err);

/* TN_REFUSED for a read-only tensor. */
tn_status tni_tensor_writable(const tn_tensor *tensor, const char *where, const char *name,
                              tn_error *err);

/* DLPack's numbers of a device. The platforms that DLPack knows are by their index; every other is
 * TN_DLPACK_EXT_DEV, by its ordinal, which stays its own when it is withdrawn. */
void tni_dlpack_numbers(const tn_device *device, int32_t *out_type, int32_t *out_id);

/* And back, among the devices of a set. Host memory of whatever kind is cpu:0's. TN_UNAVAILABLE names
 * the kind and what is present. */
tn_status tni_dlpack_device(tni_platforms *set, int32_t type, int32_t id, const char *where,
                            tn_device **out, tn_error *err);

/* Two tensors of one shape, stepped through together: `bytes` bytes lie together on both sides, at
 * every combination of steps. Steps are in bytes, those of `to` positive and falling; there are as
 * few as the layouts allow. */
typedef struct tni_walk {
    char *to;
    const char *from;
    int64_t bytes;
    int32_t ndim;
    int64_t count[TN_TENSOR_NDIM_MAX];
    int64_t to_step[TN_TENSOR_NDIM_MAX];
    int64_t from_step[TN_TENSOR_NDIM_MAX];
} tni_walk;

/* Of measured tensors with elements; no step of `to` with more than one element is 0. */
void tni_walk_plan(const tn_tensor *from, const tn_tensor *to, int64_t size, tni_walk *out);

/* Copies in host memory. */
void tni_walk_copy(const tni_walk *walk);

/* True when two elements are known to share a place. Exact as below; the layout was measured. */
bool tni_strides_overlap(const int64_t *shape, const int64_t *strides, int32_t ndim);

/* True when a byte that is written is known to be read too. Exact but where finding out would take
 * too long: then false. */
bool tni_walk_overlaps(const tni_walk *walk);

/* The same of two measured tensors with elements, of any shapes; sizes are of one element. */
bool tni_tensors_overlap(const tn_tensor *a, int64_t a_size, const tn_tensor *b, int64_t b_size);

#endif
