/* The passes of fft for one instruction set and f32 or f64: fft_plan.h has the two ways. */
#include "fft_lanes.h"

enum { TOGETHER = 16384 }; /* numbers of a line that several threads transform together */

/* A pass that is run. */
typedef struct job {
    const tni_fft_work *work;
    const tni_fft_pass *pass;
    const tni_fft_length *length;
    view in, out;
    change load, store;
    int64_t tasks;
} job;

static view view_of(const job *j, const tni_fft_side *side)
{
    const tn_run *run = j->work->run;
    const bool halved = j->pass->split.halved;
    const int64_t step = side->step;
    void *base = side->at == TNI_FFT_AT_ROOM
                     ? j->work->room
                     : tn_operand(run, side->at == TNI_FFT_AT_IN ? TN_FFT_IN : TN_FFT_OUT);
    return (view){.base = base,
                  .side = side,
                  .step = side->is_real && !halved ? step : 2 * step,
                  .im = side->is_real ? step : 1,
                  .single = side->is_real && !halved,
                  .unit = side->is_real ? 1 : 2};
}

/* The first number of a line. */
static int64_t offset_of(const job *j, const view *v, int64_t line)
{
    const tni_fft_pass *p = j->pass;
    int64_t offset = 0;
    for (int32_t d = p->rank - 1; d > 0; d--) {
        offset += line % p->shape[d] * v->side->stride[d];
        line /= p->shape[d];
    }
    return (offset + (p->rank > 0 ? line * v->side->stride[0] : 0)) * v->unit;
}

/* How many numbers the sides of a pass have: pairs of real ones count as one. */
static int64_t numbers_of(const job *j, const tni_fft_side *side)
{
    const tni_fft_split *s = &j->pass->split;
    if (j->pass->kind == TN_FFT_COMPLEX || side->is_real)
        return s->n;
    return s->halved ? s->n + 1 : s->n / 2 + 1;
}

static char *slice_of(const job *j, int64_t index)
{
    return j->work->memory + index * tni_fft_slice_bytes(j->work->scheme);
}

/* As many lines as a vector has lanes, from number `group` times that on. */
static void transform_group(const job *j, int64_t group, cell *a, cell *b)
{
    const tni_fft_pass *p = j->pass;
    const tni_fft_split *s = &p->split;
    const int64_t first = group * WIDTH, left = p->lines - first,
                  count = left < WIDTH ? left : WIDTH;
    int64_t from[WIDTH], to[WIDTH];
    for (int64_t l = 0; l < WIDTH; l++) {
        from[l] = offset_of(j, &j->in, first + (l < count ? l : 0));
        to[l] = offset_of(j, &j->out, first + (l < count ? l : 0));
    }
    load_cells(&j->in, from, count, numbers_of(j, &p->in), b);
    if (p->kind == TN_FFT_COMPLEX_TO_REAL && s->halved)
        join_cells(b, s->n, j->length->halves, p->mirror ? -1 : 1);
    else if (p->kind == TN_FFT_COMPLEX_TO_REAL)
        mirror_cells(b, s->n, p->mirror ? -1 : 1);
    else if (j->load.exchange) {
        for (int64_t i = 0; i < s->n; i++)
            b[i] = exchanged(b[i], true);
    }
    cell *x = transform_cells(j->length, a, b);
    if (p->kind == TN_FFT_REAL_TO_COMPLEX && s->halved)
        separate_cells(x, s->n, j->length->halves);
    store_cells(&j->out, to, count, numbers_of(j, &p->out), &j->store, x);
}

static void lanes_task(void *user, int64_t index)
{
    const job *j = user;
    const int64_t groups = (j->pass->lines + WIDTH - 1) / WIDTH;
    cell *a = (cell *)(void *)slice_of(j, index), *b = a + j->pass->split.m + 1;
    for (int64_t g = index * groups / j->tasks; g < (index + 1) * groups / j->tasks; g++)
        transform_group(j, g, a, b);
}

/* One line of contiguous complex numbers, as columns and rows. */
typedef struct line {
    const job *job;
    const real *in;
    real *out;
    change load, store;
    cell *table; /* [groups of n1][n2 rounded up], each cell a group of n1 */
    int64_t tasks;
} line;

static int64_t groups_of(int64_t n)
{
    return (n + WIDTH - 1) / WIDTH;
}

/* Group `g` of the columns: loads, transforms, multiplies and transposes them. */
static void transform_columns(const line *it, int64_t g, cell *a, cell *b)
{
    const tni_fft_length *length = it->job->length;
    const int64_t n1 = length->split.n1, n2 = length->split.n2, groups = groups_of(n2);
    const int64_t left = n2 - g * WIDTH, row = groups * WIDTH;
    const real *from = it->in + 2 * g * WIDTH, *lane = length->lane_turns;
    const real *group = (const real *)length->group_turns + 2 * g;
    for (int64_t k = 0; k < n1 && left >= WIDTH; k++, from += 2 * n2)
        b[k] = exchanged(load_complex(from), it->load.exchange);
    for (int64_t k = 0; k < n1 && left == WIDTH / 2; k++, from += 2 * n2)
        b[k] = exchanged(load_half(from), it->load.exchange);
    for (int64_t k = 0; k < n1 && left < WIDTH && left != WIDTH / 2; k++, from += 2 * n2) {
        real some[2 * WIDTH] = {0};
        memcpy(some, from, (size_t)left * 2 * sizeof(real));
        b[k] = exchanged(load_complex(some), it->load.exchange);
    }
    const cell *x = run_core(&length->first, b, a, b);
    for (int64_t k = 0; k < n1; k += WIDTH) {
        cell *to = it->table + k / WIDTH * row + g * WIDTH;
        vec re[WIDTH], im[WIDTH];
        UNROLLED for (int l = 0; l < WIDTH; l++)
        {
            const int64_t i = k + l < n1 ? k + l : k;
            const real *w = lane + 2 * i * WIDTH;
            const cell y = times_vector(x[i], load_vector(w), load_vector(w + WIDTH));
            const cell z = g > 0 ? times(y, group + 2 * i * groups) : y;
            re[l] = z.re, im[l] = z.im;
        }
        OF(transpose)(re);
        OF(transpose)(im);
        UNROLLED for (int l = 0; l < WIDTH; l++) to[l] = (cell){re[l], im[l]};
    }
}

static void transform_rows(const line *it, int64_t h, cell *a, cell *b)
{
    const tni_fft_length *length = it->job->length;
    const int64_t n1 = length->split.n1, n2 = length->split.n2, left = n1 - h * WIDTH;
    const cell *x = run_core(&length->second, it->table + h * groups_of(n2) * WIDTH, a, b);
    real *to = it->out + 2 * h * WIDTH;
    for (int64_t k = 0; k < n2; k++, to += 2 * n1) {
        const cell y = changed(x[k], &it->store);
        if (left >= WIDTH) {
            store_complex(to, y);
        } else if (left == WIDTH / 2) {
            store_vector(to, MIX(INDEX, y.re, y.im, LOW));
        } else {
            real some[2 * WIDTH];
            store_complex(some, y);
            memcpy(to, some, (size_t)left * 2 * sizeof(real));
        }
    }
}

static cell *other_cells(const line *it, cell *a)
{
    const tni_fft_split *s = &it->job->length->split;
    return a + groups_of(s->n1 > s->n2 ? s->n1 : s->n2) * WIDTH;
}

static void columns_task(void *user, int64_t index)
{
    const line *it = user;
    const int64_t groups = groups_of(it->job->length->split.n2);
    cell *a = (cell *)(void *)slice_of(it->job, index), *b = other_cells(it, a);
    for (int64_t g = index * groups / it->tasks; g < (index + 1) * groups / it->tasks; g++)
        transform_columns(it, g, a, b);
}

static void rows_task(void *user, int64_t index)
{
    const line *it = user;
    const int64_t groups = groups_of(it->job->length->split.n1);
    cell *a = (cell *)(void *)slice_of(it->job, index), *b = other_cells(it, a);
    for (int64_t h = index * groups / it->tasks; h < (index + 1) * groups / it->tasks; h++)
        transform_rows(it, h, a, b);
}

/* Transforms a line in the memory of a slice, or, if `slice` is -1, with all slices' threads. */
static void transform_line(const job *j, int64_t slice, const real *in, real *out,
                           const change *load, const change *store)
{
    const tni_fft_split *s = &j->length->split;
    char *memory = slice_of(j, slice < 0 ? 0 : slice);
    line it = {.job = j, .in = in, .out = out, .load = *load, .store = *store};
    it.table = (cell *)(void *)(memory + j->work->scheme->cells);
    if (slice < 0) {
        const tn_host *host = j->work->run->host;
        it.tasks = j->work->slices;
        host->parallel_for(host->self, it.tasks, columns_task, &it);
        host->parallel_for(host->self, it.tasks, rows_task, &it);
        return;
    }
    cell *a = (cell *)(void *)memory, *b = other_cells(&it, a);
    for (int64_t g = 0; g < groups_of(s->n2); g++)
        transform_columns(&it, g, a, b);
    for (int64_t h = 0; h < groups_of(s->n1); h++)
        transform_rows(&it, h, a, b);
}

/* to = x times `by`, number by number; x may be `to`. */
static void multiply(const real *x, const real *by, int64_t n, const change *load,
                     const change *store, real *to)
{
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH) {
        const cell a = exchanged(load_complex(x + 2 * i), load->exchange);
        const cell w = load_complex(by + 2 * i);
        store_complex(to + 2 * i, changed(times_vector(a, w.re, w.im), store));
    }
    for (; i < n; i++) {
        const real re = x[2 * i + load->exchange], im = x[2 * i + !load->exchange];
        const real product[] = {re * by[2 * i] - im * by[2 * i + 1],
                                re * by[2 * i + 1] + im * by[2 * i]};
        to[2 * i] = product[store->exchange] * store->re;
        to[2 * i + 1] = product[!store->exchange] * store->im;
    }
}

static const change none = {false, 1, 1}, exchange = {true, 1, 1};

/* Transforms n contiguous numbers. With a chirp, by way of the stage; any of the three may be the
 * same memory. */
static void transform_numbers(const job *j, int64_t slice, const real *in, real *stage, real *out,
                              const change *load, const change *store)
{
    const tni_fft_split *s = &j->length->split;
    if (!s->chirps) {
        transform_line(j, slice, in, out, load, store);
        return;
    }
    multiply(in, j->length->chirp, s->n, load, &none, stage);
    memset(stage + 2 * s->n, 0, (size_t)(s->m - s->n) * 2 * sizeof(real));
    transform_line(j, slice, stage, stage, &none, &none);
    multiply(stage, j->length->spectrum, s->m, &none, &none, stage);
    transform_line(j, slice, stage, stage, &exchange, &exchange);
    multiply(stage, j->length->chirp, s->n, &none, store, out);
}

INLINE cell reversed(cell x)
{
    return (cell){MIX(INDEX, x.re, x.re, REVERSED), MIX(INDEX, x.im, x.im, REVERSED)};
}

/* Calls pair(low, high, w) for the numbers k and h - k, 1 <= k <= h / 2: cells of WIDTH of them, in
 * reverse for the latter, or of one. `high` is low for k = h / 2. The last two cells may have numbers in
 * common, which are the same in both. x may be `to`: no cell has a number that was written before. */
typedef void pair_cells(cell *low, cell *high, cell w, const change *how);

INLINE void for_pairs(pair_cells *pair, const real *x, int64_t h, const real *w, const change *how,
                      real *to)
{
    int64_t k = 1;
    for (; 2 * k + WIDTH - 1 <= h; k += WIDTH) {
        const int64_t back = h - k - WIDTH + 1;
        cell low = load_complex(x + 2 * k), high = reversed(load_complex(x + 2 * back));
        pair(&low, &high, load_complex(w + 2 * k), how);
        store_complex(to + 2 * k, low);
        store_complex(to + 2 * back, reversed(high));
    }
    for (; 2 * k <= h; k++) {
        const real *a = x + 2 * k, *b = x + 2 * (h - k), *at = w + 2 * k;
        cell low = {OF(splat)(a[0]), OF(splat)(a[1])}, high = {OF(splat)(b[0]), OF(splat)(b[1])};
        pair(&low, &high, (cell){OF(splat)(at[0]), OF(splat)(at[1])}, how);
        to[2 * (h - k)] = high.re[0], to[2 * (h - k) + 1] = high.im[0];
        to[2 * k] = low.re[0], to[2 * k + 1] = low.im[0];
    }
}

/* As separate_cells; `how` has the factors of real and imaginary parts, halved. */
INLINE void separate_pair(cell *low, cell *high, cell w, const change *how)
{
    const cell b = {high->re, -high->im}, sum = add(*low, b);
    const cell turned = times_vector(turn_back(subtract(*low, b)), w.re, w.im);
    const vec re = OF(splat)(how->re), im = OF(splat)(how->im);
    *low = (cell){(sum.re + turned.re) * re, (sum.im + turned.im) * im};
    *high = (cell){(sum.re - turned.re) * re, (turned.im - sum.im) * im};
}

static void separate(const real *x, int64_t h, const real *w, const change *store, real *to)
{
    const change halved = {false, store->re / 2, store->im / 2};
    const real re = x[0], im = x[1];
    for_pairs(separate_pair, x, h, w, &halved, to);
    to[0] = (re + im) * store->re, to[1] = 0;
    to[2 * h] = (re - im) * store->re, to[2 * h + 1] = 0;
}

/* As join_cells; how->im is the sign. */
INLINE void join_pair(cell *low, cell *high, cell w, const change *how)
{
    const vec sign = OF(splat)(how->im);
    const cell a = {low->re, low->im * sign}, b = {high->re, -high->im * sign};
    const cell sum = add(a, b), turned = times_vector(subtract(a, b), w.re, -w.im);
    *low = (cell){sum.im + turned.re, sum.re - turned.im};
    *high = (cell){turned.re - sum.im, sum.re + turned.im};
}

static void join(const real *x, int64_t h, const real *w, real sign, real *to)
{
    const change how = {false, 1, sign};
    const real re = x[0], last = x[2 * h];
    for_pairs(join_pair, x, h, w, &how, to);
    to[0] = re - last, to[1] = re + last;
}

/* As mirror_cells. */
static void mirror(real *x, int64_t n, real sign)
{
    for (int64_t k = n / 2; k > 0; k--) {
        const real re = x[2 * k], im = x[2 * k + 1] * sign;
        x[2 * k] = im, x[2 * k + 1] = re;
        x[2 * (n - k)] = -im, x[2 * (n - k) + 1] = re;
    }
    x[1] = x[0];
    x[0] = 0;
}

/* Copies `count` lines from number `first` on to stages, number by number if the lines are closer
 * to each other than their numbers. */
static void gather(const job *j, int64_t first, int64_t count, real *stage)
{
    const view *v = &j->in;
    const int64_t n = numbers_of(j, &j->pass->in),
                  length = 2 * tni_fft_stage_numbers(&j->pass->split);
    const int64_t piece = count > 1 ? 16 : n;
    const int re_at = j->load.exchange, im_at = !j->load.exchange;
    for (int64_t begin = 0; begin < n; begin += piece) {
        const int64_t end = begin + piece < n ? begin + piece : n;
        for (int64_t l = 0; l < count; l++) {
            const real *from = v->base + offset_of(j, v, first + l);
            real *to = stage + l * length;
            for (int64_t i = begin; i < end; i++) {
                to[2 * i + re_at] = from[i * v->step];
                to[2 * i + im_at] = v->single ? 0 : from[i * v->step + v->im];
            }
        }
    }
}

static void scatter(const job *j, int64_t first, int64_t count, const real *stage)
{
    const view *v = &j->out;
    const int64_t n = numbers_of(j, &j->pass->out),
                  length = 2 * tni_fft_stage_numbers(&j->pass->split);
    const int64_t piece = count > 1 ? 16 : n;
    const int re_at = j->store.exchange, im_at = !j->store.exchange;
    for (int64_t begin = 0; begin < n; begin += piece) {
        const int64_t end = begin + piece < n ? begin + piece : n;
        for (int64_t l = 0; l < count; l++) {
            real *to = v->base + offset_of(j, v, first + l);
            const real *from = stage + l * length;
            for (int64_t i = begin; i < end; i++) {
                to[i * v->step] = from[2 * i + re_at] * j->store.re;
                if (!v->single)
                    to[i * v->step + v->im] = from[2 * i + im_at] * j->store.im;
            }
        }
    }
}

/* Line number `l`, in a stage if its numbers are not contiguous: `copied` says on which sides. Real
 * numbers are contiguous as pairs. */
static void transform_staged(const job *j, int64_t slice, int64_t l, real *stage,
                             const bool *copied)
{
    const tni_fft_pass *p = j->pass;
    const tni_fft_split *s = &p->split;
    const real *in = copied[0] ? stage : j->in.base + offset_of(j, &j->in, l);
    real *out = copied[1] ? stage : j->out.base + offset_of(j, &j->out, l);
    const change *load = copied[0] ? &none : &j->load, *store = copied[1] ? &none : &j->store;
    const real sign = p->mirror ? -1 : 1;
    if (p->kind == TN_FFT_REAL_TO_COMPLEX) {
        transform_numbers(j, slice, in, stage, stage, load, &none);
        if (s->halved)
            separate(stage, s->n, j->length->halves, store, out);
        return;
    }
    if (p->kind == TN_FFT_COMPLEX_TO_REAL) {
        if (s->halved)
            join(in, s->n, j->length->halves, sign, stage);
        else
            mirror(stage, s->n, sign);
        in = stage;
    }
    transform_numbers(j, slice, in, stage, out, load, store);
}

/* Lines `first` to first + count - 1. */
static void transform_lines(const job *j, int64_t slice, int64_t first, int64_t count)
{
    const tni_fft_pass *p = j->pass;
    const bool odd = p->kind != TN_FFT_COMPLEX && !p->split.halved;
    const bool copied[] = {odd || p->in.step != 1, odd || p->out.step != 1};
    char *memory = slice_of(j, slice < 0 ? 0 : slice);
    real *stage = (real *)(void *)(memory + j->work->scheme->cells + j->work->scheme->table);
    if (copied[0])
        gather(j, first, count, stage);
    for (int64_t l = 0; l < count; l++)
        transform_staged(j, slice, first + l,
                         stage + 2 * l * tni_fft_stage_numbers(&j->pass->split), copied);
    if (copied[1])
        scatter(j, first, count, stage);
}

static void lines_task(void *user, int64_t index)
{
    const job *j = user;
    const int64_t block = j->pass->staged > 0 ? j->pass->staged : 1;
    const int64_t end = (index + 1) * j->pass->lines / j->tasks;
    for (int64_t first = index * j->pass->lines / j->tasks; first < end; first += block)
        transform_lines(j, index, first, end - first < block ? end - first : block);
}

/* Real and imaginary parts are exchanged on both sides of an inverse transform. Real numbers that
 * come out of one are in the imaginary parts. */
static void find_changes(job *j)
{
    const tni_fft_pass *p = j->pass;
    const real scale = (real)p->scale;
    j->load = (change){p->inverse, 1, 1};
    j->store = (change){p->inverse || p->kind == TN_FFT_COMPLEX_TO_REAL, scale,
                        p->mirror && p->kind == TN_FFT_REAL_TO_COMPLEX ? -scale : scale};
}

static void run_pass(const tni_fft_work *work, const tni_fft_pass *p)
{
    enum { SMALL = 16384 }; /* numbers that one thread transforms sooner */
    const tn_host *host = work->run->host;
    job j = {.work = work, .pass = p, .length = &work->plan->length[p->dim]};
    j.in = view_of(&j, &p->in);
    j.out = view_of(&j, &p->out);
    find_changes(&j);
    const bool small = p->lines * p->split.m < SMALL;
    const int64_t units = p->lanes ? (p->lines + WIDTH - 1) / WIDTH : p->lines;
    if (!p->lanes && p->lines < work->slices && p->split.m >= TOGETHER) {
        for (int64_t l = 0; l < p->lines; l++)
            transform_lines(&j, -1, l, 1);
        return;
    }
    j.tasks = small ? 1 : work->slices < units ? work->slices : units;
    if (j.tasks > 1)
        host->parallel_for(host->self, j.tasks, p->lanes ? lanes_task : lines_task, &j);
    else if (p->lanes)
        lanes_task(&j, 0);
    else
        lines_task(&j, 0);
}

#define NAME__(dtype, isa) tni_cpu_fft_##dtype##_##isa
#define NAME_(dtype, isa)  NAME__(dtype, isa)
#if defined(REAL_F32)
#define NAME NAME_(f32, ISA)
#else
#define NAME NAME_(f64, ISA)
#endif

tni_fft_compute NAME;

void NAME(const tni_fft_work *work)
{
    for (int32_t i = 0; i < work->scheme->count; i++)
        run_pass(work, &work->scheme->pass[i]);
}
