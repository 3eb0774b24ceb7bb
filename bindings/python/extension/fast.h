/* What the extension's files share: its state, and arrays while a call lasts. */
#ifndef TENON_FAST_H
#define TENON_FAST_H

#define Py_LIMITED_API 0x03090000 /* runs on CPython 3.9 and whatever comes later */
#include <Python.h>

#include <tenon/attention.h>
#include <tenon/dlpack.h>
#include <tenon/einsum.h>
#include <tenon/matmul.h>

/* The limited API has the buffer protocol since 3.11 and METH_FASTCALL since 3.10. They are declared here because CPython
 * 3.9 and 3.10, which no longer change, have the same functions, struct and flag. */
#ifndef METH_FASTCALL
#define METH_FASTCALL 0x0080
#endif

typedef struct lent {
    void *buf;
    PyObject *obj;
    Py_ssize_t len, itemsize;
    int readonly, ndim;
    char *format;
    Py_ssize_t *shape, *strides, *suboffsets;
    void *internal;
} lent;

PyAPI_FUNC(int) PyObject_GetBuffer(PyObject *object, lent *out, int flags);
PyAPI_FUNC(void) PyBuffer_Release(lent *buffer);

enum { LENT_WRITABLE = 0x01, LENT_FORMAT = 0x04, LENT_STRIDES = 0x18 };

/* Maximum numbers of dimensions, registered libraries and cached streams. */
enum { RANK_MAX = 8, LIBRARIES_MAX = 8, STREAMS_MAX = 64 };

/* DLPack's exchange table (DLPackExchangeAPI), major version 1. to_object takes ownership of `managed`, also if it
 * fails. */
typedef struct exchange {
    uint32_t major, minor;
    void *previous;
    int (*allocate)(tn_dlpack_tensor *like, tn_dlpack_versioned **out, void *user,
                    void (*fail)(void *user, const char *kind, const char *message));
    void *from_object;
    int (*to_object)(tn_dlpack_versioned *managed, void **out);
    int (*tensor_of)(void *object, tn_dlpack_tensor *out);
    int (*stream)(int32_t device_type, int32_t device_id, void **out);
} exchange;

/* PyTorch's aoti_torch_get_storage_size (bytes of the storage) and aoti_torch_get_storage_offset (elements before the
 * tensor's first). Return 0 on success. `tensor` is the address of an at::Tensor, whose only member is the pointer that
 * `_cdata` has as a number. */
typedef int32_t storage_fact(void *tensor, int64_t *out);

/* A library whose arrays this extension can read. Without `functions`, `gradients`, `forward` and `wrote` are unused. */
typedef struct library {
    PyObject *types;              /* of its arrays; no subclasses, which may mean something else */
    PyObject *empty;              /* makes an array: (shape, dtype), or (like, shape, strides) */
    PyObject *gradients;          /* returns whether gradients are recorded now */
    PyObject *forward;            /* its _current_level is the level of forward-mode gradients */
    PyObject *wrote;              /* called with an array of the caller after it was written to */
    const exchange *functions;    /* NULL: arrays are read by the buffer protocol */
    storage_fact *bytes, *offset; /* NULL: the array's methods are called instead */
} library;

/* A library's stream and the tn_stream that wraps it. */
typedef struct wrapped {
    void *raw;
    int32_t device_type, device_id;
    tn_stream *stream; /* NULL: the entry is empty */
} wrapped;

typedef struct state {
    tn_status (*matmul)(const tn_context *, const tn_matmul_args *, tn_error *);
    tn_status (*attention)(const tn_context *, const tn_attention_args *, tn_error *);
    tn_status (*einsum)(const tn_context *, const tn_einsum_args *, tn_error *);
    tn_status (*einsum_shape)(const tn_einsum_args *, int64_t *, int32_t *, tn_error *);
    library libraries[LIBRARIES_MAX];
    int count;
    wrapped streams[STREAMS_MAX]; /* hash table by handle; replaces one entry if full */
    PyObject *wrap;               /* wraps a stream: (device type, device, handle) */
    /* interned attribute names */
    PyObject *requires_grad, *is_neg, *level, *cdata, *storage_offset, *untyped_storage;
    unsigned long long served; /* calls that were not left to Python */
} state;

/* An array while a call lasts. */
typedef struct seen {
    tn_tensor tensor;
    int64_t shape[RANK_MAX];
    int64_t strides[RANK_MAX];
    lent buffer;
    int held; /* the buffer must be released */
} seen;

/* Returns `object` with a new reference. */
static inline PyObject *one_more(PyObject *object)
{
    Py_INCREF(object);
    return object;
}

/* Returns the library of an array; NULL if the call is left to Python. */
const library *library_of(const state *s, PyObject *array);

/* What a call does with an array. FRESH: made by this extension, so no gradient or tangent depends on it. */
typedef enum role { READ, WRITTEN, FRESH } role;

/* Describes an array of library `of` in *out, which let_go releases. Returns 1, or 0 without an exception if the call is
 * left to Python. */
int see(const state *s, const library *of, PyObject *array, role as, seen *out);
void let_go(seen *s, int count);

/* Finds the library's current stream of the array's device; NULL in host memory. Returns 1, or 0 without an exception if
 * the call is left to Python. */
int find_stream(state *s, const library *of, const tn_tensor *array, tn_stream **out);

/* Returns a new reference to the array to write to, and describes it in *out: `given`, or for None an empty array of the
 * shape, which has `rank` dimensions, with the dtype and on the device of `first`. NULL without an exception when the call is left to Python. */
PyObject *find_result(const state *s, const library *of, PyObject *given, PyObject *like,
                      const seen *first, int64_t *shape, int rank, seen *out);

/* Tells the library that a caller's array was written to. 0 with an exception where that fails. */
int count_write(const library *of, PyObject *array);

#endif
