/* Internals of generators: those that the core creates, and how a fill takes its blocks. */
#ifndef TNI_DEVICE_RANDOM_GENERATORS_H
#define TNI_DEVICE_RANDOM_GENERATORS_H

#include "tenon/random.h"

/* Creates a generator of the core, such as a device's: tn_seed_everything seeds it, and it starts
 * with the most recent seed. Release it with tn_generator_release. */
tn_status tni_generators_add(uint64_t subsequence, tn_generator **out, tn_error *err);

/* Takes the next `blocks` blocks: they begin at the state returned. NULL: the default generator.
 * Thread-safety: Safe. */
tn_generator_state tni_generators_advance(tn_generator *generator, uint64_t blocks);

#endif
