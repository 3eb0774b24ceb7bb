/* Attention whose keys grow from call to call, as in decoding: one plan of Tenon's has cuDNN's plans of the latest
 * numbers of keys, whose kernels are compiled once for all of them. */
#include "attention.h"
#include "made.h"

/* So many numbers of keys are kept; graphs that differ in which bounds they have share no kernels. */
enum { KEPT = 16, FORMS = 16 };

typedef struct shaped {
    tn_op op; /* whose layouts it is for */
    dnn_made made;
    uint64_t used; /* when it was last */
} shaped;

typedef struct dnn_growing {
    mtx_t lock;
    bool locks;
    uint64_t turn;
    dnn_desc kernels[FORMS];
    shaped kept[KEPT];
} dnn_growing;

static bool has_layouts(const tn_op *a, const tn_op *b)
{
    const tn_attention_op *x = &a->as.attention, *y = &b->as.attention;
    if (x->keys != y->keys || x->queries != y->queries || x->batch != y->batch)
        return false;
    for (int32_t i = 0; i < a->count; i++) {
        const tn_layout *of = &a->operand[i], *other = &b->operand[i];
        if (of->dtype != other->dtype || of->rank != other->rank)
            return false;
        for (int32_t d = 0; d < of->rank; d++) {
            if (of->shape[d] != other->shape[d] || of->stride[d] != other->stride[d])
                return false;
        }
    }
    return true;
}

/* Which operations its graph has, among those of one plan. */
static int32_t form_of(const tn_op *op)
{
    dnn_shape shape;
    (void)dnn_shape_of(op, &shape, NULL); /* it was admitted */
    return shape.right | shape.left << 1 | shape.bottom << 2 | (shape.right_by != 0) << 3;
}

/* What it compiles and loads a capture that the call is part of may not see. */
static tn_status replace(const tn_run *run, const cuda_scope *scope, dnn_growing *plan, shaped *at,
                         tn_error *err)
{
    cuda_scope aside = {.self = scope->self, .device = scope->device};
    at->used = 0;
    dnn_made_end(run, &at->made);
    at->op = *run->op;
    cuda_relax(&aside);
    tn_status status = dnn_made_make(run, scope, &plan->kernels[form_of(run->op)], &at->made, err);
    cuda_leave(&aside);
    return status;
}

/* With the lock held: the one for the run's shape, made where it is not there, in place of what was not used for
 * longest. */
static tn_status find(const tn_run *run, const cuda_scope *scope, dnn_growing *plan, dnn_made **out,
                      tn_error *err)
{
    shaped *oldest = &plan->kept[0], *found = NULL;
    tn_status status = TN_OK;
    for (int32_t i = 0; i < KEPT && !found; i++) {
        shaped *at = &plan->kept[i];
        found = at->used && has_layouts(&at->op, run->op) ? at : NULL;
        oldest = at->used < oldest->used ? at : oldest;
    }
    if (!found) {
        found = oldest;
        status = replace(run, scope, plan, found, err);
    }
    if (status)
        return status;
    found->used = ++plan->turn;
    *out = &found->made;
    return TN_OK;
}

void dnn_growing_release(const tn_run *run, void *any)
{
    const cuda_dnn *dnn = run->library;
    dnn_growing *plan = any;
    for (int32_t i = 0; i < KEPT; i++)
        dnn_made_end(run, &plan->kept[i].made);
    for (int32_t i = 0; i < FORMS; i++) {
        if (plan->kernels[i])
            (void)dnn->desc_destroy(plan->kernels[i]);
    }
    if (plan->locks)
        mtx_destroy(&plan->lock);
    run->host->release(run->host->self, plan);
}

static tn_status find_on_device(const tn_run *run, dnn_growing *plan, tn_error *err)
{
    cuda_scope scope;
    dnn_made *made;
    tn_status status = cuda_enter(run->platform, run->device, &scope, err);
    if (status)
        return status;
    status = find(run, &scope, plan, &made, err);
    cuda_leave(&scope);
    return status;
}

tn_status dnn_growing_plan(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    dnn_growing *plan = run->host->alloc(run->host->self, sizeof *plan, _Alignof(dnn_growing));
    if (!plan)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, run->row->name, "no memory for a plan");
    memset(plan, 0, sizeof *plan);
    plan->locks = mtx_init(&plan->lock, mtx_plain) == thrd_success;
    tn_status status =
        plan->locks ? find_on_device(run, plan, err)
                    : tn_fail(err, TN_OUT_OF_MEMORY, 0, run->row->name, "no memory for a lock");
    if (status) {
        dnn_growing_release(run, plan);
        return status;
    }
    *out = plan;
    *out_bytes = sizeof *plan + FORMS * DNN_COMPILED;
    return TN_OK;
}

tn_status dnn_growing_run(const tn_run *run, tn_error *err)
{
    dnn_growing *plan = run->plan;
    cuda_scope scope;
    dnn_made *made = NULL;
    tn_status status = cuda_enter(run->platform, run->device, &scope, err);
    if (status)
        return status;
    mtx_lock(&plan->lock);
    status = find(run, &scope, plan, &made, err);
    if (!status)
        status = dnn_made_queue(run, &scope, made, err);
    mtx_unlock(&plan->lock);
    cuda_leave(&scope);
    return status;
}
