/* tenon-tiles: a kernel in a module, for products of f32 matrices on the cpu.
 *
 * The outputs are cut into tiles, which the threads share. For each tile, blocks of A and B are
 * packed into the workspace, where they are contiguous whatever the strides of the operands are, and
 * multiplied there. So one inner loop serves transposes, gaps, broadcasts and batches. */
#include <tenon/module/kernel.h>
#include <tenon/module/op/matmul.h>

/* Of a tile, in elements: its outputs, and the part of k that is packed at once. The packed blocks
 * and the sums take 144 KiB, which second-level caches hold. */
enum { ROWS = 64, COLUMNS = 64, DEPTH = 256 };

/* What a thread has in the workspace. */
typedef struct block {
    float a[ROWS][DEPTH];
    float b[DEPTH][COLUMNS];
    float sums[ROWS][COLUMNS];
} block;

/* A matrix of an operand. */
typedef struct matrix {
    float *first;
    int64_t row, column; /* strides in elements */
} matrix;

/* Matrices are counted over the batch, all dimensions before the last two. */
static matrix find_matrix(const tn_run *run, int32_t operand, int64_t number)
{
    const tn_layout *layout = &run->op->operand[operand];
    matrix out = {tn_operand(run, operand), layout->stride[layout->rank - 2],
                  layout->stride[layout->rank - 1]};
    int64_t offset = 0;
    for (int32_t d = layout->rank - 3; d >= 0; d--) {
        offset += number % layout->shape[d] * layout->stride[d];
        number /= layout->shape[d];
    }
    if (out.first) /* NULL: the operand is absent, or k is 0 and it has no elements */
        out.first += offset;
    return out;
}

/* Which outputs a tile has. */
typedef struct tile {
    int64_t matrix, row, column;
    int64_t rows, columns; /* fewer at the end of a matrix */
} tile;

typedef struct job {
    const tn_run *run;
    int64_t down, across; /* tiles of a matrix */
    int64_t tiles, slices;
} job;

static int64_t at_most(int64_t size, int64_t most)
{
    return size < most ? size : most;
}

static tile find_tile(const job *j, int64_t number)
{
    const tn_matmul_op *matmul = TN_PARAMS(j->run->op, matmul);
    tile out = {.matrix = number / (j->down * j->across),
                .row = number / j->across % j->down * ROWS,
                .column = number % j->across * COLUMNS};
    out.rows = at_most(matmul->m - out.row, ROWS);
    out.columns = at_most(matmul->n - out.column, COLUMNS);
    return out;
}

static void pack_a(const matrix *a, const tile *of, int64_t first, int64_t depth, block *to)
{
    for (int64_t i = 0; i < of->rows; i++) {
        const float *from = a->first + (of->row + i) * a->row + first * a->column;
        for (int64_t l = 0; l < depth; l++)
            to->a[i][l] = from[l * a->column];
    }
}

/* Columns beyond the matrix are 0, so that the inner loop has a fixed length. */
static void pack_b(const matrix *b, const tile *of, int64_t first, int64_t depth, block *to)
{
    for (int64_t l = 0; l < depth; l++) {
        const float *from = b->first + (first + l) * b->row + of->column * b->column;
        for (int64_t c = 0; c < of->columns; c++)
            to->b[l][c] = from[c * b->column];
        for (int64_t c = of->columns; c < COLUMNS; c++)
            to->b[l][c] = 0;
    }
}

/* Adds the product of the packed blocks to the sums. */
static void multiply_blocks(block *it, int64_t rows, int64_t depth)
{
    for (int64_t i = 0; i < rows; i++) {
        float *sums = it->sums[i];
        for (int64_t l = 0; l < depth; l++) {
            const float factor = it->a[i][l], *b = it->b[l];
            for (int c = 0; c < COLUMNS; c++)
                sums[c] += factor * b[c];
        }
    }
}

/* out = alpha sums + beta out + bias. If beta is 0, out must not be read. */
static void write_tile(const job *j, const tile *of, const block *it)
{
    const tn_matmul_op *matmul = TN_PARAMS(j->run->op, matmul);
    const matrix out = find_matrix(j->run, TN_MATMUL_OUT, of->matrix);
    const matrix bias = j->run->op->uses & TN_MATMUL_USES_BIAS
                            ? find_matrix(j->run, TN_MATMUL_BIAS, of->matrix)
                            : (matrix){0};
    const float alpha = (float)matmul->alpha, beta = (float)matmul->beta;
    for (int64_t i = 0; i < of->rows; i++) {
        for (int64_t c = 0; c < of->columns; c++) {
            int64_t row = of->row + i, column = of->column + c;
            float *to = out.first + row * out.row + column * out.column;
            float value = alpha * it->sums[i][c];
            if (beta != 0)
                value += beta * *to;
            if (bias.first)
                value += bias.first[row * bias.row + column * bias.column];
            *to = value;
        }
    }
}

/* Sums over k in order, whatever the tile: so a row's bits do not depend on the other rows. */
static void compute_tile(const job *j, const tile *of, block *it)
{
    const int64_t k = TN_PARAMS(j->run->op, matmul)->k;
    const matrix a = find_matrix(j->run, TN_MATMUL_A, of->matrix);
    const matrix b = find_matrix(j->run, TN_MATMUL_B, of->matrix);
    memset(it->sums, 0, sizeof it->sums);
    for (int64_t first = 0; first < k; first += DEPTH) {
        int64_t depth = at_most(k - first, DEPTH);
        pack_a(&a, of, first, depth, it);
        pack_b(&b, of, first, depth, it);
        multiply_blocks(it, of->rows, depth);
    }
    write_tile(j, of, it);
}

/* Every `slices`-th tile. */
static void compute_slice(void *user, int64_t slice)
{
    const job *j = user;
    for (int64_t number = slice; number < j->tiles; number += j->slices) {
        tile of = find_tile(j, number);
        compute_tile(j, &of, (block *)j->run->workspace + slice);
    }
}

/* Tiles of all matrices. They are outputs in memory, so their number cannot overflow. */
static int64_t count_tiles(const tn_matmul_op *matmul, int64_t *out_down, int64_t *out_across)
{
    *out_down = (matmul->m + ROWS - 1) / ROWS;
    *out_across = (matmul->n + COLUMNS - 1) / COLUMNS;
    return matmul->matrices * *out_down * *out_across;
}

static tn_status run_matmul(const tn_run *run, tn_error *err)
{
    job j = {.run = run, .slices = (int64_t)(run->workspace_bytes / sizeof(block))};
    (void)err;
    j.tiles = count_tiles(TN_PARAMS(run->op, matmul), &j.down, &j.across);
    run->host->parallel_for(run->host->self, j.slices, compute_slice, &j);
    return TN_OK;
}

/* A block for each thread, but not for more threads than tiles. */
static uint64_t workspace_of_matmul(const tn_kernel_row *row, const tn_query *query)
{
    int64_t down, across;
    int64_t tiles = count_tiles(TN_PARAMS(query->op, matmul), &down, &across);
    (void)row;
    return (uint64_t)at_most(query->threads > 1 ? query->threads : 1, tiles) * sizeof(block);
}

/* The core has compared dtypes and features. Operands are floats here, so their addresses must be
 * those of floats; memory may have less alignment than that. */
static tn_status admit_matmul(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    static const char *const names[] = {"a.alignment", "b.alignment", "out.alignment",
                                        "bias.alignment"};
    const int64_t needed = _Alignof(float);
    (void)row;
    for (int32_t i = TN_MATMUL_A; i <= TN_MATMUL_BIAS; i++) {
        const tn_layout *layout = &query->op->operand[i];
        if (layout->dtype && layout->alignment < needed)
            return tn_refuse(why, TN_REFUSE_ALIGNMENT, names[i], needed, layout->alignment);
    }
    return TN_OK;
}

static const tn_dtype dtypes[] = {TN_F32, 0};

static const tn_kernel_row matmul_row = {
    .struct_size = sizeof matmul_row,
    .name = "cpu.tiles.matmul",
    .platform = "cpu",
    .op = TN_OP_MATMUL,
    .version = 1,
    .dtypes = dtypes,
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT,
    .honours = TN_MATMUL_USES_BATCH | TN_MATMUL_USES_BROADCAST | TN_MATMUL_USES_TRANSPOSE |
               TN_MATMUL_USES_STRIDES | TN_MATMUL_USES_ALPHA | TN_MATMUL_USES_BETA |
               TN_MATMUL_USES_BIAS,
    .free_dims = TN_MATMUL_DIM_M | TN_MATMUL_DIM_N | TN_MATMUL_DIM_K | TN_MATMUL_DIM_BATCH,
    .flops_per_us = 5e3, /* one core, without instructions that only some processors have */
    .bytes_per_us = 3e3,
    .overhead_us = 5,
    .admit = admit_matmul,
    .workspace = workspace_of_matmul,
    .run = run_matmul,
    .alignment = _Alignof(float), /* admit_matmul distinguishes that */
};

static const tn_kernel_row *const kernels[] = {&matmul_row, NULL};

static const tn_module module = {.struct_size = sizeof module,
                                 TN_MODULE_ABI,
                                 .name = "tiles",
                                 .version = "0.1.0",
                                 .kernels = kernels};

tn_status tn_module_entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}
