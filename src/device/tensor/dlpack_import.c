/* DLPack import: a tensor of another library becomes a Tenon tensor, or is returned at once. */
#include "tensor.h"

#include "base/alloc.h"
#include "base/dtype.h"

#include <inttypes.h>

#define ADDRESS_LEAST UINT64_C(4096) /* the first page is never mapped */

TN_STATIC_ASSERT(sizeof(tn_dlpack_tensor) == offsetof(tn_tensor, owner) &&
                     offsetof(tn_dlpack_tensor, byte_offset) == offsetof(tn_tensor, byte_offset) &&
                     offsetof(tn_dlpack_tensor, shape) == offsetof(tn_tensor, shape) &&
                     offsetof(tn_dlpack_tensor, dtype) == offsetof(tn_tensor, dtype),
                 "a tensor begins as DLPack's does");

static void end_versioned(void *user)
{
    tn_dlpack_versioned *managed = user;
    if (managed->deleter)
        managed->deleter(managed);
}

static void end_legacy(void *user)
{
    tn_dlpack_managed *managed = user;
    if (managed->deleter)
        managed->deleter(managed);
}

static bool is_host(int32_t type)
{
    return type == TN_DLPACK_CPU || type == TN_DLPACK_CUDA_HOST || type == TN_DLPACK_ROCM_HOST ||
           type == TN_DLPACK_CUDA_MANAGED;
}

/* Returns an address of this process without its tag, or a value above TNI_ADDRESS_MOST for one that belongs to the
 * kernel. On Arm the highest byte of a pointer may be a tag, and bit 55 is set for the kernel; on x86-64 bits 57 to 62
 * may be a tag, and bit 63 is set for the kernel. */
static uint64_t untag_address(const void *data)
{
    const uint64_t address = (uint64_t)(uintptr_t)data;
#if defined(__aarch64__)
    return address >> 55 & 1 ? UINT64_MAX : address & TNI_ADDRESS_MOST;
#elif defined(__x86_64__)
    return address >> 63 ? UINT64_MAX : address & ((UINT64_C(1) << 57) - 1);
#else
    return address;
#endif
}

/* Checks where the elements of a measured tensor are: in host memory at possible addresses, and
 * aligned for their dtype if `data` is an address. For other devices it may be a handle. */
static tn_status check_place(const tn_tensor *made, const tni_layout *layout, const char *where,
                             tn_error *err)
{
    const uint64_t base = untag_address(made->data), first = base + made->byte_offset;
    const uint64_t below = (uint64_t)-layout->low, above = (uint64_t)layout->high;
    const uint64_t unit =
        (uint64_t)layout->size / ((made->dtype & 0xFF) == TN_DTYPE_CODE_COMPLEX ? 2 : 1);
    const bool host = is_host(made->device_type);
    const bool address =
        host || made->device_type == TN_DLPACK_CUDA || made->device_type == TN_DLPACK_ROCM;
    if (layout->elements == 0)
        return TN_OK;
    if (host && (base > TNI_ADDRESS_MOST || first > TNI_ADDRESS_MOST ||
                 above > TNI_ADDRESS_MOST - first || first < below + ADDRESS_LEAST))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "managed: expected memory of this process, got %" PRIu64
                       " bytes before and %" PRIu64 " after an address that has no room for them",
                       below, above);
    if (address && first % unit != 0)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "managed: expected %s at a multiple of %" PRIu64
                       " bytes, got an address with a remainder of %" PRIu64
                       "; pass an aligned copy",
                       tn_dtype_name(made->dtype), unit, first % unit);
    return TN_OK;
}

/* For both forms. Shape and strides remain the producer's. */
static tn_status import_tensor(const tn_dlpack_tensor *from, uint64_t flags,
                               void (*end)(void *user), void *managed, const char *where,
                               tn_tensor *out, tn_error *err)
{
    tn_tensor made = {.flags = flags & (TN_TENSOR_READ_ONLY | TN_TENSOR_COPIED)};
    tni_layout layout;
    tn_device *device;
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "out is NULL");
    memcpy(&made, from, sizeof *from);
    tn_status status = tni_tensor_measure(&made, where, "managed", &layout, err);
    if (!status)
        status = check_place(&made, &layout, where, err);
    if (!status)
        status = tni_tensor_device_of(&made, where, &device, err);
    if (status)
        return status;
    tni_owner *owner = tni_owner_create(device, 0);
    if (!owner)
        return tni_no_memory(err, where, "a tensor's owner");
    owner->release = end;
    owner->user = managed;
    made.owner = owner;
    *out = made;
    return TN_OK;
}

tn_status tn_dlpack_import(tn_dlpack_versioned *managed, tn_tensor *out, tn_error *err)
{
    static const char where[] = "tn_dlpack_import";
    tn_status status;
    if (!managed)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "managed is NULL");
    if (managed->major != TN_DLPACK_VERSION_MAJOR)
        status =
            tn_fail(err, TN_INCOMPATIBLE, 0, where,
                    "managed: expected DLPack %d.x, got %u.%u; use tn_dlpack_import_legacy "
                    "for the unversioned form",
                    TN_DLPACK_VERSION_MAJOR, (unsigned)managed->major, (unsigned)managed->minor);
    else
        status = import_tensor(&managed->tensor, managed->flags, end_versioned, managed, where, out,
                               err);
    if (status)
        end_versioned(managed);
    return status;
}

tn_status tn_dlpack_import_legacy(tn_dlpack_managed *managed, tn_tensor *out, tn_error *err)
{
    static const char where[] = "tn_dlpack_import_legacy";
    if (!managed)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "managed is NULL");
    tn_status status = import_tensor(&managed->tensor, 0, end_legacy, managed, where, out, err);
    if (status)
        end_legacy(managed);
    return status;
}
