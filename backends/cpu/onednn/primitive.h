/* A product of one shape, made ready by oneDNN: code for it is compiled once, for all runs of a plan. */
#ifndef TENON_BACKENDS_CPU_ONEDNN_PRIMITIVE_H
#define TENON_BACKENDS_CPU_ONEDNN_PRIMITIVE_H

#include "onednn.h"

#include <stdbool.h>

typedef struct tni_dnnl_product {
    int64_t rows, columns, depth;
    int64_t a[2], b[2], out[2]; /* strides of rows and of columns */
    int dtype, out_dtype;       /* TNI_DNNL_... */
    int32_t activation;         /* TN_ACT_..., but relu */
    bool has_bias;              /* of out_dtype, a number a column, one after the other */
    bool rounded;               /* f32 operands are read as bf16 */
    bool packed;                /* B lies as oneDNN has it best: */
    const tni_dnnl_layout *as;  /* as another primitive has it; NULL: as this one wishes */
} tni_dnnl_product;

typedef struct tni_dnnl_primitive {
    void *handle;
    void *description;
    tni_dnnl_layout a, b, bias, out;
    const void *scratch; /* its layout, which is the description's */
    size_t scratch_bytes;
} tni_dnnl_primitive;

/* Zeroed before; not to be moved afterwards. TN_UNSUPPORTED also where oneDNN has only its reference code,
 * which is slower than anything else there is. What failed is released. The library is held meanwhile: what
 * is made is for one thread. */
tn_status tni_dnnl_primitive_make(const tni_dnnl *dnnl, const tni_dnnl_product *product,
                                  tni_dnnl_primitive *out, tn_error *err);
void tni_dnnl_primitive_release(const tni_dnnl *dnnl, tni_dnnl_primitive *primitive);

/* Puts B, as `from` has it, where it lies as `to` has it; `to_data` has layout_bytes of that, aligned to 64. A
 * dnnl_status_t. */
int tni_dnnl_reorder(const tni_dnnl *dnnl, const tni_dnnl_layout *from, const void *from_data,
                     const tni_dnnl_layout *to, void *to_data);

/* Where a thread computes: a stream, memory objects that its data is put into, room to work. */
typedef struct tni_dnnl_seat tni_dnnl_seat;

/* NULL for want of memory. */
tni_dnnl_seat *tni_dnnl_seat_make(const tni_dnnl *dnnl, const tn_host *host,
                                  const tni_dnnl_primitive *primitives, size_t count);
void tni_dnnl_seat_release(const tni_dnnl *dnnl, const tn_host *host, tni_dnnl_seat *seat);

/* Computes with one of the primitives that the seat was made for. A dnnl_status_t. */
int tni_dnnl_seat_compute(const tni_dnnl *dnnl, tni_dnnl_seat *seat,
                          const tni_dnnl_primitive *primitive, size_t index, void *const data[4]);

#endif
