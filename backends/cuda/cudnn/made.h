/* A plan of cuDNN's for one shape, with what a run of it is given. */
#ifndef CUDA_CUDNN_MADE_H
#define CUDA_CUDNN_MADE_H

#include "packed.h"
#include "tenon/module/kernel.h"

enum { DNN_COMPILED = 256 << 10 }; /* bytes that cuDNN keeps of a kernel, about */

/* Bytes that a run has for itself, before what is cuDNN's. */
typedef struct dnn_own {
    uint64_t
        table; /* of queries, one number for each sequence; of what is packed, tables, each of */
    uint64_t each;  /* so many bytes                     */
    uint64_t sums;  /* one number for each row of scores */
    uint64_t parts; /* of the gradient of queries        */
    uint64_t bias;  /* of what a mask of bool becomes    */
    uint64_t least; /* of LSE without -infinity          */
} dnn_own;

/* A plan, and where what it is given comes from. */
typedef struct dnn_step {
    dnn_desc plan;
    int32_t slots;
    dnn_slot slot[DNN_SLOTS_MOST];
} dnn_step;

typedef struct dnn_made {
    dnn_own own;
    bool clears; /* the parts begin as zero */
    int32_t steps;
    dnn_step step[DNN_TABLES_MOST +
                  1]; /* tables of packed sequences, or what masks need; then all the rest */
} dnn_made;

/* Makes one for the run's op. `kernels` as in dnn_target. */
tn_status dnn_made_make(const tn_run *run, const cuda_scope *scope, dnn_desc *kernels,
                        dnn_made *out, tn_error *err);
void dnn_made_end(const tn_run *run, dnn_made *made);

/* Queues it on the run's stream. By one thread at a time. */
tn_status dnn_made_queue(const tn_run *run, const cuda_scope *scope, dnn_made *made, tn_error *err);

#endif
