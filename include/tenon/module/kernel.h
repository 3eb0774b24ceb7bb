/* A kernel row: one implementation of an op, as constant data that dispatch, explanation, tests and
 * benchmarks read.
 *
 * The core compares the features that an op uses with those that the row supports (`honours`) and
 * refuses the kernel on any difference, including unknown bits. So a kernel built today can never
 * silently ignore a feature added later. The core also checks the row's declared numerics against
 * the settings. `admit` decides the rest.
 *
 * The key of a plan has the dtypes, shapes, strides, alignments (up to the row's `alignment`),
 * `uses` and enumerated parameters of the op, but not its numeric parameters (alpha, beta, epsilon,
 * a value). So `admit`, `workspace`, `cost` and `plan` must not depend on those. Exceptions: the key
 * has the binary exponent of attention's scale and softcap if it is below -96 or above 96, and
 * whether the scale is positive. So these may depend on that, not on the rest of the numbers.
 *
 * Thread-safety: rows are constant; `admit`, `workspace` and `cost` are pure; `plan` and `run` may
 * be called from several threads at once. */
#ifndef TENON_MODULE_KERNEL_H
#define TENON_MODULE_KERNEL_H

#include "cpu.h"
#include "device.h"
#include "module.h"
#include "op.h"

TN_BEGIN_DECLS

/* Numerical properties that a kernel declares, so that the core can check them against the
 * settings. */
#define TN_NUM_RUN_TO_RUN        UINT64_C(1)   /* same inputs, same machine: same bits        */
#define TN_NUM_BATCH_INVARIANT   UINT64_C(2)   /* a row's result does not depend on its batch */
#define TN_NUM_CROSS_DEVICE      UINT64_C(4)   /* same bits on every device                   */
#define TN_NUM_ROUNDS_F32_TF32   UINT64_C(8)   /* reads f32 operands as tf32                  */
#define TN_NUM_ROUNDS_F32_BF16   UINT64_C(16)  /* reads f32 operands as bf16                  */
#define TN_NUM_REDUCED_REDUCTION UINT64_C(32)  /* sums in fewer bits than f32                 */
#define TN_NUM_SPLIT_SUMS        UINT64_C(64)  /* sums may be split into partial sums         */
#define TN_NUM_F16_SUMS          UINT64_C(128) /* accumulates f16 products in f16             */
/* May round the product to out's dtype before the bias or beta * out is added. */
#define TN_NUM_ROUNDS_PRODUCT UINT64_C(256)
#define TN_NUM_KNOWN          UINT64_C(511)

/* tn_kernel_row.traits. */
/* `run` must not be recorded into a graph: it waits, allocates, or does work that would not be
 * repeated. A call that would record it is refused. Rows without this bit are recorded; tn_check
 * and the conformance suite run them from a graph. */
#define TN_ROW_NO_GRAPHS UINT64_C(1)
#define TN_ROW_KNOWN     UINT64_C(1)

/* Why a kernel is not used: name, number, word. Numbers are never reused. */
#define TN_REFUSAL_LIST(X)                                                                      \
    X(DTYPE, 1, "dtype") /* dtype not supported                                   */            \
    X(SHAPE, 2, "shape")                                                                        \
    X(STRIDE, 3, "stride")                                                                      \
    X(ALIGNMENT, 4, "alignment")                                                                \
    X(FEATURE, 5, "feature")     /* the op uses a feature that the row does not support   */    \
    X(PRECISION, 6, "precision") /* it rounds more than the settings allow                */    \
    X(DETERMINISM, 7, "determinism")                                                            \
    X(RULE, 8, "rule") /* forbidden, or something else is required              */              \
    X(SETTING, 9, "setting")                                                                    \
    X(DEVICE, 10, "device")   /* capability, instructions, a property of the device    */       \
    X(LIBRARY, 11, "library") /* not available                                         */       \
    X(VERSION, 12, "version")                                                                   \
    X(MEMORY, 13, "memory") /* more scratch memory than is allowed                   */         \
    X(KNOWN_BAD, 14, "known-bad")                                                               \
    X(QUARANTINE, 15, "quarantine") /* it gave wrong results on this machine                 */ \
    X(LOCK, 16, "lock")             /* the lock names another kernel                         */ \
    X(BUSY, 17, "busy")             /* not now: no memory, or the device is in use           */ \
    X(OTHER, 18, "other")

enum {
    TN_REFUSE_NONE = 0,
#define TN_REFUSAL_ENUM_(NAME, number, word) TN_REFUSE_##NAME = number,
    TN_REFUSAL_LIST(TN_REFUSAL_ENUM_)
#undef TN_REFUSAL_ENUM_
        TN_REFUSE_COUNT
};

/* Why a kernel is refused: the subject, the value needed and the value found. */
typedef struct tn_refusal {
    size_t struct_size;
    int32_t code; /* TN_REFUSE_... */
    int32_t reserved;
    int64_t needed;
    int64_t found;
    char what[32];  /* "k", "a.alignment" */
    char text[224]; /* how to fix it: "pad the head size to 96"; may be "" */
} tn_refusal;
TN_ENDS_WITH(tn_refusal, text);

/* Fills `why`, unless it is NULL, and returns TN_UNSUPPORTED: `return tn_refuse(why,
 * TN_REFUSE_SHAPE, "k", 32, k)`. */
static inline tn_status tn_refuse(tn_refusal *why, int32_t code, const char *what, int64_t needed,
                                  int64_t found)
{
    if (why) {
        why->code = code;
        why->needed = needed;
        why->found = found;
        tn_text_fit(why->what, sizeof why->what, what);
        why->text[0] = '\0';
    }
    return TN_UNSUPPORTED;
}

/* The question to a kernel. */
typedef struct tn_query {
    size_t struct_size;
    const tn_op *op;
    const tn_device_properties *device;
    int64_t library_version; /* version number of the row's library; -1: unknown or none   */
    uint64_t cpu_features;   /* cpu platform: TN_CPU_BIT(...) that kernels may use; else 0 */
    int32_t threads;         /* cpu platform: threads that a parallel loop uses; else 0    */
    int32_t reserved;
    void *self; /* for the core */
    /* Reads a setting by its key, as a number: 0 or 1, the number of a word, bytes. Fails with
     * TN_NOT_FOUND for an unknown key, or for one that is not part of the key of plans for this
     * op. */
    tn_status (*setting)(const struct tn_query *query, const char *key, int64_t *out);
} tn_query;
TN_ENDS_WITH(tn_query, setting);

struct tn_kernel_row;

/* The arguments of a run. */
typedef struct tn_run {
    size_t struct_size;
    const struct tn_kernel_row *row;
    const tn_op *op;
    void *const *data; /* first elements of the operands, in the op's order; NULL if absent or
                          without elements; all NULL for `plan` */
    void *stream;      /* from the platform's stream_create; NULL: its default stream, as in
                          tenon/module/platform.h */
    void *platform;    /* from its probe                                                */
    void *library;     /* from the library's `open`; NULL without one                   */
    void *plan;        /* from the row's `plan`; NULL without one                       */
    void *workspace;   /* as large as the row requested, aligned to 64; NULL for `plan` */
    uint64_t workspace_bytes; /* for `plan`: the size for every run; 0 for a row with free
                                 dimensions, because its runs differ */
    const tn_host *host;
    int32_t device;     /* index of the device */
    int32_t threads;    /* threads that a parallel loop of the host uses */
    const void *packed; /* from the row's `pack`; NULL: B is in `data` */
} tn_run;
TN_ENDS_WITH(tn_run, packed);

static inline void *tn_operand(const tn_run *run, int32_t operand)
{
    return run->data[operand];
}

typedef struct tn_kernel_row {
    size_t struct_size;
    const char *name;       /* "acme.matmul.bf16": platform first                           */
    const char *platform;   /* "acme": a platform of this module or of another              */
    const char *library;    /* library it uses: "openblas"; NULL: none                      */
    const char *backend;    /* name by which users request it: "FLASH_ATTN"; NULL: none     */
    int32_t op;             /* TN_OP_... of the operator's header                           */
    uint32_t version;       /* from 1; a new number invalidates stored timings and verdicts */
    const tn_dtype *dtypes; /* of the first operand present; ends with 0; at least one      */
    uint64_t numerics;      /* TN_NUM_*                                                     */
    uint64_t honours;       /* the op's USES bits that this kernel supports                 */
    uint64_t free_dims;     /* the op's DIM bits: one plan serves any value of these        */
    uint64_t cpu_needs;     /* cpu platform: required TN_CPU_BIT(...) | ...; else 0         */
    double flops_per_us;    /* three numbers that predict the time, on one core of a cpu;   */
    double bytes_per_us;    /* overridden by `cost`; tuning replaces both                   */
    double overhead_us;
    /* NULL: accepts everything that passed the core's own checks. If it accepts, it may write a
     * note about how it would compute the problem into the text of `why`; decisions show it as
     * `note`. Pure: must not call the vendor. */
    tn_status (*admit)(const struct tn_kernel_row *row, const tn_query *query, tn_refusal *why);
    /* Returns the bytes of scratch memory that a run needs, which is also the most that it writes.
     * Its contents are arbitrary at the start of a run. NULL: none. Pure. */
    uint64_t (*workspace)(const struct tn_kernel_row *row, const tn_query *query);
    /* Creates the data that all runs share: a descriptor, an order of work. *out_bytes is the
     * memory it holds, for the limit of the plan cache. NULL: nothing to create. */
    tn_status (*plan)(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err);
    void (*plan_release)(const tn_run *run, void *plan); /* required with `plan` */
    /* Enqueues the work on the run's stream and never waits. On a platform without streams it
     * computes on the calling thread, and the work is complete when it returns. Must not keep any
     * pointer it was given. At least one output is non-empty. Inputs are non-empty, except: A and B
     * of a matmul with k = 0; `in` of a reduce; the key operands of an attention without keys and
     * the query operands of one without queries. */
    tn_status (*run)(const tn_run *run, tn_error *err);
    /* Returns the predicted time of a run in microseconds, for kernels where the three numbers are
     * not accurate for every shape. Must depend only on the problem, the threads and the processor:
     * the library may not be open yet, and its version is -1. Called only for dtypes and uses that
     * the row has. A result that is not finite and above 0 is ignored. NULL: the three numbers are
     * used; they are also used wherever the order of candidates must not depend on sizes. Pure. */
    double (*cost)(const struct tn_kernel_row *row, const tn_query *query);
    /* For a matmul whose B stays the same for many runs of one plan: creates a packed form that
     * runs read from run->packed instead of B. In `data` only B is valid, and B may be freed after
     * this returns. TN_UNSUPPORTED: packing has no benefit for this op. Complete when it returns.
     * NULL: packing is never useful. `run` must also work without it. */
    tn_status (*pack)(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err);
    void (*pack_release)(const tn_run *run, void *packed); /* required with `pack` */
    /* For grouped matmuls: does what `run` does for all of them at once. All are for this row, one
     * device and one stream, have the same dtypes, and share one workspace, as large as the largest
     * of theirs. `count` is at least 1. Never called on a stream that is being recorded.
     * *out_failed is 0 on entry; on failure set it to the index of the run that failed, whose
     * problem is then named in the error, or to `count` if no single run is to blame. NULL: they
     * are run one after another. */
    tn_status (*run_many)(const tn_run *runs, size_t count, size_t *out_failed, tn_error *err);
    /* The largest alignment of an operand, in bytes, that any function of the row distinguishes: 16
     * for a row that refuses memory not aligned to 16, or that reads 16 bytes at once from aligned
     * memory. A power of two, at most TN_OP_ALIGNMENT_MAX; 0 means 1: the row treats all memory in
     * the same way. The row's functions see no operand with a larger alignment than this. Calls
     * whose memory differs only in larger alignments share plans, tests and, if no other row of the
     * op distinguishes them, timings. A row that ends before this field distinguishes all
     * alignments. */
    int64_t alignment;
    uint64_t traits; /* TN_ROW_... */
} tn_kernel_row;
TN_ENDS_WITH(tn_kernel_row, traits);

TN_END_DECLS

#endif
