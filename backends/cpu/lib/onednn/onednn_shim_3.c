#include "onednn.h"
#include "tenon/module/op.h"
#include "tenon/module/op/matmul.h"

static int lay(const tni_dnnl *dnnl, const tni_dnnl_dims shape, const tni_dnnl_dims strides,
               int dtype, tni_dnnl_layout *out)
{
    return dnnl->of_3.layout_create(&out->at, 2, shape, dtype, strides);
}

static void release(const tni_dnnl *dnnl, tni_dnnl_layout *layout)
{
    if (layout->at)
        (void)dnnl->of_3.layout_destroy(layout->at);
    layout->at = NULL;
}

static int leave(const tni_dnnl *dnnl, const tni_dnnl_dims shape, int dtype, tni_dnnl_layout *out)
{
    return dnnl->of_3.layout_by_tag
               ? dnnl->of_3.layout_by_tag(&out->at, 2, shape, dtype, TNI_DNNL_TAG_ANY)
               : TNI_DNNL_UNIMPLEMENTED;
}

static int copy(const tni_dnnl *dnnl, const void *layout, tni_dnnl_layout *out)
{
    return dnnl->of_3.layout_clone ? dnnl->of_3.layout_clone(&out->at, layout)
                                   : TNI_DNNL_UNIMPLEMENTED;
}

static int describe(const tni_dnnl *dnnl, const tni_dnnl_layout *a, const tni_dnnl_layout *b,
                    const tni_dnnl_layout *bias, const tni_dnnl_layout *out_layout,
                    const void *attributes, void **out)
{
    return dnnl->of_3.matmul_create(out, dnnl->engine, a->at, b->at, bias ? bias->at : NULL,
                                    out_layout->at, attributes);
}

static int activate(const tni_dnnl *dnnl, void *post_ops, int32_t activation)
{
    static const int kinds[TN_ACT_COUNT] = {
        [TN_ACT_GELU] = 0x31, [TN_ACT_GELU_TANH] = 0x2B, [TN_ACT_SILU] = 0x2C};
    float alpha = activation == TN_ACT_SILU ? 1.0F : 0.0F;
    return dnnl->of_3.post_ops_append(post_ops, kinds[activation], alpha, 0.0F);
}

const tni_dnnl_shim tni_dnnl_shim_3 = {lay, release, leave, copy, describe, activate};
