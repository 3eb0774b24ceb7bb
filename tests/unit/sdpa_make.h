/* Parameters of scaled-dot-product attention by words, and what the three lists say of them. */
#ifndef TENON_TEST_UNIT_SDPA_MAKE_H
#define TENON_TEST_UNIT_SDPA_MAKE_H

#include "attention_rows.h"

#include "op/op.h"

enum { FLASH, EFFICIENT, CUDNN };
typedef tn_status (*can_use)(const tn_context *, const tn_sdpa_params *, tn_sdpa_report *,
                             tn_error *);
static const can_use asks[] = {tn_can_use_flash_attention, tn_can_use_efficient_attention,
                               tn_can_use_cudnn_attention};

static int64_t lengths[3][8];

/* One number of the parameters by its word; q, k and v together where the word names none of them. */
static inline void put(tn_sdpa_params *p, const char *key, double value)
{
    tn_sdpa_tensor *of[] = {&p->query, &p->key, &p->value};
    tn_layout *mask = &p->attn_mask.layout;
    int64_t whole = (int64_t)value;
    const struct {
        const char *key;
        int64_t *to[3];
    } numbers[] = {
        {"d", {&of[0]->layout.shape[3], &of[1]->layout.shape[3], &of[2]->layout.shape[3]}},
        {"dk", {&of[1]->layout.shape[3]}},
        {"dv", {&of[2]->layout.shape[3]}},
        {"lq", {&of[0]->layout.shape[2]}},
        {"lk", {&of[1]->layout.shape[2], &of[2]->layout.shape[2]}},
        {"h", {&of[0]->layout.shape[1], &of[1]->layout.shape[1], &of[2]->layout.shape[1]}},
        {"hk", {&of[1]->layout.shape[1]}},
        {"hv", {&of[2]->layout.shape[1]}},
        {"b", {&of[0]->layout.shape[0], &of[1]->layout.shape[0], &of[2]->layout.shape[0]}},
        {"bk", {&of[1]->layout.shape[0]}},
        {"bv", {&of[2]->layout.shape[0]}},
        {"sq", {&of[0]->layout.stride[3]}},
        {"sk", {&of[1]->layout.stride[3]}},
        {"sv", {&of[2]->layout.stride[3]}},
        {"align", {&of[1]->layout.alignment}},
        {"align_q", {&of[0]->layout.alignment}},
        {"align_v", {&of[2]->layout.alignment}},
        {"version", {&p->library_version}},
        {"mb", {&mask->shape[0]}},
        {"mh", {&mask->shape[1]}},
        {"mq", {&mask->shape[2]}},
        {"mk", {&mask->shape[3]}},
        {"ms", {&mask->stride[3]}},
        {"len_q", {&lengths[0][0]}},
        {"len_k", {&lengths[1][0]}},
        {"len_v", {&lengths[2][0]}},
    };
    const struct {
        const char *key;
        int32_t *to[3];
    } switches[] = {
        {"rank", {&of[0]->layout.rank}},
        {"rank_k", {&of[1]->layout.rank}},
        {"rank_v", {&of[2]->layout.rank}},
        {"mrank", {&mask->rank}},
        {"causal", {&p->is_causal}},
        {"gqa", {&p->enable_gqa}},
        {"flash", {&p->flash}},
        {"grad", {&of[0]->requires_grad}},
        {"kgrad", {&of[1]->requires_grad}},
        {"vgrad", {&of[2]->requires_grad}},
        {"mgrad", {&p->attn_mask.requires_grad}},
        {"nested", {&of[0]->nested, &of[1]->nested, &of[2]->nested}},
        {"nested_q", {&of[0]->nested}},
        {"nested_k", {&of[1]->nested}},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        for (int j = 0; strcmp(numbers[i].key, key) == 0 && j < 3 && numbers[i].to[j]; j++)
            *numbers[i].to[j] = whole;
    }
    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++) {
        for (int j = 0; strcmp(switches[i].key, key) == 0 && j < 3 && switches[i].to[j]; j++)
            *switches[i].to[j] = (int32_t)whole;
    }
    if (strcmp(key, "drop") == 0)
        p->dropout = value;
    if (strcmp(key, "permits") == 0)
        p->permits = (uint32_t)whole;
}

static inline tn_dtype dtype_of(const char *word)
{
    static const tn_dtype all[] = {TN_F16, TN_BF16, TN_F32, TN_F64, TN_BOOL, TN_F8_E4M3FN};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(tn_dtype_name(all[i]), word) == 0)
            return all[i];
    }
    fail_msg("no dtype %s", word);
    return 0;
}

static inline void put_word(tn_sdpa_params *p, const char *key, const char *value)
{
    if (strcmp(key, "dtype") == 0)
        p->query.layout.dtype = p->key.layout.dtype = p->value.layout.dtype = dtype_of(value);
    else if (strcmp(key, "kdtype") == 0)
        p->key.layout.dtype = dtype_of(value);
    else if (strcmp(key, "vdtype") == 0)
        p->value.layout.dtype = dtype_of(value);
    else if (strcmp(key, "lengths") == 0) /* unknown */
        p->query.lengths = p->key.lengths = p->value.lengths = NULL;
    else if (strcmp(key, "mask") == 0) {
        const int64_t shape[] = {2, 4, 256, 256};
        tni_layout_make(&p->attn_mask.layout, dtype_of(value), shape, 4);
    } else if (strcmp(key, "on_k") == 0)
        p->key.device = described(value);
    else if (strcmp(key, "on_v") == 0)
        p->value.device = described(value);
    else if (strcmp(key, "on_mask") == 0)
        p->attn_mask.device = described(value);
    else
        put(p, key, strtod(value, NULL));
}

/* bf16 [2, 4, 256, 64], changed by "key=value ..." in turn. */
static inline void make(tn_sdpa_params *p, const char *device, const char *changes)
{
    const int64_t shape[] = {2, 4, 256, 64};
    tn_sdpa_tensor *of[] = {&p->query, &p->key, &p->value};
    char text[160], *at = text, *next;
    *p = (tn_sdpa_params){.struct_size = sizeof *p};
    for (int i = 0; i < 3; i++) {
        of[i]->device = i == 0 ? described(device) : NULL; /* NULL: the query's */
        tni_layout_make(&of[i]->layout, TN_BF16, shape, 4);
        of[i]->lengths = lengths[i];
        for (int j = 0; j < 8; j++)
            lengths[i][j] = 256;
    }
    snprintf(text, sizeof text, "%s", changes);
    for (char *pair = strtok_r(at, " ", &next); pair; pair = strtok_r(NULL, " ", &next)) {
        char *value = strchr(pair, '=');
        *value = '\0';
        put_word(p, pair, value + 1);
    }
}

static inline void ask(int list, const char *device, const char *changes, tn_sdpa_report *out)
{
    tn_sdpa_params params;
    tn_error err;
    make(&params, device, changes);
    out->struct_size = sizeof *out;
    if (asks[list](NULL, &params, out, &err))
        fail_msg("%s %s: %s", device, changes, err.message);
}

static inline const tn_sdpa_check *check_of(const tn_sdpa_report *report, const char *name)
{
    for (size_t i = 0; i < report->count; i++) {
        if (strcmp(report->checks[i].name, name) == 0)
            return &report->checks[i];
    }
    return NULL;
}

static inline int32_t outcome(int list, const char *device, const char *changes, const char *name)
{
    tn_sdpa_report report;
    ask(list, device, changes, &report);
    return check_of(&report, name)->outcome;
}

static const char *const list_names[] = {"flash", "efficient", "cudnn"};

#endif
