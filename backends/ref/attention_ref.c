/* attention: computes the scores of some queries with all keys that they see, the exponentials
 * relative to the greatest score, and the sums of the values weighted by these. Computed in long
 * double for f64, in double for other floats; each row is summed from the first key to the last, by
 * one thread. */
#include "ref_attention_blocks.h"

static int64_t longer_row(const tn_attention_op *at)
{
    return at->size > at->value_size ? at->size : at->value_size;
}

#define REAL       double
#define OF(name)   name##_double
#define MATH(name) name
#include "attention_ref_inc.h"

/* For f64. */
#define REAL       long double
#define OF(name)   name##_long
#define MATH(name) name##l
#include "attention_ref_inc.h"

static tn_status run_attention(const tn_run *run, tn_error *err)
{
    tni_ref_attention_job job;
    tni_ref_attention_job_init(run, &job);
    const bool in_long = job.element[TN_ATTENTION_Q]->dtype == TN_F64;
    job.query_blocks = tni_ref_block_count(job.at->queries);
    job.blocks = job.at->batch * job.at->heads * job.query_blocks;
    job.bytes = in_long ? count_bytes_long(job.at) : count_bytes_double(job.at);
    job.compute = in_long ? compute_long : compute_double;
    return tni_ref_attention_compute(&job, err);
}

const tn_kernel_row tni_ref_attention = {
    .struct_size = sizeof tni_ref_attention,
    .name = "cpu.attention.ref",
    .platform = "cpu",
    .backend = "ref",
    .op = TN_OP_ATTENTION,
    .version = 1,
    .dtypes = tni_ref_float_dtypes,
    .numerics = TNI_REF_REPEATS,
    .honours = TNI_REF_ATTENTION_USES | TN_ATTENTION_USES_LSE | TN_ATTENTION_USES_SINKS |
               TN_ATTENTION_USES_PACKED | TN_ATTENTION_USES_LENGTHS | TN_ATTENTION_USES_PAGES,
    .free_dims = TNI_REF_ATTENTION_DIMS,
    .flops_per_us = 3000,
    .bytes_per_us = 500,
    .overhead_us = 1,
    .run = run_attention,
};
