/* Creating, wrapping, viewing and releasing tensors. */
#include "tensor.h"

#include "base/alloc.h"

tni_owner *tni_owner_create(tn_device *device, size_t dims)
{
    tni_owner *owner = tni_alloc(sizeof *owner + dims * sizeof owner->dims[0]);
    if (!owner)
        return NULL;
    *owner = (tni_owner){.device = device};
    tni_references_init(&owner->references);
    return owner;
}

void tni_owner_retain(tni_owner *owner)
{
    if (owner)
        tni_references_add(&owner->references);
}

void tni_owner_release(tni_owner *owner)
{
    if (!owner || !tni_references_drop(&owner->references))
        return;
    if (owner->memory)
        tni_memory_release(owner->device, owner->memory, owner->epoch);
    if (owner->release)
        owner->release(owner->user);
    tni_release(owner);
}

/* Describes a tensor whose owner stores its shape and, unless NULL, its strides. */
static void describe_tensor(tni_owner *owner, tn_dtype dtype, const int64_t *shape,
                            const int64_t *strides, int32_t ndim, tn_tensor *out)
{
    size_t bytes = (size_t)ndim * sizeof *shape;
    memset(out, 0, sizeof *out);
    tni_dlpack_numbers(owner->device, &out->device_type, &out->device_id);
    out->ndim = ndim;
    out->dtype = dtype;
    out->owner = owner;
    if (ndim > 0) {
        out->shape = owner->dims;
        memcpy(out->shape, shape, bytes);
    }
    if (ndim > 0 && strides) {
        out->strides = owner->dims + ndim;
        memcpy(out->strides, strides, bytes);
    }
}

static tn_status no_out(const char *where, tn_error *err)
{
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "out is NULL");
}

/* Common first steps of creating a tensor. */
static tn_status init_layout(tn_device **device, tn_dtype dtype, const int64_t *shape,
                             const int64_t *strides, int32_t ndim, const char *where,
                             tni_layout *out, tn_error *err)
{
    tn_status status = tni_layout_of(dtype, shape, strides, ndim, where, "out", out, err);
    return status ? status : tni_device_or_default(*device, device, err);
}

tn_status tn_tensor_create(tn_device *device, tn_dtype dtype, const int64_t *shape, int32_t ndim,
                           tn_tensor *out, tn_error *err)
{
    static const char where[] = "tn_tensor_create";
    tni_layout layout;
    tn_tensor made;
    if (!out)
        return no_out(where, err);
    tn_status status = init_layout(&device, dtype, shape, NULL, ndim, where, &layout, err);
    if (status)
        return status;
    tni_owner *owner = tni_owner_create(device, (size_t)ndim);
    if (!owner)
        return tni_no_memory(err, where, "a tensor's owner");
    status = tni_memory_acquire(device, (uint64_t)layout.bytes, "tensor", &owner->memory,
                                &owner->epoch, err);
    if (status) {
        tni_release(owner);
        return status;
    }
    describe_tensor(owner, dtype, shape, NULL, ndim, &made);
    made.data = owner->memory;
    *out = made;
    return TN_OK;
}

tn_status tn_tensor_wrap(tn_device *device, void *data, tn_dtype dtype, const int64_t *shape,
                         const int64_t *strides, int32_t ndim, void (*release)(void *user),
                         void *user, tn_tensor *out, tn_error *err)
{
    static const char where[] = "tn_tensor_wrap";
    tni_layout layout;
    tn_tensor made;
    if (!out)
        return no_out(where, err);
    tn_status status = init_layout(&device, dtype, shape, strides, ndim, where, &layout, err);
    if (status)
        return status;
    tni_owner *owner = tni_owner_create(device, 2 * (size_t)ndim);
    if (!owner)
        return tni_no_memory(err, where, "a tensor's owner");
    describe_tensor(owner, dtype, shape, strides, ndim, &made);
    made.data = data;
    status = tni_tensor_measure(&made, where, "out", &layout, err);
    if (status) {
        tni_release(owner);
        return status;
    }
    owner->release = release;
    owner->user = user;
    *out = made;
    return TN_OK;
}

tn_status tn_tensor_view(const tn_tensor *tensor, tn_tensor *out, tn_error *err)
{
    static const char where[] = "tn_tensor_view";
    tni_layout layout;
    if (!out)
        return no_out(where, err);
    if (out == tensor)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "out is the tensor itself; a view needs another tensor");
    tn_status status = tni_tensor_measure(tensor, where, "tensor", &layout, err);
    if (status)
        return status;
    tni_owner_retain(tensor->owner);
    *out = *tensor;
    return TN_OK;
}

/* Zeroed first: the struct itself may be freed with its owner. */
void tn_tensor_release(tn_tensor *tensor)
{
    if (!tensor)
        return;
    tni_owner *owner = tensor->owner;
    memset(tensor, 0, sizeof *tensor);
    tni_owner_release(owner);
}

tn_status tni_tensor_device_of(const tn_tensor *tensor, const char *where, tn_device **out,
                               tn_error *err)
{
    const tni_owner *owner = tensor->owner;
    tni_platforms *set;
    if (owner) {
        *out = owner->device;
        return TN_OK;
    }
    tn_status status = tni_platforms_process(&set, err);
    return status ? status
                  : tni_dlpack_device(set, tensor->device_type, tensor->device_id, where, out, err);
}

tn_status tn_tensor_device(const tn_tensor *tensor, tn_device **out, tn_error *err)
{
    static const char where[] = "tn_tensor_device";
    tni_layout layout;
    if (!out)
        return no_out(where, err);
    tn_status status = tni_tensor_measure(tensor, where, "tensor", &layout, err);
    return status ? status : tni_tensor_device_of(tensor, where, out, err);
}

tn_status tni_tensor_writable(const tn_tensor *tensor, const char *where, const char *name,
                              tn_error *err)
{
    if (!(tensor->flags & TN_TENSOR_READ_ONLY))
        return TN_OK;
    return tn_fail(err, TN_REFUSED, 0, where,
                   "%s: the tensor is read-only; write to another tensor", name);
}
