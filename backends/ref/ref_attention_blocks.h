/* Code shared by attention and attention-backward. Both work in blocks: some rows of queries, or of
 * keys, of one head of one sequence. A block reads the data of the other side once for all its
 * rows. */
#ifndef TNI_REF_ATTENTION_BLOCKS_H
#define TNI_REF_ATTENTION_BLOCKS_H

#include "ref_elementwise.h"
#include "tenon/module/attention.h"

#include <math.h>
#include <stdbool.h>

/* Maximum rows of a block, and maximum keys that are examined together. */
enum { TNI_REF_BLOCK_ROWS = 16, TNI_REF_VIEW_KEYS = 64 };

typedef struct tni_ref_attention_job {
    const tn_run *run;
    const tn_op *op;
    const tn_attention_op *at; /* `params` */
    tn_attention_op params;    /* with the seed and offset of the run */
    const tni_ref_element *element[TN_OP_OPERANDS_MAX];
    int64_t query_blocks; /* of one head */
    int64_t key_blocks;   /* of one group; for attention-backward */
    int64_t blocks;       /* total */
    int64_t tasks;        /* that share the blocks */
    size_t bytes;         /* of memory that a task needs */
    char *room;
    void (*compute)(const struct tni_ref_attention_job *job, int64_t block, char *room);
} tni_ref_attention_job;

/* One head of one sequence. */
typedef struct tni_ref_head {
    tn_sequence in;
    int64_t b, h;
    int64_t group; /* of K and V that the head reads */
} tni_ref_head;

/* Which of some keys a query sees, and the mask values added to their scores. */
typedef struct tni_ref_view {
    bool sees[TNI_REF_VIEW_KEYS];
    double added[TNI_REF_VIEW_KEYS];
} tni_ref_view;

/* For `all` rows: the number of rows of a block, and the number of blocks. */
static inline int64_t tni_ref_block_rows(int64_t all)
{
    return all < TNI_REF_BLOCK_ROWS ? all : TNI_REF_BLOCK_ROWS;
}

static inline int64_t tni_ref_block_count(int64_t all)
{
    return all / TNI_REF_BLOCK_ROWS + (all % TNI_REF_BLOCK_ROWS > 0);
}

/* Initializes a job, except for the blocks. */
void tni_ref_attention_job_init(const tn_run *run, tni_ref_attention_job *out);

tni_ref_head tni_ref_head_of(const tni_ref_attention_job *job, int64_t b, int64_t h);

/* Row i of an operand that has a row for each query; row j of one that has a row for each key. */
char *tni_ref_query_row(const tni_ref_attention_job *job, const tni_ref_head *head, int32_t operand,
                        int64_t i);
char *tni_ref_key_row(const tni_ref_attention_job *job, const tni_ref_head *head, int32_t operand,
                      int64_t j);
void tni_ref_row_read(const tni_ref_attention_job *job, int32_t operand, const char *row,
                      double *out);
void tni_ref_row_write(const tni_ref_attention_job *job, int32_t operand, const double *values,
                       char *row);

/* Finds the keys that any of `rows` queries, from `first` on, sees by position. */
void tni_ref_keys_find(const tni_ref_attention_job *job, const tni_ref_head *head, int64_t first,
                       int64_t rows, int64_t *out_from, int64_t *out_to);

/* Examines up to TNI_REF_VIEW_KEYS keys, from `first` on, for query i. Returns false if it sees
 * none of them. Masks are read only at visible positions. */
bool tni_ref_view_read(const tni_ref_attention_job *job, const tni_ref_head *head, int64_t i,
                       int64_t first, int64_t count, tni_ref_view *out);

/* The memory of a task consists of consecutive arrays. The first function returns the number of
 * bytes with one more array, SIZE_MAX on overflow; the second one returns the next array. */
size_t tni_ref_room_add(size_t bytes, int64_t rows, int64_t columns, size_t size);
void *tni_ref_room_next(char **room, int64_t rows, int64_t columns, size_t size);

/* Computes all blocks, on threads that have their own memory. Before anything is written, sequences
 * and pages are checked and the memory is allocated. */
tn_status tni_ref_attention_compute(tni_ref_attention_job *job, tn_error *err);

/* The features that both support, and the dimensions that may change without a new plan. */
#define TNI_REF_ATTENTION_USES                                                                \
    (TN_ATTENTION_USES_WINDOW | TN_ATTENTION_USES_MASK | TN_ATTENTION_USES_ADDITIVE |         \
     TN_ATTENTION_USES_GROUPS | TN_ATTENTION_USES_SOFTCAP | TN_ATTENTION_USES_DROPOUT |       \
     TN_ATTENTION_USES_VALUE_SIZE | TN_ATTENTION_USES_STRIDES | TN_ATTENTION_USES_OUT_DTYPE | \
     TN_ATTENTION_USES_OFFSET | TN_ATTENTION_USES_SEED)
#define TNI_REF_ATTENTION_DIMS                                                    \
    (TN_ATTENTION_DIM_BATCH | TN_ATTENTION_DIM_HEADS | TN_ATTENTION_DIM_QUERIES | \
     TN_ATTENTION_DIM_KEYS)

#endif
