/* Time that only goes forward. */
#ifndef TNI_OS_CLOCK_H
#define TNI_OS_CLOCK_H

#include <stdint.h>

/* Nanoseconds since some fixed moment; never goes back, does not follow changes of the date. */
int64_t tni_clock_ns(void);

/* Sleeps at least this long. */
void tni_clock_sleep_ns(int64_t ns);

#endif
