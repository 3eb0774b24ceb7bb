/* Converts samples of kernels, measured side by side, to times that show which kernels are faster
 * and which tie. tuning_time.h explains how the samples are taken and why ties are resolved. */
#ifndef TNI_POLICY_TUNING_TIMES_H
#define TNI_POLICY_TUNING_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Converts samples to times. `samples` has `rounds` samples of each kernel, one kernel after the
 * other, all above 0. The operands were at `places` places in turn; 1 <= places <= rounds <=
 * TNI_ROUNDS_MOST. Returns false if more rounds would give a clearer result. */
enum { TNI_ROUNDS_MOST = 240 };
bool tni_times_resolve(const double *samples, size_t rounds, size_t places, size_t count,
                       double tie, int64_t *out_ns);

/* `rounds` must be at most TNI_ROUNDS_MOST. */
double tni_times_median(const double *samples, size_t rounds);

/* The ratio of two kernels' times and its uncertainty. */
typedef struct tni_times_ratio {
    double ratio; /* the median of slow / fast */
    double noise; /* uncertainty of the ratio */
} tni_times_ratio;
tni_times_ratio tni_times_compare(const double *slow, const double *fast, size_t rounds,
                                  size_t places);

#endif
