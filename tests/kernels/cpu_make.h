/* Ops made by hand and memory that tells when a kernel leaves it, for the tests of the module cpu's
 * kernels. Everything is called as the core calls it, through the row. */
#ifndef TENON_TESTS_CPU_MAKE_H
#define TENON_TESTS_CPU_MAKE_H

#include "test.h"

#include "os/bind.h"
#include "os/cpu.h"
#include "os/machine/machine.h"
#include "tenon/module/activation.h"
#include "tenon/module/kernel.h"
#include "tenon/module/library.h"
#include "tenon/module/op/elementwise.h"
#include "tenon/parallel.h"

#include <math.h>
#include <stdbool.h>

tn_module_entry_fn tni_cpu_module_entry;

static inline void *cpu_take(void *self, size_t size, size_t align)
{
    (void)self;
    align = align < sizeof(void *) ? sizeof(void *) : align;
    return aligned_alloc(align, (size + align - 1) / align * align);
}

static inline void cpu_give(void *self, void *memory)
{
    (void)self;
    free(memory);
}

static inline tn_status cpu_bind(void *self, const char *files, const tn_symbol *symbols,
                                 size_t count, void *table, tn_error *err)
{
    (void)self;
    return tni_bind(files, symbols, count, NULL, table, NULL, err);
}

static inline void cpu_loop(void *self, int64_t count, tn_task *task, void *user)
{
    (void)self;
    tn_parallel_for(count, task, user);
}

static inline tn_status cpu_facts(void *self, tn_machine_facts *out, tn_error *err)
{
    (void)self;
    return tni_machine_facts_read(out, err);
}

static const tn_host cpu_host = {.struct_size = sizeof cpu_host,
                                 .abi_major = TN_MODULE_ABI_MAJOR,
                                 .abi_minor = TN_MODULE_ABI_MINOR,
                                 .alloc = cpu_take,
                                 .release = cpu_give,
                                 .library_bind = cpu_bind,
                                 .parallel_for = cpu_loop,
                                 .machine = cpu_facts};

static inline const tn_module *cpu_module(void)
{
    const tn_module *module = NULL;
    assert_int_equal(tni_cpu_module_entry(&cpu_host, &module, NULL), TN_OK);
    return module;
}

/* The row of that name; NULL when this build has none. */
static inline const tn_kernel_row *cpu_row(const char *name)
{
    for (const tn_kernel_row *const *row = cpu_module()->kernels; *row; row++) {
        if (strcmp((*row)->name, name) == 0)
            return *row;
    }
    return NULL;
}

/* The library of that name, as the module offers it; NULL for none. */
static inline const tn_library_row *cpu_library(const char *name)
{
    for (const tn_library_row *const *row = cpu_module()->libraries; *row; row++) {
        if (strcmp((*row)->name, name) == 0)
            return *row;
    }
    return NULL;
}

/* Whether this processor can run it. */
static inline int cpu_can(const tn_kernel_row *row)
{
    return row && (row->cpu_needs & ~tni_cpu_features()) == 0;
}

/* Calls `check` for every row of an op that runs here: each instruction set's. */
static inline void cpu_each_row(int32_t op, void (*check)(const tn_kernel_row *row))
{
    int count = 0;
    for (const tn_kernel_row *const *row = cpu_module()->kernels; *row; row++) {
        if ((*row)->op == op && !(*row)->library && cpu_can(*row)) {
            count++;
            check(*row);
        }
    }
    assert_true(count > 0);
}

static inline bool cpu_takes(const tn_kernel_row *row, tn_dtype dtype)
{
    const tn_dtype *it = row->dtypes;
    while (*it && *it != dtype)
        it++;
    return *it != 0;
}

/* The same numbers on every machine. */
static inline uint32_t cpu_random(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32);
}

static inline double cpu_uniform(double low, double high)
{
    return low + (high - low) * (cpu_random() / 4294967296.0);
}

static inline int64_t cpu_size(tn_dtype dtype)
{
    return (int64_t)(dtype >> 8 & 255) / 8;
}

/* One element as a double and back, written with nothing of the kernels': bf16 and f16 by arithmetic. */
static inline double cpu_half_value(uint32_t bits, int mantissa, int exponent)
{
    int e = (int)(bits >> mantissa & ((1u << exponent) - 1)), bias = (1 << (exponent - 1)) - 1;
    double m = (double)(bits & ((1u << mantissa) - 1)) / (double)(1u << mantissa);
    double value = e == (1 << exponent) - 1 ? (m > 0 ? NAN : INFINITY)
                   : e == 0                 ? ldexp(m, 1 - bias)
                                            : ldexp(1 + m, e - bias);
    return bits >> 15 & 1 ? -value : value;
}

static inline uint16_t cpu_half_bits(double x, int mantissa, int exponent)
{
    int bias = (1 << (exponent - 1)) - 1, e;
    uint32_t sign = signbit(x) ? 0x8000u : 0, all = ((1u << exponent) - 1) << mantissa;
    if (isnan(x))
        return (uint16_t)(sign | all | 1u << (mantissa - 1));
    if (x == 0)
        return (uint16_t)sign;
    double a = fabs(x);
    (void)frexp(a, &e);
    e = e - 1 < 1 - bias ? 1 - bias : e - 1;
    double steps = isinf(a) ? INFINITY : rint(ldexp(a, mantissa - e)); /* to nearest even */
    if (steps >= ldexp(2, mantissa) && e == bias)
        return (uint16_t)(sign | all);
    if (isinf(steps) || e > bias)
        return (uint16_t)(sign | all);
    uint32_t bits = (uint32_t)steps + ((uint32_t)(e + bias - 1) << mantissa);
    return (uint16_t)(sign | bits);
}

static inline double cpu_read(tn_dtype dtype, const void *at)
{
    float f;
    double d;
    uint16_t h;
    int32_t i;
    int64_t l;
    switch (dtype) {
    case TN_F32: memcpy(&f, at, 4); return (double)f;
    case TN_F64: memcpy(&d, at, 8); return d;
    case TN_BF16: memcpy(&h, at, 2); return cpu_half_value(h, 7, 8);
    case TN_F16: memcpy(&h, at, 2); return cpu_half_value(h, 10, 5);
    case TN_I8: return *(const int8_t *)at;
    case TN_U8: return *(const uint8_t *)at;
    case TN_I32: memcpy(&i, at, 4); return i;
    case TN_I64: memcpy(&l, at, 8); return (double)l;
    default: fail_msg("no reader for dtype %#x", (unsigned)dtype); return 0;
    }
}

static inline void cpu_write(tn_dtype dtype, void *at, double x)
{
    float f = (float)x;
    uint16_t h;
    int32_t i;
    int64_t l;
    switch (dtype) {
    case TN_F32: memcpy(at, &f, 4); break;
    case TN_F64: memcpy(at, &x, 8); break;
    case TN_BF16: h = cpu_half_bits((double)f, 7, 8), memcpy(at, &h, 2); break;
    case TN_F16: h = cpu_half_bits((double)f, 10, 5), memcpy(at, &h, 2); break;
    case TN_I8: *(int8_t *)at = (int8_t)x; break;
    case TN_U8: *(uint8_t *)at = (uint8_t)x; break;
    case TN_I32: i = (int32_t)x, memcpy(at, &i, 4); break;
    case TN_I64: l = (int64_t)x, memcpy(at, &l, 8); break;
    default: fail_msg("no writer for dtype %#x", (unsigned)dtype);
    }
}

/* Half the distance of neighbours relative to a number, of what a dtype rounds to. */
static inline double cpu_unit(tn_dtype dtype)
{
    return dtype == TN_F64   ? 0x1p-53
           : dtype == TN_F32 ? 0x1p-24
           : dtype == TN_F16 ? 0x1p-11
                             : 0x1p-8;
}

/* An operand's memory, between guards. */
enum { CPU_GUARD = 256, CPU_POISON = 0xA5 };
typedef struct cpu_memory {
    unsigned char *block;
    unsigned char *low; /* the lowest byte of an element */
    size_t bytes;
    char *first; /* the first element */
} cpu_memory;

typedef struct cpu_case {
    tn_op op;
    cpu_memory memory[TN_OP_OPERANDS_MAX];
    void *data[TN_OP_OPERANDS_MAX];
    const void *packed; /* what the row packed; or NULL */
} cpu_case;

static inline int64_t cpu_elements(const tn_layout *layout)
{
    int64_t count = 1;
    for (int32_t d = 0; d < layout->rank; d++)
        count *= layout->shape[d];
    return count;
}

/* Elements from the first: of the n-th in the order of the shape. */
static inline int64_t cpu_offset(const tn_layout *layout, int64_t n)
{
    int64_t offset = 0;
    for (int32_t d = layout->rank - 1; d >= 0; d--) {
        offset += n % layout->shape[d] * layout->stride[d];
        n /= layout->shape[d];
    }
    return offset;
}

static inline void *cpu_at(const cpu_case *it, int32_t operand, int64_t n)
{
    const tn_layout *layout = &it->op.operand[operand];
    return it->memory[operand].first + cpu_offset(layout, n) * cpu_size(layout->dtype);
}

static inline double cpu_get(const cpu_case *it, int32_t operand, int64_t n)
{
    return cpu_read(it->op.operand[operand].dtype, cpu_at(it, operand, n));
}

static inline void cpu_put(cpu_case *it, int32_t operand, int64_t n, double value)
{
    cpu_write(it->op.operand[operand].dtype, cpu_at(it, operand, n), value);
}

/* Adds an operand; strides of NULL are dense. `shift` elements from an alignment of 64. */
static inline void cpu_add(cpu_case *it, int32_t operand, tn_dtype dtype, int32_t rank,
                           const int64_t *shape, const int64_t *strides, int64_t shift)
{
    tn_layout *to = &it->op.operand[operand];
    cpu_memory *memory = &it->memory[operand];
    int64_t low = 0, high = 0, dense = 1, size = cpu_size(dtype);
    *to = (tn_layout){.dtype = dtype, .rank = rank, .alignment = shift ? size : 64};
    for (int32_t d = rank - 1; d >= 0; d--) {
        to->shape[d] = shape[d];
        to->stride[d] = strides ? strides[d] : dense;
        dense *= shape[d];
        int64_t reach = shape[d] > 0 ? (shape[d] - 1) * to->stride[d] : 0;
        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
    }
    memory->bytes = cpu_elements(to) > 0 ? (size_t)((high - low + 1) * size) : 0;
    size_t whole = 2 * CPU_GUARD + (size_t)(shift * size) + memory->bytes;
    memory->block = aligned_alloc(64, (whole + 63) / 64 * 64);
    memset(memory->block, CPU_POISON, (whole + 63) / 64 * 64);
    memory->low = memory->block + CPU_GUARD + shift * size;
    memory->first = (char *)memory->low - low * size;
    it->data[operand] = memory->bytes > 0 ? memory->first : NULL;
    if (it->op.count <= operand)
        it->op.count = operand + 1;
}

/* Ways for a shape to lie. */
enum { CPU_DENSE, CPU_PADDED, CPU_SPREAD, CPU_BACKWARDS, CPU_TURNED, CPU_UPSIDE_DOWN, CPU_LIES };

static inline void cpu_strides(int32_t rank, const int64_t *shape, int lies, int64_t *out)
{
    int64_t step = lies == CPU_SPREAD ? 2 : 1;
    for (int32_t i = 0; i < rank; i++) {
        int32_t d = lies == CPU_TURNED ? i : rank - 1 - i;
        out[d] = lies == CPU_BACKWARDS || (lies == CPU_UPSIDE_DOWN && i + 1 == rank) ? -step : step;
        step *= shape[d];
        step += lies == CPU_PADDED ? 3 : 0;
    }
}

/* As cpu_add, for a way to lie. */
static inline void cpu_add_lying(cpu_case *it, int32_t operand, tn_dtype dtype, int32_t rank,
                                 const int64_t *shape, int lies, int64_t shift)
{
    int64_t strides[TN_OP_RANK_MAX];
    cpu_strides(rank, shape, lies, strides);
    cpu_add(it, operand, dtype, rank, shape, strides, shift);
}

/* Fills an operand with numbers; where strides are 0 the last one holds. */
static inline void cpu_fill(cpu_case *it, int32_t operand, double low, double high)
{
    for (int64_t i = 0; i < cpu_elements(&it->op.operand[operand]); i++)
        cpu_put(it, operand, i, cpu_uniform(low, high));
}

static inline void cpu_in_place(cpu_case *it)
{
    it->op.operand[TN_ELEMENTWISE_OUT] = it->op.operand[TN_ELEMENTWISE_IN];
    it->memory[TN_ELEMENTWISE_OUT] = it->memory[TN_ELEMENTWISE_IN];
    it->memory[TN_ELEMENTWISE_OUT].block = NULL;
    it->data[TN_ELEMENTWISE_OUT] = it->data[TN_ELEMENTWISE_IN];
    it->op.uses |= TN_ELEMENTWISE_USES_IN_PLACE;
    it->op.count = it->op.count < 2 ? 2 : it->op.count;
}

/* What was not to be written still has its poison: guards, and gaps between out's elements. */
static inline void cpu_check_guards(const cpu_case *it)
{
    for (int32_t i = 0; i < it->op.count; i++) {
        const cpu_memory *memory = &it->memory[i];
        for (size_t b = 0; memory->block && b < CPU_GUARD; b++) {
            assert_int_equal(memory->low[-1 - (ptrdiff_t)b], CPU_POISON);
            assert_int_equal(memory->low[memory->bytes + b], CPU_POISON);
        }
    }
}

static inline void cpu_check_gaps(const cpu_case *it, int32_t operand)
{
    const tn_layout *layout = &it->op.operand[operand];
    const cpu_memory *memory = &it->memory[operand];
    size_t size = (size_t)cpu_size(layout->dtype);
    unsigned char *mine = calloc(memory->bytes + 1, 1);
    for (int64_t i = 0; i < cpu_elements(layout); i++)
        memset(mine + ((char *)cpu_at(it, operand, i) - (char *)memory->low), 1, size);
    for (size_t b = 0; b < memory->bytes; b++) {
        if (!mine[b])
            assert_int_equal(memory->low[b], CPU_POISON);
    }
    free(mine);
}

static inline void cpu_end(cpu_case *it)
{
    for (int32_t i = 0; i < TN_OP_OPERANDS_MAX; i++)
        free(it->memory[i].block);
    memset(it, 0, sizeof *it);
}

static inline tn_status cpu_admit(const tn_kernel_row *row, const cpu_case *it, tn_refusal *why)
{
    const tn_query query = {.struct_size = sizeof query,
                            .op = &it->op,
                            .library_version = -1,
                            .cpu_features = tni_cpu_features(),
                            .threads = 2};
    *why = (tn_refusal){.struct_size = sizeof *why};
    return row->admit ? row->admit(row, &query, why) : TN_OK;
}

/* As the core: only what is honoured and admitted is run. */
static inline void cpu_run_on(const tn_kernel_row *row, cpu_case *it, void *library,
                              int32_t threads)
{
    tn_refusal why;
    tn_error err;
    const tn_run run = {.struct_size = sizeof run,
                        .row = row,
                        .op = &it->op,
                        .data = it->data,
                        .library = library,
                        .host = &cpu_host,
                        .threads = threads};
    it->op.struct_size = sizeof it->op;
    it->op.kind = row->op;
    assert_int_equal(it->op.uses & ~row->honours, 0);
    if (cpu_admit(row, it, &why))
        fail_msg("%s refuses: %s: expected %lld, got %lld", row->name, why.what,
                 (long long)why.needed, (long long)why.found);
    if (row->run(&run, &err))
        fail_msg("%s: %s", row->name, err.message);
    cpu_check_guards(it);
}

static inline void cpu_run(const tn_kernel_row *row, cpu_case *it)
{
    cpu_run_on(row, it, NULL, 2);
}

/* With scratch memory as the core gives it, between guards. */
static inline void cpu_run_in_room(const tn_kernel_row *row, cpu_case *it, int32_t threads)
{
    enum { GUARD = 64, NANS = 0xFF }; /* NaNs, of any float */
    tn_refusal why;
    it->op.struct_size = sizeof it->op;
    it->op.kind = row->op;
    const tn_query query = {
        .struct_size = sizeof query, .op = &it->op, .library_version = -1, .threads = threads};
    assert_int_equal(it->op.uses & ~row->honours, 0);
    if (cpu_admit(row, it, &why))
        fail_msg("%s refuses: %s: expected %lld, got %lld; %s", row->name, why.what,
                 (long long)why.needed, (long long)why.found, why.text);
    uint64_t bytes = row->workspace ? row->workspace(row, &query) : 0;
    size_t whole = ((size_t)bytes + GUARD + 63) / 64 * 64;
    unsigned char *room = aligned_alloc(64, whole);
    memset(room, NANS, whole);
    const tn_run run = {.struct_size = sizeof run,
                        .row = row,
                        .op = &it->op,
                        .data = it->data,
                        .workspace = room,
                        .workspace_bytes = bytes,
                        .host = &cpu_host,
                        .threads = threads,
                        .packed = it->packed};
    assert_int_equal(row->run(&run, NULL), TN_OK);
    for (size_t i = (size_t)bytes; i < whole; i++)
        assert_int_equal(room[i], NANS);
    free(room);
    cpu_check_guards(it);
}

static inline double cpu_activated(int32_t activation, double x)
{
    switch (activation) {
    case TN_ACT_RELU: return x > 0 || isnan(x) ? x : 0;
    case TN_ACT_GELU: return 0.5 * x * erfc(-x / sqrt(2));
    case TN_ACT_GELU_TANH:
        return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
    case TN_ACT_SILU: return x / (1 + exp(-x));
    default: return x;
    }
}

/* Whether two numbers are the same, NaNs and infinities included, or differ by no more than a bound. */
static inline int cpu_close(double found, double wanted, double bound)
{
    if (isnan(wanted) || isinf(wanted))
        return isnan(wanted) ? isnan(found) : found == wanted;
    return fabs(found - wanted) <= bound;
}

#endif
