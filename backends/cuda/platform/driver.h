/* Our own declarations of NVIDIA's driver API: types, constants and a table of functions, which are bound
 * from libcuda.so.1 when the platform is probed. tests/cuda/headers.c compares all of it with NVIDIA's
 * header where that is installed.
 *
 * Thread-safety: types; a table is constant once bound. */
#ifndef CUDA_DRIVER_H
#define CUDA_DRIVER_H

#include "driver_list.h"
#include "tenon/module/module.h"

enum {
#define CUDA_NUMBER_(name, value) name = value,
    CUDA_NUMBER_LIST(CUDA_NUMBER_)
#undef CUDA_NUMBER_
};

/* For callers, the vendor's enums are unsigned ints and its handles opaque pointers. */
typedef unsigned cu_result;
typedef int cu_device;
typedef unsigned cu_device_attribute;
typedef unsigned cu_pool_attribute;
typedef unsigned cu_capture_status;
typedef unsigned cu_capture_mode;
typedef unsigned cu_function_attribute;
typedef unsigned cu_launch_attribute_id;
typedef unsigned cu_tensor_map_type;
typedef unsigned cu_tensor_map_interleave;
typedef unsigned cu_tensor_map_swizzle;
typedef unsigned cu_tensor_map_promotion;
typedef unsigned cu_tensor_map_fill;
typedef unsigned long long cu_deviceptr;
typedef void *cu_context;
typedef void *cu_stream;
typedef void *cu_event;
typedef void *cu_module;
typedef void *cu_function;
typedef void *cu_pool;
typedef void *cu_graph;
typedef void *cu_graph_exec;

typedef struct cu_uuid {
    char bytes[16];
} cu_uuid;

typedef struct cu_event_handle {
    char reserved[64];
} cu_event_handle;

typedef struct cu_tensor_map {
    _Alignas(64) uint64_t words[16];
} cu_tensor_map;

/* The value of CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION; other attributes have other values. */
typedef struct cu_launch_attribute {
    cu_launch_attribute_id id;
    _Alignas(8) int permitted;
    char reserved[60];
} cu_launch_attribute;

typedef struct cu_launch_config {
    unsigned grid_x, grid_y, grid_z;
    unsigned block_x, block_y, block_z;
    unsigned shared_bytes;
    cu_stream stream;
    cu_launch_attribute *attributes;
    unsigned count;
} cu_launch_config;

typedef struct cu_copy_2d {
    size_t from_x, from_y;
    unsigned from_type;
    const void *from_host;
    cu_deviceptr from_device;
    void *from_array;
    size_t from_pitch;
    size_t to_x, to_y;
    unsigned to_type;
    void *to_host;
    cu_deviceptr to_device;
    void *to_array;
    size_t to_pitch;
    size_t width, height;
} cu_copy_2d;

typedef struct cu_copy_peer {
    size_t from_x, from_y, from_z, from_level;
    unsigned from_type;
    const void *from_host;
    cu_deviceptr from_device;
    void *from_array;
    cu_context from_context;
    size_t from_pitch, from_height;
    size_t to_x, to_y, to_z, to_level;
    unsigned to_type;
    void *to_host;
    cu_deviceptr to_device;
    void *to_array;
    cu_context to_context;
    size_t to_pitch, to_height;
    size_t width, height, depth;
} cu_copy_peer;

typedef struct cu_location {
    unsigned type;
    int id;
} cu_location;

typedef struct cu_pool_properties {
    unsigned allocation_type;
    unsigned handle_types;
    cu_location location;
    void *security;
    size_t most;
    unsigned short usage;
    unsigned char reserved[54];
} cu_pool_properties;

typedef struct cu_pool_access {
    cu_location location;
    unsigned flags;
} cu_pool_access;

/* The functions. Those of CUDA_LATER_CALL_LIST may be NULL. */
typedef struct cuda_driver {
#define CUDA_CALL_(field, name, parameters) cu_result(*field) parameters;
    CUDA_CALL_LIST(CUDA_CALL_) CUDA_LATER_CALL_LIST(CUDA_CALL_)
#undef CUDA_CALL_
} cuda_driver;

/* The minimum driver version: the first with stream-ordered memory pools. */
enum { CUDA_DRIVER_LEAST = 11020 };

#define CUDA_DRIVER_FILES "libcuda.so.1"

/* Writes the latest CUDA version that the driver supports, 13000 for 13.0; 0 if unknown. Initialises
 * nothing. */
tn_status cuda_driver_version(const tn_host *host, int *out, tn_error *err);

/* Opens libcuda.so.1; initialises nothing. Fails with TN_UNAVAILABLE if it is absent, with
 * TN_INCOMPATIBLE and both versions if it is too old. */
tn_status cuda_driver_bind(const tn_host *host, cuda_driver *out, int32_t *out_version,
                           tn_error *err);

/* Returns whether an error is sticky: it affects the whole context, and everything on the device is invalid. */
int cuda_is_sticky(cu_result code);

/* cuda_driver_status converts a result to a status. cuda_driver_fail also sets `err`: the call, the
 * result's name and number, and the driver's message. */
tn_status cuda_driver_status(cu_result code);
tn_status cuda_driver_fail(const cuda_driver *driver, cu_result code, const char *call,
                           tn_error *err);

#endif
