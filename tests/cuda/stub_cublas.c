/* A stub of cuBLASLt, beside the stub of the driver: it keeps descriptors, finds fault where STUB_LT says so,
 * and computes nothing.
 *
 * Environment:
 *   STUB_LT        the result of asking for an algorithm (0), or "none": it is 0, and there is none
 *   STUB_LT_START  the result of making a handle (0) */
#include "../../backends/cuda/cublas/lt.h"

#include <stdlib.h>

#define LT_CALL_(field, name, result, parameters) result name parameters;
LT_CALL_LIST(LT_CALL_)
#undef LT_CALL_

static lt_status number(const char *name)
{
    const char *text = getenv(name);
    return text ? (lt_status)strtol(text, NULL, 10) : LT_SUCCESS;
}

static lt_status make(void **out)
{
    *out = malloc(1);
    return *out ? LT_SUCCESS : LT_NO_MEMORY;
}

static lt_status end(void *thing)
{
    free(thing);
    return LT_SUCCESS;
}

size_t cublasLtGetVersion(void)
{
    return 130000;
}

lt_status cublasLtCreate(lt_handle *out)
{
    lt_status code = number("STUB_LT_START");
    return code ? code : make(out);
}

lt_status cublasLtDestroy(lt_handle handle)
{
    return end(handle);
}

lt_status cublasLtMatmulDescCreate(lt_desc *out, lt_compute compute, lt_type scale)
{
    (void)compute, (void)scale;
    return make(out);
}

lt_status cublasLtMatmulDescDestroy(lt_desc desc)
{
    return end(desc);
}

lt_status cublasLtMatmulDescSetAttribute(lt_desc desc, lt_desc_attribute attribute,
                                         const void *value, size_t size)
{
    (void)attribute;
    return desc && value && size ? LT_SUCCESS : LT_INVALID_VALUE;
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
    (void)attribute;
    return layout && value && size ? LT_SUCCESS : LT_INVALID_VALUE;
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
    (void)attribute;
    return preference && value && size ? LT_SUCCESS : LT_INVALID_VALUE;
}

lt_status cublasLtMatmulAlgoGetHeuristic(lt_handle handle, lt_desc desc, lt_layout a, lt_layout b,
                                         lt_layout c, lt_layout d, lt_preference preference,
                                         int wanted, lt_found *out, int *out_count)
{
    const char *text = getenv("STUB_LT");
    if (!handle || !desc || !a || !b || !c || !d || !preference || wanted < 1)
        return LT_INVALID_VALUE;
    *out_count = !text || text[0] != 'n';
    *out = (lt_found){.state = LT_SUCCESS};
    return number("STUB_LT");
}

lt_status cublasLtMatmul(lt_handle handle, lt_desc desc, const void *alpha, const void *a,
                         lt_layout of_a, const void *b, lt_layout of_b, const void *beta,
                         const void *c, lt_layout of_c, void *d, lt_layout of_d,
                         const lt_algo *algo, void *workspace, size_t workspace_bytes,
                         lt_stream stream)
{
    (void)workspace, (void)workspace_bytes, (void)stream;
    return handle && desc && alpha && a && of_a && b && of_b && beta && c == d && of_c && of_d &&
                   algo
               ? LT_SUCCESS
               : LT_INVALID_VALUE;
}
