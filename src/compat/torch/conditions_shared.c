/* Conditions that several lists share. */
#include "conditions.h"
#include "policy/backend_names/names.h"
#include "policy/rules/rules_policy.h"

#include "base/dtype.h"
#include "settings/context.h"

#include <inttypes.h>

static const char *const names[] = {"q", "k", "v"};

/* One of q, k, v. */
static const tn_sdpa_tensor *tensor_at(const tni_sdpa *s, int i)
{
    return i == 0 ? &s->params->query : i == 1 ? &s->params->key : &s->params->value;
}

static bool refuse_tensor(tn_refusal *why, int32_t code, int i, const char *what, int64_t needed,
                          int64_t found, const char *text)
{
    char room[32];
    snprintf(room, sizeof room, "%s.%s", names[i], what);
    return tni_refuse(why, code, room, needed, found, "%s", text);
}

bool tni_sdpa_has_kernel(const tni_sdpa *s, tn_refusal *why)
{
    const tni_kernel *const *kernels = NULL;
    const char *platform = s->device->platform->name, *word = tni_sdp_word(s->sdp);
    if (tni_kernels_of(platform, TN_OP_ATTENTION, &kernels, NULL))
        kernels = NULL;
    for (; kernels && *kernels; kernels++) {
        if (tni_backend_is(&(*kernels)->names, word))
            return true;
    }
    return tni_refuse(why, TN_REFUSE_LIBRARY, "kernel", 1, 0,
                      "no module has a kernel for %s with the name %s", platform, word);
}

bool tni_sdpa_is_enabled(const tni_sdpa *s, tn_refusal *why)
{
    const tni_candidate candidate = tni_sdp_candidate(s->sdp, s->device->platform->name);
    tni_judgement judged;
    tni_rules_judge(s->context->rules, &candidate, &judged);
    return tni_rules_permit(&judged, why);
}

bool tni_sdpa_is_on_device(const tni_sdpa *s, tn_refusal *why)
{
    bool right = s->is & TNI_SDPA_CUDA || (s->is & TNI_SDPA_ROCM && s->sdp != TN_SDP_CUDNN);
    if (!right && s->is & (TNI_SDPA_CUDA | TNI_SDPA_ROCM))
        return tni_refuse(why, TN_REFUSE_DEVICE, "q.device", 1, 0, "cuDNN: expected cuda, got %s",
                          s->device->id);
    for (int i = 1; i <= 2; i++) {
        if (tensor_at(s, i)->device != s->device)
            return tni_refuse(why, TN_REFUSE_DEVICE, i == 1 ? "k.device" : "v.device", 1, 0,
                              "q is on %s and %s on %s; copy one of them", s->device->id, names[i],
                              tn_device_id(tensor_at(s, i)->device));
    }
    if (s->is & TNI_SDPA_MASKED && s->params->attn_mask.device != s->device)
        return tni_refuse(why, TN_REFUSE_DEVICE, "mask.device", 1, 0,
                          "q is on %s and the mask on %s; copy one of them", s->device->id,
                          tn_device_id(s->params->attn_mask.device));
    return true;
}

bool tni_sdpa_has_rank(const tni_sdpa *s, tn_refusal *why)
{
    for (int i = 0; i < 3; i++) {
        if (tensor_at(s, i)->layout.rank != 4)
            return refuse_tensor(why, TN_REFUSE_SHAPE, i, "rank", 4, tensor_at(s, i)->layout.rank,
                                 "q, k and v are [batch, heads, length, size]");
    }
    return true;
}

bool tni_sdpa_has_length(const tni_sdpa *s, tn_refusal *why)
{
    for (int i = 0; i < 2; i++) {
        if (tensor_at(s, i)->layout.shape[TNI_SDPA_DIM_LENGTH] == 0)
            return refuse_tensor(why, TN_REFUSE_SHAPE, i, "length", 1, 0,
                                 "there must be at least one query and one key");
    }
    return true;
}

static bool has_stride(const tni_sdpa *s, bool unless_one, tn_refusal *why)
{
    const tn_layout *mask = &s->params->attn_mask.layout;
    bool matters = !unless_one || tni_sdpa_q(s)->shape[TNI_SDPA_DIM_SIZE] != 1;
    for (int i = 0; matters && i < 3; i++) {
        if (tensor_at(s, i)->layout.stride[TNI_SDPA_DIM_SIZE] != 1)
            return refuse_tensor(why, TN_REFUSE_STRIDE, i, "stride", 1,
                                 tensor_at(s, i)->layout.stride[TNI_SDPA_DIM_SIZE],
                                 "the elements of a head must be contiguous");
    }
    int64_t stride = s->is & TNI_SDPA_MASKED && mask->rank > 0 ? mask->stride[mask->rank - 1] : 1;
    if (stride == 1)
        return true;
    return tni_refuse(why, TN_REFUSE_STRIDE, "mask.stride", 1, stride,
                      "the rows of a mask must be contiguous, also if broadcast");
}

bool tni_sdpa_has_stride(const tni_sdpa *s, tn_refusal *why)
{
    return has_stride(s, false, why);
}

bool tni_sdpa_has_stride_unless_one(const tni_sdpa *s, tn_refusal *why)
{
    return has_stride(s, true, why);
}

bool tni_sdpa_has_batch(const tni_sdpa *s, tn_refusal *why)
{
    int64_t batch = tni_sdpa_q(s)->shape[TNI_SDPA_DIM_BATCH];
    for (int i = 1; i < 3; i++) {
        int64_t found = tensor_at(s, i)->layout.shape[TNI_SDPA_DIM_BATCH];
        if (found != batch)
            return refuse_tensor(why, TN_REFUSE_SHAPE, i, "batch", batch, found,
                                 "dense tensors must have the same batch: expand it with stride 0");
    }
    return true;
}

/* Checks the heads of k and v against q: groups if GQA is enabled and `groups` is set; otherwise
 * equal numbers. */
static bool has_heads(const tni_sdpa *s, bool groups, bool one_for_all, bool same, tn_refusal *why)
{
    int64_t q = tni_sdpa_q(s)->shape[TNI_SDPA_DIM_HEADS],
            k = tni_sdpa_k(s)->shape[TNI_SDPA_DIM_HEADS];
    int64_t v = tni_sdpa_v(s)->shape[TNI_SDPA_DIM_HEADS];
    if (groups && s->params->enable_gqa) {
        if (same && k != v)
            return refuse_tensor(why, TN_REFUSE_SHAPE, 2, "heads", k, v,
                                 "k and v must have the same number of heads");
        if (k <= 0 || q % k != 0)
            return refuse_tensor(why, TN_REFUSE_SHAPE, 1, "heads", q, k,
                                 "the heads of q must be a multiple of those of k");
        if (v <= 0 || q % v != 0)
            return refuse_tensor(why, TN_REFUSE_SHAPE, 2, "heads", q, v,
                                 "the heads of q must be a multiple of those of v");
        return true;
    }
    if ((k == q && v == q) || (one_for_all && k == 1 && v == 1))
        return true;
    int odd = k != q ? 1 : 2;
    return refuse_tensor(why, TN_REFUSE_SHAPE, odd, "heads", q, odd == 1 ? k : v,
                         groups ? "must equal the heads of q, unless enable_gqa is set"
                                : "must equal the heads of q; groups are not supported");
}

bool tni_sdpa_has_heads(const tni_sdpa *s, tn_refusal *why)
{
    return has_heads(s, true, true, true, why);
}

bool tni_sdpa_has_equal_heads(const tni_sdpa *s, tn_refusal *why)
{
    return has_heads(s, false, false, true, why);
}

bool tni_sdpa_has_any_groups(const tni_sdpa *s, tn_refusal *why)
{
    return has_heads(s, true, true, false, why);
}

/* Each size must be the largest of the three, or 1. */
static bool can_broadcast(const tni_sdpa *s, int dimension, const char *what, tn_refusal *why)
{
    int64_t most = 0;
    for (int i = 0; i < 3; i++) {
        int64_t found = tensor_at(s, i)->layout.shape[dimension];
        most = found > most ? found : most;
    }
    for (int i = 0; i < 3; i++) {
        int64_t found = tensor_at(s, i)->layout.shape[dimension];
        if (found != most && found != 1)
            return refuse_tensor(why, TN_REFUSE_SHAPE, i, what, most, found,
                                 "q, k and v must each have the largest of the three, or 1");
    }
    return true;
}

static bool are_equal(const tni_sdpa *s, int dimension)
{
    int64_t q = tni_sdpa_q(s)->shape[dimension];
    return tni_sdpa_k(s)->shape[dimension] == q && tni_sdpa_v(s)->shape[dimension] == q;
}

static bool can_train(const tni_sdpa *s, const char *what, tn_refusal *why)
{
    if (!s->training)
        return true;
    return tni_refuse(why, TN_REFUSE_FEATURE, what, 1, 0,
                      "gradients of broadcast nested tensors are not supported");
}

static bool is_ragged(const tn_sdpa_tensor *t)
{
    if (!t->nested)
        return false;
    for (int64_t i = 1; t->lengths && i < t->layout.shape[TNI_SDPA_DIM_BATCH]; i++) {
        if (t->lengths[i] != t->lengths[0])
            return true;
    }
    return !t->lengths;
}

bool tni_sdpa_nested_batch(const tni_sdpa *s, tn_refusal *why)
{
    if (are_equal(s, TNI_SDPA_DIM_BATCH))
        return true;
    if (!can_train(s, "batch", why) || !can_broadcast(s, TNI_SDPA_DIM_BATCH, "batch", why))
        return false;
    bool one_k = tni_sdpa_k(s)->shape[TNI_SDPA_DIM_BATCH] == 1,
         one_v = tni_sdpa_v(s)->shape[TNI_SDPA_DIM_BATCH] == 1;
    if (one_k == one_v || !is_ragged(tensor_at(s, one_k ? 2 : 1)))
        return true;
    return refuse_tensor(
        why, TN_REFUSE_SHAPE, one_k ? 2 : 1, "lengths", 1, 0,
        "if only one of k and v is broadcast, the other must have a single length");
}

static bool has_nested_lengths(const tni_sdpa *s, int i, tn_refusal *why)
{
    const tn_sdpa_tensor *t = tensor_at(s, i);
    if (!t->nested)
        return true;
    if (t->layout.shape[TNI_SDPA_DIM_HEADS] < 0)
        return refuse_tensor(why, TN_REFUSE_SHAPE, i, "heads", 1, 0,
                             "all sequences must have the same number of heads");
    int64_t known = t->lengths ? t->layout.shape[TNI_SDPA_DIM_BATCH] : 0;
    bool empty = !t->lengths && t->layout.shape[TNI_SDPA_DIM_LENGTH] == 0;
    for (int64_t b = 0; b < known && !empty; b++)
        empty = t->lengths[b] == 0;
    return !empty || refuse_tensor(why, TN_REFUSE_SHAPE, i, "length", 1, 0,
                                   "empty sequences are not supported");
}

bool tni_sdpa_nested_lengths(const tni_sdpa *s, tn_refusal *why)
{
    for (int i = 0; i < 3; i++) {
        if (!has_nested_lengths(s, i, why))
            return false;
    }
    return are_equal(s, TNI_SDPA_DIM_HEADS) ||
           (can_train(s, "heads", why) && can_broadcast(s, TNI_SDPA_DIM_HEADS, "heads", why));
}

bool tni_sdpa_has_dtype(const tni_sdpa *s, const tn_dtype *dtypes, tn_refusal *why)
{
    char list[64] = "";
    size_t used = 0;
    bool listed = false;
    tn_dtype q = tni_sdpa_q(s)->dtype;
    for (int i = 1; i < 3; i++) {
        tn_dtype found = tensor_at(s, i)->layout.dtype;
        if (found != q)
            return tni_refuse(why, TN_REFUSE_DTYPE, i == 1 ? "k.dtype" : "v.dtype", 1, 0,
                              "q has dtype %s and %s has %s", tn_dtype_name(q), names[i],
                              tn_dtype_name(found));
    }
    for (const tn_dtype *it = dtypes; *it && used < sizeof list; it++) {
        listed = listed || *it == q;
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "",
                                 tn_dtype_name(*it));
    }
    return listed ||
           tni_refuse(why, TN_REFUSE_DTYPE, tn_dtype_name(q), 1, 0, "supported: %s", list);
}

bool tni_sdpa_is_half(const tni_sdpa *s, tn_refusal *why)
{
    static const tn_dtype both[] = {TN_F16, TN_BF16, 0}, f16[] = {TN_F16, 0};
    return tni_sdpa_has_dtype(s, tni_sdpa_is_recent(s) ? both : f16, why);
}

bool tni_sdpa_is_recent(const tni_sdpa *s)
{
    return s->capability < 0 || tni_sdpa_major(s) >= 8 || !(s->is & TNI_SDPA_CUDA);
}

bool tni_sdpa_has_pair(const tni_sdpa *s)
{
    int64_t q = tni_sdpa_size(tni_sdpa_q(s)), v = tni_sdpa_size(tni_sdpa_v(s));
    return (q <= 128 && v <= 128) || (q == 192 && v == 128) || (q == 256 && v == 256);
}

bool tni_sdpa_is_ampere(const tni_sdpa *s, tn_refusal *why)
{
    return tni_sdpa_has_capability(s, 80, 121, why);
}

bool tni_sdpa_is_hopper(const tni_sdpa *s, const char *whose, tn_refusal *why)
{
    int32_t major = tni_sdpa_major(s), found = s->capability < 0 ? 0 : s->capability;
    return major == 9 || major == 10 ||
           tni_refuse(why, TN_REFUSE_DEVICE, "capability", 90, found, "%s for 9.x and 10.x", whose);
}

bool tni_sdpa_has_capability(const tni_sdpa *s, int32_t least, int32_t most, tn_refusal *why)
{
    int32_t found = s->capability;
    if (found >= least && found <= most)
        return true;
    if (found < 0)
        return tni_refuse(why, TN_REFUSE_DEVICE, "capability", least, 0,
                          "%s does not report its capability", s->device->id);
    return tni_refuse(why, TN_REFUSE_DEVICE, "capability", found < least ? least : most, found,
                      "it runs on %d.%d to %d.%d", (int)(least / 10), (int)(least % 10),
                      (int)(most / 10), (int)(most % 10));
}
