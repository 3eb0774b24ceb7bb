/* Every kernel row that modules offer, for dispatch: an immutable list that is replaced when the
 * registry changes. */
#ifndef TNI_DISPATCH_KERNELS_H
#define TNI_DISPATCH_KERNELS_H

#include "registry/record.h"
#include "settings/library.h"
#include "settings/rules.h"
#include "tenon/module/kernel.h"

#include <stdatomic.h>

/* One row. Lives as long as the process. If two modules have a row of the same name, the first one
 * is used. */
typedef struct tni_kernel {
    const tn_kernel_row *row;
    const tni_record *record;
    const tn_library *library; /* that it uses; NULL if it uses none or an unknown one */
    tni_library_offer *talker; /* that library, if a setting can make it log; otherwise NULL */
    tni_candidate names;
    int64_t alignment; /* the largest alignment that the row distinguishes; at least 1 */
    bool own;          /* from a module that is part of Tenon */
    bool reference;    /* the oracle itself */
} tni_kernel;

/* Whether the kernel runs several products at once. Rows built with earlier headers have no such
 * field. */
static inline bool tni_kernel_takes_many(const tni_kernel *kernel)
{
    return TN_HAS(kernel->row, tn_kernel_row, run_many) && kernel->row->run_many;
}

/* TN_ROW_... bits of the row. */
static inline uint64_t tni_kernel_traits(const tni_kernel *kernel)
{
    return TN_HAS(kernel->row, tn_kernel_row, traits) ? kernel->row->traits : 0;
}

/* Returns the kernels of one op on one platform, in the order in which their modules were loaded;
 * NULL-terminated. Discovers modules first. On failure *out is unchanged. */
tn_status tni_kernels_of(const char *platform, int32_t op, const tni_kernel *const **out,
                         tn_error *err);

/* Returns the largest alignment that any of those kernels distinguishes: a larger alignment does
 * not change the choice among them. TN_OP_ALIGNMENT_MAX if the kernels are not known. */
int64_t tni_kernels_alignment(const char *platform, int32_t op);

/* The same without a lookup, for the fast path. Low byte: for host memory, the largest alignment
 * that kernels of the processor distinguish. High byte: for any other memory, the largest of all
 * platforms. 0 before the first question. */
extern _Atomic uint16_t tni_kernels_alignments[TN_OP_KIND_MAX];
static inline uint32_t tni_kernels_alignments_of(int32_t op)
{
    return atomic_load_explicit(&tni_kernels_alignments[op], memory_order_relaxed);
}

/* tni_kernel_find: by name, of any op; NULL if none exists. tni_kernel_at: by index; NULL past
 * the end. */
tn_status tni_kernel_find(const char *name, const tni_kernel **out, tn_error *err);
const tni_kernel *tni_kernel_at(size_t index);

/* Finds the reference kernel of an op on the cpu platform. */
tn_status tni_kernel_reference(int32_t op, const tni_kernel **out, tn_error *err);

/* Increases when anything changes that affects choices: modules, quarantine, lock, timings. */
uint64_t tni_dispatch_generation(void);
void tni_dispatch_invalidate(void);

#endif
