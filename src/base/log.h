/* Logging inside the library; tenon/log.h sets the sink that receives the messages. */
#ifndef TNI_BASE_LOG_H
#define TNI_BASE_LOG_H

#include "tenon/log.h"

#include <stdbool.h>

/* Sends one line to the sink, and keeps it, as far as its level is wanted. Otherwise costs two atomic
 * reads. */
void tni_log(int32_t level, const char *format, ...) TN_PRINTF(2, 3);

/* True while the calling thread is inside a sink: then it must not wait for another thread. */
bool tni_log_inside(void);

#endif
