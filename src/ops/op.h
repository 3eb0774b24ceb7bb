/* Ops from inside: made from tensors or from a problem's text, checked once, and written as text. */
#ifndef TNI_OPS_OP_H
#define TNI_OPS_OP_H

#include "base/buffer.h"
#include "tenon/context.h"
#include "tenon/module/op.h"
#include "tenon/tensor.h"

#include <stdbool.h>

struct tni_fields;

/* An op with its operands: what a call is about. */
typedef struct tni_problem {
    tn_op op;
    void *data[TN_OP_OPERANDS_MAX]; /* first elements; NULL for absent operands */
    tn_device *device;
} tni_problem;

/* Contexts remember a hash of what each group of ops reads of them. */
enum { TNI_OPS_MATMUL, TNI_OPS_EACH, TNI_OPS_ATTENTION, TNI_OPS_GROUPS };

/* Where a call's arguments have what, in bytes from the beginning of their struct. */
typedef struct tni_args_form {
    size_t size;                        /* the least that it says of itself                    */
    size_t tensors[TN_OP_OPERANDS_MAX]; /* of each operand; 0: calls never bring it            */
    size_t list;    /* a pointer to int32_t, as many as the int32_t behind it says; 0: none    */
    size_t numbers; /* words up to `stream` that tell calls apart, all but pointers            */
    size_t stream;  /* with the workspace and its bytes behind it                              */
} tni_args_form;

#define TNI_ARGS_FORM(noun, first)                       \
    .size = TN_UP_TO(tn_##noun##_args, workspace_bytes), \
    .stream = offsetof(tn_##noun##_args, stream), .numbers = offsetof(tn_##noun##_args, first)

/* A kind of op. */
typedef struct tni_op_class {
    int32_t kind;
    const char *word;
    const char *where;           /* the face, for messages: "tn_matmul" */
    tni_args_form args;          /* of that face                        */
    const char *const *operands; /* their names in messages and in the problem's text, NULL-ended */
    uint32_t optional;           /* a bit for each operand that may be absent */
    uint32_t outputs;            /* a bit for each operand that is written */
    int32_t output;              /* the first of them */
    bool may_be_in_place;        /* it may be the first operand: same memory, same layout */
    int32_t group;               /* TNI_OPS_..., of those that read the same settings */
    const tn_setting *settings;  /* that plans are told apart by, ended by -1 */
    const char *const *uses;     /* a word for each bit, NULL-ended */

    /* From a problem's text: takes the fields it knows and makes the layouts, dense where no strides
     * are said; what follows from them is left to `settle`. */
    tn_status (*parse)(struct tni_fields *fields, tn_dtype dtype, tn_op *out, tn_error *err);

    /* Checks the op and fills in what follows from the layouts: sizes and `uses`, in which the bits of
     * what layouts do not show are set already. TN_INVALID_ARGUMENT names operand, value and need. */
    tn_status (*settle)(tn_op *op, tn_error *err);

    /* The fields of the problem's text, by the functions of fields.h. */
    void (*write)(const tn_op *op, tni_buffer *out);

    /* Multiplications and additions, and bytes that have to be read and written once. */
    void (*cost)(const tn_op *op, double *out_flops, double *out_bytes);

    /* Words of the op besides its layouts that plans are told apart by. Returns how many: at most 8. */
    size_t (*words)(const tn_op *op, uint64_t *out);

    /* Sets dimensions of the op, DIM bits, to 0 wherever they are. */
    void (*free)(tn_op *op, uint64_t dims);
} tni_op_class;

static inline bool tni_op_writes(const tni_op_class *class, int32_t operand)
{
    return class->outputs >> operand & 1;
}

/* Whether no output has an element: there is nothing to do. */
bool tni_op_is_empty(const tn_op *op);

const tni_op_class *tni_op_class_of(int32_t kind);       /* NULL for none */
const tni_op_class *tni_op_class_find(const char *word); /* NULL for none */
const char *tni_op_class_nearest(const char *word);      /* or NULL */

extern const tni_op_class tni_matmul_class;
extern const tni_op_class tni_permute_class, tni_cast_class, tni_fill_class, tni_unary_class,
    tni_binary_class, tni_reduce_class, tni_softmax_class, tni_norm_class, tni_rotary_class;
extern const tni_op_class tni_attention_class, tni_attention_backward_class,
    tni_attention_merge_class;

/* Begins an op: no operand, uses nothing. */
void tni_op_begin(tn_op *op, const tni_op_class *class);

/* Takes in a call's tensors, NULL for absent ones, in the class's order: layouts, first elements, and
 * the one device they are on. Every output may be written, has a place for each element and shares no
 * byte with another operand, unless it may be in place and is. TN_UNSUPPORTED for more than
 * TN_OP_RANK_MAX dimensions; TN_REFUSED for several devices. What is `settle`'s is left to it. */
tn_status tni_problem_begin(tni_problem *out, const tni_op_class *class,
                            const tn_tensor *const *tensors, tn_error *err);

/* Tidies the layouts, then the class's `settle`. */
tn_status tni_op_settle(tn_op *op, tn_error *err);

/* Settings that every plan depends on: how results may come about, what may be taken, what is tried. */
#define TNI_SETTINGS_OF_PLANS                                                          \
    TN_SETTING_FP32_PRECISION, TN_SETTING_DETERMINISM, TN_SETTING_CUDNN_DETERMINISTIC, \
        TN_SETTING_MKLDNN_DETERMINISTIC, TN_SETTING_RULES, TN_SETTING_TUNING_ENABLED,  \
        TN_SETTING_TUNING_LIMIT, TN_SETTING_ADMISSION, TN_SETTING_WORKSPACE_LIMIT

/* And how far products of f32 may be rounded, with the views of it. */
#define TNI_SETTINGS_OF_PRODUCTS                                                   \
    TN_SETTING_CUDA_FP32_PRECISION, TN_SETTING_CUDA_MATMUL_FP32_PRECISION,         \
        TN_SETTING_MKLDNN_FP32_PRECISION, TN_SETTING_MKLDNN_MATMUL_FP32_PRECISION, \
        TN_SETTING_CUDNN_FP32_PRECISION, TN_SETTING_CUDA_MATMUL_ALLOW_TF32,        \
        TN_SETTING_MKLDNN_ALLOW_TF32, TN_SETTING_FLOAT32_MATMUL_PRECISION

/* The same without data, from text: the op is settled. *out_device, of `size` bytes, gets what stands
 * behind the '@', "" for nothing. */
tn_status tni_problem_parse(const char *text, tn_op *out, char *out_device, size_t size,
                            tn_error *err);

/* The text of an op, with "@device" unless that is NULL or "". */
void tni_problem_write(const tn_op *op, const char *device, tni_buffer *out);

/* Sets the alignments of a problem's operands to those that their data has. */
void tni_problem_place(tni_problem *problem);

/* The alignments of all operands in one word, none counted as more than `most`, a power of two. */
uint64_t tni_alignments_of(const tn_op *op, int64_t most);

/* True if every operand of `has` is aligned at least as well as that of `needs`. */
bool tni_alignments_reach(uint64_t has, uint64_t needs);

/* Sets the alignments of the op's operands to those of the word, which is of an op with the same operands. */
void tni_alignments_set(tn_op *op, uint64_t alignments);

/* The key of a plan as words: kind, uses, alignments, layouts, the class's own words. Returns their number.
 * Problems with equal words share a plan. Alignments above `alignment` count as `alignment`. */
enum {
    TNI_KEY_ALIGNMENTS = 2, /* where tni_alignments_of stands among the words */
    TNI_KEY_MOST = 3 + TN_OP_OPERANDS_MAX * (1 + 2 * TN_OP_RANK_MAX) + 8
};
size_t tni_op_key_up_to(const tn_op *op, int64_t alignment, uint64_t out[TNI_KEY_MOST]);
size_t tni_op_key(const tn_op *op, uint64_t out[TNI_KEY_MOST]); /* tells all alignments apart */

/* The op with what the dims, DIM bits, say of it taken out, strides among it: what one plan serves. */
void tni_op_free(const tn_op *op, uint64_t dims, tn_op *out);

/* Gives a layout leading dimensions up to `rank`, of the shape `shape` where it has none or 1, with a
 * stride of 0. TN_INVALID_ARGUMENT for a dimension that is neither. */
tn_status tni_layout_broadcast(tn_layout *layout, const int64_t *shape, int32_t rank,
                               const char *where, const char *name, tn_error *err);

/* A dense layout, aligned to TN_OP_ALIGNMENT_MAX. */
void tni_layout_make(tn_layout *out, tn_dtype dtype, const int64_t *shape, int32_t rank);
void tni_layout_dense(tn_layout *layout); /* strides that follow from the shape */

struct tni_layout;
/* A tensor's, as it is there, and what it extends over. */
tn_status tni_layout_take(const tn_tensor *tensor, const char *where, const char *name,
                          tn_layout *out, struct tni_layout *out_extent, tn_error *err);

/* Where strides say nothing they have one value: 1 in dimensions of one element or none, and those of
 * a dense layout where there is no element at all. */
void tni_layout_tidy(tn_layout *layout);
void tni_layout_swap(tn_layout *layout, int32_t a, int32_t b); /* two dimensions */
int64_t tni_layout_elements(const tn_layout *layout);

/* Of elements that are there to be read: dimensions of stride 0 count once. */
double tni_layout_bytes(const tn_layout *layout);

#endif
