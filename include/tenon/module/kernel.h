/* A kernel row: one way to compute an op, as constant data that dispatch, explanation, tests and
 * benchmarks all read.
 *
 * The core compares what an op uses with what the row honours and refuses any difference, unknown
 * bits included: a kernel built today can never silently ignore a feature of tomorrow.
 *
 * Thread-safety: rows are constant; `admit` is pure; `run` may be called from several threads with
 * different streams. */
#ifndef TENON_MODULE_KERNEL_H
#define TENON_MODULE_KERNEL_H

#include "dtype.h"
#include "module.h"

TN_BEGIN_DECLS

/* The ops a row can name. */
enum { TN_OP_NONE = 0, TN_OP_MATMUL = 1, TN_OP_COUNT };

/* What a kernel does to numbers, declared so that the core can hold it against the settings. */
#define TN_NUM_RUN_TO_RUN        UINT64_C(1)  /* same inputs, same machine: same bits           */
#define TN_NUM_BATCH_INVARIANT   UINT64_C(2)  /* a row's result does not depend on its batch    */
#define TN_NUM_CROSS_DEVICE      UINT64_C(4)  /* same bits on every device                      */
#define TN_NUM_ROUNDS_F32_TF32   UINT64_C(8)  /* reads f32 operands as tf32                     */
#define TN_NUM_ROUNDS_F32_BF16   UINT64_C(16) /* reads f32 operands as bf16                     */
#define TN_NUM_REDUCED_REDUCTION UINT64_C(32) /* sums in fewer bits than f32                    */
#define TN_NUM_KNOWN             UINT64_C(63)

struct tn_query;   /* op, device properties, library version, settings */
struct tn_refusal; /* why not: code, needed, found                     */
struct tn_run;     /* op, operands, stream, workspace                  */

typedef struct tn_kernel_row {
    size_t struct_size;
    const char *name;       /* "acme.matmul.bf16": platform first                            */
    const char *platform;   /* "acme": a platform of this module or of another               */
    int32_t op;             /* TN_OP_MATMUL                                                  */
    uint32_t version;       /* from 1; a new number makes remembered timings and verdicts void */
    const tn_dtype *dtypes; /* 0-ended, at least one                                       */
    uint64_t numerics;      /* TN_NUM_*                                                    */
    uint64_t honours;       /* the op's USES bits that this kernel implements              */
    uint64_t free_dims;     /* the op's DIM bits that one plan serves at any value         */
    double flops_per_us;    /* three figures that predict a time; tuning replaces them     */
    double bytes_per_us;
    double overhead_us;
    /* NULL: everything that passed the core's own tests. Pure: calls no vendor. */
    tn_status (*admit)(const struct tn_kernel_row *row, const struct tn_query *query,
                       struct tn_refusal *why);
    /* Enqueues on the run's stream, never waits. */
    tn_status (*run)(const struct tn_run *run, tn_error *err);
    const char *library; /* the library it goes through: "openblas"; NULL: none               */
    const char *backend; /* what users ask for it by: "FLASH_ATTN"; NULL: none                */
} tn_kernel_row;
TN_ENDS_WITH(tn_kernel_row, backend);

TN_END_DECLS

#endif
