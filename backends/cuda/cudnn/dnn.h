/* cuDNN, NVIDIA's neural-network operators: our own declarations of what is used of it, its descriptors.
 * Thread-safety: the library's functions are safe for handles and descriptors of one's own. A handle is of
 * one thread at a time, and so is a plan while it is executed. */
#ifndef CUDA_CUDNN_DNN_H
#define CUDA_CUDNN_DNN_H

#include "../platform/cuda.h"
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

/* Versions as it numbers them: 9.10.2 is 91002, 8.9.3 was 8903. */
enum { DNN_LEAST = 90000 };

/* A handle, and the life of the device that it was made in. */
typedef struct dnn_lease {
    dnn_handle handle;
    uint32_t life;
} dnn_lease;

enum { DNN_IDLE_MOST = 32 };

/* What the library's `open` gives. */
typedef struct cuda_dnn {
#define DNN_CALL_(field, name, result, parameters) result(*field) parameters;
    DNN_CALL_LIST(DNN_CALL_)
    DNN_LATER_CALL_LIST(DNN_CALL_)
#undef DNN_CALL_
    _Atomic(dnn_lease *) idle[CUDA_MOST][DNN_IDLE_MOST]; /* that nobody uses now */
} cuda_dnn;

extern const tn_library_row cuda_dnn_row;

/* A handle of the scope's device, which is current, for the caller alone until dnn_handle_give. */
tn_status dnn_handle_take(cuda_dnn *self, const cuda_scope *scope, dnn_lease **out, tn_error *err);
void dnn_handle_give(cuda_dnn *self, const cuda_scope *scope, dnn_lease *lease);

/* Why the last call on this thread failed or found nothing, in the library's words; "" for no words. */
void dnn_said(const cuda_dnn *self, char *out, size_t size);

/* The status of one of the library's results, with what it says of it on this thread. */
tn_status dnn_check(const cuda_dnn *self, dnn_status code, const char *call, tn_error *err);

/* The same of a graph that is being planned: what the library finds wrong with one, it does not take. */
tn_status dnn_check_plan(const cuda_dnn *self, dnn_status code, const char *call, tn_error *err);

#endif
