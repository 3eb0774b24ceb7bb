/* The properties of a device as keys of the text form, in descriptions and in snapshots. */
#ifndef TNI_DEVICE_DEVICE_SCHEMA_H
#define TNI_DEVICE_DEVICE_SCHEMA_H

#include "base/schema.h"
#include "tenon/module/device.h"

/* For a struct whose first member is tn_device_properties. */
extern const tni_schema tni_device_schema;

#endif
