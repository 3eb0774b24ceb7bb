/* Features that this processor has and the operating system permits. */
#ifndef TNI_OS_CPU_H
#define TNI_OS_CPU_H

#include "tenon/base.h"
#include "tenon/module/cpu.h"

#include <stdatomic.h>
#include <stdbool.h>

/* Detected once, then cached. Thread-safety: Safe. */
uint64_t tni_cpu_detected(void); /* features usable now on this machine */
uint64_t tni_cpu_possible(void); /* the same, and AMX if only the request is missing */
uint64_t tni_cpu_features(void); /* tni_cpu_detected without what the mask hides */

/* Requests permission to use AMX from the kernel, once. Returns true if the AMX features are
 * detected from now on; otherwise tni_cpu_why_not gives the reason. This is separate from detection
 * because it changes the whole process: every signal frame may then carry 8 KiB of tiles, so the
 * kernel refuses while any thread has a sigaltstack too small for that, and refuses such stacks
 * afterwards. Call it only before choosing AMX kernels. Thread-safety: Safe. */
bool tni_cpu_amx_request(void);

/* Hides features, so that every level can be tested on one machine: only bits of `allow` remain.
 * Undetected features cannot be added. UINT64_MAX hides nothing. */
void tni_cpu_mask_set(uint64_t allow);
uint64_t tni_cpu_mask(void);

/* Whether the mask hides any feature that is possible here. Libraries that choose instructions
 * themselves may still use hidden features. */
bool tni_cpu_is_masked(void);

/* Key for cached kernel choices: while it is unchanged, so are the features and
 * tni_cpu_is_masked. */
uint64_t tni_cpu_stamp(void);

/* Why a feature that the processor has is not usable ("the system does not save zmm registers"),
 * or NULL when it is usable or the processor lacks it. Static text. */
const char *tni_cpu_why_not(int feature_index);

const char *tni_cpu_feature_name(int index); /* NULL out of range */

/* Writes the names of `features`, as in "avx2,fma". Returns the length of the full text without the terminator; text too long for `size` is truncated. */
size_t tni_cpu_features_write(uint64_t features, char *out, size_t size);

/* Bits of an SVE vector in the calling thread and in threads it creates; 0 without SVE. */
int32_t tni_cpu_sve_bits(void);

/* One implementation of a function for one instruction set. Requires every feature of `needs`. */
typedef struct tni_isa_row {
    const char *name; /* "sha", "avx2", "portable" */
    uint64_t needs;
    void (*function)(void);
} tni_isa_row;

/* Returns the first row whose `needs` are all in `features`. Rows are ordered best first, and the
 * last one must need nothing. */
const tni_isa_row *tni_isa_choose(const tni_isa_row *rows, size_t count, uint64_t features);

/* The rows of one function, and the row in use. Must be static; `chosen` starts as NULL. */
typedef struct tni_isa_table {
    const tni_isa_row *rows;
    size_t count;
    const tni_isa_row *_Atomic chosen;
} tni_isa_table;

/* Returns the row in use; the first call chooses it by tni_cpu_features(). Thread-safety: Safe. */
const tni_isa_row *tni_isa_best(tni_isa_table *table);

/* Makes the best row for `features` the row in use and returns it. For tests. */
const tni_isa_row *tni_isa_use(tni_isa_table *table, uint64_t features);

#endif
