#include "cudnn_attention.h"

#include "cudnn_bias.h"
#include "cudnn_dropout.h"
#include "cudnn_empty.h"
#include "cudnn_engine.h"
#include "cudnn_packed.h"
#include "sdpa.h"
#include "tenon/module/op/attention_backward.h"

#include <math.h>

/* Workspace is aligned to this, and so is each part of it. */
enum { TOGETHER = 256 };

/* Bytes of workspace for Tenon's own use, before cuDNN's part. */
typedef struct dnn_own {
    uint64_t table; /* the queries of each sequence, or the tables of packed sequences */
    uint64_t each;  /* size of one of those tables */
    uint64_t sums;  /* one number for each row of scores */
    uint64_t parts; /* partial gradients of queries */
    uint64_t bias;  /* the additive mask made from a boolean one */
    uint64_t least; /* LSE without -infinity */
    uint64_t kept;  /* the dropout mask */
} dnn_own;

/* A cuDNN plan, and the sources of its tensors' data. */
typedef struct dnn_step {
    dnn_desc plan;
    int32_t slots;
    dnn_slot slot[DNN_SLOTS_MOST];
} dnn_step;

typedef struct dnn_made {
    dnn_own own;
    bool clears;        /* the partial gradients must be zeroed before */
    cuda_kernel *keeps; /* writes the dropout mask, or NULL */
    cuda_kernel *ends;  /* writes the results of sequences without keys, or NULL */
    int32_t steps;
    dnn_step
        step[DNN_TABLES_MOST + 1]; /* tables or preparation of masks, then the attention itself */
} dnn_made;

typedef struct dnn_ready {
    dnn_made made;
    mtx_t lock; /* a plan must be executed by one thread at a time */
    bool locks; /* `lock` was initialised */
} dnn_ready;

static double round_up(double bytes)
{
    return ceil(bytes / TOGETHER) * TOGETHER;
}

/* Returns whether gradients of queries are summed in place, so that every run gives the same bits. */
static bool sums_together(const tn_kernel_row *row)
{
    return row->numerics & TN_NUM_RUN_TO_RUN;
}

/* Sizes in bytes, as double, which no size of an op overflows. */
typedef struct need {
    double table, each, sums, parts, bias, least, kept, theirs;
} need;

/* With few queries, cuDNN splits the keys; each part has an f32 result and two numbers per row. */
static double forward_need(const tn_attention_op *at)
{
    enum { PARTS_MOST = 32, FEW = 64 };
    const double rows = (double)at->batch * (double)at->heads * (double)at->queries;
    const double part = rows * (double)(at->value_size + 2) * sizeof(float);
    const double most = (double)((uint64_t)256 << 20);
    const double parts = at->queries <= FEW ? part * PARTS_MOST : 0;
    return parts < most ? parts : most;
}

/* If heads share keys, gradients of keys and values for each head; and if gradients of queries are summed in
 * place, all gradients of scores in 16 bits, with lengths rounded up to multiples of 128. */
static double backward_need(const tn_kernel_row *row, const tn_attention_op *at)
{
    enum { TILE = 128 };
    const double heads = (double)at->batch * (double)at->heads;
    const double q = ceil((double)at->queries / TILE) * TILE;
    const double k = ceil((double)at->keys / TILE) * TILE;
    const double shared = heads * k * (double)(at->size + at->value_size) * sizeof(float);
    return (at->heads != at->groups ? shared : 0) +
           (sums_together(row) ? heads * q * k * sizeof(uint16_t) : 0);
}

static void need_of(const tn_kernel_row *row, const tn_op *op, need *out)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    const double rows = (double)at->batch * (double)at->heads * (double)at->queries;
    const bool back = op->kind == TN_OP_ATTENTION_BACKWARD;
    const bool lengths = !back && op->operand[TN_ATTENTION_LENGTHS].dtype;
    dnn_tables tables;
    dnn_tables_of(op, &tables);
    *out = (need){.theirs = (double)((uint64_t)1 << 20) +
                            round_up(back ? backward_need(row, at) : forward_need(at))};
    out->each = round_up((double)(at->batch + 1) * sizeof(int32_t));
    out->table = tables.count > 0 ? tables.count * out->each : lengths ? out->each : 0;
    out->bias = round_up((double)dnn_bias_elements(op) * sizeof(uint16_t));
    out->kept = round_up(dnn_kept_bytes(op));
    if (dnn_needs_least(op))
        out->least = round_up(rows * sizeof(float));
    if (back)
        out->sums = round_up(rows * sizeof(float));
    if (back && !sums_together(row))
        out->parts = round_up(rows * (double)at->size * sizeof(float));
}

/* Clamps to 2^62, which is always rejected as too much memory. */
static uint64_t bytes_of(double bytes)
{
    const double most = (double)((uint64_t)1 << 62);
    return bytes < most ? (uint64_t)bytes : (uint64_t)1 << 62;
}

uint64_t dnn_workspace(const tn_kernel_row *row, const tn_query *query)
{
    need n;
    need_of(row, query->op, &n);
    return bytes_of(TOGETHER + n.table + n.sums + n.parts + n.bias + n.least + n.kept + n.theirs);
}

/* Makes the plan of everything that was added to a graph, and ends the graph. */
static tn_status make_step(dnn_graph *graph, const dnn_target *target, dnn_made *to, tn_error *err)
{
    dnn_step *step = &to->step[to->steps];
    tn_status status = dnn_plan_make(graph, target, &step->plan, NULL, err);
    step->slots = graph->slots;
    memcpy(step->slot, graph->slot, sizeof step->slot);
    dnn_graph_end(graph);
    to->steps += !status;
    return status;
}

/* Makes the steps that prepare the inputs of the last one. */
static tn_status make_first(const tn_op *op, const cuda_dnn *dnn, const dnn_target *target,
                            dnn_made *to, tn_error *err)
{
    tn_status status = TN_OK;
    dnn_graph graph;
    dnn_tables tables;
    dnn_tables_of(op, &tables);
    for (int32_t i = 0; i < tables.count && !status; i++) {
        dnn_graph_begin(dnn, &graph);
        dnn_add_table(&graph, op, i);
        status = make_step(&graph, target, to, err);
    }
    if (!status && dnn_bias_elements(op) > 0) {
        dnn_graph_begin(dnn, &graph);
        dnn_add_bias(&graph, op);
        status = make_step(&graph, target, to, err);
    }
    if (!status && dnn_needs_least(op)) {
        dnn_graph_begin(dnn, &graph);
        dnn_add_least(&graph, op);
        status = make_step(&graph, target, to, err);
    }
    return status;
}

static tn_status make_steps(const tn_run *run, const dnn_target *target, dnn_made *to,
                            tn_error *err)
{
    const dnn_target plain = {.handle = target->handle, .most = target->most};
    dnn_graph graph;
    tn_status status = make_first(run->op, run->library, &plain, to, err);
    if (status)
        return status;
    dnn_graph_begin(run->library, &graph);
    if (run->op->kind == TN_OP_ATTENTION)
        dnn_add_attention(&graph, run->op);
    else
        dnn_add_gradients(&graph, run->op, target->repeats);
    return make_step(&graph, target, to, err);
}

static void end_made(const tn_run *run, dnn_made *made)
{
    const cuda_dnn *dnn = run->library;
    while (made->steps > 0)
        (void)dnn->desc_destroy(made->step[--made->steps].plan);
}

static tn_status make(const tn_run *run, const cuda_scope *scope, dnn_made *out, tn_error *err)
{
    enum { PARTS_ANY = 90600 }; /* from this version on cuDNN zeroes these parts itself */
    cuda_dnn *dnn = run->library;
    dnn_target target = {.repeats = sums_together(run->row)};
    need n;
    dnn_lease *lease = NULL;
    tn_status status = dnn_handle_take(dnn, scope, &lease, err);
    if (status)
        return status;
    target.handle = lease->handle;
    need_of(run->row, run->op, &n);
    target.most = bytes_of(n.theirs);
    memset(out, 0, sizeof *out);
    out->own = (dnn_own){bytes_of(n.table), bytes_of(n.each),  bytes_of(n.sums), bytes_of(n.parts),
                         bytes_of(n.bias),  bytes_of(n.least), bytes_of(n.kept)};
    out->clears = dnn->version() < PARTS_ANY;
    if (out->own.kept > 0)
        status = dnn_keeper_get(run, &out->keeps, err);
    if (!status && dnn_has_lengths(run->op))
        status = dnn_empty_get(run, &out->ends, err);
    if (!status)
        status = make_steps(run, &target, out, err);
    if (status)
        end_made(run, out);
    dnn_handle_give(dnn, scope, lease);
    return status;
}

void dnn_plan_release(const tn_run *run, void *any)
{
    dnn_ready *plan = any;
    end_made(run, &plan->made);
    if (plan->locks)
        mtx_destroy(&plan->lock);
    run->host->release(run->host->self, plan);
}

tn_status dnn_plan(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    enum { COMPILED = 256 << 10 }; /* approximate memory that cuDNN keeps */
    cuda_scope scope;
    dnn_ready *plan = run->host->alloc(run->host->self, sizeof *plan, _Alignof(dnn_ready));
    if (!plan)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, run->row->name, "no memory for a plan");
    memset(plan, 0, sizeof *plan);
    plan->locks = mtx_init(&plan->lock, mtx_plain) == thrd_success;
    tn_status status =
        plan->locks ? cuda_enter(run->platform, run->device, &scope, err)
                    : tn_fail(err, TN_OUT_OF_MEMORY, 0, run->row->name, "no memory for a lock");
    if (!status) {
        cuda_relax(&scope); /* code is loaded, which must not disturb a capture elsewhere */
        status = make(run, &scope, &plan->made, err);
        cuda_leave(&scope);
    }
    if (status) {
        dnn_plan_release(run, plan);
        return status;
    }
    *out = plan;
    *out_bytes = sizeof *plan + COMPILED;
    return TN_OK;
}

/* The state of one run. */
typedef struct launch {
    const cuda_dnn *dnn;
    dnn_made *made;
    float scale, cap, gain;
    char *table, *sums, *parts, *bias, *least, *kept;
    char *workspace; /* cuDNN's part */
} launch;

static void begin_launch(const tn_run *run, dnn_made *made, launch *out)
{
    const tn_attention_op *at = TN_PARAMS(run->op, attention);
    const uintptr_t first = ((uintptr_t)run->workspace + TOGETHER - 1) / TOGETHER * TOGETHER;
    char *aligned = (char *)run->workspace + (first - (uintptr_t)run->workspace);
    *out = (launch){.dnn = run->library,
                    .made = made,
                    .scale = (float)at->scale,
                    .cap = (float)at->softcap,
                    .gain = (float)(1 / (1 - at->dropout)),
                    .table = aligned};
    out->sums = out->table + made->own.table;
    out->parts = out->sums + made->own.sums;
    out->bias = out->parts + made->own.parts;
    out->least = out->bias + made->own.bias;
    out->kept = out->least + made->own.least;
    out->workspace = out->kept + made->own.kept;
}

static void *data_of(const tn_run *run, launch *l, dnn_slot *slot)
{
    switch (slot->from) {
    case DNN_FROM_SCALE: return &l->scale;
    case DNN_FROM_CAP: return &l->cap;
    case DNN_FROM_FLOAT: return &slot->number.real;
    case DNN_FROM_WHOLE: return &slot->number.whole;
    case DNN_FROM_TABLE: return l->table;
    case DNN_FROM_SUMS: return l->sums;
    case DNN_FROM_PARTS: return l->parts;
    case DNN_FROM_BIAS: return l->bias;
    case DNN_FROM_LEAST: return l->least;
    case DNN_FROM_KEPT: return l->kept;
    case DNN_FROM_GAIN: return &l->gain;
    default: break;
    }
    if (slot->from <= DNN_FROM_TABLES)
        return l->table + (uint64_t)(DNN_FROM_TABLES - slot->from) * l->made->own.each;
    if (slot->from <= DNN_FROM_SECOND)
        return (char *)tn_operand(run, DNN_FROM_SECOND - slot->from) + sizeof(int32_t);
    return tn_operand(run, slot->from);
}

static tn_status check_execution(const tn_run *run, const cuda_scope *scope, dnn_status code,
                                 tn_error *err)
{
    static const char call[] = "cudnnBackendExecute";
    return cuda_blame(scope, dnn_check(run->library, code, call, err), call, err);
}

static tn_status execute(const tn_run *run, const cuda_scope *scope, launch *l, dnn_step *step,
                         dnn_handle handle, tn_error *err)
{
    const cuda_dnn *dnn = l->dnn;
    int64_t ids[DNN_SLOTS_MOST];
    void *data[DNN_SLOTS_MOST];
    dnn_desc pack = NULL;
    for (int32_t i = 0; i < step->slots; i++) {
        ids[i] = step->slot[i].id;
        data[i] = data_of(run, l, &step->slot[i]);
    }
    dnn_status code = dnn->desc_create(DNN_PACK, &pack);
    if (!code)
        code = dnn->set(pack, DNN_PACK_IDS, DNN_TYPE_I64, step->slots, ids);
    if (!code)
        code = dnn->set(pack, DNN_PACK_POINTERS, DNN_TYPE_POINTER, step->slots, data);
    if (!code)
        code = dnn->set(pack, DNN_PACK_WORKSPACE, DNN_TYPE_POINTER, 1, &l->workspace);
    if (!code)
        code = dnn->finalize(pack);
    if (!code)
        code = dnn->execute(handle, step->plan, pack);
    tn_status status = check_execution(run, scope, code, err);
    if (pack)
        (void)dnn->desc_destroy(pack);
    return status;
}

/* Writes what must be in memory before the steps run. */
static tn_status fill_workspace(const tn_run *run, const cuda_scope *scope, const launch *l,
                                tn_error *err)
{
    const tn_attention_op *at = TN_PARAMS(run->op, attention);
    const cuda_driver *driver = &scope->self->driver;
    const dnn_own *own = &l->made->own;
    cu_result code = CUDA_SUCCESS;
    if (own->table > 0 && !(run->op->uses & TN_ATTENTION_USES_PACKED))
        code = driver->fill_32((cu_deviceptr)(uintptr_t)l->table, (unsigned)at->queries,
                               (size_t)at->batch, run->stream);
    if (!code && own->parts > 0 && l->made->clears)
        code = driver->fill_32((cu_deviceptr)(uintptr_t)l->parts, 0,
                               (size_t)own->parts / sizeof(uint32_t), run->stream);
    tn_status status = cuda_check(scope, code, "cuMemsetD32Async", err);
    return !status && l->made->keeps ? dnn_keeper_run(run, l->made->keeps, l->kept, err) : status;
}

static tn_status queue(const tn_run *run, const cuda_scope *scope, dnn_made *made, tn_error *err)
{
    cuda_dnn *dnn = run->library;
    dnn_lease *lease = NULL;
    launch l;
    tn_status status = dnn_handle_take(dnn, scope, &lease, err);
    if (status)
        return status;
    begin_launch(run, made, &l);
    status = fill_workspace(run, scope, &l, err);
    if (!status)
        status = check_execution(run, scope, dnn->set_stream(lease->handle, run->stream), err);
    for (int32_t i = 0; i < made->steps && !status; i++)
        status = execute(run, scope, &l, &made->step[i], lease->handle, err);
    if (!status && made->ends)
        status = dnn_empty_run(run, made->ends, err);
    dnn_handle_give(dnn, scope, lease);
    return status;
}

tn_status dnn_run(const tn_run *run, tn_error *err)
{
    dnn_ready *plan = run->plan;
    cuda_scope scope;
    tn_status status = cuda_enter(run->platform, run->device, &scope, err);
    if (status)
        return status;
    mtx_lock(&plan->lock);
    status = queue(run, &scope, &plan->made, err);
    mtx_unlock(&plan->lock);
    cuda_leave(&scope);
    return status;
}
