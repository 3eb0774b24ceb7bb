/* Conditions under which a backend of the family can be used, as table rows: each has a name, when
 * it applies, and a function that reports the value needed and the value found. */
#ifndef TNI_COMPAT_TORCH_CONDITIONS_H
#define TNI_COMPAT_TORCH_CONDITIONS_H

#include "dispatch/judge.h"
#include "tenon/sdpa.h"

/* Dimensions of q, k and v. */
enum { TNI_SDPA_DIM_BATCH, TNI_SDPA_DIM_HEADS, TNI_SDPA_DIM_LENGTH, TNI_SDPA_DIM_SIZE };

/* The subject of a query. */
typedef struct tni_sdpa {
    const tn_sdpa_params *params;
    const tn_context *context; /* not NULL */
    const tn_device *device;   /* the query's */
    int32_t sdp;               /* TN_SDP_... */
    uint32_t is;               /* TNI_SDPA_... */
    int32_t capability;        /* 90 for 9.0; -1: unknown */
    int64_t version;           /* of the library; INT64_MAX: unknown, treated as the newest */
    bool training;             /* a gradient is needed, and kept */
} tni_sdpa;

/* Properties of the parameters; a row applies if they have all properties in its `when`. */
enum {
    TNI_SDPA_DENSE = 1,
    TNI_SDPA_NESTED = 2,
    TNI_SDPA_CUDA = 4,
    TNI_SDPA_ROCM = 8,
    TNI_SDPA_WHOLE = 16, /* q, k and v have four dimensions */
    TNI_SDPA_MASKED = 32,
    TNI_SDPA_FA4 = 64
};

typedef struct tni_sdpa_row {
    const char *name;
    uint32_t when; /* TNI_SDPA_... */
    bool (*holds)(const tni_sdpa *s, tn_refusal *why);
} tni_sdpa_row;

/* PyTorch's lists, in its order, and the list for platforms other than cuda and rocm; each ends
 * with a row without a name. */
extern const tni_sdpa_row tni_sdpa_flash_rows[];
extern const tni_sdpa_row tni_sdpa_efficient_rows[];
extern const tni_sdpa_row tni_sdpa_cudnn_rows[];
extern const tni_sdpa_row tni_sdpa_own_rows[];

/* Evaluates every row. The parameters must be valid. */
void tni_sdpa_evaluate(const tn_context *context, const tn_sdpa_params *params, int32_t sdp,
                       tn_sdpa_report *out);

/* Derives the parameters of an op; returns false if the op uses a feature that PyTorch's attention
 * does not have. */
bool tni_sdpa_of_op(const tn_op *op, tn_device *device, bool training, tn_sdpa_params *out);

/* Shared by the lists. */
bool tni_sdpa_has_kernel(const tni_sdpa *s, tn_refusal *why);
bool tni_sdpa_is_enabled(const tni_sdpa *s, tn_refusal *why);
bool tni_sdpa_is_on_device(const tni_sdpa *s, tn_refusal *why);
bool tni_sdpa_has_rank(const tni_sdpa *s, tn_refusal *why);
bool tni_sdpa_has_length(const tni_sdpa *s, tn_refusal *why);
bool tni_sdpa_has_stride(const tni_sdpa *s, tn_refusal *why);
bool tni_sdpa_has_stride_unless_one(const tni_sdpa *s, tn_refusal *why);
bool tni_sdpa_has_batch(const tni_sdpa *s, tn_refusal *why);
bool tni_sdpa_has_heads(const tni_sdpa *s, tn_refusal *why);       /* GQA groups, or one head for
                                                                    * all */
bool tni_sdpa_has_equal_heads(const tni_sdpa *s, tn_refusal *why); /* neither */
bool tni_sdpa_has_any_groups(const tni_sdpa *s, tn_refusal *why);  /* groups may differ between k
                                                                    * and v */
bool tni_sdpa_nested_batch(const tni_sdpa *s, tn_refusal *why);
bool tni_sdpa_nested_lengths(const tni_sdpa *s, tn_refusal *why);
bool tni_sdpa_is_half(const tni_sdpa *s, tn_refusal *why); /* f16, bf16 from 8.0 on */

/* Whether q, k and v all have the same dtype, one of `dtypes`, which ends with 0. */
bool tni_sdpa_has_dtype(const tni_sdpa *s, const tn_dtype *dtypes, tn_refusal *why);

/* Whether the capability is known and from `least` to `most`; at least 8.0; 9.x or 10.x, as needed
 * by `whose`. */
bool tni_sdpa_has_capability(const tni_sdpa *s, int32_t least, int32_t most, tn_refusal *why);
bool tni_sdpa_is_ampere(const tni_sdpa *s, tn_refusal *why);
bool tni_sdpa_is_hopper(const tni_sdpa *s, const char *whose, tn_refusal *why);

/* Whether the device is rocm, or cuda with capability 8.0 or later; an unknown capability counts as
 * such. These devices compute with bf16, and need head sizes that are multiples of more
 * elements. */
bool tni_sdpa_is_recent(const tni_sdpa *s);

/* Whether both directions support the head sizes of q and v on 10.x: up to 128 each, 192 with 128,
 * 256 with 256. */
bool tni_sdpa_has_pair(const tni_sdpa *s);

static inline const tn_layout *tni_sdpa_q(const tni_sdpa *s)
{
    return &s->params->query.layout;
}

static inline const tn_layout *tni_sdpa_k(const tni_sdpa *s)
{
    return &s->params->key.layout;
}

static inline const tn_layout *tni_sdpa_v(const tni_sdpa *s)
{
    return &s->params->value.layout;
}

static inline int32_t tni_sdpa_major(const tni_sdpa *s)
{
    return s->capability / 10;
}

static inline int64_t tni_sdpa_size(const tn_layout *layout)
{
    return layout->shape[TNI_SDPA_DIM_SIZE];
}

static inline int64_t tni_sdpa_queries(const tni_sdpa *s)
{
    return tni_sdpa_q(s)->shape[TNI_SDPA_DIM_LENGTH];
}

static inline int64_t tni_sdpa_keys(const tni_sdpa *s)
{
    return tni_sdpa_k(s)->shape[TNI_SDPA_DIM_LENGTH];
}

#endif
