/* tenon-@NAME@: one more kernel for an operator and a platform that exist: softmax on the cpu.
 *
 * This example computes rows of f32 and bf16, so the module builds, loads and passes `tenon
 * conformance` on any machine. Replace it one function at a time, and run `make check` after each.
 *
 * <tenon/module/kernel.h> declares the row and what its functions get; <tenon/module/op/softmax.h>
 * what a kernel of softmax must compute. Tenon's docs/modules.md has a tutorial and a table of
 * every field. */
#include <math.h>
#include <tenon/module/kernel.h>
#include <tenon/module/op/softmax.h>

/* Longer rows are refused: the workspace holds a row for each thread. */
#define LONGEST_ROW (INT64_C(1) << 24)

/* Elements of f32 in a cache line, so that two threads never write into the same one. */
#define LINE 16

static float widen_bf16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/* Rounds to nearest even. A NaN stays one. */
static uint16_t round_to_bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value))
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/* Reads a row whose elements are contiguous. memcpy, because an operand may have any alignment. */
static void read_row(tn_dtype dtype, const char *from, int64_t size, float *row)
{
    if (dtype == TN_F32) {
        memcpy(row, from, (size_t)size * sizeof *row);
        return;
    }
    for (int64_t i = 0; i < size; i++) {
        uint16_t bits;
        memcpy(&bits, from + i * 2, sizeof bits);
        row[i] = widen_bf16(bits);
    }
}

static void write_row(tn_dtype dtype, const float *row, int64_t size, char *to)
{
    if (dtype == TN_F32) {
        memcpy(to, row, (size_t)size * sizeof *row);
        return;
    }
    for (int64_t i = 0; i < size; i++) {
        uint16_t bits = round_to_bf16(row[i]);
        memcpy(to + i * 2, &bits, sizeof bits);
    }
}

/* exp(x - max) / sum. The sum is NaN if an element is, and so is the whole row then. */
static void divide_by_sum(float *row, int64_t size, float max)
{
    float sum = 0;
    for (int64_t i = 0; i < size; i++) {
        row[i] = expf(row[i] - max);
        sum += row[i];
    }
    for (int64_t i = 0; i < size; i++)
        row[i] /= sum;
}

/* The logarithm of that, which does not lose small results: x - max - log(sum). */
static void subtract_log_sum(float *row, int64_t size, float max)
{
    float sum = 0;
    for (int64_t i = 0; i < size; i++)
        sum += expf(row[i] - max);
    for (int64_t i = 0; i < size; i++)
        row[i] = row[i] - max - logf(sum);
}

static void compute_row(float *row, int64_t size, int is_log)
{
    float max = -INFINITY;
    for (int64_t i = 0; i < size; i++)
        max = row[i] > max ? row[i] : max;
    if (is_log)
        subtract_log_sum(row, size, max);
    else
        divide_by_sum(row, size, max);
}

/* Elements that a row takes in the workspace. */
static int64_t row_room(int64_t size)
{
    return (size + LINE - 1) / LINE * LINE;
}

/* Returns the offset, in elements, of a row: rows are counted over all dimensions but the last. For
 * short rows and for operators without rows, <tenon/module/walk.h> is faster. */
static int64_t find_row(const tn_layout *layout, int64_t number)
{
    int64_t offset = 0;
    for (int32_t d = layout->rank - 2; d >= 0; d--) {
        offset += number % layout->shape[d] * layout->stride[d];
        number /= layout->shape[d];
    }
    return offset;
}

/* One call, as the tasks of its parallel loop see it. */
typedef struct job {
    const tn_run *run;
    int64_t slices;
} job;

/* Computes one slice of the rows, in its own row of the workspace. */
static void compute_slice(void *user, int64_t slice)
{
    const job *j = user;
    const tn_op *op = j->run->op;
    const tn_elementwise_op *softmax = TN_PARAMS(op, elementwise);
    const tn_layout *in = &op->operand[TN_ELEMENTWISE_IN], *out = &op->operand[TN_ELEMENTWISE_OUT];
    const int64_t bytes = in->dtype == TN_F32 ? 4 : 2;
    const char *from = tn_operand(j->run, TN_ELEMENTWISE_IN);
    char *to = tn_operand(j->run, TN_ELEMENTWISE_OUT);
    float *row = (float *)j->run->workspace + slice * row_room(softmax->size);
    int64_t end = softmax->rows * (slice + 1) / j->slices;
    for (int64_t i = softmax->rows * slice / j->slices; i < end; i++) {
        read_row(in->dtype, from + find_row(in, i) * bytes, softmax->size, row);
        compute_row(row, softmax->size, (op->uses & TN_ELEMENTWISE_USES_LOG) != 0);
        write_row(out->dtype, row, softmax->size, to + find_row(out, i) * bytes);
    }
}

/* Computes. The cpu platform has no streams: the work is complete when this returns. On a platform
 * that has them, queue the work on run->stream and return without waiting for it. The arguments are
 * valid during the call only. */
static tn_status run_softmax(const tn_run *run, tn_error *err)
{
    const int64_t room = row_room(TN_PARAMS(run->op, elementwise)->size) * (int64_t)sizeof(float);
    job j = {.run = run, .slices = (int64_t)run->workspace_bytes / room};
    (void)err; /* a failure would be `return tn_fail(err, TN_..., 0, run->row->name, "why")` */
    run->host->parallel_for(run->host->self, j.slices, compute_slice, &j);
    return TN_OK;
}

/* Returns the bytes of run->workspace: a row for each thread, but not for more threads than rows.
 * Pure, like admit_softmax: it depends on the query alone. */
static uint64_t workspace_of_softmax(const tn_kernel_row *row, const tn_query *query)
{
    const tn_elementwise_op *softmax = TN_PARAMS(query->op, elementwise);
    int64_t slices = query->threads > 1 ? query->threads : 1;
    (void)row;
    slices = slices < softmax->rows ? slices : softmax->rows;
    return (uint64_t)slices * (uint64_t)row_room(softmax->size) * sizeof(float);
}

/* Refuses what the declared bits do not tell: say what is needed, what was found, and what to do.
 * `tenon explain` prints it. The core has already compared dtypes and features. */
static tn_status admit_softmax(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    static const char *const names[] = {"in.stride", "out.stride"};
    const int64_t size = TN_PARAMS(query->op, elementwise)->size;
    (void)row;
    if (size > LONGEST_ROW)
        return tn_refuse(why, TN_REFUSE_SHAPE, "size", LONGEST_ROW, size);
    for (int32_t i = TN_ELEMENTWISE_IN; i <= TN_ELEMENTWISE_OUT; i++) {
        const tn_layout *layout = &query->op->operand[i];
        int64_t stride = layout->stride[layout->rank - 1];
        if (size == 1 || stride == 1)
            continue;
        (void)tn_refuse(why, TN_REFUSE_STRIDE, names[i], 1, stride);
        if (why) /* NULL: nobody asks for the reason */
            tn_text_fit(why->text, sizeof why->text, "make the last dimension contiguous");
        return TN_UNSUPPORTED;
    }
    return TN_OK;
}

/* Of `in`; without the bit OUT_DTYPE below, out has the same. The list ends with 0. */
static const tn_dtype dtypes[] = {TN_F32, TN_BF16, 0};

static const tn_kernel_row softmax_row = {
    .struct_size = sizeof softmax_row, /* so that rows may grow */
    .name = "cpu.@NAME@.softmax",
    .platform = "cpu",
    .op = TN_OP_SOFTMAX,
    .version = 1, /* a new number discards stored tests and timings: count up with each change */
    .dtypes = dtypes,
    /* Promises: the same bits in every run, and a row's bits do not depend on the other rows. */
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT,
    /* The features of a problem that the kernel supports. One with another feature never comes. */
    .honours = TN_ELEMENTWISE_USES_STRIDES | TN_ELEMENTWISE_USES_BROADCAST |
               TN_ELEMENTWISE_USES_IN_PLACE | TN_ELEMENTWISE_USES_LOG,
    .free_dims = TN_ELEMENTWISE_DIM_ALL, /* no function of the row needs a plan for each shape */
    /* Figures of one core that predict the time; `tenon bench` measures what yours are. */
    .flops_per_us = 1e3,
    .bytes_per_us = 1e3,
    .overhead_us = 1,
    .admit = admit_softmax,
    .workspace = workspace_of_softmax,
    .run = run_softmax,
    .alignment = 1, /* memory of any alignment is treated alike */
};

static const tn_kernel_row *const kernels[] = {&softmax_row, NULL};

static const tn_module module = {
    .struct_size = sizeof module,
    TN_MODULE_ABI,
    .name = "@NAME@",
    .version = "0.1.0",
    .kernels = kernels,
};

/* The only exported symbol. */
tn_status tn_module_entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}
