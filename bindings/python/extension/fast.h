/* What the extension's files share: its state, and arrays while a call lasts. */
#ifndef TENON_FAST_H
#define TENON_FAST_H

#define Py_LIMITED_API 0x03090000 /* runs on CPython 3.9 and whatever comes later */
#include <Python.h>

#include <tenon/attention.h>
#include <tenon/dlpack.h>
#include <tenon/matmul.h>

/* The buffer protocol, which the limited API has from 3.11 on, and a way of calling, from 3.10 on. CPython 3.9 and
 * 3.10, which do not change any more, have the same functions, struct and number. */
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

/* Most dimensions, libraries that can be taught, and streams that are remembered. */
enum { RANK_MAX = 8, LIBRARIES_MAX = 8, STREAMS_MAX = 64 };

/* DLPack's table, of major version 1. What is given to to_object is its own from then on, also when it
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

/* PyTorch's aoti_torch_get_storage_size and _offset: bytes of a storage, elements before a tensor's first; 0 on success.
 * `tensor` is the address of an at::Tensor, which is a pointer to the number that `_cdata` has. */
typedef int32_t storage_fact(void *tensor, int64_t *out);

/* A library whose arrays can be seen. */
typedef struct library {
    PyObject *types;     /* exactly these: what derives from them may mean something else  */
    PyObject *empty;     /* called with shape and dtype; beside a table, off the host, with
                                * an array to be like, a shape and strides                       */
    PyObject *gradients; /* beside a table: whether they are recorded now                  */
    PyObject *forward;   /* beside a table: whose _current_level is that of its forward mode */
    PyObject *wrote;     /* beside a table: called with a caller's array that was written to */
    const exchange *functions; /* NULL: the buffer protocol                                      */
    storage_fact *bytes, *offset; /* NULL: call the array's methods                        */
} library;

/* A stream of a library's, as Tenon has wrapped it. */
typedef struct wrapped {
    void *raw;
    int32_t device_type, device_id;
    tn_stream *stream; /* NULL: none is remembered here */
} wrapped;

typedef struct state {
    tn_status (*matmul)(const tn_context *, const tn_matmul_args *, tn_error *);
    tn_status (*attention)(const tn_context *, const tn_attention_args *, tn_error *);
    library libraries[LIBRARIES_MAX];
    int count;
    wrapped streams[STREAMS_MAX]; /* by their handles; one may take another's place */
    PyObject *wrap;               /* wraps one: called with device type, device and handle */
    /* interned names of attributes */
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

/* The same object with one reference more. */
static inline PyObject *one_more(PyObject *object)
{
    Py_INCREF(object);
    return object;
}

/* Whose the array is; NULL when it is left to Python. */
const library *library_of(const state *s, PyObject *array);

/* What an array is in a call. FRESH: made here, so that nobody's gradients or tangents depend on it. */
typedef enum role { READ, WRITTEN, FRESH } role;

/* 1 when the array, of that library, is in `out`, which is then let go; 0, with no exception, when it is left to
 * Python. */
int see(const state *s, const library *of, PyObject *array, role as, seen *out);
void let_go(seen *s, int count);

/* The stream that the library works on where the array is: what it queued there before comes first, and what
 * it queues behind comes after. NULL in the host's memory. 0, with no exception, when it is left to Python. */
int find_stream(state *s, const library *of, const tn_tensor *array, tn_stream **out);

/* Returns a new reference to the array to write to, and describes it in *out: `given`, or for None an empty array of the
 * shape, with the dtype and on the device of `first`. NULL without an exception when the call is left to Python. */
PyObject *find_result(const state *s, const library *of, PyObject *given, PyObject *like,
                      const seen *first, int64_t *shape, seen *out);

/* Tells the library that a caller's array was written to. 0 with an exception where that fails. */
int count_write(const library *of, PyObject *array);

#endif
