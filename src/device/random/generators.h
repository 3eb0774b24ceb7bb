/* Generators from inside: those that the core makes, and how a fill takes its blocks. */
#ifndef TNI_DEVICE_RANDOM_GENERATORS_H
#define TNI_DEVICE_RANDOM_GENERATORS_H

#include "tenon/random.h"

/* A generator of the core's own, as a device has one: tn_seed_everything seeds it, and it begins
 * with the seed that was given last. Released by tn_generator_release. */
tn_status tni_generators_add(uint64_t subsequence, tn_generator **out, tn_error *err);

/* Takes the next `blocks` blocks: they begin at the state returned. NULL: the default generator.
 * Thread-safety: Safe. */
tn_generator_state tni_generators_take(tn_generator *generator, uint64_t blocks);

#endif
