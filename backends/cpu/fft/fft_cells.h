/* Cells and cores: transforms of as many lines at once as a vector has lanes. Parameter: REAL_F32,
 * for float instead of double. */
#ifndef TENON_BACKENDS_CPU_FFT_CELLS_H
#define TENON_BACKENDS_CPU_FFT_CELLS_H

#include "../shared/transpose.h"
#include "fft_plan.h"

#if defined(REAL_F32)
typedef loose_f32 real; /* operands may lie anywhere */
typedef vf vec;
#define WIDTH    LANES
#define OF(name) name##_f32
#define INDEX    vi
#else
typedef loose_f64 real;
typedef vd vec;
#define WIDTH    DOUBLES
#define OF(name) name##_f64
#define INDEX    vl
#endif

/* A complex number of each line. */
typedef struct cell {
    vec re, im;
} cell;

INLINE cell add(cell a, cell b)
{
    return (cell){a.re + b.re, a.im + b.im};
}

INLINE cell subtract(cell a, cell b)
{
    return (cell){a.re - b.re, a.im - b.im};
}

/* a times -i */
INLINE cell turn_back(cell a)
{
    return (cell){a.im, -a.re};
}

INLINE cell times_vector(cell a, vec re, vec im)
{
    return (cell){OF(fma)(a.re, re, -(a.im * im)), OF(fma)(a.re, im, a.im * re)};
}

/* a times the number at `w`. */
INLINE cell times(cell a, const real *w)
{
    return times_vector(a, OF(splat)(w[0]), OF(splat)(w[1]));
}

INLINE void butterfly_2(cell *b)
{
    const cell x = b[0];
    b[0] = add(x, b[1]);
    b[1] = subtract(x, b[1]);
}

INLINE void butterfly_4(cell *b)
{
    const cell s = add(b[0], b[2]), d = subtract(b[0], b[2]);
    const cell t = add(b[1], b[3]), e = turn_back(subtract(b[1], b[3]));
    b[0] = add(s, t);
    b[1] = add(d, e);
    b[2] = subtract(s, t);
    b[3] = subtract(d, e);
}

INLINE void butterfly_8(cell *b)
{
    const real half = (real)0.70710678118654752440;
    cell even[4] = {b[0], b[2], b[4], b[6]}, odd[4] = {b[1], b[3], b[5], b[7]};
    butterfly_4(even);
    butterfly_4(odd);
    const cell x = odd[1], y = odd[3];
    odd[1] = (cell){(x.re + x.im) * half, (x.im - x.re) * half};
    odd[2] = turn_back(odd[2]);
    odd[3] = (cell){(y.im - y.re) * half, -(y.re + y.im) * half};
    UNROLLED for (int i = 0; i < 4; i++)
    {
        b[i] = add(even[i], odd[i]);
        b[i + 4] = subtract(even[i], odd[i]);
    }
}

/* For an odd prime p, with its roots: cosines apply to sums, sines to differences of opposite
 * numbers. */
INLINE void butterfly_odd(cell *b, int p, const real *roots)
{
    cell sum[TNI_FFT_PRIME_MOST / 2], difference[TNI_FFT_PRIME_MOST / 2], first = b[0];
    const int half = (p - 1) / 2;
    UNROLLED for (int j = 0; j < half; j++)
    {
        sum[j] = add(b[j + 1], b[p - 1 - j]);
        difference[j] = subtract(b[j + 1], b[p - 1 - j]);
        b[0] = add(b[0], sum[j]);
    }
    UNROLLED for (int k = 1; k <= half; k++)
    {
        cell a = first, d = {{0}, {0}};
        UNROLLED for (int j = 0; j < half; j++)
        {
            const vec c = OF(splat)(roots[2 * ((j + 1) * k % p)]);
            const vec s = OF(splat)(roots[2 * ((j + 1) * k % p) + 1]); /* of the negative angle */
            a = (cell){OF(fma)(sum[j].re, c, a.re), OF(fma)(sum[j].im, c, a.im)};
            d = (cell){OF(fma)(difference[j].re, s, d.re), OF(fma)(difference[j].im, s, d.im)};
        }
        const cell e = turn_back(d);
        b[k] = subtract(a, e);
        b[p - k] = add(a, e);
    }
}

INLINE void butterfly(cell *b, int radix, const real *roots)
{
    if (radix == 8)
        butterfly_8(b);
    else if (radix == 4)
        butterfly_4(b);
    else if (radix == 2)
        butterfly_2(b);
    else
        butterfly_odd(b, radix, roots);
}

/* One pass (Stockham): `step` transforms side by side, each of radix * rest cells. */
INLINE void pass_body(int radix, const cell *x, cell *y, int64_t rest, int64_t step,
                      const real *turns, const real *roots)
{
    for (int64_t p = 0; p < rest; p++) {
        const real *w = turns + p * 2 * (radix - 1);
        for (int64_t q = 0; q < step; q++) {
            const cell *from = x + q + step * p;
            cell *to = y + q + step * radix * p, b[TNI_FFT_PRIME_MOST + 1];
            UNROLLED for (int j = 0; j < radix; j++) b[j] = from[step * rest * j];
            butterfly(b, radix, roots);
            to[0] = b[0];
            UNROLLED for (int k = 1; k < radix; k++) to[step * k] =
                p > 0 ? times(b[k], w + 2 * (k - 1)) : b[k];
        }
    }
}

#define PASS(radix)                                                              \
    static void pass_##radix(const cell *x, cell *y, int64_t rest, int64_t step, \
                             const void *turns, const void *roots)               \
    {                                                                            \
        pass_body(radix, x, y, rest, step, turns, roots);                        \
    }
PASS(2)
PASS(3)
PASS(4)
PASS(5)
PASS(7)
PASS(8)
PASS(11)
PASS(13)
#undef PASS

/* Not unrolled: for the other primes. */
static void pass_prime(int32_t p, const cell *x, cell *y, int64_t rest, int64_t step,
                       const real *turns, const real *roots)
{
    cell b[TNI_FFT_PRIME_MOST], sum[TNI_FFT_PRIME_MOST / 2], difference[TNI_FFT_PRIME_MOST / 2];
    const int32_t half = (p - 1) / 2;
    for (int64_t i = 0; i < rest * step; i++) {
        const int64_t q = i % step, row = i / step;
        const real *w = turns + row * 2 * (p - 1);
        cell *to = y + q + step * p * row;
        for (int32_t j = 0; j < p; j++)
            b[j] = x[q + step * row + step * rest * j];
        cell all = b[0];
        for (int32_t j = 0; j < half; j++) {
            sum[j] = add(b[j + 1], b[p - 1 - j]);
            difference[j] = subtract(b[j + 1], b[p - 1 - j]);
            all = add(all, sum[j]);
        }
        to[0] = all;
        for (int32_t k = 1; k <= half; k++) {
            cell a = b[0], d = {{0}, {0}};
            for (int32_t j = 0, at = 0; j < half; j++) {
                at = at + k >= p ? at + k - p : at + k;
                const vec c = OF(splat)(roots[2 * at]), s = OF(splat)(roots[2 * at + 1]);
                a = (cell){OF(fma)(sum[j].re, c, a.re), OF(fma)(sum[j].im, c, a.im)};
                d = (cell){OF(fma)(difference[j].re, s, d.re), OF(fma)(difference[j].im, s, d.im)};
            }
            const cell e = turn_back(d);
            to[step * k] = times(subtract(a, e), w + 2 * (k - 1));
            to[step * (p - k)] = times(add(a, e), w + 2 * (p - k - 1));
        }
    }
}

/* Transforms core->n cells. Reads x first; returns `a` or `b`, which has the result, or x itself if
 * there is no pass. x may be b. */
static cell *run_core(const tni_fft_core *core, cell *x, cell *a, cell *b)
{
    int64_t left = core->n, step = 1;
    for (int32_t i = 0; i < core->count; i++) {
        const int32_t radix = core->radix[i];
        const void *turns = core->turns[i], *roots = core->roots[i];
        cell *y = x == a ? b : a;
        left /= radix;
        switch (radix) {
        case 2: pass_2(x, y, left, step, turns, roots); break;
        case 3: pass_3(x, y, left, step, turns, roots); break;
        case 4: pass_4(x, y, left, step, turns, roots); break;
        case 5: pass_5(x, y, left, step, turns, roots); break;
        case 7: pass_7(x, y, left, step, turns, roots); break;
        case 8: pass_8(x, y, left, step, turns, roots); break;
        case 11: pass_11(x, y, left, step, turns, roots); break;
        case 13: pass_13(x, y, left, step, turns, roots); break;
        default: pass_prime(radix, x, y, left, step, turns, roots); break;
        }
        step *= radix;
        x = y;
    }
    return x;
}

#endif
