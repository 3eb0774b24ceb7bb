/* attention-backward: dq by rows of queries, dk and dv by rows of keys, so that each is summed by
 * one thread in a fixed order. Scores are therefore computed twice. Computed in long double for
 * f64, in double for other floats. */
#include "ref_attention_blocks.h"

#define REAL       double
#define OF(name)   name##_double
#define MATH(name) name
#include "attention_backward_ref_inc.h"

/* For f64. */
#define REAL       long double
#define OF(name)   name##_long
#define MATH(name) name##l
#include "attention_backward_ref_inc.h"

static tn_status run_attention_backward(const tn_run *run, tn_error *err)
{
    tni_ref_attention_job job;
    tni_ref_attention_job_init(run, &job);
    const bool in_long = job.element[TN_ATTENTION_Q]->dtype == TN_F64;
    job.query_blocks = tni_ref_block_count(job.at->queries);
    job.key_blocks = tni_ref_block_count(job.at->keys);
    job.blocks =
        job.at->batch * (job.at->heads * job.query_blocks + job.at->groups * job.key_blocks);
    job.bytes = in_long ? count_bytes_long(job.at) : count_bytes_double(job.at);
    job.compute = in_long ? compute_long : compute_double;
    return tni_ref_attention_compute(&job, err);
}

const tn_kernel_row tni_ref_attention_backward = {
    .struct_size = sizeof tni_ref_attention_backward,
    .name = "cpu.attention-backward.ref",
    .platform = "cpu",
    .backend = "ref",
    .op = TN_OP_ATTENTION_BACKWARD,
    .version = 1,
    .dtypes = tni_ref_float_dtypes,
    .numerics = TNI_REF_REPEATS,
    .honours = TNI_REF_ATTENTION_USES,
    .free_dims = TNI_REF_ATTENTION_DIMS,
    .flops_per_us = 3000,
    .bytes_per_us = 500,
    .overhead_us = 1,
    .run = run_attention_backward,
};
