#include "tile.h"

static cu_result describe(const cuda_driver *driver, const cuda_tile *tile)
{
    enum { COLUMNS = 64, BYTES = sizeof(uint16_t), RANK = 4, UNIT = 16 };
    const tn_layout *layout = tile->layout;
    const uint32_t box[RANK] = {COLUMNS, (uint32_t)tile->rows, 1, 1}, steps[RANK] = {1, 1, 1, 1};
    const cu_tensor_map_type type = layout->dtype == TN_F16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                                            : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    uint64_t sizes[RANK], strides[RANK];
    for (int d = 0; d < RANK; d++) {
        const int64_t stride = layout->stride[RANK - 1 - d];
        sizes[d] = (uint64_t)layout->shape[RANK - 1 - d];
        strides[d] = sizes[d] == 1 ? UNIT : (uint64_t)stride * BYTES;
    }
    return driver->tensor_map(tile->out, type, RANK, tile->memory, sizes, strides + 1, box, steps,
                              CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                              CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                              CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

static const char call[] = "cuTensorMapEncodeTiled";

tn_status cuda_tiles_check(cuda *self, tn_error *err)
{
    if (self->driver.tensor_map)
        return TN_OK;
    return tn_fail(err, TN_UNSUPPORTED, 0, call,
                   "expected a driver for CUDA 12.0 or later, got CUDA %d.%d; install a newer one",
                   (int)self->driver_version / 1000, (int)self->driver_version % 1000 / 10);
}

/* The driver requires a current context, although nothing is queued. */
tn_status cuda_tiles_describe(cuda *self, int32_t device, const cuda_tile *tiles, int count,
                              tn_error *err)
{
    cuda_scope scope;
    cu_result code = CUDA_SUCCESS;
    tn_status status = cuda_enter(self, device, &scope, err);
    if (status)
        return status;
    for (int i = 0; i < count && code == CUDA_SUCCESS; i++)
        code = describe(&self->driver, &tiles[i]);
    return cuda_done(&scope, code, call, err);
}
