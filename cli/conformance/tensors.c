#include "tensors.h"

static void release_tensor(void *owner, void *what)
{
    (void)owner;
    tn_tensor_release(what);
}

bool tensor_empty(trial *t, tn_tensor **out)
{
    void *room = NULL;
    if (!trial_host(t, sizeof **out, &room))
        return false;
    memset(room, 0, sizeof **out);
    *out = room;
    return trial_keep(t, release_tensor, NULL, room);
}

bool tensor_make(trial *t, tn_device *device, tn_dtype dtype, const int64_t *shape, int32_t ndim,
                 tn_tensor **out)
{
    return tensor_empty(t, out) &&
           DO(t, tn_tensor_create(device, dtype, shape, ndim, *out, &t->err));
}

bool tensor_over(trial *t, tn_device *device, void *data, tn_dtype dtype, const int64_t *shape,
                 const int64_t *strides, int32_t ndim, tn_tensor **out)
{
    return tensor_empty(t, out) && DO(t, tn_tensor_wrap(device, data, dtype, shape, strides, ndim,
                                                        NULL, NULL, *out, &t->err));
}
