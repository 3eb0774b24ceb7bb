#include "cublas_pad.h"

#include "cublas_cost.h"
#include "cublas_shape.h"
#include "tenon/module/op/matmul.h"

#include <math.h>

enum { TOGETHER = 8, ROOM_ALIGNMENT = 256 };

static int64_t rounded(int64_t size)
{
    return cuda_round_up(size, TOGETHER);
}

/* The sizes that have to be rounded up: the elements of an operand are contiguous along them, and lines that are not whole
 * are as slow as misaligned ones (seen on an H200, with aligned leading dimensions). */
typedef struct odd_sizes {
    bool m, n, k;
} odd_sizes;

static odd_sizes odd_sizes_of(const tn_op *op)
{
    const tn_matmul_op *mm = TN_PARAMS(op, matmul);
    const bool a_by_rows = lt_lies_by_rows(&op->operand[TN_MATMUL_A]);
    const bool b_by_rows = lt_lies_by_rows(&op->operand[TN_MATMUL_B]);
    const bool by_rows = lt_lies_by_rows(&op->operand[TN_MATMUL_OUT]);
    return (odd_sizes){.m = mm->m % TOGETHER && (!a_by_rows || !by_rows),
                       .n = mm->n % TOGETHER && (b_by_rows || by_rows),
                       .k = mm->k % TOGETHER && (a_by_rows || !b_by_rows)};
}

/* Marks the operands that are copied: misaligned ones, and all that have a size which is rounded up. */
static void mark_copied(const tn_op *op, bool own_out, lt_pads *out)
{
    const odd_sizes odd = odd_sizes_of(op);
    bool *copied = out->copied;
    for (int32_t i = 0; i < LT_PADS; i++)
        copied[i] = cuda_blas_aligned(&op->operand[i]) < CUDA_VECTOR;
    copied[TN_MATMUL_A] = copied[TN_MATMUL_A] || odd.m || odd.k;
    copied[TN_MATMUL_B] = copied[TN_MATMUL_B] || odd.n || odd.k;
    copied[TN_MATMUL_OUT] = !own_out && (copied[TN_MATMUL_OUT] || odd.m || odd.n);
    const bool by_rows = lt_lies_by_rows(&op->operand[TN_MATMUL_OUT]);
    out->impossible = (op->operand[TN_MATMUL_BIAS].dtype && (by_rows ? odd.n : odd.m)) ||
                      (own_out && (by_rows ? odd.m : odd.n));
}

static void round_sizes(tn_op *io)
{
    const odd_sizes odd = odd_sizes_of(io);
    tn_matmul_op *mm = TN_PARAMS_MUTABLE(io, matmul);
    mm->m = odd.m ? rounded(mm->m) : mm->m;
    mm->n = odd.n ? rounded(mm->n) : mm->n;
    mm->k = odd.k ? rounded(mm->k) : mm->k;
}

/* Makes a copy's layout dense, with aligned lines; returns its bytes. */
static double pad_layout(const tn_layout *from, tn_layout *io)
{
    const int32_t along = lt_along(from), line = 2 * io->rank - 3 - along;
    const int64_t length = rounded(io->shape[along]);
    double matrix = (double)length * (double)io->shape[line];
    io->alignment = TN_OP_ALIGNMENT_MAX;
    io->stride[along] = 1;
    io->stride[line] = length;
    for (int32_t d = io->rank - 3; d >= 0; d--) {
        if (io->shape[d] > 1 && io->stride[d] == 0)
            continue;
        io->stride[d] = matrix < 0x1p62 ? (int64_t)matrix : INT64_MAX;
        matrix *= (double)io->shape[d];
    }
    return ceil(matrix * (double)cuda_bytes_of(io->dtype) / ROOM_ALIGNMENT) * ROOM_ALIGNMENT;
}

void lt_pad(tn_op *io, bool own_out, lt_pads *out)
{
    *out = (lt_pads){.bytes = 0};
    for (int32_t i = 0; i < LT_PADS; i++)
        out->from[i] = io->operand[i];
    if (cuda_bytes_of(io->operand[TN_MATMUL_A].dtype) == 2 && !lt_is_empty(io))
        mark_copied(io, own_out, out);
    if (!lt_pads_any(out))
        return;
    round_sizes(io);
    const tn_matmul_op *mm = TN_PARAMS(io, matmul);
    const int64_t sizes[LT_PADS][2] = {{mm->m, mm->k}, {mm->k, mm->n}, {mm->m, mm->n}};
    for (int32_t i = 0; i < LT_PADS; i++) {
        tn_layout *layout = &io->operand[i];
        layout->shape[layout->rank - 2] = sizes[i][0];
        layout->shape[layout->rank - 1] = sizes[i][1];
        if (!out->copied[i])
            continue;
        out->at[i] = out->bytes < 0x1p62 ? (uint64_t)out->bytes : 0;
        out->bytes += pad_layout(&out->from[i], layout);
    }
}

bool lt_pads_any(const lt_pads *pads)
{
    return pads->copied[TN_MATMUL_A] || pads->copied[TN_MATMUL_B] || pads->copied[TN_MATMUL_OUT];
}

/* Appends, for example, "A and out". */
static void list_copied(const lt_pads *pads, char *out, size_t size)
{
    static const char *const names[LT_PADS] = {"A", "B", "out"};
    int left = pads->copied[0] + pads->copied[1] + pads->copied[2];
    size_t used = 0;
    for (int32_t i = 0; i < LT_PADS; i++) {
        if (!pads->copied[i])
            continue;
        left--;
        const int more = snprintf(out + used, size - used, "%s%s", names[i],
                                  left > 1 ? ", "
                                  : left   ? " and "
                                           : "");
        used += more > 0 && (size_t)more < size - used ? (size_t)more : 0;
    }
}

tn_status lt_admit_pads(const tn_op *op, bool own_out, tn_refusal *why)
{
    char names[24];
    lt_pads pads;
    tn_op padded = *op;
    lt_pad(&padded, own_out, &pads);
    if (!lt_pads_any(&pads))
        return cuda_refuse(why, TN_REFUSE_ALIGNMENT, "alignment", CUDA_VECTOR / 2, CUDA_VECTOR,
                           "A, B and out are aligned to 16 bytes: nothing is to be copied");
    if (pads.impossible)
        return cuda_refuse(why, TN_REFUSE_SHAPE, "sizes", TOGETHER, 1,
                           "with this epilogue, the size of out's lines, or their number if A is "
                           "column-major, must be a multiple of 8");
    const tn_status status = cuda_admit_bytes(
        "copies", pads.bytes, 0x1p30, "aligned copies take at most 1 GiB of workspace", why);
    if (status)
        return status;
    const size_t used = why ? strlen(why->text) : 0;
    list_copied(&pads, names, sizeof names);
    if (why)
        (void)snprintf(why->text + used, sizeof why->text - used,
                       "%saligned copies of %s take %.0f bytes of workspace", used ? "; " : "",
                       names, pads.bytes);
    return TN_OK;
}

/* The row's rates are those of large products, which smaller products do not reach. So lower rates are assumed, and
 * copies are predicted to pay only if they clearly do. */
double lt_pads_us(const tn_kernel_row *row, const tn_op *op, bool own_out)
{
    enum { LAUNCH = 3 };
    const double share = 0.8, bytes_per_us = 3e6;
    lt_pads pads;
    tn_op padded = *op;
    lt_pad(&padded, own_out, &pads);
    double us = cuda_blas_work_us(row, &padded) / share;
    const int copies = pads.copied[TN_MATMUL_A] + pads.copied[TN_MATMUL_B] +
                       pads.copied[TN_MATMUL_OUT] * (op->uses & TN_MATMUL_USES_BETA ? 2 : 1);
    if (op->uses & TN_MATMUL_USES_BETA && pads.copied[TN_MATMUL_OUT]) /* out is copied twice */
        us += 2 * (pads.bytes - (double)pads.at[TN_MATMUL_OUT]) / bytes_per_us;
    return us + LAUNCH * copies + 2 * pads.bytes / bytes_per_us;
}

tn_status lt_pad_plan_make(const tn_run *run, const lt_pads *pads, const tn_op *product,
                           lt_pad_plan *out, tn_error *err)
{
    for (int32_t i = 0; i < LT_PADS; i++) {
        const tn_layout *to = &product->operand[i];
        out->copied[i] = pads->copied[i];
        out->at[i] = pads->at[i];
        if (pads->copied[i] && (i != TN_MATMUL_OUT || product->uses & TN_MATMUL_USES_BETA))
            cuda_pad_describe(&pads->from[i], to, lt_along(&pads->from[i]), true, &out->in[i]);
    }
    if (pads->copied[TN_MATMUL_OUT]) {
        const tn_layout *to = &pads->from[TN_MATMUL_OUT];
        cuda_pad_describe(&product->operand[TN_MATMUL_OUT], to, lt_along(to), false, &out->back);
    }
    return lt_pads_any(pads) ? cuda_pad_plan(run, &out->kernel, err) : TN_OK;
}

void *lt_pad_operand(const lt_pad_plan *plan, int32_t operand, void *room, void *direct)
{
    return plan->copied[operand] ? (char *)room + plan->at[operand] : direct;
}

tn_status lt_pad_before(const tn_run *run, const lt_pad_plan *plan, void *room, void *out,
                        tn_error *err)
{
    tn_status status = TN_OK;
    for (int32_t i = 0; i < LT_PADS && !status; i++) {
        void *from = i == TN_MATMUL_OUT ? out : tn_operand(run, i);
        if (plan->copied[i])
            status = cuda_pad_run(run, plan->kernel, &plan->in[i], from,
                                  lt_pad_operand(plan, i, room, NULL), err);
    }
    return status;
}

tn_status lt_pad_after(const tn_run *run, const lt_pad_plan *plan, void *room, void *out,
                       tn_error *err)
{
    if (!plan->copied[TN_MATMUL_OUT])
        return TN_OK;
    return cuda_pad_run(run, plan->kernel, &plan->back,
                        lt_pad_operand(plan, TN_MATMUL_OUT, room, NULL), out, err);
}
