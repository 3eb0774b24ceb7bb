/* The parts of cuDNN that are used: constants and functions, as lists that a test also reads with the
 * vendor's types. */
#ifndef CUDA_CUDNN_DNN_LIST_H
#define CUDA_CUDNN_DNN_LIST_H

/*  Our name, the vendor's name, its value; checked against the vendor's header where that is installed. */
#define DNN_NUMBER_LIST(X)                                                              \
    X(DNN_SUCCESS, CUDNN_STATUS_SUCCESS, 0)                                             \
    X(DNN_NOT_INITIALIZED, CUDNN_STATUS_NOT_INITIALIZED, 1001)                          \
    X(DNN_MIXED, CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH, 1002)                        \
    X(DNN_PART_MISSING, CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED, 1008)                   \
    X(DNN_BAD_PARAM, CUDNN_STATUS_BAD_PARAM, 2000)                                      \
    X(DNN_NOT_SUPPORTED, CUDNN_STATUS_NOT_SUPPORTED, 3000)                              \
    X(DNN_DRIVER_OLD, CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER, 3005)        \
    X(DNN_NEEDS_MISSING, CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING, 3008) \
    X(DNN_PART_UNAVAILABLE, CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE, 3009)    \
    X(DNN_INTERNAL, CUDNN_STATUS_INTERNAL_ERROR, 4000)                                  \
    X(DNN_NO_HOST_MEMORY, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, 4003)     \
    X(DNN_NO_DEVICE_MEMORY, CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, 4004) \
    X(DNN_F32, CUDNN_DATA_FLOAT, 0)                                                     \
    X(DNN_F16, CUDNN_DATA_HALF, 2)                                                      \
    X(DNN_I32, CUDNN_DATA_INT32, 4)                                                     \
    X(DNN_U8, CUDNN_DATA_UINT8, 6)                                                      \
    X(DNN_BF16, CUDNN_DATA_BFLOAT16, 9)                                                 \
    X(DNN_BOOL, CUDNN_DATA_BOOLEAN, 11)                                                 \
    X(DNN_ADD, CUDNN_POINTWISE_ADD, 0)                                                  \
    X(DNN_MUL, CUDNN_POINTWISE_MUL, 1)                                                  \
    X(DNN_MIN, CUDNN_POINTWISE_MIN, 2)                                                  \
    X(DNN_MAX, CUDNN_POINTWISE_MAX, 3)                                                  \
    X(DNN_DIV, CUDNN_POINTWISE_DIV, 6)                                                  \
    X(DNN_SUB, CUDNN_POINTWISE_SUB, 9)                                                  \
    X(DNN_EXP, CUDNN_POINTWISE_EXP, 13)                                                 \
    X(DNN_LOG, CUDNN_POINTWISE_LOG, 15)                                                 \
    X(DNN_IDENTITY, CUDNN_POINTWISE_IDENTITY, 21)                                       \
    X(DNN_TANH, CUDNN_POINTWISE_TANH_FWD, 101)                                          \
    X(DNN_GREATER, CUDNN_POINTWISE_CMP_GT, 302)                                         \
    X(DNN_GREATER_EQUAL, CUDNN_POINTWISE_CMP_GE, 303)                                   \
    X(DNN_LESS, CUDNN_POINTWISE_CMP_LT, 304)                                            \
    X(DNN_AND, CUDNN_POINTWISE_LOGICAL_AND, 400)                                        \
    X(DNN_INDEX, CUDNN_POINTWISE_GEN_INDEX, 501)                                        \
    X(DNN_SELECT, CUDNN_POINTWISE_BINARY_SELECT, 601)                                   \
    X(DNN_REDUCE_ADD, CUDNN_REDUCE_TENSOR_ADD, 0)                                       \
    X(DNN_REDUCE_MAX, CUDNN_REDUCE_TENSOR_MAX, 3)                                       \
    X(DNN_HEURISTIC_FALLBACK, CUDNN_HEUR_MODE_FALLBACK, 2)                              \
    X(DNN_HEURISTIC_A, CUDNN_HEUR_MODE_A, 3)                                            \
    X(DNN_NOTE_DIFFERS, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, 4)                       \
    X(DNN_TYPE_HANDLE, CUDNN_TYPE_HANDLE, 0)                                            \
    X(DNN_TYPE_DATA, CUDNN_TYPE_DATA_TYPE, 1)                                           \
    X(DNN_TYPE_BOOL, CUDNN_TYPE_BOOLEAN, 2)                                             \
    X(DNN_TYPE_I64, CUDNN_TYPE_INT64, 3)                                                \
    X(DNN_TYPE_F32, CUDNN_TYPE_FLOAT, 4)                                                \
    X(DNN_TYPE_F64, CUDNN_TYPE_DOUBLE, 5)                                               \
    X(DNN_TYPE_POINTER, CUDNN_TYPE_VOID_PTR, 6)                                         \
    X(DNN_TYPE_HEURISTIC, CUDNN_TYPE_HEUR_MODE, 8)                                      \
    X(DNN_TYPE_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, 11)                                     \
    X(DNN_TYPE_POINTWISE, CUDNN_TYPE_POINTWISE_MODE, 14)                                \
    X(DNN_TYPE_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 15)                                 \
    X(DNN_TYPE_REDUCTION, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 18)                       \
    X(DNN_TYPE_CHAR, CUDNN_TYPE_CHAR, 24)                                               \
    X(DNN_POINTWISE, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, 0)                             \
    X(DNN_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 2)                                   \
    X(DNN_CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, 3)                                \
    X(DNN_HEURISTIC, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, 4)                            \
    X(DNN_PLAN, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, 5)                             \
    X(DNN_OP_POINTWISE, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, 13)               \
    X(DNN_GRAPH, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, 15)                           \
    X(DNN_PACK, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, 16)                              \
    X(DNN_TENSOR, CUDNN_BACKEND_TENSOR_DESCRIPTOR, 17)                                  \
    X(DNN_MATMUL, CUDNN_BACKEND_MATMUL_DESCRIPTOR, 18)                                  \
    X(DNN_OP_MATMUL, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, 19)                     \
    X(DNN_REDUCTION, CUDNN_BACKEND_REDUCTION_DESCRIPTOR, 21)                            \
    X(DNN_OP_REDUCTION, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, 22)               \
    X(DNN_OP_RESHAPE, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, 31)                   \
    X(DNN_OP_PAGED, CUDNN_BACKEND_OPERATION_PAGED_CACHE_LOAD_DESCRIPTOR, 35)            \
    X(DNN_DEVICE, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, 38)                              \
    X(DNN_POINTWISE_MODE, CUDNN_ATTR_POINTWISE_MODE, 0)                                 \
    X(DNN_POINTWISE_PRECISION, CUDNN_ATTR_POINTWISE_MATH_PREC, 1)                       \
    X(DNN_POINTWISE_AXIS, CUDNN_ATTR_POINTWISE_AXIS, 9)                                 \
    X(DNN_HEURISTIC_MODE, CUDNN_ATTR_ENGINEHEUR_MODE, 200)                              \
    X(DNN_HEURISTIC_GRAPH, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 201)                  \
    X(DNN_HEURISTIC_RESULTS, CUDNN_ATTR_ENGINEHEUR_RESULTS, 202)                        \
    X(DNN_HEURISTIC_DEVICE, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, 204)                      \
    X(DNN_CONFIG_ENGINE, CUDNN_ATTR_ENGINECFG_ENGINE, 300)                              \
    X(DNN_PLAN_HANDLE, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, 400)                           \
    X(DNN_PLAN_CONFIG, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 401)                    \
    X(DNN_PLAN_WORKSPACE, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 402)                \
    X(DNN_PLAN_DEVICE, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, 407)                       \
    X(DNN_OP_POINTWISE_DESC, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, 750)         \
    X(DNN_OP_POINTWISE_X, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, 751)                    \
    X(DNN_OP_POINTWISE_B, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, 752)                    \
    X(DNN_OP_POINTWISE_Y, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, 753)                    \
    X(DNN_OP_POINTWISE_T, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, 758)                    \
    X(DNN_GRAPH_HANDLE, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, 800)                          \
    X(DNN_GRAPH_OPS, CUDNN_ATTR_OPERATIONGRAPH_OPS, 801)                                \
    X(DNN_TENSOR_ALIGNMENT, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 900)                      \
    X(DNN_TENSOR_TYPE, CUDNN_ATTR_TENSOR_DATA_TYPE, 901)                                \
    X(DNN_TENSOR_SHAPE, CUDNN_ATTR_TENSOR_DIMENSIONS, 902)                              \
    X(DNN_TENSOR_STRIDES, CUDNN_ATTR_TENSOR_STRIDES, 903)                               \
    X(DNN_TENSOR_ID, CUDNN_ATTR_TENSOR_UNIQUE_ID, 906)                                  \
    X(DNN_TENSOR_VIRTUAL, CUDNN_ATTR_TENSOR_IS_VIRTUAL, 907)                            \
    X(DNN_TENSOR_BY_VALUE, CUDNN_ATTR_TENSOR_IS_BY_VALUE, 908)                          \
    X(DNN_TENSOR_PLACES, CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC, 913)                     \
    X(DNN_PACK_IDS, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, 1000)                           \
    X(DNN_PACK_POINTERS, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, 1001)                   \
    X(DNN_PACK_WORKSPACE, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, 1003)                      \
    X(DNN_ENGINE_NOTES, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, 1303)                         \
    X(DNN_MATMUL_COMPUTE, CUDNN_ATTR_MATMUL_COMP_TYPE, 1500)                            \
    X(DNN_MATMUL_PADDING, CUDNN_ATTR_MATMUL_PADDING_VALUE, 1503)                        \
    X(DNN_OP_MATMUL_A, CUDNN_ATTR_OPERATION_MATMUL_ADESC, 1520)                         \
    X(DNN_OP_MATMUL_B, CUDNN_ATTR_OPERATION_MATMUL_BDESC, 1521)                         \
    X(DNN_OP_MATMUL_C, CUDNN_ATTR_OPERATION_MATMUL_CDESC, 1522)                         \
    X(DNN_OP_MATMUL_DESC, CUDNN_ATTR_OPERATION_MATMUL_DESC, 1523)                       \
    X(DNN_OP_MATMUL_M, CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, 1525)          \
    X(DNN_OP_MATMUL_N, CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, 1526)          \
    X(DNN_OP_MATMUL_K, CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC, 1527)          \
    X(DNN_REDUCTION_MODE, CUDNN_ATTR_REDUCTION_OPERATOR, 1600)                          \
    X(DNN_REDUCTION_COMPUTE, CUDNN_ATTR_REDUCTION_COMP_TYPE, 1601)                      \
    X(DNN_OP_REDUCTION_X, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, 1610)                   \
    X(DNN_OP_REDUCTION_Y, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, 1611)                   \
    X(DNN_OP_REDUCTION_DESC, CUDNN_ATTR_OPERATION_REDUCTION_DESC, 1612)                 \
    X(DNN_OP_PAGED_FROM, CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_CONTAINER_DESC, 1950)    \
    X(DNN_OP_PAGED_Y, CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_YDESC, 1951)                \
    X(DNN_OP_PAGED_LENGTHS, CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_SEQUENCE_DESC, 1952)  \
    X(DNN_OP_PAGED_TABLE, CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_PAGE_TABLE_DESC, 1953)  \
    X(DNN_OP_RESHAPE_X, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, 2200)                       \
    X(DNN_OP_RESHAPE_Y, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, 2201)                       \
    X(DNN_DEVICE_TEXT, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, 2702)

/*  Field, symbol name, result, parameters. */
#define DNN_CALL_LIST(X)                                                                           \
    X(version, cudnnGetVersion, size_t, (void))                                                    \
    X(runtime_version, cudnnGetCudartVersion, size_t, (void))                                      \
    X(create, cudnnCreate, dnn_status, (dnn_handle * out))                                         \
    X(destroy, cudnnDestroy, dnn_status, (dnn_handle handle))                                      \
    X(set_stream, cudnnSetStream, dnn_status, (dnn_handle handle, dnn_stream stream))              \
    X(desc_create, cudnnBackendCreateDescriptor, dnn_status, (dnn_desc_type type, dnn_desc * out)) \
    X(desc_destroy, cudnnBackendDestroyDescriptor, dnn_status, (dnn_desc desc))                    \
    X(finalize, cudnnBackendFinalize, dnn_status, (dnn_desc desc))                                 \
    X(set, cudnnBackendSetAttribute, dnn_status,                                                   \
      (dnn_desc desc, dnn_attribute attribute, dnn_type type, int64_t count, const void *of))      \
    X(get, cudnnBackendGetAttribute, dnn_status,                                                   \
      (dnn_desc desc, dnn_attribute attribute, dnn_type type, int64_t most, int64_t * out_count,   \
       void *out))                                                                                 \
    X(execute, cudnnBackendExecute, dnn_status, (dnn_handle handle, dnn_desc plan, dnn_desc pack))

/*  Functions that 8.x lacks: the table's field is NULL then. */
#define DNN_LATER_CALL_LIST(X)                                 \
    X(check_parts, cudnnGraphVersionCheck, dnn_status, (void)) \
    X(last_error, cudnnGetLastErrorString, void, (char *message, size_t max_size))

#endif
