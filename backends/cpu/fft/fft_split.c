/* Splits lengths: which are rows and columns, which a convolution. */
#include "fft_plan.h"

#include <math.h>

static int64_t smallest_prime(int64_t n)
{
    for (int64_t p = 2; p * p <= n; p++) {
        if (n % p == 0)
            return p;
    }
    return n;
}

static bool is_smooth(int64_t n)
{
    for (int64_t p = 2; p <= TNI_FFT_PRIME_MOST; p++) {
        while (n % p == 0)
            n /= p;
    }
    return n == 1;
}

/* About the operations for each number of a core, from its prime factors. */
static double work_of_core(int64_t n)
{
    double work = 4; /* loading and storing */
    while (n > 1) {
        int64_t p = smallest_prime(n);
        work += p == 2 ? 3.5 : p == 3 ? 7 : 2 * (double)p;
        n /= p;
    }
    return work;
}

/* Takes n1 = a and n2 = b if they are the least work so far. */
static void consider_rows(int64_t a, int64_t b, int32_t lanes, double *least, tni_fft_split *s)
{
    const int64_t groups_a = (b + lanes - 1) / lanes, groups_b = (a + lanes - 1) / lanes;
    double work =
        (double)(groups_a * a) * work_of_core(a) + (double)(groups_b * b) * work_of_core(b);
    work *= 1 + 1e-4 * (double)(a > b ? a : b); /* short cores stay in the first cache */
    if (work >= *least)
        return;
    *least = work;
    s->n1 = a, s->n2 = b;
}

/* Finds the n1 and n2 that waste the fewest lanes. A smooth m of up to 2^32 always has two: the
 * larger is at most the root of m and of its largest prime, multiplied. */
static void choose_rows(int32_t lanes, tni_fft_split *s)
{
    double least = INFINITY;
    s->n1 = s->n2 = 0;
    for (int64_t a = 2, m = s->m; a <= m / a; a++) {
        if (m % a != 0)
            continue;
        consider_rows(a, m / a, lanes, &least, s);
        consider_rows(m / a, a, lanes, &least, s);
    }
}

/* The cheapest length from `least` on that has only factors 2, 3 and 5 and can be split. */
static int64_t find_smooth(int64_t least)
{
    int64_t best = 1;
    while (best < least)
        best *= 2;
    for (int64_t fives = 1; fives < best; fives *= 5) {
        for (int64_t threes = fives; threes < best; threes *= 3) {
            int64_t n = threes;
            while (n < least)
                n *= 2;
            best = n % 16 == 0 && n < best ? n : best;
        }
    }
    return best;
}

static void split_number(int64_t n, int32_t lanes, tni_fft_split *s)
{
    s->n = s->m = n;
    s->chirps = !is_smooth(n);
    if (s->chirps)
        s->m = find_smooth(2 * n - 1);
    choose_rows(lanes, s);
}

void tni_fft_split_make(const tn_op *op, int32_t d, int32_t lanes, tni_fft_split *out)
{
    const tn_fft_op *fft = TN_PARAMS(op, fft);
    const int64_t n = fft->length[d];
    out->halved = d == fft->dims - 1 && fft->kind != TN_FFT_COMPLEX && n % 2 == 0;
    split_number(out->halved ? n / 2 : n, lanes, out);
}
