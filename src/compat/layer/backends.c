#include "backends.h"

#include "base/alloc.h"
#include "base/words.h"
#include "compat/torch/conditions.h"
#include "policy/backend_names/names.h"
#include "policy/backend_names/request.h"

bool tni_backend_is_supported(const tni_backend_bounds *bounds, int32_t number)
{
    if (!bounds || !bounds->supported)
        return true;
    for (size_t i = 0; i < bounds->supported_count; i++) {
        if (bounds->supported[i] == number)
            return true;
    }
    return false;
}

/* Returns the best candidate with the name: the first admitted one, or the one that passed the most
 * tests. */
static const tni_contender *best_candidate(const tni_choice *choice, const char *name)
{
    const tni_contender *best = NULL;
    for (size_t i = 0; i < choice->count; i++) {
        const tni_contender *v = &choice->candidates[i];
        if (!tni_backend_is(&v->kernel->names, name))
            continue;
        if (i < choice->admitted)
            return v;
        if (!best || tni_refusal_progress(v->why.code) > tni_refusal_progress(best->why.code))
            best = v;
    }
    return best;
}

/* Whether a kernel of the same name computes the gradients. */
static bool has_gradients(const tni_backend_bounds *bounds, const char *name)
{
    if (!bounds || !bounds->backward)
        return true;
    for (size_t i = 0; i < bounds->backward->admitted; i++) {
        if (tni_backend_is(&bounds->backward->candidates[i].kernel->names, name))
            return true;
    }
    return false;
}

static bool is_of_family(const char *name)
{
    for (int32_t sdp = 0; sdp < TNI_SDP_COUNT; sdp++) {
        if (tni_words_same(tni_sdp_word(sdp), name))
            return true;
    }
    return false;
}

/* Picks the contender under the name, if it has the name and the bounds permit it. */
static bool pick_by_name(const tni_contender *v, const char *name, const tni_backend_bounds *bounds,
                         tni_backend_pick *out)
{
    int32_t number = is_of_family(name) ? TN_BACKEND_TORCH_SDPA : tni_backend_number(name);
    const char *own = number ? tni_backend_name(number) : v->kernel->names.backend;
    if (!tni_backend_is(&v->kernel->names, name) || !tni_backend_is_supported(bounds, number) ||
        !has_gradients(bounds, own))
        return false;
    *out = (tni_backend_pick){v, own, number};
    return true;
}

static bool pick_contender(const tni_contender *v, const tni_backend_request *request,
                           const tni_backend_bounds *bounds, tni_backend_pick *out)
{
    bool asks = request->strength == TN_REQUIRE || request->strength == TN_PREFER;
    for (size_t i = 0; asks && i < request->count; i++) {
        if (pick_by_name(v, request->names[i], bounds, out))
            return true;
    }
    if (request->strength == TN_REQUIRE && request->count > 0)
        return false;
    for (int32_t i = 1; i < TN_BACKEND_COUNT; i++) {
        const char *name = tni_backend_name(i);
        if (!tni_backend_is_borrowed(&v->kernel->names, name) && pick_by_name(v, name, bounds, out))
            return true;
    }
    return pick_by_name(v, v->kernel->names.backend, bounds, out);
}

void tni_backend_pick_of(const tni_question *question, const tni_choice *choice,
                         const tni_backend_bounds *bounds, tni_backend_pick *out)
{
    tni_backend_request request;
    *out = (tni_backend_pick){0};
    tni_backend_request_find(question, &request);
    for (size_t i = 0; i < choice->admitted; i++) {
        if (pick_contender(&choice->candidates[i], &request, bounds, out))
            return;
    }
}

/* A list under construction. */
typedef struct draft {
    const tni_question *question;
    const tni_choice *choice;
    const tni_backend_bounds *bounds;
    tni_backend_pick pick;
    bool none_requested; /* NO_ATTENTION */
    tni_backends *to;
} draft;

static bool is_picked(const draft *d, const tn_backend *row)
{
    if (!d->pick.taken)
        return false;
    return row->family[0] ? tni_backend_sdp(&d->pick.taken->kernel->names) == row->number
                          : tni_words_same(d->pick.name, row->name);
}

static int32_t verdict_of(const draft *d, const tn_backend *row, const tni_contender *v)
{
    bool could = v->verdict == TN_VERDICT_CHOSEN || v->verdict == TN_VERDICT_ADMITTED;
    if (!could)
        return v->verdict;
    return is_picked(d, row) ? TN_VERDICT_CHOSEN : TN_VERDICT_ADMITTED;
}

/* Applies the layer's own restrictions to a row that kernels admit. */
static bool bounds_permit(const draft *d, const tn_backend *row, tn_refusal *why)
{
    int32_t number = row->family[0] ? TN_BACKEND_TORCH_SDPA : row->number;
    if (!tni_backend_is_supported(d->bounds, number))
        return tni_refuse(why, TN_REFUSE_FEATURE, "layer", 1, 0, "the layer does not support it");
    return has_gradients(d->bounds, row->family[0] ? row->family : row->name) ||
           tni_refuse(why, TN_REFUSE_FEATURE, "gradient", 1, 0,
                      "the layer needs gradients, and no kernel computes them");
}

static void show_contender(const draft *d, tn_backend *row, tn_refusal *why,
                           const tni_contender *best)
{
    const tni_contender *v = is_picked(d, row) ? d->pick.taken : best;
    row->kernel = v->kernel->row->name;
    row->verdict = verdict_of(d, row, v);
    if (v->why.code)
        *why = v->why;
    else if (!bounds_permit(d, row, why))
        row->verdict = TN_VERDICT_REFUSED;
}

/* Returns the platforms that alone can have this backend of the family; NULL if all can. */
static const char *owners_of(int32_t sdp)
{
    static const char *const owners[TNI_SDP_COUNT] = {[TN_SDP_MEM_EFFICIENT] = "cuda and rocm",
                                                      [TN_SDP_CUDNN] = "cuda",
                                                      [TN_SDP_OVERRIDEABLE] =
                                                          "out-of-tree platforms"};
    return owners[sdp];
}

static void explain_missing(const draft *d, const tn_backend *row, tn_refusal *why)
{
    const char *about = row->family[0] ? NULL : tni_backend_about(row->number);
    const char *other = row->family[0] ? NULL : tni_backend_elsewhere(row->number);
    const char *platform = d->question->device->platform->name;
    const char *owners = row->family[0] ? owners_of(row->number) : NULL;
    if (other) {
        (void)tni_refuse(why, TN_REFUSE_LIBRARY, "kernel", 1, 0, "computed by %s instead (%s)",
                         other, about);
        return;
    }
    if (owners && !strstr(owners, platform)) {
        (void)tni_refuse(why, TN_REFUSE_LIBRARY, "kernel", 1, 0,
                         "no kernel on %s: only %s can have it", platform, owners);
        return;
    }
    (void)tni_refuse(why, TN_REFUSE_LIBRARY, "kernel", 1, 0, "no kernel on %s yet%s%s%s", platform,
                     about ? " (" : "", about ? about : "", about ? ")" : "");
}

/* NO_ATTENTION has no kernel, and needs none. */
static void show_none(const draft *d, tn_backend *row, tn_refusal *why)
{
    row->verdict = d->none_requested ? TN_VERDICT_CHOSEN : TN_VERDICT_REFUSED;
    if (!d->none_requested)
        (void)tni_refuse(why, TN_REFUSE_RULE, "request", 1, 0,
                         "used only on request: attention.backend=NO_ATTENTION");
}

/* Returns the index of a row's report; -1 if none. */
static int32_t report_of(const tn_backend *row)
{
    int32_t sdp = row->family[0]                         ? row->number
                  : row->number == TN_BACKEND_FLASH_ATTN ? TN_SDP_FLASH
                                                         : -1;
    return sdp == TN_SDP_FLASH ? 0 : sdp == TN_SDP_MEM_EFFICIENT ? 1 : sdp == TN_SDP_CUDNN ? 2 : -1;
}

/* Returns the first failing condition other than the missing kernel; NULL if none. */
static const tn_sdpa_check *first_failing(const tn_sdpa_report *report)
{
    for (size_t i = 1; i < report->count; i++) {
        if (report->checks[i].outcome == TN_SDPA_FAILS)
            return &report->checks[i];
    }
    return NULL;
}

/* If there is no kernel, reports PyTorch's conditions. */
static void explain_conditions(const draft *d, const tn_backend *row, tn_refusal *why)
{
    const char *platform = d->question->device->platform->name;
    if (!row->conditions)
        return;
    const tn_sdpa_check *fails = first_failing(row->conditions);
    if (!fails) {
        (void)tni_refuse(why, TN_REFUSE_LIBRARY, "kernel", 1, 0,
                         "no kernel on %s yet; PyTorch's other conditions hold", platform);
        return;
    }
    const tn_refusal *said = &fails->why;
    (void)tni_refuse(why, said->code, said->what, said->needed, said->found,
                     "%.160s; and no kernel on %s yet", said->text, platform);
    tni_refusal_complete(why);
}

static void add_row(draft *d, const char *name, const char *of_family, int32_t number)
{
    if (d->to->count == TNI_BACKENDS_MOST)
        return;
    tn_backend *row = &d->to->rows[d->to->count];
    tn_refusal *why = &d->to->why[d->to->count++];
    *why = (tn_refusal){.struct_size = sizeof *why};
    *row = (tn_backend){.struct_size = sizeof *row,
                        .name = name,
                        .family = of_family,
                        .kernel = "",
                        .number = number,
                        .verdict = TN_VERDICT_REFUSED};
    const int32_t report = d->to->reports ? report_of(row) : -1;
    const tni_contender *best = best_candidate(d->choice, name);
    row->conditions = report < 0 ? NULL : &d->to->reports[report];
    if (!of_family[0] && number == TN_BACKEND_NO_ATTENTION)
        show_none(d, row, why);
    else if (best)
        show_contender(d, row, why, best);
    else {
        explain_missing(d, row, why);
        explain_conditions(d, row, why);
    }
    row->why = why->code ? why : NULL;
}

static void add_unnumbered(draft *d)
{
    for (size_t i = 0; i < d->choice->count; i++) {
        const tni_kernel *kernel = d->choice->candidates[i].kernel;
        if (kernel->names.backend[0] && !kernel->reference &&
            !tni_backends_find(d->to, kernel->names.backend))
            add_row(d, kernel->names.backend, "", TN_BACKEND_NONE);
    }
}

/* Evaluates PyTorch's conditions, for the platforms that have them. */
static tn_status evaluate_conditions(draft *d, tn_error *err)
{
    static const int32_t of[] = {TN_SDP_FLASH, TN_SDP_MEM_EFFICIENT, TN_SDP_CUDNN};
    const tni_question *q = d->question;
    int32_t kind = q->device->platform->known->kind;
    tn_sdpa_params params;
    bool training = q->op->kind == TN_OP_ATTENTION_BACKWARD || (d->bounds && d->bounds->backward);
    if ((kind != TN_PLATFORM_CUDA && kind != TN_PLATFORM_ROCM) ||
        !tni_sdpa_of_op(q->op, q->device, training, &params))
        return TN_OK;
    d->to->reports = tni_alloc_zeroed(3, sizeof *d->to->reports);
    if (!d->to->reports)
        return tni_no_memory(err, "tn_explain", "conditions");
    for (int32_t i = 0; i < 3; i++) {
        d->to->reports[i].struct_size = sizeof d->to->reports[i];
        tni_sdpa_evaluate(q->context, &params, of[i], &d->to->reports[i]);
    }
    return TN_OK;
}

tn_status tni_backends_make(const tni_question *question, const tni_choice *choice,
                            const tni_backend_bounds *bounds, tni_backends **out, tn_error *err)
{
    tni_backend_request request;
    draft d = {
        .question = question, .choice = choice, .bounds = bounds, .to = tni_alloc(sizeof *d.to)};
    if (!d.to)
        return tni_no_memory(err, "tn_explain", "the backends");
    d.to->count = 0;
    d.to->reports = NULL;
    tni_backend_request_find(question, &request);
    d.none_requested = tni_backend_request_is_none(&request);
    tni_backend_pick_of(question, choice, bounds, &d.pick);
    tn_status status = evaluate_conditions(&d, err);
    for (int32_t i = 1; i < TN_BACKEND_COUNT && !status; i++) {
        add_row(&d, tni_backend_name(i), "", i);
        for (int32_t sdp = 0; i == TN_BACKEND_TORCH_SDPA && sdp < TNI_SDP_COUNT; sdp++)
            add_row(&d, tni_sdp_word(sdp), "TORCH_SDPA", sdp);
    }
    if (status) {
        tni_backends_release(d.to);
        return status;
    }
    add_unnumbered(&d);
    *out = d.to;
    return TN_OK;
}

void tni_backends_release(tni_backends *backends)
{
    if (!backends)
        return;
    tni_release(backends->reports);
    tni_release(backends);
}

void tni_backends_unpick(tni_backends *backends)
{
    for (size_t i = 0; backends && i < backends->count; i++) {
        if (backends->rows[i].verdict == TN_VERDICT_CHOSEN)
            backends->rows[i].verdict = TN_VERDICT_ADMITTED;
    }
}

const tn_backend *tni_backends_find(const tni_backends *backends, const char *name)
{
    for (size_t i = 0; i < backends->count; i++) {
        if (tni_words_same(backends->rows[i].name, name))
            return &backends->rows[i];
    }
    return NULL;
}

static tn_status make_for_op(const tni_question *question, const tni_choice *choice,
                             const tni_backend_bounds *bounds, tni_backends **out, tn_error *err)
{
    *out = NULL;
    return tn_op_attention(question->op) ? tni_backends_make(question, choice, bounds, out, err)
                                         : TN_OK;
}

static size_t count_backends(const tni_backends *backends)
{
    return backends ? backends->count : 0;
}

static const tn_backend *backend_at(const tni_backends *backends, size_t index)
{
    return index < count_backends(backends) ? &backends->rows[index] : NULL;
}

static const tni_backend_table table = {make_for_op, tni_backends_release, tni_backends_unpick,
                                        count_backends, backend_at};

const tni_policy tni_backends_policy = {.name = "backends", .backends = &table};
