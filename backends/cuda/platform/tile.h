/* Tensor maps: descriptions of tensors for TMA, the unit of Hopper and later GPUs that copies tiles to shared memory. */
#ifndef CUDA_TILE_H
#define CUDA_TILE_H

#include "cuda.h"
#include "tenon/module/op.h"

/* A tensor of 16-bit floats with four dimensions. TMA copies 64 elements of each of `rows` rows at a time; a row is the
 * last dimension. Rows must be contiguous and aligned to 16 bytes. */
typedef struct cuda_tile {
    const tn_layout *layout;
    void *memory;
    int rows;
    cu_tensor_map *out;
} cuda_tile;

/* Fails with TN_UNSUPPORTED if the driver is older than CUDA 12.0 and makes no tensor maps. */
tn_status cuda_tiles_check(cuda *self, tn_error *err);

/* Makes the tensor maps of tensors on a device; cuda_tiles_check must have succeeded. */
tn_status cuda_tiles_describe(cuda *self, int32_t device, const cuda_tile *tiles, int count,
                              tn_error *err);

#endif
