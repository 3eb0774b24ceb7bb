/* Evaluating conditions: which list applies, and the outcome of each row. */
#include "conditions.h"
#include "policy/backend_names/names.h"

#include "base/alloc.h"
#include "device/tensor/tensor.h"
#include "op/attention/attention.h"

const char *tn_sdpa_outcome_name(int32_t outcome)
{
    static const char *const words[] = {
        [TN_SDPA_HOLDS] = "holds", [TN_SDPA_FAILS] = "fails", [TN_SDPA_NOT_ASKED] = "not-asked"};
    bool known = outcome >= 0 && (size_t)outcome < sizeof words / sizeof words[0];
    return known ? words[outcome] : "unknown";
}

/* Returns the version of a library if it is known without opening it; otherwise INT64_MAX. */
static int64_t version_of(const char *library)
{
    const tn_library *found;
    tn_library_state state = {.struct_size = sizeof state, .version = -1};
    if (tn_library_get(library, &found, NULL) || tn_library_state_get(found, NULL, &state, NULL) ||
        state.version < 0)
        return INT64_MAX;
    return state.version;
}

static int64_t version_for(const tn_sdpa_params *params, int32_t sdp, int32_t kind)
{
    const char *library = kind == TN_PLATFORM_ROCM ? "aotriton"
                          : sdp == TN_SDP_CUDNN    ? "cudnn"
                                                   : NULL;
    if (params->library_version > 0)
        return params->library_version;
    return library && !params->query.device->plans_only ? version_of(library) : INT64_MAX;
}

static uint32_t describe_params(const tn_sdpa_params *params, int32_t kind)
{
    bool nested = params->query.nested || params->key.nested || params->value.nested;
    bool whole = params->query.layout.rank == 4 && params->key.layout.rank == 4 &&
                 params->value.layout.rank == 4;
    uint32_t is = nested ? TNI_SDPA_NESTED : TNI_SDPA_DENSE;
    is |= kind == TN_PLATFORM_CUDA ? TNI_SDPA_CUDA : kind == TN_PLATFORM_ROCM ? TNI_SDPA_ROCM : 0;
    is |= whole ? TNI_SDPA_WHOLE : 0;
    is |= params->attn_mask.layout.dtype ? TNI_SDPA_MASKED : 0;
    return is | (params->flash == 4 ? TNI_SDPA_FA4 : 0);
}

static bool keeps_gradients(const tn_context *context, const tn_sdpa_params *params)
{
    return !tn_setting_value(context, TN_SETTING_INFERENCE) &&
           (params->query.requires_grad || params->key.requires_grad ||
            params->value.requires_grad);
}

static const tni_sdpa_row *rows_for(int32_t sdp, uint32_t is)
{
    if (!(is & (TNI_SDPA_CUDA | TNI_SDPA_ROCM)))
        return tni_sdpa_own_rows;
    return sdp == TN_SDP_FLASH   ? tni_sdpa_flash_rows
           : sdp == TN_SDP_CUDNN ? tni_sdpa_cudnn_rows
                                 : tni_sdpa_efficient_rows;
}

void tni_sdpa_evaluate(const tn_context *context, const tn_sdpa_params *params, int32_t sdp,
                       tn_sdpa_report *out)
{
    const tn_device *device = params->query.device;
    const tn_device_properties *properties = tni_device_described(device);
    int32_t kind = device->platform->known->kind;
    bool knows = properties->known & TN_DEVICE_KNOWS(capability);
    const tni_sdpa s = {.params = params,
                        .context = context,
                        .device = device,
                        .sdp = sdp,
                        .is = describe_params(params, kind),
                        .capability = knows ? tn_capability_to_int(properties->capability) : -1,
                        .version = version_for(params, sdp, kind),
                        .training = keeps_gradients(context, params)};
    out->first = -1;
    out->count = 0;
    for (const tni_sdpa_row *row = rows_for(sdp, s.is); row->name; row++) {
        tn_sdpa_check *to = &out->checks[out->count];
        *to = (tn_sdpa_check){
            .name = row->name, .outcome = TN_SDPA_NOT_ASKED, .why.struct_size = sizeof to->why};
        if ((s.is & row->when) == row->when)
            to->outcome = row->holds(&s, &to->why) ? TN_SDPA_HOLDS : TN_SDPA_FAILS;
        if (to->outcome == TN_SDPA_FAILS && out->first < 0)
            out->first = (int32_t)out->count;
        out->count++;
    }
    out->usable = out->first < 0;
}

/* On other platforms, the kernels decide. */

static bool is_not_nested(const tni_sdpa *s, tn_refusal *why)
{
    return !(s->is & TNI_SDPA_NESTED) ||
           tni_refuse(why, TN_REFUSE_FEATURE, "nested", 1, 0,
                      "pack sequences of different lengths: tn_attention_args.starts_q");
}

static tn_status op_of(const tni_sdpa *s, tn_op *out, tn_error *err)
{
    const tn_layout *q = tni_sdpa_q(s), *v = tni_sdpa_v(s);
    const int64_t shape[] = {q->shape[TNI_SDPA_DIM_BATCH], q->shape[TNI_SDPA_DIM_HEADS],
                             q->shape[TNI_SDPA_DIM_LENGTH], v->shape[TNI_SDPA_DIM_SIZE]};
    tni_layout measured;
    tn_status status = TN_OK;
    tni_op_init(out, &tni_attention_class);
    out->operand[TN_ATTENTION_Q] = *q;
    out->operand[TN_ATTENTION_K] = *tni_sdpa_k(s);
    out->operand[TN_ATTENTION_V] = *v;
    tni_layout_make(&out->operand[TN_ATTENTION_OUT], q->dtype, shape, 4);
    if (s->is & TNI_SDPA_MASKED)
        out->operand[TN_ATTENTION_MASK] = s->params->attn_mask.layout;
    for (int32_t i = 0; i < out->count && !status; i++) {
        tn_layout *layout = &out->operand[i];
        layout->alignment = layout->alignment > 0 ? layout->alignment : TN_OP_ALIGNMENT_MAX;
        if (layout->dtype)
            status = tni_layout_of(layout->dtype, layout->shape, layout->stride, layout->rank,
                                   "tn_sdpa", tni_attention_class.operands[i], &measured, err);
    }
    if (status)
        return status;
    tn_attention_op *at = TN_PARAMS_MUTABLE(out, attention);
    *at = (tn_attention_op){.scale = tni_attention_scale(q->shape[TNI_SDPA_DIM_SIZE]),
                            .dropout = s->params->dropout};
    (void)tni_attention_see(at, s->params->is_causal ? TN_MASK_CAUSAL : TN_MASK_NONE, 0, 0);
    return tni_op_validate(out, err);
}

/* Returns the verdict of the kernels with the name on the problem. */
static bool judge_kernels(const tni_sdpa *s, const tn_op *op, tni_choice *choice, tn_refusal *why)
{
    const tni_question question = {
        .context = s->context, .op = op, .device = (tn_device *)(uintptr_t)s->device};
    tn_error err = {0};
    if (tni_decide(&question, choice, &err))
        return tni_refuse(why, TN_REFUSE_BUSY, "decision", 1, 0, "%s", err.message);
    for (size_t i = 0; i < choice->count; i++) {
        const tni_contender *v = &choice->candidates[i];
        if (!tni_backend_is(&v->kernel->names, tni_sdp_word(s->sdp)))
            continue;
        if (i < choice->admitted)
            return true;
        *why = v->why; /* of the first one in the list */
        return false;
    }
    return tni_sdpa_has_kernel(s, why);
}

static bool is_taken(const tni_sdpa *s, tn_refusal *why)
{
    tn_op op;
    tn_error err = {0};
    if (op_of(s, &op, &err))
        return tni_refuse(why, TN_REFUSE_OTHER, "problem", 1, 0, "%s", err.message);
    tni_choice *choice = tni_alloc(sizeof *choice);
    if (!choice)
        return tni_refuse(why, TN_REFUSE_BUSY, "memory", 1, 0, "no memory for a decision");
    bool taken = judge_kernels(s, &op, choice, why);
    tni_release(choice);
    return taken;
}

const tni_sdpa_row tni_sdpa_own_rows[] = {
    {"kernel", 0, tni_sdpa_has_kernel},
    {"enabled", 0, tni_sdpa_is_enabled},
    {"device", 0, tni_sdpa_is_on_device},
    {"rank", 0, tni_sdpa_has_rank},
    {"nested", 0, is_not_nested},
    {"batch", TNI_SDPA_WHOLE | TNI_SDPA_DENSE, tni_sdpa_has_batch},
    {"heads", TNI_SDPA_WHOLE | TNI_SDPA_DENSE, tni_sdpa_has_heads},
    {"problem", TNI_SDPA_WHOLE | TNI_SDPA_DENSE, is_taken},
    {NULL, 0, NULL},
};
