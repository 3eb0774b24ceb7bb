#include "cublas_matmul.h"
#include "../../matmul/matmul_finish.h"
#include "cublas_admit.h"
#include "cublas_after.h"
#include "cublas_cost.h"
#include "cublas_pad.h"
#include "cublas_shape.h"
#include "lt.h"

typedef struct lt_ready {
    lt_shape shape;
    lt_layout layout[3]; /* of A, B, out */
    lt_algo algo;
    uint64_t workspace; /* bytes that the algorithm may use */
    uint64_t behind;    /* bytes before that: sums that are not stored in out, then copies */
    uint64_t sums;      /* bytes of the sums alone */
    lt_pad_plan pads;
    bool finishes; /* the epilogue runs as `finish`, after the library's product */
    cuda_finish finish;
    cuda_blas_sums types;
    int epilogue;
    bool points; /* the descriptor contains pointers to a bias or scales */
    bool scales_each;
    /* A descriptor without pointers is shared by all runs. One with pointers is modified by each run: a run
     * that finds it in use creates another. */
    _Atomic(lt_desc) desc;
} lt_ready;

static int epilogue_of(const tn_op *op)
{
    int epilogue = op->operand[TN_MATMUL_BIAS].dtype ? LT_EPILOGUE_BIAS : 0;
    epilogue |= TN_PARAMS(op, matmul)->activation == TN_ACT_RELU        ? LT_EPILOGUE_RELU
                : TN_PARAMS(op, matmul)->activation == TN_ACT_GELU_TANH ? LT_EPILOGUE_GELU
                                                                        : 0;
    return epilogue ? epilogue : LT_EPILOGUE_DEFAULT;
}

static lt_status make_desc(const cuda_lt *lt, const lt_ready *plan, lt_desc *out)
{
    const int32_t a = plan->shape.matrix[plan->shape.left].turned ? LT_OP_T : LT_OP_N;
    const int32_t b = plan->shape.matrix[plan->shape.right].turned ? LT_OP_T : LT_OP_N;
    const int32_t epilogue = plan->epilogue, each = LT_SCALE_EACH;
    lt_desc desc = NULL;
    lt_status code = lt->desc_create(&desc, plan->types.compute, plan->types.scale);
    if (!code)
        code = lt->desc_set(desc, LT_DESC_TRANSA, &a, sizeof a);
    if (!code)
        code = lt->desc_set(desc, LT_DESC_TRANSB, &b, sizeof b);
    if (!code)
        code = lt->desc_set(desc, LT_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    for (int i = LT_DESC_SCALE_MODE_A; i <= LT_DESC_SCALE_MODE_B && plan->scales_each && !code; i++)
        code = lt->desc_set(desc, i, &each, sizeof each);
    if (code && desc)
        (void)lt->desc_destroy(desc);
    else
        *out = desc;
    return code;
}

static lt_status make_layout(const cuda_lt *lt, const lt_ready *plan, tn_dtype dtype,
                             const lt_matrix *matrix, lt_layout *out)
{
    const int32_t batch = (int32_t)plan->shape.batch;
    lt_status code = lt->layout_create(out, cuda_blas_type(dtype), (uint64_t)matrix->rows,
                                       (uint64_t)matrix->columns, matrix->leading);
    if (!code)
        code = lt->layout_set(*out, LT_LAYOUT_BATCH_COUNT, &batch, sizeof batch);
    if (!code)
        code = lt->layout_set(*out, LT_LAYOUT_BATCH_STRIDE, &matrix->batch_stride,
                              sizeof matrix->batch_stride);
    return code;
}

/* Returns the allowed reduction schemes of split sums, according to the row's numerics. For other than 16-bit
 * dtypes, every scheme is equally accurate. */
static uint32_t schemes_of(const tn_kernel_row *row, const tn_op *op)
{
    const tn_dtype dtype = op->operand[TN_MATMUL_A].dtype;
    if ((dtype != TN_F16 && dtype != TN_BF16) || row->numerics & TN_NUM_REDUCED_REDUCTION)
        return LT_REDUCE_ANYHOW;
    return row->numerics & TN_NUM_SPLIT_SUMS ? LT_REDUCE_IN_COMPUTE_TYPE : LT_REDUCE_NOT;
}

/* What the algorithm may rely on: alignments, workspace, reduction schemes. */
static lt_status make_preference(const cuda_lt *lt, const tn_run *run, const lt_ready *plan,
                                 lt_preference *out)
{
    const tn_op *op = run->op;
    const uint32_t schemes = schemes_of(run->row, op);
    const int32_t operands[] = {plan->shape.left, plan->shape.right, TN_MATMUL_OUT, TN_MATMUL_OUT};
    lt_status code = lt->preference_create(out);
    if (!code)
        code =
            lt->preference_set(*out, LT_PREFER_WORKSPACE, &plan->workspace, sizeof plan->workspace);
    if (!code)
        code = lt->preference_set(*out, LT_PREFER_REDUCTION, &schemes, sizeof schemes);
    for (int i = 0; i < 4 && !code; i++) {
        uint32_t bytes = (uint32_t)op->operand[operands[i]].alignment;
        code = lt->preference_set(*out, LT_PREFER_ALIGNMENT_A + i, &bytes, sizeof bytes);
    }
    return code;
}

/* Takes one of the heuristics' answers, as given by the row. */
static tn_status choose(const cuda_lt *lt, const tn_run *run, lt_handle handle, lt_ready *plan,
                        tn_error *err)
{
    const int32_t answer = ((const lt_row *)run->row)->answer;
    lt_preference preference = NULL;
    lt_found found[LT_WAYS] = {{.state = LT_NOT_SUPPORTED}};
    const lt_shape *shape = &plan->shape;
    int count = 0;
    lt_status code = make_preference(lt, run, plan, &preference);
    if (!code)
        code = lt->heuristic(handle, atomic_load(&plan->desc), plan->layout[shape->left],
                             plan->layout[shape->right], plan->layout[TN_MATMUL_OUT],
                             plan->layout[TN_MATMUL_OUT], preference, answer + 1, found, &count);
    if (preference)
        (void)lt->preference_destroy(preference);
    const lt_found *taken = &found[count > answer ? answer : count > 0 ? count - 1 : 0];
    if (!code)
        code = count > 0 ? taken->state : LT_NOT_SUPPORTED;
    if (code == LT_INVALID_VALUE) /* a product that it finds invalid is not supported */
        code = LT_NOT_SUPPORTED;
    plan->algo = taken->algo;
    return cuda_lt_check(code, "cublasLtMatmulAlgoGetHeuristic", err);
}

/* During planning there are no operands. The heuristics do not read them, but need an address for each with the
 * correct alignment: without it they reject scales for each row. */
static void *stand_in(const tn_run *run, int32_t operand)
{
    static _Alignas(2 * TN_OP_ALIGNMENT_MAX) char place[2 * TN_OP_ALIGNMENT_MAX];
    return place + run->op->operand[operand].alignment;
}

/* Sets the pointers to bias and scales, if the op has them, to the addresses that `at` returns. */
static lt_status point(const tn_run *run, const lt_ready *plan, lt_desc desc,
                       void *(*at)(const tn_run *run, int32_t operand))
{
    const cuda_lt *lt = run->library;
    const int32_t of_left = plan->shape.left == TN_MATMUL_A ? TN_MATMUL_SCALE_A : TN_MATMUL_SCALE_B;
    const int32_t of_right =
        plan->shape.left == TN_MATMUL_A ? TN_MATMUL_SCALE_B : TN_MATMUL_SCALE_A;
    const struct {
        int32_t operand;
        lt_desc_attribute attribute;
    } pointers[] = {
        {TN_MATMUL_BIAS, LT_DESC_BIAS}, {of_left, LT_DESC_SCALE_A}, {of_right, LT_DESC_SCALE_B}};
    lt_status code = LT_SUCCESS;
    for (int i = 0; i < 3 && !code; i++) {
        if (!run->op->operand[pointers[i].operand].dtype ||
            (plan->finishes && pointers[i].operand == TN_MATMUL_BIAS))
            continue;
        const void *place = at(run, pointers[i].operand);
        code = lt->desc_set(desc, pointers[i].attribute, &place, sizeof place);
    }
    return code;
}

static tn_status make(const tn_run *run, const cuda_scope *scope, lt_ready *plan, tn_error *err)
{
    cuda_lt *lt = run->library;
    lt_handle handle = NULL;
    lt_desc desc = NULL;
    const char *call = "cublasLtMatmulDescCreate";
    lt_status code = LT_SUCCESS;
    tn_status status = cuda_lt_handle(lt, scope, &handle, err);
    if (status)
        return status;
    for (int32_t i = TN_MATMUL_A; i <= TN_MATMUL_OUT && !code; i++)
        code = make_layout(lt, plan, run->op->operand[i].dtype, &plan->shape.matrix[i],
                           &plan->layout[i]);
    if (!code)
        code = make_desc(lt, plan, &desc);
    atomic_store(&plan->desc, desc);
    if (!code) {
        call = "cublasLtMatmulDescSetAttribute";
        code = point(run, plan, desc, stand_in);
    }
    if (code)
        return cuda_lt_check(code, call, err);
    return choose(lt, run, handle, plan, err);
}

void lt_plan_release(const tn_run *run, void *any)
{
    const cuda_lt *lt = run->library;
    lt_ready *plan = any;
    if (atomic_load(&plan->desc))
        (void)lt->desc_destroy(atomic_load(&plan->desc));
    for (int i = 0; i < 3; i++) {
        if (plan->layout[i])
            (void)lt->layout_destroy(plan->layout[i]);
    }
    run->host->release(run->host->self, plan);
}

static bool pads_operands(const tn_kernel_row *row)
{
    return ((const lt_row *)row)->pads;
}

/* Writes the product that the row gives to the library, and the copies that precede it. */
static void product_of(const tn_kernel_row *row, const tn_op *op, tn_op *out, lt_pads *pads)
{
    lt_sums_of(op, out);
    *pads = (lt_pads){.from[TN_MATMUL_OUT] = out->operand[TN_MATMUL_OUT]};
    if (pads_operands(row))
        lt_pad(out, lt_sums_bytes(op) > 0, pads);
}

/* Clamps to 2^62, which is always rejected as too much memory. */
static uint64_t clamped(double bytes)
{
    const double most = (double)((uint64_t)1 << 62);
    return bytes < most ? (uint64_t)bytes : (uint64_t)1 << 62;
}

uint64_t lt_workspace(const tn_kernel_row *row, const tn_query *query)
{
    const tn_matmul_op *mm = TN_PARAMS(query->op, matmul);
    const double products = (double)mm->m * (double)mm->n * (double)mm->k * (double)mm->matrices;
    const uint64_t usual = products < 1e9 ? (uint64_t)4 << 20 : (uint64_t)32 << 20;
    tn_op product;
    lt_pads pads;
    product_of(row, query->op, &product, &pads);
    const cuda_blas_memory memory = {.setting = "cuda.cublaslt_workspace_size",
                                     .usual = usual,
                                     .behind = clamped(lt_sums_bytes(query->op) + pads.bytes)};
    return cuda_blas_room(query, &memory);
}

/* The epilogue costs one launch, reads the sums and writes out; the product writes the sums. 0: the row's figures
 * apply. */
double lt_cost(const tn_kernel_row *row, const tn_query *query)
{
    enum { LAUNCH = 4 };
    const tn_matmul_op *mm = TN_PARAMS(query->op, matmul);
    const int64_t each =
        cuda_finish_sum_bytes(query->op) + cuda_bytes_of(query->op->operand[TN_MATMUL_OUT].dtype);
    const double moved = (double)mm->m * (double)mm->n * (double)mm->matrices * (double)each;
    const bool finished = lt_is_finished(query->op);
    tn_op sums;
    lt_sums_of(query->op, &sums);
    if (!finished && !cuda_blas_is_misaligned(&sums))
        return 0;
    const double work = pads_operands(row) ? lt_pads_us(row, &sums, lt_sums_bytes(query->op) > 0)
                                           : cuda_blas_work_us(row, &sums);
    return row->overhead_us + work + (finished ? LAUNCH + moved / row->bytes_per_us : 0);
}

/* Fills in the plan's description of the op for the library. */
static tn_status describe(const tn_run *run, lt_ready *plan, tn_error *err)
{
    const uint64_t usable = cuda_blas_room_usable(run->workspace_bytes);
    plan->workspace = usable > plan->behind ? usable - plan->behind : 0;
    plan->epilogue = epilogue_of(run->op);
    plan->points = run->op->uses & (TN_MATMUL_USES_BIAS | TN_MATMUL_USES_SCALES);
    plan->scales_each = cuda_blas_scales_each(run->op);
    plan->types = cuda_blas_sums_of(run->row, run->op);
    tn_status status = lt_shape_of(run->op, &plan->shape, NULL);
    return status ? tn_fail(err, status, 0, run->row->name, "its strides are not admitted") : TN_OK;
}

tn_status lt_plan(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    cuda_scope scope;
    tn_op product;
    lt_pads pads;
    tn_run told = *run;
    lt_ready *plan = run->host->alloc(run->host->self, sizeof *plan, _Alignof(lt_ready));
    if (!plan)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, run->row->name, "no memory for a plan");
    memset(plan, 0, sizeof *plan);
    product_of(run->row, run->op, &product, &pads);
    told.op = &product;
    plan->sums = clamped(lt_sums_bytes(run->op));
    plan->behind = plan->sums + clamped(pads.bytes);
    plan->finishes = lt_is_finished(run->op);
    tn_status status = describe(&told, plan, err);
    if (!status)
        status = lt_pad_plan_make(run, &pads, &product, &plan->pads, err);
    if (!status && plan->finishes)
        status = cuda_finish_plan(run, &pads.from[TN_MATMUL_OUT], &plan->finish, err);
    if (!status)
        status = cuda_enter(run->platform, run->device, &scope, err);
    if (!status) {
        cuda_relax(&scope); /* code may be loaded, which must not disturb a capture elsewhere */
        status = make(&told, &scope, plan, err);
        cuda_leave(&scope);
    }
    if (status) {
        lt_plan_release(run, plan);
        return status;
    }
    *out = plan;
    *out_bytes = sizeof *plan + 1024; /* plus about what the library keeps */
    return TN_OK;
}

/* Returns the destination of the product, and where the copies begin. */
static void *sums_at(const tn_run *run)
{
    const lt_ready *plan = run->plan;
    return plan->sums ? cuda_blas_room_begin(run->workspace) : tn_operand(run, TN_MATMUL_OUT);
}

static void *copies_at(const tn_run *run)
{
    const lt_ready *plan = run->plan;
    return plan->behind ? (char *)cuda_blas_room_begin(run->workspace) + plan->sums : NULL;
}

static lt_status compute(const tn_run *run, lt_handle handle, lt_desc desc)
{
    const cuda_lt *lt = run->library;
    const lt_ready *plan = run->plan;
    const lt_type scale = plan->types.scale;
    const cuda_blas_factor alpha = cuda_blas_factor_of(scale, TN_PARAMS(run->op, matmul)->alpha);
    const cuda_blas_factor beta = cuda_blas_factor_of(scale, TN_PARAMS(run->op, matmul)->beta);
    const int32_t left = plan->shape.left, right = plan->shape.right;
    void *copies = copies_at(run), *room = cuda_blas_room_begin(run->workspace);
    void *out = lt_pad_operand(&plan->pads, TN_MATMUL_OUT, copies, sums_at(run));
    return lt->matmul(
        handle, desc, &alpha, lt_pad_operand(&plan->pads, left, copies, tn_operand(run, left)),
        plan->layout[left], lt_pad_operand(&plan->pads, right, copies, tn_operand(run, right)),
        plan->layout[right], &beta, out, plan->layout[TN_MATMUL_OUT], out,
        plan->layout[TN_MATMUL_OUT], &plan->algo, room ? (char *)room + plan->behind : NULL,
        (size_t)plan->workspace, run->stream);
}

static lt_status compute_with_pointers(const tn_run *run, lt_handle handle)
{
    const cuda_lt *lt = run->library;
    lt_ready *plan = run->plan;
    lt_desc desc = atomic_exchange(&plan->desc, NULL), none = NULL;
    lt_status code = desc ? LT_SUCCESS : make_desc(lt, plan, &desc);
    if (code)
        return code;
    code = point(run, plan, desc, tn_operand);
    if (!code)
        code = compute(run, handle, desc);
    if (!atomic_compare_exchange_strong(&plan->desc, &none, desc))
        (void)lt->desc_destroy(desc);
    return code;
}

static tn_status multiply(const tn_run *run, tn_error *err)
{
    lt_ready *plan = run->plan;
    cuda_scope scope;
    lt_handle handle = NULL;
    tn_status status = cuda_enter(run->platform, run->device, &scope, err);
    if (status)
        return status;
    status = cuda_lt_handle(run->library, &scope, &handle, err);
    if (!status)
        status = cuda_lt_check(plan->points ? compute_with_pointers(run, handle)
                                            : compute(run, handle, atomic_load(&plan->desc)),
                               "cublasLtMatmul", err);
    status = cuda_blame(&scope, status, "cublasLtMatmul", err);
    cuda_leave(&scope);
    return status;
}

tn_status lt_run(const tn_run *run, tn_error *err)
{
    lt_ready *plan = run->plan;
    tn_status status = lt_pad_before(run, &plan->pads, copies_at(run), sums_at(run), err);
    if (!status)
        status = multiply(run, err);
    if (!status)
        status = lt_pad_after(run, &plan->pads, copies_at(run), sums_at(run), err);
    return status || !plan->finishes ? status
                                     : cuda_finish_run(run, &plan->finish, sums_at(run), err);
}
