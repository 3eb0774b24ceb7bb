/* Several products at once: each is decided by the normal path; those with the same kernel run
 * together. */
#include "base/alloc.h"
#include "dispatch/plan.h"
#include "matmul.h"
#include "policy/admission/sample.h"
#include "settings/context.h"
#include "tenon/dtype.h"
#include "tenon/matmul.h"

static const char face[] = "tn_matmul_grouped";

/* One product. A product without elements has no plan. */
typedef struct group {
    tni_problem problem;
    tni_lease lease;
    bool done;
} group;

typedef struct groups {
    const tn_context *context;
    const tn_matmul_args *const *args;
    group *group;
    size_t count;
    bool recorded;
    const tni_plan **plans;       /* of the products that run together, with their problems */
    const tni_problem **problems; /* of all products, until some are run together */
    size_t *places;               /* indices of these in `group` */
} groups;

static tn_status fail_group(size_t index, tn_status status, const tn_error *said, tn_error *err)
{
    return tn_fail(err, status, said->native_code, said->where, "groups[%zu]: %s", index,
                   said->message);
}

/* Checks the properties that must be the same for all. */
static tn_status check_alike(const groups *all, size_t index, tn_error *err)
{
    static const char *const names[] = {"a", "b", "out"};
    const tni_problem *one = &all->group[index].problem, *first = &all->group[0].problem;
    if (all->args[index]->workspace || all->args[index]->workspace_bytes)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, face,
                       "groups[%zu]: workspace: expected NULL: groups share the stream's", index);
    if (all->args[index]->stream != all->args[0]->stream)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, face,
                       "groups[%zu]: stream: expected that of groups[0]", index);
    if (one->device != first->device)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, face,
                       "groups[%zu]: expected tensors on %s, as those of groups[0], got %s", index,
                       first->device->id, one->device->id);
    for (int32_t i = TN_MATMUL_A; i <= TN_MATMUL_OUT; i++) {
        const tn_dtype needed = first->op.operand[i].dtype, found = one->op.operand[i].dtype;
        if (found != needed)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, face,
                           "groups[%zu]: %s: expected the dtype of groups[0], %s, got %s", index,
                           names[i], tn_dtype_name(needed), tn_dtype_name(found));
    }
    return TN_OK;
}

static tn_status make_problems(groups *all, tn_error *err)
{
    tn_error said = {0};
    tn_status status = TN_OK;
    for (size_t i = 0; i < all->count && !status; i++) {
        status = tni_matmul_make(all->args[i], &all->group[i].problem, &said);
        if (status)
            return fail_group(i, status, &said, err);
        all->problems[i] = &all->group[i].problem;
        status = check_alike(all, i, err);
    }
    return status ? status : tni_matmul_apart(all->args, all->problems, all->count, face, err);
}

static tn_status take_plans(groups *all, tn_error *err)
{
    tn_error said = {0};
    for (size_t i = 0; i < all->count; i++) {
        tni_problem *problem = &all->group[i].problem;
        const tni_question question = {.context = all->context,
                                       .op = &problem->op,
                                       .device = problem->device,
                                       .recorded = all->recorded};
        TN_PARAMS_MUTABLE(&problem->op, matmul)->grouped = !all->recorded;
        if (tni_op_is_empty(&problem->op))
            continue;
        tn_status status = tni_lease_acquire(&question, false, &all->group[i].lease, &said);
        if (status)
            return fail_group(i, status, &said, err);
        tni_plan_fit(all->group[i].lease.plan, problem);
    }
    return TN_OK;
}

/* Runs product `from` together with all later ones of the same kernel. */
static tn_status run_together(groups *all, size_t from, tn_error *err)
{
    const tni_kernel *kernel = all->group[from].lease.plan->kernel;
    tni_many many = {all->plans, all->problems, 0};
    size_t failed = 0;
    tn_error said = {0};
    for (size_t i = from; i < all->count; i++) {
        group *it = &all->group[i];
        if (it->done || !it->lease.plan || it->lease.plan->kernel != kernel)
            continue;
        all->plans[many.count] = it->lease.plan;
        all->places[many.count] = i;
        all->problems[many.count++] = &it->problem;
        it->done = true;
    }
    tn_status status = tni_plan_run_many(&many, all->context, all->args[0]->stream, &failed, &said);
    if (!status)
        return TN_OK;
    if (failed < many.count || many.count == 1)
        return fail_group(all->places[many.count == 1 ? 0 : failed], status, &said, err);
    return tn_fail(err, status, said.native_code, said.where,
                   "groups[%zu] to groups[%zu], %zu at once: %s", from, all->places[many.count - 1],
                   many.count, said.message);
}

/* If some calls are sampled, or calls are recorded, each product runs separately. */
static tn_status run_all(groups *all, tn_error *err)
{
    const bool apart = all->recorded || all->context->value[TN_SETTING_DEBUG_SAMPLE] > 0;
    const tni_call_args args = {.stream = all->args[0]->stream};
    tn_error said = {0};
    tn_status status = TN_OK;
    for (size_t i = 0; i < all->count && !status; i++) {
        group *it = &all->group[i];
        const tni_plan *plan = it->lease.plan;
        if (it->done || !plan)
            continue;
        if (tni_kernel_takes_many(plan->kernel) && !apart)
            status = run_together(all, i, err);
        else if ((status = tni_plan_run(plan, all->context, &it->problem, &args, &said)))
            return fail_group(i, status, &said, err);
    }
    return status;
}

static tn_status make_room(groups *all, tn_error *err)
{
    all->group = tni_alloc_zeroed(all->count, sizeof *all->group);
    all->plans = tni_alloc_zeroed(all->count, sizeof *all->plans);
    all->problems = tni_alloc_zeroed(all->count, sizeof *all->problems);
    all->places = tni_alloc_zeroed(all->count, sizeof *all->places);
    return all->group && all->plans && all->problems && all->places
               ? TN_OK
               : tni_no_memory(err, face, "the groups");
}

static void end(groups *all)
{
    for (size_t i = 0; all->group && i < all->count; i++) {
        if (all->group[i].lease.plan)
            tni_lease_end(&all->group[i].lease);
    }
    tni_release(all->group);
    tni_release(all->plans);
    tni_release(all->problems);
    tni_release(all->places);
}

tn_status tn_matmul_grouped(const tn_context *context, const tn_matmul_args *const *args,
                            size_t count, tn_error *err)
{
    groups all = {.context = tni_context_or_current(context), .args = args, .count = count};
    if (count == 0)
        return TN_OK;
    if (!args)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, face, "groups is NULL, and there are %zu",
                       count);
    tn_status status = make_room(&all, err);
    if (!status)
        status = make_problems(&all, err);
    if (!status) {
        all.recorded = tni_is_recorded(args[0]->stream, all.group[0].problem.device);
        status = take_plans(&all, err);
    }
    if (!status)
        status = run_all(&all, err);
    end(&all);
    return status;
}
