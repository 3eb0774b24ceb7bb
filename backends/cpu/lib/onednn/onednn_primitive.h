/* A product of one shape, prepared by oneDNN: its code is compiled once, for all runs of a plan. */
#ifndef TENON_BACKENDS_CPU_ONEDNN_PRIMITIVE_H
#define TENON_BACKENDS_CPU_ONEDNN_PRIMITIVE_H

#include "onednn.h"

#include <stdbool.h>

typedef struct tni_dnnl_product {
    int64_t rows, columns, depth;
    int64_t a[2], b[2], out[2]; /* strides of rows and of columns */
    int dtype, out_dtype;       /* TNI_DNNL_... */
    int32_t activation;         /* TN_ACT_..., except relu */
    bool has_bias;              /* out_dtype, one number per column, contiguous */
    bool rounded;               /* f32 operands are read as bf16 */
    bool packed;                /* B has a layout chosen by oneDNN: */
    const tni_dnnl_layout *as;  /* that of another primitive; NULL: this one's choice */
} tni_dnnl_product;

typedef struct tni_dnnl_primitive {
    void *handle;
    void *description;
    tni_dnnl_layout a, b, bias, out;
    const void *scratch; /* its layout, owned by the description */
    size_t scratch_bytes;
} tni_dnnl_primitive;

/* *out must be zeroed before, and must not be moved afterwards. Fails with TN_UNSUPPORTED also if
 * oneDNN has only its reference code, which is slower than any other kernel. On failure, everything
 * is released. The caller must be between tni_vendor_threads_enter and _leave, so that the
 * primitive is made for one thread. */
tn_status tni_dnnl_primitive_make(const tni_dnnl *dnnl, const tni_dnnl_product *product,
                                  tni_dnnl_primitive *out, tn_error *err);
void tni_dnnl_primitive_release(const tni_dnnl *dnnl, tni_dnnl_primitive *primitive);

/* Converts B from layout `from` to layout `to`; `to_data` must have layout_bytes of `to` and be
 * aligned to 64. Returns a dnnl_status_t. */
int tni_dnnl_reorder(const tni_dnnl *dnnl, const tni_dnnl_layout *from, const void *from_data,
                     const tni_dnnl_layout *to, void *to_data);

/* The state of a computing thread: a stream, memory objects for its operands, and scratch
 * memory. */
typedef struct tni_dnnl_seat tni_dnnl_seat;

/* Returns NULL if there is no memory. */
tni_dnnl_seat *tni_dnnl_seat_make(const tni_dnnl *dnnl, const tn_host *host,
                                  const tni_dnnl_primitive *primitives, size_t count);
void tni_dnnl_seat_release(const tni_dnnl *dnnl, const tn_host *host, tni_dnnl_seat *seat);

/* Computes with one of the primitives that the seat was made for. Returns a dnnl_status_t. */
int tni_dnnl_seat_compute(const tni_dnnl *dnnl, tni_dnnl_seat *seat,
                          const tni_dnnl_primitive *primitive, size_t index, void *const data[4]);

#endif
