/* How problems of attention-sparse are split into tiles, and the arguments of their kernels. */
#include "attention_sparse_cuda.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t rows_of_block(const tn_attention_sparse_op *op)
{
    return least(op->block_queries, op->at.queries);
}

int64_t cuda_sparse_tiles(const tn_op *op, int64_t rows)
{
    return cuda_tiles_along(rows_of_block(TN_PARAMS(op, attention_sparse)), rows);
}

double cuda_sparse_blocks(const tn_op *op, int64_t rows)
{
    const tn_attention_sparse_op *sparse = TN_PARAMS(op, attention_sparse);
    return (double)sparse->at.batch * (double)sparse->at.heads * (double)sparse->query_blocks *
           (double)cuda_sparse_tiles(op, rows);
}

double cuda_sparse_keys_seen(const tn_op *op)
{
    const tn_attention_sparse_op *sparse = TN_PARAMS(op, attention_sparse);
    const tn_layout *starts = &op->operand[TN_ATTENTION_SPARSE_STARTS];
    const double keys = cuda_attention_keys_seen(&sparse->at);
    double all = (double)sparse->query_blocks * (double)sparse->key_blocks;
    for (int32_t d = 0; d < 2 && starts->dtype; d++)
        all *= starts->stride[d] == 0 ? 1 : (double)starts->shape[d];
    const double entries = (double)op->operand[TN_ATTENTION_SPARSE_BLOCKS].shape[0];
    return !starts->dtype || entries >= all ? keys : keys * entries / all;
}

tn_status cuda_sparse_admit(const tn_query *query, int64_t rows, tn_refusal *why)
{
    enum { MOST = 1 << 30 };
    const tn_layout *list = &query->op->operand[TN_ATTENTION_SPARSE_BLOCKS];
    const cuda_count entries = {"entries", list->dtype ? list->shape[0] : 0};
    tn_status status = cuda_attention_admit_numbers(query->op, why);
    if (!status)
        status = cuda_attention_admit_counts(query->op, why);
    if (!status)
        status = cuda_admit_counts(&entries, 1, MOST, "split queries or heads", why);
    if (status)
        return status;
    const double blocks = cuda_sparse_blocks(query->op, rows);
    return blocks <= MOST ? cuda_admit_alignment(query, why)
                          : cuda_refuse(why, TN_REFUSE_SHAPE, "blocks", MOST, (int64_t)blocks,
                                        "split queries or the batch");
}

static void put_tables(const tn_run *run, cuda_sparse_args *to)
{
    const tn_layout *of = run->op->operand;
    if (of[TN_ATTENTION_SPARSE_STARTS].dtype) {
        to->starts = tn_operand(run, TN_ATTENTION_SPARSE_STARTS);
        to->blocks = tn_operand(run, TN_ATTENTION_SPARSE_BLOCKS);
        cuda_attention_put_strides(&of[TN_ATTENTION_SPARSE_STARTS], to->starts_stride);
        to->blocks_stride = of[TN_ATTENTION_SPARSE_BLOCKS].stride[0];
        to->entries = of[TN_ATTENTION_SPARSE_BLOCKS].shape[0];
    }
    if (of[TN_ATTENTION_SPARSE_SIZES].dtype) {
        to->sizes = tn_operand(run, TN_ATTENTION_SPARSE_SIZES);
        cuda_attention_put_strides(&of[TN_ATTENTION_SPARSE_SIZES], to->sizes_stride);
    }
}

void cuda_sparse_put(const tn_run *run, int64_t rows, cuda_sparse_args *to)
{
    static const double log2_e = 1.4426950408889634;
    const tn_attention_sparse_op *op = TN_PARAMS(run->op, attention_sparse);
    cuda_attention_put(run, &to->of);
    put_tables(run, to);
    to->sharers = to->of.ratio;
    to->of.groups = to->of.heads;
    to->of.ratio = 1;
    to->of.mask_kind = 0;
    to->of.shift += to->of.bottom ? op->at.keys - op->at.queries : 0;
    to->of.bottom = 0;
    to->block_queries = (int)rows_of_block(op);
    to->block_keys = (int)least(op->block_keys, op->at.keys);
    to->query_blocks = (int)op->query_blocks;
    to->key_blocks = (int)op->key_blocks;
    to->tiles = (int)cuda_sparse_tiles(run->op, rows);
    to->log2_scale = cuda_saturated_f32(op->at.scale * log2_e);
}
