/* Internals of ops: made from tensors or from a problem's text, validated once, and written as
 * text. */
#ifndef TNI_OP_OP_H
#define TNI_OP_OP_H

#include "base/buffer.h"
#include "tenon/context.h"
#include "tenon/module/op.h"
#include "tenon/tensor.h"

#include <stdbool.h>

struct tni_fields;
struct tni_elementwise;
struct tni_op_check;

/* The problem of a call: an op with its operands. */
typedef struct tni_problem {
    tn_op op;
    void *data[TN_OP_OPERANDS_MAX]; /* first elements; NULL for absent operands */
    tn_device *device;
} tni_problem;

/* Groups of ops that read the same settings. Contexts cache a hash of these settings for each
 * group. */
enum { TNI_OPS_MATMUL, TNI_OPS_ELEMENTWISE, TNI_OPS_ATTENTION, TNI_OPS_FFT, TNI_OPS_GROUPS };

/* Settings of the groups that are part of plan keys, ended by -1. */
extern const tn_setting tni_matmul_settings[], tni_elementwise_settings[], tni_attention_settings[],
    tni_fft_settings[];

/* Offsets of the fields in a call's argument struct, in bytes. */
typedef struct tni_args_form {
    size_t size;                        /* smallest valid struct_size */
    size_t tensors[TN_OP_OPERANDS_MAX]; /* of each operand; 0: calls never have it */
    size_t list;    /* a pointer to int32_t; the int32_t after it is the count; 0: none */
    size_t numbers; /* words up to `stream` that distinguish calls, without pointers */
    size_t stream;  /* followed by the workspace and its size in bytes */
} tni_args_form;

#define TNI_ARGS_FORM(noun, first)                       \
    .size = TN_UP_TO(tn_##noun##_args, workspace_bytes), \
    .stream = offsetof(tn_##noun##_args, stream), .numbers = offsetof(tn_##noun##_args, first)

/* A setting that limits how many of an op's plans a device of a platform keeps. */
typedef struct tni_plan_limit {
    const char *platform;
    tn_setting setting;
} tni_plan_limit;

/* A kind of op. */
typedef struct tni_op_class {
    int32_t kind;
    const char *word;
    const char *fields;          /* of the problem's text, separated by spaces */
    const char *where;           /* the public function, for messages: "tn_matmul" */
    tni_args_form args;          /* of that function */
    const char *const *operands; /* their names in messages and in the problem's text,
                                  * NULL-terminated */
    uint32_t optional;           /* a bit for each operand that may be absent */
    uint32_t outputs;            /* a bit for each operand that is written */
    int32_t output;              /* the first of them */
    bool may_be_in_place;        /* the output may be the first operand: same memory, same layout */
    int32_t group;               /* TNI_OPS_...: ops that read the same settings */
    const tn_setting *settings;  /* that are part of plan keys, ended by -1 */
    const tni_plan_limit *plan_limits;         /* ended by a platform of NULL; NULL: none */
    const char *const *uses;                   /* a name for each bit, NULL-terminated */
    const struct tni_elementwise *elementwise; /* of ops of that family; otherwise NULL */
    const struct tni_op_check *check;          /* how kernels are checked */

    /* Makes the problem of a call from the public function's arguments, validated. */
    tn_status (*make)(const void *args, tni_problem *out, tn_error *err);

    /* Parses a problem's text: takes the fields it knows and makes the layouts, dense if no strides
     * are given. What follows from the layouts is left to `validate`. */
    tn_status (*parse)(struct tni_fields *fields, tn_dtype dtype, tn_op *out, tn_error *err);

    /* Validates the op and fills in what follows from the layouts: sizes and `uses`, in which the
     * bits that layouts do not show are already set. Fails with TN_INVALID_ARGUMENT, naming
     * operand, value and need. */
    tn_status (*validate)(tn_op *op, tn_error *err);

    /* Writes the fields of the problem's text with the functions of fields.h. */
    void (*write)(const tn_op *op, tni_buffer *out);

    /* Returns the number of multiplications and additions, and of bytes that must be read and
     * written once. */
    void (*cost)(const tn_op *op, double *out_flops, double *out_bytes);

    /* Writes the words of the op, besides its layouts, that are part of plan keys. Returns their
     * number: at most 8. */
    size_t (*words)(const tn_op *op, uint64_t *out);

    /* Returns the setting whose value the op has in its own fields, so that the setting does not
     * count for it; otherwise -1. May be NULL. */
    tn_setting (*replaces)(const tn_op *op);

    /* Sets dimensions of the op, DIM bits, to 0 wherever they occur. */
    void (*free)(tn_op *op, uint64_t dims);
} tni_op_class;

/* By TN_OP_...; src/tables/op_table.c. */
extern const tni_op_class *const tni_op_classes[TN_OP_KIND_MAX];

const tni_op_class *tni_op_class_of(int32_t kind);       /* NULL if none exists */
const tni_op_class *tni_op_class_find(const char *word); /* NULL if none exists */

/* The setting that the op replaces; -1 if none. */
static inline tn_setting tni_op_replaces(const tn_op *op)
{
    const tni_op_class *class = tni_op_class_of(op->kind);
    return class->replaces ? class->replaces(op) : -1;
}

static inline bool tni_op_writes(const tni_op_class *class, int32_t operand)
{
    return class->outputs >> operand & 1;
}

/* Whether no output has an element, so that there is nothing to do. */
bool tni_op_is_empty(const tn_op *op);

const char *tni_op_class_nearest(const char *word); /* or NULL */

/* Declares each op's class and the function that makes its problem. The build generates op_list.h
 * from the folders of src/op. */
#define TNI_OP(NAME, noun, word)                  \
    extern const tni_op_class tni_##noun##_class; \
    tn_status tni_##noun##_make(const void *args, tni_problem *out, tn_error *err);
#include "op_list.h"
#undef TNI_OP

/* Initializes an op: no operands, no features used. */
void tni_op_init(tn_op *op, const tni_op_class *class);

/* Takes a call's tensors, NULL for absent ones, in the class's order: sets the layouts, the first
 * elements and the device, which must be the same for all. Checks that every output is writable,
 * has distinct memory for each element and does not overlap another operand, unless it is in place
 * and may be. Fails with TN_UNSUPPORTED for more than TN_OP_RANK_MAX dimensions, with TN_REFUSED
 * for several devices. The remaining checks are left to `validate`. */
tn_status tni_problem_init(tni_problem *out, const tni_op_class *class,
                           const tn_tensor *const *tensors, tn_error *err);

/* Normalizes the layouts (tni_layout_tidy), then calls the class's `validate`. */
tn_status tni_op_validate(tn_op *op, tn_error *err);

/* Settings that every plan depends on: numerics, permitted kernels, testing and tuning. */
#define TNI_SETTINGS_OF_PLANS                                                          \
    TN_SETTING_FP32_PRECISION, TN_SETTING_DETERMINISM, TN_SETTING_CUDNN_DETERMINISTIC, \
        TN_SETTING_MKLDNN_DETERMINISTIC, TN_SETTING_RULES, TN_SETTING_TUNING_ENABLED,  \
        TN_SETTING_TUNING_LIMIT, TN_SETTING_ADMISSION, TN_SETTING_WORKSPACE_LIMIT,     \
        TN_SETTING_MIOPEN_IMMEDIATE

/* Settings that limit the rounding of f32 products, including their aliases. */
#define TNI_SETTINGS_OF_PRODUCTS                                                   \
    TN_SETTING_CUDA_FP32_PRECISION, TN_SETTING_CUDA_MATMUL_FP32_PRECISION,         \
        TN_SETTING_MKLDNN_FP32_PRECISION, TN_SETTING_MKLDNN_MATMUL_FP32_PRECISION, \
        TN_SETTING_CUDNN_FP32_PRECISION, TN_SETTING_CUDA_MATMUL_ALLOW_TF32,        \
        TN_SETTING_MKLDNN_ALLOW_TF32, TN_SETTING_FLOAT32_MATMUL_PRECISION

/* Makes a validated op from text, without data. *out_device, of `size` bytes, gets the text after
 * the '@'; "" if none. */
tn_status tni_problem_parse(const char *text, tn_op *out, char *out_device, size_t size,
                            tn_error *err);

/* Writes the text of an op, with "@device" unless that is NULL or "". */
void tni_problem_write(const tn_op *op, const char *device, tni_buffer *out);

/* Sets the alignments of a problem's operands to those of their data. */
void tni_problem_place(tni_problem *problem);

/* The alignments of all operands: four bits for each, 0 for an absent one, else one more than the
 * logarithm. */
enum {
    TNI_ALIGNMENT_BITS = 4,
    TNI_ALIGNMENT_WORDS = TN_OP_OPERANDS_MAX * TNI_ALIGNMENT_BITS / 64 + 1
};
typedef struct tni_alignments {
    uint64_t word[TNI_ALIGNMENT_WORDS];
} tni_alignments;

/* Returns the alignments of the op's operands, each limited to `most`, a power of two. */
tni_alignments tni_alignments_of(const tn_op *op, int64_t most);

/* Returns true if every operand of `has` is aligned at least as well as that of `needs`. */
bool tni_alignments_reach(tni_alignments has, tni_alignments needs);

/* Sets the alignments of the op's operands. `alignments` must be of an op with the same operands. */
void tni_alignments_set(tn_op *op, tni_alignments alignments);

/* The key of a plan as words: kind, uses, alignments, layouts, the class's own words. Returns their number.
 * Problems with equal words share a plan. Alignments above `alignment` count as `alignment`. */
enum {
    TNI_KEY_ALIGNMENTS = 2, /* index of the first of TNI_ALIGNMENT_WORDS */
    TNI_KEY_MOST = 2 + TNI_ALIGNMENT_WORDS + TN_OP_OPERANDS_MAX * (1 + 2 * TN_OP_RANK_MAX) + 8
};
size_t tni_op_key_up_to(const tn_op *op, int64_t alignment, uint64_t out[TNI_KEY_MOST]);
size_t tni_op_key(const tn_op *op, uint64_t out[TNI_KEY_MOST]); /* distinguishes all alignments */

/* Returns the alignments that are part of a key. */
static inline tni_alignments tni_key_alignments(const uint64_t *key)
{
    tni_alignments found;
    memcpy(found.word, key + TNI_KEY_ALIGNMENTS, sizeof found.word);
    return found;
}

/* Copies the op with its `count` operands; the others are left as they are. Cheaper than an
 * assignment, because few ops have many operands. */
void tni_op_copy(const tn_op *op, tn_op *out);

/* Removes from the op what depends on the dims (DIM bits), including strides: the result identifies
 * the problems that one plan serves. */
void tni_op_free(const tn_op *op, uint64_t dims, tn_op *out);

/* Broadcasts a layout to `rank` dimensions of `shape`: adds leading dimensions and expands those of
 * size 1, with stride 0. Fails with TN_INVALID_ARGUMENT for a dimension that has another size. */
tn_status tni_layout_broadcast(tn_layout *layout, const int64_t *shape, int32_t rank,
                               const char *where, const char *name, tn_error *err);

/* Makes a dense layout, aligned to TN_OP_ALIGNMENT_MAX. */
void tni_layout_make(tn_layout *out, tn_dtype dtype, const int64_t *shape, int32_t rank);
void tni_layout_dense(tn_layout *layout); /* strides that follow from the shape */

struct tni_layout;
/* Returns the layout and the extent of a tensor. */
tn_status tni_layout_take(const tn_tensor *tensor, const char *where, const char *name,
                          tn_layout *out, struct tni_layout *out_extent, tn_error *err);

/* Normalizes strides that have no effect: 1 in dimensions of at most one element; those of a dense
 * layout if there is no element at all. */
void tni_layout_tidy(tn_layout *layout);
void tni_layout_swap(tn_layout *layout, int32_t a, int32_t b); /* two dimensions */
/* Moves the dimensions whose bit is set in `axes` after the others. */
void tni_layout_put_last(tn_layout *layout, uint64_t axes);
int64_t tni_layout_elements(const tn_layout *layout);

/* Returns the bytes of distinct elements: dimensions of stride 0 count once. */
double tni_layout_bytes(const tn_layout *layout);

#endif
