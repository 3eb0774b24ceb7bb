/* Internals of einsum: the equation as sets of indices, the search for an order of contraction, and
 * the calls of operators that execute it. */
#ifndef TNI_COMPOSE_EINSUM_H
#define TNI_COMPOSE_EINSUM_H

#include "base/alloc.h"
#include "base/buffer.h"
#include "tenon/einsum.h"

/* Fails with TN_OUT_OF_MEMORY for `what`. A constant, so that analyzers know that callers stop. */
static inline tn_status tni_einsum_no_memory(tn_error *err, const char *what)
{
    (void)tni_no_memory(err, "tn_einsum", what);
    return TN_OUT_OF_MEMORY;
}

/* An index is a label, or a dimension of "...". Sets of indices are bits in `words` words. */
typedef struct tni_einsum {
    int32_t terms;   /* operands; after them, in the arrays below, comes out */
    int32_t indices; /* distinct ones */
    int32_t words;
    bool empty;       /* an index has size 0 */
    int64_t *size;    /* of each index */
    uint32_t *symbol; /* of each index: a character */
    uint64_t *sets;   /* [terms + 1][words]: indices of more than one value; of each term */
    uint64_t *alone;  /* [terms + 1][words]: those of `sets` that no other term has; of out, none */
    int32_t *ndim;    /* [terms + 1] */
    int32_t (*axes)[TN_TENSOR_NDIM_MAX]; /* [terms + 1]: the index of each dimension */
} tni_einsum;

static inline uint64_t *tni_einsum_set(const tni_einsum *sum, int32_t term)
{
    return sum->sets + (size_t)term * (size_t)sum->words;
}

static inline uint64_t *tni_einsum_alone(const tni_einsum *sum, int32_t term)
{
    return sum->alone + (size_t)term * (size_t)sum->words;
}

/* Removes the lowest index from a word of a set, which is not 0, and returns its number. */
static inline int32_t tni_einsum_take_index(uint64_t *bits)
{
    const int32_t lowest = __builtin_ctzll(*bits);
    *bits &= *bits - 1;
    return lowest;
}

/* Parses the equation for the operands' shapes, which must be valid. The caller releases *out. */
tn_status tni_einsum_parse(const tn_einsum_args *args, tni_einsum *out, tn_error *err);
void tni_einsum_release(tni_einsum *sum);

/* Adds to the sets, which are zeroed, all indices of each term, and notes whether one is empty. */
void tni_einsum_make_sets(tni_einsum *sum);

/* Appends the symbols of a term's dimensions. */
void tni_einsum_write_axes(const tni_einsum *sum, int32_t term, tni_buffer *to);

/* Appends the symbols of the indices of a set, in ascending order of the characters. */
void tni_einsum_write_set(const tni_einsum *sum, const uint64_t *set, tni_buffer *to);

/* Number of combinations of the values of a set's indices. */
double tni_einsum_values(const tni_einsum *sum, const uint64_t *set);

/* An order of contraction: pairs of terms. The operands are terms 0 to terms - 1, and the result of
 * pair i is term terms + i. An index that one operand alone has is summed before the operand's pair,
 * unless the pair's other operand has only indices of this one: then it is summed with the pair. */
typedef struct tni_einsum_order {
    int32_t count; /* terms - 1 */
    int32_t (*pairs)[2];
    const char *strategy; /* static text */
} tni_einsum_order;

/* How often indices occur among the terms that are left, and in out. */
typedef struct tni_einsum_left {
    const tni_einsum *sum;
    int32_t *uses;  /* of each index */
    uint64_t *sets; /* [2 * terms]: of the operands and the results */
    int32_t next;   /* the term that the next result is */
} tni_einsum_left;

tn_status tni_einsum_left_init(const tni_einsum *sum, tni_einsum_left *out, tn_error *err);
void tni_einsum_left_release(tni_einsum_left *left);

/* What contracting a pair costs: of the sums before, 0 if there is none, and of the pair itself. */
typedef struct tni_einsum_pair_cost {
    double before[2];
    double pair;
} tni_einsum_pair_cost;

/* Contracts terms a and b into the next term, and returns the cost. */
tni_einsum_pair_cost tni_einsum_left_pair(tni_einsum_left *left, int32_t a, int32_t b);

/* The cost of the step of an equation of one operand. */
double tni_einsum_cost_of_one(const tni_einsum *sum);

/* Sum of the costs of the pairs of an order. */
tn_status tni_einsum_cost(const tni_einsum *sum, const tni_einsum_order *order, double *out,
                          tn_error *err);

/* Replaces the pairs of `best` by those of `order` if they cost less than *cost, which is that of
 * `best`. */
tn_status tni_einsum_keep_cheaper(const tni_einsum *sum, const tni_einsum_order *order,
                                  tni_einsum_order *best, double *cost, tn_error *err);

/* Makes an order from left to right, or from args->path. */
void tni_einsum_order_from_left(tni_einsum_order *order);
tn_status tni_einsum_order_given(const tn_einsum_args *args, tni_einsum_order *order,
                                 tn_error *err);

/* Writes the steps of an order in the form of args->path, at most 2 * terms, and sums up their cost. */
tn_status tni_einsum_order_write(const tni_einsum *sum, const tni_einsum_order *order,
                                 int32_t *out_path, int32_t *out_steps, double *out_cost,
                                 tn_error *err);

/* The strategy of a call, a number, as the arguments and settings say. */
tn_status tni_einsum_choose_strategy(const tn_context *context, const tn_einsum_args *args,
                                     int32_t *out, tn_error *err);

/* Finds an order by a strategy, or follows args->path. The caller releases it. */
tn_status tni_einsum_search(const tn_einsum_args *args, int32_t strategy, const tni_einsum *sum,
                            tni_einsum_order *out, tn_error *err);
void tni_einsum_order_release(tni_einsum_order *order);

/* Greedy search; with temperature > 0, random numbers from `seed` change the choices. */
tn_status tni_einsum_greedy(const tni_einsum *sum, double temperature, uint64_t seed,
                            tni_einsum_order *out, tn_error *err);

/* Searches in depth along the `branches` most promising pairs of each partial order, or along all
 * for 0, until `visits` pairs were visited. */
tn_status tni_einsum_branch(const tni_einsum *sum, int32_t branches, double visits,
                            tni_einsum_order *out, tn_error *err);

/* Exhaustive search over orders that cost at most `most`, the cost of the order that *out has, which
 * remains if none is better. Without `outer`, pairs without a common index are multiplied only if
 * no index of theirs is left to be summed. */
typedef struct tni_einsum_exact_args {
    bool outer;
    double most;
    double visits;  /* pairs of partial orders to visit */
    size_t entries; /* partial orders to keep */
} tni_einsum_exact_args;
/* *out_found is false if a limit was exceeded; then *out is unchanged. */
tn_status tni_einsum_exact(const tni_einsum *sum, const tni_einsum_exact_args *how,
                           tni_einsum_order *out, bool *out_found, tn_error *err);

/* The same over all orders, of at most TNI_EINSUM_SUBSETS operands with at most 64 indices, without
 * limits: *out becomes the best order, unless none costs less than `most`. */
enum { TNI_EINSUM_SUBSETS = 14 };
tn_status tni_einsum_subsets(const tni_einsum *sum, double most, tni_einsum_order *out,
                             tn_error *err);

/* Everything that the equation, the order and the memory of a call depend on. */
typedef struct tni_einsum_key {
    size_t size;
    bool fits; /* otherwise the call is not remembered */
    unsigned char bytes[2048];
} tni_einsum_key;

/* The plan of a call, which the calls with the same key share. */
typedef struct tni_einsum_plan {
    tni_einsum sum;
    tni_einsum_order order;
    uint64_t bytes;    /* of intermediate results */
    uint32_t by_parts; /* that of tni_einsum_run */
    int64_t *parts;    /* of each index, if the call is computed in slices; or NULL */
    int64_t users;     /* the cache and calls */
    size_t key_size;
    unsigned char key[];
} tni_einsum_plan;

/* `tensors` are the operands and out. */
void tni_einsum_key_make(const tn_context *context, const tn_einsum_args *args, int32_t strategy,
                         const tn_tensor *tensors, tni_einsum_key *out);

/* Returns the plan of a key, which the caller releases; NULL if there is none. Thread-safety: Safe. */
tni_einsum_plan *tni_einsum_plan_find(const tni_einsum_key *key);

/* Makes a plan, which the caller releases, from one whose sum and order it then owns, and whose parts it copies.
 * Returns NULL if the key does not fit or memory is lacking. Thread-safety: Safe. */
tni_einsum_plan *tni_einsum_plan_keep(const tni_einsum_key *key, const tni_einsum_plan *from);
void tni_einsum_plan_release(tni_einsum_plan *plan); /* accepts NULL */

/* A step of an explanation, and its memory. */
typedef struct tni_einsum_path_step {
    tn_einsum_step face;
    char *equation, *remaining;
    char **problems, **kernels;
    size_t problem_room, kernel_room;
} tni_einsum_path_step;

/* The equation with explicit output and without "..."; NULL if out of memory. */
char *tni_einsum_write(const tni_einsum *sum);

/* Sets the positions, cost, elements and equations of each step, which are zeroed; 2 * terms are
 * enough. The caller releases the texts, also if this fails. */
tn_status tni_einsum_describe(const tni_einsum *sum, const tni_einsum_order *order,
                              tni_einsum_path_step *steps, size_t *out_count, tn_error *err);

/* What a step's calls are for. */
typedef enum tni_einsum_mode {
    TNI_EINSUM_MEASURE, /* nothing is called: only the memory of intermediate results is computed */
    TNI_EINSUM_EXPLAIN, /* each call is explained */
    TNI_EINSUM_RUN
} tni_einsum_mode;

/* Executes an order. */
typedef struct tni_einsum_run {
    tni_einsum_mode mode;
    uint32_t by_parts; /* TNI_EINSUM_ELEMENTS, TNI_EINSUM_MATRICES */
    const tni_einsum *sum;
    const tni_einsum_order *order;
    const tn_context *context;
    const tn_tensor *operands; /* with data */
    const tn_tensor *out;
    tn_stream *stream;
    void *memory; /* of intermediate results */
    /* Receives the decision of each call of EXPLAIN, which it must not keep. */
    tn_status (*explained)(void *user, int32_t step, const tn_decision *decision, tn_error *err);
    void *user;
} tni_einsum_run;
/* *out_bytes is the size of the memory of intermediate results. It is the same in every mode. */
tn_status tni_einsum_execute(const tni_einsum_run *run, uint64_t *out_bytes, tn_error *err);

/* The products of complex numbers that are computed by real ones. The memory of a call depends on them. Of
 * `context` and a tensor: 0 for other dtypes. */
enum { TNI_EINSUM_ELEMENTS = 1, TNI_EINSUM_MATRICES = 2 };
uint32_t tni_einsum_find_by_parts(const tn_context *context, const tn_tensor *of);

/* Adds run->out to `to`, which has the same shape, in a step. */
tn_status tni_einsum_add(const tni_einsum_run *run, int32_t step, const tn_tensor *to,
                         tn_error *err);

/* A call that is computed in slices. */
typedef struct tni_einsum_slices {
    bool fits;                             /* otherwise there are no slices */
    const tni_einsum *whole;               /* the equation without slices */
    tni_einsum sum;                        /* of a slice */
    tn_einsum_args args;                   /* of a slice */
    tn_tensor *tensors;                    /* operands and out of a slice */
    const tn_tensor **list;                /* the same */
    int64_t (*shapes)[TN_TENSOR_NDIM_MAX]; /* of each tensor: its shape, then its strides */
    int64_t *parts;                        /* of each index of `whole` */
    int64_t *at;                           /* of each index: the current part */
    double count;                          /* slices */
    double cost;                           /* of all slices */
    uint64_t bytes; /* memory of intermediate results, and of a result that is added */
    uint64_t added; /* where the latter begins */
    bool divided;
    uint32_t by_parts; /* that of tni_einsum_run */
    bool adds;         /* whether results of slices are added */
    bool can_add;      /* whether a kernel can do that */
} tni_einsum_slices;

/* Divides indices until the memory is within args->memory_limit; out->fits is whether that was possible.
 * `run` is that of the whole call, with an address for its memory; `parts`, if not NULL, are those of an earlier
 * call, which are not searched again. Summed indices are divided only if a kernel adds up the results. The caller
 * releases *out, also if this fails. */
tn_status tni_einsum_slice(const tn_einsum_args *args, const tni_einsum_run *run,
                           const int64_t *parts, tni_einsum_slices *out, tn_error *err);
/* The result of a slice that is added to out: at `memory`, the memory of intermediate results. */
tn_tensor tni_einsum_added(const tni_einsum_slices *slices, void *memory);
void tni_einsum_slices_release(tni_einsum_slices *slices);

/* Computes all slices; `run` is that of the whole call. */
tn_status tni_einsum_run_slices(const tni_einsum_run *run, tni_einsum_slices *slices,
                                tn_error *err);

#endif
