/* What this processor can do, and what the operating system lets it do. */
#ifndef TNI_OS_CPU_H
#define TNI_OS_CPU_H

#include "tenon/base.h"
#include "tenon/module/cpu.h"

#include <stdatomic.h>
#include <stdbool.h>

/*  Quirks: true of this processor, but nothing that a kernel may need. They change which of two
 *  working kernels is taken, never whether one may run. */
#define TNI_CPU_QUIRK_LIST(X)                                                       \
    X(SLOW_GATHER, "slow-gather")                                                   \
    X(HEAVY_AVX512, "heavy-avx512") /* lowers its clock a lot under 512-bit work */ \
    X(VIRTUAL, "virtual")           /* under a hypervisor: cache and model facts may be invented */

enum {
#define TNI_CPU_QUIRK_INDEX_(name, word) TNI_CPU_QUIRK_INDEX_##name,
    TNI_CPU_QUIRK_LIST(TNI_CPU_QUIRK_INDEX_) TNI_CPU_QUIRK_COUNT
#undef TNI_CPU_QUIRK_INDEX_
};
#define TNI_CPU_QUIRK(name) (UINT64_C(1) << TNI_CPU_QUIRK_INDEX_##name)

/* Asked once, then remembered. Thread-safety: Safe. */
uint64_t tni_cpu_detected(void); /* everything usable on this machine                   */
uint64_t tni_cpu_possible(void); /* the same, and AMX where it has only to be asked for */
uint64_t tni_cpu_quirks(void);
uint64_t tni_cpu_features(void); /* the same, less what the mask hides                   */

/* Asks the kernel, once, for permission to use AMX; true when the AMX features are detected from
 * now on, otherwise tni_cpu_why_not says what stands against it. Apart from detection because it
 * changes the whole process: every signal frame may now carry 8 KiB of tiles, so the kernel refuses
 * while any thread has a sigaltstack too small for that, and refuses such stacks afterwards. Only
 * who is about to choose AMX kernels calls it. Thread-safety: Safe. */
bool tni_cpu_amx_request(void);

/* Hides features, so that every level can run on one machine: only bits of `allow` remain. Bits
 * that are not detected cannot be added. UINT64_MAX hides nothing. */
void tni_cpu_mask_set(uint64_t allow);
uint64_t tni_cpu_mask(void);

/* Whether the mask hides anything that is possible here. Whoever chooses instructions himself, as
 * libraries do, may then take what is hidden. */
bool tni_cpu_is_masked(void);

/* What choices of kernels go by: while it is the same, features and tni_cpu_is_masked are. */
uint64_t tni_cpu_stamp(void);

/* Why a feature that the processor has is not usable ("the system does not save zmm registers"),
 * or NULL when it is usable or the processor lacks it. Static text. */
const char *tni_cpu_why_not(int feature_index);

const char *tni_cpu_feature_name(int index); /* NULL out of range */
const char *tni_cpu_quirk_name(int index);

/* "avx2,fma" to bits; "" to none. TN_INVALID_ARGUMENT names the unknown word and the nearest
 * known one. */
tn_status tni_cpu_features_parse(const char *text, uint64_t *out, tn_error *err);

/* The names of `features`, as they are parsed: "avx2,fma". Returns the length it needs without its
 * end; text too long for `size` is cut. */
size_t tni_cpu_features_write(uint64_t features, char *out, size_t size);

/* Bits of an SVE vector in the calling thread and those it makes; 0 without SVE. */
int32_t tni_cpu_sve_bits(void);

/* One implementation of a function for one instruction set. `needs`: every bit must be there. */
typedef struct tni_isa_row {
    const char *name; /* "sha", "avx2", "portable" */
    uint64_t needs;
    void (*function)(void);
} tni_isa_row;

/* The first row whose needs `features` has; rows are best first and the last needs nothing. */
const tni_isa_row *tni_isa_choose(const tni_isa_row *rows, size_t count, uint64_t features);

/* The rows of one function, and the one that is used. Static; `chosen` begins as NULL. */
typedef struct tni_isa_table {
    const tni_isa_row *rows;
    size_t count;
    const tni_isa_row *_Atomic chosen;
} tni_isa_table;

/* The row in use; the first call chooses by tni_cpu_features(). Thread-safety: Safe. */
const tni_isa_row *tni_isa_best(tni_isa_table *table);

/* Makes the best row for `features` the one in use, and returns it: for tests. */
const tni_isa_row *tni_isa_use(tni_isa_table *table, uint64_t features);

#endif
