#include "request.h"

#include "base/words.h"
#include "dispatch/judge.h"
#include "dispatch/policy.h"
#include "names.h"
#include "settings/context.h"

static const char where[] = "attention.backend";
static const char none_at_all[] = "no_attention";

enum { ORIGIN = 128 };

/* Returns the backend name that an op requests; NULL if none. */
static const char *requested_name(const tn_op *op)
{
    const tn_attention_op *at = tn_op_attention(op);
    return at && at->backend ? tni_backend_name(at->backend) : NULL;
}

void tni_backend_request_find(const tni_question *question, tni_backend_request *out)
{
    const tni_rules *rules = question->context->rules;
    const char *asked = requested_name(question->op);
    *out = (tni_backend_request){.strength = TN_PERMIT};
    if (asked)
        *out = (tni_backend_request){.strength = TN_REQUIRE, .count = 1, .names = {asked}};
    for (size_t i = 0; !asked && i < tni_rules_count(rules); i++) {
        const tni_rule *rule = tni_rules_at(rules, i);
        if (rule->setting != TN_SETTING_ATTENTION_BACKEND || rule->shadowed ||
            rule->strength == TN_PERMIT || out->count == TNI_REQUESTED_MOST)
            continue;
        out->strength = rule->strength;
        if (!rule->selector.open)
            out->names[out->count++] = rule->selector.name;
    }
}

bool tni_backend_request_is_none(const tni_backend_request *request)
{
    return request->strength == TN_REQUIRE && request->count == 1 &&
           tni_words_same(request->names[0], none_at_all);
}

static bool is_attention(const tni_question *question)
{
    return tni_op_class_of(question->op->kind)->group == TNI_OPS_ATTENTION;
}

/* Writes the origin of the request: "attention.backend (environment: TENON_ATTENTION_BACKEND)",
 * "the problem". */
static void write_origin(const tni_question *question, char *out, size_t size)
{
    tn_origin origin = {.struct_size = sizeof origin};
    if (requested_name(question->op)) {
        tn_text_fit(out, size, "the problem");
        return;
    }
    (void)tn_setting_origin(question->context, TN_SETTING_ATTENTION_BACKEND, &origin, NULL);
    snprintf(out, size, "attention.backend (%.100s)", origin.text);
}

/* Fails with TN_NOT_FOUND for an unknown name in attention.backend, with TN_INVALID_ARGUMENT if
 * NO_ATTENTION is combined with other names or is not required. */
static tn_status check_request(const tni_question *question, tn_error *err)
{
    tni_backend_request request;
    if (!is_attention(question))
        return TN_OK;
    tni_backend_request_find(question, &request);
    for (size_t i = 0; i < request.count; i++) {
        if (tni_words_same(request.names[i], none_at_all) && !tni_backend_request_is_none(&request))
            return tn_fail(
                err, TN_INVALID_ARGUMENT, 0, where,
                "attention.backend: NO_ATTENTION must be required and cannot be combined "
                "with other names");
        if (!tni_backend_is_known(request.names[i]))
            return tni_backend_unknown(request.names[i], where, err);
    }
    return TN_OK;
}

/* Refuses every attention if none is requested, and kernels without the name that the op
 * requests. */
static bool permit_candidate(const tni_question *question, tni_contender *to)
{
    const char *asked = requested_name(question->op);
    tni_backend_request request;
    char origin[ORIGIN];
    if (!is_attention(question))
        return true;
    tni_backend_request_find(question, &request);
    if (tni_backend_request_is_none(&request)) {
        write_origin(question, origin, sizeof origin);
        return tni_refuse(&to->why, TN_REFUSE_RULE, "NO_ATTENTION", 1, 0,
                          "%s requests NO_ATTENTION", origin);
    }
    return !asked || tni_backend_is(&to->kernel->names, asked) ||
           tni_refuse(&to->why, TN_REFUSE_RULE, "backend", 1, 0, "the problem requests %s", asked);
}

static bool asks_for_candidate(const tni_question *question, const tni_contender *candidate)
{
    const char *asked = requested_name(question->op);
    return asked && tni_backend_is(&candidate->kernel->names, asked);
}

static bool has_kernel(const tni_choice *choice, const char *name)
{
    for (size_t i = 0; i < choice->count; i++) {
        if (tni_backend_is(&choice->candidates[i].kernel->names, name))
            return true;
    }
    return false;
}

/* Lists the numbered names that kernels here have: "FLASH_ATTN, TORCH_SDPA". */
static void list_present(const tni_choice *choice, char *out, size_t size)
{
    const char *names[TN_BACKEND_COUNT];
    size_t count = 0;
    for (int32_t i = 1; i < TN_BACKEND_COUNT; i++) {
        if (has_kernel(choice, tni_backend_name(i)))
            names[count++] = tni_backend_name(i);
    }
    tni_words_join(names, count, out, size);
}

/* Fails if nothing is admitted because of the request. */
static tn_status explain_refusal(const tni_question *question, const tni_choice *choice,
                                 tn_error *err)
{
    tni_backend_request request;
    char present[128], origin[ORIGIN];
    tni_buffer text = {0};
    tn_status status = TN_OK;
    if (!is_attention(question))
        return TN_OK;
    tni_backend_request_find(question, &request);
    write_origin(question, origin, sizeof origin);
    tni_problem_write(question->op, question->device->id, &text);
    bool missing = request.strength == TN_REQUIRE && request.count > 0 &&
                   question->op->kind != TN_OP_ATTENTION_MERGE;
    for (size_t i = 0; i < request.count; i++)
        missing = missing && !has_kernel(choice, request.names[i]);
    list_present(choice, present, sizeof present);
    if (tni_backend_request_is_none(&request))
        status = tn_fail(err, TN_REFUSED, 0, where,
                         "attention is disabled: %s requests NO_ATTENTION; %.200s", origin,
                         tni_buffer_text(&text));
    else if (missing)
        status =
            tn_fail(err, TN_UNSUPPORTED, 0, where,
                    "no kernel on %s has the name %s, which %s requests; available: %s; %.200s",
                    question->device->platform->name, tni_backend_spelling(request.names[0]),
                    origin, present[0] ? present : "none", tni_buffer_text(&text));
    tni_buffer_release(&text);
    return status;
}

static void name_row(const tn_kernel_row *row, tni_candidate *to)
{
    to->op_other = tni_backend_op(row);
    to->backend_others = tni_backend_others(row);
}

const tni_policy tni_backend_names_policy = {.name = "backend names",
                                             .name_row = name_row,
                                             .check = check_request,
                                             .permit = permit_candidate,
                                             .asks_for = asks_for_candidate,
                                             .refused = explain_refusal};
