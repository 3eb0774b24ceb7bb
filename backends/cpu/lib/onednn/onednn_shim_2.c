#include "onednn.h"
#include "tenon/module/op.h"
#include "tenon/module/op/matmul.h"

static int lay(const tni_dnnl *dnnl, const tni_dnnl_dims shape, const tni_dnnl_dims strides,
               int dtype, tni_dnnl_layout *out)
{
    int code = dnnl->of_2.layout_init(out->room, 2, shape, dtype, strides);
    out->at = code ? NULL : out->room;
    return code;
}

static void release(const tni_dnnl *dnnl, tni_dnnl_layout *layout)
{
    (void)dnnl;
    layout->at = NULL;
}

static int leave(const tni_dnnl *dnnl, const tni_dnnl_dims shape, int dtype, tni_dnnl_layout *out)
{
    int code = dnnl->of_2.layout_by_tag
                   ? dnnl->of_2.layout_by_tag(out->room, 2, shape, dtype, TNI_DNNL_TAG_ANY)
                   : TNI_DNNL_UNIMPLEMENTED;
    out->at = code ? NULL : out->room;
    return code;
}

static int copy(const tni_dnnl *dnnl, const void *layout, tni_dnnl_layout *out)
{
    enum { BYTES = 696 };
    (void)dnnl;
    memcpy(out->room, layout, BYTES);
    out->at = out->room;
    return TNI_DNNL_OK;
}

static int describe(const tni_dnnl *dnnl, const tni_dnnl_layout *a, const tni_dnnl_layout *b,
                    const tni_dnnl_layout *bias, const tni_dnnl_layout *out_layout,
                    const void *attributes, void **out)
{
    int64_t matmul[512]; /* dnnl_matmul_desc_t, which has 2800 bytes */
    int code = dnnl->of_2.matmul_init(matmul, a->room, b->room, bias ? bias->room : NULL,
                                      out_layout->room);
    return code ? code : dnnl->of_2.description_create(out, matmul, attributes, dnnl->engine, NULL);
}

static int activate(const tni_dnnl *dnnl, void *post_ops, int32_t activation)
{
    static const int kinds[TN_ACT_COUNT] = {
        [TN_ACT_GELU] = 0x30, [TN_ACT_GELU_TANH] = 0xCF, [TN_ACT_SILU] = 0xDF};
    float alpha = activation == TN_ACT_SILU ? 1.0F : 0.0F;
    return dnnl->of_2.post_ops_append(post_ops, 1.0F, kinds[activation], alpha, 0.0F);
}

const tni_dnnl_shim tni_dnnl_shim_2 = {lay, release, leave, copy, describe, activate};
