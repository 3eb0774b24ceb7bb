/* tenon._fast: the plain calls of matmul, attention and einsum without ctypes in between.
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
#include "fast.h"

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

/* What a call gives: its result when it went well, else it is left to Python. `given`: the caller's array that is the
 * result, or None. */
static PyObject *finish(state *s, const library *of, tn_status status, PyObject *given,
                        PyObject *result)
{
    if (status == TN_OK) {
        s->served++;
        if (given == Py_None || count_write(of, given))
            return result;
        Py_CLEAR(result);
        return NULL;
    }
    Py_XDECREF(result);
    return not_implemented();
}

/* matmul(context, a, b[, out]): out is an array or None. */
static PyObject *matmul(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    state *s = PyModule_GetState(module);
    const tn_context *context;
    PyObject *result = NULL;
    const library *of = count == 3 || count == 4 ? library_of(s, given[1]) : NULL;
    PyObject *out = count == 4 ? given[3] : Py_None;
    seen t[3] = {{.held = 0}, {.held = 0}, {.held = 0}};
    int64_t shape[RANK_MAX];
    tn_status status = TN_UNSUPPORTED;
    tn_matmul_args args = {.struct_size = sizeof args};
    if (!of || !s->matmul || context_of(given[0], &context) != 0)
        return PyErr_Occurred() ? NULL : not_implemented();
    if (!see(s, of, given[1], READ, &t[0]) || !see(s, of, given[2], READ, &t[1]) ||
        !fits_matmul(&t[0].tensor, &t[1].tensor) || !find_stream(s, of, &t[0].tensor, &args.stream))
        goto done;
    const int rank = t[0].tensor.ndim;
    for (int i = 0; i < rank; i++)
        shape[i] = i == rank - 1 ? t[1].tensor.shape[i] : t[0].tensor.shape[i];
    result = find_result(s, of, out, given[1], &t[0], shape, rank, &t[2]);
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
    return finish(s, of, status, out, result);
}

/* The operands of attention, in their order, and what is given with them. */
enum { QUERY, KEY, VALUE, MASK, OUT, ATTENTION_ARRAYS };
enum {
    GIVEN_MASK = 4,
    GIVEN_SCALE,
    GIVEN_ARRAY,
    GIVEN_LAYOUT,
    GIVEN_TURNED,
    GIVEN_BACKEND,
    GIVEN_OUT,
    GIVEN
};

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
        if (!see(s, of, given[i + 1], READ, &t[i]) || t[i].tensor.ndim != 4)
            return 0;
    }
    args->q = &t[QUERY].tensor;
    args->k = &t[KEY].tensor;
    args->v = &t[VALUE].tensor;
    if (given[GIVEN_ARRAY] == Py_None)
        return 1;
    args->mask_tensor = &t[MASK].tensor;
    return see(s, of, given[GIVEN_ARRAY], READ, &t[MASK]);
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

/* attention(context, q, k, v, mask, scale, mask_tensor, layout, turned, backend[, out]): mask is TN_MASK_NONE, _CAUSAL or
 * _CAUSAL_BR, scale a float or None, mask_tensor an array or None, layout TN_LAYOUT_..., backend TN_BACKEND_... or 0,
 * out an array or None. With `turned` the result has the other layout. */
static PyObject *attention(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    state *s = PyModule_GetState(module);
    const tn_context *context;
    PyObject *result = NULL;
    const library *of = count == GIVEN || count == GIVEN_OUT ? library_of(s, given[1]) : NULL;
    PyObject *out = count == GIVEN ? given[GIVEN_OUT] : Py_None;
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
    result = find_result(s, of, out, given[1], &t[QUERY], shape, 4, &t[OUT]);
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
    return finish(s, of, status, out, result);
}

/* The most operands of an einsum, and the arguments before them. */
enum { OPERANDS_MOST = 8, BEFORE_OPERANDS = 3 };

/* Sees the operands of an einsum and computes it; returns the result, or NULL. */
static PyObject *sum_products(state *s, const library *of, PyObject *const *given,
                              tn_einsum_args *args, seen *t, tn_status *out_status)
{
    const tn_context *context;
    const tn_tensor *operands[OPERANDS_MOST];
    int64_t shape[TN_TENSOR_NDIM_MAX];
    int32_t rank;
    if (context_of(given[0], &context) != 0)
        return NULL;
    for (int i = 0; i < args->count; i++) {
        if (!see(s, of, given[BEFORE_OPERANDS + i], READ, &t[i]))
            return NULL;
        operands[i] = &t[i].tensor;
    }
    args->operands = operands;
    if (!find_stream(s, of, operands[0], &args->stream) ||
        s->einsum_shape(args, shape, &rank, NULL) || rank > RANK_MAX)
        return NULL;
    PyObject *result =
        find_result(s, of, given[2], given[BEFORE_OPERANDS], &t[0], shape, rank, &t[args->count]);
    if (!result)
        return NULL;
    args->out = &t[args->count].tensor;
    Py_BEGIN_ALLOW_THREADS;
    *out_status = s->einsum(context, args, NULL);
    Py_END_ALLOW_THREADS;
    return result;
}

/* einsum(context, equation, out, operand, ...): out is an array or None. */
static PyObject *einsum(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    state *s = PyModule_GetState(module);
    const Py_ssize_t operands = count - BEFORE_OPERANDS;
    const library *of =
        operands > 0 && operands <= OPERANDS_MOST ? library_of(s, given[BEFORE_OPERANDS]) : NULL;
    seen t[OPERANDS_MOST + 1];
    tn_status status = TN_UNSUPPORTED;
    tn_einsum_args args = {.struct_size = sizeof args, .count = (int32_t)operands};
    if (!of || !s->einsum || !PyUnicode_Check(given[1]))
        return PyErr_Occurred() ? NULL : not_implemented();
    PyObject *text = PyUnicode_AsUTF8String(given[1]);
    for (Py_ssize_t i = 0; i <= operands; i++)
        t[i].held = 0;
    args.equation = text ? PyBytes_AsString(text) : NULL;
    if (text && strlen(args.equation) != (size_t)PyBytes_Size(text))
        Py_CLEAR(text);
    PyObject *result = text ? sum_products(s, of, given, &args, t, &status) : NULL;
    let_go(t, (int)operands + 1);
    if (!text)
        PyErr_Clear();
    Py_XDECREF(text);
    if (PyErr_Occurred()) {
        Py_XDECREF(result);
        return NULL;
    }
    return finish(s, of, status, given[2], result);
}

/* served(): how many calls were not left to Python. */
static PyObject *served(PyObject *module, PyObject *none)
{
    const state *s = PyModule_GetState(module);
    (void)none;
    return PyLong_FromUnsignedLongLong(s->served);
}

/* Makes the names of attributes. */
static int make_names(state *s)
{
    const struct {
        PyObject **to;
        const char *name;
    } names[] = {{&s->requires_grad, "requires_grad"},   {&s->is_neg, "is_neg"},
                 {&s->level, "_current_level"},          {&s->cdata, "_cdata"},
                 {&s->storage_offset, "storage_offset"}, {&s->untyped_storage, "untyped_storage"}};
    int made = 1;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!*names[i].to)
            *names[i].to = PyUnicode_InternFromString(names[i].name);
        made = made && *names[i].to;
    }
    return made;
}

/* Functions of the library that are called. */
enum { FUNCTIONS = 4 };

/* bind(matmul, attention, einsum, einsum_shape, wrap): the addresses of the library's functions, and what gives the address of Tenon's
 * stream over one of a vendor's: wrap(device_type, device_id, raw). */
static PyObject *bind(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    state *s = PyModule_GetState(module);
    void *addresses[FUNCTIONS];
    if (count != FUNCTIONS + 1)
        return PyErr_Format(PyExc_TypeError, "bind: expected %d addresses and a function, got %zd",
                            FUNCTIONS, count);
    for (int i = 0; i < FUNCTIONS; i++)
        addresses[i] = PyLong_AsVoidPtr(given[i]);
    if (PyErr_Occurred() || !make_names(s))
        return NULL;
    memcpy(&s->matmul, &addresses[0], sizeof addresses[0]);
    memcpy(&s->attention, &addresses[1], sizeof addresses[1]);
    memcpy(&s->einsum, &addresses[2], sizeof addresses[2]);
    memcpy(&s->einsum_shape, &addresses[3], sizeof addresses[3]);
    Py_CLEAR(s->wrap);
    s->wrap = one_more(given[FUNCTIONS]);
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

/* teach(types, empty, gradients, forward, wrote, storage): arrays of these types, a tuple, are seen from now on; False
 * when they cannot be. May be called once for each type. With None for `gradients`, arrays are read through the buffer
 * protocol; otherwise through DLPack's table of the first type, and then:
 *
 *     gradients   returns whether the result of an array that requires gradients would lose them
 *     forward     its `_current_level` is negative while no array has tangents
 *     wrote       is called with each of the caller's arrays that a call wrote to
 *     storage     the addresses of two functions of type storage_fact; or None */
static PyObject *teach(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    state *s = PyModule_GetState(module);
    void *facts[2] = {NULL, NULL};
    if (count != 6)
        return PyErr_Format(PyExc_TypeError, "teach: expected 6 arguments, got %zd", count);
    PyObject *first = PyTuple_Check(given[0]) ? PyTuple_GetItem(given[0], 0) : NULL;
    const int wants = given[2] != Py_None;
    if (!first)
        return PyErr_Format(PyExc_TypeError, "teach needs a tuple of types");
    for (int i = 0; i < 2 && given[5] != Py_None; i++) {
        PyObject *address = PyTuple_GetItem(given[5], i);
        facts[i] = address ? PyLong_AsVoidPtr(address) : NULL;
        if (!facts[i])
            return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "expected an address");
    }
    const exchange *functions = wants ? exchange_of(first) : NULL;
    if (s->count == LIBRARIES_MAX || (wants && !functions))
        return one_more(Py_False);
    library *made = &s->libraries[s->count++];
    *made = (library){.types = one_more(given[0]),
                      .empty = one_more(given[1]),
                      .gradients = one_more(given[2]),
                      .forward = one_more(given[3]),
                      .wrote = one_more(given[4]),
                      .functions = functions};
    memcpy(&made->bytes, &facts[0], sizeof facts[0]);
    memcpy(&made->offset, &facts[1], sizeof facts[1]);
    return one_more(Py_True);
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    const state *s = PyModule_GetState(module);
    for (int i = 0; s && i < s->count; i++) {
        Py_VISIT(s->libraries[i].types);
        Py_VISIT(s->libraries[i].gradients);
        Py_VISIT(s->libraries[i].forward);
        Py_VISIT(s->libraries[i].wrote);
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
        Py_CLEAR(last->wrote);
        Py_CLEAR(last->empty);
    }
    if (s) {
        Py_CLEAR(s->wrap);
        Py_CLEAR(s->requires_grad);
        Py_CLEAR(s->is_neg);
        Py_CLEAR(s->level);
        Py_CLEAR(s->cdata);
        Py_CLEAR(s->storage_offset);
        Py_CLEAR(s->untyped_storage);
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
    METHOD(matmul, "matmul(context, a, b[, out]): the product, or NotImplemented."),
    METHOD(attention, "attention(context, q, k, v, mask, scale, mask_tensor, layout, turned, "
                      "backend[, out]): its result, or NotImplemented."),
    METHOD(einsum, "einsum(context, equation, out, operand, ...): its result, or NotImplemented."),
    METHOD(bind, "bind(matmul, attention, einsum, einsum_shape, wrap): what is called."),
    {"served", served, METH_NOARGS, "How many calls were not left to Python."},
    METHOD(
        teach,
        "teach(types, empty, gradients, forward, wrote, storage): see arrays of the types; whether "
        "that can be."),
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
