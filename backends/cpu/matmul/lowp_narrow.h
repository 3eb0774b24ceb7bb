/* Few columns with an A whose rows lie together along k, and is too large to be packed for so little: B is packed, all
 * of it, and A is read once, where it lies. */
#ifndef TENON_BACKENDS_CPU_MATMUL_LOWP_NARROW_H
#define TENON_BACKENDS_CPU_MATMUL_LOWP_NARROW_H

#include "packed.h"

/* Whether a product is better computed so by a set; turns it then, so that B has few columns. */
bool tni_mm_low_is_narrow(const tni_mm_set *set, tni_mm_product *product);

uint64_t tni_mm_low_narrow_workspace(const tni_mm_set *set, const tni_mm_product *product);
void tni_mm_low_narrow_run(const tni_mm_set *set, const tni_mm_product *product, const tn_run *run);

#endif
