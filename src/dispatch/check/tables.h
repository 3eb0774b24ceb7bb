/* Where sequences begin, how long they are and on which pages: operands that are no numbers to compute
 * with, made up so that they fit each other. */
#ifndef TNI_DISPATCH_TABLES_H
#define TNI_DISPATCH_TABLES_H

#include "inputs.h"

/* Whether an operand is such a table. */
bool tni_op_has_table(const tn_op *op, int32_t operand);

/* Fills in the host's block of a table; those of operands before it are filled already. `draw` gives
 * numbers of [0, 1). */
void tni_table_fill(tni_operands *operands, int32_t index, double (*draw)(void *user), void *user);

#endif
