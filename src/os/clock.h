/* Monotonic clock. */
#ifndef TNI_OS_CLOCK_H
#define TNI_OS_CLOCK_H

#include <stdint.h>

/* Nanoseconds since an arbitrary fixed moment. Monotonic; not affected by changes of the system's
 * date. */
int64_t tni_clock_ns(void);

/* Sleeps at least this long. */
void tni_clock_sleep_ns(int64_t ns);

#endif
