/* Random equations of einsum, their operands, and the results of loops over all labels. */
#include "einsum_cases.h"

#include <complex.h>
#include <math.h>

static uint64_t seed_state = 12345;

piece pieces[TERMS], result;

uint32_t roll(uint32_t below)
{
    seed_state ^= seed_state << 13;
    seed_state ^= seed_state >> 7;
    seed_state ^= seed_state << 17;
    return (uint32_t)(seed_state >> 20) % below;
}

static int64_t bytes_of(tn_dtype dtype)
{
    return (int64_t)(dtype >> 8 & 0xFF) / 8;
}

/* Reads and writes elements as complex numbers of f64; halves are handled by their bits. */
static float half_to_float(tn_dtype dtype, uint16_t bits)
{
    if (dtype == TN_BF16) {
        uint32_t wide = (uint32_t)bits << 16;
        float value;
        memcpy(&value, &wide, 4);
        return value;
    }
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const float value =
        exponent ? ldexpf((float)(1024 + fraction), exponent - 25) : ldexpf((float)fraction, -24);
    return bits & 0x8000 ? -value : value;
}

static double complex read_element(tn_dtype dtype, const void *at)
{
    switch (dtype) {
    case TN_F64: return *(const double *)at;
    case TN_F32: return *(const float *)at;
    case TN_C64: return *(const float complex *)at;
    case TN_C128: return *(const double complex *)at;
    case TN_I32: return *(const int32_t *)at;
    case TN_U8: return *(const uint8_t *)at;
    default: return half_to_float(dtype, *(const uint16_t *)at);
    }
}

/* Small whole numbers and halves, exact in every dtype. */
static void write_element(tn_dtype dtype, void *at)
{
    const int number = (int)roll(9) - 4;
    switch (dtype) {
    case TN_F64: *(double *)at = number / 2.0; return;
    case TN_F32: *(float *)at = (float)number / 2; return;
    case TN_C64: *(float complex *)at = (float)number + (float)roll(4) * I; return;
    case TN_C128: *(double complex *)at = number + (double)roll(4) * I; return;
    case TN_I32: *(int32_t *)at = number; return;
    case TN_U8: *(uint8_t *)at = (uint8_t)(number + 4); return;
    case TN_BF16: *(uint16_t *)at = (uint16_t)(number < 0 ? 0xBF80 : number ? 0x3F80 : 0); return;
    default: *(uint16_t *)at = (uint16_t)(number < 0 ? 0xBC00 : number ? 0x3C00 : 0); return;
    }
}

tn_tensor *make(piece *p, tn_dtype dtype, int32_t ndim)
{
    p->tensor = (tn_tensor){.data = p->memory,
                            .device_type = TN_DLPACK_CPU,
                            .ndim = ndim,
                            .dtype = dtype,
                            .shape = p->shape,
                            .strides = p->strides};
    return &p->tensor;
}

/* Strides of the shape in a random order of the dimensions, with gaps and, if `odd`, reversed or
 * repeated elements. The tensor begins in the middle of its memory. */
static void make_strides(piece *p, bool odd)
{
    int32_t order[TN_TENSOR_NDIM_MAX];
    int64_t step = 1 + (int64_t)roll(2);
    p->tensor.byte_offset = ROOM / 2;
    for (int32_t i = 0; i < p->tensor.ndim; i++) {
        const int32_t at = (int32_t)roll((uint32_t)i + 1);
        order[i] = order[at];
        order[at] = i;
    }
    for (int32_t i = 0; i < p->tensor.ndim; i++) {
        const int32_t dim = order[i];
        p->strides[dim] = step;
        step *= (p->shape[dim] ? p->shape[dim] : 1) + (int64_t)roll(2) * (roll(3) == 0);
        if (odd && roll(6) == 0)
            p->strides[dim] = roll(2) ? 0 : -p->strides[dim];
    }
}

static void fill(piece *p)
{
    for (int64_t i = 0; i < ROOM / bytes_of(p->tensor.dtype); i++)
        write_element(p->tensor.dtype, p->memory + i * bytes_of(p->tensor.dtype));
}

/* Adds a part of the equation for a term of `ndim` labels and, from `dots` >= 0, an ellipsis of
 * `wide` dimensions before label `dots`. */
static void write_part(problem *p, int32_t term, const int32_t *labels, int32_t count, int32_t dots,
                       int32_t wide)
{
    size_t used = strlen(p->equation);
    int32_t dim = 0;
    for (int32_t i = 0; i <= count; i++) {
        if (i == dots) {
            memcpy(p->equation + used, "...", 3);
            used += 3;
            for (int32_t k = 2 - wide; k < 2; k++)
                p->axes[term][dim++] = LABELS + k;
        }
        if (i < count) {
            p->equation[used++] = (char)((labels[i] % 2 ? 'a' : 'A') + labels[i]);
            p->axes[term][dim++] = labels[i];
            if (roll(5) == 0)
                p->equation[used++] = ' ';
        }
    }
    p->equation[used] = '\0';
    if (term == p->terms)
        make(&result, p->dtype, dim);
    else
        make(&pieces[term], p->dtype, dim);
}

static void roll_operand(problem *p, int32_t term, bool *dotted)
{
    int32_t labels[DIMS], count = (int32_t)roll(DIMS);
    const int32_t dots = roll(4) == 0 ? (int32_t)roll((uint32_t)count + 1) : -1;
    for (int32_t i = 0; i < count; i++)
        labels[i] = (int32_t)roll(LABELS);
    write_part(p, term, labels, count, dots, (int32_t)roll(3));
    *dotted = *dotted || dots >= 0;
    piece *to = &pieces[term];
    for (int32_t i = 0; i < to->tensor.ndim; i++) {
        to->shape[i] = p->size[p->axes[term][i]];
        if (roll(8) == 0) { /* broadcasts: every dimension of that label in this operand */
            for (int32_t k = 0; k < to->tensor.ndim; k++)
                to->shape[k] = p->axes[term][k] == p->axes[term][i] ? 1 : to->shape[k];
        }
    }
    for (int32_t i = 0; i < to->tensor.ndim; i++) {
        for (int32_t k = 0; k < i; k++)
            to->shape[i] = p->axes[term][k] == p->axes[term][i] ? to->shape[k] : to->shape[i];
    }
    make_strides(to, true);
    fill(to);
    p->operands[term] = &to->tensor;
}

/* Out has some of the labels of the operands, in any order. */
static void roll_out(problem *p, bool dotted)
{
    int32_t labels[LABELS], count = 0;
    for (int32_t label = 0; label < LABELS; label++) {
        bool found = false;
        for (int32_t term = 0; term < p->terms; term++) {
            for (int32_t i = 0; i < pieces[term].tensor.ndim; i++)
                found = found || p->axes[term][i] == label;
        }
        if (!found || roll(2) || count == DIMS)
            continue;
        const int32_t at = (int32_t)roll((uint32_t)count + 1);
        labels[count++] = labels[at];
        labels[at] = label;
    }
    strcat(p->equation, "->");
    int32_t wide = 0;
    for (int32_t term = 0; term < p->terms; term++) {
        for (int32_t i = 0; i < pieces[term].tensor.ndim; i++) {
            const int32_t from = 2 - (p->axes[term][i] - LABELS);
            wide = p->axes[term][i] >= LABELS && from > wide ? from : wide;
        }
    }
    const int32_t dots = dotted && roll(4) ? (int32_t)roll((uint32_t)count + 1) : -1;
    write_part(p, p->terms, labels, count, dots, wide);
}

/* Sizes of the labels as the operands have them: all of one label may be broadcast. */
static void find_sizes(problem *p)
{
    for (int32_t i = 0; i < LABELS + 2; i++)
        p->size[i] = 1;
    for (int32_t term = 0; term < p->terms; term++) {
        for (int32_t i = 0; i < pieces[term].tensor.ndim; i++) {
            if (pieces[term].shape[i] != 1)
                p->size[p->axes[term][i]] = pieces[term].shape[i];
        }
    }
}

void roll_problem(problem *p, tn_dtype dtype)
{
    bool dotted = false;
    *p = (problem){.terms = 1 + (int32_t)roll(TERMS), .dtype = dtype};
    for (int32_t i = 0; i < LABELS + 2; i++)
        p->size[i] = 1 + (int64_t)roll(4);
    if (roll(25) == 0)
        p->size[roll(LABELS)] = 0;
    for (int32_t term = 0; term < p->terms; term++) {
        if (term)
            strcat(p->equation, ",");
        roll_operand(p, term, &dotted);
    }
    find_sizes(p);
    roll_out(p, dotted);
    for (int32_t i = 0; i < result.tensor.ndim; i++)
        result.shape[i] = p->size[p->axes[p->terms][i]];
    make_strides(&result, false);
}

static const char *element(const tn_tensor *tensor, const int32_t *axes, const int64_t *at)
{
    int64_t offset = 0;
    for (int32_t i = 0; i < tensor->ndim; i++)
        offset += tensor->shape[i] == 1 ? 0 : at[axes[i]] * tensor->strides[i];
    return (const char *)tensor->data + tensor->byte_offset + offset * bytes_of(tensor->dtype);
}

/* Moves to the next values of the labels in `mask`, or of the others; false after the last. */
static bool next(const problem *p, uint32_t mask, int64_t *at)
{
    for (int32_t i = LABELS + 2; i-- > 0;) {
        if (!(mask >> i & 1))
            continue;
        if (++at[i] < p->size[i])
            return true;
        at[i] = 0;
    }
    return false;
}

/* Computes an element by a loop over the labels that out does not have. *out_most is the sum of the
 * absolute values, which bounds the rounding. */
static double complex sum_element(const problem *p, uint32_t inner, int64_t *at, double *out_most)
{
    double complex sum = 0;
    bool empty = false;
    *out_most = 0;
    for (int32_t i = 0; i < LABELS + 2; i++)
        empty = empty || (inner >> i & 1 && p->size[i] == 0);
    if (empty)
        return 0;
    do {
        double complex product = 1;
        for (int32_t term = 0; term < p->terms; term++)
            product *= read_element(p->dtype, element(p->operands[term], p->axes[term], at));
        sum += product;
        *out_most += cabs(product);
    } while (next(p, inner, at));
    return sum;
}

static double unit_of(tn_dtype dtype)
{
    switch (dtype) {
    case TN_F64:
    case TN_C128: return 0x1p-50;
    case TN_F32:
    case TN_C64: return 0x1p-21;
    case TN_F16: return 0x1p-8;
    case TN_BF16: return 0x1p-5;
    default: return 0;
    }
}

/* What an integer dtype makes of a sum. */
static double wrap(tn_dtype dtype, double value)
{
    return dtype == TN_U8 ? (double)(uint8_t)(int64_t)value : value;
}

void expect_result(const problem *p)
{
    uint32_t outer = 0;
    int64_t at[LABELS + 2] = {0};
    for (int32_t i = 0; i < result.tensor.ndim; i++)
        outer |= 1U << p->axes[p->terms][i];
    for (int32_t i = 0; i < result.tensor.ndim; i++) {
        if (result.shape[i] == 0)
            return;
    }
    uint32_t inner = 0;
    for (int32_t term = 0; term < p->terms; term++) {
        for (int32_t i = 0; i < p->operands[term]->ndim; i++)
            inner |= 1U << p->axes[term][i];
    }
    inner &= ~outer;
    do {
        double most;
        const double complex expected = sum_element(p, inner, at, &most);
        const double complex found =
            read_element(p->dtype, element(&result.tensor, p->axes[p->terms], at));
        const double off = unit_of(p->dtype) > 0
                               ? cabs(found - expected)
                               : fabs(creal(found) - wrap(p->dtype, creal(expected)));
        if (!(off <= unit_of(p->dtype) * most))
            fail_msg("%s of %s: expected %g, got %g", p->equation, tn_dtype_name(p->dtype),
                     creal(expected), creal(found));
    } while (next(p, outer, at));
}

void poison(void)
{
    memset(result.memory, 0xFF, ROOM);
}

void expect_gaps(void)
{
    static bool written[ROOM];
    memset(written, 0, sizeof written);
    int64_t at[TN_TENSOR_NDIM_MAX] = {0};
    int32_t axes[TN_TENSOR_NDIM_MAX], dim = 0;
    for (int32_t i = 0; i < result.tensor.ndim; i++) {
        axes[i] = i;
        if (result.shape[i] == 0)
            dim = -1;
    }
    while (dim >= 0) {
        const char *here = element(&result.tensor, axes, at);
        memset(written + (here - result.memory), 1, (size_t)bytes_of(result.tensor.dtype));
        for (dim = result.tensor.ndim; dim-- > 0;) {
            if (++at[dim] < result.shape[dim])
                break;
            at[dim] = 0;
        }
    }
    for (size_t i = 0; i < ROOM; i++) {
        if (!written[i] && result.memory[i] != (char)0xFF)
            fail_msg("byte %zu outside out's elements was written", i);
    }
}

const tn_tensor *dense(piece *p, const int64_t *sizes)
{
    int32_t ndim = 0;
    for (; sizes[ndim] >= 0; ndim++)
        p->shape[ndim] = sizes[ndim];
    make(p, TN_F64, ndim)->strides = NULL;
    fill(p);
    return &p->tensor;
}

/* A dense tensor that has strides. */
static const tn_tensor *dense_with_strides(piece *p, tn_dtype dtype, const int64_t *sizes)
{
    int64_t stride = 1;
    (void)dense(p, sizes);
    p->tensor.dtype = dtype;
    fill(p);
    for (int32_t dim = p->tensor.ndim; dim-- > 0; stride *= sizes[dim])
        p->strides[dim] = stride;
    p->tensor.strides = p->strides;
    return &p->tensor;
}

void set_problem(tn_dtype dtype, const char *equation, const int64_t *sizes, problem *p)
{
    int32_t term = 0, ndim = 0;
    int64_t shape[TN_TENSOR_NDIM_MAX + 1];
    *p = (problem){.dtype = dtype};
    strcpy(p->equation, equation);
    memcpy(p->size, sizes, LABELS * sizeof *sizes);
    for (const char *at = equation;; at++) {
        if (*at >= 'a') {
            p->axes[term][ndim] = *at - 'a';
            shape[ndim++] = sizes[*at - 'a'];
            continue;
        }
        shape[ndim] = -1;
        ndim = 0;
        if (!*at) {
            (void)dense_with_strides(&result, dtype, shape);
            return;
        }
        p->operands[term] = dense_with_strides(&pieces[term], dtype, shape);
        p->terms = ++term;
        at += *at == '-';
    }
}

tn_einsum_args args_of(const char *equation, const tn_tensor *const *operands, int32_t count)
{
    return (tn_einsum_args){.struct_size = sizeof(tn_einsum_args),
                            .equation = equation,
                            .operands = operands,
                            .count = count,
                            .out = &result.tensor};
}
