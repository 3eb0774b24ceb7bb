/* NVIDIA's side of headers.c. Our list is read with NVIDIA's types under our names. */
#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>

#include "../../backends/cuda/platform/driver_list.h"
#include "headers.h"

#include <stddef.h>

typedef CUresult cu_result;
typedef CUdevice cu_device;
typedef CUdevice_attribute cu_device_attribute;
typedef CUmemPool_attribute cu_pool_attribute;
typedef CUstreamCaptureStatus cu_capture_status;
typedef CUstreamCaptureMode cu_capture_mode;
typedef CUfunction_attribute cu_function_attribute;
typedef CUlaunchAttributeID cu_launch_attribute_id;
typedef CUlaunchAttribute cu_launch_attribute;
typedef CUlaunchConfig cu_launch_config;
typedef CUtensorMapDataType cu_tensor_map_type;
typedef CUtensorMapInterleave cu_tensor_map_interleave;
typedef CUtensorMapSwizzle cu_tensor_map_swizzle;
typedef CUtensorMapL2promotion cu_tensor_map_promotion;
typedef CUtensorMapFloatOOBfill cu_tensor_map_fill;
typedef CUtensorMap cu_tensor_map;
typedef CUgraph cu_graph;
typedef CUgraphExec cu_graph_exec;
typedef CUdeviceptr cu_deviceptr;
typedef CUcontext cu_context;
typedef CUstream cu_stream;
typedef CUevent cu_event;
typedef CUmodule cu_module;
typedef CUfunction cu_function;
typedef CUmemoryPool cu_pool;
typedef CUuuid cu_uuid;
typedef CUipcEventHandle cu_event_handle;
typedef CUDA_MEMCPY2D cu_copy_2d;
typedef CUDA_MEMCPY3D_PEER cu_copy_peer;
typedef CUmemLocation cu_location;
typedef CUmemPoolProps cu_pool_properties;
typedef CUmemAccessDesc cu_pool_access;

const header_number vendor_numbers[] = {
#define CUDA_NUMBER_(name, value) {#name, name},
    CUDA_NUMBER_LIST(CUDA_NUMBER_)
#undef CUDA_NUMBER_
        {NULL, 0}};

const header_number vendor_sizes[] = {
    SIZE(cu_result),
    SIZE(cu_device),
    SIZE(cu_deviceptr),
    SIZE(cu_uuid),
    SIZE(cu_event_handle),
    SIZE(cu_tensor_map),
    SIZE(cu_launch_attribute_id),
    SIZE(cu_launch_attribute),
    OFFSET(cu_launch_attribute, permitted, value.programmaticStreamSerializationAllowed),
    SIZE(cu_launch_config),
    OFFSET(cu_launch_config, block_x, blockDimX),
    OFFSET(cu_launch_config, shared_bytes, sharedMemBytes),
    OFFSET(cu_launch_config, stream, hStream),
    OFFSET(cu_launch_config, attributes, attrs),
    OFFSET(cu_launch_config, count, numAttrs),
    SIZE(cu_copy_2d),
    OFFSET(cu_copy_2d, from_type, srcMemoryType),
    OFFSET(cu_copy_2d, from_host, srcHost),
    OFFSET(cu_copy_2d, from_device, srcDevice),
    OFFSET(cu_copy_2d, from_pitch, srcPitch),
    OFFSET(cu_copy_2d, to_type, dstMemoryType),
    OFFSET(cu_copy_2d, to_host, dstHost),
    OFFSET(cu_copy_2d, to_device, dstDevice),
    OFFSET(cu_copy_2d, to_pitch, dstPitch),
    OFFSET(cu_copy_2d, width, WidthInBytes),
    OFFSET(cu_copy_2d, height, Height),
    SIZE(cu_copy_peer),
    OFFSET(cu_copy_peer, from_type, srcMemoryType),
    OFFSET(cu_copy_peer, from_device, srcDevice),
    OFFSET(cu_copy_peer, from_context, srcContext),
    OFFSET(cu_copy_peer, from_pitch, srcPitch),
    OFFSET(cu_copy_peer, from_height, srcHeight),
    OFFSET(cu_copy_peer, to_type, dstMemoryType),
    OFFSET(cu_copy_peer, to_device, dstDevice),
    OFFSET(cu_copy_peer, to_context, dstContext),
    OFFSET(cu_copy_peer, to_pitch, dstPitch),
    OFFSET(cu_copy_peer, to_height, dstHeight),
    OFFSET(cu_copy_peer, width, WidthInBytes),
    OFFSET(cu_copy_peer, depth, Depth),
    SIZE(cu_pool_properties),
    OFFSET(cu_pool_properties, allocation_type, allocType),
    OFFSET(cu_pool_properties, handle_types, handleTypes),
    OFFSET(cu_pool_properties, location, location),
    OFFSET(cu_pool_properties, security, win32SecurityAttributes),
    SIZE(cu_pool_access),
    OFFSET(cu_pool_access, flags, flags),
    SIZE(cu_location),
    OFFSET(cu_location, id, id),
    {NULL, 0},
};

/* A function that is declared otherwise does not compile. */
#define CUDA_CALL_(field, name, parameters)                                               \
    _Static_assert(                                                                       \
        __builtin_types_compatible_p(__typeof__(&name), cu_result(CUDAAPI *) parameters), \
        #name " is declared otherwise");
CUDA_CALL_LIST(CUDA_CALL_)
CUDA_LATER_CALL_LIST(CUDA_CALL_)
#undef CUDA_CALL_
