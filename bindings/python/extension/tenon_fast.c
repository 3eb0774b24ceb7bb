/* tenon._fast: the plain calls of matmul and attention without ctypes in between.
 *
 * It takes what is common, arrays of one library that it was taught, in the host's memory or on a GPU, and gives
 * NotImplemented for all else and for every failure: the package then makes the same call in Python, which
 * knows every case and words every error. So nothing is decided here.
 *
 * Arrays are seen through the buffer protocol, or through DLPack's table of C functions where their type has
 * one (__dlpack_c_exchange_api__). On a GPU a call is queued on the stream that the arrays' library works on there,
 * as that table tells it, and is not waited for. The library's functions are handed in: nothing of Tenon is linked.
 *
 * Thread-safety: the interpreter's lock, which is released while the library computes. The module's state is
 * written with the lock held. */
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

/* A library whose arrays can be seen. */
typedef struct library {
    PyObject *types;     /* exactly these: what derives from them may mean something else  */
    PyObject *empty;     /* called with shape and dtype; beside a table, off the host, with
                                * an array to be like, a shape and strides                       */
    PyObject *gradients; /* beside a table: whether they are recorded now                  */
    PyObject *forward;   /* beside a table: whose _current_level is that of its forward mode */
    const exchange *functions; /* NULL: the buffer protocol                                      */
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
    PyObject *requires_grad, *is_neg, *level; /* names, made once */
    unsigned long long served;                /* calls that were not left to Python */
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
static PyObject *one_more(PyObject *object)
{
    Py_INCREF(object);
    return object;
}

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
    int flags = LENT_STRIDES | LENT_FORMAT | (writable ? LENT_WRITABLE : 0);
    if (PyObject_GetBuffer(array, &out->buffer, flags) != 0) {
        PyErr_Clear();
        return 0;
    }
    const lent *b = &out->buffer;
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
static int means_more(const state *s, const library *of, PyObject *array, tn_dtype dtype)
{
    return (dtype & 0xFF) == TN_DTYPE_CODE_COMPLEX ||
           (is_true(PyObject_GetAttr(array, s->requires_grad)) &&
            is_true(PyObject_CallNoArgs(of->gradients))) ||
           is_true(PyObject_CallMethodObjArgs(array, s->is_neg, NULL));
}

/* The same as see_buffer through DLPack's table. What is written was made here. */
static int see_exchange(const state *s, const library *of, PyObject *array, int writable, seen *out)
{
    tn_dlpack_tensor t;
    if (of->functions->tensor_of(array, &t) != 0) {
        PyErr_Clear();
        return 0;
    }
    if ((t.device_type != TN_DLPACK_CPU && t.device_type != TN_DLPACK_CUDA &&
         t.device_type != TN_DLPACK_ROCM) ||
        t.ndim > RANK_MAX || !t.strides || (!writable && means_more(s, of, array, t.dtype)))
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

static int is_of(const library *of, PyObject *array)
{
    const Py_ssize_t count = PyTuple_Size(of->types);
    for (Py_ssize_t i = 0; i < count; i++) {
        if ((PyObject *)Py_TYPE(array) == PyTuple_GetItem(of->types, i))
            return 1;
    }
    return 0;
}

static int see(const state *s, const library *of, PyObject *array, int writable, seen *out)
{
    if (!is_of(of, array))
        return 0;
    return of->functions ? see_exchange(s, of, array, writable, out)
                         : see_buffer(array, writable, out);
}

/* Whether a level of forward-mode derivatives is open, in which an array may have a tangent that would be lost. */
static int is_forward(const state *s, const library *of)
{
    PyObject *level = PyObject_GetAttr(of->forward, s->level);
    const int closed = level && PyLong_AsLong(level) < 0 && !PyErr_Occurred();
    Py_XDECREF(level);
    PyErr_Clear();
    return !closed;
}

/* Whose the array is; NULL when it is left to Python. */
static const library *library_of(const state *s, PyObject *array)
{
    for (int i = 0; i < s->count; i++) {
        const library *of = &s->libraries[i];
        if (is_of(of, array))
            return of->functions && is_forward(s, of) ? NULL : of;
    }
    return NULL;
}

/* Tenon's address of a stream that is not remembered. NULL without an exception where it cannot be wrapped. */
static tn_stream *wrap_stream(const state *s, const wrapped *w)
{
    PyObject *address =
        PyObject_CallFunction(s->wrap, "iiK", (int)w->device_type, (int)w->device_id,
                              (unsigned long long)(uintptr_t)w->raw);
    tn_stream *stream = address ? PyLong_AsVoidPtr(address) : NULL;
    Py_XDECREF(address);
    PyErr_Clear();
    return stream;
}

static int is_remembered(const wrapped *slot, const wrapped *w)
{
    return slot->stream && slot->raw == w->raw && slot->device_id == w->device_id &&
           slot->device_type == w->device_type;
}

/* Where a stream is remembered, or will be; when all places are taken, one that another has to leave. */
static wrapped *slot_of(state *s, const wrapped *w)
{
    const uintptr_t first = ((uintptr_t)w->raw >> 4) + (uintptr_t)w->device_id;
    for (uintptr_t i = 0; i < STREAMS_MAX; i++) {
        wrapped *slot = &s->streams[(first + i) % STREAMS_MAX];
        if (!slot->stream || is_remembered(slot, w))
            return slot;
    }
    return &s->streams[first % STREAMS_MAX];
}

/* The stream that the library works on where the array is: what it queued there before comes first, and what
 * it queues behind comes after. NULL in the host's memory. 0, with no exception, when it is left to Python. */
static int find_stream(state *s, const library *of, const tn_tensor *array, tn_stream **out)
{
    wrapped found = {.device_type = array->device_type, .device_id = array->device_id};
    *out = NULL;
    if (array->device_type == TN_DLPACK_CPU)
        return 1;
    if (!of->functions->stream ||
        of->functions->stream(found.device_type, found.device_id, &found.raw) != 0) {
        PyErr_Clear();
        return 0;
    }
    wrapped *slot = slot_of(s, &found);
    if (!is_remembered(slot, &found)) {
        found.stream = wrap_stream(s, &found);
        if (!found.stream)
            return 0;
        *slot = found;
    }
    *out = slot->stream;
    return 1;
}

static void ignore(void *user, const char *kind, const char *message)
{
    (void)user, (void)kind, (void)message;
}

/* In the host's memory through DLPack's table. NULL, maybe with an exception, where that fails. */
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

static PyObject *tuple_of(const int64_t *numbers, int count)
{
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; tuple && i < count; i++) {
        PyObject *number = PyLong_FromLongLong(numbers[i]);
        if (!number || PyTuple_SetItem(tuple, i, number) != 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

/* The steps of a dense array, as one without elements has them too. 0 for one that no memory holds. */
static int strides_of(const int64_t *shape, int rank, int64_t *out)
{
    int64_t step = 1;
    for (int i = rank - 1; i >= 0; i--) {
        const int64_t size = shape[i] > 1 ? shape[i] : 1;
        out[i] = step;
        if (size > INT64_MAX / step)
            return 0;
        step *= size;
    }
    return 1;
}

/* Through what the library was taught with; on a GPU thus also, as the table would give memory that PyTorch's own
 * allocator does not know for its own. */
static PyObject *make_called(const library *of, PyObject *like, const int64_t *shape, int rank)
{
    int64_t strides[RANK_MAX];
    if (!strides_of(shape, rank, strides))
        return NULL;
    PyObject *result = NULL, *second = NULL, *sizes = tuple_of(shape, rank);
    if (sizes)
        second = of->functions ? tuple_of(strides, rank) : PyObject_GetAttrString(like, "dtype");
    if (second && of->functions)
        result = PyObject_CallFunctionObjArgs(of->empty, like, sizes, second, NULL);
    else if (second)
        result = PyObject_CallFunctionObjArgs(of->empty, sizes, second, NULL);
    Py_XDECREF(second);
    Py_XDECREF(sizes);
    return result;
}

/* An empty array of the first one's dtype, where it is, of the shape, and what is seen of it. NULL without an
 * exception where that fails. */
static PyObject *make_result(const state *s, const library *of, PyObject *like, const seen *first,
                             int64_t *shape, seen *out)
{
    const tn_tensor *t = &first->tensor;
    const int host = t->device_type == TN_DLPACK_CPU;
    PyObject *result = of->functions && host
                           ? make_exchanged(of->functions, t->dtype, shape, t->ndim)
                           : make_called(of, like, shape, t->ndim);
    PyErr_Clear();
    if (result && see(s, of, result, 1, out))
        return result;
    Py_XDECREF(result);
    return NULL;
}

/* A context's address; None is NULL. -1 with an exception for anything else. */
static int context_of(PyObject *address, const tn_context **out)
{
    *out = address == Py_None ? NULL : PyLong_AsVoidPtr(address);
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *not_implemented(void)
{
    return one_more(Py_NotImplemented);
}

/* Whether a [..., m, k] and b [..., k, n] are of one dtype that is the result's too, and of one batch. */
static int fits_matmul(const tn_tensor *a, const tn_tensor *b)
{
    const uint32_t bits = a->dtype >> 8 & 0xFF;
    if (a->ndim < 2 || a->ndim != b->ndim || a->dtype != b->dtype || bits == 8)
        return 0;
    for (int i = 0; i < a->ndim - 2; i++) {
        if (a->shape[i] != b->shape[i])
            return 0;
    }
    return 1;
}

/* What a call gives: its result when it went well, else it is left to Python. */
static PyObject *finish(state *s, tn_status status, PyObject *result)
{
    if (status == TN_OK) {
        s->served++;
        return result;
    }
    Py_XDECREF(result);
    return not_implemented();
}

static PyObject *matmul(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    state *s = PyModule_GetState(module);
    const tn_context *context;
    PyObject *result = NULL;
    const library *of = count == 3 ? library_of(s, given[1]) : NULL;
    seen t[3] = {{.held = 0}, {.held = 0}, {.held = 0}};
    int64_t shape[RANK_MAX];
    tn_status status = TN_UNSUPPORTED;
    tn_matmul_args args = {.struct_size = sizeof args};
    if (!of || !s->matmul || context_of(given[0], &context) != 0)
        return PyErr_Occurred() ? NULL : not_implemented();
    if (!see(s, of, given[1], 0, &t[0]) || !see(s, of, given[2], 0, &t[1]) ||
        !fits_matmul(&t[0].tensor, &t[1].tensor) || !find_stream(s, of, &t[0].tensor, &args.stream))
        goto done;
    const int rank = t[0].tensor.ndim;
    for (int i = 0; i < rank; i++)
        shape[i] = i == rank - 1 ? t[1].tensor.shape[i] : t[0].tensor.shape[i];
    result = make_result(s, of, given[1], &t[0], shape, &t[2]);
    if (result) {
        args.a = &t[0].tensor;
        args.b = &t[1].tensor;
        args.out = &t[2].tensor;
        Py_BEGIN_ALLOW_THREADS;
        status = s->matmul(context, &args, NULL);
        Py_END_ALLOW_THREADS;
    }
done:
    let_go(t, 3);
    return finish(s, status, result);
}

/* The operands of attention, in their order, and what is given with them. */
enum { QUERY, KEY, VALUE, MASK, OUT, ATTENTION_ARRAYS };
enum { GIVEN_MASK = 4, GIVEN_SCALE, GIVEN_ARRAY, GIVEN_LAYOUT, GIVEN_TURNED, GIVEN_BACKEND, GIVEN };

/* 0, with no exception, for what is no number: Python names the option. */
static int read_options(PyObject *const *given, tn_attention_args *out)
{
    PyObject *scale = given[GIVEN_SCALE];
    int32_t *const numbers[] = {&out->mask, &out->layout, &out->backend};
    const int places[] = {GIVEN_MASK, GIVEN_LAYOUT, GIVEN_BACKEND};
    int fine = 1;
    for (int i = 0; i < 3 && fine; i++) {
        const long number = PyLong_AsLong(given[places[i]]);
        fine = number >= 0 && number <= INT32_MAX;
        *numbers[i] = (int32_t)number;
    }
    out->set = scale == Py_None ? 0 : TN_ATTENTION_SET_SCALE;
    out->scale = !fine || scale == Py_None ? 0 : PyFloat_AsDouble(scale);
    fine = fine && !PyErr_Occurred();
    PyErr_Clear();
    return fine;
}

/* 1 when queries, keys, values and what mask there is are in `t` and `args`. */
static int see_operands(const state *s, const library *of, PyObject *const *given, seen *t,
                        tn_attention_args *args)
{
    for (int i = QUERY; i <= VALUE; i++) {
        if (!see(s, of, given[i + 1], 0, &t[i]) || t[i].tensor.ndim != 4)
            return 0;
    }
    args->q = &t[QUERY].tensor;
    args->k = &t[KEY].tensor;
    args->v = &t[VALUE].tensor;
    if (given[GIVEN_ARRAY] == Py_None)
        return 1;
    args->mask_tensor = &t[MASK].tensor;
    return see(s, of, given[GIVEN_ARRAY], 0, &t[MASK]);
}

/* Of four dimensions, the two in the middle change places. */
static void turn(seen *s)
{
    const int64_t *n = s->tensor.shape, *step = s->tensor.strides;
    const int64_t shape[] = {n[0], n[2], n[1], n[3]};
    const int64_t strides[] = {step[0], step[2], step[1], step[3]};
    memcpy(s->shape, shape, sizeof shape);
    memcpy(s->strides, strides, sizeof strides);
    s->tensor.shape = s->shape;
    s->tensor.strides = s->strides;
}

/* attention(context, q, k, v, mask, scale, mask_tensor, layout, turned, backend): mask is TN_MASK_NONE, _CAUSAL or
 * _CAUSAL_BR, scale a float or None, mask_tensor an array or None, layout TN_LAYOUT_..., backend TN_BACKEND_... or 0.
 * With `turned` the result has the other layout. */
static PyObject *attention(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    state *s = PyModule_GetState(module);
    const tn_context *context;
    PyObject *result = NULL;
    const library *of = count == GIVEN ? library_of(s, given[1]) : NULL;
    seen t[ATTENTION_ARRAYS] = {{.held = 0}, {.held = 0}, {.held = 0}, {.held = 0}, {.held = 0}};
    tn_status status = TN_UNSUPPORTED;
    tn_attention_args args = {.struct_size = sizeof args};
    if (!of || !s->attention || context_of(given[0], &context) != 0 || !read_options(given, &args))
        return PyErr_Occurred() ? NULL : not_implemented();
    const int turned = given[GIVEN_TURNED] == Py_True;
    if (!see_operands(s, of, given, t, &args) || !find_stream(s, of, args.q, &args.stream))
        goto done;
    int64_t shape[] = {args.q->shape[0], args.q->shape[turned ? 2 : 1],
                       args.q->shape[turned ? 1 : 2], args.v->shape[3]};
    result = make_result(s, of, given[1], &t[QUERY], shape, &t[OUT]);
    if (result) {
        if (turned)
            turn(&t[OUT]);
        args.out = &t[OUT].tensor;
        Py_BEGIN_ALLOW_THREADS;
        status = s->attention(context, &args, NULL);
        Py_END_ALLOW_THREADS;
    }
done:
    let_go(t, ATTENTION_ARRAYS);
    return finish(s, status, result);
}

/* served(): how many calls were not left to Python. */
static PyObject *served(PyObject *module, PyObject *none)
{
    const state *s = PyModule_GetState(module);
    (void)none;
    return PyLong_FromUnsignedLongLong(s->served);
}

/* What attributes are asked for by. */
static int make_names(state *s)
{
    if (!s->requires_grad)
        s->requires_grad = PyUnicode_InternFromString("requires_grad");
    if (!s->is_neg)
        s->is_neg = PyUnicode_InternFromString("is_neg");
    if (!s->level)
        s->level = PyUnicode_InternFromString("_current_level");
    return s->requires_grad && s->is_neg && s->level;
}

/* bind(matmul, attention, wrap): the addresses of the library's functions, and what gives the address of Tenon's
 * stream over one of a vendor's: wrap(device_type, device_id, raw). */
static PyObject *bind(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    state *s = PyModule_GetState(module);
    if (count != 3)
        return PyErr_Format(PyExc_TypeError, "bind needs 2 addresses and a function, found %zd",
                            count);
    void *addresses[2] = {PyLong_AsVoidPtr(given[0]), PyLong_AsVoidPtr(given[1])};
    if (PyErr_Occurred() || !make_names(s))
        return NULL;
    memcpy(&s->matmul, &addresses[0], sizeof addresses[0]);
    memcpy(&s->attention, &addresses[1], sizeof addresses[1]);
    Py_CLEAR(s->wrap);
    s->wrap = one_more(given[2]);
    return one_more(Py_None);
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

/* teach(types, empty, gradients, forward): arrays of these types, a tuple, are seen from now on; False when they
 * cannot be. By the buffer protocol if `gradients` is None; else by the first type's table of DLPack's, `gradients`
 * tells whether an array that requires them would lose them, and `forward._current_level` is not negative while
 * arrays may have tangents. Once for each type. */
static PyObject *teach(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    state *s = PyModule_GetState(module);
    if (count != 4)
        return PyErr_Format(PyExc_TypeError, "teach needs 4 arguments, found %zd", count);
    PyObject *first = PyTuple_Check(given[0]) ? PyTuple_GetItem(given[0], 0) : NULL;
    const int wants = given[2] != Py_None;
    if (!first)
        return PyErr_Format(PyExc_TypeError, "teach needs a tuple of types");
    const exchange *functions = wants ? exchange_of(first) : NULL;
    if (s->count == LIBRARIES_MAX || (wants && !functions))
        return one_more(Py_False);
    s->libraries[s->count++] = (library){.types = one_more(given[0]),
                                         .empty = one_more(given[1]),
                                         .gradients = one_more(given[2]),
                                         .forward = one_more(given[3]),
                                         .functions = functions};
    return one_more(Py_True);
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    const state *s = PyModule_GetState(module);
    for (int i = 0; s && i < s->count; i++) {
        Py_VISIT(s->libraries[i].types);
        Py_VISIT(s->libraries[i].gradients);
        Py_VISIT(s->libraries[i].forward);
        Py_VISIT(s->libraries[i].empty);
    }
    if (s)
        Py_VISIT(s->wrap);
    return 0;
}

static int clear(PyObject *module)
{
    state *s = PyModule_GetState(module);
    while (s && s->count > 0) {
        library *last = &s->libraries[--s->count];
        Py_CLEAR(last->types);
        Py_CLEAR(last->gradients);
        Py_CLEAR(last->forward);
        Py_CLEAR(last->empty);
    }
    if (s) {
        Py_CLEAR(s->wrap);
        Py_CLEAR(s->requires_grad);
        Py_CLEAR(s->is_neg);
        Py_CLEAR(s->level);
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
    METHOD(attention, "attention(context, q, k, v, mask, scale, mask_tensor, layout, turned, "
                      "backend): its result, or NotImplemented."),
    METHOD(bind, "bind(matmul, attention, wrap): what is called."),
    {"served", served, METH_NOARGS, "How many calls were not left to Python."},
    METHOD(teach, "teach(types, empty, gradients, forward): see arrays of the types; whether that "
                  "can be."),
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
