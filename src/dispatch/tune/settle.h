/* From samples of kernels, taken side by side, to times that say which are faster, and which cannot be told apart:
 * tuning_time.h says how they are taken, and why ties are settled. */
#ifndef TNI_DISPATCH_SETTLE_H
#define TNI_DISPATCH_SETTLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From samples to times: `samples` has `rounds` of each kernel, one kernel after the other, all above 0; operands were at
 * `places` places by turns, one at least and no more than there are rounds. Returns false when more rounds would tell
 * more. At most TNI_ROUNDS_MOST. */
enum { TNI_ROUNDS_MOST = 240 };
bool tni_times_settle(const double *samples, size_t rounds, size_t places, size_t count, double tie,
                      int64_t *out_ns);

/* At most TNI_ROUNDS_MOST. */
double tni_times_median(const double *samples, size_t rounds);

/* How two kernels compare, and how sure that is. */
typedef struct tni_times_ratio {
    double ratio; /* the median of slow by fast */
    double noise; /* what that may be off by    */
} tni_times_ratio;
tni_times_ratio tni_times_compare(const double *slow, const double *fast, size_t rounds,
                                  size_t places);

#endif
