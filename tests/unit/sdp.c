/* Scaled-dot-product attention's family: its switches and scopes, and every condition of upstream's lists on
 * both sides of its edge. */
#include "attention_rows.h"
#include "settings_check.h"

#include "ops/op.h"

enum { FLASH, EFFICIENT, CUDNN };
typedef tn_status (*can_use)(const tn_context *, const tn_sdpa_params *, tn_sdpa_report *,
                             tn_error *);
static const can_use lists[] = {tn_can_use_flash_attention, tn_can_use_efficient_attention,
                                tn_can_use_cudnn_attention};

static int64_t lengths[3][8];

/* One number of the parameters by its word; q, k and v together where the word names none of them. */
static void put(tn_sdpa_params *p, const char *key, double value)
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
        {"sv", {&of[2]->layout.stride[3]}},
        {"align", {&of[1]->layout.alignment}},
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
        {"rank_v", {&of[2]->layout.rank}},
        {"mrank", {&mask->rank}},
        {"causal", {&p->is_causal}},
        {"gqa", {&p->enable_gqa}},
        {"flash", {&p->flash}},
        {"grad", {&of[0]->requires_grad}},
        {"kgrad", {&of[1]->requires_grad}},
        {"mgrad", {&p->attn_mask.requires_grad}},
        {"nested", {&of[0]->nested, &of[1]->nested, &of[2]->nested}},
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

static tn_dtype dtype_of(const char *word)
{
    static const tn_dtype all[] = {TN_F16, TN_BF16, TN_F32, TN_F64, TN_BOOL, TN_F8_E4M3FN};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(tn_dtype_name(all[i]), word) == 0)
            return all[i];
    }
    fail_msg("no dtype %s", word);
    return 0;
}

static void put_word(tn_sdpa_params *p, const char *key, const char *value)
{
    if (strcmp(key, "dtype") == 0)
        p->query.layout.dtype = p->key.layout.dtype = p->value.layout.dtype = dtype_of(value);
    else if (strcmp(key, "kdtype") == 0)
        p->key.layout.dtype = dtype_of(value);
    else if (strcmp(key, "mask") == 0) {
        const int64_t shape[] = {2, 4, 256, 256};
        tni_layout_make(&p->attn_mask.layout, dtype_of(value), shape, 4);
    } else if (strcmp(key, "on_k") == 0)
        p->key.device = described(value);
    else if (strcmp(key, "on_mask") == 0)
        p->attn_mask.device = described(value);
    else
        put(p, key, strtod(value, NULL));
}

/* bf16 [2, 4, 256, 64], changed by "key=value ..." in turn. */
static void make(tn_sdpa_params *p, const char *device, const char *changes)
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

static void ask(int list, const char *device, const char *changes, tn_sdpa_report *out)
{
    tn_sdpa_params params;
    tn_error err;
    make(&params, device, changes);
    out->struct_size = sizeof *out;
    if (lists[list](NULL, &params, out, &err))
        fail_msg("%s %s: %s", device, changes, err.message);
}

static const tn_sdpa_check *check_of(const tn_sdpa_report *report, const char *name)
{
    for (size_t i = 0; i < report->count; i++) {
        if (strcmp(report->checks[i].name, name) == 0)
            return &report->checks[i];
    }
    return NULL;
}

/* A condition, with parameters that just meet it and such that just do not. */
static const struct edge {
    int list;
    const char *name, *device, *holds, *other_device, *fails;
    int32_t code;
    int64_t needed, found;
} edges[] = {
    {FLASH, "device", "h200", "", "h200", "on_k=a100", TN_REFUSE_DEVICE, 1, 0},
    {FLASH, "device", "h200", "mask=bool", "h200", "mask=bool on_mask=a100", TN_REFUSE_DEVICE, 1,
     0},
    {FLASH, "rank", "h200", "", "h200", "rank=3", TN_REFUSE_SHAPE, 4, 3},
    {FLASH, "rank", "h200", "", "h200", "rank_v=5", TN_REFUSE_SHAPE, 4, 5},
    {FLASH, "mask", "h200", "", "h200", "mask=bool", TN_REFUSE_FEATURE, 1, 0},
    {FLASH, "fa4-capability", "h200", "flash=4", "sm89", "flash=4", TN_REFUSE_DEVICE, 90, 89},
    {FLASH, "fa4-capability", "sm107", "flash=4", "sm110", "flash=4", TN_REFUSE_DEVICE, 90, 110},
    {FLASH, "fa4-dropout", "h200", "flash=4", "h200", "flash=4 drop=0.5", TN_REFUSE_FEATURE, 1, 0},
    {FLASH, "head-size", "h200", "d=256", "h200", "d=257", TN_REFUSE_SHAPE, 256, 257},
    {FLASH, "head-size", "h200", "", "h200", "dv=72", TN_REFUSE_SHAPE, 256, 72},
    {FLASH, "head-size", "h200", "", "h200", "dk=72", TN_REFUSE_SHAPE, 256, 72},
    {FLASH, "head-size", "h200", "d=256 dv=8 flash=4", "h200", "d=257 dv=8 flash=4",
     TN_REFUSE_SHAPE, 256, 257},
    {FLASH, "head-size", "h200", "dv=256 flash=4", "h200", "dv=257 flash=4", TN_REFUSE_SHAPE, 256,
     257},
    {FLASH, "head-size", "h200", "flash=4", "h200", "dk=72 flash=4", TN_REFUSE_SHAPE, 256, 72},
    {FLASH, "head-size", "h200", "d=1 flash=4", "h200", "d=0 dv=8 flash=4", TN_REFUSE_SHAPE, 256,
     8},
    {FLASH, "head-size", "sm100", "d=128 dv=64 flash=4", "sm100", "d=136 dv=64 flash=4",
     TN_REFUSE_SHAPE, 128, 136},
    {FLASH, "head-size", "sm100", "d=192 dv=128 flash=4", "sm100", "d=192 dv=136 flash=4",
     TN_REFUSE_SHAPE, 128, 192},
    {FLASH, "head-size", "sm100", "d=256 flash=4", "sm100", "d=256 dv=128 flash=4", TN_REFUSE_SHAPE,
     128, 256},
    {FLASH, "head-size", "mi300x", "d=512", "mi300x", "d=513", TN_REFUSE_SHAPE, 512, 513},
    {FLASH, "head-size", "gfx1100", "d=256", "gfx1100", "d=257", TN_REFUSE_SHAPE, 256, 257},
    {FLASH, "head-size", "gfx1100", "d=512 version=1000", "mi300x", "d=257 version=800",
     TN_REFUSE_SHAPE, 256, 257},
    {FLASH, "capability", "a100", "", "sm75", "", TN_REFUSE_DEVICE, 80, 75},
    {FLASH, "capability", "sm121", "", "sm122", "", TN_REFUSE_DEVICE, 121, 122},
    {FLASH, "capability", "h200", "", "untold", "", TN_REFUSE_DEVICE, 80, 0},
    {FLASH, "architecture", "mi300x", "", "gfx803", "", TN_REFUSE_DEVICE, 1, 0},
    {FLASH, "architecture", "gfx942", "", "gfx803", "", TN_REFUSE_DEVICE, 1, 0},
    {FLASH, "experimental", "gfx1101", "permits=2", "gfx1101", "", TN_REFUSE_DEVICE, 1, 0},
    {FLASH, "training", "sm86", "grad=1 d=192", "sm86", "grad=1 d=193", TN_REFUSE_FEATURE, 192,
     193},
    {FLASH, "training", "sm86", "d=224", "sm89", "kgrad=1 d=224", TN_REFUSE_FEATURE, 192, 224},
    {FLASH, "training", "sm120", "grad=1 d=225", "sm121", "grad=1 d=225 drop=0.1",
     TN_REFUSE_FEATURE, 192, 225},
    {FLASH, "training", "sm85", "grad=1 d=200", "sm120", "grad=1 d=200", TN_REFUSE_FEATURE, 192,
     200},
    {FLASH, "causal", "h200", "causal=1", "h200", "causal=1 lk=257", TN_REFUSE_SHAPE, 256, 257},
    {FLASH, "causal", "h200", "lk=257", "h200", "causal=1 lq=255", TN_REFUSE_SHAPE, 255, 256},
    {FLASH, "dtype", "h200", "dtype=f16", "h200", "dtype=f32", TN_REFUSE_DTYPE, 1, 0},
    {FLASH, "dtype", "sm75", "dtype=f16", "sm75", "dtype=bf16", TN_REFUSE_DTYPE, 1, 0},
    {FLASH, "dtype", "h200", "", "h200", "kdtype=f16", TN_REFUSE_DTYPE, 1, 0},
    {FLASH, "dtype", "h200", "dtype=f8_e4m3fn flash=3", "h200", "dtype=f8_e4m3fn", TN_REFUSE_DTYPE,
     1, 0},
    {FLASH, "dtype", "h200", "dtype=f8_e4m3fn flash=3", "sm89", "dtype=f8_e4m3fn flash=3",
     TN_REFUSE_DTYPE, 1, 0},
    {FLASH, "nested-batch", "h200", "nested=1 bk=1 bv=1", "h200", "nested=1 bk=1 bv=1 grad=1",
     TN_REFUSE_FEATURE, 1, 0},
    {FLASH, "nested-batch", "h200", "nested=1", "h200", "nested=1 b=4 bk=2", TN_REFUSE_SHAPE, 4, 2},
    {FLASH, "nested-batch", "h200", "nested=1 bk=1", "h200", "nested=1 bk=1 len_v=255",
     TN_REFUSE_SHAPE, 1, 0},
    {FLASH, "nested-batch", "h200", "nested=1 bv=1", "h200", "nested=1 bv=1 len_k=255",
     TN_REFUSE_SHAPE, 1, 0},
    {FLASH, "nested-head-size", "h200", "nested=1 d=256", "h200", "nested=1 d=252", TN_REFUSE_SHAPE,
     256, 252},
    {FLASH, "nested-head-size", "mi300x", "nested=1 d=256", "mi300x", "nested=1 d=264",
     TN_REFUSE_SHAPE, 256, 264},
    {FLASH, "nested-length", "h200", "nested=1 len_q=1", "h200", "nested=1 len_q=0",
     TN_REFUSE_SHAPE, 1, 0},
    {FLASH, "nested-length", "h200", "nested=1", "h200", "nested=1 hk=-1", TN_REFUSE_SHAPE, 1, 0},
    {FLASH, "nested-length", "h200", "nested=1 hk=1 hv=1", "h200", "nested=1 hk=2 hv=1",
     TN_REFUSE_SHAPE, 4, 2},
    {FLASH, "nested-length", "h200", "nested=1 hk=1 hv=1", "h200", "nested=1 hk=1 hv=1 grad=1",
     TN_REFUSE_FEATURE, 1, 0},
    {FLASH, "batch", "h200", "", "h200", "bk=1", TN_REFUSE_SHAPE, 2, 1},
    {FLASH, "batch", "h200", "", "h200", "bv=3", TN_REFUSE_SHAPE, 2, 3},
    {FLASH, "heads", "h200", "hk=2 hv=2 gqa=1", "h200", "hk=2 hv=2", TN_REFUSE_SHAPE, 4, 2},
    {FLASH, "heads", "h200", "hk=2 hv=2 gqa=1", "h200", "hk=2 hv=4 gqa=1", TN_REFUSE_SHAPE, 2, 4},
    {FLASH, "heads", "h200", "hk=2 hv=2 gqa=1", "h200", "hk=3 hv=3 gqa=1", TN_REFUSE_SHAPE, 4, 3},
    {FLASH, "heads", "h200", "hk=1 hv=1", "h200", "hk=1 hv=4", TN_REFUSE_SHAPE, 4, 1},
    {FLASH, "heads", "h200", "gqa=1", "h200", "hk=0 hv=0 gqa=1", TN_REFUSE_SHAPE, 4, 0},
    {FLASH, "length", "h200", "lq=1", "h200", "lq=0", TN_REFUSE_SHAPE, 1, 0},
    {FLASH, "length", "h200", "lk=1", "h200", "lk=0", TN_REFUSE_SHAPE, 1, 0},
    {FLASH, "stride", "h200", "d=1 sq=2", "h200", "d=2 sq=2", TN_REFUSE_STRIDE, 1, 2},
    {FLASH, "stride", "h200", "", "h200", "sv=3", TN_REFUSE_STRIDE, 1, 3},
    {FLASH, "stride", "h200", "mask=bool", "h200", "mask=bool ms=0", TN_REFUSE_STRIDE, 1, 0},

    {EFFICIENT, "device", "h200", "", "h200", "on_k=mi300x", TN_REFUSE_DEVICE, 1, 0},
    {EFFICIENT, "capability", "sm50", "", "sm49", "", TN_REFUSE_DEVICE, 50, 49},
    {EFFICIENT, "capability", "sm121", "", "sm122", "", TN_REFUSE_DEVICE, 121, 122},
    {EFFICIENT, "architecture", "mi300x", "", "gfx803", "", TN_REFUSE_DEVICE, 1, 0},
    {EFFICIENT, "experimental", "gfx1101", "permits=2", "gfx1101", "", TN_REFUSE_DEVICE, 1, 0},
    {EFFICIENT, "rank", "h200", "", "h200", "rank=2", TN_REFUSE_SHAPE, 4, 2},
    {EFFICIENT, "equal-size", "h200", "dv=72", "h200", "dk=72", TN_REFUSE_SHAPE, 64, 72},
    {EFFICIENT, "head-size", "h200", "d=8", "h200", "d=4", TN_REFUSE_SHAPE, 8, 4},
    {EFFICIENT, "head-size", "h200", "dv=8", "h200", "dv=12", TN_REFUSE_SHAPE, 8, 12},
    {EFFICIENT, "head-size", "h200", "dtype=f32 d=4", "h200", "dtype=f32 d=6", TN_REFUSE_SHAPE, 4,
     6},
    {EFFICIENT, "head-size", "sm75", "dtype=f16 d=8", "sm75", "dtype=f16 d=4", TN_REFUSE_SHAPE, 8,
     4},
    {EFFICIENT, "head-size", "sm75", "dtype=f32 d=3", "sm75", "dtype=f32 d=0", TN_REFUSE_SHAPE, 1,
     0},
    {EFFICIENT, "head-size", "sm50", "dtype=f16 d=1", "sm50", "dtype=f16 dv=0", TN_REFUSE_SHAPE, 1,
     0},
    {EFFICIENT, "head-size", "mi300x", "dtype=f32 d=4", "mi300x", "dtype=f32 d=2", TN_REFUSE_SHAPE,
     4, 2},
    {EFFICIENT, "greatest-size", "mi300x", "d=8 dv=512", "mi300x", "d=8 dv=520", TN_REFUSE_SHAPE,
     512, 520},
    {EFFICIENT, "greatest-size", "gfx1100", "d=256", "gfx1100", "d=264", TN_REFUSE_SHAPE, 256, 264},
    {EFFICIENT, "greatest-size", "mi300x", "dv=128 version=1200", "mi300x", "dv=128 version=1199",
     TN_REFUSE_SHAPE, 256, 128},
    {EFFICIENT, "alignment", "h200", "align=16", "h200", "align=8", TN_REFUSE_ALIGNMENT, 16, 8},
    {EFFICIENT, "alignment", "h200", "dtype=f32 align=16", "h200", "dtype=f32 align=4",
     TN_REFUSE_ALIGNMENT, 16, 4},
    {EFFICIENT, "alignment", "sm75", "dtype=f16 align=2", "a100", "dtype=f16 align=2",
     TN_REFUSE_ALIGNMENT, 16, 2},
    {EFFICIENT, "alignment", "h200", "lk=0 align=2", "h200", "lk=1 align=2", TN_REFUSE_ALIGNMENT,
     16, 2},
    {EFFICIENT, "nested-training", "h200", "nested=1", "h200", "nested=1 grad=1", TN_REFUSE_FEATURE,
     1, 0},
    {EFFICIENT, "nested-batch", "h200", "nested=1", "h200", "nested=1 b=4 bv=3", TN_REFUSE_SHAPE, 4,
     3},
    {EFFICIENT, "nested-length", "h200", "nested=1", "h200", "nested=1 len_v=0", TN_REFUSE_SHAPE, 1,
     0},
    {EFFICIENT, "length", "h200", "lk=1", "h200", "lk=0", TN_REFUSE_SHAPE, 1, 0},
    {EFFICIENT, "stride", "h200", "d=8", "h200", "d=1 sq=2", TN_REFUSE_STRIDE, 1, 2},
    {EFFICIENT, "batch", "h200", "", "h200", "bv=1", TN_REFUSE_SHAPE, 2, 1},
    {EFFICIENT, "heads", "h200", "hk=2 hv=2 gqa=1", "h200", "hk=2 hv=2", TN_REFUSE_SHAPE, 4, 2},
    {EFFICIENT, "heads", "h200", "hk=1 hv=1", "h200", "hk=2 hv=2 gqa=0", TN_REFUSE_SHAPE, 4, 2},
    {EFFICIENT, "equal-heads", "mi300x", "gqa=1", "mi300x", "hk=1 hv=1 gqa=1", TN_REFUSE_SHAPE, 4,
     1},
    {EFFICIENT, "mask-dtype", "mi300x", "mask=bf16", "mi300x", "mask=f32", TN_REFUSE_DTYPE, 1, 0},
    {EFFICIENT, "mask-dtype", "mi300x", "mask=bool", "mi300x", "mask=f16", TN_REFUSE_DTYPE, 1, 0},
    {EFFICIENT, "dtype", "h200", "dtype=f32", "h200", "dtype=f64", TN_REFUSE_DTYPE, 1, 0},
    {EFFICIENT, "dtype", "a100", "dtype=bf16", "sm75", "dtype=bf16", TN_REFUSE_DTYPE, 1, 0},
    {EFFICIENT, "dtype", "sm70", "dtype=f32", "sm70", "dtype=bf16", TN_REFUSE_DTYPE, 1, 0},

    {CUDNN, "version", "h200", "version=90000", "h200", "version=8907", TN_REFUSE_VERSION, 90000,
     8907},
    {CUDNN, "dropout-version", "h200", "version=91100 drop=0.5", "h200", "version=91101 drop=0.5",
     TN_REFUSE_VERSION, 91400, 91101},
    {CUDNN, "dropout-version", "h200", "version=91400 drop=0.5", "h200", "version=91399 drop=0.5",
     TN_REFUSE_VERSION, 91400, 91399},
    {CUDNN, "dropout-version", "h200", "version=91200", "h200", "version=91200 drop=0.5",
     TN_REFUSE_VERSION, 91400, 91200},
    {CUDNN, "nested-permitted", "h200", "nested=1 permits=1", "h200", "nested=1", TN_REFUSE_FEATURE,
     1, 0},
    {CUDNN, "nested-capability", "sm107", "nested=1", "sm110", "nested=1", TN_REFUSE_DEVICE, 90,
     110},
    {CUDNN, "nested-capability", "h200", "nested=1", "sm89", "nested=1", TN_REFUSE_DEVICE, 90, 89},
    {CUDNN, "device", "h200", "", "mi300x", "", TN_REFUSE_DEVICE, 1, 0},
    {CUDNN, "rank", "h200", "", "h200", "rank_v=3", TN_REFUSE_SHAPE, 4, 3},
    {CUDNN, "dtype", "h200", "dtype=f16", "h200", "dtype=f32", TN_REFUSE_DTYPE, 1, 0},
    {CUDNN, "dtype", "sm75", "dtype=f16", "sm75", "dtype=bf16", TN_REFUSE_DTYPE, 1, 0},
    {CUDNN, "mask-gradient", "h200", "mask=bool", "h200", "mask=bool mgrad=1", TN_REFUSE_FEATURE, 1,
     0},
    {CUDNN, "mask-length", "h200", "mask=bool mq=1", "h200", "mask=bool mq=2", TN_REFUSE_SHAPE, 256,
     2},
    {CUDNN, "mask-length", "h200", "mask=bool mk=1", "h200", "mask=bool mk=255", TN_REFUSE_SHAPE,
     256, 255},
    {CUDNN, "mask-length", "h200", "mask=bool", "h200", "mask=bool mrank=1", TN_REFUSE_SHAPE, 256,
     -1},
    {CUDNN, "mask-shape", "h200", "mask=bool mb=1", "h200", "mask=bool mb=3", TN_REFUSE_SHAPE, 2,
     3},
    {CUDNN, "mask-shape", "h200", "mask=bool mh=1", "h200", "mask=bool mh=2", TN_REFUSE_SHAPE, 4,
     2},
    {CUDNN, "mask-shape", "h200", "mask=bool mrank=2", "h200", "mask=bool mrank=3", TN_REFUSE_SHAPE,
     4, 3},
    {CUDNN, "capability", "a100", "", "sm75", "", TN_REFUSE_DEVICE, 80, 75},
    {CUDNN, "capability", "sm121", "", "sm122", "", TN_REFUSE_DEVICE, 121, 122},
    {CUDNN, "dropout-step", "h200", "drop=0.0625", "h200", "drop=0.1", TN_REFUSE_FEATURE, 1, 0},
    {CUDNN, "length", "h200", "lq=1", "h200", "lq=0", TN_REFUSE_SHAPE, 1, 0},
    {CUDNN, "stride", "h200", "d=1 sq=2", "h200", "sq=2", TN_REFUSE_STRIDE, 1, 2},
    {CUDNN, "batch", "h200", "", "h200", "bk=1", TN_REFUSE_SHAPE, 2, 1},
    {CUDNN, "heads", "h200", "hk=2 hv=1 gqa=1", "h200", "hk=2 hv=3 gqa=1", TN_REFUSE_SHAPE, 4, 3},
    {CUDNN, "heads", "h200", "hk=1 hv=1", "h200", "hk=2 hv=1", TN_REFUSE_SHAPE, 4, 2},
    {CUDNN, "count", "h200", "b=65535", "h200", "b=65536", TN_REFUSE_SHAPE, 65535, 65536},
    {CUDNN, "count", "h200", "h=65535", "h200", "h=65536", TN_REFUSE_SHAPE, 65535, 65536},
    {CUDNN, "version-attention", "h200", "version=8903", "h200", "version=8902", TN_REFUSE_VERSION,
     8903, 8902},
    {CUDNN, "version-dropout", "h200", "version=8906 drop=0.5", "h200", "version=8905 drop=0.5",
     TN_REFUSE_VERSION, 8906, 8905},
    {CUDNN, "version-dropout", "h200", "version=8905", "h200", "version=8905 drop=0.5",
     TN_REFUSE_VERSION, 8906, 8905},
    {CUDNN, "version-gradient", "h200", "version=92600 lk=192 grad=1", "h200",
     "version=92599 lk=192 grad=1", TN_REFUSE_VERSION, 92600, 92599},
    {CUDNN, "version-gradient", "h200", "version=92500 lk=192 grad=1 causal=1", "h200",
     "version=92500 lk=192 grad=1", TN_REFUSE_VERSION, 92600, 92500},
    {CUDNN, "version-gradient", "sm100", "version=92500 lk=192 grad=1", "h200",
     "version=92500 lk=64 grad=1", TN_REFUSE_VERSION, 92600, 92500},
    {CUDNN, "version-gradient", "h200", "version=92500 lk=191 grad=1", "h200",
     "version=92500 lk=192 grad=1", TN_REFUSE_VERSION, 92600, 92500},
    {CUDNN, "version-gradient", "h200", "version=92500 lk=128 grad=1", "h200",
     "version=92500 lk=192 grad=1", TN_REFUSE_VERSION, 92600, 92500},
    {CUDNN, "version-decode", "sm100", "version=91899 lq=1", "sm100", "version=91900 lq=1",
     TN_REFUSE_VERSION, 92501, 91900},
    {CUDNN, "version-decode", "sm110", "version=92401 lq=1", "sm110", "version=92500 lq=1",
     TN_REFUSE_VERSION, 92501, 92500},
    {CUDNN, "version-decode", "sm100", "version=92501 lq=1", "sm100", "version=92400 lq=1",
     TN_REFUSE_VERSION, 92501, 92400},
    {CUDNN, "version-decode", "h200", "version=92000 lq=1", "sm107", "version=92000 lq=1",
     TN_REFUSE_VERSION, 92501, 92000},
    {CUDNN, "version-decode", "sm100", "version=92000 lq=2", "sm100", "version=92000 lq=1",
     TN_REFUSE_VERSION, 92501, 92000},
    {CUDNN, "head-size", "a100", "d=128", "a100", "d=136", TN_REFUSE_SHAPE, 128, 136},
    {CUDNN, "head-size", "h200", "d=256 version=92201", "h200", "d=256 version=92200",
     TN_REFUSE_SHAPE, 128, 256},
    {CUDNN, "head-size", "h200", "d=256", "h200", "d=264", TN_REFUSE_SHAPE, 256, 264},
    {CUDNN, "head-size", "h200", "d=192 dv=128 version=91100", "h200", "d=192 dv=128 version=91002",
     TN_REFUSE_SHAPE, 128, 192},
    {CUDNN, "head-size", "sm100", "d=192 dv=128 version=92200", "sm100",
     "d=192 dv=136 version=92200", TN_REFUSE_SHAPE, 128, 192},
    {CUDNN, "head-size", "sm107", "d=256 version=92501", "sm107", "d=256 version=92500",
     TN_REFUSE_SHAPE, 128, 256},
    {CUDNN, "head-multiple", "h200", "d=8", "h200", "d=12", TN_REFUSE_SHAPE, 8, 12},
    {CUDNN, "head-multiple", "h200", "dv=16", "h200", "dv=12", TN_REFUSE_SHAPE, 8, 12},
    {CUDNN, "old-keys", "h200", "version=8906 lk=65", "h200", "version=8905 lk=65", TN_REFUSE_SHAPE,
     64, 65},
    {CUDNN, "old-keys", "h200", "version=8905 lk=64", "h200", "version=8905 lk=63", TN_REFUSE_SHAPE,
     64, 63},
    {CUDNN, "old-queries", "h200", "version=8907 lq=64", "h200", "version=8907 lq=63",
     TN_REFUSE_SHAPE, 64, 63},
    {CUDNN, "old-queries", "h200", "version=90000 lq=63", "h200", "version=8999 lq=63",
     TN_REFUSE_SHAPE, 64, 63},
    {CUDNN, "old-dropout", "h200", "version=8907 lq=128 drop=0.5", "h200",
     "version=8907 lq=127 drop=0.5", TN_REFUSE_SHAPE, 64, 127},
    {CUDNN, "old-dropout", "h200", "version=8907 lk=65", "h200", "version=8907 lk=65 drop=0.5",
     TN_REFUSE_SHAPE, 64, 65},
    {CUDNN, "old-dropout", "h200", "version=90000 lk=65 drop=0.5", "h200",
     "version=8999 lk=65 drop=0.5", TN_REFUSE_SHAPE, 64, 65},
    {CUDNN, "one-key", "h200", "lk=2", "h200", "lk=1", TN_REFUSE_SHAPE, 2, 1},
    {CUDNN, "one-query", "h200", "lq=1", "h200", "lq=1 drop=0.5", TN_REFUSE_SHAPE, 2, 1},
    {CUDNN, "one-query", "h200", "lq=2 drop=0.5", "h200", "lq=1 drop=0.5", TN_REFUSE_SHAPE, 2, 1},
    {CUDNN, "training", "h200", "grad=1 d=128 dv=64", "h200", "grad=1 d=136 dv=64",
     TN_REFUSE_FEATURE, 128, 136},
    {CUDNN, "training", "h200", "grad=1 d=192 dv=128", "h200", "grad=1 d=192 dv=136",
     TN_REFUSE_FEATURE, 128, 192},
    {CUDNN, "training", "sm100", "grad=1 d=256", "sm100", "grad=1 d=256 dv=128", TN_REFUSE_FEATURE,
     128, 256},
    {CUDNN, "training", "h200", "d=136", "h200", "kgrad=1 d=136", TN_REFUSE_FEATURE, 128, 136},
    {CUDNN, "nested-queries", "h200", "nested=1 len_q=257 b=1", "h200", "nested=1 len_q=128 b=1",
     TN_REFUSE_SHAPE, 129, 128},
};

static const char *const list_names[] = {"flash", "efficient", "cudnn"};

static void every_condition_has_two_sides(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++) {
        const struct edge *e = &edges[i];
        tn_sdpa_report report;
        ask(e->list, e->device, e->holds, &report);
        const tn_sdpa_check *check = check_of(&report, e->name);
        if (!check || check->outcome != TN_SDPA_HOLDS || check->why.code)
            fail_msg("%s %s: \"%s\" on %s: %s", list_names[e->list], e->name, e->holds, e->device,
                     check ? tn_sdpa_outcome_name(check->outcome) : "no such check");
        ask(e->list, e->other_device, e->fails, &report);
        check = check_of(&report, e->name);
        if (check->outcome != TN_SDPA_FAILS || check->why.code != e->code ||
            check->why.needed != e->needed || check->why.found != e->found || !check->why.text[0] ||
            !check->why.what[0])
            fail_msg("%s %s: \"%s\" on %s: %s, %s: %s needs %lld, found %lld; %s",
                     list_names[e->list], e->name, e->fails, e->other_device,
                     tn_sdpa_outcome_name(check->outcome), tn_refusal_name(check->why.code),
                     check->why.what, (long long)check->why.needed, (long long)check->why.found,
                     check->why.text);
        assert_int_equal(report.usable, 0);
        assert_true(report.first >= 0 && report.checks[report.first].outcome == TN_SDPA_FAILS);
    }
}

/* Everything that a list has stands among the edges, but for what is not a number's. */
static void no_condition_is_forgotten(void **state)
{
    static const char *const elsewhere[] = {"kernel", "enabled", "determinism"};
    static const char *const devices[] = {"h200", "mi300x"};
    (void)state;
    for (int list = FLASH; list <= CUDNN; list++) {
        tn_sdpa_report report;
        for (int d = 0; d < 2; d++) {
            ask(list, devices[d], "", &report);
            for (size_t i = 0; i < report.count; i++) {
                bool found = false;
                for (size_t j = 0; j < sizeof elsewhere / sizeof elsewhere[0]; j++)
                    found = found || strcmp(elsewhere[j], report.checks[i].name) == 0;
                for (size_t j = 0; j < sizeof edges / sizeof edges[0]; j++)
                    found = found || (edges[j].list == list &&
                                      strcmp(edges[j].name, report.checks[i].name) == 0);
                if (!found)
                    fail_msg("%s has %s, and no edge of it", list_names[list],
                             report.checks[i].name);
            }
        }
    }
}

/* In upstream's order. */
static void conditions_have_an_order(void **state)
{
    static const char *const orders[] = {
        "kernel enabled device rank mask fa4-capability fa4-dropout head-size capability "
        "architecture experimental training causal dtype nested-batch nested-head-size "
        "nested-length batch heads length stride ",
        "kernel enabled device capability architecture experimental rank equal-size head-size "
        "greatest-size alignment nested-training nested-batch nested-length length stride batch "
        "heads equal-heads mask-dtype dtype ",
        "kernel version dropout-version enabled nested-permitted nested-capability device rank "
        "determinism dtype mask-gradient mask-length mask-shape capability dropout-step length "
        "stride batch heads count version-attention version-dropout version-gradient "
        "version-decode head-size head-multiple old-keys old-queries old-dropout one-key "
        "one-query training nested-queries "};
    (void)state;
    for (int list = FLASH; list <= CUDNN; list++) {
        char text[1024] = "";
        size_t used = 0;
        tn_sdpa_report report;
        ask(list, "h200", "", &report);
        for (size_t i = 0; i < report.count; i++)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s ", report.checks[i].name);
        assert_string_equal(text, orders[list]);
    }
}

static void what_holds_on_described_devices(void **state)
{
    static const struct {
        const char *device, *changes;
        int32_t usable[3];
    } rows[] = {{"h200", "", {1, 1, 1}},          {"h200", "mask=bool", {0, 1, 1}},
                {"h200", "dtype=f32", {0, 1, 0}}, {"a100", "", {1, 1, 1}},
                {"a100", "d=256", {1, 1, 0}},     {"mi300x", "", {1, 1, 0}},
                {"sm75", "dtype=f16", {0, 1, 0}}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int list = FLASH; list <= CUDNN; list++) {
            tn_sdpa_report report;
            ask(list, rows[i].device, rows[i].changes, &report);
            if (report.usable != rows[i].usable[list])
                fail_msg("%s: %s %s: usable %d, by %s", list_names[list], rows[i].device,
                         rows[i].changes, (int)report.usable,
                         report.first < 0 ? "nothing" : report.checks[report.first].name);
            assert_int_equal(report.usable, report.first < 0);
        }
    }
}

/* Upstream's three questions, of a machine that is not here. */
static void three_questions(void **state)
{
    tn_sdpa_params params;
    tn_sdpa_report report = {.struct_size = sizeof report};
    tn_error err = {0};
    (void)state;
    make(&params, "h200", "mask=bool d=512");
    assert_int_equal(tn_can_use_flash_attention(NULL, &params, &report, &err), TN_OK);
    assert_string_equal(report.checks[report.first].name, "mask");
    assert_int_equal(tn_can_use_efficient_attention(NULL, &params, &report, &err), TN_OK);
    assert_int_equal(report.usable, 1);
    assert_int_equal(report.first, -1);
    assert_int_equal(tn_can_use_cudnn_attention(NULL, &params, &report, &err), TN_OK);
    assert_string_equal(report.checks[report.first].name, "head-size");
}

/* The first failure is that of the order; later ones are told all the same. */
static void nothing_stops_at_the_first_failure(void **state)
{
    tn_sdpa_report report;
    (void)state;
    ask(FLASH, "sm75", "mask=bool dtype=f64 d=300", &report);
    assert_string_equal(report.checks[report.first].name, "mask");
    assert_int_equal(check_of(&report, "head-size")->outcome, TN_SDPA_FAILS);
    assert_int_equal(check_of(&report, "capability")->outcome, TN_SDPA_FAILS);
    assert_int_equal(check_of(&report, "dtype")->outcome, TN_SDPA_FAILS);
    assert_int_equal(check_of(&report, "nested-batch")->outcome, TN_SDPA_NOT_ASKED);
    ask(FLASH, "h200", "rank=3", &report);
    assert_int_equal(check_of(&report, "head-size")->outcome, TN_SDPA_NOT_ASKED);
    assert_int_equal(check_of(&report, "dtype")->outcome, TN_SDPA_HOLDS);
    ask(CUDNN, "h200", "", &report);
    assert_contains(check_of(&report, "version")->why.text, "unknown");
}

static int32_t outcome(int list, const char *device, const char *changes, const char *name)
{
    tn_sdpa_report report;
    ask(list, device, changes, &report);
    return check_of(&report, name)->outcome;
}

static void settings_count(void **state)
{
    tn_sdpa_report report;
    tn_scope scope = {0};
    (void)state;
    assert_int_equal(outcome(CUDNN, "h200", "", "determinism"), TN_SDPA_HOLDS);
    enter(&scope, "determinism=run-to-run");
    assert_int_equal(outcome(CUDNN, "h200", "", "determinism"), TN_SDPA_FAILS);
    assert_int_equal(outcome(CUDNN, "h200", "", "enabled"), TN_SDPA_HOLDS);
    tn_scope_leave(&scope);
    enter(&scope, "cudnn.deterministic=true");
    ask(CUDNN, "h200", "", &report);
    assert_contains(check_of(&report, "determinism")->why.text, "cudnn.deterministic");
    tn_scope_leave(&scope);
    enter(&scope, "cudnn.enabled=false");
    ask(CUDNN, "h200", "", &report);
    assert_contains(check_of(&report, "enabled")->why.text, "cudnn.enabled is off, by the scope");
    tn_scope_leave(&scope);
    enter(&scope, "attention.backend=math");
    ask(FLASH, "h200", "", &report);
    assert_contains(
        check_of(&report, "enabled")->why.text,
        "another one is asked for by the rule require:attention/backend:math of the scope");
    tn_scope_leave(&scope);
    assert_int_equal(outcome(FLASH, "sm86", "grad=1 d=200", "training"), TN_SDPA_FAILS);
    enter(&scope, "inference=true");
    assert_int_equal(outcome(FLASH, "sm86", "grad=1 d=200", "training"), TN_SDPA_HOLDS);
    tn_scope_leave(&scope);
    enter(&scope, "cuda.preferred_rocm_fa_library=ck");
    assert_int_equal(outcome(FLASH, "gfx803", "", "architecture"), TN_SDPA_HOLDS);
    assert_int_equal(outcome(FLASH, "gfx1101", "", "experimental"), TN_SDPA_HOLDS);
    assert_int_equal(outcome(EFFICIENT, "mi300x", "dtype=f32", "dtype"), TN_SDPA_FAILS);
    tn_scope_leave(&scope);
    assert_int_equal(outcome(EFFICIENT, "mi300x", "dtype=f32", "dtype"), TN_SDPA_HOLDS);
}

/* A platform that no list is about answers by its kernels. */
static void other_platforms_answer_by_their_kernels(void **state)
{
    tn_sdpa_report report;
    (void)state;
    ask(FLASH, "pod", "causal=1", &report);
    assert_int_equal(report.usable, 1);
    assert_int_equal(check_of(&report, "problem")->outcome, TN_SDPA_HOLDS);
    ask(FLASH, "pod", "mask=bool", &report);
    assert_int_equal(report.usable, 0);
    assert_string_equal(report.checks[report.first].name, "problem");
    assert_int_equal(report.checks[report.first].why.code, TN_REFUSE_FEATURE);
    assert_string_equal(report.checks[report.first].why.what, "mask");
    ask(FLASH, "pod", "nested=1", &report);
    assert_string_equal(report.checks[report.first].name, "nested");
    assert_contains(report.checks[report.first].why.text, "starts_q");
    ask(FLASH, "pod", "lk=0 dk=3", &report);
    assert_int_equal(check_of(&report, "problem")->why.code, TN_REFUSE_OTHER);
    ask(EFFICIENT, "pod", "", &report);
    assert_string_equal(report.checks[report.first].name, "kernel");
    assert_contains(report.checks[report.first].why.text,
                    "kernel of tpu that goes by mem_efficient");
    ask(CUDNN, "bare", "", &report);
    assert_string_equal(report.checks[report.first].name, "kernel");
    assert_int_equal(check_of(&report, "problem")->outcome, TN_SDPA_FAILS);
    assert_int_equal(outcome(FLASH, "pod", "hk=1 hv=1", "heads"), TN_SDPA_HOLDS);
    assert_int_equal(outcome(FLASH, "pod", "hk=2 hv=2", "heads"), TN_SDPA_FAILS);
}

static void wrong_parameters_are_refused(void **state)
{
    tn_sdpa_params params;
    tn_sdpa_report report = {.struct_size = sizeof report}, small = {.struct_size = 8};
    tn_error err = {0};
    (void)state;
    make(&params, "h200", "");
    assert_int_equal(tn_can_use_flash_attention(NULL, NULL, &report, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_can_use_flash_attention(NULL, &params, NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_can_use_flash_attention(NULL, &params, &small, &err), TN_INVALID_ARGUMENT);
    params.value.layout.dtype = 0;
    assert_int_equal(tn_can_use_cudnn_attention(NULL, &params, &report, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "value has no dtype");
    make(&params, "h200", "drop=1.5");
    assert_int_equal(tn_can_use_efficient_attention(NULL, &params, &report, &err),
                     TN_INVALID_ARGUMENT);
    assert_contains(err.message, "dropout needs 0 to 1, found 1.5");
    make(&params, "h200", "rank=9");
    assert_int_equal(tn_can_use_flash_attention(NULL, &params, &report, &err), TN_INVALID_ARGUMENT);
    make(&params, "h200", "");
    params.query.device = NULL;
    assert_int_equal(tn_can_use_flash_attention(NULL, &params, &report, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "query.device");
    assert_int_equal(report.count, 0);
    assert_string_equal(tn_sdpa_outcome_name(TN_SDPA_NOT_ASKED), "not-asked");
    assert_string_equal(tn_sdpa_outcome_name(3), "unknown");
    assert_string_equal(tn_sdpa_outcome_name(-1), "unknown");
}

static void parameters_of_tensors(void **state)
{
    static float data[4 * 2 * 3 * 16 + 4];
    int64_t shape[] = {2, 2, 3, 16}, strides[] = {96, 16, 32, 1}, row[] = {3, 3};
    tn_tensor q = {0}, k = {0}, mask = {0};
    tn_sdpa_params params = {.struct_size = sizeof params};
    tn_device *cpu = NULL;
    tn_error err = {0};
    (void)state;
    assert_int_equal(tn_device_get("cpu:0", &cpu, &err), TN_OK);
    assert_int_equal(tn_tensor_wrap(cpu, data, TN_F32, shape, NULL, 4, NULL, NULL, &q, &err),
                     TN_OK);
    assert_int_equal(tn_tensor_wrap(cpu, data + 1, TN_F32, shape, strides, 4, NULL, NULL, &k, &err),
                     TN_OK);
    assert_int_equal(tn_tensor_wrap(cpu, data, TN_BOOL, row, NULL, 2, NULL, NULL, &mask, &err),
                     TN_OK);
    assert_int_equal(tn_sdpa_params_get(&q, &k, &q, &mask, 0.25, 1, 1, &params, &err), TN_OK);
    assert_ptr_equal(params.query.device, cpu);
    assert_int_equal(params.key.layout.dtype, TN_F32);
    assert_memory_equal(params.key.layout.shape, shape, sizeof shape);
    assert_memory_equal(params.key.layout.stride, strides, sizeof strides);
    assert_int_equal(params.query.layout.stride[0], 96);
    assert_int_equal(params.query.layout.stride[2], 16);
    assert_int_equal(params.key.layout.alignment, 4);
    assert_int_equal(params.attn_mask.layout.rank, 2);
    assert_true(params.dropout == 0.25 && params.is_causal == 1 && params.enable_gqa == 1);
    assert_int_equal(params.query.nested + params.query.requires_grad, 0);
    assert_int_equal(tn_sdpa_params_get(&q, &k, &q, NULL, 0, 0, 0, &params, &err), TN_OK);
    assert_int_equal(params.attn_mask.layout.dtype, 0);
    assert_int_equal(tn_sdpa_params_get(&q, NULL, &q, NULL, 0, 0, 0, &params, &err),
                     TN_INVALID_ARGUMENT);
    assert_contains(err.message, "key");
    params.struct_size = 16;
    assert_int_equal(tn_sdpa_params_get(&q, &k, &q, NULL, 0, 0, 0, &params, &err),
                     TN_INVALID_ARGUMENT);
    tn_tensor_release(&q), tn_tensor_release(&k), tn_tensor_release(&mask);
}

/* Each switch as upstream's getter and setter have it: on at first, for the process or for a scope, and what a
 * condition then says. */
static void switches_of_the_family(void **state)
{
    static const struct {
        tn_setting setting;
        int list;
    } rows[] = {{TN_SETTING_CUDA_FLASH_SDP, FLASH},
                {TN_SETTING_CUDA_MEM_EFFICIENT_SDP, EFFICIENT},
                {TN_SETTING_CUDA_CUDNN_SDP, CUDNN},
                {TN_SETTING_CUDA_MATH_SDP, -1},
                {TN_SETTING_CUDA_OVERRIDEABLE_SDP, -1}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tn_sdpa_report report;
        const tn_change off = {.setting = rows[i].setting, .value = 0};
        assert_int_equal(tn_setting_value(NULL, rows[i].setting), 1);
        assert_int_equal(tn_settings_change(&off, 1, NULL), TN_OK);
        assert_int_equal(tn_setting_value(NULL, rows[i].setting), 0);
        if (rows[i].list >= 0) {
            char text[64];
            ask(rows[i].list, "h200", "", &report);
            snprintf(text, sizeof text, "%s is off, by the process", key_of(rows[i].setting));
            assert_string_equal(check_of(&report, "enabled")->why.text, text);
            assert_int_equal(report.usable, 0);
        }
        reset(key_of(rows[i].setting));
    }
    assert_int_equal(tn_get_cuda_allow_fp16_bf16_reduction_math_sdp(NULL), 0);
    assert_int_equal(tn_setting_value(NULL, TN_SETTING_CUDA_ALLOW_FP16_BF16_REDUCTION_MATH_SDP), 0);
    set("cuda.allow_fp16_bf16_reduction_math_sdp=true");
    assert_int_equal(tn_get_cuda_allow_fp16_bf16_reduction_math_sdp(NULL), 1);
    reset(NULL);
    set("admission=never");
}

/* "flash math | math,flash,...": what is on, and the order. */
static const char *family(void)
{
    static char text[192];
    char order[128];
    size_t used = 0;
    static const tn_setting switches[] = {
        TN_SETTING_CUDA_FLASH_SDP, TN_SETTING_CUDA_MEM_EFFICIENT_SDP, TN_SETTING_CUDA_MATH_SDP,
        TN_SETTING_CUDA_CUDNN_SDP, TN_SETTING_CUDA_OVERRIDEABLE_SDP};
    for (int32_t i = 0; i < 5; i++) {
        if (tn_setting_value(NULL, switches[i]))
            used += (size_t)snprintf(text + used, sizeof text - used, "%s ", tn_sdp_name(i));
    }
    (void)tn_setting_write(NULL, TN_SETTING_CUDA_SDP_PRIORITY, order, sizeof order);
    (void)snprintf(text + used, sizeof text - used, "| %s", order);
    return text;
}

static const char usual[] = "flash mem_efficient math cudnn overrideable | flash, mem_efficient, "
                            "math, cudnn, overrideable";

static void a_scope_has_those_and_no_others(void **state)
{
    static const int32_t one[] = {TN_SDP_MATH};
    static const int32_t two[] = {TN_SDP_CUDNN, TN_SDP_MATH, TN_SDP_CUDNN};
    tn_scope outer = {0}, inner = {0};
    tn_error err = {0};
    (void)state;
    assert_string_equal(family(), usual);
    assert_int_equal(tn_sdpa_kernel_enter(&outer, one, 1, 0, &err), TN_OK);
    assert_string_equal(family(), "math | flash, mem_efficient, math, cudnn, overrideable");
    assert_int_equal(tn_sdpa_kernel_enter(&inner, two, 3, 1, &err), TN_OK);
    assert_string_equal(family(), "math cudnn | cudnn, math, flash, mem_efficient, overrideable");
    tn_scope_leave(&inner);
    assert_string_equal(family(), "math | flash, mem_efficient, math, cudnn, overrideable");
    tn_scope_leave(&outer);
    assert_string_equal(family(), usual);
    set("cuda.sdp_priority=overrideable,cudnn"); /* what is left out follows as it was */
    assert_int_equal(tn_sdpa_kernel_enter(&outer, one, 1, 1, &err), TN_OK);
    assert_string_equal(family(), "math | math, overrideable, cudnn, flash, mem_efficient");
    tn_scope_leave(&outer);
    reset("cuda.sdp_priority");
}

static void wrong_scopes_change_nothing(void **state)
{
    static const int32_t wrong[] = {TN_SDP_FLASH, 5}, negative[] = {-1};
    tn_scope scope = {0};
    tn_error err = {0};
    (void)state;
    assert_int_equal(tn_sdpa_kernel_enter(&scope, wrong, 2, 0, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "backends[1]");
    assert_int_equal(tn_sdpa_kernel_enter(&scope, negative, 1, 0, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_sdpa_kernel_enter(&scope, wrong, 0, 0, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "NO_ATTENTION");
    assert_int_equal(tn_sdpa_kernel_enter(&scope, NULL, 1, 0, &err), TN_INVALID_ARGUMENT);
    assert_string_equal(family(), usual);
    tn_scope_leave(&scope);
    assert_string_equal(tn_sdp_name(TN_SDP_OVERRIDEABLE), "overrideable");
    assert_string_equal(tn_sdp_name(5), "unknown");
}

static void the_older_scope_names_four(void **state)
{
    tn_scope scope = {0};
    (void)state;
    assert_int_equal(tn_sdp_kernel_enter(&scope, 0, 1, 0, 1, NULL), TN_OK);
    assert_contains(family(), "math cudnn overrideable |");
    tn_scope_leave(&scope);
    assert_int_equal(tn_sdp_kernel_enter(&scope, 1, 0, 1, 0, NULL), TN_OK);
    assert_contains(family(), "flash mem_efficient overrideable |");
    tn_scope_leave(&scope);
    assert_string_equal(family(), usual);
}

static void what_is_there_is_told(void **state)
{
    tn_refusal why = {.struct_size = sizeof why};
    const tn_platform *platform = NULL;
    tn_error err = {0};
    int32_t found = -1;
    (void)state;
    attention_rows();
    assert_int_equal(tn_platform_get("tpu", &platform, &err), TN_OK);
    assert_int_equal(tn_is_flash_attention_available(platform, &found, &why, &err), TN_OK);
    assert_int_equal(found, 1);
    assert_string_equal(why.text, "tpu.attention.flash");
    assert_int_equal(why.code, TN_REFUSE_NONE);
    assert_int_equal(tn_platform_get("xpu", &platform, &err), TN_OK);
    assert_int_equal(tn_is_flash_attention_available(platform, &found, &why, &err), TN_OK);
    assert_int_equal(found, 0);
    assert_int_equal(why.code, TN_REFUSE_LIBRARY);
    assert_contains(why.text, "no module here has a kernel of xpu that goes by flash");
    assert_int_equal(tn_is_flash_attention_available(NULL, &found, NULL, &err), TN_OK);
    assert_int_equal(tn_is_flash_attention_available(NULL, NULL, NULL, &err), TN_INVALID_ARGUMENT);
    found = -1;
    assert_int_equal(tn_is_ck_sdpa_available(&found, &why, &err), TN_OK);
    assert_int_equal(found, 0); /* a kernel goes through ck, which nobody offers */
    assert_string_equal(why.what, "ck");
    assert_true(why.text[0] != '\0');
    why.struct_size = 8;
    assert_int_equal(tn_is_ck_sdpa_available(&found, &why, &err), TN_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_condition_has_two_sides),
        cmocka_unit_test(no_condition_is_forgotten),
        cmocka_unit_test(conditions_have_an_order),
        cmocka_unit_test(what_holds_on_described_devices),
        cmocka_unit_test(three_questions),
        cmocka_unit_test(nothing_stops_at_the_first_failure),
        cmocka_unit_test(settings_count),
        cmocka_unit_test(other_platforms_answer_by_their_kernels),
        cmocka_unit_test(wrong_parameters_are_refused),
        cmocka_unit_test(parameters_of_tensors),
        cmocka_unit_test(switches_of_the_family),
        cmocka_unit_test(a_scope_has_those_and_no_others),
        cmocka_unit_test(wrong_scopes_change_nothing),
        cmocka_unit_test(the_older_scope_names_four),
        cmocka_unit_test(what_is_there_is_told),
    };
    forget_settings();
    (void)setenv("TENON_CACHE", "", 1);
    attention_rows_of_gpus = true;
    return run_suite("unit.sdp", tests);
}
