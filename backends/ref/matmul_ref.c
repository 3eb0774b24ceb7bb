/* matmul, tile by tile. A tile's operands are read as doubles, whatever their dtype, so that there
 * is one inner loop for all dtypes: products of f32, narrower floats and 8-bit integers are exact
 * in double, those of f64 are kept in two doubles. A complex product is a real one of twice the
 * depth and columns: (x, y) times ((x', y'), (-y', x')).
 *
 * Every output is summed from the first product to the last, by one thread. */
#include "ref.h"
#include "ref_element.h"
#include "ref_function.h"
#include "ref_matmul_tile.h"
#include "ref_walk.h"
#include "ref_wide.h"
#include "tenon/module/op/matmul.h"

enum { TILE = TNI_REF_TILE };

typedef struct job {
    const tn_run *run;
    const tn_op *op;
    const tn_matmul_op *matmul;
    const tni_ref_element *element[TN_MATMUL_OPERANDS];
    int64_t row[TN_MATMUL_OPERANDS];    /* bytes from one row to the next */
    int64_t column[TN_MATMUL_OPERANDS]; /* bytes from one column to the next */
    int64_t tiles_down, tiles_across;   /* of one matrix */
    int64_t width;                      /* columns of a tile */
    int32_t parts;                      /* 2 for complex numbers */
    int32_t function;                   /* TN_UNARY_..., or -1 */
    bool wide;
} job;

/* The extent of one tile, and the start of its operands. */
typedef struct place {
    char *at
        [TN_MATMUL_OPERANDS]; /* A's first row, B's first column; for the others, the tile in out */
    int64_t rows, columns;
} place;

static int64_t batch_offset(const job *j, int32_t operand, int64_t matrix)
{
    const tn_layout *layout = &j->op->operand[operand];
    int64_t offset = 0;
    for (int32_t d = j->matmul->batch_rank - 1; d >= 0; d--) {
        int64_t size = j->op->operand[TN_MATMUL_OUT].shape[d];
        offset += matrix % size * layout->stride[d];
        matrix /= size;
    }
    return offset * j->element[operand]->bytes;
}

static void find_place(const job *j, int64_t tile, place *out)
{
    int64_t across = tile % j->tiles_across * j->width, rest = tile / j->tiles_across;
    int64_t down = rest % j->tiles_down * TILE, matrix = rest / j->tiles_down;
    for (int32_t o = 0; o < TN_MATMUL_OPERANDS; o++) {
        char *base = o < j->op->count ? tn_operand(j->run, o) : NULL;
        out->at[o] = NULL;
        if (!base)
            continue;
        out->at[o] = base + batch_offset(j, o, matrix);
        if (o != TN_MATMUL_B)
            out->at[o] += down * j->row[o];
        if (o != TN_MATMUL_A)
            out->at[o] += across * j->column[o];
    }
    out->rows = j->matmul->m - down < TILE ? j->matmul->m - down : TILE;
    out->columns = j->matmul->n - across < j->width ? j->matmul->n - across : j->width;
}

static void pack_element(const job *j, double *operand, int64_t at, double value)
{
    if (j->wide)
        tni_ref_split(value, &operand[at], &operand[at + TNI_REF_DEPTH_WIDE * TILE]);
    else
        operand[at] = value;
}

static int64_t whole_blocks(int64_t count)
{
    return (count + TNI_REF_BLOCK - 1) / TNI_REF_BLOCK * TNI_REF_BLOCK;
}

/* `depth` counts elements; rows that pad a block are 0. */
static void pack_a(const job *j, const place *at, int64_t first, int64_t depth, tni_ref_tile *tile)
{
    const int64_t step = j->column[TN_MATMUL_A];
    double line[TNI_REF_DEPTH] = {0};
    for (int64_t i = 0; i < whole_blocks(at->rows); i++) {
        const char *from = at->at[TN_MATMUL_A] + first * step;
        if (i < at->rows)
            j->element[TN_MATMUL_A]->read(from + i * j->row[TN_MATMUL_A], step, depth, line);
        else
            memset(line, 0, sizeof line);
        for (int64_t p = 0; p < depth * j->parts; p++)
            pack_element(j, tile->a, p * TILE + i, line[p]);
    }
}

static void pack_b(const job *j, const place *at, int64_t first, int64_t depth, tni_ref_tile *tile)
{
    const int64_t step = j->row[TN_MATMUL_B], columns = at->columns * j->parts;
    for (int64_t p = 0; p < depth; p++) {
        double line[TILE] = {0};
        const char *from = at->at[TN_MATMUL_B] + (first + p) * step;
        int64_t to = p * j->parts * TILE;
        j->element[TN_MATMUL_B]->read(from, j->column[TN_MATMUL_B], at->columns, line);
        for (int64_t c = 0; c < whole_blocks(columns); c++)
            pack_element(j, tile->b, to + c, line[c]);
        for (int64_t c = 0; c < whole_blocks(columns) && j->parts == 2; c += 2) {
            pack_element(j, tile->b, to + TILE + c, -line[c + 1]);
            pack_element(j, tile->b, to + TILE + c + 1, line[c]);
        }
    }
}

static void sum_tile(const job *j, const place *at, tni_ref_tile *tile)
{
    const int64_t most = (j->wide ? TNI_REF_DEPTH_WIDE : TNI_REF_DEPTH) / j->parts;
    const int64_t columns = at->columns * j->parts, k = j->matmul->k;
    memset(tile->sum, 0, sizeof tile->sum);
    if (j->wide)
        memset(tile->rest, 0, sizeof tile->rest);
    for (int64_t first = 0; first < k; first += most) {
        int64_t depth = k - first < most ? k - first : most;
        pack_a(j, at, first, depth, tile);
        pack_b(j, at, first, depth, tile);
        if (j->wide)
            tni_ref_tile_add_wide(tile, at->rows, columns, depth * j->parts);
        else
            tni_ref_tile_add(tile, at->rows, columns, depth * j->parts);
    }
}

/* Reads one row of an operand that is added; 0 if not `wanted`. */
static void read_row(const job *j, const place *at, int32_t operand, int64_t row, bool wanted,
                     double *out)
{
    memset(out, 0, TILE * sizeof *out);
    if (wanted)
        j->element[operand]->read(at->at[operand] + row * j->row[operand], j->column[operand],
                                  at->columns, out);
}

static double wrap_i32(double whole)
{
    return (double)(int32_t)(uint32_t)(int64_t)whole;
}

/* Multiplies a row of the tile by the scales. */
static void apply_scales(const job *j, const place *at, int64_t row, double *sum)
{
    for (int32_t o = TN_MATMUL_SCALE_A; o <= TN_MATMUL_SCALE_B; o++) {
        double scale[TILE];
        if (!j->element[o]->dtype)
            continue;
        read_row(j, at, o, row, true, scale);
        for (int64_t i = 0; i < at->columns; i++)
            sum[i] *= scale[i];
    }
}

static void finish_row(const job *j, int64_t count, const double *out, const double *bias,
                       double *sum)
{
    const bool whole = tni_ref_is_whole(j->element[TN_MATMUL_A]);
    const bool beta = j->matmul->beta != 0, has_bias = j->element[TN_MATMUL_BIAS]->dtype != 0;
    for (int64_t i = 0; i < count; i++) {
        double value = j->matmul->alpha * (whole ? wrap_i32(sum[i]) : sum[i]);
        value = beta ? value + j->matmul->beta * out[i] : value;
        value = has_bias ? value + bias[i] : value;
        sum[i] = j->function < 0 ? value : tni_ref_function(j->function, value);
    }
}

static void finish_row_wide(const job *j, int64_t count, const double *out, const double *bias,
                            const double *rest, double *sum)
{
    const bool beta = j->matmul->beta != 0, has_bias = j->element[TN_MATMUL_BIAS]->dtype != 0;
    for (int64_t i = 0; i < count; i++) {
        tni_ref_wide value = {sum[i], rest[i]};
        if (j->matmul->alpha != 1)
            value = tni_ref_wide_scale(value, j->matmul->alpha);
        if (beta)
            value = tni_ref_wide_plus(value, tni_ref_wide_product(j->matmul->beta, out[i]));
        if (has_bias)
            value = tni_ref_wide_add(value, bias[i]);
        value = tni_ref_wide_tidy(value);
        if (j->function < 0)
            sum[i] = value.hi;
        else
            sum[i] = (double)tni_ref_function_long(j->function, (long double)value.hi + value.lo);
    }
}

/* Integers wrap; everything else is rounded once. */
static void write_row(const job *j, const double *value, int64_t count, char *to)
{
    const tni_ref_element *out = j->element[TN_MATMUL_OUT];
    int64_t whole[TILE];
    if (!tni_ref_is_whole(out)) {
        out->write(value, count, to, j->column[TN_MATMUL_OUT]);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        whole[i] = tni_ref_to_signed(value[i], INT64_MIN, INT64_MAX);
    out->write_whole(whole, count, to, j->column[TN_MATMUL_OUT]);
}

static void finish_tile(const job *j, const place *at, tni_ref_tile *tile)
{
    const int64_t count = at->columns * j->parts;
    double out[TILE], bias[TILE];
    for (int64_t i = 0; i < at->rows; i++) {
        double *sum = tile->sum + i * TILE;
        read_row(j, at, TN_MATMUL_OUT, i, j->matmul->beta != 0, out);
        read_row(j, at, TN_MATMUL_BIAS, i, j->element[TN_MATMUL_BIAS]->dtype != 0, bias);
        apply_scales(j, at, i, sum);
        if (j->wide)
            finish_row_wide(j, count, out, bias, tile->rest + i * TILE, sum);
        else
            finish_row(j, count, out, bias, sum);
        write_row(j, sum, at->columns, at->at[TN_MATMUL_OUT] + i * j->row[TN_MATMUL_OUT]);
    }
}

static void compute_tiles(void *user, int64_t first, int64_t end)
{
    const job *j = user;
    tni_ref_tile tile;
    for (int64_t t = first; t < end; t++) {
        place at;
        find_place(j, t, &at);
        sum_tile(j, &at, &tile);
        finish_tile(j, &at, &tile);
    }
}

static void init_job(const tn_run *run, job *out)
{
    const tn_op *op = run->op;
    const tn_matmul_op *matmul = TN_PARAMS(op, matmul);
    *out = (job){.run = run, .op = op, .matmul = matmul};
    for (int32_t o = 0; o < TN_MATMUL_OPERANDS; o++) {
        const tn_layout *layout = &op->operand[o];
        out->element[o] = tni_ref_element_of(o < op->count ? layout->dtype : TN_DTYPE_NONE);
        if (!out->element[o]->dtype)
            continue;
        out->row[o] = layout->stride[matmul->batch_rank] * out->element[o]->bytes;
        out->column[o] = layout->stride[matmul->batch_rank + 1] * out->element[o]->bytes;
    }
    out->parts = out->element[TN_MATMUL_A]->parts;
    out->wide =
        op->operand[TN_MATMUL_A].dtype == TN_F64 || op->operand[TN_MATMUL_A].dtype == TN_C128;
    out->width = TILE / out->parts;
    out->function = tni_ref_activation(matmul->activation);
    out->tiles_down = (matmul->m - 1) / TILE + 1;
    out->tiles_across = (matmul->n - 1) / out->width + 1;
}

static tn_status run_matmul(const tn_run *run, tn_error *err)
{
    job j;
    (void)err;
    init_job(run, &j);
    int64_t products = TILE * TILE * (j.matmul->k < 1024 ? j.matmul->k + 1 : 1024);
    tni_ref_share(run, j.matmul->matrices * j.tiles_down * j.tiles_across, products / 4,
                  compute_tiles, &j);
    return TN_OK;
}

static bool is_f8(tn_dtype dtype)
{
    return dtype == TN_F8_E4M3FN || dtype == TN_F8_E5M2;
}

/* Whether a dtype is allowed with A's dtype: for B, out, bias, scales, and for the accumulator. */
static bool goes_with(const tn_op *op, int32_t operand, tn_dtype dtype)
{
    const tni_ref_element *a = tni_ref_element_of(op->operand[TN_MATMUL_A].dtype);
    const tni_ref_element *other = tni_ref_element_of(dtype);
    if (operand == TN_MATMUL_B)
        return dtype == a->dtype || (is_f8(dtype) && is_f8(a->dtype));
    if (operand == TN_MATMUL_SCALE_A || operand == TN_MATMUL_SCALE_B)
        return dtype == TN_F32 && is_f8(a->dtype);
    if (a->dtype == TN_I8)
        return dtype == TN_I32 || (dtype == TN_F32 && operand != TN_MATMUL_OPERANDS);
    return other->sort == a->sort && other->bytes > 1;
}

static tn_status admit_dtypes(const tn_op *op, tn_refusal *why)
{
    static const char *const names[] = {"a.dtype",       "b.dtype",       "out.dtype", "bias.dtype",
                                        "scale_a.dtype", "scale_b.dtype", "acc"};
    const tn_dtype acc = TN_PARAMS(op, matmul)->acc, a = op->operand[TN_MATMUL_A].dtype;
    for (int32_t o = TN_MATMUL_B; o <= TN_MATMUL_OPERANDS; o++) {
        tn_dtype dtype = o == TN_MATMUL_OPERANDS ? acc : op->operand[o].dtype;
        bool absent = o >= TN_MATMUL_BIAS && ((o < TN_MATMUL_OPERANDS && op->count <= o) || !dtype);
        if (absent || goes_with(op, o, dtype))
            continue;
        return tni_ref_refuse(why, TN_REFUSE_DTYPE, names[o],
                              a == TN_I8 && o != TN_MATMUL_B ? TN_I32 : a, dtype,
                              o == TN_MATMUL_B ? "A and B need one dtype: cast one of them"
                              : a == TN_I8     ? "of i8 the sums are i32, out and bias i32 or f32"
                                               : "floats go with floats, complex with complex "
                                                 "numbers, of 16 bits and more: cast it");
    }
    return TN_OK;
}

static tn_status admit_matmul(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const tn_op *op = query->op;
    const int32_t function = tni_ref_activation(TN_PARAMS(op, matmul)->activation);
    const bool complex = tni_ref_element_of(op->operand[TN_MATMUL_A].dtype)->parts == 2;
    (void)row;
    if (admit_dtypes(op, why))
        return TN_UNSUPPORTED;
    if (complex && function >= 0)
        return tni_ref_refuse(why, TN_REFUSE_FEATURE, "activation", TN_ACT_NONE,
                              TN_PARAMS(op, matmul)->activation,
                              "complex numbers have no activation");
    return tni_ref_admit_function(query, function, why);
}

static const tn_dtype dtypes[] = {TN_F64, TN_F32,  TN_BF16,      TN_F16,     TN_I8,
                                  TN_C64, TN_C128, TN_F8_E4M3FN, TN_F8_E5M2, 0};

const tn_kernel_row tni_ref_matmul = {
    .struct_size = sizeof tni_ref_matmul,
    .name = "cpu.matmul.ref",
    .platform = "cpu",
    .backend = "ref",
    .op = TN_OP_MATMUL,
    .version = 1,
    .dtypes = dtypes,
    .numerics = TNI_REF_EVERYWHERE,
    .honours = TN_MATMUL_USES_BATCH | TN_MATMUL_USES_BROADCAST | TN_MATMUL_USES_TRANSPOSE |
               TN_MATMUL_USES_STRIDES | TN_MATMUL_USES_ALPHA | TN_MATMUL_USES_BETA |
               TN_MATMUL_USES_BIAS | TN_MATMUL_USES_ACTIVATION | TN_MATMUL_USES_OUT_DTYPE |
               TN_MATMUL_USES_ACC | TN_MATMUL_USES_SCALES | TN_MATMUL_USES_FAR_FACTORS,
    .free_dims = TN_MATMUL_DIM_M | TN_MATMUL_DIM_N | TN_MATMUL_DIM_K | TN_MATMUL_DIM_BATCH,
    .flops_per_us = 2000,
    .bytes_per_us = 100,
    .overhead_us = 0.5,
    .admit = admit_matmul,
    .run = run_matmul,
};
