/* A stub of cuBLAS, beside the stub of the driver: a handle keeps what it is told, and one thread's turn with it
 * is from setting the stream to the product. It computes nothing; its environment is in stub_blas.h. With STUB_EARLY
 * it lacks what came with 12.5. */
#include "../../backends/cuda/lib/cublas/blas.h"
#include "stub.h"
#include "stub_blas.h"

#include <dlfcn.h>

#define BLAS_CALL_(field, name, result, parameters) result name parameters;
BLAS_CALL_LIST(BLAS_CALL_)
BLAS_LATER_LIST(BLAS_CALL_)
#undef BLAS_CALL_

stub_blas_seen stub_cublas_seen;

typedef struct handle {
    _Atomic(const void *) turn; /* the thread's that has it; or NULL */
    lt_stream stream;
    void *room;
    size_t bytes;
    blas_math math;
    bool has_room, has_pointers, has_atomics;
} handle;

static lt_status number(const char *name)
{
    return (lt_status)stub_number(name, LT_SUCCESS);
}

static const void *self(void)
{
    static _Thread_local char mark;
    return &mark;
}

/* Whether the turn is this thread's. */
static bool is_mine(const handle *of)
{
    const bool mine = of && atomic_load(&of->turn) == self();
    if (!mine)
        atomic_fetch_add(&stub_cublas_seen.crossed, 1);
    return mine;
}

lt_status cublasGetProperty(blas_property which, int *out)
{
    const int version = (int)stub_number("STUB_BLAS_VERSION", 130002);
    const int parts[] = {version / 10000, version / 100 % 100, version % 100};
    if (which < 0 || which > 2)
        return LT_INVALID_VALUE;
    *out = parts[which];
    return LT_SUCCESS;
}

lt_status cublasCreate_v2(blas_handle *out)
{
    const lt_status code = number("STUB_BLAS_START");
    if (code)
        return code;
    *out = calloc(1, sizeof(handle));
    stub_blas_made(&stub_cublas_seen, *out);
    return *out ? LT_SUCCESS : LT_NO_MEMORY;
}

lt_status cublasDestroy_v2(blas_handle any)
{
    free(any);
    return LT_SUCCESS;
}

lt_status cublasSetPointerMode_v2(blas_handle any, blas_pointers mode)
{
    ((handle *)any)->has_pointers = mode == BLAS_POINTERS_OF_HOST;
    return LT_SUCCESS;
}

lt_status cublasSetAtomicsMode(blas_handle any, blas_atomics mode)
{
    ((handle *)any)->has_atomics = mode != BLAS_NO_ATOMICS;
    return LT_SUCCESS;
}

/* Takes the turn, which lasts long enough for others to come, and gives the handle its own memory back, as the
 * real one does. */
lt_status cublasSetStream_v2(blas_handle any, lt_stream stream)
{
    handle *to = any;
    const void *none = NULL;
    if (!atomic_compare_exchange_strong(&to->turn, &none, self()))
        atomic_fetch_add(&stub_cublas_seen.crossed, 1);
    to->stream = stream;
    to->has_room = false;
    (void)thrd_sleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    return LT_SUCCESS;
}

lt_status cublasSetWorkspace_v2(blas_handle any, void *workspace, size_t bytes)
{
    handle *to = any;
    if (!is_mine(to) || (uintptr_t)workspace % 256)
        return LT_INVALID_VALUE;
    to->room = workspace;
    to->bytes = bytes;
    to->has_room = true;
    return LT_SUCCESS;
}

lt_status cublasSetMathMode(blas_handle any, blas_math mode)
{
    handle *to = any;
    if (!is_mine(to))
        return LT_INVALID_VALUE;
    to->math = mode;
    return LT_SUCCESS;
}

static lt_status multiply(handle *with, lt_compute compute, int batch, const void *left,
                          const void *right, const void *out)
{
    if (!is_mine(with) || !with->has_room || !with->has_pointers || with->has_atomics)
        return LT_INVALID_VALUE;
    *stub_blas_next(&stub_cublas_seen) = (stub_blas_call){.compute = compute,
                                                          .mode = with->math,
                                                          .batch = batch,
                                                          .stream = with->stream,
                                                          .left = (uintptr_t)left,
                                                          .right = (uintptr_t)right,
                                                          .out = (uintptr_t)out,
                                                          .room = (uintptr_t)with->room,
                                                          .bytes = with->bytes};
    const int at = (int)stub_number("STUB_BLAS_AT", 0);
    const bool passes = at > 0 && atomic_load(&stub_cublas_seen.count) != at;
    atomic_store(&with->turn, NULL);
    return passes ? LT_SUCCESS : number("STUB_BLAS");
}

lt_status cublasGemmEx(blas_handle any, blas_operation of_a, blas_operation of_b, int m, int n,
                       int k, const void *alpha, const void *a, lt_type type_a, int leading_a,
                       const void *b, lt_type type_b, int leading_b, const void *beta, void *c,
                       lt_type type_c, int leading_c, lt_compute compute, blas_algo algo)
{
    const bool sound = m > 0 && n > 0 && k > 0 && alpha && a && b && beta && c &&
                       leading_a >= (of_a ? k : m) && leading_b >= (of_b ? n : k) &&
                       leading_c >= m && type_a == type_b && type_c >= 0 && algo == BLAS_ALGO_USUAL;
    return sound ? multiply(any, compute, 1, a, b, c) : LT_INVALID_VALUE;
}

lt_status cublasGemmStridedBatchedEx(blas_handle any, blas_operation of_a, blas_operation of_b,
                                     int m, int n, int k, const void *alpha, const void *a,
                                     lt_type type_a, int leading_a, long long stride_a,
                                     const void *b, lt_type type_b, int leading_b,
                                     long long stride_b, const void *beta, void *c, lt_type type_c,
                                     int leading_c, long long stride_c, int count,
                                     lt_compute compute, blas_algo algo)
{
    const bool sound = m > 0 && n > 0 && k > 0 && alpha && a && b && beta && c &&
                       leading_a >= (of_a ? k : m) && leading_b >= (of_b ? n : k) &&
                       leading_c >= m && type_a == type_b && type_c >= 0 && stride_a >= 0 &&
                       stride_b >= 0 && stride_c >= m && count > 1 && algo == BLAS_ALGO_USUAL;
    return sound ? multiply(any, compute, count, a, b, c) : LT_INVALID_VALUE;
}

#ifndef STUB_EARLY

/* Reads the addresses, which the device does: its memory is the host's. */
/* As the driver says. */
static bool is_recorded(lt_stream stream)
{
    cu_result (*ask)(cu_stream of, cu_capture_status * out) = NULL;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *found = driver ? dlsym(driver, "cuStreamIsCapturing") : NULL;
    cu_capture_status status = 0;
    memcpy(&ask, &found, sizeof ask);
    const bool is = ask && !ask(stream, &status) && status != 0;
    if (driver)
        (void)dlclose(driver);
    return is;
}

lt_status cublasGemmGroupedBatchedEx(blas_handle any, const blas_operation of_a[],
                                     const blas_operation of_b[], const int m[], const int n[],
                                     const int k[], const void *alpha, const void *const a[],
                                     lt_type type_a, const int leading_a[], const void *const b[],
                                     lt_type type_b, const int leading_b[], const void *beta,
                                     void *const c[], lt_type type_c, const int leading_c[],
                                     int count, const int sizes[], lt_compute compute)
{
    bool sound = count > 0 && alpha && beta && type_a == type_b && type_c == type_a;
    for (int i = 0; i < count && sound; i++)
        sound = m[i] > 0 && n[i] > 0 && k[i] > 0 && sizes[i] == 1 && a[i] && b[i] && c[i] &&
                leading_a[i] >= (of_a[i] ? k[i] : m[i]) &&
                leading_b[i] >= (of_b[i] ? n[i] : k[i]) && leading_c[i] >= m[i];
    if (sound && is_recorded(((const handle *)any)->stream))
        atomic_fetch_add(&stub_cublas_seen.recorded, 1);
    return sound ? multiply(any, compute, count, a[0], b[0], c[0]) : LT_INVALID_VALUE;
}

#endif
