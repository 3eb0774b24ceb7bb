/* cuDNN, NVIDIA's neural-network operators: our own declarations of the parts that are used, and its
 * descriptors. Thread-safety: the library's functions are safe if each thread has its own handles and
 * descriptors. Only one thread at a time may use a handle, or execute a plan. */
#ifndef CUDA_CUDNN_DNN_H
#define CUDA_CUDNN_DNN_H

#include "../../platform/cuda.h"
#include "dnn_list.h"
#include "tenon/module/library.h"

typedef int dnn_status, dnn_desc_type, dnn_attribute, dnn_type;
typedef void *dnn_handle, *dnn_desc;
typedef cu_stream dnn_stream;

enum {
#define DNN_NUMBER_(ours, theirs, number) ours = number,
    DNN_NUMBER_LIST(DNN_NUMBER_)
#undef DNN_NUMBER_
};

/* cuDNN's version numbers: 9.10.2 is 91002, 8.9.3 was 8903. */
enum { DNN_LEAST = 90000 };

/* A handle, and the device's epoch in which it was created. */
typedef struct dnn_lease {
    dnn_handle handle;
    uint32_t life;
} dnn_lease;

enum { DNN_IDLE_MOST = 32 };

/* The object that the library's `open` returns. */
typedef struct cuda_dnn {
#define DNN_CALL_(field, name, result, parameters) result(*field) parameters;
    DNN_CALL_LIST(DNN_CALL_)
    DNN_LATER_CALL_LIST(DNN_CALL_)
#undef DNN_CALL_
    _Atomic(dnn_lease *) idle[CUDA_MOST][DNN_IDLE_MOST]; /* currently unused handles */
} cuda_dnn;

extern const tn_library_row cuda_dnn_row;

/* Gets a handle of the scope's device, which must be current. The caller has exclusive use of it
 * until dnn_handle_give. */
tn_status dnn_handle_take(cuda_dnn *self, const cuda_scope *scope, dnn_lease **out, tn_error *err);
void dnn_handle_give(cuda_dnn *self, const cuda_scope *scope, dnn_lease *lease);

/* Writes the library's message about why the last call on this thread failed or found nothing; "" if
 * none exists. */
void dnn_said(const cuda_dnn *self, char *out, size_t size);

/* Converts a result of the library to a status, with the library's message on this thread. */
tn_status dnn_check(const cuda_dnn *self, dnn_status code, const char *call, tn_error *err);

/* The same while planning a graph: a graph that the library finds invalid counts as not supported. */
tn_status dnn_check_plan(const cuda_dnn *self, dnn_status code, const char *call, tn_error *err);

#endif
