/* Every kernel row that modules offer, for dispatch: a list that is made anew when the registry
 * changes, and never changes itself. */
#ifndef TNI_DISPATCH_KERNELS_H
#define TNI_DISPATCH_KERNELS_H

#include "registry/record.h"
#include "settings/library.h"
#include "settings/rules.h"
#include "tenon/module/kernel.h"

#include <stdatomic.h>

/* One row. Lives as long as the process; where two modules have a row of one name, the first counts. */
typedef struct tni_kernel {
    const tn_kernel_row *row;
    const tni_record *record;
    const tn_library
        *library; /* that it goes through, or NULL; also NULL for one that is not known */
    tni_library_offer *talker; /* that library, where a setting can make it talk; or NULL */
    tni_candidate names;
    int64_t alignment; /* the largest that the row distinguishes; at least 1 */
    bool own;          /* of a module that is part of Tenon */
    bool reference;    /* the oracle itself */
} tni_kernel;

/* Whether it takes several products at once, which rows of earlier headers have no place for. */
static inline bool tni_kernel_takes_many(const tni_kernel *kernel)
{
    return TN_HAS(kernel->row, tn_kernel_row, run_many) && kernel->row->run_many;
}

/* The kernels of one op on one platform, in the order in which their modules came; NULL-ended. Finds
 * modules first. On failure *out is untouched. */
tn_status tni_kernels_of(const char *platform, int32_t op, const tni_kernel *const **out,
                         tn_error *err);

/* The largest alignment that any of those kernels distinguishes: memory that is aligned to it or to more is
 * the same to a choice among them. TN_OP_ALIGNMENT_MAX if they are not known. */
int64_t tni_kernels_alignment(const char *platform, int32_t op);

/* The same at a glance, for calls that are remembered: of host memory in the low byte, the largest that kernels of
 * the processor distinguish; of any other memory in the high byte, the largest of all platforms. 0 before the first
 * question. */
extern _Atomic uint16_t tni_kernels_alignments[TN_OP_COUNT];
static inline uint32_t tni_kernels_alignments_of(int32_t op)
{
    return atomic_load_explicit(&tni_kernels_alignments[op], memory_order_relaxed);
}

/* By name, of any op; NULL for none. With `index`, every one in turn; NULL past the end. */
tn_status tni_kernel_find(const char *name, const tni_kernel **out, tn_error *err);
const tni_kernel *tni_kernel_at(size_t index);

/* The reference of an op on the cpu platform. */
tn_status tni_kernel_reference(int32_t op, const tni_kernel **out, tn_error *err);

/* Goes up when anything changes that choices are made by: modules, quarantine, lock, timings. */
uint64_t tni_dispatch_generation(void);
void tni_dispatch_stir(void);

#endif
