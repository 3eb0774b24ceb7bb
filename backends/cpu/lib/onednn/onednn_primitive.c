#include "onednn_primitive.h"

#include "tenon/module/op.h"

enum { SCRATCHPAD_USER = 1, FPMATH_BF16 = 1, QUERY_IMPLEMENTATION = 8 };
enum { QUERY_WEIGHTS = 131, QUERY_SCRATCHPAD = 136 };

static const char where[] = "cpu: mkldnn";

static int lay(const tni_dnnl *dnnl, int64_t rows, int64_t columns, const int64_t strides[2],
               int dtype, tni_dnnl_layout *out)
{
    const tni_dnnl_dims shape = {rows, columns}, steps = {strides[0], strides[1]};
    return dnnl->shim->lay(dnnl, shape, steps, dtype, out);
}

static int lay_b(const tni_dnnl *dnnl, const tni_dnnl_product *p, tni_dnnl_layout *out)
{
    const tni_dnnl_dims shape = {p->depth, p->columns};
    if (!p->packed)
        return lay(dnnl, p->depth, p->columns, p->b, p->dtype, out);
    return p->as ? dnnl->shim->copy(dnnl, p->as->at, out)
                 : dnnl->shim->leave(dnnl, shape, p->dtype, out);
}

static int lay_all(const tni_dnnl *dnnl, const tni_dnnl_product *p, tni_dnnl_primitive *to)
{
    const int64_t along[2] = {p->columns, 1};
    int code = lay(dnnl, p->rows, p->depth, p->a, p->dtype, &to->a);
    if (!code)
        code = lay_b(dnnl, p, &to->b);
    if (!code)
        code = lay(dnnl, p->rows, p->columns, p->out, p->out_dtype, &to->out);
    if (!code && p->has_bias)
        code = lay(dnnl, 1, p->columns, along, p->out_dtype, &to->bias);
    return code;
}

static int set_activation(const tni_dnnl *dnnl, int32_t activation, void *attributes)
{
    void *post_ops = NULL;
    int code = dnnl->post_ops_create(&post_ops);
    if (code)
        return code;
    code = dnnl->shim->activate(dnnl, post_ops, activation);
    if (!code)
        code = dnnl->attributes_set_post_ops(attributes, post_ops);
    (void)dnnl->post_ops_destroy(post_ops);
    return code;
}

static int describe(const tni_dnnl *dnnl, const tni_dnnl_product *p, tni_dnnl_primitive *to)
{
    void *attributes = NULL;
    int code = dnnl->attributes_create(&attributes);
    if (code)
        return code;
    code = dnnl->attributes_set_scratchpad(attributes, SCRATCHPAD_USER);
    if (!code && p->rounded)
        code = dnnl->attributes_set_fpmath ? dnnl->attributes_set_fpmath(attributes, FPMATH_BF16)
                                           : TNI_DNNL_UNIMPLEMENTED;
    if (!code && p->activation)
        code = set_activation(dnnl, p->activation, attributes);
    if (!code)
        code = dnnl->shim->describe(dnnl, &to->a, &to->b, p->has_bias ? &to->bias : NULL, &to->out,
                                    attributes, &to->description);
    (void)dnnl->attributes_destroy(attributes);
    return code;
}

static bool is_reference(const tni_dnnl *dnnl, const void *description)
{
    const char *name = NULL;
    int code = dnnl->description_query(description, QUERY_IMPLEMENTATION, 0, &name);
    return !code && name && strncmp(name, "ref", 3) == 0;
}

/* Copies the layout that oneDNN chose for B. */
static int learn_b(const tni_dnnl *dnnl, tni_dnnl_primitive *to)
{
    const void *chosen = dnnl->description_layout(to->description, QUERY_WEIGHTS, 0);
    dnnl->shim->release(dnnl, &to->b);
    return chosen ? dnnl->shim->copy(dnnl, chosen, &to->b) : TNI_DNNL_UNIMPLEMENTED;
}

tn_status tni_dnnl_primitive_make(const tni_dnnl *dnnl, const tni_dnnl_product *product,
                                  tni_dnnl_primitive *out, tn_error *err)
{
    int code = lay_all(dnnl, product, out);
    if (!code)
        code = describe(dnnl, product, out);
    if (!code && is_reference(dnnl, out->description))
        code = TNI_DNNL_UNIMPLEMENTED;
    if (!code && product->packed)
        code = learn_b(dnnl, out);
    if (!code)
        code = dnnl->primitive_create(&out->handle, out->description);
    if (code) {
        tni_dnnl_primitive_release(dnnl, out);
        return tni_dnnl_fail(code, where, "the product", err);
    }
    out->scratch = dnnl->description_layout(out->description, QUERY_SCRATCHPAD, 0);
    out->scratch_bytes = out->scratch ? dnnl->layout_bytes(out->scratch) : 0;
    return TN_OK;
}

void tni_dnnl_primitive_release(const tni_dnnl *dnnl, tni_dnnl_primitive *primitive)
{
    if (primitive->handle)
        (void)dnnl->primitive_destroy(primitive->handle);
    if (primitive->description)
        (void)dnnl->description_destroy(primitive->description);
    dnnl->shim->release(dnnl, &primitive->a);
    dnnl->shim->release(dnnl, &primitive->b);
    dnnl->shim->release(dnnl, &primitive->bias);
    dnnl->shim->release(dnnl, &primitive->out);
    *primitive = (tni_dnnl_primitive){0};
}

int tni_dnnl_reorder(const tni_dnnl *dnnl, const tni_dnnl_layout *from, const void *from_data,
                     const tni_dnnl_layout *to, void *to_data)
{
    enum { IN_ORDER = 1 };
    void *description = NULL, *primitive = NULL, *stream = NULL, *source = NULL, *target = NULL;
    int code = dnnl->reorder_create ? dnnl->reorder_create(&description, from->at, dnnl->engine,
                                                           to->at, dnnl->engine, NULL)
                                    : TNI_DNNL_UNIMPLEMENTED;
    if (!code)
        code = dnnl->primitive_create(&primitive, description);
    if (!code)
        code = dnnl->stream_create(&stream, dnnl->engine, IN_ORDER);
    if (!code)
        code = dnnl->memory_create(&source, from->at, dnnl->engine, (void *)(uintptr_t)from_data);
    if (!code)
        code = dnnl->memory_create(&target, to->at, dnnl->engine, to_data);
    if (!code) {
        const tni_dnnl_argument arguments[] = {{TNI_DNNL_ARG_FROM, source},
                                               {TNI_DNNL_ARG_TO, target}};
        code = dnnl->primitive_execute(primitive, stream, 2, arguments);
    }
    if (target)
        (void)dnnl->memory_destroy(target);
    if (source)
        (void)dnnl->memory_destroy(source);
    if (stream)
        (void)dnnl->stream_destroy(stream);
    if (primitive)
        (void)dnnl->primitive_destroy(primitive);
    if (description)
        (void)dnnl->description_destroy(description);
    return code;
}
