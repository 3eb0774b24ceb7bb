/* Which passes a problem of fft has, and the memory that they need. */
#include "fft_scheme.h"

enum {
    STAGE_MOST = 2 << 20
}; /* bytes of lines that are copied at once, so that they stay in a cache */

static int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

static int64_t magnitude(int64_t x)
{
    return x < 0 ? -x : x;
}

/* Returns a side's stride along dimension d of the op's layouts. The room is dense, with the input's
 * shape. */
static int64_t stride_of(const tn_op *op, const tni_fft_side *side, int32_t d)
{
    const tn_layout *in = &op->operand[TN_FFT_IN], *out = &op->operand[TN_FFT_OUT];
    int64_t stride = 1;
    if (side->at == TNI_FFT_AT_IN)
        return in->stride[d];
    if (side->at == TNI_FFT_AT_OUT)
        return out->stride[d];
    for (int32_t i = in->rank - 1; i > d; i--)
        stride *= in->shape[i];
    return stride;
}

static void exchange_dims(tni_fft_pass *p, int32_t a, int32_t b)
{
    const int64_t shape = p->shape[a], in = p->in.stride[a], out = p->out.stride[a];
    p->shape[a] = p->shape[b], p->in.stride[a] = p->in.stride[b];
    p->out.stride[a] = p->out.stride[b];
    p->shape[b] = shape, p->in.stride[b] = in, p->out.stride[b] = out;
}

/* Sorts the dimensions of lines by their strides and merges those that both sides permit. */
static void order_lines(tni_fft_pass *p)
{
    for (int32_t i = 1; i < p->rank; i++) {
        for (int32_t j = i;
             j > 0 && magnitude(p->in.stride[j]) + magnitude(p->out.stride[j]) >
                          magnitude(p->in.stride[j - 1]) + magnitude(p->out.stride[j - 1]);
             j--)
            exchange_dims(p, j, j - 1);
    }
    int32_t kept = 0;
    for (int32_t i = 1; i < p->rank; i++) {
        const bool one = p->in.stride[kept] == p->in.stride[i] * p->shape[i] &&
                         p->out.stride[kept] == p->out.stride[i] * p->shape[i];
        const int64_t size = one ? p->shape[kept] * p->shape[i] : p->shape[i];
        kept += !one;
        p->shape[kept] = size;
        p->in.stride[kept] = p->in.stride[i];
        p->out.stride[kept] = p->out.stride[i];
    }
    p->rank = p->rank > 0 ? kept + 1 : 0;
}

/* Finds the lines along dimension d. Of a real transform of several dimensions, there are as many as
 * the operand with the half spectrum has. */
static void find_lines(const tn_op *op, int32_t d, tni_fft_pass *p)
{
    const tn_fft_op *fft = TN_PARAMS(op, fft);
    const tn_layout *half =
        &op->operand[fft->kind == TN_FFT_COMPLEX_TO_REAL ? TN_FFT_IN : TN_FFT_OUT];
    p->lines = 1;
    p->rank = 0;
    for (int32_t i = 0; i < half->rank; i++) {
        if (i == d || half->shape[i] == 1)
            continue;
        p->shape[p->rank] = half->shape[i];
        p->in.stride[p->rank] = stride_of(op, &p->in, i);
        p->out.stride[p->rank++] = stride_of(op, &p->out, i);
        p->lines *= half->shape[i];
    }
    p->in.step = stride_of(op, &p->in, d);
    p->out.step = stride_of(op, &p->out, d);
    order_lines(p);
}

static bool is_contiguous(const tni_fft_side *side)
{
    return side->step == 1;
}

/* Chooses between lanes and lines: lanes need many lines. Long ones that are contiguous are faster
 * one by one if rows and columns fill the vectors. */
static bool takes_lanes(const tni_fft_pass *p, int32_t lanes)
{
    const tni_fft_split *s = &p->split;
    const bool along = is_contiguous(&p->in) && is_contiguous(&p->out);
    if (!s->n1)
        return true;
    if (s->m > TNI_FFT_LANES_MOST)
        return false;
    if (2 * p->lines < lanes)
        return s->m < 16;
    return s->m < (int64_t)lanes * lanes || !along || s->n1 % lanes || s->n2 % lanes;
}

static void measure(tni_fft_scheme *s, tni_fft_pass *p, int64_t bytes)
{
    const tni_fft_split *split = &p->split;
    const int64_t cell = 2 * bytes * s->lanes, number = 2 * bytes;
    const int64_t longest = split->n1 > split->n2 ? split->n1 : split->n2;
    const bool plain = p->kind == TN_FFT_COMPLEX && !split->chirps && is_contiguous(&p->in) &&
                       is_contiguous(&p->out);
    const int64_t length = tni_fft_stage_numbers(split);
    p->staged = p->lanes || plain ? 0 : STAGE_MOST / (length * number);
    p->staged = p->staged > s->lanes ? s->lanes : p->staged;
    p->staged = p->staged > 1 && is_contiguous(&p->in) && is_contiguous(&p->out) ? 1 : p->staged;
    p->staged = p->staged > p->lines ? p->lines : p->staged;
    p->staged = p->staged < 1 && !p->lanes && !plain ? 1 : p->staged;
    const int64_t cells = 2 * cell * (p->lanes ? split->m + 1 : round_up(longest, s->lanes));
    const int64_t table =
        p->lanes ? 0
                 : cell * ((split->n1 + s->lanes - 1) / s->lanes) * round_up(split->n2, s->lanes);
    s->cells = cells > s->cells ? cells : s->cells;
    s->table = table > s->table ? table : s->table;
    s->stage = p->staged * length * number > s->stage ? p->staged * length * number : s->stage;
}

/* The passes in their order: complex to real ends with the last dimension, the others begin with
 * it. Only the first pass, or for complex to real the last one, is needed for a length of 1. */
void tni_fft_scheme_make(const tn_op *op, const tni_fft_machine *machine, const tni_fft_plan *plan,
                         tni_fft_scheme *out)
{
    const tn_fft_op *fft = TN_PARAMS(op, fft);
    const tn_layout *in = &op->operand[TN_FFT_IN];
    const bool wide = tni_fft_is_wide(op), to_real = fft->kind == TN_FFT_COMPLEX_TO_REAL;
    const int64_t bytes = wide ? 8 : 4;
    const int32_t last = fft->dims - 1, lanes = tni_fft_lanes(machine, wide);
    memset(out, 0, sizeof *out);
    out->lanes = lanes;
    for (int32_t i = 0; i < fft->dims; i++) {
        const int32_t d = to_real ? i : last - i;
        const bool ends = d == last;
        tni_fft_pass *p = &out->pass[out->count];
        if (!ends && fft->length[d] == 1)
            continue;
        p->dim = d;
        p->kind = ends ? fft->kind : TN_FFT_COMPLEX;
        p->inverse = p->kind == TN_FFT_COMPLEX && fft->direction == TN_FFT_INVERSE;
        p->mirror = (p->kind == TN_FFT_REAL_TO_COMPLEX && fft->direction == TN_FFT_INVERSE) ||
                    (p->kind == TN_FFT_COMPLEX_TO_REAL && fft->direction == TN_FFT_FORWARD);
        p->scale = ends ? fft->scale : 1;
        p->in.at = out->count == 0 ? TNI_FFT_AT_IN : to_real ? TNI_FFT_AT_ROOM : TNI_FFT_AT_OUT;
        p->out.at = to_real && !ends ? TNI_FFT_AT_ROOM : TNI_FFT_AT_OUT;
        p->in.is_real = p->kind == TN_FFT_REAL_TO_COMPLEX;
        p->out.is_real = p->kind == TN_FFT_COMPLEX_TO_REAL;
        if (plan)
            p->split = plan->length[d].split;
        else
            tni_fft_split_make(op, d, lanes, &p->split);
        find_lines(op, in->rank - fft->dims + d, p);
        p->lanes = takes_lanes(p, lanes);
        measure(out, p, bytes);
        if (p->out.at == TNI_FFT_AT_ROOM) {
            out->room = 2 * bytes;
            for (int32_t j = 0; j < in->rank; j++)
                out->room *= in->shape[j];
        }
        out->count++;
    }
    out->cells = round_up(out->cells, 64);
    out->table = round_up(out->table, 64);
    out->stage = round_up(out->stage, 64);
    out->room = round_up(out->room, 64);
}
