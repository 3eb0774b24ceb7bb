/* Internal declarations for oneDNN 2 and 3. Their C interfaces differ in how a product is
 * described; the differences are in onednn_shim_2.c and onednn_shim_3.c, behind one table.
 * Declarations are this module's own, with the names of dnnl.h and dnnl_types.h. Unless stated
 * otherwise, functions return a dnnl_status_t, 0 for success. */
#ifndef TENON_BACKENDS_CPU_ONEDNN_H
#define TENON_BACKENDS_CPU_ONEDNN_H

#include "../../vendor_threads.h"
#include "tenon/module/library.h"

/* Constants that both versions share. */
enum { TNI_DNNL_OK = 0, TNI_DNNL_NO_MEMORY = 1, TNI_DNNL_UNIMPLEMENTED = 3 };
enum { TNI_DNNL_BF16 = 2, TNI_DNNL_F32, TNI_DNNL_S32, TNI_DNNL_S8 };
enum { TNI_DNNL_ARG_A = 1, TNI_DNNL_ARG_OUT = 17, TNI_DNNL_ARG_B = 33, TNI_DNNL_ARG_BIAS = 41 };
enum { TNI_DNNL_ARG_SCRATCH = 80, TNI_DNNL_ARG_FROM = 1, TNI_DNNL_ARG_TO = 17 };
enum { TNI_DNNL_TAG_ANY = 1 };

/* The beginning of dnnl_version_t; `threads` is its threading runtime, DNNL_RUNTIME_... */
typedef struct tni_dnnl_version {
    int major, minor, patch;
    const char *hash;
    unsigned threads;
} tni_dnnl_version;
enum {
    TNI_DNNL_SEQUENTIAL = 1,
    TNI_DNNL_OPENMP = 2,
    TNI_DNNL_TBB = 4,
    TNI_DNNL_POOL = 8, /* the caller's thread pool; sequential without one */
    TNI_DNNL_SYCL = 512
};

/* dnnl_exec_arg_t. */
typedef struct tni_dnnl_argument {
    int number; /* TNI_DNNL_ARG_... */
    void *memory;
} tni_dnnl_argument;

/* dnnl_memory_desc_t: in version 2 a struct of 696 bytes, stored in `room`; in version 3 an
 * object. */
typedef struct tni_dnnl_layout {
    void *at; /* NULL: none */
    int64_t room[128];
} tni_dnnl_layout;

/* dnnl_dims_t has 12 numbers, of which 2 are used. */
typedef int64_t tni_dnnl_dims[12];

struct tni_dnnl;

/* Functions that differ between the versions. */
typedef struct tni_dnnl_shim {
    int (*lay)(const struct tni_dnnl *dnnl, const tni_dnnl_dims shape, const tni_dnnl_dims strides,
               int dtype, tni_dnnl_layout *out);
    void (*release)(const struct tni_dnnl *dnnl, tni_dnnl_layout *layout);
    /* Creates a layout that oneDNN chooses; copies the layout of a description. */
    int (*leave)(const struct tni_dnnl *dnnl, const tni_dnnl_dims shape, int dtype,
                 tni_dnnl_layout *out);
    int (*copy)(const struct tni_dnnl *dnnl, const void *layout, tni_dnnl_layout *out);
    /* *out is a dnnl_primitive_desc_t. `bias` is NULL if none exists. */
    int (*describe)(const struct tni_dnnl *dnnl, const tni_dnnl_layout *a, const tni_dnnl_layout *b,
                    const tni_dnnl_layout *bias, const tni_dnnl_layout *out_layout,
                    const void *attributes, void **out);
    int (*activate)(const struct tni_dnnl *dnnl, void *post_ops, int32_t activation);
} tni_dnnl_shim;
extern const tni_dnnl_shim tni_dnnl_shim_2, tni_dnnl_shim_3;

typedef struct tni_dnnl {
    const tni_dnnl_version *(*version)(void);
    int (*set_verbose)(int level);
    int (*omp_get_max_threads)(void); /* of the OpenMP runtime it is linked to; else NULL */
    void (*omp_set_num_threads)(int threads);

    int (*engine_create)(void **out, int kind, size_t index);
    int (*stream_create)(void **out, void *engine, unsigned flags);
    int (*stream_destroy)(void *stream);
    int (*memory_create)(void **out, const void *layout, void *engine, void *data);
    int (*memory_set)(void *memory, void *data);
    int (*memory_destroy)(void *memory);
    size_t (*layout_bytes)(const void *layout);
    int (*attributes_create)(void **out);
    int (*attributes_destroy)(void *attributes);
    int (*attributes_set_scratchpad)(void *attributes, int mode);
    int (*attributes_set_post_ops)(void *attributes, const void *post_ops);
    int (*attributes_set_fpmath)(void *attributes, int mode); /* since 2.6; else NULL */
    int (*post_ops_create)(void **out);
    int (*post_ops_destroy)(void *post_ops);
    int (*description_query)(const void *description, int what, int index, void *out);
    const void *(*description_layout)(const void *description, int what, int index);
    int (*description_destroy)(void *description);
    int (*reorder_create)(void **out, const void *from, void *from_engine, const void *to,
                          void *to_engine, const void *attributes); /* may be NULL */
    int (*primitive_create)(void **out, const void *description);
    int (*primitive_execute)(const void *primitive, void *stream, int count,
                             const tni_dnnl_argument *arguments);
    int (*primitive_destroy)(void *primitive);

    struct {
        int (*layout_init)(void *layout, int rank, const int64_t *shape, int dtype,
                           const int64_t *strides);
        int (*layout_by_tag)(void *layout, int rank, const int64_t *shape, int dtype, int tag);
        int (*matmul_init)(void *matmul, const void *a, const void *b, const void *bias,
                           const void *out);
        int (*description_create)(void **out, const void *matmul, const void *attributes,
                                  void *engine, const void *hint);
        int (*post_ops_append)(void *post_ops, float scale, int kind, float alpha, float beta);
    } of_2;
    struct {
        int (*layout_create)(void **out, int rank, const int64_t *shape, int dtype,
                             const int64_t *strides);
        int (*layout_destroy)(void *layout);
        int (*layout_by_tag)(void **out, int rank, const int64_t *shape, int dtype, int tag);
        int (*layout_clone)(void **out, const void *layout);
        int (*matmul_create)(void **out, void *engine, const void *a, const void *b,
                             const void *bias, const void *out_layout, const void *attributes);
        int (*post_ops_append)(void *post_ops, int kind, float alpha, float beta);
    } of_3;

    const tni_dnnl_shim *shim;
    void *engine;
    tni_vendor_threads threads;
    int64_t tiles_target; /* number of tiles for a large product */
} tni_dnnl;

/* Converts a failed call of oneDNN to an error. */
tn_status tni_dnnl_fail(int code, const char *where, const char *what, tn_error *err);

#endif
