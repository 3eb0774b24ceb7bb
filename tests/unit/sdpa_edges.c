/* Every condition of upstream's lists, and of what other platforms answer by, on both sides of its edge. */
#include "sdpa_make.h"
#include "settings_check.h"

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
    {FLASH, "device", "h200", "", "h200", "on_v=a100", TN_REFUSE_DEVICE, 1, 0},
    {FLASH, "rank", "h200", "", "h200", "rank_k=3", TN_REFUSE_SHAPE, 4, 3},
    {FLASH, "fa4-capability", "h200", "flash=4", "untold", "flash=4", TN_REFUSE_DEVICE, 90, 0},
    {FLASH, "head-size", "h200", "dv=1 flash=4", "h200", "dv=0 flash=4", TN_REFUSE_SHAPE, 256, 64},
    {FLASH, "head-size", "sm100", "d=64 dv=128 flash=4", "sm100", "d=64 dv=136 flash=4",
     TN_REFUSE_SHAPE, 128, 136},
    {FLASH, "head-size", "sm100", "flash=4", "sm100", "dk=72 flash=4", TN_REFUSE_SHAPE, 128, 72},
    {FLASH, "head-size", "sm107", "flash=4", "sm110", "flash=4", TN_REFUSE_SHAPE, 128, 64},
    {FLASH, "head-size", "mi300x", "d=512 version=900", "mi300x", "d=257 version=899",
     TN_REFUSE_SHAPE, 256, 257},
    {FLASH, "head-size", "gfx1100", "d=512 version=1099", "gfx1100", "d=257 version=1100",
     TN_REFUSE_SHAPE, 256, 257},
    {FLASH, "capability", "a100", "", "sm79", "", TN_REFUSE_DEVICE, 80, 79},
    {FLASH, "architecture", "gfx942", "", "gfx94", "", TN_REFUSE_DEVICE, 1, 0},
    {FLASH, "training", "h200", "grad=1 d=200", "sm89", "vgrad=1 d=200", TN_REFUSE_FEATURE, 192,
     200},
    {FLASH, "training", "sm122", "grad=1 d=200", "sm121", "grad=1 d=200", TN_REFUSE_FEATURE, 192,
     200},
    {FLASH, "training", "sm86", "grad=1 d=225", "sm86", "grad=1 d=224", TN_REFUSE_FEATURE, 192,
     224},
    {FLASH, "causal", "h200", "causal=1 lk=257 nested_q=1", "h200", "causal=1 lk=257",
     TN_REFUSE_SHAPE, 256, 257},
    {FLASH, "causal", "h200", "causal=1 lk=257 nested_k=1", "h200", "causal=1 lk=257",
     TN_REFUSE_SHAPE, 256, 257},
    {FLASH, "dtype", "h200", "", "h200", "vdtype=f16", TN_REFUSE_DTYPE, 1, 0},
    {FLASH, "dtype", "a100", "dtype=bf16", "sm79", "dtype=bf16", TN_REFUSE_DTYPE, 1, 0},
    {FLASH, "nested-batch", "h200", "nested=1 bk=1", "h200", "nested=1 bk=1 lengths=none",
     TN_REFUSE_SHAPE, 1, 0},
    {FLASH, "nested-head-size", "h200", "nested=1", "h200", "nested=1 dv=72", TN_REFUSE_SHAPE, 256,
     72},
    {FLASH, "nested-length", "h200", "nested=1 lengths=none lq=1", "h200",
     "nested=1 lengths=none lq=0", TN_REFUSE_SHAPE, 1, 0},
    {FLASH, "heads", "h200", "hk=1 hv=1", "h200", "hv=1", TN_REFUSE_SHAPE, 4, 1},
    {FLASH, "stride", "h200", "", "h200", "sk=2", TN_REFUSE_STRIDE, 1, 2},

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
    {EFFICIENT, "device", "h200", "", "h200", "on_v=a100", TN_REFUSE_DEVICE, 1, 0},
    {EFFICIENT, "device", "h200", "mask=bool", "h200", "mask=bool on_mask=a100", TN_REFUSE_DEVICE,
     1, 0},
    {EFFICIENT, "capability", "sm50", "", "untold", "", TN_REFUSE_DEVICE, 50, 0},
    {EFFICIENT, "architecture", "gfx90a", "", "gfx94", "", TN_REFUSE_DEVICE, 1, 0},
    {EFFICIENT, "head-size", "sm69", "dtype=f16 d=4", "sm70", "dtype=f16 d=4", TN_REFUSE_SHAPE, 8,
     4},
    {EFFICIENT, "head-size", "sm79", "dtype=f32 d=6", "a100", "dtype=f32 d=6", TN_REFUSE_SHAPE, 4,
     6},
    {EFFICIENT, "head-size", "sm79", "dtype=f32 d=6", "untold", "dtype=f32 d=6", TN_REFUSE_SHAPE, 4,
     6},
    {EFFICIENT, "greatest-size", "mi300x", "d=256 version=1199", "mi300x", "d=264 version=1199",
     TN_REFUSE_SHAPE, 256, 264},
    {EFFICIENT, "greatest-size", "mi300x", "d=248 version=1199", "mi300x", "d=252 version=1199",
     TN_REFUSE_SHAPE, 256, 252},
    {EFFICIENT, "alignment", "h200", "align_q=16", "h200", "align_q=8", TN_REFUSE_ALIGNMENT, 16, 8},
    {EFFICIENT, "alignment", "h200", "align_v=32", "h200", "align_v=24", TN_REFUSE_ALIGNMENT, 16,
     24},
    {EFFICIENT, "alignment", "sm79", "dtype=f16 align=2", "a100", "dtype=f16 align=2",
     TN_REFUSE_ALIGNMENT, 16, 2},
    {EFFICIENT, "nested-training", "h200", "nested=1", "h200", "nested=1 kgrad=1",
     TN_REFUSE_FEATURE, 1, 0},
    {EFFICIENT, "nested-batch", "h200", "nested=1 bk=1 bv=1", "h200", "nested=1 bk=1 bv=1 grad=1",
     TN_REFUSE_FEATURE, 1, 0},
    {EFFICIENT, "nested-batch", "h200", "nested=1 bv=1", "h200", "nested=1 bv=1 len_k=255",
     TN_REFUSE_SHAPE, 1, 0},
    {EFFICIENT, "nested-length", "h200", "nested=1 hk=1 hv=1", "h200", "nested=1 hk=2 hv=1",
     TN_REFUSE_SHAPE, 4, 2},
    {EFFICIENT, "length", "h200", "lq=1", "h200", "lq=0", TN_REFUSE_SHAPE, 1, 0},
    {EFFICIENT, "stride", "h200", "", "h200", "sk=2", TN_REFUSE_STRIDE, 1, 2},
    {EFFICIENT, "stride", "h200", "mask=bool", "h200", "mask=bool ms=0", TN_REFUSE_STRIDE, 1, 0},
    {EFFICIENT, "batch", "h200", "", "h200", "bk=1", TN_REFUSE_SHAPE, 2, 1},
    {EFFICIENT, "equal-heads", "mi300x", "", "mi300x", "hv=2", TN_REFUSE_SHAPE, 4, 2},
    {EFFICIENT, "dtype", "a100", "dtype=bf16", "sm79", "dtype=bf16", TN_REFUSE_DTYPE, 1, 0},
    {EFFICIENT, "dtype", "h200", "dtype=f16", "h200", "dtype=f16 vdtype=f32", TN_REFUSE_DTYPE, 1,
     0},

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
    {CUDNN, "version", "h200", "version=90000", "h200", "version=89999", TN_REFUSE_VERSION, 90000,
     89999},
    {CUDNN, "nested-capability", "h200", "nested=1", "untold", "nested=1", TN_REFUSE_DEVICE, 90, 0},
    {CUDNN, "device", "h200", "", "h200", "on_k=a100", TN_REFUSE_DEVICE, 1, 0},
    {CUDNN, "device", "h200", "", "h200", "on_v=a100", TN_REFUSE_DEVICE, 1, 0},
    {CUDNN, "rank", "h200", "", "h200", "rank=3", TN_REFUSE_SHAPE, 4, 3},
    {CUDNN, "dtype", "a100", "dtype=bf16", "sm79", "dtype=bf16", TN_REFUSE_DTYPE, 1, 0},
    {CUDNN, "capability", "a100", "", "sm79", "", TN_REFUSE_DEVICE, 80, 79},
    {CUDNN, "capability", "a100", "", "untold", "", TN_REFUSE_DEVICE, 80, 0},
    {CUDNN, "length", "h200", "lk=2", "h200", "lk=0", TN_REFUSE_SHAPE, 1, 0},
    {CUDNN, "stride", "h200", "", "h200", "sv=2", TN_REFUSE_STRIDE, 1, 2},
    {CUDNN, "stride", "h200", "mask=bool", "h200", "mask=bool ms=0", TN_REFUSE_STRIDE, 1, 0},
    {CUDNN, "batch", "h200", "", "h200", "bv=1", TN_REFUSE_SHAPE, 2, 1},
    {CUDNN, "heads", "h200", "hk=2 hv=1 gqa=1", "h200", "hk=3 hv=1 gqa=1", TN_REFUSE_SHAPE, 4, 3},
    {CUDNN, "version-gradient", "h200", "version=92500 lk=192", "h200",
     "version=92500 lk=192 grad=1", TN_REFUSE_VERSION, 92600, 92500},
    {CUDNN, "version-decode", "sm122", "version=92000 lq=1", "sm110", "version=92000 lq=1",
     TN_REFUSE_VERSION, 92501, 92000},
    {CUDNN, "head-size", "a100", "d=64 dv=128", "a100", "d=64 dv=136", TN_REFUSE_SHAPE, 128, 136},
    {CUDNN, "head-size", "h200", "d=192 dv=128 version=91100", "a100", "d=192 dv=128 version=91100",
     TN_REFUSE_SHAPE, 128, 192},
    {CUDNN, "head-size", "h200", "d=192 dv=128 version=91100", "h200", "d=184 dv=128 version=91100",
     TN_REFUSE_SHAPE, 128, 184},
    {CUDNN, "training", "h200", "grad=1 d=64 dv=128", "h200", "grad=1 d=64 dv=136",
     TN_REFUSE_FEATURE, 128, 136},
    {CUDNN, "nested-queries", "h200", "nested=1 len_q=129 b=1", "h200", "nested=1 len_q=128 b=1",
     TN_REFUSE_SHAPE, 129, 128},
    {CUDNN, "nested-queries", "h200", "nested=1 lengths=none lq=129", "h200",
     "nested=1 lengths=none lq=128", TN_REFUSE_SHAPE, 129, 128},

    /* Of a platform that no list is about. */
    {FLASH, "device", "pod", "", "pod", "on_k=bare", TN_REFUSE_DEVICE, 1, 0},
    {FLASH, "rank", "pod", "", "pod", "rank=3", TN_REFUSE_SHAPE, 4, 3},
    {FLASH, "nested", "pod", "", "pod", "nested_k=1", TN_REFUSE_FEATURE, 1, 0},
    {FLASH, "batch", "pod", "", "pod", "bv=1", TN_REFUSE_SHAPE, 2, 1},
    {FLASH, "heads", "pod", "hk=1 hv=1", "pod", "hk=2 hv=2", TN_REFUSE_SHAPE, 4, 2},
    {FLASH, "heads", "pod", "hk=2 hv=2 gqa=1", "pod", "hk=3 hv=3 gqa=1", TN_REFUSE_SHAPE, 4, 3},
    {FLASH, "problem", "pod", "causal=1", "pod", "mask=bool", TN_REFUSE_FEATURE, 1, 0},
    {FLASH, "problem", "pod", "dtype=f32", "pod", "dtype=f64", TN_REFUSE_DTYPE, 1, 0},
    {FLASH, "problem", "pod", "", "pod", "dk=72", TN_REFUSE_OTHER, 1, 0},
    {FLASH, "kernel", "pod", "", "bare", "", TN_REFUSE_LIBRARY, 1, 0},
};

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
            fail_msg("%s %s: \"%s\" on %s: %s, %s: %s: expected %lld, got %lld; %s",
                     list_names[e->list], e->name, e->fails, e->other_device,
                     tn_sdpa_outcome_name(check->outcome), tn_refusal_name(check->why.code),
                     check->why.what, (long long)check->why.needed, (long long)check->why.found,
                     check->why.text);
        assert_int_equal(report.usable, 0);
        assert_true(report.first >= 0 && report.checks[report.first].outcome == TN_SDPA_FAILS);
    }
}

/* Of what platforms answer by their kernels, which have one list for all. */
static bool is_own(const char *device)
{
    return strcmp(device, "pod") == 0 || strcmp(device, "bare") == 0;
}

static bool has_edge(int list, const char *device, const char *name)
{
    static const char *const elsewhere[] = {"kernel", "enabled", "determinism"};
    for (size_t j = 0; j < sizeof elsewhere / sizeof elsewhere[0]; j++) {
        if (strcmp(elsewhere[j], name) == 0)
            return true;
    }
    for (size_t j = 0; j < sizeof edges / sizeof edges[0]; j++) {
        const struct edge *e = &edges[j];
        if (is_own(e->device) == is_own(device) && (is_own(device) || e->list == list) &&
            strcmp(e->name, name) == 0)
            return true;
    }
    return false;
}

/* Everything that a list has stands among the edges, but for what is not a number's: those follow. */
static void no_condition_is_forgotten(void **state)
{
    static const char *const devices[] = {"h200", "mi300x", "pod"};
    (void)state;
    for (int list = FLASH; list <= CUDNN; list++) {
        for (int d = 0; d < 3; d++) {
            tn_sdpa_report report;
            ask(list, devices[d], "", &report);
            for (size_t i = 0; i < report.count; i++) {
                if (!has_edge(list, devices[d], report.checks[i].name))
                    fail_msg("%s of %s has %s, and no edge of it", list_names[list], devices[d],
                             report.checks[i].name);
            }
        }
    }
}

/* What AOTriton has kernels for, by the words of its own lists. */
static void every_architecture_is_known(void **state)
{
    static const char *const usual[] = {"gfx90a",  "gfx942",  "gfx950", "gfx1100",
                                        "gfx1151", "gfx1201", "gfx1250"};
    static const char *const trial[] = {"gfx908",  "gfx1101", "gfx1102", "gfx1103",
                                        "gfx1150", "gfx1152", "gfx1153", "gfx1200"};
    (void)state;
    for (int list = FLASH; list <= EFFICIENT; list++) {
        for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) {
            assert_int_equal(outcome(list, usual[i], "", "architecture"), TN_SDPA_HOLDS);
            assert_int_equal(outcome(list, usual[i], "", "experimental"), TN_SDPA_HOLDS);
        }
        for (size_t i = 0; i < sizeof trial / sizeof trial[0]; i++) {
            assert_int_equal(outcome(list, trial[i], "", "architecture"), TN_SDPA_HOLDS);
            assert_int_equal(outcome(list, trial[i], "", "experimental"), TN_SDPA_FAILS);
            assert_int_equal(outcome(list, trial[i], "permits=2", "experimental"), TN_SDPA_HOLDS);
        }
    }
}

/* A kernel that is there and one that is not, of every list. */
static void kernels_are_there_or_not(void **state)
{
    tn_sdpa_report report;
    (void)state;
    for (int list = FLASH; list <= CUDNN; list++) {
        assert_int_equal(outcome(list, "h200", "", "kernel"), TN_SDPA_HOLDS);
        ask(list, "bare", "", &report);
        assert_string_equal(report.checks[report.first].name, "kernel");
        assert_int_equal(report.checks[report.first].why.code, TN_REFUSE_LIBRARY);
    }
    assert_int_equal(outcome(EFFICIENT, "mi300x", "", "kernel"), TN_SDPA_HOLDS);
    assert_int_equal(outcome(CUDNN, "mi300x", "", "kernel"), TN_SDPA_FAILS);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_condition_has_two_sides),
        cmocka_unit_test(no_condition_is_forgotten),
        cmocka_unit_test(every_architecture_is_known),
        cmocka_unit_test(kernels_are_there_or_not),
        cmocka_unit_test(conditions_have_an_order),
    };
    forget_settings();
    (void)setenv("TENON_CACHE", "", 1);
    attention_rows_of_gpus = true;
    return run_suite("unit.sdpa_edges", tests);
}
