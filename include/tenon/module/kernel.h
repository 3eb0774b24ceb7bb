/* A kernel row: one way to compute an op, as constant data that dispatch, explanation, tests and
 * benchmarks all read.
 *
 * The core compares what an op uses with what the row honours and refuses any difference, unknown
 * bits included: a kernel built today can never silently ignore a feature of tomorrow. It also holds
 * what the row declares of its numbers against the settings. What is left, `admit` decides.
 *
 * The key of a plan has dtypes, shapes, strides, alignments up to the row's `alignment`, `uses` and
 * words of the op, but not its numbers (alpha, beta, epsilon, a value): so `admit`, `workspace`, `cost`
 * and `plan` must not depend on those.
 *
 * Thread-safety: rows are constant; `admit`, `workspace` and `cost` are pure; `plan` and `run` may be called
 * from several threads at once. */
#ifndef TENON_MODULE_KERNEL_H
#define TENON_MODULE_KERNEL_H

#include "cpu.h"
#include "device.h"
#include "module.h"
#include "op.h"

TN_BEGIN_DECLS

/* What a kernel does to numbers, declared so that the core can hold it against the settings. */
#define TN_NUM_RUN_TO_RUN        UINT64_C(1)   /* same inputs, same machine: same bits           */
#define TN_NUM_BATCH_INVARIANT   UINT64_C(2)   /* a row's result does not depend on its batch    */
#define TN_NUM_CROSS_DEVICE      UINT64_C(4)   /* same bits on every device                      */
#define TN_NUM_ROUNDS_F32_TF32   UINT64_C(8)   /* reads f32 operands as tf32                     */
#define TN_NUM_ROUNDS_F32_BF16   UINT64_C(16)  /* reads f32 operands as bf16                     */
#define TN_NUM_REDUCED_REDUCTION UINT64_C(32)  /* sums in fewer bits than f32                    */
#define TN_NUM_SPLIT_SUMS        UINT64_C(64)  /* blocks may make parts of a sum, added after    */
#define TN_NUM_F16_SUMS          UINT64_C(128) /* adds f16 products up in f16                    */
/* May round a product to out's dtype before a bias or beta c is added to it. */
#define TN_NUM_ROUNDS_PRODUCT UINT64_C(256)
#define TN_NUM_KNOWN          UINT64_C(511)

/*  Why a kernel is not taken: name, number, word. Numbers are never reused. */
#define TN_REFUSAL_LIST(X)                                                                      \
    X(DTYPE, 1, "dtype") /* it does not compute with that type                    */            \
    X(SHAPE, 2, "shape")                                                                        \
    X(STRIDE, 3, "stride")                                                                      \
    X(ALIGNMENT, 4, "alignment")                                                                \
    X(FEATURE, 5, "feature")     /* the op uses what the row does not honour              */    \
    X(PRECISION, 6, "precision") /* it rounds more than the settings allow                */    \
    X(DETERMINISM, 7, "determinism")                                                            \
    X(RULE, 8, "rule") /* forbidden, or something else is required              */              \
    X(SETTING, 9, "setting")                                                                    \
    X(DEVICE, 10, "device")   /* capability, instructions, a number of the device      */       \
    X(LIBRARY, 11, "library") /* not available                                         */       \
    X(VERSION, 12, "version")                                                                   \
    X(MEMORY, 13, "memory") /* more scratch memory than is allowed                   */         \
    X(KNOWN_BAD, 14, "known-bad")                                                               \
    X(QUARANTINE, 15, "quarantine") /* it gave wrong results on this machine                 */ \
    X(LOCK, 16, "lock")             /* the lock names another one                            */ \
    X(BUSY, 17, "busy")             /* not now: no memory, or the device is in use           */ \
    X(OTHER, 18, "other")

enum {
    TN_REFUSE_NONE = 0,
#define TN_REFUSAL_ENUM_(NAME, number, word) TN_REFUSE_##NAME = number,
    TN_REFUSAL_LIST(TN_REFUSAL_ENUM_)
#undef TN_REFUSAL_ENUM_
        TN_REFUSE_COUNT
};

/* Why not: what it is about, the value needed and the value found. */
typedef struct tn_refusal {
    size_t struct_size;
    int32_t code; /* TN_REFUSE_... */
    int32_t reserved;
    int64_t needed;
    int64_t found;
    char what[32];  /* "k", "a.alignment" */
    char text[224]; /* what would help: "pad the head size to 96"; may be "" */
} tn_refusal;
TN_ENDS_WITH(tn_refusal, text);

/* Fills in `why`, if there is one, and returns TN_UNSUPPORTED:
 * `return tn_refuse(why, TN_REFUSE_SHAPE, "k", 32, k)`. */
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

/* What a kernel is asked about. */
typedef struct tn_query {
    size_t struct_size;
    const tn_op *op;
    const tn_device_properties *device;
    int64_t library_version; /* of the row's library, as it numbers them; -1 unknown or none    */
    uint64_t cpu_features;   /* of the cpu platform: TN_CPU_BIT(...) that kernels may use; or 0 */
    int32_t threads;         /* of the cpu platform: that a loop of the host's uses; or 0       */
    int32_t reserved;
    void *self; /* the core's */
    /* A setting by its key, as a number: 0 or 1, a word's number, bytes. TN_NOT_FOUND for a key that
     * is none, or that plans for this op are not told apart by. */
    tn_status (*setting)(const struct tn_query *query, const char *key, int64_t *out);
} tn_query;
TN_ENDS_WITH(tn_query, setting);

struct tn_kernel_row;

/* What a kernel is run with. */
typedef struct tn_run {
    size_t struct_size;
    const struct tn_kernel_row *row;
    const tn_op *op;
    void *const *data; /* the operands' first elements, in the op's order; NULL for absent ones and
                           for those without elements; for `plan` all are */
    void *stream;      /* what the platform's stream_create gave; NULL: its default stream, as in
                          tenon/module/platform.h                                                */
    void *platform;    /* what its probe gave                                                    */
    void *library;     /* what the library's `open` gave; NULL without one                       */
    void *plan;        /* what the row's `plan` gave; NULL without one                           */
    void *workspace;   /* as many bytes as the row asked for, aligned to 64; for `plan` NULL     */
    uint64_t workspace_bytes; /* for `plan` those of every run; 0 for a row with free dimensions,
                                 as its runs differ */
    const tn_host *host;
    int32_t device;     /* its index */
    int32_t threads;    /* that a loop of the host's uses */
    const void *packed; /* what the row's `pack` made of B; NULL: B is where `data` says */
} tn_run;
TN_ENDS_WITH(tn_run, packed);

static inline void *tn_operand(const tn_run *run, int32_t operand)
{
    return run->data[operand];
}

typedef struct tn_kernel_row {
    size_t struct_size;
    const char *name;       /* "acme.matmul.bf16": platform first                            */
    const char *platform;   /* "acme": a platform of this module or of another               */
    const char *library;    /* the library it goes through: "openblas"; NULL: none           */
    const char *backend;    /* what users ask for it by: "FLASH_ATTN"; NULL: none            */
    int32_t op;             /* TN_OP_MATMUL                                                  */
    uint32_t version;       /* from 1; a new number makes remembered timings and verdicts void */
    const tn_dtype *dtypes; /* of the first operand that is there; 0-ended, at least one     */
    uint64_t numerics;      /* TN_NUM_*                                                      */
    uint64_t honours;       /* the op's USES bits that this kernel implements                */
    uint64_t free_dims;     /* the op's DIM bits that one plan serves at any value           */
    uint64_t cpu_needs;     /* of the cpu platform: TN_CPU_BIT(...) | ...; else 0            */
    double flops_per_us;    /* three figures that predict a time, on one core of a cpu;      */
    double bytes_per_us;    /* `cost` may know better, and tuning replaces both              */
    double overhead_us;
    /* NULL: everything that passed the core's own tests. Where it admits, the text of `why` may say what is worth
     * knowing of how it would compute the problem: decisions have it as a note. Pure: calls no vendor. */
    tn_status (*admit)(const struct tn_kernel_row *row, const tn_query *query, tn_refusal *why);
    /* Bytes of scratch memory that a run needs. NULL: none. Pure. */
    uint64_t (*workspace)(const struct tn_kernel_row *row, const tn_query *query);
    /* Makes what is the same for every run: a descriptor, an order of work. *out_bytes is what it
     * holds in memory, for the bound on kept plans. NULL: nothing is made. */
    tn_status (*plan)(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err);
    void (*plan_release)(const tn_run *run, void *plan); /* there when `plan` is */
    /* Enqueues on the run's stream, never waits. On a platform without streams it computes on
     * the calling thread, and is done when it returns. Keeps no pointer that it was given. Some
     * output has elements. An input has none only of these: A and B of a matmul whose k is 0, in
     * of a reduce, what attention has of keys where there are no keys and of queries where there
     * are no queries. */
    tn_status (*run)(const tn_run *run, tn_error *err);
    /* Microseconds that a run is predicted to take, where three figures cannot say it for every shape: by the
     * problem, the threads and the processor alone, as the library may not be open yet and its version is -1.
     * Asked only of dtypes and uses that the row has; what is not above 0 and finite counts as not said. NULL:
     * the figures, which the order of a choice that may not depend on sizes goes by in any case. Pure. */
    double (*cost)(const struct tn_kernel_row *row, const tn_query *query);
    /* Of a matmul whose B stays the same for many runs of one plan: makes what they then read in place of it, in
     * run->packed; of `data`, B alone is there, and may be gone when this returns. TN_UNSUPPORTED: such an op
     * gains nothing by it. Done when it returns. NULL: no op does. `run` also runs without. */
    tn_status (*pack)(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err);
    void (*pack_release)(const tn_run *run, void *packed); /* there when `pack` is */
    /* Of matmuls that are grouped: what `run` does for each of them, at once. All are this row's, on one device and
     * stream, of the same dtypes, with one workspace together, as large as the greatest of theirs; `count` is at
     * least 1. Never on a stream that is recorded. *out_failed, which is 0, becomes the one that it failed on, whose
     * problem the error is told with, or `count` where it was no single one's fault. NULL: they are run one after
     * another. */
    tn_status (*run_many)(const tn_run *runs, size_t count, size_t *out_failed, tn_error *err);
    /* The largest alignment of an operand, in bytes, that any function of the row distinguishes: 16 for a row that
     * refuses memory that is not aligned to 16, or reads 16 bytes at once where it is. A power of two, at most
     * TN_OP_ALIGNMENT_MAX; 0 is 1: the row takes any memory in the same way. The row's functions see no operand
     * aligned to more than this. Calls whose memory differs only in larger alignments share plans, tests and, if no
     * other row of the op distinguishes them, times. A row that ends before this field distinguishes all. */
    int64_t alignment;
} tn_kernel_row;
TN_ENDS_WITH(tn_kernel_row, alignment);

TN_END_DECLS

#endif
