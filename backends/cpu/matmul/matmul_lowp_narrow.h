/* Few columns, with an A that is contiguous along k and too large to be packed for so few products:
 * all of B is packed, and A is read once, in place. */
#ifndef TENON_BACKENDS_CPU_MATMUL_LOWP_NARROW_H
#define TENON_BACKENDS_CPU_MATMUL_LOWP_NARROW_H

#include "matmul_panels.h"

/* Returns whether this is faster for a product; if so, may transpose it so that B has few
 * columns. */
bool tni_mm_low_is_narrow(const tni_mm_set *set, tni_mm_product *product);

uint64_t tni_mm_low_narrow_workspace(const tni_mm_set *set, const tni_mm_product *product);
void tni_mm_low_narrow_run(const tni_mm_set *set, const tni_mm_product *product, const tn_run *run);

#endif
