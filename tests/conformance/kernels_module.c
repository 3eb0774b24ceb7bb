/* Kernels of products and of sums of two tensors, right unless the variable KERNEL_FAULT names
 * one thing that they do wrong. The module "lathe" has a platform of that name; built with
 * KERNELS_ONLY it is "lathe-cpu", whose kernels are of the cpu platform. */
#include "tenon/module/kernel.h"
#include "tenon/module/op/binary.h"
#include "tenon/module/op/matmul.h"
#include "tenon/module/platform.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>

#ifdef KERNELS_ONLY
#define PLATFORM "cpu"
#define MODULE   "lathe-cpu"
#else
#define PLATFORM "lathe"
#define MODULE   "lathe"
#endif

static int has_fault(const char *word)
{
    const char *fault = getenv("KERNEL_FAULT");
    return fault && strcmp(fault, word) == 0;
}

/* One element of f32 or f64, wherever it lies. */
static double read_element(tn_dtype dtype, const void *first, int64_t at)
{
    double wide;
    float narrow;
    if (dtype == TN_F64) {
        memcpy(&wide, (const char *)first + at * 8, 8);
        return wide;
    }
    memcpy(&narrow, (const char *)first + at * 4, 4);
    return narrow;
}

static void write_element(tn_dtype dtype, void *first, int64_t at, double value)
{
    float narrow = (float)value;
    if (dtype == TN_F64)
        memcpy((char *)first + at * 8, &value, 8);
    else
        memcpy((char *)first + at * 4, &narrow, 4);
}

/* Where element (i, j) of a matrix lies. */
static int64_t place(const tn_layout *layout, int64_t i, int64_t j)
{
    return i * layout->stride[layout->rank - 2] + j * layout->stride[layout->rank - 1];
}

static double product_at(const tn_run *run, int64_t i, int64_t j)
{
    const tn_op *op = run->op;
    const tn_layout *a = &op->operand[TN_MATMUL_A], *b = &op->operand[TN_MATMUL_B];
    const int ignores = has_fault("ignores-a-stride") && a->stride[a->rank - 1] != 1;
    double sum = 0;
    for (int64_t k = 0; k < TN_PARAMS(op, matmul)->k; k++) {
        int64_t of_a = place(a, i, ignores ? 0 : k);
        sum += read_element(a->dtype, tn_operand(run, TN_MATMUL_A), of_a) *
               read_element(b->dtype, tn_operand(run, TN_MATMUL_B), place(b, k, j));
    }
    if (has_fault("wrong-for-m-above-40") && TN_PARAMS(op, matmul)->m > 40)
        return 0;
    if (has_fault("wrong-in-f64") && a->dtype == TN_F64)
        return (float)sum;
    if (has_fault("needs-alignment") && a->alignment < 16)
        return -sum;
    if (has_fault("wrong-for-negative-strides") && a->stride[a->rank - 1] < 0)
        return -sum;
    if (has_fault("wrong-for-zero-strides") && a->stride[a->rank - 2] == 0 &&
        TN_PARAMS(op, matmul)->m > 1)
        return -sum;
    if (has_fault("drops-nan") && isnan(sum))
        return 0;
    if (has_fault("drops-infinity") && isinf(sum))
        return 0;
    return sum;
}

static tn_status multiply(const tn_run *run, tn_error *err)
{
    const tn_matmul_op *mm = TN_PARAMS(run->op, matmul);
    const tn_layout *out = &run->op->operand[TN_MATMUL_OUT];
    void *to = tn_operand(run, TN_MATMUL_OUT);
    double alpha = has_fault("ignores-alpha") ? 1 : mm->alpha;
    if (has_fault("crashes"))
        raise(SIGSEGV);
    if (has_fault("exits"))
        exit(0);
    if (has_fault("exits-at-once"))
        _Exit(0);
    while (has_fault("hangs"))
        continue;
    if (has_fault("refuses-late"))
        return tn_fail(err, TN_UNSUPPORTED, 0, "lathe", "not today");
    for (int64_t i = 0; i < mm->m; i++) {
        for (int64_t j = 0; j < mm->n; j++) {
            int64_t at = place(out, i, j);
            double value = alpha * product_at(run, i, j);
            if (mm->beta != 0)
                value += mm->beta * read_element(out->dtype, to, at);
            write_element(out->dtype, to, at, value);
        }
    }
    if (has_fault("writes-behind"))
        write_element(out->dtype, to, place(out, mm->m - 1, mm->n - 1) + 1, 0);
    return TN_OK;
}

static tn_status add(const tn_run *run, tn_error *err)
{
    const tn_layout *out = &run->op->operand[TN_ELEMENTWISE_OUT];
    (void)err;
    for (int64_t i = 0; i < TN_PARAMS(run->op, elementwise)->elements; i++)
        write_element(out->dtype, tn_operand(run, TN_ELEMENTWISE_OUT), i,
                      read_element(out->dtype, tn_operand(run, TN_ELEMENTWISE_IN), i) +
                          read_element(out->dtype, tn_operand(run, TN_ELEMENTWISE_OTHER), i));
    return TN_OK;
}

static tn_status admit_sums(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    (void)row;
    if (has_fault("admit-crashes"))
        raise(SIGSEGV);
    if (TN_PARAMS(query->op, elementwise)->kind != TN_BINARY_ADD)
        return tn_refuse(why, TN_REFUSE_OTHER, "kind", TN_BINARY_ADD,
                         TN_PARAMS(query->op, elementwise)->kind);
    return TN_OK;
}

static const tn_dtype floats[] = {TN_F32, TN_F64, 0};
static const tn_kernel_row products = {.struct_size = sizeof products,
                                       .name = PLATFORM ".lathe.matmul",
                                       .platform = PLATFORM,
                                       .op = TN_OP_MATMUL,
                                       .version = 1,
                                       .dtypes = floats,
                                       .honours = TN_MATMUL_USES_TRANSPOSE |
                                                  TN_MATMUL_USES_STRIDES | TN_MATMUL_USES_ALPHA |
                                                  TN_MATMUL_USES_BETA,
                                       .flops_per_us = 100,
                                       .bytes_per_us = 100,
                                       .run = multiply};
static const tn_kernel_row sums = {.struct_size = sizeof sums,
                                   .name = PLATFORM ".lathe.add",
                                   .platform = PLATFORM,
                                   .op = TN_OP_BINARY,
                                   .version = 1,
                                   .dtypes = floats,
                                   .flops_per_us = 100,
                                   .bytes_per_us = 100,
                                   .admit = admit_sums,
                                   .run = add};
static const tn_kernel_row *const kernels[] = {&products, &sums, NULL};

#ifndef KERNELS_ONLY
static tn_status probe(const tn_host *host, void **out_self, int32_t *out_devices, tn_error *err)
{
    (void)host, (void)err;
    *out_self = NULL;
    *out_devices = 1;
    return TN_OK;
}

static tn_status memory_alloc(void *self, int32_t device, uint64_t bytes, void **out, tn_error *err)
{
    (void)self, (void)device;
    *out = bytes > SIZE_MAX / 2 ? NULL : aligned_alloc(64, ((size_t)bytes + 63) / 64 * 64);
    return *out ? TN_OK
                : tn_fail(err, TN_OUT_OF_MEMORY, 0, "lathe", "no %llu bytes",
                          (unsigned long long)bytes);
}

static void memory_free(void *self, int32_t device, void *memory)
{
    (void)self, (void)device;
    free(memory);
}

static tn_status copy(void *self, const tn_copy_job *job, tn_error *err)
{
    (void)self, (void)err;
    for (uint64_t row = 0; row < job->rows; row++)
        memcpy((char *)job->to + row * job->to_pitch,
               (const char *)job->from + row * job->from_pitch, (size_t)job->bytes);
    return TN_OK;
}

static const tn_platform_row platform = {.struct_size = sizeof platform,
                                         .name = PLATFORM,
                                         .kind = TN_PLATFORM_OOT,
                                         .probe = probe,
                                         .memory_alloc = memory_alloc,
                                         .memory_free = memory_free,
                                         .copy = copy};
static const tn_platform_row *const platforms[] = {&platform, NULL};
#endif

static const tn_module module = {.struct_size = sizeof module,
                                 TN_MODULE_ABI,
                                 .name = MODULE,
                                 .version = "1.0",
#ifndef KERNELS_ONLY
                                 .platforms = platforms,
#endif
                                 .kernels = kernels};

TN_MODULE_EXPORT tn_status tn_module_entry(const tn_host *host, const tn_module **out,
                                           tn_error *err);
tn_status tn_module_entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}
