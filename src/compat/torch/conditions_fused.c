/* The conditions of flash and of memory-efficient attention on cuda and rocm, as in PyTorch. */
#include "conditions.h"

#include "base/dtype.h"

#include <inttypes.h>

/* AOTriton's versions, as major * 10000 + minor * 100 + patch. */
enum { AOTRITON_WIDER = 900, AOTRITON_UNEQUAL = 1200, AOTRITON_GFX11 = 1100 };

/* Architectures that AOTriton has kernels for, and whether it calls them experimental. */
static const struct architecture {
    const char *name;
    bool experimental;
} architectures[] = {
    {"gfx90a", false},  {"gfx942", false},  {"gfx950", false},  {"gfx1100", false},
    {"gfx1151", false}, {"gfx1201", false}, {"gfx1250", false}, {"gfx908", true},
    {"gfx1101", true},  {"gfx1102", true},  {"gfx1103", true},  {"gfx1150", true},
    {"gfx1152", true},  {"gfx1153", true},  {"gfx1200", true},
};

/* "gfx942:sramecc+" is a gfx942. */
static bool is_architecture(const tni_sdpa *s, const char *name)
{
    const char *found = tni_device_described(s->device)->architecture;
    size_t length = strcspn(found, ":");
    return strlen(name) == length && strncmp(found, name, length) == 0;
}

static const struct architecture *architecture_of(const tni_sdpa *s)
{
    for (size_t i = 0; i < sizeof architectures / sizeof architectures[0]; i++) {
        if (is_architecture(s, architectures[i].name))
            return &architectures[i];
    }
    return NULL;
}

static bool goes_through_ck(const tni_sdpa *s)
{
    return tn_setting_value(s->context, TN_SETTING_CUDA_PREFERRED_ROCM_FA_LIBRARY) == TN_ROCM_FA_CK;
}

static bool has_architecture(const tni_sdpa *s, tn_refusal *why)
{
    if (goes_through_ck(s) || architecture_of(s))
        return true;
    return tni_refuse(why, TN_REFUSE_DEVICE, "architecture", 1, 0,
                      "AOTriton has no kernels for \"%.31s\"",
                      tni_device_described(s->device)->architecture);
}

static bool is_established(const tni_sdpa *s, tn_refusal *why)
{
    const struct architecture *found = architecture_of(s);
    if (goes_through_ck(s) || !found || !found->experimental ||
        s->params->permits & TN_SDPA_PERMIT_AOTRITON)
        return true;
    return tni_refuse(why, TN_REFUSE_DEVICE, "architecture", 1, 0,
                      "AOTriton calls %s experimental: TN_SDPA_PERMIT_AOTRITON permits it",
                      found->name);
}

/* Returns the largest head size that AOTriton supports on the device. */
static int64_t most_of_rocm(const tni_sdpa *s)
{
    bool gfx11 = strncmp(tni_device_described(s->device)->architecture, "gfx11", 5) == 0;
    return s->version < AOTRITON_WIDER || (gfx11 && s->version >= AOTRITON_GFX11) ? 256 : 512;
}

static int64_t greatest_size(const tni_sdpa *s)
{
    int64_t q = tni_sdpa_size(tni_sdpa_q(s)), k = tni_sdpa_size(tni_sdpa_k(s));
    int64_t v = tni_sdpa_size(tni_sdpa_v(s));
    return q > k ? (q > v ? q : v) : (k > v ? k : v);
}

static bool refuse_sizes(const tni_sdpa *s, int64_t needed, const char *rule, tn_refusal *why)
{
    return tni_refuse(why, TN_REFUSE_SHAPE, "head size", needed, greatest_size(s),
                      "%s; q has %" PRId64 ", k %" PRId64 ", v %" PRId64, rule,
                      tni_sdpa_size(tni_sdpa_q(s)), tni_sdpa_size(tni_sdpa_k(s)),
                      tni_sdpa_size(tni_sdpa_v(s)));
}

static bool has_one_size(const tni_sdpa *s, int64_t most)
{
    int64_t q = tni_sdpa_size(tni_sdpa_q(s));
    return tni_sdpa_size(tni_sdpa_k(s)) == q && tni_sdpa_size(tni_sdpa_v(s)) == q && q <= most;
}

/* Which flash attention. */

static bool has_no_mask(const tni_sdpa *s, tn_refusal *why)
{
    return !(s->is & TNI_SDPA_MASKED) ||
           tni_refuse(why, TN_REFUSE_FEATURE, "mask", 1, 0,
                      "flash does not support a mask tensor; use is_causal");
}

static bool fa4_has_capability(const tni_sdpa *s, tn_refusal *why)
{
    return tni_sdpa_is_hopper(s, "FlashAttention 4 is", why);
}

static bool fa4_has_no_dropout(const tni_sdpa *s, tn_refusal *why)
{
    return s->params->dropout == 0 ||
           tni_refuse(why, TN_REFUSE_FEATURE, "dropout", 1, 0, "FlashAttention 4 has no dropout");
}

static bool fa4_has_sizes(const tni_sdpa *s, tn_refusal *why)
{
    int64_t q = tni_sdpa_size(tni_sdpa_q(s)), v = tni_sdpa_size(tni_sdpa_v(s));
    bool nine = tni_sdpa_major(s) == 9, ten = tni_sdpa_major(s) == 10;
    bool fits = nine ? q <= 256 && v <= 256 : ten && tni_sdpa_has_pair(s);
    bool holds = fits && q == tni_sdpa_size(tni_sdpa_k(s)) && q > 0 && v > 0;
    return holds ||
           refuse_sizes(
               s, nine ? 256 : 128,
               nine ? "q and k must have the same size, each up to 256"
                    : "q and k must have the same size; up to 128 each, 192 with 128, or 256 "
                      "with 256",
               why);
}

static bool flash_has_sizes(const tni_sdpa *s, tn_refusal *why)
{
    char rule[64];
    int64_t most = s->is & TNI_SDPA_ROCM ? most_of_rocm(s) : 256;
    if (s->is & TNI_SDPA_FA4)
        return fa4_has_sizes(s, why);
    snprintf(rule, sizeof rule, "one size for q, k and v, up to %" PRId64, most);
    return has_one_size(s, most) || refuse_sizes(s, most, rule, why);
}

static bool flash_can_train(const tni_sdpa *s, tn_refusal *why)
{
    int64_t size = tni_sdpa_size(tni_sdpa_q(s));
    bool narrow = (s->capability >= 86 && s->capability <= 89) || s->capability == 120 ||
                  s->capability == 121;
    if (!s->training || !narrow || size <= 192 || (size > 224 && !(s->params->dropout > 0)))
        return true;
    return tni_refuse(why, TN_REFUSE_FEATURE, "gradient", 192, size,
                      "on 8.6 to 8.9 and 12.0 to 12.1, gradients are not supported for head "
                      "sizes 193 to 224, with dropout also above");
}

static bool flash_is_square(const tni_sdpa *s, tn_refusal *why)
{
    int64_t queries = tni_sdpa_queries(s), keys = tni_sdpa_keys(s);
    if (!s->params->is_causal || s->params->query.nested || s->params->key.nested ||
        queries == keys)
        return true;
    return tni_refuse(why, TN_REFUSE_SHAPE, "k.length", queries, keys,
                      "is_causal is aligned to the top left, flash's mask to the bottom right: "
                      "they agree only for equal lengths");
}

static bool flash_has_dtype(const tni_sdpa *s, tn_refusal *why)
{
    static const tn_dtype with_f8[] = {TN_F8_E4M3FN, TN_F16, TN_BF16, 0};
    if (s->params->flash == 3 && s->is & TNI_SDPA_CUDA && tni_sdpa_major(s) >= 9)
        return tni_sdpa_has_dtype(s, with_f8, why);
    return tni_sdpa_is_half(s, why);
}

static bool nested_has_sizes(const tni_sdpa *s, tn_refusal *why)
{
    return (has_one_size(s, 256) && tni_sdpa_size(tni_sdpa_q(s)) % 8 == 0) ||
           refuse_sizes(s, 256, "nested: one size, a multiple of 8 up to 256", why);
}

const tni_sdpa_row tni_sdpa_flash_rows[] = {
    {"kernel", 0, tni_sdpa_has_kernel},
    {"enabled", 0, tni_sdpa_is_enabled},
    {"device", 0, tni_sdpa_is_on_device},
    {"rank", 0, tni_sdpa_has_rank},
    {"mask", 0, has_no_mask},
    {"fa4-capability", TNI_SDPA_FA4 | TNI_SDPA_CUDA, fa4_has_capability},
    {"fa4-dropout", TNI_SDPA_FA4 | TNI_SDPA_CUDA, fa4_has_no_dropout},
    {"head-size", TNI_SDPA_WHOLE, flash_has_sizes},
    {"capability", TNI_SDPA_CUDA, tni_sdpa_is_ampere},
    {"architecture", TNI_SDPA_ROCM, has_architecture},
    {"experimental", TNI_SDPA_ROCM, is_established},
    {"training", TNI_SDPA_WHOLE | TNI_SDPA_CUDA, flash_can_train},
    {"causal", TNI_SDPA_WHOLE, flash_is_square},
    {"dtype", 0, flash_has_dtype},
    {"nested-batch", TNI_SDPA_WHOLE | TNI_SDPA_NESTED, tni_sdpa_nested_batch},
    {"nested-head-size", TNI_SDPA_WHOLE | TNI_SDPA_NESTED, nested_has_sizes},
    {"nested-length", TNI_SDPA_WHOLE | TNI_SDPA_NESTED, tni_sdpa_nested_lengths},
    {"batch", TNI_SDPA_WHOLE | TNI_SDPA_DENSE, tni_sdpa_has_batch},
    {"heads", TNI_SDPA_WHOLE | TNI_SDPA_DENSE, tni_sdpa_has_heads},
    {"length", TNI_SDPA_WHOLE | TNI_SDPA_DENSE, tni_sdpa_has_length},
    {"stride", TNI_SDPA_WHOLE | TNI_SDPA_DENSE, tni_sdpa_has_stride_unless_one},
    {NULL, 0, NULL},
};

/* Which memory-efficient attention. */

static bool is_half(const tni_sdpa *s)
{
    tn_dtype dtype = tni_sdpa_q(s)->dtype;
    return dtype == TN_F16 || dtype == TN_BF16;
}

/* Returns the number of elements that a head size must be a multiple of. */
static int64_t step_of(const tni_sdpa *s)
{
    if (tni_sdpa_is_recent(s))
        return is_half(s) ? 8 : 4;
    return tni_sdpa_major(s) >= 7 && is_half(s) ? 8 : 1;
}

static bool efficient_has_capability(const tni_sdpa *s, tn_refusal *why)
{
    return tni_sdpa_has_capability(s, 50, 121, why);
}

static bool efficient_has_equal_sizes(const tni_sdpa *s, tn_refusal *why)
{
    int64_t q = tni_sdpa_size(tni_sdpa_q(s)), k = tni_sdpa_size(tni_sdpa_k(s));
    return q == k || refuse_sizes(s, q, "q and k must have the same head size", why);
}

static bool efficient_has_multiples(const tni_sdpa *s, tn_refusal *why)
{
    const tn_layout *of[] = {tni_sdpa_q(s), tni_sdpa_v(s)};
    int64_t step = step_of(s);
    for (int i = 0; i < 2; i++) {
        int64_t size = tni_sdpa_size(of[i]);
        if (size <= 0 || size % step != 0)
            return tni_refuse(why, TN_REFUSE_SHAPE, i == 0 ? "q.size" : "v.size", step, size,
                              "the head size must be a multiple of %" PRId64 ", and not 0", step);
    }
    return true;
}

/* Before 0.12, AOTriton's limits were those of its nested flash attention. */
static bool efficient_fits_aotriton(const tni_sdpa *s, tn_refusal *why)
{
    int64_t most = most_of_rocm(s);
    if (s->version < AOTRITON_UNEQUAL)
        return nested_has_sizes(s, why);
    return greatest_size(s) <= most || refuse_sizes(s, most, "AOTriton limits the head size", why);
}

static bool efficient_is_aligned(const tni_sdpa *s, tn_refusal *why)
{
    static const char *const what[] = {"q.alignment", "k.alignment", "v.alignment"};
    const tn_layout *of[] = {tni_sdpa_q(s), tni_sdpa_k(s), tni_sdpa_v(s)};
    int64_t needed = step_of(s) * tni_dtype_bytes(tni_sdpa_q(s)->dtype);
    for (int i = 0; i < 3 && s->capability >= 80; i++) {
        bool empty = false;
        for (int d = 0; d < of[i]->rank; d++)
            empty = empty || of[i]->shape[d] == 0;
        if (!empty && of[i]->alignment % needed != 0)
            return tni_refuse(why, TN_REFUSE_ALIGNMENT, what[i], needed, of[i]->alignment,
                              "the address must be a multiple of %" PRId64 " bytes", needed);
    }
    return true;
}

static bool nested_does_not_train(const tni_sdpa *s, tn_refusal *why)
{
    return !s->training || tni_refuse(why, TN_REFUSE_FEATURE, "gradient", 1, 0,
                                      "gradients of nested tensors are not supported");
}

static bool rocm_mask_fits(const tni_sdpa *s, tn_refusal *why)
{
    tn_dtype mask = s->params->attn_mask.layout.dtype, q = tni_sdpa_q(s)->dtype;
    return mask == TN_BOOL || mask == q ||
           tni_refuse(why, TN_REFUSE_DTYPE, "mask.dtype", 1, 0,
                      "expected bool or %s, as q is, got %s", tn_dtype_name(q),
                      tn_dtype_name(mask));
}

static bool efficient_has_dtype(const tni_sdpa *s, tn_refusal *why)
{
    static const tn_dtype all[] = {TN_F16, TN_F32, TN_BF16, 0}, old[] = {TN_F16, TN_F32, 0};
    static const tn_dtype ck[] = {TN_F16, TN_BF16, 0};
    if (s->is & TNI_SDPA_ROCM && goes_through_ck(s))
        return tni_sdpa_has_dtype(s, ck, why);
    return tni_sdpa_has_dtype(s, tni_sdpa_is_recent(s) ? all : old, why);
}

const tni_sdpa_row tni_sdpa_efficient_rows[] = {
    {"kernel", 0, tni_sdpa_has_kernel},
    {"enabled", 0, tni_sdpa_is_enabled},
    {"device", 0, tni_sdpa_is_on_device},
    {"capability", TNI_SDPA_CUDA, efficient_has_capability},
    {"architecture", TNI_SDPA_ROCM, has_architecture},
    {"experimental", TNI_SDPA_ROCM, is_established},
    {"rank", 0, tni_sdpa_has_rank},
    {"equal-size", TNI_SDPA_WHOLE, efficient_has_equal_sizes},
    {"head-size", TNI_SDPA_WHOLE, efficient_has_multiples},
    {"greatest-size", TNI_SDPA_WHOLE | TNI_SDPA_ROCM, efficient_fits_aotriton},
    {"alignment", TNI_SDPA_WHOLE | TNI_SDPA_CUDA | TNI_SDPA_DENSE, efficient_is_aligned},
    {"nested-training", TNI_SDPA_NESTED | TNI_SDPA_CUDA, nested_does_not_train},
    {"nested-batch", TNI_SDPA_WHOLE | TNI_SDPA_NESTED, tni_sdpa_nested_batch},
    {"nested-length", TNI_SDPA_WHOLE | TNI_SDPA_NESTED, tni_sdpa_nested_lengths},
    {"length", TNI_SDPA_WHOLE | TNI_SDPA_DENSE, tni_sdpa_has_length},
    {"stride", TNI_SDPA_WHOLE | TNI_SDPA_DENSE, tni_sdpa_has_stride},
    {"batch", TNI_SDPA_WHOLE | TNI_SDPA_DENSE, tni_sdpa_has_batch},
    {"heads", TNI_SDPA_WHOLE | TNI_SDPA_DENSE | TNI_SDPA_CUDA, tni_sdpa_has_heads},
    {"equal-heads", TNI_SDPA_WHOLE | TNI_SDPA_DENSE | TNI_SDPA_ROCM, tni_sdpa_has_equal_heads},
    {"mask-dtype", TNI_SDPA_MASKED | TNI_SDPA_ROCM, rocm_mask_fits},
    {"dtype", 0, efficient_has_dtype},
    {NULL, 0, NULL},
};
