#include "onednn_matmul.h"
#include "../cblas/cblas_side.h"
#include "../cblas/cblas_tiles.h"
#include "onednn_primitive.h"
#include "tenon/module/op/matmul.h"

#include <stdatomic.h>

/* Number of seats kept by a plan, one for each concurrent thread; further threads create theirs for
 * each run. */
enum { SEATS = 32 };

/* There are two tile shapes, since the last tile may have fewer rows. */
enum { WHOLE = 0, LAST = 1, SHAPES };

typedef struct ready {
    void *b; /* packed; NULL: B is the run's operand */
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

/* Strides that also describe single rows and columns. */
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

void tni_dnnl_plan_release(const tn_run *run, void *made)
{
    const tni_dnnl *dnnl = run->library;
    ready *it = made;
    for (size_t i = 0; i < SEATS; i++)
        tni_dnnl_seat_release(dnnl, run->host, atomic_load(&it->seats[i]));
    for (size_t i = 0; i < it->shapes; i++)
        tni_dnnl_primitive_release(dnnl, &it->primitive[i]);
    run->host->release(run->host->self, it->b);
    run->host->release(run->host->self, it);
}

void tni_dnnl_pack_release(const tn_run *run, void *packed)
{
    tni_dnnl_plan_release(run, packed);
}

/* The primitives of a run: for B in its own layout, or packed. */
static ready *ready_of(const tn_run *run)
{
    return run->packed ? (ready *)(uintptr_t)run->packed : run->plan;
}

static tn_status make_primitives(const tn_run *run, bool packed, ready *to, tn_error *err)
{
    tni_mm_product product;
    tni_sides sides;
    tni_dnnl_product one;
    tn_status status = tni_sides_describe(run->op, &product, &sides, NULL);
    if (status)
        return tn_fail(err, status, 0, run->row->name, "its strides are not admitted");
    if (product.m == 0 || product.n == 0)
        return TN_OK; /* never run */
    tni_tiles_cut_rows(&product, ((const tni_dnnl *)run->library)->tiles_target, &to->tiles);
    int64_t rest = product.m % to->tiles.rows;
    for (size_t i = 0; i < SHAPES && !status; i++) {
        if (i == LAST && rest == 0)
            break;
        shape(run->row, &product, &sides, i == LAST ? rest : to->tiles.rows, &one);
        one.packed = packed;
        one.as = packed && i == LAST ? &to->primitive[WHOLE].b : NULL;
        status = tni_dnnl_primitive_make(run->library, &one, &to->primitive[i], err);
        to->shapes += !status;
    }
    return status;
}

static tn_status make_ready(const tn_run *run, bool packed, ready **out, tn_error *err)
{
    tni_dnnl *dnnl = run->library;
    ready *made = run->host->alloc(run->host->self, sizeof *made, _Alignof(ready));
    if (!made)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, run->row->name, "no memory for a plan");
    memset(made, 0, sizeof *made);
    int before = tni_vendor_threads_enter(&dnnl->threads, dnnl);
    tn_status status = make_primitives(run, packed, made, err);
    tni_vendor_threads_leave(&dnnl->threads, dnnl, before);
    if (status) {
        tni_dnnl_plan_release(run, made);
        return status;
    }
    *out = made;
    return TN_OK;
}

/* Keeps only the code that oneDNN compiles: operands are new in every run. */
tn_status tni_dnnl_plan(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    ready *made = NULL;
    tn_status status = make_ready(run, false, &made, err);
    if (status)
        return status;
    *out_bytes = sizeof *made + made->primitive[WHOLE].scratch_bytes * (uint64_t)run->threads;
    *out = made;
    return TN_OK;
}

static tn_status reorder(const tn_run *run, ready *to, uint64_t *out_bytes, tn_error *err)
{
    enum { ALIGNMENT = 64 };
    tni_dnnl *dnnl = run->library;
    const ready *plan = run->plan;
    const tni_dnnl_layout *layout = &to->primitive[WHOLE].b;
    size_t bytes = dnnl->layout_bytes(layout->at);
    to->b = run->host->alloc(run->host->self, bytes, ALIGNMENT);
    if (!to->b)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, run->row->name, "no memory for %zu bytes of B",
                       bytes);
    int before = tni_vendor_threads_enter(&dnnl->threads, dnnl);
    int code =
        tni_dnnl_reorder(dnnl, &plan->primitive[WHOLE].b, run->data[TN_MATMUL_B], layout, to->b);
    tni_vendor_threads_leave(&dnnl->threads, dnnl, before);
    *out_bytes = sizeof *to + bytes;
    return code ? tni_dnnl_fail(code, run->row->name, "to pack B", err) : TN_OK;
}

/* Packs B, which must be one matrix and the op's own B; in a transposed product it is the op's A,
 * which is refused. */
tn_status tni_dnnl_pack(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    tni_mm_product product;
    tni_sides sides;
    ready *made = NULL;
    if (tni_sides_describe(run->op, &product, &sides, NULL) || product.matrices != 1 ||
        product.b.operand != TN_MATMUL_B)
        return tn_fail(err, TN_UNSUPPORTED, 0, run->row->name, "B is not one matrix by rows");
    tn_status status = make_ready(run, true, &made, err);
    if (!status)
        status = reorder(run, made, out_bytes, err);
    if (status && made)
        tni_dnnl_pack_release(run, made);
    else if (!status)
        *out = made;
    return status;
}

static tni_dnnl_seat *take_seat(const tn_run *run)
{
    ready *it = ready_of(run);
    for (size_t i = 0; i < SEATS; i++) {
        tni_dnnl_seat *seat = atomic_load_explicit(&it->seats[i], memory_order_relaxed);
        if (seat && (seat = atomic_exchange(&it->seats[i], NULL)))
            return seat;
    }
    return tni_dnnl_seat_make(run->library, run->host, it->primitive, it->shapes);
}

static void give_seat(const tn_run *run, tni_dnnl_seat *seat)
{
    ready *it = ready_of(run);
    for (size_t i = 0; i < SEATS; i++) {
        tni_dnnl_seat *none = NULL;
        if (!atomic_load_explicit(&it->seats[i], memory_order_relaxed) &&
            atomic_compare_exchange_strong(&it->seats[i], &none, seat))
            return;
    }
    tni_dnnl_seat_release(run->library, run->host, seat);
}

/* Done here, because oneDNN's relu turns NaN into 0. Works on rounded results, which stay
 * rounded. */
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
    const ready *plan = ready_of(j->run);
    const tni_mm_product *p = &j->product;
    size_t index = tile->rows == plan->tiles.rows ? WHOLE : LAST;
    tni_mm_matrix at;
    tni_mm_place(p, j->run, tile->matrix, &at);
    void *const data[] = {[TN_MATMUL_A] =
                              (void *)(uintptr_t)(at.a + tile->row * p->a.row * p->a.size),
                          [TN_MATMUL_B] = plan->b ? plan->b : (void *)(uintptr_t)at.b,
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
    const ready *plan = ready_of(own.run);
    tni_dnnl *dnnl = own.run->library;
    own.seat = take_seat(own.run);
    if (!own.seat) {
        atomic_store(own.code, TNI_DNNL_NO_MEMORY);
        return;
    }
    int before = tni_vendor_threads_enter(&dnnl->threads, dnnl);
    tni_tiles_of_task(&plan->tiles, index, compute, &own);
    tni_vendor_threads_leave(&dnnl->threads, dnnl, before);
    give_seat(own.run, own.seat);
}

tn_status tni_dnnl_run(const tn_run *run, tn_error *err)
{
    const ready *plan = ready_of(run);
    _Atomic int code = TNI_DNNL_OK;
    job j = {.run = run, .code = &code};
    tni_sides sides;
    if (tni_sides_describe(run->op, &j.product, &sides, NULL))
        return tn_fail(err, TN_UNSUPPORTED, 0, run->row->name, "its strides are not admitted");
    tni_tiles_loop(&plan->tiles, run, task, &j);
    int failed = atomic_load(&code);
    return failed ? tni_dnnl_fail(failed, run->row->name, "to compute", err) : TN_OK;
}
