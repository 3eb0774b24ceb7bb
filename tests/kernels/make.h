/* Ops, operands and runs for the reference kernels, made by hand: any layout from a shape, memory that
 * shows what was written outside of the elements, elements as long doubles by rules of the tests' own. */
#ifndef TENON_TEST_KERNELS_MAKE_H
#define TENON_TEST_KERNELS_MAKE_H

#include "test.h"

#include <float.h>
#include <math.h>

#include "tenon/module/kernel.h"
#include "tenon/module/op/elementwise.h"

tn_module_entry_fn tni_ref_module_entry;

/* In one type, as macros for all types warn of conversions in some libraries. */
static inline int is_nan(long double value)
{
    return value != value;
}

static inline int is_inf(long double value)
{
    return value > LDBL_MAX || value < -LDBL_MAX;
}

static inline int is_negative(double value) /* -0 too */
{
    return copysign(1, value) < 0;
}

/* xorshift64* */
static uint64_t dice_state = 88172645463325252u;
static inline uint64_t dice(uint64_t sides)
{
    dice_state ^= dice_state >> 12;
    dice_state ^= dice_state << 25;
    dice_state ^= dice_state >> 27;
    return (dice_state * UINT64_C(2685821657736338717) >> 16) % sides;
}

/* How the floats are written: digits with the leading one, bias of the exponent, bits in all. */
typedef struct format {
    tn_dtype dtype;
    int digits, bias, bits;
    int has_infinity; /* the greatest exponent is that of infinity and NaNs */
    int zero_is_one;  /* fnuz: the only NaN takes the place of -0 */
} format;

static const format formats[] = {
    {TN_F16, 11, 15, 16, 1, 0},      {TN_BF16, 8, 127, 16, 1, 0},  {TN_F8_E4M3FN, 4, 7, 8, 0, 0},
    {TN_F8_E4M3FNUZ, 4, 8, 8, 0, 1}, {TN_F8_E5M2, 3, 15, 8, 1, 0}, {TN_F8_E5M2FNUZ, 3, 16, 8, 0, 1},
    {TN_F32, 24, 127, 32, 1, 0},     {TN_F64, 53, 1023, 64, 1, 0},
};
enum { SMALL_FORMATS = 6, FORMATS = 8 };

static inline const format *format_of(tn_dtype dtype)
{
    dtype = dtype == TN_C64 ? TN_F32 : dtype == TN_C128 ? TN_F64 : dtype;
    for (int i = 0; i < FORMATS; i++) {
        if (formats[i].dtype == dtype)
            return &formats[i];
    }
    return NULL;
}

static inline int64_t bytes_of(tn_dtype dtype)
{
    return (dtype >> 8 & 0xFF) / 8;
}

static inline int parts_of(tn_dtype dtype)
{
    return dtype == TN_C64 || dtype == TN_C128 ? 2 : 1;
}

static inline long double format_value(const format *f, uint64_t code)
{
    int mantissa_bits = f->digits - 1, exponent_bits = f->bits - f->digits;
    uint64_t sign = code >> (f->bits - 1) & 1;
    uint64_t mantissa = code & ((UINT64_C(1) << mantissa_bits) - 1);
    int top = (1 << exponent_bits) - 1, exponent = (int)(code >> mantissa_bits) & top;
    long double value;
    if (f->zero_is_one && sign && exponent == 0 && mantissa == 0)
        return NAN;
    if (f->dtype == TN_F8_E4M3FN && exponent == top && mantissa == 7)
        return NAN;
    if (f->has_infinity && exponent == top)
        value = mantissa ? (long double)NAN : (long double)INFINITY;
    else if (exponent == 0)
        value = ldexpl((long double)mantissa, 1 - f->bias - mantissa_bits);
    else
        value = ldexpl((long double)(mantissa | UINT64_C(1) << mantissa_bits),
                       exponent - f->bias - mantissa_bits);
    return sign ? -value : value;
}

static inline uint64_t load_bits(const char *at, int64_t bytes)
{
    uint64_t bits = 0;
    for (int64_t i = 0; i < bytes; i++) /* little-endian */
        bits |= (uint64_t)(unsigned char)at[i] << 8 * i;
    return bits;
}

static inline void store_bits(char *at, int64_t bytes, uint64_t bits)
{
    for (int64_t i = 0; i < bytes; i++)
        at[i] = (char)(bits >> 8 * i & 0xFF);
}

/* An element's part as a long double, which holds all of them exactly. */
static inline long double load(tn_dtype dtype, const char *at, int part)
{
    const format *f = format_of(dtype);
    int64_t bytes = bytes_of(dtype) / parts_of(dtype);
    uint64_t bits = load_bits(at + part * bytes, bytes);
    if (f)
        return format_value(f, bits);
    if (dtype == TN_BOOL)
        return bits != 0;
    if ((dtype & 0xFF) == TN_DTYPE_CODE_INT && bits >> (8 * bytes - 1)) /* below 0 */
        return -(long double)((~bits & (UINT64_MAX >> (64 - 8 * bytes))) + 1);
    return (long double)bits;
}

/* A random element of moderate size. */
static inline void store_random(tn_dtype dtype, char *at)
{
    const format *f = format_of(dtype);
    int64_t bytes = bytes_of(dtype) / parts_of(dtype);
    for (int part = 0; part < parts_of(dtype); part++) {
        uint64_t bits = dice(UINT64_C(1) << 40) << 24 ^ dice(UINT64_C(1) << 40);
        if (f) {
            uint64_t exponent = (uint64_t)f->bias - 3 + dice(5);
            bits &= (UINT64_C(1) << (f->digits - 1)) - 1;
            bits |= exponent << (f->digits - 1) | dice(2) << (f->bits - 1);
        } else if (dtype == TN_BOOL) {
            bits &= 1;
        }
        store_bits(at + part * bytes, bytes, bits);
    }
}

/* An operand in memory of its own, with guards around it. `first` is its first element. */
typedef struct operand {
    tn_layout layout;
    char *memory;
    size_t size;
    char *first;
} operand;

enum { GUARD = 96, UNTOUCHED = 0xA5, LAYOUTS = 6 };
enum { DENSE, REVERSED, TURNED, SPREAD, OFF_BY_ONE, REPEATED };

static inline int64_t elements_of(const tn_layout *layout)
{
    int64_t count = 1;
    for (int32_t d = 0; d < layout->rank; d++)
        count *= layout->shape[d];
    return count;
}

/* REVERSED has negative strides; TURNED the first dimension innermost; SPREAD leaves gaps; REPEATED has
 * stride 0 in the first dimension, for inputs. */
static inline tn_layout layout_of(tn_dtype dtype, int32_t rank, const int64_t *shape, int kind)
{
    tn_layout layout = {.dtype = dtype, .rank = rank, .alignment = 1};
    int64_t stride = kind == SPREAD ? 3 : 1;
    for (int32_t i = 0; i < rank; i++) {
        int32_t d = kind == TURNED ? i : rank - 1 - i;
        layout.shape[d] = shape[d];
        layout.stride[d] = kind == REVERSED ? -stride : stride;
        stride *= shape[d] > 0 ? shape[d] + (kind == SPREAD) : 1;
    }
    if (kind == REPEATED && rank > 0)
        layout.stride[0] = 0;
    return layout;
}

static inline char *element_at(const operand *o, int64_t index)
{
    int64_t offset = 0;
    for (int32_t d = o->layout.rank - 1; d >= 0; d--) {
        offset += index % o->layout.shape[d] * o->layout.stride[d];
        index /= o->layout.shape[d];
    }
    return o->first + offset * bytes_of(o->layout.dtype);
}

static inline operand operand_of(tn_layout layout, int unaligned)
{
    operand o = {.layout = layout};
    int64_t low = 0, high = 0, bytes = bytes_of(layout.dtype);
    for (int32_t d = 0; d < layout.rank && elements_of(&layout) > 0; d++) {
        int64_t reach = (layout.shape[d] - 1) * layout.stride[d];
        *(reach < 0 ? &low : &high) += reach;
    }
    o.size = (size_t)((high - low + 1) * bytes + 2 * GUARD + 1);
    o.memory = malloc(o.size);
    assert_non_null(o.memory);
    memset(o.memory, UNTOUCHED, o.size);
    o.first = o.memory + GUARD - low * bytes + (unaligned ? 1 : 0);
    return o;
}

static inline operand make(tn_dtype dtype, int32_t rank, const int64_t *shape, int kind)
{
    return operand_of(layout_of(dtype, rank, shape, kind), kind == OFF_BY_ONE);
}

static inline operand make_random(tn_dtype dtype, int32_t rank, const int64_t *shape, int kind)
{
    operand o = make(dtype, rank, shape, kind);
    for (int64_t i = 0; i < elements_of(&o.layout); i++)
        store_random(dtype, element_at(&o, i));
    return o;
}

/* Every element a NaN, or -1. */
static inline operand make_poisoned(tn_dtype dtype, int32_t rank, const int64_t *shape, int kind)
{
    operand o = make(dtype, rank, shape, kind);
    for (int64_t i = 0; i < elements_of(&o.layout); i++)
        memset(element_at(&o, i), 0xFF, (size_t)bytes_of(dtype));
    return o;
}

static inline long double value_at(const operand *o, int64_t index, int part)
{
    return load(o->layout.dtype, element_at(o, index), part);
}

static inline void drop(operand *o)
{
    free(o->memory);
    *o = (operand){.memory = NULL};
}

/* Nothing was written but elements. */
static inline void assert_outside_untouched(const operand *o)
{
    char *copy = malloc(o->size);
    operand marked = *o;
    assert_non_null(copy);
    memcpy(copy, o->memory, o->size);
    marked.first = copy + (o->first - o->memory);
    for (int64_t i = 0; i < elements_of(&o->layout); i++)
        memset(element_at(&marked, i), UNTOUCHED, (size_t)bytes_of(o->layout.dtype));
    for (size_t i = 0; i < o->size; i++)
        assert_int_equal((unsigned char)copy[i], UNTOUCHED);
    free(copy);
}

/* The distance of neighbours near a value. */
static inline long double ulp(tn_dtype dtype, long double value)
{
    const format *f = format_of(dtype);
    int exponent = value == 0 || is_nan(value) || is_inf(value) ? 1 - f->bias : ilogbl(value);
    exponent = exponent < 1 - f->bias ? 1 - f->bias : exponent;
    return ldexpl(1, exponent - f->digits + 1);
}

/* `want` rounded to the dtype, but for `slack` before rounding. */
static inline void assert_near(tn_dtype dtype, long double got, long double want, long double slack)
{
    int both = (is_nan(got) && is_nan(want)) || got == want;
    if (!both && !(fabsl(got - want) <= 0.5L * ulp(dtype, want) * 1.002L + slack))
        fail_msg("%.20Lg is not %.20Lg, ulp %Lg, slack %Lg", got, want, ulp(dtype, want), slack);
}

static inline const tn_kernel_row *row_of(int32_t op)
{
    const tn_module *module = NULL;
    tn_error err;
    assert_int_equal(tni_ref_module_entry(NULL, &module, &err), TN_OK);
    for (size_t i = 0; module->kernels[i]; i++) {
        if (module->kernels[i]->op == op)
            return module->kernels[i];
    }
    fail_msg("no row for op %d", (int)op);
    return NULL;
}

/* From the last task to the first: no task may rely on another. With a pool, on its threads. */
static int64_t host_tasks;
static void (*host_pool)(int64_t count, tn_task *task, void *user);
static inline void host_loop_(void *self, int64_t count, tn_task *task, void *user)
{
    assert_ptr_equal(self, &host_tasks);
    host_tasks += count;
    if (host_pool) {
        host_pool(count, task, user);
        return;
    }
    for (int64_t i = count - 1; i >= 0; i--)
        task(user, i);
}

/* Memory for kernels, aligned to 64 bytes. `host_allocations` may still be had, `host_blocks` are. */
static int64_t host_allocations = INT64_MAX, host_blocks;
static inline void *host_alloc_(void *self, size_t size, size_t align)
{
    assert_ptr_equal(self, &host_tasks);
    assert_true(align <= 64);
    char *memory = host_allocations-- > 0 ? malloc(size + 128) : NULL;
    if (!memory)
        return NULL;
    char *aligned = memory + 128 - ((uintptr_t)memory & 63);
    memcpy(aligned - sizeof memory, &memory, sizeof memory);
    host_blocks++;
    return aligned;
}

static inline void host_release_(void *self, void *memory)
{
    void *block;
    assert_ptr_equal(self, &host_tasks);
    memcpy(&block, (char *)memory - sizeof block, sizeof block);
    free(block);
    host_blocks--;
}

static int64_t determinism_is;
static inline tn_status setting_(const tn_query *query, const char *key, int64_t *out)
{
    (void)query;
    if (strcmp(key, "determinism") != 0)
        return TN_NOT_FOUND;
    *out = determinism_is;
    return TN_OK;
}

static inline tn_status admit(const tn_op *op, tn_refusal *why)
{
    const tn_kernel_row *row = row_of(op->kind);
    tn_query query = {.struct_size = sizeof query, .op = op, .threads = 1, .setting = setting_};
    assert_int_equal(op->uses & ~row->honours, 0);
    return row->admit ? row->admit(row, &query, why) : TN_OK;
}

/* Runs the op's row, which must admit it. */
static inline tn_status compute_or_not(tn_op *op, const operand *const *operands, int32_t threads,
                                       tn_error *err)
{
    static const tn_host host = {.struct_size = sizeof host,
                                 .self = &host_tasks,
                                 .alloc = host_alloc_,
                                 .release = host_release_,
                                 .parallel_for = host_loop_};
    void *data[TN_OP_OPERANDS_MAX] = {NULL};
    tn_refusal why = {.struct_size = sizeof why};
    for (int32_t i = 0; i < op->count; i++) {
        op->operand[i] = operands[i] ? operands[i]->layout : (tn_layout){.dtype = 0};
        if (operands[i] && elements_of(&operands[i]->layout) > 0)
            data[i] = operands[i]->first;
    }
    if (admit(op, &why))
        fail_msg("refused: %s: %s", why.what, why.text);
    tn_run run = {.struct_size = sizeof run,
                  .row = row_of(op->kind),
                  .op = op,
                  .data = data,
                  .host = &host,
                  .threads = threads};
    const tn_query query = {.struct_size = sizeof query, .op = op, .threads = threads};
    run.workspace_bytes = run.row->workspace ? run.row->workspace(run.row, &query) : 0;
    run.workspace = run.workspace_bytes ? malloc((size_t)run.workspace_bytes) : NULL;
    assert_true(run.workspace || !run.workspace_bytes);
    tn_status status = run.row->run(&run, err);
    free(run.workspace);
    assert_int_equal(host_blocks, 0);
    return status;
}

static inline void compute(tn_op *op, const operand *const *operands, int32_t threads)
{
    tn_error err;
    assert_int_equal(compute_or_not(op, operands, threads, &err), TN_OK);
}

/* The first rank - last dimensions are rows, if `last` is more than 0. */
static inline tn_op each_op(int32_t kind, int32_t function, const tn_layout *out, int32_t last)
{
    tn_op op = {.struct_size = sizeof op, .kind = kind, .count = 2};
    *TN_PARAMS_MUTABLE(&op, elementwise) =
        (tn_elementwise_op){.kind = function, .elements = elements_of(out), .rows = 1, .size = 1};
    for (int32_t d = 0; d < out->rank; d++)
        *(d < out->rank - last ? &TN_PARAMS_MUTABLE(&op, elementwise)->rows
                               : &TN_PARAMS_MUTABLE(&op, elementwise)->size) *= out->shape[d];
    return op;
}

#endif
