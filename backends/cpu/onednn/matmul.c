#include "../cblas/side.h"
#include "../cblas/tiles.h"
#include "../cpu.h"
#include "primitive.h"

#include <stdatomic.h>

/* Threads that compute with one plan at once and find their seats ready; others make theirs anew. */
enum { SEATS = 32 };

/* Tiles are of two shapes, as the last one may have fewer rows. */
enum { WHOLE = 0, LAST = 1, SHAPES };

typedef struct ready {
    tni_tiles tiles;
    size_t shapes;
    tni_dnnl_primitive primitive[SHAPES];
    tni_dnnl_seat *_Atomic seats[SEATS];
} ready;

typedef struct job {
    const tn_run *run;
    tni_mm_product product;
    tni_dnnl_seat *seat; /* of a task */
    _Atomic int *code;   /* of the first failure */
} job;

static int dtype_of(tn_dtype dtype)
{
    switch (dtype) {
    case TN_BF16: return TNI_DNNL_BF16;
    case TN_I8: return TNI_DNNL_S8;
    case TN_I32: return TNI_DNNL_S32;
    default: return TNI_DNNL_F32;
    }
}

/* Strides that say how single rows and columns lie, too. */
static void stride(const tni_side *side, int64_t out[2])
{
    out[side->by_columns] = side->leading;
    out[!side->by_columns] = 1;
}

static void shape(const tn_kernel_row *row, const tni_mm_product *p, const tni_sides *sides,
                  int64_t rows, tni_dnnl_product *out)
{
    *out = (tni_dnnl_product){.rows = rows,
                              .columns = p->n,
                              .depth = p->k,
                              .dtype = dtype_of(p->a.dtype),
                              .out_dtype = dtype_of(p->out.dtype),
                              .activation = p->activation == TN_ACT_RELU ? 0 : p->activation,
                              .has_bias = p->bias.dtype != 0,
                              .rounded = row->numerics & TN_NUM_ROUNDS_F32_BF16};
    stride(&sides->a, out->a);
    stride(&sides->b, out->b);
    stride(&sides->out, out->out);
}

static void release_plan(const tn_run *run, void *made)
{
    const tni_dnnl *dnnl = run->library;
    ready *it = made;
    for (size_t i = 0; i < SEATS; i++)
        tni_dnnl_seat_release(dnnl, run->host, atomic_load(&it->seats[i]));
    for (size_t i = 0; i < it->shapes; i++)
        tni_dnnl_primitive_release(dnnl, &it->primitive[i]);
    run->host->release(run->host->self, it);
}

static tn_status make_primitives(const tn_run *run, ready *to, tn_error *err)
{
    tni_mm_product product;
    tni_sides sides;
    tni_dnnl_product one;
    tn_status status = tni_sides_describe(run->op, &product, &sides, NULL);
    if (status)
        return tn_fail(err, status, 0, run->row->name, "its strides are not admitted");
    if (product.m == 0 || product.n == 0)
        return TN_OK; /* which is never run */
    tni_tiles_cut_rows(&product, ((const tni_dnnl *)run->library)->tiles_wished, &to->tiles);
    int64_t rest = product.m % to->tiles.rows;
    for (size_t i = 0; i < SHAPES && !status; i++) {
        if (i == LAST && rest == 0)
            break;
        shape(run->row, &product, &sides, i == LAST ? rest : to->tiles.rows, &one);
        status = tni_dnnl_primitive_make(run->library, &one, &to->primitive[i], err);
        to->shapes += !status;
    }
    return status;
}

/* Only what oneDNN compiles is kept: operands come anew with every run, so that none is packed ahead. */
static tn_status make_plan(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    tni_dnnl *dnnl = run->library;
    ready *made = run->host->alloc(run->host->self, sizeof *made, _Alignof(ready));
    if (!made)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, run->row->name, "no memory for a plan");
    memset(made, 0, sizeof *made);
    int before = tni_hold_enter(&dnnl->hold, dnnl);
    tn_status status = make_primitives(run, made, err);
    tni_hold_leave(&dnnl->hold, dnnl, before);
    if (status) {
        release_plan(run, made);
        return status;
    }
    *out_bytes = sizeof *made + made->primitive[WHOLE].scratch_bytes * (uint64_t)run->threads;
    *out = made;
    return TN_OK;
}

static tni_dnnl_seat *take_seat(const tn_run *run)
{
    ready *it = run->plan;
    for (size_t i = 0; i < SEATS; i++) {
        tni_dnnl_seat *seat = atomic_load_explicit(&it->seats[i], memory_order_relaxed);
        if (seat && (seat = atomic_exchange(&it->seats[i], NULL)))
            return seat;
    }
    return tni_dnnl_seat_make(run->library, run->host, it->primitive, it->shapes);
}

static void give_seat(const tn_run *run, tni_dnnl_seat *seat)
{
    ready *it = run->plan;
    for (size_t i = 0; i < SEATS; i++) {
        tni_dnnl_seat *none = NULL;
        if (!atomic_load_explicit(&it->seats[i], memory_order_relaxed) &&
            atomic_compare_exchange_strong(&it->seats[i], &none, seat))
            return;
    }
    tni_dnnl_seat_release(run->library, run->host, seat);
}

/* oneDNN's own makes a 0 of a NaN. What is rounded already stays so. */
static void relu_row(tn_dtype dtype, void *out, int64_t count)
{
    float *wide = out;
    uint16_t *narrow = out; /* bf16, whose infinity is 0x7F80 */
    if (dtype == TN_F32) {
        for (int64_t i = 0; i < count; i++)
            wide[i] = wide[i] < 0 ? 0 : wide[i];
    } else {
        for (int64_t i = 0; i < count; i++)
            narrow[i] = narrow[i] >= 0x8000 && narrow[i] <= 0xFF80 ? 0 : narrow[i];
    }
}

static void relu(const tni_mm_product *p, char *out, const tni_tile *tile)
{
    for (int64_t i = 0; i < tile->rows; i++)
        relu_row(p->out.dtype, out + i * p->out.row * p->out.size, tile->columns);
}

static void compute(void *user, const tni_tile *tile)
{
    const job *j = user;
    const ready *plan = j->run->plan;
    const tni_mm_product *p = &j->product;
    size_t index = tile->rows == plan->tiles.rows ? WHOLE : LAST;
    tni_mm_matrix at;
    tni_mm_place(p, j->run, tile->matrix, &at);
    void *const data[] = {[TN_MATMUL_A] =
                              (void *)(uintptr_t)(at.a + tile->row * p->a.row * p->a.size),
                          [TN_MATMUL_B] = (void *)(uintptr_t)at.b,
                          [TN_MATMUL_OUT] = at.out + tile->row * p->out.row * p->out.size,
                          [TN_MATMUL_BIAS] = (void *)(uintptr_t)at.bias};
    int none = TNI_DNNL_OK, code = tni_dnnl_seat_compute(j->run->library, j->seat,
                                                         &plan->primitive[index], index, data);
    if (code)
        (void)atomic_compare_exchange_strong(j->code, &none, code);
    else if (p->activation == TN_ACT_RELU)
        relu(p, data[TN_MATMUL_OUT], tile);
}

static void task(void *user, int64_t index)
{
    job own = *(const job *)user;
    const ready *plan = own.run->plan;
    tni_dnnl *dnnl = own.run->library;
    own.seat = take_seat(own.run);
    if (!own.seat) {
        atomic_store(own.code, TNI_DNNL_NO_MEMORY);
        return;
    }
    int before = tni_hold_enter(&dnnl->hold, dnnl);
    tni_tiles_of_task(&plan->tiles, index, compute, &own);
    tni_hold_leave(&dnnl->hold, dnnl, before);
    give_seat(own.run, own.seat);
}

static tn_status run(const tn_run *run, tn_error *err)
{
    const ready *plan = run->plan;
    _Atomic int code = TNI_DNNL_OK;
    job j = {.run = run, .code = &code};
    tni_sides sides;
    if (tni_sides_describe(run->op, &j.product, &sides, NULL))
        return tn_fail(err, TN_UNSUPPORTED, 0, run->row->name, "its strides are not admitted");
    tni_tiles_loop(&plan->tiles, run, task, &j);
    int failed = atomic_load(&code);
    return failed ? tni_dnnl_fail(failed, run->row->name, "to compute", err) : TN_OK;
}

static tn_status refuse(tn_refusal *why, int32_t code, const char *what, int64_t needed,
                        int64_t found, const char *text)
{
    (void)tn_refuse(why, code, what, needed, found);
    if (why)
        tn_text_fit(why->text, sizeof why->text, text);
    return TN_UNSUPPORTED;
}

/* Else it adds pairs of products in 16 bits, which are too few for some. */
static tn_status admit_i8(const tn_query *query, tn_refusal *why)
{
    const uint64_t dots = TN_CPU_BIT(AVX512_VNNI) | TN_CPU_BIT(AVX_VNNI);
    if (query->op->operand[TN_MATMUL_A].dtype != TN_I8 || query->cpu_features & dots)
        return TN_OK;
    return refuse(why, TN_REFUSE_DEVICE, "instructions", 1, 0,
                  "without avx512-vnni or avx-vnni its sums of i8 are not exact");
}

/* A bias is a number for each column, one after the other. */
static tn_status admit_bias(const tni_mm_product *p, tn_refusal *why)
{
    if (!p->bias.dtype || (p->bias.row == 0 && (p->bias.column == 1 || p->n == 1)))
        return TN_OK;
    return refuse(why, TN_REFUSE_STRIDE, "bias.stride", 0, p->bias.row,
                  "a bias is one number for each column of out, dense");
}

/* The stride of a single row or column; 1 for what is none. */
static int64_t stride_of_vector(const tni_side *side, int64_t rows, int64_t columns)
{
    bool across = rows == 1 && columns > 1 && side->by_columns;
    bool down = columns == 1 && rows > 1 && !side->by_columns;
    return across || down ? side->leading : 1;
}

/* A product with a vector: oneDNN 3.7.2 takes any vector of it for dense. */
static tn_status admit_vectors(const tni_mm_product *p, const tni_sides *sides, tn_refusal *why)
{
    static const char *const names[] = {"a.stride", "b.stride", "out.stride"};
    const int64_t strides[] = {stride_of_vector(&sides->a, p->m, p->k),
                               stride_of_vector(&sides->b, p->k, p->n),
                               stride_of_vector(&sides->out, p->m, p->n)};
    const int32_t operands[] = {p->a.operand, p->b.operand, p->out.operand};
    for (int32_t i = 0; i < 3 && (p->m == 1 || p->n == 1); i++) {
        if (strides[i] != 1)
            return refuse(why, TN_REFUSE_STRIDE, names[operands[i]], 1, strides[i],
                          "a single row or column is dense");
    }
    return TN_OK;
}

/* From 3.7 on, tiles of bf16 are filled up with what follows in memory, times 0: a NaN of the next row is a
 * NaN then. */
static tn_status admit_depth(const tn_kernel_row *row, const tni_mm_product *p, tn_refusal *why)
{
    enum { TILE = 32 };
    bool tiled = p->a.dtype == TN_BF16 || row->numerics & TN_NUM_ROUNDS_F32_BF16;
    if (p->k == 0)
        return tn_refuse(why, TN_REFUSE_SHAPE, "k", 1, 0);
    if (!tiled || p->k % TILE == 0)
        return TN_OK;
    return refuse(why, TN_REFUSE_SHAPE, "k", (p->k / TILE + 1) * TILE, p->k,
                  "k is a multiple of 32: else a NaN of one row can reach another");
}

static tn_status admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    tni_mm_product product;
    tni_sides sides;
    tn_status status = admit_i8(query, why);
    if (!status)
        status = tni_sides_describe(query->op, &product, &sides, why);
    if (!status)
        status = admit_depth(row, &product, why);
    if (!status)
        status = admit_vectors(&product, &sides, why);
    return status ? status : admit_bias(&product, why);
}

/* f16 is not among them: what oneDNN has for it, and for few ways to lie, is no faster than f32. */
static const tn_dtype f32[] = {TN_F32, 0}, bf16[] = {TN_BF16, 0}, i8[] = {TN_I8, 0};

enum {
    SHAPES_OF_ALL = TN_MATMUL_USES_BATCH | TN_MATMUL_USES_BROADCAST | TN_MATMUL_USES_TRANSPOSE,
    AFTER_SUMS = TN_MATMUL_USES_BIAS | TN_MATMUL_USES_ACTIVATION
};

#define ROW                                                                       \
    .struct_size = sizeof(tn_kernel_row), .platform = "cpu", .library = "mkldnn", \
    .op = TN_OP_MATMUL, .version = 1, .admit = admit, .plan = make_plan,          \
    .plan_release = release_plan, .run = run

/* Sums are made in one order for each op, as each tile is computed by one thread. */
const tn_kernel_row tni_cpu_module_matmul_onednn = {
    .name = "cpu.matmul.onednn",
    .dtypes = f32,
    .numerics = TN_NUM_RUN_TO_RUN,
    .honours = SHAPES_OF_ALL | AFTER_SUMS,
    .flops_per_us = 5.5e4,
    .bytes_per_us = 6e3,
    .overhead_us = 2,
    ROW,
};

const tn_kernel_row tni_cpu_module_matmul_onednn_rounded = {
    .name = "cpu.matmul.onednn.rounded",
    .dtypes = f32,
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_ROUNDS_F32_BF16,
    .honours = SHAPES_OF_ALL | AFTER_SUMS,
    .cpu_needs = TN_CPU_BIT(AVX512_BF16),
    .flops_per_us = 1.2e5,
    .bytes_per_us = 6e3,
    .overhead_us = 2,
    ROW,
};

const tn_kernel_row tni_cpu_module_matmul_onednn_bf16 = {
    .name = "cpu.matmul.onednn.bf16",
    .dtypes = bf16,
    .numerics = TN_NUM_RUN_TO_RUN,
    .honours = SHAPES_OF_ALL | AFTER_SUMS | TN_MATMUL_USES_OUT_DTYPE,
    .cpu_needs = TN_CPU_BIT(AVX512BW),
    .flops_per_us = 1.2e5,
    .bytes_per_us = 6e3,
    .overhead_us = 2,
    ROW,
};

const tn_kernel_row tni_cpu_module_matmul_onednn_int8 = {
    .name = "cpu.matmul.onednn.int8",
    .dtypes = i8,
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT | TN_NUM_CROSS_DEVICE,
    .honours = SHAPES_OF_ALL,
    .flops_per_us = 2.4e5,
    .bytes_per_us = 6e3,
    .overhead_us = 2,
    ROW,
};
