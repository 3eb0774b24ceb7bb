/* What the library has to say; see tenon/log.h for who hears it. */
#ifndef TNI_BASE_LOG_H
#define TNI_BASE_LOG_H

#include "tenon/log.h"

#include <stdbool.h>

/* One line for the sink, if there is one that hears this level. Costs one atomic read otherwise. */
void tni_log(int32_t level, const char *format, ...) TN_PRINTF(2, 3);

/* True while the calling thread is inside a sink: it must not be made to wait for another one. */
bool tni_log_inside(void);

#endif
