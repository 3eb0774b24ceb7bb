/* Einstein summation: products of tensors, summed over the labels that the result does not have.
 *
 * Thread-safety: Safe, if no other thread writes to the tensors. */
#ifndef TENON_EINSUM_H
#define TENON_EINSUM_H

#include "explain.h"
#include "tensor.h"

TN_BEGIN_DECLS

/* Maximum number of operands. */
#define TN_EINSUM_OPERANDS_MAX 4096

/* out = the sum of the products of the operands.
 *
 * The equation "ij,jk->ik" has one label for each dimension of each operand, then those of out. A
 * label is a letter, or any character from U+00C0 on (UTF-8), so there may be more than 52. Spaces
 * are ignored. A label that is repeated within an operand selects its diagonal. A label that out
 * does not have is summed. Without "->", out has the labels that occur once, in the order of their
 * characters. "..." stands for any number of dimensions, which broadcast from the right; in out
 * they come where the "..." is, or first without "->"; if an equation with "->" has no "..." in
 * out, they are summed. A dimension of size 1 broadcasts to the size that its label has elsewhere.
 *
 * Operands and out have one dtype: f64, f32, f16, bf16, c64, c128 or an integer, whose sums and
 * products wrap. Intermediate results have the same dtype. They are on one device, even with the
 * setting may_cross_devices.
 *
 * More than two operands are contracted in pairs. Each pair is one or more calls of matmul, tn_unary,
 * tn_binary, tn_reduce, tn_permute and tn_fill, which choose their kernels as always. Some products of
 * complex numbers are computed by products of real numbers.
 *
 * On a stream that is being recorded, pass a workspace, and run the same call once before the
 * recording, with data and workspace of the same alignment: that makes the plans of its calls. */
typedef struct tn_einsum_args {
    size_t struct_size;
    const char *equation;
    const tn_tensor *const *operands;
    const tn_tensor *out; /* has the labels' sizes; must not overlap an operand */
    int32_t count;        /* number of operands, at least 1 */
    int32_t path_count;   /* steps in `path`; 0 without a path */
    const int32_t *path; /* two numbers for each step, `first` and `second` of tn_einsum_step: count
                             - 1 pairs, and any number of steps of one operand, which only change the
                             positions; NULL: search */
    const char *strategy;  /* how to search; NULL: as the settings opt_einsum.enabled and
                             opt_einsum.strategy say */
    uint64_t memory_limit; /* bytes of intermediate results, beyond which the call is computed in
                             slices; 0: no limit */
    uint64_t seed;         /* of random searches */
    uint64_t search_ns;    /* how long random searches are repeated, in nanoseconds, so that their
                             number depends on the machine; 0: as often as the strategy says */
    tn_stream *stream;     /* NULL: the calling thread's current stream of the tensors' device */
    void *workspace;       /* memory on that device for intermediate results, aligned to 64 bytes;
                             NULL: allocated */
    uint64_t workspace_bytes; /* its size; 0 if, and only if, workspace is NULL */
} tn_einsum_args;
TN_ENDS_WITH(tn_einsum_args, workspace_bytes);

/* Strategies:
 *
 * left               the first two operands, then the result and the next; opt_einsum.enabled=false
 * greedy             the pair that shrinks most, as opt_einsum's "greedy"
 * branch-1           in depth along the best pair of each partial order, as opt_einsum's "branch-1";
 *                    at most 256 operands
 * branch-2           as branch-1, along the two best pairs of each; stops after 20 million pairs
 * branch-all         as branch-1, along all pairs; stops after 20 million
 * optimal            the least cost of all orders; at most 64 operands, and fails if its memory of
 *                    4 million partial orders is exceeded
 * dp                 as optimal for up to 14 operands; else the least cost among orders that multiply
 *                    only operands with a common label, or greedy, if that is cheaper
 * random-greedy      the best of 32 greedy searches with random choices
 * random-greedy-128  the best of 128
 * auto               optimal for up to 14 operands or if it is quick, else dp, else branch-1 for up to
 *                    16 operands, else greedy
 * auto-hq            optimal or dp with 300 times the comparisons and 16 times the memory, else
 *                    random-greedy-128
 *
 * The searches in depth and the random ones return the order of least cost for up to 14 operands, which
 * have at most 64 labels. With more, they return the order of greedy or, if that takes at most 20,000
 * comparisons, of dp, where that is cheaper.
 *
 * The cost of a pair is the number of combinations of its labels' values, doubled if a label is
 * summed. A label that one operand alone has is summed in a step before the pair, which costs twice
 * the operand's elements, unless the other operand's labels are all in this one: then it is summed
 * with the pair, and costs nothing more. */

/* Fails with TN_INVALID_ARGUMENT for an invalid equation, size, path or strategy, naming the label,
 * the operands and the sizes; with TN_REFUSED if the operands are on different devices, out is
 * read-only, or settings exclude every kernel of a call; with TN_UNSUPPORTED for another dtype, if no
 * kernel can compute a call, if an `optimal` or `dp` search is too large, or if memory would have to
 * be allocated on a stream that is being recorded; with TN_OUT_OF_MEMORY if the intermediate results
 * exceed memory_limit even in 2^20 slices. If it fails, out is unchanged, unless a kernel fails,
 * the last step makes several calls, or there are slices: then out may be partly written. */
TN_API tn_status tn_einsum(const tn_context *context, const tn_einsum_args *args, tn_error *err);

/* The shape of out. `out`, `path` and the operands' data are not read. out_shape has room for
 * TN_TENSOR_NDIM_MAX numbers. */
TN_API tn_status tn_einsum_shape(const tn_einsum_args *args, int64_t *out_shape, int32_t *out_ndim,
                                 tn_error *err);

/* Finds the path of a call, without its kernels: out_path has room for 4 * args->count numbers, and
 * gets *out_steps steps in the form of args->path. `out` and the data of tensors are not read. */
TN_API tn_status tn_einsum_search(const tn_context *context, const tn_einsum_args *args,
                                  int32_t *out_path, int32_t *out_steps, double *out_cost,
                                  tn_error *err);

/* A step, in the order in which they are computed: a pair, or the sum of an operand over labels that
 * it alone has, with second = -1. The positions count the operands that are left: those of a step are
 * removed, and the result is appended. An equation with one operand has one step. */
typedef struct tn_einsum_step {
    size_t struct_size;
    int32_t first;
    int32_t second;
    const char *equation;        /* "ij,jk->ik" */
    const char *remaining;       /* the equation that is left: "kl,ik->il"; "" for one operand */
    double cost;                 /* see above */
    double elements;             /* of the result */
    size_t calls;                /* calls that are listed: a loop of calls of one problem is one */
    const char *const *problems; /* `calls` problems, as tn_explain accepts them */
    const char *const *kernels;  /* the kernel of each; "" if none can compute it */
} tn_einsum_step;
TN_ENDS_WITH(tn_einsum_step, kernels);

/* The order of contraction and what it costs. Strings and steps are valid as long as the path. */
typedef struct tn_einsum_path tn_einsum_path;
typedef struct tn_einsum_path_info {
    size_t struct_size;
    const char *strategy;     /* that found the path: "optimal"; "given" for args->path; "left" for
                                one or two operands and for sizes of 0. Static text, which outlives
                                the path */
    const char *equation;     /* with explicit output, and without "..." */
    double cost;              /* of all steps */
    double cost_at_once;      /* of one loop over all labels */
    double largest;           /* elements of the largest intermediate result or output */
    uint64_t workspace_bytes; /* of intermediate results at one time */
    size_t steps;
    double
        slices; /* into which memory_limit divides the call: equal parts of some labels. The steps
                      are those of one slice, and `cost` is of all. 1: it is not divided */
} tn_einsum_path_info;
TN_ENDS_WITH(tn_einsum_path_info, slices);

/* Explains a call: its path, and the kernels of each step. `out` may be NULL, and the data of
 * tensors too: then 64-byte alignment is assumed. A memory_limit that is exceeded is no error
 * here. */
TN_API tn_status tn_einsum_explain(const tn_context *context, const tn_einsum_args *args,
                                   tn_einsum_path **out, tn_error *err);
TN_API void tn_einsum_path_release(tn_einsum_path *path); /* accepts NULL */

/* Set out->struct_size first. */
TN_API tn_status tn_einsum_path_info_get(const tn_einsum_path *path, tn_einsum_path_info *out,
                                         tn_error *err);
TN_API const tn_einsum_step *tn_einsum_path_step(const tn_einsum_path *path, size_t index);

TN_END_DECLS

#endif
