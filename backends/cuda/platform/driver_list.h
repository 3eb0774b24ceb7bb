/* The parts of NVIDIA's driver API that the module uses, as two lists: constants and functions. They name
 * types and declare none, so that a test can include them together with NVIDIA's own header and compare.
 *
 * Functions with a second version are listed under their versioned name, as the loader knows them. */
#ifndef CUDA_DRIVER_LIST_H
#define CUDA_DRIVER_LIST_H

#define CUDA_NUMBER_LIST(X)                                         \
    X(CUDA_SUCCESS, 0)                                              \
    X(CUDA_ERROR_INVALID_VALUE, 1)                                  \
    X(CUDA_ERROR_OUT_OF_MEMORY, 2)                                  \
    X(CUDA_ERROR_NOT_INITIALIZED, 3)                                \
    X(CUDA_ERROR_DEINITIALIZED, 4)                                  \
    X(CUDA_ERROR_STUB_LIBRARY, 34)                                  \
    X(CUDA_ERROR_DEVICE_UNAVAILABLE, 46)                            \
    X(CUDA_ERROR_NO_DEVICE, 100)                                    \
    X(CUDA_ERROR_INVALID_DEVICE, 101)                               \
    X(CUDA_ERROR_INVALID_IMAGE, 200)                                \
    X(CUDA_ERROR_INVALID_CONTEXT, 201)                              \
    X(CUDA_ERROR_NO_BINARY_FOR_GPU, 209)                            \
    X(CUDA_ERROR_ECC_UNCORRECTABLE, 214)                            \
    X(CUDA_ERROR_INVALID_PTX, 218)                                  \
    X(CUDA_ERROR_NVLINK_UNCORRECTABLE, 220)                         \
    X(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222)                      \
    X(CUDA_ERROR_INVALID_HANDLE, 400)                               \
    X(CUDA_ERROR_NOT_READY, 600)                                    \
    X(CUDA_ERROR_ILLEGAL_ADDRESS, 700)                              \
    X(CUDA_ERROR_LAUNCH_TIMEOUT, 702)                               \
    X(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, 704)                  \
    X(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)                         \
    X(CUDA_ERROR_ASSERT, 710)                                       \
    X(CUDA_ERROR_HARDWARE_STACK_ERROR, 714)                         \
    X(CUDA_ERROR_ILLEGAL_INSTRUCTION, 715)                          \
    X(CUDA_ERROR_MISALIGNED_ADDRESS, 716)                           \
    X(CUDA_ERROR_INVALID_ADDRESS_SPACE, 717)                        \
    X(CUDA_ERROR_INVALID_PC, 718)                                   \
    X(CUDA_ERROR_LAUNCH_FAILED, 719)                                \
    X(CUDA_ERROR_NOT_PERMITTED, 800)                                \
    X(CUDA_ERROR_NOT_SUPPORTED, 801)                                \
    X(CUDA_ERROR_SYSTEM_NOT_READY, 802)                             \
    X(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803)                       \
    X(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804)               \
    X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900)                   \
    X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901)                   \
    X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 906)                      \
    X(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 908)                  \
    X(CUDA_ERROR_UNKNOWN, 999)                                      \
    X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1)                 \
    X(CU_DEVICE_ATTRIBUTE_WARP_SIZE, 10)                            \
    X(CU_DEVICE_ATTRIBUTE_MAX_PITCH, 11)                            \
    X(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 13)                           \
    X(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)                 \
    X(CU_DEVICE_ATTRIBUTE_INTEGRATED, 18)                           \
    X(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 36)                    \
    X(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 37)              \
    X(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 38)                        \
    X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 39)       \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)             \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)             \
    X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 81) \
    X(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 82)     \
    X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)    \
    X(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 115)              \
    X(CU_STREAM_NON_BLOCKING, 1)                                    \
    X(CU_EVENT_BLOCKING_SYNC, 1)                                    \
    X(CU_EVENT_DISABLE_TIMING, 2)                                   \
    X(CU_EVENT_INTERPROCESS, 4)                                     \
    X(CU_MEMHOSTALLOC_PORTABLE, 1)                                  \
    X(CU_MEMORYTYPE_HOST, 1)                                        \
    X(CU_MEMORYTYPE_DEVICE, 2)                                      \
    X(CU_MEM_ALLOCATION_TYPE_PINNED, 1)                             \
    X(CU_MEM_LOCATION_TYPE_DEVICE, 1)                               \
    X(CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 3)                        \
    X(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 4)                         \
    X(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, 5)                      \
    X(CU_MEMPOOL_ATTR_USED_MEM_CURRENT, 7)                          \
    X(CU_STREAM_CAPTURE_STATUS_NONE, 0)                             \
    X(CU_STREAM_CAPTURE_MODE_RELAXED, 2)                            \
    X(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)           \
    X(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 6)     \
    X(CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 6)                           \
    X(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 9)                          \
    X(CU_TENSOR_MAP_INTERLEAVE_NONE, 0)                             \
    X(CU_TENSOR_MAP_SWIZZLE_128B, 3)                                \
    X(CU_TENSOR_MAP_L2_PROMOTION_L2_128B, 2)                        \
    X(CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, 0)

/*  Field of the table, symbol name, parameters. All return a cu_result. */
#define CUDA_CALL_LIST(X)                                                                          \
    X(init, cuInit, (unsigned flags))                                                              \
    X(version, cuDriverGetVersion, (int *out))                                                     \
    X(error_name, cuGetErrorName, (cu_result code, const char **out))                              \
    X(error_text, cuGetErrorString, (cu_result code, const char **out))                            \
    X(device_get, cuDeviceGet, (cu_device * out, int ordinal))                                     \
    X(device_count, cuDeviceGetCount, (int *out))                                                  \
    X(device_name, cuDeviceGetName, (char *out, int size, cu_device device))                       \
    X(device_memory, cuDeviceTotalMem_v2, (size_t * out, cu_device device))                        \
    X(device_attribute, cuDeviceGetAttribute,                                                      \
      (int *out, cu_device_attribute which, cu_device device))                                     \
    X(device_bus, cuDeviceGetPCIBusId, (char *out, int size, cu_device device))                    \
    X(device_reaches, cuDeviceCanAccessPeer, (int *out, cu_device device, cu_device peer))         \
    X(primary_retain, cuDevicePrimaryCtxRetain, (cu_context * out, cu_device device))              \
    X(primary_release, cuDevicePrimaryCtxRelease_v2, (cu_device device))                           \
    X(primary_reset, cuDevicePrimaryCtxReset_v2, (cu_device device))                               \
    X(primary_state, cuDevicePrimaryCtxGetState, (cu_device device, unsigned *flags, int *active)) \
    X(context_get, cuCtxGetCurrent, (cu_context * out))                                            \
    X(context_set, cuCtxSetCurrent, (cu_context context))                                          \
    X(context_push, cuCtxPushCurrent_v2, (cu_context context))                                     \
    X(context_pop, cuCtxPopCurrent_v2, (cu_context * out))                                         \
    X(context_synchronize, cuCtxSynchronize, (void))                                               \
    X(priority_range, cuCtxGetStreamPriorityRange, (int *least, int *greatest))                    \
    X(peer_enable, cuCtxEnablePeerAccess, (cu_context peer, unsigned flags))                       \
    X(memory_info, cuMemGetInfo_v2, (size_t * available, size_t * total))                          \
    X(memory_alloc, cuMemAlloc_v2, (cu_deviceptr * out, size_t bytes))                             \
    X(memory_free, cuMemFree_v2, (cu_deviceptr memory))                                            \
    X(host_alloc, cuMemHostAlloc, (void **out, size_t bytes, unsigned flags))                      \
    X(host_free, cuMemFreeHost, (void *memory))                                                    \
    X(copy_in, cuMemcpyHtoDAsync_v2,                                                               \
      (cu_deviceptr to, const void *from, size_t bytes, cu_stream stream))                         \
    X(copy_out, cuMemcpyDtoHAsync_v2,                                                              \
      (void *to, cu_deviceptr from, size_t bytes, cu_stream stream))                               \
    X(copy_within, cuMemcpyDtoDAsync_v2,                                                           \
      (cu_deviceptr to, cu_deviceptr from, size_t bytes, cu_stream stream))                        \
    X(copy_rows, cuMemcpy2DAsync_v2, (const cu_copy_2d *copy, cu_stream stream))                   \
    X(copy_peer, cuMemcpyPeerAsync,                                                                \
      (cu_deviceptr to, cu_context to_context, cu_deviceptr from, cu_context from_context,         \
       size_t bytes, cu_stream stream))                                                            \
    X(copy_peer_rows, cuMemcpy3DPeerAsync, (const cu_copy_peer *copy, cu_stream stream))           \
    X(fill_8, cuMemsetD8Async,                                                                     \
      (cu_deviceptr to, unsigned char value, size_t count, cu_stream stream))                      \
    X(fill_16, cuMemsetD16Async,                                                                   \
      (cu_deviceptr to, unsigned short value, size_t count, cu_stream stream))                     \
    X(fill_32, cuMemsetD32Async,                                                                   \
      (cu_deviceptr to, unsigned value, size_t count, cu_stream stream))                           \
    X(stream_create, cuStreamCreateWithPriority, (cu_stream * out, unsigned flags, int priority))  \
    X(stream_destroy, cuStreamDestroy_v2, (cu_stream stream))                                      \
    X(stream_query, cuStreamQuery, (cu_stream stream))                                             \
    X(stream_synchronize, cuStreamSynchronize, (cu_stream stream))                                 \
    X(stream_wait, cuStreamWaitEvent, (cu_stream stream, cu_event event, unsigned flags))          \
    X(stream_capturing, cuStreamIsCapturing, (cu_stream stream, cu_capture_status * out))          \
    X(capture_mode, cuThreadExchangeStreamCaptureMode, (cu_capture_mode * mode))                   \
    X(graph_begin, cuStreamBeginCapture_v2, (cu_stream stream, cu_capture_mode mode))              \
    X(graph_end, cuStreamEndCapture, (cu_stream stream, cu_graph * out))                           \
    X(graph_destroy, cuGraphDestroy, (cu_graph graph))                                             \
    X(graph_launch, cuGraphLaunch, (cu_graph_exec graph, cu_stream stream))                        \
    X(graph_exec_destroy, cuGraphExecDestroy, (cu_graph_exec graph))                               \
    X(event_create, cuEventCreate, (cu_event * out, unsigned flags))                               \
    X(event_destroy, cuEventDestroy_v2, (cu_event event))                                          \
    X(event_record, cuEventRecord, (cu_event event, cu_stream stream))                             \
    X(event_query, cuEventQuery, (cu_event event))                                                 \
    X(event_synchronize, cuEventSynchronize, (cu_event event))                                     \
    X(event_elapsed, cuEventElapsedTime, (float *out_ms, cu_event start, cu_event stop))           \
    X(event_export, cuIpcGetEventHandle, (cu_event_handle * out, cu_event event))                  \
    X(event_import, cuIpcOpenEventHandle, (cu_event * out, cu_event_handle handle))                \
    X(module_load, cuModuleLoadData, (cu_module * out, const void *image))                         \
    X(module_unload, cuModuleUnload, (cu_module module))                                           \
    X(module_function, cuModuleGetFunction,                                                        \
      (cu_function * out, cu_module module, const char *name))                                     \
    X(function_set, cuFuncSetAttribute,                                                            \
      (cu_function function, cu_function_attribute which, int value))                              \
    X(launch, cuLaunchKernel,                                                                      \
      (cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,  \
       unsigned block_y, unsigned block_z, unsigned shared_bytes, cu_stream stream, void **values, \
       void **extra))

/* Functions that only newer drivers have: the table's field is NULL otherwise. */
#define CUDA_LATER_CALL_LIST(X)                                                                    \
    X(device_uuid, cuDeviceGetUuid_v2, (cu_uuid * out, cu_device device))                          \
    X(pool_create, cuMemPoolCreate, (cu_pool * out, const cu_pool_properties *properties))         \
    X(pool_destroy, cuMemPoolDestroy, (cu_pool pool))                                              \
    X(pool_trim, cuMemPoolTrimTo, (cu_pool pool, size_t keep))                                     \
    X(pool_set, cuMemPoolSetAttribute, (cu_pool pool, cu_pool_attribute which, void *value))       \
    X(pool_get, cuMemPoolGetAttribute, (cu_pool pool, cu_pool_attribute which, void *value))       \
    X(pool_share, cuMemPoolSetAccess, (cu_pool pool, const cu_pool_access *whom, size_t count))    \
    X(pool_alloc, cuMemAllocFromPoolAsync,                                                         \
      (cu_deviceptr * out, size_t bytes, cu_pool pool, cu_stream stream))                          \
    X(pool_free, cuMemFreeAsync, (cu_deviceptr memory, cu_stream stream))                          \
    X(graph_instantiate, cuGraphInstantiateWithFlags,                                              \
      (cu_graph_exec * out, cu_graph graph, unsigned long long flags))                             \
    X(tensor_map, cuTensorMapEncodeTiled,                                                          \
      (cu_tensor_map * out, cu_tensor_map_type type, uint32_t rank, void *memory,                  \
       const uint64_t *sizes, const uint64_t *strides, const uint32_t *box, const uint32_t *steps, \
       cu_tensor_map_interleave interleave, cu_tensor_map_swizzle swizzle,                         \
       cu_tensor_map_promotion promotion, cu_tensor_map_fill fill))                                \
    X(launch_with, cuLaunchKernelEx,                                                               \
      (const cu_launch_config *config, cu_function function, void **values, void **extra))

#endif
