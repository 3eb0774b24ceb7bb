/* What the library has to say; see tenon/log.h for who hears it. */
#ifndef TNI_BASE_LOG_H
#define TNI_BASE_LOG_H

#include "tenon/log.h"

/* One line for the sink, if there is one that hears this level. Costs one atomic read otherwise. */
void tni_log(int32_t level, const char *format, ...) TN_PRINTF(2, 3);

#endif
