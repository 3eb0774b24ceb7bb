#include "times.h"

#include "store.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts `values` in place. */
static double median_of(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_doubles);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

double tni_times_median(const double *samples, size_t rounds)
{
    double sorted[TNI_ROUNDS_MOST];
    memcpy(sorted, samples, rounds * sizeof *sorted);
    return median_of(sorted, rounds);
}

/* The noise is about three standard errors of the median. For normally distributed ratios, one is
 * 0.93 times the interquartile range, divided by the square root of their number. Sorts `ratios` in
 * place. */
static tni_times_ratio comparison_of(double *ratios, size_t count)
{
    double middle = median_of(ratios, count);
    double quartiles = ratios[count - 1 - count / 4] - ratios[count / 4];
    return (tni_times_ratio){middle, 2.8 * quartiles / sqrt((double)count)};
}

/* Rounds at one place say nothing about other places: the scatter is that of the medians of the
 * places. */
tni_times_ratio tni_times_compare(const double *slow, const double *fast, size_t rounds,
                                  size_t places)
{
    double ratios[TNI_ROUNDS_MOST], medians[TNI_ROUNDS_MOST];
    for (size_t p = 0; p < places; p++) {
        size_t count = 0;
        for (size_t i = p; i < rounds; i += places)
            ratios[count++] = slow[i] / fast[i];
        if (places == 1)
            return comparison_of(ratios, count);
        medians[p] = median_of(ratios, count);
    }
    return comparison_of(medians, places);
}

bool tni_times_resolve(const double *samples, size_t rounds, size_t places, size_t count,
                       double tie, int64_t *out_ns)
{
    bool is_clear = true;
    double medians[TNI_CANDIDATES_MOST];
    for (size_t i = 0; i < count; i++) {
        medians[i] = tni_times_median(samples + i * rounds, rounds);
        out_ns[i] = 0;
    }
    for (size_t settled = 0; settled < count;) {
        size_t first = count;
        for (size_t i = 0; i < count; i++) {
            if (out_ns[i] == 0 && (first == count || medians[i] < medians[first]))
                first = i;
        }
        int64_t ns = (int64_t)(medians[first] + 0.5);
        for (size_t i = 0; i < count; i++) {
            if (out_ns[i] != 0)
                continue;
            tni_times_ratio c =
                tni_times_compare(samples + i * rounds, samples + first * rounds, rounds, places);
            double beyond = c.ratio - 1;
            bool near = beyond <= tie, within = beyond <= c.noise;
            is_clear = is_clear && (near ? c.noise <= tie : !within);
            if (i != first && !near && !within)
                continue;
            out_ns[i] = ns > 0 ? ns : 1;
            settled++;
        }
    }
    return is_clear;
}
