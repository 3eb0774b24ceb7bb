/* The conditions of cuDNN's attention on cuda, as in PyTorch. */
#include "conditions.h"

#include <inttypes.h>
#include <math.h>

/* cuDNN 9.10.2 is 91002, 8.9.3 was 8903. */
enum {
    CUDNN_FIRST = 8903,
    CUDNN_DROPOUT = 8906,
    CUDNN_9 = 90000,
    CUDNN_192 = 91100,
    CUDNN_DROPOUT_LOST = 91100,  /* after this one */
    CUDNN_DROPOUT_FOUND = 91400, /* from this one on */
    CUDNN_DECODE_LOST = 91900,
    CUDNN_256 = 92200, /* after this one */
    CUDNN_9_24 = 92400,
    CUDNN_9_25 = 92500,
    CUDNN_GRADIENT = 92600
};

static bool refuse_version(const tni_sdpa *s, int64_t needed, const char *text, tn_refusal *why)
{
    return tni_refuse(why, TN_REFUSE_VERSION, "cuDNN", needed, s->version, "%s", text);
}

static bool has_dropout(const tni_sdpa *s)
{
    return s->params->dropout != 0;
}

static bool is_new(const tni_sdpa *s, tn_refusal *why)
{
    if (s->version == INT64_MAX)
        tn_text_fit(why->text, sizeof why->text,
                    "its version is unknown; assumed to be the newest");
    return s->version >= CUDNN_9 || refuse_version(s, CUDNN_9, "attention needs cuDNN 9.0", why);
}

static bool can_drop(const tni_sdpa *s, tn_refusal *why)
{
    return !(s->params->dropout > 0) || s->version <= CUDNN_DROPOUT_LOST ||
           s->version >= CUDNN_DROPOUT_FOUND ||
           refuse_version(s, CUDNN_DROPOUT_FOUND, "9.11 to 9.13 have no dropout", why);
}

static bool nested_is_permitted(const tni_sdpa *s, tn_refusal *why)
{
    return s->params->permits & TN_SDPA_PERMIT_CUDNN_NESTED ||
           tni_refuse(why, TN_REFUSE_FEATURE, "nested", 1, 0,
                      "nested tensors are experimental: TN_SDPA_PERMIT_CUDNN_NESTED permits them");
}

static bool nested_has_capability(const tni_sdpa *s, tn_refusal *why)
{
    return tni_sdpa_is_hopper(s, "nested tensors are", why);
}

static bool may_differ(const tni_sdpa *s, tn_refusal *why)
{
    bool repeat = tn_setting_value(s->context, TN_SETTING_DETERMINISM) != TN_DETERMINISM_ANY;
    bool library = tn_setting_value(s->context, TN_SETTING_CUDNN_DETERMINISTIC);
    return (!repeat && !library) ||
           tni_refuse(why, TN_REFUSE_DETERMINISM, "run-to-run", 1, 0,
                      "%s requires the same bits in every run, which cuDNN's attention does not "
                      "guarantee",
                      repeat ? "determinism" : "cudnn.deterministic");
}

static const tn_layout *mask_of(const tni_sdpa *s)
{
    return &s->params->attn_mask.layout;
}

static bool mask_is_constant(const tni_sdpa *s, tn_refusal *why)
{
    return !s->params->attn_mask.requires_grad ||
           tni_refuse(why, TN_REFUSE_FEATURE, "mask.gradient", 1, 0,
                      "the gradient of a mask is not supported");
}

static bool mask_has_lengths(const tni_sdpa *s, tn_refusal *why)
{
    const tn_layout *mask = mask_of(s);
    const int64_t needed[] = {tni_sdpa_queries(s), tni_sdpa_keys(s)};
    for (int i = 0; i < 2; i++) {
        int64_t found = mask->rank >= 2 ? mask->shape[mask->rank - 2 + i] : -1;
        if (found != needed[i] && found != 1)
            return tni_refuse(why, TN_REFUSE_SHAPE, i == 0 ? "mask.queries" : "mask.keys",
                              needed[i], found, "the mask must have the lengths of q and k, or 1");
    }
    return true;
}

static bool mask_has_shape(const tni_sdpa *s, tn_refusal *why)
{
    const tn_layout *mask = mask_of(s), *q = tni_sdpa_q(s);
    if (mask->rank == 2)
        return true;
    if (mask->rank != 4)
        return tni_refuse(why, TN_REFUSE_SHAPE, "mask.rank", 4, mask->rank,
                          "[queries, keys] or [batch, heads, queries, keys]");
    for (int i = 0; i < 2; i++) {
        if (mask->shape[i] != q->shape[i] && mask->shape[i] != 1)
            return tni_refuse(why, TN_REFUSE_SHAPE,
                              i == TNI_SDPA_DIM_BATCH ? "mask.batch" : "mask.heads", q->shape[i],
                              mask->shape[i], "the mask must have the batch and heads of q, or 1");
    }
    return true;
}

static bool has_steps(const tni_sdpa *s, tn_refusal *why)
{
    double steps = s->params->dropout * 16;
    return steps == floor(steps) ||
           tni_refuse(why, TN_REFUSE_FEATURE, "dropout", 1, 0,
                      "%g is not a multiple of 1/16, which cuDNN requires", s->params->dropout);
}

static bool has_counts(const tni_sdpa *s, tn_refusal *why)
{
    enum { MOST = 65535 };
    const tn_layout *q = tni_sdpa_q(s);
    for (int i = 0; i < 2; i++) {
        if (q->shape[i] > MOST)
            return tni_refuse(why, TN_REFUSE_SHAPE, i == TNI_SDPA_DIM_BATCH ? "q.batch" : "q.heads",
                              MOST, q->shape[i], "split it");
    }
    return true;
}

static bool has_attention(const tni_sdpa *s, tn_refusal *why)
{
    return s->version >= CUDNN_FIRST ||
           refuse_version(s, CUDNN_FIRST, "attention needs cuDNN 8.9.3 or later", why);
}

static bool has_drop(const tni_sdpa *s, tn_refusal *why)
{
    return s->version >= CUDNN_DROPOUT || !has_dropout(s) ||
           refuse_version(s, CUDNN_DROPOUT, "dropout needs cuDNN 8.9.6 or later", why);
}

/* PyTorch issue 196678: non-finite gradients of queries. */
static bool gradient_is_finite(const tni_sdpa *s, tn_refusal *why)
{
    return s->version >= CUDNN_GRADIENT || s->capability != 90 || s->params->is_causal ||
           !s->params->query.requires_grad || tni_sdpa_keys(s) % 128 != 64 ||
           refuse_version(s, CUDNN_GRADIENT,
                          "before 9.26, on 9.0, gradients of queries can be infinite when keys are "
                          "64 more than a multiple of 128",
                          why);
}

/* PyTorch issues 193893 and 194927: wrong results for a single query. */
static bool decode_is_right(const tni_sdpa *s, tn_refusal *why)
{
    int32_t major = tni_sdpa_major(s);
    bool lost = s->version >= CUDNN_DECODE_LOST && s->version <= CUDNN_9_25 &&
                !(s->version > CUDNN_9_24 && s->version < CUDNN_9_25);
    return !lost || tni_sdpa_queries(s) != 1 || (major != 10 && major != 11) ||
           refuse_version(
               s, CUDNN_9_25 + 1,
               "9.19 to 9.25.0, but not 9.24.1, are wrong for one query on 10.x and 11.x", why);
}

/* Devices on which heads may be greater; with cuDNN after 9.22, all of them. */
static bool may_be_wide(const tni_sdpa *s)
{
    return s->capability == 90 || tni_sdpa_major(s) == 10;
}

static bool is_wide(const tni_sdpa *s)
{
    bool early = s->capability == 107 && s->version <= CUDNN_9_25;
    return may_be_wide(s) && !early && s->version > CUDNN_256;
}

static bool has_size(const tni_sdpa *s, tn_refusal *why)
{
    int64_t q = tni_sdpa_size(tni_sdpa_q(s)), v = tni_sdpa_size(tni_sdpa_v(s)), most = 128;
    if (is_wide(s))
        most = 256;
    else if (may_be_wide(s) && s->version >= CUDNN_192 && q == 192 && v == 128)
        most = 192;
    return (q <= most && v <= most) ||
           tni_refuse(why, TN_REFUSE_SHAPE, "head size", most, q > v ? q : v,
                      "this device and version support up to %" PRId64, most);
}

static bool has_multiple(const tni_sdpa *s, tn_refusal *why)
{
    int64_t q = tni_sdpa_size(tni_sdpa_q(s)), v = tni_sdpa_size(tni_sdpa_v(s));
    return (q % 8 == 0 && v % 8 == 0) ||
           tni_refuse(why, TN_REFUSE_SHAPE, q % 8 ? "q.size" : "v.size", 8, q % 8 ? q : v,
                      "the head size must be a multiple of 8");
}

static bool old_has_keys(const tni_sdpa *s, tn_refusal *why)
{
    return s->version >= CUDNN_DROPOUT || tni_sdpa_keys(s) % 64 == 0 ||
           tni_refuse(why, TN_REFUSE_SHAPE, "k.length", 64, tni_sdpa_keys(s),
                      "before 8.9.6, the number of keys must be a multiple of 64");
}

static bool old_has_queries(const tni_sdpa *s, tn_refusal *why)
{
    return s->version >= CUDNN_9 || tni_sdpa_queries(s) >= 64 ||
           tni_refuse(why, TN_REFUSE_SHAPE, "q.length", 64, tni_sdpa_queries(s),
                      "before 9.0, there must be at least 64 queries");
}

static bool old_has_dropout(const tni_sdpa *s, tn_refusal *why)
{
    bool odd = tni_sdpa_queries(s) % 64 != 0;
    return s->version >= CUDNN_9 || !has_dropout(s) || (!odd && tni_sdpa_keys(s) % 64 == 0) ||
           tni_refuse(why, TN_REFUSE_SHAPE, odd ? "q.length" : "k.length", 64,
                      odd ? tni_sdpa_queries(s) : tni_sdpa_keys(s),
                      "before 9.0 dropout needs lengths that are multiples of 64");
}

static bool has_keys(const tni_sdpa *s, tn_refusal *why)
{
    return tni_sdpa_keys(s) != 1 ||
           tni_refuse(why, TN_REFUSE_SHAPE, "k.length", 2, 1, "a single key is not supported");
}

static bool has_queries(const tni_sdpa *s, tn_refusal *why)
{
    return tni_sdpa_queries(s) != 1 || !has_dropout(s) ||
           tni_refuse(why, TN_REFUSE_SHAPE, "q.length", 2, 1,
                      "a single query is not supported with dropout");
}

static bool can_train(const tni_sdpa *s, tn_refusal *why)
{
    int64_t q = tni_sdpa_size(tni_sdpa_q(s)), v = tni_sdpa_size(tni_sdpa_v(s));
    return !s->training || !is_wide(s) || tni_sdpa_has_pair(s) ||
           tni_refuse(why, TN_REFUSE_FEATURE, "gradient", 128, q > v ? q : v,
                      "gradients are supported for head sizes up to 128, 192 with 128, and 256 "
                      "with 256; q has %" PRId64 ", v %" PRId64,
                      q, v);
}

static bool nested_has_queries(const tni_sdpa *s, tn_refusal *why)
{
    const tn_sdpa_tensor *q = &s->params->query;
    int64_t longest = q->lengths ? 0 : tni_sdpa_queries(s);
    for (int64_t i = 0; q->lengths && i < q->layout.shape[TNI_SDPA_DIM_BATCH]; i++)
        longest = q->lengths[i] > longest ? q->lengths[i] : longest;
    return !q->nested || longest > 128 ||
           tni_refuse(why, TN_REFUSE_SHAPE, "q.length", 129, longest,
                      "the longest nested sequence must have more than 128 queries");
}

#define WHOLE_DENSE (TNI_SDPA_WHOLE | TNI_SDPA_DENSE)

const tni_sdpa_row tni_sdpa_cudnn_rows[] = {
    {"kernel", 0, tni_sdpa_has_kernel},
    {"version", TNI_SDPA_CUDA, is_new},
    {"dropout-version", TNI_SDPA_CUDA, can_drop},
    {"enabled", 0, tni_sdpa_is_enabled},
    {"nested-permitted", TNI_SDPA_NESTED, nested_is_permitted},
    {"nested-capability", TNI_SDPA_NESTED | TNI_SDPA_CUDA, nested_has_capability},
    {"device", 0, tni_sdpa_is_on_device},
    {"rank", 0, tni_sdpa_has_rank},
    {"determinism", 0, may_differ},
    {"dtype", 0, tni_sdpa_is_half},
    {"mask-gradient", TNI_SDPA_MASKED, mask_is_constant},
    {"mask-length", TNI_SDPA_WHOLE | TNI_SDPA_MASKED, mask_has_lengths},
    {"mask-shape", TNI_SDPA_WHOLE | TNI_SDPA_MASKED, mask_has_shape},
    {"capability", TNI_SDPA_CUDA, tni_sdpa_is_ampere},
    {"dropout-step", 0, has_steps},
    {"length", WHOLE_DENSE, tni_sdpa_has_length},
    {"stride", WHOLE_DENSE, tni_sdpa_has_stride_unless_one},
    {"batch", WHOLE_DENSE, tni_sdpa_has_batch},
    {"heads", WHOLE_DENSE, tni_sdpa_has_any_groups},
    {"count", WHOLE_DENSE, has_counts},
    {"version-attention", WHOLE_DENSE | TNI_SDPA_CUDA, has_attention},
    {"version-dropout", WHOLE_DENSE | TNI_SDPA_CUDA, has_drop},
    {"version-gradient", WHOLE_DENSE | TNI_SDPA_CUDA, gradient_is_finite},
    {"version-decode", WHOLE_DENSE | TNI_SDPA_CUDA, decode_is_right},
    {"head-size", WHOLE_DENSE, has_size},
    {"head-multiple", WHOLE_DENSE, has_multiple},
    {"old-keys", WHOLE_DENSE | TNI_SDPA_CUDA, old_has_keys},
    {"old-queries", WHOLE_DENSE | TNI_SDPA_CUDA, old_has_queries},
    {"old-dropout", WHOLE_DENSE | TNI_SDPA_CUDA, old_has_dropout},
    {"one-key", WHOLE_DENSE, has_keys},
    {"one-query", WHOLE_DENSE, has_queries},
    {"training", WHOLE_DENSE | TNI_SDPA_CUDA, can_train},
    {"nested-queries", TNI_SDPA_WHOLE | TNI_SDPA_NESTED, nested_has_queries},
    {NULL, 0, NULL},
};
