/* Conditions under which one of the family can be used, as rows: each with its name, when it is asked, and
 * a function that says needed and found. */
#ifndef TNI_DISPATCH_ATTENTION_CONDITIONS_H
#define TNI_DISPATCH_ATTENTION_CONDITIONS_H

#include "dispatch/judge.h"
#include "tenon/sdpa.h"

/* Dimensions of q, k and v. */
enum { TNI_SDPA_DIM_BATCH, TNI_SDPA_DIM_HEADS, TNI_SDPA_DIM_LENGTH, TNI_SDPA_DIM_SIZE };

/* What is asked about. */
typedef struct tni_sdpa {
    const tn_sdpa_params *params;
    const tn_context *context; /* not NULL */
    const tn_device *device;   /* the query's */
    int32_t sdp;               /* TN_SDP_... */
    uint32_t is;               /* TNI_SDPA_... */
    int32_t capability;        /* 90 for 9.0; -1: unknown */
    int64_t version;           /* of the library; INT64_MAX: unknown, taken as the newest */
    bool training;             /* a gradient is asked for, and kept */
} tni_sdpa;

/* What parameters are; a row is asked when they are everything that it says. */
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

/* Upstream's lists, in its order, and what is asked on other platforms than cuda and rocm; ended by a row
 * without a name. */
extern const tni_sdpa_row tni_sdpa_flash_rows[];
extern const tni_sdpa_row tni_sdpa_efficient_rows[];
extern const tni_sdpa_row tni_sdpa_cudnn_rows[];
extern const tni_sdpa_row tni_sdpa_own_rows[];

/* Asks every row. The parameters are sound. */
void tni_sdpa_ask(const tn_context *context, const tn_sdpa_params *params, int32_t sdp,
                  tn_sdpa_report *out);

/* The parameters of an op; false for one that uses what upstream's attention does not have. */
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
bool tni_sdpa_has_heads(const tni_sdpa *s, tn_refusal *why);       /* groups, or one for all      */
bool tni_sdpa_has_equal_heads(const tni_sdpa *s, tn_refusal *why); /* neither                     */
bool tni_sdpa_has_any_groups(const tni_sdpa *s, tn_refusal *why);  /* of k and v each its own     */
bool tni_sdpa_nested_batch(const tni_sdpa *s, tn_refusal *why);
bool tni_sdpa_nested_lengths(const tni_sdpa *s, tn_refusal *why);
bool tni_sdpa_is_half(const tni_sdpa *s, tn_refusal *why); /* f16, bf16 from 8.0 on */

/* Whether q, k and v are all of one of the dtypes, ended by 0. */
bool tni_sdpa_has_dtype(const tni_sdpa *s, const tn_dtype *dtypes, tn_refusal *why);

/* Whether the capability is known and from `least` to `most`; from 8.0 on; 9.x or 10.x, for what `whose` has. */
bool tni_sdpa_has_capability(const tni_sdpa *s, int32_t least, int32_t most, tn_refusal *why);
bool tni_sdpa_is_ampere(const tni_sdpa *s, tn_refusal *why);
bool tni_sdpa_is_hopper(const tni_sdpa *s, const char *whose, tn_refusal *why);

/* Whether the device is of rocm, or of cuda from 8.0 on, as one counts whose capability is unknown: such compute with
 * bf16, and read heads in greater steps. */
bool tni_sdpa_is_recent(const tni_sdpa *s);

/* Whether heads of q and v are such that both directions have them on 10.x: up to 128 each, 192 with 128, 256 with
 * 256. */
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
