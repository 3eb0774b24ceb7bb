/* Products of elements, and of complex numbers by calls for real ones. */
#include "einsum_nest.h"

#include "op/element.h"
#include "tenon/elementwise.h"
#include "tenon/matmul.h"

#include <string.h>

/* Products of a matrix product from which on it is a real one: with fewer, more calls take longer. */
enum { PRODUCTS_LEAST = 512 };

/* Whether no kernel is selected for a call; with `reference`, also if the reference is. */
static bool lacks_kernel(tn_status status, tn_decision *decision, bool reference)
{
    const tn_candidate *chosen = status ? NULL : tn_decision_chosen(decision);
    const char *end = chosen ? strrchr(chosen->kernel, '.') : NULL;
    const bool lacks = !status && (!chosen || (reference && end && strcmp(end, ".ref") == 0));
    tn_decision_release(decision);
    return lacks;
}

uint32_t tni_einsum_find_by_parts(const tn_context *context, const tn_tensor *of)
{
    enum { ALIGNED = 4096 };
    static int64_t shape[] = {64, 64}; /* stands for all large matrices */
    tn_tensor t[TNI_EINSUM_TENSORS];
    tn_decision *decision = NULL;
    tn_error ignored = {0};
    if (!tni_dtype_is_complex(of->dtype))
        return 0;
    for (int32_t i = 0; i < TNI_EINSUM_TENSORS; i++) { /* an explanation reads no data */
        t[i] = (tn_tensor){.data = (void *)(uintptr_t)(64 * ALIGNED * (i + 1)),
                           .device_type = of->device_type,
                           .device_id = of->device_id,
                           .ndim = 2,
                           .dtype = of->dtype,
                           .shape = shape};
    }
    const tn_binary_args *elements =
        TN_ARGS(binary, .in = &t[0], .other = &t[1], .out = &t[2], .kind = TN_BINARY_MUL);
    const tn_matmul_args *matrices = TN_ARGS(matmul, .a = &t[0], .b = &t[1], .out = &t[2]);
    tn_status status = tn_binary_explain(context, elements, &decision, &ignored);
    uint32_t found = lacks_kernel(status, decision, false) ? TNI_EINSUM_ELEMENTS : 0;
    decision = NULL;
    status = tn_matmul_explain(context, matrices, &decision, &ignored);
    const bool exact =
        of->dtype == TN_C128 ||
        tn_setting_resolved(context, TN_SETTING_MKLDNN_MATMUL_FP32_PRECISION) == TN_FP32_IEEE;
    if (lacks_kernel(status, decision, true) && exact)
        found |= TNI_EINSUM_MATRICES;
    return found;
}

static tn_status run_parts(tni_einsum_calls *calls, const tni_einsum_view *const *views,
                           int32_t count, const tni_einsum_part *parts, tni_einsum_act act,
                           tn_error *err)
{
    tni_einsum_nest *n = &calls->room->nest;
    tni_einsum_nest_make(calls, views, count, n);
    tni_einsum_nest_take_parts(n, parts);
    return tni_einsum_nest_run(calls, n, act, err);
}

/* Complex products by real ones: first those with a's real parts, then those with its imaginary parts, which are
 * added to them. */
static tn_status multiply_parts(tni_einsum_calls *calls, const tni_einsum_view *a,
                                const tni_einsum_view *b, const tni_einsum_view *to, tn_error *err)
{
    tni_einsum_view *more = &calls->room->copies[0];
    static const tni_einsum_part first[] = {TNI_EINSUM_REAL, TNI_EINSUM_BOTH, TNI_EINSUM_BOTH};
    static const tni_einsum_part second[] = {TNI_EINSUM_IMAGINARY, TNI_EINSUM_SWAPPED,
                                             TNI_EINSUM_BOTH};
    static const tni_einsum_part reals[] = {TNI_EINSUM_REAL, TNI_EINSUM_REAL};
    static const tni_einsum_part imaginaries[] = {TNI_EINSUM_IMAGINARY, TNI_EINSUM_IMAGINARY};
    const tni_einsum_list *const lists[] = {&to->dims};
    tn_status status = tni_einsum_view_make(calls, lists, 1, more, err);
    if (status)
        return status;
    const tni_einsum_view *const views[] = {a, b, to, a, b, more, to};
    status = run_parts(calls, views, 3, first, TNI_EINSUM_MULTIPLY, err);
    if (!status)
        status = run_parts(calls, views + 3, 3, second, TNI_EINSUM_MULTIPLY, err);
    if (!status)
        status = run_parts(calls, views + 5, 2, reals, TNI_EINSUM_MINUS, err);
    if (!status)
        status = run_parts(calls, views + 5, 2, imaginaries, TNI_EINSUM_PLUS, err);
    tni_einsum_view_free(calls, more);
    return status;
}

tn_status tni_einsum_multiply(tni_einsum_calls *calls, const tni_einsum_view *a,
                              const tni_einsum_view *b, const tni_einsum_view *to, tn_error *err)
{
    tni_einsum_nest *n = &calls->room->nest;
    const tni_einsum_view *const views[] = {a, b, to};
    if (calls->run->by_parts & TNI_EINSUM_ELEMENTS)
        return multiply_parts(calls, a, b, to, err);
    tni_einsum_nest_make(calls, views, 3, n);
    return tni_einsum_nest_run(calls, n, TNI_EINSUM_MULTIPLY, err);
}

bool tni_einsum_is_expanded(const tni_einsum_calls *calls, const tni_einsum_groups *g)
{
    return calls->run->by_parts & TNI_EINSUM_MATRICES &&
           tni_einsum_list_values(calls, &g->rows) * tni_einsum_list_values(calls, &g->columns) *
                   tni_einsum_list_values(calls, &g->sum) >=
               PRODUCTS_LEAST;
}

tn_status tni_einsum_expand(tni_einsum_calls *calls, const tni_einsum_view *from,
                            const tni_einsum_list *columns, tni_einsum_view *to, tn_error *err)
{
    static const tni_einsum_part across[] = {TNI_EINSUM_REAL, TNI_EINSUM_IMAGINARY};
    static const tni_einsum_part negated[] = {TNI_EINSUM_IMAGINARY, TNI_EINSUM_REAL};
    const tni_einsum_view *const views[] = {from, to};
    const uintptr_t row =
        (uintptr_t)tni_einsum_list_values(calls, columns) * (uintptr_t)calls->bytes;
    for (int32_t dim = 0; dim < to->dims.count - columns->count; dim++)
        to->stride[dim] *= 2;
    tn_status status = tni_einsum_copy(calls, from, to, err);
    to->at += row;
    if (!status)
        status = run_parts(calls, views, 2, across, TNI_EINSUM_COPY, err);
    if (!status)
        status = run_parts(calls, views, 2, negated, TNI_EINSUM_NEGATE, err);
    to->at -= row;
    return status;
}
