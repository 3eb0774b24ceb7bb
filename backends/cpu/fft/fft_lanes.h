/* Lines as cells: reads and writes as many lines at once as a vector has lanes, wherever they lie.
 * fft_cells.h has the parameter. */
#ifndef TENON_BACKENDS_CPU_FFT_LANES_H
#define TENON_BACKENDS_CPU_FFT_LANES_H

#include "fft_cells.h"
#include "fft_scheme.h"

/* One side of a pass in memory, in units of a real number. A line of real numbers is a line of half
 * as many complex ones, or of complex ones without imaginary parts. */
typedef struct view {
    real *base;
    int64_t step; /* between the numbers of a line */
    int64_t im;   /* from a real to an imaginary part */
    bool single;  /* there are no imaginary parts */
    int64_t unit; /* of the strides between lines */
    const tni_fft_side *side;
} view;

/* How numbers are changed on their way. */
typedef struct change {
    bool exchange; /* real and imaginary parts */
    real re, im;   /* factors, after that */
} change;

#if WIDTH == 16
#define EVENS    0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODDS     1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#define REVERSED 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0
#define LOW      LOW_16
#define HIGH     HIGH_16
#elif WIDTH == 8
#define EVENS    0, 2, 4, 6, 8, 10, 12, 14
#define ODDS     1, 3, 5, 7, 9, 11, 13, 15
#define REVERSED 7, 6, 5, 4, 3, 2, 1, 0
#define LOW      LOW_8
#define HIGH     HIGH_8
#elif WIDTH == 4
#define EVENS    0, 2, 4, 6
#define ODDS     1, 3, 5, 7
#define REVERSED 3, 2, 1, 0
#define LOW      LOW_4
#define HIGH     HIGH_4
#else
#define EVENS    LOW_2
#define ODDS     HIGH_2
#define REVERSED 1, 0
#define LOW      LOW_2
#define HIGH     HIGH_2
#endif

INLINE vec load_vector(const real *from)
{
    vec v;
    memcpy(&v, from, sizeof v);
    return v;
}

INLINE void store_vector(real *to, vec v)
{
    memcpy(to, &v, sizeof v);
}

/* WIDTH complex numbers that are contiguous. */
INLINE cell load_complex(const real *from)
{
    const vec a = load_vector(from), b = load_vector(from + WIDTH);
    return (cell){MIX(INDEX, a, b, EVENS), MIX(INDEX, a, b, ODDS)};
}

/* WIDTH / 2 of them; the other half is 0. */
INLINE cell load_half(const real *from)
{
    const vec a = load_vector(from), zero = {0};
    return (cell){MIX(INDEX, a, zero, EVENS), MIX(INDEX, a, zero, ODDS)};
}

INLINE void store_complex(real *to, cell x)
{
    store_vector(to, MIX(INDEX, x.re, x.im, LOW));
    store_vector(to + WIDTH, MIX(INDEX, x.re, x.im, HIGH));
}

INLINE cell exchanged(cell x, bool exchange)
{
    return exchange ? (cell){x.im, x.re} : x;
}

INLINE cell changed(cell x, const change *how)
{
    x = exchanged(x, how->exchange);
    return (cell){x.re * OF(splat)(how->re), x.im * OF(splat)(how->im)};
}

/* Whether the lanes are neighbours in memory. */
static bool are_adjacent(const view *v, const int64_t *offset, int64_t count)
{
    for (int64_t l = 1; l < WIDTH; l++) {
        if (offset[l] - offset[l - 1] != v->unit)
            return false;
    }
    return count == WIDTH && (v->unit == 1 || v->im == 1);
}

static void load_one_by_one(const view *v, const int64_t *offset, int64_t first, int64_t n,
                            cell *to)
{
    for (int64_t l = 0; l < WIDTH; l++) {
        const real *from = v->base + offset[l];
        for (int64_t j = first; j < n; j++) {
            real *at = (real *)(void *)(to + j);
            at[l] = from[j * v->step];
            at[WIDTH + l] = v->single ? 0 : from[j * v->step + v->im];
        }
    }
}

/* Squares of WIDTH numbers of WIDTH contiguous lines. */
static int64_t load_squares(const view *v, const int64_t *offset, int64_t n, cell *to)
{
    int64_t j = 0;
    for (; j + WIDTH <= n; j += WIDTH) {
        vec re[WIDTH], im[WIDTH];
        UNROLLED for (int l = 0; l < WIDTH; l++)
        {
            const cell x = load_complex(v->base + offset[l] + 2 * j);
            re[l] = x.re, im[l] = x.im;
        }
        OF(transpose)(re);
        OF(transpose)(im);
        UNROLLED for (int l = 0; l < WIDTH; l++) to[j + l] = (cell){re[l], im[l]};
    }
    return j;
}

/* Reads n numbers of each of the lines; lanes from `count` on repeat a line. */
static void load_cells(const view *v, const int64_t *offset, int64_t count, int64_t n, cell *to)
{
    const real *from = v->base + offset[0];
    if (!are_adjacent(v, offset, count)) {
        const int64_t done = v->step == 2 && v->im == 1 ? load_squares(v, offset, n, to) : 0;
        load_one_by_one(v, offset, done, n, to);
        return;
    }
    for (int64_t j = 0; j < n && v->unit == 2; j++)
        to[j] = load_complex(from + j * v->step);
    for (int64_t j = 0; j < n && v->unit == 1; j++)
        to[j] = (cell){load_vector(from + j * v->step),
                       v->single ? (vec){0} : load_vector(from + j * v->step + v->im)};
}

static void store_one_by_one(const view *v, const int64_t *offset, int64_t count, int64_t first,
                             int64_t n, const cell *from)
{
    for (int64_t l = 0; l < count; l++) {
        real *to = v->base + offset[l];
        for (int64_t j = first; j < n; j++) {
            const real *at = (const real *)(const void *)(from + j);
            to[j * v->step] = at[l];
            if (!v->single)
                to[j * v->step + v->im] = at[WIDTH + l];
        }
    }
}

static int64_t store_squares(const view *v, const int64_t *offset, int64_t n, const cell *from)
{
    int64_t j = 0;
    for (; j + WIDTH <= n; j += WIDTH) {
        vec re[WIDTH], im[WIDTH];
        UNROLLED for (int l = 0; l < WIDTH; l++) re[l] = from[j + l].re, im[l] = from[j + l].im;
        OF(transpose)(re);
        OF(transpose)(im);
        UNROLLED for (int l = 0; l < WIDTH; l++)
            store_complex(v->base + offset[l] + 2 * j, (cell){re[l], im[l]});
    }
    return j;
}

/* Writes n numbers of the first `count` lines, changed, which the cells are too. */
static void store_cells(const view *v, const int64_t *offset, int64_t count, int64_t n,
                        const change *how, cell *from)
{
    real *to = v->base + offset[0];
    for (int64_t j = 0; j < n; j++)
        from[j] = changed(from[j], how);
    if (!are_adjacent(v, offset, count)) {
        const bool squares = v->step == 2 && v->im == 1 && count == WIDTH;
        const int64_t done = squares ? store_squares(v, offset, n, from) : 0;
        store_one_by_one(v, offset, count, done, n, from);
        return;
    }
    for (int64_t j = 0; j < n && v->unit == 2; j++)
        store_complex(to + j * v->step, from[j]);
    for (int64_t j = 0; j < n && v->unit == 1; j++) {
        store_vector(to + j * v->step, from[j].re);
        if (!v->single)
            store_vector(to + j * v->step + v->im, from[j].im);
    }
}

/* x[k], k <= h, of the spectrum of 2 h real numbers from the transform of h pairs of them: w has
 * exp(-pi i k / h). */
static void separate_cells(cell *x, int64_t h, const real *w)
{
    const vec half = OF(splat)((real)0.5);
    const cell first = x[0];
    x[0] = (cell){first.re + first.im, (vec){0}};
    x[h] = (cell){first.re - first.im, (vec){0}};
    for (int64_t k = 1; k <= h / 2; k++) {
        const cell a = x[k], b = {x[h - k].re, -x[h - k].im};
        const cell sum = add(a, b), turned = times(turn_back(subtract(a, b)), w + 2 * k);
        x[k] = (cell){(sum.re + turned.re) * half, (sum.im + turned.im) * half};
        x[h - k] = (cell){(sum.re - turned.re) * half, (turned.im - sum.im) * half};
    }
}

/* The reverse, times 2, with real and imaginary parts exchanged. `sign`, 1 or -1, is a factor of the
 * imaginary parts of x. */
static void join_cells(cell *x, int64_t h, const real *w, real sign)
{
    const cell first = x[0];
    const vec signs = OF(splat)(sign);
    x[0] = (cell){first.re - x[h].re, first.re + x[h].re};
    for (int64_t k = 1; k <= h / 2; k++) {
        const cell a = {x[k].re, x[k].im * signs}, b = {x[h - k].re, -x[h - k].im * signs};
        const real back[] = {w[2 * k], -w[2 * k + 1]};
        const cell sum = add(a, b), turned = times(subtract(a, b), back);
        x[k] = (cell){sum.im + turned.re, sum.re - turned.im};
        x[h - k] = (cell){turned.re - sum.im, sum.re + turned.im};
    }
}

/* All n numbers of a spectrum from the first half of it, exchanged. */
static void mirror_cells(cell *x, int64_t n, real sign)
{
    for (int64_t k = n / 2; k > 0; k--) {
        const cell a = {x[k].re, x[k].im * OF(splat)(sign)};
        x[k] = (cell){a.im, a.re};
        x[n - k] = (cell){-a.im, a.re};
    }
    x[0] = (cell){(vec){0}, x[0].re};
}

/* Transforms the cells in `b`; returns `a` or `b`, which has the result. */
static cell *transform_cells(const tni_fft_length *length, cell *a, cell *b)
{
    const tni_fft_split *s = &length->split;
    const real *chirp = length->chirp, *spectrum = length->spectrum;
    if (!s->chirps)
        return run_core(&length->whole, b, a, b);
    for (int64_t j = 0; j < s->m; j++)
        b[j] = j < s->n ? times(b[j], chirp + 2 * j) : (cell){{0}, {0}};
    cell *x = run_core(&length->whole, b, a, b), *y = x == a ? b : a;
    for (int64_t k = 0; k < s->m; k++)
        x[k] = exchanged(times(x[k], spectrum + 2 * k), true);
    x = run_core(&length->whole, x, y, x);
    for (int64_t j = 0; j < s->n; j++)
        x[j] = times(exchanged(x[j], true), chirp + 2 * j);
    return x;
}

#endif
