/* Measures how long kernels take for one problem, side by side.
 *
 * Every kernel is run once unmeasured. A sample then has as many calls as the clock needs. If the
 * platform records graphs and calls are short, the clock is the device's, between two events, and a
 * graph holds the stream until all calls of the sample are queued: this measures the device's work,
 * in the order in which programs queue it. Otherwise the processor's clock is used. In each of the
 * rounds that follow, every kernel gets one sample, so that a temporary slowdown of the machine
 * affects all of them. Two kernels are compared by the median of the ratios of their samples of the
 * same round. They tie if that is within a tie (store.h) or within the scatter of the ratios. While
 * the scatter is too large to decide, more rounds follow, only for kernels that are not clearly
 * beaten.
 *
 * With the device's clock, the operands are at another place in memory in each round, as far as
 * memory permits, and ratios are taken per place: a kernel that is faster at some places and slower
 * at others ties, however many rounds there are.
 *
 * Ties are resolved here: kernels that tie with the fastest get its time, then those of the rest
 * that tie with the fastest of the rest, and so on. So random differences between two measurements
 * of one machine do not show, and the prediction decides between equal kernels. */
#ifndef TNI_POLICY_TUNING_TUNING_TIME_H
#define TNI_POLICY_TUNING_TUNING_TIME_H

#include "store.h"

/* Times the kernels in `timed` and fills in each one's ns. A kernel that fails gets
 * TNI_TIME_FAILED. Fails if none can be timed now: no memory for operands, or the device was
 * lost. */
tn_status tni_time_kernels(const tni_question *question, tni_timed *timed, size_t count,
                           tn_error *err);

#endif
