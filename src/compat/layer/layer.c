/* Which backend computes an attention layer: where the request comes from, its strength, and the
 * answer. */
#include "answers.h"
#include "backends.h"

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/words.h"
#include "dispatch/decision.h"
#include "dispatch/judge.h"
#include "op/fields.h"
#include "policy/backend_names/names.h"
#include "policy/backend_names/request.h"
#include "settings/context.h"
#include "tenon/dtype.h"

#include <inttypes.h>

static const char where[] = "tn_attention_backend";

/* A question in progress. */
typedef struct layer {
    const tn_attention_backend_args *args;
    tn_context *base;    /* reference counted: owns the names that a setting requests */
    tn_context *context; /* reference counted: `base` with the request of the call */
    tn_device *device;
    tn_op op, gradients; /* `gradients` for a layer that is trained */
    tni_choice *choice, *backward;
    tni_backend_bounds bounds;
    tni_backend_request request; /* the effective request; TN_PERMIT: none */
    int32_t from;                /* TN_BACKEND_FROM_... */
    char origin[256];
} layer;

static tn_status check_number(const char *name, int32_t number, int32_t least, tn_error *err)
{
    if (number >= least && number < TN_BACKEND_COUNT)
        return TN_OK;
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                   "%s: expected a backend number from %d to %d, got %d", name, (int)least,
                   TN_BACKEND_COUNT - 1, (int)number);
}

static tn_status check_supported(const tn_attention_backend_args *args, tn_error *err)
{
    tn_status status = TN_OK;
    if ((args->supported != NULL) != (args->supported_count > 0))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "expected both supported and supported_count, or neither; omit both to "
                       "permit all backends");
    for (size_t i = 0; i < args->supported_count && !status; i++)
        status = check_number("supported", args->supported[i], 1, err);
    return status;
}

static tn_status check_args(const tn_attention_backend_args *args, tn_error *err)
{
    if (!args || !TN_HAS(args, tn_attention_backend_args, reserved))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "args is NULL, or its struct_size is too small");
    tn_status status = check_number("backend", args->backend, TN_BACKEND_AUTOMATIC, err);
    if (!status)
        status = check_number("layer_default", args->layer_default, 0, err);
    if (!status)
        status = check_supported(args, err);
    if (status)
        return status;
    bool none = args->backend == TN_BACKEND_NO_ATTENTION;
    if (args->strength != 0 && args->strength != TN_REQUIRE &&
        (args->strength != TN_PREFER || none))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s",
                       none ? "expected strength TN_REQUIRE for NO_ATTENTION"
                            : "expected strength 0, TN_REQUIRE or TN_PREFER");
    if (args->layer_default == TN_BACKEND_NO_ATTENTION || args->reserved)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s",
                       args->reserved ? "reserved is not 0"
                                      : "layer_default cannot be NO_ATTENTION");
    if (!tn_dtype_name(args->dtype))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "expected a valid dtype");
    if (args->mask != TN_MASK_WINDOW && (args->window_left || args->window_right))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "window_left and window_right: expected mask TN_MASK_WINDOW, got %d",
                       (int)args->mask);
    return TN_OK;
}

static tn_status find_device(const tn_attention_backend_args *args, tn_device **out, tn_error *err)
{
    *out = args->device;
    if (args->device)
        return TN_OK;
    return args->platform ? tn_platform_device_get(args->platform, 0, out, err)
                          : tn_device_get("best", out, err);
}

static int64_t or_default(int64_t value, int64_t other)
{
    return value ? value : other;
}

static void write_mask(const tn_attention_backend_args *args, tni_buffer *out)
{
    static const char *const words[] = {"none", "causal", "causal-br", "window"};
    bool known = args->mask >= 0 && args->mask < TN_MASK_COUNT;
    tni_buffer_format(out, ",mask=%s", known ? words[args->mask] : "unknown");
    if (args->mask == TN_MASK_WINDOW)
        tni_buffer_format(out, ":%" PRId64 ";%" PRId64, args->window_left, args->window_right);
    if (!args->mask_dtype)
        return;
    const char *dtype = tn_dtype_name(args->mask_dtype);
    bool is_bool = args->mask_dtype == TN_BOOL;
    tni_buffer_format(out, ";%s", is_bool ? "bool" : "additive");
    if (!is_bool)
        tni_buffer_format(out, ",mdtype=%s", dtype ? dtype : "unknown");
}

/* Makes the op from its text, so that errors have the same messages as for every problem. */
static tn_status make_op(const tn_attention_backend_args *args, bool gradients, tn_op *out,
                         tn_error *err)
{
    enum { LENGTH = 1024 };
    char device[4];
    tni_buffer text = {0};
    int64_t heads = or_default(args->heads, 1), queries = or_default(args->queries, LENGTH);
    tni_buffer_format(&text,
                      "%s:%s:b=%" PRId64 ",h=%" PRId64 ",hk=%" PRId64 ",lq=%" PRId64 ",lk=%" PRId64
                      ",d=%" PRId64 ",dv=%" PRId64,
                      gradients ? "attention-backward" : "attention", tn_dtype_name(args->dtype),
                      or_default(args->batch, 1), heads, or_default(args->groups, heads), queries,
                      or_default(args->keys, queries), args->head_size,
                      or_default(args->value_size, args->head_size));
    write_mask(args, &text);
    if (args->dropout != 0)
        tni_write_real(&text, "dropout", args->dropout);
    if (args->training && !gradients)
        tni_buffer_format(&text, ",lse=1");
    tn_status status =
        text.failed ? tni_no_memory(err, where, "a problem's text")
                    : tni_problem_parse(tni_buffer_text(&text), out, device, sizeof device, err);
    tni_buffer_release(&text);
    return status;
}

/* Writes "flash_attn,torch_sdpa": the preferred backends, followed by the layer's default. */
static void join_names(const layer *l, tni_buffer *out)
{
    for (size_t i = 0; i < l->request.count; i++)
        tni_buffer_format(out, "%s%s", i ? "," : "", l->request.names[i]);
    if (l->args->layer_default)
        tni_buffer_format(out, "%s%s", l->request.count ? "," : "",
                          tni_backend_name(l->args->layer_default));
}

static tn_status derive_context(layer *l, int32_t strength, const char *names, tn_error *err)
{
    const tn_change change = tn_with_attention_backend(strength, names);
    tn_context *made = NULL;
    tn_status status = tn_context_derive(l->base, &change, 1, &made, err);
    if (status)
        return status;
    tn_context_release(l->context);
    l->context = made;
    return TN_OK;
}

/* Determines the request and its origin. */
static void find_request(layer *l)
{
    const tn_attention_backend_args *args = l->args;
    tn_origin origin = {.struct_size = sizeof origin};
    tni_backend_request_find(&(tni_question){.context = l->context, .op = &l->op}, &l->request);
    bool asks = l->request.strength == TN_REQUIRE || l->request.strength == TN_PREFER;
    const char *text = "automatic";
    l->from = TN_BACKEND_FROM_AUTOMATIC;
    if (args->backend > 0) {
        l->request = (tni_backend_request){.strength = args->strength ? args->strength : TN_REQUIRE,
                                           .count = 1,
                                           .names = {tni_backend_name(args->backend)}};
        l->from = TN_BACKEND_FROM_ARGUMENT;
        text = "argument";
    } else if (args->backend == TN_BACKEND_AUTOMATIC) {
        l->request = (tni_backend_request){.strength = TN_PERMIT};
        text = "argument: automatic";
    } else if (asks) {
        (void)tn_setting_origin(l->context, TN_SETTING_ATTENTION_BACKEND, &origin, NULL);
        l->from = TN_BACKEND_FROM_SETTING;
        text = origin.text;
    } else if (args->layer_default) {
        l->request = (tni_backend_request){.strength = TN_PREFER};
        l->from = TN_BACKEND_FROM_LAYER;
        text = "layer";
    }
    tn_text_fit(l->origin, sizeof l->origin, text);
}

/* Puts the request into the context, with priority over all other requests. */
static tn_status decide_op(layer *l, tn_error *err)
{
    if (l->args->backend == TN_BACKEND_AUTOMATIC)
        return derive_context(l, TN_REQUIRE, "any", err);
    if (l->request.strength == TN_PREFER) {
        tni_buffer names = {0};
        join_names(l, &names);
        tn_status status = names.failed
                               ? tni_no_memory(err, where, "names of backends")
                               : derive_context(l, TN_PREFER, tni_buffer_text(&names), err);
        tni_buffer_release(&names);
        return status;
    }
    return l->from == TN_BACKEND_FROM_ARGUMENT
               ? derive_context(l, TN_REQUIRE, l->request.names[0], err)
               : TN_OK;
}

static tn_status decide_layer(const layer *l, const tn_op *op, tni_choice **out, tn_error *err)
{
    const tni_question question = {.context = l->context, .op = op, .device = l->device};
    *out = tni_alloc(sizeof **out);
    return *out ? tni_decide(&question, *out, err) : tni_no_memory(err, where, "a decision");
}

/* Determines the request and the device. The caller releases the layer with release_layer, also on
 * failure. */
static tn_status init_layer(layer *l, const tn_context *context,
                            const tn_attention_backend_args *args, tn_error *err)
{
    *l = (layer){.args = args};
    tn_status status = check_args(args, err);
    if (status)
        return status;
    l->base = tn_context_retain((tn_context *)(uintptr_t)tni_context_or_current(context));
    l->context = tn_context_retain(l->base);
    l->bounds.supported = args->supported;
    l->bounds.supported_count = args->supported_count;
    find_request(l);
    return find_device(args, &l->device, err);
}

/* The decisions. */
static tn_status prepare_layer(layer *l, tn_error *err)
{
    const tn_attention_backend_args *args = l->args;
    tn_status status = make_op(args, false, &l->op, err);
    if (!status)
        status = decide_op(l, err);
    if (!status)
        status = decide_layer(l, &l->op, &l->choice, err);
    if (status || !args->training)
        return status;
    status = make_op(args, true, &l->gradients, err);
    if (!status)
        status = decide_layer(l, &l->gradients, &l->backward, err);
    l->bounds.backward = l->backward;
    return status;
}

static void release_layer(layer *l)
{
    tn_context_release(l->context);
    tn_context_release(l->base);
    tni_release(l->choice);
    tni_release(l->backward);
}

static bool is_by_request(int32_t code)
{
    return code == TN_REFUSE_RULE || code == TN_REFUSE_SETTING || code == TN_REFUSE_LOCK ||
           code == TN_REFUSE_PRECISION || code == TN_REFUSE_DETERMINISM;
}

static void list_supported(const layer *l, char *out, size_t size)
{
    const char *names[TN_BACKEND_COUNT];
    size_t count = 0;
    for (size_t i = 0; i < l->bounds.supported_count && count < TN_BACKEND_COUNT; i++)
        names[count++] = tn_attention_backend_name(l->bounds.supported[i]);
    tni_words_join(names, count, out, size);
}

/* No kernel was picked: reports why the required one was not, or why none was. */
static tn_status report_refusal(const layer *l, const tni_backends *all, tn_error *err)
{
    const tni_question question = {.context = l->context, .op = &l->op, .device = l->device};
    bool required = l->request.strength == TN_REQUIRE && l->request.count > 0;
    const tn_backend *row = required ? tni_backends_find(all, l->request.names[0]) : NULL;
    char supported[160];
    if (row && row->why)
        return tn_fail(err, is_by_request(row->why->code) ? TN_REFUSED : TN_UNSUPPORTED, 0, where,
                       "%s is required (%s) but cannot be used on %s: %s: %s", row->name, l->origin,
                       l->device->id, tn_refusal_name(row->why->code), row->why->text);
    if (l->choice->admitted == 0)
        return tni_choice_refused(&question, l->choice, err);
    list_supported(l, supported, sizeof supported);
    return tn_fail(err, TN_UNSUPPORTED, 0, where,
                   "no backend that the layer supports (%s)%s can be used on %s", supported,
                   l->backward ? " with gradients" : "", l->device->id);
}

static const char *first_preferred(const layer *l)
{
    return l->request.count > 0     ? l->request.names[0]
           : l->args->layer_default ? tni_backend_name(l->args->layer_default)
                                    : "";
}

/* Whether the pick was made under a requested name: a kernel has several names. */
static bool is_taken_by(const tni_backend_pick *pick, const char *name)
{
    int32_t number = TN_BACKEND_NONE;
    bool numbered = tn_attention_backend_find(name, &number, NULL) == TN_OK;
    return numbered ? number == pick->number : tni_backend_is(&pick->taken->kernel->names, name);
}

static bool is_asked_for(const layer *l, const tni_backend_pick *pick)
{
    for (size_t i = 0; i < l->request.count; i++) {
        if (is_taken_by(pick, l->request.names[i]))
            return true;
    }
    return l->request.count == 0 && is_taken_by(pick, first_preferred(l));
}

/* Reports that another backend was preferred. */
static void write_fallback(const layer *l, const tni_backends *all, tn_attention_choice *out)
{
    const tn_backend *row = tni_backends_find(all, first_preferred(l));
    bool by_layer = l->request.count > 0 && out->backend && out->backend == l->args->layer_default;
    out->fell_back = 1;
    out->from = by_layer ? TN_BACKEND_FROM_LAYER : TN_BACKEND_FROM_AUTOMATIC;
    tn_text_fit(out->origin, sizeof out->origin, by_layer ? "layer" : "automatic");
    if (row && row->why)
        out->why = *row->why;
    else
        (void)tni_refuse(&out->why, row ? TN_REFUSE_RULE : TN_REFUSE_LIBRARY,
                         row ? "order" : "kernel", 1, 0, "%s",
                         row ? "rules prefer others" : "no kernel has this name");
}

static void write_choice(const layer *l, const tni_backend_pick *pick, tn_attention_choice *out)
{
    *out = (tn_attention_choice){.struct_size = out->struct_size,
                                 .name = pick->name,
                                 .kernel = pick->taken->kernel->row->name,
                                 .backend = pick->number,
                                 .sdp = tni_backend_sdp(&pick->taken->kernel->names),
                                 .from = l->from,
                                 .why.struct_size = sizeof out->why};
    tn_text_fit(out->origin, sizeof out->origin, l->origin);
}

/* If no attention is requested, there is nothing to decide. */
static tn_status write_no_attention(const layer *l, tn_attention_choice *out, tn_error *err)
{
    char supported[160];
    list_supported(l, supported, sizeof supported);
    if (!tni_backend_is_supported(&l->bounds, TN_BACKEND_NO_ATTENTION))
        return tn_fail(err, TN_UNSUPPORTED, 0, where,
                       "NO_ATTENTION is required (%s), but the layer supports only %s", l->origin,
                       supported);
    *out = (tn_attention_choice){.struct_size = out->struct_size,
                                 .name = tn_attention_backend_name(TN_BACKEND_NO_ATTENTION),
                                 .kernel = "",
                                 .backend = TN_BACKEND_NO_ATTENTION,
                                 .sdp = -1,
                                 .from = l->from,
                                 .why.struct_size = sizeof out->why};
    tn_text_fit(out->origin, sizeof out->origin, l->origin);
    return TN_OK;
}

static tn_status choose_backend(const layer *l, tn_attention_choice *out, tn_error *err)
{
    const tni_question question = {.context = l->context, .op = &l->op, .device = l->device};
    tni_backend_request request;
    tni_backends *all = NULL;
    tni_backend_pick pick;
    tni_backend_request_find(&question, &request);
    if (tni_backend_request_is_none(&request))
        return write_no_attention(l, out, err);
    tni_backend_pick_of(&question, l->choice, &l->bounds, &pick);
    if (pick.taken && (l->request.strength != TN_PREFER || is_asked_for(l, &pick))) {
        write_choice(l, &pick, out);
        return TN_OK;
    }
    tn_status status = tni_backends_make(&question, l->choice, &l->bounds, &all, err);
    if (status)
        return status;
    if (pick.taken) {
        write_choice(l, &pick, out);
        write_fallback(l, all, out);
    } else
        status = report_refusal(l, all, err);
    tni_backends_release(all);
    return status;
}

/* Answers from the cache, or decides. Fallbacks are not cached: their reason depends on more than
 * the key. */
static tn_status find_or_choose(layer *l, tn_attention_choice *out, tn_error *err)
{
    tni_answer_key key;
    tni_answer_key_make(l->base, l->device, l->args, &key);
    if (tni_answer_find(&key, out)) {
        tn_text_fit(out->origin, sizeof out->origin, l->origin);
        return TN_OK;
    }
    tn_status status = prepare_layer(l, err);
    if (!status)
        status = choose_backend(l, out, err);
    if (!status && !out->fell_back)
        tni_answer_keep(&key, out);
    return status;
}

tn_status tn_attention_backend(const tn_context *context, const tn_attention_backend_args *args,
                               tn_attention_choice *out, tn_error *err)
{
    layer l;
    if (!out || !TN_HAS(out, tn_attention_choice, why))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "out is NULL, or its struct_size is too small");
    tn_status status = init_layer(&l, context, args, err);
    if (!status)
        status = find_or_choose(&l, out, err);
    release_layer(&l);
    return status;
}

tn_status tn_attention_backend_explain(const tn_context *context,
                                       const tn_attention_backend_args *args, tn_decision **out,
                                       tn_error *err)
{
    layer l;
    tn_status status = init_layer(&l, context, args, err);
    if (!status)
        status = prepare_layer(&l, err);
    if (!status)
        status = tni_explain_within(l.context, &l.op, l.device, &l.bounds, out, err);
    release_layer(&l);
    return status;
}
