/* Makes the tables of lengths. */
#include "fft_scheme.h"

#include <math.h>

typedef struct number {
    double re, im;
} number;

/* exp(-2 pi i k / n) for 0 <= k. The angle is reduced to at most pi / 4 in integers. */
static number root(int64_t k, int64_t n)
{
    k %= n;
    const int64_t quarters = (8 * k / n + 1) / 2, rest = 4 * k - quarters * n; /* in 1 / 4 n */
    const double angle = 1.5707963267948966192 * (double)rest / (double)n;
    const double c = cos(angle), s = sin(angle);
    switch (quarters & 3) {
    case 0: return (number){c, -s};
    case 1: return (number){-s, -c};
    case 2: return (number){-c, s};
    default: return (number){s, c};
    }
}

/* A plan that is being made. */
typedef struct maker {
    tni_fft_plan *plan;
    const tni_fft_machine *machine;
    int32_t lanes;
    bool failed;
} maker;

enum { TABLES_MOST = TN_FFT_DIMS_MAX * (3 * 2 * TNI_FFT_PASSES + 8) };

static void *allocate_table(maker *m, int64_t count)
{
    tni_fft_plan *plan = m->plan;
    const size_t bytes = (size_t)(count > 0 ? count : 1) * (plan->wide ? 16 : 8);
    void *made = m->failed ? NULL : plan->host->alloc(plan->host->self, bytes, 64);
    m->failed = !made;
    if (!made)
        return NULL;
    plan->tables[plan->count++] = made;
    plan->bytes += bytes;
    return made;
}

static void put(const maker *m, void *table, int64_t at, number x)
{
    if (m->plan->wide) {
        ((double *)table)[2 * at] = x.re;
        ((double *)table)[2 * at + 1] = x.im;
    } else {
        ((float *)table)[2 * at] = (float)x.re;
        ((float *)table)[2 * at + 1] = (float)x.im;
    }
}

/* The powers of two by passes of radix 8 and 4, or 4 alone, then the odd primes. */
static void choose_radices(const maker *m, tni_fft_core *core)
{
    int64_t n = core->n, twos = 0;
    core->count = 0;
    for (int64_t p = 3; p <= TNI_FFT_PRIME_MOST; p += 2) {
        for (; n % p == 0; n /= p)
            core->radix[core->count++] = (int32_t)p;
    }
    for (; n > 1; n /= 2)
        twos++;
    while (twos > 0) {
        const bool eight = m->machine->many_registers ? twos == 3 || twos >= 5 : twos == 3;
        const int32_t bits = eight ? 3 : twos >= 2 ? 2 : 1;
        core->radix[core->count++] = 1 << bits;
        twos -= bits;
    }
}

static void make_core(maker *m, int64_t n, tni_fft_core *core)
{
    core->n = n;
    choose_radices(m, core);
    for (int32_t i = 0, left = (int32_t)n; i < core->count; i++) {
        const int32_t radix = core->radix[i], rest = left / radix;
        void *turns = allocate_table(m, (int64_t)rest * (radix - 1));
        void *roots = allocate_table(m, radix);
        if (m->failed)
            return;
        for (int64_t p = 0; p < rest; p++) {
            for (int64_t k = 1; k < radix; k++)
                put(m, turns, p * (radix - 1) + k - 1, root(p * k, left));
        }
        for (int64_t k = 0; k < radix; k++)
            put(m, roots, k, root(k, radix));
        core->turns[i] = turns;
        core->roots[i] = roots;
        left = rest;
    }
}

/* The factors between the columns and the rows. */
static void make_turns(maker *m, tni_fft_length *length)
{
    const tni_fft_split *s = &length->split;
    const int64_t groups = (s->n2 + m->lanes - 1) / m->lanes;
    void *lane = allocate_table(m, s->n1 * m->lanes), *group = allocate_table(m, s->n1 * groups);
    if (m->failed)
        return;
    for (int64_t k = 0; k < s->n1; k++) {
        for (int64_t l = 0; l < m->lanes; l++) {
            const number w = root(k * l, s->m);
            const int64_t at = 2 * k * m->lanes + l;
            if (m->plan->wide)
                ((double *)lane)[at] = w.re, ((double *)lane)[at + m->lanes] = w.im;
            else
                ((float *)lane)[at] = (float)w.re, ((float *)lane)[at + m->lanes] = (float)w.im;
        }
        for (int64_t g = 0; g < groups; g++)
            put(m, group, k * groups + g, root(k * g * m->lanes, s->m));
    }
    length->lane_turns = lane;
    length->group_turns = group;
}

/* Transforms n numbers by the kernel itself, in double, for the chirp's spectrum; n is smooth. */
static void transform(maker *m, int64_t n, number *in, number *out)
{
    const tn_host *host = m->plan->host;
    tn_op *op = m->failed ? NULL : host->alloc(host->self, sizeof *op, 64);
    m->failed = !op;
    if (!op)
        return;
    memset(op, 0, sizeof *op);
    op->kind = TN_OP_FFT;
    op->count = TN_FFT_OPERANDS;
    for (int32_t i = 0; i < TN_FFT_OPERANDS; i++)
        op->operand[i] = (tn_layout){
            .dtype = TN_C128, .rank = 1, .shape = {n}, .stride = {1}, .alignment = sizeof(double)};
    *TN_PARAMS_MUTABLE(op, fft) =
        (tn_fft_op){.dims = 1, .length = {n}, .points = n, .batch = 1, .scale = 1};
    void *data[] = {in, out}, *plan = NULL, *memory = NULL;
    const tn_run run = {
        .struct_size = sizeof run, .op = op, .data = data, .host = host, .threads = 1};
    uint64_t bytes;
    m->failed = tni_fft_plan_make(&run, m->machine, &plan, &bytes, NULL) != TN_OK || !plan;
    if (!m->failed) {
        tni_fft_scheme scheme;
        tni_fft_scheme_make(op, m->machine, plan, &scheme);
        const int64_t slice = tni_fft_slice_bytes(&scheme);
        memory = host->alloc(host->self, (size_t)(scheme.room + slice), 64);
        m->failed = !memory;
        const tni_fft_work work = {.run = &run,
                                   .scheme = &scheme,
                                   .plan = plan,
                                   .slices = 1,
                                   .room = memory,
                                   .memory = memory ? (char *)memory + scheme.room : NULL};
        if (memory)
            m->machine->f64(&work);
        tni_fft_plan_release(&run, plan);
    }
    if (memory)
        host->release(host->self, memory);
    host->release(host->self, op);
}

static void make_chirp(maker *m, tni_fft_length *length)
{
    const tni_fft_split *s = &length->split;
    const tn_host *host = m->plan->host;
    void *chirp = allocate_table(m, s->n), *spectrum = allocate_table(m, s->m);
    number *room =
        m->failed ? NULL : host->alloc(host->self, 2 * (size_t)s->m * sizeof(number), 64);
    m->failed = !room;
    if (!room)
        return;
    number *mirror = room, *out = room + s->m;
    memset(mirror, 0, (size_t)s->m * sizeof *mirror);
    for (int64_t j = 0; j < s->n; j++) {
        const number x =
            root((int64_t)((uint64_t)j * (uint64_t)j % (2 * (uint64_t)s->n)), 2 * s->n);
        put(m, chirp, j, x);
        mirror[j] = mirror[j > 0 ? s->m - j : 0] = (number){x.re, -x.im};
    }
    transform(m, s->m, mirror, out);
    for (int64_t k = 0; k < s->m && !m->failed; k++)
        put(m, spectrum, k, (number){out[k].re / (double)s->m, out[k].im / (double)s->m});
    host->release(host->self, room);
    length->chirp = chirp;
    length->spectrum = spectrum;
}

static void make_length(maker *m, tni_fft_length *length)
{
    const tni_fft_split *s = &length->split;
    if (s->m <= TNI_FFT_LANES_MOST)
        make_core(m, s->m, &length->whole);
    if (s->n1) {
        make_core(m, s->n1, &length->first);
        make_core(m, s->n2, &length->second);
        make_turns(m, length);
    }
    if (s->chirps)
        make_chirp(m, length);
    const int64_t halves_count = s->n / 2 + 1 + m->lanes;
    void *halves = s->halved ? allocate_table(m, halves_count) : NULL;
    for (int64_t k = 0; k < halves_count && halves; k++)
        put(m, halves, k, root(k, 2 * s->n));
    length->halves = halves;
}

void tni_fft_plan_release(const tn_run *run, void *made)
{
    tni_fft_plan *plan = made;
    (void)run;
    for (int32_t i = 0; i < plan->count; i++)
        plan->host->release(plan->host->self, plan->tables[i]);
    plan->host->release(plan->host->self, plan);
}

tn_status tni_fft_plan_make(const tn_run *run, const tni_fft_machine *machine, void **out,
                            uint64_t *out_bytes, tn_error *err)
{
    const tn_host *host = run->host;
    const size_t bytes = sizeof(tni_fft_plan) + TABLES_MOST * sizeof(void *);
    tni_fft_plan *plan = host->alloc(host->self, bytes, 64);
    if (!plan)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "fft", "no memory for a plan");
    memset(plan, 0, bytes);
    plan->tables = (void **)(plan + 1);
    plan->wide = tni_fft_is_wide(run->op);
    plan->host = host;
    plan->bytes = bytes;
    maker m = {.plan = plan, .machine = machine, .lanes = tni_fft_lanes(machine, plan->wide)};
    for (int32_t d = 0; d < TN_PARAMS(run->op, fft)->dims && !m.failed; d++) {
        tni_fft_split_make(run->op, d, m.lanes, &plan->length[d].split);
        make_length(&m, &plan->length[d]);
    }
    if (m.failed) {
        tni_fft_plan_release(run, plan);
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "fft", "no memory for the factors of a plan");
    }
    *out = plan;
    *out_bytes = plan->bytes;
    return TN_OK;
}
