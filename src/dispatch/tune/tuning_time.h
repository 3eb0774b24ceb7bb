/* Measuring: how long kernels take for one problem, side by side.
 *
 * Every kernel is run once unmeasured, then as often for one sample as the clock needs. Where the platform records
 * graphs and calls are short, that clock is the device's, between two events, and a graph holds the stream until all
 * calls of the sample are in it: what is timed is what the device does, in the order in which programs queue it. Else it
 * is the processor's. Rounds follow, in which each of them has one sample, so that whatever slows the machine down for a
 * while slows all of them. Two kernels are held against one another by the median of the ratios of their samples of one
 * round, and tie when that is within a tie (store.h) or within what the ratios scatter; while they scatter
 * too much to tell, there are more rounds, of those alone that are not clearly beaten.
 *
 * Operands of calls that are timed so lie at another place in each round, as far as there is room, and ratios are those of
 * places: a kernel that is ahead at some of them and behind at others ties, however many rounds there are.
 *
 * Ties are settled here: kernels that tie with the fastest get its time, then those of the rest that tie
 * with the fastest of them, and so on. So what two measurements of one machine differ in by chance does
 * not show, and a prediction decides between equals. */
#ifndef TNI_DISPATCH_TUNING_TIME_H
#define TNI_DISPATCH_TUNING_TIME_H

#include "store.h"

/* Times what `timed` names, and fills in each one's ns. A kernel that fails gets TNI_TIME_FAILED. Fails
 * when none can be timed now: no memory for operands, a device that was lost. */
tn_status tni_time_kernels(const tni_question *question, tni_timed *timed, size_t count,
                           tn_error *err);

#endif
