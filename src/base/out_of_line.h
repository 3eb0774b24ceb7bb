/* Functions whose locals must not count on their caller's stack: see the promise in tenon/tenon.h. */
#ifndef TNI_BASE_OUT_OF_LINE_H
#define TNI_BASE_OUT_OF_LINE_H

#define TNI_OUT_OF_LINE __attribute__((noinline))

#endif
