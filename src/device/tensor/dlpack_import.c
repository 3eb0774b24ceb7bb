/* DLPack in: what another library gives away becomes a tensor, or is given back at once. */
#include "tensor.h"

#include "base/alloc.h"

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

/* Of either form. Shape and strides stay the producer's. */
static tn_status take(const tn_dlpack_tensor *from, uint64_t flags, void (*end)(void *user),
                      void *managed, const char *where, tn_tensor *out, tn_error *err)
{
    tn_tensor made = {.flags = flags & (TN_TENSOR_READ_ONLY | TN_TENSOR_COPIED)};
    tni_layout layout;
    tn_device *device;
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "out is NULL");
    memcpy(&made, from, sizeof *from);
    tn_status status = tni_tensor_measure(&made, where, "managed", &layout, err);
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
                    "managed: DLPack %u.%u; what is read here is %d.x, and the form without a "
                    "version by tn_dlpack_import_legacy",
                    (unsigned)managed->major, (unsigned)managed->minor, TN_DLPACK_VERSION_MAJOR);
    else
        status = take(&managed->tensor, managed->flags, end_versioned, managed, where, out, err);
    if (status)
        end_versioned(managed);
    return status;
}

tn_status tn_dlpack_import_legacy(tn_dlpack_managed *managed, tn_tensor *out, tn_error *err)
{
    static const char where[] = "tn_dlpack_import_legacy";
    if (!managed)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "managed is NULL");
    tn_status status = take(&managed->tensor, 0, end_legacy, managed, where, out, err);
    if (status)
        end_legacy(managed);
    return status;
}
