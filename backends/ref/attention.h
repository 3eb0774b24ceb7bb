/* What attention and attention-backward share. Both go block by block: some rows of queries, or of keys, of
 * one head of one sequence. What a block reads of the other side is read once for all its rows. */
#ifndef TNI_REF_ATTENTION_H
#define TNI_REF_ATTENTION_H

#include "each.h"
#include "tenon/module/attention.h"

#include <math.h>
#include <stdbool.h>

/* Most rows of a block, and most keys that are looked at together. */
enum { TNI_REF_BLOCK_ROWS = 16, TNI_REF_VIEW_KEYS = 64 };

typedef struct tni_ref_attention_job {
    const tn_run *run;
    const tn_op *op;
    const tn_attention_op *at;
    const tni_ref_element *element[TN_OP_OPERANDS_MAX];
    int64_t query_blocks; /* of one head                              */
    int64_t key_blocks;   /* of one group, where those are computed   */
    int64_t blocks;       /* in all                                   */
    int64_t tasks;        /* that share them                          */
    size_t bytes;         /* of room that a task needs                */
    char *room;
    void (*compute)(const struct tni_ref_attention_job *job, int64_t block, char *room);
} tni_ref_attention_job;

/* One head of one sequence. */
typedef struct tni_ref_head {
    tn_sequence in;
    int64_t b, h;
    int64_t group; /* of K and V that it reads */
} tni_ref_head;

/* Which of some keys a query sees, and what a mask adds to their scores. */
typedef struct tni_ref_view {
    bool sees[TNI_REF_VIEW_KEYS];
    double added[TNI_REF_VIEW_KEYS];
} tni_ref_view;

/* Of so many rows in all: how many a block has, and how many blocks there are. */
static inline int64_t tni_ref_block_rows(int64_t all)
{
    return all < TNI_REF_BLOCK_ROWS ? all : TNI_REF_BLOCK_ROWS;
}

static inline int64_t tni_ref_block_count(int64_t all)
{
    return all / TNI_REF_BLOCK_ROWS + (all % TNI_REF_BLOCK_ROWS > 0);
}

/* All but the blocks. */
tni_ref_attention_job tni_ref_attention_begin(const tn_run *run);

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

/* Of `rows` queries from `first` on: the keys that any of them sees by its place. */
void tni_ref_reach(const tni_ref_attention_job *job, const tni_ref_head *head, int64_t first,
                   int64_t rows, int64_t *out_from, int64_t *out_to);

/* Looks at up to TNI_REF_VIEW_KEYS keys, `first` and on, for query i. False when it sees none of them.
 * Masks are read where places are seen only. */
bool tni_ref_look(const tni_ref_attention_job *job, const tni_ref_head *head, int64_t i,
                  int64_t first, int64_t count, tni_ref_view *out);

/* A task's room is some arrays one behind the other. The first counts bytes with one more, SIZE_MAX for
 * more than there can be; the second hands it out. */
size_t tni_ref_room_with(size_t bytes, int64_t rows, int64_t columns, size_t size);
void *tni_ref_room_take(char **room, int64_t rows, int64_t columns, size_t size);

/* Computes all blocks, on threads that have room each. Before anything is written, sequences and pages are
 * checked and the room is had. */
tn_status tni_ref_attention_compute(tni_ref_attention_job *job, tn_error *err);

/* What both honour, and the dimensions of which one plan serves all. */
#define TNI_REF_ATTENTION_USES                                                                \
    (TN_ATTENTION_USES_WINDOW | TN_ATTENTION_USES_MASK | TN_ATTENTION_USES_ADDITIVE |         \
     TN_ATTENTION_USES_GROUPS | TN_ATTENTION_USES_SOFTCAP | TN_ATTENTION_USES_DROPOUT |       \
     TN_ATTENTION_USES_VALUE_SIZE | TN_ATTENTION_USES_STRIDES | TN_ATTENTION_USES_OUT_DTYPE | \
     TN_ATTENTION_USES_OFFSET)
#define TNI_REF_ATTENTION_DIMS                                                    \
    (TN_ATTENTION_DIM_BATCH | TN_ATTENTION_DIM_HEADS | TN_ATTENTION_DIM_QUERIES | \
     TN_ATTENTION_DIM_KEYS)

#endif
