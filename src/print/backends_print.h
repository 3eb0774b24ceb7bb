/* The part of a printed decision that is about attention backends. */
#ifndef TNI_PRINT_BACKENDS_PRINT_H
#define TNI_PRINT_BACKENDS_PRINT_H

#include "line.h"

/* Prints nothing for a decision on another operator. */
void tni_print_backends(const tni_sheet *sheet, const tn_decision *decision);

#endif
