/* matmul with oneDNN: the functions of its rows. */
#ifndef TENON_BACKENDS_CPU_ONEDNN_MATMUL_H
#define TENON_BACKENDS_CPU_ONEDNN_MATMUL_H

#include "tenon/module/kernel.h"

tn_status tni_dnnl_plan(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err);
void tni_dnnl_plan_release(const tn_run *run, void *made);
tn_status tni_dnnl_pack(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err);
void tni_dnnl_pack_release(const tn_run *run, void *packed);
double tni_dnnl_cost(const tn_kernel_row *row, const tn_query *query);
tn_status tni_dnnl_run(const tn_run *run, tn_error *err);

#endif
