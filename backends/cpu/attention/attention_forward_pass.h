/* attention with the kernels of a set: distribution of rows to tasks, packing of keys, and the
 * workspace.
 *
 * The result of a row is bitwise the same for any number of threads and any other batch contents:
 * where blocks of keys begin depends only on the sizes of rows, and where keys are split depends
 * only on their number. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_FORWARD_PASS_H
#define TENON_BACKENDS_CPU_ATTENTION_FORWARD_PASS_H

#include "attention_kernels.h"

/* Bytes of workspace for this number of threads. */
uint64_t tni_at_forward_workspace(const tni_at_set *set, const tn_op *op, int32_t threads);

/* Fails with TN_INVALID_ARGUMENT, before anything is written, if tables are inconsistent. */
tn_status tni_at_forward(const tni_at_set *set, const tn_run *run, tn_error *err);

#endif
