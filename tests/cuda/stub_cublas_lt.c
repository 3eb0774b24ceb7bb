/* A stub of cuBLASLt, beside the stub of the driver: it keeps descriptors, finds fault where its environment
 * says so (stub_blas.h), and computes nothing. */
#include "../../backends/cuda/lib/cublas/lt.h"
#include "stub.h"
#include "stub_blas.h"

#define LT_CALL_(field, name, result, parameters) result name parameters;
LT_CALL_LIST(LT_CALL_)
#undef LT_CALL_

stub_blas_seen stub_lt_seen;

/* What descriptors, layouts and preferences keep: the attributes by number. An algorithm is the preference it
 * was found for. */
typedef struct thing {
    int compute, scale;
    uint64_t value[64];
} thing;

static lt_status number(const char *name)
{
    return (lt_status)stub_number(name, LT_SUCCESS);
}

static lt_status make(void **out)
{
    *out = calloc(1, sizeof(thing));
    return *out ? LT_SUCCESS : LT_NO_MEMORY;
}

static lt_status keep(void *in, int attribute, const void *value, size_t size)
{
    thing *to = in;
    if (!to || !value || size == 0 || size > sizeof to->value[0] || attribute < 0 || attribute > 63)
        return LT_INVALID_VALUE;
    to->value[attribute] = 0;
    memcpy(&to->value[attribute], value, size);
    return LT_SUCCESS;
}

static lt_status end(void *made)
{
    free(made);
    return LT_SUCCESS;
}

size_t cublasLtGetVersion(void)
{
    return 130000;
}

lt_status cublasLtCreate(lt_handle *out)
{
    lt_status code = number("STUB_LT_START");
    if (!code)
        code = make(out);
    if (!code)
        stub_blas_made(&stub_lt_seen, *out);
    return code;
}

lt_status cublasLtDestroy(lt_handle handle)
{
    return end(handle);
}

lt_status cublasLtMatmulDescCreate(lt_desc *out, lt_compute compute, lt_type scale)
{
    lt_status code = make(out);
    if (!code)
        *(thing *)*out = (thing){.compute = compute, .scale = scale};
    return code;
}

lt_status cublasLtMatmulDescDestroy(lt_desc desc)
{
    return end(desc);
}

lt_status cublasLtMatmulDescSetAttribute(lt_desc desc, lt_desc_attribute attribute,
                                         const void *value, size_t size)
{
    return keep(desc, attribute, value, size);
}

lt_status cublasLtMatrixLayoutCreate(lt_layout *out, lt_type type, uint64_t rows, uint64_t columns,
                                     int64_t leading)
{
    (void)type;
    return rows && columns && leading >= (int64_t)rows ? make(out) : LT_INVALID_VALUE;
}

lt_status cublasLtMatrixLayoutDestroy(lt_layout layout)
{
    return end(layout);
}

lt_status cublasLtMatrixLayoutSetAttribute(lt_layout layout, lt_layout_attribute attribute,
                                           const void *value, size_t size)
{
    return keep(layout, attribute, value, size);
}

lt_status cublasLtMatmulPreferenceCreate(lt_preference *out)
{
    return make(out);
}

lt_status cublasLtMatmulPreferenceDestroy(lt_preference preference)
{
    return end(preference);
}

lt_status cublasLtMatmulPreferenceSetAttribute(lt_preference preference,
                                               lt_preference_attribute attribute, const void *value,
                                               size_t size)
{
    return keep(preference, attribute, value, size);
}

lt_status cublasLtMatmulAlgoGetHeuristic(lt_handle handle, lt_desc desc, lt_layout a, lt_layout b,
                                         lt_layout c, lt_layout d, lt_preference preference,
                                         int wanted, lt_found *out, int *out_count)
{
    const char *text = getenv("STUB_LT");
    if (!handle || !desc || !a || !b || !c || !d || !preference || wanted < 1)
        return LT_INVALID_VALUE;
    const thing *wish = preference, *of = desc;
    const bool each = of->value[LT_DESC_SCALE_MODE_A] || of->value[LT_DESC_SCALE_MODE_B];
    const bool shown = of->value[LT_DESC_SCALE_A] && of->value[LT_DESC_SCALE_B];
    if (each && !shown)
        return LT_INVALID_VALUE; /* as the library: it wants to be shown where they are */
    const bool is_complex = of->scale == LT_C_32F || of->scale == LT_C_64F;
    if (is_complex && of->value[LT_DESC_EPILOGUE] != LT_EPILOGUE_DEFAULT)
        return LT_NOT_SUPPORTED; /* as the library: nothing follows complex products */
    atomic_fetch_add(&stub_lt_seen.asked, 1);
    const int there = text && text[0] == 'n' ? 0 : (int)stub_number("STUB_LT_WAYS", 8);
    *out_count = wanted < there ? wanted : there;
    for (int i = 0; i < *out_count; i++) {
        out[i] = (lt_found){.state = LT_SUCCESS, .workspace = wish->value[LT_PREFER_WORKSPACE]};
        out[i].algo.data[0] = wish->value[LT_PREFER_WORKSPACE];
        out[i].algo.data[1] = wish->value[LT_PREFER_REDUCTION];
        out[i].algo.data[2] = (uint64_t)i;
    }
    return number("STUB_LT");
}

static void see_out(uintptr_t out)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    stub_blas_seen *in = &stub_lt_seen;
    int i = 0;
    pthread_mutex_lock(&lock);
    const int count = in->outs;
    while (i < count && in->out[i] != out)
        i++;
    if (i == count && count < STUB_HANDLES_MOST) {
        in->out[i] = out;
        in->outs = count + 1;
    }
    pthread_mutex_unlock(&lock);
}

lt_status cublasLtMatmul(lt_handle handle, lt_desc desc, const void *alpha, const void *a,
                         lt_layout of_a, const void *b, lt_layout of_b, const void *beta,
                         const void *c, lt_layout of_c, void *d, lt_layout of_d,
                         const lt_algo *algo, void *workspace, size_t workspace_bytes,
                         lt_stream stream)
{
    const thing *of = desc, *out = of_d;
    const bool sound = handle && desc && alpha && a && of_a && b && of_b && beta && c == d &&
                       of_c && of_d && algo && workspace_bytes >= algo->data[0] &&
                       (uintptr_t)workspace % 256 == 0;
    if (!sound)
        return LT_INVALID_VALUE;
    atomic_fetch_add(&stub_lt_seen.answers[algo->data[2] % STUB_ANSWERS], 1);
    see_out((uintptr_t)d);
    *stub_blas_next(&stub_lt_seen) =
        (stub_blas_call){.compute = of->compute,
                         .scale = of->scale,
                         .mode = (int)algo->data[1],
                         .answer = (int)algo->data[2],
                         .batch = (int)out->value[LT_LAYOUT_BATCH_COUNT],
                         .scale_mode = (int)of->value[LT_DESC_SCALE_MODE_A],
                         .scale_a = (uintptr_t)of->value[LT_DESC_SCALE_A],
                         .scale_b = (uintptr_t)of->value[LT_DESC_SCALE_B],
                         .stream = stream,
                         .left = (uintptr_t)a,
                         .right = (uintptr_t)b,
                         .out = (uintptr_t)d,
                         .room = (uintptr_t)workspace,
                         .bytes = workspace_bytes};
    return LT_SUCCESS;
}
