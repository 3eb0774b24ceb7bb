/* What the core lends a module. */
#ifndef TNI_REGISTRY_HOST_H
#define TNI_REGISTRY_HOST_H

#include "record.h"

/* Fills record->host; its functions know the module by `record`. */
void tni_host_fill(tni_record *record);

#endif
