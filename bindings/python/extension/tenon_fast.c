/* tenon._fast: the plain calls of matmul and attention without ctypes in between.
 *
 * It takes what is common, arrays in the host's memory of one library that it was taught, and gives
 * NotImplemented for all else and for every failure: the package then makes the same call in Python, which
 * knows every case and words every error. So nothing is decided here.
 *
 * Arrays are seen through the buffer protocol, or through DLPack's table of C functions where their type has
 * one (__dlpack_c_exchange_api__). The library's functions are handed in: nothing of Tenon is linked.
 *
 * Thread-safety: the interpreter's lock, which is released while the library computes. The module's state is
 * written by bind and teach only. */
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <tenon/attention.h>
#include <tenon/dlpack.h>
#include <tenon/matmul.h>

/* Most dimensions, and libraries that can be taught. */
enum { RANK_MAX = 8, LIBRARIES_MAX = 8 };

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
    void *stream;
} exchange;

/* A library whose arrays can be seen. */
typedef struct library {
    PyObject *type;            /* exactly this one: what derives from it may mean something else */
    PyObject *empty;           /* called with shape and dtype; None beside a table               */
    const exchange *functions; /* NULL: the buffer protocol                                      */
} library;

typedef struct state {
    tn_status (*matmul)(const tn_context *, const tn_matmul_args *, tn_error *);
    tn_status (*attention)(const tn_context *, const tn_attention_args *, tn_error *);
    library libraries[LIBRARIES_MAX];
    int count;
    PyObject *requires_grad, *is_neg; /* names, made once */
} state;

/* An array while a call lasts. */
typedef struct seen {
    tn_tensor tensor;
    int64_t shape[RANK_MAX];
    int64_t strides[RANK_MAX];
    Py_buffer buffer;
    int held; /* the buffer must be released */
} seen;

static void let_go(seen *s, int count)
{
    for (int i = 0; i < count; i++) {
        if (s[i].held)
            PyBuffer_Release(&s[i].buffer);
    }
}

/* The dtype of an element in native order; 0 for what is left to Python. */
static tn_dtype dtype_of(const char *format, Py_ssize_t size)
{
    if (!format || format[0] == '\0' || format[1] != '\0')
        return 0;
    switch (format[0]) {
    case 'f': return TN_F32;
    case 'd': return TN_F64;
    case 'e': return TN_F16;
    case 'b': return TN_I8;
    case 'B': return TN_U8;
    case '?': return TN_BOOL;
    case 'i':
    case 'l':
    case 'q': return size == 8 ? TN_I64 : size == 4 ? TN_I32 : 0;
    default: return 0;
    }
}

/* 1 when the array's memory is in `out`, which is then let go; 0, with no exception, when it is left to
 * Python. */
static int see_buffer(PyObject *array, int writable, seen *out)
{
    int flags = PyBUF_STRIDES | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(array, &out->buffer, flags) != 0) {
        PyErr_Clear();
        return 0;
    }
    const Py_buffer *b = &out->buffer;
    out->held = 1;
    tn_dtype dtype = dtype_of(b->format, b->itemsize);
    if (!dtype || b->ndim > RANK_MAX)
        return 0;
    for (int i = 0; i < b->ndim; i++) {
        if (b->strides[i] % b->itemsize != 0)
            return 0;
        out->shape[i] = b->shape[i];
        out->strides[i] = b->strides[i] / b->itemsize;
    }
    out->tensor = (tn_tensor){.data = b->buf,
                              .device_type = TN_DLPACK_CPU,
                              .ndim = b->ndim,
                              .dtype = dtype,
                              .shape = out->shape,
                              .strides = out->strides};
    return 1;
}

/* Whether a value that was asked for is true; it is let go. */
static int is_true(PyObject *value)
{
    int yes = value && value != Py_False;
    Py_XDECREF(value);
    PyErr_Clear();
    return yes;
}

/* Whether an array means something else than its memory: gradients would be lost, or it is negated or
 * conjugated when it is read. */
static int means_more(const state *s, PyObject *array, tn_dtype dtype)
{
    return (dtype & 0xFF) == TN_DTYPE_CODE_COMPLEX ||
           is_true(PyObject_GetAttr(array, s->requires_grad)) ||
           is_true(PyObject_CallMethodObjArgs(array, s->is_neg, NULL));
}

/* The same as see_buffer through DLPack's table. What is written was made here. */
static int see_exchange(const state *s, const exchange *functions, PyObject *array, int writable,
                        seen *out)
{
    tn_dlpack_tensor t;
    if (functions->tensor_of(array, &t) != 0) {
        PyErr_Clear();
        return 0;
    }
    if (t.device_type != TN_DLPACK_CPU || t.ndim > RANK_MAX ||
        (!writable && means_more(s, array, t.dtype)))
        return 0;
    out->tensor = (tn_tensor){.data = t.data,
                              .device_type = t.device_type,
                              .device_id = t.device_id,
                              .ndim = t.ndim,
                              .dtype = t.dtype,
                              .shape = t.shape,
                              .strides = t.strides,
                              .byte_offset = t.byte_offset};
    return 1;
}

static int see(const state *s, const library *of, PyObject *array, int writable, seen *out)
{
    if ((PyObject *)Py_TYPE(array) != of->type)
        return 0;
    return of->functions ? see_exchange(s, of->functions, array, writable, out)
                         : see_buffer(array, writable, out);
}

static const library *library_of(const state *s, PyObject *array)
{
    for (int i = 0; i < s->count; i++) {
        if ((PyObject *)Py_TYPE(array) == s->libraries[i].type)
            return &s->libraries[i];
    }
    return NULL;
}

static void ignore(void *user, const char *kind, const char *message)
{
    (void)user, (void)kind, (void)message;
}

/* Through DLPack's table, of the shape. NULL, maybe with an exception, where that fails. */
static PyObject *make_exchanged(const exchange *functions, tn_dtype dtype, int64_t *shape, int rank)
{
    tn_dlpack_tensor like = {
        .device_type = TN_DLPACK_CPU, .ndim = rank, .dtype = dtype, .shape = shape};
    tn_dlpack_versioned *managed = NULL;
    void *result = NULL;
    if (functions->allocate(&like, &managed, NULL, ignore) != 0)
        return NULL;
    return functions->to_object(managed, &result) == 0 ? result : NULL;
}

/* Through what the library was taught with. */
static PyObject *make_called(PyObject *empty, PyObject *like, const int64_t *shape, int rank)
{
    PyObject *result = NULL, *dtype = PyObject_GetAttrString(like, "dtype");
    PyObject *sizes = PyTuple_New(rank);
    if (!dtype || !sizes)
        goto done;
    for (int i = 0; i < rank; i++) {
        PyObject *size = PyLong_FromLongLong(shape[i]);
        if (!size || PyTuple_SetItem(sizes, i, size) != 0)
            goto done;
    }
    result = PyObject_CallFunctionObjArgs(empty, sizes, dtype, NULL);
done:
    Py_XDECREF(dtype);
    Py_XDECREF(sizes);
    return result;
}

/* An empty array of the first one's dtype and of its shape, but for the last dimension. NULL without an
 * exception where that fails. */
static PyObject *make_result(const library *of, PyObject *like, const seen *first, int64_t last)
{
    int64_t shape[RANK_MAX];
    int rank = first->tensor.ndim;
    for (int i = 0; i < rank; i++)
        shape[i] = i == rank - 1 ? last : first->tensor.shape[i];
    PyObject *result = of->functions
                           ? make_exchanged(of->functions, first->tensor.dtype, shape, rank)
                           : make_called(of->empty, like, shape, rank);
    PyErr_Clear();
    return result;
}

/* A context's address; None is NULL. -1 with an exception for anything else. */
static int context_of(PyObject *address, const tn_context **out)
{
    *out = address == Py_None ? NULL : PyLong_AsVoidPtr(address);
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *not_implemented(void)
{
    return Py_NewRef(Py_NotImplemented);
}

/* Whether a [..., m, k] and b [..., k, n] are of one dtype that is the result's too, and of one batch. */
static int fits_matmul(const tn_tensor *a, const tn_tensor *b)
{
    if (a->ndim < 2 || a->ndim != b->ndim || a->dtype != b->dtype || a->dtype == TN_I8 ||
        a->dtype == TN_U8)
        return 0;
    for (int i = 0; i < a->ndim - 2; i++) {
        if (a->shape[i] != b->shape[i])
            return 0;
    }
    return 1;
}

static PyObject *matmul(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    const state *s = PyModule_GetState(module);
    const tn_context *context;
    PyObject *result = NULL;
    const library *of = count == 3 ? library_of(s, given[1]) : NULL;
    seen t[3] = {{.held = 0}, {.held = 0}, {.held = 0}};
    tn_status status = TN_UNSUPPORTED;
    if (!of || !s->matmul || context_of(given[0], &context) != 0)
        return PyErr_Occurred() ? NULL : not_implemented();
    if (!see(s, of, given[1], 0, &t[0]) || !see(s, of, given[2], 0, &t[1]) ||
        !fits_matmul(&t[0].tensor, &t[1].tensor))
        goto done;
    result = make_result(of, given[1], &t[0], t[1].tensor.shape[t[1].tensor.ndim - 1]);
    if (result && see(s, of, result, 1, &t[2])) {
        tn_matmul_args args = {
            .struct_size = sizeof args, .a = &t[0].tensor, .b = &t[1].tensor, .out = &t[2].tensor};
        Py_BEGIN_ALLOW_THREADS;
        status = s->matmul(context, &args, NULL);
        Py_END_ALLOW_THREADS;
    }
done:
    let_go(t, 3);
    if (status == TN_OK)
        return result;
    Py_XDECREF(result);
    return not_implemented();
}

/* attention(context, q, k, v, mask, scale): mask is TN_MASK_NONE, _CAUSAL or _CAUSAL_BR, scale a float or
 * None. */
static PyObject *attention(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    const state *s = PyModule_GetState(module);
    const tn_context *context;
    PyObject *result = NULL;
    const library *of = count == 6 ? library_of(s, given[1]) : NULL;
    seen t[4] = {{.held = 0}, {.held = 0}, {.held = 0}, {.held = 0}};
    tn_status status = TN_UNSUPPORTED;
    if (!of || !s->attention || context_of(given[0], &context) != 0)
        return PyErr_Occurred() ? NULL : not_implemented();
    tn_attention_args args = {.struct_size = sizeof args};
    args.mask = (int32_t)PyLong_AsLong(given[4]);
    args.set = given[5] == Py_None ? 0 : TN_ATTENTION_SET_SCALE;
    args.scale = given[5] == Py_None ? 0 : PyFloat_AsDouble(given[5]);
    if (PyErr_Occurred())
        return NULL;
    for (int i = 0; i < 3; i++) {
        if (!see(s, of, given[i + 1], 0, &t[i]) || t[i].tensor.ndim != 4)
            goto done;
    }
    result = make_result(of, given[1], &t[0], t[2].tensor.shape[3]);
    if (result && see(s, of, result, 1, &t[3])) {
        args.q = &t[0].tensor;
        args.k = &t[1].tensor;
        args.v = &t[2].tensor;
        args.out = &t[3].tensor;
        Py_BEGIN_ALLOW_THREADS;
        status = s->attention(context, &args, NULL);
        Py_END_ALLOW_THREADS;
    }
done:
    let_go(t, 4);
    if (status == TN_OK)
        return result;
    Py_XDECREF(result);
    return not_implemented();
}

/* What attributes are asked for by. */
static int make_names(state *s)
{
    if (!s->requires_grad)
        s->requires_grad = PyUnicode_InternFromString("requires_grad");
    if (!s->is_neg)
        s->is_neg = PyUnicode_InternFromString("is_neg");
    return s->requires_grad && s->is_neg;
}

/* bind(matmul, attention): the addresses of the library's functions. */
static PyObject *bind(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    state *s = PyModule_GetState(module);
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "bind needs 2 addresses, found %zd", count);
    void *addresses[2] = {PyLong_AsVoidPtr(given[0]), PyLong_AsVoidPtr(given[1])};
    if (PyErr_Occurred() || !make_names(s))
        return NULL;
    memcpy(&s->matmul, &addresses[0], sizeof addresses[0]);
    memcpy(&s->attention, &addresses[1], sizeof addresses[1]);
    return Py_NewRef(Py_None);
}

/* The table of a type, or NULL without an exception: it has none, or one of another major version. */
static const exchange *exchange_of(PyObject *type)
{
    PyObject *capsule = PyObject_GetAttrString(type, "__dlpack_c_exchange_api__");
    const exchange *found = capsule ? PyCapsule_GetPointer(capsule, "dlpack_exchange_api") : NULL;
    PyErr_Clear();
    Py_XDECREF(capsule); /* the table itself lives as long as its library */
    return found && found->major == TN_DLPACK_VERSION_MAJOR ? found : NULL;
}

/* teach(type, empty, exchange): arrays of the type are seen from now on, by DLPack's table if `exchange` is
 * true; False when they cannot be. Once for each type. */
static PyObject *teach(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    state *s = PyModule_GetState(module);
    if (count != 3)
        return PyErr_Format(PyExc_TypeError, "teach needs 3 arguments, found %zd", count);
    int wants = PyObject_IsTrue(given[2]);
    const exchange *functions = wants ? exchange_of(given[0]) : NULL;
    if (s->count == LIBRARIES_MAX || (wants && !functions))
        return Py_NewRef(Py_False);
    s->libraries[s->count++] = (library){
        .type = Py_NewRef(given[0]), .empty = Py_NewRef(given[1]), .functions = functions};
    return Py_NewRef(Py_True);
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    const state *s = PyModule_GetState(module);
    for (int i = 0; s && i < s->count; i++) {
        Py_VISIT(s->libraries[i].type);
        Py_VISIT(s->libraries[i].empty);
    }
    return 0;
}

static int clear(PyObject *module)
{
    state *s = PyModule_GetState(module);
    while (s && s->count > 0) {
        library *last = &s->libraries[--s->count];
        Py_CLEAR(last->type);
        Py_CLEAR(last->empty);
    }
    if (s) {
        Py_CLEAR(s->requires_grad);
        Py_CLEAR(s->is_neg);
    }
    return 0;
}

static void free_module(void *module)
{
    (void)clear(module);
}

#define METHOD(name, text)                                              \
    {                                                                   \
#name, (PyCFunction)(void (*)(void))(name), METH_FASTCALL, text \
    }

static PyMethodDef methods[] = {
    METHOD(matmul, "matmul(context, a, b): the product, or NotImplemented."),
    METHOD(attention, "attention(context, q, k, v, mask, scale): its result, or NotImplemented."),
    METHOD(bind, "bind(matmul, attention): the addresses of the library's functions."),
    METHOD(teach, "teach(type, empty, exchange): see arrays of the type; whether that can be."),
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "tenon._fast",
    .m_doc = "Plain calls without ctypes in between.",
    .m_size = sizeof(state),
    .m_methods = methods,
    .m_slots = (PyModuleDef_Slot[]){{0, NULL}},
    .m_traverse = traverse,
    .m_clear = clear,
    .m_free = free_module,
};

PyMODINIT_FUNC PyInit__fast(void);

PyMODINIT_FUNC PyInit__fast(void)
{
    return PyModuleDef_Init(&definition);
}
