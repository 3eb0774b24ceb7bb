/* Parameters of scaled-dot-product attention: from an op, from tensors, and from the caller. */
#include "conditions.h"

#include "device/tensor/tensor.h"
#include "op/op.h"
#include "settings/context.h"
#include "tenon/dtype.h"
#include "tenon/module/op/attention.h"

#include <inttypes.h>

static bool is_plainly_causal(const tn_attention_op *at)
{
    return at->left < 0 && at->right == 0 && at->shift == 0 &&
           (at->corner == TN_CORNER_TOP_LEFT || at->queries == at->keys);
}

/* Whether the op uses a feature that PyTorch's attention does not have. */
static bool is_foreign(const tn_op *op)
{
    uint64_t known = TN_ATTENTION_USES_MASK | TN_ATTENTION_USES_ADDITIVE |
                     TN_ATTENTION_USES_GROUPS | TN_ATTENTION_USES_LSE | TN_ATTENTION_USES_DROPOUT |
                     TN_ATTENTION_USES_PACKED | TN_ATTENTION_USES_VALUE_SIZE |
                     TN_ATTENTION_USES_STRIDES;
    if (is_plainly_causal(TN_PARAMS(op, attention)))
        known |= TN_ATTENTION_USES_WINDOW;
    return (op->uses & ~known) != 0;
}

bool tni_sdpa_of_op(const tn_op *op, tn_device *device, bool training, tn_sdpa_params *out)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    bool packed = op->uses & TN_ATTENTION_USES_PACKED;
    *out = (tn_sdpa_params){.struct_size = sizeof *out,
                            .dropout = at->dropout,
                            .is_causal = is_plainly_causal(at),
                            .enable_gqa = at->groups != at->heads};
    tn_sdpa_tensor *const to[] = {&out->query, &out->key, &out->value, &out->attn_mask};
    static const int32_t from[] = {TN_ATTENTION_Q, TN_ATTENTION_K, TN_ATTENTION_V,
                                   TN_ATTENTION_MASK};
    for (int32_t i = 0; i < 4; i++) {
        *to[i] = (tn_sdpa_tensor){.device = device,
                                  .layout = op->operand[from[i]],
                                  .nested = packed && i < 3,
                                  .requires_grad = training && i < 3};
        if (packed && i < 3) {
            to[i]->layout.shape[TNI_SDPA_DIM_BATCH] = at->batch;
            to[i]->layout.shape[TNI_SDPA_DIM_LENGTH] = i == 0 ? at->queries : at->keys;
        }
    }
    return !is_foreign(op);
}

static tn_status fill_tensor(const tn_tensor *tensor, const char *name, tn_sdpa_tensor *out,
                             tn_error *err)
{
    static const char where[] = "tn_sdpa_params_get";
    tni_layout extent;
    *out = (tn_sdpa_tensor){0};
    tn_status status = tni_layout_take(tensor, where, name, &out->layout, &extent, err);
    if (status)
        return status;
    return tni_tensor_device_of(tensor, where, &out->device, err);
}

tn_status tn_sdpa_params_get(const tn_tensor *query, const tn_tensor *key, const tn_tensor *value,
                             const tn_tensor *attn_mask, double dropout, int32_t is_causal,
                             int32_t enable_gqa, tn_sdpa_params *out, tn_error *err)
{
    tn_sdpa_params made = {.dropout = dropout, .is_causal = is_causal, .enable_gqa = enable_gqa};
    if (!out || !TN_HAS(out, tn_sdpa_params, permits))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_sdpa_params_get",
                       "out is NULL, or its struct_size is too small");
    tn_status status = fill_tensor(query, "query", &made.query, err);
    if (!status)
        status = fill_tensor(key, "key", &made.key, err);
    if (!status)
        status = fill_tensor(value, "value", &made.value, err);
    if (!status && attn_mask)
        status = fill_tensor(attn_mask, "attn_mask", &made.attn_mask, err);
    if (status)
        return status;
    made.struct_size = out->struct_size;
    *out = made;
    return TN_OK;
}

static tn_status check_tensor(const tn_sdpa_tensor *tensor, const char *name, bool needed,
                              const char *where, tn_error *err)
{
    const tn_layout *layout = &tensor->layout;
    const int64_t least = tensor->nested ? -1 : 0;
    if ((needed || layout->dtype) && !tn_dtype_name(layout->dtype))
        return layout->dtype
                   ? tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                             "%s: expected a valid dtype, got %#x", name, (unsigned)layout->dtype)
                   : tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s has no dtype", name);
    if (layout->rank < 0 || layout->rank > TN_OP_RANK_MAX)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "%s: expected 0 to %d dimensions, got %d", name, TN_OP_RANK_MAX,
                       (int)layout->rank);
    for (int32_t d = 0; d < layout->rank; d++) {
        if (layout->shape[d] < least)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                           "%s.shape[%d]: expected %" PRId64 " or more, got %" PRId64, name, (int)d,
                           least, layout->shape[d]);
    }
    return TN_OK;
}

static tn_status check_numbers(const tn_sdpa_params *params, const char *where, tn_error *err)
{
    const uint32_t unknown =
        params->permits & ~(TN_SDPA_PERMIT_CUDNN_NESTED | TN_SDPA_PERMIT_AOTRITON);
    if (!(params->dropout >= 0 && params->dropout <= 1))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "dropout: expected 0 to 1, got %g",
                       params->dropout);
    if (params->flash != 0 && (params->flash < 2 || params->flash > 4))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "flash: expected 0, 2, 3 or 4, got %d",
                       (int)params->flash);
    if (params->library_version < 0)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "library_version: expected 0 or more, got %" PRId64,
                       params->library_version);
    if (unknown)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "permits has unknown bits: %#x",
                       (unsigned)unknown);
    return TN_OK;
}

/* Checks the parameters and fills in missing devices. */
static tn_status check_params(const tn_sdpa_params *params, const char *where, tn_sdpa_params *out,
                              tn_error *err)
{
    static const char *const names[] = {"query", "key", "value", "attn_mask"};
    if (!params || !TN_HAS(params, tn_sdpa_params, permits))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "params is NULL, or its struct_size is too small");
    *out = *params;
    tn_sdpa_tensor *const of[] = {&out->query, &out->key, &out->value, &out->attn_mask};
    if (!out->query.device)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "query.device is NULL");
    for (int32_t i = 0; i < 4; i++) {
        of[i]->device = of[i]->device ? of[i]->device : out->query.device;
        tn_status status = check_tensor(of[i], names[i], i < 3, where, err);
        if (status)
            return status;
    }
    return check_numbers(out, where, err);
}

static tn_status can_use(const tn_context *context, const tn_sdpa_params *params, int32_t sdp,
                         const char *where, tn_sdpa_report *out, tn_error *err)
{
    tn_sdpa_params sound;
    if (!out || !TN_HAS(out, tn_sdpa_report, checks))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "out is NULL, or its struct_size is too small");
    tn_status status = check_params(params, where, &sound, err);
    if (!status)
        tni_sdpa_evaluate(tni_context_or_current(context), &sound, sdp, out);
    return status;
}

tn_status tn_can_use_flash_attention(const tn_context *context, const tn_sdpa_params *params,
                                     tn_sdpa_report *out, tn_error *err)
{
    return can_use(context, params, TN_SDP_FLASH, "tn_can_use_flash_attention", out, err);
}

tn_status tn_can_use_efficient_attention(const tn_context *context, const tn_sdpa_params *params,
                                         tn_sdpa_report *out, tn_error *err)
{
    return can_use(context, params, TN_SDP_MEM_EFFICIENT, "tn_can_use_efficient_attention", out,
                   err);
}

tn_status tn_can_use_cudnn_attention(const tn_context *context, const tn_sdpa_params *params,
                                     tn_sdpa_report *out, tn_error *err)
{
    return can_use(context, params, TN_SDP_CUDNN, "tn_can_use_cudnn_attention", out, err);
}
