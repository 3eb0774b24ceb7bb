/* NVIDIA's side of cudnn_headers.c. Our list is read with NVIDIA's types under our names. */
#include <cudnn_graph.h>

#include "../../backends/cuda/lib/cudnn/dnn_list.h"
#include "cudnn_headers.h"

#include <stddef.h>

typedef cudnnStatus_t dnn_status;
typedef cudnnHandle_t dnn_handle;
typedef cudaStream_t dnn_stream;
typedef cudnnBackendDescriptor_t dnn_desc;
typedef cudnnBackendDescriptorType_t dnn_desc_type;
typedef cudnnBackendAttributeName_t dnn_attribute;
typedef cudnnBackendAttributeType_t dnn_type;

const header_number dnn_vendor_numbers[] = {
#define DNN_NUMBER_(ours, theirs, number) {#theirs, theirs},
    DNN_NUMBER_LIST(DNN_NUMBER_)
#undef DNN_NUMBER_
        {NULL, 0}};

/* A function that is declared otherwise does not compile. */
#define DNN_CALL_(field, name, result, parameters)                                        \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&name), result(*) parameters), \
                   #name " is declared otherwise");
DNN_CALL_LIST(DNN_CALL_)
DNN_LATER_CALL_LIST(DNN_CALL_)
#undef DNN_CALL_
