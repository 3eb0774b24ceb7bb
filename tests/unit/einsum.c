/* einsum: results against loops over all labels, orders of contraction, and refused calls. */
#include "test.h"

#include "tenon/tenon.h"

#include <complex.h>
#include <math.h>
#include <stdbool.h>

enum { LABELS = 7, TERMS = 5, DIMS = 4, ROOM = 1 << 16, GUARD = 64 };

static uint64_t seed_state = 12345;

static uint32_t roll(uint32_t below)
{
    seed_state ^= seed_state << 13;
    seed_state ^= seed_state >> 7;
    seed_state ^= seed_state << 17;
    return (uint32_t)(seed_state >> 20) % below;
}

/* A tensor with memory, shape and strides of its own. */
typedef struct piece {
    _Alignas(64) char memory[ROOM];
    int64_t shape[TN_TENSOR_NDIM_MAX], strides[TN_TENSOR_NDIM_MAX];
    tn_tensor tensor;
} piece;

static piece pieces[TERMS], result;

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

static tn_tensor *make(piece *p, tn_dtype dtype, int32_t ndim)
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

/* A random equation and its operands. Labels a, b, ...; "..." is a list of labels too. */
typedef struct problem {
    char equation[128];
    int32_t terms;
    int32_t axes[TERMS + 1][TN_TENSOR_NDIM_MAX]; /* labels of the dimensions; the last is out */
    int64_t size[LABELS + 2];                    /* labels from LABELS on are those of "..." */
    const tn_tensor *operands[TERMS];
    tn_dtype dtype;
} problem;

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

static void roll_problem(problem *p, tn_dtype dtype)
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

static void expect_result(const problem *p)
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

/* Poisons out's memory: NaN in every float, and nothing that a sum gives in integers. */
static void poison(void)
{
    memset(result.memory, 0xFF, ROOM);
}

/* The bytes of out's memory outside its elements are as they were. */
static void expect_gaps(void)
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

static const char *const strategies[] = {"left", "greedy",        "optimal", "dp",
                                         "auto", "random-greedy", "auto-hq", NULL};
enum { STRATEGIES = sizeof strategies / sizeof strategies[0] };

static void random_equations_are_right(void **state)
{
    static const tn_dtype dtypes[] = {TN_F64, TN_F32,  TN_C64, TN_C128,
                                      TN_F16, TN_BF16, TN_I32, TN_U8};
    static problem p;
    (void)state;
    for (int32_t round = 0; round < (test_fewest() ? 300 : 1500); round++) {
        tn_error err = {0};
        int64_t shape[TN_TENSOR_NDIM_MAX];
        int32_t ndim = -1;
        roll_problem(&p, dtypes[roll(sizeof dtypes / sizeof dtypes[0])]);
        poison();
        tn_einsum_args args = {.struct_size = sizeof args,
                               .equation = p.equation,
                               .operands = p.operands,
                               .count = p.terms,
                               .out = &result.tensor,
                               .strategy = strategies[roll(STRATEGIES)],
                               .seed = (uint64_t)round};
        if (tn_einsum_shape(&args, shape, &ndim, &err) || tn_einsum(NULL, &args, &err))
            fail_msg("round %d, %s: %s", (int)round, p.equation, err.message);
        assert_int_equal(ndim, result.tensor.ndim);
        assert_memory_equal(shape, result.shape, (size_t)ndim * sizeof shape[0]);
        expect_result(&p);
        expect_gaps();
    }
}

/* A dense tensor of f64; sizes end with -1. */
static const tn_tensor *dense(piece *p, const int64_t *sizes)
{
    int32_t ndim = 0;
    for (; sizes[ndim] >= 0; ndim++)
        p->shape[ndim] = sizes[ndim];
    make(p, TN_F64, ndim)->strides = NULL;
    fill(p);
    return &p->tensor;
}

#define SIZES(...) ((const int64_t[]){__VA_ARGS__, -1})

static tn_einsum_args args_of(const char *equation, const tn_tensor *const *operands, int32_t count)
{
    return (tn_einsum_args){.struct_size = sizeof(tn_einsum_args),
                            .equation = equation,
                            .operands = operands,
                            .count = count,
                            .out = &result.tensor};
}

static void expect_shape(const char *equation, const tn_tensor *const *operands, int32_t count,
                         const int64_t *sizes)
{
    tn_error err = {0};
    int64_t shape[TN_TENSOR_NDIM_MAX];
    int32_t ndim;
    const tn_einsum_args args = args_of(equation, operands, count);
    if (tn_einsum_shape(&args, shape, &ndim, &err))
        fail_msg("%s: %s", equation, err.message);
    for (int32_t i = 0; i < ndim; i++)
        assert_int_equal(shape[i], sizes[i]);
    assert_int_equal(sizes[ndim], -1);
}

static void shapes_follow_from_equations(void **state)
{
    (void)state;
    const tn_tensor *const two[] = {dense(&pieces[0], SIZES(2, 3)), dense(&pieces[1], SIZES(3, 4))};
    const tn_tensor *const wide[] = {dense(&pieces[2], SIZES(5, 1, 2, 3)),
                                     dense(&pieces[3], SIZES(7, 3, 4))};
    expect_shape("ij,jk", two, 2, SIZES(2, 4));
    expect_shape("ba,ac", two, 2, SIZES(2, 4));
    expect_shape("za,aB", two, 2, SIZES(4, 2)); /* capitals come first */
    expect_shape(" i j , j k -> k i ", two, 2, SIZES(4, 2));
    expect_shape("ij,jk->", two, 2, (const int64_t[]){-1});
    expect_shape("...ij,...jk", wide, 2, SIZES(5, 7, 2, 4));
    expect_shape("...ij,...jk->i...k", wide, 2, SIZES(2, 5, 7, 4));
    expect_shape("...ij,...jk->ik", wide, 2, SIZES(2, 4));
    expect_shape("\xC3\x80\xCE\xB2,\xCE\xB2j->\xC3\x80", two, 2, SIZES(2));
}

/* Fails with a message that has `words`, and writes nothing. */
static void expect_refused(const tn_einsum_args *args, tn_status expected, const char *words)
{
    tn_error err = {0};
    poison();
    const tn_status status = tn_einsum(NULL, args, &err);
    if (status != expected || !strstr(err.message, words))
        fail_msg("%s: expected \"%s\", got status %d: %s",
                 args && args->equation ? args->equation : "NULL", words, (int)status, err.message);
    for (size_t i = 0; i < ROOM; i++)
        assert_int_equal(result.memory[i], (char)0xFF);
}

static void expect_equation(const char *equation, const tn_tensor *const *operands, int32_t count,
                            const char *words)
{
    const tn_einsum_args args = args_of(equation, operands, count);
    expect_refused(&args, TN_INVALID_ARGUMENT, words);
}

static void wrong_equations_are_refused(void **state)
{
    (void)state;
    const tn_tensor *const two[] = {dense(&pieces[0], SIZES(2, 3)), dense(&pieces[1], SIZES(3, 4)),
                                    NULL};
    dense(&result, SIZES(2, 4));
    expect_refused(NULL, TN_INVALID_ARGUMENT, "args is NULL");
    expect_equation(NULL, two, 2, "args->equation is NULL");
    expect_equation("ij,jk->ik", NULL, 2, "args->operands is NULL");
    expect_equation("ij,jk->ik", two, 0, "expected 1 to 4096 operands, got 0");
    expect_equation("ij,jk->ik", two, -1, "expected 1 to 4096 operands, got -1");
    expect_equation("ij,jk,kl->ik", two, 3, "operand 2: the tensor is NULL");
    expect_equation("ij,jk,kl->ik", two, 2, "has more than 2 operands, and count is 2");
    expect_equation("ij->ij", two, 2, "has 1 operands, and count is 2");
    expect_equation("i,jk->ik", two, 2, "operand 0 has 2 dimensions, and its part of");
    expect_equation("ijk...,jk->ik", two, 2, "operand 0 has 2 dimensions");
    expect_equation("i1,jk->ik", two, 2,
                    "expected a letter, '...', ',' or '->' at byte 1, got '1'");
    expect_equation("ij.,jk->ik", two, 2, "at byte 2, got '.'");
    expect_equation("ij,jk-ik", two, 2, "at byte 5, got '-'");
    expect_equation("i\xFF,jk->ik", two, 2, "at byte 1, got an invalid byte");
    expect_equation("......ij,jk->ik", two, 2, "\"...\" is twice in");
    expect_equation("ij,jk->ik,k", two, 2, "expected the end after the labels of out, got ','");
    expect_equation("ij,jk->ik->k", two, 2, "expected the end after the labels of out, got '->'");
    expect_equation("ij,jk->il", two, 2, "label 'l' of out is in no operand");
    expect_equation("ij,jk->ii", two, 2, "label 'i' is twice in out");
    expect_equation("ij,ik->jk", two, 2,
                    "label 'i': expected one size, or 1 to broadcast, got 2 in operand 0 and 3 in "
                    "operand 1");
    expect_equation("...,...", two, 2,
                    "dimension -2 of '...': expected one size, or 1 to broadcast, got 2 in operand "
                    "0 and 3 in operand 1");
    expect_equation("ii,jk->ik", two, 2,
                    "label 'i' is repeated in operand 0: expected equal sizes, got 2 in dimension "
                    "0 and 3 in dimension 1");
    expect_equation("ij,jk->ki", two, 2, "out: dimension 0: expected size 4, got 2");
    expect_equation("ij,jk->i", two, 2, "out: expected 1 dimensions, got 2");
}

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    const tn_tensor *operands[] = {dense(&pieces[0], SIZES(2, 3)), dense(&pieces[1], SIZES(3, 4)),
                                   dense(&pieces[2], SIZES(4, 5))};
    const int32_t path[] = {0, 1, 0, 2};
    dense(&result, SIZES(2, 5));
    tn_einsum_args args = args_of("ij,jk,kl->il", operands, 3);
    args.strategy = "gredy";
    expect_refused(&args, TN_INVALID_ARGUMENT, "did you mean greedy?");
    args.strategy = NULL;
    args.path = path;
    expect_refused(&args, TN_INVALID_ARGUMENT, "expected 2 pairs for 3 operands, got 0");
    args.path_count = 1;
    expect_refused(&args, TN_INVALID_ARGUMENT, "expected 2 pairs for 3 operands, got 1");
    args.path = NULL;
    expect_refused(&args, TN_INVALID_ARGUMENT, "path_count is 1, and path is NULL");
    args.path = path;
    args.path_count = 2;
    expect_refused(&args, TN_INVALID_ARGUMENT,
                   "path[1]: expected two different positions below 2, got 0 and 2");
    args = args_of("ij,jk,kl->il", operands, 3);
    args.workspace_bytes = 64;
    expect_refused(&args, TN_INVALID_ARGUMENT,
                   "expected both workspace and workspace_bytes, or neither; got NULL and 64");
    args.workspace_bytes = 0;
    args.workspace = &result;
    expect_refused(&args, TN_INVALID_ARGUMENT,
                   "expected both workspace and workspace_bytes, or neither; got memory and 0");
    args.workspace = NULL;
    args.memory_limit = 63;
    expect_refused(&args, TN_OUT_OF_MEMORY, "and memory_limit is 63");
    args.memory_limit = 0;
    args.workspace = pieces[3].memory;
    args.workspace_bytes = 63;
    expect_refused(&args, TN_INVALID_ARGUMENT, "bytes aligned to 64, got 63 bytes at");
    args.struct_size = 8;
    expect_refused(&args, TN_INVALID_ARGUMENT, "args->struct_size: expected at least");
    args = args_of("ij,jk,kl->il", operands, 3);
    result.tensor.flags = TN_TENSOR_READ_ONLY;
    expect_refused(&args, TN_REFUSED, "out: the tensor is read-only");
    dense(&result, SIZES(2, 5));
    result.tensor.strides = result.strides;
    result.strides[0] = 1, result.strides[1] = 1;
    expect_refused(&args, TN_INVALID_ARGUMENT, "out: several elements have the same address");
    dense(&result, SIZES(2, 5));
    pieces[2].tensor.data = result.memory + 24;
    expect_refused(&args, TN_INVALID_ARGUMENT, "operand 2 shares memory with out");
    (void)dense(&pieces[2], SIZES(4, 5));
    pieces[1].tensor.dtype = TN_F32;
    expect_refused(&args, TN_INVALID_ARGUMENT,
                   "operand 1: expected the dtype of operand 0, f64, got f32");
    for (int32_t i = 0; i < 3; i++)
        pieces[i].tensor.dtype = TN_BOOL;
    result.tensor.dtype = TN_BOOL;
    expect_refused(&args, TN_UNSUPPORTED, "expected f64, f32, f16, bf16, c64, c128 or integers");
}

/* A path of an equation whose labels' sizes are those of `sizes`, from 'a'. */
static tn_einsum_path *explain(const char *equation, const int64_t *sizes, const char *strategy,
                               tn_einsum_path_info *out_info)
{
    enum { MOST = 400 };
    static tn_tensor tensors[MOST];
    static const tn_tensor *operands[MOST];
    static int64_t shapes[MOST][8];
    tn_einsum_path *path = NULL;
    tn_error err = {0};
    int32_t count = 1;
    tensors[0] = (tn_tensor){.device_type = TN_DLPACK_CPU, .dtype = TN_F32, .shape = shapes[0]};
    for (const char *at = equation; *at && *at != '-'; at++) {
        tn_tensor *tensor = &tensors[count - (*at != ',')];
        if (*at != ',') {
            shapes[count - 1][tensor->ndim++] = sizes[*at - 'a'];
            continue;
        }
        *tensor =
            (tn_tensor){.device_type = TN_DLPACK_CPU, .dtype = TN_F32, .shape = shapes[count]};
        count++;
    }
    for (int32_t i = 0; i < count; i++)
        operands[i] = &tensors[i];
    tn_einsum_args args = args_of(equation, operands, count);
    args.out = NULL;
    args.strategy = strategy;
    if (tn_einsum_explain(NULL, &args, &path, &err))
        fail_msg("%s: %s", equation, err.message);
    out_info->struct_size = sizeof *out_info;
    assert_int_equal(tn_einsum_path_info_get(path, out_info, NULL), TN_OK);
    assert_int_equal(out_info->steps, count > 1 ? count - 1 : 1);
    return path;
}

static double cost_of(const char *equation, const int64_t *sizes, const char *strategy)
{
    tn_einsum_path_info info = {0};
    tn_einsum_path *path = explain(equation, sizes, strategy, &info);
    double steps = 0;
    for (size_t i = 0; i < info.steps; i++)
        steps += tn_einsum_path_step(path, i)->cost;
    assert_true(steps == info.cost);
    const double cost = info.cost;
    tn_einsum_path_release(path);
    return cost;
}

/* Sizes of a to m, and the least costs of all binary trees, by exhaustive search. */
static const int64_t usual[] = {2, 3, 4, 5, 4, 3, 2, 6, 5, 4, 3, 2, 5, 7, 4, 3, 2, 3, 4, 9, 10};

static void optimal_is_optimal(void **state)
{
    static const struct {
        const char *equation;
        double cost;
    } cases[] = {
        {"acdf,jbje,gihb,hfac,gfac,gifabc,hfac", 11568},
        {"bde,cdh,agdb,hica,ibd,hgicd,hiac", 7080},
        {"chd,bde,agbc,hiad,hgc,hgi,hiad", 3300},
        {"chd,bde,agbc,hiad,bdi,cgh,agdb", 5430},
        {"ed,fcd,ff,bcf->be", 516},
        {"cd,bdhe,aidb,hgca,gc,hgibcd,hgac", 17536},
        {"abhe,hidj,jgba,hiab,gab", 9456},
        {"bdhe,acad,hiab,agac,hibd", 3560},
        {"ea,fb,gc,hd,abcd->efgh", 2136},
        {"dcc,fce,ea,dbf->ab", 612},
        {"fff,fae,bef,def->abd", 816},
        {"abc,bdef,fghj,cem,mhk,ljk->adgl", 9648},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const double cost = cost_of(cases[i].equation, usual, "optimal");
        if (cost != cases[i].cost)
            fail_msg("%s: expected cost %g, got %g", cases[i].equation, cases[i].cost, cost);
        assert_true(cost_of(cases[i].equation, usual, "auto") == cost);
        assert_true(cost_of(cases[i].equation, usual, "dp") >= cost);
        assert_true(cost_of(cases[i].equation, usual, "greedy") >= cost);
        assert_true(cost_of(cases[i].equation, usual, "random-greedy") >= cost);
        assert_true(cost_of(cases[i].equation, usual, "random-greedy") <=
                    cost_of(cases[i].equation, usual, "greedy"));
    }
}

/* All orders of a few operands, by brute force. */
static double least_of_all(uint32_t *sets, int32_t count, uint32_t out, const int64_t *sizes)
{
    double least = INFINITY;
    if (count == 1)
        return 0;
    for (int32_t a = 0; a < count; a++) {
        for (int32_t b = 0; b < a; b++) {
            uint32_t rest[8], others = out, either = sets[a] | sets[b];
            int32_t left = 0;
            double cost = 1;
            for (int32_t i = 0; i < count; i++) {
                if (i != a && i != b) {
                    rest[left++] = sets[i];
                    others |= sets[i];
                }
            }
            for (int32_t i = 0; i < LABELS; i++)
                cost *= either >> i & 1 ? (double)sizes[i] : 1;
            cost *= either & ~others ? 2 : 1;
            rest[left++] = either & others;
            least = fmin(least, cost + least_of_all(rest, left, out, sizes));
        }
    }
    return least;
}

static void optimal_agrees_with_all_orders(void **state)
{
    (void)state;
    for (int32_t round = 0; round < 60; round++) {
        char equation[64] = "";
        uint32_t sets[6], all = 0;
        int64_t sizes[LABELS];
        const int32_t count = 3 + (int32_t)roll(3);
        for (int32_t i = 0; i < LABELS; i++)
            sizes[i] = 2 + (int64_t)roll(6);
        size_t used = 0;
        for (int32_t i = 0; i < count; i++) {
            sets[i] = 0;
            equation[used] = ',';
            used += i > 0;
            for (int32_t k = (int32_t)roll(4); k >= 0; k--) {
                const uint32_t label = roll(LABELS);
                equation[used++] = (char)('a' + label);
                sets[i] |= 1U << label;
            }
            all |= sets[i];
        }
        memcpy(equation + used, "->", 3);
        used += 2;
        const uint32_t out = all & roll(1U << LABELS) & roll(1U << LABELS);
        for (int32_t i = 0; i < LABELS; i++) {
            equation[used] = (char)('a' + i);
            used += out >> i & 1;
        }
        equation[used] = '\0';
        const double least = least_of_all(sets, count, out, sizes);
        const double found = cost_of(equation, sizes, "optimal");
        if (found != least)
            fail_msg("%s: expected cost %g, got %g", equation, least, found);
    }
}

static void greedy_takes_the_expected_pairs(void **state)
{
    tn_einsum_path_info info = {0};
    (void)state;
    /* 10 x 20 x 30 x 5: the last two matrices make the smallest result. */
    tn_einsum_path *path =
        explain("ab,bc,cd->ad", (const int64_t[]){10, 20, 30, 5}, "greedy", &info);
    const tn_einsum_step *step = tn_einsum_path_step(path, 0);
    assert_string_equal(info.strategy, "greedy");
    assert_string_equal(info.equation, "ab,bc,cd->ad");
    assert_true(step->first == 1 && step->second == 2);
    assert_string_equal(step->equation, "bc,cd->bd");
    assert_string_equal(step->remaining, "ab,bd->ad");
    assert_true(step->cost == 6000 && step->elements == 100);
    assert_true(step->calls == 1);
    assert_string_equal(step->problems[0], "matmul:f32:m=20,n=5,k=30@cpu:0");
    assert_true(step->kernels[0][0] != '\0');
    step = tn_einsum_path_step(path, 1);
    assert_string_equal(step->equation, "ab,bd->ad");
    assert_string_equal(step->remaining, "ad->ad");
    assert_true(info.cost == 8000 && info.cost_at_once == 90000 && info.largest == 100);
    assert_true(info.workspace_bytes == 448);
    assert_null(tn_einsum_path_step(path, 2));
    tn_einsum_path_release(path);
    tn_einsum_path_release(NULL);
    assert_int_equal(tn_einsum_path_info_get(NULL, &info, NULL), TN_INVALID_ARGUMENT);
}

/* A chain of more operands than labels would do for is in tests of Python; here one of 300. */
static void long_chains_have_paths(void **state)
{
    static const char *const searches[] = {"left", "greedy", "auto", "random-greedy", "auto-hq"};
    static char equation[300 * 3 + 8];
    char *at = equation;
    (void)state;
    for (int32_t i = 0; i < 300; i++) {
        at[0] = ',';
        at += i > 0;
        *at++ = (char)('a' + i % 20);
        *at++ = (char)('a' + (i + 1) % 20);
    }
    memcpy(at, "->", 3);
    for (size_t i = 0; i < sizeof searches / sizeof searches[0]; i++)
        assert_true(cost_of(equation, usual, searches[i]) > 0);
    const tn_tensor *operands[65];
    for (int32_t i = 0; i < 65; i++)
        operands[i] = dense(&pieces[0], SIZES(2));
    dense(&result, (const int64_t[]){-1});
    char many[2 * 65 + 2] = "";
    for (int32_t i = 0; i < 65; i++)
        strcat(many, i ? ",a" : "a");
    strcat(many, "->");
    tn_einsum_args args = args_of(many, operands, 65);
    args.strategy = "optimal";
    expect_refused(&args, TN_UNSUPPORTED, "strategy optimal: 65 operands have too many orders");
}

/* Twelve dimensions of 2, which no operator accepts at once, in the reverse order. */
static void many_dimensions_are_supported(void **state)
{
    enum { RANK = 12 };
    (void)state;
    const tn_tensor *const operands[] = {
        dense(&pieces[0], SIZES(2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2)),
        dense(&pieces[1], SIZES(2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2)), dense(&pieces[2], SIZES(2))};
    tn_error err = {0};
    dense(&result, SIZES(2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2));
    tn_einsum_args args = args_of("abcdefghijkl->lkjihgfedcba", operands, 1);
    poison();
    if (tn_einsum(NULL, &args, &err))
        fail_msg("%s", err.message);
    const double *in = (const double *)pieces[0].memory, *out = (const double *)result.memory;
    for (uint32_t i = 0; i < 1 << RANK; i++) {
        uint32_t reversed = 0;
        for (uint32_t bit = 0; bit < RANK; bit++)
            reversed |= (i >> bit & 1) << (RANK - 1 - bit);
        assert_true(out[reversed] == in[i]);
    }
    /* Every other dimension is summed, and the second operand has them in the reverse order. */
    const double *other = (const double *)pieces[1].memory;
    dense(&result, SIZES(2, 2, 2, 2, 2, 2));
    args = args_of("abcdefghijkl,lkjihgfedcba->acegik", operands, 2);
    poison();
    if (tn_einsum(NULL, &args, &err))
        fail_msg("%s", err.message);
    for (uint32_t kept = 0; kept < 64; kept++) {
        double sum = 0;
        for (uint32_t summed = 0; summed < 64; summed++) {
            uint32_t here = 0, there = 0;
            for (uint32_t bit = 0; bit < 6; bit++)
                here |= (kept >> bit & 1) << (2 * bit + 1) | (summed >> bit & 1) << 2 * bit;
            for (uint32_t bit = 0; bit < RANK; bit++)
                there |= (here >> bit & 1) << (RANK - 1 - bit);
            sum += in[here] * other[there];
        }
        assert_true(out[kept] == sum);
    }
}

/* Intermediate results fit exactly into the workspace that explain names. */
static void memory_is_what_explain_says(void **state)
{
    (void)state;
    for (int32_t round = 0; round < 200; round++) {
        static problem p;
        tn_error err = {0};
        tn_einsum_path *path = NULL;
        tn_einsum_path_info info = {.struct_size = sizeof info};
        static _Alignas(64) char workspace[1 << 20];
        roll_problem(&p, TN_F64);
        tn_einsum_args args = args_of(p.equation, p.operands, p.terms);
        assert_int_equal(tn_einsum_explain(NULL, &args, &path, &err), TN_OK);
        assert_int_equal(tn_einsum_path_info_get(path, &info, &err), TN_OK);
        tn_einsum_path_release(path);
        assert_true(info.workspace_bytes < sizeof workspace);
        memset(workspace, 0xFF, sizeof workspace);
        poison();
        args.workspace = info.workspace_bytes ? workspace : NULL;
        args.workspace_bytes = info.workspace_bytes;
        args.memory_limit = info.workspace_bytes;
        if (tn_einsum(NULL, &args, &err))
            fail_msg("%s: %s", p.equation, err.message);
        expect_result(&p);
        for (size_t i = info.workspace_bytes; i < sizeof workspace; i++)
            assert_int_equal(workspace[i], (char)0xFF);
    }
}

/* Equations and paths of one operand: a path without pairs is as good as none. */
static void one_operand_has_a_path_without_pairs(void **state)
{
    (void)state;
    const tn_tensor *const operands[] = {dense(&pieces[0], SIZES(2, 3))};
    const int32_t path[] = {0, 0};
    tn_error err = {0};
    dense(&result, SIZES(3, 2));
    tn_einsum_args args = args_of("ij->ji", operands, 1);
    args.path = path;
    if (tn_einsum(NULL, &args, &err))
        fail_msg("%s", err.message);
    args.path_count = 1;
    expect_refused(&args, TN_INVALID_ARGUMENT, "expected 0 pairs for 1 operands, got 1");
}

/* The shape of an equation's result for operands of these shapes, which must suit it. */
static void infer_shape(const char *equation, piece *const *of, int32_t count, piece *out)
{
    const tn_tensor *operands[TERMS];
    tn_error err = {0};
    int64_t shape[TN_TENSOR_NDIM_MAX];
    int32_t ndim;
    for (int32_t i = 0; i < count; i++)
        operands[i] = &of[i]->tensor;
    const tn_einsum_args args = args_of(equation, operands, count);
    if (tn_einsum_shape(&args, shape, &ndim, &err))
        fail_msg("%s: %s", equation, err.message);
    memcpy(out->shape, shape, sizeof shape);
    make(out, TN_F64, ndim)->strides = NULL;
}

/* The equation of each step fits the operands that are left, also where labels have size 1. */
static void steps_are_equations(void **state)
{
    static problem p;
    static piece made[TERMS], rest;
    (void)state;
    for (int32_t round = 0; round < 300; round++) {
        piece *left[TERMS];
        tn_error err = {0};
        tn_einsum_path *path = NULL;
        const tn_einsum_step *step;
        roll_problem(&p, TN_F64);
        const tn_einsum_args args = args_of(p.equation, p.operands, p.terms);
        assert_int_equal(tn_einsum_explain(NULL, &args, &path, &err), TN_OK);
        for (int32_t i = 0; i < p.terms; i++)
            left[i] = &pieces[i];
        for (int32_t i = 0; i < p.terms - 1; i++) {
            int32_t kept = 0;
            double elements = 1;
            step = tn_einsum_path_step(path, (size_t)i);
            piece *const pair[] = {left[step->first], left[step->second]};
            infer_shape(step->equation, pair, 2, &made[i]);
            for (int32_t k = 0; k < made[i].tensor.ndim; k++)
                elements *= (double)made[i].shape[k];
            if (elements != step->elements)
                fail_msg("%s: expected %g elements, got %g", step->equation, elements,
                         step->elements);
            for (int32_t k = 0; k < p.terms - i; k++) {
                if (k != step->first && k != step->second)
                    left[kept++] = left[k];
            }
            left[kept++] = &made[i];
            infer_shape(step->remaining, left, kept, &rest);
            assert_int_equal(rest.tensor.ndim, result.tensor.ndim);
            assert_memory_equal(rest.shape, result.shape,
                                (size_t)rest.tensor.ndim * sizeof rest.shape[0]);
        }
        tn_einsum_path_release(path);
    }
}

/* Strides that end just inside the addresses are not computed with beyond them. */
static void largest_strides_are_explained(void **state)
{
    static int64_t strides[][2] = {{INT64_C(1) << 62, -(INT64_C(1) << 62)},
                                   {-(INT64_C(1) << 62), INT64_C(1) << 62},
                                   {INT64_C(1) << 62, 1}};
    static const char *const equations[] = {"ab->ab", "ab->ba", "ab->a", "ab->", "aa->a"};
    int64_t shape[] = {2, 2};
    (void)state;
    for (size_t i = 0; i < 3 * 5; i++) {
        tn_error err = {0};
        tn_einsum_path *path = NULL;
        tn_tensor tensor = {.device_type = TN_DLPACK_CPU,
                            .ndim = 2,
                            .dtype = TN_I8,
                            .shape = shape,
                            .strides = strides[i / 5]};
        const tn_tensor *const operands[] = {&tensor};
        tn_einsum_args args = args_of(equations[i % 5], operands, 1);
        args.out = NULL;
        if (tn_einsum_explain(NULL, &args, &path, &err))
            fail_msg("%s: %s", equations[i % 5], err.message);
        tn_einsum_path_release(path);
    }
}

/* Dimensions that are reversed in both operands merge, so nothing is copied. */
static void reversed_dimensions_are_not_copied(void **state)
{
    static const int64_t sizes[2][4] = {{4, 5, 6, -1}, {4, 5, 7, -1}};
    const tn_tensor *const operands[] = {&pieces[0].tensor, &pieces[1].tensor};
    const double *const out = (const double *)result.memory;
    tn_einsum_path *path = NULL;
    tn_error err = {0};
    const double *last[2];
    (void)state;
    for (int32_t i = 0; i < 2; i++) {
        const int64_t strides[] = {-5 * sizes[i][2], -sizes[i][2], 1};
        (void)dense(&pieces[i], sizes[i]);
        memcpy(pieces[i].strides, strides, sizeof strides);
        pieces[i].tensor.strides = pieces[i].strides;
        pieces[i].tensor.byte_offset = (uint64_t)(19 * sizes[i][2]) * sizeof *last[i];
        last[i] = (const double *)pieces[i].memory;
    }
    (void)dense(&result, SIZES(6, 7));
    tn_einsum_args args = args_of("abk,abn->kn", operands, 2);
    assert_int_equal(tn_einsum_explain(NULL, &args, &path, &err), TN_OK);
    assert_int_equal(tn_einsum_path_step(path, 0)->calls, 1);
    assert_non_null(strstr(tn_einsum_path_step(path, 0)->problems[0],
                           "matmul:f64:m=6,n=7,k=20,sa=1;-6,sb=-7;1"));
    assert_string_not_equal(tn_einsum_path_step(path, 0)->kernels[0], "ref.matmul");
    tn_einsum_path_release(path);
    poison();
    assert_int_equal(tn_einsum(NULL, &args, &err), TN_OK);
    for (int32_t at = 0; at < 6 * 7; at++) {
        double sum = 0;
        for (int32_t i = 0; i < 20; i++)
            sum += last[0][i * 6 + at / 7] * last[1][i * 7 + at % 7];
        assert_true(out[at] == sum);
    }
}

/* Every path gives the same result. */
static void paths_do_not_change_results(void **state)
{
    (void)state;
    for (int32_t round = 0; round < 300; round++) {
        static problem p;
        int32_t path[2 * TERMS];
        tn_error err = {0};
        roll_problem(&p, TN_F64);
        for (int32_t i = 0; i < p.terms - 1; i++) {
            const uint32_t left = (uint32_t)(p.terms - i);
            path[2 * i] = (int32_t)roll(left);
            path[2 * i + 1] = (path[2 * i] + 1 + (int32_t)roll(left - 1)) % (int32_t)left;
        }
        poison();
        tn_einsum_args args = args_of(p.equation, p.operands, p.terms);
        args.path = p.terms > 1 ? path : NULL;
        args.path_count = p.terms - 1;
        if (tn_einsum(NULL, &args, &err))
            fail_msg("%s: %s", p.equation, err.message);
        expect_result(&p);
    }
}

/* A product of integers that is computed in several parts. */
static void large_integers_are_computed_in_parts(void **state)
{
    enum { N = 300 };
    static int32_t a[N * N], b[N * N], c[N * N];
    int64_t shape[] = {N, N};
    (void)state;
    for (int32_t i = 0; i < N * N; i++)
        a[i] = (int32_t)roll(100) - 50, b[i] = (int32_t)roll(100) - 50;
    tn_tensor tensors[3];
    int32_t *const memory[] = {a, b, c};
    for (int32_t i = 0; i < 3; i++)
        tensors[i] = (tn_tensor){.data = memory[i],
                                 .device_type = TN_DLPACK_CPU,
                                 .ndim = 2,
                                 .dtype = TN_I32,
                                 .shape = shape};
    const tn_tensor *const operands[] = {&tensors[0], &tensors[1]};
    tn_einsum_args args = args_of("ij,jk->ik", operands, 2);
    args.out = &tensors[2];
    args.memory_limit = 33 << 20;
    tn_error err = {0};
    if (tn_einsum(NULL, &args, &err))
        fail_msg("%s", err.message);
    for (int32_t at = 0; at < N * N; at += 7) {
        int32_t sum = 0;
        for (int32_t k = 0; k < N; k++)
            sum += a[at / N * N + k] * b[k * N + at % N];
        assert_int_equal(c[at], sum);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_equations_are_right),
        cmocka_unit_test(shapes_follow_from_equations),
        cmocka_unit_test(wrong_equations_are_refused),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(optimal_is_optimal),
        cmocka_unit_test(optimal_agrees_with_all_orders),
        cmocka_unit_test(greedy_takes_the_expected_pairs),
        cmocka_unit_test(long_chains_have_paths),
        cmocka_unit_test(many_dimensions_are_supported),
        cmocka_unit_test(memory_is_what_explain_says),
        cmocka_unit_test(one_operand_has_a_path_without_pairs),
        cmocka_unit_test(steps_are_equations),
        cmocka_unit_test(largest_strides_are_explained),
        cmocka_unit_test(reversed_dimensions_are_not_copied),
        cmocka_unit_test(paths_do_not_change_results),
        cmocka_unit_test(large_integers_are_computed_in_parts),
    };
    return run_suite("unit.einsum", tests);
}
