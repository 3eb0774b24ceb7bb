/* How kernels of an op are checked: test problems, sample inputs, error bounds, and parts of a problem
 * that is too large to be checked whole. */
#ifndef TNI_OP_OP_CHECK_H
#define TNI_OP_OP_CHECK_H

#include "op.h"
#include "tenon/check.h"
#include "walk.h"

struct tni_bounds;
struct tni_operands;

/* A list of templates in a tn_check_aspect. */
#define TNI_TEMPLATES(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Range of random inputs. */
typedef struct tni_spread {
    double low, high;
    bool special; /* a few are denormal, very large, infinite or NaN */
} tni_spread;

/* Which operands get random bits instead of numbers in a range. */
enum { TNI_BITS_NEVER, TNI_BITS_OF_INTEGERS, TNI_BITS_ALWAYS };

/* How many elements of an operand one output depends on. 0: the operand stays finite, because no
 * rule defines the effect of NaN and infinity there, or because it has them anyway. */
typedef struct tni_reads {
    double elements;
    bool only_nan; /* NaN, but no infinity */
} tni_reads;

/* A part of a problem: `count` outputs in each dimension of the first output, starting at `begin`. */
typedef struct tni_part {
    int64_t begin[TN_OP_RANK_MAX];
    int64_t count[TN_OP_RANK_MAX];
} tni_part;

/* Functions may be NULL; the default is stated. */
typedef struct tni_op_check {
    /* Fields of the problems that test a kernel before its first use, slow ones last,
     * NULL-terminated. A leading '!': operands are aligned only to their elements. A trailing '$'
     * is replaced by the dtype. */
    const char *const *smoke;
    const tn_check_aspect *aspects; /* ends with an entry without a word */

    /* Sample inputs. */
    tni_spread (*floats)(const tn_op *op, int32_t operand); /* default: -1 to 1 */
    int32_t bits;                                           /* TNI_BITS_... */
    bool computes_f8; /* 8-bit floats are inputs of a computation; default: random bits */
    tni_reads (*reads)(const tn_op *op, int32_t operand); /* default: 0 elements */
    bool (*reads_output)(const tn_op *op);                /* default: false */
    bool (*leaves_output)(const tn_op *op);               /* some outputs are not written */
    bool (*is_table)(const tn_op *op, int32_t operand);   /* an operand that fill_table fills */
    void (*fill_table)(struct tni_operands *operands, int32_t index, double (*draw)(void *user),
                       void *user); /* on the host; operands before it are filled. `draw` returns
                                     * numbers in [0, 1) */
    tn_status (*finish_inputs)(const struct tni_operands *operands, tn_error *err); /* after all */

    /* Error bounds, see bounds.h. */
    double (*bound)(struct tni_bounds *bounds, const tni_place *place,
                    double size);                           /* default: 0 */
    double (*terms)(const tn_op *op);                       /* length of the sums; default: 0 */
    double (*roundoff)(const tn_op *op, uint64_t numerics); /* of the computation; default: that
                                                             * of the first operand's work dtype */
    tn_status (*bound_init)(struct tni_bounds *bounds, tn_error *err); /* sets bounds->own */
    void (*bound_release)(struct tni_bounds *bounds);
    bool bounds_integers; /* integer outputs have a bound; default: they are exact */
    bool copies;          /* outputs have the bits of inputs */

    /* Parts. */
    int32_t (*split_dims)(const tn_op *op); /* the first dimensions of the output can be split;
                                             * default: all */
    bool (*is_split)(const tn_op *op, int32_t operand, int32_t d); /* default: d < split_dims */
    void (*shift_part)(const tn_op *op, const tni_part *part, tn_op *out, void **out_data);
    int64_t (*line_cost)(const tn_op *op); /* operations for one output; if set, edges of the first
                                            * and last matrix are checked too */
} tni_op_check;

/* Declares how each op is checked. */
#define TNI_OP(NAME, noun, word) extern const tni_op_check tni_##noun##_check;
#include "op_list.h"
#undef TNI_OP

/* split_dims of ops on rows: all dimensions except the last. */
int32_t tni_split_rows(const tn_op *op);

/* Whether the op reads its output's earlier contents. */
bool tni_op_reads_output(const tn_op *op);

#endif
