/* The host interface that the core provides to a module. */
#ifndef TNI_REGISTRY_HOST_H
#define TNI_REGISTRY_HOST_H

#include "record.h"

/* Fills record->host; its functions identify the module by `record`. */
void tni_host_fill(tni_record *record);

#endif
