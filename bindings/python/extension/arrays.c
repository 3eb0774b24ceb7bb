/* Arrays of other libraries as the extension sees them, the streams they are worked on by, and results of theirs. */
#include "fast.h"

void let_go(seen *s, int count)
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
static int see_buffer(PyObject *array, role as, seen *out)
{
    int flags = LENT_STRIDES | LENT_FORMAT | (as == READ ? 0 : LENT_WRITABLE);
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

/* The value of a method that returns a count; -1, with no exception, if it fails. */
static int64_t count_of(PyObject *array, PyObject *method)
{
    PyObject *told = PyObject_CallMethodObjArgs(array, method, NULL);
    const int64_t count = told ? PyLong_AsLongLong(told) : -1;
    Py_XDECREF(told);
    PyErr_Clear();
    return count;
}

/* Reads the bytes of an array's storage, and how many of its elements are before the array's first. */
static int read_storage(const state *s, const library *of, PyObject *array, int64_t *bytes,
                        int64_t *offset)
{
    if (of->bytes) {
        PyObject *number = PyObject_GetAttr(array, s->cdata);
        void *tensor = number ? PyLong_AsVoidPtr(number) : NULL;
        Py_XDECREF(number);
        PyErr_Clear();
        return tensor && of->bytes(&tensor, bytes) == 0 && of->offset(&tensor, offset) == 0;
    }
    PyObject *storage = PyObject_CallMethodObjArgs(array, s->untyped_storage, NULL);
    *bytes = storage ? PyObject_Length(storage) : -1;
    Py_XDECREF(storage);
    PyErr_Clear();
    *offset = count_of(array, s->storage_offset);
    return *bytes >= 0 && *offset >= 0;
}

/* Whether every element is inside the storage, which may have been resized since the tensor was made. PyTorch gives a
 * tensor whose storage is empty, or has no memory, an address that is its offset from NULL. */
static int has_storage(const state *s, const library *of, PyObject *array,
                       const tn_dlpack_tensor *t)
{
    const int64_t size = (t->dtype >> 8 & 0xFF) / 8;
    int64_t bytes = 0, offset = 0;
    if (size == 0 || !read_storage(s, of, array, &bytes, &offset) || offset > bytes / size ||
        (uintptr_t)t->data == (uintptr_t)(offset * size))
        return 0;
    int64_t left = bytes / size - offset;
    for (int32_t d = 0; d < t->ndim; d++) {
        const int64_t steps = t->shape[d] - 1, stride = t->strides[d];
        if (steps < 0)
            return 1; /* no elements */
        if (steps > 0 && (stride < 0 || stride > left / steps))
            return 0;
        left -= steps * stride;
    }
    return left > 0;
}

/* The same as see_buffer through DLPack's table. */
static int see_exchange(const state *s, const library *of, PyObject *array, role as, seen *out)
{
    tn_dlpack_tensor t;
    if (of->functions->tensor_of(array, &t) != 0) {
        PyErr_Clear();
        return 0;
    }
    if ((t.device_type != TN_DLPACK_CPU && t.device_type != TN_DLPACK_CUDA &&
         t.device_type != TN_DLPACK_ROCM) ||
        t.ndim > RANK_MAX || !t.strides || (as != FRESH && means_more(s, of, array, t.dtype)) ||
        !has_storage(s, of, array, &t))
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

int see(const state *s, const library *of, PyObject *array, role as, seen *out)
{
    if (!is_of(of, array))
        return 0;
    return of->functions ? see_exchange(s, of, array, as, out) : see_buffer(array, as, out);
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

const library *library_of(const state *s, PyObject *array)
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

int find_stream(state *s, const library *of, const tn_tensor *array, tn_stream **out)
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

/* A new array for the result. NULL without an exception where that fails. */
static PyObject *make_result(const library *of, PyObject *like, const tn_tensor *first,
                             int64_t *shape, int rank)
{
    const int host = first->device_type == TN_DLPACK_CPU;
    PyObject *result = of->functions && host
                           ? make_exchanged(of->functions, first->dtype, shape, rank)
                           : make_called(of, like, shape, rank);
    PyErr_Clear();
    return result;
}

PyObject *find_result(const state *s, const library *of, PyObject *given, PyObject *like,
                      const seen *first, int64_t *shape, int rank, seen *out)
{
    const int fresh = given == Py_None;
    PyObject *result = fresh ? make_result(of, like, &first->tensor, shape, rank) : one_more(given);
    if (result && see(s, of, result, fresh ? FRESH : WRITTEN, out))
        return result;
    Py_XDECREF(result);
    return NULL;
}

int count_write(const library *of, PyObject *array)
{
    if (!of->functions || of->wrote == Py_None)
        return 1;
    PyObject *done = PyObject_CallFunctionObjArgs(of->wrote, array, NULL);
    Py_XDECREF(done);
    return done != NULL;
}
